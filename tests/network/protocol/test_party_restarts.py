"""Parties that come back, with their journal or without: the same noise serves only the same messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from helpers.ledgers import missing, receiver_of
from helpers.parties import COIN_FLIP, PACED, START, Room, foreign, offer_of, reasons, snapshot
from inca.network.protocol.messages import (
    Accept,
    Ack,
    Ask,
    Decisions,
    Item,
    ItemProof,
    Items,
    Nudge,
    Offer,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Seen,
    Voided,
    Vote,
    Yes,
    encode,
)
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.party import Party
from inca.network.protocol.records import Accepted, Began, Decided, Erased, Left, Opened, Record, Secret, Seeded, Signed
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import WORDS, Key, Refusal, read

# --- restarts -----------------------------------------------------------------------------------------------------


def writes(session: SessionConfig) -> int:
    return Room(session).open().run().writes


def subject_of(item: Item) -> tuple[str, int, int]:
    """What an item is about: its party says one thing of it."""
    if item.kind == "key":
        return item.kind, read(item, Key).cohort, 0
    if item.kind in WORDS:
        word = read(item, Deposit) if item.kind == "deposit" else read(item, Refusal)
        return "word", word.cohort, 0
    return item.kind, 0, 0


SMALL = replace(PACED, parties=4, rounds=2)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
@pytest.mark.parametrize("written", [True, False], ids=["after the write", "before the write"])
def test_a_crash_at_any_write_harms_nobody(written: bool, part: int) -> None:
    """Quickly at every third write, so that every stage is hit, and after one write as before another."""
    count = writes(SMALL)
    assert count > 30
    for number in range((part + written) % 3, count, 3):
        room = Room(SMALL)
        room.fatal = (number, written)
        room.open().run()
        stages = {i: (party.stage, party.reason) for i, party in room.parties.items()}
        assert all(stage == "over" for stage, _ in stages.values()), f"write {number}: {stages}"
        result = room.check(but=room.killed)  # it may come back when all others are done and gone
        assert not any(isinstance(record, Left) for journal in room.journals.values() for record in journal)
        assert len(result.realized.cohort) >= 3, f"write {number}: {result.realized.cohort}"
        # Each party offers the same bytes whenever it offers, and has one word on each cohort, and one key.
        said: dict[tuple[object, ...], set[bytes]] = {}
        for i, message in room.said:
            if isinstance(message, Offer):
                said.setdefault((i, "offer", message.round), set()).add(encode(message))
            elif isinstance(message, Items):
                for item in message.items:
                    said.setdefault((item.party, *subject_of(item)), set()).add(item.body + item.sealed)
        assert all(len(versions) == 1 for versions in said.values()), f"write {number}"


@pytest.mark.slow
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
    kinds = [type(record) for record in room.journals[1]]
    assert kinds[-2:] == [Left, Erased] and Began not in kinds and Secret not in kinds
    assert set(room.results) == {0, 2, 3, 4} and room.results[0].realized.cohort == {0, 2, 3, 4}


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
            assert room.results[0].realized.cohort == {0, 2, 3, 4}
            # It has said nothing in this incarnation that depends on its value.
            assert [r for r in room.journals[1] if r not in whole] == [Left(room.parties[1].reason), Erased()]


def test_whoever_left_stays_away() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.leave(1, "enough")
    room.kill(1)
    room.recover(1)
    assert room.parties[1].stage == "left" and room.parties[1].reason == "enough" and room.parties[1].finished
    before = snapshot(room.parties[1])
    assert not room.hand(0, 1, Ask()).sends
    assert snapshot(room.parties[1]) == before
    assert room.run().results[0].realized.cohort == {0, 2, 3, 4}


def test_a_restart_in_the_end_says_the_same_things() -> None:
    for stage in ("digests", "agreeing", "opening", "serving"):
        room = Room(PACED).open().at_stage(1, stage)
        signed = dict(room.parties[1].ledger.own_items)
        room.kill(1)
        room.recover(1)
        assert room.run().parties[1].stage == "over"
        for key, item in signed.items():
            assert room.parties[1].ledger.own_items[key] == item
        kinds = [record.item.kind for record in room.journals[1] if isinstance(record, Signed)]
        assert sorted(kinds) == ["deposit", "digest"]


# --- a journal that is behind -------------------------------------------------------------------------------------


def rolled_back(room: Room, i: int, forgotten: Callable[[Record], bool]) -> Party:
    """Party i comes back with its journal as it was before the last of these records, and hears nobody."""
    room.kill(i)
    journal = room.journals[i]
    last = max(number for number, record in enumerate(journal) if forgotten(record))
    room.journals[i] = journal[:last]
    room.drops = lambda sender, to, message: i in (sender, to)
    room.recover(i)
    return room.parties[i]


def test_whoever_was_there_from_the_start_is_not_driven_out_by_an_answer_to_no_offer() -> None:
    room = Room(PACED).open().run(until=START + 0.1)
    party, later = room.parties[1], PACED.topology(b"p" * 32).receivers[4][1]
    before = snapshot(party)
    for message in (Ack(4), Voided(4)):
        effects = room.hand(later, 1, message)
        assert not effects.records and snapshot(party) == before
    invalid = [fields["what"] for i, event, fields in room.log_events if (i, event) == (1, "invalid message")]
    assert invalid == 2 * ["an answer about an offer that was never made to this peer"]


@pytest.mark.parametrize("witness", [True, False], ids=["from a witness", "from whoever passes it on"])
def test_an_own_digest_that_the_journal_lacks_is_noticed_and_the_peer_named(witness: bool) -> None:
    room = Room(PACED).open().at_stage(3, "serving")
    item = room.parties[3].signed_items.by_kind["digest"][1]
    party = rolled_back(room, 1, lambda record: isinstance(record, Signed) and record.item == item)
    asked = [message for _, message in room.hand(1, 3, Ask()).sends if isinstance(message, Seen)]
    assert asked[0].signed == [item.proof]
    room.hand(3, 1, Seen([], 5, 0, [item.proof]) if witness else Items([item]))
    assert party.stage == "left" and not party.ledger.own_items
    lost = "lost or behind" if witness else "behind"
    reason = f"the journal is {lost}: {'party 3' if witness else 'a peer'} has a digest of this party"
    assert party.reason.startswith(reason)


@pytest.mark.parametrize("decided", [True, False], ids=["knowing the cohort", "before it knows the cohort"])
def test_an_own_deposit_that_the_journal_lacks_is_noticed(decided: bool) -> None:
    """It must not make another one, with another top-up or after other rounds."""
    room = Room(PACED).open().at_stage(3, "serving")
    item, decisions = room.parties[3].signed_items.by_kind["deposit"][1], room.parties[3].ledger.decided
    first = Signed(item, 0) if decided else Decided(decisions[0])
    party = rolled_back(room, 1, lambda record: record == first)
    room.hand(3, 1, Items([item]))
    if not decided:
        assert party.stage == "asking"
        room.hand(3, 1, Seen([], 5, 0, []))
        room.hand(3, 1, Decisions(0, decisions[:1]))
    room.run()
    assert party.stage == "left" and ("deposit", 0) not in party.ledger.own_items
    assert party.reason == "the journal is behind: a peer has a deposit of this party that it lacks"


def test_an_item_that_others_have_made_up_drives_nobody_out() -> None:
    room = Room(PACED).open().at_stage(1, "digests")
    party = room.parties[1]
    forged = Item("digest", 1, party.ledger.own_items["digest", None].body + b"x", b"no signature")
    for item in (forged, foreign(PACED, 3).sign("digest", b"\x93\x90\x90\x90")):
        room.hand(3, 1, Items([Item("digest", 1, item.body, item.signature)]))
        assert party.stage != "left"
    room.hand(3, 1, Seen([], 5, 0, [ItemProof("\x1b[2J" * 99, bytes(32), b"")]))
    assert party.stage != "left"


def test_a_witness_that_makes_up_kinds_of_items_drives_nobody_out() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = rolled_back(room, 1, lambda record: isinstance(record, Began))
    for kind in ("\x1b[2J" * 99, "deposit", "gift"):
        signed = foreign(PACED, 1).sign("digest", b"made up").proof
        room.hand(0, 1, Seen([], 2, 0, [msgspec.structs.replace(signed, kind=kind)]))
        assert party.stage == "asking" and 0 not in party.joining._answers


# --- decisions survive everything ---------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["cohort", "commit"])
@pytest.mark.parametrize("back", [0.0, 0.3, 1.5])
def test_a_decision_survives_the_death_of_all_and_of_whoever_knew_it(step: str, back: float) -> None:
    """One party has decided and told nobody; all are killed, and only a quorum without that one comes back."""
    n, session = 6, replace(PACED, parties=6)
    room = Room(session)
    room.drops = lambda sender, to, message: (
        isinstance(message, Decisions) and message.decisions[-1].proposal.step == step
    )
    room.open()
    for _ in room.steps(until=100.0):
        knowing = [
            i for i, p in room.parties.items() if p.ledger.decided and p.ledger.decided[-1].proposal.step == step
        ]
        if knowing:
            break
    decided = room.parties[knowing[0]].ledger.decided
    owner = next(i for i in range(n) if i not in knowing)  # one more stays away, whose items the others must have kept
    for i in range(n):
        room.kill(i)
    room.queue.clear()
    room.drops = lambda sender, to, message: False
    quorum = [i for i in range(n) if i not in (*knowing[:1], owner)]
    assert len(quorum) == session.quorum
    for i in quorum:
        room.at(room.now + back, room.recover, i)
    room.run()
    for i in quorum:
        party = room.parties[i]
        assert party.stage == "over" and [d.proposal for d in party.ledger.decided[: len(decided)]] == [
            d.proposal for d in decided
        ]
    if step == "commit":  # those who stay away are in the result: their deposits were kept, and enough keys are there
        assert room.check().realized.cohort == decided[-1].proposal.parties == set(range(n))
    else:
        assert room.check().realized.cohort == set(quorum)


def test_what_stands_behind_an_acceptance_is_in_the_journal() -> None:
    room = Room(PACED).open().run()
    for i, journal in room.journals.items():
        accepted = [record for record in journal if isinstance(record, Accepted)]
        kept = {(item.kind, item.party, item.hash) for record in accepted for item in record.items}
        own = {(r.item.kind, i, r.item.hash) for r in journal if isinstance(r, Signed)}
        for record in accepted:
            kind = {"cohort": "digest", "commit": "deposit"}[record.lock.proposal.step]
            assert {(kind, party, hash_) for party, hash_ in record.lock.proposal.contents} <= kept | own
            assert record.lock.proposal.parties == {party for of, party, _ in kept | own if of == kind}
        assert len(kept) == sum(len(record.items) for record in accepted)  # once each


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
    """Four of five accepted; one of them forgets it."""
    room = Room(PACED)
    room.open().at_stage(1, "agreeing")
    party = room.parties[1]
    digests = party.signed_items.by_kind["digest"]
    proposal = Proposal("cohort", [(i, digests[i].hash) for i in sorted(digests)])
    order = party.consensus.order
    voted = party.receive(room.now, order[0], Propose(0, 5, proposal, [], []))
    assert [message.ballot for _, message in voted.sends if isinstance(message, Vote)] == [5]
    party = reborn(room, 1)
    effects = party.receive(room.now, order[4], Prepare(0, 14))
    assert not [message for _, message in effects.sends if isinstance(message, Promise)]


def witnessed(room: Room, answers: set[int]) -> None:
    """Let some witnesses say that they have seen nothing, and let a period pass."""
    for peer in answers:
        room.hand(peer, 1, Seen([], 2, 0, []))
    room.run(until=room.now + room.session.period + 0.1)


def test_a_party_without_a_journal_waits_for_all_witnesses() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    witnessed(room, set(sorted(party.joining.unanswered)[:1]))
    assert party.stage == "asking" and not any(isinstance(record, Began) for record in room.journals[1])


def test_a_party_without_a_journal_waits_for_all_witnesses_after_another_crash_too() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    reborn(room, 1)
    assert [type(record) for record in room.journals[1]][:3] == [Opened, Secret, Seeded]
    room.kill(1)
    room.recover(1)
    party = room.parties[1]
    witnessed(room, set(sorted(party.joining.unanswered)[:1]))
    assert not any(isinstance(record, Began) for record in room.journals[1])


def test_whoever_lost_its_journal_vouches_for_nobody_while_it_asks() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    assert not [message for _, message in party.receive(room.now, 0, Ask()).sends if isinstance(message, Seen)]


def test_whoever_came_late_vouches_for_no_round_before_it_came() -> None:
    room = Room(replace(PACED, min_round_duration=PACED.period)).open(0, 1, 2, 4)
    room.at(START + 2.4, room.open, 3)
    room.run(until=START + 2.5)
    answers = [message for _, message in room.hand(0, 3, Ask()).sends if isinstance(message, Seen)]
    assert [answer.since for answer in answers] == [3]
    fresh = reborn(room, 1)
    earlier = {PACED.topology(b"p" * 32).receivers[t][1] for t in (1, 2)}
    for peer in sorted(fresh.joining.unanswered):
        room.hand(peer, 1, Seen([], 3, 3, []))
    assert earlier and fresh.joining.unanswered == earlier  # those would have seen something


def test_whoever_came_late_has_no_vote_before_or_after_another_crash() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.at(START + 1.3, room.kill, 3)
    room.at(START + 1.3, room.recover, 3)
    result = room.run().check()
    assert 3 in result.realized.cohort and room.ledgers()[3].account.present[-1] == PACED.rounds
    assert not [message for i, message in room.said if i == 3 and isinstance(message, Prepare | Promise | Accept | Yes)]
    assert not room.ledgers()[3].promised and not room.ledgers()[3].accepted


def test_a_majority_of_late_parties_agrees_on_nothing() -> None:
    room = Room(replace(PACED, rounds=6)).open(0, 1)
    room.at(START + 0.9, room.open, 2, 3, 4)
    room.run()
    assert not room.results and not any(missing(room.ledgers()))
    assert all(not ledger.promised for ledger in room.ledgers()[2:])


def test_two_parties_without_journals_do_not_vouch_for_each_other() -> None:
    """Only the receiver of party 3's first offer has seen it, and loses its disk as well: no fresh noise may go out."""
    room = Room(PACED).open().run(until=START + 0.1)
    receiver = PACED.topology(b"p" * 32).receivers[1][3]
    assert 1 in room.parties[receiver].ledger.decisions
    for i in (3, receiver):
        room.kill(i)
        room.journals[i] = []
    room.open(receiver, 3).run()
    assert not any(isinstance(record, Began) for record in room.journals[3])


