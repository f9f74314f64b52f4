"""A simulated run as an address describes it: everything follows from the address, seeds included."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from inca._base.validation import finite_float, integer, refuse
from inca.privacy.attack import plain_gossip, single_noise_term
from inca.protocol.execution import Execution
from inca.protocol.injection import Injection, early_injection, incremental_injection
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.schedules import CircleSchedule, Schedule, complete_graph, hypercube_graph, random_schedule

MAX_PARTIES, MAX_ROUNDS, MAX_MESSAGES = 5000, 200, 400_000
_MAX_SIGMA = 1e12
_MAX_RECORDS = 10**9
_RANDOM_SCHEDULES = ("permutation", "random", "distinct")
_FIXED_SCHEDULES: dict[str, Callable[[int, int], Schedule]] = {
    "circle": CircleSchedule,
    "hypercube": hypercube_graph,
    "complete": complete_graph,
}  # not drawn, and they determine the number of receivers
_INJECTIONS = ("incremental", "early", "single", "plain")


class SimulatedRun(msgspec.Struct, frozen=True):
    """The settings of a simulated run.

    Example:
        >>> SimulatedRun(parties=4, rounds=3, absent="1:2-").execution().published.tolist()
        [True, False, True, True]
    """

    parties: int = 12
    rounds: int = 10
    receivers: int = 1
    schedule: str = "permutation"
    injection: str = "incremental"
    quiet: int = 2
    sigma_independent: float = 5.0
    sigma_cancelling: float = 60.0
    seed: int = 1
    records: int = 60
    absent: str = ""

    def __post_init__(self) -> None:
        integer("parties", self.parties, 2, MAX_PARTIES)
        integer("rounds", self.rounds, 1, MAX_ROUNDS)
        integer("receivers", self.receivers, 1, self.parties - 1)
        integer("quiet", self.quiet, 0, self.rounds)
        integer("seed", self.seed, 0, 2**53 - 1)
        integer("records", self.records, 1, _MAX_RECORDS)
        for name, known in (("schedule", (*_RANDOM_SCHEDULES, *_FIXED_SCHEDULES)), ("injection", _INJECTIONS)):
            if getattr(self, name) not in known:
                refuse(name, getattr(self, name), f"one of {', '.join(known)}")
        for name in ("sigma_independent", "sigma_cancelling"):
            finite_float(name, getattr(self, name), min=0.0, max=_MAX_SIGMA)
        if (messages := self.parties * self.rounds * self._slots) > MAX_MESSAGES:
            refuse("parties x rounds x receivers", messages, f"at most {MAX_MESSAGES:,} messages to look at")

    @property
    def _slots(self) -> int:
        """How many messages a party sends in a round."""
        slots = {"circle": 1, "hypercube": (self.parties - 1).bit_length(), "complete": self.parties - 1}
        return slots.get(self.schedule, self.receivers)

    @property
    def noise_levels(self) -> NoiseLevels:
        """How much noise is added."""
        return NoiseLevels(independent=self.sigma_independent, cancelling=self.sigma_cancelling)

    def execution(self) -> Execution:
        """Return what is public about the run; those who are there at the end settle what others left behind."""
        execution = Execution(self._schedule(), self._injection(), self._presence())
        return execution.settled() if execution.published.any() else execution

    def _schedule(self) -> Schedule:
        if self.schedule in _FIXED_SCHEDULES:
            return _FIXED_SCHEDULES[self.schedule](self.parties, self.rounds)
        return random_schedule(self.schedule, self.parties, self.rounds, self.receivers, seed=self.seed)

    def _injection(self) -> Injection:
        match self.injection:
            case "incremental":
                return incremental_injection(self.rounds, quiet=self.quiet)
            case "early":
                return early_injection(self.rounds)
            case "single":
                return single_noise_term(self.rounds)
            case _:
                return plain_gossip(self.rounds)

    def _presence(self) -> Presence:
        present = np.ones((self.rounds + 1, self.parties), dtype=bool)
        for entry in self.absent.split():
            party, first, last = _absence(entry, self.parties, self.rounds)
            present[first : last + 1, party] = False
        return Presence.explicit(present)


def _absence(entry: str, parties: int, rounds: int) -> tuple[int, int, int]:
    """Return the party of an entry, and its first and last round of absence."""
    party, _, span = entry.partition(":")
    first, dash, last = span.partition("-")
    try:
        absence = int(party), int(first), int(last) if last else rounds if dash else int(first)
    except ValueError:
        refuse("an entry of absent", entry, "PARTY:ROUND, PARTY:FIRST-LAST or PARTY:FIRST-")
    integer("a party in absent", absence[0], 0, parties - 1)
    integer("a round in absent", absence[1], 1, rounds)
    integer("a last round in absent", absence[2], absence[1], rounds)
    return absence
