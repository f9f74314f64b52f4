"""Sigma of the incremental family as a linear operator: Sigma v without writing Sigma, B or A down.

With the states z and s of `_recursion`, every row of the system is linear in independent noise: in u, in the masks of
all messages and in the top-up noise of settled ones. Call the rows L g with var(g) = D; then Sigma = L D L^T. L^T goes
from the last round back to the first, L from the first to the last, and a round of either is a sparse step,

    back:   h = C_t^T a for the masks of the messages sent in round t,  u gets the shares of a,  z's part of a += h,
    forth:  states += C_t (z + masks) + shares of u,

C_t being what messages change. So Sigma v takes some 20 n_H T operations and as many numbers as there are masks. No
message of an honest party is taken as known here: rows are those of `View.rows`, in their order, less what colluders'
messages have put into them, which the adversary knows; so that the losses are those of Theorem 1.

Some sums of final messages, less the known masks in them, are free of masks (`Recursion.sums`): they are sums of w u
and top-up noise, of variance q. `given_sums` takes what they tell off exactly: D is the covariance given these sums,

    I - w w^T / q,

and columns of B are what is left of them, so that what is tiny beside the masks does not drown in their rounding.
Everything is in units of sigma_independent. Vectors are columns, WIDTH of them at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Ids, U, compiled
from inca._base.types import Array
from inca.privacy._recursion import Recursion
from inca.privacy.view import View

WIDTH = 8  # vectors that are worked on at once: a line of the cache; known to the compiler, so that loops unroll

NEITHER, HIDDEN, KNOWN = 0, 1, 2
_EPS = float(np.finfo(np.float64).eps)


class Operator(NamedTuple):
    """scale Sigma scale, as its kernels need it; what belongs to rounds is stacked, one round after the other."""

    owner: Ids
    """The honest party to whom each state belongs; state number i < n_H is z of party i."""
    starts: NDArray[np.int64]
    """Where in `states` and `changes` the changes by each party's message begin, T x (n_H + 1)."""
    states: Ids
    changes: Array
    sent: Ids
    """In which round the message that each party sends was computed, T x n_H."""
    masks: Array
    """The variance of the mask of the message that each party computed in rounds 0..T-1, T x n_H."""
    share: Array
    """What states are given of their owners' u in rounds 0..T, (T+1) x n_H."""
    rows: NDArray[np.int64]
    """Where the rows of rounds 0..T begin, and where the last of them end."""
    places: Ids
    """Which state each row is of."""
    topup: Array
    """The variance of what final messages have in addition, times scale^2; 0 for all other rows."""
    scale: Array
    group: Ids
    """Of whose sum of final messages each party's is a part; -1 for none."""
    weights: Array
    """What each party's final message holds of its u."""
    total: Array
    """The variance of each of the sums."""
    kinds: NDArray[np.int8]
    """Whether the message that each party computed in rounds 0..T-1 is KNOWN, hidden but sent, or NEITHER."""
    settling: Array
    """What it costs in all to move each party's final message by 1 by moving its u, while all other messages stay."""
    additions: int
    """The most that are made for a state."""

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.places.size


class Workspace(NamedTuple):
    """What the kernels keep meanwhile; made once for many products, as it is large."""

    states: Array
    values: Array
    masks: Array
    sums: Array
    mass: Array


