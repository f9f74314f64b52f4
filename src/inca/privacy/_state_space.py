"""All losses of the incremental family without writing B and A down (fact F9).

Take off each message its owner's live mask: y_i^(t) = z_i^(t) + m_i^(t). Then z is a state with little memory,

    z^(t) = W^O_t z^(t-1) + (W^O_t - I) m^(t-1) + c^(.)_t u,        u = x + eta*,

since a round takes the old mask off and puts a fresh, independent one on. An adversary who knows message y_i^(t-1)
knows what it contributes to its receivers, and m_i = y_i - z_i; so for a known message the column W e_i of this
recursion becomes e_i, and its mask adds no noise. Colluders' messages are all known: their columns and rows vanish.

What remains is a filtering problem over the honest parties: carry the covariance of (u, z), given all that was
observed, from round to round; observe y_i = z_i + m_i with the mask's variance as noise; and in the end the final
messages z_i^(T), whose masks are closed. What the observations take from the variance of u_i is the loss:

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

from inca._base.kernels import Flags, Ids, U, compiled
from inca._base.threads import available_cores, blas_threads_for, one_blas_thread
from inca._base.types import Array, Progress
from inca.errors import SingularView
from inca.privacy._blas import divide_by_root, subtract_product
from inca.privacy.view import View

_TILE_ROWS = 16  # and columns of a block: as many lines of the cache as stay there
_MIN_ROWS_TO_CUT, _MIN_RANGE_ROWS = 400, 64  # or columns: from which on to use threads, and the least piece
_EPS = float(np.finfo(np.float64).eps)


def information(
    view: View, ratio: float, progress: Progress | None = None, *, matrix: bool = False
) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party in units of sigma_independent, and an estimate of its relative error.

    Needs an injection of the incremental family and a ratio above 0. With `matrix` it returns all of
    B^T Sigma^-1 B, of which the losses are the diagonal. `progress` is told how many of T+1 rounds are done.
    """
    rounds = view.execution.rounds
    with ThreadPoolExecutor(available_cores()) as pool:
        carried = _Filter(view, ratio, pool)
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
    """The covariance of (u, z) given what was observed so far; values u first, then states z.

    `p` is stored by columns.
    """

    def __init__(self, view: View, ratio: float, pool: ThreadPoolExecutor) -> None:
        self.view, self.size, self.pool = view, view.honest.size, pool
        injection = view.execution.injection
        if injection.mask_scales is None:
            raise TypeError("the state-space method needs an injection of the incremental family")
        self.mask_variances = (ratio * injection.mask_scales) ** 2
        self.p = np.zeros((2 * self.size, 2 * self.size), order="F")
        self.scratch = np.empty((2 * self.size, self.size), order="F")
        first, values = injection.value[0], np.arange(self.size)
        states = values + self.size
        self.p[values, values] = 1.0
        self.p[values, states] = self.p[states, values] = first
        self.p[states, states] = first**2
        self.place = np.full(view.execution.parties + 1, -1, dtype=np.int32)  # the last entry: receiver -1, nobody
        self.place[view.honest] = values
        self.gained = np.zeros(self.size)
        self.attended = np.zeros(self.size, dtype=np.int64)  # rounds before the current one with the party present
        self.error = _EPS

    def observe(self, t: int) -> None:
        """Condition on the known messages computed in round t < T: y_i = z_i + m_i."""
        places = np.flatnonzero(self.view.known[t, self.view.honest])
        if places.size:
            states = places + self.size
            cross = self.p.T[states].T  # columns of an array stored by columns: one contiguous copy
            covariance = cross[states]
            covariance[np.diag_indices_from(covariance)] += self.mask_variances[self.attended[places]]
            self._in_ranges(len(cross), divide_by_root, cross, self._root(covariance))
            self.gained += np.einsum("ij,ij->i", cross[: self.size], cross[: self.size])
            self._in_ranges(len(cross), _condition, self.p, cross)
        else:
            self._in_ranges(len(self.p), _mirror, self.p)

    def advance(self, t: int) -> None:
        """Go on to round t: z <- Phi z + (W - I) m + c u, where Phi e_i is W e_i for hidden messages, else e_i."""
        view, honest = self.view, self.view.honest
        here = view.active[t, honest]
        hidden = here & ~view.known_when_sent[t - 1, honest]
        self.attended += view.active[t - 1, honest]
        share = np.where(here, view.execution.injection.value[self.attended], 0.0)
        step = view.execution.sends(t)
        receivers, fractions = self.place[step.receivers[honest]], step.fractions[honest]
        phi = _transition(receivers, fractions, hidden)
        self._in_ranges(self.size, _advance, self.p, self.scratch, *phi, share)
        masks = self.mask_variances[self.attended - 1]
        _add_masks(self.scratch[self.size :], receivers, fractions, np.where(hidden, masks, 0.0))
        self.p[:, self.size :] = self.scratch

    def information(self, matrix: bool) -> tuple[Array, float]:
        """Condition on the final messages and return what all observations took from the variance of u."""
        states = np.flatnonzero(self.view.known[-1, self.view.honest]) + self.size
        cross = self.p.T[states].T
        last = cross[: self.size]
        if states.size:
            last = dtrsm(1.0, self._root(cross[states]), last, side=1, lower=1, trans_a=1)
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
def _transition(receivers: Ids, fractions: Array, hidden: Flags) -> tuple[Ids, Ids, Array]:
    """Return Phi by rows (CSR: starts, parties, entries): W e_i for the hidden, e_i for the others.

    A share that came back (receiver is the sender) is kept, as is what goes to nobody (-1).
    """
    size, slots = receivers.shape
    starts = np.zeros(size + 1, dtype=np.int32)
    kept = np.ones(size)
    for i in range(size):
        starts[i + 1] += 1
        for s in range(slots):
            j = receivers[i, s]
            if hidden[i] and j >= 0 and j != i:
                starts[j + 1] += 1
                kept[i] -= fractions[i, s]
    starts = np.cumsum(starts).astype(np.int32)
    filled = starts[:-1].copy()
    parties, phi = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
    for i in range(size):
        parties[filled[i]], phi[filled[i]] = i, kept[i]
        filled[i] += 1
        for s in range(slots):
            j = receivers[i, s]
            if hidden[i] and j >= 0 and j != i:
                parties[filled[j]], phi[filled[j]] = i, fractions[i, s]
                filled[j] += 1
    return starts, parties, phi


