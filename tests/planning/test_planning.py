from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from inca.mechanisms.base import measure
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.planning.designs import Shape, shapes, with_quiet_rounds
from inca.planning.sampling import factors, sample_needs, view
from inca.privacy.calibration import Tradeoff

SMALL = inca.Wish(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=16)
TINY = replace(SMALL, parties=20, messages=10)
FEW = 16  # sampled views: enough for a cautious plan


@cache
def planned(wish: inca.Wish = TINY, recipe: str = "best") -> inca.Plan:
    return inca.plan(wish, recipe=recipe, views=FEW)


# --- wishes ---


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one party": ({"parties": 1}, "parties is 1, but a whole number from 2 to 2147483647 was expected"),
    "epsilon 0": ({"epsilon": 0.0}, "epsilon is 0.0, but a finite number above 0 was expected"),
    "epsilon infinite": ({"epsilon": math.inf}, "epsilon is inf, but a finite number of at least 0 was expected"),
    "delta 0": ({"delta": 0.0}, "delta is 0.0, but a number between 0 and 1 (Gaussian noise promises nothing"),
    "delta 1": ({"delta": 1.0}, "delta is 1.0, but a number between 0 and 1 (Gaussian noise promises nothing"),
    "classic rule": ({"rule": "classic"}, "epsilon is 1.0, but a number below 1 for the classic rule"),
    "unknown rule": ({"rule": "best"}, "rule is 'best', but exact or classic was expected"),
    "all collude": ({"colluding": 1.0}, "colluding is 1.0, but a fraction that leaves one of 40 parties honest"),
    "all leave": ({"dropout": 1.0}, "dropout is 1.0, but a fraction that leaves one of 40 parties present"),
    "negative dropout": ({"dropout": -0.1}, "dropout is -0.1, but a number from 0 to 1 was expected"),
    "nan": ({"eavesdropped": math.nan}, "eavesdropped is nan, but a number from 0 to 1 was expected"),
    "no messages": ({"messages": 0}, "messages is 0, but a whole number of at least 1 was expected"),
    "sensitivity 0": ({"sensitivity": 0.0}, "sensitivity is 0.0, but a finite number above 0 was expected"),
    "failure 0": ({"failure": 0.0}, "failure is 0.0, but a number between 0 and 1 was expected"),
    "variance": ({"variance": -1.0}, "variance is -1.0, but a finite number of at least 0 was expected"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wishes_that_make_no_sense_are_refused(case: str) -> None:
    changes, sentence = REFUSED[case]
    with pytest.raises(inca.InputError, match="^" + re.escape(sentence)):
        replace(SMALL, **changes)


def test_central_and_local_errors_are_the_textbooks() -> None:
    wish = inca.Wish(parties=200, epsilon=0.2, delta=1e-5, rule="classic", sensitivity=3.0)
    assert wish.central_mse == pytest.approx(9 * 2 * math.log(1.25e5) / 0.04 / 200**2, rel=1e-9)
    assert wish.local_mse == pytest.approx(200 * wish.central_mse)


# --- designs ---


@given(st.integers(2, 300), st.floats(0.0, 0.9), st.floats(0.0, 0.9), st.integers(1, 60))
def test_designs_stay_within_the_budget_and_the_proven_chance(
    parties: int, colluding: float, eavesdropped: float, messages: int
) -> None:
    try:
        wish = inca.Wish(parties, 0.5, 1e-5, colluding=colluding, eavesdropped=eavesdropped, messages=messages)
        found = shapes(wish)
    except inca.InputError as refusal:
        assert str(refusal).count(". ") == 0  # one sentence
        return
    for shape in found:
        assert shape.messages <= messages
        assert shape.log_failure(wish) <= math.log(5e-7)
        assert shape.draw(parties, 1).rounds == shape.rounds
        assert all(0 < variant.injection().value[0] < 1.0001 for variant in with_quiet_rounds(shape))


UNMEETABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "too few messages": ({"messages": 2}, {}, "messages is 2, but then the hidden messages fail to protect someone"),
    "all tapped": ({"eavesdropped": 1.0}, {}, "eavesdropped is 1, but if all messages are tapped none can hide"),
    "too many rounds": ({}, {"rounds": 17}, "rounds is 17, but at most messages (16) by receivers (1) was expected"),
    "many receivers": ({}, {"receivers": 16}, "messages is 16, but then the hidden messages fail to protect someone"),
}


@pytest.mark.parametrize("case", UNMEETABLE)
def test_what_cannot_be_met_says_why_and_what_could(case: str) -> None:
    changes, fixed, sentence = UNMEETABLE[case]
    with pytest.raises(inca.CannotMeet) as refusal:
        inca.plan(replace(SMALL, **changes), **fixed)
    assert str(refusal.value).startswith(sentence)
    assert refusal.value.status == 1
    if "hidden" in sentence:
        assert "Local DP needs no hiding" in str(refusal.value)


