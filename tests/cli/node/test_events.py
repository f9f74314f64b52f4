"""What a node says while it runs."""

from __future__ import annotations

import io
from typing import Any

import pytest

from inca.cli.node.events import EventPrinter

NAMES = ["anna", "bert", "cleo", "dora", "emil"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Told:
    """A printer at a time that passes, for anna, before a start at 100."""

    def __init__(self, names: list[str] = NAMES, file: io.StringIO | None = None) -> None:
        self.now, self.file = 60.0, file or io.StringIO()
        self._printer = EventPrinter(names, "anna", 100.0, file=self.file, clock=lambda: self.now)

    def __call__(self, event: str, **fields: Any) -> str:
        """Return what one event prints."""
        before = len(self.file.getvalue())
        self._printer({"time": self.now, "event": event, **fields})
        return self.file.getvalue()[before:]


def test_before_the_start_one_line_says_who_is_here_and_who_is_missing() -> None:
    told = Told()
    assert told("listens", session="ab") == "1 of 5 here, bert, cleo, dora, emil missing, starts in 40 s\n"
    for peer in ("bert", "cleo"):
        told("connected", peer=peer)
    told.now = 65.0
    assert told("connected", peer="dora") == "4 of 5 here, emil missing, starts in 35 s\n"
    for _ in range(25):  # it is tried again and again
        assert told("down", peer="emil", cause="refused", reason="nobody listens") == ""
    assert told("connected", peer="emil") == "5 of 5 here, starts in 35 s\n"
    assert told("lost", peer="bert", cause="lost", reason="closed") == "4 of 5 here, bert missing, starts in 35 s\n"


def test_an_unfinished_session_says_what_to_do() -> None:
    told = Told()
    said = told("unfinished", reason="1 more of bert must come back")
    assert said == "unfinished: 1 more of bert must come back; leave this party running, or start it again\n"


def test_of_many_missing_some_are_named() -> None:
    told = Told([*NAMES, "fred", "gina", "hugo"])
    assert told("listens") == "1 of 8 here, bert, cleo, dora, emil and 3 more missing, starts in 40 s\n"


def test_on_a_terminal_the_line_is_replaced() -> None:
    told = Told(file=Terminal())
    first = told("listens")
    assert first == "\r1 of 5 here, bert, cleo, dora, emil missing, starts in 40 s"
    second = told("connected", peer="emil")
    assert second.startswith("\r2 of 5 here, bert, cleo, dora missing, starts in 40 s") and len(second) == len(first)
    told.now = 100.0
    assert (
        told("round", round=1, of=9) == "\nround 1 of 9\n"
        and told("stage", stage="digests") == "comparing what was sent\n"
    )


def test_after_the_start_whoever_cannot_be_reached_is_named_once_until_it_is_back() -> None:
    told = Told()
    told.now = 101.0
    line = "emil cannot be reached: nobody listens at 10.0.0.5:7000\n"
    fields = {"peer": "emil", "cause": "refused", "reason": "nobody listens at 10.0.0.5:7000"}
    assert told("down", **fields) == line and told("down", **fields) == "" and told("lost", **fields) == ""
    assert told("connected", peer="emil") == "" and told("down", **fields) == line


@pytest.mark.parametrize("now", [60.0, 101.0])
def test_other_events_are_printed_with_their_fields(now: float) -> None:
    told = Told()
    told.now = now
    assert told("own loss", epsilon=0.5, allowed=1.0) == "own loss: epsilon 0.5, allowed 1\n"
    assert told("left", reason="too late") == "left: reason too late\n" and told("comes back") == "comes back\n"
    assert told("decided", what="cohort", parties=5) == "agreed on who settles: 5 parties\n"
    assert told("ended") == told("proposes", decision=0, ballot=5) == ""
