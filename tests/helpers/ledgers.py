"""Ledgers for tests: a session, openings, and what may follow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from helpers.trustee_keys import sealing
from inca.network.lattice import Numbers
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Lock, Proposal, pack
from inca.network.protocol.records import (
    Accepted,
    Answered,
    Began,
    Credited,
    Joined,
    Opened,
    Promised,
    Record,
    Sealed,
    Secret,
    Seeded,
    Tombstoned,
)
from inca.network.protocol.session import SessionConfig, Topology
from inca.protocol.topup import TopUp

SESSION = SessionConfig(
    id=bytes(32),
    parties=4,
    rounds=4,
    schedule="permutation",
    dimension=2,
    largest_value=2**48,
    sigma_independent=2**20,
    sigma_cancelling=2**30,
    min_participants=3,
    start=10.0,
    period=1.0,
    seed=bytes(32),
)


def with_topup(session: SessionConfig) -> SessionConfig:
    """Return a session whose cohorts add noise unless all parties are in them and have missed no round."""
    own = float(session.sigma_independent)
    together = own * math.sqrt(session.parties - session.colluders) * (1.0 - 1e-9)
    return replace(session, topup=TopUp(together, own, session.colluders))


PROPOSAL = Proposal("cohort", [(0, bytes(32)), (2, b"h" * 32)])


def sessions() -> st.SearchStrategy[SessionConfig]:
    def build(n: int, rounds: int, dimension: int, seed: bytes) -> SessionConfig:
        return replace(
            SESSION,
            parties=n,
            rounds=rounds,
            dimension=dimension,
            seed=seed,
        )

    return st.builds(
        build,
        st.integers(3, 6),
        st.integers(1, 5),
        st.integers(1, 3),
        st.binary(min_size=32, max_size=32),
    )


def opening(session: SessionConfig, me: int, *, late: bool = False) -> Opened:
    value = np.arange(session.dimension) * 10**9 - 7 * 10**8 * me - 3
    return Opened(pack(value), bytes([me]) * 32, bytes([me + 100]) * 32, late)


def fresh(session: SessionConfig, me: int = 0, *, late: bool = False) -> Ledger:
    ledger = Ledger(session, me)
    ledger.apply(opening(session, me, late=late))
    ledger.apply(Secret(0, sealing(me)))
    assert session.seed is not None
    ledger.apply(Seeded(session.seed))
    return ledger


def plainly(value: Any) -> Any:
    """Return anything in a ledger in a form that compares, and that later records do not change."""
    match value:
        case np.ndarray():
            return value.tolist()
        case Topology():
            return value.receivers
        case dict():
            return {key: plainly(entry) for key, entry in value.items()}
        case list():
            return [plainly(entry) for entry in value]
    return value


def state(ledger: Ledger) -> dict[str, Any]:
    """Everything in a ledger."""
    return {name: plainly(value) for name, value in vars(ledger).items() if name != "session"}


def receiver_of(ledger: Ledger, t: int) -> int:
    assert ledger.topology is not None
    return ledger.topology.receivers[t][ledger.me]


def missing(ledgers: list[Ledger]) -> list[int]:
    """Balances + open and uncredited shares - injected: 0 in every state."""
    total: Numbers = np.zeros(ledgers[0].balance.size, dtype=np.int64)
    for ledger in ledgers:
        total = total + ledger.balance - ledger.injected
        for t in ledger.open:
            if not ledgers[receiver_of(ledger, t)].decisions.get(t, False):
                total = total + ledger.share(t)
    return [int(number) for number in total]


def possible(ledgers: list[Ledger], i: int) -> list[tuple[int, Record]]:
    """Return what may happen next to party i or to an open offer of it, whatever was lost or repeated on the way."""
    ledger, events = ledgers[i], list[tuple[int, Record]]()
    if not ledger.sealed:
        later = range(ledger.round + 1, ledger.session.rounds + 1)
        events += [(i, Began(t, ledger.next_share())) for t in later[:2]]
        if ledger.round == ledger.session.rounds:
            events.append((i, Sealed()))
    for t in ledger.open:
        j = receiver_of(ledger, t)
        decided = ledgers[j].decisions.get(t)
        if decided is None:
            events.append((j, Tombstoned(t)))
            if ledgers[j].round == t and not ledgers[j].sealed:
                events += 3 * [(j, Credited(t, pack(ledger.share(t))))]
            if not ledger.sealed and t == ledger.round:
                events.append((i, Answered(t, "unsent")))
        elif not ledger.sealed and (decided or t == ledger.round):
            events += 3 * [(i, Answered(t, "acked" if decided else "voided"))]
    promised, accepted = ledger.promised.get(0, 0), ledger.accepted.get(0)
    events.append((i, Promised(0, promised + 1)))
    if promised and (accepted is None or accepted.lock.ballot < promised):
        events.append((i, Accepted(0, Lock(promised, PROPOSAL, []), [])))
    return events


def in_round(t: int = 2) -> Ledger:
    """Party 0 in round t, with open offers of all rounds so far."""
    ledger = fresh(SESSION)
    for r in range(1, t + 1):
        ledger.apply(Began(r, ledger.next_share()))
    return ledger


SHARE = pack(np.array([5, -6, 7], dtype=np.int64))


def decided() -> Ledger:
    ledger = in_round(2)
    ledger.apply(Credited(2, SHARE))
    return ledger


def late() -> Ledger:
    ledger = fresh(SESSION, late=True)
    ledger.apply(Joined(2))
    return ledger
