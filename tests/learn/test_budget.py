"""A budget is one object: it cannot be copied, raised, or shared by records and parties without a word."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.errors import BudgetExceeded, InvalidInput
from inca.learn.budget import Budget
from inca.privacy.gaussian import epsilon_for


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda budget: copy.copy([budget][0])])
def test_a_budget_cannot_be_copied(duplicate: Callable[[Budget], object]) -> None:
    """Else what is spent of the one could be spent of the other again."""
    budget = Budget(1.0, 1e-5)
    with pytest.raises(InvalidInput, match="a budget must be one object for all releases, got a copy"):
        duplicate(budget)


@pytest.mark.parametrize("name", ["epsilon", "delta", "mu", "rule", "failure", "_squares", "_mu", "_level", "other"])
def test_a_budget_cannot_be_raised_by_assignment(name: str) -> None:
    budget = Budget(1.0, 1e-5)
    budget.spend(budget.mu)
    with pytest.raises(InvalidInput, match=f"a budget must stay as it was agreed on, got an assignment to {name}"):
        setattr(budget, name, 0.0)
    with pytest.raises(InvalidInput, match="a budget must stay as it was agreed on, got a deletion"):
        del budget._squares
    assert budget.epsilon == 1.0 and budget.left < 1e-4


def test_records_and_parties_do_not_share_a_budget() -> None:
    budget = Budget(1.0, 1e-5)
    budget.spend(0.01)  # of what is not said
    assert budget.level is None
    budget.spend(0.01, level="record")
    budget.spend(0.01, level="record")
    spent = budget.spent
    with pytest.raises(InvalidInput, match=r"the level of a release must be 'record', as of those .*'party'"):
        budget.spend(0.01, level="party")
    assert budget.spent == spent and budget.level == "record"
    with pytest.raises(InvalidInput, match="level must be record or party, got 'person'"):
        budget.spend(0.01, level="person")  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [[1.0], [1.0] * 7, [0.1] * 10])
def test_all_that_is_left_of_nothing_is_refused(parts: list[float]) -> None:
    """Rounding may leave a millionth of a millionth of the squares, which is nothing."""
    budget = Budget(1.0, 1e-5)
    for mu in budget.split(parts):
        budget.spend(mu)
    for take in (budget.rest, lambda: budget.split([1.0])):
        with pytest.raises(BudgetExceeded, match="must be left of the budget epsilon 1 at delta 1e-05, got nothing"):
            take()
    assert Budget(1.0, 1e-5).rest() == Budget(1.0, 1e-5).mu


def test_failures_add_up_to_at_most_delta_unless_more_is_asked_for() -> None:
    strict, loose = Budget(1.0, 1e-9), Budget(1.0, 1e-9, failure=1e-4)
    with pytest.raises(InvalidInput, match=r"a plan fails in any release must be at most 1e-09 .*, got 2e-07"):
        strict.spend(0.01, releases=2, failure_probability=1e-7)
    assert strict.spent == 0.0 and strict.failure_probability == 0.0
    loose.spend(0.01, releases=2, failure_probability=1e-7)
    loose.spend(0.01, failure_probability=1e-7)
    assert loose.failure_probability == pytest.approx(3e-7)
    exact = Budget(1.0, 1e-5)
    for _ in range(6):
        exact.spend(0.01, failure_probability=1e-5 / 6)
    assert exact.failure_probability == pytest.approx(1e-5)


def test_a_failure_that_is_not_known_stays_unknown() -> None:
    budget = Budget(1.0, 1e-5)
    budget.spend(0.01, failure_probability=None)
    budget.spend(0.01, failure_probability=1e-7)
    assert budget.failure_probability is None


def test_more_releases_than_a_plan_is_for_are_refused() -> None:
    budget = Budget(1.0, 1e-5)
    budget.spend(0.01, releases=3)  # cannot fail: not counted
    budget.spend(0.01, releases=2, failure_probability=1e-7, planned_releases=3)
    with pytest.raises(InvalidInput, match=r"releases of a budget must be at most 3, which the averager .*, got 4"):
        budget.spend(0.01, releases=2, failure_probability=1e-7, planned_releases=3)


def test_it_shows_what_was_agreed_and_how_much_is_spent() -> None:
    budget = Budget(2.0, 1e-5)
    budget.spend(budget.part(0.5))
    assert repr(budget) == "Budget(epsilon=2, delta=1e-05, spent 0.5)"


def test_what_was_agreed_can_be_read_and_nothing_is_spent_at_first() -> None:
    budget = Budget(0.7, 1e-6, "classic", failure=1e-4)
    assert (budget.epsilon, budget.delta, budget.rule, budget.failure) == (0.7, 1e-6, "classic", 1e-4)
    assert (budget.spent, budget.epsilon_spent, budget.failure_probability, budget.level) == (0.0, 0.0, 0.0, None)
    assert budget.left == budget.mu == pytest.approx(0.7 / math.sqrt(2 * math.log(1.25 / 1e-6)))
    assert Budget(0.7, 1e-6).failure == 1e-6  # a promise at delta is never worse than one at 2 delta


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40), st.floats(0.1, 10.0))
def test_parts_that_add_up_to_the_budget_can_all_be_spent_and_no_more(weights: list[float], epsilon: float) -> None:
    """Squares add up; what rounding takes off is not refused, but a thousandth of a percent more is."""
    budget = Budget(epsilon, 1e-6)
    mus = budget.split(weights)
    total = sum(weights)
    assert [mu**2 for mu in mus] == pytest.approx([budget.mu**2 * weight / total for weight in weights])
    for mu in mus:
        budget.spend(mu)
    assert budget.spent == pytest.approx(budget.mu) and budget.epsilon_spent == pytest.approx(epsilon, rel=1e-6)
    with pytest.raises(BudgetExceeded):
        budget.spend(1e-2 * budget.mu)
    with pytest.raises(BudgetExceeded):
        Budget(epsilon, 1e-6).spend(budget.mu * (1 + 1e-5))


def test_losses_spent_one_by_one_are_the_root_of_their_squares() -> None:
    budget = Budget(5.0, 1e-6)
    for mu in (0.3, 0.4, 0.1):
        budget.spend(mu)
    assert budget.spent == pytest.approx(math.sqrt(0.09 + 0.16 + 0.01))
    assert budget.left == pytest.approx(math.sqrt(budget.mu**2 - 0.26))
    assert budget.epsilon_spent == pytest.approx(float(epsilon_for(budget.spent, 1e-6)))


def test_a_fraction_of_a_budget_is_one_of_its_squares() -> None:
    budget = Budget(1.0, 1e-5)
    assert budget.part(0.09) == pytest.approx(0.3 * budget.mu)
    with pytest.raises(InvalidInput, match=r"fraction must be from 0 to 1, got 1\.1"):
        budget.part(1.1)


@pytest.mark.parametrize("weights", [[], [1.0, 0.0], [1.0, -1.0], [1.0, math.inf], [math.nan]])
def test_weights_that_split_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidInput, match=r"weights(\[\d\])? must be (at least one|a finite) number"):
        Budget(1.0, 1e-5).split(weights)


def test_a_plan_that_fails_a_little_more_often_than_accepted_is_refused() -> None:
    budget = Budget(1.0, 1e-5, failure=1e-5)
    budget.spend(0.01, failure_probability=0.9e-5)
    with pytest.raises(InvalidInput, match="a plan fails in any release must be at most 1e-05"):
        budget.spend(0.01, failure_probability=0.11e-5)
    assert budget.failure_probability == pytest.approx(0.9e-5) and budget.spent == 0.01


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1.0)])
def test_what_no_gaussian_noise_gives_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidInput, match="must be a guarantee that Gaussian noise can give"):
        Budget(epsilon, delta)
