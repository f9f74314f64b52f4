from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import inca
from inca._base.kernels import Flags
from inca._base.options import Rule
from inca._base.types import Array
from inca.privacy import gaussian
from inca.privacy.gaussian import (
    compose,
    delta_for,
    epsilon_for,
    log_delta,
    mu_for,
    rule_from_file,
    rule_to_file,
)

shifts = st.floats(1e-3, 20)
budgets = st.floats(1e-3, 20)
deltas = st.floats(1e-12, 0.5)


def plain_delta(mu: float, epsilon: float) -> float:
    """The definition: the integral of the positive part of p - e^epsilon q."""
    start = mu / 2 + epsilon / mu  # where N(mu, 1) is e^epsilon times as likely as N(0, 1)
    gap = quad(lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), start, start + 40, epsabs=0, limit=200)
    return float(gap[0])


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(1.0, 1.0), (0.3, 0.1), (2.5, 0.0), (0.05, 0.01), (4.0, 6.0), (1e-3, 1e-3)]
)
def test_delta_is_the_integral_that_defines_it(mu: float, epsilon: float) -> None:
    assert float(delta_for(mu, epsilon)) == pytest.approx(plain_delta(mu, epsilon), rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.1, 1e-5), (0.2, 1e-5), (1.0, 1e-6), (3.0, 1e-8), pytest.param(10.0, 1e-10, marks=pytest.mark.slow)],
)
def test_an_independent_accountant_agrees(epsilon: float, delta: float) -> None:
    accountant = PLDAccountant()
    accountant.compose(GaussianDpEvent(1.0 / mu_for(epsilon, delta)))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-3)  # its own discretisation rounds up


def test_the_published_figures() -> None:
    """Fact F8, and the level that two other implementations give."""
    assert 1 / mu_for(0.1, 1e-5) == pytest.approx(30.749566, abs=1e-6)
    assert 1 / mu_for(0.2, 1e-5) ** 2 == pytest.approx(265.8, abs=0.05)
    assert 1 / mu_for(0.2, 1e-5, "classic") ** 2 == pytest.approx(586.8, abs=0.05)


@given(budgets, deltas)
def test_mu_and_epsilon_and_delta_undo_each_other_and_never_promise_too_much(epsilon: float, delta: float) -> None:
    mu = mu_for(epsilon, delta)
    assert float(log_delta(mu, epsilon)) <= math.log(delta)
    assert float(log_delta(mu * (1 + 1e-9), epsilon)) > math.log(delta) - 1e-6
    back = float(epsilon_for(mu, delta))
    assert back == pytest.approx(epsilon, rel=1e-7, abs=1e-12)
    assert float(log_delta(mu, back)) <= math.log(delta) + 1e-12


def bisected(mu: float, delta: float) -> float:
    """The plain search for epsilon: halve until there is no double between."""
    low, high = 0.0, 1e4
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if log_delta(mu, middle) <= math.log(delta) else (middle, high)
    return high