def test_the_number_of_messages_that_a_refusal_names_suffices() -> None:
    with pytest.raises(inca.CannotMeet) as refusal:
        shapes(replace(SMALL, messages=2))
    enough = int(str(refusal.value).split("at least ")[1].split()[0])
    assert shapes(replace(SMALL, messages=enough))
    with pytest.raises(inca.CannotMeet):
        shapes(replace(SMALL, messages=enough - 1), receivers=1)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(inca.InputError, match="recipe is 'old', but best or paper was expected"):
        inca.plan(SMALL, recipe="old")
    with pytest.raises(inca.InputError, match="views is 1, but"):
        inca.plan(SMALL, views=1)
    with pytest.raises(inca.InputError, match="receivers is 40, but"):
        inca.plan(SMALL, receivers=40)
    with pytest.raises(
        inca.InputError, match=r"colluding \+ dropout is 1\.05, but fractions that leave an honest party present"
    ):
        inca.plan(replace(SMALL, dropout=0.95), recipe="paper", views=FEW)


# --- the level of cancelling noise ---


@given(st.integers(0, 10_000), st.sampled_from(["random", "permutation"]), st.sampled_from([0.0, 0.2]))
def test_needs_are_what_the_tradeoff_finds_one_by_one(seed: int, schedule: str, dropout: float) -> None:
    wish, shape = replace(SMALL, parties=20, messages=6), Shape(schedule, 6, quiet=1)
    tried = factors(wish, 20)[[10, 20, 30]]
    needs = sample_needs(wish, shape, 20, dropout, [seed], tried).views[0]
    tradeoff = Tradeoff(view(wish, shape, 20, dropout, seed))
    for factor, row in zip(tried, needs, strict=True):
        own = math.sqrt(factor / wish.honest)
        try:
            level = tradeoff.sigma_cancelling(1.0, own)
        except inca.InputError:
            assert np.isinf(row).any() or row.max() > 1e5
            continue
        # The ratios are interpolated.
        assert level**2 == pytest.approx(row.max(), rel=5e-3, abs=1e-6)


def test_a_plan_keeps_its_promise_in_fresh_views_at_every_dropout_rate() -> None:
    made = planned()
    for rate in (0.0, 0.02, 0.05, 0.1):
        for seed in range(20):
            fresh = view(made.wish, made.shape, made.wish.parties, rate, 10**12 + seed)
            losses = inca.account(fresh, made.sigma_independent, made.sigma_cancelling)
            assert losses.worst[1] <= made.wish.mu


# --- the error ---


def test_without_dropouts_the_error_is_theorem_2s_up_to_the_factor_and_tends_to_central_dp() -> None:
    wish = replace(TINY, dropout=0.0, colluding=0.1)
    made = planned(wish)
    least = wish.var_local / (wish.honest * wish.parties)
    assert made.expected_mse == pytest.approx(made.factor * least, rel=2e-9)  # noise is rounded up by 1e-9
    assert made.factor <= 1.05
    alone = planned(replace(wish, colluding=0.0))
    assert wish.central_mse < alone.expected_mse <= 1.05 * wish.central_mse


def test_one_honest_party_gets_local_dp() -> None:
    wish = inca.Wish(parties=10, epsilon=1.0, delta=1e-5, colluding=0.9, messages=4)
    made = planned(wish)
    assert (made.sigma_cancelling, made.factor) == (0.0, 1.0)
    assert made.sigma_independent == pytest.approx(math.sqrt(wish.var_local))


def test_the_design_does_not_depend_on_epsilon_and_noise_scales_with_sensitivity_over_mu() -> None:
    one, other = planned(), planned(replace(TINY, epsilon=0.3, sensitivity=5.0))
    assert (one.shape, one.factor) == (other.shape, other.factor)
    scale = 5.0 * one.wish.mu / other.wish.mu
    assert other.sigma_independent == pytest.approx(scale * one.sigma_independent)
    assert other.sigma_cancelling == pytest.approx(scale * one.sigma_cancelling)


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
    # 6 standard errors: even with the skewness of squares, a false alarm has a chance below 1e-6.
    made = planned()
    for rate in (0.1, 0.3):
        own = Inca(made)
        predicted = own.expected_error(rate)
        found = measure(own, np.random.default_rng(5), rate, runs=300)
        assert found.failed == 0
        assert abs(found.mse - predicted.mse) < 6 * math.hypot(found.standard_error, predicted.standard_error)


def test_parts_add_up_and_the_papers_recipe_is_the_papers() -> None:
    paper, best = planned(recipe="paper"), planned()
    wish = paper.wish
    assert str(paper.shape) == "random, 10 rounds, 1 receiver, value in shares"
    assert paper.sigma_independent**2 == pytest.approx(1.3 * wish.var_local / (20 * (1 - 0.1 - 0.1)))
    assert best.expected_mse < 0.8 * paper.expected_mse
    for made in (paper, best):
        budget = made.budget
        assert made.expected_mse == pytest.approx(budget.independent + budget.cancelling + budget.data)
        assert made.failure_probability <= wish.failure


