from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.statistics import DOMAIN, EDGES, GRID, STATISTICS, draws, mean, own, variance
from inca import Conditions, InvalidInput
from inca.errors import BudgetExceeded, NoResult
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.distribution import QuantileEstimate, distribution, quantile, quantiles
from inca.learn.statistics.features import Powers, Products, root_of_sums
from inca.learn.statistics.moments import covariance, histogram, moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import average_features

seeds = st.integers(0, 2**32 - 1)
names = st.sampled_from(sorted(STATISTICS))


@pytest.fixture(scope="module")
def central() -> SimulatedAverager:
    return SimulatedAverager.of("central", 40)


# --- without noise, and with more or less of it ---------------------------------------------------------------------


@given(names, st.sampled_from(["record", "party"]), seeds)
def test_without_noise_an_answer_is_the_plain_statistic(name: str, level: ProtectionLevel, seed: int) -> None:
    statistic, plain, columns = STATISTICS[name]
    rng = np.random.default_rng(seed)
    held = [table for size in (1, 4, 2) for table in draws(rng, 10, size, columns)] + draws(rng, 10, 0, columns)
    records = Records.of(held, DOMAIN, level=level)
    answer = statistic(records, SimulatedAverager.of("central", 40), 1e9, rng)
    expected = plain(records.everything())
    assert np.allclose(answer.estimate, expected, atol=1e-6) and np.max(answer.standard_error) < 1e-6
    low, high = answer.interval(1 - 1e-9)
    assert (np.asarray(low) <= expected + 1e-12).all() and (expected - 1e-12 <= np.asarray(high)).all()


@given(names, st.floats(0.05, 5), st.floats(1.1, 10), seeds)
def test_less_loss_means_more_error(name: str, mu: float, factor: float, seed: int) -> None:
    statistic, _, columns = STATISTICS[name]
    records = Records.of(draws(np.random.default_rng(seed), 40, 3, columns), DOMAIN)
    averager = SimulatedAverager.of("central", 40)
    strict, loose = (statistic(records, averager, loss, np.random.default_rng(seed)) for loss in (mu, factor * mu))
    for answer in (strict, loose):
        assert np.isfinite(answer.estimate).all()
        assert (np.asarray(answer.standard_error) <= answer.population_standard_error).all()
    assert (np.asarray(strict.standard_error) >= np.asarray(loose.standard_error) * 1.05).all()
    low, high = strict.interval(0.9)
    assert (np.asarray(low) <= strict.estimate).all() and (np.asarray(strict.estimate) <= high).all()


@given(names, st.integers(2, 5), seeds)
def test_protecting_records_costs_less_than_protecting_parties(name: str, per_party: int, seed: int) -> None:
    statistic, _, columns = STATISTICS[name]
    held, averager = draws(np.random.default_rng(seed), 40, per_party, columns), SimulatedAverager.of("central", 40)
    cases: list[tuple[ProtectionLevel, int | None]] = [("record", None), ("party", None), ("party", 1)]
    errors = [
        np.asarray(
            statistic(
                Records.of(held, DOMAIN, level=level, cap=cap), averager, 2.0, np.random.default_rng(seed)
            ).standard_error
        )
        for level, cap in cases
    ]
    assert (errors[0] < errors[1]).all()
    if name in ("mean", "histogram", "distribution"):  # of fewer records per party, yet as much for each
        assert np.allclose(errors[1], per_party * errors[0]) and np.allclose(errors[2], errors[1])


def test_more_records_for_the_same_number_of_parties_help_at_the_level_of_records(central: SimulatedAverager) -> None:
    rng = np.random.default_rng(3)
    few, many = (
        mean(Records.of(draws(rng, 40, per_party), DOMAIN), central, 1.0, rng).standard_error for per_party in (1, 10)
    )
    assert math.isclose(float(few), 10 * float(many))


# --- how the loss is split ------------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.floats(0, 1))
def test_moments_are_better_than_by_two_releases_of_half_the_loss(columns: int, middle: float) -> None:
    powers = Powers(-np.ones(columns), np.ones(columns))
    noise = powers.diameter**2
    first, second = 2 * 4 * columns, 2 * columns  # u is 2 sqrt p wide and u^2 is sqrt p wide
    assert noise <= first / 2 * (1 + 1e-12)  # as good as the mean alone, and with all of the loss
    assert noise / powers.weight**2 + 4 * middle**2 * noise < second + 4 * middle**2 * first


