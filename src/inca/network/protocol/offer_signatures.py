"""What a sender signs of an offer: to whom it goes, in which round, its weight and the hash of its numbers.

So an offer is its sender's word. A receiver can show what it has seen without the numbers, which are private
(`OfferProof`), and an offer that no honest party can make convicts whoever has made it.
"""

from __future__ import annotations

import msgspec

from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import Offer, OfferProof
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Sign, Verify


class OfferSignatures:
    """Signs the offers of one party, and checks those of others."""

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify) -> None:
        self.session, self.me = session, me
        self._sign, self._verify = sign, verify

    def offer(self, t: int, receiver: int, payload: bytes) -> Offer:
        """Return a signed offer of a share."""
        unsigned = Offer(t, payload)
        signed = self._sign(self._text(self.me, receiver, unsigned.proof))
        return msgspec.structs.replace(unsigned, signature=signed)

    def check(self, sender: int, offer: Offer) -> None:
        """Refuse an offer to this party of a size that no offer has, or that its sender has not signed."""
        size = self.session.payload_bytes
        if len(offer.payload) != size:  # before anything costs more: neither hashed nor read
            raise InvalidPeerMessage(f"a payload must have {size} bytes, got {len(offer.payload)}")
        if not self.proves(sender, self.me, offer.proof):
            raise InvalidPeerMessage(f"an offer of round {offer.round} that {self.session.name(sender)} has not signed")

    def proves(self, sender: int, receiver: int, proof: OfferProof) -> bool:
        """Return whether a proof shows that a party has made an offer to another one."""
        fitting = len(proof.weight) == 8 and len(proof.payload_hash) == 32  # so that no two proofs have the same text
        return fitting and self._verify(sender, self._text(sender, receiver, proof), proof.signature)

    def _text(self, sender: int, receiver: int, proof: OfferProof) -> bytes:
        numbers = b"".join(number.to_bytes(4, "little") for number in (proof.round, sender, receiver))
        return b"inca-offer/2" + self.session.id + numbers + proof.weight + proof.payload_hash
