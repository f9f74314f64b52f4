"""One party after its last round: with digests of others, in a cohort that was decided, and once it is committed to."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from helpers.ledgers import SESSION, fresh
from helpers.signatures import sign, verify
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import NOBODY, Account, Decision, Item, Proposal, Step, pack
from inca.network.protocol.records import Began, Decided
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Final, Kind, Ready, SignedItems

N, LAST = SESSION.parties, SESSION.rounds


def ending(
    session: SessionConfig = SESSION, *, rounds: Iterable[int] = range(1, LAST + 1), late: bool = False
) -> tuple[Finalization, PartyContext]:
    """Party 0 after its rounds, with all offers open."""
    ledger = fresh(session, 0, late=late)
    for t in rounds:
        ledger.apply(Began(t, ledger.next_share()))
    context = PartyContext(session, 0, ledger, SignedItems(session, 0, sign(0), verify), random.Random(1))
    return Finalization(context), context


def item(party: int, kind: Kind, body: Digest | Ready | Final | bytes, session: SessionConfig = SESSION) -> Item:
    return SignedItems(session, party, sign(party), verify).sign(kind, body)


def digest(party: int, present: list[int] | None = None, fates: dict[int, int] | None = None, **told: Any) -> Item:
    """The digest of a party whose offers nobody was there for, but for some fates by round."""
    rounds = list(range(1, LAST + 1)) if present is None else present
    account = Account(rounds, [[(fates or {}).get(t, NOBODY)] for t in rounds], told.get("credited", []))
    return item(party, "digest", Digest(account, bytes(32)))


def final(party: int, numbers: list[int]) -> Item:
    return item(party, "final", Final(pack(np.array(numbers, dtype=np.int64)), bytes(32)))


def proposal(step: Step, items: Iterable[Item]) -> Proposal:
    return Proposal(step, sorted((entry.party, entry.hash) for entry in items))


def decide(context: PartyContext, step: Step, items: Iterable[Item]) -> Proposal:
    """Let something be decided; what it names may not be there yet."""
    decided = proposal(step, items)
    context.record(Decided(Decision(7, decided, [])))
    return decided


DIGESTS = [digest(party) for party in range(1, N)]


def in_cohort(
    session: SessionConfig = SESSION, others: Iterable[Item] = DIGESTS
) -> tuple[Finalization, PartyContext, Proposal]:
    """Party 0 once a cohort is decided: itself, and the others with these digests."""
    finalization, context = ending(session)
    finalization.seal()
    for entry in others:
        context.signed_items.add(entry)
    cohort = decide(context, "cohort", [context.ledger.signed["digest"], *others])
    assert finalization.apply_decisions() and finalization.last_step == "cohort" and finalization.cohort == cohort
    context.flush()
    return finalization, context, cohort


def committed(
    session: SessionConfig = SESSION, others: Iterable[Item] = DIGESTS, refusal: str = ""
) -> tuple[Finalization, PartyContext, Proposal]:
    finalization, context, cohort = in_cohort(session, others)
    finalization.answer(refusal)
    context.record(Decided(Decision(9, Proposal("commit", cohort.contents), [])))
    assert finalization.apply_decisions() and finalization.last_step == "commit"
    context.flush()
    return finalization, context, cohort
