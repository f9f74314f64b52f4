"""How a party joins a session that has begun: the way in, or back, after an absence.

After a restart, or a late start, a party must not say anything twice: fresh noise for the same value would be a second
release of it, and the same noise with another inflow would reveal differences exactly. So it asks those who would have
heard it in the rounds that its journal does not know, its witnesses. If any of them has, and shows what the party has
signed, the journal is lost or behind: it leaves. A word without that signature drives nobody out. A party without a
journal must hear all of them; one with a journal waits a period for those who are not known to be down.

Two parties without journals cannot answer for each other: each may have forgotten what it saw of the other. Nothing on
their machines proves that they never took part, as a disk may have been replaced and a key restored from a backup. Only
their operators know. By `first_start` an operator vouches for it: the party then holds all that it ever saw, which is
nothing, so it answers others, votes, and waits for no witness that is down. Whoever has seen anything of it proves the
opposite, and it leaves.
"""

from __future__ import annotations

from math import inf

from inca.errors import CannotJoin, InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Ask, ItemProof, Offer, OfferProof, Seen
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.records import Joined
from inca.network.protocol.signed_items import ONCE

_MIN_WITNESSES = 3  # asked by a party that was away, if there are as many


class Joining:
    """What a party does before its first round in this incarnation."""

    def __init__(self, context: PartyContext, signatures: OfferSignatures) -> None:
        self._context, self._signatures = context, signatures
        self.away = False
        """It was not there from the beginning on: its witnesses must be asked first."""
        self.without_journal = False
        """And it has no journal of an earlier incarnation."""
        self.vouched = False
        """Its operator vouches that there was no earlier incarnation."""
        self.may_begin = False
        """Whether the loss at full attendance is known to be allowed."""
        self.entry = 0
        """The round to begin with after an absence, once it is known."""
        self._witnesses: set[int] = set()
        self._answers: dict[int, int] = {}  # witness -> the round it is in
        self._silence_logged = False

    @property
    def start_time(self) -> float:
        """When to begin, once it is known that the loss at full attendance is allowed; after an absence, at once."""
        if not self.may_begin:
            return inf
        return -inf if self.away else self._context.session.start

    def choose_witnesses(self) -> None:
        """Choose whom to ask: who would have seen a round that the journal does not know, and at least a few."""
        context, topology = self._context, self._context.topology
        later = range(context.ledger.round + 1, context.session.rounds + 1)
        receivers = {topology.receivers[t][context.me] for t in later}
        others = sorted(context.others - receivers)
        more = min(len(others), max(0, _MIN_WITNESSES - len(receivers)))
        self._witnesses = receivers | set(context.rng.sample(others, more))

    @property
    def unanswered(self) -> set[int]:
        """The witnesses that have not answered yet."""
        return self._witnesses - set(self._answers)

    @property
    def awaited(self) -> set[int]:
        """The witnesses that are waited for; not those that are down if the operator's word stands in for theirs."""
        return self.unanswered - set(self._context.down) if self.vouched else self.unanswered

    @property
    def first_answer_time(self) -> float:
        """The start, if any witness has answered: otherwise there is nobody to exchange anything with."""
        return self._context.session.start if self._answers else inf

    def ask(self) -> None:
        """Ask the witnesses that have not answered yet."""
        for witness in sorted(self.unanswered):
            self._context.send(witness, Ask())

    def log_silence(self) -> None:
        """Say once who has not answered a late party without a journal, and what its operator can do."""
        if self.without_journal and self.unanswered and not self._silence_logged:
            self._silence_logged = True
            advice = "if it never took part in this session before, on any machine, stop it and start it again with"
            reason = f"{self._context.listed(self.unanswered)} did not say whether they had seen this party before"
            self._context.log_event("came late", reason=f"{reason}; {advice} --first-start")

    def handle_seen(self, peer: int, message: Seen) -> None:
        """Take a witness's answer; raise `CannotJoin` if it shows what the journal does not know, signed."""
        topology, me, ledger = self._context.topology, self._context.me, self._context.ledger
        seen = [proof.round for proof in message.offers]
        if len(set(seen)) < len(seen) or not all(topology.has(t, me, peer) for t in seen):
            raise InvalidPeerMessage("an answer about offers that the schedule does not have")
        for proof in message.offers:
            self._compare_offer(peer, proof)
        if not {proof.kind for proof in message.signed} <= set(ONCE):
            raise InvalidPeerMessage("an answer about items that are not signed once")
        for said in message.signed:
            self._compare_item(peer, said)
        rounds = self._context.session.rounds
        later = range(ledger.round + 1, min(message.since, rounds + 1))
        if self.without_journal and any(topology.has(t, me, peer) for t in later):
            return  # it came late itself and cannot tell
        self._answers[peer] = min(message.round, rounds + 1)

    def _compare_offer(self, peer: int, proof: OfferProof) -> None:
        """Leave if this party has signed an offer that its journal lacks, or has with other numbers."""
        context, ledger = self._context, self._context.ledger
        if proof.round in ledger.began:
            known = Offer(proof.round, ledger.payload(proof.round)).proof
            if (known.weight, known.payload_hash) == (proof.weight, proof.payload_hash):
                return
        what = f"an offer of round {proof.round} that it lacks"
        if not self._signatures.proves(context.me, peer, proof):
            raise InvalidPeerMessage(f"{context.name(peer)} claims to have seen {what}, and shows no signature")
        self._leave(peer, f"has seen {what}")

    def _compare_item(self, peer: int, proof: ItemProof) -> None:
        """Leave if this party has signed an item that its journal lacks, or one that says something else."""
        context, own = self._context, self._context.ledger.own_items.get((proof.kind, None))
        if own is not None and own.hash == proof.body_hash:
            return
        what = f"a {proof.kind} of this party, which it lacks"
        if not context.signed_items.proves(context.me, proof):
            raise InvalidPeerMessage(f"{context.name(peer)} claims to have {what}, and shows no signature")
        self._leave(peer, f"has {what}")

    def _leave(self, witness: int, what: str) -> None:
        """Leave: a witness has shown a signature of this party. It is named, so that people can ask it."""
        self._context.log_event("witness", peer=witness, what=what)
        lost = "the journal is lost or behind"
        if self.vouched:
            lost = "this is not its first start in this session, and its journal is lost"
        raise CannotJoin(f"{lost}: {self._context.name(witness)} {what}")

    def enter(self, clock_round: int) -> None:
        """Set the round to begin with; raise `CannotJoin` if a party without a journal has unanswered questions."""
        if self.without_journal and self.unanswered:
            silent = self._context.listed(self.unanswered)
            raise CannotJoin(
                f"came late without a journal, and {silent} did not say whether it had been there before: next time "
                "start it before the session begins, or with --first-start if it never took part in the session before"
            )
        ledger, last = self._context.ledger, self._context.session.rounds
        answers = sorted(self._answers.values())
        # The middle one: a single peer that says it is far ahead or behind changes nothing. It is not believed alone:
        # whoever begins too early is told soon what is over, and whoever begins too late misses its rounds.
        middle = (0 if len(answers) == 1 else answers[(len(answers) - 1) // 2]) if answers else last + 1
        self.entry = last + 1 if ledger.sealed else max(ledger.round + 1, middle, clock_round)
        if self.without_journal:
            self._context.record(Joined(min(self.entry, last + 1)))