def test_a_witness_tells_of_offers_that_wait_for_their_round() -> None:
    """Its payload was seen, and will be credited in its round: whoever made it and has forgotten it must leave."""
    room = Room(PACED).open().run(until=START + 0.1)
    t, sender = 2, PACED.topology(b"p" * 32).senders[2][2]
    room.hand(sender, 2, offer_of(room, t, sender, to=2))  # the sender is ahead
    assert room.parties[2].ledger.round == 1
    answers = [message for _, message in room.hand(sender, 2, Ask()).sends if isinstance(message, Seen)]
    proof = offer_of(room, t, sender, to=2).proof
    assert [proof in answer.offers for answer in answers] == [True]


def test_an_offer_of_an_earlier_incarnation_is_never_taken_back_as_unsent() -> None:
    """The receiver nudged, then got the offer of the sender's earlier incarnation; the nudge comes to the new one."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: receiver == 1 and isinstance(message, Ack | Voided)
    room.open().run(until=START + 0.1)
    receiver = receiver_of(room.parties[1].ledger, 1)
    room.kill(1)
    room.recover(1)
    room.run(until=START + 0.2)
    assert room.parties[1].stage == "rounds" and 1 in room.parties[1].ledger.open
    assert not any(missing(room.ledgers()))
    again = [
        message
        for to, message in room.parties[1].receive(room.now, receiver, Nudge(1)).sends
        if isinstance(message, Offer)
    ]
    for offer in again:
        room.perform(1, room.parties[1].unsent(room.now, offer))
    assert not any(missing(room.ledgers()))
