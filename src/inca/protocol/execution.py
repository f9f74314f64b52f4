"""An execution: everything public about a run (the paper's E without the adversary), and its linear algebra.

Messages obey y^(t) = W^O_t y^(t-1) + c^(.)_t (x + eta*) + Z^(.)_t eta (Eqs. for y_i^(t) with Gaussian terms,
erratum E5), where W^O_t are the effective weights under absence (erratum E1) and c^(i), Z^(i) are adapted to
the presence of party i (erratum E2). Nothing private is in here.

On a network, an offered share may fail to be credited, and come back late or never. W^O_t keeps such a share with its
sender; what that leaves out is corrected in the weights here, and accounted for in docs/accounting.md.

Settlement (docs/settlement.md): the parties of a cohort S, agreed before any final message can be read, undo all that
they exchanged with others. Each j in S publishes, instead of y_j^(T),

    y'_j = y_j^(T) + (shares that j sent and no party of S credited) - (shares that j credited from parties outside S),

so that the sum over S is the sum of w_j (x_j + eta*_j), whatever the others did. Round by round, y' moves as y does,
but only along transfers inside S: with W^S_t the weights W^O_t whose shares to or from others stay with their senders,

    y'^(t) = y'^(t-1) + (W^S_t - I) y^(t-1) + c^(.)_t (x + eta*) + Z^(.)_t eta.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import flags, instance, integer, listed, party_values, refuse
from inca.errors import InvalidInput
from inca.protocol.injection import Injection
from inca.protocol.mixing import mixed, mixed_back, redirected
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule, Round, Schedule
from inca.protocol.schedules.base import check_round, common_share
from inca.protocol.undelivered import Undelivered, check_slots, refuse_late, undelivered_entry

if TYPE_CHECKING:
    import scipy.sparse as sp


class Execution:
    """Everything public about a run: the paper's E without the adversary.

    Messages obey y^(t) = W^O_t y^(t-1) + c^(.)_t (x + eta*) + Z^(.)_t eta.

    Args:
        schedule: Who sends to whom, W_1..W_T.
        injection: How values and noise enter, (c, Z), for as many rounds.
        presence: Who is present when, for as many parties and rounds; by default everyone, always.
        published: Whose final message reached the others, n booleans; by default the cohort, and without one everyone
            present in round T. A final message lost on the way counts as its owner's absence at the end, although its
            sends in round T happened.
        undelivered: Offers (round, sender, receiver, back) that were not credited; in the schedule their slots are -1.
            `back` is the round in which the share was with its sender again, 0 for never. If a share was late or lost,
            its size must be known, so all shares must be of one size. With a cohort no share is back later than in its
            round: whoever sent one that nobody credited adds it back when it settles.
        cohort: The parties that settle, n booleans, all of them present in round T; see `settled`. By default nobody
            does: final messages are y^(T), as in Algorithm 2.

    Raises:
        InvalidInput: If the parts do not fit together.

    Example:
        >>> from inca import RandomReceivers, incremental_injection
        >>> execution = Execution(RandomReceivers(100, rounds=20, seed=1), incremental_injection(20))
        >>> execution
        Execution(parties=100, rounds=20)
        >>> execution.weight
        100.0
    """

    def __init__(
        self,
        schedule: Schedule,
        injection: Injection,
        presence: Presence | None = None,
        *,
        published: Flags | None = None,
        undelivered: Iterable[Sequence[int]] = (),
        cohort: ArrayLike | None = None,
    ) -> None:
        self.schedule = instance("schedule", schedule, Schedule)
        self.injection = instance("injection", injection, Injection)
        everyone = Presence.everyone(schedule.parties, schedule.rounds)
        self.presence = everyone if presence is None else instance("presence", presence, Presence)
        if injection.rounds != schedule.rounds:
            must_be = f"that of the schedule ({schedule.rounds})"
            refuse("the number of rounds of the injection", injection.rounds, must_be)
        size, attended = (schedule.parties, schedule.rounds), (self.presence.parties, self.presence.rounds)
        if attended != size:
            refuse("the (parties, rounds) of the presence", attended, f"those of the schedule, {size}")
        last = self.presence.row(schedule.rounds)
        self.cohort = None if cohort is None else _among("cohort", cohort, last, "present in round T")
        if self.cohort is None:
            self.published = _among("published", last if published is None else published, last, "present in round T")
        else:
            who = self.cohort if published is None else published
            self.published = _among("published", who, self.cohort, "in the cohort")
        self.undelivered = tuple(
            sorted(undelivered_entry(entry, *size) for entry in listed("undelivered", undelivered, "offers"))
        )
        self._check_undelivered()

    def __repr__(self) -> str:
        return f"Execution(parties={self.parties}, rounds={self.rounds})"

    def _check_undelivered(self) -> None:
        """Refuse entries of `undelivered` that do not fit the schedule, the presence or the cohort."""
        for (t, sender), group in groupby(self.undelivered, key=lambda offer: offer[:2]):
            offers = list(group)
            if not self.presence.row(t)[sender]:
                refuse("an entry of undelivered", tuple(offers[0]), "an offer of a party present in that round")
            check_slots(offers, self._intended(t).receivers)
        if self.late and common_share(self.intended()) is None:
            refuse_late(self.late, "shares of different sizes do not tell what was missing")
        if self.cohort is not None:
            refuse_late([entry for entry in self.late if entry.back], "with a cohort no share comes back later")

    @property
    def parties(self) -> int:
        """n."""
        return self.schedule.parties

    @property
    def rounds(self) -> int:
        """T."""
        return self.schedule.rounds

    def without_finals(self, lost: ArrayLike) -> Execution:
        """Return the same execution without some of the final messages.

        Args:
            lost: n booleans, true for the parties whose final messages got lost.

        Returns:
            An execution in which fewer parties are `published`.

        Raises:
            InvalidInput: If there are not n booleans.
        """
        return self._with(self.cohort, self.published & ~flags("lost", lost, (self.parties,)))

    def settled(self, cohort: ArrayLike | None = None) -> Execution:
        """Return the same execution with final messages that are settled, and published by all of the cohort.

        Args:
            cohort: The parties that settle, n booleans; by default everyone present in round T.

        Returns:
            An execution with a `cohort`.

        Raises:
            InvalidInput: If a party of the cohort is absent in round T, or shares came back late.

        Example:
            >>> from inca import ExplicitSchedule, Presence, early_injection
            >>> schedule, presence = ExplicitSchedule([[[1], [2], [0]]] * 2), [[1, 1, 1], [1, 1, 1], [1, 1, 0]]
            >>> execution = Execution(schedule, early_injection(2), Presence.explicit(presence))
            >>> execution.message_weights.tolist()  # party 2 left in round 2 with a share of party 1 in its message
            [0.5, 1.5, 1.0]
            >>> execution.settled().message_weights.tolist()  # which party 1 takes back, and party 0 undoes party 2's
            [0.0, 2.0, 1.0]
        """
        last = self.presence.row(self.rounds)
        return self._with(last if cohort is None else cohort, None)

    def _with(self, cohort: ArrayLike | None, published: Flags | None) -> Execution:
        parts = self.schedule, self.injection, self.presence
        return Execution(*parts, published=published, undelivered=self.undelivered, cohort=cohort)

    @cached_property
    def settlement_matters(self) -> bool:
        """Whether final messages are others than y^(T): the cohort has something to undo."""
        return self.cohort is not None and bool(self.late or not self.cohort.all())

    @cached_property
    def late(self) -> tuple[Undelivered, ...]:
        """The undelivered offers whose shares came back after their round, or never."""
        return tuple(entry for entry in self.undelivered if entry.late)

    def refuse_late(self) -> None:
        """Refuse shares that were late or lost, for what follows the rows of a view: W^O_t, which keeps them."""
        refuse_late(self.late, "attacks do not cover late or lost shares")

    def offered(self) -> Schedule:
        """Return the schedule with the undelivered offers in their places, as far as the sizes of shares are known.

        Example:
            >>> from inca import ExplicitSchedule, incremental_injection
            >>> schedule, offers = ExplicitSchedule([[[-1], [0]]]), [(1, 0, 1, 0)]
            >>> execution = Execution(schedule, incremental_injection(1), undelivered=offers)
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
        return ExplicitSchedule(receivers, share=share)

    def sends(self, t: int) -> Round:
        """Return what is really sent in round t = 1..T: W^O_t of Algorithm 2, with erratum E1.

        A share that has an absent party at either end stays with its sender (it appears as the receiver), and so does
        one that was offered but not credited, even if it came back late or never.

        Args:
            t: The round.

        Returns:
            Everyone's receivers and the fractions they get.

        Raises:
            InvalidInput: If there is no such round.

        Example:
            >>> from inca import ExplicitSchedule, Presence, incremental_injection
            >>> presence = Presence.explicit([[1, 1, 1], [1, 0, 1]])
            >>> execution = Execution(ExplicitSchedule([[[1], [2], [0]]]), incremental_injection(1), presence)
            >>> execution.sends(1).receivers.tolist()
            [[0], [1], [0]]
        """
        step = self._intended(t)
        if self.presence.all_present:
            return step
        return replace(step, receivers=redirected(step, self.presence.row(t)))

    def intended(self) -> list[Round]:
        """Return what rounds 1..T intend to send: W_1..W_T, whoever is present."""
        return [self._intended(t) for t in range(1, self.rounds + 1)]

    def _intended(self, t: int) -> Round:
        step = self.schedule.round(t)
        if not self.schedule.valid:
            check_round(self.schedule, step, t)
        return step

    def mix(self, t: int, y: ArrayLike) -> Array:
        """Return W^O_t y without building the matrix.

        Args:
            t: The round, from 1 to T.
            y: One row per party, (n,) or (n, d).

        Returns:
            An array of the same shape.

        Raises:
            InvalidInput: If there is no such round, or not one row per party.

        Example:
            >>> from inca import ExplicitSchedule, incremental_injection
            >>> swap = Execution(ExplicitSchedule([[[1], [0]]]), incremental_injection(1))
            >>> swap.mix(1, [1.0, 0.0])
            array([0.5, 0.5])
        """
        return mixed(self.sends(t), party_values(y, self.parties), self.one_receiver)

    def mix_adjoint(self, t: int, v: ArrayLike) -> Array:
        """Return the transpose of W^O_t times v, for round t = 1..T and v of shape (n,) or (n, d)."""
        return mixed_back(self.sends(t), party_values(v, self.parties), self.one_receiver)

    def settlement(self, t: int, y: ArrayLike) -> Array:
        """Return (W^S_t - I) y: what y' gains or loses in a round by the transfers inside the cohort.

        Args:
            t: The round, from 1 to T.
            y: The messages of the round before, (n,) or (n, d).

        Returns:
            An array of the same shape, 0 for parties outside the cohort.
        """
        messages = party_values(y, self.parties)
        return mixed(self.sends_in_cohort(t), messages, self.one_receiver) - messages

    def settlement_adjoint(self, t: int, v: ArrayLike) -> Array:
        """Return the transpose of W^S_t - I times v, for round t = 1..T and v of shape (n,) or (n, d)."""
        rows = party_values(v, self.parties)
        return mixed_back(self.sends_in_cohort(t), rows, self.one_receiver) - rows

    def sends_in_cohort(self, t: int) -> Round:
        """Return W^S_t: what is sent in round t, but for shares to or from parties outside the cohort."""
        if self.cohort is None:
            raise InvalidInput("an execution without a cohort has no settlement")
        step = self.sends(t)
        return replace(step, receivers=redirected(step, self.cohort))

    @property
    def one_receiver(self) -> bool:
        """Whether everyone sends the same share to one party in every round."""
        return self.schedule.slots == 1 and self.schedule.even_share is not None

    def weights(self, t: int) -> sp.csc_array:
        """Return the effective weight matrix W^O_t of Algorithm 2 (erratum E1); for inspection and small n.

        Args:
            t: The round, from 1 to T.

        Returns:
            A sparse matrix, (n, n); column j is what j does with its message.
        """
        import scipy.sparse as sp  # slow to import

        step = self.sends(t)
        sender, slot = np.nonzero(step.receivers >= 0)
        everyone = np.arange(self.parties)
        entries = np.concatenate([step.fractions[sender, slot], step.kept])
        places = np.concatenate([step.receivers[sender, slot], everyone]), np.concatenate([sender, everyone])
        return sp.coo_array((entries, places), shape=(self.parties, self.parties)).tocsc()

    def coefficients(self, party: int) -> tuple[Array, Array]:
        """Return (c^(i), Z^(i)): what party i injects in rounds 0..T, adapted to its presence (erratum E2).

        Args:
            party: The id i.

        Returns:
            c^(i), of shape (T+1,), and Z^(i), of shape (T+1, T).
        """
        i = integer("party", party, 0, self.parties - 1)
        return self.injection.adapted([self.presence.row(t)[i] for t in range(self.rounds + 1)])

    @cached_property
    def total_weights(self) -> Array:
        """w_i = sum_t c^(i)_t: which fraction of its value each party injects (Eq. for w_i), n numbers."""
        attended = self.presence.rounds_attended()
        portions = np.concatenate(([0.0], np.cumsum(self.injection.value)))
        last = self.injection.value[attended] * self.presence.row(self.rounds)
        # A full attendance injects exactly everything, however the shares were rounded.
        return np.where(attended == self.rounds, 1.0 - self.injection.value[-1] + last, portions[attended] + last)

    @property
    def cohort_weights(self) -> list[float]:
        """w_i of the parties that settle, in the order of their ids; empty if nobody does."""
        return [] if self.cohort is None else [float(weight) for weight in self.total_weights[self.cohort]]

    def weight_history(self) -> Iterator[Array]:
        """Yield the weight carried by every party's message in rounds 0..T: what travels beside the values.

        A share that is late is missing until it is back.

        Example:
            >>> from inca import ExplicitSchedule, early_injection
            >>> schedule = ExplicitSchedule([[[-1], [0]], [[1], [0]]])
            >>> for weights in Execution(schedule, early_injection(2), undelivered=[(1, 0, 1, 2)]).weight_history():
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
        """The weight carried by every party's last message, settled if it is in the cohort, n numbers."""
        history = self.weight_history()
        if self.cohort is None or not self.settlement_matters:
            return deque(history, maxlen=1).pop()
        last, settled = next(history), self.total_weights.copy()
        for t, weights in enumerate(history, start=1):
            settled += self.settlement(t, last)
            last = weights
        return np.where(self.cohort, settled, last)

    @cached_property
    def weight(self) -> float:
        """The total weight of the published messages: the divisor of the estimate."""
        if self.cohort is not None and np.array_equal(self.published, self.cohort):
            return float(self.total_weights[self.cohort].sum())  # settlement leaves what the cohort itself injected
        if self.published.all() and all(entry.back for entry in self.late):
            return float(self.total_weights.sum())  # mixing conserves it, and so do returns
        return float(self.message_weights[self.published].sum())


def _among(name: str, booleans: ArrayLike, those: Flags, must_be: str) -> Flags:
    """Return n booleans that nobody can change; refuse others, and true ones where `those` are not."""
    try:
        checked = np.array(booleans)
    except ValueError:  # rows of different lengths
        checked = np.empty(0)
    if checked.shape != those.shape or checked.dtype != np.bool_:  # 0 and 1 might be meant as ids
        refuse(name, f"{checked.dtype} of shape {checked.shape}", f"bool of shape {those.shape}")
    if (stray := checked & ~those).any():
        who = "a published party" if name == "published" else "a party of the cohort"
        refuse(who, int(np.flatnonzero(stray)[0]), must_be)
    checked.flags.writeable = False
    return checked
