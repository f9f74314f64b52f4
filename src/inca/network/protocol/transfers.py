"""A party's offers and decisions: the part of the state machine that moves mass.

A connection loses nothing while it stands. So an offer is made again only when no copy of it is under way any more: the
driver tells when one has not left, or when the connection on which it was sent has ended. On a slow link, a payload
that is still on its way is not sent a second time, however long its answer takes.

A party decides nothing while it asks what others have seen of it, nor, if it came late, about rounds before it came:
in an earlier incarnation it might have decided otherwise.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from inca.errors import InvalidPeerMessage, LocalProtocolError
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import (
    MAX_NUMBER,
    OPEN,
    Ack,
    Nudge,
    Offer,
    OfferProof,
    Skipped,
    TransferMessage,
    Voided,
    unpack,
)
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.records import Answered, Began, Credited, Tombstoned
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.share_bounds import share_bounds


class Transfers:
    """Offers of this party, and what it decides about those of others."""

    def __init__(self, context: PartyContext, signatures: OfferSignatures) -> None:
        self._context, self._signatures = context, signatures
        self.deciding = False
        """Whether the party has begun its rounds, or is past them: it decides about offers from then on."""
        self._skipped: set[tuple[int, int]] = set()  # (round, party): it says that it is not there
        self._early: dict[tuple[int, int, int], Offer] = {}
        self._attempts: dict[tuple[int, int], int] = {}  # that may have left, for offers made in this incarnation
        self._under_way: Counter[tuple[int, int]] = Counter()  # copies that wait, or were sent on what still stands

    def handle(self, peer: int, message: TransferMessage, *, away: bool) -> None:
        """Take a message about transfers; `away`: this party is not in any round yet."""
        match message:
            case Offer():
                self.handle_offer(peer, message)
            case Ack() | Voided():
                self.handle_answer(peer, message)
            case Nudge():
                self.handle_nudge(peer, message, away=away)
            case Skipped():
                self.handle_skipped(peer, message)

    # --- own offers ---------------------------------------------------------------------------------------------

    def begin_round(self, t: int) -> None:
        """Begin round t: debit, inject, offer; then decide about offers that came early."""
        context = self._context
        context.record(Began(t, context.ledger.next_share()))
        context.log_event("round", round=t, of=context.session.rounds)
        for slot in range(context.session.receivers):
            self._attempts[t, slot] = 0
            self._offer(t, slot)
        self.decide_early()

    def _offer(self, t: int, slot: int) -> None:
        ledger = self._context.ledger
        if (t, slot) in self._attempts:
            self._attempts[t, slot] += 1
        self._under_way[t, slot] += 1
        receiver = ledger.outbox[t, slot].receiver
        self._context.send(receiver, self._signatures.offer(t, slot, receiver, ledger.payload(t)))

    def repeat(self) -> None:
        """Make this round's offers without an answer again, if no copy is under way; nudge those who owe one."""
        ledger = self._context.ledger
        for t, slot in ledger.open:
            if t == ledger.round and not self._under_way[t, slot]:
                self._offer(t, slot)
        for sender in sorted(self._owing()):
            self._context.send(sender, Nudge(ledger.round))

    def handle_nudge(self, peer: int, message: Nudge, *, away: bool) -> None:
        """Make the open offers to this peer that are not under way, or say that it should not wait for any."""
        ledger = self._context.ledger
        fates = {s: sent.fate for (t, s), sent in ledger.outbox.items() if t == message.round and sent.receiver == peer}
        taken_back = any(fate != OPEN for fate in fates.values())
        if taken_back or ledger.skipped(message.round) or (away and message.round > ledger.round):
            self._context.send(peer, Skipped(message.round))
        for slot, fate in fates.items():
            if fate == OPEN and not self._under_way[message.round, slot]:
                self._offer(message.round, slot)

    def handle_skipped(self, peer: int, message: Skipped) -> None:
        """Wait no longer for this peer's offer of this round."""
        if message.round == self._context.ledger.round:
            self._skipped.add((message.round, peer))

    def seen_of(self, peer: int) -> list[OfferProof]:
        """Return the proofs of the offers of this peer that were seen here, decided or not."""
        early = {key: offer.proof for key, offer in self._early.items()}
        seen = {**early, **self._context.ledger.proofs}
        return [seen[key] for key in sorted(seen) if key[1] == peer]

    def unsent(self, offer: Offer) -> None:
        """Learn that one attempt at an offer has not left; if none has, take it back."""
        key, ledger = (offer.round, offer.slot), self._context.ledger
        self._no_longer_under_way("unsent", key)
        if key not in self._attempts:
            return  # made in an earlier incarnation: it may have left then
        self._attempts[key] -= 1
        in_round = offer.round == ledger.round and not ledger.sealed
        if self._attempts[key] == 0 and ledger.outbox[key].fate == OPEN and in_round:
            self._context.record(Answered(*key, "unsent"))

    def in_doubt(self, offer: Offer) -> None:
        """Learn that the connection on which an offer was sent has ended: in its round, make it again."""
        key, ledger = (offer.round, offer.slot), self._context.ledger
        self._no_longer_under_way("in doubt", key)
        in_round = offer.round == ledger.round and not ledger.sealed
        if in_round and ledger.outbox[key].fate == OPEN and not self._under_way[key]:
            self._offer(*key)

    def _no_longer_under_way(self, what: str, key: tuple[int, int]) -> None:
        if key not in self._context.ledger.outbox:
            raise LocalProtocolError(f"only an offer that was made can be {what}, got {key} as (round, slot)")
        self._under_way[key] = max(0, self._under_way[key] - 1)

    def handle_answer(self, peer: int, message: Ack | Voided) -> None:
        """Learn what was decided about an own offer; one that was voided comes back in its own round, or at the end.

        An answer is no evidence: whoever has an offer that the journal lacks shows its signature when asked (`Seen`).
        """
        ledger, key = self._context.ledger, (message.round, message.slot)
        sent = ledger.outbox.get(key)
        if sent is None or sent.receiver != peer:
            raise InvalidPeerMessage("an answer about an offer that was never made to this peer")
        if sent.fate == OPEN and not ledger.sealed:
            if isinstance(message, Ack):
                self._context.record(Answered(*key, "acked"))
            elif message.round == ledger.round:
                self._context.record(Answered(*key, "voided"))

    def awaited(self) -> set[int]:
        """Return who still owes this round an offer or an answer."""
        ledger = self._context.ledger
        return self._owing() | {ledger.outbox[t, slot].receiver for t, slot in ledger.open if t == ledger.round}

    def _owing(self) -> set[int]:
        """Return who has not made an offer of this round yet."""
        ledger = self._context.ledger
        expected = self._context.topology.senders[ledger.round][self._context.me]
        return {
            sender
            for sender, slot in expected
            if (ledger.round, sender, slot) not in ledger.decisions and (ledger.round, sender) not in self._skipped
        }

    # --- offers of others ---------------------------------------------------------------------------------------

    def handle_offer(self, peer: int, offer: Offer) -> None:
        """Decide about an offer, or keep it until its round begins: the peer may be ahead."""
        ledger = self._context.ledger
        if ledger.topology is not None:
            self._expect(peer, offer.round, offer.slot)
        key = (offer.round, peer, offer.slot)
        self._signatures.check(peer, offer)
        if ledger.topology is None:
            self._keep_unscheduled(peer, offer)
            return
        if self.deciding and (offer.round <= ledger.round or key in ledger.decisions):
            self._decide(peer, offer)
        else:
            self._early[key] = offer

    def decide_early(self, *, all_rounds: bool = False) -> None:
        """Decide about the offers that waited for their round, or about all that wait."""
        for key, offer in sorted(self._early.items()):
            if self._context.topology.receiver(key[0], key[1], key[2]) != self._context.me:
                del self._early[key]  # it came before there was a schedule, which does not have it
            elif all_rounds or key[0] <= self._context.ledger.round:
                del self._early[key]
                self._decide(key[1], offer)

    def _keep_unscheduled(self, peer: int, offer: Offer) -> None:
        """Keep the latest offer of a peer that knows the public seed before this party does: it is made only once."""
        session = self._context.session
        if not (1 <= offer.round <= session.rounds and offer.slot < session.receivers):
            raise InvalidPeerMessage(f"a transfer of round {offer.round} that no schedule has")
        self._early = {key: early for key, early in self._early.items() if key[1:] != (peer, offer.slot)}
        self._early[offer.round, peer, offer.slot] = offer

    def _expect(self, peer: int, t: int, slot: int) -> None:
        if self._context.topology.receiver(t, peer, slot) != self._context.me:
            raise InvalidPeerMessage(f"a transfer of round {t} that the schedule does not have")

    def _decide(self, peer: int, offer: Offer) -> None:
        """Credit an offer in its round, or write a tombstone, once; say what was decided."""
        key, ledger = (offer.round, peer, offer.slot), self._context.ledger
        if offer.round < ledger.since:
            return
        if key not in ledger.decisions:
            if excess := share_bounds(self._context.session, self._context.topology).excess(peer, offer):
                self._refuse(peer, offer, excess)
            elif offer.round == ledger.round and not ledger.sealed and self._bearable(offer):
                self._context.record(Credited(*key, offer.payload, offer.proof))
            else:
                self._context.record(Tombstoned(*key, offer.proof))
        self._answer(peer, offer.round, offer.slot)

    def _refuse(self, sender: int, offer: Offer, reason: str) -> None:
        """Never credit an offer that no honest party can make; keep it, as it convicts its sender."""
        context, proof = self._context, offer.proof
        context.record(Tombstoned(offer.round, sender, offer.slot, proof, offer.payload))
        what = f"{context.name(sender)} has signed what no honest party can: {reason}"
        fields = {"round": offer.round, "slot": offer.slot, "hash": proof.payload_hash.hex(), "what": what}
        context.log_event("refused offer", peer=sender, **fields)

    def _bearable(self, offer: Offer) -> bool:
        """Whether the balance with this offer is one that an honest party can have."""
        ledger, most = self._context.ledger, self._context.session.parties * WEIGHT
        balance = ledger.balance + unpack(offer.payload, ledger.balance.size)  # both below 2^62
        return bool(np.abs(balance).max() < MAX_NUMBER and balance[-1] <= most)

    def _answer(self, peer: int, t: int, slot: int) -> None:
        self._context.send(peer, (Ack if self._context.ledger.decisions[t, peer, slot] else Voided)(t, slot))
