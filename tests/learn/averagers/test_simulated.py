"""Budgets add up, and every averager releases what was asked for with the noise that it says."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import inca
from inca import Conditions
from inca.errors import BudgetExceeded, InvalidInput, RequirementsNotMet
from inca.learn.averagers.simulated import KINDS, SimulatedAverager, calibrated
from inca.learn.budget import Budget
from inca.mechanisms.base import ExpectedError, Mechanism
from inca.mechanisms.central_local import CentralDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.mechanisms.muffliato import Muffliato
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels

FALSE_ALARM = 1e-6
weights = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6)


# --- budgets ----------------------------------------------------------------------------------------------------------


@given(st.floats(0.05, 8.0), st.floats(1e-9, 0.01), weights)
def test_parts_use_up_the_whole_and_no_more(epsilon: float, delta: float, parts: list[float]) -> None:
    budget = Budget(epsilon, delta)
    for mu in budget.split(parts):
        budget.spend(mu)
    assert budget.spent == pytest.approx(budget.mu) and budget.epsilon_spent == pytest.approx(epsilon, rel=1e-6)
    with pytest.raises(BudgetExceeded, match=r"must be at most .* left of the budget"):
        budget.spend(0.01 * budget.mu)


def test_what_is_refused_takes_nothing() -> None:
    budget = Budget(1.0, 1e-5)
    budget.spend(budget.part(0.9))
    before = budget.spent
    with pytest.raises(BudgetExceeded, match="epsilon 1 at delta 1e-05"):
        budget.spend(budget.part(0.2))
    assert budget.spent == before and budget.left == pytest.approx(budget.part(0.1))


def test_the_composed_epsilon_is_an_independent_accountants() -> None:
    budget, accountant = Budget(3.0, 1e-5), PLDAccountant()
    for mu in budget.split([1.0, 2.0, 4.0]):
        budget.spend(mu)
        accountant.compose(dp_event.GaussianDpEvent(1.0 / mu))
        theirs = accountant.get_epsilon(1e-5)
        assert budget.epsilon_spent <= theirs + 1e-9  # theirs is rounded up
        assert budget.epsilon_spent == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Budget(0.0, 1e-5), "epsilon must be .*got 0"),
        (lambda: Budget(math.nan, 1e-5), "epsilon must be .*got nan"),
        (lambda: Budget(1.0, 0.0), "must be a guarantee that Gaussian noise can give"),
        (lambda: Budget(1.0, 1.0), "must be a guarantee that Gaussian noise can give"),
        (lambda: Budget(1.0, 2.0), "delta must be .*got 2"),
        (lambda: Budget(1.0, 1e-5).split([]), "weights must be at least one number, all above 0"),
        (lambda: Budget(1.0, 1e-5).split([1.0, 0.0]), "weights must be at least one number, all above 0"),
        (lambda: Budget(1.0, 1e-5).spend(0.0), "mu must be .*got 0"),
        (lambda: Budget(1.0, 1e-5).part(1.5), "fraction must be .*got 1.5"),
        (lambda: SimulatedAverager.of("server", 10), "kind must be one of inca.*, got 'server'"),
        (lambda: SimulatedAverager.of("central", 1), "parties must be .*got 1"),
        (
            lambda: SimulatedAverager.of("central", 10, Conditions(dropout=1.0, colluding=0.0)),
            "dropout must be .*got 1",
        ),
        (lambda: SimulatedAverager.of("central", 10, releases=0), "releases must be at least 1, got 0"),
        (lambda: SimulatedAverager.of("central", 10, releases=2.5), "releases must be .*got 2.5"),  # type: ignore[arg-type]
        (
            lambda: SimulatedAverager.of("central", 10, Conditions(failure=0.0, colluding=0.0, dropout=0.0)),
            "failure must be between 0 and 1, got 0.0",
        ),
        (
            lambda: SimulatedAverager.of(
                "central", 10, Conditions(failure=1.0, colluding=0.0, dropout=0.0), releases=5
            ),
            "failure must be between 0 and 1, got 1.0",
        ),
        (
            lambda: SimulatedAverager.of("central", 10, Conditions(failure=math.nan, colluding=0.0, dropout=0.0)),
            "failure must be .*got nan",
        ),
        (
            lambda: SimulatedAverager(
                CentralDP(inca.Requirements(10, 1.0, 1e-5, sensitivity=2.0, colluding=0.0, dropout=0.0))
            ),
            "the sensitivity of the mechanism",
        ),
    ],
)
def test_bad_budgets_and_averagers_are_refused(make: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(")):
        make()  # type: ignore[operator]


# --- averagers ------------------------------------------------------------------------------------------------------


@cache
def averager(kind: str, dropout: float = 0.0, releases: int = 1) -> SimulatedAverager:
    return SimulatedAverager.of(kind, 12, Conditions(colluding=0.1, dropout=dropout, messages=12), releases=releases)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dropout", [0.0, 0.16])
def test_the_noise_is_what_is_said(kind: str, dropout: float) -> None:
    """With equal vectors the error is noise alone; the mean over runs of its square has normal limits."""
    noisy = averager(kind, dropout)
    rng, d, runs = np.random.default_rng(3), 30, 100
    vectors = np.full((12, d), 2.0)
    squares = np.empty(runs)
    for run in range(runs):
        average = noisy.average(vectors, sensitivity=3.0, mu=0.7, rng=rng)
        assert average.estimate is not None and average.mu == 0.7
        squares[run] = np.mean((average.estimate - 2.0) ** 2)
    off = (squares.mean() - average.var_noise) / (squares.std(ddof=1) / math.sqrt(runs))
    # Beside what is measured here, what is said of inca under dropouts is itself a mean over sampled executions.
    predicted = noisy.mechanism.expected_error(dropout)
    doubt = predicted.standard_error / predicted.mse * average.var_noise / (squares.std(ddof=1) / math.sqrt(runs))
    assert abs(off) < norm.isf(FALSE_ALARM / 2) * math.hypot(1.0, doubt)


@pytest.mark.parametrize("kind", KINDS)
def test_without_limits_it_is_the_plain_mean(kind: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(12, 5))
    average = averager(kind).average(vectors, sensitivity=1.0, mu=1e9, rng=np.random.default_rng(2))
    np.testing.assert_allclose(average.estimate, vectors.mean(axis=0), atol=1e-6)  # type: ignore[arg-type]


@given(st.floats(0.01, 100.0), st.floats(0.01, 10.0))
def test_noise_follows_sensitivity_over_mu(sensitivity: float, mu: float) -> None:
    central = averager("central")
    assert central.var_noise(sensitivity, mu) == pytest.approx((sensitivity / (12 * mu)) ** 2)


def test_without_dropouts_inca_is_near_central_dp_and_far_below_local_dp() -> None:
    own, central, local = (averager(kind).var_noise(1.0, 1.0) for kind in ("inca", "central", "local"))
    assert central <= own < 1.5 * central < local


@pytest.mark.parametrize("kind", KINDS)
def test_all_releases_together_have_the_probability_of_failure(kind: str) -> None:
    """Noise hardly falls: a smaller probability is further out in the same tail."""
    once, often = averager(kind, 0.16), averager(kind, 0.16, releases=1000)
    assert (once.mechanism.requirements.failure, often.mechanism.requirements.failure) == (1e-6, 1e-6 / 1000)
    least, most = (calibrated.var_noise(1.0, 1.0) for calibrated in (once, often))
    # Where both are few, GOPA joins all pairs or is Local DP; CorDP-DME, Central and Local DP cannot fail so.
    assert least <= 1.02 * most
    chosen = SimulatedAverager.of(
        kind, 12, Conditions(messages=8, failure=1e-4, colluding=0.0, dropout=0.0), releases=20
    )
    assert chosen.mechanism.requirements.failure == 1e-4 / 20


# --- what is promised -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["inca", "gopa"])
def test_a_dropout_that_the_noise_is_not_planned_for_is_refused(kind: str) -> None:
    """More early leavers mean more loss: up to 1.19 of what is claimed was seen."""
    mechanism = averager(kind, 0.16).mechanism  # two of twelve
    for dropout in (0.0, 0.05, 0.1, 0.16):  # 0.1 is two of twelve as well
        assert SimulatedAverager(mechanism, dropout).dropout == dropout
    with pytest.raises(InvalidInput, match=r"dropout must be at most 0\.16, which the mechanism's noise is planned"):
        SimulatedAverager(mechanism, 0.25)


@pytest.mark.parametrize("kind", ["central", "local", "cordp"])
def test_a_guarantee_that_does_not_depend_on_leavers_holds_at_any_dropout(kind: str) -> None:
    assert SimulatedAverager(averager(kind).mechanism, 0.5).dropout == 0.5


class Quiet(CentralDP):
    """Half of the noise that is needed."""

    def expected_error(self, dropout: float) -> ExpectedError:
        exact = super().expected_error(dropout).budget
        return ExpectedError(ErrorBudget(exact.independent / 4.0, 0.0, exact.data))


class Careless(CentralDP):
    promised = False


REQUIREMENTS = inca.Requirements(16, 1.0, 1e-5, colluding=0.0, dropout=0.0)
EAVESDROPPED = inca.Requirements(16, 1.0, 1e-5, eavesdropped=0.5, colluding=0.0, dropout=0.0)
LITTLE = NoiseLevels(independent=0.01, cancelling=0.0)
PROMISE = "the mechanism must be one that promises its epsilon to every party"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Muffliato(REQUIREMENTS), PROMISE),
        (
            lambda: Gopa(REQUIREMENTS, noise_levels=LITTLE),
            PROMISE,
        ),
        (
            lambda: CorDP(REQUIREMENTS, noise_levels=LITTLE),
            PROMISE,
        ),
        (lambda: Careless(REQUIREMENTS), PROMISE),
        (lambda: CentralDP(EAVESDROPPED), "the mechanism must be .* also if values are eavesdropped"),
        (lambda: Quiet(REQUIREMENTS), r"the noise of the mechanism must be at least 0\.\d+, got 0"),
    ],
)
def test_a_mechanism_that_promises_nothing_is_refused(make: Callable[[], Mechanism], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        SimulatedAverager(make()).average(np.ones((16, 2)), 1.0, 1.0, np.random.default_rng(1))


def test_the_probability_of_failure_is_that_of_one_release() -> None:
    mechanism = averager("gopa").mechanism
    assert SimulatedAverager(mechanism).failure_probability == 1e-6 and SimulatedAverager(mechanism).releases == 1
    many = SimulatedAverager(mechanism, releases=50)
    assert many.failure_probability == pytest.approx(1e-6) and many.releases == 50
    for kind in ("inca", "central", "local", "cordp"):  # so few parties are a circle, which is certain
        assert averager(kind, releases=1000).failure_probability == 0.0 and averager(kind).releases is None


def test_releases_of_a_plan_with_too_few_messages_are_refused() -> None:
    """In six messages 4.1e-9 of the parties meet colluders alone, 1.9e-5 in any of 4,600 averages; 1e-6 was stated."""
    with pytest.raises(RequirementsNotMet, match=r"5 rounds are too few .*: \d+ are needed"):
        SimulatedAverager.of("inca", 1000, Conditions(colluding=0.2, messages=6, dropout=0.0), releases=4600)
    enough = SimulatedAverager.of("inca", 1000, Conditions(colluding=0.2, messages=10, dropout=0.0), releases=4600)
    assert 0.0 < (enough.failure_probability or 0.0) <= 1e-6 / 4600


def test_the_probability_of_failure_is_the_plans() -> None:
    plan = inca.plan(inca.Requirements(100, 1.0, 1e-5, colluding=0.1, dropout=0.1))
    assert Inca(plan).failure_probability == plan.failure_probability < plan.requirements.failure
    assert SimulatedAverager(Inca(plan), releases=3).failure_probability == pytest.approx(plan.failure_probability)


def test_a_tenth_may_collude_and_leave_if_nothing_is_said_and_nobody_does() -> None:
    for averager in (SimulatedAverager.of("inca", 40), SimulatedAverager.of("inca", 40, Conditions())):
        requirements = averager.mechanism.requirements
        assert (requirements.colluders, requirements.leavers, averager.dropout) == (4, 4, 0.0)


def test_no_number_of_an_average_is_shown_when_it_is_printed() -> None:
    average = averager("central").average(np.full((12, 2), 7.25), 1.0, 1e9, np.random.default_rng(1))
    assert repr(average) == "VectorMean(shape=(2,), mu=1e+09)"


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (np.ones((11, 3)), "the number of vectors must be 12, one for each party, got 11"),
        (np.ones(12), "vectors"),
        (np.full((12, 2), np.nan), "nan"),
        (np.full((12, 2), np.inf), "inf"),
    ],
)
def test_bad_vectors_are_refused(vectors: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        averager("central").average(vectors, 1.0, 1.0, np.random.default_rng(1))  # type: ignore[arg-type]


@pytest.mark.parametrize(("sensitivity", "mu"), [(0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, -1.0)])
def test_a_release_without_noise_or_loss_is_refused(sensitivity: float, mu: float) -> None:
    with pytest.raises(InvalidInput):
        averager("central").average(np.ones((12, 2)), sensitivity, mu, np.random.default_rng(1))


def test_a_plan_is_made_once() -> None:
    setting = ("inca", 6, Conditions(colluding=0.0, dropout=0.0))
    averager = calibrated(*setting, releases=3)
    assert calibrated(*setting, releases=3) is averager
    assert calibrated(*setting, releases=4) is not averager


def test_only_the_last_few_plans_are_kept() -> None:
    first = calibrated("local", 5, Conditions(colluding=0.0, dropout=0.0))
    for parties in range(6, 26):
        calibrated("local", parties, Conditions(colluding=0.0, dropout=0.0))
    assert calibrated("local", 25, Conditions(colluding=0.0, dropout=0.0)) is calibrated(
        "local", 25, Conditions(colluding=0.0, dropout=0.0)
    )
    assert calibrated("local", 5, Conditions(colluding=0.0, dropout=0.0)) is not first
