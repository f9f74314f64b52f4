from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.stats import binom, norm

import inca
from inca._base.types import Array
from inca.protocol.usefulness import EstimateInDomain, remark_on_error, says_nothing

FALSE_ALARM = 1e-6


def noise(variance: float, data: float = 0.0) -> inca.ErrorBudget:
    return inca.ErrorBudget(independent=variance, cancelling=0.0, data=data)


def test_a_quarter_of_the_range_is_the_limit() -> None:
    assert says_nothing(0.25, half_width=0.5) and not says_nothing(0.2499, half_width=0.5)
    assert says_nothing(0.1, half_width=0.5, lost=0.3) and not says_nothing(0.1, half_width=0.5, lost=0.29)
    assert says_nothing(0.0, half_width=0.5, lost=0.5) and says_nothing(math.inf, half_width=0.5)


def test_at_the_limit_a_guess_is_never_as_far_off_as_an_estimate_is_once_in_22_runs() -> None:
    beyond = 2.0 * norm.sf(0.5 / 0.25)
    assert 1 / 22 < beyond < 1 / 21


def test_a_plan_that_is_a_third_of_the_range_off_is_no_better_than_a_guess() -> None:
    sentence = "The expected error 0.3 is a large part of a range of 1: if all values lie in one, "
    sentence += "guessing its middle would do as well."
    assert remark_on_error(0.09, sensitivity=1.0) == sentence
    assert remark_on_error(0.09, sensitivity=2.0) == ""
    assert remark_on_error(0.2499**2, sensitivity=1.0) == ""  # a quarter is the limit here, too
    assert remark_on_error(math.inf, sensitivity=1.0).startswith("The expected error is unbounded: guessing the middle")


def test_an_estimate_above_the_domain_is_its_upper_end() -> None:
    above = EstimateInDomain(111.7, inca.Interval(0, 100), noise(9.0))
    assert above.estimate == 100.0 and above.unconstrained == 111.7
    assert list(above.interval) == pytest.approx([100.0 - 3.0 * 1.959964, 100.0])
    (sentence,) = above.remarks
    assert sentence == "The noise took the estimate to 111.7, outside [0, 100]: 100 is the nearest mean there is."
    assert not above.says_nothing


def test_an_estimate_below_the_domain_is_its_lower_end_and_a_guess_would_do_as_well() -> None:
    below = EstimateInDomain(-222.0, inca.Interval(0, 240), noise(200.0**2))
    assert (below.estimate, below.interval) == (0.0, (0.0, 240.0))
    assert below.says_nothing and below.remarks == (
        "The noise took the estimate to -222, outside [0, 240]: 0 is the nearest mean there is.",
        "The standard error 200 is a large part of the range [0, 240]: guessing 120, the middle, would do as well.",
    )


def test_an_estimate_inside_the_domain_stays_what_it_is() -> None:
    inside = EstimateInDomain(0.5, inca.Interval(0, 1), noise(0.01**2), confidence=0.5)
    assert inside.estimate == 0.5 and inside.remarks == () and not inside.says_nothing
    assert list(inside.interval) == pytest.approx([0.5 - 0.6744898 * 0.01, 0.5 + 0.6744898 * 0.01])


def test_rounding_takes_no_estimate_out_of_the_domain() -> None:
    rounded = EstimateInDomain(1.0 + 1e-15, inca.Interval(0, 1), noise(0.0))
    assert rounded.estimate == 1.0 and rounded.remarks == ()


def test_lost_values_widen_the_interval_and_count_in_the_rule() -> None:
    lost = EstimateInDomain(0.5, inca.Interval(0, 1), noise(0.1**2, data=0.35**2))
    assert lost.interval == (0.0, 1.0) and lost.says_nothing
    assert lost.remarks == (
        "The standard error 0.1, and lost values that can move the mean by 0.35, are a large part of the range [0, 1]: "
        "guessing 0.5, the middle, would do as well.",
    )


