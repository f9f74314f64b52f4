"""Offers are their senders' words: what is not signed, or signed of something else, is not credited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.ledgers import SESSION
from helpers.parties import COIN_FLIP, PACED, START, Room, offer_of, snapshot
from helpers.signatures import sign, verify
from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import Ack, Offer, OfferProof, Voided, decode, encode, pack
from inca.network.protocol.offer_signatures import OfferSignatures

SHARE = [7, -5, 2**40]


def signer(me: int) -> OfferSignatures:
    return OfferSignatures(SESSION, me, sign(me), verify)


def signed() -> Offer:
    return signer(1).offer(3, 2, pack(np.array(SHARE, dtype=np.int64)))


def with_payload(offer: Offer, numbers: list[int]) -> Offer:
    return msgspec.structs.replace(offer, payload=np.array(numbers, dtype="<i8").tobytes())


def test_an_offer_is_signed_the_same_way_every_time_and_its_receiver_can_tell() -> None:
    assert encode(signed()) == encode(signed())
    signer(2).check(1, signed())
    assert signed().proof.weight == SHARE[-1].to_bytes(8, "little") and signer(0).proves(1, 2, signed().proof)


FORGERIES: dict[str, Callable[[Offer], Offer]] = {
    "no signature": lambda offer: msgspec.structs.replace(offer, signature=b""),
    "half a signature": lambda offer: msgspec.structs.replace(offer, signature=offer.signature[:-1]),
    "another round": lambda offer: msgspec.structs.replace(offer, round=2),
    "another number": lambda offer: with_payload(offer, [8, *SHARE[1:]]),
    "another weight": lambda offer: with_payload(offer, [*SHARE[:-1], 2**40 + 1]),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_signature_is_about_all_of_an_offer(what: str) -> None:
    with pytest.raises(InvalidPeerMessage, match=r"an offer of round \d that party 1 has not signed"):
        signer(2).check(1, FORGERIES[what](signed()))


def test_a_signature_is_about_its_ends_and_its_session() -> None:
    for me, sender in ((3, 1), (2, 0), (1, 2)):
        with pytest.raises(InvalidPeerMessage, match="has not signed"):
            signer(me).check(sender, signed())
    elsewhere = OfferSignatures(replace(SESSION, id=b"x" * 32), 2, sign(2), verify)
    with pytest.raises(InvalidPeerMessage, match="has not signed"):
        elsewhere.check(1, signed())


def test_the_size_of_an_offer_is_looked_at_before_its_signature() -> None:
    def never(party: int, text: bytes, signature: bytes) -> bool:
        raise AssertionError("a signature was checked")

    careful = OfferSignatures(SESSION, 2, sign(2), never)
    for payload in (b"", signed().payload[:-1], signed().payload + bytes(8), bytes(2**20)):
        with pytest.raises(InvalidPeerMessage, match=f"a payload must have 24 bytes, got {len(payload)}"):
            careful.check(1, msgspec.structs.replace(signed(), payload=payload))


@given(st.binary(max_size=9), st.binary(max_size=40), st.binary(max_size=40))
def test_a_made_up_proof_proves_nothing(weight: bytes, payload_hash: bytes, signature: bytes) -> None:
    assert not signer(2).proves(1, 2, OfferProof(3, weight, payload_hash, signature))


def test_what_was_signed_of_one_offer_is_not_read_as_another_one() -> None:
    """The weight and the hash are signed one after the other: only one way to divide them is a proof."""
    proof = signed().proof
    shifted = msgspec.structs.replace(
        proof, weight=proof.weight[:-1], payload_hash=proof.weight[-1:] + proof.payload_hash
    )
    assert signer(2).proves(1, 2, proof) and not signer(2).proves(1, 2, shifted)


# --- whole parties ------------------------------------------------------------------------------------------------


def deaf() -> Room:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Offer)
    return room.open()


@pytest.mark.parametrize("what", FORGERIES)
def test_a_party_credits_no_offer_that_its_sender_has_not_signed(what: str) -> None:
    room = deaf()
    t, sender = 1, PACED.topology(b"p" * 32).senders[1][2]
    room.run(until=START + 0.1)
    party, honest = room.parties[2], offer_of(room, t, sender, to=2)
    assert party.ledger.round == t
    before = snapshot(party)
    forged = FORGERIES[what](honest)
    effects = party.receive(room.now, sender, decode(encode(forged)))
    assert not effects.records and snapshot(party) == before
    assert not [message for _, message in effects.sends if isinstance(message, Ack | Voided)]
    assert [fields["peer"] for event, fields in effects.log_events if event == "invalid message"] == [sender]
    assert (sender, Ack(t)) in room.hand(sender, 2, honest).sends  # it can still be made


def test_an_offer_without_a_signature_is_not_kept_for_later_either() -> None:
    room = Room(COIN_FLIP)
    room.drops = lambda sender, receiver, message: True
    party = room.open().parties[1]
    for forge in FORGERIES.values():
        assert party.receive(room.now, 0, forge(offer_of(room, 3, 0, to=1))).log_events
    assert party.ledger.topology is None and not party.transfers._early
