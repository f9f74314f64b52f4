"""A member of a session that wants two different decisions of one number."""

from __future__ import annotations

import random

import msgspec

from inca.network.protocol.agreement.ballot_signatures import BallotSignatures, Word
from inca.network.protocol.agreement.consensus import _TURNS_AHEAD
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import (
    Accept,
    Decision,
    Decisions,
    Item,
    Items,
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
from inca.network.protocol.signed_items import Digest, Sign, Verify, read


class SplittingParty(Party):
    """Wants two different decisions of one number, and uses all that others have signed.

    It votes for everything and accepts everything, promises that it was never locked, and makes a proposal of its own:
    as soon as another has proposed, with the promises of those that were not locked yet; or, if it is brazen, as soon
    as something is locked, without promises. It may show different halves of the others different things: as nobody
    votes for leaving out a party without a reason, what differs are its own digest and its own deposit, of which it
    signs two more each.
    """

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> None:
        super().__init__(session, me, sign=sign, verify=verify, rng=rng)
        self._ballots = BallotSignatures(session, me, sign, verify)
        self._wishes: dict[int, tuple[int, list[Proposal]]] = {}  # by instance: its ballot, and what it proposes in it
        self._promises: dict[int, dict[int, tuple[int, int, bytes]]] = {}
        self._votes: dict[tuple[int, bytes], dict[int, bytes]] = {}
        self._yes: dict[tuple[int, bytes], dict[int, bytes]] = {}
        self._others: dict[int, list[Item]] = {}  # by instance: what it has signed besides
        self._brazen = rng.random() < 0.5
        # Whether it asks a bare quorum for promises, without the proposer, which it lets wait for its own acceptance.
        self._few = rng.random() < 0.5
        self._asked: dict[int, list[int]] = {}
        self._held: dict[int, list[tuple[int, Yes]]] = {}
        self._released: dict[int, bool] = {}
        self._halves = rng.choice([0, 1])  # whether it shows different halves different things
        self.locked = self.decided = 0
        """How many locks and decisions of its own it got."""

    def _leave(self, now: float, reason: str) -> None:
        """Stay, whatever it has signed."""

    def tick(self, now: float) -> Effects:
        effects = super().tick(now)
        for peer, message in list(effects.sends):
            if isinstance(message, Propose):  # its own turn: another proposal for every other party
                if message.instance not in self._wishes:
                    wishes = [message.proposal, self._other(message.instance, message.proposal, 0)]
                    self._wishes[message.instance] = message.ballot, wishes
                if peer % 2:
                    wish = self._wishes[message.instance][1][1]
                    effects.sends.append((peer, msgspec.structs.replace(message, proposal=wish)))
                    effects.sends.remove((peer, message))
                    effects.sends.append((peer, Items(self._others.get(message.instance, []))))
        return effects

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        effects = super().receive(now, peer, message)
        instance = getattr(message, "instance", 0)
        match message:
            case Prepare(ballot=ballot):
                promise = Promise(instance, ballot, None, self._ballots.sign("promise", instance, ballot, 0))
                effects.sends.append((peer, promise))
            case Propose(ballot=ballot, proposal=proposal):
                effects.sends.append(
                    (peer, Vote(instance, ballot, self._ballots.sign("vote", instance, ballot, proposal.hash)))
                )
                if not self._brazen and (ballot := self._begin(now, peer, instance, ballot, proposal)):
                    others = sorted(self.context.others - {peer})
                    self._asked[instance] = others[: self.session.quorum - 1 if self._few else None]
                    effects.sends += [(other, Prepare(instance, ballot)) for other in self._asked[instance]]
            case Accept(lock=lock):
                yes = Yes(
                    instance, lock.ballot, self._ballots.sign("accept", instance, lock.ballot, lock.proposal.hash)
                )
                if self._few and not self._brazen and instance in self._asked and not self._released.get(instance):
                    effects.sends = [(to, said) for to, said in effects.sends if not isinstance(said, Yes)]
                    self._held.setdefault(instance, []).append((peer, yes))
                else:
                    effects.sends.append((peer, yes))
                if self._brazen and self._begin(now, peer, instance, lock.ballot, lock.proposal):
                    effects.sends += self._proposals(instance, [])
            case Promise() | Vote() | Yes():
                if instance in self._wishes and message.ballot == self._wishes[instance][0]:
                    effects.sends += self._collect(peer, message)
        return effects

    def _begin(self, now: float, proposer: int, instance: int, ballot: int, proposal: Proposal) -> int:
        """Wish for something else than a proposal, once, in a ballot that is followed already; return it, or 0."""
        consensus = self.consensus
        n, furthest = self.session.parties, consensus._turn(now) + _TURNS_AHEAD
        later = furthest - (furthest - consensus.order.index(self.me)) % n
        if later <= ballot or instance in self._wishes:
            return 0
        wishes = [self._other(instance, proposal, number) for number in (0, 0 if self._few else self._halves)]
        self._wishes[instance] = later, wishes
        return later

    def _other(self, instance: int, proposal: Proposal, number: int) -> Proposal:
        """A proposal with another item of its own, or the same one where there is none to be replaced."""
        items, opening = self.signed_items, self.finalization._opening
        if self.me not in proposal.parties:
            return proposal
        if proposal.step == "cohort":
            digest = read(self.ledger.own_items["digest", None], Digest)
            other = items.sign("digest", msgspec.structs.replace(digest, commitment=bytes([number]) * 32))
        elif opening is not None:
            deposit, sealed = opening._dealing(self.me).deal(bytes([number]) * 32, bytes(items.sealed_bytes))
            other = items.sign("deposit", deposit, sealed)
        else:
            return proposal
        self._others.setdefault(instance, []).append(other)
        contents = [(party, other.hash if party == self.me else hash_) for party, hash_ in proposal.contents]
        return Proposal(proposal.step, contents)

    def _proposals(self, instance: int, promises: list[tuple[int, int, bytes]]) -> list[tuple[int, Message]]:
        ballot, wishes = self._wishes[instance]
        shown = [Propose(instance, ballot, wish, promises, []) for wish in wishes]
        items = Items(self._others.get(instance, []))
        few = self._asked.get(instance) if self._few else None
        others = list(enumerate(few or sorted(self.context.others)))
        return [(other, message) for place, other in others for message in (shown[place % 2], items)]

    def _collect(self, peer: int, message: Promise | Vote | Yes) -> list[tuple[int, Message]]:
        instance, quorum, others = message.instance, self.session.quorum, sorted(self.context.others)
        ballot, wishes = self._wishes[instance]
        if isinstance(message, Promise):
            own = (self.me, 0, self._ballots.sign("promise", instance, ballot, 0))
            promises = self._promises.setdefault(instance, {self.me: own})
            if message.lock is None and len(promises) < quorum:
                promises[peer] = (peer, 0, message.signature)
                if len(promises) == quorum:
                    return self._proposals(instance, list(promises.values()))
            return []
        for wish in wishes:
            sends = self._count(peer, message, instance, ballot, wish)
            if sends:
                to = others if isinstance(sends, Accept) else others[::2]
                held: list[tuple[int, Message]] = []
                if self._few and instance in self._asked:
                    to = self._asked[instance]
                    if isinstance(sends, Decisions):
                        self._released[instance], held = True, [*self._held.get(instance, [])]
                items = Items(self._others.get(instance, []))
                return held + [(other, message) for other in to for message in (sends, items)]
        return []

    def _count(
        self, peer: int, message: Vote | Yes, instance: int, ballot: int, wish: Proposal
    ) -> Accept | Decisions | None:
        is_vote, hash_, key = isinstance(message, Vote), wish.hash, (instance, wish.hash)
        word: Word = "vote" if is_vote else "accept"
        signed = self._ballots.signed(peer, message.signature, word, instance, ballot, hash_)
        own = self._ballots.sign(word, instance, ballot, hash_)
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
