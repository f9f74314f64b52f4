"""Plans in closed form: the rounds, the noise and the error that sealing.md promises, and every run within them."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import cases, examples
from inca.errors import InvalidInput, RequirementsNotMet
from inca.mechanisms.base import measure
from inca.mechanisms.inca import Inca
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.settled import LOST_MESSAGES, MOST_CIRCLE_ROUNDS, joined_design, settled_error, settled_noise
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.party_cut_off import log_cut_off_for_party
from inca.protocol.undelivered import Undelivered

FIGURE_4 = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
SMALL = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.2)
EVERY_SIZE = [3, 4, 5, 7, 10, 19, 45, 46, 50, 70, 71, 200, 257, 1000, 10**5, 10**9]


def required(parties: int, colluders: int = 0, leavers: int = 0, eavesdropped: float = 0.0) -> inca.Requirements:
    return inca.Requirements(
        parties, 1.0, 1e-5, colluding=colluders / parties, dropout=leavers / parties, eavesdropped=eavesdropped
    )


def fitting(parties: int, dropout: float) -> inca.Requirements:
    """Return a tenth colluding, at least one, and as many leaving as leave two honest ones."""
    wanted = replace(FIGURE_4, parties=parties, dropout=dropout)
    most = wanted.honest - 2
    return wanted if wanted.leavers <= most else replace(wanted, dropout=most / parties)


# --- the promises -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parties", EVERY_SIZE)
@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.2])
def test_noise_is_within_a_hundredth_of_ideal_secure_aggregation_at_every_size(parties: int, dropout: float) -> None:
    requirements = fitting(parties, dropout)
    plan = inca.plan(requirements)
    ideal = SecureAggregation(requirements).expected_error(requirements.dropout).budget
    assert ideal.noise < plan.budget.noise <= 1.01 * ideal.noise
    assert plan.budget.data == pytest.approx(ideal.data) and plan.budget.cancelling == 0.0
    certain = parties <= (45 if dropout == 0.2 else 70)
    assert (plan.failure_probability == 0.0) is (plan.design.schedule == "circle")
    assert plan.design.schedule == "circle" or not certain
    assert plan.design.rounds <= 8 and plan.failure_probability <= requirements.failure
    assert plan.sampled is None and plan.design.messages == plan.design.rounds + 1


@pytest.mark.parametrize(("dropout", "most"), [(0.05, 1.26), (0.1, 1.42), (0.2, 1.82)])
def test_the_error_of_the_papers_figure_4_is_near_that_of_a_trusted_server(dropout: float, most: float) -> None:
    requirements = replace(FIGURE_4, dropout=dropout)
    assert inca.plan(requirements).expected_mse <= most * requirements.central_mse


@pytest.mark.parametrize(
    ("parties", "colluders", "leavers", "rounds"),
    [
        (4, 1, 1, 3),
        (5, 1, 2, 4),
        (6, 2, 2, 5),
        (10, 1, 1, 2),
        (12, 2, 2, 3),
        (20, 2, 2, 3),
        (50, 5, 5, 6),
        (70, 7, 7, 8),
    ],
)
def test_few_parties_are_joined_for_certain(parties: int, colluders: int, leavers: int, rounds: int) -> None:
    joined = joined_design(required(parties, colluders, leavers))
    assert (joined.design.schedule, joined.design.rounds) == ("circle", rounds)
    assert (joined.failure, joined.spare) == (0.0, 0)


@pytest.mark.parametrize(("parties", "rounds"), [(71, 7), (80, 6), (200, 6), (1000, 5), (10**5, 5), (10**9, 6)])
def test_six_rounds_join_any_number_of_parties_and_seven_if_a_tenth_is_rounded_up_by_much(
    parties: int, rounds: int
) -> None:
    """With a tenth colluding and a tenth leaving, but for a probability of 1e-6 for a party."""
    joined = joined_design(inca.Requirements(parties, 1.0, 1e-5, colluding=0.1, dropout=0.1))
    assert (joined.design.schedule, joined.design.rounds) == ("permutation", rounds)
    assert 0.0 < joined.failure <= 1e-6


@given(st.integers(3, 300), st.data())
@examples(40, 300)
def test_the_rounds_are_the_fewest_that_do(parties: int, data: st.DataObject) -> None:
    colluders = data.draw(st.integers(0, parties - 2))
    leavers = data.draw(st.integers(0, parties - 2 - colluders))
    requirements = required(parties, colluders, leavers)
    circle = circle_rounds(parties, colluders + leavers, LOST_MESSAGES)
    joined = joined_design(requirements)
    if joined.design.schedule == "circle":
        assert joined.design.rounds == circle
        if circle <= MOST_CIRCLE_ROUNDS:
            return
        fewer = log_cut_off_for_party(parties, colluders + leavers, circle - 1)
        assert fewer > math.log(requirements.failure)
        return
    assert circle is None or circle > MOST_CIRCLE_ROUNDS
    for rounds, suffices in ((joined.design.rounds, True), (joined.design.rounds - 1, False)):
        if rounds:
            bound = log_cut_off_for_party(parties, colluders + leavers, rounds, spare=joined.spare)
            assert (bound <= math.log(requirements.failure)) is suffices


def test_a_plan_for_a_billion_parties_holds_nothing_for_each_of_them() -> None:
    tracemalloc.start()
    try:
        inca.plan(replace(FIGURE_4, parties=10**9)).document()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6  # a bit for each would be 125e6


# --- runs are within the guarantee ------------------------------------------------------------------------------------


def check_run(plan: inca.Plan, execution: inca.Execution, adversary: inca.Adversary) -> None:
    """Every party's exact loss is within the guarantee, with leavers known and with them unknown; theirs is small."""
    view, allowed = inca.View(execution, adversary), plan.requirements.mu
    losses = inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0)
    assert losses.max_mu <= allowed and execution.cohort is not None
    assert losses.mu[~execution.cohort[losses.honest]].max(initial=0.0) <= allowed / 20.0
    assert inca.account(view.of_cohort(), plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= allowed


@pytest.mark.parametrize("parties", [4, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (6, 7, 8, 9, 10))])
def test_on_a_circle_every_coalition_every_leaver_and_every_lost_message_is_allowed_for(parties: int) -> None:
    requirements = inca.Requirements(parties, 1.0, 1e-5)  # one may collude, one leave
    plan = inca.plan(requirements)
    rounds, schedule = plan.design.rounds, plan.design.draw_schedule(parties, 0)
    receivers = np.array([schedule.round(t).receivers for t in range(1, rounds + 1)])
    lost = [None, *((t, i) for t in range(rounds) for i in range(parties))]
    for colluder, leaver in combinations(range(parties), 2):
        present = np.ones((rounds + 1, parties), dtype=bool)
        present[rounds:, leaver] = False  # after all rounds but the last
        for message in lost:
            rows, undelivered = receivers.copy(), []
            if message is not None and message[1] != leaver:
                t, sender = message
                undelivered = [Undelivered(t + 1, sender, int(rows[t, sender, 0]), t + 1)]
                rows[t, sender, 0] = -1
            presence = inca.Presence.explicit(present)
            execution = inca.Execution(
                inca.ExplicitSchedule(rows), plan.design.injection(), presence, undelivered=undelivered
            )
            check_run(plan, execution.settled(), inca.Adversary([colluder]))


