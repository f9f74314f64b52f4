"""Releases are taken off a budget together with how likely their plans fail, whatever is released."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from inca import Conditions, Interval, InvalidInput
from inca.errors import BudgetExceeded
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget
from inca.learn.comparison.datasets import load_dataset
from inca.learn.spending import ReleaseCost, take_release, take_releases
from inca.learn.statistics.distribution import quantile
from inca.learn.statistics.features import Powers
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression
from inca.learn.statistics.release import average_features
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import LogisticModel
from inca.learn.training.train import TrainingResult, TrainingRules, train

PARTIES = 12
NUMBERS = Records.of([[0.5]] * PARTIES, Interval(0, 1))


@cache
def planned() -> SimulatedAverager:
    """GOPA for thirty releases with a failure probability of 3e-6 in all: 1e-7 each."""
    return SimulatedAverager.of(
        "gopa", PARTIES, Conditions(messages=8, failure=3e-6, colluding=0.0, dropout=0.0), releases=30
    )


def steps(averager: SimulatedAverager, budget: Budget, count: int, mu: float | None = 0.01) -> TrainingResult:
    datasets = [(np.ones((2, 2)), np.array([0, 1]))] * PARTIES
    rng = np.random.default_rng(1)
    return train(LogisticModel(2, 2), datasets, averager, budget, count, rng, TrainingRules(Clipping(1.0), mu=mu))


class Listening:
    """An averager that keeps what it was told to expect; nothing is averaged with it."""

    parties, dropout, failure_probability, releases = PARTIES, 0.0, 1e-7, 40

    def __init__(self) -> None:
        self.told: list[tuple[Budget | None, int]] = []

    def expect(self, budget: Budget | None, releases: int) -> None:
        self.told.append((budget, releases))


def test_an_averager_is_told_what_is_to_come_and_from_which_budget() -> None:
    averager: Any = Listening()
    budget = Budget(1.0, 1e-5)
    assert take_release(0.5, averager, "record") == ReleaseCost(0.5, 1e-7)
    assert take_release(budget, averager, "record", 0.25) == ReleaseCost(budget.mu / 2, 1e-7)
    several = take_releases(budget, averager, "record", 3, 0.01)
    assert several.mu == 0.01 and several.failure_probability == pytest.approx(3e-7)
    assert averager.told == [(None, 1), (budget, 1), (budget, 3)]
    assert budget.spent == pytest.approx((budget.mu**2 / 4 + 3 * 0.01**2) ** 0.5)
    assert budget.failure_probability == pytest.approx(4e-7) and budget.level == "record"


@pytest.mark.parametrize("releases", [1, 2, 9])
def test_releases_of_equal_loss_use_up_what_is_left(releases: int) -> None:
    averager: Any = Listening()
    budget = Budget(1.0, 1e-5)
    budget.spend(budget.part(0.75))
    cost = take_releases(budget, averager, "party", releases)
    assert cost.mu == pytest.approx(budget.mu / 2 / releases**0.5) and budget.spent == pytest.approx(budget.mu)
    with pytest.raises(BudgetExceeded):
        take_release(budget, averager, "party")


def test_what_an_averager_refuses_is_not_spent() -> None:
    class Refusing(Listening):
        def expect(self, budget: Budget | None, releases: int) -> None:
            raise InvalidInput("not with me")

    averager: Any = Refusing()
    budget = Budget(1.0, 1e-5)
    for loss in (budget, 1.0):
        with pytest.raises(InvalidInput, match="not with me"):
            take_release(loss, averager, "record")
    with pytest.raises(InvalidInput, match="not with me"):
        take_releases(budget, averager, "record", 2)
    assert budget.spent == 0.0


def test_a_part_of_a_mu_or_a_part_of_0_is_refused() -> None:
    averager: Any = Listening()
    with pytest.raises(InvalidInput, match="fraction cannot be combined with a mu"):
        take_release(1.0, averager, "record", 0.5)
    with pytest.raises(InvalidInput, match=r"fraction must be above 0, got 0\.0"):
        take_release(Budget(1.0, 1e-5), averager, "record", 0.0)


def test_an_unknown_probability_of_failure_stays_unknown() -> None:
    averager: Any = Listening()
    averager.failure_probability = None
    budget = Budget(1.0, 1e-5)
    assert take_releases(budget, averager, "record", 2, 0.01).failure_probability is None
    assert budget.failure_probability is None


def test_more_steps_than_the_averager_was_made_for_are_refused() -> None:
    once, budget = SimulatedAverager(planned().mechanism), Budget(1.0, 1e-5)
    with pytest.raises(InvalidInput, match=r"releases of a budget must be at most 1, which the averager.*, got 200"):
        steps(once, budget, 200)
    steps(once, budget, 1)
    with pytest.raises(InvalidInput, match=r"releases of a budget must be at most 1, which the averager.*, got 2"):
        moments(Records.of([[0.5]] * PARTIES, Interval(0, 1), level="party"), once, budget, np.random.default_rng(1))
    steps(once, Budget(1.0, 1e-5), 1)  # another promise


def test_a_plan_that_fails_more_often_than_delta_is_refused_unless_asked_for() -> None:
    for budget in (Budget(1.0, 1e-9), Budget(1.0, 1e-5, failure=1e-9)):
        with pytest.raises(InvalidInput, match=r"a plan fails in any release must be at most 1e-09 .*, got 1e-06"):
            steps(planned(), budget, 10)
        assert budget.spent == 0.0
    for budget in (Budget(1.0, 1e-9, failure=1e-6), Budget(1.0, 1e-5)):
        assert steps(planned(), budget, 10).failure_probability == pytest.approx(1e-6)
        assert budget.failure_probability == pytest.approx(1e-6)


def test_every_result_tells_how_likely_its_plan_fails() -> None:
    rng, table = np.random.default_rng(1), Records.of([[[0.5, 0.2]]] * PARTIES, Interval(0, 1))
    for averager, expected in ((planned(), 1e-7), (SimulatedAverager.of("central", PARTIES), 0.0)):
        answers: list[Any] = [moments(NUMBERS, averager, 0.1, rng).mean, quantile(NUMBERS, 0.5, averager, 0.1, rng)]
        line = linear_regression(table, averager, 0.1, rng)
        answers += [line.intercept, line.predict([[0.3]])]
        assert [answer.failure_probability for answer in answers] == pytest.approx([expected] * 4)


def test_statistics_of_records_and_training_of_parties_do_not_share_a_budget() -> None:
    central, budget = SimulatedAverager.of("central", PARTIES), Budget(1.0, 1e-5)
    moments(NUMBERS, central, budget, np.random.default_rng(1), fraction=0.1)
    with pytest.raises(InvalidInput, match="the level of a release must be 'record', as of those before it"):
        steps(central, budget, 2)


def test_a_statistic_of_all_that_is_left_of_nothing_is_refused() -> None:
    central, budget = SimulatedAverager.of("central", PARTIES), Budget(1.0, 1e-5)
    for _ in range(7):
        moments(NUMBERS, central, budget, np.random.default_rng(1), fraction=1.0 / 7.0)
    with pytest.raises(BudgetExceeded, match="must be left of the budget"):
        moments(NUMBERS, central, budget, np.random.default_rng(1))


def test_no_number_is_shown_when_results_are_printed() -> None:
    central, rng = SimulatedAverager.of("central", PARTIES), np.random.default_rng(1)
    released = average_features(NUMBERS, Powers(NUMBERS.lower, NUMBERS.upper), central, 1.0, rng)
    assert repr(released) == "FeatureMean(shape=(2,), mu=1)"
    assert repr(steps(central, Budget(1.0, 1e-5), 4)) == "TrainingResult(shape=(2,), steps=4, mu=0.02)"
    assert repr(load_dataset("digits")) == "Dataset(name='digits', features=(1797, 64), classes=10)"
