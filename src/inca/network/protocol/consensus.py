"""Which digests and final messages make up the result: one decision, the same for everyone (single-decree Paxos).

Parties may die between telling some and telling others, so they must agree on what counts. A proposer, any party,
asks all for a promise not to follow older proposals; with promises of more than half it proposes what a promiser has
already accepted, or else all that it holds itself; what more than half accept is decided (Lamport 2001, "Paxos made
simple"). Promises and acceptances are durable. A party accepts only what it holds, so that what is decided is not lost
with its proposer. Turns are taken in an order drawn from the session's id; nobody is in charge.
"""

from __future__ import annotations

import hashlib
from math import inf

from inca.errors import InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.ledger import Accepted, Promised
from inca.network.protocol.messages import Accept, Ballot, ConsensusMessage, Prepare, Promise, Yes, bits, members
from inca.network.protocol.signed_items import Vote

_TURNS_PER_PERIOD = 8  # to propose
_FIRST_RETRY_TURNS = 1 / 16  # after which whoever has not answered is asked again, at first
_YIELD_PERIODS = 1 / 2  # for which a party does not propose itself after it has promised something to another
_MAX_ROUNDS_AHEAD = 1000  # of ballots, one for each party


class Consensus:
    """A party's part in the decision: as an acceptor and, in its turn, as a proposer."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self._ballot = 0
        self._promises: dict[int, Promise] = {}
        self._proposed: Vote | None = None
        self._yes: set[int] = set()
        self._next_turn = inf
        self._retry_at = inf
        self._retry_pause = 0.0  # before those who have not answered are asked again
        session = context.session
        order_keys = [
            hashlib.sha256(session.id + b"turn" + party.to_bytes(4, "little")).digest()
            for party in range(session.parties)
        ]
        self._order = sorted(range(session.parties), key=lambda party: order_keys[party])

    @property
    def may_vote(self) -> bool:
        """Whether this party may vote: not if it came late, as it may have voted before with a journal that is lost."""
        opened = self._context.ledger.opened
        return opened is not None and not opened.late

    @property
    def wakeup(self) -> float:
        """When something is due."""
        return min(self._next_turn, self._retry_at)

    def enter(self, now: float) -> None:
        """Be ready to propose when it is this party's turn: after those before it that are not known to be down."""
        if not self.may_vote:
            return
        before = self._order[: self._order.index(self._context.me)]
        self._next_turn = now + len(set(before) - self._context.down) * self._turn_s

    def tick(self, now: float) -> None:
        """Propose in turn; repeat what had no answer."""
        if now >= self._next_turn:
            self._next_turn = now + self._turn_s * len(self._order)
            self._propose(now)
        if now >= self._retry_at:
            self._retry_pause = min(2 * self._retry_pause, self._turn_s)
            self._retry_at = now + self._retry_pause
            self._ask_again()

    def handle(self, now: float, peer: int, message: ConsensusMessage) -> None:
        """Take a message of the consensus; those of old ballots change nothing."""
        if not self.may_vote:
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
                self._accept(peer, message)
            case Yes():
                if message.ballot == self._ballot and self._proposed is not None:
                    self._yes.add(peer)
                    self._decide()

    def _check(self, peer: int, message: ConsensusMessage) -> None:
        """Refuse ballots of others than their proposers or far ahead, and proposals that leave out most parties."""
        n, quorum = self._context.session.parties, self._context.session.quorum
        furthest = self._context.ledger.promised + _MAX_ROUNDS_AHEAD * n
        if isinstance(message, Prepare | Accept) and (message.ballot % n != peer or message.ballot > furthest):
            raise InvalidPeerMessage(
                f"a ballot must be the proposer's own and at most {furthest}, got {message.ballot}"
            )
        if isinstance(message, Accept) or (isinstance(message, Promise) and message.accepted):
            digests, finals = members(message.digests, n), members(message.finals, n)
            if len(digests) < quorum or not finals <= digests:
                raise InvalidPeerMessage(
                    f"a proposal must have the digests of at least {quorum} parties and of all whose final message "
                    f"it has, got {len(digests)} digests and {len(finals)} final messages"
                )

    @property
    def _turn_s(self) -> float:
        return self._context.session.period / _TURNS_PER_PERIOD

    def _propose(self, now: float) -> None:
        context, n = self._context, self._context.session.parties
        highest = max(self._ballot, context.ledger.promised)
        self._ballot = (highest // n + 1) * n + context.me  # above all seen, and no other party's
        self._promises, self._proposed, self._yes = {}, None, set()
        self._retry_pause = self._turn_s * _FIRST_RETRY_TURNS  # perhaps only an item is missing that is on its way
        self._retry_at = now + self._retry_pause
        context.log_event("proposes", ballot=self._ballot)
        for peer in sorted(context.others):
            context.send(peer, Prepare(self._ballot))
        self._promise(now, context.me, self._ballot)

    def _ask_again(self) -> None:
        """Ask those again who have not answered."""
        context = self._context
        if self._proposed is None:
            for peer in sorted(context.others - set(self._promises)):
                context.send(peer, Prepare(self._ballot))
        elif len(self._yes) < context.session.quorum:
            for peer in sorted(context.others - self._yes):
                context.send(peer, Accept(self._ballot, self._proposed.digests, self._proposed.finals))
        else:
            self._retry_at = inf

    def _promise(self, now: float, peer: int, ballot: Ballot) -> None:
        context, ledger = self._context, self._context.ledger
        if ballot < ledger.promised:
            return  # a newer proposal is under way
        if ballot > ledger.promised:
            context.record(Promised(ballot))
        if peer != context.me:
            self._next_turn = max(self._next_turn, now + _YIELD_PERIODS * context.session.period)  # let it finish
        last = ledger.accepted
        promise = Promise(ballot, last.ballot, last.digests, last.finals) if last else Promise(ballot, 0, b"", b"")
        if peer == context.me:
            self._promises[peer] = promise
            self._choose()
        else:
            context.send(peer, promise)

    def _choose(self) -> None:
        """With enough promises, propose what may have been decided already, or all that this party holds."""
        context, n, quorum = self._context, self._context.session.parties, self._context.session.quorum
        if len(self._promises) < quorum:
            return
        latest = max(self._promises.values(), key=lambda promise: promise.accepted)
        items = context.signed_items.by_kind
        digests = set(items["digest"])
        if not latest.accepted and len(digests) < quorum:
            return  # more digests may come; it asks again
        own = Vote(bits(digests, n), bits(set(items["final"]) & digests, n))
        self._proposed = Vote(latest.digests, latest.finals) if latest.accepted else own
        accept = Accept(self._ballot, self._proposed.digests, self._proposed.finals)
        for peer in sorted(context.others):
            context.send(peer, accept)
        self._accept(context.me, accept)

    def _accept(self, peer: int, message: Accept) -> None:
        context, n = self._context, self._context.session.parties
        digests, finals = members(message.digests, n), members(message.finals, n)
        if message.ballot < context.ledger.promised:
            return
        items = context.signed_items.by_kind
        if not (digests <= set(items["digest"]) and finals <= set(items["final"])):
            if peer != context.me:
                context.send(peer, context.signed_items.have())  # it accepts when it has what it accepts
            return
        last = context.ledger.accepted
        if last is None or last.ballot != message.ballot:
            context.record(Accepted(message.ballot, message.digests, message.finals))
        if peer == context.me:
            self._yes.add(peer)
            self._decide()
        else:
            context.send(peer, Yes(message.ballot))

    def _decide(self) -> None:
        context = self._context
        if len(self._yes) < context.session.quorum or self._proposed is None:
            return
        self._next_turn = self._retry_at = inf
        if context.me not in context.signed_items.by_kind["decision"]:
            context.publish("decision", self._proposed)
            have = context.signed_items.have()
            for peer in sorted(context.others - context.down):
                context.send(peer, have)  # everyone asks for what it lacks
