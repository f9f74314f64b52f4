"""What a plan says of itself."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import inca
from helpers.paths import ROOT

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
        ({"colluding": 0.1}, "against            2 random colluding parties\n"),
        ({"colluding": 0.0, "eavesdropped": 0.25}, "against            eavesdroppers on 0.25 of all messages\n"),
        (
            {"colluding": 0.1, "eavesdropped": 0.25},
            "against            2 random colluding parties and eavesdroppers on 0.25 of all messages\n",
        ),
        ({"colluding": 0.0}, "against            whoever knows who sent to whom and sees the final messages\n"),
    ],
)
def test_a_plan_says_whom_it_is_against(changes: dict[str, float], sentence: str) -> None:
    assert sentence in str(replace(written_plan(), requirements=replace(REQUIREMENTS, **changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((0.03, 0.01, 0.0), "75.0% independent noise, 25.0% noise left by leavers, 0.0% lost values\n"),
        ((1.0, 1.0, 8.0), "10.0% independent noise, 10.0% noise left by leavers, 80.0% lost values\n"),
        ((math.inf, 0.0, math.inf), "0 % independent noise, 0 % noise left by leavers, 0 % lost values\n"),
        ((0.0, 0.0, 0.0), "0 % independent noise, 0 % noise left by leavers, 0 % lost values\n"),
    ],
)
def test_a_plan_says_what_its_error_consists_of(parts: tuple[float, float, float], sentence: str) -> None:
    assert "  of which           " + sentence in str(replace(written_plan(), budget=inca.ErrorBudget(*parts)))


@pytest.mark.parametrize(("colluding", "factor", "local"), [(0.9, 2.0, True), (0.9, 1.99, False), (0.95, 1.0, False)])
def test_two_honest_parties_who_hide_nothing_are_told_that_it_is_local_dp(
    colluding: float, factor: float, local: bool
) -> None:
    """Each adds as much noise as if it were alone; one that is alone could do nothing else."""
    plan = replace(written_plan(), requirements=replace(REQUIREMENTS, colluding=colluding), factor=factor)
    assert ("this is Local DP" in str(plan)) == local
