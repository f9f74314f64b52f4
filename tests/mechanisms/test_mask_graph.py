"""Sparse mask graphs: how likely recovery fails, a party is exposed, or the graph splits."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import generator
from inca.mechanisms.mask_graph import MaskGraph, least_mask_graph, privacy_failure
from inca.planning.requirements import Requirements


def failures(graph: MaskGraph, leavers: int, runs: int, seed: int) -> float:
    """The fraction of runs in which some party's present neighbours are no quorum, with loops."""
    rng, failed = generator(seed), 0
    n, half = graph.parties, graph.neighbours // 2
    for _ in range(runs):
        seats = rng.permutation(n).tolist()
        gone = set(rng.permutation(n)[:leavers].tolist())
        for seat in range(n):
            near = [seats[(seat + step) % n] for step in range(-half, half + 1) if step]
            if sum(party not in gone for party in near) < graph.quorum:
                failed += 1
                break
    return failed / runs


@pytest.mark.parametrize(("quorum", "leavers"), [(4, 9), (3, 9), (5, 5)])
def test_recovery_fails_no_more_often_than_the_bound_says(quorum: int, leavers: int) -> None:
    graph, runs = MaskGraph(30, 8, quorum), 4000
    bound, seen = graph.recovery_failure(leavers), failures(graph, leavers, runs, 3)
    # A mean of coin flips is 5 standard errors above its expectation with probability 3e-7.
    assert seen <= bound + 5 * math.sqrt(bound / runs)
    assert 0.0 < bound < 5 * seen  # parties who sit together fail together: the bound is not exact, but not idle


def test_the_code_that_runs_fails_as_often_as_the_loops() -> None:
    graph, runs, rng = MaskGraph(30, 8, 4), 4000, generator(4)
    present = np.arange(30) >= 9
    seen = sum(not graph.recovers(present, rng) for _ in range(runs)) / runs
    expected = failures(graph, 9, runs, 5)
    # The difference of two means of coin flips: 5 standard errors are exceeded with probability 6e-7.
    assert abs(seen - expected) < 5 * math.sqrt(2 * expected * (1 - expected) / runs)


def test_bounds_are_exact_sums_over_parties() -> None:
    """All ways to choose who leaves or colludes, for a ring of 8: a party's own probability, summed."""
    graph, n = MaskGraph(8, 4, 3), 8
    near = {seat: {(seat + step) % n for step in (-2, -1, 1, 2)} for seat in range(n)}
    chosen = list(itertools.combinations(range(n), 3))
    missing = sum(len(near[seat] - set(gone)) < 3 for gone in chosen for seat in range(n)) / len(chosen)
    exposed = sum(len(near[seat] & set(bad)) >= 3 for bad in chosen for seat in range(n) if seat not in bad) / len(
        chosen
    )
    assert graph.recovery_failure(3) == pytest.approx(min(1.0, missing))
    assert graph.exposure(3) == pytest.approx(min(1.0, exposed))


