"""The compiled runs of Figure 3 against the library's own union-find and schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from helpers.examples import cases
from inca import UnrepeatedReceivers
from inca._base.kernels import Ids
from inca.errors import InvalidInput
from inca.privacy.theorems.rank_by_round import rounds_to_connect
from inca.reproduction.rounds_to_connect import MAX_ROUNDS, rounds_needed, start, unrepeated


def plain(parties: int, colluding: int, run: int, seed: int) -> int | None:
    """Draw all receivers of a run as the kernel does, then ask the library when the honest are connected."""
    most = min(parties - 1, MAX_ROUNDS)
    state = np.empty(4, np.uint64)
    start(np.uint64(seed), np.uint64(parties), np.uint64(colluding), np.uint64(run), state)
    receivers = np.full((most, parties), -1, np.int32)
    chosen = np.empty((parties, most), np.int32)
    for t in range(most):
        for i in range(colluding, parties):
            receivers[t, i] = unrepeated(state, chosen[i], t, i, parties)
    for i in range(colluding, parties):
        assert len(set(chosen[i].tolist()) | {i}) == most + 1  # nobody twice, and never itself
    return rounds_to_connect(receivers, np.arange(parties) < colluding)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.data())
def test_each_run_needs_the_rounds_that_the_library_finds(parties: int, data: st.DataObject) -> None:
    colluding = data.draw(st.integers(0, parties - 1))
    run, seed = data.draw(st.integers(0, 10**6)), data.draw(st.integers(0, 2**63 - 1))
    counts = rounds_needed(parties, colluding, runs=1, seed=seed, first=run)
    needed = plain(parties, colluding, run, seed)
    assert counts.sum() == 1
    assert int(counts.argmax()) == (counts.size - 1 if needed is None else needed)


def test_pieces_of_runs_add_up() -> None:
    whole = rounds_needed(60, 20, runs=100, seed=3)
    parts = [rounds_needed(60, 20, runs=runs, seed=3, first=first) for first, runs in ((0, 1), (1, 39), (40, 60))]
    assert np.array_equal(whole, np.sum(parts, axis=0))
    assert not np.array_equal(whole, rounds_needed(60, 20, runs=100, seed=4))


def test_the_law_is_that_of_the_schedule_without_repeats() -> None:
    """Two samples of as many runs, compared at a false-alarm rate of 1e-6."""
    parties, colluding, runs = 30, 12, cases(1500, 4000)
    fast = rounds_needed(parties, colluding, runs, seed=1)
    rng = np.random.default_rng(2)
    slow = np.zeros_like(fast)
    for seed in range(runs):
        schedule = UnrepeatedReceivers(parties, rounds=15, seed=seed)
        colluders = np.zeros(parties, dtype=np.bool_)
        colluders[rng.choice(parties, colluding, replace=False)] = True
        drawn: list[Ids] = []
        needed = None
        while needed is None:  # later rounds cost more
            drawn.append(schedule.round(len(drawn) + 1).receivers[:, 0])
            needed = rounds_to_connect(np.stack(drawn), colluders)
        slow[needed] += 1
    table = np.array([fast, slow])
    last = np.flatnonzero(table.sum(axis=0) >= 20)[-1]  # pool the rare ones
    pooled = np.column_stack([table[:, :last], table[:, last:].sum(axis=1)])
    assert chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue > 1e-6


def test_the_ends() -> None:
    assert rounds_needed(5, 4, runs=7, seed=1).tolist()[0] == 7  # one honest party has nobody to be connected to
    assert rounds_needed(2, 0, runs=7, seed=1).tolist() == [0, 7, 0]
    assert rounds_needed(100, 98, runs=50, seed=1).sum() == 50
    # Two honest parties among 1,000 seldom meet within 64 rounds: those runs are in the last place.
    assert rounds_needed(1000, 998, runs=50, seed=1)[-1] > 25


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"parties": 1}, "parties must be from 2 to 2147483647, got 1"),
        ({"colluding": 10}, "colluding must be fewer than all 10 parties, got 10"),
        ({"colluding": -1}, "colluding must be at least 0, got -1"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
        ({"first": -1}, "first must be at least 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer, from 0 to 9223372036854775807, got 0.5"),
        ({"seed": 2**63}, "seed must be from 0 to 9223372036854775807, got 9223372036854775808"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {"parties": 10, "colluding": 2, "runs": 3, "seed": 1, "first": 0}
    with pytest.raises(InvalidInput, match=sentence):
        rounds_needed(**{**usual, **arguments})
