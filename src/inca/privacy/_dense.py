"""The plain method: Theorem 1 on B and A written down, for any injection and any noise, zero included.

mu_i^2 = h_i^T Sigma^-1 h_i with Sigma = G G^T, G = (sigma_independent B, sigma_cancelling A), and a column more for the
top-up noise of each settled message. Instead of forming Sigma, which would square the condition, factor G^T P = Q R
with pivoting: mu_i = ||R^-T P^T h_i||, the length of the shortest noise that imitates a change of x_i (Lemma 2), and
the pivots tell which rows depend on others.

One noise may be 10^8 times the other. Then rounding in large ones drowns what a sum of messages has of tiny ones, and
what was found lacks some of the change. But it is known how much, and what imitates that is a correction,

    G x = h - r  implies  mu^2 = ||x + G^T Sigma^-1 r||^2 = ||x||^2 + 2 a^T r + ||R^-T P^T r||^2,  a = Sigma^-1 h,

after which only the rounding of r is left, which a, whatever the condition of Sigma, makes no larger than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dormqr

from inca._base.kernels import Flags
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.privacy.view import View, noise_root
from inca.protocol.noise_levels import NoiseLevels

_EPS = float(np.finfo(np.float64).eps)
_PIVOT_GAP = 1e4  # factor that must lie between pivots that count and pivots that are rounding
_LEAST_SIZE = 20  # of rows, for their rounding: few rows were off by more than the number of their columns
_ORMQR_BLOCK = 64  # columns that LAPACK works on at once


@dataclass(frozen=True, eq=False)
class Imitations:
    """The shortest noise that imitates changes of all rows, and what rounding may have made of it."""

    coordinates: Array
    """R^-T P^T values, a column for each change: as long as the shortest x with rows x = value (Lemma 2)."""
    errors: Array
    """Bounds on the errors of all scalar products of two of these."""

    @property
    def squares(self) -> Array:
        """How long they are, squared."""
        return np.asarray(np.einsum("ij,ij->j", self.coordinates, self.coordinates))

    @property
    def relative_errors(self) -> Array:
        """Bounds on the relative errors of the squares."""
        squares = self.squares
        return np.divide(np.diagonal(self.errors), squares, out=np.zeros_like(squares), where=squares > 0.0)


@dataclass(frozen=True, eq=False)
class Factored:
    """Rows, each in units of its own `scale`, as rows^T P = Q R with pivoting."""

    scale: Array
    order: NDArray[np.intp]
    rank: int
    r: Array
    _rows: Array
    _reflections: tuple[Array, Array]

    @property
    def kept(self) -> NDArray[np.intp]:
        """Independent rows, of which the others are combinations."""
        return self.order[: self.rank]

    @cached_property
    def basis(self) -> Array:
        """Orthonormal combinations of the rows, as columns: Q."""
        return self._times_q(np.eye(self.rank))

    def imitation(self, values: Array) -> Array:
        """Return R^-T P^T values: its columns are as long as the shortest x with rows x = value (Lemma 2)."""
        return self._imitated(values)[0]

    def imitate(self, values: Array) -> Imitations:
        """Return the same with bounds on its error."""
        coordinates, moved = self._imitated(values)
        costs = np.abs(solve_triangular(self._root, coordinates, check_finite=False))
        inverse = solve_triangular(self._root, np.eye(self.rank), trans="T", check_finite=False)
        first, second = costs.T @ moved, np.abs(inverse) @ moved
        return Imitations(coordinates, first + first.T + second.T @ second)

    @property
    def _root(self) -> Array:
        return self.r[: self.rank, : self.rank]

    def _imitated(self, values: Array) -> tuple[Array, Array]:
        """Return the imitations, what they lacked at first included, and by how much rounding may have moved values."""
        scaled, rows = (values / self.scale)[self.kept], self._rows[self.kept]
        first = solve_triangular(self._root, scaled, trans="T", check_finite=False)
        x = self._times_q(first)
        lacking = solve_triangular(self._root, scaled - rows @ x, trans="T", check_finite=False)
        size = max(self._rows.shape) + _LEAST_SIZE
        return first + lacking, size * _EPS * (np.abs(rows) @ np.abs(x) + np.abs(scaled))

    def _times_q(self, coordinates: Array) -> Array:
        reflectors, factors = self._reflections
        full = np.zeros((self._rows.shape[1], coordinates.shape[1]), order="F")
        full[: self.rank] = coordinates
        if not self.rank:
            return full
        work = max(1, _ORMQR_BLOCK * coordinates.shape[1])
        product, _, _ = dormqr("L", "N", reflectors[:, : factors.size], factors, full, work, overwrite_c=1)
        return np.asarray(product)


def factor(rows: Array) -> Factored:
    """Factor the rows, find those that depend on others, and refuse what is neither clearly so nor clearly not."""
    lengths = np.linalg.norm(rows, axis=1)[:, np.newaxis]
    scale = np.where(lengths > 0, lengths, 1.0)
    scaled = rows / scale
    (reflectors, factors), r, order = qr(scaled.T, mode="raw", pivoting=True, check_finite=False)
    pivots, rounding = np.abs(np.diagonal(r)), max(rows.shape) * _EPS
    rank = int((pivots > rounding).sum())
    if rank and pivots[rank - 1] < _PIVOT_GAP * rounding:
        raise InvalidInput(
            "the observed messages are so nearly dependent that double precision does not tell the loss "
            f"(the smallest relative pivot must be at least {_PIVOT_GAP * rounding:.1e}, got {pivots[rank - 1]:.1e})"
        )
    reflections = np.asarray(reflectors, np.float64), np.asarray(factors, np.float64)
    return Factored(scale, order.astype(np.intp), rank, np.asarray(r[: len(rows)], np.float64), scaled, reflections)


def information(view: View, noise_levels: NoiseLevels) -> tuple[Array, Array]:
    """Return mu_i^2 of every honest party (possibly infinite), and bounds on their relative errors."""
    imitations, given_away = _solve(view, noise_levels)
    return np.where(given_away, np.inf, imitations.squares), np.where(given_away, 0.0, imitations.relative_errors)


def information_matrix(view: View, noise_levels: NoiseLevels) -> tuple[Array, float]:
    """Return all of B^T Sigma^-1 B for noise above 0, and a bound on the norm of its error, times var(u)."""
    imitations, _ = _solve(view, noise_levels)
    error = float(np.linalg.norm(imitations.errors)) * noise_levels.independent**2
    return imitations.coordinates.T @ imitations.coordinates, error


def _solve(view: View, noise_levels: NoiseLevels) -> tuple[Imitations, Flags]:
    """Return R^-T P^T B, and which of its columns cannot be imitated by any noise."""
    b = view.value
    factored = factor(noise_root(view, noise_levels))
    imitations = factored.imitate(b)
    # A row without noise of its own that still moves with x_i gives x_i away.
    rank, dependent = factored.rank, factored.order[factored.rank :]
    moves = (b / factored.scale)[dependent]
    rest = moves - factored.r[:rank, rank:].T @ imitations.coordinates
    limit = _PIVOT_GAP * _EPS * max(len(b), b.shape[1] + view.noise.shape[1])
    given_away = (np.abs(rest) > limit * np.maximum(1.0, np.abs(moves))).any(axis=0)
    given_away &= noise_levels.independent == 0  # else x_i itself always has noise, in every row alike
    return imitations, given_away
