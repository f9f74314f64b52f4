"""All losses of the incremental family without writing B and A down: a filter over a small state (fact F9).

Carry the covariance of (u, z, s) of `_recursion`, given all that was observed, from round to round. What observations
take from the variance of u_i is the loss:

    mu_i^2 = h_i^T Sigma^-1 h_i = (var(u_i) - var(u_i | y)) / var(u_i)^2.

Everything is in units of sigma_independent: var(u_i) = 1, and `ratio` is sigma_cancelling / sigma_independent.
A round costs sparse work on n_H^2 entries and a dense update of 4 n_H^2 for each message observed in it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from inca._base.kernels import Ids, U, compiled
from inca._base.threads import available_cores, blas_threads_for, one_blas_thread
from inca._base.types import Array, Progress
from inca.errors import SingularView
from inca.privacy._blas import divide_by_root, subtract_product
from inca.privacy._recursion import Recursion
from inca.privacy.view import View

_TILE_ROWS = 16  # and columns of a block: as many lines of the cache as stay there
_MIN_ROWS_TO_CUT, _MIN_RANGE_ROWS = 400, 64  # or columns: from which on to use threads, and the least piece
_EPS = float(np.finfo(np.float64).eps)


def information(
    view: View, ratio: float, progress: Progress | None = None, *, topup: float = 0.0, matrix: bool = False
) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party in units of sigma_independent, and an estimate of its relative error.

    Needs an injection of the incremental family and a ratio above 0; `topup` is sigma_topup / sigma_independent. With
    `matrix` it returns all of B^T Sigma^-1 B, of which the losses are the diagonal. `progress` is told how many of T+1
    rounds are done.
    """
    rounds = view.execution.rounds
    with ThreadPoolExecutor(available_cores()) as pool:
        carried = _Filter(Recursion(view, ratio, topup), pool)
        with one_blas_thread():  # the threads are ours
            for t in range(rounds):
                carried.observe(t)
                carried.advance(t + 1)
                if progress is not None:
                    progress(t + 1, rounds + 1)
        with blas_threads_for(view.honest.size):
            result = carried.information(matrix)
    if progress is not None:
        progress(rounds + 1, rounds + 1)
    return result


