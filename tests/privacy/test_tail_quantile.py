from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtri

import inca
from inca._base.types import Array
from inca.privacy.tail_quantile import least_ratios, tail_level

DISTRIBUTIONS: dict[str, tuple[Callable[[np.random.Generator, int], Array], Callable[[float], float]]] = {
    "exponential": (lambda rng, size: rng.exponential(size=size), lambda p: -math.log(p)),
    "Pareto of shape 0.2": (lambda rng, size: rng.pareto(5.0, size=size), lambda p: p**-0.2 - 1),
    "half normal": (lambda rng, size: np.abs(rng.standard_normal(size)), lambda p: float(-ndtri(p / 2))),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_levels_cover_the_truth_about_as_often_as_they_say(name: str) -> None:
    draw, quantile = DISTRIBUTIONS[name]
    truth = quantile(1e-7)
    rng = np.random.default_rng(3)
    levels = [tail_level([draw(rng, 100) for _ in range(60)], 1e-7, rng, confidence=0.95) for _ in range(60)]
    # With coverage of at least 0.8, fewer than 30 of 60 would have probability 2e-7. An unbounded tail is assumed, so
    # light tails are covered always.
    assert sum(level >= truth for level in levels) >= 30
    assert np.median(levels) < 6 * truth
    if name == "half normal":
        assert min(levels) >= truth


def test_the_parties_of_a_view_count_as_dependent() -> None:
    rng = np.random.default_rng(5)
    views = [np.full(50, rng.exponential()) * rng.uniform(0.99, 1.0, 50) for _ in range(40)]
    mixed = list(rng.permutation(np.concatenate(views)).reshape(40, 50))
    same, other = np.random.default_rng(1), np.random.default_rng(1)
    assert tail_level(views, 1e-6, same) > tail_level(mixed, 1e-6, other)


@given(st.integers(0, 1000), st.floats(0.01, 100.0), st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_levels_scale_rise_as_probabilities_fall_and_are_at_least_what_was_seen(
    seed: int, scale: float, probability: float
) -> None:
    rng = np.random.default_rng(seed)
    views = [rng.exponential(size=30) for _ in range(10)]
    level = tail_level(views, probability)
    assert tail_level([scale * view for view in views], probability) == pytest.approx(scale * level)
    assert tail_level(views, probability / 10) >= level
    assert tail_level(views, probability, np.random.default_rng(1)) >= level
    if probability < 1 / 300:
        assert level >= max(view.max() for view in views)


@pytest.mark.parametrize(("expected_above", "bounded"), [(1.5, False), (1.0, True), (0.5, True)])
def test_the_largest_sample_bounds_the_level_only_if_no_other_is_expected_to_exceed_it(
    expected_above: float, bounded: bool
) -> None:
    """One of a thousand samples is far out: that alone is no reason for a level that one and a half may exceed."""
    samples = np.append(np.linspace(0.0, 1.0, 999), 50.0)
    level = tail_level([samples], expected_above / samples.size)
    assert (level >= 50.0) == bounded


def test_edges() -> None:
    assert tail_level([np.zeros(10)], 1e-6) == 0.0
    assert tail_level([np.full(10, 3.0)] * 5, 1e-6, np.random.default_rng(1)) == 3.0
    assert tail_level([np.array([1.0, math.inf])], 1e-6) == math.inf
    for bad, sentence in (
        (([], 0.1), "the number of samples must be at least 2, got 0"),
        (([np.ones(9)], 0.0), r"probability must be above 0, got 0\.0"),
        (([np.array([1.0, math.nan])], 0.1), r"samples\[1\] must be a finite number, got nan"),
    ):
        with pytest.raises(inca.InvalidInput, match=sentence):
            tail_level(*bad)
    with pytest.raises(inca.InvalidInput, match=r"confidence must be between 0 and 1, got 1\.0"):
        tail_level([np.ones(9)], 0.1, np.random.default_rng(1), confidence=1.0)


@given(st.integers(0, 1000))
def test_least_ratios_meet_their_targets_and_no_smaller_ones_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    stiffness = np.append(0.0, rng.exponential(size=5) * 10.0 ** rng.integers(-2, 3))
    targets = np.geomspace(0.05, 1.0, 7)
    ratios = least_ratios(vectors**2, stiffness, targets)

    def loss(party: int, ratio: float) -> float:
        terms: NDArray[np.float64] = vectors[party] ** 2 / (1 + ratio * stiffness)
        return float(terms.sum())

    for row, target in enumerate(targets):
        for party in range(6):
            ratio = ratios[row, party]
            if math.isinf(ratio):
                assert loss(party, 1e9) > target
            elif ratio > 1e-6:
                assert loss(party, 1.005 * ratio) <= target * (1 + 1e-9) and loss(party, 0.995 * ratio) >= target * (
                    1 - 1e-9
                )
