"""Which digests and final messages make up the result: one decision, the same for everyone (single-decree Paxos).

Parties may die between telling some and telling others, so they must agree on what counts. A proposer, any party,
asks all for a promise not to follow older proposals; with promises of more than half it proposes what a promiser has
already accepted, or else all that it holds itself; what more than half accept is decided (Lamport 2001, "Paxos made
simple"). Promises and acceptances are durable. A party accepts only what it holds, so that what is decided is not lost
with its proposer. Turns are taken in an order drawn from the session's id; nobody is in charge.
"""

from __future__ import annotations

import hashlib

from inca.network.protocol.context import Desk
from inca.network.protocol.ledger import Accepted, Promised
from inca.network.protocol.messages import (
    Accept,
    Agreeing,
    Ballot,
    Have,
    Nonsense,
    Prepare,
    Promise,
    Yes,
    bits,
    members,
)
from inca.network.protocol.signed_items import Vote

_TURNS = 8  # turns to propose in a period
_SOON = 16  # parts of a turn after which whoever has not answered is asked again, at first
_JUMP = 1000  # how many ballots a proposal may be ahead


class Agreement:
    """A party's part in the decision: as one who accepts and, in its turn, as one who proposes."""

    def __init__(self, desk: Desk) -> None:
        """Begin with what the ledger knows."""
        self._desk = desk
        self._ballot = 0
        self._promises: dict[int, Promise] = {}
        self._proposed: Vote | None = None
        self._yes: set[int] = set()
        self._next = float("inf")
        self._again = float("inf")
        self._pause = 0.0  # before those who have not answered are asked again
        session = desk.session
        marks = [
            hashlib.sha256(session.id + b"turn" + p.to_bytes(4, "little")).digest() for p in range(session.parties)
        ]
        self._order = sorted(range(session.parties), key=lambda party: marks[party])

    @property
    def votes(self) -> bool:
        """Whether this party may vote: not if it came late, as it may have voted before with a journal that is lost."""
        opened = self._desk.ledger.opened
        return opened is not None and not opened.late

    @property
    def wakeup(self) -> float:
        """When something is due."""
        return min(self._next, self._again)

    def enter(self, now: float) -> None:
        """Be ready to propose when it is this party's turn: after those before it that are not known to be down."""
        if not self.votes:
            return
        before = self._order[: self._order.index(self._desk.me)]
        self._next = now + len(set(before) - self._desk.down) * self._slot

    def tick(self, now: float) -> None:
        """Propose in turn; repeat what had no answer."""
        if now >= self._next:
            self._next = now + self._slot * len(self._order)
            self._propose(now)
        if now >= self._again:
            self._pause = min(2 * self._pause, self._slot)
            self._again = now + self._pause
            self._press()

    def hear(self, now: float, peer: int, message: Agreeing) -> None:
        """Take a message of the agreement; those of old ballots change nothing."""
        if not self.votes:
            return
        self._check(peer, message)
        match message:
            case Prepare():
                self._promise(now, peer, message.ballot)
            case Promise():
                if message.ballot == self._ballot and self._proposed is None:
                    self._promises[peer] = message
                    self._choose()
            case Accept():
                self._accept(now, peer, message)
            case Yes():
                if message.ballot == self._ballot and self._proposed is not None:
                    self._yes.add(peer)
                    self._decide()

    def _check(self, peer: int, message: Agreeing) -> None:
        """Refuse ballots of others than their proposers or far ahead, and proposals that leave out most parties."""
        n = self._desk.session.parties
        furthest = self._desk.ledger.promised + _JUMP * n
        if isinstance(message, Prepare | Accept) and (message.ballot % n != peer or message.ballot > furthest):
            raise Nonsense("a ballot that is not its own, or far ahead")
        if isinstance(message, Accept) or (isinstance(message, Promise) and message.accepted):
            digests, finals = members(message.digests, n), members(message.finals, n)
            if len(digests) < self._desk.session.quorum or not finals <= digests:
                raise Nonsense("a proposal without the digests of more than half of the parties")

    def _lot(self, party: int) -> bytes:
        return hashlib.sha256(self._desk.session.id + b"turn" + party.to_bytes(4, "little")).digest()

    @property
    def _slot(self) -> float:
        return self._desk.session.period / _TURNS

    def _propose(self, now: float) -> None:
        n = self._desk.session.parties
        highest = max(self._ballot, self._desk.ledger.promised)
        self._ballot = (highest // n + 1) * n + self._desk.me  # above all seen, and no other party's
        self._promises, self._proposed, self._yes = {}, None, set()
        self._pause = self._slot / _SOON  # an answer may lack nothing but an item that is on its way
        self._again = now + self._pause
        self._desk.note("proposes", ballot=self._ballot)
        for peer in sorted(self._desk.others):
            self._desk.send(peer, Prepare(self._ballot))
        self._promise(now, self._desk.me, self._ballot)

    def _press(self) -> None:
        """Ask those again who have not answered."""
        if self._proposed is None:
            for peer in sorted(self._desk.others - set(self._promises)):
                self._desk.send(peer, Prepare(self._ballot))
        elif len(self._yes) < self._desk.session.quorum:
            for peer in sorted(self._desk.others - self._yes):
                self._desk.send(peer, Accept(self._ballot, self._proposed.digests, self._proposed.finals))
        else:
            self._again = float("inf")

    def _promise(self, now: float, peer: int, ballot: Ballot) -> None:
        ledger = self._desk.ledger
        if ballot < ledger.promised:
            return  # a newer proposal is under way
        if ballot > ledger.promised:
            self._desk.record(Promised(ballot))
        if peer != self._desk.me:
            self._next = max(self._next, now + _TURNS * self._slot / 2)  # let it finish
        given = ledger.accepted
        answer = Promise(ballot, given.ballot, given.digests, given.finals) if given else Promise(ballot, 0, b"", b"")
        if peer == self._desk.me:
            self._promises[peer] = answer
            self._choose()
        else:
            self._desk.send(peer, answer)

    def _choose(self) -> None:
        """With enough promises, propose what may have been decided already, or all that this party holds."""
        if len(self._promises) < self._desk.session.quorum:
            return
        latest = max(self._promises.values(), key=lambda promise: promise.accepted)
        items, n = self._desk.gossip.items, self._desk.session.parties
        digests = set(items["digest"])
        if not latest.accepted and len(digests) < self._desk.session.quorum:
            return  # more digests may come; it asks again
        own = Vote(bits(digests, n), bits(set(items["final"]) & digests, n))
        self._proposed = Vote(latest.digests, latest.finals) if latest.accepted else own
        accept = Accept(self._ballot, self._proposed.digests, self._proposed.finals)
        for peer in sorted(self._desk.others):
            self._desk.send(peer, accept)
        self._accept(0.0, self._desk.me, accept)

    def _accept(self, now: float, peer: int, message: Accept) -> None:
        desk, n = self._desk, self._desk.session.parties
        digests, finals = members(message.digests, n), members(message.finals, n)
        if message.ballot < desk.ledger.promised:
            return
        held = desk.gossip.items
        if not (digests <= set(held["digest"]) and finals <= set(held["final"])):
            if peer != desk.me:
                desk.send(peer, desk.gossip.have())  # it accepts when it has what it accepts
            return
        given = desk.ledger.accepted
        if given is None or given.ballot != message.ballot:
            desk.record(Accepted(message.ballot, message.digests, message.finals))
        if peer == desk.me:
            self._yes.add(peer)
            self._decide()
        else:
            desk.send(peer, Yes(message.ballot))

    def _decide(self) -> None:
        if len(self._yes) < self._desk.session.quorum or self._proposed is None:
            return
        self._next = self._again = float("inf")
        if self._desk.me not in self._desk.gossip.items["decision"]:
            self._desk.publish("decision", self._proposed)
            have: Have = self._desk.gossip.have()
            for peer in sorted(self._desk.others - self._desk.down):
                self._desk.send(peer, have)  # everyone asks for what it lacks
