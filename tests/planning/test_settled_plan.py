"""Plans of settled runs: as accurate as a trusted curator's mean of those who stayed, and the guarantee holds."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import inca
from helpers.documents import words
from inca.errors import InvalidInput, RequirementsNotMet
from inca.mechanisms.base import measure
from inca.mechanisms.inca import Inca
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.designs import ProtocolDesign
from inca.planning.leavers import level_that_protects_leavers
from inca.planning.level_tables import leavers_level, needed_level, unfinished_residue
from inca.planning.settled_plan import _looked_up, leavers_protected, residue_of
from inca.privacy.theorems.party_cut_off import log_cut_off_for_party

REQUIREMENTS = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1, messages=20)
SMALL = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.2, messages=10)


@pytest.mark.parametrize("messages", [20, 10])
@pytest.mark.parametrize(("dropout", "most"), [(0.05, 1.35), (0.1, 1.5), (0.2, 1.95)])
def test_the_error_is_near_that_of_a_trusted_curator(dropout: float, most: float, messages: int) -> None:
    plan = inca.plan(replace(REQUIREMENTS, dropout=dropout, messages=messages))
    assert plan.expected_mse <= most * REQUIREMENTS.central_mse
    assert plan.design.messages <= messages and plan.sampling.kind == "drawn"


@pytest.mark.parametrize("parties", [50, 200, 1000, 10**5, 10**9])
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.2])
def test_the_error_is_within_a_tenth_of_ideal_secure_aggregation(parties: int, dropout: float) -> None:
    requirements = replace(REQUIREMENTS, parties=parties, dropout=dropout)
    plan, ideal = inca.plan(requirements), SecureAggregation(requirements).expected_error(dropout).budget
    assert ideal.noise < plan.budget.noise <= 1.1 * ideal.noise
    assert plan.budget.data == pytest.approx(ideal.data)


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.2])
def test_every_runs_audit_meets_the_guarantee(dropout: float) -> None:
    """At full attendance, at half of the leavers and at all of them; exactly, leavers' own losses included."""
    plan = inca.plan(SMALL)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        execution = plan.execution(seed, inca.Presence.leaving(40, plan.design.rounds, dropout, rng))
        view = inca.View(execution, plan.adversary(rng))
        losses = inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0)
        assert losses.max_mu <= SMALL.mu
        bound = inca.account(view.of_cohort(), plan.noise_levels_of(execution), sensitivity=1.0)
        assert bound.max_mu <= SMALL.mu


@pytest.mark.parametrize(("colluding", "dropout"), [(0.1, 0.0), (0.0, 0.1), (0.1, 0.2), (0.25, 0.35)])
def test_levels_are_looked_up_where_colluders_and_leavers_are_known(colluding: float, dropout: float) -> None:
    plan = inca.plan(replace(REQUIREMENTS, colluding=colluding, dropout=dropout, messages=30))
    assert plan.sampling.known is not None
    assert colluding + dropout - 1e-9 <= plan.sampling.known < 2 * (colluding + dropout)


def survivors_level(requirements: inca.Requirements, candidate: Any) -> float:
    known, factor = requirements.colluding + requirements.dropout, candidate.noise.factor
    needed = needed_level(candidate.design.rounds, known, factor, 200, failure=1e-6, confidence=0.95)
    assert needed is not None
    return needed.level


@pytest.mark.parametrize("dropout", [0.05, 0.2])
def test_a_plan_protects_leavers_where_survivors_would_need_less_noise(dropout: float) -> None:
    """With a large factor survivors need little cancelling noise; leavers need as much as before."""
    requirements, more = replace(REQUIREMENTS, dropout=dropout), []
    for candidate in _looked_up(requirements, None, None, 0.95):
        injection, certainty = candidate.design.injection(), {"failure": 1e-6, "confidence": 0.95}
        needed = leavers_level(candidate.design.rounds, 0.1 + dropout, 200, injection, **certainty)
        assert needed <= candidate.noise.level
        more.append(survivors_level(requirements, candidate) < needed)
    assert any(more) and not all(more)


