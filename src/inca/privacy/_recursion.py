"""What a round does to the noisy values and messages of the incremental family, as a small state (fact F9).

Take off each message its owner's live mask: y_i^(t) = z_i^(t) + m_i^(t). Then z is a state with little memory,

    z^(t) = W^O_t z^(t-1) + (W^O_t - I) m^(t-1) + c^(.)_t u,        u = x + eta*,

since a round takes the old mask off and puts a fresh, independent one on. An adversary who knows message y_i^(t-1)
knows what it contributes to its receivers, and m_i = y_i - z_i; so for a known message the column W e_i of this
recursion becomes e_i, and its mask adds no noise. Colluders' messages are all known: their columns and rows vanish.

What remains is a filtering problem over the honest parties: carry the covariance of (u, z), given all that was
observed, from round to round; observe y_i = z_i + m_i with the mask's variance as noise; and in the end the final
messages z_i^(T), whose masks are closed. What the observations take from the variance of u_i is the loss:

    mu_i^2 = h_i^T Sigma^-1 h_i = (var(u_i) - var(u_i | y)) / var(u_i)^2.

Final messages that were settled are further states s of honest parties of the cohort. They start as z does, and take
part in transfers inside the cohort only,

    s^(t) = s^(t-1) + (W^S_t - I) (z + m)^(t-1) + c^(.)_t u,

where again known messages drop out. In the end s_i plus top-up noise is observed. Of a party whose exchanges with
others are all known, s is z, and needs no state of its own.

Here is what both filters, on the CPU and on another device, and the operator of `_covariance_operator` have in common:
which states there are, which of them are observed with how much noise, and the sparse step of each round. Everything
is in units of sigma_independent: var(u_i) = 1, and `ratio` is sigma_cancelling / sigma_independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags, Ids, compiled
from inca._base.types import Array
from inca.privacy.view import View

_EPS = float(np.finfo(np.float64).eps)
PROBES = 8
_SEED = 29  # of the probes: the same view has the same losses
_MARGIN = 48.0  # times the root of the size: of 90,000 losses in exact fractions none was off by a fifth of it all


class Probes:
    """What rounding does to a filter's losses, tried with random perturbations that are filtered as the values are.

    A covariance P that is off by dP gives a loss that is off by a^T dP a, with a the way from values and states to the
    estimate of a value. Rounding moves entries of P by its unit, in proportion to the standard deviations D of both. So
    before each observation every probe moves all values and states by D times a random number. What has then
    become of a value's estimate has the variance of |D a|^2, summed up over all rounds.
    """

    def __init__(self, size: int) -> None:
        self._rng = np.random.default_rng(_SEED)
        self.injected = np.zeros((PROBES, size))
        """How far the values were moved, in all."""

    def drawn(self, of_values: Array, of_states: Array) -> tuple[Array, Array]:
        """Return by how much the probes move values and states of these variances."""
        moved = []
        for variances in (of_values, of_states):
            deviations = np.sqrt(np.maximum(variances, 0.0))
            moved.append(deviations * self._rng.standard_normal((PROBES, deviations.size)))
        self.injected += moved[0]
        return moved[0], moved[1]

    def error(self, told: Array, losses: Array) -> Array:
        """Return bounds on the relative errors of losses, `told` being what became of their estimates."""
        squared = np.einsum("ij,ij->i", told, told) / PROBES
        ratio = np.divide(squared, losses, out=np.zeros_like(losses), where=losses > 0.0)
        return np.asarray(_MARGIN * np.sqrt(losses.size) * _EPS * (1.0 + np.sqrt(ratio) + ratio))


@dataclass(frozen=True, eq=False)
class Step:
    """The way from one round to the next: states' = Phi states + changes (masks of what is sent) + share u_owner."""

    starts: Ids
    states: Ids
    changes: Array
    """What a unit of each message that takes part changes, by columns (CSC with `starts` and `states`)."""
    masks: Array
    """The variance of the mask of each honest party's message."""
    share: Array
    """What each state is given of its owner's noisy value."""

    @cached_property
    def phi(self) -> tuple[Ids, Ids, Array]:
        """Phi by rows (CSR: starts, sources, entries); the first entry of a row is that of its diagonal."""
        return _transition(self.starts, self.states, self.changes, self.share.size)


