"""What the final messages of a cohort must add up to, from the ledgers of its parties alone, not from messages."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inca.network.lattice import Numbers
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.realized_execution import realize
from inca.network.protocol.session import SessionConfig


def weights_of(session: SessionConfig, cohort: Iterable[Ledger]) -> list[float]:
    """Return the weights of a cohort as its parties work them out, to the last digit, from their accounts."""
    ledgers = list(cohort)
    topology = ledgers[0].topology
    assert topology is not None
    return realize(session, topology, {ledger.me: ledger.account for ledger in ledgers}).execution.cohort_weights


def expected_sum(session: SessionConfig, cohort: Iterable[Ledger]) -> Numbers:
    """Return what a cohort has injected and topped up: settlement leaves exactly that (docs/settlement.md)."""
    ledgers = list(cohort)
    sigma = session.sigma_topup(weights_of(session, ledgers))
    return np.asarray(np.sum([ledger.injected + np.append(ledger.topup(sigma), 0) for ledger in ledgers], axis=0))