def test_if_nobody_leaves_noise_is_for_survivors_alone() -> None:
    requirements = replace(REQUIREMENTS, colluding=0.05, dropout=0.0, messages=30)
    candidates = list(_looked_up(requirements, None, None, 0.95))
    levels = [survivors_level(requirements, candidate) for candidate in candidates]
    assert [candidate.noise.level for candidate in candidates] == pytest.approx(levels) and min(levels) < 1.0


def test_a_plan_without_any_rounds_is_refused() -> None:
    for receivers in (None, 1, 2):
        for rounds in (0, -3):
            with pytest.raises(InvalidInput, match="rounds must be at least 1"):
                inca.plan(REQUIREMENTS, inca.PlanOptions(rounds=rounds, receivers=receivers))
    with pytest.raises(InvalidInput, match="rounds must be at least 1"):
        inca.plan(REQUIREMENTS, inca.PlanOptions(rounds=0, proven=True))


def test_fixed_rounds_are_looked_up_too() -> None:
    plan = inca.plan(REQUIREMENTS, inca.PlanOptions(rounds=10))
    assert plan.design.rounds == 10 and plan.sampling.kind == "drawn"


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.1, 0.2])
def test_a_thousand_runs_have_the_expected_error_and_fifty_audits_hold(dropout: float) -> None:
    """Squared errors within 4.9 standard errors of what is expected (false alarm 1e-6)."""
    requirements = replace(REQUIREMENTS, dropout=0.2)
    mechanism = Inca(inca.plan(requirements))
    expected, measured = mechanism.expected_error(dropout).mse, measure(mechanism, np.random.default_rng(7), dropout)
    assert abs(measured.mse - expected) < 4.9 * measured.standard_error
    rounds = mechanism.plan.design.rounds
    for seed in range(50):
        rng = np.random.default_rng(seed)
        execution = mechanism.plan.execution(seed, inca.Presence.leaving(200, rounds, dropout, rng))
        view = inca.View(execution, mechanism.plan.adversary(rng))
        assert inca.account(view, mechanism.plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= requirements.mu


def test_runs_have_the_expected_error() -> None:
    """The mean of 400 squared errors is within 4.9 of its standard errors of the expectation (false alarm 1e-6)."""
    mechanism = Inca(inca.plan(replace(SMALL, messages=8, dropout=0.15)))
    expected = mechanism.expected_error(0.15).mse
    measured = measure(mechanism, np.random.default_rng(0), 0.15, runs=400)
    assert abs(measured.mse - expected) < 4.9 * measured.standard_error


def test_the_error_grows_with_the_number_that_really_left() -> None:
    mechanism = Inca(inca.plan(replace(REQUIREMENTS, dropout=0.2)))
    errors = [mechanism.expected_error(dropout).mse for dropout in (0.0, 0.05, 0.1, 0.2)]
    assert errors == sorted(errors) and errors[0] < 1.2 * REQUIREMENTS.central_mse


def test_a_smaller_probability_of_failure_is_extrapolated_and_says_so() -> None:
    rare, plan = (inca.plan(replace(REQUIREMENTS, failure=failure)) for failure in (1e-9, 1e-12))
    assert rare.sampling.kind == "drawn" and rare.failure_probability == 1e-9 and "drawn, confidence" in words(rare)
    assert plan.sampling.kind == "extrapolated" and plan.failure_probability == 1e-12
    levels = [one.noise_levels.cancelling for one in (inca.plan(REQUIREMENTS), rare, plan)]
    assert levels[0] < levels[1] < levels[2]
    assert "extrapolated beyond what was drawn, confidence 0.95" in words(plan)


@pytest.mark.parametrize(
    ("changes", "fixed"),
    [
        ({"eavesdropped": 0.05}, {}),
        pytest.param({"messages": 36}, {"receivers": 2}, marks=pytest.mark.slow),
        ({"parties": 8, "messages": 12, "colluding": 0.0}, {}),
        ({"away": 0.05, "messages": 14}, {}),
        pytest.param({}, {"rounds": 9}, marks=pytest.mark.slow),
    ],
    ids=["eavesdroppers", "two receivers", "few parties", "absences", "rounds not drawn"],
)
def test_what_was_not_drawn_is_sampled_and_the_audit_holds(changes: dict[str, float], fixed: dict[str, int]) -> None:
    requirements = replace(SMALL, **changes)  # type: ignore[arg-type]
    plan = inca.plan(requirements, inca.PlanOptions(views=20, **fixed))  # type: ignore[arg-type]
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


@pytest.mark.parametrize(("eavesdropped", "receivers"), [(0.2, 1), (0.0, 2)])
def test_eavesdroppers_and_two_receivers_are_looked_up_and_the_audit_holds(eavesdropped: float, receivers: int) -> None:
    requirements = replace(SMALL, parties=60, eavesdropped=eavesdropped, messages=20 * receivers)
    for failure in (1e-6, 1e-9):
        plan = inca.plan(replace(requirements, failure=failure), inca.PlanOptions(receivers=receivers))
        assert plan.sampling.looked_up and plan.sampling.kind == "drawn" and plan.failure_probability == failure
        assert plan.design.receivers == receivers
        assert requirements.central_mse < plan.expected_mse < 2.5 * requirements.central_mse
        for seed in range(4):
            rng = np.random.default_rng((6, seed))
            presence = inca.Presence.leaving(60, plan.design.rounds, requirements.dropout, rng)
            execution = plan.execution(seed, presence).settled()
            view = inca.View(execution, plan.adversary(rng))
            assert inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= requirements.mu


def test_an_honest_party_among_colluders_has_the_noise_of_local_dp() -> None:
    plan = inca.plan(inca.Requirements(2, 1.0, 1e-5, colluding=0.5, messages=5), inca.PlanOptions(views=4))
    assert plan.noise_levels.independent == pytest.approx(math.sqrt(plan.requirements.var_local_dp))
    assert plan.settled_noise.topup(1) == 0.0


def test_options_out_of_their_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="settlement must be settled or none, got 'paid'"):
        inca.plan(SMALL, inca.PlanOptions(settlement=cast(Any, "paid")))
    with pytest.raises(InvalidInput, match="confidence must be between 0 and 1"):
        inca.plan(SMALL, confidence=1.0)