@given(st.integers(2, 300), st.floats(0, 1), st.floats(0, 1))
def test_covariances_are_better_than_by_two_releases_of_half_the_loss(
    columns: int, middle: float, other: float
) -> None:
    products = Products(-np.ones(columns), np.ones(columns))
    noise = products.diameter**2
    first, second = 2 * 4 * columns, 2 * 2 * columns**2  # u u^T is sqrt 2 p wide
    diagonal = noise / products.weight**2 + 4 * middle**2 * noise
    assert diagonal < second + 4 * middle**2 * first
    mixed = 0.5 * noise / products.weight**2 + (middle**2 + other**2) * noise
    assert mixed < 0.5 * second + (middle**2 + other**2) * first


@pytest.mark.parametrize("size", [1, 3, 15, 63, 255])
def test_distributions_are_no_worse_than_by_a_plain_histogram(size: int) -> None:
    averager, rng = SimulatedAverager.of("central", 40), np.random.default_rng(4)
    records = Records.of(draws(rng, 40), DOMAIN)
    points = np.linspace(-2, 6, size + 2)[1:-1]
    variances = np.asarray(distribution(records, points, averager, 1.0, rng).standard_error) ** 2
    # Bins sqrt 2 wide; knowing the total, the k-th of K sums has variance k (K - k) / K times that of a bin.
    below = np.arange(1, size + 1)
    plain = 2 / 40**2 * below * (size + 1 - below) / (size + 1)
    assert variances.sum() <= plain.sum() * (1 + 1e-9)
    if size >= 63:
        assert variances.mean() < 0.6 * plain.mean() and variances.max() < 0.5 * plain.max()
        log_rows = (root_of_sums(size + 1) ** 2).sum(axis=1).max()
        assert variances.max() <= 2 * log_rows**2 / 40**2


# --- shapes and corners of single statistics ------------------------------------------------------------------------


def test_plain_numbers_have_plain_answers(central: SimulatedAverager) -> None:
    rng = np.random.default_rng(8)
    records = Records.of(draws(rng, 40), DOMAIN)
    both = moments(records, central, 1.0, rng)
    for answer in (both.mean, both.variance):
        assert isinstance(answer.estimate, float) and isinstance(answer.standard_error, float) and answer.mu == 1.0
        assert all(isinstance(end, float) for end in answer.interval())
    table = Records.of(draws(rng, 40, 1, 2), DOMAIN)
    assert np.shape(mean(table, central, 1.0, rng).estimate) == (2,)
    assert np.shape(covariance(table, central, 1.0, rng).estimate) == (2, 2)


