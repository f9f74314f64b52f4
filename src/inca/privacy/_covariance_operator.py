"""Sigma of the incremental family as a linear operator: Sigma v without writing Sigma, B or A down.

With the states z and s of `_recursion`, every row of the system is linear in independent noise: in u, in the masks of
all messages and in the top-up noise of settled ones. Call the rows L g with var(g) = D; then Sigma = L D L^T. L^T goes
from the last round back to the first, L from the first to the last, and a round of either is a sparse step,

    back:   h = C_t^T a for the masks of the messages sent in round t,  u gets the shares of a,  z's part of a += h,
    forth:  states += C_t (z + masks) + shares of u,

C_t being what messages change. So Sigma v takes some 20 n_H T operations and as many numbers as there are masks. No
message of an honest party is taken as known here: rows are those of `View.rows`, in their order, less what colluders'
messages have put into them, which the adversary knows; so that the losses are those of Theorem 1.
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

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.places.size


class Workspace(NamedTuple):
    """What the kernels keep meanwhile; made once for many products, as it is large."""

    states: Array
    values: Array
    masks: Array


def covariance_operator(view: View, ratio: float, topup: float) -> Operator:
    """Return Sigma of a view, each row scaled to a variance of about 1.

    The scale takes all that meets in a message for independent. It is there for conjugate gradients to need fewer
    steps; no result depends on it. Powers of two round nothing, so that masks that cancel do so to the last bit.
    """
    recursion = Recursion(view, ratio, topup, known_drop_out=False)
    rounds, size = view.execution.rounds, recursion.size
    places, masks, steps, variances = [], [], [], []
    share = [np.full(size, recursion.first_share)]
    state_variances = np.full(recursion.owner.size, recursion.first_share**2)
    for t in range(rounds):
        of_round, noise = recursion.observed(t)
        places.append(of_round)
        variances.append(state_variances[of_round] + noise)
        masks.append(recursion.mask_variances[recursion.attended])
        step = recursion.advance(t + 1)
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
    begin = np.cumsum([0, *(step.states.size for step in steps)])
    return Operator(
        owner=recursion.owner,
        starts=np.array([start + step.starts for start, step in zip(begin, steps, strict=False)], np.int64).reshape(
            -1, size + 1
        ),
        states=np.concatenate([step.states for step in steps]),
        changes=np.concatenate([step.changes for step in steps]),
        sent=np.ascontiguousarray(view.computed[:-1, view.honest]),
        masks=np.array(masks),
        share=np.array(share),
        rows=np.cumsum([0, *(of_round.size for of_round in places)], dtype=np.int64),
        places=np.concatenate(places).astype(np.int32),
        topup=topups * scale**2,
        scale=scale,
    )


def workspace(operator: Operator) -> Workspace:
    """Return room to apply an operator to WIDTH vectors."""
    shapes = (operator.owner.size, WIDTH), (operator.masks.shape[1], WIDTH), (*operator.masks.shape, WIDTH)
    return Workspace(*(np.empty(shape) for shape in shapes))


@compiled
def multiply(operator: Operator, vectors: Array, out: Array, room: Workspace) -> None:
    """Write Sigma times the vectors to `out`, which may be where they are."""
    _go_back(operator, vectors, room)
    _go_forth(operator, vectors, out, room)


@compiled
def columns_of_b(operator: Operator, parties: NDArray[np.intp], out: Array, room: Workspace) -> None:
    """Write the columns of B that belong to these honest parties, up to WIDTH of them, to `out`; 0 to the rest."""
    room.values[:] = 0.0
    room.masks[:] = 0.0
    out[:] = 0.0
    for k in range(parties.size):
        room.values[parties[k], k] = 1.0
    _go_forth(operator, out, out, room)


@compiled
def unmasked_sum(operator: Operator, out: Array) -> None:
    """Write weights of rows to `out` that add up the final messages and take off the known masks in their sum.

    Then masks of unknown messages cancel if all final messages are known: the one combination of rows with nearly no
    noise, however much cancelling noise there is.
    """
    rounds, size = operator.masks.shape
    state, known = np.zeros(operator.owner.size), np.zeros((rounds, size))
    for q in range(operator.rows[rounds], operator.rows[rounds + 1]):
        out[q] = 1.0 / operator.scale[q]
        state[operator.places[q]] = 1.0
    for t in range(rounds - 1, -1, -1):
        for i in range(size):
            for q in range(operator.starts[t, i], operator.starts[t, i + 1]):
                known[operator.sent[t, i], i] += operator.changes[q] * state[operator.states[q]]
    for t in range(rounds):
        for q in range(operator.rows[t], operator.rows[t + 1]):
            out[q] = -known[t, operator.places[q]] / operator.scale[q]


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