@given(st.integers(5, 60), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.0]))
@examples(15, 300)
def test_every_run_of_a_certain_plan_meets_the_guarantee(parties: int, seed: int, attendance: float) -> None:
    plan, rng = inca.plan(inca.Requirements(parties, 1.0, 1e-5)), np.random.default_rng(seed)
    assert plan.failure_probability == 0.0
    leaving = round(attendance * plan.requirements.leavers) / parties
    execution = plan.execution(seed, inca.Presence.leaving(parties, plan.design.rounds, leaving, rng))
    check_run(plan, execution, plan.adversary(rng))


@pytest.mark.slow
@pytest.mark.parametrize("parties", [80, 200, 500, 1000])
def test_runs_of_drawn_plans_meet_the_guarantee_where_parties_are_joined(parties: int) -> None:
    plan = inca.plan(inca.Requirements(parties, 0.5, 1e-5))
    for seed in range(max(3, 20_000 // parties)):
        rng = np.random.default_rng((8, seed))
        leaving = plan.requirements.dropout * (seed % 3) / 2.0
        execution = plan.execution(seed, inca.Presence.leaving(parties, plan.design.rounds, leaving, rng))
        check_run(plan, execution, plan.adversary(rng))  # a failure has a probability of 1e-6 for a party


@pytest.mark.slow
def test_parties_are_cut_off_no_more_often_than_is_stated() -> None:
    """At a failure large enough to be seen: exceptions are rarer than stated, up to 4.9 standard errors (1e-6)."""
    requirements = inca.Requirements(100, 1.0, 1e-5, colluding=0.2, dropout=0.1, failure=0.05)
    plan, above, seen = inca.plan(requirements), 0, 0
    for seed in range(400):
        rng = np.random.default_rng((9, seed))
        execution = plan.execution(seed, inca.Presence.leaving(100, plan.design.rounds, 0.1, rng))
        view = inca.View(execution, plan.adversary(rng)).of_cohort()
        losses = inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0)
        above += int((losses.mu > requirements.mu).sum())
        seen += losses.mu.size
    stated = plan.failure_probability
    assert 0 < above <= seen * stated + 4.9 * math.sqrt(100 * seen * stated)  # parties of a run fail together


def test_a_run_with_absences_is_within_the_guarantee_and_its_error_is_expected() -> None:
    requirements = inca.Requirements(16, 1.0, 1e-5, colluding=1 / 16, dropout=1 / 16, away=0.1)
    plan = inca.plan(requirements)
    assert plan.design.schedule == "permutation" and plan.standard_error > 0.0
    assert plan.budget.data > settled_error(requirements, plan.noise, 1).data
    for seed in range(cases(6, 12)):
        rng = np.random.default_rng((5, seed))
        presence = inca.Presence.leaving(16, plan.design.rounds, 1 / 16, rng, away=0.1)
        check_run(plan, plan.execution(seed, presence), plan.adversary(rng))
    with pytest.raises(InvalidInput, match="parties must be at most 100,000 where an expected error is sampled"):
        inca.plan(replace(requirements, parties=10**6))


def test_who_was_away_weighs_less_and_the_others_make_up_for_it() -> None:
    plan = inca.plan(inca.Requirements(10, 1.0, 1e-5))
    present = np.ones((plan.design.rounds + 1, 10), dtype=bool)
    present[1, 4] = False
    execution = plan.execution(1, inca.Presence.explicit(present))
    assert execution.cohort is not None and execution.cohort.all()
    assert plan.noise_levels_of(execution).topup > 0.0 == plan.noise_levels_of(plan.execution(1)).topup
    for colluder in range(10):
        check_run(plan, execution, inca.Adversary([colluder]))


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.1, 0.2])
def test_two_thousand_runs_have_the_expected_error(dropout: float) -> None:
    """Squared errors within 4.9 standard errors of what is expected (false alarm 1e-6)."""
    mechanism = Inca(inca.plan(replace(FIGURE_4, dropout=0.2)))
    expected = mechanism.expected_error(dropout).mse
    measured = measure(mechanism, np.random.default_rng(7), dropout, runs=2000)
    assert abs(measured.mse - expected) < 4.9 * measured.standard_error


