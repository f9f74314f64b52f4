"""An execution: everything public about a run (the paper's E without the adversary), and its linear algebra.

Messages obey y^(t) = W^O_t y^(t-1) + c^(.)_t (x + eta*) + Z^(.)_t eta (Eqs. for y_i^(t) with Gaussian terms,
erratum E5), where W^O_t are the effective weights under absence (erratum E1) and c^(i), Z^(i) are adapted to
the presence of party i (erratum E2). Nothing private is in here.

On a network, an offered share may fail to be credited, and come back late or never. W^O_t keeps such a share with its
sender; what that leaves out is corrected in the weights here, and accounted for in docs/accounting.md.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from inca._base.kernels import Flags, gather, gather_one, redirect, scatter, scatter_one
from inca._base.types import Array
from inca._base.validation import InputError, party_values, refuse, whole
from inca.protocol.injection import Injection
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule, Round, Schedule
from inca.protocol.schedules.base import check_round


class Undelivered(NamedTuple):
    """An offer that was not credited: in `round`, `sender` offered a share of its last message to `receiver`.

    `back` is the round in which the share was with its sender again: `round` itself, a later one, or 0 for never.
    """

    round: int
    sender: int
    receiver: int
    back: int

    @property
    def late(self) -> bool:
        """Whether the share was missing at the end of the round, for a while or for good."""
        return self.back != self.round


class Execution:
    """Schedule, injection and presence (default: everyone), for the same parties and rounds.

    `published` marks whose final message reached the others; default: everyone present in round T. A final
    message lost on the way counts as its owner's absence at the end, although its sends in round T happened.

    `undelivered` are offers (round, sender, receiver, back) that were not credited; see `Undelivered`. In the schedule
    their slots are -1. If a share was late or lost, its size must be known, so all shares must be of one size.

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
        undelivered: Iterable[tuple[int, int, int, int]] = (),
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
        self.undelivered = tuple(sorted(self._entry(given) for given in undelivered))
        self._check_undelivered()

    def _entry(self, given: tuple[int, int, int, int]) -> Undelivered:
        """Return an entry of `undelivered`, or refuse it for what it says by itself."""
        name = "an entry of undelivered"
        try:
            t, sender, receiver, back = given
        except (TypeError, ValueError):
            raise refuse(name, given, "(round, sender, receiver, back)") from None
        entry = Undelivered(
            whole("a round in undelivered", t, 1, self.rounds),
            whole("a sender in undelivered", sender, 0, self.parties - 1),
            whole("a receiver in undelivered", receiver, 0, self.parties - 1),
            whole("a round of return in undelivered", back, 0, self.rounds),
        )
        if 0 < entry.back < entry.round:
            raise refuse(name, tuple(entry), "a return in the round of the offer or later, or 0 for never,")
        if entry.sender == entry.receiver:
            raise refuse(name, tuple(entry), "another receiver than the sender itself")
        if not self.presence.row(entry.round)[entry.sender]:
            raise refuse(name, tuple(entry), "a sender that is present in that round")
        return entry

    def _check_undelivered(self) -> None:
        """Refuse entries of `undelivered` that do not fit the schedule."""
        for t, those in groupby(self.undelivered, key=lambda entry: entry.round):
            receivers = self._intended(t).receivers
            for sender, group in groupby(those, key=lambda entry: entry.sender):
                entries, row = list(group), receivers[sender].tolist()
                if len(entries) > (free := row.count(-1)):
                    name = f"the number of undelivered offers of party {sender} in round {t}"
                    raise refuse(name, len(entries), f"at most that of its slots with -1 ({free})")
                offered = [entry.receiver for entry in entries]
                if len({*offered, *row} - {-1}) < len(offered) + len(row) - free:
                    name = f"the receivers of party {sender} in round {t}, undelivered ones included,"
                    raise refuse(name, sorted([*offered, *row])[free:], "every receiver at most once a round")
        if self.late and common_share(self.intended()) is None:
            wanted = "a share back in its own round, as shares of different sizes do not tell what was missing,"
            raise refuse("an entry of undelivered", tuple(self.late[0]), wanted)

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
        return Execution(self.schedule, self.injection, self.presence, self.published & ~gone, self.undelivered)

    @cached_property
    def late(self) -> tuple[Undelivered, ...]:
        """The undelivered offers whose shares came back after their round, or never."""
        return tuple(entry for entry in self.undelivered if entry.late)

    def refuse_late(self) -> None:
        """Refuse shares that were late or lost, for what would follow the weights W^O_t, which keep them."""
        if self.late:
            wanted = "a share back in its own round, as runs with late or lost shares are not simulated,"
            raise refuse("an entry of undelivered", tuple(self.late[0]), wanted)

    def offered(self) -> Schedule:
        """Return the schedule with the undelivered offers in their places, as far as the sizes of shares are known.

        >>> from inca import ExplicitSchedule, incremental
        >>> execution = Execution(ExplicitSchedule([[[-1], [0]]]), incremental(1), undelivered=[(1, 0, 1, 0)])
        >>> execution.offered().round(1).receivers.tolist()
        [[1], [0]]
        """
        steps = self.intended() if self.undelivered else []
        if not steps or (share := common_share(steps)) is None:
            return self.schedule
        receivers = np.stack([step.receivers for step in steps])
        for t, sender, receiver, _ in self.undelivered:
            row = receivers[t - 1, sender]
            row[np.flatnonzero(row < 0)[0]] = receiver
        return ExplicitSchedule(receivers, share)

    def sends(self, t: int) -> Round:
        """Return what is really sent in round t = 1..T: W^O_t of Algorithm 2, with erratum E1.

        A share that has an absent party at either end stays with its sender (it appears as the receiver), and so does
        one that was offered but not credited, even if it came back late or never.

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
        """Yield the weight carried by every party's message in rounds 0..T: what travels beside the values.

        A share that is late is missing until it is back.

        >>> from inca import ExplicitSchedule, early
        >>> schedule = ExplicitSchedule([[[-1], [0]], [[1], [0]]])
        >>> for weights in Execution(schedule, early(2), undelivered=[(1, 0, 1, 2)]).weight_history():
        ...     print(weights.tolist())
        [1.0, 1.0]
        [1.0, 0.5]
        [1.25, 0.75]
        """
        counter = np.ones(self.parties, dtype=np.int32)
        y = np.full(self.parties, self.injection.value[0])
        missing, returns = defaultdict(list), defaultdict(list)
        for entry in self.late:
            missing[entry.round].append(entry)
        share = self.schedule.round(1).share  # of all, if any is late
        yield y
        for t in range(1, self.rounds + 1):
            here, before = self.presence.row(t), y
            y = self.mix(t, before) + np.where(here, self.injection.value[counter], 0.0)
            counter += here
            for entry in missing[t]:
                amount = share * before[entry.sender]
                y[entry.sender] -= amount
                returns[entry.back].append((entry.sender, amount))
            for sender, amount in returns[t]:
                y[sender] += amount
            yield y

    @cached_property
    def message_weights(self) -> Array:
        """The weight carried by every party's last message, n numbers."""
        return deque(self.weight_history(), maxlen=1).pop()

    @cached_property
    def weight(self) -> float:
        """The total weight of the published messages: the divisor of the estimate."""
        if self.published.all() and all(entry.back for entry in self.late):
            return float(self.total_weights.sum())  # mixing conserves it, and so do returns
        return float(self.message_weights[self.published].sum())


def common_share(steps: Sequence[Round]) -> float | None:
    """Return the fraction that each receiver, nobody aside, gets from everyone in every round; None if there is none.

    >>> from inca import ExplicitSchedule
    >>> common_share([ExplicitSchedule([[[1], [-1]]]).round(1)])
    0.5
    """
    alike = all(step.weights is None and step.share == steps[0].share for step in steps)
    return steps[0].share if alike else None


def _keep(step: Round, y: Array) -> Array:
    """Return what the parties keep of their messages y, (n,) or (n, d), for themselves."""
    return np.asarray((step.kept if y.ndim == 1 else step.kept[:, np.newaxis]) * y)


def _flat(weights: Array | None) -> Array | None:
    return None if weights is None else weights.reshape(-1)
