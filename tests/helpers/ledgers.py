"""Ledgers for tests: a session, openings, and what may follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from inca.network.protocol.ledger import (
    Accepted,
    Began,
    Credited,
    Joined,
    Ledger,
    Opened,
    Outgoing,
    Promised,
    Record,
    Sealed,
    Seeded,
    Settled,
    Tombstoned,
)
from inca.network.protocol.messages import Numbers, pack
from inca.network.protocol.session import Session, Topology

SESSION = Session(
    id=bytes(32),
    parties=4,
    rounds=4,
    receivers=1,
    schedule="random",
    quiet=1,
    dimension=2,
    sigma_independent=2**20,
    sigma_cancelling=2**30,
    least_cohort=2,
    start=10.0,
    period=1.0,
    seed=bytes(32),
)


def sessions() -> st.SearchStrategy[Session]:
    def build(n: int, rounds: int, receivers: int, quiet: int, dimension: int, seed: bytes) -> Session:
        return replace(
            SESSION,
            parties=n,
            rounds=rounds,
            receivers=receivers,
            quiet=min(quiet, rounds),
            dimension=dimension,
            seed=seed,
        )

    return st.builds(
        build,
        st.integers(3, 6),
        st.integers(1, 5),
        st.integers(1, 2),
        st.integers(0, 5),
        st.integers(1, 3),
        st.binary(min_size=32, max_size=32),
    )


def opening(session: Session, me: int, *, late: bool = False) -> Opened:
    value = np.arange(session.dimension) * 10**9 - 7 * 10**8 * me - 3
    return Opened(pack(value), bytes([me]) * 32, bytes([me + 100]) * 32, late)


def fresh(session: Session, me: int = 0, *, late: bool = False) -> Ledger:
    ledger = Ledger(session, me)
    ledger.apply(opening(session, me, late=late))
    assert session.seed is not None
    ledger.apply(Seeded(session.seed))
    return ledger


def plainly(value: Any) -> Any:
    """Return anything in a book in a form that compares, and that later records do not change."""
    match value:
        case np.ndarray():
            return value.tolist()
        case Topology():
            return value.receivers
        case Outgoing():
            return (value.receiver, value.fate)
        case dict():
            return {key: plainly(each) for key, each in value.items()}
        case list():
            return [plainly(each) for each in value]
    return value


def state(ledger: Ledger) -> dict[str, Any]:
    """Everything in a book."""
    return {name: plainly(value) for name, value in vars(ledger).items() if name != "session"}


def missing(books: list[Ledger]) -> list[int]:
    """Balances + open and uncredited shares - injected: 0 in every state."""
    total: Numbers = np.zeros(books[0].balance.size, dtype=np.int64)
    for i, book in enumerate(books):
        total = total + book.balance - book.injected
        for t, slot in book.open:
            if not books[book.outbox[t, slot].receiver].decisions.get((t, i, slot), False):
                total = total + book.shares[t]
    return [int(each) for each in total]


def possible(books: list[Ledger], i: int) -> list[tuple[int, Record]]:
    """Return what may happen next to party i or to an open offer of it, whatever was lost or repeated on the way."""
    book, found = books[i], list[tuple[int, Record]]()
    if not book.sealed:
        later = range(book.round + 1, book.session.rounds + 1)
        found += [(i, Began(t, book.next_share())) for t in later[:2]]
        if book.round == book.session.rounds:
            found.append((i, Sealed()))
    for t, slot in book.open:
        j, key = book.outbox[t, slot].receiver, (t, i, slot)
        decided = books[j].decisions.get(key)
        if decided is None:
            found.append((j, Tombstoned(*key)))
            if books[j].round == t and not books[j].sealed:
                found += 3 * [(j, Credited(*key, pack(book.shares[t])))]
            if not book.sealed:
                found.append((i, Settled(t, slot, "unsent")))
        elif not book.sealed:
            found += 3 * [(i, Settled(t, slot, "acked" if decided else "voided"))]
    found.append((i, Promised(book.promised + 1)))
    if book.promised and (book.accepted is None or book.accepted.ballot < book.promised):
        found.append((i, Accepted(book.promised, b"\x01", b"\x02")))
    return found


def in_round(t: int = 2) -> Ledger:
    """Party 0 in round t, with open offers of all rounds so far."""
    ledger = fresh(SESSION)
    for each in range(1, t + 1):
        ledger.apply(Began(each, ledger.next_share()))
    return ledger


def transfers(t: int, me: int = 0) -> list[tuple[int, int]]:
    """Who sends to me in round t, as (sender, slot)."""
    return SESSION.topology(bytes(32)).senders[t][me]


def scheduled() -> tuple[int, int, int]:
    """A transfer to party 0 as (round, sender, slot)."""
    return next((t, *each) for t in range(1, SESSION.rounds + 1) for each in transfers(t))


SHARE = pack(np.array([5, -6, 7], dtype=np.int64))


def decided() -> Ledger:
    ledger = in_round(scheduled()[0])
    ledger.apply(Credited(*scheduled(), SHARE))
    return ledger


def late() -> Ledger:
    ledger = fresh(SESSION, late=True)
    ledger.apply(Joined(2))
    return ledger
