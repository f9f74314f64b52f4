"""What all parties of a session have agreed on: sizes, noise levels on the lattice, and times. Nothing private.

Who sends to whom follows from the public seed, which is given or tossed by the parties themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from inca._base.randomness import PublicSeed
from inca.protocol.injection import Injection, incremental
from inca.protocol.schedules import Schedule, random_schedule

WEIGHT = 2**40  # the weight of a whole value, in units that travel


@dataclass(frozen=True)
class Session:
    """The terms of a session, as the state machine needs them.

    `sigma_independent` and `sigma_cancelling` are whole numbers of lattice steps; `seed` is None if it is to be
    tossed. Round t = 1..T ends at `start` + t `period` at the latest, and lasts `pace` at least.
    """

    id: bytes
    parties: int
    rounds: int
    receivers: int
    schedule: str
    quiet: int
    dimension: int
    sigma_independent: int
    sigma_cancelling: int
    least_cohort: int
    start: float
    period: float
    pace: float = 0.0
    seed: bytes | None = None

    @property
    def injection(self) -> Injection:
        """How values and noise enter: incremental, with the last `quiet` rounds free of values."""
        return incremental(self.rounds, self.quiet)

    @property
    def pieces(self) -> int:
        """In how many pieces a value enters."""
        return self.rounds + 1 - self.quiet

    @property
    def quorum(self) -> int:
        """How many parties must confirm a result: more than half of all, so that no two results can be confirmed."""
        return self.parties // 2 + 1

    def deadline(self, t: int) -> float:
        """When round t ends at the latest."""
        return self.start + t * self.period

    def clock_round(self, now: float) -> int:
        """The round that the clock alone tells: floor((now - start) / period) + 1; 0 or less before the start."""
        return math.floor((now - self.start) / self.period) + 1

    def topology(self, seed: bytes) -> Topology:
        """Return who sends to whom."""
        kind = random_schedule(self.schedule, self.parties, self.rounds, self.receivers, seed=PublicSeed(seed))
        return Topology(kind)


@dataclass(frozen=True, eq=False)
class Topology:
    """The schedule as plain lists, both ways round: receivers of a sender, senders of a receiver."""

    schedule: Schedule

    @cached_property
    def receivers(self) -> list[list[list[int]]]:
        """Who receives, by round 1..T (place 0 is empty), sender and slot."""
        return [[], *(self.schedule.round(t).receivers.tolist() for t in range(1, self.schedule.rounds + 1))]

    @cached_property
    def senders(self) -> list[list[list[tuple[int, int]]]]:
        """Who sends, as (sender, slot), by round 1..T (place 0 is empty) and receiver."""
        found: list[list[list[tuple[int, int]]]] = [[]]
        for step in self.receivers[1:]:
            heard: list[list[tuple[int, int]]] = [[] for _ in step]
            for sender, row in enumerate(step):
                for slot, receiver in enumerate(row):
                    heard[receiver].append((sender, slot))
            found.append(heard)
        return found

    def receiver(self, t: int, sender: int, slot: int) -> int | None:
        """Return to whom the sender's slot goes in round t, or None if there is no such transfer."""
        s = self.schedule
        if not (1 <= t <= s.rounds and 0 <= sender < s.parties and 0 <= slot < s.slots):
            return None
        return self.receivers[t][sender][slot]
