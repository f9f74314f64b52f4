"""What people read of a plan."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import inca
from helpers.documents import words
from helpers.paths import ROOT
from inca.planning.plan import AlternativeDesign, SamplingDetails
from inca.reporting.content import content

REQUIREMENTS = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=10)


@cache
def written_plan() -> inca.Plan:
    plan = inca.read_plan(ROOT / "tests/fixtures/version-0.1/waiting-times-plan.json")
    return replace(plan, requirements=REQUIREMENTS)


def test_a_plans_adversary_is_as_large_as_is_required() -> None:
    plan = replace(written_plan(), requirements=replace(REQUIREMENTS, colluding=0.12, eavesdropped=0.3))
    drawn = plan.adversary(np.random.default_rng(1))
    assert len(drawn.colluding) == 3  # 2.4 of 20 parties, rounded up
    heard = [t for t, _ in drawn.eavesdropped]
    assert all(heard.count(t) == 6 for t in range(plan.design.rounds)) and len(heard) == 6 * plan.design.rounds


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"colluding": 0.1}, "2 random colluding parties"),
        ({"colluding": 0.05}, "1 random colluding party"),
        ({"colluding": 0.0, "eavesdropped": 0.25}, "eavesdroppers on 0.25 of all messages"),
        (
            {"colluding": 0.1, "eavesdropped": 0.25},
            "2 random colluding parties and eavesdroppers on 0.25 of all messages",
        ),
        ({"colluding": 0.0}, "only those who read the final messages"),
    ],
)
def test_a_plan_says_which_adversary_it_is_against(changes: dict[str, float], sentence: str) -> None:
    plan = replace(written_plan(), requirements=replace(REQUIREMENTS, **changes))  # type: ignore[arg-type]
    assert f"  Against            {sentence}\n" in words(plan)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((0.03, 0.01, 0.0), "75.0% independent noise, 25.0% cancelling noise that is left, 0.0% lost values"),
        ((1.0, 1.0, 8.0), "10.0% independent noise, 10.0% cancelling noise that is left, 80.0% lost values"),
    ],
)
def test_a_plan_says_what_its_error_consists_of(parts: tuple[float, float, float], sentence: str) -> None:
    assert f"  Error is made of   {sentence}\n" in words(replace(written_plan(), budget=inca.ErrorBudget(*parts)))


@pytest.mark.parametrize("parts", [(math.inf, 0.0, math.inf), (0.0, 0.0, 0.0)])
def test_an_error_that_is_zero_or_infinite_has_no_parts(parts: tuple[float, float, float]) -> None:
    assert "Error is made of" not in words(replace(written_plan(), budget=inca.ErrorBudget(*parts)))


@pytest.mark.parametrize(("colluding", "factor", "local"), [(0.9, 2.0, True), (0.9, 1.99, False), (0.95, 1.0, False)])
def test_a_plan_of_two_honest_parties_that_hide_nothing_is_called_local_dp(
    colluding: float, factor: float, local: bool
) -> None:
    """Each adds as much noise as if it were alone; one that is alone could do nothing else."""
    plan = replace(written_plan(), requirements=replace(REQUIREMENTS, colluding=colluding), factor=factor)
    assert ("this is Local DP" in words(plan)) == local


SETTLED = inca.Requirements(parties=200, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1)


def test_a_plan_says_how_much_noise_is_added_at_the_end_if_parties_leave() -> None:
    plan = inca.plan(SETTLED)
    assert f"  Top-up noise       {plan.sigma_topup(20):.6g} if 20 leave\n" in words(plan)
    everyone_stays = words(inca.plan(replace(SETTLED, dropout=0.0)))
    assert "  Settlement         settled\n" in everyone_stays and "Top-up noise" not in everyone_stays


def test_a_plan_says_if_its_result_says_nothing() -> None:
    badges = [sentence.badge for sentence in content(inca.plan(SETTLED)).verdict]
    assert "uninformative" not in badges
    hopeless = inca.plan(replace(SETTLED, epsilon=0.001))
    assert f"\n  Uninformative      {hopeless.remark}\n" in words(hopeless) and "guessing its middle" in hopeless.remark


@pytest.mark.parametrize(
    ("parties", "checked", "how"),
    [
        (20, 0, "7 views of 20 parties at each dropout rate (0, 0.1)"),
        (10, 0, "7 views of 10 parties (sub-populations) at each dropout rate (0, 0.1)"),
        (20, 3, "7 views of 20 parties at each dropout rate (0, 0.1), checked on 3 more"),
    ],
)
def test_a_plan_says_how_its_level_is_known(parties: int, checked: int, how: str) -> None:
    sampling = SamplingDetails(7, parties, (0.0, 0.1), 0.9, checked)
    text = words(replace(written_plan(), sampling=sampling, structure_bound=2e-8))
    assert f"  Noise level        extrapolated, confidence 0.9: {how}\n" in text
    assert "  Too little hidden  with probability at most 2e-08\n" in text


@pytest.mark.parametrize("relative", [1.25, 0.9])
def test_a_plan_says_what_more_messages_would_bring(relative: float) -> None:
    plan = replace(written_plan(), further=(AlternativeDesign("another", 40, relative),))
    (table,) = (table for table in content(plan).tables if table.heading.startswith("Other numbers of messages"))
    assert table.columns == ("error", "messages", "design") and "this plan = 1" in table.heading
    assert table.rows == ((f"{relative:g}", "40", "another"),)
