"""What all parties of a session have agreed on: sizes, noise levels on the lattice, and times. Nothing private.

Who sends to whom follows from the public seed, which is either agreed beforehand or the outcome of a coin flip among
all parties.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.randomness import PublicSeed
from inca.protocol.schedules import Schedule
from inca.protocol.schedules.kinds import schedule_of_kind
from inca.protocol.topup import TopUp

WEIGHT = 2**40
"""The weight of one party's value, in the units that travel."""
_NO_TOPUP = TopUp(together=0.0, independent=0.0, colluders=0)


def quorum_of(parties: int) -> int:
    """Return how many parties must confirm a result: so many that any two quorums have two parties in common.

    If one member lies, the other one of the two is honest, and no two results can be confirmed. Of three parties two
    are enough, or nobody could ever be away: there everyone must be honest.

    Example:
        >>> [quorum_of(n) for n in (3, 4, 5, 6, 7, 12, 101)]
        [2, 3, 4, 4, 5, 7, 52]
    """
    return (parties if parties <= 3 else parties + 1) // 2 + 1


def order_by_hash(seed: bytes, parties: int) -> list[int]:
    """Return all parties in an order that follows from a seed as if it were drawn."""
    return sorted(range(parties), key=lambda party: hashlib.sha256(seed + party.to_bytes(4, "little")).digest())


@dataclass(frozen=True)
class SessionConfig:
    """The terms of a session, as the state machine of a party needs them.

    Round t = 1..T ends at `start` + t `period` at the latest, and lasts at least `min_round_duration`.

    The parties and rounds are n and T of the paper; noise is in lattice steps, times are in seconds.

    Example:
        >>> session = SessionConfig(
        ...     id=bytes(32), parties=5, rounds=3, schedule="circle", dimension=2, largest_value=2**34,
        ...     sigma_independent=2**30, sigma_cancelling=2**33, min_participants=3, start=100.0, period=2.0,
        ... )
        >>> session.quorum, session.pieces, session.deadline(3), session.clock_round(101.0)
        (4, 4, 106.0, 1)
    """

    id: bytes  # 32 of them; commitments and signatures are bound to it
    parties: int
    rounds: int
    schedule: str  # "circle" or "permutation": a party sends to one in a round, and hears from one
    dimension: int
    largest_value: int  # of a coordinate, in absolute value and lattice steps
    sigma_independent: int
    sigma_cancelling: int
    min_participants: int  # with fewer final messages there is no result
    start: float  # of round 1, since the epoch
    period: float  # how long a round lasts at most
    min_round_duration: float = 0.0
    seed: bytes | None = None  # of the schedule, public, 32 bytes; None: the parties flip a coin
    topup: TopUp = _NO_TOPUP  # in lattice steps, not rounded
    names: tuple[str, ...] = ()  # by default their numbers
    colluders: int = 1  # how many may collude
    leavers: int = 0  # how many may leave

    def name(self, party: int) -> str:
        """Return what people call a party."""
        return self.names[party] if self.names else f"party {party}"

    def sigma_topup(self, weights: Iterable[float]) -> int:
        """Return the independent noise that each party of a cohort of these weights adds when it settles."""
        return math.ceil(self.topup.sigma(weights))

    @property
    def payload_bytes(self) -> int:
        """How many bytes a share or a final message has: 8 for each coordinate, and for the weight."""
        return 8 * (self.dimension + 1)

    @property
    def pieces(self) -> int:
        """In how many pieces a value enters."""
        return self.rounds + 1

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
            schedule = schedule_of_kind(self.schedule, self.parties, self.rounds, seed=PublicSeed(seed))
            self._topology.clear()
            self._topology[seed] = Topology(schedule)
        return self._topology[seed]

    @cached_property
    def _topology(self) -> dict[bytes, Topology]:
        return {}  # of one seed: all n T receivers are held as lists, which loss check and ledger need not do twice


@dataclass(frozen=True, eq=False)
class Topology:
    """The schedule as plain lists, both ways round: in a round each party sends to one, and hears from one."""

    schedule: Schedule

    @cached_property
    def receivers(self) -> list[list[int]]:
        """Who receives, by round 1..T (place 0 is empty) and sender."""
        return [[], *(self.schedule.round(t).receivers[:, 0].tolist() for t in range(1, self.schedule.rounds + 1))]

    @cached_property
    def senders(self) -> list[list[int]]:
        """Who sends, by round 1..T (place 0 is empty) and receiver."""
        return [np.argsort(receivers).tolist() for receivers in self.receivers]

    def has(self, t: int, sender: int, receiver: int) -> bool:
        """Return whether a party sends to another one in round t, if there is such a round."""
        return 1 <= t <= self.schedule.rounds and self.receivers[t][sender] == receiver