def test_what_lost_values_move_is_told_per_coordinate_of_a_box_and_as_a_length_in_a_ball() -> None:
    """Four coordinates that move by 0.35 each are a distance of 0.7; in a ball all of it may be in one of them."""
    budget = noise(4 * 0.1**2, data=0.7**2)
    box, ball = (EstimateInDomain(np.full(4, 0.5), domain, budget) for domain in (inca.Interval(0, 1), inca.Ball(1)))
    assert box.remarks == (
        "The standard error 0.1 of each of 4 coordinates, and lost values that can move the mean by 0.35, are a large "
        "part of the range [0, 1]: guessing 0.5, the middle, would do as well.",
    )
    assert ball.remarks == (
        "The standard error 0.1 of each of 4 coordinates, and lost values that can move the mean by 0.7, are a large "
        "part of the ball of radius 1: guessing 0, the centre, would do as well.",
    )


def test_what_lost_values_move_is_put_to_either_side_of_every_coordinate() -> None:
    """The means of all that the lost values can have been are covered, and in a box no more than these."""
    sigma, reach = 0.01, 0.01 * 1.959964
    lost = EstimateInDomain(np.full(4, 0.5), inca.Interval(0, 1), noise(4 * sigma**2, data=4 * 0.2**2))
    low, high = (np.asarray(end) for end in lost.interval)
    assert low == pytest.approx([0.3 - reach] * 4) and high == pytest.approx([0.7 + reach] * 4)
    in_ball = EstimateInDomain(np.zeros(4), inca.Ball(1), noise(4 * sigma**2, data=0.4**2))
    low, high = (np.asarray(end) for end in in_ball.interval)
    assert low == pytest.approx([-0.4 - reach] * 4) and high == pytest.approx([0.4 + reach] * 4)


@pytest.mark.parametrize("error", [None, noise(math.inf, math.inf)])
def test_an_error_that_is_not_known_or_not_bounded_leaves_the_whole_domain(error: inca.ErrorBudget | None) -> None:
    unknown = EstimateInDomain(0.25, inca.Interval(0, 1), error)
    assert (unknown.estimate, unknown.interval) == (0.25, (0.0, 1.0)) and unknown.says_nothing
    (sentence,) = unknown.remarks
    assert sentence.startswith("The error is not known" if error is None else "The standard error is unbounded")
    assert sentence.endswith(": guessing 0.5, the middle, would do as well.")


def test_in_a_box_each_coordinate_is_on_its_own() -> None:
    point = EstimateInDomain(np.array([0.5, 1.5, -0.25]), inca.Interval(0, 1), noise(3 * 0.1**2))
    assert isinstance(point.estimate, np.ndarray) and point.estimate.tolist() == [0.5, 1.0, 0.0]
    low, high = (np.asarray(end) for end in point.interval)
    assert low == pytest.approx([0.5 - 0.1959964, 1 - 0.1959964, 0.0])
    assert high == pytest.approx([0.5 + 0.1959964, 1.0, 0.1959964])
    (sentence,) = point.remarks
    assert sentence == (
        "The noise took the estimate out of [0, 1] in 2 of 3 coordinates: each of them is the nearer end now."
    )
    noisy = EstimateInDomain(np.full(3, 0.5), inca.Interval(0, 1), noise(3 * 0.25**2))
    assert noisy.remarks == (
        "The standard error 0.25 of each of 3 coordinates is a large part of the range [0, 1]: guessing 0.5, the "
        "middle, would do as well.",
    )
    assert not EstimateInDomain(np.full(3, 0.5), inca.Interval(0, 1), noise(3 * 0.24**2)).says_nothing


