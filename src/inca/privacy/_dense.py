"""The plain method: Theorem 1 on B and A written down, for any injection and any noise, zero included.

mu_i^2 = h_i^T Sigma^-1 h_i with Sigma = G G^T, G = (sigma_independent B, sigma_cancelling A), and a column more for the
top-up noise of each settled message. Instead of forming Sigma, which would square the condition, factor G^T P = Q R
with pivoting: mu_i = ||R^-T P^T h_i||, the length of the shortest noise that imitates a change of x_i (Lemma 2), and
the pivots tell which rows depend on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from inca._base.kernels import Flags
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.privacy.view import View, noise_root
from inca.protocol.noise_levels import NoiseLevels

_EPS = float(np.finfo(np.float64).eps)
_PIVOT_GAP = 1e4  # factor that must lie between pivots that count and pivots that are rounding
_LEAST_SIZE = 20  # of rows, for their rounding: few rows were off by more than the number of their columns


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
    if rank and pivots[rank - 1] < _PIVOT_GAP * rounding:
        raise InvalidInput(
            "the observed messages are so nearly dependent that double precision does not tell the loss "
            f"(the smallest relative pivot must be at least {_PIVOT_GAP * rounding:.1e}, got {pivots[rank - 1]:.1e})"
        )
    basis_kept, upper = np.array(q[:, :rank], np.float64), np.array(r[: len(rows)], np.float64)  # below is 0
    # Rows that are off by so much of their length change a shortest solution by that times the norm of the inverse.
    inverse = solve_triangular(upper[:rank, :rank], np.eye(rank), check_finite=False)
    error = 2.0 * _EPS * (max(rows.shape) + _LEAST_SIZE) * max(1.0, float(np.linalg.norm(inverse)))
    return Factored(scale, order.astype(np.intp), rank, basis_kept, upper, error)


def information(view: View, noise_levels: NoiseLevels) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party (possibly infinite), and an estimate of its relative error."""
    imitation, given_away, error = _solve(view, noise_levels)
    squares = np.einsum("ij,ij->j", imitation, imitation)
    return np.where(given_away, np.inf, squares), error


def information_matrix(view: View, noise_levels: NoiseLevels) -> tuple[Array, float]:
    """Return all of B^T Sigma^-1 B for noise above 0, and the error as above."""
    imitation, _, error = _solve(view, noise_levels)
    return imitation.T @ imitation, error


def _solve(view: View, noise_levels: NoiseLevels) -> tuple[Array, Flags, float]:
    """Return R^-T P^T B, which of its columns cannot be imitated by any noise, and the relative error."""
    b = view.value
    factored = factor(noise_root(view, noise_levels))
    imitation = factored.imitation(b)
    # A row without noise of its own that still moves with x_i gives x_i away.
    rank, dependent = factored.rank, factored.order[factored.rank :]
    moves = (b / factored.scale)[dependent]
    rest = moves - factored.r[:rank, rank:].T @ imitation
    limit = _PIVOT_GAP * _EPS * max(len(b), b.shape[1] + view.noise.shape[1])
    given_away = (np.abs(rest) > limit * np.maximum(1.0, np.abs(moves))).any(axis=0)
    given_away &= noise_levels.independent == 0  # else x_i itself always has noise, in every row alike
    return imitation, given_away, factored.error
