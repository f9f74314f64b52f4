"""What the parties of a session agree on, one decision after the other, the same for everyone.

Parties may die between telling some and telling others, and one of them may lie, so they must agree on what counts.
This is Paxos (Lamport 2001, "Paxos made simple") in the form that bears a liar, as in PBFT (Castro and Liskov 1999):
a proposer, any party, asks all for signed promises not to follow older ballots; with a quorum of them it proposes what
a promiser was *locked* on, or else what its agenda says, and shows the promises; parties *vote*, once in a ballot; with
a quorum of votes, which is unique, they are locked on the proposal, and accept it; what a quorum has accepted is
decided. Nobody need be asked for promises in the lowest ballot there is, as nothing can have been decided before.

Why no member can split a session. If a quorum has accepted X in ballot b, every quorum of promises for a later ballot
has an honest party in it that was locked on X in b before it promised. So it shows a lock of ballot b or later, which
is on X: of ballot b since locks are unique, of a later one by induction, as an honest party voted for it. Hence honest
parties vote for nothing but X, ever. No clock and no delay is part of this.

Proposals name contents by their hashes, not parties alone. Promises, votes and acceptances are durable, and so are the
items that an acceptance names: a decision survives any restart.

Why no member can stall one. Ballots are numbered by the clock: time is cut into turns, which the parties have one after
the other, in an order drawn from the session's id, and a ballot is that of a turn, n being the first. Nobody follows a
ballot long before its turn. So a member can place itself above the others once in n turns, and is passed over in all
that follow; and nobody need be told how far another's promises have gone. Whoever follows a proposer lets it finish,
once. Only the lowest ballot, which is that of the first in order, may come at any time. Nobody is in charge.
"""

from __future__ import annotations

from math import floor, inf

from inca.errors import InvalidPeerMessage
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures, Word
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import (
    Accept,
    Ballot,
    ConsensusMessage,
    Decision,
    Decisions,
    Fetch,
    Lock,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Vote,
    Want,
    Yes,
)
from inca.network.protocol.records import Accepted, Promised, Voted
from inca.network.protocol.session import order_by_hash

_TURNS_PER_PERIOD = 4  # to propose
_IN_ANY_CASE_PERIODS = 2.0  # after which a party proposes what others were locked on, if it has nothing itself
_FIRST_HAS_TURNS = 2  # before the others propose
_FIRST_RETRY_TURNS = 1 / 4  # after which whoever has not answered is asked again, at first
_YIELD_PERIODS = 1 / 2  # for which a party does not propose itself after it has followed another's first ballot
_TURNS_AHEAD = 2  # that a ballot may come before its turn: clocks differ by less than half a period
_MAX_ROUNDS_AHEAD = 1000  # of turns, one for each party: no clock is that wrong
_AGAIN_PERIODS = 1 / 32  # after which a peer that asks is told the same decisions, or promised the same, again
_MAX_PAUSE_PERIODS = 2.0  # after which a party's next ballot is followed; at first a turn, then twice as long each time


