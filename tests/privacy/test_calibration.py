from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import inca
from helpers.strategies import executions, generator, seeds
from helpers.views import adversary_of
from inca import NoiseLevels
from inca.privacy.theorems.preconditions import conditions

levels = st.floats(0.2, 20)


@given(executions(), seeds, levels, st.floats(0.05, 100))
def test_one_factorisation_gives_the_losses_at_all_levels(
    execution: inca.Execution, seed: int, own: float, ratio: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    noise_levels = NoiseLevels(independent=own, cancelling=own * ratio)
    fast, plain = (
        losses(noise_levels, sensitivity=3.0) for losses in (inca.Tradeoff(view).losses, partial(inca.account, view))
    )
    np.testing.assert_allclose(fast.mu**2, plain.mu**2, rtol=1e-8, atol=1e-10)


@given(executions(), seeds, levels, st.floats(0.1, 0.99))
def test_the_least_cancelling_noise_meets_the_target_and_less_does_not(
    execution: inca.Execution, seed: int, own: float, fraction: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    tradeoff, mu = inca.Tradeoff(view), fraction / own * 2.0
    try:
        level = tradeoff.sigma_cancelling(mu, sigma_independent=own, sensitivity=2.0)
    except inca.InvalidInput:
        assert inca.account(view, NoiseLevels(independent=own, cancelling=1e4 * own), sensitivity=2.0).max_mu > mu * (
            1 - 1e-6
        )
        return
    if 1e-5 * own < level < 1e5 * own:
        assert inca.account(view, NoiseLevels(independent=own, cancelling=level), sensitivity=2.0).max_mu <= mu * (
            1 + 1e-8
        )
        assert inca.account(view, NoiseLevels(independent=own, cancelling=level * 0.99), sensitivity=2.0).max_mu > mu


@given(executions(), seeds, levels, st.floats(0.05, 5))
def test_the_least_independent_noise_meets_the_target_and_less_does_not(
    execution: inca.Execution, seed: int, shared: float, mu: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    level = inca.Tradeoff(view).sigma_independent(mu, sigma_cancelling=shared, sensitivity=2.0)
    assert level <= 2.0 / mu * (1 + 1e-12)
    if level > 1e-4 * shared:
        assert inca.account(view, NoiseLevels(independent=level, cancelling=shared), sensitivity=2.0).max_mu <= mu * (
            1 + 1e-7
        )
        assert inca.account(view, NoiseLevels(independent=level * 0.99, cancelling=shared), sensitivity=2.0).max_mu > mu
    elif level == 0.0:
        assert inca.account(
            view, NoiseLevels(independent=1e-5 * shared, cancelling=shared), sensitivity=2.0
        ).max_mu <= mu * (1 + 1e-4)


@given(executions(), seeds, st.floats(0.05, 2), st.floats(1.02, 4))
def test_the_exact_level_is_never_above_that_of_a_theorem(
    execution: inca.Execution, seed: int, mu: float, factor: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    tradeoff = inca.Tradeoff(view)
    for theorem in conditions(view):
        if theorem.holds and theorem.factor_sharp is not None:
            own = factor * theorem.least_sigma_independent(mu)
            asked = tradeoff.sigma_cancelling_by_theorem(theorem, mu, sigma_independent=own)
            assert tradeoff.sigma_cancelling(mu, sigma_independent=own) <= asked * (1 + 1e-6)
            if 1e-5 * own < asked < 1e5 * own:
                assert inca.account(
                    view, NoiseLevels(independent=own, cancelling=asked), sensitivity=1.0
                ).max_mu <= mu * (1 + 1e-6)


def test_theorems_ask_for_more_than_is_needed_on_a_typical_run() -> None:
    execution = inca.Execution(inca.RandomReceivers(60, 12, seed=2), inca.incremental_injection(12))
    view = inca.View(execution, inca.Adversary(range(6)))
    tradeoff, mu = inca.Tradeoff(view), 0.3
    theorem = next(check for check in conditions(view) if check.name == "Theorem 2")
    own = math.sqrt(1.3) * theorem.least_sigma_independent(mu)
    exact, asked = (
        tradeoff.sigma_cancelling(mu, sigma_independent=own),
        tradeoff.sigma_cancelling_by_theorem(theorem, mu, sigma_independent=own),
    )
    assert exact < 0.999 * asked


def views(count: int, colluding: float = 0.1) -> list[inca.View]:
    drawn = []
    for seed in range(count):
        execution = inca.Execution(inca.RandomReceivers(30, 8, seed=seed), inca.incremental_injection(8))
        drawn.append(inca.View(execution, inca.Adversary.random(30, 8, generator(seed), colluding=colluding)))
    return drawn


def test_the_worst_of_many_suffices_for_all_of_them() -> None:
    several, done = views(20), list[int]()
    calibration = inca.calibrate(several, 0.3, sigma_independent=1.0, progress=done.append)
    assert done == list(range(1, 21))
    assert calibration.level == calibration.samples.max()
    noise_levels = NoiseLevels(independent=1.0, cancelling=calibration.level)
    assert max(inca.account(view, noise_levels, sensitivity=1.0).max_mu for view in several) == pytest.approx(
        0.3, rel=1e-8
    )
    other = inca.calibrate(several, 0.3, sigma_cancelling=calibration.level)
    assert other.level == pytest.approx(1.0, rel=1e-6)


def test_a_quantile_is_the_order_statistic_that_its_confidence_asks_for() -> None:
    several = views(60)
    calibration = inca.calibrate(several, 0.3, sigma_independent=1.0, quantile=0.9, confidence=0.95)
    rank = int((calibration.samples <= calibration.level).sum())
    assert binom.cdf(rank - 1, 60, 0.9) >= 0.95 > binom.cdf(rank - 2, 60, 0.9)


VIEW = views(1)[0]
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.0, sigma_independent=1.0), "mu must be above 0, got 0.0"),
    (
        lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.3, sigma_independent=0.0),
        "sigma_independent must be above 0, got 0.0",
    ),
    (lambda: inca.Tradeoff(VIEW).sigma_cancelling(0.3, sigma_independent=0.5), "sigma_independent must be above 0.6"),
    (
        lambda: inca.Tradeoff(VIEW).sigma_independent(0.3, sigma_cancelling=-1.0),
        "sigma_cancelling must be at least 0, got -1.0",
    ),
    (lambda: inca.calibrate([], 0.3, sigma_independent=1.0), "the number of views must be at least 1, got 0"),
    (lambda: inca.calibrate([VIEW], 0.3), "sigma_independent or sigma_cancelling must be given, got neither"),
    (
        lambda: inca.calibrate([VIEW], 0.3, sigma_independent=1.0, sigma_cancelling=1.0),
        "sigma_independent cannot be combined with sigma_cancelling",
    ),
    (
        lambda: inca.calibrate([VIEW], 0.3, sigma_independent=1.0, quantile=0.99, confidence=0.999),
        "the number of views must be at least 688 for quantile 0.99 at confidence 0.999, got 1",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_targets_that_local_dp_meets_need_no_cancelling_noise() -> None:
    assert inca.Tradeoff(VIEW).sigma_cancelling(0.5, sigma_independent=2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_cancelling(math.inf, sigma_independent=2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_independent(math.inf, sigma_cancelling=2.0) == 0.0
    assert inca.Tradeoff(VIEW).sigma_independent(0.5, sigma_cancelling=0.0) == pytest.approx(2.0)
