from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import binom

import inca
from inca import private_mean
from inca._base.types import Array
from inca.private_mean import PrivateMean

MINUTES = inca.Interval(0, 240)
A_TENTH = inca.Guarantee(epsilon=1.0, colluding=0.1, dropout=0.0)
BY_HAND = inca.ByHand(sigma_independent=5.0, sigma_cancelling=40.0)
FALSE_ALARM = 1e-6


def waiting(parties: int = 40, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(20.0, 200.0, parties)


@pytest.fixture(scope="module")
def plan() -> inca.Plan:
    requirements = inca.Requirements(
        parties=40, epsilon=2.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=10, sensitivity=240.0
    )
    return inca.plan(requirements, inca.PlanOptions(views=10))


def planned(plan: inca.Plan, **changes: Any) -> PrivateMean:
    options: dict[str, Any] = {"absences": 0.1, "rng": np.random.default_rng(3)}
    return inca.average(waiting(), MINUTES, plan, **(options | changes))


def test_it_plans_runs_accounts_and_releases() -> None:
    values = waiting()
    mean = inca.average(
        values,
        MINUTES,
        inca.Guarantee(epsilon=2.0, colluding=0.1, dropout=0.1, messages=10),
        rng=np.random.default_rng(1),
    )
    assert mean.plan is not None and mean.certificate is not None and mean.interval is not None
    assert mean.guarantee_holds and mean.certificate.worst_epsilon <= 2.0 and mean.withheld == ""
    assert isinstance(mean.estimate, float) and mean.interval[0] < mean.estimate < mean.interval[1]
    assert mean.plan.requirements.colluding == 0.1 and mean.plan.requirements.sensitivity == 240.0
    assert mean.present == 36 and len(mean.transcript.known_adversary.colluding) == 4
    assert mean.standard_error**2 == pytest.approx(mean.expected_error.noise)


def test_it_is_the_sum_of_its_parts(plan: inca.Plan) -> None:
    mean, rng = planned(plan), np.random.default_rng(3)
    seed = int(rng.integers(2**63))
    presence = inca.Presence.leaving(40, plan.design.rounds, 0.1, rng)
    execution = plan.execution(seed, presence)
    levels = plan.noise_levels_of(execution)
    outcome = inca.simulate(execution, waiting(), levels, rng)
    adversary = plan.adversary(rng)
    assert mean.estimate == outcome.estimate and mean.transcript.adversary == adversary
    transcript = inca.Transcript(
        execution,
        sigma_independent=plan.noise_levels.independent,
        sigma_cancelling=plan.noise_levels.cancelling,
        sigma_topup=levels.topup,
        adversary=adversary,
    )
    certificate = inca.certify(transcript, sensitivity=240.0, delta=1e-5)
    assert mean.certificate is not None and mean.certificate.worst_epsilon == certificate.worst_epsilon
    assert mean.expected_error == inca.expected_error(execution, levels, domain=MINUTES)


def test_the_estimate_is_withheld_if_the_guarantee_fails(plan: inca.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = plan.noise_levels
    careless = replace(
        plan, noise_levels=inca.NoiseLevels(independent=levels.independent / 20, cancelling=levels.cancelling / 20)
    )
    with pytest.raises(inca.InvalidInput, match=r"leavers must be few enough .* \(planned for: 4\), got 4"):
        planned(careless)  # with so little cancelling noise no top-up is known to suffice
    mean = planned(careless, absences=0.0)
    assert mean.guarantee_holds is False and mean.certificate is not None
    assert mean.certificate.worst_epsilon > 2.0
    assert (mean.estimate, mean.interval) == (None, None)
    assert mean.withheld == "the guarantee does not hold for this execution"
    monkeypatch.setattr(private_mean, "AUDIT_UP_TO", 39)
    unaudited = planned(careless, absences=0.0)  # what was not audited cannot vouch for anything
    assert unaudited.guarantee_holds is None and unaudited.certificate is None and unaudited.estimate is not None


def test_a_named_adversary_is_the_one_audited_against(plan: inca.Plan) -> None:
    named = inca.Adversary(colluding=[2, 3, 5, 7], eavesdropped=[(1, 0)])
    mean = planned(plan, adversary=named)
    assert mean.transcript.adversary == named
    many = planned(plan, adversary=inca.Adversary(colluding=range(39)))  # one honest party: nothing hides it
    assert many.guarantee_holds is False and many.estimate is None


def test_noise_levels_promise_nothing() -> None:
    mean = inca.average(waiting(), MINUTES, BY_HAND, rng=np.random.default_rng(1))
    assert (mean.plan, mean.certificate, mean.guarantee_holds, mean.withheld) == (None, None, None, "")
    assert mean.standard_error == pytest.approx(5.0 / np.sqrt(40))
    assert mean.transcript.execution.rounds == 20


def test_nobody_at_the_end_is_no_estimate(plan: inca.Plan) -> None:
    def empty(parties: int, rounds: int) -> inca.Presence:
        return inca.Presence.explicit([[1] * parties, *[[0] * parties] * rounds])

    mean = planned(plan, absences=empty)
    assert (mean.estimate, mean.interval, mean.present) == (None, None, 0)
    assert mean.withheld == "none of the parties was present at the end"
    assert (mean.unconstrained, mean.remarks, mean.says_nothing) == (None, (), True)


NOISY = inca.ByHand(sigma_independent=400.0, sigma_cancelling=4000.0)


def test_an_estimate_outside_the_domain_is_moved_in_and_says_so() -> None:
    """As 111.7 was printed for values in [0, 100], and -222 for four values in [0, 240], without a word."""
    percent = inca.average(
        np.full(10, 90.0),
        inca.Interval(0, 100),
        inca.ByHand(sigma_independent=100.0, sigma_cancelling=1000.0),
        rng=np.random.default_rng(17),
    )
    assert percent.unconstrained == pytest.approx(111.32, abs=0.01)
    assert percent.estimate == 100.0
    assert list(percent.interval or ()) == pytest.approx([100 - 1.959964 * 100 / 10**0.5, 100.0])
    four = inca.average([20.0, 60.0, 90.0, 130.0], MINUTES, NOISY, rng=np.random.default_rng(25))
    assert four.unconstrained == pytest.approx(-253.56, abs=0.01)
    assert (four.estimate, four.interval) == (0.0, (0.0, 240.0))
    moved = ((percent, "to 111.321, outside [0, 100]: 100 is"), (four, "to -253.556, outside [0, 240]: 0 is"))
    for mean, where in moved:
        assert mean.says_nothing
        outside, guess = mean.remarks
        assert outside == f"The noise took the estimate {where} the nearest mean there is."
        assert guess.endswith("the middle, would do as well.")


def test_a_useful_estimate_comes_without_remarks() -> None:
    mean = inca.average(waiting(), MINUTES, BY_HAND, rng=np.random.default_rng(1))
    assert not mean.says_nothing and mean.remarks == () and mean.unconstrained == mean.estimate


def test_vectors_outside_a_ball_are_scaled_to_its_surface() -> None:
    noise = inca.ByHand(sigma_independent=30.0, sigma_cancelling=300.0)
    mean = inca.average(np.eye(30), inca.Ball(1), noise, rng=np.random.default_rng(1))
    assert mean.interval is not None and mean.says_nothing and len(mean.remarks) == 2
    assert np.linalg.norm(np.asarray(mean.estimate)) == pytest.approx(1.0)
    assert np.linalg.norm(np.asarray(mean.unconstrained)) > 1.0
    low, high = (np.asarray(end) for end in mean.interval)
    assert low.shape == high.shape == (30,) and low.min() >= -1.0 and high.max() <= 1.0


def test_the_systems_randomness_is_the_default_and_never_repeats() -> None:
    runs = {inca.average(waiting(), MINUTES, BY_HAND).estimate for _ in range(3)}
    assert len(runs) == 3


@pytest.mark.parametrize(
    ("domain", "values"),
    [(MINUTES, waiting(30)), (inca.Interval(-1, 1), np.linspace(-1, 1, 60).reshape(30, 2)), (inca.Ball(2), np.eye(30))],
)
@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
def test_intervals_cover_the_mean_of_all_values(domain: Any, values: Array, dropout: float) -> None:
    """The share of coordinates covered is at least the confidence, but for FALSE_ALARM; exact if nobody leaves."""
    rng, covered, count = np.random.default_rng(5), 0, 0
    scale = domain.sensitivity(values[:1].size)
    noise = inca.ByHand(sigma_independent=scale, sigma_cancelling=4 * scale, schedule="permutation", rounds=6)
    for _ in range(100):
        mean = inca.average(values, domain, noise, absences=dropout, confidence=0.8, rng=rng)
        assert mean.interval is not None
        low, high = mean.interval
        inside = np.atleast_1d((low <= values.mean(axis=0)) & (values.mean(axis=0) <= high))
        covered, count = covered + int(inside.sum()), count + inside.size
    assert covered >= binom.ppf(FALSE_ALARM / 2, count, 0.8)
    if dropout == 0.0:
        assert covered <= binom.ppf(1 - FALSE_ALARM / 2, count, 0.8)


REFUSED: dict[str, tuple[Callable[[inca.Plan], object], str]] = {
    "no way": (
        lambda plan: inca.average(waiting(), MINUTES, cast(Any, 1.0)),
        "noise must be an inca.Guarantee, an inca",
    ),
    "half of the noise": (lambda plan: inca.ByHand(sigma_independent=1.0), "sigma_cancelling must be a standard dev"),
    "quiet early": (
        lambda plan: inca.ByHand(sigma_independent=1.0, sigma_cancelling=1.0, injection="early", quiet_rounds=1),
        "quiet_rounds cannot be combined with early injection",
    ),
    "injection": (
        lambda plan: inca.ByHand(sigma_independent=1.0, sigma_cancelling=1.0, injection=cast(Any, "late")),
        "injection must be incremental or early, got 'late'",
    ),
    "settlement": (
        lambda plan: inca.ByHand(sigma_independent=1.0, sigma_cancelling=1.0, settlement=cast(Any, "paid")),
        "settlement must be settled or none, got 'paid'",
    ),
    "no sigma": (
        lambda plan: inca.average(waiting(), MINUTES, inca.ByHand(sigma_independent=-1.0, sigma_cancelling=1.0)),
        "sigma_independent must be at least 0, got -1.0",
    ),
    "other parties": (
        lambda plan: inca.average(waiting(39), MINUTES, plan),
        "the number of parties of the plan must be one per row of values (39), got 40",
    ),
    "fewer colluders than planned": (
        lambda plan: planned(plan, adversary=inca.RandomAdversary(colluding=0.05)),
        "adversary must be at least as large as planned (RandomAdversary(colluding=0.1, eavesdropped=0.0)), got",
    ),
    "nobody colludes": (lambda plan: planned(plan, adversary=inca.Adversary()), "adversary must be at least as large"),
    "wider domain": (
        lambda plan: inca.average(waiting(), inca.Interval(0, 300), plan),
        "the sensitivity of the plan must be at least that of the domain (300), got 240.0",
    ),
    "outside": (lambda plan: inca.average([1.0, 300.0], MINUTES, BY_HAND), "values[1] must be"),
    "nan": (
        lambda plan: inca.average([1.0, np.nan], MINUTES, BY_HAND),
        "values[1] must be a finite number",
    ),
    "empty": (lambda plan: inca.average([], MINUTES, BY_HAND), "the number of values must be at least 1"),
    "one party": (lambda plan: inca.average([1.0], MINUTES, BY_HAND), "parties must be"),
    "confidence 1": (lambda plan: planned(plan, confidence=1.0), "confidence must be between 0 and 1, got 1.0"),
    "delta 0": (
        lambda plan: inca.average(waiting(), MINUTES, replace(A_TENTH, delta=0.0)),
        "delta must be between 0 and 1",
    ),
    "all collude": (
        lambda plan: inca.average(waiting(), MINUTES, replace(A_TENTH, colluding=1.0), rng=np.random.default_rng(1)),
        "colluding must be a fraction that leaves",
    ),
    "all leave": (
        lambda plan: inca.average(waiting(), MINUTES, replace(A_TENTH, dropout=1.0)),
        "dropout must be a fraction that leaves",
    ),
    "a seed for rng": (lambda plan: planned(plan, rng=7), "rng must be a numpy.random.Generator, got 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case: str, plan: inca.Plan) -> None:
    call, sentence = REFUSED[case]
    with pytest.raises(inca.InvalidInput) as refusal:
        call(plan)
    assert str(refusal.value).startswith(sentence)


def test_requirements_that_cannot_be_met_say_so() -> None:
    with pytest.raises(inca.RequirementsNotMet, match="messages"):
        inca.average(waiting(), MINUTES, inca.Guarantee(epsilon=0.5, colluding=0.5, messages=2, dropout=0.0))


def test_values_outside_are_moved_in_if_asked() -> None:
    quiet = inca.ByHand(sigma_independent=1e-9, sigma_cancelling=1.0)
    clipped = inca.average(MINUTES.validate([0.0, 300.0], clip=True), MINUTES, quiet)
    assert clipped.estimate == pytest.approx(120.0, abs=1e-6)


def test_progress_names_the_phase(plan: inca.Plan) -> None:
    phases = []
    planned(plan, progress=lambda phase, done, total: phases.append((phase, done <= total)))
    assert {phase for phase, _ in phases} == {"run", "audit"} and all(fits for _, fits in phases)
