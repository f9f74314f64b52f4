"""What people read of a plan, and executions that are held against it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.documents import words
from helpers.paths import ROOT
from inca.errors import InvalidInput
from inca.reporting.content import content

REQUIREMENTS = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5)


@cache
def planned(parties: int = 20) -> inca.Plan:
    return inca.plan(replace(REQUIREMENTS, parties=parties))


def test_a_plans_adversary_is_as_large_as_is_required() -> None:
    plan = inca.plan(replace(REQUIREMENTS, colluding=0.12, eavesdropped=0.3))
    drawn = plan.adversary(np.random.default_rng(1))
    assert len(drawn.colluding) == 3  # 2.4 of 20 parties, rounded up
    heard = [t for t, _ in drawn.eavesdropped]
    assert all(heard.count(t) == 6 for t in range(plan.design.rounds)) and len(heard) == 6 * plan.design.rounds


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"colluding": 0.1}, "any 2 of the 20 pooling what they see"),
        ({"parties": 1000}, "random 100 of the 1,000 pooling what they see"),
        ({"colluding": 0.0, "eavesdropped": 0.25}, "eavesdroppers on 0.25 of all messages"),
        ({"eavesdropped": 0.25}, "random 2 of the 20 pooling what they see and eavesdroppers on 0.25 of all messages"),
        ({"colluding": 0.0}, "only those who read the final messages"),
    ],
)
def test_a_plan_says_which_adversary_it_is_against(changes: dict[str, Any], sentence: str) -> None:
    assert f"  Against            {sentence}\n" in words(inca.plan(replace(REQUIREMENTS, **changes)))


def test_a_plan_says_who_may_leave_and_whether_it_is_certain() -> None:
    certain, drawn = words(planned()), words(planned(1000))
    assert "  Dropouts           up to 2 may leave, at any time\n" in certain
    assert "  Privacy            epsilon 1 at delta 1e-05, for each party; proven, certain\n" in certain
    assert "  Privacy            epsilon 1 at delta 1e-05 + 1.1e-07, for each party; proven\n" in drawn
    assert "holds against every coalition" in certain and "is drawn at random, in the planned numbers" not in certain
    assert "is drawn at random, in the planned numbers" in drawn
    away = inca.plan(replace(REQUIREMENTS, dropout=0.0, away=0.02))
    assert "  Dropouts           nobody may leave, and each may miss 0.02 of the rounds\n" in words(away)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((0.03, 0.01, 0.0), "75.0% independent noise, 25.0% cancelling noise that is left, 0.0% lost values"),
        ((1.0, 1.0, 8.0), "10.0% independent noise, 10.0% cancelling noise that is left, 80.0% lost values"),
    ],
)
def test_a_plan_says_what_its_error_consists_of(parts: tuple[float, float, float], sentence: str) -> None:
    assert f"  Error is made of   {sentence}\n" in words(replace(planned(), budget=inca.ErrorBudget(*parts)))


@pytest.mark.parametrize("parts", [(math.inf, 0.0, math.inf), (0.0, 0.0, 0.0)])
def test_an_error_that_is_zero_or_infinite_has_no_parts(parts: tuple[float, float, float]) -> None:
    assert "Error is made of" not in words(replace(planned(), budget=inca.ErrorBudget(*parts)))


def test_a_plan_says_if_its_result_says_nothing() -> None:
    assert [sentence.badge for sentence in content(planned()).verdict] == ["OK"]
    hopeless = inca.plan(replace(REQUIREMENTS, epsilon=0.001))
    assert f"\n  Uninformative      {hopeless.remark}\n" in words(hopeless) and "guessing its middle" in hopeless.remark


def test_executions_are_held_against_the_plan() -> None:
    plan = inca.plan(replace(REQUIREMENTS, parties=40, dropout=0.2))
    levels: dict[str, Any] = {
        "sigma_independent": plan.noise_levels.independent,
        "sigma_cancelling": plan.noise_levels.cancelling,
    }
    presence = inca.Presence.leaving(40, plan.design.rounds, 0.1, np.random.default_rng(1))
    settled = plan.execution(1, presence)
    enough = plan.noise_levels_of(settled).topup
    plan.check(inca.Transcript(settled, **levels, sigma_topup=enough))
    with pytest.raises(InvalidInput, match="sigma_topup of the execution must be"):
        plan.check(inca.Transcript(settled, **levels, sigma_topup=0.9 * enough))
    with pytest.raises(InvalidInput, match=r"sigma_cancelling of the execution must be .*, as planned, got 0.5"):
        plan.check(inca.Transcript(settled, **levels | {"sigma_cancelling": 0.5}, sigma_topup=enough))
    unsettled = inca.Execution(settled.schedule, settled.injection, presence)
    with pytest.raises(InvalidInput, match="settlement of the execution must be settled, as planned, got 'none'"):
        plan.check(inca.Transcript(unsettled, **levels))
    early = inca.Execution(settled.schedule, inca.early_injection(plan.design.rounds), presence).settled()
    with pytest.raises(InvalidInput, match="the injection of the execution must be the planned one"):
        plan.check(inca.Transcript(early, **levels, sigma_topup=plan.noise_levels_of(early).topup))


BROKEN = {
    "not JSON": ("{", "cannot be read as a plan"),
    "another format": ('{"format": "inca-plan/1"}', "cannot be read as a plan"),
    "a directory": (None, "cannot be read as a plan"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_files_that_are_no_plans_are_refused(case: str, tmp_path: Path) -> None:
    text, sentence = BROKEN[case]
    path = tmp_path if text is None else tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        inca.read_plan(path)


def test_a_changed_plan_is_refused(tmp_path: Path) -> None:
    fields = planned().document().as_fields()
    quiet = fields["injection"] | {"value": [0.5, 0.5]}
    for name, value in (
        ("injection", quiet),
        ("rounds", "ten"),
        ("wish", {"parties": 40}),
        ("format", "inca-plan/9"),
    ):
        (tmp_path / "plan.json").write_text(json.dumps({**fields, name: value}))
        with pytest.raises(InvalidInput, match=r"plan\.json cannot be read as a plan"):
            inca.read_plan(tmp_path / "plan.json")


@pytest.mark.parametrize("name", ["updates", "waiting-times"])
def test_the_plans_of_the_examples_are_those_of_now(name: str) -> None:
    plan = inca.read_plan(ROOT / f"examples/{name}-plan.json")
    assert inca.plan(plan.requirements) == plan
