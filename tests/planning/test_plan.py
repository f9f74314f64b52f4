"""What a plan says of itself."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import inca
from helpers.paths import ROOT
from inca.planning.plan import AlternativeDesign, SamplingDetails

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


SETTLED = inca.Requirements(parties=200, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1)


@pytest.mark.parametrize(
    ("late", "sentence"),
    [
        (0, r"  1 late leaver      \S+ mean squared = \S+ x Central DP, if it settles and does not publish\n"),
        (1, r"  1 late leaver      \S+ mean squared = \S+ x Central DP, if it settles and does not publish\n"),
        (3, r"  3 late leavers     \S+ mean squared = \S+ x Central DP, if they settle and do not publish\n"),
    ],
)
def test_a_plan_says_what_late_leavers_cost(late: int, sentence: str) -> None:
    assert re.search(sentence, str(inca.plan(SETTLED, late=late)))


def test_a_plan_says_how_much_noise_is_added_at_the_end_if_parties_leave() -> None:
    plan = inca.plan(SETTLED)
    line = "  settled            who stays undoes what it exchanged with leavers"
    assert f"{line}; 20 leavers: sigma_topup {plan.sigma_topup(20):.6g}\n" in str(plan)
    assert f"{line}\n" in str(inca.plan(replace(SETTLED, dropout=0.0)))


def test_a_plan_says_if_its_result_says_nothing() -> None:
    assert "note " not in str(inca.plan(SETTLED))
    hopeless = inca.plan(replace(SETTLED, epsilon=0.001))
    assert f"\n  note               {hopeless.remark}" in str(hopeless) and "guessing its middle" in hopeless.remark


@pytest.mark.parametrize(
    ("parties", "checked", "words"),
    [
        (20, 0, "7 views of 20 parties each at dropout 0, 0.1;\n"),
        (10, 0, "7 views of 10 parties (sub-populations) each at dropout 0, 0.1;\n"),
        (20, 1, "7 views of 20 parties each at dropout 0, 0.1; checked on 1 whole view;\n"),
        (20, 3, "7 views of 20 parties each at dropout 0, 0.1; checked on 3 whole views;\n"),
    ],
)
def test_a_plan_says_how_its_level_is_known(parties: int, checked: int, words: str) -> None:
    sampling = SamplingDetails(7, parties, (0.0, 0.1), 0.9, checked)
    text = str(replace(written_plan(), sampling=sampling, structure_bound=2e-8))
    assert f"  level              extrapolated, confidence 0.9: {words}" in text
    assert "\n                     that messages hide too little: 2e-08, proven\n" in text


@pytest.mark.parametrize(("relative", "words"), [(1.25, "25.0% larger"), (0.9, "10.0% smaller")])
def test_a_plan_says_what_more_messages_would_bring(relative: float, words: str) -> None:
    more = AlternativeDesign("another", 40, relative)
    assert f"\n  with  40 messages  the error would be {words}" in str(replace(written_plan(), further=(more,)))
