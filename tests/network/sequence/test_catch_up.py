"""Over real TLS, those who lack an outcome get it from those who have it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from helpers.outcome_logs import BEACON, A, B, C, D, Outcomes, digest_of, log_of
from helpers.sequence_processes import SIZES, agree
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.transport_setup import NetworkAccess
from inca.network.sequence import catch_up
from inca.network.sequence.catch_up import (
    AverageSent,
    AverageWanted,
    CatchUp,
    CatchUpMessage,
    CatchUpResult,
    KnownOutcomes,
)
from inca.network.sequence.outcome_log import NO_RESULT, OutcomeLog, to_bytes

PATIENCE_S = 60.0


class Scene:
    """Parties of a roster, each with a log."""

    def __init__(self, folder: Path, logs: list[Outcomes]) -> None:
        self.roster: Roster = agree(folder, lead=100.0)
        self.identities = [Identity.read(folder / str(i)) for i in range(len(SIZES))]
        self.logs = [log_of(folder / str(i) / "course", outcomes) for i, outcomes in enumerate(logs)]

    def catch_up(
        self,
        number: int,
        done: Callable[[list[CatchUpResult]], bool],
        kinds: dict[int, type[CatchUp]] | None = None,
    ) -> list[CatchUpResult]:
        """Let all of them catch up before session `number` until it is done; some may be of another kind."""
        parties = [
            (kinds or {}).get(i, CatchUp)(self.roster, i, outcome_log, number)
            for i, outcome_log in enumerate(self.logs)
        ]

        async def hold() -> None:
            until = time.time() + 2.0 * PATIENCE_S
            tasks = [
                asyncio.create_task(party.hold(identity, until, NetworkAccess()))
                for party, identity in zip(parties, self.identities, strict=True)
            ]
            async with asyncio.timeout(PATIENCE_S):
                while not done([party.result for party in parties]):
                    await asyncio.sleep(0.02)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(hold())
        return [party.result for party in parties]


def test_who_lacks_outcomes_gets_them_and_nobody_else_asks(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A, None, C], [A, None, C], [A], [], [A, None, None]])
    results = scene.catch_up(4, lambda results: all(result.adopted_from is not None for result in results[2:]))
    assert all(log.outcomes[:3] == scene.logs[0].outcomes for log in scene.logs)
    assert [known.standard_error for log in scene.logs if (known := log.result(3))] == [pytest.approx(0.3)] * 5
    assert [result.adopted_from is not None for result in results] == [False, False, True, True, True]
    assert [bool(result.peers) for result in results] == [False, False, True, True, True]
    # Only the last one had noted, without a result, what others had a result of: its program must begin again.
    assert [result.changed for result in results] == [False, False, False, False, True]


def test_what_nobody_has_a_result_of_stays_open(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A], [A], [A], [A], [A]])
    results = scene.catch_up(3, lambda results: all(len(result.peers) == len(SIZES) - 1 for result in results))
    assert all(len(log) == 1 for log in scene.logs)
    assert all(result.adopted_from is None for result in results)


def test_the_later_last_result_wins_over_more_results(tmp_path: Path) -> None:
    """Party 3 alone has a result of session 2; more than half went on without it and have one of session 3."""
    scene = Scene(tmp_path, [[A, None, C], [A, None, C], [A, None, C], [A, B], [A, None, C]])
    results = scene.catch_up(4, lambda results: results[3].adopted_from is not None)
    assert all(log.outcomes == [digest_of(A), NO_RESULT, digest_of(C)] for log in scene.logs)
    assert results[3].changed and OutcomeLog(scene.logs[3].folder).result(2) is None


class Liar(CatchUp):
    """Says that it has a later result than it has, and gives another one."""

    def _send(self, peer: int, message: CatchUpMessage) -> None:
        if isinstance(message, KnownOutcomes):
            message = KnownOutcomes([*message.outcomes, digest_of(D)], message.ask)
        elif isinstance(message, AverageSent):
            message = AverageSent(message.number, to_bytes(B), None, BEACON)
        super()._send(peer, message)

    def _handle_request(self, peer: int, message: AverageWanted) -> None:
        self._send(peer, AverageSent(message.number, b"", None, b""))


def test_who_does_not_have_what_it_says_is_not_believed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A, B], [A, B], [A], [A, B], [A, B]])
    everyone = {0, 1, 3, 4}  # the liar among them
    results = scene.catch_up(
        3, lambda results: results[2].peers == everyone and results[2].adopted_from is not None, kinds={1: Liar}
    )
    assert scene.logs[2].outcomes == [digest_of(A), digest_of(B)] and results[2].adopted_from != 1


class Inventor(CatchUp):
    """Has made up a later result, and gives it to whoever asks."""

    def _send(self, peer: int, message: CatchUpMessage) -> None:
        if isinstance(message, KnownOutcomes):
            message = KnownOutcomes([*message.outcomes, digest_of(D)], message.ask)
        super()._send(peer, message)

    def _handle_request(self, peer: int, message: AverageWanted) -> None:
        self._send(peer, AverageSent(message.number, to_bytes({1: A, 2: B, 3: D}[message.number]), None, BEACON))


def test_a_result_that_one_member_alone_has_made_up_is_not_believed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A, B], [A, B], [A, None], [A, B], [A, B]])
    results = scene.catch_up(
        4, lambda results: results[2].peers == {0, 1, 3, 4} and results[2].adopted_from is not None, kinds={1: Inventor}
    )
    assert scene.logs[2].outcomes == [digest_of(A), digest_of(B)] and len(results[2].vouched_by) >= 2


class Withholder(CatchUp):
    """Says that it has what it has, and does not give it."""

    def _handle_request(self, peer: int, message: AverageWanted) -> None:
        pass


def test_whoever_does_not_deliver_gives_way_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_PATIENCE", 0.0)
    scene = Scene(tmp_path, [[A], [A, B], [A, B], [A, B], [A, B]])
    kinds: dict[int, type[CatchUp]] = {1: Withholder}
    results = scene.catch_up(3, lambda results: results[0].adopted_from is not None, kinds)
    assert scene.logs[0].outcomes == [digest_of(A), digest_of(B)] and results[0].adopted_from != 1


class Answers(CatchUp):
    """Keeps what it would send."""

    def __init__(self, scene: Scene, number: int) -> None:
        super().__init__(scene.roster, 0, scene.logs[0], number)
        self.sent: list[CatchUpMessage] = []

    def _send(self, peer: int, message: CatchUpMessage) -> None:
        self.sent.append(message)


def test_more_outcomes_than_there_can_be_and_answers_to_nothing_are_not_taken(tmp_path: Path) -> None:
    party = Answers(Scene(tmp_path, [[A]]), 3)
    answer = msgspec.msgpack.encode(KnownOutcomes([digest_of(A), digest_of(B)], ask=False))
    party.received(1, answer)
    assert not party._known_by  # nobody asked
    party._ask_and_fetch()
    party.received(1, msgspec.msgpack.encode(KnownOutcomes(200_000 * [digest_of(A)], ask=False)))
    party.received(1, msgspec.msgpack.encode(KnownOutcomes(12 * [NO_RESULT], ask=False)))
    assert not party._known_by and not party.result.peers
    for _ in range(3):
        party.received(1, answer)
    party.received(1, msgspec.msgpack.encode(KnownOutcomes([digest_of(C)], ask=False)))
    assert party._known_by == {1: (digest_of(A), digest_of(B))}


def test_questions_in_a_loop_are_answered_once_or_twice_on_a_connection(tmp_path: Path) -> None:
    party = Answers(Scene(tmp_path, [[A, B]]), 3)
    for connection in range(1, 3):
        for _ in range(50):
            party.received(1, msgspec.msgpack.encode(KnownOutcomes([], ask=True)))
            party.received(1, msgspec.msgpack.encode(AverageWanted(2)))
        assert len(party.sent) <= 4 * connection
        party.up(1)


def test_a_party_alone_learns_nothing_and_does_not_hang(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[]])
    began = time.monotonic()
    party = CatchUp(scene.roster, 0, scene.logs[0], 2)
    result = asyncio.run(party.hold(scene.identities[0], time.time() + 0.5, NetworkAccess()))
    assert not result.peers and result.adopted_from is None and time.monotonic() - began < PATIENCE_S


def test_what_is_no_message_is_not_answered(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A]])
    party = CatchUp(scene.roster, 0, scene.logs[0], 2)
    for frame in (b"", b"\xc1", b"\x93\xa4tell\x91\xc4\x01x\xc3"):
        party.received(1, frame)  # would raise, as it has no transport to answer with
    assert not party._known_by
