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


RELAY = "wss://relay.example.org/inca"


def test_who_is_reached_through_a_relay_is_counted_before_the_start_and_named_when_that_changes() -> None:
    told = Told()
    assert told("connected", peer="bert", relay=RELAY) == (
        "2 of 5 here (1 through a relay), cleo, dora, emil missing, starts in 40 s\n"
    )
    told.now = 101.0
    assert told("connected", peer="bert", relay=RELAY) == "" and told("connected", peer="cleo") == ""
    assert told("connected", peer="bert") == "bert is reached directly now\n"
    assert told("connected", peer="cleo", relay=RELAY) == f"cleo is reached through {RELAY} now\n"


@pytest.mark.parametrize("now", [60.0, 101.0])
def test_a_lost_registration_is_named_once_until_it_is_back(now: float) -> None:
    told = Told()
    told.now = now
    lost = {"relay": RELAY, "cause": "relay unreachable", "reason": "nothing answers there"}
    assert told("registered", relay=RELAY) == ""
    assert told("unregistered", **lost) == f"not registered at {RELAY}: nothing answers there\n"
    assert told("unregistered", **lost) == "" and told("registered", relay=RELAY) == f"registered at {RELAY} again\n"
    assert told("unregistered", **lost) != ""
    assert told("contested", relay=RELAY).startswith(f"{RELAY} refused a second process with our key")


def status(stage: str, **fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "round": 2,
        "rounds": 3,
        "open_offers": 1,
        "deposits": 5,
        "expected": 12,
        "percent": 47,
        "seconds_left": 9,
    }
    known |= {"keys": 2, "keys_needed": 7, "bytes_received": 48e6, "bytes_expected": 112e6}
    return known | {"stage": stage} | fields


def test_what_takes_long_is_told_in_a_line_that_is_replaced() -> None:
    told = Told(file=Terminal())
    told.now = 101.0
    assert told("status", **status("drawing")) == "drawing the noise of all rounds\n"
    assert told("round", round=2, of=3) and told("status", **status("rounds")) == ""
    told.now = 102.0
    first = told("status", **status("rounds"))
    assert first.startswith("\rshares of round 2 of 3 are under way, 1 of ours not confirmed yet; 48 of about 112 MB")
    second = told("status", **status("agreeing"))
    assert second.startswith("\rfinal messages: 5 of 12, 47 %, about 9 s left; ") and len(second) == len(first)
    assert told("stage", stage="opening") == "\nopening the sealed final messages\n"


def test_where_there_is_no_terminal_it_is_told_now_and_then_and_of_small_sessions_never() -> None:
    told = Told()
    told.now = 101.0
    told("stage", stage="agreeing")
    said = {}
    for told.now in range(101, 130):
        assert told("status", **status("agreeing", bytes_expected=1e5)) == ""
        said[told.now] = told("status", **status("agreeing"))
    assert [now for now, line in said.items() if line] == [111, 121]
    assert told("status", **status("agreeing", deposits=12)) == told("status", **status("serving")) == ""
    told.now = 140.0
    assert told("status", **status("opening")).startswith("2 of 7 keys are here that open 12 final messages; ")


@pytest.mark.parametrize("now", [60.0, 101.0])
def test_other_events_are_printed_with_their_fields(now: float) -> None:
    told = Told()
    told.now = now
    assert told("own loss", epsilon=0.5, allowed=1.0) == "own loss: epsilon 0.5, allowed 1\n"
    assert told("left", reason="too late") == "left: reason too late\n" and told("comes back") == "comes back\n"
    assert told("decided", what="cohort", parties=5) == "agreed on who settles: 5 parties\n"
    assert told("ended") == told("proposes", decision=0, ballot=5) == ""