@compiled
def _add_masks(z: Array, receivers: Ids, fractions: Array, masks: Array) -> None:
    """Add (W - I) diag(masks) (W - I)^T: what the hidden messages' masks, of these variances, add to var(z)."""
    size, slots = receivers.shape
    who, change = np.empty(slots + 1, dtype=np.int32), np.empty(slots + 1)
    for i in range(size):
        if masks[i] == 0.0:
            continue
        who[0], change[0] = i, 0.0
        count = 1
        for s in range(slots):
            j = receivers[i, s]
            if j >= 0 and j != i:
                who[count], change[count] = j, fractions[i, s]
                change[0] -= fractions[i, s]
                count += 1
        for b in range(count):
            for a in range(count):
                z[who[a], who[b]] += masks[i] * change[a] * change[b]


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
def _advance(p: Array, out: Array, starts: Ids, parties: Ids, phi: Array, share: Array, lo: int, hi: int) -> None:
    """Write columns lo..hi-1 of the states' next covariance with (u, z); Phi is given by rows (CSR).

    The next z_b is sum_j phi_bj z_j + c_b u_b: first its covariance with the old (u, z), then that with the new z.
    """
    size = share.size
    mixed = np.empty(2 * size)
    for b in range(lo, hi):
        old = p[:, b]
        for e in range(2 * size):
            mixed[e] = share[b] * old[e]
        for q in range(starts[b], starts[b + 1]):
            old, weight = p[:, size + parties[q]], phi[q]
            for e in range(2 * size):
                mixed[e] += weight * old[e]
        values, states, z = out[:size, b], out[size:, b], mixed[size:]
        for a in range(size):
            values[a] = mixed[a]
            total = share[a] * mixed[a]
            for q in range(U(starts[a]), U(starts[a + 1])):
                total += phi[q] * z[U(parties[q])]
            states[a] = total
