from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.documents import words
from helpers.paths import ROOT
from inca.cli.app import exit_status
from inca.documents.plan import PlanDocument
from inca.mechanisms.base import measure
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.planning.designs import ProtocolDesign, candidate_designs, with_quiet_rounds
from inca.planning.sampling import candidate_factors, paper_factor, sample_cancelling_noise, sample_view
from inca.privacy.calibration import Tradeoff

SMALL = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=16)
TINY = replace(SMALL, parties=20, messages=10)
FEW = 12  # sampled views: enough for a cautious plan
PLANS = [f"examples/{name}-plan.json" for name in ("updates", "waiting-times")]


@cache
def planned(requirements: inca.Requirements = TINY, recipe: Literal["best", "paper"] = "best") -> inca.Plan:
    return inca.plan(requirements, inca.PlanOptions(settlement="none", recipe=recipe, views=FEW))


@cache
def planned_with_progress() -> tuple[inca.Plan, list[tuple[int, int]]]:
    steps: list[tuple[int, int]] = []
    before = inca.read_plan(ROOT / "tests/fixtures/version-0.1/plan.json")
    plan = inca.plan(
        before.requirements,
        inca.PlanOptions(settlement="none", views=before.sampling.views),
        progress=lambda done, total: steps.append((done, total)),
    )
    return plan, steps


# --- designs ---


@given(st.integers(2, 300), st.floats(0.0, 0.9), st.floats(0.0, 0.9), st.integers(1, 60))
def test_designs_stay_within_the_budget_and_the_proven_probability(
    parties: int, colluding: float, eavesdropped: float, messages: int
) -> None:
    try:
        requirements = inca.Requirements(
            parties, 0.5, 1e-5, colluding=colluding, eavesdropped=eavesdropped, messages=messages, dropout=0.0
        )
        designs = candidate_designs(requirements)
    except inca.IncaError as refusal:
        assert str(refusal).count(". ") == 0  # one sentence
        return
    for design in designs:
        assert design.messages <= messages
        assert design.log_failure(requirements) <= math.log(5e-7)
        assert design.draw_schedule(parties, 1).rounds == design.rounds
        assert all(0 < variant.injection().value[0] < 1.0001 for variant in with_quiet_rounds(design))


UNMEETABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "too few messages": (
        {"messages": 2},
        {},
        "messages is 2, and so few hidden messages fail to protect someone with probability",
    ),
    "all eavesdropped": (
        {"eavesdropped": 1.0},
        {},
        "eavesdropped must leave a message of each round unseen, got 1: if all are eavesdropped, none hides a value; "
        "lower it, or use Local DP",
    ),
    "too many rounds": ({}, {"rounds": 17}, "rounds must be at most messages / receivers (16 / 1), got 17"),
    "many receivers": (
        {},
        {"receivers": 16},
        "messages is 16, and so few hidden messages fail to protect someone with probability",
    ),
}


@pytest.mark.parametrize("case", UNMEETABLE)
def test_what_cannot_be_met_says_why_and_what_could(case: str) -> None:
    changes, fixed, sentence = UNMEETABLE[case]
    with pytest.raises(inca.RequirementsNotMet) as refusal:
        inca.plan(replace(SMALL, **changes), inca.PlanOptions(**fixed))
    assert str(refusal.value).startswith(sentence)
    assert exit_status(refusal.value) == 1
    if "hid" in sentence:
        assert "use Local DP, which needs no hidden messages, at a mean squared error of 0.348" in str(refusal.value)


def test_the_number_of_messages_that_a_refusal_names_suffices() -> None:
    with pytest.raises(inca.RequirementsNotMet) as refusal:
        candidate_designs(replace(SMALL, messages=2))
    enough = int(str(refusal.value).split("at least ")[1].split()[0])
    assert candidate_designs(replace(SMALL, messages=enough))
    with pytest.raises(inca.RequirementsNotMet):
        candidate_designs(replace(SMALL, messages=enough - 1), receivers=1)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(inca.InvalidInput, match="recipe must be best or paper, got 'old'"):
        inca.plan(SMALL, inca.PlanOptions(recipe=cast(Any, "old")))
    with pytest.raises(inca.InvalidInput, match="views must be at least 2, got 1"):
        inca.plan(SMALL, inca.PlanOptions(views=1))
    with pytest.raises(inca.InvalidInput, match="receivers must be from 1 to 39, got 40"):
        inca.plan(SMALL, inca.PlanOptions(receivers=40))
    with pytest.raises(
        inca.InvalidInput,
        match=r"colluding \+ dropout must be fractions that leave an honest party present .*, got 1\.05",
    ):
        paper_factor(replace(SMALL, dropout=0.95))


