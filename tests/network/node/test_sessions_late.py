"""Real processes that start after their session has begun."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.cut_links import EightProcesses, N

pytestmark = pytest.mark.slow


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
        cluster.start(i, first_start=True)
    there = [*range(6), *late]
    assert cluster.finish() == there
    result = cluster.result(0)
    assert result["cohort"] == [f"party-{i}" for i in there] and result["exact"] and not result["late"]
    assert cluster.expected_sum(0) == [*result["total"], result["total_weight"]]
    assert len(there) < N or result["present"] == N
