from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.coverage import assert_covers, holds, repeat
from helpers.examples import cases
from helpers.statistics import own
from inca import Conditions, Interval, InvalidInput
from inca._base.types import Array
from inca.errors import BudgetExceeded
from inca.learn.averagers.base import VectorMean
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.estimates import IntervalTarget
from inca.learn.statistics.features import Products
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import LinearFit, linear_regression

BOX = [Interval(0, 10), Interval(-1, 1), Interval(-20, 40)]
TRUE = np.array([4.0, 1.5, -6.0])  # intercept, coefficients
seeds = st.integers(0, 2**32 - 1)


def draws(rng: np.random.Generator, parties: int, per_party: int = 2, noise: float = 3.0) -> Array:
    """Rows x_1, x_2, y of a line with independent errors, which stays in the box: (parties, per_party, 3)."""
    inputs = np.stack([rng.uniform(0, 10, (parties, per_party)), rng.uniform(-1, 1, (parties, per_party))], axis=2)
    errors = noise * rng.uniform(-math.sqrt(3), math.sqrt(3), (parties, per_party))
    return np.concatenate([inputs, (TRUE[0] + inputs @ TRUE[1:] + errors)[..., np.newaxis]], axis=2)


def least_squares(table: Array, ridge: float = 0.0) -> Array:
    """Solve plainly, with the ridge in units of the box scaled to [-1, 1]; return intercept and coefficients."""
    half = np.array([(column.high - column.low) / 2 for column in BOX])
    middle, scaled = table.mean(axis=0), (table - table.mean(axis=0)) / half
    inputs, output = scaled[:, :-1], scaled[:, -1]
    system = inputs.T @ inputs / len(table) + ridge * np.eye(inputs.shape[1])
    slopes = np.linalg.solve(system, inputs.T @ output / len(table)) * half[-1] / half[:-1]
    return np.concatenate([[middle[-1] - slopes @ middle[:-1]], slopes])


def both(line: LinearFit) -> Array:
    return np.concatenate([[line.intercept.estimate], np.ravel(line.coefficients.estimate)])


def interval(line: LinearFit, level: float, target: IntervalTarget) -> tuple[Array, Array]:
    ends = zip(line.intercept.interval(level, target), line.coefficients.interval(level, target), strict=True)
    low, high = (np.concatenate([[first], np.ravel(others)]) for first, others in ends)
    return low, high


