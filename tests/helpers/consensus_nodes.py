"""Parties that have come to the end of their session and have a cohort to decide: consensus and agenda alone."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from helpers.ledgers import SESSION as LATER
from helpers.ledgers import opening
from helpers.parties import foreign
from helpers.signatures import sign, verify
from helpers.trustee_keys import keys_of
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import (
    NOBODY,
    Account,
    Ballot,
    ConsensusMessage,
    Decision,
    Decisions,
    Fetch,
    Have,
    Item,
    Items,
    Lock,
    Message,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Vote,
    Want,
    Yes,
)
from inca.network.protocol.records import Promised, Record, Seeded, Signed
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, SignedItems


def digest_of(session: SessionConfig, party: int) -> Item:
    rounds = list(range(1, session.rounds + 1))
    account = Account(rounds, [NOBODY] * len(rounds), [])
    return foreign(session, party).sign("digest", Digest(account, bytes(32), keys_of(party)))


class Lenient(Agenda):
    """Lets everyone leave out anyone: then proposals differ more than they could."""

    def slights(self, now: float, proposal: Proposal) -> bool:
        return False


class Node:
    """One incarnation of a party that has come to the end of its session: the cohort is to be decided."""

    def __init__(
        self,
        session: SessionConfig,
        me: int,
        records: list[Record],
        held: list[Item],
        rng: random.Random,
        agenda: type[Agenda] = Agenda,
    ) -> None:
        ledger = Ledger(session, me)
        items = SignedItems(session, me, ledger, sign(me), verify)
        self.context = PartyContext(session, me, ledger, items, random.Random(rng.random()))
        assert session.seed is not None
        own = [Signed(item) for item in held if item.party == me][:1]
        for record in [*records, Seeded(session.seed), *own]:
            ledger.apply(record)
        kept = [item for accepted in ledger.accepted.values() for item in accepted.items]
        for item in [*held, *kept]:
            items.take(item)
        signatures = BallotSignatures(session, me, sign(me), verify)
        self.consensus = Consensus(self.context, agenda(self.context), signatures)

    @property
    def decided(self) -> list[Decision]:
        return self.context.ledger.decided

    def handle(self, now: float, peer: int, message: Message) -> Effects:
        items = self.context.signed_items
        match message:
            case Have():
                n = self.context.session.parties
                lacking = {kind: bits.to_bytes(-(-n // 8), "little") for kind, bits in items.lacking(message).items()}
                self.context.send(peer, Want(lacking, len(self.decided)))
            case Want():
                if message.decided < len(self.decided):
                    self.context.send(peer, self.consensus.decisions(message.decided))
                self.context.send(peer, Items(items.wanted(message)))
            case Fetch():
                self.context.send(peer, Items(items.with_contents(message.kind, message.contents)))
            case Items():
                for item in message.items:
                    items.take(item)
                self.consensus.reconsider(now)
            case Decisions():
                self.consensus.adopt(message)
            case _ if isinstance(message, ConsensusMessage):
                self.consensus.handle(now, peer, message)
        return self.effects()

    def tick(self, now: float) -> Effects:
        if not self.decided and now >= self.consensus.wakeup:
            self.consensus.tick(now)
        return self.effects()

    def effects(self) -> Effects:
        return self.context.flush()


SESSION = replace(LATER, start=-2.0)  # so that the turns of the ballots that tests make up have come at 0.0
N = SESSION.parties
EVERYONE = [digest_of(SESSION, party) for party in range(N)]


def cohort(*parties: int) -> Proposal:
    return Proposal("cohort", [(party, EVERYONE[party].hash) for party in parties or range(N)])


def node(me: int = 0, records: list[Record] | None = None, held: list[Item] | None = None) -> Node:
    return Node(
        SESSION, me, [opening(SESSION, me), *(records or [])], EVERYONE if held is None else held, random.Random(1)
    )


# --- what parties say in decision 0, as they sign it ------------------------------------------------------------------

ORDER = sorted(range(N), key=lambda i: hashlib.sha256(SESSION.id + b"turn" + i.to_bytes(4, "little")).digest())
FIRST = ORDER[0]


def ballot_of(party: int, round_: int = 2) -> Ballot:
    return round_ * N + ORDER.index(party)


def signer(party: int) -> BallotSignatures:
    return BallotSignatures(SESSION, party, sign(party), verify)


def vote(party: int, ballot: Ballot, proposal: Proposal, instance: int = 0) -> Vote:
    return Vote(instance, ballot, signer(party).sign("vote", instance, ballot, proposal.hash))


def yes(party: int, ballot: Ballot, proposal: Proposal, instance: int = 0) -> Yes:
    return Yes(instance, ballot, signer(party).sign("accept", instance, ballot, proposal.hash))


def lock(ballot: Ballot, proposal: Proposal, parties: Iterable[int] = (0, 1, 2)) -> Lock:
    return Lock(ballot, proposal, [(party, vote(party, ballot, proposal).signature) for party in parties])


def decision(ballot: Ballot, proposal: Proposal, parties: Iterable[int] = (0, 1, 2), instance: int = 0) -> Decision:
    return Decision(ballot, proposal, [(party, yes(party, ballot, proposal, instance).signature) for party in parties])


def promise(party: int, ballot: Ballot, held: Lock | None = None) -> Promise:
    return Promise(0, ballot, held, signer(party).sign("promise", 0, ballot, held.ballot if held else 0))


def propose(
    ballot: Ballot, proposal: Proposal, locks: Mapping[int, Lock] | None = None, parties: Iterable[int] = (0, 1, 2)
) -> Propose:
    """A proposal with the promises of parties that were locked on what `locks` says."""
    locks = locks or {}
    held = {party: locks[party].ballot if party in locks else 0 for party in parties}
    promises = [(party, locked, signer(party).sign("promise", 0, ballot, locked)) for party, locked in held.items()]
    latest = max(locks.values(), key=lambda one: one.ballot, default=None)
    return Propose(0, ballot, proposal, promises, latest.votes if latest else [])


def preparing(party: Node) -> Ballot:
    """Let a party that is not the first begin a ballot; return it."""
    party.consensus.enter(0.0)
    effects = party.tick(party.consensus.wakeup)
    prepared = [message.ballot for _, message in effects.sends if isinstance(message, Prepare)]
    assert len(prepared) == N - 1 and len(set(prepared)) == 1
    assert effects.records == [Promised(0, prepared[0])]
    return prepared[0]
