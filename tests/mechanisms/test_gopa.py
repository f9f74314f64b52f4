"""GOPA's random graphs (who is joined to whom, how many neighbours a party has, who is cut off) and its leavers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers.strategies import generator
from inca.errors import InvalidInput
from inca.mechanisms import gopa
from inca.mechanisms.base import measure
from inca.mechanisms.gopa import Gopa, cut_off_probability, fewest_neighbours, joined_pairs, random_graph
from inca.mechanisms.pairwise import losses
from inca.planning.requirements import Requirements
from inca.privacy.tail_quantile import tail_level
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


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_leavers_at_random_times_have_the_expected_error(dropout: float) -> None:
    mechanism = Gopa(REQUIREMENTS, rounds=4, noise_levels=NoiseLevels(independent=1.0, cancelling=3.0))
    measured = measure(mechanism, generator(12), dropout, runs=2000)
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


# The noise that is chosen


def sampled_graphs(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Keep every graph that is drawn from now on."""
    graphs: list[np.ndarray] = []

    def kept(*given: int, **named: int) -> np.ndarray:
        graphs.append(random_graph(*given, **named))  # type: ignore[arg-type]
        return graphs[-1]

    gopa._known_ratios.cache_clear()  # else what another test has asked for is not drawn again
    monkeypatch.setattr(gopa, "random_graph", kept)
    return graphs


def test_what_is_known_of_one_epsilon_is_used_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = sampled_graphs(monkeypatch)
    first = Gopa(REQUIREMENTS, views=100)
    assert len(graphs) == 100
    other = Gopa(replace(REQUIREMENTS, epsilon=2.0, sensitivity=3.0), views=100)
    assert len(graphs) == 100 and other.factor == first.factor
    levels = other.noise_levels
    gopa._known_ratios.cache_clear()
    assert Gopa(other.requirements, views=100).noise_levels == levels and len(graphs) == 200
    others: list[dict[str, Any]] = [{"views": 110}, {"exchanges": 9}, {"late": 0.0}, {"factor": 5.0}]
    for more in others:
        before = len(graphs)
        Gopa(REQUIREMENTS, **({"views": 100} | more))
        assert len(graphs) > before, more


@pytest.mark.parametrize("sampled", [30, 20])
def test_with_what_it_needs_a_party_loses_what_it_may(monkeypatch: pytest.MonkeyPatch, sampled: int) -> None:
    """Held against the exact losses on sampled graphs; in smaller ones a part 1/m is larger, and so is the target."""
    requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, dropout=0.2, messages=6, failure=0.5)
    monkeypatch.setattr(gopa, "_MAX_SAMPLED_PARTIES", sampled)
    graphs = sampled_graphs(monkeypatch)
    mechanism = Gopa(requirements, views=100, late_leavers=2, factor=8.0)
    factor, checked = np.array([8.0]), 0
    graphs.clear()
    needs = mechanism._sample_needs(factor)
    assert len(needs) == len(graphs) == 100
    sizes = {len(graph) for graph in graphs}
    assert sizes <= {int(size) * sampled // 30 for size in mechanism._sizes} and len(sizes) > 1
    if sampled == 30:
        # Sizes come as often as they are likely: a mean of a hundred within 6 standard errors, below 1e-6.
        mean = float(mechanism._weights @ mechanism._sizes)
        error = math.sqrt(float(mechanism._weights @ (mechanism._sizes - mean) ** 2) / 100)
        assert abs(np.mean([len(graph) for graph in graphs]) - mean) < 6 * error
    for graph, need in zip(graphs[:20], needs, strict=False):
        m = len(graph)
        targets = [8.0 / 27 - 1 / size + 1 / m for size in mechanism._sizes.tolist() if size * sampled // 30 == m]
        degrees = np.maximum(graph.sum(axis=1), 1.0)
        for party in range(m):
            ratio = need[0, party] / degrees[party]
            if 1e-4 < ratio < 1e6:
                levels = NoiseLevels(independent=1.0, cancelling=math.sqrt(ratio))
                loss = float(losses(graph, np.ones(m, dtype=np.bool_), levels)[party]) ** 2
                # Blurred upwards by at most half a percent, and the ratios are interpolated.
                assert any(target * 0.99 <= loss <= target * (1 + 2e-3) for target in targets)
                checked += 1
    assert checked > 100


def test_the_level_is_the_tail_of_needs_over_the_fewest_neighbours_but_for_what_is_cut_off() -> None:
    """Half of what may fail, but for groups that are cut off, is for needs and half for neighbours, per party."""
    requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, messages=3, failure=5e-3, dropout=0.0)
    mechanism = Gopa(requirements, views=100, factor=27.0)
    rng = generator(20)
    needs = [rng.exponential(size=27) for _ in range(50)]
    assert mechanism._level(27.0, needs) == 0.0  # Local DP
    level = mechanism._level(9.0, needs)
    left = 5e-3 - cut_off_probability(30, 3, 27, 3)  # a group of three hides as little as allowed
    assert 1e-3 < left < 4.9e-3
    share = left / 2 / 27
    expected = tail_level(needs, share, np.random.default_rng([0, 1])) / fewest_neighbours(30, 3, 27, share)
    assert level == pytest.approx(expected)
    other = Gopa(requirements, factor=27.0)
    other.seed = 3
    assert other._level(9.0, needs) != level  # the seed decides how it is resampled
    strict = Gopa(Requirements(30, 0.7, 1e-4, colluding=0.1, messages=3, failure=1e-9, dropout=0.0), factor=27.0)
    assert strict._level(1.5, needs) == math.inf  # groups of 18 are cut off too often


def test_groups_that_cannot_hide_anyone_count_as_cut_off() -> None:
    requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, dropout=0.4, messages=12, failure=1e-3)
    mechanism = Gopa(requirements, late_leavers=0, factor=27.0)
    assert mechanism._sizes.min() < 27 / 1.2
    assert mechanism._level(1.2, [np.ones(20)] * 100) == math.inf  # those few who publish are too few for 1.2


