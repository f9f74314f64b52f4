"""What pages ask: the parameters of an address, converted in one place into one object per question.

What cannot be understood is refused in a sentence; what an address leaves out has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

import msgspec

from inca._base.validation import refuse
from inca.dashboard.simulated_run import SimulatedRun
from inca.documents.document import plain_error
from inca.errors import InvalidInput
from inca.planning.requirements import Requirements

Params = Mapping[str, str]
"""The parameters of an address."""

NOBODY = "none"
"""How an address names the adversary of nobody: where it names none, that of the file counts."""

_Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
_Positive = Annotated[float, msgspec.Meta(gt=0.0, le=1e300)]


@dataclass(frozen=True)
class AdversaryChoice:
    """Who colludes, and which messages (round, party or None for all) are eavesdropped on; None: as a file says."""

    colluding: tuple[int, ...] | None = None
    eavesdropped: tuple[tuple[int, int | None], ...] | None = None


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address, or refuse it in a sentence that names the parameter."""
        try:
            return msgspec.convert(params, cls, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(plain_error(error)) from None


class RunQuestion(SimulatedRun, _Question, frozen=True):
    """A run, round by round, and who observes it; with `file`, the run of an open file instead of a simulated one.

    Example:
        >>> RunQuestion.parse({"parties": "30", "colluding": "4 1", "eavesdropped": "2:3 5:*"}).adversary
        AdversaryChoice(colluding=(4, 1), eavesdropped=((2, 3), (5, None)))
    """

    file: str | None = None
    colluding: str | None = None
    eavesdropped: str | None = None

    @property
    def settings(self) -> SimulatedRun:
        """The settings of the simulated run alone: questions about one run share them."""
        return SimulatedRun(*(getattr(self, name) for name in SimulatedRun.__struct_fields__))

    @property
    def adversary(self) -> AdversaryChoice:
        """Who observes the run."""
        ids, messages = "" if self.colluding == NOBODY else self.colluding, self.eavesdropped
        return AdversaryChoice(
            None if ids is None else tuple(map(_party, ids.split())),
            None if messages is None else tuple(map(_message, messages.split())),
        )


class AdversaryQuestion(RunQuestion, frozen=True):
    """What an adversary makes of a run, at this delta, if a value can move this far; None: as the run says."""

    delta: _Probability = 1e-5
    sensitivity: _Positive | None = None


class NoiseQuestion(AdversaryQuestion, frozen=True):
    """How much cancelling noise keeps everyone's loss against an adversary below this epsilon."""

    epsilon: _Positive = 1.0


class PlanQuestion(_Question, frozen=True):
    """What is required of a plan.

    Example:
        >>> PlanQuestion.parse({"parties": "30"}).requirements.colluders
        3
    """

    parties: int = 200
    epsilon: float = 0.5
    delta: float = 1e-5
    colluding: float = 0.1
    eavesdropped: float = 0.0
    dropout: float | None = None
    messages: int | None = None

    def __post_init__(self) -> None:
        _ = self.requirements  # which refuses what no plan can meet

    @property
    def requirements(self) -> Requirements:
        """What is required; without a dropout, the usual one."""
        asked = {name: getattr(self, name) for name in self.__struct_fields__}
        return Requirements(**{name: value for name, value in asked.items() if value is not None})


class FileQuestion(_Question, frozen=True):
    """A file that was opened before, by its id."""

    file: str = ""


class SessionQuestion(_Question, frozen=True):
    """A session of a node on this machine, by its id."""

    session: str = ""


def _party(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        refuse("an id in colluding", word, "a whole number")


def _message(entry: str) -> tuple[int, int | None]:
    """Read ROUND:PARTY, or ROUND:* for all messages of a round."""
    t, _, party = entry.partition(":")
    try:
        return int(t), None if party == "*" else int(party)
    except ValueError:
        refuse("an entry of eavesdropped", entry, "ROUND:PARTY, or ROUND:* for all parties")
