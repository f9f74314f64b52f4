"""Real processes that are killed right after commit: a committed value counts, whatever becomes of its party."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.pace import allowance
from inca.network.membership.identity import Identity
from inca.network.membership.terms import Terms
from inca.network.protocol.party import Party
from inca.network.testing.fork_server import measure_start_up
from inca.network.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.real_time

PERIOD_S, LEAD_S = 4.0, 6.0
LEAD_START_UPS = 10.0  # before the start, in the time that starting takes now
PATIENCE_S = 240.0  # a busy machine takes longer, a process that hangs for ever
_POLL_S = 0.05

SIZES = [(6, 2), pytest.param(12, 5, marks=pytest.mark.slow)]
"""How many parties there are, and how many of them may be gone for good after commit."""


class Mortals(LocalCluster):
    """Parties of which some die right after commit: never the first to propose, so that somebody is left to tell."""

    @classmethod
    def agree(cls, folder: Path, parties: int) -> Mortals:
        fields: dict[str, Any] = {"rounds": 3, "schedule": "circle"}
        fields |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "dimension": 2, "lower": 0.0, "upper": 1.0}
        fields |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.1}
        fields |= {"min_participants": parties - 1, "period": allowance() * PERIOD_S, "max_clock_skew": 0.5}
        # With all there is enough noise. No seed, as nothing is drawn on a circle.
        fields |= {"sigma_together": 0.499 * (parties - 1) ** 0.5}
        lead = allowance() * (LEAD_S + LEAD_START_UPS * measure_start_up(parties))
        start = time.time() + lead
        values = np.random.default_rng(1).random((parties, 2))
        return cls(folder, values, [f"party-{i}" for i in range(parties)], Terms(**(fields | {"start": start})))

    def start_all(self, dying: int) -> tuple[list[int], list[int]]:
        """Start all; return who will stay, and who will die."""
        session = self.setup.session
        identity = Identity.read(self.party_folder(0))
        watching = Party(session, 0, sign=identity.sign, verify=lambda *_: True, rng=random.Random(0))
        order = watching.consensus.order
        staying, mortal = order[: len(order) - dying], order[len(order) - dying :]
        for i in order:
            self.start(i, dies_after_commit=i in mortal)
        return staying, mortal

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + allowance() * PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, [self.log(i)[-5:] for i in range(len(self.names))]
            time.sleep(_POLL_S)

    def is_marked_ended(self, i: int) -> bool:
        return (self.session_folder(i) / "ended.json").exists()

    def assert_exact(self, i: int) -> None:
        """Party i must have the result of all, to the unit, as the journals of all have it."""
        result = self.result(i)
        assert result["estimate"] is not None, result["reason"]
        assert result["cohort"] == list(self.names) and result["exact"] and not result["contradictions"]
        assert [*result["total"], result["total_weight"]] == self.expected_sum(i)


@pytest.fixture
def agree(tmp_path: Path) -> Iterator[Callable[[int], Mortals]]:
    clusters: list[Mortals] = []

    def begin(parties: int) -> Mortals:
        clusters.append(Mortals.agree(tmp_path, parties))
        return clusters[-1]

    yield begin
    for cluster in clusters:
        cluster.stop()


@pytest.mark.parametrize(("parties", "killed"), SIZES)
def test_those_who_stay_have_the_result_of_all_though_some_are_killed_right_after_commit(
    agree: Callable[[int], Mortals], parties: int, killed: int
) -> None:
    cluster = agree(parties)
    assert cluster.setup.tolerance.after == killed
    staying, mortal = cluster.start_all(killed)
    cluster.wait_until(lambda: not cluster.running())
    assert all(cluster.processes[i].exitcode == -9 and not cluster.result(i) for i in mortal)
    assert all(cluster.is_marked_ended(i) for i in staying)
    cluster.assert_exact(staying[0])
    for i in staying:
        assert cluster.result(i)["total"] == cluster.result(staying[0])["total"]
        assert cluster.result(i)["beacon"] == cluster.result(staying[0])["beacon"]


@pytest.mark.parametrize(("parties", "killed"), SIZES)
def test_with_one_more_killed_it_is_said_who_must_come_back_and_then_there_is_the_result(
    agree: Callable[[int], Mortals], parties: int, killed: int
) -> None:
    cluster = agree(parties)
    staying, mortal = cluster.start_all(killed + 1)
    said = "the final messages are committed to, and cannot be opened yet: 1 more of "
    cluster.wait_until(lambda: all(cluster.result(i).get("reason", "").startswith(said) for i in staying))
    for i in staying:  # it is no end: the process waits, and the session is not marked as held
        result = cluster.result(i)
        assert result["estimate"] is None and not cluster.is_marked_ended(i)
        assert all(cluster.names[gone] in result["reason"] for gone in mortal)
        assert (
            "must come back, and then there is a result; so leave this party running, or start it" in result["reason"]
        )
    assert set(cluster.running()) == set(staying)
    again, back = staying[-1], mortal[0]
    cluster.kill(again)
    cluster.start(again)  # it takes up what it has accepted
    cluster.wait_until(lambda: any(entry["event"] == "comes back" for entry in cluster.log(again)))
    assert not cluster.result(again).get("estimate")
    cluster.start(back)
    cluster.wait_until(lambda: not cluster.running())
    cluster.assert_exact(staying[0])
    for i in (*staying, back):
        assert cluster.is_marked_ended(i) and cluster.result(i)["total"] == cluster.result(staying[0])["total"]
