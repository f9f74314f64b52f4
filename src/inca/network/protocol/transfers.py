"""A party's offers and decisions: the part of the state machine that moves mass.

A party decides nothing while it asks what others have seen of it, nor, if it came late, about rounds before it came:
in an earlier life it might have decided otherwise.
"""

from __future__ import annotations

from inca.network.protocol.context import Desk
from inca.network.protocol.ledger import Began, Credited, Settled, Tombstoned
from inca.network.protocol.messages import (
    OPEN,
    Account,
    Ack,
    Nonsense,
    Nudge,
    Offer,
    Resolve,
    Skipped,
    Transfer,
    Voided,
    pack,
    unpack,
)
from inca.network.protocol.realized_execution import check_account


class Transfers:
    """Offers of this party, and what it decides about those of others."""

    def __init__(self, desk: Desk) -> None:
        """Begin with no offers."""
        self._desk = desk
        self.deciding = False
        self.heard: dict[int, Account] = {}
        """The last account of each party that offered something."""
        self._skipped: set[tuple[int, int]] = set()  # (round, party): it says that it is not there
        self._early: dict[tuple[int, int, int], Offer] = {}
        self._left: dict[tuple[int, int], int] = {}  # attempts that may have left, for offers made in this life

    def hear(self, peer: int, message: Transfer, *, away: bool) -> None:
        """Take a message about transfers; `away`: this party is not in any round yet."""
        match message:
            case Offer():
                self.hear_offer(peer, message)
            case Ack() | Voided():
                self.hear_answer(peer, message)
            case Resolve():
                self.hear_resolve(peer, message)
            case Nudge():
                self.hear_nudge(peer, message, away=away)
            case Skipped():
                self.hear_skipped(peer, message)

    # --- own offers ---------------------------------------------------------------------------------------------

    def begin(self, t: int) -> None:
        """Begin round t: debit, inject, offer; then decide about offers that came early."""
        desk = self._desk
        desk.record(Began(t, desk.ledger.next_share()))
        desk.note("round", round=t, of=desk.session.rounds)
        for slot in range(desk.session.receivers):
            self._left[t, slot] = 0
            self._offer(t, slot)
        self.resolve()
        self.decide_early()

    def _offer(self, t: int, slot: int) -> None:
        ledger = self._desk.ledger
        if (t, slot) in self._left:
            self._left[t, slot] += 1
        offer = Offer(t, slot, pack(ledger.shares[t]), ledger.accounts[t])
        self._desk.send(ledger.outbox[t, slot].receiver, offer)

    def repeat(self) -> None:
        """Make the offers of this round again that had no answer, nudge those who owe one, ask about older ones."""
        for t, slot in self._desk.ledger.open:
            if t == self._desk.ledger.round:
                self._offer(t, slot)
        for sender in sorted(self._owing()):
            self._desk.send(sender, Nudge(self._desk.ledger.round))
        self.resolve()

    def hear_nudge(self, peer: int, message: Nudge, *, away: bool) -> None:
        """Make the open offers to this peer again, or say that it should not wait for any."""
        ledger = self._desk.ledger
        fates = {s: sent.fate for (t, s), sent in ledger.outbox.items() if t == message.round and sent.receiver == peer}
        taken_back = any(fate != OPEN for fate in fates.values())
        if taken_back or ledger.skipped(message.round) or (away and message.round > ledger.round):
            self._desk.send(peer, Skipped(message.round))
        for slot, fate in fates.items():
            if fate == OPEN:
                self._offer(message.round, slot)

    def hear_skipped(self, peer: int, message: Skipped) -> None:
        """Wait no longer for this peer's offer of this round."""
        if message.round == self._desk.ledger.round:
            self._skipped.add((message.round, peer))

    def seen_of(self, peer: int) -> list[tuple[int, int]]:
        """Return the (round, slot) of the offers of this peer that were seen here, decided or not."""
        return sorted({(t, slot) for t, sender, slot in (*self._desk.ledger.decisions, *self._early) if sender == peer})

    def resolve(self, *, all_rounds: bool = False) -> None:
        """Ask what became of the open offers of earlier rounds, or of all."""
        ledger = self._desk.ledger
        for t, slot in ledger.open:
            if all_rounds or t < ledger.round:
                self._desk.send(ledger.outbox[t, slot].receiver, Resolve(t, slot))

    def unsent(self, offer: Offer) -> None:
        """Learn that one attempt at an offer has not left; if none has, take it back."""
        key, ledger = (offer.round, offer.slot), self._desk.ledger
        if key not in self._left:
            return  # made in an earlier life: it may have left then
        self._left[key] -= 1
        if self._left[key] == 0 and ledger.outbox[key].fate == OPEN and not ledger.sealed:
            self._desk.record(Settled(*key, "unsent"))

    def hear_answer(self, peer: int, message: Ack | Voided) -> None:
        """Learn what was decided about an own offer."""
        ledger = self._desk.ledger
        sent = ledger.outbox.get((message.round, message.slot))
        if sent is None or sent.receiver != peer:
            raise Nonsense("an answer about an offer that was never made to it")
        if sent.fate == OPEN and not ledger.sealed:
            fate = "acked" if isinstance(message, Ack) else "voided"
            self._desk.record(Settled(message.round, message.slot, fate))

    def awaited(self) -> bool:
        """Whether anyone who is not down still owes this round an offer or an answer."""
        ledger, down = self._desk.ledger, self._desk.down
        asked = {ledger.outbox[t, slot].receiver for t, slot in ledger.open if t == ledger.round}
        return bool((self._owing() | asked) - down)

    def unsettled(self) -> set[int]:
        """Return the parties that open offers were made to."""
        return {self._desk.ledger.outbox[key].receiver for key in self._desk.ledger.open}

    def _owing(self) -> set[int]:
        """Return who has not made an offer of this round yet."""
        ledger = self._desk.ledger
        expected = self._desk.topology.senders[ledger.round][self._desk.me]
        return {
            sender
            for sender, slot in expected
            if (ledger.round, sender, slot) not in ledger.decisions and (ledger.round, sender) not in self._skipped
        }

    # --- offers of others ---------------------------------------------------------------------------------------

    def hear_offer(self, peer: int, offer: Offer) -> None:
        """Decide about an offer, or keep it until its round begins: the peer may be ahead."""
        self._expect(peer, offer.round, offer.slot)
        unpack(offer.payload, self._desk.session.dimension + 1)
        check_account(self._desk.session, self._desk.topology, peer, offer.account)
        if peer not in self.heard or self.heard[peer].last < offer.account.last:
            self.heard[peer] = offer.account
        key = (offer.round, peer, offer.slot)
        if self.deciding and (offer.round <= self._desk.ledger.round or key in self._desk.ledger.decisions):
            self._decide(peer, offer)
        else:
            self._early[key] = offer

    def hear_resolve(self, peer: int, message: Resolve) -> None:
        """Say what became of an offer; one that was never decided is now voided."""
        self._expect(peer, message.round, message.slot)
        key = (message.round, peer, message.slot)
        if not self.deciding or message.round < self._desk.ledger.since:
            return
        self._early.pop(key, None)
        if key not in self._desk.ledger.decisions:
            self._desk.record(Tombstoned(*key))
        self._answer(peer, message.round, message.slot)

    def decide_early(self, *, all_rounds: bool = False) -> None:
        """Decide about the offers that waited for their round, or about all that wait."""
        for key, offer in sorted(self._early.items()):
            if all_rounds or key[0] <= self._desk.ledger.round:
                del self._early[key]
                self._decide(key[1], offer)

    def _expect(self, peer: int, t: int, slot: int) -> None:
        if self._desk.ledger.topology is None:
            raise Nonsense("a transfer before there is a schedule")
        if self._desk.topology.receiver(t, peer, slot) != self._desk.me:
            raise Nonsense(f"a transfer of round {t} that the schedule does not have")

    def _decide(self, peer: int, offer: Offer) -> None:
        """Credit an offer in its round, or write a tombstone, once; say what was decided."""
        key, ledger = (offer.round, peer, offer.slot), self._desk.ledger
        if offer.round < ledger.since:
            return
        if key not in ledger.decisions:
            if offer.round == ledger.round and not ledger.sealed:
                self._desk.record(Credited(*key, offer.payload))
            else:
                self._desk.record(Tombstoned(*key))
        self._answer(peer, offer.round, offer.slot)

    def _answer(self, peer: int, t: int, slot: int) -> None:
        self._desk.send(peer, (Ack if self._desk.ledger.decisions[t, peer, slot] else Voided)(t, slot))
