"""The paper's own recipe: its formula for independent noise, and the most cancelling noise that sampled views need."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import inca
from helpers.documents import words
from helpers.examples import cases
from inca.planning.sampled import dropout_rates, paper_design, paper_factor, sample_view

SMALL = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5, colluding=0.12, dropout=0.2, messages=11)
VIEWS = 12


@cache
def planned() -> tuple[inca.Plan, list[tuple[int, int]]]:
    steps: list[tuple[int, int]] = []
    options = inca.PlanOptions(recipe="paper", views=VIEWS)
    return inca.plan(SMALL, options, progress=lambda done, total: steps.append((done, total))), steps


def test_the_papers_factor_counts_honest_parties_that_stay() -> None:
    assert paper_factor(SMALL) == pytest.approx(1.3 * 17 / 13)  # 3 of 20 collude, 4 leave
    two = inca.Requirements(parties=4, epsilon=1.0, delta=1e-5, colluding=0.5, dropout=0.25)
    assert paper_factor(two) == pytest.approx(1.3 * 2 / 1)  # one honest party stays, which is enough
    with pytest.raises(inca.InvalidInput, match="leave an honest party present"):
        paper_factor(replace(two, dropout=0.5))


def test_rounds_are_as_many_as_the_messages_allow_and_the_papers_twenty_without_a_cap() -> None:
    assert paper_design(SMALL, None, None).rounds == 10 and paper_design(SMALL, None, 3).rounds == 3
    assert paper_design(replace(SMALL, messages=None), None, 2).rounds == 20
    assert paper_design(SMALL, 7, 1).rounds == 7
    for rounds, receivers, needed in ((11, 1, 12), (6, 2, 13), (None, 11, 12)):
        with pytest.raises(inca.InvalidInput, match=rf"messages must be at least .* \({needed}\), got 11"):
            paper_design(SMALL, rounds, receivers)


def test_a_sampled_view_has_the_required_adversary_and_absences() -> None:
    requirements, design = replace(SMALL, eavesdropped=0.11, away=0.3), paper_design(SMALL, None, None)
    view = sample_view(requirements, design, 0.2, 7)
    assert len(view.adversary.colluding) == 3
    assert len(view.adversary.eavesdropped) == 10 * 3  # of 20 messages in each round, rounded up
    assert int((~view.execution.presence.row(10)).sum()) == 4
    assert not view.execution.presence.all_present
    assert sample_view(requirements, design, 0.0, 7).execution.presence.all_present


def test_a_plan_has_the_most_noise_that_any_party_of_its_views_needed() -> None:
    plan, steps = planned()
    assert plan.noise_levels.independent**2 == pytest.approx(paper_factor(SMALL) * SMALL.var_local_dp / 17)
    assert steps == [(done, 3 * VIEWS) for done in range(1, 3 * VIEWS + 1)]
    worst = []
    for number, rate in enumerate(dropout_rates(SMALL)):
        for seed in range(VIEWS):
            view = sample_view(SMALL, plan.design, rate, 10**6 + number * VIEWS + seed)
            worst.append(inca.account(view, plan.noise_levels, sensitivity=1.0).max_mu)
    assert max(worst) == pytest.approx(SMALL.mu, rel=1e-6) and max(worst) <= SMALL.mu


def test_a_plan_says_that_it_is_sampled_and_how_little_that_proves() -> None:
    plan, _ = planned()
    assert not plan.settles and plan.failure_probability == plan.agreed.failure == 1 / (VIEWS + 1)
    text = words(plan)
    assert "sampled: the most that a party needed in 12 views at each dropout rate (0, 0.1, 0.2)" in text
    assert "nothing is proven of others" in text and "+ 0.077, for each party" in text
    assert plan.budget.cancelling > 0.0 and plan.standard_error > 0.0  # what leavers did not take out


def test_a_plan_is_a_file_that_is_read_again(tmp_path: Path) -> None:
    plan, _ = planned()
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan
    with pytest.raises(inca.InvalidInput, match="only settled runs top up"):
        _ = plan.topup


def test_the_next_views_need_more_about_as_often_as_is_stated() -> None:
    """At full attendance: of fresh views at most as many as stated, up to 4.9 standard errors (1e-6)."""
    plan, _ = planned()
    above, views = 0, cases(150, 400)
    for seed in range(views):
        view = sample_view(SMALL, plan.design, 0.0, seed)
        above += inca.account(view, plan.noise_levels, sensitivity=1.0).max_mu > SMALL.mu
    stated = plan.failure_probability
    assert above <= views * stated + 4.9 * np.sqrt(views * stated)


def test_where_views_hide_too_little_or_are_too_large_the_recipe_is_refused() -> None:
    few = inca.PlanOptions(recipe="paper", views=4)
    with pytest.raises(
        inca.RequirementsNotMet, match="recipe paper does not meet the requirements with random, 1 round"
    ):
        inca.plan(replace(SMALL, messages=2), few)
    with pytest.raises(inca.InvalidInput, match="parties must be at most 2,000 with recipe paper"):
        inca.plan(replace(SMALL, parties=3000), few)
    with pytest.raises(inca.InvalidInput, match="views must be at least 2"):
        inca.plan(SMALL, replace(few, views=1))