class _Filter:
    """The covariance of (u, z, s) given what was observed so far: values u first, then states z, then s if needed.

    `p` is stored by columns; state number k stands at size + k.
    """

    def __init__(self, recursion: Recursion, pool: ThreadPoolExecutor) -> None:
        self.recursion, self.size, self.pool = recursion, recursion.size, pool
        owner, first, values = recursion.owner, recursion.first_share, np.arange(recursion.size)
        count = self.size + owner.size
        self.p, self.scratch = np.zeros((count, count), order="F"), np.empty((count, owner.size), order="F")
        self.p[values, values] = 1.0
        self.p[: self.size, self.size :] = first * (values[:, np.newaxis] == owner)
        self.p[self.size :, : self.size] = self.p[: self.size, self.size :].T
        self.p[self.size :, self.size :] = first**2 * (owner[:, np.newaxis] == owner)
        self.gained = np.zeros(self.size)
        self.error = _EPS

    def observe(self, t: int) -> None:
        """Condition on the known messages computed in round t < T: y_i = z_i + m_i."""
        places, noise = self.recursion.observed(t)
        if places.size:
            states = places + self.size
            cross = self.p.T[states].T  # columns of an array stored by columns: one contiguous copy
            covariance = cross[states]
            covariance[np.diag_indices_from(covariance)] += noise
            self._in_ranges(len(cross), divide_by_root, cross, self._root(covariance))
            self.gained += np.einsum("ij,ij->i", cross[: self.size], cross[: self.size])
            self._in_ranges(len(cross), _condition, self.p, cross)
        else:
            self._in_ranges(len(self.p), _mirror, self.p)

    def advance(self, t: int) -> None:
        """Go on to round t."""
        step, owner = self.recursion.advance(t), self.recursion.owner
        self._in_ranges(owner.size, _advance, self.p, self.scratch, *step.phi, step.share, owner)
        _add_masks(self.scratch[self.size :], step.starts, step.states, step.changes, step.masks)
        self.p[:, self.size :] = self.scratch

    def information(self, matrix: bool) -> tuple[Array, float]:
        """Condition on the final messages and return what all observations took from the variance of u."""
        places, noise = self.recursion.final()
        states = self.size + places
        cross = self.p.T[states].T
        last = cross[: self.size]
        if states.size:
            covariance = cross[states]
            covariance[np.diag_indices_from(covariance)] += noise
            last = dtrsm(1.0, self._root(covariance), last, side=1, lower=1, trans_a=1)
        if not matrix:
            return self.gained + np.einsum("ij,ij->i", last, last), self.error
        upper = np.eye(self.size) - self.p[: self.size, : self.size]
        full = np.triu(dsyrk(1.0, last, beta=1.0, c=np.asfortranarray(upper), lower=0))
        return full + np.triu(full, 1).T, self.error

    def _root(self, covariance: Array) -> Array:
        """Return the lower Cholesky factor; keep track of how much its smallest pivot amplifies rounding."""
        root, failed = dpotrf(covariance, lower=1)
        if failed:
            raise SingularView
        least = float((np.diagonal(root) ** 2 / np.diagonal(covariance)).min())
        self.error = max(self.error, _EPS * np.sqrt(self.size) / least)
        return np.asarray(root)

    def _in_ranges(self, count: int, job: Callable[..., None], *arguments: object) -> None:
        """Do a job on ranges of rows or columns 0..count-1 in all threads, or at once where that would not pay."""
        if count < _MIN_ROWS_TO_CUT:
            job(*arguments, 0, count)
            return
        edges = [*range(0, count, max(_MIN_RANGE_ROWS, -(-count // (6 * available_cores())))), count]
        # Later columns have more above the diagonal, hence more work: they go first.
        for done in [self.pool.submit(job, *arguments, lo, hi) for lo, hi in reversed(list(pairwise(edges)))]:
            done.result()


def _condition(p: Array, cross: Array, lo: int, hi: int) -> None:
    """Do p -= cross cross^T for columns lo..hi-1 above the diagonal, and for the same entries below it."""
    subtract_product(p, cross, lo, hi)
    _mirror(p, lo, hi)


@compiled
def _add_masks(covariance: Array, starts: Ids, states: Ids, entries: Array, masks: Array) -> None:
    """Add what the hidden messages' masks, of these variances, add to the covariance of the states."""
    for i in range(starts.size - 1):
        for b in range(starts[i], starts[i + 1]):
            for a in range(starts[i], starts[i + 1]):
                covariance[states[a], states[b]] += masks[i] * entries[a] * entries[b]


@compiled
def _mirror(p: Array, lo: int, hi: int) -> None:
    """Copy columns lo..hi-1 above the diagonal of p to its rows left of the diagonal, tile by tile."""
    for left in range(lo, hi, _TILE_ROWS):
        right = min(left + _TILE_ROWS, hi)
        for top in range(0, right, _TILE_ROWS):
            for i in range(U(top), U(min(top + _TILE_ROWS, right))):
                column = p[:, i]
                for j in range(max(U(left), i + U(1)), U(right)):
                    column[j] = p[i, j]


@compiled
def _advance(
    p: Array, out: Array, starts: Ids, sources: Ids, phi: Array, share: Array, owner: Ids, lo: int, hi: int
) -> None:
    """Write columns lo..hi-1 of the states' next covariance with (u, states); Phi is given by rows (CSR).

    The next state b is sum_j phi_bj state_j + c_b u_owner(b): first its covariance with the old ones, then with the
    new ones.
    """
    size, states = len(p) - share.size, share.size
    mixed = np.empty(len(p))
    for b in range(lo, hi):
        old = p[:, owner[b]]
        for e in range(len(p)):
            mixed[e] = share[b] * old[e]
        for q in range(starts[b], starts[b + 1]):
            old, weight = p[:, size + sources[q]], phi[q]
            for e in range(len(p)):
                mixed[e] += weight * old[e]
        values, new, before = out[:size, b], out[size:, b], mixed[size:]
        for a in range(size):
            values[a] = mixed[a]
        for a in range(states):
            total = share[a] * mixed[owner[a]]
            for q in range(U(starts[a]), U(starts[a + 1])):
                total += phi[q] * before[U(sources[q])]
            new[a] = total
