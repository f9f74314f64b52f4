"""Clocks are compared with some peers; what is measured decides, not how fast a machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from helpers.rosters import terms
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node import clock_check
from inca.network.node.clock_check import check_clocks
from inca.network.node.session_setup import SessionSetup
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.transport import ClockMeasurement, Transport

NAMES = ("anna", "bert", "cleo", "dora", "emil")
PEERS = (1, 2, 4)  # whom party 0 of five asks


class Peers:
    """Answers in place of a transport: at once, after a while, or never."""

    def __init__(self, offsets: dict[int, float], delay: float = 0.0, refusals: int = 0) -> None:
        self.offsets, self.delay, self.refusals = offsets, delay, refusals
        self.asked: list[int] = []

    async def measure(self, peer: int) -> ClockMeasurement:
        self.asked.append(peer)
        if self.asked.count(peer) <= self.refusals:
            raise Failure(FailureCause.REFUSED, "nothing listens").as_error()
        await asyncio.sleep(self.delay)
        if peer not in self.offsets:
            await asyncio.Event().wait()
        return ClockMeasurement(self.offsets[peer], 0.01)


@pytest.fixture(scope="module")
def cards() -> list[Any]:
    return [Identity.create(name).card(f"127.0.0.1:{7001 + i}") for i, name in enumerate(NAMES)]


def check(cards: list[Any], peers: Peers, left: float) -> tuple[dict[int, ClockMeasurement], list[tuple[str, Any]]]:
    """Compare clocks `left` seconds before it must be done; at most one second is allowed."""
    setup = SessionSetup(Roster("trial", terms(start=time.time() + 2.0 + left), tuple(cards)))
    log: list[tuple[str, Any]] = []
    work = check_clocks(
        cast(Transport, peers), setup, 0, lambda event, **fields: log.append((event, fields)), time.time
    )
    return asyncio.run(work), log


def test_all_are_asked_until_shortly_before_the_start(cards: list[Any]) -> None:
    peers = Peers(dict.fromkeys(PEERS, 0.1), refusals=2)
    measurements, log = check(cards, peers, left=60.0)
    assert set(measurements) == set(PEERS) and not log
    assert all(peers.asked.count(peer) == 3 for peer in PEERS)


def test_who_does_not_answer_is_not_waited_for_beyond_the_start(cards: list[Any]) -> None:
    measurements, log = check(cards, Peers({1: 0.0}), left=1.5)
    assert set(measurements) == {1} and not log
    measurements, log = check(cards, Peers({}), left=1.5)
    assert not measurements and [event for event, _ in log] == ["clocks not compared"]


@pytest.mark.parametrize("left", [0.0, pytest.param(-100.0, marks=pytest.mark.slow)])
def test_who_comes_late_waits_for_a_first_answer_however_slow(cards: list[Any], left: float) -> None:
    """A clock that is ahead says that it is late: that must not keep it from being compared."""
    measurements, _ = check(cards, Peers(dict.fromkeys(PEERS, 0.0), delay=1.5), left)
    assert set(measurements) == set(PEERS)
    with pytest.raises(InvalidInput, match=r"at most 1 s off .* got \+10\.000 s by those of bert, cleo, emil"):
        check(cards, Peers(dict.fromkeys(PEERS, -10.0), delay=1.5), left)
    measurements, _ = check(cards, Peers({2: 0.0}, refusals=2), left)  # and soon does without the others
    assert set(measurements) == {2}


def test_who_comes_late_and_is_alone_gives_up(cards: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_check, "_LATE_TIMEOUT_S", 0.5)
    measurements, log = check(cards, Peers({}, refusals=10**9), left=-1.0)
    assert not measurements and [event for event, _ in log] == ["clocks not compared"]


CASES: dict[str, tuple[dict[int, float], Callable[[list[tuple[str, Any]]], bool], bool]] = {
    "all right": ({1: 0.9, 2: -0.9, 4: 0.0}, lambda log: not log, False),
    "one wrong": ({1: 5.0, 2: 0.0, 4: 0.0}, lambda log: [fields["peer"] for _, fields in log] == [1], False),
    "we are wrong": ({1: 5.0, 2: 5.1, 4: 0.0}, lambda log: [fields["peer"] for _, fields in log] == [1, 2], True),
    "two wrong ones that do not agree": ({1: 5.0, 2: -40.0, 4: 0.0}, lambda log: len(log) == 2, False),
    "a third asked later is right": ({1: 5.0, 2: 5.1, 3: 0.0, 4: 0.0}, lambda log: len(log) == 2, False),
    "uncertain": ({1: 0.999, 2: 0.0, 4: 0.0}, lambda log: [fields["peer"] for _, fields in log] == [1], False),
}


@pytest.mark.parametrize("case", CASES)
def test_most_decide_whose_clock_is_wrong(case: str, cards: list[Any]) -> None:
    offsets, expected, refused = CASES[case]
    setup = SessionSetup(Roster("trial", terms(start=time.time() + 60.0), tuple(cards)))
    log: list[tuple[str, Any]] = []

    def log_event(event: str, **fields: Any) -> None:
        log.append((event, fields))

    work = check_clocks(cast(Transport, Peers(offsets)), setup, 0, log_event, time.time)
    if refused:
        with pytest.raises(InvalidInput, match=r"got -5\.100 s by those of bert, cleo"):
            asyncio.run(work)
    else:
        asyncio.run(work)
    assert expected(log)


class OtherSession(Peers):
    """Some peers are in another session."""

    def __init__(self, offsets: dict[int, float], other: set[int]) -> None:
        super().__init__(offsets)
        self.other = other

    async def measure(self, peer: int) -> ClockMeasurement:
        if peer in self.other:
            raise Failure(FailureCause.OTHER_SESSION, "it is in another session").as_error()
        return await super().measure(peer)


def test_a_party_with_another_roster_than_most_is_told_before_the_first_round(cards: list[Any]) -> None:
    sentence = r"differs from those of bert, emil: compare the session's id, .*roster show"
    with pytest.raises(InvalidInput, match=sentence):
        check(cards, OtherSession({2: 0.0}, {1, 4}), left=1.5)
    measurements, log = check(cards, OtherSession({2: 0.0, 4: 0.0}, {1}), left=1.5)
    assert set(measurements) == {2, 4} and log == [("other roster", {"peer": 1})]


def test_one_member_that_says_it_is_in_another_session_drives_nobody_out(cards: list[Any]) -> None:
    """The others are not there yet: it alone has answered."""
    measurements, log = check(cards, OtherSession({}, {1}), left=1.5)
    assert not measurements and log[0] == ("other roster", {"peer": 1})


def test_a_party_that_comes_back_to_a_session_that_others_have_left_is_not_told_that_its_roster_is_wrong(
    cards: list[Any],
) -> None:
    """In a sequence they are in the next session already, which is another one."""
    measurements, log = check(cards, OtherSession({2: 0.0}, {1, 4}), left=-5.0)
    assert set(measurements) == {2} and log == []
