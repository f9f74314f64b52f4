"""What all parties of a session have agreed on: sizes, noise levels on the lattice, and times. Nothing private.

Who sends to whom follows from the public seed, which is either agreed beforehand or the outcome of a coin flip among
all parties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from inca._base.randomness import PublicSeed
from inca.errors import InvalidPeerMessage
from inca.network.lattice import Numbers
from inca.protocol.injection import Injection, incremental_injection
from inca.protocol.schedules import Schedule, random_schedule

WEIGHT = 2**40
"""The weight of one party's value, in the units that travel."""


def check_weight(message: Numbers, parties: int) -> None:
    """Refuse a message whose weight, its last number, no honest party can hold: 0 to that of all values together.

    >>> import numpy as np
    >>> check_weight(np.array([5, WEIGHT]), parties=3)
    """
    if not 0 <= message[-1] <= parties * WEIGHT:
        raise InvalidPeerMessage(f"the weight of a message must be from 0 to {parties}, got {message[-1] / WEIGHT:.3g}")


def quorum_of(parties: int) -> int:
    """Return how many parties must confirm a result: so many that any two quorums have two parties in common.

    If one member lies, the other one of the two is honest, and no two results can be confirmed. Of three parties two
    are enough, or nobody could ever be away: there everyone must be honest.

    Example:
        >>> [quorum_of(n) for n in (3, 4, 5, 6, 7, 12, 101)]
        [2, 3, 4, 4, 5, 7, 52]
    """
    return (parties if parties <= 3 else parties + 1) // 2 + 1


@dataclass(frozen=True)
class SessionConfig:
    """The terms of a session, as the state machine of a party needs them.

    Round t = 1..T ends at `start` + t `period` at the latest, and lasts at least `min_round_duration`.

    Args:
        id: The session's identifier (32 bytes); commitments and signatures are bound to it.
        parties: The number of parties n.
        rounds: The number of rounds T.
        receivers: To how many parties each party sends in a round, k.
        schedule: The kind of random schedule: "random", "distinct" or "permutation".
        quiet: How many rounds at the end inject no part of a value.
        dimension: The number of coordinates of a value.
        largest_value: The largest absolute value of a coordinate, in lattice steps.
        sigma_independent: The independent noise, in lattice steps.
        sigma_cancelling: The cancelling noise, in lattice steps.
        min_participants: With fewer final messages than this there is no result.
        start: When round 1 begins, in seconds since the epoch.
        period: How long a round lasts at most, in seconds.
        min_round_duration: How long a round lasts at least, in seconds.
        seed: The public seed of the schedule (32 bytes), or None for a coin flip.
        sigma_topup: The independent noise that is added at settlement if 0, 1, 2, ... parties are not in the cohort, in
            lattice steps. A roster has an entry for every number that may not be; (0,) is for none at all.
        names: What people call the parties; by default their numbers.
        colluders: How many parties may collude.
        leavers: How many may leave.

    Example:
        >>> session = SessionConfig(
        ...     id=bytes(32), parties=5, rounds=3, receivers=1, schedule="random", quiet=1, dimension=2,
        ...     largest_value=2**34, sigma_independent=2**30, sigma_cancelling=2**33, min_participants=3, start=100.0,
        ...     period=2.0,
        ... )
        >>> session.quorum, session.pieces, session.deadline(3), session.clock_round(101.0)
        (4, 3, 106.0, 1)
    """

    id: bytes
    parties: int
    rounds: int
    receivers: int
    schedule: str
    quiet: int
    dimension: int
    largest_value: int
    sigma_independent: int
    sigma_cancelling: int
    min_participants: int
    start: float
    period: float
    min_round_duration: float = 0.0
    seed: bytes | None = None
    sigma_topup: tuple[int, ...] = (0,)
    names: tuple[str, ...] = ()
    colluders: int = 1
    leavers: int = 0

    def name(self, party: int) -> str:
        """Return what people call a party."""
        return self.names[party] if self.names else f"party {party}"

    def topup(self, cohort: int) -> int:
        """Return the independent noise that each party of a cohort of this size adds when it settles."""
        return self.sigma_topup[min(self.parties - cohort, len(self.sigma_topup) - 1)]

    @property
    def injection(self) -> Injection:
        """How values and noise enter: incrementally, with no part of a value in the last `quiet` rounds."""
        return incremental_injection(self.rounds, quiet=self.quiet)

    @property
    def pieces(self) -> int:
        """In how many pieces a value enters."""
        return self.rounds + 1 - self.quiet

    @property
    def quorum(self) -> int:
        """How many parties must confirm a result."""
        return quorum_of(self.parties)

    def deadline(self, t: int) -> float:
        """Return when round t ends at the latest."""
        return self.start + t * self.period

    def clock_round(self, now: float) -> int:
        """Return the round according to the clock: floor((now - start) / period) + 1, so 0 or less before the start."""
        return math.floor((now - self.start) / self.period) + 1

    def topology(self, seed: bytes) -> Topology:
        """Return who sends to whom, given the public seed; the same object for all who ask with the last seed."""
        if seed not in self._topology:
            schedule = random_schedule(self.schedule, self.parties, self.rounds, self.receivers, seed=PublicSeed(seed))
            self._topology.clear()
            self._topology[seed] = Topology(schedule)
        return self._topology[seed]

    @cached_property
    def _topology(self) -> dict[bytes, Topology]:
        return {}  # of one seed: all n T receivers are held as lists, which loss check and ledger need not do twice


@dataclass(frozen=True, eq=False)
class Topology:
    """The schedule as plain lists, both ways round: receivers of a sender, senders of a receiver.

    Args:
        schedule: The schedule of the session.
    """

    schedule: Schedule

    @cached_property
    def receivers(self) -> list[list[list[int]]]:
        """Who receives, by round 1..T (place 0 is empty), sender and slot."""
        return [[], *(self.schedule.round(t).receivers.tolist() for t in range(1, self.schedule.rounds + 1))]

    @cached_property
    def senders(self) -> list[list[list[tuple[int, int]]]]:
        """Who sends, as (sender, slot), by round 1..T (place 0 is empty) and receiver."""
        by_round: list[list[list[tuple[int, int]]]] = [[]]
        for receivers in self.receivers[1:]:
            by_receiver: list[list[tuple[int, int]]] = [[] for _ in receivers]
            for sender, row in enumerate(receivers):
                for slot, receiver in enumerate(row):
                    by_receiver[receiver].append((sender, slot))
            by_round.append(by_receiver)
        return by_round

    def receiver(self, t: int, sender: int, slot: int) -> int | None:
        """Return to whom the sender's slot goes in round t, or None if there is no such transfer."""
        schedule = self.schedule
        if not (1 <= t <= schedule.rounds and 0 <= sender < schedule.parties and 0 <= slot < schedule.slots):
            return None
        return self.receivers[t][sender][slot]
