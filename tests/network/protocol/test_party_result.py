"""The end of a session: who withholds, what is agreed on, and that there always is an end."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from helpers.parties import COIN_FLIP, PACED, START, N, Room, foreign
from inca.network.protocol.ledger import Began
from inca.network.protocol.messages import Items, Message, Prepare, bits
from inca.network.protocol.signed_items import Final, Vote

# --- withholding --------------------------------------------------------------------------------------------------


def published(room: Room) -> set[int]:
    """Whose final message left its owner's machine, whoever has it."""
    parties = set()
    for _, message in room.said:
        for item in message.items if isinstance(message, Items) else ():
            if item.kind == "final" and msgspec.msgpack.decode(item.body, type=Final).payload:
                parties.add(item.party)
    return parties


def test_a_party_whose_loss_is_too_large_withholds_and_the_others_go_on() -> None:
    room = Room(PACED)
    room.refusals[2] = "its loss would be 7.1, above 5"
    result = room.open().run().check()
    assert result.finals == published(room) == {0, 1, 3, 4}
    assert room.parties[2].reason == "its loss would be 7.1, above 5" and not room.parties[0].reason
    assert result.realized.execution.published.tolist() == [True, True, False, True, True]
    assert result.realized.execution.presence.row(PACED.rounds).all()


def test_too_many_who_withhold_leave_no_result() -> None:
    room = Room(replace(PACED, min_participants=4))
    room.refusals = {1: "too much", 2: "too much"}
    room.open().run()
    assert not room.results
    for i in (0, 3, 4):
        assert room.parties[i].reason == "a result needs at least 4 final messages, got 3; too much"
    assert room.parties[1].reason == "too much"


def test_a_cohort_below_the_minimum_releases_nothing() -> None:
    room = Room(replace(PACED, min_participants=4)).open()
    for i in (1, 2):
        room.at(START + 1.0, room.kill, i)
    room.run()
    assert not published(room) and not room.results
    for i in (0, 3, 4):
        assert room.parties[i].stage == "over"
        assert room.parties[i].reason == "at least 4 parties must be there at the end, got 3"


def test_half_of_the_parties_agree_on_nothing() -> None:
    room = Room(replace(PACED, parties=4)).open()
    for i in (1, 2):
        room.at(START + 1.5, room.kill, i)
    room.run()
    assert not room.results
    assert all(party.reason.startswith("no agreement") for party in room.parties.values())


def test_the_reason_for_withholding_outlives_a_restart() -> None:
    room = Room(PACED)
    room.refusals[2] = "its loss is too large"
    room.open().at_stage(2, "serving")
    assert room.parties[2].reason == "its loss is too large"
    room.kill(2)
    room.recover(2)
    assert room.run().parties[2].reason == "its loss is too large"


# --- the result ---------------------------------------------------------------------------------------------------


def test_a_party_that_may_not_take_part_leaves_before_the_first_round() -> None:
    room = Room(PACED)
    room.plans_refused[2] = "its loss would be too large"
    result = room.open().run().check()
    assert room.parties[2].stage == "left" and room.parties[2].reason == "its loss would be too large"
    assert result.finals == {0, 1, 3, 4} and not any(isinstance(record, Began) for record in room.journals[2])
    assert not [message for i, message in room.said if i == 2]  # nothing is sent before it is known


def cut_off() -> Room:
    """Party 1 is cut off from the others for a bit longer than it waits for an agreement, which they reach later."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Prepare)
    room.open().at_stage(1, "agreeing")
    begun = room.now

    def drops(sender: int, receiver: int, message: Message) -> bool:
        cut = 1 in (sender, receiver) and room.now < begun + 3.3
        return cut or (isinstance(message, Prepare) and room.now < begun + 0.6)

    room.drops = drops
    room.run(until=begun + 3.2)
    assert room.parties[1].result is None and room.parties[1].stage == "serving"
    return room.run()


def test_a_decision_that_comes_late_is_taken() -> None:
    assert set(cut_off().results) == set(range(N))


def test_whoever_has_the_result_late_gives_no_reason_for_having_none() -> None:
    assert not [party.reason for party in cut_off().parties.values() if party.reason]


def test_final_messages_count_only_with_their_digests() -> None:
    """A proposer may hold a final message and not the digest: large items travel in several messages."""
    party = Room(PACED).open().at_stage(1, "agreeing").parties[1]
    for i in range(N):
        party.signed_items.by_kind["final"].setdefault(i, foreign(PACED, i).sign("final", Final(bytes(24))))
    hearer = PACED.topology(b"p" * 32).receivers[PACED.rounds][4][0]  # nobody else has heard of party 4 in round T
    without = Vote(bits(set(range(N)) - {4, hearer}, N), bits(set(range(N)), N))
    party.signed_items.add(foreign(PACED, 0).sign("decision", without))
    assert party._components.finalization.apply_decision() and party.result is not None
    counted = set(np.flatnonzero(party.result.realized.execution.published).tolist())
    assert party.result.finals == counted


def test_wakeups_move_on_while_nobody_answers() -> None:
    """Alone in the world, in every stage: no busy loop, and an end."""
    for session in (PACED, COIN_FLIP, replace(PACED, min_round_duration=0.0)):
        room = Room(session)
        room.drops = lambda sender, receiver, message: True
        room.open().run(until=START + 40.0)
        assert all(party.finished and party.wakeup == float("inf") for party in room.parties.values())


def test_times_far_off_are_no_trouble() -> None:
    """A clock that is ahead by hours: everything is late at once, and nothing is called forever."""
    room = Room(PACED)
    room.now = START + 10_000.0
    room.open().run(until=START + 10_100.0)
    assert all(party.finished for party in room.parties.values())