# --- the level of cancelling noise ---


@given(st.integers(0, 10_000), st.sampled_from(["random", "permutation"]), st.sampled_from([0.0, 0.2]))
def test_needs_are_what_the_tradeoff_finds_one_by_one(seed: int, schedule: str, dropout: float) -> None:
    requirements, design = replace(SMALL, parties=20, messages=6), ProtocolDesign(schedule, 6, quiet=1)
    tried = candidate_factors(requirements, 20)[[10, 20, 30]]
    needs = sample_cancelling_noise(requirements, design, 20, (dropout, 0.0), [seed], tried).views[0]
    tradeoff = Tradeoff(sample_view(requirements, design, 20, dropout, seed))
    for factor, row in zip(tried, needs, strict=True):
        own = math.sqrt(factor / requirements.honest)
        try:
            level = tradeoff.sigma_cancelling(1.0, sigma_independent=own)
        except inca.IncaError:
            assert np.isinf(row).any() or row.max() > 1e5
            continue
        # The ratios are interpolated.
        assert level**2 == pytest.approx(row.max(), rel=5e-3, abs=1e-6)


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 40), marks=pytest.mark.slow)], ids=str)
def test_a_plan_keeps_its_promise_in_fresh_views_at_every_dropout_rate(seeds: range) -> None:
    plan = planned()
    for rate in (0.0, 0.02, 0.05, 0.1):
        for seed in seeds:
            fresh = sample_view(plan.requirements, plan.design, plan.requirements.parties, rate, 10**12 + seed)
            losses = inca.account(fresh, plan.noise_levels, sensitivity=1.0)
            assert losses.max_mu <= plan.requirements.mu


# --- the error ---


def test_without_dropouts_the_error_is_theorem_2s_up_to_the_factor_and_tends_to_central_dp() -> None:
    requirements = replace(TINY, dropout=0.0, colluding=0.1)
    plan = planned(requirements)
    least = requirements.var_local_dp / (requirements.honest * requirements.parties)
    assert plan.expected_mse == pytest.approx(plan.factor * least, rel=2e-9)  # noise is rounded up by 1e-9
    assert plan.factor <= 1.05
    alone = planned(replace(requirements, colluding=0.0))
    assert requirements.central_mse < alone.expected_mse <= 1.05 * requirements.central_mse


def test_one_honest_party_gets_local_dp() -> None:
    requirements = inca.Requirements(parties=10, epsilon=1.0, delta=1e-5, colluding=0.9, messages=4, dropout=0.0)
    plan = planned(requirements)
    assert (plan.noise_levels.cancelling, plan.factor) == (0.0, 1.0)
    assert plan.noise_levels.independent == pytest.approx(math.sqrt(requirements.var_local_dp))


@pytest.mark.slow
def test_the_design_does_not_depend_on_epsilon_and_noise_scales_with_sensitivity_over_mu() -> None:
    one, other = planned(), planned(replace(TINY, epsilon=0.3, sensitivity=5.0))
    assert (one.design, one.factor) == (other.design, other.factor)
    scale = 5.0 * one.requirements.mu / other.requirements.mu
    assert other.noise_levels.independent == pytest.approx(scale * one.noise_levels.independent)
    assert other.noise_levels.cancelling == pytest.approx(scale * one.noise_levels.cancelling)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param({"dropout": 0.05}, {"dropout": 0.2}, marks=pytest.mark.slow),
        pytest.param({"messages": 20}, {"messages": 8}, marks=pytest.mark.slow),
        pytest.param({"colluding": 0.0}, {"colluding": 0.3}, marks=pytest.mark.slow),
        pytest.param({"eavesdropped": 0.0}, {"eavesdropped": 0.3}, marks=pytest.mark.slow),
    ],
)
def test_the_error_falls_and_rises_as_it_should(better: dict[str, Any], worse: dict[str, Any]) -> None:
    assert planned(replace(SMALL, **better)).expected_mse < planned(replace(SMALL, **worse)).expected_mse


@pytest.mark.slow
def test_simulated_errors_agree_with_the_predicted_one() -> None:
    # 6 standard errors: even with the skewness of squares, a false alarm has a probability below 1e-6.
    plan = planned()
    for rate in (0.1, 0.3):
        own = Inca(plan)
        predicted = own.expected_error(rate)
        measured = measure(own, np.random.default_rng(5), rate, runs=300)
        assert measured.failed == 0
        assert abs(measured.mse - predicted.mse) < 6 * math.hypot(measured.standard_error, predicted.standard_error)


