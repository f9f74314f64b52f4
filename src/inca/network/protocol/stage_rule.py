"""What a row of the stage table says (`stages`)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from types import UnionType
from typing import TYPE_CHECKING, Literal, TypeAlias

from inca.network.protocol.messages import Message, Seen
from inca.network.protocol.signed_items import Kind

if TYPE_CHECKING:
    from inca.network.protocol.party import Party

Stage = Literal[
    "gathering", "asking", "rounds", "digests", "agreeing", "assessing", "opening", "serving", "over", "left"
]
Time: TypeAlias = "Callable[[Party], float]"
Action: TypeAlias = "Callable[[Party, float], None]"


def never(_: Party) -> float:
    """Return a time that does not come."""
    return inf


def at_once(_: Party) -> float:
    """Return a time that has come."""
    return -inf


def periods(count: float) -> Time:
    """Return the time `count` periods after the beginning of the stage."""
    return lambda party: party.entered + count * party.session.period


def retry_time(party: Party) -> float:
    """Return when that which has no answer is sent again."""
    return party.retry_at


@dataclass(frozen=True)
class StageRule:
    """One row of the table: a stage."""

    successors: tuple[Stage, ...]  # none if it is the last; the first is the usual one
    deadline: Time = never  # when it ends at the latest
    earliest: Time = at_once  # before this it does not end early
    waits_for: Callable[[Party], AbstractSet[int]] = field(default=lambda party: frozenset())  # whose word
    grace: Time = at_once  # until when those who are gone are waited for, too
    until_decision: bool = False  # whether it ends when something is decided
    then: Callable[[Party, float], Stage] | None = None  # done at its end; says which successor follows
    enter: Action = field(default=lambda party, now: None)  # done when it begins
    work: Action = field(default=lambda party, now: None)  # done while it lasts, when it is due
    due: Time = never
    gossips: tuple[Kind, ...] = ()  # signed items that parties in it lack; without any, it does not talk about items
    gossips_while: Callable[[Party], bool] = field(default=lambda party: True)
    ignores: type[Message] | UnionType = Seen  # messages that mean nothing in it
    logged: bool = True  # its beginning; rounds and the reason for leaving are logged by themselves

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return not self.successors