def test_where_messages_hide_too_little_the_plan_is_local_dp_and_says_so() -> None:
    wish = replace(TINY, dropout=0.3, messages=5)
    made = planned(wish)
    assert made.factor == wish.honest and made.sigma_cancelling == 0.0
    assert "this is Local DP" in str(made) and "this is Local DP" not in str(planned())
    fresh = view(wish, made.shape, 20, 0.3, 1)
    assert inca.account(fresh, made.sigma_independent, made.sigma_cancelling).worst[1] <= wish.mu


def test_the_papers_recipe_must_hide_enough_too() -> None:
    with pytest.raises(inca.CannotMeet, match="the hidden messages fail to protect someone"):
        inca.plan(replace(SMALL, messages=2), recipe="paper", views=FEW)


def test_rounds_and_receivers_can_be_fixed() -> None:
    made = inca.plan(replace(TINY, messages=16), rounds=8, receivers=2, views=FEW)
    assert (made.shape.rounds, made.shape.receivers) == (8, 2)


@pytest.mark.slow
def test_a_plan_for_a_million_parties_uses_sub_populations_and_says_so() -> None:
    wish = inca.Wish(parties=10**6, epsilon=0.2, delta=1e-6, colluding=0.1, messages=20)
    made = inca.plan(wish, views=8)
    assert made.sampling.parties == 240 and made.sampling.checked == 0
    assert "sub-populations" in str(made) and made.structure_bound < 1e-12
    assert made.expected_mse == pytest.approx(made.factor * wish.var_local / (wish.honest * wish.parties))


def test_progress_is_told_and_ends_at_the_total() -> None:
    steps: list[tuple[int, int]] = []
    inca.plan(replace(TINY, messages=8), views=4, progress=lambda done, total: steps.append((done, total)))
    assert steps == sorted(steps) and steps[-1][0] == steps[-1][1] > 50


# --- the file ---


def test_a_plan_is_a_file_that_can_be_read_back(tmp_path: Path) -> None:
    made = planned()
    made.write(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == made
    fields = json.loads((tmp_path / "plan.json").read_text())
    for name in ("rounds", "receivers", "schedule", "injection", "sigma_independent", "sigma_cancelling"):
        assert name in fields
    for name in ("expected_mse", "central_mse", "local_mse", "failure_probability"):
        assert fields[name] > 0


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
    with pytest.raises(inca.InputError, match=sentence):
        inca.read_plan(path)


def test_a_changed_plan_is_refused(tmp_path: Path) -> None:
    fields = planned().as_dict()
    for name, value in (("quiet_rounds", 7), ("rounds", "ten"), ("wish", {"parties": 40}), ("format", "inca-plan/9")):
        (tmp_path / "plan.json").write_text(json.dumps({**fields, name: value}))
        with pytest.raises(inca.InputError, match=r"plan\.json cannot be read as a plan"):
            inca.read_plan(tmp_path / "plan.json")


def test_executions_are_held_against_the_plan() -> None:
    made = planned()
    levels = made.sigma_independent, made.sigma_cancelling
    made.check(inca.Transcript(made.execution(1), *levels))
    with pytest.raises(inca.InputError, match=r"sigma_cancelling of the execution is 1\.0, but"):
        made.check(inca.Transcript(made.execution(1), levels[0], 1.0))
    other = inca.Execution(made.shape.draw(made.wish.parties, 1), inca.early(made.shape.rounds))
    with pytest.raises(inca.InputError, match="another injection"):
        made.check(inca.Transcript(other, *levels))


# --- what the planner is for ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dropout", "of_paper", "of_gopa"), [(0.05, 0.65, 1 / 4), (0.1, 0.55, 1 / 4), (0.2, 0.45, 1 / 6)]
)
def test_the_planned_design_beats_the_papers_recipe_and_gopa(dropout: float, of_paper: float, of_gopa: float) -> None:
    wish = inca.Wish(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=dropout, messages=20)
    made, paper, gopa = inca.plan(wish), inca.plan(wish, recipe="paper"), Gopa(wish, late=0.5)
    assert made.expected_mse <= of_paper * paper.expected_mse
    assert made.expected_mse <= of_gopa * gopa.expected_error(dropout).mse
    rng, squares = np.random.default_rng(7), []
    for seed in range(1000):
        values = rng.random(200)
        presence = inca.Presence.leaving(200, made.shape.rounds, dropout, rng)
        execution = made.execution(seed, presence)
        levels = made.sigma_independent, made.sigma_cancelling
        estimate = inca.simulate(execution, values, *levels, rng).estimate
        assert isinstance(estimate, float)
        squares.append((estimate - values.mean()) ** 2)
        adversary = made.adversary(rng)
        transcript = inca.Transcript(execution, *levels, adversary.colluding, adversary.eavesdropped)
        assert inca.certify(transcript, delta=wish.delta).worst_epsilon <= wish.epsilon
    error = np.std(squares, ddof=1) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - made.expected_mse) < 6 * error  # false alarms below 1e-6
