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

Final messages that were settled are further states s, one for each honest party of the cohort. They start as z does,
and take part in transfers inside the cohort only,

    s^(t) = s^(t-1) + (W^S_t - I) (z + m)^(t-1) + c^(.)_t u,

where again known messages drop out. In the end s_i plus top-up noise is observed. If all that was exchanged with
others is known, s is z.

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
    view: View, ratio: float, progress: Progress | None = None, *, topup: float = 0.0, matrix: bool = False
) -> tuple[Array, float]:
    """Return mu_i^2 of every honest party in units of sigma_independent, and an estimate of its relative error.

    Needs an injection of the incremental family and a ratio above 0; `topup` is sigma_topup / sigma_independent. With
    `matrix` it returns all of B^T Sigma^-1 B, of which the losses are the diagonal. `progress` is told how many of T+1
    rounds are done.
    """
    rounds = view.execution.rounds
    with ThreadPoolExecutor(available_cores()) as pool:
        carried = _Filter(view, ratio, topup, pool)
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

    `p` is stored by columns; state number k stands at size + k, and belongs to the honest party number `owner[k]`.
    """

    def __init__(self, view: View, ratio: float, topup: float, pool: ThreadPoolExecutor) -> None:
        self.view, self.size, self.pool = view, view.honest.size, pool
        self.var_topup = topup**2
        injection = view.execution.injection
        if injection.mask_scales is None:
            raise TypeError("the state-space method needs an injection of the incremental family")
        self.mask_variances = (ratio * injection.mask_scales) ** 2
        values = np.arange(self.size, dtype=np.int32)
        settling = values[_settles_apart(view)]
        self.owner = np.concatenate([values, settling])
        self.settled_place = np.full(self.size, -1, dtype=np.int32)  # of each honest party's s among the states
        self.settled_place[settling] = self.size + np.arange(settling.size, dtype=np.int32)
        count = self.size + self.owner.size
        self.p, self.scratch = np.zeros((count, count), order="F"), np.empty((count, self.owner.size), order="F")
        first = injection.value[0]
        self.p[values, values] = 1.0
        self.p[: self.size, self.size :] = first * (values[:, np.newaxis] == self.owner)
        self.p[self.size :, : self.size] = self.p[: self.size, self.size :].T
        self.p[self.size :, self.size :] = first**2 * (self.owner[:, np.newaxis] == self.owner)
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
        """Go on to round t: z += (W - I) (z + m) + c u and s += (W^S - I) (z + m) + c u, with hidden messages alone."""
        view, honest = self.view, self.view.honest
        here = view.active[t, honest]
        hidden = here & ~view.known_when_sent[t - 1, honest]
        self.attended += view.active[t - 1, honest]
        share = np.where(here, view.execution.injection.value[self.attended], 0.0)
        step = view.execution.sends(t)
        receivers, fractions = self.place[step.receivers[honest]], step.fractions[honest]
        starts, states, changes = _changes(receivers, fractions, hidden, self.settled_place)
        phi = _transition(starts, states, changes, self.owner.size)
        self._in_ranges(self.owner.size, _advance, self.p, self.scratch, *phi, share[self.owner], self.owner)
        masks = self.mask_variances[self.attended - 1]
        _add_masks(self.scratch[self.size :], starts, states, changes, masks)
        self.p[:, self.size :] = self.scratch

    def information(self, matrix: bool) -> tuple[Array, float]:
        """Condition on the final messages and return what all observations took from the variance of u."""
        view, seen = self.view, np.flatnonzero(self.view.known[-1, self.view.honest])
        states = self.size + np.where(self.settled_place[seen] >= 0, self.settled_place[seen], seen)
        cross = self.p.T[states].T
        last = cross[: self.size]
        if states.size:
            covariance = cross[states]
            if view.execution.cohort is not None:
                settled = view.execution.cohort[view.honest[seen]]
                covariance[np.diag_indices_from(covariance)] += np.where(settled, self.var_topup, 0.0)
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


def _settles_apart(view: View) -> Flags:
    """Return which honest parties need a state of their own for their settled messages: the cohort, or nobody.

    Nobody does if all that the honest ones of the cohort exchanged with others is known: then s and z differ by that.
    """
    execution, honest = view.execution, view.honest
    cohort = execution.cohort if execution.settlement_matters else None
    if cohort is None:
        return np.zeros(honest.size, dtype=bool)
    honestly = np.zeros(execution.parties, dtype=bool)
    honestly[honest] = True
    for t in range(1, execution.rounds + 1):
        receivers = execution.sends(t).receivers
        crosses = (receivers >= 0) & (cohort[receivers] != cohort[:, np.newaxis])
        hidden = honestly & ~view.known_when_sent[t - 1]
        if crosses[hidden].any():
            return np.asarray(cohort[honest])
    return np.zeros(honest.size, dtype=bool)


@compiled
def _changes(receivers: Ids, fractions: Array, hidden: Flags, settled_place: Ids) -> tuple[Ids, Ids, Array]:
    """Return what a unit of each honest party's hidden message changes, by columns (CSC: starts, states, entries).

    That is W - I for the states z, and W^S - I for the states s. A share that came back (receiver is the sender)
    changes nothing, as what goes to nobody (-1).
    """
    size, slots = receivers.shape
    starts = np.zeros(size + 1, dtype=np.int32)
    states, entries = np.empty(2 * size * (slots + 1), dtype=np.int32), np.empty(2 * size * (slots + 1))
    q = 0
    for i in range(size):
        if hidden[i]:
            own, settled = q, -1
            states[own], entries[own] = i, 0.0
            q += 1
            if settled_place[i] >= 0:
                settled = q
                states[settled], entries[settled] = settled_place[i], 0.0
                q += 1
            for slot in range(slots):
                j = receivers[i, slot]
                if j >= 0 and j != i:
                    entries[own] -= fractions[i, slot]
                    states[q], entries[q] = j, fractions[i, slot]
                    q += 1
                    if settled >= 0 and settled_place[j] >= 0:
                        entries[settled] -= fractions[i, slot]
                        states[q], entries[q] = settled_place[j], fractions[i, slot]
                        q += 1
        starts[i + 1] = q
    return starts, states[:q], entries[:q]


@compiled
def _transition(starts: Ids, states: Ids, entries: Array, count: int) -> tuple[Ids, Ids, Array]:
    """Return Phi = I + changes by rows (CSR: starts, sources, entries), for so many states."""
    rows = np.zeros(count + 1, dtype=np.int32)
    rows[1:] = 1
    for i in range(starts.size - 1):
        for q in range(starts[i], starts[i + 1]):
            rows[states[q] + 1] += states[q] != i  # what a state keeps is one entry with the 1 of the identity
    rows = np.cumsum(rows).astype(np.int32)
    filled = rows[:-1] + np.int32(1)
    sources, phi = np.empty(rows[-1], dtype=np.int32), np.empty(rows[-1])
    for state in range(count):
        sources[rows[state]], phi[rows[state]] = state, 1.0
    for i in range(starts.size - 1):
        for q in range(starts[i], starts[i + 1]):
            state = states[q]
            if state == i:
                phi[rows[i]] += entries[q]
            else:
                sources[filled[state]], phi[filled[state]] = i, entries[q]
                filled[state] += 1
    return rows, sources, phi


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
