"""One party after its last round: with digests of others, in a cohort that was decided, and once it is committed to."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from helpers.ledgers import SESSION, fresh
from helpers.parties import foreign
from helpers.signatures import sign, verify
from helpers.trustee_keys import keys_of, secrets_of
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import NOBODY, Account, Decision, Item, Proposal, Step, pack
from inca.network.protocol.opening.deposits import Dealing
from inca.network.protocol.opening.trustees import trustees_of
from inca.network.protocol.records import Began
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.signed_items import Body, Digest, Key, Kind, Refusal, SignedItems

N, LAST = SESSION.parties, SESSION.rounds


def ending(
    session: SessionConfig = SESSION, *, rounds: Iterable[int] = range(1, LAST + 1), late: bool = False
) -> tuple[Finalization, PartyContext]:
    """Party 0 after its rounds, with all offers open."""
    ledger = fresh(session, 0, late=late)
    for t in rounds:
        ledger.apply(Began(t, ledger.next_share()))
    context = PartyContext(session, 0, ledger, SignedItems(session, 0, ledger, sign(0), verify), random.Random(1))
    return Finalization(context), context


def item(
    party: int,
    kind: Kind,
    body: Body | bytes,
    sealed: bytes = b"",
    session: SessionConfig = SESSION,
) -> Item:
    return foreign(session, party).sign(kind, body, sealed)


def digest(party: int, present: list[int] | None = None, fates: dict[int, int] | None = None, **told: Any) -> Item:
    """The digest of a party whose offers nobody was there for, but for some fates by round."""
    rounds = list(range(1, LAST + 1)) if present is None else present
    account = Account(rounds, [(fates or {}).get(t, NOBODY) for t in rounds], told.get("credited", []))
    return item(party, "digest", Digest(account, bytes(32), told.get("keys", keys_of(party))))


# --- words on a cohort ------------------------------------------------------------------------------------------------


def dealing(cohort: Proposal, dealer: int, number: int = 0, session: SessionConfig = SESSION) -> Dealing:
    trustees = trustees_of(session, cohort.parties)
    publics = {trustee: keys_of(trustee)[number] for trustee in trustees.members}
    return Dealing(session.id, number, cohort.hash, dealer, publics, trustees.threshold)


def deposit(
    cohort: Proposal,
    party: int,
    numbers: Iterable[int] = (0, 0, WEIGHT),
    number: int = 0,
    session: SessionConfig = SESSION,
) -> Item:
    """The deposit of a party with a final message of these numbers."""
    message = pack(np.array(list(numbers), dtype=np.int64)) + bytes(32)
    body, sealed = dealing(cohort, party, number, session).deal(secrets_of(party, number).dealing, message)
    return item(party, "deposit", body, sealed, session)


def refusal(cohort: Proposal, party: int, reason: str = "its loss is too large", number: int = 0) -> Item:
    return item(party, "refusal", Refusal(number, cohort.hash, reason))


def key(party: int, number: int = 0, session: SessionConfig = SESSION) -> Item:
    return item(party, "key", Key(number, secrets_of(party, number).private_key), session=session)


# --- decisions --------------------------------------------------------------------------------------------------------


def proposal(step: Step, items: Iterable[Item]) -> Proposal:
    return Proposal(step, sorted((entry.party, entry.hash) for entry in items))


def decide(context: PartyContext, step: Step, items: Iterable[Item]) -> Proposal:
    """Let something be decided; what it names may not be there yet."""
    decided = proposal(step, items)
    context.decide(Decision(7, decided, []))
    return decided


DIGESTS = [digest(party) for party in range(1, N)]


def in_cohort(
    session: SessionConfig = SESSION, others: Iterable[Item] = DIGESTS
) -> tuple[Finalization, PartyContext, Proposal]:
    """Party 0 once a cohort is decided: itself, and the others with these digests."""
    others = list(others)
    finalization, context = ending(session)
    finalization.seal()
    for entry in others:
        context.signed_items.take(entry)
    cohort = decide(context, "cohort", [context.ledger.own_items["digest", None], *others])
    assert finalization.apply_decisions() and finalization.last_step == "cohort" and finalization.cohort == cohort
    context.flush()
    return finalization, context, cohort


def answer(finalization: Finalization, refusal: str = "") -> None:
    """Let party 0 learn its loss on the cohort of now: it makes its deposit, or refuses."""
    finalization.request_assessment()
    finalization.assessed(refusal, finalization.realized)


def all_deposited(
    session: SessionConfig = SESSION,
    others: Iterable[Item] = DIGESTS,
    messages: dict[int, Iterable[int]] | None = None,
) -> tuple[Finalization, PartyContext, Proposal, list[Item]]:
    """Party 0 once it holds the deposits of the whole cohort, its own included, which are returned, too."""
    finalization, context, cohort = in_cohort(session, others)
    answer(finalization)
    for party in sorted(cohort.parties - {0}):
        context.signed_items.take(deposit(cohort, party, (messages or {}).get(party, (0, 0, WEIGHT)), session=session))
    deposits = sorted(context.signed_items.by_kind["deposit"].values(), key=lambda held: held.party)
    assert {held.party for held in deposits} == cohort.parties
    return finalization, context, cohort, deposits


def committed(
    session: SessionConfig = SESSION,
    others: Iterable[Item] = DIGESTS,
    messages: dict[int, Iterable[int]] | None = None,
) -> tuple[Finalization, PartyContext, Proposal]:
    """Party 0 once the deposits are committed to; it has shown its key."""
    finalization, context, cohort, deposits = all_deposited(session, others, messages)
    decide(context, "commit", deposits)
    assert finalization.apply_decisions() and finalization.last_step == "commit"
    context.flush()
    return finalization, context, cohort


def opened(
    messages: dict[int, Iterable[int]] | None = None,
    others: Iterable[Item] = DIGESTS,
    session: SessionConfig = SESSION,
) -> tuple[Finalization, PartyContext, Proposal]:
    """Party 0 once enough trustees have shown their keys."""
    finalization, context, cohort = committed(session, others, messages)
    for party in sorted(cohort.parties - {0}):
        context.signed_items.take(key(party, session=session))
    assert finalization.open()
    return finalization, context, cohort
