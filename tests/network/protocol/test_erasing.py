"""What is left of the secrets of cohorts on a party's disk, at any time and in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from helpers.ledgers import with_topup
from helpers.parties import PACED, START, N, Room, masks, noisy, secret
from helpers.trustee_keys import sealing, secrets_of
from inca.network.protocol.messages import Decisions, Items, Message, Prepare, Propose, Yes
from inca.network.protocol.records import Accepted, Decided, Erased, Secret

SEVEN = with_topup(replace(PACED, parties=7))


def states(room: Room, i: int) -> list[Secret]:
    """The secrets on a party's disk."""
    return [record for record in room.journals[i] if isinstance(record, Secret)]


def cohorts(room: Room, i: int) -> int:
    """How many cohorts a party knows of by its journal."""
    records = [record for record in room.journals[i] if isinstance(record, Decided)]
    return sum(record.decision.proposal.step == "cohort" for record in records)


def shows_key(room: Room, i: int) -> bool:
    items = [item for j, message in room.said if i == j and isinstance(message, Items) for item in message.items]
    return any(item.kind == "key" and item.party == i for item in items)


def test_secrets_are_durable_before_anything_is_sent() -> None:
    effects = Room(PACED).make(0).open(0.0, noisy(PACED, 0), masks(0), secret(0), sealing(0))
    assert [record for record in effects.records if isinstance(record, Secret)] == [Secret(0, secrets_of(0).state)]


@pytest.mark.parametrize("refusing", [(2,), (2, 5)])
def test_whoever_knows_of_a_smaller_cohort_has_erased_the_secrets_of_the_one_before(refusing: tuple[int, ...]) -> None:
    """Those who are in it and those who are not, from the first moment on."""
    room, seen = Room(SEVEN), set[int]()
    room.refusals = dict.fromkeys(refusing, "too much")
    room.open()
    for _ in room.steps(until=START + 60.0):
        for i in range(7):
            (kept,) = states(room, i)
            assert kept.cohort >= cohorts(room, i) - 1
            assert kept.state == secrets_of(i, kept.cohort).state
            seen.add(kept.cohort)
    assert room.check().realized.cohort == set(range(7)) - set(refusing) and seen == {0, 1}
    assert all(cohorts(room, i) == 2 for i in range(7))


def stuck(step: str) -> Callable[[int, int, Message], bool]:
    """Messages are lost so that this is never decided."""
    instance = {"cohort": 0, "commit": 1}[step]
    return lambda sender, receiver, message: isinstance(message, Prepare | Propose) and message.instance == instance


@pytest.mark.parametrize("step", ["cohort", "commit"])
def test_after_an_end_without_commit_nobody_keeps_a_secret(step: str) -> None:
    room = Room(PACED)
    room.drops = stuck(step)
    room.open().run()
    assert not room.results and all(party.stage == "over" for party in room.parties.values())
    for i, party in room.parties.items():
        assert not states(room, i) and room.journals[i][-1] == Erased() and party.ledger.secrets is None
        assert not shows_key(room, i) and not party.finalization.unfinished


@pytest.mark.parametrize("stage", ["rounds", "digests", "agreeing"])
def test_whoever_leaves_keeps_no_secret(stage: str) -> None:
    room = Room(PACED)
    room.drops = stuck("cohort")
    room.open().at_stage(2, stage)
    room.leave(2, "enough")
    assert not states(room, 2) and room.journals[2][-1] == Erased()


def test_a_restart_after_that_shows_no_key_and_makes_no_deposit() -> None:
    room = Room(PACED)
    room.drops = stuck("commit")
    room.open().run()
    before = [dict(ledger.own_items) for ledger in room.ledgers()]
    room.drops = lambda sender, receiver, message: False
    for i in range(N):
        room.kill(i)
    for i in range(N):
        room.recover(i)
    room.run(until=room.now + 30.0)
    assert [ledger.own_items for ledger in room.ledgers()] == before
    assert not any(shows_key(room, i) or states(room, i) for i in range(N))
    assert not room.results  # all have committed after all, and nobody can open it any more


# --- in doubt ---------------------------------------------------------------------------------------------------------


def in_doubt(room: Room) -> Room:
    """All have accepted commit, and nobody learns that it was decided."""
    room.drops = lambda sender, receiver, message: (
        (isinstance(message, Yes) and message.instance == 1)
        or (isinstance(message, Decisions) and len(message.decisions) + message.first > 1)
    )
    return room.open()


def test_whoever_has_accepted_commit_keeps_its_secrets_and_waits_until_it_knows_more() -> None:
    room = in_doubt(Room(PACED)).run(until=START + 30.0)
    for i, party in room.parties.items():
        assert any(isinstance(r, Accepted) and r.lock.proposal.step == "commit" for r in room.journals[i])
        assert party.stage == "serving" and party.finalization.unfinished and not party.finished
        assert states(room, i) == [Secret(0, secrets_of(i).state)] and not shows_key(room, i)
        assert "does not know whether that was decided" in party.reason


@pytest.mark.parametrize("restarted", [False, True])
def test_once_it_can_be_known_again_there_is_a_result(restarted: bool) -> None:
    room = in_doubt(Room(PACED)).run(until=START + 20.0)
    room.drops = lambda sender, receiver, message: False
    if restarted:
        for i in range(N):
            room.kill(i)
        for i in range(N):
            room.recover(i)
    room.run(until=START + 60.0)
    assert room.check().realized.cohort == set(range(N)) and len(room.results) == N
    assert all(party.stage == "over" and not party.finalization.unfinished for party in room.parties.values())