@given(st.sampled_from(get_args(ProtectionLevel)), st.sampled_from([0.0, 0.1, 2.0]), seeds)
def test_without_noise_the_line_is_that_of_least_squares(level: ProtectionLevel, ridge: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = Records.of([*draws(rng, 10), *draws(rng, 9, 5), []], BOX, level=level)
    line = linear_regression(records, SimulatedAverager.of("central", 20), 1e9, rng, ridge=ridge)
    table = records.everything()
    assert np.allclose(both(line), least_squares(table, ridge), atol=1e-5) and line.eigenvalues_raised == 0
    if ridge == 0.0:
        expected, residuals, _, _ = np.linalg.lstsq(np.column_stack([np.ones(len(table)), table[:, :-1]]), table[:, -1])
        assert np.allclose(both(line), expected, atol=1e-5)
        assert math.isclose(line.residual_variance, residuals[0] / len(table), rel_tol=1e-5)
    assert max(line.intercept.standard_error, *np.ravel(line.coefficients.standard_error)) < 1e-5


@settings(max_examples=20)
@given(st.floats(0.5, 5), seeds)
def test_less_loss_or_protecting_parties_means_more_error(mu: float, seed: int) -> None:
    held, averager = list(draws(np.random.default_rng(seed), 300, 1)), SimulatedAverager.of("central", 300)
    held[0] = np.repeat(held[0], 4, axis=0)  # one party with four records
    cases: list[tuple[ProtectionLevel, float]] = [("record", 25 * mu), ("record", 5 * mu), ("party", 5 * mu)]
    errors = []
    for level, loss in cases:
        line = linear_regression(
            Records.of(held, BOX, level=level), averager, loss, np.random.default_rng(seed), ridge=0.5
        )
        errors.append(np.append(line.coefficients.standard_error, line.intercept.standard_error))
    assert (errors[0] < errors[1]).all() and (errors[1] < errors[2]).all()


@given(st.floats(0.001, 0.3), st.sampled_from(get_args(ProtectionLevel)), seeds)
def test_however_large_the_noise_there_is_a_line(mu: float, level: ProtectionLevel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = Records.of(list(draws(rng, 12)), BOX, level=level)
    line = linear_regression(records, SimulatedAverager.of("central", 12), mu, rng)
    assert np.isfinite(both(line)).all() and line.residual_variance >= 0
    low, high = interval(line, 0.95, "population")
    assert (low < high).all() and (line.eigenvalues_raised == 0 or np.isinf(high[1:]).all())
    assert (line.smallest_eigenvalue < 1) == (line.eigenvalues_raised > 0) and line.eigenvalues_raised <= 2


def test_inputs_that_do_not_vary_or_depend_on_each_other() -> None:
    rng, averager = np.random.default_rng(1), SimulatedAverager.of("central", 50)
    x = rng.uniform(-1, 1, (50, 1))
    for second in (np.zeros((50, 1)), x):
        rows = np.hstack([5 + 2 * x, second, x])
        line = linear_regression(Records.of(list(rows[:, np.newaxis]), BOX), averager, 1.0, rng)
        assert line.eigenvalues_raised >= 1 and np.isfinite(both(line)).all()
        calm = linear_regression(Records.of(list(rows[:, np.newaxis]), BOX), averager, 1e7, rng, ridge=1e-3)
        assert np.allclose(both(calm), least_squares(rows, 1e-3), atol=1e-3) and calm.eigenvalues_raised == 0


def test_predictions_are_heights_of_the_line() -> None:
    rng = np.random.default_rng(2)
    line = linear_regression(Records.of(list(draws(rng, 400)), BOX), SimulatedAverager.of("central", 400), 1.0, rng)
    inputs = np.array([[0.0, 0.0], [5.0, 0.0], [10.0, 1.0]])
    heights = line.predict(inputs)
    assert np.allclose(heights.estimate, both(line)[0] + inputs @ both(line)[1:])
    errors = np.asarray(heights.standard_error)
    assert math.isclose(errors[0], float(line.intercept.standard_error)) and errors[1] < errors[0]
    assert (heights.population_standard_error > errors).all()


@given(st.integers(2, 100), st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_the_split_of_the_loss_is_better_than_in_halves(
    columns: int, middle: float, total: float, offset: float
) -> None:
    # A slope's error is S^-1 times ((E c)_j - m_j (E c)_0) with c = (-intercept, -slopes, 1), see regression.
    # Here slopes are alike and sum to at most 1, and the intercept leaves y in the box.
    products = Products(-np.ones(columns), np.ones(columns))
    slope, intercept = total / (columns - 1), offset * (1 - abs(total))
    squares = (columns - 1) * slope**2 + 1

    def score(first: float, second: float) -> float:
        """Of noise of these variances in first moments and in mixed products, twice the latter in squares."""
        own_row = first * intercept**2 + second * (squares + slope**2)
        return own_row + middle**2 * first * squares - 2 * middle * first * intercept * slope

    own = score(products.diameter**2, products.var_products(products.diameter**2)[0, 1])
    assert own < score(2 * 4 * columns, 2 * columns**2)  # u is 2 sqrt p wide, u u^T sqrt 2 p; mixed ones are halved


# --- intervals hold what they should ----------------------------------------------------------------------------------


def coverage(
    target: IntervalTarget,
    level: ProtectionLevel,
    mu: float,
    parties: int,
    trials: int,
    ridge: float = 0.0,
    dropout: float = 0.0,
) -> list[bool]:
    averager = SimulatedAverager.of("central", parties, Conditions(dropout=dropout, colluding=0.0))
    fixed = Records.of(list(draws(np.random.default_rng(3), parties)), BOX, level=level)
    sample = least_squares(fixed.everything(), ridge)

    def once(trial: int, rng: np.random.Generator) -> bool:
        records, truth = fixed, sample
        if target == "population" or dropout > 0.0:
            records = Records.of(list(draws(rng, parties)), BOX, level=level)
            truth = TRUE if target == "population" else least_squares(records.everything(), ridge)
        line = linear_regression(records, averager, mu, rng, ridge=ridge)
        return holds(interval(line, 0.9, target), truth, trial)

    return repeat(trials, once, seed=4)


def test_intervals_hold_the_line_of_the_sample() -> None:
    assert_covers(coverage("sample", "record", 1.0, 400, trials=cases(200, 400)), 0.9, at_least=True)
    assert_covers(coverage("sample", "party", 1.0, 400, trials=cases(200, 400), ridge=0.2), 0.9, at_least=True)


@pytest.mark.parametrize("parties", [30, 150])
def test_intervals_hold_the_line_where_the_noise_is_nearly_as_large_as_what_inputs_vary(parties: int) -> None:
    hits = coverage("sample", "record", 1.0, parties, trials=200)
    assert_covers(hits, 0.9, at_least=True)


def test_intervals_are_finite_where_there_are_enough_records() -> None:
    rng = np.random.default_rng(21)
    line = linear_regression(Records.of(list(draws(rng, 4000)), BOX), SimulatedAverager.of("central", 4000), 1.0, rng)
    errors = np.asarray(line.coefficients.standard_error)
    (low, high), (least, most) = (line.coefficients.interval(0.95, target) for target in get_args(IntervalTarget))
    assert (np.asarray(high) - low < 12.0 * errors).all() and (np.asarray(most) - least < 400.0 * errors).all()


def test_intervals_hold_the_line_of_the_population() -> None:
    assert_covers(coverage("population", "record", 4.0, 200, trials=cases(120, 250)), 0.9, at_least=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", get_args(IntervalTarget))
@pytest.mark.parametrize(("level", "mu", "parties"), [("record", 1.0, 400), ("party", 1.2, 400), ("record", 20.0, 200)])
def test_intervals_hold_the_line_over_many_releases(
    level: ProtectionLevel, mu: float, parties: int, target: IntervalTarget
) -> None:
    covered = assert_covers(coverage(target, level, mu, parties, trials=3_000), 0.9, at_least=True)
    print(f"coverage of lines, {target}, {level}, mu {mu}, {parties} parties: {covered:.4f} at level 0.9")


@pytest.mark.slow
def test_intervals_reckon_with_records_that_dropped_out() -> None:
    assert_covers(coverage("sample", "record", 20.0, 200, trials=2_000, dropout=0.3), 0.9, at_least=True)


def test_a_line_over_a_protocol_with_dropouts_is_finite() -> None:
    averager, rng = own(), np.random.default_rng(5)
    for level in get_args(ProtectionLevel):
        records = Records.of([*draws(rng, 6, 3), *draws(rng, 6, 8)], BOX, level=level)
        line = linear_regression(records, averager, 1.0, rng, ridge=0.1)
        assert np.isfinite(both(line)).all()


def test_a_budget_is_spent_once() -> None:
    rng, averager, budget = np.random.default_rng(6), SimulatedAverager.of("central", 20), Budget(2.0, 1e-6)
    records = Records.of(list(draws(rng, 20)), BOX)
    assert linear_regression(records, averager, budget, rng, fraction=0.5).intercept.mu == budget.part(0.5)
    linear_regression(records, averager, budget, rng)
    with pytest.raises(BudgetExceeded):
        linear_regression(records, averager, budget, rng)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r, a, g: linear_regression(r.column(0), a, 1.0, g), "number of columns must be .*got 1"),
        (lambda r, a, g: linear_regression(r, a, 1.0, g, ridge=-1.0), "ridge must be .*got -1"),
        (lambda r, a, g: linear_regression(r, a, -1.0, g), "mu must be .*got -1"),
        (lambda r, a, g: linear_regression(r, a, 1.0, g).predict([1.0, 2.0]), "shape of inputs"),
        (lambda r, a, g: linear_regression(r, a, 1.0, g).predict([[1.0]]), "columns of inputs must be .*got 1"),
        (
            lambda r, a, g: linear_regression(r, a, 1.0, g).predict([[1.0, math.nan]]),
            r"inputs\[0, 1\] must be .*got nan",
        ),
        (lambda r, a, g: linear_regression(r, SimulatedAverager.of("central", 9), 1.0, g), "records must be .*got 20"),
    ],
)
def test_bad_input_is_refused(
    call: Callable[[Records, SimulatedAverager, np.random.Generator], object], words: str
) -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(InvalidInput, match=words):
        call(Records.of(list(draws(rng, 20)), BOX), SimulatedAverager.of("central", 20), rng)


# --- errors, worked out again by moving each released number a little -------------------------------------------------


class Shifted:
    """Averages without noise, adds a shift to what is released, and says that there is noise of some variance."""

    releases = None
    parties, dropout, failure_probability = 40, 0.0, 0.0

    def __init__(self, shift: Array | float = 0.0, variance: float = 1e-10) -> None:
        self.shift, self.variance = shift, variance

    def expect(self, budget: Budget | None, releases: int) -> None:
        pass

    def var_noise(self, sensitivity: float, mu: float) -> float:
        return self.variance

    def average(self, vectors: Array, *given: object, **options: object) -> VectorMean:
        return VectorMean(np.asarray(vectors).mean(axis=0) + self.shift, self.variance, 1.0)


def shifted_line(shift: Array | float, ridge: float) -> LinearFit:
    averager: Any = Shifted(shift)
    records = Records.of(list(draws(np.random.default_rng(8), 40, 1)), BOX)
    return linear_regression(records, averager, 1.0, np.random.default_rng(1), ridge=ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_noise_in_a_line_is_what_moving_each_released_number_shows(ridge: float) -> None:
    size, step = Products(np.zeros(3), np.ones(3)).size, 1e-6
    line = shifted_line(0.0, ridge)
    moved = [[shifted_line(sign * step * direction, ridge) for sign in (1, -1)] for direction in np.eye(size)]
    slopes = np.array([(both(up) - both(down)) / (2 * step) for up, down in moved])
    expected = np.sqrt(1e-10 * (slopes**2).sum(axis=0))
    assert float(line.intercept.standard_error) == pytest.approx(expected[0], rel=1e-4)
    assert np.ravel(line.coefficients.standard_error) == pytest.approx(expected[1:], rel=1e-4)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_error_of_drawing_records_is_that_of_the_textbook(ridge: float) -> None:
    """s^2 A^-1 (A - ridge) A^-1 / N with A the mean of z z^T, in units of the box, turned to those of the records."""
    line = shifted_line(0.0, ridge)
    table = Records.of(list(draws(np.random.default_rng(8), 40, 1)), BOX).everything()
    half, centre = np.array([5.0, 1.0, 30.0]), np.array([5.0, 0.0, 10.0])
    unit = (table - centre) / half
    design = np.column_stack([np.ones(40), unit[:, :-1]])
    meat = design.T @ design / 40
    penalty = np.diag([0.0, ridge, ridge])
    bread = np.linalg.inv(meat + penalty)
    solution = bread @ (design.T @ unit[:, -1] / 40)
    # The residual variance, as it is told, is that of the moments: E v^2 - 2 line . E z v + line . A line.
    residual = float(np.mean((unit[:, -1] - design @ solution) ** 2))
    turn = np.array([[30.0, -6.0 * 5.0, 0.0], [0.0, 6.0, 0.0], [0.0, 0.0, 30.0]])
    covariance = turn @ (bread @ meat @ bread) @ turn.T * residual / 40
    for estimate, place in ((line.intercept, slice(0, 1)), (line.coefficients, slice(1, 3))):
        drawn = np.ravel(estimate.population_standard_error) ** 2 - np.ravel(estimate.standard_error) ** 2
        assert drawn == pytest.approx(np.diag(covariance)[place], rel=1e-4)
    heights = line.predict([[2.0, 0.5]])
    row = np.array([1.0, 2.0, 0.5])
    drawn = np.ravel(heights.population_standard_error) ** 2 - np.ravel(heights.standard_error) ** 2
    assert drawn == pytest.approx([row @ covariance @ row], rel=1e-4)
