"""A party that comes back is driven out by its own signature alone: whoever has seen more than its journal shows it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from helpers.examples import cases
from helpers.network_faults import Faults
from helpers.parties import PACED, START, N, Room, foreign, offer_of, snapshot
from helpers.simulated_network import SimulatedNetwork
from inca.network.protocol.messages import Ack, Ask, Item, OfferProof, Seen, Voided, encode
from inca.network.protocol.party import Party
from inca.network.protocol.records import Began, Credited, Erased, Left, Record, Tombstoned

ROUND = 4  # of which the party that comes back knows nothing yet


def back(forgotten: type[Record] | None = None, *, until: float = START + 0.5) -> tuple[Room, Party]:
    """Party 1 comes back and hears nobody; without the last record of a kind, and all that follows it."""
    room = Room(PACED).open().run(until=until)
    room.kill(1)
    if forgotten is not None:
        last = max(k for k, record in enumerate(room.journals[1]) if isinstance(record, forgotten))
        room.journals[1] = room.journals[1][:last]
    room.drops = lambda sender, receiver, message: 1 in (sender, receiver)
    room.recover(1)
    party = room.parties[1]
    assert party.stage == "asking"
    return room, party


def receiver_of(t: int, sender: int = 1) -> int:
    return PACED.topology(b"p" * 32).receivers[t][sender]


def told_by(room: Room, witness: int) -> Seen:
    """What a witness says when party 1 asks it."""
    return next(message for _, message in room.hand(1, witness, Ask()).sends if isinstance(message, Seen))


def logged(room: Room, event: str) -> list[tuple[int, str]]:
    return [(fields["peer"], fields["what"]) for i, name, fields in room.log_events if (i, name) == (1, event)]


# --- what is not signed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Ack, Voided])
@pytest.mark.parametrize("t", range(1, PACED.rounds + 1))
def test_an_answer_about_an_offer_that_it_has_not_made_drives_nobody_out(answer: Callable[..., Ack], t: int) -> None:
    room, party = back()
    if t in party.ledger.fates:
        return
    before = snapshot(party)
    effects = room.hand(receiver_of(t), 1, answer(t))
    assert not effects.records and snapshot(party) == before
    assert logged(room, "invalid message") == [
        (receiver_of(t), "an answer about an offer that was never made to this peer")
    ]
    room.drops = lambda sender, receiver, message: False
    assert 1 in room.run().check().realized.cohort


PROOFS: dict[str, Callable[[Room], OfferProof]] = {
    "no signature": lambda room: OfferProof(ROUND, bytes(8), bytes(32), b""),
    "a made up one": lambda room: OfferProof(ROUND, bytes(8), bytes(32), b"forged"),
    "its own": lambda room: offer_of(room, ROUND, receiver_of(ROUND), to=receiver_of(ROUND)).proof,
    "one of another round": lambda room: msgspec.structs.replace(
        offer_of(room, 1, 1, to=receiver_of(ROUND)).proof, round=ROUND
    ),
    "one to another party": lambda room: offer_of(room, ROUND, 1, to=(receiver_of(ROUND) + 1) % N).proof,
    "one of other numbers": lambda room: msgspec.structs.replace(
        offer_of(room, ROUND, 1, to=receiver_of(ROUND)).proof, payload_hash=bytes(32)
    ),
    "one of another weight": lambda room: msgspec.structs.replace(
        offer_of(room, ROUND, 1, to=receiver_of(ROUND)).proof, weight=8 * b"x"
    ),
}


@pytest.mark.parametrize("what", PROOFS)
def test_a_witness_that_shows_no_signature_of_an_offer_drives_nobody_out_and_is_named(what: str) -> None:
    room, party = back()
    witness = receiver_of(ROUND)
    before = snapshot(party)
    effects = room.hand(witness, 1, Seen([PROOFS[what](room)], 2, 0, []))
    assert not effects.records and snapshot(party) == before  # nor is its answer taken for one
    claim = f"{room.session.name(witness)} claims to have seen an offer of round {ROUND} that it lacks"
    assert logged(room, "invalid message") == [(witness, f"{claim}, and shows no signature")]
    room.drops = lambda sender, receiver, message: False
    assert 1 in room.run().check().realized.cohort


ITEMS: dict[str, Callable[[], Item]] = {
    "no signature": lambda: Item("digest", 1, b"made up", b""),
    "its own": lambda: foreign(PACED, 3).sign("digest", b"made up"),
    "one of another kind": lambda: foreign(PACED, 1).sign("deposit", b"made up"),
}


@pytest.mark.parametrize("what", ITEMS)
def test_a_witness_that_shows_no_signature_of_an_item_drives_nobody_out_and_is_named(what: str) -> None:
    room, party = back()
    before = snapshot(party)
    proof = msgspec.structs.replace(ITEMS[what]().proof, kind="digest")
    effects = room.hand(3, 1, Seen([], 2, 0, [proof]))
    assert not effects.records and snapshot(party) == before
    claim = "party 3 claims to have a digest of this party, which it lacks, and shows no signature"
    assert logged(room, "invalid message") == [(3, claim)]
    room.drops = lambda sender, receiver, message: False
    assert 1 in room.run().check().realized.cohort


def test_a_witness_that_says_the_same_again_and_again_is_not_listened_to() -> None:
    """Each proof costs a hash of what was offered."""
    room, party = back()
    proof = offer_of(room, ROUND, 1, to=receiver_of(ROUND)).proof
    room.hand(receiver_of(ROUND), 1, Seen(2 * [proof], 2, 0, []))
    assert party.stage == "asking"
    assert [what for _, what in logged(room, "invalid message")] == [
        "an answer about offers that the schedule does not have"
    ]


@pytest.mark.parametrize("others", [(), (2,)])
def test_a_witness_that_says_it_is_far_ahead_does_not_make_it_miss_its_rounds(others: tuple[int, ...]) -> None:
    room, party = back()
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Ask)
    liar = next(witness for witness in sorted(party.joining.unanswered) if witness not in others)
    room.hand(liar, 1, Seen([], 2**32 - 1, 0, []))
    for peer in others:
        room.hand(peer, 1, Seen([], 2, 0, []))
    room.run(until=room.now + 1.2)
    assert party.ledger.round >= 2 and party.stage == "rounds"
    assert 1 in room.run().check().realized.cohort


# --- what is signed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decided", [True, False])
def test_the_signature_of_an_offer_that_the_journal_lacks_drives_it_out_and_names_the_witness(decided: bool) -> None:
    room, party = back(Began)
    t = party.ledger.round + 1
    witness = receiver_of(t)
    told = told_by(room, witness) if decided else Seen([offer_of(room, t, 1, to=witness).proof], 2, 0, [])
    assert t in [proof.round for proof in told.offers]
    room.hand(witness, 1, told)
    assert party.stage == "left" and [type(record) for record in room.journals[1][-2:]] == [Left, Erased]
    what = f"has seen an offer of round {t} that it lacks"
    assert party.reason == f"the journal is lost or behind: {room.session.name(witness)} {what}"
    assert logged(room, "witness") == [(witness, what)]


def test_a_witness_still_shows_the_signature_after_a_restart_of_its_own() -> None:
    room, party = back(Began)
    t = party.ledger.round + 1
    witness = receiver_of(t)
    room.kill(witness)
    room.recover(witness)
    room.hand(witness, 1, told_by(room, witness))
    assert party.stage == "left" and logged(room, "witness")


def test_the_signature_of_other_numbers_than_the_journal_has_drives_it_out() -> None:
    """Its journal was begun a second time: the same value has been released with other noise."""
    room, party = back()
    assert 1 in party.ledger.fates
    witness = receiver_of(1)
    room.hand(witness, 1, Seen([offer_of(room, 1, 1, to=witness).proof], 2, 0, []))
    assert party.stage == "left" and "has seen an offer of round 1 that it lacks" in party.reason


def test_what_the_journal_has_as_well_drives_nobody_out() -> None:
    room, party = back()
    for witness in sorted({receiver_of(t) for t in party.ledger.fates}):
        assert told_by(room, witness).offers
        room.hand(witness, 1, told_by(room, witness))
    assert party.stage == "asking" and not logged(room, "invalid message")
    room.drops = lambda sender, receiver, message: False
    assert 1 in room.run().check().realized.cohort


def test_the_signature_of_another_digest_than_the_journal_has_drives_it_out_and_names_the_witness() -> None:
    room = Room(PACED).open().at_stage(1, "digests")
    room.kill(1)
    room.drops = lambda sender, receiver, message: 1 in (sender, receiver)
    room.recover(1)
    party = room.parties[1]
    room.hand(3, 1, Seen([], 5, 0, [party.ledger.own_items["digest", None].proof]))
    assert not party.finished
    room.hand(3, 1, Seen([], 5, 0, [foreign(PACED, 1).sign("digest", b"another").proof]))
    assert party.stage == "left" and logged(room, "witness") == [(3, "has a digest of this party, which it lacks")]


def test_every_decision_about_an_offer_has_its_sender_s_signature() -> None:
    """In the journal, so that the party can show it whatever happens to itself; also in a session full of faults."""
    checked = 0
    for seed in range(cases(2, 6)):
        network = SimulatedNetwork(seed, faults=Faults(loss=0.1, delay=0.03, crash=0.02, comeback=0.9, skew=0.3))
        network.run()
        for i, machine in enumerate(network.machines):
            signatures = None if machine.party is None else machine.party.transfers._signatures
            for record in machine.journal:
                if isinstance(record, Credited | Tombstoned) and signatures is not None:
                    sender = network.session.topology(network.ledgers()[0][1].seed or b"").senders[record.round][i]
                    assert record.proof is not None and signatures.proves(sender, i, record.proof)
                    assert record.round == record.proof.round
                    checked += 1
    assert checked > 50


def test_a_proof_shows_no_number_of_its_offer_but_the_weight() -> None:
    proof = offer_of(Room(PACED), 2, 1, to=3).proof
    numbers = [number.to_bytes(8, "little") for number in range(1, PACED.dimension)]
    assert numbers and proof.weight == PACED.dimension.to_bytes(8, "little")
    assert not any(number in encode(Seen([proof], 2, 0, [])) for number in numbers)