def test_all_but_what_may_fail_publish_at_least_so_many() -> None:
    """Twelve of thirty leave early: counted over all draws of them among 30 parties, of whom 27 are honest."""
    for failure in (0.5, 1e-2, 1e-5):
        requirements = Requirements(30, 0.7, 1e-4, colluding=0.1, dropout=0.4, messages=29, failure=failure)
        mechanism = Gopa(requirements, late_leavers=0, factor=27.0)
        chances = {27 - h: math.comb(27, h) * math.comb(3, 12 - h) / math.comb(30, 12) for h in range(9, 13)}
        total, fewest = 0.0, 0
        for size in sorted(chances):
            total += chances[size]
            if total > failure:
                fewest = size
                break
        assert mechanism._fewest_publishing() == fewest


def test_complete_graphs_are_calibrated_exactly() -> None:
    requirements = Requirements(12, 0.7, 1e-4, colluding=0.25, messages=40, sensitivity=3.0, dropout=0.0)
    mechanism = Gopa(requirements)
    assert mechanism.exchanges == 11
    graph = 1.0 - np.eye(12)
    honest = np.arange(12) >= 3
    worst = losses(graph, honest, mechanism.noise_levels, sensitivity=3.0).max()
    assert worst <= requirements.mu * (1 + 1e-9)
    assert mechanism.noise_levels.independent**2 == pytest.approx(mechanism.factor * requirements.var_local_dp / 9)


def test_terms_cancel_in_the_sum_and_those_of_early_leavers_are_not_there() -> None:
    mechanism = Gopa(REQUIREMENTS, noise_levels=NoiseLevels(independent=1.0, cancelling=3.0))
    messages, kept = np.zeros((30, 2)), np.arange(30) < 20
    mechanism._add_terms(messages, kept, generator(21))
    assert messages.sum(axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert not messages[20:].any() and np.abs(messages[:20]).min() > 0.0
    # Pairs of 20 with probability 1 - (1 - 10/29)^2 each; a sum of squares of so many is within 6 standard errors.
    pairs = 190 * (1 - (19 / 29) ** 2)
    assert (messages**2).sum() == pytest.approx(2 * 2 * 9.0 * pairs, rel=6 * math.sqrt(3 / pairs))


def test_how_many_are_late() -> None:
    shared = Gopa(REQUIREMENTS, late=0.25, factor=21.0)
    assert [shared._late(leavers) for leavers in (0, 4, 8)] == [0, 1, 2]
    fixed = Gopa(REQUIREMENTS, late_leavers=3, factor=21.0)
    assert [fixed._late(leavers) for leavers in (2, 9)] == [2, 3]
    timed = Gopa(REQUIREMENTS, rounds=4, factor=21.0)
    assert timed._late(8) == 2.0
    drawn = [timed._draw_late(8, generator(seed)) for seed in range(400)]
    # A mean of 400 binomial numbers of variance 1.5: 6 standard errors, below 1e-6.
    assert abs(np.mean(drawn) - 2.0) < 6 * math.sqrt(1.5 / 400) and max(drawn) <= 8
    assert shared._draw_late(8, generator(1)) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"views": 99}, "views must be at least 100, got 99"),
        ({"exchanges": 30}, "exchanges must be from 1 to 29, got 30"),
        ({"exchanges": 0}, "exchanges must be from 1 to 29, got 0"),
        ({"late": 1.5}, "late must be from 0 to 1, got 1.5"),
        ({"late_leavers": -1}, "late_leavers must be at least 0, got -1"),
        ({"factor": 1.0}, "factor must be above 1, got 1.0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Gopa(REQUIREMENTS, **options)  # type: ignore[arg-type]
    assert str(caught.value) == sentence