def test_too_few_messages_are_refused_with_how_many_would_do() -> None:
    with pytest.raises(RequirementsNotMet, match=r"messages is 2.*allow at least \d+ messages"):
        inca.plan(replace(SMALL, messages=2))


def test_a_settled_plan_is_a_file_that_is_read_again(tmp_path: Path) -> None:
    plan = inca.plan(SMALL)
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan
    fields = plan.document().as_fields()
    assert fields["settlement"] == "settled" and len(fields["sigma_topup"]) == 9
    assert fields["sigma_topup"][0] == 0.0
    assert fields["sigma_topup"][8] == plan.sigma_topup(8)


def test_a_plan_for_a_billion_lists_a_thousand_top_ups() -> None:
    assert len(inca.plan(replace(REQUIREMENTS, parties=10**9)).document().sigma_topup) == 1001


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
        _ = inca.plan(SMALL, inca.PlanOptions(recipe="paper", views=10)).settled_noise


def test_rosters_take_plans_that_settle_with_their_top_up() -> None:
    from inca.network.membership.terms import Terms

    plan, least = inca.plan(SMALL), SMALL.parties - 3
    when: dict[str, Any] = {"start": 1.9e9, "period": 10, "max_clock_skew": 1, "min_participants": least}
    terms = Terms.from_plan(plan, dimension=1, radius=SMALL.sensitivity / 2, **when)
    assert terms.topup(SMALL.parties) == plan.topup and plan.topup.sigma([1.0] * (SMALL.parties - 2)) > 0.0
    with pytest.raises(InvalidInput, match="settlement of the plan must be settled, as sessions settle, got 'none'"):
        Terms.from_plan(inca.plan(SMALL, inca.PlanOptions(recipe="paper", views=10)), dimension=1, radius=0.5, **when)