def test_in_a_ball_the_length_of_the_noise_counts() -> None:
    quiet = EstimateInDomain(np.zeros(100), inca.Ball(1), noise(100 * 0.049**2))
    assert not quiet.says_nothing  # a length of 0.49, of a radius of 1
    noisy = EstimateInDomain(np.r_[3.0, 4.0, np.zeros(98)], inca.Ball(1), noise(100 * 0.05**2))
    assert isinstance(noisy.estimate, np.ndarray) and noisy.estimate[:3] == pytest.approx([0.6, 0.8, 0.0])
    assert noisy.remarks == (
        "The noise took the estimate to a length of 5, outside the ball of radius 1: it is scaled to the surface.",
        "The standard error 0.05 of each of 100 coordinates is a large part of the ball of radius 1: guessing 0, the "
        "centre, would do as well.",
    )
    low, high = (np.asarray(end) for end in noisy.interval)
    assert ((low >= -1.0) & (low <= noisy.estimate) & (noisy.estimate <= high) & (high <= 1.0)).all()


def test_a_ball_of_numbers_is_an_interval() -> None:
    number = EstimateInDomain(-2.0, inca.Ball(1), noise(0.01))
    assert number.estimate == -1.0 and list(number.interval) == pytest.approx([-1.0, -1 + 0.1959964])


@given(st.floats(-50, 50), st.floats(1e-3, 100), st.floats(0, 2), st.floats(0.01, 0.99))
def test_intervals_lie_in_the_domain_and_hold_the_estimate(
    unconstrained: float, sigma: float, lost: float, confidence: float
) -> None:
    shown = EstimateInDomain(unconstrained, inca.Interval(-1, 2), noise(sigma**2, lost**2), confidence)
    low, high = shown.interval
    assert -1.0 <= low <= shown.estimate <= high <= 2.0 and low < high
    assert abs(float(shown.estimate) - 0.5) <= abs(unconstrained - 0.5)


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5])
def test_clipped_intervals_cover_as_often_as_they_say(mean: float) -> None:
    """At the border, too: moving an estimate into a convex set brings it no further from what is in it."""
    rng, sigma, runs = np.random.default_rng(1), 0.1, 2000
    covered = 0
    for _ in range(runs):
        unconstrained = float(mean + sigma * rng.standard_normal())
        low, high = EstimateInDomain(unconstrained, inca.Interval(0, 1), noise(sigma**2), 0.8).interval
        covered += bool(low <= mean <= high)
    assert covered >= binom.ppf(FALSE_ALARM, runs, 0.8)


def test_intervals_in_a_ball_cover_as_often_as_they_say() -> None:
    rng, sigma, runs = np.random.default_rng(2), 0.5, 300
    centre: Array = np.r_[0.9, np.zeros(9)]
    covered = 0
    for _ in range(runs):
        noisy = centre + sigma * rng.standard_normal(10)
        low, high = EstimateInDomain(noisy, inca.Ball(1), noise(10 * sigma**2), 0.8).interval
        covered += int(((low <= centre) & (centre <= high)).sum())
    assert covered >= binom.ppf(FALSE_ALARM, 10 * runs, 0.8)


class Simplex:
    """A domain of one's own: shares of a whole, in three coordinates."""

    def sensitivity(self, dimensions: int = 1) -> float:
        return math.sqrt(2.0)

    def validate(self, values: ArrayLike, *, clip: bool = False) -> Array:
        inside = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
        return np.asarray(inside / inside.sum(axis=1, keepdims=True))

    def __str__(self) -> str:
        return "the simplex"


def test_a_domain_of_ones_own_moves_estimates_in_and_has_a_middle_too() -> None:
    shown = EstimateInDomain(np.array([0.5, 0.5, -0.5]), Simplex(), noise(3 * 0.01**2))
    assert np.asarray(shown.estimate).tolist() == [0.5, 0.5, 0.0] and not shown.says_nothing
    lower, upper = shown.interval
    assert np.asarray(lower)[0] == pytest.approx(0.5 - 0.0196, abs=1e-4) and np.asarray(upper)[2] == 0.0
    vague = EstimateInDomain(np.array([0.5, 0.5, 0.0]), Simplex(), noise(3.0))
    assert vague.remarks[-1].endswith("is a large part of the simplex: guessing its middle would do as well.")
