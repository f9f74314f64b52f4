"""A member of a session that wants two different decisions of one number."""

from __future__ import annotations

import random

import msgspec

from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import (
    Accept,
    Decision,
    Decisions,
    Lock,
    Message,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Vote,
    Yes,
)
from inca.network.protocol.party import Party
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Sign, Verify


class SplittingParty(Party):
    """Wants two different decisions of one number, and uses all that others have signed.

    It votes for everything and accepts everything, promises that it was never locked, and makes a proposal of its own:
    as soon as another has proposed, with the promises of those that were not locked yet; or, if it is brazen, as soon
    as something is locked, without promises. It shows different halves of the others different things.
    """

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> None:
        super().__init__(session, me, sign=sign, verify=verify, rng=rng)
        self._ballots = BallotSignatures(session, me, sign, verify)
        self._wishes: dict[int, tuple[int, list[Proposal]]] = {}  # by instance: its ballot, and what it proposes in it
        self._promises: dict[int, dict[int, tuple[int, int, bytes]]] = {}
        self._votes: dict[tuple[int, bytes], dict[int, bytes]] = {}
        self._yes: dict[tuple[int, bytes], dict[int, bytes]] = {}
        self._brazen = rng.random() < 0.5
        self.locked = self.decided = 0
        """How many locks and decisions of its own it got."""

    def tick(self, now: float) -> Effects:
        effects = super().tick(now)
        for place, (peer, message) in enumerate(effects.sends):
            if isinstance(message, Propose):  # its own turn: another proposal for every other party
                ballot, proposal = message.ballot, message.proposal
                other = Proposal(proposal.step, proposal.contents[:-1])
                if message.instance not in self._wishes:
                    self._wishes[message.instance] = ballot, [proposal, other]
                if place % 2 and other.step != "commit":
                    effects.sends[place] = peer, msgspec.structs.replace(message, proposal=other)
        return effects

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        effects = super().receive(now, peer, message)
        instance = getattr(message, "instance", 0)
        match message:
            case Prepare(ballot=ballot):
                promise = Promise(instance, ballot, None, self._ballots.promise(instance, ballot, 0))
                effects.sends.append((peer, promise))
            case Propose(ballot=ballot, proposal=proposal):
                effects.sends.append(
                    (peer, Vote(instance, ballot, self._ballots.vote(instance, ballot, proposal.hash)))
                )
                if not self._brazen and instance not in self._wishes:
                    ballot = self._begin(peer, instance, ballot, proposal)
                    effects.sends += [(other, Prepare(instance, ballot)) for other in sorted(self._context.others)]
            case Accept(lock=lock):
                yes = self._ballots.acceptance(instance, lock.ballot, lock.proposal.hash)
                effects.sends.append((peer, Yes(instance, lock.ballot, yes)))
                if self._brazen and instance not in self._wishes:
                    self._begin(peer, instance, lock.ballot, lock.proposal)
                    effects.sends += self._proposals(instance, [])
            case Promise() | Vote() | Yes():
                if instance in self._wishes and message.ballot == self._wishes[instance][0]:
                    effects.sends += self._collect(peer, message)
        return effects

    def _begin(self, proposer: int, instance: int, ballot: int, proposal: Proposal) -> int:
        """Wish for something else than a proposal in a later ballot; return the ballot."""
        n, place = self.session.parties, self._components.consensus.order.index(self.me)
        cohort = self.ledger.cohort  # in place of commit, a smaller one
        contents = proposal.contents if cohort is None else cohort.contents
        left_out = (proposer, proposer if self._brazen else contents[0][0])
        wishes = [Proposal("cohort", [entry for entry in contents if entry[0] != out]) for out in left_out]
        later = (ballot // n + 2) * n + place
        self._wishes[instance] = later, wishes
        return later

    def _proposals(self, instance: int, promises: list[tuple[int, int, bytes]]) -> list[tuple[int, Message]]:
        ballot, wishes = self._wishes[instance]
        shown = [Propose(instance, ballot, wish, promises, []) for wish in wishes]
        return [(other, shown[place % 2]) for place, other in enumerate(sorted(self._context.others))]

    def _collect(self, peer: int, message: Promise | Vote | Yes) -> list[tuple[int, Message]]:
        instance, quorum, others = message.instance, self.session.quorum, sorted(self._context.others)
        ballot, wishes = self._wishes[instance]
        if isinstance(message, Promise):
            own = (self.me, 0, self._ballots.promise(instance, ballot, 0))
            promises = self._promises.setdefault(instance, {self.me: own})
            if message.lock is None and len(promises) < quorum:
                promises[peer] = (peer, 0, message.signature)
                if len(promises) == quorum:
                    return self._proposals(instance, list(promises.values()))
            return []
        for wish in wishes:
            sends = self._count(peer, message, instance, ballot, wish)
            if sends:
                return [(other, sends) for other in (others if isinstance(sends, Accept) else others[::2])]
        return []

    def _count(
        self, peer: int, message: Vote | Yes, instance: int, ballot: int, wish: Proposal
    ) -> Accept | Decisions | None:
        is_vote, hash_, key = isinstance(message, Vote), wish.hash, (instance, wish.hash)
        signed = (self._ballots.voted if is_vote else self._ballots.accepted)(
            peer, instance, ballot, hash_, message.signature
        )
        own = (self._ballots.vote if is_vote else self._ballots.acceptance)(instance, ballot, hash_)
        words = (self._votes if is_vote else self._yes).setdefault(key, {self.me: own})
        if not signed or len(words) >= self.session.quorum:
            return None
        words[peer] = message.signature
        if len(words) < self.session.quorum:
            return None
        if is_vote:
            self.locked += 1
            return Accept(instance, Lock(ballot, wish, sorted(words.items())))
        self.decided += 1
        return Decisions(instance, [Decision(ballot, wish, sorted(words.items()))])
