"""An execution: everything public about a run (the paper's E without the adversary), and its linear algebra.

Messages obey y^(t) = W^O_t y^(t-1) + c^(.)_t (x + eta*) + Z^(.)_t eta (Eqs. for y_i^(t) with Gaussian terms,
erratum E5), where W^O_t are the effective weights under absence (erratum E1) and c^(i), Z^(i) are adapted to
the presence of party i (erratum E2). Nothing private is in here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from inca.injection import Injection
from inca.kernels import Flags, gather, gather_one, redirect, scatter, scatter_one
from inca.presence import Presence
from inca.schedule import Round, Schedule
from inca.schedule.base import check_round
from inca.validation import Array, InputError, party_values, refuse, whole


class Execution:
    """Schedule, injection and presence (default: everyone), for the same parties and rounds.

    `published` marks whose final message reached the others; default: everyone present in round T. A final
    message lost on the way counts as its owner's absence at the end, although its sends in round T happened.

    >>> from inca import RandomReceivers, incremental
    >>> execution = Execution(RandomReceivers(100, rounds=20, seed=1), incremental(20))
    >>> execution.parties, execution.rounds, execution.weight
    (100, 20, 100.0)
    """

    def __init__(
        self,
        schedule: Schedule,
        injection: Injection,
        presence: Presence | None = None,
        published: Flags | None = None,
    ) -> None:
        """Fill in the defaults and refuse parts that do not fit together."""
        self.schedule = schedule
        self.injection = injection
        self.presence = presence or Presence.everyone(schedule.parties, schedule.rounds)
        if injection.rounds != schedule.rounds:
            wanted = f"as many as the schedule has ({schedule.rounds})"
            raise refuse("the number of rounds of the injection", injection.rounds, wanted)
        size, theirs = (schedule.parties, schedule.rounds), (self.presence.parties, self.presence.rounds)
        if theirs != size:
            raise refuse("the (parties, rounds) of the presence", theirs, f"that of the schedule {size}")
        last = self.presence.row(schedule.rounds)
        self.published = last if published is None else np.array(published)
        if self.published.shape != last.shape or self.published.dtype != np.bool_:
            raise InputError(
                f"published is not an array of booleans, but one for each of {size[0]} parties was expected"
            )
        if (stray := self.published & ~last).any():
            raise refuse("published", int(np.flatnonzero(stray)[0]), "only parties that are present in round T")
        self.published.flags.writeable = False

    @property
    def parties(self) -> int:
        """n."""
        return self.schedule.parties

    @property
    def rounds(self) -> int:
        """T."""
        return self.schedule.rounds

    def losing(self, lost: ArrayLike) -> Execution:
        """Return the same execution without the final messages of the parties marked in `lost`."""
        gone = np.asarray(lost, dtype=bool)
        if gone.shape != (self.parties,):
            raise refuse("the shape of lost", gone.shape, f"({self.parties},)")
        return Execution(self.schedule, self.injection, self.presence, self.published & ~gone)

    def sends(self, t: int) -> Round:
        """Return what is really sent in round t = 1..T: W^O_t of Algorithm 2, with erratum E1.

        A share that has an absent party at either end stays with its sender (it appears as the receiver).

        >>> from inca import ExplicitSchedule, Presence, incremental
        >>> presence = Presence.explicit([[1, 1, 1], [1, 0, 1]])
        >>> Execution(ExplicitSchedule([[[1], [2], [0]]]), incremental(1), presence).sends(1).receivers.tolist()
        [[0], [1], [0]]
        """
        step = self._intended(t)
        if self.presence.nobody_absent:
            return step
        receivers = np.empty(step.receivers.shape, np.int32)
        redirect(step.receivers.reshape(-1), self.presence.row(t), receivers.reshape(-1))
        return replace(step, receivers=receivers)

    def intended(self) -> list[Round]:
        """Return what rounds 1..T intend to send: W_1..W_T, whoever is present."""
        return [self._intended(t) for t in range(1, self.rounds + 1)]

    def _intended(self, t: int) -> Round:
        step = self.schedule.round(t)
        if not self.schedule.valid:
            check_round(self.schedule, step, t)
        return step

    def mix(self, t: int, y: ArrayLike) -> Array:
        """Return W^O_t y for round t = 1..T and y of shape (n,) or (n, d), without building the matrix.

        >>> from inca import ExplicitSchedule, incremental
        >>> swap = Execution(ExplicitSchedule([[[1], [0]]]), incremental(1))
        >>> swap.mix(1, [1.0, 0.0])
        array([0.5, 0.5])
        """
        given, step = party_values(y, self.parties), self.sends(t)
        out = _keep(step, given)
        self.deliver(step, given, out, (0, self.parties), (0, given[0].size))
        return out

    def mix_adjoint(self, t: int, v: ArrayLike) -> Array:
        """Return the transpose of W^O_t times v.

        >>> from inca import ExplicitSchedule, incremental
        >>> swap = Execution(ExplicitSchedule([[[1], [0]]]), incremental(1))
        >>> swap.mix_adjoint(1, [1.0, 1.0])
        array([1., 1.])
        """
        given, step = party_values(v, self.parties), self.sends(t)
        out = _keep(step, given)
        if given.ndim == 1 and self._one_receiver:
            gather_one(out, given, step.receivers.reshape(-1), step.share)
        else:
            gather(out, given, step.receivers.reshape(-1), step.share, _flat(step.weights))
        return out

    def deliver(self, step: Round, y: Array, out: Array, senders: tuple[int, int], columns: tuple[int, int]) -> None:
        """Add to `out` what a range of senders sends of its messages y, in a range of columns if they are vectors."""
        receivers = step.receivers.reshape(-1)
        if y.size == self.parties:
            y, out = y.reshape(-1), out.reshape(-1)
        if y.ndim == 1 and self._one_receiver:
            scatter_one(out, y, receivers, step.share, *senders)
        else:
            scatter(out, y, receivers, step.share, _flat(step.weights), *senders, *columns)

    @property
    def _one_receiver(self) -> bool:
        return self.schedule.slots == 1 and self.schedule.even_share is not None

    def weights(self, t: int) -> sp.csc_array:
        """Return the effective weight matrix W^O_t of Algorithm 2 (erratum E1); for inspection and small n."""
        step = self.sends(t)
        sender, slot = np.nonzero(step.receivers >= 0)
        everyone = np.arange(self.parties)
        entries = np.concatenate([step.fractions[sender, slot], step.kept])
        places = np.concatenate([step.receivers[sender, slot], everyone]), np.concatenate([sender, everyone])
        return sp.coo_array((entries, places), shape=(self.parties, self.parties)).tocsc()

    def coefficients(self, party: int) -> tuple[Array, Array]:
        """Return (c^(i), Z^(i)): what party i injects in rounds 0..T, adapted to its presence (erratum E2)."""
        i = whole("party", party, 0, self.parties - 1)
        return self.injection.adapted([self.presence.row(t)[i] for t in range(self.rounds + 1)])

    @cached_property
    def total_weights(self) -> Array:
        """w_i = sum_t c^(i)_t: which fraction of its value each party injects (Eq. for w_i), n numbers."""
        attended = self.presence.rounds_attended()
        portions = np.concatenate(([0.0], np.cumsum(self.injection.value)))
        last = self.injection.value[attended] * self.presence.row(self.rounds)
        # A full attendance injects exactly everything, however the shares were rounded.
        return np.where(attended == self.rounds, 1.0 - self.injection.value[-1] + last, portions[attended] + last)

    def weight_history(self) -> Iterator[Array]:
        """Yield the weight carried by every party's message in rounds 0..T: what travels beside the values."""
        counter = np.ones(self.parties, dtype=np.int32)
        y = np.full(self.parties, self.injection.value[0])
        yield y
        for t in range(1, self.rounds + 1):
            here = self.presence.row(t)
            y = self.mix(t, y) + np.where(here, self.injection.value[counter], 0.0)
            counter += here
            yield y

    @cached_property
    def message_weights(self) -> Array:
        """The weight carried by every party's last message, n numbers."""
        return deque(self.weight_history(), maxlen=1).pop()

    @cached_property
    def weight(self) -> float:
        """The total weight of the published messages: the divisor of the estimate."""
        if self.published.all():
            return float(self.total_weights.sum())  # mixing conserves it
        return float(self.message_weights[self.published].sum())


def _keep(step: Round, y: Array) -> Array:
    """Return what the parties keep of their messages y, (n,) or (n, d), for themselves."""
    return np.asarray((step.kept if y.ndim == 1 else step.kept[:, np.newaxis]) * y)


def _flat(weights: Array | None) -> Array | None:
    return None if weights is None else weights.reshape(-1)
