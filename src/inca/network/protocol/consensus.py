"""What the parties of a session agree on, one decision after the other, the same for everyone (Paxos).

Parties may die between telling some and telling others, so they must agree on what counts. A proposer, any party,
asks all for a promise not to follow older proposals; with promises of more than half it proposes what a promiser has
already accepted, or else what its agenda says; what more than half accept is decided (Lamport 2001, "Paxos made
simple"). Proposals name contents by their hashes, not parties alone. Promises and acceptances are durable, and so are
the items that an acceptance names: a decision survives any restart. Acceptances are signed, so that a decision can be
shown to whoever comes later. Turns are taken in an order drawn from the session's id; nobody is in charge.
"""

from __future__ import annotations

import hashlib
from math import inf

from inca.errors import InvalidPeerMessage
from inca.network.protocol.agenda import Agenda, kind_of
from inca.network.protocol.context import PartyContext
from inca.network.protocol.ledger import Accepted, Decided, Promised
from inca.network.protocol.messages import (
    Accept,
    Ballot,
    ConsensusMessage,
    Decision,
    Decisions,
    Fetch,
    Prepare,
    Promise,
    Proposal,
    Want,
    Yes,
)

_TURNS_PER_PERIOD = 8  # to propose
_FIRST_RETRY_TURNS = 1 / 16  # after which whoever has not answered is asked again, at first
_YIELD_PERIODS = 1 / 2  # for which a party does not propose itself after it has promised something to another
_MAX_ROUNDS_AHEAD = 1000  # of ballots, one for each party
_MAX_PAUSE_PERIODS = 2.0  # after which a party's next ballot is followed; at first a turn, then twice as long each time