def covariance_operator(view: View, ratio: float, topup: float, *, given_sums: bool = False) -> Operator:
    """Return Sigma of a view, or what is left of it given the sums without masks; each row has a variance of about 1.

    The scale takes all that meets in a message for independent. It is there for conjugate gradients to need fewer
    steps; no result depends on it. Powers of two round nothing, so that masks that cancel do so to the last bit.
    """
    recursion = Recursion(view, ratio, topup, known_drop_out=False)
    rounds, size = view.execution.rounds, recursion.size
    places, masks, steps, variances = [], [], [], []
    kinds, injected = np.zeros((rounds, size), dtype=np.int8), np.full(size, recursion.first_share)
    moved = np.ones(size)  # what it costs to move u by 1 while all messages stay
    share = [np.full(size, recursion.first_share)]
    state_variances = np.full(recursion.owner.size, recursion.first_share**2)
    for t in range(rounds):
        of_round, noise = recursion.observed(t)
        places.append(of_round)
        variances.append(state_variances[of_round] + noise)
        masks.append(recursion.mask_variances[recursion.attended])
        kinds[t, of_round] = KNOWN
        moved += np.where(view.active[t, view.honest], injected**2 / masks[-1], 0.0)
        step = recursion.advance(t + 1)
        injected = injected + step.share[:size]
        steps.append(step)
        share.append(step.share[:size])
        _advance_variances(state_variances, step.starts, step.states, step.changes, step.masks, recursion.owner)
        state_variances += step.share**2
    final, noise = recursion.final()
    places.append(final)
    variances.append(state_variances[final] + noise)
    variance = np.concatenate(variances)
    scale = np.exp2(-np.round(np.log2(np.where(variance > 0.0, variance, 1.0)) / 2.0))
    topups = np.zeros(scale.size)
    topups[scale.size - final.size :] = noise
    sent = np.ascontiguousarray(view.computed[:-1, view.honest])
    for t, step in enumerate(steps):
        of = np.flatnonzero(np.diff(step.starts))
        kinds[sent[t, of], of] = np.maximum(kinds[sent[t, of], of], HIDDEN)
    group, totals = np.full(size, -1, dtype=np.int32), []
    of_party = np.cumsum(view.known[-1, view.honest]) - 1
    for number, members in enumerate(recursion.sums() if given_sums else []):
        group[members] = number
        totals.append(float((recursion.weights[members] ** 2).sum() + noise[of_party[members]].sum()))
    most = max(int(np.bincount(step.states, minlength=1).max()) for step in steps)
    begin = np.cumsum([0, *(step.states.size for step in steps)])
    return Operator(
        owner=recursion.owner,
        starts=np.array([start + step.starts for start, step in zip(begin, steps, strict=False)], np.int64).reshape(
            -1, size + 1
        ),
        states=np.concatenate([step.states for step in steps]),
        changes=np.concatenate([step.changes for step in steps]),
        sent=sent,
        masks=np.array(masks),
        share=np.array(share),
        rows=np.cumsum([0, *(of_round.size for of_round in places)], dtype=np.int64),
        places=np.concatenate(places).astype(np.int32),
        topup=topups * scale**2,
        scale=scale,
        group=group,
        weights=recursion.weights,
        total=np.array(totals),
        kinds=kinds,
        settling=np.divide(moved, recursion.weights**2, out=np.full(size, np.inf), where=recursion.weights != 0.0),
        additions=(rounds + 1) * (most + 3),
    )


def workspace(operator: Operator) -> Workspace:
    """Return room to apply an operator to WIDTH vectors."""
    states, values, sums = operator.owner.size, operator.masks.shape[1], operator.total.size
    shapes = (states, WIDTH), (values, WIDTH), (*operator.masks.shape, WIDTH), (sums, WIDTH), (states, WIDTH)
    return Workspace(*(np.empty(shape) for shape in shapes))


@compiled
def multiply(operator: Operator, vectors: Array, out: Array, room: Workspace) -> None:
    """Write Sigma times the vectors to `out`, which may be where they are."""
    _go_back(operator, vectors, room)
    _sum_up(operator, vectors, room)
    _take_sums(operator, room)
    _go_forth(operator, vectors, out, room)


@compiled
def columns_of_b(
    operator: Operator, parties: NDArray[np.intp], out: Array, room: Workspace, given_sums: bool = False
) -> None:
    """Write the columns of B of these honest parties, up to WIDTH of them, to `out`, or what is left; 0 to the rest."""
    room.values[:] = 0.0
    room.masks[:] = 0.0
    out[:] = 0.0
    for k in range(parties.size):
        room.values[parties[k], k] = 1.0
    room.sums[:] = 0.0
    if given_sums:
        _sum_up(operator, out, room)
        _take_sums(operator, room)
    _go_forth(operator, out, out, room)


@compiled
def of_sums(operator: Operator, party: int) -> float:
    """Return what the sums alone tell of a party's value: its part of mu^2."""
    g = operator.group[party]
    return operator.weights[party] ** 2 / operator.total[g] if g >= 0 else 0.0


@compiled
def imitate(operator: Operator, parties: NDArray[np.intp], solution: Array, room: Workspace) -> Array:
    """Return, for up to WIDTH parties, upper bounds on mu^2 that need no trust in how `solution` was found.

    Noise that moves no row although x_i moves by 1 has a cost of at least mu_i^2 (Lemma 2), and any hidden messages
    lead to such noise: they tell what masks have to do, and known messages stay. So take the messages that belong to
    Sigma x, with x the solution, and what this leaves of final messages, take off the values u or the top-up noise. The
    cost is worked out beside a bound on its rounding: the sizes of all that was added to a state, times their number.
    """
    _go_back(operator, solution, room)
    _sum_up(operator, solution, room)
    for k in range(parties.size):
        g = operator.group[parties[k]]
        if g >= 0:
            room.sums[g, k] -= operator.weights[parties[k]] / operator.total[g]
    _take_sums(operator, room)
    cost, worst, topup = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros((operator.masks.shape[1], WIDTH))
    _walk(operator, parties, room, cost, worst, first=True)
    _settle(operator, solution, room, topup)
    _walk(operator, parties, room, cost, worst, first=False)
    _add_finals(operator, room, topup, cost, worst)
    for i in range(operator.masks.shape[1]):
        for k in range(WIDTH):
            cost[k] += room.values[i, k] ** 2
    return (np.sqrt(cost) + np.sqrt(worst)) ** 2 * (1.0 + 1e-15)


