"""The table of stages: that it is complete, and that what a row does not allow changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import get_args

import pytest

from helpers.parties import COIN_FLIP, PACED, START, Room, snapshot
from inca.errors import LocalProtocolError
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Have, Message, OfferProof, Prepare, Promise, Seen, Vote, Yes
from inca.network.protocol.party import Party
from inca.network.protocol.signed_items import KINDS
from inca.network.protocol.stage_rule import Stage, never
from inca.network.protocol.stages import STAGES

FIRST: Stage = "gathering"
NAMES: tuple[Stage, ...] = get_args(Stage)


def reachable(first: Stage) -> set[Stage]:
    """Return the stages that may follow a stage, sooner or later."""
    seen = set(STAGES[first].successors)
    while more := {successor for stage in seen for successor in STAGES[stage].successors} - seen:
        seen |= more
    return seen


def test_every_stage_has_a_row() -> None:
    assert tuple(STAGES) == NAMES


@pytest.mark.parametrize("stage", NAMES)
def test_a_row_is_complete(stage: Stage) -> None:
    rule = STAGES[stage]
    assert set(rule.successors) <= set(STAGES), "a successor without a row"
    assert stage == FIRST or stage in reachable(FIRST), "never reached"
    assert rule.terminal == (stage in ("over", "left"))
    if rule.terminal:
        assert rule.deadline is never and not rule.gossips
    else:
        # No wait without an end: a deadline, or the party's own loss, which the driver works out.
        assert rule.deadline is not never or stage == "assessing"
        assert {"over", "left"} & reachable(stage), "no way to the end"
    if rule.until_decision:
        assert {"agreeing", "assessing", "opening"} <= set(rule.successors)


def test_every_kind_of_item_is_gossiped_in_some_stage() -> None:
    assert {kind for rule in STAGES.values() for kind in rule.gossips} == set(KINDS)


# --- walks --------------------------------------------------------------------------------------------------------


def walk(room: Room, i: int) -> list[Stage]:
    """Let party i go to its end; return the stages it is seen in."""
    seen: list[Stage] = []
    for _ in room.steps(until=START + 60.0):
        if i in room.parties and (not seen or seen[-1] != room.parties[i].stage):
            seen.append(room.parties[i].stage)
    return seen


def follows(stages: list[Stage]) -> bool:
    """Whether a party may have gone through these stages, and through others in between."""
    return all(after in reachable(before) for before, after in pairwise(stages))


def test_a_party_walks_through_the_table() -> None:
    for restarted in (False, True):
        room = Room(PACED).open()
        if restarted:
            room.kill(2)
            room.recover(2)
        stages = walk(room, 2)
        assert stages[0] == ("asking" if restarted else FIRST) and stages[-1] == "over" and follows(stages)


# --- what is not allowed ------------------------------------------------------------------------------------------


def party_in(stage: Stage) -> tuple[Room, Party]:
    """Party 2 of a session in which it stays in that stage for a while."""
    room = Room(PACED)
    match stage:
        case "gathering":
            room.open()
        case "asking":
            room.open().run(until=START + 0.5)
            room.kill(2)
            room.drops = lambda sender, receiver, message: 2 in (sender, receiver)
            room.recover(2)
        case "assessing":
            room.perform_assessments = False
            room.open().at_stage(2, stage)
        case "left":
            room.plans_refused[2] = "its loss would be too large"
            room.open().at_stage(2, stage)
        case "over":
            room.open().run()
        case _:
            room.drops = lambda sender, receiver, message: room.now > START + 1.0 and 0 in (sender, receiver)
            room.open().at_stage(2, stage)
    assert room.parties[2].stage == stage
    return room, room.parties[2]


def illegal_calls(room: Room, party: Party) -> dict[str, Callable[[], Effects]]:
    """The driver's calls that the stage does not wait for."""
    calls: dict[str, Callable[[], Effects]] = {}
    if party.stage != "gathering" or party.joining.may_begin:
        calls["planned"] = partial(party.planned, room.now, "for a reason")
    calls["receive"] = partial(party.receive, room.now, party.me, Seen([], 1, 0, []))
    calls["recover"] = partial(party.recover, room.now, [])
    return calls


def meaningless(stage: Stage) -> list[Message]:
    """Messages that mean nothing in a stage."""
    messages: list[Message] = [
        Seen([OfferProof(1, bytes(8), bytes(32), b"")], 3, 0, []),
        Prepare(0, 5),
        Promise(0, 12, None, b""),
        Vote(0, 12, b""),
        Yes(0, 12, b""),
        Have({}, 0, True),
    ]
    return [message for message in messages if isinstance(message, STAGES[stage].ignores)]


@pytest.mark.parametrize("stage", NAMES)
def test_what_a_stage_does_not_allow_changes_nothing(stage: Stage) -> None:
    room, party = party_in(stage)
    before = snapshot(party)
    for name, call in illegal_calls(room, party).items():
        if party.finished and name == "planned":
            assert not call().records, name  # work of its own that is done when the party is gone
        else:
            with pytest.raises(LocalProtocolError):
                call()
        assert snapshot(party) == before, name
    for message in meaningless(stage):
        effects = party.receive(room.now, 0, message)
        assert not effects.records and snapshot(party) == before, message
        assert not [answer for to, answer in effects.sends if to == 0 and not isinstance(answer, Have)], message


def test_every_stage_ignores_something() -> None:
    for stage in NAMES:
        assert meaningless(stage), stage


def test_a_party_can_leave_in_every_stage_that_has_an_end() -> None:
    for stage in NAMES:
        if not STAGES[stage].terminal:
            room, party = party_in(stage)
            room.leave(party.me, "enough")
            assert party.stage == "left" and party.reason == "enough" and party.ledger.left == "enough"


def test_the_coin_flip_is_talked_about_until_the_seed_is_known() -> None:
    room = Room(COIN_FLIP).open(0, 1, 2, 3)
    party = room.parties[2]
    assert party.stage == FIRST and party._gossips
    room.open(4).run(until=START - 1.0)
    assert party.stage == FIRST and not party._gossips
