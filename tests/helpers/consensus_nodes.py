"""Parties that have come to the end of their session and have a cohort to decide: consensus and agenda alone."""

from __future__ import annotations

import random

from helpers.ledgers import SESSION, opening
from helpers.signatures import sign, verify
from inca.network.protocol.agenda import Agenda
from inca.network.protocol.consensus import Consensus
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.ledger import Ledger, Promised, Record
from inca.network.protocol.messages import (
    NOBODY,
    Accept,
    Account,
    Decision,
    Decisions,
    Fetch,
    Have,
    Item,
    Items,
    Message,
    Prepare,
    Promise,
    Proposal,
    Want,
    Yes,
)
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, SignedItems, content_hash


def digest_of(session: SessionConfig, party: int) -> Item:
    rounds = list(range(1, session.rounds + 1))
    account = Account(rounds, [[NOBODY] * session.receivers] * len(rounds), [])
    return SignedItems(session, party, sign(party), verify).sign("digest", Digest(account))


class Node:
    """One incarnation of a party that has come to the end of its session: the cohort is to be decided."""

    def __init__(
        self, session: SessionConfig, me: int, records: list[Record], held: list[Item], rng: random.Random
    ) -> None:
        self.context = PartyContext(
            session, me, Ledger(session, me), SignedItems(session, me, sign(me), verify), random.Random(rng.random())
        )
        for record in records:
            self.context.ledger.apply(record)
        kept = [item for record in self.context.ledger.accepted.values() for item in record.items]
        for item in [*held, *kept]:
            self.context.signed_items.add(item)
        self.consensus = Consensus(self.context, Agenda(self.context))

    @property
    def decided(self) -> list[Decision]:
        return self.context.ledger.decided

    def handle(self, now: float, peer: int, message: Message) -> Effects:
        items = self.context.signed_items
        match message:
            case Prepare() | Promise() | Accept() | Yes():
                self.consensus.handle(now, peer, message)
            case Have():
                n = self.context.session.parties
                lacking = {kind: bits.to_bytes(-(-n // 8), "little") for kind, bits in items.lacking(message).items()}
                self.context.send(peer, Want(lacking, len(self.decided)))
            case Want():
                if message.decided < len(self.decided):
                    self.context.send(peer, self.consensus.decisions(message.decided))
                for batch in items.batches(message):
                    self.context.send(peer, Items(batch))
            case Fetch():
                self.context.send(peer, Items(items.with_contents(message.kind, message.contents)))
            case Items():
                for item in message.items:
                    items.add(item)
            case Decisions():
                self.consensus.adopt(message)
        return self.effects()

    def tick(self, now: float) -> Effects:
        if not self.decided and now >= self.consensus.wakeup:
            self.consensus.tick(now)
        return self.effects()

    def effects(self) -> Effects:
        return self.context.flush()


N = SESSION.parties
EVERYONE = [digest_of(SESSION, party) for party in range(N)]


def cohort(*parties: int) -> Proposal:
    return Proposal("cohort", [(party, content_hash(EVERYONE[party])) for party in parties or range(N)])


def node(me: int = 0, records: list[Record] | None = None, held: list[Item] | None = None) -> Node:
    return Node(
        SESSION, me, [opening(SESSION, me), *(records or [])], EVERYONE if held is None else held, random.Random(1)
    )


def yes(party: int, ballot: int, proposal: Proposal, instance: int = 0) -> Yes:
    signer = SignedItems(SESSION, party, sign(party), verify)
    return Yes(instance, ballot, signer.sign_acceptance(instance, ballot, proposal.hash))


def proposing(party: Node) -> int:
    """Let a party propose; return its ballot."""
    party.consensus.enter(0.0)
    effects = party.tick(party.consensus.wakeup)
    prepared = [message.ballot for _, message in effects.sends if isinstance(message, Prepare)]
    assert len(prepared) == N - 1 and len(set(prepared)) == 1
    assert effects.records == [Promised(0, prepared[0])]
    return prepared[0]