@settings(max_examples=25)
@given(st.floats(0.01, 1), seeds)
def test_values_are_where_statistics_can_be(mu: float, seed: int) -> None:
    rng, averager = np.random.default_rng(seed), SimulatedAverager.of("central", 12)
    table = Records.of(draws(rng, 12, 2, 3), DOMAIN)
    middles, spreads = mean(table, averager, mu, rng).estimate, variance(table, averager, mu, rng).estimate
    assert -2 <= np.min(middles) <= np.max(middles) <= 6 and 0 <= np.min(spreads) <= np.max(spreads) <= 16
    matrix = np.asarray(covariance(table, averager, mu, rng).estimate)
    assert (
        np.array_equal(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > -1e-9 and np.abs(matrix).max() <= 16 + 1e-9
    )
    column = table.column(0)
    shares = np.asarray(distribution(column, GRID, averager, mu, rng).estimate)
    assert (np.diff(shares) >= 0).all() and shares[0] >= 0 and shares[-1] <= 1
    middle = quantile(column, 0.5, averager, mu, rng)
    low, high = middle.interval()
    assert -2 <= low <= middle.estimate <= high <= 6 and middle.standard_error >= 0 and middle.mu == mu
    assert middle.population_standard_error >= middle.standard_error


def test_histograms_have_the_bins_of_numpy(central: SimulatedAverager) -> None:
    rng = np.random.default_rng(9)
    held = [rng.integers(-2, 7, size=5).astype(float) for _ in range(40)]  # on edges, too
    records = Records.of(held, DOMAIN)
    table = records.everything()
    for edges in ([-2, 0, 6], [0, 1, 3], [-2, 1], [3, 6], [-9, 0, 9], [-1, 1], [0, 6, 7]):
        answer = histogram(records, edges, central, 1e9, rng)
        assert np.allclose(answer.estimate, np.histogram(table, edges)[0] / table.size, atol=1e-6)


def test_several_quantiles_are_one_release() -> None:
    averager, shares = SimulatedAverager.of("central", NUMBERS.parties), [0.9, 0.1, 0.5]
    budget = Budget(1.0, 1e-5)
    several = quantiles(NUMBERS, shares, averager, budget, np.random.default_rng(1), fraction=0.25)
    assert budget.spent == pytest.approx(budget.mu / 2)
    assert [one.share for one in several] == shares and len({id(one.distribution) for one in several}) == 1
    alone = quantile(NUMBERS, 0.5, averager, several[0].mu, np.random.default_rng(1))
    assert (several[2].estimate, several[2].interval()) == (alone.estimate, alone.interval())
    with pytest.raises(InvalidInput, match="number of shares must be at least 1, got 0"):
        quantiles(NUMBERS, [], averager, 1.0, np.random.default_rng(1))


def test_quantiles_are_as_near_as_the_grid() -> None:
    rng, averager = np.random.default_rng(10), SimulatedAverager.of("central", 500)
    records = Records.of(draws(rng, 500), DOMAIN)
    shares = distribution(records, np.linspace(-2, 6, 1001)[1:-1], averager, 1e9, rng)
    for share in (0.013, 0.251, 0.501, 0.901):
        median, truth = shares.quantile(share), np.quantile(records.everything(), share, method="inverted_cdf")
        low, high = median.interval()
        assert abs(median.estimate - truth) <= 0.008 + 1e-9 and low <= truth <= high and high - low <= 0.016 + 1e-9
    errors = [quantile(records, 0.5, averager, mu, np.random.default_rng(1)).standard_error for mu in (10, 1, 0.1)]
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize("value", [-2.0, 1.234, 6.0])
def test_records_that_are_all_alike(value: float, central: SimulatedAverager) -> None:
    rng, records = np.random.default_rng(11), Records.of([[value]] * 40, DOMAIN)
    both = moments(records, central, 1e9, rng)
    assert abs(float(both.mean.estimate) - value) < 1e-6 and abs(float(both.variance.estimate)) < 1e-6
    middle = quantile(records, 0.5, central, 1e9, rng)
    assert isinstance(middle, QuantileEstimate) and abs(middle.estimate - value) <= 8 / 128 + 1e-9


# --- budgets and parties that leave ---------------------------------------------------------------------------------


def test_a_budget_is_spent_before_anything_is_released(central: SimulatedAverager) -> None:
    rng, records = np.random.default_rng(12), Records.of([[0.5]] * 40, DOMAIN)
    budget = Budget(1.0, 1e-5)
    assert mean(records, central, budget, rng, fraction=0.25).mu == budget.mu / 2
    assert math.isclose(budget.spent, budget.mu / 2)
    assert math.isclose(histogram(records, EDGES, central, budget, rng).mu, budget.mu * math.sqrt(0.75))
    before = rng.bit_generator.state
    for again in (partial(mean, fraction=0.1), mean, variance):
        with pytest.raises(BudgetExceeded):
            again(records, central, budget, rng)
    assert rng.bit_generator.state == before  # no noise was drawn


def test_what_is_refused_costs_nothing(central: SimulatedAverager) -> None:
    budget, records = Budget(1.0, 1e-5), Records.of([[0.5]] * 39, DOMAIN)
    with pytest.raises(InvalidInput, match="39"):
        mean(records, central, budget, np.random.default_rng(1))
    with pytest.raises(InvalidInput, match="rng"):
        mean(Records.of([[0.5]] * 40, DOMAIN), central, budget, 7)  # type: ignore[arg-type]
    assert budget.spent == 0.0


def test_records_are_divided_by_the_number_of_those_who_stayed() -> None:
    averager, rng = (
        SimulatedAverager.of("central", 30, Conditions(dropout=0.4, colluding=0.0)),
        np.random.default_rng(13),
    )
    records = Records.of([[5.0] * (1 + party) for party in range(29)] + [[]], DOMAIN)
    for _ in range(20):
        assert abs(float(mean(records, averager, 1e9, rng).estimate) - 5.0) < 1e-4


def test_leavers_make_errors_larger() -> None:
    records, errors = Records.of(draws(np.random.default_rng(14), 40), DOMAIN), []
    for dropout in (0.0, 0.2, 0.5):
        answer = mean(
            records,
            SimulatedAverager.of("central", 40, Conditions(dropout=dropout, colluding=0.0)),
            5.0,
            np.random.default_rng(1),
        )
        errors.append((answer.standard_error, answer.population_standard_error))
    assert errors[0] < errors[1] < errors[2] and errors[0][1] < errors[1][1] < errors[2][1]


def test_nobody_left_is_no_result() -> None:
    mechanism = SimulatedAverager.of("central", 12).mechanism
    records, budget = Records.of([[0.5]] * 12, DOMAIN), Budget(1.0, 1e-5)
    with pytest.raises(NoResult, match="nothing was spent"):
        mean(records, SimulatedAverager(mechanism, dropout=1.0), budget, np.random.default_rng(1))
    assert budget.spent == 0.0
    one = Records.of([[0.5]] + [[]] * 11, DOMAIN)
    with pytest.raises(NoResult, match="all parties with records left"):
        for _ in range(30):
            mean(one, SimulatedAverager(mechanism, dropout=0.9), 1.0, np.random.default_rng(1))


def test_statistics_over_a_protocol_with_dropouts_are_finite() -> None:
    rng = np.random.default_rng(15)
    held = [table for size in (1, 2, 3) for table in draws(rng, 4, size, 2)]
    for level in get_args(ProtectionLevel):
        records = Records.of(held, DOMAIN, level=level)
        column = records.column(0)
        answers = [
            mean(records, own(), 1.0, rng),
            variance(records, own(), 1.0, rng),
            covariance(records, own(), 1.0, rng),
            histogram(column, EDGES, own(), 1.0, rng),
            distribution(column, GRID, own(), 1.0, rng),
        ]
        for answer in answers:
            assert np.isfinite(answer.estimate).all() and np.isfinite(answer.standard_error).all()
            assert all(np.isfinite(end).all() for end in answer.interval(0.95, "population"))
        assert math.isfinite(quantile(column, 0.5, own(), 1.0, rng).standard_error)


# --- what is refused ------------------------------------------------------------------------------------------------

NUMBERS, TABLE = Records.of([[0.5]] * 40, DOMAIN), Records.of([[[0.5, 1.0]]] * 40, DOMAIN)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a, rng: mean(NUMBERS, a, 0.0, rng), "mu must be .*got 0"),
        (lambda a, rng: mean(NUMBERS, a, math.nan, rng), "mu must be .*got nan"),
        (lambda a, rng: mean(NUMBERS, a, 1.0, rng, fraction=0.5), "only a budget can be split"),
        (lambda a, rng: mean(NUMBERS, a, Budget(1, 1e-5), rng, fraction=0.0), "fraction must be .*got 0"),
        (lambda a, rng: mean(NUMBERS, a, 1.0, rng).interval(1.0), "level must be .*got 1"),
        (lambda a, rng: mean(NUMBERS, a, 1.0, rng).interval(0.9, "all"), "target must be .*got 'all'"),  # type: ignore[arg-type]
        (lambda a, rng: covariance(NUMBERS, a, 1.0, rng), "number of columns must be .*got 1"),
        (lambda a, rng: histogram(TABLE, EDGES, a, 1.0, rng), "number of columns must be .*got 2"),
        (lambda a, rng: histogram(NUMBERS, [1.0], a, 1.0, rng), "number of edges must be .*got 1"),
        (lambda a, rng: histogram(NUMBERS, [1.0, 1.0], a, 1.0, rng), "edges must be increasing numbers"),
        (lambda a, rng: histogram(NUMBERS, [-2, 6], a, 1.0, rng), "at least one is within"),
        (lambda a, rng: histogram(NUMBERS, [0, math.nan], a, 1.0, rng), r"edges\[1\] must be .*got nan"),
        (lambda a, rng: distribution(TABLE, GRID, a, 1.0, rng), "number of columns must be .*got 2"),
        (lambda a, rng: distribution(NUMBERS, [], a, 1.0, rng), "number of grid must be .*got 0"),
        (lambda a, rng: distribution(NUMBERS, np.arange(3000), a, 1.0, rng), "at most 2000"),
        (lambda a, rng: quantile(TABLE, 0.5, a, 1.0, rng), "number of columns must be .*got 2"),
        (lambda a, rng: quantile(NUMBERS, 0.0, a, 1.0, rng), "share must be .*got 0"),
        (lambda a, rng: quantile(NUMBERS, 1.5, a, 1.0, rng), "share must be .*got 1.5"),
        (lambda a, rng: quantile(NUMBERS, 0.5, a, 1.0, rng, points=0), "points must be .*got 0"),
        (lambda a, rng: Budget(1.0, 0.0), "delta"),
        (lambda a, rng: SimulatedAverager.of("central", 1), "parties must be .*got 1"),
    ],
)
def test_bad_input_is_refused(
    call: Callable[[SimulatedAverager, np.random.Generator], object], words: str, central: SimulatedAverager
) -> None:
    with pytest.raises(InvalidInput, match=words):
        call(central, np.random.default_rng(1))


def test_a_release_is_the_mean_of_features(central: SimulatedAverager) -> None:
    features = Powers(NUMBERS.lower, NUMBERS.upper)
    released = average_features(NUMBERS, features, central, 1e9, np.random.default_rng(1))
    assert np.allclose(released.mean, features(NUMBERS.everything()).mean(axis=0))
    assert released.missing == 0.0 and math.isclose(released.drawing, 1 / 40)
