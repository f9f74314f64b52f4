"""Real processes that reach each other through relays, over real TLS: the result is what it is without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from helpers.pace import allowance
from inca.network.membership.terms import Terms
from inca.network.testing.fork_server import measure_start_up
from inca.network.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.real_time

N = 5
PERIOD_S, MIN_ROUND_S = 4.0, 1.0
LEAD_S, LEAD_START_UPS = 6.0, 10.0  # before the start: so long, and so many times what starting takes now
PATIENCE_PERIODS = 25  # after the rounds
_POLL_S = 0.05


class Relayed(LocalCluster):
    """Five parties, of which those that are not `direct` have no port."""

    @classmethod
    def agree(cls, folder: Path, min_round_s: float = 0.0, **more: Any) -> Relayed:
        fields: dict[str, Any] = {"rounds": 3, "schedule": "circle"}
        fields |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "dimension": 2, "lower": 0.0, "upper": 1.0}
        fields |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.1, "sigma_together": 1.0}
        fields |= {"min_participants": 4, "period": allowance() * PERIOD_S, "max_clock_skew": 0.5}
        fields |= {"min_round_duration": min_round_s}
        start = time.time() + allowance() * (LEAD_S + LEAD_START_UPS * measure_start_up(N))
        values = np.random.default_rng(1).random((N, 2))
        return cls(folder, values, [f"party-{i}" for i in range(N)], Terms(**fields, start=start), **more)

    @property
    def deadline(self) -> float:
        return self.terms.start + (self.terms.rounds + PATIENCE_PERIODS) * self.terms.period

    def start_all(self) -> None:
        """Start all, and wait until everyone is connected with everyone."""
        for i in range(N):
            self.start(i)
        self.wait_until(lambda: all(self.status(i).get("connected") == N - 1 for i in range(N)))

    def wait_for_round(self, number: int) -> None:
        self.wait_until(lambda: all(self.status(i).get("round", 0) >= number for i in range(N)))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert time.time() < self.deadline, [self.log(i)[-3:] for i in range(N)]
            time.sleep(_POLL_S)

    def assert_exact(self) -> None:
        """All must hold the result of all five, to the unit, as the journals of all have it."""
        assert not self.wait(self.deadline), [self.log(i)[-3:] for i in range(N)]
        for i in range(N):
            result = self.result(i)
            assert result["estimate"] is not None, result["reason"]
            assert result["cohort"] == list(self.names) and result["exact"] and not result["contradictions"]
        assert self.sums(0) == self.expected_sum(0)
        assert len({(tuple(self.result(i)["total"]), self.result(i)["beacon"]) for i in range(N)}) == 1

    def ways(self, i: int) -> set[str]:
        """Return the relays through which a party was connected; empty text for a direct connection."""
        return {event.get("relay", "") for event in self.log(i) if event["event"] == "connected"}

    def listening(self, i: int) -> list[Any]:
        process = psutil.Process(self.processes[i].pid)
        return [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]


@pytest.fixture
def agree(tmp_path: Path) -> Iterator[Callable[..., Relayed]]:
    clusters: list[Relayed] = []

    def begin(**more: Any) -> Relayed:
        clusters.append(Relayed.agree(tmp_path, **more))
        return clusters[-1]

    yield begin
    for cluster in clusters:
        cluster.stop()


def test_five_that_only_dial_out_have_the_exact_result_through_one_relay(agree: Callable[..., Relayed]) -> None:
    cluster = agree(relay_count=1, min_round_s=MIN_ROUND_S)
    cluster.start_all()
    relay = str(cluster.relays.addresses[0])
    cluster.wait_until(lambda: all(cluster.status(i)["through_relays"] == N - 1 for i in range(N)))
    for i in range(N):
        assert cluster.listening(i) == [] and cluster.ways(i) == {relay}
        assert cluster.status(i)["relays"] == {relay: ""}
    cluster.assert_exact()


@pytest.mark.slow
def test_of_two_relays_one_is_killed_in_mid_session(agree: Callable[..., Relayed]) -> None:
    cluster = agree(relay_count=2, min_round_s=MIN_ROUND_S)
    cluster.start_all()
    cluster.wait_for_round(1)
    first, second = map(str, cluster.relays.addresses)
    assert all(first in cluster.ways(i) for i in range(N))
    cluster.relays.kill(0)
    cluster.assert_exact()
    for i in range(N):
        assert cluster.ways(i) == {first, second}
        assert first in {event["relay"] for event in cluster.log(i) if event["event"] == "unregistered"}


@pytest.mark.slow
def test_the_only_relay_is_killed_and_started_again_in_mid_session(agree: Callable[..., Relayed]) -> None:
    cluster = agree(relay_count=1, min_round_s=MIN_ROUND_S)
    cluster.start_all()
    cluster.wait_for_round(1)
    cluster.relays.kill(0)
    cluster.start_relay(0)
    cluster.assert_exact()
    for i in range(N):
        happened = [event["event"] for event in cluster.log(i)]
        assert happened.count("registered") == 2 and "unregistered" in happened


@pytest.mark.slow
def test_some_are_reached_directly_and_some_through_a_relay(agree: Callable[..., Relayed]) -> None:
    cluster = agree(relay_count=1, direct=(0, 1))
    cluster.start_all()
    relay = str(cluster.relays.addresses[0])
    assert [len(cluster.listening(i)) for i in range(N)] == [1, 1, 0, 0, 0]
    assert "" in cluster.ways(0) and cluster.ways(4) == {"", relay}
    cluster.assert_exact()
