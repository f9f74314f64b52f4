from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np
import pytest

import inca
from helpers.paths import ROOT
from helpers.rosters import SEED, fixed_terms
from inca.errors import InvalidInput
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms, fields_from_file, from_utc, to_utc
from inca.protocol.topup import TopUp

PLAN = ROOT / "examples/waiting-times-plan.json"


def test_terms_know_their_domain_and_injection() -> None:
    box = fixed_terms()
    assert box.domain == inca.Interval(0, 1) and box.sensitivity == pytest.approx(2.0)
    ball = fixed_terms(lower=None, upper=None, radius=3)
    assert ball.domain == inca.Ball(3) and ball.sensitivity == 6.0
    assert box.injection == inca.incremental_injection(6)


def test_numbers_of_other_types_make_the_same_fixed_terms() -> None:
    other = fixed_terms(
        rounds=np.int64(6), epsilon=np.float64(1), sigma_independent=3.0, lower=np.float32(0), upper=1.0
    )
    assert other == fixed_terms() and Roster("a", other).session == Roster("a", fixed_terms()).session
    assert type(other.rounds) is int and type(other.epsilon) is float


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no rounds": ({"rounds": 0}, "rounds must be from 1 to 10000, got 0"),
    "many rounds": ({"rounds": 10_001}, "rounds must be from 1 to 10000, got 10001"),
    "half a round": ({"rounds": 1.5}, "rounds must be an integer, from 1 to 10000, got 1.5"),
    "schedule": ({"schedule": "random"}, "schedule must be circle or permutation, got 'random'"),
    "no noise": ({"sigma_independent": 0}, "sigma_independent must be above 0, got 0"),
    "no cancelling noise": ({"sigma_cancelling": 0.0}, "sigma_cancelling must be above 0, got 0.0"),
    "endless noise": ({"sigma_cancelling": float("inf")}, "sigma_cancelling must be a finite number, got inf"),
    "no dimension": ({"dimension": 0}, "dimension must be from 1 to 10000000, got 0"),
    "many dimensions": ({"dimension": 10_000_001}, "dimension must be from 1 to 10000000, got 10000001"),
    "no domain": ({"lower": None, "upper": None}, "the domain must be either lower and upper, or radius, got {"),
    "half a domain": ({"lower": None}, "the domain must be either lower and upper, or radius, got {"),
    "two domains": ({"radius": 1.0}, "the domain must be either lower and upper, or radius, got {"),
    "a domain and a half": ({"radius": 1.0, "upper": None}, "the domain must be either lower and upper, or radius"),
    "empty interval": ({"upper": 0}, "upper must be above lower (0), got 0.0"),
    "endless interval": ({"upper": float("inf")}, "upper must be a finite number, got inf"),
    "overflowing interval": ({"lower": -1e308, "upper": 1e308}, "high - low must be at most 1e+100, got inf"),
    "empty ball": ({"lower": None, "upper": None, "radius": 0}, "radius must be above 0, got 0"),
    "no distance": ({"distance": 0.0}, "distance must be above 0, got 0.0"),
    "negative distance": ({"distance": -1.0}, "distance must be above 0, got -1.0"),
    "undefined distance": ({"distance": float("nan")}, "distance must be a finite number, got nan"),
    "large distance": ({"distance": 100.0}, "distance must be at most the domain's diameter (2), got 100.0"),
    "epsilon": ({"epsilon": 0}, "epsilon must be above 0, got 0"),
    "delta 0": ({"delta": 0}, "delta must be between 0 and 1 (Gaussian noise promises nothing at 0 or 1), got 0"),
    "delta 1": ({"delta": 1}, "delta must be between 0 and 1 (Gaussian noise promises nothing at 0 or 1), got 1"),
    "delta nan": ({"delta": float("nan")}, "delta must be a finite number, got nan"),
    "rule": ({"rule": "loose"}, "rule must be analytic or classic, got 'loose'"),
    "colluding": ({"colluding": 1.1}, "colluding must be from 0 to 1, got 1.1"),
    "participants": ({"min_participants": 1}, "min_participants must be from 2 to 2147483647, got 1"),
    "start": ({"start": -1.0}, "start must be from 0 to 4.10244e+09, got -1.0"),
    "late start": ({"start": 5e9}, "start must be from 0 to 4.10244e+09, got 5000000000.0"),
    "period": ({"period": 0}, "period must be above 0, got 0"),
    "long rounds": ({"min_round_duration": 6}, "min_round_duration must be from 0 to 5, got 6"),
    "clocks": ({"max_clock_skew": 5}, "max_clock_skew must be less than half of period (10 s), got 5.0"),
    "perfect clocks": ({"max_clock_skew": 0}, "max_clock_skew must be above 0, got 0"),
    "seed": ({"seed": "xyz"}, "seed must be None, or 32 to 128 hexadecimal digits in lower case, got 'xyz'"),
    "short seed": ({"seed": SEED[2:]}, "32 to 128 hexadecimal digits"),
    "odd seed": ({"seed": SEED + "a"}, "32 to 128 hexadecimal digits"),
    "long seed": ({"seed": SEED * 4 + "00"}, "32 to 128 hexadecimal digits"),
    "upper-case seed": ({"seed": SEED.upper()}, "32 to 128 hexadecimal digits"),
    "seed of another type": ({"seed": 10**33}, "32 to 128 hexadecimal digits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_terms_that_make_no_sense_are_refused(case: str) -> None:
    changes, sentence = REFUSED[case]
    with pytest.raises(InvalidInput) as caught:
        fixed_terms(**changes)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_distance_is_what_is_protected() -> None:
    assert fixed_terms(distance=0.25).sensitivity == 0.25
    assert fixed_terms().sensitivity == fixed_terms().domain.sensitivity(fixed_terms().dimension)
    assert "distance" not in fixed_terms().as_dict()


def test_the_file_has_names_of_its_own() -> None:
    agreed = fixed_terms(min_round_duration=0.5)
    fields = agreed.as_dict()
    assert (fields["pace"], fields["clock_bound"], fields["least_cohort"], fields["rule"]) == (0.5, 0.5, 3, "exact")
    assert not {"min_round_duration", "max_clock_skew", "min_participants"} & set(fields)


@pytest.mark.parametrize("start", [0.0, 1894694400.0, 1894694400.123456789, 2.0**31 + 1 / 3, 4.1e9 + 1e-6])
def test_times_are_written_to_the_microsecond(start: float) -> None:
    assert from_utc(to_utc(start)) == pytest.approx(start, abs=6e-7, rel=0)
    assert to_utc(from_utc(to_utc(start))) == to_utc(start) and to_utc(start).endswith("Z")


def test_terms_from_a_plan() -> None:
    plan = inca.read_plan(PLAN)
    rest: dict[str, Any] = {"start": 1.9e9, "period": 10, "max_clock_skew": 1, "min_participants": 950}
    agreed = Terms.from_plan(plan, dimension=1, lower=0, upper=240, **rest)
    assert (agreed.rounds, agreed.schedule) == (4, "permutation")
    assert agreed.injection == plan.design.injection() and agreed.sensitivity == plan.requirements.sensitivity
    assert agreed.noise_levels == plan.noise_levels and agreed.failure == plan.failure_probability > 0.0
    assert agreed.sigma_together == plan.topup.together and agreed.topup(1000) == plan.topup
    assert agreed.sigma_at_full_attendance(1000) == plan.noise_levels.independent
    assert (agreed.epsilon, agreed.delta, agreed.rule, agreed.colluding) == (1.0, 1e-5, "analytic", 0.1)
    assert (agreed.seed, agreed.min_participants) == (None, 950)
    ball = Terms.from_plan(plan, dimension=9, radius=120, seed=SEED, **rest)
    assert (ball.domain, ball.seed) == (inca.Ball(120), SEED)
    with pytest.raises(InvalidInput, match=r"the plan's sensitivity must be the domain's \(480\), got 240\.0"):
        Terms.from_plan(plan, dimension=4, lower=0, upper=240, **rest)
    with pytest.raises(InvalidInput, match=r"the plan's sensitivity must be the domain's \(239\), got 240\.0"):
        Terms.from_plan(plan, dimension=1, lower=0, upper=239, **rest)
    early = dataclasses.replace(plan, design=dataclasses.replace(plan.design, kind="early", quiet=0))
    with pytest.raises(InvalidInput, match="the injection of the plan must be incremental, got 'early'"):
        Terms.from_plan(early, dimension=1, lower=0, upper=240, **rest)


@pytest.mark.parametrize("failure", [None, 0.0, 1e-6])
def test_a_failure_of_0_is_written_and_an_unknown_one_is_not(failure: float | None) -> None:
    fields = fixed_terms(failure=failure).as_dict()
    assert ("failure" in fields) == (failure is not None) and fields.get("failure") == failure
    again = msgspec.convert(fields_from_file(fields), Terms)
    assert again.failure == failure and again.agreed.failure == failure


WHEN: dict[str, Any] = {"start": 1.9e9, "period": 10, "max_clock_skew": 1, "min_participants": 950}


def test_plans_of_runs_that_do_not_settle_are_refused() -> None:
    unsettled = inca.plan(inca.Requirements(5, 1.0, messages=4), inca.PlanOptions(recipe="paper", views=2))
    sentence = "the settlement of the plan must be settled, as sessions settle, got 'none'"
    with pytest.raises(InvalidInput, match=sentence):
        Terms.from_plan(unsettled, dimension=1, lower=0, upper=240, **WHEN)


def test_plans_against_eavesdroppers_are_refused() -> None:
    """Nobody would check the promise against them: a party's own check knows colluders alone."""
    plan = inca.read_plan(PLAN)
    tapped = dataclasses.replace(plan, requirements=dataclasses.replace(plan.requirements, eavesdropped=0.01))
    with pytest.raises(InvalidInput) as caught:
        Terms.from_plan(tapped, dimension=1, lower=0, upper=240, **WHEN)
    assert str(caught.value).startswith("the eavesdropped fraction of the plan must be 0: messages of a session are")
    assert str(caught.value).endswith("against colluders alone, got 0.01") and "\n" not in str(caught.value)


def test_top_up_is_in_the_file_only_if_there_is_any() -> None:
    assert "sigma_together" not in fixed_terms().as_dict() and fixed_terms().topup(3).sigma([1.0, 0.5]) == 0.0
    some = fixed_terms(sigma_together=8)
    assert some.as_dict()["sigma_together"] == 8.0 and some.topup(11) == TopUp(8.0, 3.0, colluders=2)
    assert some.sigma_at_full_attendance(11) == 3.0 < some.sigma_at_full_attendance(8)  # 9 * 9 > 64 > 7 * 9
    assert Roster("a", some).session != Roster("a", fixed_terms()).session
    for level in (-0.1, float("nan")):
        with pytest.raises(InvalidInput, match="sigma_together must be"):
            fixed_terms(sigma_together=level)


def test_fewer_parties_have_as_many_colluders_and_need_as_much_noise_together() -> None:
    agreed = fixed_terms(sigma_together=8)
    fewer = agreed.with_fewer(11, 8)
    assert fewer.topup(8) == agreed.topup(11) and fewer.topup(8).sigma([1.0] * 8) > 0.0