def test_runs_have_the_expected_error() -> None:
    """The mean of 400 squared errors is within 4.9 of its standard errors of the expectation (false alarm 1e-6)."""
    mechanism = Inca(inca.plan(replace(SMALL, dropout=0.15)))
    measured = measure(mechanism, np.random.default_rng(0), 0.15, runs=400)
    assert abs(measured.mse - mechanism.expected_error(0.15).mse) < 4.9 * measured.standard_error


# --- shape ------------------------------------------------------------------------------------------------------------


def test_noise_is_for_those_who_really_stay() -> None:
    noise, unit = settled_noise(SMALL, rounds=6), SMALL.var_local_dp
    for leavers in range(9):
        error = settled_error(SMALL, noise, leavers)
        assert error.independent == pytest.approx(1.005 * unit / (36 - leavers) / (40 - leavers), rel=2e-3)
    assert settled_error(SMALL, noise, 40).total == math.inf
    assert noise.topup.full(40) == 0.0 < noise.topup.full(39)


@given(st.sampled_from(["epsilon", "delta", "colluding", "dropout"]), st.integers(3, 3000), st.data())
@examples(40, 300)
def test_more_privacy_and_more_who_collude_or_leave_cost_accuracy(name: str, parties: int, data: st.DataObject) -> None:
    low, high = sorted(data.draw(st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3))))
    errors = []
    for number in (low, high):
        try:
            changes: dict[str, Any] = {name: number}
            errors.append(inca.plan(replace(inca.Requirements(parties, 1.0), **changes)))
        except RequirementsNotMet:
            return
    first, second = (plan.budget.noise for plan in errors)
    spare = 1.005  # a party may lack one more of more parties that stay
    assert first >= second / spare if name in ("epsilon", "delta") else first <= second * spare


