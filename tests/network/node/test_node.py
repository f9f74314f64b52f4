"""Which loss a node answers with and tells of, whatever was decided in the meantime."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import inca
from helpers.forked_processes import forked, say_core_limits, say_open_file_limits
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.booked_losses import BookedLoss, booked_losses
from inca.network.node.loss_check import LossCheck, LossChecker
from inca.network.node.node import Node, NodeOptions, SessionEnd
from inca.network.node.report import write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Lie, Result
from inca.network.protocol.messages import Goodbye, Item, Message, encode
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.session import WEIGHT
from inca.network.transport.failures import Failure, FailureCause

N = 4
IDENTITIES = [Identity.create(f"party-{i}") for i in range(N)]
CARDS = tuple(identity.card(f"127.0.0.1:{7001 + i}") for i, identity in enumerate(IDENTITIES))
SETUP = SessionSetup(Roster("trial", terms(seed=SEED, colluding=0.25), CARDS))
TOPOLOGY = SETUP.session.topology(bytes.fromhex(SEED))


def node(party: int = 0) -> Node:
    """Return a node whose state machine is one that only answers."""
    made_up: Any = Node(SETUP, IDENTITIES[party], Path("nowhere"), lambda: np.zeros(1))
    made_up._loss_checker = LossChecker(SETUP, bytes.fromhex(SEED), party)
    made_up._log = SimpleNamespace(log_event=lambda event, **fields: None)
    made_up._party = party_at_its_end()
    checked: Node = made_up
    return checked


def realized(*cohort: int) -> RealizedExecution:
    there = np.isin(np.arange(N), cohort)
    execution = inca.Execution(TOPOLOGY.schedule, SETUP.roster.terms.injection, cohort=there)
    return RealizedExecution(execution, ())


def result(*cohort: int) -> Result:
    return Result(np.array([1]), len(cohort) * WEIGHT, realized(*cohort), exact=True, beacon=bytes(32))


def party_at_its_end(**end: Any) -> SimpleNamespace:
    """What a node asks of its party when the session ends."""
    finalization = SimpleNamespace(**{"result": None, "reason": "", "unfinished": False, "lie": None} | end)
    ledger = SimpleNamespace(seed=bytes.fromhex(SEED), topology=TOPOLOGY)
    return SimpleNamespace(outcome_known=True, finalization=finalization, ledger=ledger)


def test_the_loss_that_is_told_is_that_of_the_agreed_cohort() -> None:
    """Also if another was worked out before, or none since the party was restarted."""
    restarted: Any = node()
    expected = restarted._loss_checker.realized(realized(0, 1, 2))
    assert restarted._final_loss(result(0, 1, 2)) == expected
    asked: Any = node()
    asked._check_realized_loss(realized(0, 1, 2, 3))
    assert asked._final_loss(result(0, 1, 2)) == expected != asked._final_loss(result(0, 1, 2, 3))


def test_a_party_outside_the_cohort_does_not_know_its_loss() -> None:
    assert node(3)._final_loss(result(0, 1, 2)) is None


def test_without_a_result_the_largest_loss_is_told() -> None:
    asked: Any = node()
    assert asked._final_loss(None) is None
    checks = [LossCheck(epsilon, (1,), 8.0, 3, True) for epsilon in (1.0, 9.0, 2.0)]
    asked._loss_checker.checks = {frozenset({0, i}): check for i, check in enumerate(checks, 1)}
    assert asked._final_loss(None) == checks[1]


def test_a_result_that_comes_after_the_party_has_given_up_is_told_too() -> None:
    """While it serves others, a decision may still reach it."""
    told: list[SessionEnd] = []
    ending: Any = node()
    ending._on_ended = told.append
    late_result = result(0, 1, 2)
    ending._party = party_at_its_end()
    for outcome_known, so_far, expected in (
        (False, None, 0),
        (True, None, 1),
        (True, None, 1),
        (True, late_result, 2),
        (True, late_result, 2),
    ):
        ending._party.outcome_known, ending._party.finalization.result = outcome_known, so_far
        asyncio.run(ending._tell_end())
        assert len(told) == expected
    assert told[0].result is None and told[1].result is not None and told[1].loss_check is not None


# --- the books never charge less than what was checked ----------------------------------------------------------------

AGREED, CHECKED = SETUP.roster.terms.epsilon, LossChecker(SETUP, bytes.fromhex(SEED), 0).realized
LIE = Lie(3, (Item("deposit", 3, b"", b""), Item("key", 1, b"", b""), Item("digest", 1, b"", b"")))


def booked(folder: Path, ending: Any, **end: Any) -> BookedLoss:
    """Let a node tell its end, and return what its session is booked with."""
    place = folder / "session"
    place.mkdir()
    (place / "status.json").write_text('{"round": 3}')
    planned = {"event": "planned loss", "allowed": AGREED, "delta": SETUP.roster.terms.delta}
    (place / "log.jsonl").write_text(json.dumps(planned) + "\n" + '{"event": "round", "round": 1}\n')
    ending._party = party_at_its_end(**end)
    ending._on_ended = lambda told: write_report(place, SETUP, 0, told)
    asyncio.run(ending._tell_end())
    (loss,) = booked_losses(folder)
    return loss


@pytest.mark.parametrize("restarted", [False, True])
def test_a_result_costs_what_was_checked_before_the_deposit_also_after_a_restart(
    tmp_path: Path, restarted: bool
) -> None:
    """Not what another cohort would have cost; a party that was restarted works it out again."""
    checked: Any = node()
    if restarted:
        checked._loss_checker = None
    else:
        for cohort in ((0, 1, 2, 3), (0, 1, 2)):
            checked._check_realized_loss(realized(*cohort))
    expected = CHECKED(realized(0, 1, 2)).epsilon
    loss = booked(tmp_path, checked, result=result(0, 1, 2))
    assert loss.epsilon == expected > CHECKED(realized(0, 1, 2, 3)).epsilon
    assert loss.basis == "own loss, against all coalitions"
    assert (tmp_path / "session" / "certificate.json").exists()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("end", [{"unfinished": True}, {"lie": LIE}, {}], ids=["unfinished", "a lie", "no agreement"])
def test_an_end_without_a_result_costs_what_was_agreed_whatever_was_checked(
    tmp_path: Path, restarted: bool, end: dict[str, Any]
) -> None:
    """Others may have the result, or the liar does."""
    checked: Any = node()
    if not restarted:
        checked._check_realized_loss(realized(0, 1, 2))
    loss = booked(tmp_path, checked, **end)
    assert loss.epsilon == AGREED >= CHECKED(realized(0, 1, 2)).epsilon
    assert (loss.ended is None) is bool(end.get("unfinished"))


def test_a_loss_above_what_was_agreed_is_booked_though_there_is_no_result(tmp_path: Path) -> None:
    checked: Any = node()
    checked._loss_checker.checks = {frozenset({0, 1}): LossCheck(2.0 * AGREED, (1,), AGREED, 3, True)}
    assert booked(tmp_path, checked, unfinished=True).epsilon == 2.0 * AGREED


def test_the_certificate_is_worked_out_when_the_result_is_there_and_while_others_are_served() -> None:
    """Whoever waits for the party need not wait for what only its own books need."""
    serving: Any = node()
    serving._party = party_at_its_end()
    may_end, told = threading.Event(), threading.Event()

    def slowly(end: SessionEnd) -> None:
        may_end.wait()
        told.set()

    serving._on_ended = slowly

    async def serve() -> None:
        serving._begin_to_tell()
        await asyncio.sleep(0)  # it has begun
        serving._begin_to_tell()  # and the party goes on
        assert not told.is_set()
        may_end.set()
        await serving._telling

    asyncio.run(serve())
    assert told.is_set()


def test_a_report_that_cannot_be_written_stops_the_node() -> None:
    serving: Any = node()
    serving._party = party_at_its_end()

    def full(end: SessionEnd) -> None:
        raise OSError("no space left on device")

    serving._on_ended = full

    async def serve() -> None:
        while True:
            serving._begin_to_tell()
            await asyncio.sleep(0.01)

    with pytest.raises(OSError, match="no space left"):
        asyncio.run(serve())


# --- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "outcome_known", "probed"),
    [
        (FailureCause.LOST, False, [2]),
        (FailureCause.UNRESPONSIVE, False, [2]),
        (FailureCause.IDLE, False, []),  # nobody had anything to say, which is no reason to connect again
        (FailureCause.LOST, True, []),
    ],
)
def test_a_lost_connection_is_tried_again_unless_it_was_idle_or_the_end_is_known(
    cause: FailureCause, outcome_known: bool, probed: list[int]
) -> None:
    losing: Any = node()
    sent: list[int] = []
    losing._party = SimpleNamespace(outcome_known=outcome_known)
    losing._transport = SimpleNamespace(send=lambda peer, frame: sent.append(peer))
    losing.lost(2, Failure(cause, "the connection to party 2 has ended"))
    assert sent == probed


def test_what_is_no_message_counts_against_its_sender_and_what_waits_of_a_refused_peer_is_dropped() -> None:
    hearing: Any = node()
    reported: list[tuple[int, str]] = []
    heard: list[tuple[int, Message]] = []
    refused: set[int] = set()
    hearing._transport = SimpleNamespace(
        report_violation=lambda peer, what: reported.append((peer, what)), refuses=refused.__contains__
    )

    def receive(now: float, peer: int, message: Message) -> Effects:
        heard.append((peer, message))
        return Effects()

    hearing._party = SimpleNamespace(receive=receive)
    for peer in (1, 2):
        hearing.received(peer, encode(Goodbye()))
    hearing.received(2, b"\xc1")
    assert [peer for peer, _ in reported] == [2] and "invalid message" in reported[0][1]
    refused.add(2)
    for event in hearing._events:
        assert event(0.0).records == []
    assert heard == [(1, Goodbye())]


@pytest.mark.parametrize(("outcome_known", "unfinished"), [(True, True), (True, False), (False, True)])
def test_only_who_waits_for_an_outcome_after_all_has_a_limit_to_its_patience(
    outcome_known: bool, unfinished: bool
) -> None:
    """In a sequence the next session comes, and then others are asked for the outcome."""
    made_up: Any = Node(SETUP, IDENTITIES[0], Path("nowhere"), lambda: np.zeros(1), NodeOptions(unfinished_until=7.0))
    made_up._party = party_at_its_end(unfinished=unfinished)
    made_up._party.outcome_known = outcome_known
    assert made_up._patience_ends == (7.0 if outcome_known and unfinished else math.inf)
    made_up._options = Node(SETUP, IDENTITIES[0], Path("nowhere"), lambda: np.zeros(1))._options
    assert made_up._patience_ends == math.inf


def test_a_process_that_takes_part_leaves_no_core_dump() -> None:
    """In a process of its own: the limit cannot be raised again."""
    with forked(say_core_limits) as (_, heard):
        assert heard.recv() == (0, 0)


LIMITS = {
    (1024, 4096): "(2064, 4096)",  # a second connection to each of a thousand, for a while
    (1024, 1500): "(1500, 1500)",
    (3000, 4096): "(3000, 4096)",
    (512, 512): "a session of 1000 parties needs about 1064 open files, and only 512 are allowed here: ",
}


def test_a_process_may_hold_a_connection_to_every_peer_or_refuses() -> None:
    """In a process for each pair of limits, as the larger one cannot be raised again."""
    for limits, expected in LIMITS.items():
        with forked(say_open_file_limits, limits, 1000) as (_, heard):
            assert heard.recv().startswith(expected)
