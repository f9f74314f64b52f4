"""A session that has ended, as a node leaves it on its disk, made without a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import inca
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.loss_check import LossChecker
from inca.network.node.node import SessionEnd
from inca.network.node.report import write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Result
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.session import WEIGHT

NAMES = tuple(f"clinic-{letter}" for letter in "abcdefgh")


def write_session(folder: Path, mean: float = 97.0) -> Path:
    """Write a session of eight, of whom one left, and beside it its roster, which is returned."""
    cards = tuple(Identity.create(name).card(f"127.0.0.1:{7001 + i}") for i, name in enumerate(NAMES))
    agreed = {"epsilon": 2.0, "delta": 1e-5, "colluding": 0.1, "failure": 1e-6}
    noise = {"sigma_independent": 60.0, "sigma_cancelling": 4000.0, "sigma_together": 158.0, "distance": 24.0}
    setup = SessionSetup(Roster("waiting times", terms(seed=SEED, rounds=8, **agreed, **noise), cards))
    topology = setup.session.topology(bytes.fromhex(SEED))
    present = np.ones((9, len(NAMES)), dtype=int)
    present[5:, 3] = 0
    presence = inca.Presence.explicit(present)
    execution = inca.Execution(topology.schedule, setup.roster.terms.injection, presence, cohort=present[-1] > 0)
    realized = RealizedExecution(execution, ())
    checker = LossChecker(setup, bytes.fromhex(SEED), 0)
    total = setup.lattice.encode(np.array([mean])) * len(realized.cohort)
    weight = len(realized.cohort) * WEIGHT
    result = Result(total, weight, realized, exact=True, beacon=bytes(32))
    folder.mkdir(parents=True)
    write_report(folder, setup, 0, SessionEnd(result, "", checker.realized(realized), checker))
    (folder / "log.jsonl").write_text('{"time": 1.0, "event": "round", "address": "10.0.0.7:7001"}\n' * 8 + '{"ti')
    roster = folder.parent / "roster.json"
    setup.roster.write(roster)
    return roster