@given(st.lists(shifts, min_size=1, max_size=6), deltas)
def test_the_search_for_epsilon_finds_what_bisection_finds(several: list[float], delta: float) -> None:
    """Up to where rounding decides: there, both may stop at any double at which the sign changes."""
    for mu, epsilon in zip(several, epsilon_for(several, delta), strict=True):
        assert epsilon == pytest.approx(bisected(mu, delta), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("count", [1, 2, 50, 127, 128, 1000])
def test_the_least_number_is_exactly_the_threshold(count: int) -> None:
    thresholds = np.random.default_rng(count).uniform(0.0, 10.0, count) ** 3
    thresholds[0] = 0.0
    for first in (True, False):
        least = gaussian._least(
            lambda numbers: numbers >= thresholds, np.zeros(count), np.full(count, 1000.0), first=first
        )
        assert least.tolist() == thresholds.tolist()


@pytest.mark.parametrize("count", [1, 3])
def test_where_rounding_decides_the_search_errs_on_the_side_that_promises_less(count: int) -> None:
    """An epsilon is too small if anything seen above it does not keep the promise; a mu is too large if it is above
    anything that does not keep it."""
    thresholds = np.linspace(0.2, 0.3, count)

    def wavering(numbers: Array) -> Flags:
        return (numbers >= thresholds) & ~((numbers > 0.45) & (numbers < 0.55))

    for first, expected in ((True, thresholds), (False, np.full(count, 0.55))):
        least = gaussian._least(wavering, np.zeros(count), np.ones(count), first=first)
        assert least.tolist() == expected.tolist()


def test_mu_is_below_and_epsilon_above_all_that_rounding_disputes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta is too large from mu = 0.5 on, and from epsilon = 2 down, but for a stretch where it wavers."""

    def wavering(mu: Array, epsilon: Array) -> Array:
        shift, budget = np.broadcast_arrays(mu, epsilon)
        too_much = (
            (shift >= 0.5) & ~((shift > 0.55) & (shift < 0.6)) & (budget < 2.0) & ~((budget > 1.3) & (budget < 1.5))
        )
        return np.where(too_much, 0.0, -100.0)

    monkeypatch.setattr(gaussian, "log_delta", wavering)
    monkeypatch.setattr(gaussian, "_analytic_mu", gaussian._analytic_mu.__wrapped__)
    assert gaussian.mu_for(1.0, 1e-5) == np.nextafter(0.5, 0.0)
    assert gaussian.epsilon_for(1.0, 1e-5) == 2.0


@given(shifts, shifts, deltas, deltas)
def test_epsilon_grows_with_mu_and_as_delta_falls(mu: float, other: float, delta: float, less: float) -> None:
    low, high = sorted((mu, other))
    assert epsilon_for(low, delta) <= epsilon_for(high, delta)
    small, large = sorted((delta, less))
    assert epsilon_for(mu, large) <= epsilon_for(mu, small)


@given(shifts, budgets, budgets)
def test_delta_falls_with_epsilon(mu: float, epsilon: float, more: float) -> None:
    low, high = sorted((epsilon, more))
    assert log_delta(mu, high) <= log_delta(mu, low)


@given(st.floats(1e-9, 1e-2), st.floats(1e-3, 5))
def test_small_shifts_lose_no_digits(mu: float, multiple: float) -> None:
    """To first order delta is mu times the standard normal's mean excess over epsilon/mu."""
    epsilon = multiple * mu
    first_order = mu * (norm.pdf(multiple) - multiple * norm.sf(multiple))
    assert float(delta_for(mu, epsilon)) == pytest.approx(first_order, rel=4 * mu * (1 + multiple) + 1e-7)


def test_the_small_and_the_plain_branch_meet() -> None:
    for multiple in (0.0, 0.3, 2.0, 6.0):
        values = [float(log_delta(mu, multiple * 0.01)) for mu in (0.01 * (1 - 1e-12), 0.01 * (1 + 1e-12))]
        assert values[0] == pytest.approx(values[1], abs=1e-9)


@given(st.floats(1e-6, 0.99), deltas)
def test_the_analytic_rule_never_needs_more_noise_than_the_classic_one(epsilon: float, delta: float) -> None:
    assert mu_for(epsilon, delta) >= mu_for(epsilon, delta, "classic")


@given(st.floats(1e-4, 0.2), st.floats(1e-9, 1e-2))
def test_the_classic_rule_is_its_formula(mu: float, delta: float) -> None:
    epsilon = float(epsilon_for(mu, delta, "classic"))
    expected = mu * math.sqrt(2 * math.log(1.25 / delta))
    assert epsilon == (pytest.approx(expected) if expected < 1 else math.inf)
    if epsilon < 1:
        assert float(delta_for(mu, epsilon, "classic")) == pytest.approx(delta)
        assert mu_for(epsilon, delta, "classic") == pytest.approx(mu)


def test_limits_have_defined_answers() -> None:
    assert epsilon_for([0.0, 1.0, math.inf], 0.0).tolist() == [0.0, math.inf, math.inf]
    assert epsilon_for([0.0, 1.0, math.inf], 1.0).tolist() == [0.0, 0.0, 0.0]
    assert epsilon_for([0.0, math.inf], 1e-5).tolist() == [0.0, math.inf]
    assert delta_for([0.0, math.inf], 1.0).tolist() == [0.0, 1.0]
    assert delta_for([0.0, 1.0], math.inf).tolist() == [0.0, 0.0]
    assert mu_for(1.0, 0.0) == 0.0
    assert mu_for(1.0, 1.0) == mu_for(math.inf, 1e-5) == math.inf
    assert float(epsilon_for(mu_for(0.0, 1e-3), 1e-3)) == 0.0
    assert epsilon_for([0.0, 0.1], 0.0, "classic").tolist() == [0.0, math.inf]
    assert delta_for([0.0, 0.1], 1.0, "classic").tolist() == [0.0, 1.0]
    assert mu_for(0.5, 0.0, "classic") == 0.0


@given(st.lists(shifts, min_size=1, max_size=5))
def test_composition_adds_squares(several: list[float]) -> None:
    assert float(compose(*several)) == pytest.approx(math.sqrt(sum(mu * mu for mu in several)))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: mu_for(-1.0, 1e-5), "epsilon must be at least 0, got -1.0"),
    (lambda: mu_for(math.nan, 1e-5), "epsilon must be a finite number, at least 0, got nan"),
    (lambda: mu_for(1.0, 1.5), "delta must be from 0 to 1, got 1.5"),
    (lambda: mu_for(1.0, math.nan), "delta must be a finite number, from 0 to 1, got nan"),
    (
        lambda: mu_for(1.0, 1e-5, "classic"),
        "epsilon must be below 1 for the classic rule, which is proven only there, got 1.0",
    ),
    (lambda: epsilon_for(-0.1, 1e-5), "mu must be at least 0, got -0.1"),
    (lambda: epsilon_for([0.1, math.nan], 1e-5), "mu must be at least 0, got nan"),
    (lambda: mu_for(True, 1e-5), "epsilon must be a finite number, at least 0, got True"),
    (lambda: epsilon_for(0.1, "1e-5"), "delta must be a finite number, from 0 to 1, got '1e-5'"),  # type: ignore[arg-type]
    (lambda: rule_to_file("exact"), "rule must be analytic or classic, got 'exact'"),  # type: ignore[arg-type]
    (lambda: rule_from_file("analytic"), "rule must be exact or classic, got 'analytic'"),
    (lambda: delta_for(0.1, 1.0, "renyi"), "rule must be analytic or classic, got 'renyi'"),  # type: ignore[arg-type]
]