def test_parts_add_up_and_the_papers_recipe_is_the_papers() -> None:
    paper, best = planned(recipe="paper"), planned()
    requirements = paper.requirements
    assert str(paper.design) == "random, 10 rounds, 1 receiver, value in shares"
    assert paper.noise_levels.independent**2 == pytest.approx(1.3 * requirements.var_local_dp / (20 * (1 - 0.1 - 0.1)))
    assert best.expected_mse < 0.8 * paper.expected_mse
    for plan in (paper, best):
        budget = plan.budget
        assert plan.expected_mse == pytest.approx(budget.independent + budget.cancelling + budget.data)
        assert plan.failure_probability <= requirements.failure


def test_where_messages_hide_too_little_the_plan_is_local_dp_and_says_so() -> None:
    requirements = replace(TINY, dropout=0.3, messages=7)
    plan = planned(requirements)
    assert plan.factor == requirements.honest and plan.noise_levels.cancelling == 0.0
    assert "this is Local DP" in words(plan) and "this is Local DP" not in words(planned())
    fresh = sample_view(requirements, plan.design, 20, 0.3, 1)
    assert inca.account(fresh, plan.noise_levels, sensitivity=1.0).max_mu <= requirements.mu


def test_the_papers_recipe_must_hide_enough_too() -> None:
    with pytest.raises(inca.RequirementsNotMet, match="so few hidden messages fail to protect someone"):
        inca.plan(replace(SMALL, messages=2), inca.PlanOptions(recipe="paper", views=FEW))


def test_rounds_and_receivers_can_be_fixed() -> None:
    requirements = replace(TINY, messages=24, dropout=0.0)
    plan = inca.plan(requirements, inca.PlanOptions(settlement="none", rounds=12, receivers=2, views=4))
    assert (plan.design.rounds, plan.design.receivers) == (12, 2)


@pytest.mark.slow
def test_a_plan_for_a_million_parties_uses_sub_populations_and_says_so() -> None:
    requirements = inca.Requirements(parties=10**6, epsilon=0.2, delta=1e-6, colluding=0.1, messages=20, dropout=0.0)
    plan = inca.plan(requirements, inca.PlanOptions(settlement="none", views=8))
    assert plan.sampling.parties == 240 and plan.sampling.checked == 0
    assert "sub-populations" in words(plan) and plan.structure_bound < 1e-12
    assert plan.expected_mse == pytest.approx(
        plan.factor * requirements.var_local_dp / (requirements.honest * requirements.parties)
    )


def test_progress_ends_at_the_total() -> None:
    _, steps = planned_with_progress()
    assert steps == sorted(steps) and steps[-1][0] == steps[-1][1] > 50


# --- the file ---


def test_a_plan_is_a_file_that_can_be_read_back(tmp_path: Path) -> None:
    plan = planned()
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan
    fields = json.loads((tmp_path / "plan.json").read_text())
    for name in ("rounds", "receivers", "schedule", "injection", "sigma_independent", "sigma_cancelling"):
        assert name in fields
    for name in ("expected_mse", "central_mse", "local_mse", "failure_probability"):
        assert fields[name] > 0


def test_a_plan_for_parties_that_miss_rounds_says_so_and_proves_less(tmp_path: Path) -> None:
    requirements = replace(TINY, away=0.02, messages=14)
    plan = planned(requirements, "paper")
    text = words(plan)
    assert "  Dropouts           up to 0.1 of the parties may leave, and each missing 0.02 of the rounds\n" in text
    assert "loses more than epsilon 1 at delta 1e-05 + 5.1e-07." in text
    assert plan.agreed.failure == plan.failure_probability
    assert plan.structure_bound > 10 * math.exp(plan.design.log_failure(replace(requirements, away=0.0)))
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan
    assert json.loads((tmp_path / "plan.json").read_text())["wish"]["away"] == 0.02


def test_the_proven_part_is_the_larger_of_full_attendance_and_dropouts() -> None:
    design = ProtocolDesign("permutation", 9)
    requirements = inca.Requirements(100, 1.0, 1e-5, colluding=0.3, dropout=0.2)
    full = math.exp(design.log_failure(replace(requirements, dropout=0.0)))
    assert full < 1e-7 and 1.8e-6 < math.exp(design.log_failure(requirements)) < 2.2e-6
    assert not design.hides_enough(requirements) and design.hides_enough(replace(requirements, dropout=0.0))


