"""What parties of a session over TLS say that they lost, held against all that was really delivered."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.delivered_loss import DeliveredMessages
from helpers.outcome_logs import result_of
from helpers.session_processes import N, Run, TwelveParties, common_result, hold, nodes, on_round
from inca._base.files import write_json
from inca.documents.certificate import CertificateDocument
from inca.network.node.journal import Journal
from inca.network.node.node import Node, SessionEnd
from inca.network.node.report import write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.node.warm_up import warm_up
from inca.network.protocol.finalization import Result
from inca.network.protocol.records import Record
from inca.network.sequence.outcome_log import OutcomeLog
from inca.network.sequence.session_sequence import SessionSequence
from inca.privacy.gaussian import epsilon_for, mu_for
from inca.protocol.noise_levels import NoiseLevels

pytestmark = pytest.mark.real_time

# Little noise that cancels, so that what a coalition is sent makes a difference.
TERMS: dict[str, Any] = {
    "min_participants": 4,
    "colluding": 0.1,
    "sigma_cancelling": 1.0,
    "epsilon": 100.0,  # below the bound against all coalitions, so that exact losses are stated
    "sigma_together": 1.58,  # ten of twelve have as much, and fewer lack some
}


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    warm_up()


async def leave(parties: TwelveParties, i: int, t: int) -> SessionEnd:
    """Take part up to a round, and never come back."""
    node: Node

    def stop() -> None:
        node.stop()

    node = parties.node(i, on_event=on_round(t, stop))
    return await node.run()


def records(parties: TwelveParties, i: int) -> list[Record]:
    path = parties.session_folder(i) / "journal.db"
    with closing(Journal(path, session=parties.setup.session.id, party=i)) as journal:
        return journal.read()


def delivered_messages(parties: TwelveParties, result: Result) -> DeliveredMessages:
    """Follow all journals, those of leavers included."""
    journals = {i: records(parties, i) for i in range(N)}
    ledgers = {i: parties.ledger(i) for i in range(N)}
    cohort = result.realized.cohort
    topology = ledgers[0].topology
    assert topology is not None
    senders = topology.senders
    received = [(t, senders[t][member]) for member in cohort for t in ledgers[member].received]
    credited = {i: {t for t, sender in received if sender == i} for i in range(N)}
    opened = {i: (cohort, credited[i]) for i in cohort}
    return DeliveredMessages(parties.setup.session, topology, journals, opened)


def drawn_levels(setup: SessionSetup, weights: list[float]) -> NoiseLevels:
    """Return the noise that is really drawn, a little more than agreed."""
    session, step = setup.session, setup.lattice.granularity
    return NoiseLevels(
        independent=session.sigma_independent * step,
        cancelling=session.sigma_cancelling * step,
        topup=session.sigma_topup(weights) * step,
    )


def booked(parties: TwelveParties, i: int, mu: float, folder: Path) -> float:
    """Return what a sequence charges for the session if it had been its first."""
    log = OutcomeLog(folder)
    place = log.session_folder(1) / "sessions" / parties.session_folder(i).name
    place.mkdir(parents=True)
    (place / "result.json").write_bytes((parties.session_folder(i) / "result.json").read_bytes())
    write_json(log.session_folder(1) / "asked.json", {"dimension": 3, "reach": 1.0, "distance": 1.0, "mu": mu})
    log.append(1, result_of(np.zeros(3)))
    sequence = SessionSequence(parties.setup.roster, parties.identities[i], folder)
    (row,) = sequence.report()["sessions"]
    return float(row["own_mu"])


@pytest.mark.slow
@pytest.mark.parametrize("leavers", [{}, {10: 2, 11: 4}, {8: 1, 9: 3, 10: 5, 11: 6}], ids=len)
def test_no_stated_loss_is_below_that_of_all_that_was_delivered(tmp_path: Path, leavers: dict[int, int]) -> None:
    parties = TwelveParties(tmp_path, rounds=6, **TERMS)
    terms = parties.setup.roster.terms
    stayed = [i for i in range(N) if i not in leavers]
    gone: dict[int, Run] = {i: leave(parties, i, t) for i, t in leavers.items()}
    ends = asyncio.run(hold(parties, nodes(parties, stayed) | gone))
    result = common_result(parties, {i: ends[i] for i in stayed})
    assert result.realized.cohort == frozenset(stayed)
    delivered = delivered_messages(parties, result)
    levels = drawn_levels(parties.setup, result.realized.execution.cohort_weights)
    ratios = []
    for i in stayed:
        checker, check = ends[i].loss_checker, ends[i].loss_check
        assert checker is not None and check is not None
        real = [delivered.loss(i, frozenset(coalition), levels, terms.sensitivity) for coalition in checker.coalitions]
        report = write_report(parties.session_folder(i), parties.setup, i, ends[i])
        certificate = CertificateDocument.read(parties.session_folder(i) / "certificate.json")
        certified = certificate.epsilon[certificate.honest.index(i)]
        worst = float(epsilon_for(max(real), terms.delta, terms.rule))
        assert report.epsilon is not None and report.epsilon == pytest.approx(certified)
        assert worst <= report.epsilon * (1 + 1e-6)
        assert max(real) <= booked(parties, i, 1e-3, tmp_path / f"booked-{i}") * (1 + 1e-6)
        ratios.append(max(real) / mu_for(report.epsilon, terms.delta, terms.rule))
    # And not far above it: with everyone there it is the same, and leavers counted as colluders cost little.
    assert min(ratios) > (1 - 1e-3 if not leavers else 0.5)
