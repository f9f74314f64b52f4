"""The plain route: Theorem 1 on B and A written down, for any injection and any noise, zero included.

mu_i^2 = h_i^T Sigma^-1 h_i with Sigma = G G^T, G = (sigma_independent B, sigma_cancelling A). Instead of forming Sigma,
which would square the condition, factor G^T P = Q R with pivoting: mu_i = ||R^-T P^T h_i||, the length of the
shortest noise that imitates a change of x_i (Lemma 2), and the pivots tell which rows depend on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import InputError
from inca.privacy.view import View

_EPS = float(np.finfo(np.float64).eps)
_GAP = 1e4  # factor that must lie between pivots that count and pivots that are rounding


@dataclass(frozen=True, eq=False)
class Factored:
    """Rows, each in units of its own `scale`, as rows^T P = Q R with pivoting."""

    scale: Array
    order: NDArray[np.intp]
    rank: int
    basis: Array
    """Orthonormal combinations of the rows, as columns: Q, if it was asked for."""
    r: Array
    error: float
    """The estimated relative error of squares of `imitation`."""

    @property
    def kept(self) -> NDArray[np.intp]:
        """Independent rows, of which the others are combinations."""
        return self.order[: self.rank]

    def imitation(self, values: Array) -> Array:
        """Return R^-T P^T values: its columns are as long as the shortest x with rows x = value (Lemma 2)."""
        scaled = (values / self.scale)[self.kept]
        return solve_triangular(self.r[: self.rank, : self.rank], scaled, trans="T", check_finite=False)


def factor(rows: Array, *, basis: bool = False) -> Factored:
    """Factor the rows, find those that depend on others, and refuse what is neither clearly so nor clearly not.

    The basis is computed on request only, as it is as large as the rows.
    """
    lengths = np.linalg.norm(rows, axis=1)[:, np.newaxis]
    scale = np.where(lengths > 0, lengths, 1.0)
    q: NDArray[np.floating[Any]] = np.empty((rows.shape[1], 0))
    if basis:
        q, r, order = qr((rows / scale).T, mode="economic", pivoting=True, check_finite=False)
    else:
        r, order = qr((rows / scale).T, mode="r", pivoting=True, check_finite=False)
    pivots, rounding = np.abs(np.diagonal(r)), max(rows.shape) * _EPS
    rank = int((pivots > rounding).sum())
    if rank and pivots[rank - 1] < _GAP * rounding:
        raise InputError(
            "the observed messages are so nearly dependent that the loss cannot be told in double precision "
            f"(relative pivot {pivots[rank - 1]:.1e}, but at least {_GAP * rounding:.1e} was expected)"
        )
    error = rounding / (pivots[rank - 1] if rank else 1.0)
    basis_kept, upper = np.array(q[:, :rank], np.float64), np.array(r[: len(rows)], np.float64)  # below is 0
    return Factored(scale, order.astype(np.intp), rank, basis_kept, upper, float(error))


def information(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party (possibly infinite), and an estimate of its relative error."""
    reach, missed, error = _solve(view, sigma_independent, sigma_cancelling)
    squares = np.einsum("ij,ij->j", reach, reach)
    return np.where(missed, np.inf, squares), error


def information_matrix(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, float]:
    """Return all of B^T Sigma^-1 B for noise above 0, and the error as above."""
    reach, _, error = _solve(view, sigma_independent, sigma_cancelling)
    return reach.T @ reach, error


def _solve(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, Flags, float]:
    """Return R^-T P^T B, which of its columns cannot be imitated by any noise, and the relative error."""
    b = view.value
    factored = factor(np.hstack([sigma_independent * b, sigma_cancelling * view.noise]))
    reach = factored.imitation(b)
    # A row without noise of its own that still moves with x_i gives x_i away.
    rank, dependent = factored.rank, factored.order[factored.rank :]
    own = (b / factored.scale)[dependent]
    rest = own - factored.r[:rank, rank:].T @ reach
    limit = _GAP * _EPS * max(len(b), b.shape[1] + view.noise.shape[1])
    missed = (np.abs(rest) > limit * np.maximum(1.0, np.abs(own))).any(axis=0)
    missed &= sigma_independent == 0  # else x_i itself always has noise, in every row alike
    return reach, missed, factored.error
