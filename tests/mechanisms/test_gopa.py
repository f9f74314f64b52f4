"""GOPA's random graphs (who is joined to whom, how many neighbours a party has, who is cut off) and its leavers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from helpers.strategies import generator
from inca.errors import InvalidInput
from inca.mechanisms.base import measure
from inca.mechanisms.gopa import Gopa, cut_off_probability, fewest_neighbours, joined_pairs, random_graph
from inca.mechanisms.pairwise import losses
from inca.planning.requirements import Requirements
from inca.protocol.adversary import Adversary
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence

REQUIREMENTS = Requirements(parties=30, epsilon=0.7, delta=1e-4, colluding=0.3, dropout=0.3, messages=10)


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


# Leavers


def drawn_like_inca(
    requirements: Requirements, rounds: int, rng: np.random.Generator
) -> tuple[list[bool], list[bool], list[bool]]:
    """Who is honest, who leaves before the last round, and who leaves in it, drawn as for a view of inca."""
    presence = Presence.leaving(30, rounds, requirements.dropout, rng)
    colluding = Adversary.random(30, rounds, rng, colluding=requirements.colluding).colluding
    before, last = presence.row(rounds - 1), presence.row(rounds)
    return [party not in colluding for party in range(30)], (~before).tolist(), (before & ~last).tolist()


def test_who_leaves_early_is_drawn_as_for_inca() -> None:
    """The distribution that calibrates GOPA is that of inca's presence and adversary: some early leavers collude."""
    rng, runs, rounds = generator(10), 4000, 4
    mechanism = Gopa(REQUIREMENTS, rounds=rounds, factor=float(REQUIREMENTS.honest))
    publishing, late = np.zeros(31), []
    for _ in range(runs):
        honest, early, in_last_round = drawn_like_inca(REQUIREMENTS, rounds, rng)
        publishing[sum(h and not e for h, e in zip(honest, early, strict=True))] += 1 / runs
        late.append(sum(in_last_round))
    assert mechanism._weights.sum() == pytest.approx(1.0)
    assert mechanism._sizes.min() == REQUIREMENTS.honest - REQUIREMENTS.leavers  # it may be that all are honest
    for size, weight in zip(mechanism._sizes.tolist(), mechanism._weights.tolist(), strict=True):
        # 5 standard errors of a mean of coin flips, and one run for the rare ones: below 1e-6 for all sizes together.
        assert abs(publishing[size] - weight) < 5.5 * math.sqrt(weight / runs) + 1 / runs
    assert abs(np.mean(late) - mechanism._late(REQUIREMENTS.leavers)) < 6 * np.std(late) / math.sqrt(runs)
    taken_as_it_is = Gopa(REQUIREMENTS, noise_levels=NoiseLevels(independent=1.0, cancelling=3.0))
    assert mechanism.promised and not taken_as_it_is.promised  # nothing was chosen
    fixed = Gopa(REQUIREMENTS, late_leavers=4, factor=float(REQUIREMENTS.honest))
    # 5 early leavers among 30 parties, of whom 21 are honest
    chances = [math.comb(21, h) * math.comb(9, 5 - h) / math.comb(30, 5) for h in range(6)]
    assert fixed._sizes.tolist() == [16, 17, 18, 19, 20, 21]
    np.testing.assert_allclose(fixed._weights, chances[::-1], rtol=1e-9)


def test_views_drawn_like_incas_pass_their_own_accounting() -> None:
    rng, rounds = generator(11), 4
    requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, dropout=0.2, messages=14, failure=1e-9)
    mechanism = Gopa(requirements, rounds=rounds, views=100)
    assert mechanism.factor < requirements.honest  # not Local DP
    worst = []
    for _ in range(200):
        graph = random_graph(30, 14, rng, rows=30)
        honest, early, late = drawn_like_inca(requirements, rounds, rng)
        worst.append(losses(graph, np.array(honest), mechanism.noise_levels, early=early, late=late).max())
        worst.append(losses(graph, np.array(honest), mechanism.noise_levels, early=early).max())
    assert max(worst) <= requirements.mu  # each fails with probability 1e-9: a false alarm has one of 4e-7
    assert max(worst) > 0.7 * requirements.mu  # and not by far too much


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_leavers_at_random_times_have_the_expected_error(dropout: float) -> None:
    mechanism = Gopa(REQUIREMENTS, rounds=4, noise_levels=NoiseLevels(independent=1.0, cancelling=3.0))
    measured = measure(mechanism, generator(12), dropout, runs=4000)
    # A normal mean is 6 standard errors off with probability 2e-9; the number of late leavers varies, too: below 1e-6.
    assert abs(measured.mse - mechanism.expected_error(dropout).mse) < 6 * measured.standard_error
    assert mechanism.expected_error(0.3).budget.cancelling > 0.0


def test_the_more_leave_late_the_larger_the_error() -> None:
    requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, dropout=0.2, messages=10)

    def error(**late: float) -> float:
        return Gopa(requirements, factor=4.0, views=100, **late).expected_error(0.2).mse  # type: ignore[arg-type]

    assert error(late_leavers=0) < error(late_leavers=1) < error(late=0.25) < error(late=0.5)
    assert error(late_leavers=0) < error(rounds=6) < error(rounds=2)


def test_one_way_to_say_who_is_late() -> None:
    with pytest.raises(InvalidInput) as caught:
        Gopa(REQUIREMENTS, late_leavers=1, rounds=4)
    assert str(caught.value) == "rounds must be None if late_leavers is a number, got 4"
    with pytest.raises(InvalidInput) as caught:
        Gopa(REQUIREMENTS, rounds=0)
    assert str(caught.value) == "rounds must be at least 1, got 0"


def test_many_numbers_of_early_leavers_are_told_apart_in_groups() -> None:
    requirements = Requirements(parties=2000, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2)
    mechanism = Gopa(requirements, late=0.0, factor=float(requirements.honest))
    assert mechanism._sizes.size == 12
    assert mechanism._weights.sum() == pytest.approx(1.0)
    mean = float(mechanism._weights @ mechanism._sizes)
    assert 0.97 * 1440 < mean <= 1440  # counted as the least of each group: a little fewer than there are