@pytest.mark.parametrize(("n", "k"), [(10, 2), (10, 4), (10, 6), (10, 8), (4, 2), (9, 6), (7, 4)])
def test_a_graph_splits_no_more_often_than_the_bound_says(n: int, k: int) -> None:
    ring = nx.circulant_graph(n, range(1, k // 2 + 1))
    for removed in range(n - 1):
        sets = list(itertools.combinations(range(n), removed))
        split = sum(not nx.is_connected(ring.subgraph(set(range(n)) - set(out))) for out in sets) / len(sets)
        assert split <= MaskGraph(n, k, 1).split(removed) + 1e-12


@given(st.integers(3, 60), st.data())
def test_fewer_than_the_neighbours_of_one_cut_nobody_off(n: int, data: st.DataObject) -> None:
    k = data.draw(st.sampled_from([*range(2, n - 1, 2), n - 1]))
    removed = data.draw(st.integers(0, n))
    split = MaskGraph(n, k, 1).split(removed)
    assert split == 0.0 if k == n - 1 or removed < k else split > 0.0


@pytest.mark.parametrize(
    ("n", "colluding", "dropout"), [(12, 0.2, 0.1), (15, 0.1, 0.0), (40, 0.3, 0.2), (41, 0.1, 0.1)]
)
def test_colluders_see_more_than_the_sum_as_rarely_as_the_best_quorum_allows(
    n: int, colluding: float, dropout: float
) -> None:
    """Every quorum with which secrets can be restored, one after the other."""
    requirements = Requirements(n, 0.5, 1e-5, colluding=colluding, dropout=dropout, failure=1e-3)
    leavers, colluders = requirements.leavers, requirements.colluders
    for k in [*range(2, n - 1, 2), n - 1]:
        graphs = [MaskGraph(n, k, quorum) for quorum in range(1, k + 1)]
        failures = [
            graph.exposure(colluders) + graph.split(colluders + leavers)
            for graph in graphs
            if graph.recovery_failure(leavers) <= requirements.failure
        ]
        assert privacy_failure(requirements, k, leavers) == pytest.approx(min([1.0, *failures]))
        if k < n - 2:
            assert privacy_failure(requirements, k + 1, leavers) == privacy_failure(requirements, k, leavers)
    assert privacy_failure(requirements, 1, leavers) == 1.0


def test_neighbours_are_those_next_to_each_other() -> None:
    assert sorted(MaskGraph(6, 2, 1).neighbours_of(np.arange(6))[0].tolist()) == [1, 5]
    assert sorted(MaskGraph(6, 5, 1).neighbours_of(np.arange(6))[2].tolist()) == [0, 1, 3, 4, 5]
    table = MaskGraph(9, 4, 1).neighbours_of(generator(1).permutation(9))
    assert table.shape == (9, 4) and all(len(set(row)) == 4 for row in table.tolist())


@given(st.integers(2, 300), st.floats(0, 0.3), st.floats(0, 0.3), st.sampled_from([1e-9, 1e-6, 1e-2]))
def test_the_least_graph_keeps_its_bounds(n: int, colluding: float, dropout: float, failure: float) -> None:
    requirements = Requirements(n, 0.5, 1e-5, colluding=colluding, dropout=dropout, failure=failure)
    try:
        graph = least_mask_graph(requirements)
    except inca.InvalidInput:
        assert requirements.colluders + requirements.leavers >= n - 1
        return
    assert 1 <= graph.quorum <= graph.neighbours <= n - 1
    bad = graph.exposure(requirements.colluders) + graph.split(requirements.colluders + requirements.leavers)
    assert bad <= failure * (1 + 1e-9)
    assert graph.recovery_failure(requirements.leavers) <= failure


@pytest.mark.parametrize(
    ("n", "colluding", "dropout", "failure"),
    [(12, 0.1, 0.1, 1e-6), (12, 0.1, 0.1, 0.05), (15, 0.2, 0.2, 1e-2), (21, 0.1, 0.1, 1e-2), (20, 0.2, 0.1, 1e-9)],
)
def test_no_graph_with_fewer_neighbours_keeps_the_bounds(
    n: int, colluding: float, dropout: float, failure: float
) -> None:
    """Every even number of neighbours and every quorum, one after the other."""
    requirements = Requirements(n, 0.5, 1e-5, colluding=colluding, dropout=dropout, failure=failure)
    colluders, leavers = requirements.colluders, requirements.leavers

    def keeps(graph: MaskGraph) -> bool:
        bad = graph.exposure(colluders) + graph.split(colluders + leavers)
        return bad <= failure and graph.recovery_failure(leavers) <= failure

    degrees = [*range(2, n - 1, 2), n - 1]
    least = min(k for k in degrees if any(keeps(MaskGraph(n, k, quorum)) for quorum in range(1, k + 1)))
    assert least_mask_graph(requirements).neighbours == least


def test_far_fewer_neighbours_than_parties_suffice() -> None:
    def neighbours(n: int, **fractions: float) -> int:
        return least_mask_graph(Requirements(n, 0.2, 1e-5, **fractions)).neighbours  # type: ignore[arg-type]

    assert [neighbours(200, colluding=0.1, dropout=rate) for rate in (0.05, 0.1, 0.2)] == [20, 28, 36]
    # Bell et al. (2020) report 3 % for 10^4 parties of which 5 % are corrupt and 5 % leave, against stronger colluders.
    assert neighbours(10_000, colluding=0.05, dropout=0.05) < 300


def test_without_a_quorum_there_is_no_graph() -> None:
    requirements = Requirements(10, 0.5, 1e-5, colluding=0.5, dropout=0.5)
    with pytest.raises(inca.InvalidInput) as caught:
        least_mask_graph(requirements)
    assert str(caught.value) == (
        "colluding + dropout must be fractions that leave more parties present than collude, as a quorum must, got 1.0"
    )
