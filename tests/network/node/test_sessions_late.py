"""Real processes that start after their session has begun."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.cut_links import EightProcesses, N
from inca.network.node.node import NodeOptions

pytestmark = [pytest.mark.slow, pytest.mark.real_time]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EightProcesses]:
    cluster = EightProcesses.agree(tmp_path, rounds=8, min_round_duration=1.0)
    yield cluster
    cluster.stop()


@pytest.mark.parametrize("late", [(6, 7), (6,)], ids=["two are late", "one is late and one absent"])
def test_late_parties_join_by_their_operators_word(cluster: EightProcesses, late: tuple[int, ...]) -> None:
    cluster.start_all(range(6))
    time.sleep(max(0.0, cluster.terms.start + 1.5 - time.time()))
    for i in late:
        cluster.start(i, NodeOptions(first_start=True))
    there = [*range(6), *late]
    assert cluster.finish() == there
    result = cluster.result(0)
    assert result["cohort"] == [f"party-{i}" for i in there] and result["exact"]
    assert cluster.expected_sum(0) == [*result["total"], result["total_weight"]]
    assert len(there) < N or result["present"] == N


def test_who_comes_back_after_all_have_ended_gets_the_result_from_one_that_serves_again(
    cluster: EightProcesses,
) -> None:
    cluster.start_all()
    cluster.wait_for_stage("opening")
    cluster.kill(7)
    assert set(cluster.finish()) >= set(range(7))
    before = cluster.session_folder(3).joinpath("result.json").read_text()
    cluster.start(3, NodeOptions(serve_s=60.0))
    cluster.start(7)
    cluster.processes[7].join(60.0)
    assert cluster.result(7)["estimate"] == cluster.result(0)["estimate"] is not None
    assert cluster.session_folder(3).joinpath("result.json").read_text() == before


def test_a_party_that_is_terminated_finishes_its_round_and_nobody_waits(cluster: EightProcesses) -> None:
    cluster.start_all()
    time.sleep(max(0.0, cluster.terms.start + 1.5 - time.time()))
    cluster.processes[5].terminate()
    assert cluster.finish() == [0, 1, 2, 3, 4, 6, 7]
    assert "it was asked to leave, and left after round" in cluster.result(5)["reason"]
    result = cluster.result(0)
    assert result["cohort"] == [f"party-{i}" for i in range(N) if i != 5] and result["exact"]
    assert cluster.expected_sum(0) == [*result["total"], result["total_weight"]]
    assert all('"event": "goodbye"' in cluster.log_text(i) for i in (0, 1, 2))
    # A round lasts a second here, and a period longer than that: it would show if somebody had waited for one.
    ended = max(cluster.session_folder(i).joinpath("result.json").stat().st_mtime for i in range(N) if i != 5)
    assert ended < cluster.terms.start + cluster.terms.rounds * 1.0 + 6.0 * cluster.terms.period
