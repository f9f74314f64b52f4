"""Parties that come back, with their journal or without: the same noise serves only the same messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.ledgers import missing
from helpers.parties import COIN_FLIP, PACED, START, N, Room, offer_of, reasons, snapshot
from inca.network.protocol.ledger import Began, Left, Opened, Seeded, Signed
from inca.network.protocol.messages import (
    Accept,
    Ack,
    Ask,
    Items,
    Nudge,
    Offer,
    Prepare,
    Promise,
    Seen,
    Voided,
    Yes,
    bits,
    encode,
)
from inca.network.protocol.party import Party
from inca.network.protocol.session import SessionConfig

# --- restarts -----------------------------------------------------------------------------------------------------


def writes(session: SessionConfig) -> int:
    return Room(session).open().run().writes


SMALL = replace(PACED, parties=4, rounds=2, receivers=1)


@pytest.mark.parametrize("written", [True, False], ids=["after the write", "before the write"])
def test_a_crash_at_any_write_harms_nobody(written: bool) -> None:
    count = writes(SMALL)
    assert count > 30
    for number in range(count):
        room = Room(SMALL)
        room.fatal = (number, written)
        room.open().run()
        stages = {i: (party.stage, party.reason) for i, party in room.parties.items()}
        assert all(stage == "over" for stage, _ in stages.values()), f"write {number}: {stages}"
        result = room.check(but=room.killed)  # it may come back when all others are done and gone
        assert not any(isinstance(record, Left) for journal in room.journals.values() for record in journal)
        assert len(result.finals) >= 3, f"write {number}: {result.finals}"
        # Each party offers the same bytes whenever it offers, and says one final message.
        said: dict[tuple[int, str, int, int], set[bytes]] = {}
        for i, message in room.said:
            if isinstance(message, Offer):
                said.setdefault((i, "offer", message.round, message.slot), set()).add(encode(message))
            elif isinstance(message, Items):
                for item in message.items:
                    said.setdefault((item.party, item.kind, 0, 0), set()).add(item.body)
        assert all(len(versions) == 1 for versions in said.values()), f"write {number}"


def test_a_crash_at_any_write_of_a_session_with_a_coin_flip() -> None:
    session = replace(SMALL, seed=None)
    failed = []
    for number in range(writes(session)):
        room = Room(session)
        room.fatal = (number, True)
        room.open().run()
        assert not any(missing(room.ledgers()))
        if reasons(room):
            failed.append(number)
        else:
            room.check(but=room.killed)
    assert not failed


def test_whoever_comes_back_with_the_seed_still_reveals_its_secret() -> None:
    room = Room(COIN_FLIP)
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items) and any((item.kind, item.party) == ("reveal", 2) for item in message.items)
    )
    room.open().run(until=START - 2.0)
    assert room.parties[2].ledger.seed is not None and room.parties[0].ledger.seed is None
    room.kill(2)
    room.drops = lambda sender, receiver, message: False
    room.recover(2)
    room.run()
    assert not reasons(room)


def test_a_lost_journal_is_noticed() -> None:
    room = Room(PACED).open().run(until=START + 1.0)
    assert room.parties[1].ledger.round == 3
    room.kill(1)
    room.journals[1] = []
    room.open(1)
    room.run()
    assert room.parties[1].stage == "left"
    assert "the journal is lost or behind: party" in room.parties[1].reason
    assert isinstance(room.journals[1][-1], Left) and not any(isinstance(r, Began) for r in room.journals[1])
    assert set(room.results) == {0, 2, 3, 4} and room.results[0].finals == {0, 2, 3, 4}


def test_a_journal_that_was_rolled_back_is_noticed() -> None:
    for dropped in range(1, 6):
        room = Room(PACED).open().run(until=START + 1.0)
        room.kill(1)
        whole = room.journals[1]
        room.journals[1] = whole[:-dropped]
        forgotten = [record.round for record in whole[-dropped:] if isinstance(record, Began)]
        room.recover(1)
        room.run()
        assert (room.parties[1].stage == "left") == bool(forgotten), f"{dropped} records dropped"
        if forgotten:
            assert f"has seen an offer of round {forgotten[0]} that it lacks" in room.parties[1].reason
            assert room.results[0].finals == {0, 2, 3, 4}
            # It has said nothing in this incarnation that depends on its value.
            assert room.journals[1][len(whole) - dropped :] == [Left(room.parties[1].reason)]


def test_whoever_left_stays_away() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.perform(1, room.parties[1].leave(room.now, "enough"))
    room.kill(1)
    room.recover(1)
    assert room.parties[1].stage == "left" and room.parties[1].reason == "enough" and room.parties[1].finished
    before = snapshot(room.parties[1])
    assert not room.hand(0, 1, Ask()).sends
    assert snapshot(room.parties[1]) == before
    assert room.run().results[0].finals == {0, 2, 3, 4}


def test_a_restart_in_the_end_says_the_same_things() -> None:
    for stage in ("digests", "finals", "agreeing", "serving"):
        room = Room(PACED).open().at_stage(1, stage)
        signed = dict(room.parties[1].ledger.signed)
        room.kill(1)
        room.recover(1)
        assert room.run().parties[1].stage == "over"
        for kind, item in signed.items():
            assert room.parties[1].ledger.signed[kind] == item
        kinds = [record.item.kind for record in room.journals[1] if isinstance(record, Signed)]
        assert len(kinds) == len(set(kinds))


# --- without a journal --------------------------------------------------------------------------------------------


def reborn(room: Room, i: int) -> Party:
    """Party i loses its disk, and comes back; whoever might tell it so is out of reach."""
    room.kill(i)
    room.journals[i] = []
    room.drops = lambda sender, receiver, message: i in (sender, receiver)
    room.open(i)
    assert room.parties[i].stage == "asking"
    return room.parties[i]


def test_a_party_without_a_journal_takes_no_part_in_the_consensus() -> None:
    """Three of five accepted; one of them forgets it, and makes a second majority with the other two."""
    room = Room(PACED)
    room.open().at_stage(1, "agreeing")
    everyone = bits(set(range(N)), N)
    accepted = room.parties[1].receive(room.now, 0, Accept(10, everyone, everyone))
    assert (0, Yes(10)) in accepted.sends
    party = reborn(room, 1)
    effects = party.receive(room.now, 4, Prepare(14))
    assert not [message for _, message in effects.sends if isinstance(message, Promise)]


def witnessed(room: Room, answers: set[int]) -> None:
    """Let some witnesses say that they have seen nothing, and let a period pass."""
    for peer in answers:
        room.hand(peer, 1, Seen([], 2, 0))
    room.run(until=room.now + room.session.period + 0.1)


def test_a_party_without_a_journal_waits_for_all_witnesses() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    witnessed(room, set(sorted(party._components.joining.unanswered)[:1]))
    assert party.stage == "asking" and not any(isinstance(record, Began) for record in room.journals[1])


def test_a_party_without_a_journal_waits_for_all_witnesses_after_another_crash_too() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    reborn(room, 1)
    assert [type(record) for record in room.journals[1]][:2] == [Opened, Seeded]
    room.kill(1)
    room.recover(1)
    party = room.parties[1]
    witnessed(room, set(sorted(party._components.joining.unanswered)[:1]))
    assert not any(isinstance(record, Began) for record in room.journals[1])


def test_whoever_lost_its_journal_vouches_for_nobody_while_it_asks() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    assert not [message for _, message in party.receive(room.now, 0, Ask()).sends if isinstance(message, Seen)]


def test_whoever_came_late_vouches_for_no_round_before_it_came() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.run(until=START + 1.0)
    answers = [message for _, message in room.hand(0, 3, Ask()).sends if isinstance(message, Seen)]
    assert [answer.since for answer in answers] == [3]
    fresh = reborn(room, 1)
    earlier = {peer for t in (1, 2) for peer in PACED.topology(b"p" * 32).receivers[t][1]}
    for peer in sorted(fresh._components.joining.unanswered):
        room.hand(peer, 1, Seen([], 3, 3))
    assert earlier and fresh._components.joining.unanswered == earlier  # those would have seen something


def test_whoever_came_late_has_no_vote_before_or_after_another_crash() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.at(START + 1.3, room.kill, 3)
    room.at(START + 1.3, room.recover, 3)
    result = room.run().check()
    assert 3 in result.finals and room.ledgers()[3].account.present[-1] == PACED.rounds
    assert not [message for i, message in room.said if i == 3 and isinstance(message, Prepare | Promise | Accept | Yes)]
    assert room.ledgers()[3].promised == 0 and room.ledgers()[3].accepted is None


def test_a_majority_of_late_parties_agrees_on_nothing() -> None:
    room = Room(replace(PACED, rounds=6)).open(0, 1)
    room.at(START + 0.9, room.open, 2, 3, 4)
    room.run()
    assert not room.results and not any(missing(room.ledgers()))
    assert all(ledger.promised == 0 for ledger in room.ledgers()[2:])


def test_two_parties_without_journals_do_not_vouch_for_each_other() -> None:
    """Only the receiver of party 3's first offer has seen it, and loses its disk as well: no fresh noise may go out."""
    room = Room(PACED).open().run(until=START + 0.1)
    receiver = PACED.topology(b"p" * 32).receivers[1][3][0]
    assert (1, 3, 0) in room.parties[receiver].ledger.decisions
    for i in (3, receiver):
        room.kill(i)
        room.journals[i] = []
    room.open(receiver, 3).run()
    assert not any(isinstance(record, Began) for record in room.journals[3])