@pytest.mark.parametrize("parties", [4, 10, 50, 200, 10**9])
def test_a_proven_plan_is_as_accurate_at_any_number_of_parties(parties: int) -> None:
    requirements = replace(REQUIREMENTS, parties=parties)
    plan = inca.plan(requirements, inca.PlanOptions(proven=True))
    ideal = SecureAggregation(requirements).expected_error(0.1).budget
    assert plan.sampling.kind == "proven" and "proven for any number of parties" in words(plan)
    assert plan.budget.noise <= 1.1 * ideal.noise
    assert plan.failure_probability == plan.structure_bound <= requirements.failure
    assert (plan.failure_probability == 0.0) is (plan.design.schedule == "circle") is (parties <= 50)
    assert plan.design.messages <= 20


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.2])
def test_every_run_of_a_proven_plan_meets_the_guarantee(dropout: float) -> None:
    plan = inca.plan(SMALL, inca.PlanOptions(proven=True))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        execution = plan.execution(seed, inca.Presence.leaving(40, plan.design.rounds, dropout, rng))
        view = inca.View(execution, plan.adversary(rng))
        for seen in (view, view.of_cohort()):
            assert inca.account(seen, plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= SMALL.mu


def test_a_proven_plan_counts_leavers_among_those_who_may_cut_parties_off() -> None:
    """The fewest rounds in which messages connect those who stay: more if more leave, and one fewer would not do."""
    calm, usual = (
        inca.plan(replace(REQUIREMENTS, dropout=dropout), inca.PlanOptions(proven=True)) for dropout in (0.0, 0.2)
    )
    assert calm.design.rounds < usual.design.rounds
    bounds = [math.exp(log_cut_off_for_party(200, 60, rounds)) for rounds in (7, 8)]
    assert bounds[1] <= REQUIREMENTS.failure < bounds[0] and usual.design.rounds == 8
    assert usual.failure_probability == pytest.approx(bounds[1])
    with pytest.raises(RequirementsNotMet, match=r"messages is 8, .* allow at least 9 messages"):
        inca.plan(replace(REQUIREMENTS, messages=8, dropout=0.2), inca.PlanOptions(proven=True))
    longer = inca.plan(REQUIREMENTS, inca.PlanOptions(proven=True, rounds=15))
    assert longer.design.rounds == 15 and longer.noise_levels.cancelling > usual.noise_levels.cancelling


def test_if_colluders_and_leavers_may_be_everyone_local_dp_is_advised() -> None:
    requirements = replace(SMALL, parties=10, colluding=0.5, dropout=0.5, messages=30)
    for proven in (False, True):
        with pytest.raises(RequirementsNotMet, match="use Local DP"):
            inca.plan(requirements, inca.PlanOptions(views=4, proven=proven))


def test_a_proven_plan_of_few_parties_is_on_a_circle_without_quiet_rounds_and_without_doubt() -> None:
    plan = inca.plan(replace(REQUIREMENTS, parties=10), inca.PlanOptions(proven=True))
    assert (plan.design.schedule, plan.design.rounds, plan.design.quiet) == ("circle", 2, 0)
    assert plan.sampling.confidence == 1.0 and plan.failure_probability == plan.agreed.failure == 0.0


def test_a_proven_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = inca.plan(SMALL, inca.PlanOptions(proven=True))
    plan.write(tmp_path / "plan.json")
    again = inca.read_plan(tmp_path / "plan.json")
    assert again.sampling == plan.sampling and again.failure_probability == plan.failure_probability


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"receivers": 2}, "receivers must be 1 for a proven level, got 2"),
        ({"settlement": "none"}, "proven must be used with settled runs"),
        ({"recipe": "paper"}, "proven must be used with settled runs"),
    ],
)
def test_what_has_no_proven_level_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        inca.plan(REQUIREMENTS, inca.PlanOptions(proven=True, **arguments))