@pytest.mark.parametrize("path", ["tests/fixtures/version-0.1/plan.json", *PLANS], ids=str)
def test_plans_of_earlier_versions_are_read_and_written_with_the_same_meaning(path: str, tmp_path: Path) -> None:
    plan, written = inca.read_plan(ROOT / path), tmp_path / "plan.json"
    plan.write(written)
    assert inca.read_plan(written) == plan
    assert PlanDocument.read(written) == PlanDocument.read(ROOT / path)
    assert len(written.read_text().splitlines()) > 50  # people read and compare it


def test_the_same_requirements_give_the_plan_of_the_version_before() -> None:
    before = inca.read_plan(ROOT / "tests/fixtures/version-0.1/plan.json")
    plan, _ = planned_with_progress()
    assert (plan.design, plan.sampling) == (before.design, before.sampling)
    assert plan.noise_levels.independent == pytest.approx(before.noise_levels.independent)
    assert plan.noise_levels.cancelling == pytest.approx(before.noise_levels.cancelling)
    assert plan.expected_mse == pytest.approx(before.expected_mse)


BROKEN = {
    "not JSON": ("{", "cannot be read as a plan"),
    "another format": ('{"format": "inca-plan/2"}', "cannot be read as a plan"),
    "a directory": (None, "cannot be read as a plan"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_files_that_are_no_plans_are_refused(case: str, tmp_path: Path) -> None:
    text, sentence = BROKEN[case]
    path = tmp_path if text is None else tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(inca.InvalidInput, match=sentence):
        inca.read_plan(path)


def test_a_changed_plan_is_refused(tmp_path: Path) -> None:
    fields = planned().document().as_fields()
    for name, value in (("quiet_rounds", 7), ("rounds", "ten"), ("wish", {"parties": 40}), ("format", "inca-plan/9")):
        (tmp_path / "plan.json").write_text(json.dumps({**fields, name: value}))
        with pytest.raises(inca.InvalidInput, match=r"plan\.json cannot be read as a plan"):
            inca.read_plan(tmp_path / "plan.json")


def test_executions_are_checked_against_the_plan() -> None:
    plan = planned()
    plan.check(transcript_of(plan.execution(1), plan.noise_levels))
    quieter = inca.NoiseLevels(independent=plan.noise_levels.independent, cancelling=0.5)
    with pytest.raises(inca.InvalidInput, match=r"sigma_cancelling of the execution must be .*, as planned, got 0.5"):
        plan.check(transcript_of(plan.execution(1), quieter))
    schedule = plan.design.draw_schedule(plan.requirements.parties, 1)
    other = inca.Execution(schedule, inca.early_injection(plan.design.rounds))
    with pytest.raises(inca.InvalidInput, match="the injection of the execution must be the planned one"):
        plan.check(transcript_of(other, plan.noise_levels))


def transcript_of(
    execution: inca.Execution, noise_levels: inca.NoiseLevels, adversary: inca.Adversary | None = None
) -> inca.Transcript:
    return inca.Transcript(
        execution,
        sigma_independent=noise_levels.independent,
        sigma_cancelling=noise_levels.cancelling,
        adversary=adversary or inca.Adversary(),
    )


# --- what the planner is for ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dropout", "of_paper", "of_gopa"), [(0.05, 0.65, 1 / 4), (0.1, 0.55, 1 / 4), (0.2, 0.45, 1 / 6)]
)
def test_the_planned_design_beats_the_papers_recipe_and_gopa(dropout: float, of_paper: float, of_gopa: float) -> None:
    requirements = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=dropout, messages=20)
    plan, paper, gopa = (
        inca.plan(requirements, inca.PlanOptions(settlement="none")),
        inca.plan(requirements, inca.PlanOptions(recipe="paper")),
        Gopa(requirements, late=0.5),
    )
    assert plan.expected_mse <= of_paper * paper.expected_mse
    assert plan.expected_mse <= of_gopa * gopa.expected_error(dropout).mse
    rng, squares = np.random.default_rng(7), []
    for seed in range(1000):
        values = rng.random(200)
        presence = inca.Presence.leaving(200, plan.design.rounds, dropout, rng)
        execution = plan.execution(seed, presence)
        estimate = inca.simulate(execution, values, plan.noise_levels, rng).estimate
        assert isinstance(estimate, float)
        squares.append((estimate - values.mean()) ** 2)
        transcript = transcript_of(execution, plan.noise_levels, plan.adversary(rng))
        certificate = inca.certify(transcript, sensitivity=1.0, delta=requirements.delta)
        assert certificate.worst_epsilon <= requirements.epsilon
    error = np.std(squares, ddof=1) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - plan.expected_mse) < 6 * error  # false alarms below 1e-6
