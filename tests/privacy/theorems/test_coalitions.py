"""Coalitions against a party, and whom messages join with it without each: against a plain graph search."""

from __future__ import annotations

from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.strategies import generator, seeds
from inca.errors import InvalidInput
from inca.privacy.theorems.coalitions import coalitions_against, joined_without
from inca.privacy.theorems.message_graph import MessageGraph


@pytest.mark.parametrize(("parties", "size"), [(2, 0), (2, 1), (5, 0), (5, 2), (6, 5), (7, 3)])
def test_all_there_are_come_in_order(parties: int, size: int) -> None:
    for party in range(parties):
        others = [other for other in range(parties) if other != party]
        rng = np.random.default_rng(0)
        rows = coalitions_against(party, parties=parties, size=size, most=comb(parties - 1, size), rng=rng)
        assert rows.shape == (comb(parties - 1, size), size)
        assert [tuple(row) for row in rows.tolist()] == list(combinations(others, size))


def test_drawn_ones_are_distinct_of_one_size_and_without_the_party() -> None:
    rows = coalitions_against(17, parties=40, size=4, most=5000, rng=np.random.default_rng(3)).tolist()
    assert all(len(set(row)) == 4 and set(row) <= set(range(40)) - {17} for row in rows)
    # There are 82,251, of which 5,000 draws hit 4,851 on average, with a standard deviation of 12.
    assert len({frozenset(row) for row in rows}) == len(rows) and abs(len(rows) - 4851) < 60
    again = coalitions_against(17, parties=40, size=4, most=5000, rng=np.random.default_rng(3))
    assert again.tolist() == rows
    assert coalitions_against(17, parties=40, size=4, most=5000, rng=np.random.default_rng(4)).tolist() != rows


def test_no_coalition_is_likelier_than_another() -> None:
    counts = dict.fromkeys(combinations([0, 1, 2, 4, 5, 6], 3), 0)
    for seed in range(300):
        drawn = coalitions_against(3, parties=7, size=3, most=10, rng=np.random.default_rng(seed))
        for row in drawn.tolist():
            counts[tuple(sorted(row))] += 1
    # One is among ten draws with 1 - 0.95^10 = 0.401, so 120 times on average, with a deviation of 8.5.
    assert max(abs(count - 120.4) for count in counts.values()) < 4 * 8.5


def test_what_there_cannot_be_is_refused() -> None:
    for party, size in ((4, 1), (-1, 1), (0, 4)):
        with pytest.raises(InvalidInput):
            coalitions_against(party, parties=4, size=size, most=9, rng=np.random.default_rng(0))


@given(st.integers(2, 24), st.sampled_from([0.03, 0.1, 0.2, 0.5]), st.integers(0, 150), seeds)
@examples(quick=25, thorough=2000)
def test_whom_messages_join_is_the_component_without_the_coalition(n: int, rate: float, rows: int, seed: int) -> None:
    rng = generator(seed)
    cohort = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
    graph = nx.gnp_random_graph(n, rate, seed=int(rng.integers(2**31))).subgraph(cohort)
    party, size = cohort[0], int(rng.integers(0, n))
    others = np.delete(np.arange(n), party)
    coalitions = np.array([rng.permutation(others)[:size] for _ in range(rows)], dtype=np.intp).reshape(rows, size)
    variances = rng.random(n) + 0.01
    joined, together = joined_without(MessageGraph.among(cohort, graph.edges), party, coalitions, variances)
    for row, coalition in enumerate(coalitions.tolist()):
        left = graph.subgraph(set(cohort) - set(coalition))
        reached = list(nx.node_connected_component(left, party))
        assert joined[row] == len(reached)
        assert together[row] == pytest.approx(variances[reached].sum(), rel=n * 2.0**-52)
