"""What the views look at: an execution with its noise, described by an address or read from a file.

Everything in a described scene follows from the address, seeds included, so that an address can be shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import InputError, real, refuse, whole
from inca.privacy.attack import plain_gossip, single_noise_term
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.injection import Injection, early, incremental
from inca.protocol.presence import Presence
from inca.protocol.schedules import Schedule, complete, hypercube, random_schedule
from inca.protocol.simulation import Noise, draw_noise

MOST_PARTIES, MOST_ROUNDS, MOST_MESSAGES = 5000, 200, 400_000
SCHEDULES = ("permutation", "random", "distinct", "hypercube", "complete")
INJECTIONS = ("incremental", "early", "single", "plain")
_GRAPHS = {"hypercube": hypercube, "complete": complete}


@dataclass(frozen=True)
class Description:
    """A simulated run in plain words; `absent` is who is away and when, such as `3:4-7 5:2-`."""

    parties: int = 12
    rounds: int = 10
    receivers: int = 1
    schedule: str = "permutation"
    injection: str = "incremental"
    quiet: int = 2
    sigma_independent: float = 0.5
    sigma_cancelling: float = 5.0
    seed: int = 1
    absent: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be run, or would take too long to look at."""
        whole("parties", self.parties, 2, MOST_PARTIES)
        whole("rounds", self.rounds, 1, MOST_ROUNDS)
        whole("receivers", self.receivers, 1, self.parties - 1)
        whole("quiet", self.quiet, 0, self.rounds)
        whole("seed", self.seed, 0, 2**53 - 1)
        for name, known in (("schedule", SCHEDULES), ("injection", INJECTIONS)):
            if getattr(self, name) not in known:
                raise refuse(name, getattr(self, name), f"one of {', '.join(known)}")
        for name in ("sigma_independent", "sigma_cancelling"):
            real(name, getattr(self, name), least=0.0, most=1e12)
        if (size := self.parties * self.rounds * self.slots) > MOST_MESSAGES:
            raise refuse("parties x rounds x receivers", size, f"at most {MOST_MESSAGES:,} messages to look at")

    @property
    def slots(self) -> int:
        """How many messages a party sends in a round."""
        return {"hypercube": (self.parties - 1).bit_length(), "complete": self.parties - 1}.get(
            self.schedule, self.receivers
        )

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Description:
        """Read a description from an address; what it leaves out has its default."""
        read: dict[str, Any] = {}
        for each in fields(cls):
            if each.name in given:
                read[each.name] = number(each.name, given[each.name], type(each.default))
        return cls(**read)

    def topology(self) -> Schedule:
        """Return who sends to whom."""
        if self.schedule in _GRAPHS:
            return _GRAPHS[self.schedule](self.parties, self.rounds)
        return random_schedule(self.schedule, self.parties, self.rounds, self.receivers, seed=self.seed)

    def noise_kind(self) -> Injection:
        """Return how value and noise enter: the paper's two ways, and the two that are broken."""
        match self.injection:
            case "incremental":
                return incremental(self.rounds, quiet=self.quiet)
            case "early":
                return early(self.rounds)
            case "single":
                return single_noise_term(self.rounds)
            case _:
                return plain_gossip(self.rounds)

    def presence(self) -> Presence:
        """Return who is there in every round."""
        present = np.ones((self.rounds + 1, self.parties), dtype=bool)
        for entry in self.absent.split():
            party, first, last = _absence(entry, self.parties, self.rounds)
            present[first : last + 1, party] = False
        return Presence.explicit(present)


def number(name: str, text: str, kind: type) -> Any:
    """Read a number or a word of an address."""
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise refuse(name, text, "a whole number" if kind is int else "a number") from None


def _absence(entry: str, parties: int, rounds: int) -> tuple[int, int, int]:
    party, _, span = entry.partition(":")
    first, dash, last = span.partition("-")
    try:
        read = int(party), int(first), int(last) if last else rounds if dash else int(first)
    except ValueError:
        raise refuse("an entry of absent", entry, "PARTY:ROUND, PARTY:FIRST-LAST or PARTY:FIRST-") from None
    whole("a party in absent", read[0], 0, parties - 1)
    whole("a round in absent", read[1], 1, rounds)
    whole("a last round in absent", read[2], read[1], rounds)
    return read


@dataclass(frozen=True, eq=False)
class Scene:
    """An execution and its noise levels; values and noise terms only if it is simulated."""

    execution: Execution
    sigma_independent: float | None
    sigma_cancelling: float | None
    description: Description | None = None
    adversary: Adversary = field(default_factory=Adversary)

    @classmethod
    def described(cls, description: Description) -> Scene:
        """Make what an address describes."""
        execution = Execution(description.topology(), description.noise_kind(), description.presence())
        return cls(execution, description.sigma_independent, description.sigma_cancelling, description)

    @cached_property
    def values(self) -> Array | None:
        """Made-up values between 0 and 1, one per party."""
        if self.description is None:
            return None
        return np.random.default_rng((self.description.seed, 1)).random(self.execution.parties)

    @cached_property
    def noise(self) -> Noise | None:
        """The noise terms. Whoever is absent draws none, so others' terms stay the same when presence changes."""
        if self.description is None or self.sigma_independent is None or self.sigma_cancelling is None:
            return None
        rng = np.random.default_rng((self.description.seed, 2))
        drawn = draw_noise(self.execution, self.sigma_independent, self.sigma_cancelling, rng)
        return Noise(drawn.independent[:, 0], drawn.cancelling[:, :, 0])

    def seen_by(self, given: Mapping[str, str]) -> Adversary:
        """Return the adversary that an address names (with no ids: nobody), or the one of the file."""
        ids, tapped = list(self.adversary.colluding), list(self.adversary.eavesdropped)
        if "colluding" in given:
            ids = [number("an id in colluding", text, int) for text in given["colluding"].split()]
        if "tapped" in given:
            tapped = [pair for entry in given["tapped"].split() for pair in self._taps(*_tap(entry))]
        return Adversary(ids, tapped)

    def _taps(self, t: int, party: int | None) -> list[tuple[int, int]]:
        return [(t, party)] if party is not None else [(t, i) for i in range(self.execution.parties)]


def _tap(entry: str) -> tuple[int, int | None]:
    """Read ROUND:PARTY, or ROUND:* for all messages of a round."""
    t, _, party = entry.partition(":")
    try:
        return int(t), None if party == "*" else int(party)
    except ValueError:
        raise InputError(
            f"an entry of tapped is {entry!r}, but ROUND:PARTY, or ROUND:* for all parties, was expected"
        ) from None
