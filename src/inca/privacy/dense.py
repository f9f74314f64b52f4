"""The plain route: Theorem 1 on B and A written down, for any injection and any noise, zero included.

mu_i^2 = h_i^T Sigma^-1 h_i with Sigma = G G^T, G = (sigma_independent B, sigma_cancelling A). Instead of forming Sigma,
which would square the condition, factor G^T P = Q R with pivoting: mu_i = ||R^-T P^T h_i||, the length of the
shortest noise that imitates a change of x_i (Lemma 2), and the pivots tell which rows depend on others.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from inca.privacy.view import View
from inca.validation import Array, InputError

_EPS = float(np.finfo(np.float64).eps)
_GAP = 1e4  # factor that must lie between pivots that count and pivots that are rounding


def information(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party (possibly infinite), and an estimate of its relative error."""
    reach, missed, error = _solve(view, sigma_independent, sigma_cancelling)
    squares = np.einsum("ij,ij->j", reach, reach)
    return np.where(missed, np.inf, squares), error


def information_matrix(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, float]:
    """Return all of B^T Sigma^-1 B for noise above 0, and the error as above."""
    reach, _, error = _solve(view, sigma_independent, sigma_cancelling)
    return reach.T @ reach, error


def _solve(view: View, sigma_independent: float, sigma_cancelling: float) -> tuple[Array, np.ndarray, float]:
    """Return R^-T P^T B, which of its columns cannot be imitated by any noise, and the relative error."""
    b = view.value
    noise = np.hstack([sigma_independent * b, sigma_cancelling * view.noise])
    lengths = np.linalg.norm(noise, axis=1)
    scale = np.where(lengths > 0, lengths, 1.0)[:, np.newaxis]  # rows in units of their noise
    b, noise = b / scale, noise / scale
    r, order = qr(noise.T, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(np.diagonal(r))
    rounding = max(noise.shape) * _EPS
    rank = int((pivots > rounding).sum())
    if rank and pivots[rank - 1] < _GAP * rounding:
        raise InputError(
            "the observed messages are so nearly dependent that the loss cannot be told in double precision "
            f"(relative pivot {pivots[rank - 1]:.1e}, but at least {_GAP * rounding:.1e} was expected)"
        )
    kept, dependent = order[:rank], order[rank:]
    reach = solve_triangular(r[:rank, :rank], b[kept], trans="T", check_finite=False) if rank else b[:0]
    # A row without noise of its own that still moves with x_i gives x_i away.
    rest = b[dependent] - r[:rank, rank : noise.shape[0]].T @ reach
    missed = (np.abs(rest) > _GAP * rounding * np.maximum(1.0, np.abs(b[dependent]))).any(axis=0)
    missed &= sigma_independent == 0  # else x_i itself always has noise, in every row alike
    return reach, missed, rounding / (pivots[rank - 1] if rank else 1.0)