def test_a_witness_tells_of_offers_that_wait_for_their_round() -> None:
    """Its payload was seen, and will be credited in its round: whoever made it and has forgotten it must leave."""
    room = Room(PACED).open().run(until=START + 0.1)
    t, sender, slot = next(
        (t, sender, slot)
        for t in range(2, PACED.rounds + 1)
        for sender, slot in PACED.topology(b"p" * 32).senders[t][2]
    )
    room.hand(sender, 2, offer_of(room, t, sender, slot))  # the sender is ahead
    assert room.parties[2].ledger.round == 1
    answers = [message for _, message in room.hand(sender, 2, Ask()).sends if isinstance(message, Seen)]
    assert [(t, slot) in answer.offers for answer in answers] == [True]


def test_an_offer_of_an_earlier_incarnation_is_never_taken_back_as_unsent() -> None:
    """The receiver nudged, then got the offer of the sender's earlier incarnation; the nudge comes to the new one."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: receiver == 1 and isinstance(message, Ack | Voided)
    room.open().run(until=START + 0.1)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    room.kill(1)
    room.recover(1)
    room.run(until=START + 0.2)
    assert room.parties[1].stage == "rounds" and (1, 0) in room.parties[1].ledger.open
    assert not any(missing(room.ledgers()))
    again = [
        message
        for to, message in room.parties[1].receive(room.now, receiver, Nudge(1)).sends
        if isinstance(message, Offer)
    ]
    for offer in again:
        room.perform(1, room.parties[1].unsent(room.now, offer))
    assert not any(missing(room.ledgers()))