class Consensus:
    """A party's part in the decisions: as an acceptor and, in its turn, as a proposer."""

    def __init__(self, context: PartyContext, agenda: Agenda) -> None:
        self._context, self._agenda = context, agenda
        self._next_turn = self._retry_at = inf
        self._retry_pause = 0.0  # before those who have not answered are asked again
        # By proposer: its last ballot, until when no other of its ballots is followed, and for how long after that.
        self._followed: dict[int, tuple[Ballot, float, float]] = {}
        self._accepted_at = -inf  # something in the current decision
        self._reset()
        session = context.session
        order_keys = [
            hashlib.sha256(session.id + b"turn" + party.to_bytes(4, "little")).digest()
            for party in range(session.parties)
        ]
        self._order = sorted(range(session.parties), key=lambda party: order_keys[party])

    def _reset(self) -> None:
        self._ballot = 0
        self._promises: dict[int, Promise] = {}
        self._proposed: Proposal | None = None
        self._yes: dict[int, bytes] = {}

    @property
    def instance(self) -> int:
        """The number of the decision that comes next."""
        return len(self._context.ledger.decided)

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
        self._next_turn = now + len(set(before) - set(self._context.down)) * self._turn_s

    def tick(self, now: float) -> None:
        """Propose in turn; repeat what had no answer."""
        if now >= self._next_turn:
            self._next_turn = now + self._turn_s * len(self._order)
            self._prepare(now)
        if now >= self._retry_at:
            self._retry_pause = min(2 * self._retry_pause, self._turn_s)
            self._retry_at = now + self._retry_pause
            self._ask_again(now)

    def handle(self, now: float, peer: int, message: ConsensusMessage) -> None:
        """Take a message of the consensus; those of old decisions or ballots change nothing."""
        if message.instance != self.instance:
            self._catch_up(peer, message)
            return
        if not self.may_vote:
            return
        self._check_ballot(peer, message)
        match message:
            case Prepare():
                self._promise(now, peer, message.ballot)
            case Promise():
                if message.ballot == self._ballot and self._proposed is None:
                    self._check_promise(message)
                    self._promises[peer] = message
                    self._choose(now)
            case Accept():
                self._accept(now, peer, message)
            case Yes():
                self._count_yes(peer, message)

    def _catch_up(self, peer: int, message: ConsensusMessage) -> None:
        """Tell the peer what was decided, or ask it."""
        if message.instance > self.instance:
            self._context.send(peer, Want({}, self.instance))
        elif isinstance(message, Prepare | Accept):
            self._context.send(peer, self.decisions(message.instance))

    def decisions(self, first: int) -> Decisions:
        """Return all decisions from a number on."""
        return Decisions(first, self._context.ledger.decided[first:])

    def adopt(self, message: Decisions) -> None:
        """Follow decisions that others have reached; refuse what more than half have not signed."""
        for number, decision in enumerate(message.decisions, start=message.first):
            if number == self.instance:
                self._context.signed_items.check_decision(number, decision)
                self._agenda.check(decision.proposal)
                self._decide(decision)

    def _check_ballot(self, peer: int, message: ConsensusMessage) -> None:
        """Refuse ballots of others than their proposers or far ahead."""
        n = self._context.session.parties
        furthest = self._context.ledger.promised.get(self.instance, 0) + _MAX_ROUNDS_AHEAD * n
        if isinstance(message, Prepare | Accept) and (message.ballot % n != peer or message.ballot > furthest):
            raise InvalidPeerMessage(
                f"a ballot must be the proposer's own and at most {furthest}, got {message.ballot}"
            )

    def _check_promise(self, message: Promise) -> None:
        """Refuse a promise that tells of something that cannot have been accepted before."""
        if (message.proposal is None) != (message.accepted == 0) or message.accepted >= message.ballot:
            raise InvalidPeerMessage("a promise must tell what was accepted before, if anything was")
        if message.proposal is not None:
            self._agenda.check(message.proposal)

    def _follows(self, now: float, proposer: int, ballot: Ballot) -> bool:
        """Return whether a ballot is followed; a party that begins one after the other would stall everyone else."""
        promised = self._context.ledger.promised.get(self.instance, 0)
        if ballot <= promised or proposer == self._context.me:
            return ballot >= promised
        last, until, pause = self._followed.get(proposer, (0, -inf, self._turn_s))
        if ballot != last and now < until:
            return False
        if ballot != last:
            most = _MAX_PAUSE_PERIODS * self._context.session.period
            self._followed[proposer] = ballot, now + pause, min(2 * pause, most)
        return True

    @property
    def _turn_s(self) -> float:
        return self._context.session.period / _TURNS_PER_PERIOD

    # --- as a proposer --------------------------------------------------------------------------------------------

    def _prepare(self, now: float) -> None:
        context, n = self._context, self._context.session.parties
        highest = max(self._ballot, context.ledger.promised.get(self.instance, 0))
        self._reset()
        self._ballot = (highest // n + 1) * n + context.me  # above all seen, and no other party's
        self._retry_pause = self._turn_s * _FIRST_RETRY_TURNS  # perhaps only an item is missing that is on its way
        self._retry_at = now + self._retry_pause
        context.log_event("proposes", decision=self.instance, ballot=self._ballot)
        for peer in sorted(context.others):
            context.send(peer, Prepare(self.instance, self._ballot))
        self._promise(now, context.me, self._ballot)

    def _ask_again(self, now: float) -> None:
        """Ask those again who have not answered."""
        context = self._context
        if self._proposed is None:
            self._choose(now)
            if self._proposed is None:
                for peer in sorted(context.others - set(self._promises)):
                    context.send(peer, Prepare(self.instance, self._ballot))
        elif len(self._yes) < context.session.quorum:
            for peer in sorted(context.others - set(self._yes)):
                context.send(peer, Accept(self.instance, self._ballot, self._proposed))

    def _choose(self, now: float) -> None:
        """With enough promises, propose what may have been decided already, or what the agenda says."""
        context = self._context
        if len(self._promises) < context.session.quorum or self._proposed is not None:
            return
        # A promise counts once all that it tells of is there: who claims something and does not show it is left out.
        shown = [p for peer, p in self._promises.items() if p.proposal is None or self._has_all(peer, p.proposal)]
        if len(shown) < context.session.quorum:
            return
        latest = max(shown, key=lambda promise: promise.accepted)
        if (proposal := latest.proposal or self._agenda.propose(now)) is None:
            return  # it asks again
        self._proposed = proposal
        accept = Accept(self.instance, self._ballot, proposal)
        for peer in sorted(context.others):
            context.send(peer, accept)
        self._accept(now, context.me, accept)

    def _count_yes(self, peer: int, message: Yes) -> None:
        if message.ballot != self._ballot or self._proposed is None or peer in self._yes:
            return
        proposal = self._proposed.hash
        if not self._context.signed_items.accepted_by(peer, self.instance, self._ballot, proposal, message.signature):
            raise InvalidPeerMessage("an acceptance that its party has not signed")
        self._yes[peer] = message.signature
        if len(self._yes) >= self._context.session.quorum:
            decisions = self.instance
            self._decide(Decision(self._ballot, self._proposed, sorted(self._yes.items())))
            for other in sorted(self._context.others - set(self._context.down)):
                self._context.send(other, self.decisions(decisions))

    def _decide(self, decision: Decision) -> None:
        self._next_turn = self._retry_at = inf
        self._context.record(Decided(decision))
        self._followed, self._accepted_at = {}, -inf
        self._reset()

    # --- as an acceptor -------------------------------------------------------------------------------------------

    def _promise(self, now: float, peer: int, ballot: Ballot) -> None:
        context, ledger, instance = self._context, self._context.ledger, self.instance
        if not self._follows(now, peer, ballot):
            return  # a newer proposal is under way, or it is not this peer's turn
        if ballot > ledger.promised.get(instance, 0):
            context.record(Promised(instance, ballot))
        if peer != context.me:
            self._next_turn = max(self._next_turn, now + _YIELD_PERIODS * context.session.period)  # let it finish
        last = ledger.accepted.get(instance)
        promise = Promise(instance, ballot, last.ballot if last else 0, last.proposal if last else None)
        if peer == context.me:
            self._promises[peer] = promise
            self._choose(now)
        else:
            context.send(peer, promise)

    def _accept(self, now: float, peer: int, message: Accept) -> None:
        context, ledger, instance = self._context, self._context.ledger, self.instance
        last = ledger.accepted.get(instance)
        self._agenda.check(message.proposal)
        if not self._follows(now, peer, message.ballot):
            return
        if last is not None and last.ballot == message.ballot and last.proposal != message.proposal:
            raise InvalidPeerMessage("a ballot must have one proposal, got a second")
        if (last is None or last.proposal != message.proposal) and self._is_too_early(now, message.proposal):
            return
        if not self._has_all(peer, message.proposal):
            return  # it accepts when it has what it accepts
        if last is None or last.ballot != message.ballot:
            kept = self._agenda.behind(message.proposal)
            context.signed_items.keep(kind_of(message.proposal.step), message.proposal.contents)
            context.record(Accepted(instance, message.ballot, message.proposal, kept))
            self._accepted_at = now
        signature = context.signed_items.sign_acceptance(instance, message.ballot, message.proposal.hash)
        yes = Yes(instance, message.ballot, signature)
        if peer == context.me:
            self._count_yes(peer, yes)
        else:
            context.send(peer, yes)

    def _is_too_early(self, now: float, proposal: Proposal) -> bool:
        """Return whether to wait before accepting something else than before, or something that leaves parties out.

        A proposer that ignores what was accepted already would get two decisions out of parties that accept one thing
        right after the other. Whoever waits a period has heard of the first decision by then.
        """
        return now < self._accepted_at + self._context.session.period or self._agenda.slights(now, proposal)

    def _has_all(self, peer: int, proposal: Proposal) -> bool:
        """Return whether all that a proposal rests on is held; ask the peer for what is missing."""
        lacking = self._agenda.lacks(proposal, peer)
        if lacking and peer != self._context.me:
            if proposal.step == "commit":
                self._context.send(peer, self._context.have())
            else:
                self._context.send(peer, Fetch(kind_of(proposal.step), lacking))
        return not lacking
