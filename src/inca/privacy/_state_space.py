"""All losses of the incremental family without writing B and A down: a filter over a small state (fact F9).

Carry the covariance of (u, z, s) of `_recursion`, given all that was observed, from round to round. What observations
take from the variance of u_i is the loss:

    mu_i^2 = h_i^T Sigma^-1 h_i = (var(u_i) - var(u_i | y)) / var(u_i)^2.

Everything is in units of sigma_independent: var(u_i) = 1, and `ratio` is sigma_cancelling / sigma_independent.
A round costs sparse work on n_H^2 entries and a dense update of 4 n_H^2 for each message observed in it; in the first
rounds, when a message tells of few parties, an update of the entries of those alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from inca._base.kernels import Ids, U, compiled
from inca._base.threads import available_cores, blas_threads_for, one_blas_thread
from inca._base.types import Array, Progress
from inca.errors import SingularView
from inca.privacy._blas import divide_by_root, subtract_product
from inca.privacy._recursion import PROBES, Probes, Recursion
from inca.privacy.view import View

_TILE_ROWS, _TILE_COLUMNS = 32, 128  # of a block that is mirrored: as much as stays in the cache
_ROWS_COPIED = 16  # at a time
_RANGES_PER_CORE = 16  # so that little is worked out twice next to the diagonal
_MIN_ROWS_TO_CUT, _MIN_RANGE_ROWS = 400, 64  # or columns: from which on to use threads, and the least piece
_FEW = 1 / 16  # of all values and states: if a message tells of more, BLAS is quicker on several messages at once


def information(
    view: View, ratio: float, progress: Progress | None = None, *, topup: float = 0.0, matrix: bool = False
) -> tuple[Array, Array | float]:
    """Return mu_i^2 of every honest party in units of sigma_independent, and bounds on their relative errors.

    Needs an injection of the incremental family and a ratio above 0; `topup` is sigma_topup / sigma_independent. With
    `matrix` it returns all of B^T Sigma^-1 B, of which the losses are the diagonal, and a bound on the norm of its
    error. `progress` is told how many of T+1 rounds are done.
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
    """The covariance of (u, z, s) given what was observed so far, in three blocks that are stored by columns.

        values  cov(u, u),        cross  cov(u, states),        states  cov(states, states)

    Of the two symmetric ones a half is worked out and mirrored, for whole columns to be read later. Some probes for
    rounding stand behind the values u, and are worked on as these are (`Probes`).
    """

    def __init__(self, recursion: Recursion, pool: ThreadPoolExecutor) -> None:
        self.recursion, self.size, self.pool = recursion, recursion.size, pool
        owner, first, numbers = recursion.owner, recursion.first_share, np.arange(recursion.owner.size)
        self.values = np.asfortranarray(np.eye(self.size + PROBES))
        self.cross, self.next_cross = (np.zeros((self.size + PROBES, owner.size), order="F") for _ in range(2))
        self.states, self.next_states = (np.zeros((owner.size, owner.size), order="F") for _ in range(2))
        self.cross[owner, numbers] = first
        self.states[numbers, numbers] = first**2
        settling = np.flatnonzero(recursion.settled_place >= 0)  # their two states begin as the same
        settled = recursion.settled_place[settling]
        self.states[settling, settled] = self.states[settled, settling] = first**2
        self.gained = np.zeros(self.size + PROBES)
        self.probes = Probes(self.size)
        self.sparse = True  # messages may still tell of few values and states

    def observe(self, t: int) -> None:
        """Condition on the known messages computed in round t < T: y_i = z_i + m_i."""
        places, noise = self.recursion.observed(t)
        self._probe()
        if self.sparse:
            done = self._observe_one_by_one(places, noise)
            self.sparse = done == places.size
            places, noise = places[done:], noise[done:]
        if not places.size:
            return
        # Columns of arrays stored by columns: one contiguous copy each.
        of_values, of_states = self.cross.T[places].T, self.states.T[places].T
        covariance = of_states[places]
        covariance[np.diag_indices_from(covariance)] += noise
        root = self._root(covariance)
        for gain in (of_values, of_states):
            self._in_ranges(len(gain), divide_by_root, gain, root)
        self.gained += np.einsum("ij,ij->i", of_values, of_values)
        self._in_ranges(len(of_values), _condition, self.values, of_values)
        self._in_ranges(len(of_states), subtract_product, self.cross, of_values, of_states, None)
        self._in_ranges(len(of_states), _condition, self.states, of_states)

    def _probe(self) -> None:
        """Move the probes as rounding may move the values and states."""
        size = self.size
        of_values, of_states = self.probes.drawn(self.values.diagonal()[:size], self.states.diagonal())
        self.values[:size, size:] += of_values.T
        self.values[size:, :size] += of_values
        self.cross[size:] += of_states

    def _observe_one_by_one(self, places: NDArray[np.intp], noise: Array) -> int:
        """Condition on messages one after the other, up to the first that tells of many; return how many were done."""
        blocks = self.values, self.cross, self.states
        done, pivots = _condition_one_by_one(*blocks, self.gained, places, noise, int(_FEW * sum(self.cross.shape)))
        if not (pivots[:done] > 0.0).all():
            raise SingularView
        return int(done)

    def advance(self, t: int) -> None:
        """Go on to round t."""
        step, owner = self.recursion.advance(t), self.recursion.owner
        how = (*step.phi, step.share, owner)
        self._in_ranges(owner.size, _advance_cross, self.values, self.cross, self.next_cross, *how)
        blocks = self.values, self.next_cross, self.states, self.next_states
        self._in_ranges(owner.size, _advance_states, *blocks, *how, self.size, *_diagonal_and_rest(*step.phi))
        self._in_ranges(owner.size, _mirror, self.next_states)
        _add_masks(self.next_states, step.starts, step.states, step.changes, step.masks)
        self.cross, self.next_cross = self.next_cross, self.cross
        self.states, self.next_states = self.next_states, self.states

    def information(self, matrix: bool) -> tuple[Array, Array | float]:
        """Condition on the final messages and return what all observations took from the variance of u."""
        del self.next_cross, self.next_states  # to make room
        self._probe()
        places, noise = self.recursion.final()
        if places.size == len(self.states):  # all of them, in order: no copies
            covariance, last = self.states, self.cross
        else:
            covariance, last = np.asfortranarray(self.states.T[places].T[places]), self.cross.T[places].T
        told = self.probes.injected.T.copy()
        if places.size:
            covariance[np.diag_indices_from(covariance)] += noise
            self._observe_sums(covariance, last, noise)
            last = dtrsm(1.0, self._root(covariance), last, side=1, lower=1, trans_a=1, overwrite_b=1)
        size = self.size
        told += last[:size] @ last[size:].T - self.values[:size, size:]
        losses = self.gained[:size] + np.einsum("ij,ij->i", last[:size], last[:size])
        error = self.probes.error(told, losses)
        if not matrix:
            return losses, error
        upper = np.eye(size) - self.values[:size, :size]
        full = np.triu(dsyrk(1.0, last[:size], beta=1.0, c=np.asfortranarray(upper), lower=0))
        return full + np.triu(full, 1).T, float(error @ losses)

    def _observe_sums(self, covariance: Array, last: Array, noise: Array) -> None:
        """Condition on the sums of final messages that are free of masks, and leave out one message of each.

        Beside the covariance of final messages, that of their sums is tiny, and would drown in its rounding. From the
        values, whose weighted sums they are, it is worked out without.
        """
        weights, seen = self.recursion.weights, self.recursion.view.known[-1, self.recursion.view.honest]
        of_party = np.cumsum(seen) - 1
        for group in self.recursion.sums():
            rows, weight = of_party[group], weights[group]
            of_values, of_rows = self.values[:, group] @ weight, weight @ last[group]
            of_rows[rows] += noise[rows]
            variance = float(weight @ of_values[group] + noise[rows].sum())
            if not variance > 0.0:
                raise SingularView
            gain, of_rows = of_values / np.sqrt(variance), of_rows / np.sqrt(variance)
            self.gained += gain**2
            told = np.flatnonzero(gain), np.flatnonzero(of_rows)
            _condition_on_sum(self.values, covariance, last, gain, of_rows, *told, int(rows[-1]))

    def _root(self, covariance: Array) -> Array:
        """Return the lower Cholesky factor."""
        root, failed = dpotrf(covariance, lower=1, overwrite_a=1)
        if failed:
            raise SingularView
        return np.asarray(root)

    def _in_ranges(self, count: int, job: Callable[..., None], *arguments: object) -> None:
        """Do a job on ranges of rows or columns 0..count-1 in all threads, or at once where that would not pay."""
        if count < _MIN_ROWS_TO_CUT:
            job(*arguments, 0, count)
            return
        edges = [*range(0, count, max(_MIN_RANGE_ROWS, -(-count // (_RANGES_PER_CORE * available_cores())))), count]
        # Later columns have more above the diagonal, hence more work: they go first.
        for done in [self.pool.submit(job, *arguments, lo, hi) for lo, hi in reversed(list(pairwise(edges)))]:
            done.result()


def _condition(p: Array, gain: Array, lo: int, hi: int) -> None:
    """Do p -= gain gain^T for columns lo..hi-1 above the diagonal, and for the same entries below it."""
    subtract_product(p, gain, gain, hi, lo, hi)
    _mirror(p, lo, hi)


@compiled
def _collect(column: Array, told: NDArray[np.int64], entries: Array, used: int) -> int:
    """Append the entries that are not 0, and where they are; return how many there are, or one more than fit."""
    for a in range(column.size):
        if column[a] != 0.0:
            if used >= told.size:
                return told.size + 1
            told[used], entries[used] = a, column[a]
            used += 1
    return used


@compiled
def _condition_one_by_one(
    values: Array, cross: Array, states: Array, gained: Array, places: NDArray[np.intp], noise: Array, few: int
) -> tuple[int, Array]:
    """Observe states with noise, one after the other, until one has covariances with more than a few values and states.

    Returns how many were observed, and the variance of each given those before it: it stops after one that is not
    above 0 as well.
    """
    told, gain, variances = np.empty(few, dtype=np.int64), np.empty(few), np.empty(places.size)
    for q in range(places.size):
        place = places[q]
        of_values = _collect(cross[:, place], told, gain, 0)
        of_all = _collect(states[:, place], told, gain, of_values)
        if of_all > few:
            return q, variances
        variances[q] = states[place, place] + noise[q]
        if not variances[q] > 0.0:
            return q + 1, variances
        gain[:of_all] /= np.sqrt(variances[q])
        for b in range(of_values):
            gained[told[b]] += gain[b] ** 2
            for a in range(of_values):
                values[told[a], told[b]] -= gain[a] * gain[b]
        for b in range(of_values, of_all):
            for a in range(of_values):
                cross[told[a], told[b]] -= gain[a] * gain[b]
            for a in range(of_values, of_all):
                states[told[a], told[b]] -= gain[a] * gain[b]
    return places.size, variances


@compiled
def _condition_on_sum(
    values: Array,
    covariance: Array,
    last: Array,
    gain: Array,
    of_rows: Array,
    told: NDArray[np.intp],
    rows: NDArray[np.intp],
    gone: int,
) -> None:
    """Take off what a sum tells of values and final messages, and put a number of its own in place of one of these.

    Given the sum and the other messages of its group, that message is known.
    """
    for b in told:
        for a in told:
            values[a, b] -= gain[a] * gain[b]
    for b in rows:
        for a in rows:
            covariance[a, b] -= of_rows[a] * of_rows[b]
        for a in told:
            last[a, b] -= gain[a] * of_rows[b]
    covariance[gone] = 0.0
    covariance[:, gone] = 0.0
    covariance[gone, gone] = 1.0
    last[:, gone] = 0.0


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
    for left in range(lo, hi, _TILE_COLUMNS):
        right = min(left + _TILE_COLUMNS, hi)
        for top in range(0, right, _TILE_ROWS):
            for i in range(U(top), U(min(top + _TILE_ROWS, right))):
                column = p[:, i]
                for j in range(max(U(left), i + U(1)), U(right)):
                    column[j] = p[i, j]


@compiled
def _advance_cross(
    values: Array,
    cross: Array,
    out: Array,
    starts: Ids,
    sources: Ids,
    phi: Array,
    share: Array,
    owner: Ids,
    lo: int,
    hi: int,
) -> None:
    """Write columns lo..hi-1 of cov(u, next states): the next state b is sum_j phi_bj state_j + c_b u_owner(b)."""
    for b in range(lo, hi):
        new, old = out[:, b], values[:, owner[b]]
        for e in range(len(values)):
            new[e] = share[b] * old[e]
        for q in range(starts[b], starts[b + 1]):
            old, weight = cross[:, sources[q]], phi[q]
            for e in range(len(values)):
                new[e] += weight * old[e]


def _diagonal_and_rest(starts: Ids, sources: Ids, phi: Array) -> tuple[Array, Ids, Ids, Array]:
    """Return what every state keeps of itself, and the other entries of Phi by row, column and value."""
    others = np.ones(phi.size, dtype=bool)
    others[starts[:-1]] = False  # the first entry of a row is that of its diagonal
    rows = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
    return phi[starts[:-1]], rows[others], sources[others], phi[others]


@compiled
def _advance_states(
    values: Array,
    cross: Array,
    states: Array,
    out: Array,
    starts: Ids,
    sources: Ids,
    phi: Array,
    share: Array,
    owner: Ids,
    size: int,
    kept: Array,
    receiving: Ids,
    sending: Ids,
    moved: Array,
    lo: int,
    hi: int,
) -> None:
    """Write columns lo..hi-1 of the next states' covariance down to the diagonal; `cross` is theirs with u already.

    With X = cov(u, next states) and C = diag(c) that is Phi cov Phi^T + C X + (C X)^T - C cov(u, u) C, the rows and
    columns of u being taken by owner. Some rows of X are copied at a time, since they do not lie together.
    """
    count = share.size
    mixed, rows = np.empty(count), np.empty((_ROWS_COPIED, count))
    for first in range(lo, hi, _ROWS_COPIED):
        last = min(first + _ROWS_COPIED, hi)
        for a in range(last):
            for b in range(first, last):
                rows[b - first, a] = cross[owner[b], a]
        for b in range(first, last):
            mixed[:] = 0.0
            for q in range(starts[b], starts[b + 1]):
                old, weight = states[:, sources[q]], phi[q]
                for e in range(count):
                    mixed[e] += weight * old[e]
            new, value, column, row, own = out[:, b], values[:, owner[b]], cross[:, b], rows[b - first], share[b]
            for a in range(min(b + 1, size)):
                new[a] = kept[a] * mixed[a] + share[a] * (column[a] - own * value[a]) + own * row[a]
            for a in range(size, b + 1):
                new[a] = kept[a] * mixed[a] + share[a] * (column[owner[a]] - own * value[owner[a]]) + own * row[a]
            for q in range(starts[b + 1] - b - 1):  # the entries of rows 0..b
                new[U(receiving[q])] += moved[q] * mixed[U(sending[q])]