def test_absences_have_no_proven_level() -> None:
    with pytest.raises(InvalidInput, match="away must be 0 for a proven level"):
        inca.plan(replace(REQUIREMENTS, away=0.1), inca.PlanOptions(proven=True))


TAPPED = inca.Requirements(parties=16, epsilon=1.0, delta=1e-5, dropout=3 / 16, eavesdropped=0.05, messages=24)


def test_what_was_not_drawn_is_sampled_with_all_messages_and_a_last_quiet_round() -> None:
    tapped, twice = (
        inca.plan(TAPPED, inca.PlanOptions(views=4)),
        inca.plan(replace(TAPPED, eavesdropped=0.0), inca.PlanOptions(receivers=2, views=4)),
    )
    assert str(tapped.design) == "permutation, 24 rounds, 1 receiver, value in shares, last 1 quiet"
    assert str(twice.design) == "random, 12 rounds, 2 receivers, value in shares, last 1 quiet"
    pair = inca.Requirements(parties=2, epsilon=1.0, delta=1e-5, messages=5)
    assert (
        str(inca.plan(pair, inca.PlanOptions(rounds=1, views=4)).design)
        == "permutation, 1 round, 1 receiver, value in shares"
    )
    assert str(inca.plan(pair, inca.PlanOptions(rounds=2, views=4)).design).endswith(
        "2 rounds, 1 receiver, value in shares, last 1 quiet"
    )


def test_a_sampled_plan_protects_leavers_and_its_error_is_that_of_its_noise() -> None:
    requirements = replace(TAPPED, parties=60)
    plan = inca.plan(requirements, inca.PlanOptions(views=4))
    level = plan.noise_levels.cancelling**2 / requirements.var_local_dp
    assert plan.factor < requirements.honest and level >= level_that_protects_leavers(plan.design.injection())
    expected = plan.settled_noise.error(requirements.leavers).independent
    assert plan.budget.independent == pytest.approx(expected, rel=1e-8)
    low = np.full(2, 0.1), np.full(2, 0.1)
    raised = leavers_protected(requirements, plan.design, *low)
    assert raised == [level_that_protects_leavers(plan.design.injection())] * 2
    assert leavers_protected(replace(requirements, dropout=0.0), plan.design, *low) == [0.1, 0.1]


def test_a_plan_for_absences_has_their_error() -> None:
    """Who misses rounds enters with a part of its weight: values are lost though nobody leaves."""
    requirements = replace(TAPPED, dropout=0.0, eavesdropped=0.0, away=0.2, messages=40)
    plan = inca.plan(requirements, inca.PlanOptions(views=4))
    assert plan.budget.data > 0.0
    assert plan.budget.independent > plan.settled_noise.error(0).independent
    assert inca.plan(replace(requirements, away=0.0)).budget.data == 0.0


def test_what_a_missing_final_message_leaves_is_looked_up_where_it_was_drawn() -> None:
    drawn, other = ProtocolDesign("permutation", 10, quiet=1), ProtocolDesign("permutation", 11, quiet=1)
    assert residue_of(drawn, 200, 20) == unfinished_residue(10, 0.1)
    assert residue_of(other, 200, 20) == pytest.approx(unfinished_residue(10, 0.1), rel=0.25)
    assert residue_of(ProtocolDesign("permutation", 10), 200, 20) != unfinished_residue(10, 0.1)


@pytest.mark.parametrize("proven", [False, True])
def test_a_plan_for_a_billion_parties_holds_nothing_for_each_of_them(proven: bool) -> None:
    requirements = replace(REQUIREMENTS, parties=10**9)
    inca.plan(REQUIREMENTS, inca.PlanOptions(proven=proven))  # loads the tables
    tracemalloc.start()
    try:
        plan = inca.plan(requirements, inca.PlanOptions(proven=proven))
        plan.document()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.requirements.parties == 10**9 and peak < 50e6  # a bit for each would be 125e6
