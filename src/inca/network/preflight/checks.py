"""One thing that was checked before a session: how it is, and whose fault it looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OURS, THEIRS, NETWORK, EITHER, EVERYONE = "ours", "theirs", "the network's", "ours or theirs", "everyone's"


@dataclass(frozen=True)
class Check:
    """One thing that was checked, in words and figures."""

    what: str
    level: Literal["fine", "note", "problem"]
    text: str
    state: str = ""
    fault: str = ""
    figures: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        words = {"what": self.what, "level": self.level, "state": self.state or self.level, "text": self.text}
        return words | {"fault": self.fault or None} | dict(self.figures)


def fine(what: str, text: str, **figures: float) -> Check:
    """Return that all is well."""
    return Check(what, "fine", text, figures=figures)


def our_problem(what: str, text: str, **figures: float) -> Check:
    """Return a problem of our own."""
    return Check(what, "problem", text, fault=OURS, figures=figures)
