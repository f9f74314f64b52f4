"""What pages ask: the parameters of an address, parsed in one place into one object per question.

What cannot be understood is refused in a sentence; what an address leaves out has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from inca._base.validation import finite_float, integer, positive, refuse
from inca.dashboard.simulated_run import SimulatedRun
from inca.planning.requirements import Requirements

Params = Mapping[str, str]
"""The parameters of an address."""

NOBODY = "none"
"""How an address names the adversary of nobody: where it names none, that of the file counts."""

_DEFAULT_REQUIREMENTS = {
    "parties": 200,
    "epsilon": 0.5,
    "delta": 1e-5,
    "colluding": 0.1,
    "eavesdropped": 0.0,
    "dropout": 0.1,
    "messages": 20,
}
DEFAULT_VIEWS = 300
"""On how many sampled views a plan is calibrated: as many as `inca plan` takes."""
_MAX_VIEWS = 10_000
_Value = TypeVar("_Value", int, float, str)


@dataclass(frozen=True)
class AdversaryChoice:
    """Who colludes and which messages are eavesdropped on; None where the address does not say, as a file may.

    Args:
        colluding: Ids of parties.
        eavesdropped: Rounds and parties; None instead of a party stands for all messages of the round.

    Example:
        >>> AdversaryChoice.parse({"colluding": "4 1", "eavesdropped": "2:3 5:*"})
        AdversaryChoice(colluding=(4, 1), eavesdropped=((2, 3), (5, None)))
    """

    colluding: tuple[int, ...] | None = None
    eavesdropped: tuple[tuple[int, int | None], ...] | None = None

    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address."""
        return cls(
            None if (ids := params.get("colluding")) is None else _ids(ids),
            None if (messages := params.get("eavesdropped")) is None else tuple(map(_message, messages.split())),
        )


@dataclass(frozen=True)
class RunQuestion:
    """A run, round by round, and who observes it.

    Args:
        run: The settings of a simulated run, or the id of an open file.
        adversary: Who observes it.

    Example:
        >>> RunQuestion.parse({"file": "0123456789abcdef"}).run
        '0123456789abcdef'
    """

    run: SimulatedRun | str
    adversary: AdversaryChoice

    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address."""
        defaults = {field.name: field.default for field in fields(SimulatedRun)}
        run = params["file"] if "file" in params else SimulatedRun(**_values(params, defaults))
        return cls(run, AdversaryChoice.parse(params), **cls._more(params))

    @classmethod
    def _more(cls, params: Params) -> dict[str, Any]:
        """Return the fields that a question of a child class has besides."""
        return {}


@dataclass(frozen=True)
class AdversaryQuestion(RunQuestion):
    """What an adversary makes of a run, at this delta, if a value can move this far; None: as the run says.

    Example:
        >>> AdversaryQuestion.parse({}).delta
        1e-05
    """

    delta: float
    sensitivity: float | None

    @classmethod
    def _more(cls, params: Params) -> dict[str, Any]:
        sensitivity = positive("sensitivity", _value(params, "sensitivity", 1.0)) if params.get("sensitivity") else None
        return {"delta": finite_float("delta", _value(params, "delta", 1e-5), 0.0, 1.0), "sensitivity": sensitivity}


@dataclass(frozen=True)
class NoiseQuestion(AdversaryQuestion):
    """How much cancelling noise keeps everyone's loss against an adversary below this epsilon.

    Example:
        >>> NoiseQuestion.parse({"epsilon": "2"}).epsilon
        2.0
    """

    epsilon: float

    @classmethod
    def _more(cls, params: Params) -> dict[str, Any]:
        return super()._more(params) | {"epsilon": positive("epsilon", _value(params, "epsilon", 1.0))}


@dataclass(frozen=True)
class PlanQuestion:
    """What is required of a plan, and on how many sampled views it is calibrated.

    Example:
        >>> PlanQuestion.parse({"parties": "30"}).requirements.colluders
        3
    """

    requirements: Requirements
    views: int

    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address; its default number of views is that of `inca plan`."""
        views = integer("views", _value(params, "views", DEFAULT_VIEWS), 2, _MAX_VIEWS)
        return cls(Requirements(**_values(params, _DEFAULT_REQUIREMENTS)), views)


@dataclass(frozen=True)
class FileQuestion:
    """A file that was opened before, by its id.

    Example:
        >>> FileQuestion.parse({"file": "0123456789abcdef"}).file
        '0123456789abcdef'
    """

    file: str

    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address."""
        return cls(params.get("file", ""))


@dataclass(frozen=True)
class SessionQuestion:
    """A session of a node on this machine, by its id.

    Example:
        >>> SessionQuestion.parse({"session": "0123456789abcdef.anna"}).session
        '0123456789abcdef.anna'
    """

    session: str

    @classmethod
    def parse(cls, params: Params) -> Self:
        """Read an address."""
        return cls(params.get("session", ""))


def _values(params: Params, defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(params, name, default) for name, default in defaults.items()}


def _value(params: Params, name: str, default: _Value) -> _Value:
    """Read a number or a word of the same kind as its default."""
    if name not in params:
        return default
    try:
        return type(default)(params[name])
    except ValueError:
        refuse(name, params[name], "a whole number" if isinstance(default, int) else "a number")


def _ids(words: str) -> tuple[int, ...]:
    if words == NOBODY:
        return ()
    return tuple(_value({"an id in colluding": word}, "an id in colluding", 0) for word in words.split())


def _message(entry: str) -> tuple[int, int | None]:
    """Read ROUND:PARTY, or ROUND:* for all messages of a round."""
    t, _, party = entry.partition(":")
    try:
        return int(t), None if party == "*" else int(party)
    except ValueError:
        refuse("an entry of eavesdropped", entry, "ROUND:PARTY, or ROUND:* for all parties")
