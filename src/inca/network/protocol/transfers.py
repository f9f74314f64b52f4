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

from inca.errors import InvalidPeerMessage
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
        self._skipped: set[int] = set()  # rounds of which the sender says that it is not there
        self._early: dict[tuple[int, int], Offer] = {}  # by round and sender
        self._attempts: dict[int, int] = {}  # by round: that may have left, for offers made in this incarnation
        self._under_way: Counter[int] = Counter()  # by round: copies that wait, or were sent on what still stands

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
        self._attempts[t] = 0
        self._offer(t)
        self.decide_early()

    def _offer(self, t: int) -> None:
        """Make the offer of a round, or make it again, unless it has an answer, or a copy is under way."""
        context = self._context
        if context.ledger.fates[t] == OPEN and not self._under_way[t]:
            if t in self._attempts:
                self._attempts[t] += 1
            self._under_way[t] += 1
            receiver = context.topology.receivers[t][context.me]
            context.send(receiver, self._signatures.offer(t, receiver, context.ledger.payload(t)))

    def repeat(self) -> None:
        """Make this round's offer again if need be, and nudge the party that owes one."""
        t = self._context.ledger.round
        self._offer(t)
        for sender in self._owing():
            self._context.send(sender, Nudge(t))

    def handle_nudge(self, peer: int, message: Nudge, *, away: bool) -> None:
        """Make the open offer to this peer again if need be, or say that it should not wait for one."""
        context, ledger, t = self._context, self._context.ledger, message.round
        offered = t in ledger.fates and context.topology.has(t, context.me, peer)
        if (offered and ledger.fates[t] != OPEN) or ledger.skipped(t) or (away and t > ledger.round):
            context.send(peer, Skipped(t))
        elif offered:
            self._offer(t)

    def handle_skipped(self, peer: int, message: Skipped) -> None:
        """Wait no longer for this peer's offer of this round."""
        if 0 < message.round == self._context.ledger.round and self._scheduled(peer, message.round):
            self._skipped.add(message.round)

    def seen_of(self, peer: int) -> list[OfferProof]:
        """Return the proofs of the offers of this peer that were seen here, decided or not."""
        context = self._context
        seen = {t: offer.proof for (t, sender), offer in self._early.items() if sender == peer}
        seen |= {t: proof for t, proof in context.ledger.proofs.items() if context.topology.has(t, peer, context.me)}
        return [seen[t] for t in sorted(seen)]

    def unsent(self, offer: Offer) -> None:
        """Learn that one attempt at an offer has not left; if none has, take it back."""
        t = offer.round
        self._under_way[t] = max(0, self._under_way[t] - 1)
        if t not in self._attempts:
            return  # made in an earlier incarnation: it may have left then
        self._attempts[t] -= 1
        if self._attempts[t] == 0 and self._is_open(t):
            self._context.record(Answered(t, "unsent"))

    def in_doubt(self, offer: Offer) -> None:
        """Learn that the connection on which an offer was sent has ended: in its round, make it again."""
        t = offer.round
        self._under_way[t] = max(0, self._under_way[t] - 1)
        if self._is_open(t):
            self._offer(t)

    def _is_open(self, t: int) -> bool:
        """Return whether an own offer has no answer yet, and may have one in its round."""
        ledger = self._context.ledger
        return t == ledger.round and not ledger.sealed and ledger.fates.get(t) == OPEN

    def handle_answer(self, peer: int, message: Ack | Voided) -> None:
        """Learn what was decided about an own offer; one that was voided comes back in its own round, or at the end.

        An answer is no evidence: whoever has an offer that the journal lacks shows its signature when asked (`Seen`).
        """
        context, ledger, t = self._context, self._context.ledger, message.round
        if t not in ledger.fates or not context.topology.has(t, context.me, peer):
            raise InvalidPeerMessage("an answer about an offer that was never made to this peer")
        if isinstance(message, Ack):
            if ledger.fates[t] == OPEN and not ledger.sealed:
                context.record(Answered(t, "acked"))
        elif self._is_open(t):
            context.record(Answered(t, "voided"))

    def awaited(self) -> set[int]:
        """Return who still owes this round an offer or an answer."""
        context, t = self._context, self._context.ledger.round
        answering = {context.topology.receivers[t][context.me]} if context.ledger.fates[t] == OPEN else set()
        return self._owing() | answering

    def _owing(self) -> set[int]:
        """Return who has not made an offer of this round yet."""
        context, t = self._context, self._context.ledger.round
        decided = t in context.ledger.decisions or t in self._skipped
        return set() if decided else {context.topology.senders[t][context.me]}

    # --- offers of others ---------------------------------------------------------------------------------------

    def handle_offer(self, peer: int, offer: Offer) -> None:
        """Decide about an offer, or keep it until its round begins: the peer may be ahead."""
        context, ledger, t = self._context, self._context.ledger, offer.round
        scheduled = 1 <= t <= context.session.rounds if ledger.topology is None else self._scheduled(peer, t)
        if not scheduled:
            raise InvalidPeerMessage(f"a transfer of round {t} that the schedule does not have")
        self._signatures.check(peer, offer)
        if self.deciding and (t <= ledger.round or t in ledger.decisions):
            self._decide(peer, offer)
            return
        if ledger.topology is None:  # the peer knows the public seed before this party: it makes one offer, the latest
            self._early = {key: early for key, early in self._early.items() if key[1] != peer}
        self._early[t, peer] = offer

    def decide_early(self, *, all_rounds: bool = False) -> None:
        """Decide about the offers that waited for their round, or about all that wait."""
        for (t, peer), offer in sorted(self._early.items()):
            if not self._scheduled(peer, t):
                del self._early[t, peer]  # it came before there was a schedule, which does not have it
            elif all_rounds or t <= self._context.ledger.round:
                del self._early[t, peer]
                self._decide(peer, offer)

    def _scheduled(self, peer: int, t: int) -> bool:
        return self._context.topology.has(t, peer, self._context.me)

    def _decide(self, peer: int, offer: Offer) -> None:
        """Credit an offer in its round, or write a tombstone, once; say what was decided."""
        context, ledger, t = self._context, self._context.ledger, offer.round
        if t < ledger.since:
            return
        if t not in ledger.decisions:
            if excess := share_bounds(context.session).excess(offer):
                self._refuse(peer, offer, excess)
            elif t == ledger.round and not ledger.sealed and self._bearable(offer):
                context.record(Credited(t, offer.payload, offer.proof))
            else:
                context.record(Tombstoned(t, offer.proof))
        context.send(peer, (Ack if ledger.decisions[t] else Voided)(t))

    def _refuse(self, sender: int, offer: Offer, reason: str) -> None:
        """Never credit an offer that no honest party can make; keep it, as it convicts its sender."""
        context, proof = self._context, offer.proof
        context.record(Tombstoned(offer.round, proof, offer.payload))
        what = f"{context.name(sender)} has signed what no honest party can: {reason}"
        fields = {"round": offer.round, "hash": proof.payload_hash.hex(), "what": what}
        context.log_event("refused offer", peer=sender, **fields)

    def _bearable(self, offer: Offer) -> bool:
        """Whether the balance with this offer is one that an honest party can have."""
        ledger, most = self._context.ledger, self._context.session.parties * WEIGHT
        balance = ledger.balance + unpack(offer.payload, ledger.balance.size)  # both below 2^62
        return bool(np.abs(balance).max() < MAX_NUMBER and balance[-1] <= most)