def test_files_call_the_analytic_rule_exact() -> None:
    rules: list[Rule] = ["analytic", "classic"]
    assert [rule_to_file(rule) for rule in rules] == ["exact", "classic"]
    assert [rule_from_file(rule_to_file(rule)) for rule in rules] == rules


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_many_shifts_at_once_equal_one_by_one() -> None:
    mu = np.array([[0.1, 0.2], [0.2, 3.0]])
    together = epsilon_for(mu, 1e-6)
    assert together.shape == mu.shape
    assert together.tolist() == [[float(epsilon_for(entry, 1e-6)) for entry in row] for row in mu]


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 0.5), (0.2, 0.9), (3.0, 0.1), (0.0, 0.5), (math.inf, 0.5)])
def test_the_classic_delta_is_the_papers_and_a_probability(mu: float, epsilon: float) -> None:
    plain = 0.0 if mu == 0.0 else min(1.0, 1.25 * math.exp(-((epsilon / mu) ** 2) / 2))
    assert float(delta_for(mu, epsilon, "classic")) == pytest.approx(plain)
    assert 0.0 <= float(delta_for(mu, epsilon, "classic")) <= 1.0


def test_a_file_names_a_rule_exactly_or_not_at_all() -> None:
    assert (rule_from_file("exact"), rule_from_file("classic")) == ("analytic", "classic")
    for word in ("analytic", "Exact", "exacter", "z", ""):
        with pytest.raises(inca.InvalidInput, match="rule must be exact or classic"):
            rule_from_file(word)


def exact_delta(mu: float, epsilon: float) -> arb:
    """The rule in 300 bits."""
    with ctx.workprec(300):
        shift, budget = arb(mu), arb(epsilon)
        above, below = ((budget / shift + sign * shift / 2) / arb(2).sqrt() for sign in (-1, 1))
        return above.erfc() / 2 - budget.exp() * below.erfc() / 2


@pytest.mark.parametrize("mu", [1e-3, 9.9e-3, 1.01e-2, 0.1, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.3, 2.0, 30.0])
def test_delta_has_twelve_digits_wherever_quadrature_takes_over(mu: float, epsilon: float) -> None:
    exact = exact_delta(mu, epsilon)
    if exact > 1e-280:
        with ctx.workprec(300):
            assert abs(arb(float(delta_for(mu, epsilon))) / exact - 1) < 1e-12


EXTREME_DELTAS = [0.5, 1e-5, 1e-100, 1e-300, 1e-308, 1e-320]
EXTREME_BUDGETS = [0.0, 1e-300, 1e-90, 1e-15, 1e-8, 1.0, 1e4, 1e8, 1e13, 1e30, 1e100, 1e300, 1.7e308]


@pytest.mark.parametrize("delta", EXTREME_DELTAS)
@pytest.mark.parametrize("epsilon", EXTREME_BUDGETS)
def test_no_epsilon_or_delta_is_so_extreme_that_the_noise_is_too_small(epsilon: float, delta: float) -> None:
    """At epsilon 1e-15 and delta 1e-100 rounding hid the shift: the real delta was 1e-20."""
    mu = mu_for(epsilon, delta)
    assert mu == 0.0 or mu >= 1e-100
    if mu > 0.0:
        with ctx.workprec(4000):
            shift, budget = arb(mu), arb(epsilon)
            above, below = ((budget / shift + sign * shift / 2) / arb(2).sqrt() for sign in (-1, 1))
            second = budget.exp() * below.erfc() / 2 if epsilon <= 1e8 else arb(0)  # a share of at most 1e-5 then
            assert (above.erfc() / 2 - second) / arb(delta) < 1 + (1e-9 if epsilon <= 1e8 else 1e-5)
        assert float(epsilon_for(mu, delta)) <= epsilon * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("mu", [1e8, 1e100, 1e200, 1.7e308])
def test_a_huge_loss_has_a_huge_epsilon(mu: float) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        epsilon = float(epsilon_for(mu, 1e-300))
    assert epsilon >= mu * (mu / 2)
    assert delta_for(mu, 1e30) == 1.0 or mu * mu / 2 < 1e30


def test_the_classic_rule_takes_every_delta_above_0() -> None:
    assert mu_for(0.5, 1e-320, "classic") == pytest.approx(0.5 / math.sqrt(2 * (math.log(1.25) - math.log(1e-320))))
