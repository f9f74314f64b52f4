"""Schedules that are given: receivers as ids, or whole weight matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca._base.validation import finite_array, integer, listed, refuse
from inca.errors import InvalidInput
from inca.protocol.schedules.base import TOLERANCE, Round, Schedule, check_range, check_round, check_share, check_size

if TYPE_CHECKING:
    import scipy.sparse as sp


class ExplicitSchedule(Schedule):
    """A schedule given round by round: W_t has weight W_ji for j among the receivers of i, and the rest on W_ii.

    Args:
        receivers: A T x n x k array of party ids, round 1 first; -1 means nobody.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).
        weights: The fraction for each receiver by itself, of the same shape as `receivers`; instead of `share`.

    Raises:
        InvalidInput: If a shape is wrong, an id unknown, a receiver named twice or the sender itself, or a fraction
            negative or more than the message.

    Example:
        >>> ExplicitSchedule([[[1], [0]], [[1], [0]]]).round(2).receivers.tolist()
        [[1], [0]]
    """

    valid = True

    def __init__(self, receivers: ArrayLike, *, share: float | None = None, weights: ArrayLike | None = None) -> None:
        ids = _ids(receivers)
        self.rounds, self.parties, self.slots = ids.shape
        check_size(self.parties, self.rounds, self.slots)
        if weights is not None and share is not None:
            raise InvalidInput("share cannot be combined with weights")
        self.share = check_share(share, self.slots)
        for t, step in enumerate(ids, start=1):
            check_range(step, self.parties, t)
        self._receivers = ids.astype(np.int32)
        self._weights: Array | None = None
        if weights is not None:
            self._weights = finite_array("weights", weights, (3,), "(T, n, k)").copy()
            if self._weights.shape != ids.shape:
                refuse("the shape of weights", self._weights.shape, f"that of receivers, {ids.shape}")
        for t in range(1, self.rounds + 1):
            check_round(self, self.round(t), t)
        self.even_share = self.share if weights is None and int(ids.min()) >= 0 else None

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike | sp.sparray | sp.spmatrix]) -> ExplicitSchedule:
        """Take weight matrices W_1..W_T; W[j, i] is the fraction that i sends to j.

        Args:
            matrices: One dense or sparse matrix per round, with entries of at least 0 and columns that sum to 1
                (column stochasticity).

        Returns:
            The schedule.

        Raises:
            InvalidInput: If there is no matrix, or one is not square, not column stochastic or of another size.

        Example:
            >>> half = [[0.5, 0.5], [0.5, 0.5]]
            >>> ExplicitSchedule.from_matrices([half, half]).round(1).weights.tolist()
            [[0.5], [0.5]]
        """
        rounds = listed("matrices", matrices, "weight matrices, one per round")
        if not rounds:
            refuse("the number of matrices", 0, "at least 1, one per round")
        columns = [_checked_matrix(matrix, t) for t, matrix in enumerate(rounds, start=1)]
        n = columns[0].shape[0]
        if any(matrix.shape[0] != n for matrix in columns):
            sizes = sorted({matrix.shape[0] for matrix in columns})
            refuse("the sizes of matrices", sizes, "all the same")
        slots = max(1, *(int(np.diff(matrix.indptr).max()) for matrix in columns))
        receivers = np.full((len(columns), n, slots), -1, np.int32)
        weights = np.zeros((len(columns), n, slots))
        for t, matrix in enumerate(columns):
            counts = np.diff(matrix.indptr)
            sender = np.repeat(np.arange(n), counts)
            slot = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
            receivers[t, sender, slot] = matrix.indices
            weights[t, sender, slot] = matrix.data
        return cls(receivers, weights=weights)

    def round(self, t: int) -> Round:
        """Return round t = 1..T."""
        self._check_round(t)
        weights = None if self._weights is None else self._weights[t - 1]
        return Round(self._receivers[t - 1], self.share, weights)


def _ids(receivers: ArrayLike) -> NDArray[np.int64]:
    try:
        ids = np.asarray(receivers)
    except ValueError:
        raise InvalidInput("the rows of receivers must be of one length, got rows of different lengths") from None
    if ids.ndim != 3:
        refuse("the shape of receivers", ids.shape, "(T, n, k)")
    if ids.dtype.kind not in "iu":
        refuse("the type of receivers", str(ids.dtype), "an integer type")
    integer("rounds", ids.shape[0], min=1)
    return ids.astype(np.int64)


def _checked_matrix(matrix: ArrayLike | sp.sparray | sp.spmatrix, t: int) -> sp.csc_array:
    """Return the off-diagonal part of a valid weight matrix, by columns."""
    import scipy.sparse as sp  # slow to import

    name = f"matrix {t}"
    entries: Any = matrix if sp.issparse(matrix) else finite_array(name, cast(ArrayLike, matrix), (2,), "(n, n)")
    columns = sp.csc_array(entries, dtype=np.float64)
    if columns.shape[0] != columns.shape[1]:
        refuse(f"the shape of {name}", columns.shape, "(n, n)")
    if (bad := ~(np.isfinite(columns.data) & (columns.data >= 0))).any():
        refuse(f"an entry of {name}", float(columns.data[bad][0]), "a finite number, at least 0")
    sums: Array = np.asarray(columns.sum(axis=0), dtype=np.float64).ravel()
    if (wrong := np.abs(sums - 1.0) > TOLERANCE).any():
        i = int(np.flatnonzero(wrong)[0])
        refuse(f"the sum of column {i} of {name}", float(sums[i]), "1 (column stochasticity)")
    columns.setdiag(0.0)
    columns.eliminate_zeros()
    columns.sort_indices()
    return columns
