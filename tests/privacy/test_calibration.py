from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import inca
from helpers.strategies import executions, generator, seeds
from helpers.views import adversary_of
from inca.privacy.theorems.preconditions import conditions

levels = st.floats(0.2, 20)


@given(executions(), seeds, levels, st.floats(0.05, 100))
def test_one_factorisation_gives_the_losses_at_all_levels(
    execution: inca.Execution, seed: int, own: float, ratio: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    found = inca.Tradeoff(view).losses(own, own * ratio, sensitivity=3.0)
    np.testing.assert_allclose(found.mu**2, inca.account(view, own, own * ratio, 3.0).mu ** 2, rtol=1e-8, atol=1e-10)


@given(executions(), seeds, levels, st.floats(0.1, 0.99))
def test_the_least_cancelling_noise_meets_the_target_and_less_does_not(
    execution: inca.Execution, seed: int, own: float, fraction: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    tradeoff, mu = inca.Tradeoff(view), fraction / own * 2.0
    try:
        level = tradeoff.sigma_cancelling(mu, own, sensitivity=2.0)
    except inca.InputError:
        assert inca.account(view, own, 1e4 * own, 2.0).worst[1] > mu * (1 - 1e-6)
        return
    if 1e-5 * own < level < 1e5 * own:
        assert inca.account(view, own, level, 2.0).worst[1] <= mu * (1 + 1e-8)
        assert inca.account(view, own, level * 0.99, 2.0).worst[1] > mu


@given(executions(), seeds, levels, st.floats(0.05, 5))
def test_the_least_independent_noise_meets_the_target_and_less_does_not(
    execution: inca.Execution, seed: int, shared: float, mu: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    level = inca.Tradeoff(view).sigma_independent(mu, shared, sensitivity=2.0)
    assert level <= 2.0 / mu * (1 + 1e-12)
    if level > 1e-4 * shared:
        assert inca.account(view, level, shared, 2.0).worst[1] <= mu * (1 + 1e-7)
        assert inca.account(view, level * 0.99, shared, 2.0).worst[1] > mu
    elif level == 0.0:
        assert inca.account(view, 1e-5 * shared, shared, 2.0).worst[1] <= mu * (1 + 1e-4)


@given(executions(), seeds, st.floats(0.05, 2), st.floats(1.02, 4))
def test_the_exact_level_is_never_above_that_of_a_theorem(
    execution: inca.Execution, seed: int, mu: float, factor: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    tradeoff = inca.Tradeoff(view)
    for verdict in conditions(view):
        if verdict.holds and verdict.factor_sharp is not None:
            own = factor * verdict.least_sigma_independent(mu)
            asked = tradeoff.sigma_cancelling_by_theorem(verdict, mu, own)
            assert tradeoff.sigma_cancelling(mu, own) <= asked * (1 + 1e-6)
            if 1e-5 * own < asked < 1e5 * own:
                assert inca.account(view, own, asked).worst[1] <= mu * (1 + 1e-6)


def test_theorems_ask_for_more_than_is_needed_on_a_typical_run() -> None:
    execution = inca.Execution(inca.RandomReceivers(60, 12, seed=2), inca.incremental(12))
    view = inca.View(execution, inca.Adversary(range(6)))
    tradeoff, mu = inca.Tradeoff(view), 0.3
    theorem = next(each for each in conditions(view) if each.name == "Theorem 2")
    own = math.sqrt(1.3) * theorem.least_sigma_independent(mu)
    exact, asked = tradeoff.sigma_cancelling(mu, own), tradeoff.sigma_cancelling_by_theorem(theorem, mu, own)
    assert exact < 0.999 * asked


def views(count: int, colluding: float = 0.1) -> list[inca.View]:
    made = []
    for seed in range(count):
        execution = inca.Execution(inca.RandomReceivers(30, 8, seed=seed), inca.incremental(8))
        made.append(inca.View(execution, inca.Adversary.random(30, 8, generator(seed), colluding)))
    return made


def test_the_worst_of_many_suffices_for_all_of_them() -> None:
    several, done = views(20), list[int]()
    found = inca.calibrate(several, 0.3, sigma_independent=1.0, progress=done.append)
    assert done == list(range(1, 21))
    assert found.level == found.samples.max()
    assert max(inca.account(view, 1.0, found.level).worst[1] for view in several) == pytest.approx(0.3, rel=1e-8)
    other = inca.calibrate(several, 0.3, sigma_cancelling=found.level)
    assert other.level == pytest.approx(1.0, rel=1e-6)


def test_a_quantile_is_the_order_statistic_that_its_confidence_asks_for() -> None:
    several = views(60)
    found = inca.calibrate(several, 0.3, sigma_independent=1.0, quantile=0.9, confidence=0.95)
    rank = int((found.samples <= found.level).sum())
    assert binom.cdf(rank - 1, 60, 0.9) >= 0.95 > binom.cdf(rank - 2, 60, 0.9)


VIEW = views(1)[0]
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.0, 1.0), "mu is 0.0, but a number above 0 was expected"),
    (lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.3, 0.0), "sigma_independent is 0.0, but a finite number above 0"),
    (lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.3, 0.5), "sigma_independent is 0.5, but more than 0.6"),
    (
        lambda: inca.Tradeoff(VIEW).sigma_independent(0.3, -1.0),
        "sigma_cancelling is -1.0, but a finite number of at least",
    ),
    (lambda: inca.calibrate([], 0.3, sigma_independent=1.0), "the number of views is 0, but at least 1 was expected"),
    (lambda: inca.calibrate([VIEW], 0.3), "(sigma_independent, sigma_cancelling) is (None, None), but exactly one of"),
    (
        lambda: inca.calibrate([VIEW], 0.3, sigma_independent=1.0, quantile=0.99, confidence=0.999),
        "the number of views is 1, but at least 688 for quantile 0.99 at confidence 0.999 was expected",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_targets_that_local_dp_meets_need_no_cancelling_noise() -> None:
    assert inca.Tradeoff(VIEW).sigma_cancelling(0.5, 2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_cancelling(math.inf, 2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_independent(math.inf, 2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_independent(0.5, 0.0) == pytest.approx(2.0)