@compiled
def _walk(
    operator: Operator, parties: NDArray[np.intp], room: Workspace, cost: Array, worst: Array, first: bool
) -> None:
    """Go through the rounds, to find the hidden messages first, and then to add up what masks have to do for them."""
    (rounds, size), state, mass, messages = operator.masks.shape, room.states, room.mass, room.masks
    unit = operator.additions * _EPS
    state[:] = 0.0
    mass[:] = 0.0
    _move_states(operator, 0, parties, room)
    for t in range(rounds):
        for i in range(size):
            variance, kind = operator.masks[t, i], operator.kinds[t, i]
            for k in range(WIDTH):
                if first:
                    message = state[i, k] + variance * messages[t, i, k]
                    messages[t, i, k] = 0.0 if kind == KNOWN else message
                elif kind != NEITHER:
                    cost[k] += (messages[t, i, k] - state[i, k]) ** 2 / variance
                    worst[k] += (unit * (mass[i, k] + abs(messages[t, i, k]))) ** 2 / variance
        _move_states(operator, t + 1, parties, room)
        for i in range(size):
            message = messages[operator.sent[t, i], i]
            for q in range(operator.starts[t, i], operator.starts[t, i + 1]):
                j, weight = operator.states[q], operator.changes[q]
                for k in range(WIDTH):
                    state[j, k] += weight * message[k]
                    mass[j, k] += abs(weight * message[k])


@compiled
def _settle(operator: Operator, solution: Array, room: Workspace, topup: Array) -> None:
    """Write what top-up noise has to do, and let it or u, whichever costs less, undo what is left of final messages."""
    rounds = len(operator.masks)
    for q in range(operator.rows[rounds], operator.rows[rounds + 1]):
        j, scale = operator.places[q], operator.scale[q]
        i = operator.owner[j]
        g, variance = operator.group[i], operator.topup[q] / scale**2
        for k in range(WIDTH):
            if variance * operator.settling[i] >= 1.0:
                topup[i, k] = -room.states[j, k]
            else:
                by_sum = room.sums[g, k] if g >= 0 else 0.0
                topup[i, k] = variance * (scale * solution[q, k] - by_sum)
                room.values[i, k] -= (room.states[j, k] + topup[i, k]) / operator.weights[i]


@compiled
def _add_finals(operator: Operator, room: Workspace, topup: Array, cost: Array, worst: Array) -> None:
    """Add what top-up noise costs, and what is left of final messages by rounding."""
    rounds, unit = len(operator.masks), operator.additions * _EPS
    for q in range(operator.rows[rounds], operator.rows[rounds + 1]):
        j = operator.places[q]
        i = operator.owner[j]
        variance = operator.topup[q] / operator.scale[q] ** 2
        least = 1.0 / variance if variance * operator.settling[i] >= 1.0 else operator.settling[i]
        for k in range(WIDTH):
            left = abs(room.states[j, k] + topup[i, k]) + unit * (room.mass[j, k] + abs(topup[i, k]))
            worst[k] += left**2 * least
            if variance > 0.0:
                cost[k] += topup[i, k] ** 2 / variance


@compiled
def _move_states(operator: Operator, t: int, parties: NDArray[np.intp], room: Workspace) -> None:
    """Add the shares of the values u in round t to the states, each party's own being 1 less; and their sizes."""
    for j in range(operator.owner.size):
        i = operator.owner[j]
        share = operator.share[t, i]
        for k in range(WIDTH):
            own = 1.0 if k < parties.size and parties[k] == i else 0.0
            moved = share * (room.values[i, k] - own)
            room.states[j, k] += moved
            room.mass[j, k] += abs(moved)


@compiled
def _sum_up(operator: Operator, vectors: Array, room: Workspace) -> None:
    """Write what the sums get from what u and the top-up noise got, over their variances."""
    rounds, size = operator.masks.shape
    room.sums[:] = 0.0
    for i in range(size):
        g = operator.group[i]
        if g >= 0:
            for k in range(WIDTH):
                room.sums[g, k] += operator.weights[i] * room.values[i, k]
    for q in range(operator.rows[rounds], operator.rows[rounds + 1]):
        g = operator.group[operator.owner[operator.places[q]]]
        if g >= 0:
            for k in range(WIDTH):
                room.sums[g, k] += operator.topup[q] / operator.scale[q] * vectors[q, k]
    for g in range(operator.total.size):
        for k in range(WIDTH):
            room.sums[g, k] /= operator.total[g]