class Recursion:
    """The states z of all honest parties, then s of those who settle apart, and what becomes of them round by round.

    State number k belongs to the honest party number `owner[k]`. Rounds are to be asked for in order. Known messages
    drop out, as a filter needs it, or take part as all others do, as Sigma itself needs it.
    """

    def __init__(self, view: View, ratio: float, topup: float, *, known_drop_out: bool = True) -> None:
        self.view, self.size = view, view.honest.size
        self.var_topup = topup**2
        injection = view.execution.injection
        if injection.mask_scales is None:
            raise TypeError("the state-space method needs an injection of the incremental family")
        self.mask_variances = (ratio * injection.mask_scales) ** 2
        self.first_share = float(injection.value[0])
        known = view.known_when_sent[:, view.honest]
        self.taking_part = ~known if known_drop_out else np.ones_like(known)
        values = np.arange(self.size, dtype=np.int32)
        settling = values[_settles_apart(view, self.taking_part)]
        self.owner = np.concatenate([values, settling])
        self.settled_place = np.full(self.size, -1, dtype=np.int32)  # of each honest party's s among the states
        self.settled_place[settling] = self.size + np.arange(settling.size, dtype=np.int32)
        self.place = np.full(view.execution.parties + 1, -1, dtype=np.int32)  # the last entry: receiver -1, nobody
        self.place[view.honest] = values
        cohort = view.execution.cohort
        self.inside = np.ones(self.size, dtype=bool) if cohort is None else np.asarray(cohort[view.honest])
        self.attended = np.zeros(self.size, dtype=np.int64)  # rounds before the current one with the party present
        self.weights = np.full(self.size, self.first_share)
        """What each party has injected of its value up to the current round."""
        self._parents, self._grounded = values.copy(), ~view.known[-1, view.honest]

    def observed(self, t: int) -> tuple[NDArray[np.intp], Array]:
        """Return which states are observed in round t < T, and with which noise: y_i = z_i + m_i is, if known."""
        places = np.flatnonzero(self.view.known[t, self.view.honest])
        return places, self.mask_variances[self.attended[places]]

    def final(self) -> tuple[NDArray[np.intp], Array]:
        """Return the same for the final messages: their masks are closed, settled ones have top-up noise."""
        view, seen = self.view, np.flatnonzero(self.view.known[-1, self.view.honest])
        noise = np.zeros(seen.size)
        if view.execution.cohort is not None:
            noise[view.execution.cohort[view.honest[seen]]] = self.var_topup
        return np.where(self.settled_place[seen] >= 0, self.settled_place[seen], seen), noise

    def advance(self, t: int) -> Step:
        """Go on to round t: z += (W - I) (z + m) + c u and s += (W^S - I) (z + m) + c u, with those that take part."""
        view, honest = self.view, self.view.honest
        here = view.active[t, honest]
        sending = here & self.taking_part[t - 1]
        self.attended += view.active[t - 1, honest]
        share = np.where(here, view.execution.injection.value[self.attended], 0.0)
        step = view.execution.sends(t)
        receivers, fractions = self.place[step.receivers[honest]], step.fractions[honest]
        starts, states, changes = _changes(receivers, fractions, sending, self.settled_place, self.inside)
        self.weights += share
        hidden = here & ~view.known_when_sent[t - 1, honest]
        _join(receivers, hidden, self.settled_place >= 0, self.inside, self._parents, self._grounded)
        masks = self.mask_variances[self.attended - 1]
        return Step(starts, states, changes, masks, share[self.owner])

    def sums(self) -> list[NDArray[np.intp]]:
        """Return, after the last round, the groups of honest parties whose final messages add up free of masks.

        Parties that exchange hidden messages are of one group; what a group's members know of each other's masks
        cancels, and the sum of their final states is that of their weighted values. A group has no such sum if one of
        its final messages is not observed, or if a hidden message takes noise out of it.
        """
        roots = np.array([_root(self._parents, i) for i in range(self.size)], dtype=np.intp)
        without = np.zeros(self.size, dtype=bool)
        without[roots[self._grounded]] = True
        members = np.flatnonzero(~without[roots])
        members = members[np.argsort(roots[members], kind="stable")]
        edges = np.flatnonzero(np.diff(roots[members])) + 1
        return np.split(members, edges) if members.size else []


@compiled
def _root(parents: Ids, i: int) -> int:
    """Return the party that stands for i's group."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@compiled
def _join(receivers: Ids, hidden: Flags, apart: Flags, inside: Flags, parents: Ids, grounded: Flags) -> None:
    """Put both ends of every hidden transfer into one group, or mark a group that it takes noise out of.

    A final message lacks a transfer across the border of the cohort if it has a state of its own.
    """
    size, slots = receivers.shape
    for i in range(size):
        for slot in range(slots):
            j = receivers[i, slot]
            if hidden[i] and j >= 0 and j != i:
                within = inside[i] and inside[j]
                debited, credited = within or not apart[i], within or not apart[j]
                if debited and credited:
                    parents[_root(parents, i)] = _root(parents, j)
                elif debited:
                    grounded[i] = True
                elif credited:
                    grounded[j] = True


def _settles_apart(view: View, taking_part: Flags) -> Flags:
    """Return which honest parties need a state of their own for their settled messages.

    Those of the cohort that have exchanged a message with others. All other s and z differ by what drops out.
    """
    execution, honest = view.execution, view.honest
    apart = np.zeros(execution.parties, dtype=bool)
    cohort = execution.cohort if execution.settlement_matters else None
    if cohort is None:
        return apart[honest]
    sending = np.zeros(execution.parties, dtype=bool)
    for t in range(1, execution.rounds + 1):
        receivers = execution.sends(t).receivers
        sending[honest] = taking_part[t - 1]
        crosses = (receivers >= 0) & (cohort[receivers] != cohort[:, np.newaxis]) & sending[:, np.newaxis]
        apart |= crosses.any(axis=1)
        apart[receivers[crosses]] = True
    return np.asarray((apart & cohort)[honest])


@compiled
def _changes(
    receivers: Ids, fractions: Array, sending: Flags, settled_place: Ids, inside: Flags
) -> tuple[Ids, Ids, Array]:
    """Return what a unit of the message of each who is sending changes, by columns (CSC: starts, states, entries).

    That is W - I for the states z, and W^S - I for the states s, if both ends are inside the cohort. A share that came
    back (receiver is the sender) changes nothing, as what goes to nobody (-1).
    """
    size, slots = receivers.shape
    starts = np.zeros(size + 1, dtype=np.int32)
    states, entries = np.empty(2 * size * (slots + 1), dtype=np.int32), np.empty(2 * size * (slots + 1))
    q = 0
    for i in range(size):
        if sending[i]:
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
                    if inside[i] and inside[j]:
                        if settled >= 0:
                            entries[settled] -= fractions[i, slot]
                        if settled_place[j] >= 0:
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
