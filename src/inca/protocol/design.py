"""The design of a run: everything about it but its noise levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from inca.protocol.injection import Injection, early_injection, incremental_injection
from inca.protocol.schedules import Schedule, schedule_of_kind


@dataclass(frozen=True)
class ProtocolDesign:
    """The kind of schedule, rounds T, receivers k per round, the injection, and quiet rounds at its end.

    Quiet rounds are last rounds without a share of the value. Plans have none: settled runs gain nothing by them.

    Example:
        >>> ProtocolDesign("permutation", rounds=6).messages
        7
    """

    schedule: str
    rounds: int
    receivers: int = 1
    quiet: int = 0
    kind: str = "incremental"

    @property
    def messages(self) -> int:
        """How many messages each party sends, the final one included."""
        return self.rounds * self.receivers + 1

    def injection(self) -> Injection:
        """Return (c, Z): how values and noise enter."""
        return _injection(self.kind, self.rounds, self.quiet)

    def draw_schedule(self, parties: int, seed: int) -> Schedule:
        """Return who sends to whom, drawn from a seed unless the design is a circle."""
        return schedule_of_kind(self.schedule, parties, self.rounds, self.receivers, seed=seed)

    def __str__(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        receivers = "1 receiver" if self.receivers == 1 else f"{self.receivers} receivers"
        tail = f", last {self.quiet} quiet" if self.quiet else ""
        value = "value at once" if self.kind == "early" else f"value in shares{tail}"
        return f"{self.schedule}, {rounds}, {receivers}, {value}"


@lru_cache(maxsize=64)  # its matrix is checked when it is made
def _injection(kind: str, rounds: int, quiet: int) -> Injection:
    return early_injection(rounds) if kind == "early" else incremental_injection(rounds, quiet=quiet)