@compiled
def _take_sums(operator: Operator, room: Workspace) -> None:
    """Take what the sums tell off what u got."""
    for i in range(operator.group.size):
        g = operator.group[i]
        if g >= 0:
            for k in range(WIDTH):
                room.values[i, k] -= operator.weights[i] * room.sums[g, k]


@compiled
def _go_back(operator: Operator, vectors: Array, room: Workspace) -> None:
    """Apply L^T: write what u and the masks get to `room`."""
    (rounds, size), state, values, masks = operator.masks.shape, room.states, room.values, room.masks
    state[:] = 0.0
    values[:] = 0.0
    masks[:] = 0.0
    _collect(operator, rounds, vectors, state)
    for t in range(rounds - 1, -1, -1):
        for i in range(U(size)):
            mask = masks[operator.sent[t, i], i]
            for q in range(U(operator.starts[t, i]), U(operator.starts[t, i + U(1)])):
                j, weight = U(operator.states[q]), operator.changes[q]
                for k in range(WIDTH):
                    mask[k] += weight * state[j, k]
        _add_to_values(operator, t + 1, state, values)
        for i in range(U(size)):
            if operator.starts[t, i + U(1)] > operator.starts[t, i]:
                mask = masks[operator.sent[t, i], i]
                for k in range(WIDTH):
                    state[i, k] += mask[k]
        _collect(operator, t, vectors, state)
        _collect(operator, t, vectors, masks[t])
    _add_to_values(operator, 0, state, values)


@compiled
def _go_forth(operator: Operator, vectors: Array, out: Array, room: Workspace) -> None:
    """Apply L D to what u and the masks got; what masks got is replaced by the messages."""
    (rounds, size), state, values, messages = operator.masks.shape, room.states, room.values, room.masks
    state[:] = 0.0
    _add_to_states(operator, 0, values, state)
    for t in range(rounds):
        for i in range(U(size)):
            variance = operator.masks[t, i]
            for k in range(WIDTH):
                messages[t, i, k] = state[i, k] + variance * messages[t, i, k]
        _write_rows(operator, t, messages[t], vectors, out)
        _add_to_states(operator, t + 1, values, state)
        for i in range(U(size)):
            message = messages[operator.sent[t, i], i]
            for q in range(U(operator.starts[t, i]), U(operator.starts[t, i + U(1)])):
                j, weight = U(operator.states[q]), operator.changes[q]
                for k in range(WIDTH):
                    state[j, k] += weight * message[k]
    _write_rows(operator, rounds, state, vectors, out)
    for q in range(operator.rows[rounds], operator.rows[rounds + 1]):
        g = operator.group[operator.owner[operator.places[q]]]
        if g >= 0:
            for k in range(WIDTH):
                out[q, k] -= operator.topup[q] / operator.scale[q] * room.sums[g, k]


@compiled
def _collect(operator: Operator, t: int, vectors: Array, to: Array) -> None:
    """Add what the vectors have for the rows of round t to the states or messages that these are of."""
    for q in range(U(operator.rows[t]), U(operator.rows[t + 1])):
        j, scale = U(operator.places[q]), operator.scale[q]
        for k in range(WIDTH):
            to[j, k] += scale * vectors[q, k]


@compiled
def _write_rows(operator: Operator, t: int, source: Array, vectors: Array, out: Array) -> None:
    """Write the rows of round t of these states or messages, and what top-up noise adds to the product."""
    for q in range(U(operator.rows[t]), U(operator.rows[t + 1])):
        j, scale, topup = U(operator.places[q]), operator.scale[q], operator.topup[q]
        for k in range(WIDTH):
            out[q, k] = scale * source[j, k] + topup * vectors[q, k]


@compiled
def _add_to_values(operator: Operator, t: int, state: Array, values: Array) -> None:
    """Add the shares of round t to what the values u get."""
    for j in range(U(operator.owner.size)):
        i = U(operator.owner[j])
        share = operator.share[t, i]
        for k in range(WIDTH):
            values[i, k] += share * state[j, k]


@compiled
def _add_to_states(operator: Operator, t: int, values: Array, state: Array) -> None:
    """Add the shares of the values u to the states in round t."""
    for j in range(U(operator.owner.size)):
        i = U(operator.owner[j])
        share = operator.share[t, i]
        for k in range(WIDTH):
            state[j, k] += share * values[i, k]


@compiled
def _advance_variances(variances: Array, starts: Ids, states: Ids, changes: Array, masks: Array, owner: Ids) -> None:
    """Replace the variances of all states by those after a round, as if what meets in them were independent."""
    size = starts.size - 1
    sent = variances[:size] + masks
    before = variances.copy()
    for i in range(size):
        for q in range(starts[i], starts[i + 1]):
            j, change = states[q], changes[q]
            variances[j] += change**2 * sent[i]
            if owner[j] == i:  # z_i itself, or s_i, which has at most all of z_i in it
                variances[j] += 2.0 * change * min(before[i], before[j])
