"""The random graphs of GOPA: who is joined to whom, how many neighbours a party has, and who is cut off."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from helpers.strategies import generator
from inca.mechanisms.gopa import cut_off_probability, fewest_neighbours, joined_pairs, random_graph


def test_the_distribution_of_neighbours_is_exact() -> None:
    # All ways in which 5 parties can each pick 2 others; 4 of them are honest.
    picks = [list(itertools.combinations([other for other in range(5) if other != party], 2)) for party in range(5)]
    counts, cut_off = np.zeros(4), 0
    for drawn in itertools.product(*picks):
        joined = np.zeros((5, 5), dtype=np.bool_)
        for party, chosen in enumerate(drawn):
            joined[party, list(chosen)] = True
        degrees = (joined | joined.T)[:4, :4].sum(axis=1)
        counts[degrees[0]] += 1
        cut_off += int((degrees == 0).any())
    fewer = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])  # how likely there are fewer than d neighbours
    for d in range(4):
        assert fewest_neighbours(5, 2, 4, fewer[d] + 1e-9) == max(e for e in range(4) if fewer[e] <= fewer[d] + 1e-9)
        if fewer[d] > 1e-6:
            assert fewest_neighbours(5, 2, 4, fewer[d] - 1e-9) < d
    assert cut_off / 6**5 <= cut_off_probability(5, 2, 4, largest=1) <= 4 * cut_off / 6**5 + 1e-12


def test_a_group_is_cut_off_as_often_as_the_bound_says() -> None:
    rng, runs = generator(8), 3000
    alone = sum(bool((random_graph(12, 2, rng, rows=9).sum(axis=1) == 0).any()) for _ in range(runs))
    bound = cut_off_probability(12, 2, 9, largest=1)
    # Two parties cut off at once hardly ever happen, so the bound is nearly exact; 5 standard errors: below 1e-6.
    assert 0.9 * bound - 5 * math.sqrt(bound / runs) < alone / runs < bound + 5 * math.sqrt(bound / runs)
    assert cut_off_probability(12, 2, 9, 8) > bound
    assert cut_off_probability(12, 11, 9, 8) == cut_off_probability(12, 2, 1, 8) == 0.0


@pytest.mark.parametrize(("n", "k"), [(2, 1), (10, 1), (10, 5), (10, 9)])
def test_pairs_are_joined_as_often_as_predicted(n: int, k: int) -> None:
    rng, runs = generator(9), 1000
    probability = 1 - (1 - k / (n - 1)) ** 2
    pairs = [joined_pairs(n, k, rng) for _ in range(runs)]
    for first, second in pairs:
        assert (first < second).all()
        assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == first.size >= n * k / 2
    graphs = [random_graph(n, k, rng, rows=n) for _ in range(runs)]
    # Picks exclude each other, so that the number of pairs varies less than with independent ones; 5 errors: < 1e-6.
    error = 5 * math.sqrt(probability * (1 - probability) / runs / (n * (n - 1) / 2)) + 1e-12
    assert abs(np.mean([first.size for first, _ in pairs]) / (n * (n - 1) / 2) - probability) < error
    assert abs(np.mean([graph.sum() for graph in graphs]) / (n * (n - 1)) - probability) < error