def test_where_messages_are_eavesdropped_or_rounds_missed_rounds_are_drawn() -> None:
    usual = required(10, 1, 1)
    assert joined_design(usual).design.schedule == "circle"
    for changed in (replace(usual, eavesdropped=0.05), replace(usual, away=0.05)):
        drawn = joined_design(changed)
        assert drawn.design.schedule == "permutation" and drawn.design.rounds > 6


def test_more_rounds_than_needed_may_be_asked_for() -> None:
    assert joined_design(required(10, 1, 1), rounds=5).design == joined_design(required(10, 3, 3), rounds=5).design
    assert joined_design(required(10, 1, 1), rounds=12).design.schedule == "permutation"  # a circle has 9 at most
    fewer, more = (joined_design(required(200, 20, 20), rounds=rounds) for rounds in (6, 9))
    assert more.design.rounds == 9 and more.failure < fewer.failure


REFUSED: dict[str, tuple[inca.Requirements, dict[str, Any], str]] = {
    "few messages": (
        replace(required(10, 1, 1), messages=2),
        {},
        r"1 round is too few .* 2 are needed, that is 3 mess",
    ),
    "drawn": (
        replace(required(200, 20, 20), messages=6),
        {},
        r"5 rounds are too few .* 6 are needed, that is 7 messages",
    ),
    "few rounds": (required(200, 20, 20), {"rounds": 4}, r"4 rounds are too few .* 6 are needed"),
    "nobody left": (required(3, 1, 1), {}, r"of 3 parties 1 may collude and 1 may leave, .* at least 4 parties"),
    "all leave": (required(3, 0, 2), {}, r"of 3 parties 2 may leave, .* at least 4 parties"),
    "all overheard": (required(10, 1, 1, eavesdropped=0.99), {}, "no number of rounds hides enough"),
    "messages": (
        replace(required(10), messages=60),
        {"rounds": 60},
        "rounds must be at most 59, as with the final mess",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_met_is_refused_with_what_could(case: str) -> None:
    requirements, options, sentence = REFUSED[case]
    with pytest.raises(RequirementsNotMet, match=sentence):
        inca.plan(requirements, inca.PlanOptions(**options))


def test_options_out_of_their_range_are_refused() -> None:
    for options, sentence in (
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"receivers": 2}, "receivers must be 1, but for recipe paper"),
        ({"recipe": "mine"}, "recipe must be best or paper"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            inca.plan(SMALL, inca.PlanOptions(**options))


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parties", [10, 300, 10**9])
def test_a_plan_is_read_as_it_was_written(parties: int, tmp_path: Path) -> None:
    plan = inca.plan(replace(FIGURE_4, parties=parties))
    plan.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sigma_cancelling": 3.0}, r"sigma_cancelling must be \d.*, as its requirements and rounds give, got 3"),
        ({"sigma_independent": 1e-3}, "sigma_independent must be"),
        ({"sigma_together": 1e-3}, "sigma_together must be"),
        ({"failure_probability": 1e-12}, "failure_probability must be"),
        ({"spare": 40}, "the design must be"),
        ({"schedule": "random"}, "the design must be"),
    ],
)
def test_a_file_that_claims_more_than_is_proven_is_refused(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    fields = inca.plan(FIGURE_4).document().as_fields() | changes
    (tmp_path / "plan.json").write_text(json.dumps(fields))
    with pytest.raises(InvalidInput, match=sentence):
        inca.read_plan(tmp_path / "plan.json")
