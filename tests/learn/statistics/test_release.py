"""What one release asks of an averager, and what it makes of the answer: with an averager that is made up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from inca import Interval, InvalidInput
from inca._base.types import Array
from inca.errors import BudgetExceeded, NoResult
from inca.learn.averagers.base import VectorMean
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.features import Powers
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import FeatureMean, average_features

BOX = Interval(0, 4)
EQUAL = [[0.0, 4.0], [1.0, 2.0], [2.0, 3.0], [4.0, 4.0]]
UNEQUAL = [[0.0], [1.0, 2.0, 4.0], [], [3.0, 3.0, 1.0, 2.0]]
RISING = [[0.0], [1.0, 2.0], [4.0, 1.0, 3.0], [4.0]]  # none has fewer than the first


class Answering:
    """Keeps what it is asked; answers with the mean of those who stay, without noise."""

    releases = None

    def __init__(self, parties: int, dropout: float = 0.0, stay: list[int] | None = None) -> None:
        self.parties, self.dropout, self.failure_probability = parties, dropout, 1e-7
        self.stay = list(range(parties)) if stay is None else stay
        self.asked: dict[str, Any] = {}

    def expect(self, budget: Budget | None, releases: int) -> None:
        assert releases == 1

    def var_noise(self, sensitivity: float, mu: float) -> float:
        return (sensitivity / mu / self.parties) ** 2

    def average(
        self, vectors: Array, sensitivity: float, mu: float, rng: Any, *, max_norm: float | None = None
    ) -> VectorMean:
        self.asked = {"vectors": np.asarray(vectors), "sensitivity": sensitivity, "mu": mu, "max_norm": max_norm}
        if not self.stay:
            return VectorMean(None, math.inf, mu)
        return VectorMean(self.asked["vectors"][self.stay].mean(axis=0), 0.25, mu)


def released(
    held: list[Any], averager: Any, loss: Any = 1.0, level: ProtectionLevel = "record", **options: Any
) -> tuple[FeatureMean, Records, Powers]:
    records = Records.of([np.array(table) for table in held], BOX, level=level)
    features = Powers(records.lower, records.upper)
    return average_features(records, features, averager, loss, np.random.default_rng(1), **options), records, features


@pytest.mark.parametrize(("level", "factor"), [("record", 1), ("party", 4)])
def test_the_sensitivity_is_one_diameter_or_that_of_all_records_of_the_largest_party(
    level: ProtectionLevel, factor: int
) -> None:
    averager = Answering(4)
    _, _, features = released(UNEQUAL, averager, level=level)
    assert averager.asked["sensitivity"] == pytest.approx(factor * features.diameter)
    assert averager.asked["mu"] == 1.0


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("held", [EQUAL, UNEQUAL, RISING])
def test_the_mean_is_that_of_all_records_and_no_row_is_longer_than_is_said(held: list[Any], dropout: float) -> None:
    averager = Answering(4, dropout)
    result, records, features = released(held, averager)
    np.testing.assert_allclose(result.mean, features(records.everything()).mean(axis=0), atol=1e-9)
    rows = averager.asked["vectors"]
    assert np.linalg.norm(rows, axis=1).max() <= averager.asked["max_norm"] * (1 + 1e-12)
    assert averager.asked["max_norm"] < 1e9 * features.max_norm
    counted = dropout > 0.0 and held is not EQUAL  # how many records there are is averaged, too
    assert rows.shape == (4, features.size + counted)
    np.testing.assert_allclose(rows[:, : features.size], records.sums(features, features.size))
    assert result.var_noise == pytest.approx(0.25 / records.sizes.mean() ** 2)
    assert (result.mu, result.failure_probability, result.drawing) == (1.0, 1e-7, 1.0 / records.total)


def test_a_bound_on_the_norm_counts_all_records_of_the_largest_party() -> None:
    averager = Answering(4)
    _, _, features = released(UNEQUAL, averager)
    assert averager.asked["max_norm"] == pytest.approx(4 * features.max_norm)


def test_counts_are_scaled_so_that_their_noise_does_not_matter_and_their_norm_is_told() -> None:
    """A millionth of the mean number of records; counts are public, so their scale costs nothing."""
    averager = Answering(4, dropout=0.25)
    _, records, features = released(UNEQUAL, averager)
    counts = averager.asked["vectors"][:, -1]
    scale = counts[0]
    np.testing.assert_allclose(counts, scale * records.sizes)
    noise = math.sqrt(averager.var_noise(features.diameter, 1.0)) / scale
    assert noise / records.sizes.mean() == pytest.approx(1e-6)
    assert averager.asked["max_norm"] == pytest.approx(math.hypot(4 * features.max_norm, 4 * scale))


def stayed(result: FeatureMean) -> float:
    return 1.0 / (result.missing + result.drawing)


def test_of_unequal_parties_the_mean_is_that_of_those_who_stayed() -> None:
    averager = Answering(4, dropout=0.25, stay=[0, 1, 2])
    result, _, features = released(UNEQUAL, averager)
    left = features(np.array([[0.0], [1.0], [2.0], [4.0]]))
    np.testing.assert_allclose(result.mean, left.mean(axis=0), atol=1e-9)
    # Four of eight records are left: 1 / 4 is as if all of the variance were theirs.
    assert stayed(result) == pytest.approx(4.0) and result.missing == pytest.approx(1 / 4 - 1 / 8)
    assert result.var_noise == pytest.approx(0.25 / (4 / 3) ** 2)


def test_of_equal_parties_as_many_records_are_missing_as_may_leave() -> None:
    result, _, _ = released(EQUAL, Answering(4, dropout=0.5))
    assert stayed(result) == pytest.approx(4.0) and result.missing == pytest.approx(1 / 4 - 1 / 8)
    nobody, _, _ = released(EQUAL, Answering(4))
    assert nobody.missing == 0.0 and 1 / nobody.drawing == pytest.approx(8.0)


def test_noise_in_the_count_alone_does_not_make_records_missing() -> None:
    averager = Answering(4, dropout=0.25)
    exact = averager.average

    def slightly_off(*given: Any, **options: Any) -> VectorMean:
        answer = exact(*given, **options)
        assert answer.estimate is not None
        estimate = answer.estimate.copy()
        estimate[-1] *= 1 + 3e-6
        return VectorMean(estimate, answer.var_noise, answer.mu)

    averager.average = slightly_off  # type: ignore[method-assign]
    result, _, _ = released(UNEQUAL, averager)
    assert stayed(result) == pytest.approx(6.0, rel=1e-12)  # 2 each of three parties, not a millionth more


@pytest.mark.parametrize("held", [EQUAL, UNEQUAL])
def test_if_all_with_records_leave_there_is_no_result_and_the_loss_is_spent(held: list[Any]) -> None:
    for stay in ([], [2] if held is UNEQUAL else []):
        budget = Budget(1.0, 1e-5)
        with pytest.raises(NoResult, match="the loss of the release is spent"):
            released(held, Answering(4, 0.25, stay=stay), budget)
        assert budget.spent == pytest.approx(budget.mu)


def test_if_all_are_said_to_leave_nothing_is_spent_or_asked() -> None:
    budget, averager = Budget(1.0, 1e-5), Answering(4, dropout=1.0)
    with pytest.raises(NoResult, match="nothing was spent"):
        released(EQUAL, averager, budget)
    assert budget.spent == 0.0 and averager.asked == {}


def test_a_fraction_of_a_budget_is_taken_before_anything_is_asked() -> None:
    budget, averager = Budget(1.0, 1e-5), Answering(4)
    result, _, _ = released(EQUAL, averager, budget, fraction=0.25)
    assert result.mu == averager.asked["mu"] == pytest.approx(budget.mu / 2) and budget.level == "record"
    fresh = Answering(4)
    with pytest.raises(BudgetExceeded):
        released(EQUAL, fresh, budget, fraction=0.9)
    assert fresh.asked == {}


def test_an_averager_of_other_parties_and_a_seed_for_a_generator_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the number of parties with records must be that of the averager, 5, got 4"):
        released(EQUAL, Answering(5))
    records = Records.of(EQUAL, BOX)
    with pytest.raises(InvalidInput):
        average_features(records, Powers(records.lower, records.upper), Answering(4), 1.0, 7)  # type: ignore[arg-type]


def test_errors_have_a_part_for_noise_and_missing_records_and_one_for_drawing() -> None:
    mean = FeatureMean(np.zeros(2), 0.5, missing=0.02, drawing=0.01, mu=0.7, failure_probability=1e-6)
    errors = mean.errors(lambda level, target: np.zeros(1), np.array([0.3]), np.array([2.0]))
    assert errors["var_noise"] == pytest.approx([0.3 + 2.0 * 0.02])
    assert errors["var_sampling"] == pytest.approx([2.0 * 0.01])
    assert (errors["mu"], errors["failure_probability"]) == (0.7, 1e-6)


def test_the_reach_of_a_mean_is_that_of_noise_and_of_bounded_records() -> None:
    """Serfling: of 100 records 50 without replacement vary like (1 - 49 / 100) / 50, of a population like 1 / 50."""
    mean = FeatureMean(np.zeros(1), 0.0, missing=1 / 50 - 1 / 100, drawing=1 / 100, mu=1.0)
    whole = FeatureMean(np.zeros(1), 0.0, missing=0.0, drawing=1 / 100, mu=1.0)
    quantile = math.sqrt(2 * math.log(2 / 0.05))
    assert float(mean.reach(0.95, "sample", 3.0, 0.0)) == pytest.approx(3.0 * quantile * math.sqrt(0.51 / 50))
    assert float(mean.reach(0.95, "population", 3.0, 0.0)) == pytest.approx(3.0 * quantile / math.sqrt(50))
    assert float(whole.reach(0.95, "sample", 3.0, 4.0)) == pytest.approx(2.0 * 1.959964, rel=1e-6)
