"""What a doctor found: one thing that was looked at, how it is, and whose fault it looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OURS, THEIRS, NETWORK, EITHER, EVERYONE = "ours", "theirs", "the network's", "ours or theirs", "everyone's"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, in words and figures; `fault` says whose it looks like unless all is well."""

    what: str
    level: Literal["fine", "note", "problem"]
    text: str
    state: str = ""
    """For a peer: fine, not there, timed out, ... in a word or two."""
    fault: str = ""
    figures: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        words = {"what": self.what, "level": self.level, "state": self.state or self.level, "text": self.text}
        return words | {"fault": self.fault or None} | dict(self.figures)


def fine(what: str, text: str, **figures: float) -> Finding:
    """Return that all is well."""
    return Finding(what, "fine", text, figures=figures)


def wrong(what: str, text: str, **figures: float) -> Finding:
    """Return a problem of our own."""
    return Finding(what, "problem", text, fault=OURS, figures=figures)