class Consensus:
    """A party's part in the decisions: as an acceptor and, in its turn, as a proposer."""

    def __init__(self, context: PartyContext, agenda: Agenda, signatures: BallotSignatures) -> None:
        self._context, self._agenda, self._signatures = context, agenda, signatures
        session = context.session
        self._turn_s, self._max_pause_s = session.period / _TURNS_PER_PERIOD, _MAX_PAUSE_PERIODS * session.period
        self._lowest: Ballot = session.parties  # that of the first in order; 0 stands for none
        self._next_turn = self._retry_at = self._look_at = inf
        self._retry_pause = 0.0  # before those who have not answered are asked again
        self._own_pause = 0.0  # before this party proposes again
        # By proposer: its last ballot, until when no other of its ballots is followed, and for how long after that.
        self._followed: dict[int, tuple[Ballot, float, float]] = {}
        self._first_ballots: dict[int, Ballot] = {}  # of those that this party has let finish
        self._waiting: tuple[int, Propose | Accept] | None = None  # by whom, what cannot be answered yet
        # Whom it has told decisions, how many, and until when not again; and to whom it has promised which ballot.
        self._told: dict[int, tuple[int, float]] = {}
        self._promised: dict[int, tuple[Ballot, float]] = {}
        self._reset()
        self.order = order_by_hash(session.id + b"turn", session.parties)
        self._place = self.order.index(context.me)

    def _reset(self) -> None:
        self._ballot = 0
        self._promises: dict[int, Promise] = {}
        self._proposal: Propose | None = None
        self._votes: dict[int, bytes] = {}
        self._lock: Lock | None = None
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
        return min(self._next_turn, self._retry_at, self._look_at)

    def enter(self, now: float) -> None:
        """Be ready to propose when it is this party's turn, once it has something to propose.

        After a while it asks the others in any case: they may know what it does not.
        """
        if not self.may_vote:
            return
        self._own_pause = self._turn_s * self._lowest
        self._next_turn = self._own_turn(now + _IN_ANY_CASE_PERIODS * self._context.session.period)
        self._look(now)

    def _look(self, now: float) -> None:
        """Begin to wait for the own turn as soon as there is something to propose; the first in order has none to wait.

        The others give it some turns, unless it is known to be down: two ballots at once hold each other up.
        """
        if self._agenda.propose(now) is None:
            self._look_at = now + self._turn_s
        else:
            alone = self.order[0] in (self._context.me, *self._context.down)
            grace = 0.0 if alone else _FIRST_HAS_TURNS * self._turn_s
            self._look_at, self._next_turn = inf, min(self._next_turn, self._own_turn(now + grace))

    def tick(self, now: float) -> None:
        """Propose in turn; repeat what had no answer."""
        if now >= self._look_at:
            self._look(now)
        if now >= self._next_turn:
            self._look_at = inf
            if self._begin_ballot(now):
                # Twice as long each time, as others follow it: two that hurry would keep each other from ending.
                self._next_turn = self._own_turn(now + self._own_pause)
                self._own_pause = max(self._own_pause, min(2 * self._own_pause, self._max_pause_s))
            else:
                self._next_turn = self._own_turn(now)
        if now >= self._retry_at:
            self._retry_pause = min(2 * self._retry_pause, self._turn_s)
            self._retry_at = now + self._retry_pause
            self._ask_again(now)

    def reconsider(self, now: float) -> None:
        """Propose, vote or accept if that is what this party was waiting for: items have come."""
        if self._look_at < inf:
            self._look_at = now
        if self._ballot and self._proposal is None:
            self._propose(now)
        if self._waiting is None:
            return
        peer, message = self._waiting
        proposal = message.proposal if isinstance(message, Propose) else message.lock.proposal
        if message.instance != self.instance:
            self._waiting = None
        elif not self._agenda.lacks(proposal, peer):
            self._waiting = None
            try:
                self.handle(now, peer, message)
            except InvalidPeerMessage as error:  # it is not the fault of whoever has brought the items
                self._context.log_event("invalid message", peer=peer, what=str(error))

    def handle(self, now: float, peer: int, message: ConsensusMessage) -> None:
        """Take a message of the consensus; those of old decisions or ballots change nothing."""
        if message.instance != self.instance:
            self._catch_up(now, peer, message)
            return
        if not self.may_vote:
            return
        match message:
            case Prepare():
                self._check_ballot(now, peer, message.ballot)
                self._promise(now, peer, message.ballot)
            case Promise():
                self._count_promise(now, peer, message)
            case Propose():
                self._check_ballot(now, peer, message.ballot)
                self._vote(now, peer, message)
            case Accept():
                self._check_ballot(now, peer, message.lock.ballot)
                self._accept(now, peer, message)
            case Vote() | Yes():
                self._count(now, peer, message)

    def _catch_up(self, now: float, peer: int, message: ConsensusMessage) -> None:
        """Tell the peer what was decided, or ask it."""
        if message.instance > self.instance:
            self._context.send(peer, Want({}, self.instance))
        elif isinstance(message, Prepare | Propose | Accept):
            self.tell(now, peer, message.instance)

    def tell(self, now: float, peer: int, first: int) -> None:
        """Tell a peer that asks all decisions from a number on: the same ones not again and again."""
        if first < self.instance and self._is_news(now, peer, self._told, self.instance):
            self._context.send(peer, self.decisions(first))

    def _is_news(self, now: float, peer: int, said: dict[int, tuple[int, float]], what: int) -> bool:
        """Return whether a peer may be sent an answer, which is large, and note that it is."""
        last, until = said.get(peer, (0, -inf))
        if what == last and now < until:
            return False
        said[peer] = what, now + _AGAIN_PERIODS * self._context.session.period
        return True

    def connected(self, peer: int) -> None:
        """Learn of a new connection: what the peer was told on an earlier one may be lost."""
        self._told.pop(peer, None)
        self._promised.pop(peer, None)

    def decisions(self, first: int) -> Decisions:
        """Return all decisions from a number on."""
        return Decisions(first, self._context.ledger.decided[first:])

    def adopt(self, message: Decisions) -> None:
        """Follow decisions that others have reached; refuse what no quorum has signed."""
        for number, decision in enumerate(message.decisions, start=message.first):
            if number == self.instance:
                self._signatures.check_decision(number, decision)
                self._agenda.check(decision.proposal)
                self._decide(decision)

    def _check_ballot(self, now: float, peer: int, ballot: Ballot) -> None:
        """Refuse ballots of others than their proposers, below the lowest, or far ahead of any clock."""
        furthest = self._turn(now) + _MAX_ROUNDS_AHEAD * self._lowest
        if self.order[ballot % self._lowest] != peer or not self._lowest <= ballot <= furthest:
            raise InvalidPeerMessage(
                f"a ballot must be the proposer's own and from {self._lowest} to {furthest}, got {ballot}"
            )

    def _turn(self, now: float) -> Ballot:
        """Return the number of the turn by the clock; the first is the lowest ballot."""
        since_start = now - self._context.session.start
        return self._lowest + max(0, floor(since_start / self._turn_s + 1e-6))  # a clock's error is far larger

    def _own_turn(self, when: float) -> float:
        """Return when this party may begin a ballot, from some time on."""
        if not self._highest and self._place == 0:
            return when
        turn = max(self._turn(when), self._highest + 1)
        turn += (self._place - turn) % self._lowest
        return max(when, self._context.session.start + (turn - self._lowest) * self._turn_s)

    @property
    def _promised_ballot(self) -> Ballot:
        return self._context.ledger.promised.get(self.instance, 0)

    @property
    def _highest(self) -> Ballot:
        """The highest ballot that this party has begun or followed."""
        return max(self._ballot, self._promised_ballot)

    def _follows(self, now: float, proposer: int, ballot: Ballot) -> bool:
        """Return whether a ballot is followed: not before its turn, and not if one came a short while ago."""
        if ballot <= self._promised_ballot or proposer == self._context.me:
            return ballot >= self._promised_ballot
        if ballot > self._turn(now) + _TURNS_AHEAD:
            return False
        last, until, pause = self._followed.get(proposer, (0, -inf, self._turn_s))
        if ballot != last and now < until:
            return False
        if ballot != last:
            self._followed[proposer] = ballot, now + pause, min(2 * pause, self._max_pause_s)
        return True

    # --- as a proposer --------------------------------------------------------------------------------------------

    def _begin_ballot(self, now: float) -> bool:
        """Begin the ballot of the own turn, unless a later one is under way; return whether it has begun."""
        context, turn = self._context, self._turn(now)
        ballot = turn - (turn - self._place) % self._lowest
        if not self._highest and self._place == 0:
            ballot = self._lowest
        if ballot <= max(self._highest, self._lowest - 1):
            return False
        self._reset()
        self._ballot = ballot
        self._expect_answers(now)
        context.log_event("proposes", decision=self.instance, ballot=self._ballot)
        if self._ballot == self._lowest:
            context.record(Promised(self.instance, self._ballot))
            self._propose(now)
            return True
        context.send_all(Prepare(self.instance, self._ballot))
        self._promise(now, context.me, self._ballot)
        return True

    def _expect_answers(self, now: float) -> None:
        """Ask again soon at first, and then less and less often."""
        self._retry_pause = self._turn_s * _FIRST_RETRY_TURNS
        self._retry_at = now + self._retry_pause

    def _ask_again(self, now: float) -> None:
        """Ask those again who have not answered."""
        context = self._context
        if self._proposal is None:
            self._propose(now)
            if self._proposal is None and self._ballot != self._lowest:
                context.send_all(Prepare(self.instance, self._ballot), but=self._promises)
        elif self._lock is None:
            context.send_all(self._proposal, but=self._votes)
        else:
            context.send_all(Accept(self.instance, self._lock), but=self._yes)

    def _count_promise(self, now: float, peer: int, message: Promise) -> None:
        if message.ballot != self._ballot or self._proposal is not None or peer in self._promises:
            return
        self._signatures.check_promise(peer, message)
        if message.lock is not None:
            self._agenda.check(message.lock.proposal)
        self._promises[peer] = message
        self._propose(now)

    def _propose(self, now: float) -> None:
        """Propose what may have been decided already, or what the agenda says, once enough have promised."""
        context, quorum, lock = self._context, self._context.session.quorum, None
        promises: list[tuple[int, Ballot, bytes]] = []
        if self._ballot != self._lowest:
            if len(self._promises) < quorum:
                return
            # A promise counts once all that it tells of is there: who claims something and hides it is left out.
            shown = {
                peer: promise.lock
                for peer, promise in self._promises.items()
                if promise.lock is None or self._has_all(peer, promise.lock.proposal)
            }
            if len(shown) < quorum:
                return
            lock = max((held for held in shown.values() if held), key=lambda held: held.ballot, default=None)
            promises = [(p, held.ballot if held else 0, self._promises[p].signature) for p, held in shown.items()]
        if (proposal := lock.proposal if lock else self._agenda.propose(now)) is None:
            return  # it asks again
        votes = lock.votes if lock else []
        self._proposal = Propose(self.instance, self._ballot, proposal, promises, votes)
        self._expect_answers(now)
        context.send_all(self._proposal)
        self._vote(now, context.me, self._proposal)

    def _count(self, now: float, peer: int, message: Vote | Yes) -> None:
        """Count a vote for this party's proposal or, once it has a lock, an acceptance of it, up to a quorum."""
        is_vote, proposal = isinstance(message, Vote), self._proposal
        words = self._votes if is_vote else self._yes
        awaited = proposal is not None and message.ballot == self._ballot and is_vote is (self._lock is None)
        if proposal is None or not awaited or peer in words:
            return
        word: Word = "vote" if is_vote else "accept"
        hash_ = proposal.proposal.hash
        if not self._signatures.signed(peer, message.signature, word, self.instance, self._ballot, hash_):
            raise InvalidPeerMessage(f"{'a vote' if is_vote else 'an acceptance'} that its party has not signed")
        words[peer] = message.signature
        if len(words) < self._context.session.quorum:
            return
        instance, signatures = self.instance, sorted(words.items())
        if is_vote:
            self._lock = Lock(self._ballot, proposal.proposal, signatures)
            accept = Accept(instance, self._lock)
            self._expect_answers(now)
            self._context.send_all(accept)
            self._accept(now, self._context.me, accept)
        else:
            self._decide(Decision(self._ballot, proposal.proposal, signatures))
            self._context.send_all(self.decisions(instance), but=self._context.down)

    def _decide(self, decision: Decision) -> None:
        self._next_turn = self._retry_at = self._look_at = inf
        self._context.decide(decision)
        self._followed, self._first_ballots, self._promised = {}, {}, {}
        self._reset()

    # --- as an acceptor -------------------------------------------------------------------------------------------

    def _promise(self, now: float, peer: int, ballot: Ballot) -> None:
        context, ledger, instance = self._context, self._context.ledger, self.instance
        if not self._follows(now, peer, ballot):
            return  # a newer proposal is under way, or it is not this peer's turn
        if ballot > ledger.promised.get(instance, 0):
            context.record(Promised(instance, ballot))
        self._yield(now, peer, ballot)
        if peer != context.me and not self._is_news(now, peer, self._promised, ballot):
            return
        last = ledger.accepted.get(instance)
        lock = last.lock if last else None
        signature = self._signatures.sign("promise", instance, ballot, lock.ballot if lock else 0)
        self._answer(now, peer, Promise(instance, ballot, lock, signature))

    def _vote(self, now: float, peer: int, message: Propose) -> None:
        context, instance, hash_ = self._context, self.instance, message.proposal.hash
        self._agenda.check(message.proposal)
        if not self._follows(now, peer, message.ballot):
            return
        voted = context.ledger.voted.get(instance)
        if voted is not None and voted.ballot == message.ballot:
            if voted.proposal != hash_:
                raise InvalidPeerMessage("a ballot must have one proposal, got a second")
        else:
            locked = message.ballot != self._lowest and self._signatures.check_justified(message)
            if not locked and self._agenda.slights(now, message.proposal):
                return  # what a quorum has voted for before is not held against its proposer
            if not self._has_all(peer, message.proposal):
                self._waiting = peer, message  # it votes when it has what it votes for
                return
            if not self._agenda.fits(message.proposal):
                raise InvalidPeerMessage("a cohort with a party that was not there in the last round")
            context.record(Voted(instance, message.ballot, hash_))
            self._yield(now, peer, message.ballot)
        signature = self._signatures.sign("vote", instance, message.ballot, hash_)
        self._answer(now, peer, Vote(instance, message.ballot, signature))

    def _accept(self, now: float, peer: int, message: Accept) -> None:
        context, instance, lock = self._context, self.instance, message.lock
        self._agenda.check(lock.proposal)
        if not self._follows(now, peer, lock.ballot):
            return
        last = context.ledger.accepted.get(instance)
        if last is None or last.lock.ballot != lock.ballot:
            self._signatures.check_lock(instance, lock)
            if not self._has_all(peer, lock.proposal):
                self._waiting = peer, message  # it accepts when it has what it accepts
                return
            kept = self._agenda.behind(lock.proposal)
            context.signed_items.keep(lock.proposal.kind, lock.proposal.contents)
            context.record(Accepted(instance, lock, kept))
            self._yield(now, peer, lock.ballot)
        hash_ = lock.proposal.hash
        if context.ledger.accepted[instance].lock.proposal.hash != hash_:
            raise InvalidPeerMessage("a ballot must have one proposal, got a second")
        signature = self._signatures.sign("accept", instance, lock.ballot, hash_)
        self._answer(now, peer, Yes(instance, lock.ballot, signature))

    def _answer(self, now: float, peer: int, message: Promise | Vote | Yes) -> None:
        """Answer a proposer, which may be this party."""
        if peer == self._context.me:
            self.handle(now, peer, message)
        else:
            self._context.send(peer, message)

    def _yield(self, now: float, peer: int, ballot: Ballot) -> None:
        """Let another party finish what this one follows: its first ballot, or it could keep everyone waiting."""
        if peer != self._context.me and self._first_ballots.setdefault(peer, ballot) == ballot:
            self._look_at = inf
            later = self._own_turn(now + _YIELD_PERIODS * self._context.session.period)
            self._next_turn = max(self._next_turn, later)

    def _has_all(self, peer: int, proposal: Proposal) -> bool:
        """Return whether all that a proposal rests on is held; ask the peer for what is missing."""
        lacking = self._agenda.lacks(proposal, peer)
        if lacking and peer != self._context.me:
            self._context.send(peer, Fetch(proposal.kind, lacking))
        return not lacking
