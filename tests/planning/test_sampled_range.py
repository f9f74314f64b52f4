"""Ranges of errors from the first views of a plan: the plan's own error lies in every one of them."""

from __future__ import annotations

import itertools

import pytest

import inca
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.sampled_range import ErrorRange, error_ranges
from inca.planning.search import plan
from inca.planning.settled_plan import is_looked_up

ADVERSARIES = [  # colluding, eavesdropped, dropping out
    *((0.0, 0.1, 0.0), (0.1, 0.1, 0.1), (0.3, 0.3, 0.0), (0.0, 0.3, 0.2), (0.1, 0.0, 0.1)),
    *((0.2, 0.2, 0.2), (0.3, 0.3, 0.1), (0.3, 0.1, 0.3)),
]


def requirements(parties: int, adversary: tuple[float, float, float], messages: int = 20) -> inca.Requirements:
    colluding, eavesdropped, dropout = adversary
    return inca.Requirements(
        parties, 0.5, 1e-5, colluding=colluding, eavesdropped=eavesdropped, dropout=dropout, messages=messages
    )


def check(ranges: list[ErrorRange], error: float) -> None:
    assert all(errors.low <= error <= errors.high for errors in ranges), (error, ranges)
    for before, after in itertools.pairwise(ranges):
        assert before.views < after.views
        assert before.low <= after.low * (1 + 1e-8) and after.high <= before.high * (1 + 1e-8)


@pytest.mark.parametrize(
    ("parties", "receivers", "adversary"),
    [
        pytest.param(20, None, (0.1, 0.1, 0.1), marks=pytest.mark.slow),
        pytest.param(20, 2, (0.1, 0.0, 0.1), marks=pytest.mark.slow),
        pytest.param(12, None, (0.0, 0.3, 0.0), marks=pytest.mark.slow),
        (8, None, (0.0, 0.0, 0.0)),
    ],
)
def test_the_error_of_the_plan_lies_in_every_range(
    parties: int, receivers: int | None, adversary: tuple[float, float, float]
) -> None:
    required = requirements(parties, adversary, messages=40)
    ranges = list(error_ranges(required, receivers=receivers, views=40))
    check(ranges, plan(required, inca.PlanOptions(receivers=receivers, views=40)).expected_mse)
    assert ranges[0].views == 0 and len(ranges) >= 3
    assert ranges[-1].high < 0.2 * ranges[0].high  # no longer Local DP's


def test_with_all_views_the_range_is_the_plans_error() -> None:
    required = requirements(12, (0.1, 0.1, 0.1), messages=11)
    *_, last = error_ranges(required, views=20)
    assert last.views == last.planned_views == 20
    error = plan(required, inca.PlanOptions(views=20)).expected_mse
    assert last.low == pytest.approx(error, rel=1e-8) and last.high == pytest.approx(error, rel=1e-8)


def test_before_any_view_it_reaches_from_the_least_error_to_local_dps() -> None:
    required = requirements(50, (0.1, 0.2, 0.1))
    first = next(error_ranges(required))
    lost = required.value_variance * (1 / 45 - 1 / 50)
    assert first.high == pytest.approx(required.var_local_dp / 45 + lost, rel=2e-3)  # and one run in 1000 with more
    least = required.var_local_dp / (40 * 45) + lost
    assert least < first.low < 1.02 * least


def test_the_range_is_of_another_epsilon_but_for_its_unit() -> None:
    """What a page rests on that moves along epsilon without asking again."""
    one, other = (
        inca.Requirements(12, epsilon, 1e-5, eavesdropped=0.1, messages=11, colluding=0.0, dropout=0.0)
        for epsilon in (0.5, 2.0)
    )
    for a, b in zip(error_ranges(one, views=20), error_ranges(other, views=20), strict=True):
        ratio = other.var_local_dp / one.var_local_dp
        assert b.low - b.data == pytest.approx(ratio * (a.low - a.data), rel=1e-4)
        assert b.high - b.data == pytest.approx(ratio * (a.high - a.data), rel=1e-4)


def test_what_has_no_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="away must be 0 for a range of errors"):
        next(error_ranges(inca.Requirements(20, 1.0, away=0.1, colluding=0.0, dropout=0.0)))
    with pytest.raises(RequirementsNotMet, match="allow at least"):
        next(error_ranges(inca.Requirements(30, 1.0, eavesdropped=0.2, messages=2, colluding=0.0, dropout=0.0)))


def test_where_tables_tell_nothing_is_sampled() -> None:
    assert is_looked_up(inca.Requirements(50, 1.0, colluding=0.1, dropout=0.1))
    assert is_looked_up(inca.Requirements(50, 1.0, eavesdropped=0.1, colluding=0.0, dropout=0.0))
    assert not is_looked_up(inca.Requirements(49, 1.0, eavesdropped=0.1, colluding=0.0, dropout=0.0))
    assert not is_looked_up(inca.Requirements(50, 1.0, eavesdropped=0.31, colluding=0.0, dropout=0.0))
    assert not is_looked_up(inca.Requirements(8, 1.0, colluding=0.0, dropout=0.0))
    assert not is_looked_up(inca.Requirements(50, 1.0, messages=5, colluding=0.0, dropout=0.0))


@pytest.mark.slow
@pytest.mark.parametrize("parties", [20, 40, 100, 200])
@pytest.mark.parametrize("receivers", [1, 2])
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=str)
def test_the_error_of_the_plan_lies_in_every_range_on_a_grid(
    parties: int, receivers: int, adversary: tuple[float, float, float]
) -> None:
    """The grid that docs/planner.md names; where no run of 40 messages hides enough, there is no plan."""
    required = requirements(parties, adversary, messages=20 * receivers)
    try:
        ranges = list(error_ranges(required, receivers=receivers))
    except RequirementsNotMet:
        with pytest.raises(RequirementsNotMet):
            plan(required, inca.PlanOptions(receivers=receivers))
        return
    if receivers == 1 and adversary[1] == 0.0:
        return  # looked up: there is no sampled plan to compare with
    check(ranges, plan(required, inca.PlanOptions(receivers=receivers)).expected_mse)
