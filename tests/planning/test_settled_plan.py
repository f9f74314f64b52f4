"""Plans of settled runs: as accurate as a trusted curator's mean of those who stayed, and the guarantee holds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from inca.errors import InvalidInput, RequirementsNotMet
from inca.mechanisms.base import measure
from inca.mechanisms.inca import Inca
from inca.mechanisms.secure_aggregation import SecureAggregation

REQUIREMENTS = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1, messages=20)
SMALL = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.2, messages=10)


@pytest.mark.parametrize("messages", [20, 10])
@pytest.mark.parametrize(("dropout", "most"), [(0.05, 1.35), (0.1, 1.5), (0.2, 1.95)])
def test_the_error_is_near_that_of_a_trusted_curator(dropout: float, most: float, messages: int) -> None:
    plan = inca.plan(replace(REQUIREMENTS, dropout=dropout, messages=messages))
    assert plan.expected_mse <= most * REQUIREMENTS.central_mse
    assert plan.design.messages <= messages and plan.sampling.kind == "drawn"
    assert plan.late_budget is not None and plan.late_budget.total > plan.expected_mse


@pytest.mark.parametrize("parties", [50, 200, 1000, 10**5, 10**9])
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.2])
def test_the_error_is_within_a_tenth_of_ideal_secure_aggregation(parties: int, dropout: float) -> None:
    requirements = replace(REQUIREMENTS, parties=parties, dropout=dropout)
    plan, ideal = inca.plan(requirements), SecureAggregation(requirements).expected_error(dropout).budget
    assert ideal.noise < plan.budget.noise <= 1.1 * ideal.noise
    assert plan.budget.data == pytest.approx(ideal.data)


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("late", [0, 1])
def test_every_runs_audit_meets_the_guarantee(dropout: float, late: int) -> None:
    """At full attendance, at half of the leavers and at all of them; exactly, leavers' own losses included."""
    plan = inca.plan(SMALL, late=late)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        execution = plan.execution(seed, inca.Presence.leaving(40, plan.design.rounds, dropout, rng))
        view = inca.View(execution, plan.adversary(rng))
        losses = inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0)
        assert losses.max_mu <= SMALL.mu
        bound = inca.account(view.of_cohort(), plan.noise_levels_of(execution), sensitivity=1.0)
        assert bound.max_mu <= SMALL.mu


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.1, 0.2])
def test_a_thousand_runs_have_the_expected_error_and_fifty_audits_hold(dropout: float) -> None:
    """Squared errors within 4.9 standard errors of what is expected (false alarm 1e-6)."""
    requirements = replace(REQUIREMENTS, dropout=0.2)
    mechanism = Inca(inca.plan(requirements))
    expected, measured = mechanism.expected_error(dropout).mse, measure(mechanism, np.random.default_rng(7), dropout)
    assert abs(measured.mse - expected) < 4.9 * measured.standard_error
    for seed in range(50):
        rng = np.random.default_rng(seed)
        execution = mechanism.plan.execution(seed, inca.Presence.leaving(200, 20, dropout, rng))
        view = inca.View(execution, mechanism.plan.adversary(rng))
        assert inca.account(view, mechanism.plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= requirements.mu


@pytest.mark.parametrize("late", [0, 1, 2])
def test_runs_have_the_expected_error(late: int) -> None:
    """The mean of 400 squared errors is within 4.9 of its standard errors of the expectation (false alarm 1e-6)."""
    mechanism = Inca(inca.plan(replace(SMALL, messages=8, dropout=0.15)), late_leavers=late)
    expected = mechanism.expected_error(0.15).mse
    measured = measure(mechanism, np.random.default_rng(late), 0.15, runs=400)
    assert abs(measured.mse - expected) < 4.9 * measured.standard_error + 0.05 * expected * (late > 0)


def test_the_error_grows_with_the_number_that_really_left() -> None:
    mechanism = Inca(inca.plan(replace(REQUIREMENTS, dropout=0.2)))
    errors = [mechanism.expected_error(dropout).mse for dropout in (0.0, 0.05, 0.1, 0.2)]
    assert errors == sorted(errors) and errors[0] < 1.2 * REQUIREMENTS.central_mse


def test_guarding_against_late_leavers_trades_error_without_them_for_error_with_them() -> None:
    careless, careful = inca.plan(REQUIREMENTS), inca.plan(REQUIREMENTS, late=1)
    assert careless.late_budget is not None and careful.late_budget is not None
    assert careless.expected_mse < careful.expected_mse < careful.late_budget.total < careless.late_budget.total / 1.5
    three = inca.plan(REQUIREMENTS, late=3)
    assert three.late_budget is not None and three.late_budget.total > careful.late_budget.total


def test_a_smaller_probability_of_failure_is_extrapolated_and_says_so() -> None:
    plan = inca.plan(replace(REQUIREMENTS, failure=1e-9))
    assert plan.sampling.kind == "extrapolated" and plan.failure_probability == 1e-9
    assert plan.noise_levels.cancelling > inca.plan(REQUIREMENTS).noise_levels.cancelling
    assert "extrapolated beyond what was drawn, confidence 0.95" in str(plan)


@pytest.mark.parametrize(
    ("changes", "fixed"),
    [
        ({"eavesdropped": 0.05}, {}),
        ({"messages": 36}, {"receivers": 2}),
        ({"parties": 8, "messages": 12, "colluding": 0.0}, {}),
        ({"away": 0.05, "messages": 14}, {}),
        ({}, {"rounds": 9}),
    ],
    ids=["eavesdroppers", "two receivers", "few parties", "absences", "rounds not drawn"],
)
def test_what_was_not_drawn_is_sampled_and_the_audit_holds(changes: dict[str, float], fixed: dict[str, int]) -> None:
    requirements = replace(SMALL, **changes)  # type: ignore[arg-type]
    plan = inca.plan(requirements, views=20, **fixed)  # type: ignore[arg-type]
    assert plan.settlement == "settled" and plan.sampling.kind == "extrapolated" and plan.sampling.views == 20
    known = replace(requirements, colluding=(requirements.colluders + requirements.leavers) / requirements.parties)
    bound = math.exp(plan.design.log_failure(replace(known, dropout=0.0)))  # that messages hide too little
    assert plan.structure_bound == bound > 0.0
    assert bound + requirements.failure / 2 == plan.failure_probability <= requirements.failure
    assert requirements.central_mse < plan.expected_mse < requirements.local_mse * 1.5
    for seed in range(3):
        rng = np.random.default_rng((5, seed))
        presence = inca.Presence.leaving(
            requirements.parties, plan.design.rounds, requirements.dropout, rng, away=requirements.away
        )
        execution = plan.execution(seed, presence)
        view = inca.View(execution, plan.adversary(rng))
        assert inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= requirements.mu


def test_an_honest_party_among_colluders_has_the_noise_of_local_dp() -> None:
    plan = inca.plan(inca.Requirements(2, 1.0, 1e-5, colluding=0.5, messages=5), views=4)
    assert plan.noise_levels.independent == pytest.approx(math.sqrt(plan.requirements.var_local_dp))
    assert plan.settled_noise.topup(1) == 0.0


def test_late_leavers_are_for_settled_runs_and_leave_someone() -> None:
    with pytest.raises(InvalidInput, match="late must be 0 without settlement"):
        inca.plan(SMALL, settlement="none", late=1)
    with pytest.raises(InvalidInput, match="late must be from 0 to 31, got 32"):
        inca.plan(SMALL, late=32)
    with pytest.raises(InvalidInput, match="settlement must be settled or none, got 'paid'"):
        inca.plan(SMALL, settlement="paid")
    with pytest.raises(InvalidInput, match="confidence must be between 0 and 1"):
        inca.plan(SMALL, confidence=1.0)


def test_too_few_messages_are_refused_with_how_many_would_do() -> None:
    with pytest.raises(RequirementsNotMet, match=r"messages is 2.*allow at least \d+ messages"):
        inca.plan(replace(SMALL, messages=2))


@pytest.mark.parametrize("late", [0, 2])
def test_a_settled_plan_is_a_file_that_is_read_again(tmp_path: Path, late: int) -> None:
    plan = inca.plan(SMALL, late=late)
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan
    fields = plan.as_dict()
    assert fields["settlement"] == "settled" and fields["late"] == late and len(fields["sigma_topup"]) == 9
    assert fields["sigma_topup"][0] == 0.0 and fields["expected_mse_late"] > fields["expected_mse"]
    assert fields["sigma_topup"][8] == plan.sigma_topup(8)


def test_a_plan_for_a_billion_lists_a_thousand_top_ups() -> None:
    assert len(inca.plan(replace(REQUIREMENTS, parties=10**9)).as_dict()["sigma_topup"]) == 1001


def test_executions_that_do_not_settle_as_planned_are_refused() -> None:
    plan = inca.plan(SMALL)
    levels: dict[str, Any] = {
        "sigma_independent": plan.noise_levels.independent,
        "sigma_cancelling": plan.noise_levels.cancelling,
    }
    presence = inca.Presence.leaving(40, 10, 0.1, np.random.default_rng(1))
    settled = plan.execution(1, presence)
    plan.check(inca.Transcript(settled, **levels, sigma_topup=plan.sigma_topup(4)))
    with pytest.raises(InvalidInput, match="sigma_topup of the execution must be"):
        plan.check(inca.Transcript(settled, **levels, sigma_topup=plan.sigma_topup(3)))
    unsettled = inca.Execution(settled.schedule, settled.injection, presence)
    with pytest.raises(InvalidInput, match="settlement of the execution must be settled, as planned, got 'none'"):
        plan.check(inca.Transcript(unsettled, **levels))
    with pytest.raises(InvalidInput, match="only settled runs top up"):
        _ = inca.plan(SMALL, recipe="paper", views=10).settled_noise


def test_rosters_take_no_plan_that_settles() -> None:
    from inca.network.membership.terms import Terms

    with pytest.raises(InvalidInput, match=r"the settlement of the plan must be none \(inca plan --settlement none\)"):
        Terms.from_plan(inca.plan(SMALL), dimension=1)
