from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
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
from inca.privacy.calibration import _order_statistic, _root
from inca.privacy.theorems.preconditions import conditions, shifts

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


# --- the steps of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [3e-7, 0.02, 1.0, 40.0, 1e9])
@pytest.mark.parametrize("guess", [1.0, 30.0])
def test_a_root_is_found_from_any_guess_and_rounded_up_by_a_billionth(root: float, guess: float) -> None:
    level = _root(lambda x: root / x - 1.0, guess)
    assert root < level <= root * (1 + 2e-9)


def test_a_level_too_small_to_matter_is_none() -> None:
    assert _root(lambda x: -1.0, 1.0) == 0.0
    assert _root(lambda x: 1e-14 / x - 1.0, 1.0) == 0.0
    assert _root(lambda x: 1e-11 / x - 1.0, 1.0) > 0.0


@given(st.integers(1, 40), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.51, 0.9, 0.99]), seeds)
def test_an_order_statistic_is_the_least_that_its_confidence_allows(
    count: int, quantile: float, confidence: float, seed: int
) -> None:
    """By the binomial sum itself: fewer than r of N samples lie below the quantile with the stated confidence."""
    levels = generator(seed).normal(size=count)
    chances = [math.comb(count, b) * quantile**b * (1 - quantile) ** (count - b) for b in range(count + 1)]
    ranks = [r for r in range(1, count + 1) if sum(chances[:r]) >= confidence]
    if ranks:
        assert _order_statistic(levels, quantile, confidence) == np.sort(levels)[ranks[0] - 1]
    else:
        with pytest.raises(inca.InvalidInput, match="the number of views must be at least"):
            _order_statistic(levels, quantile, confidence)
    assert _order_statistic(levels, 1.0, confidence) == levels.max()


def test_no_number_of_views_makes_a_quantile_certain() -> None:
    with pytest.raises(inca.InvalidInput, match=r"the number of views must be at least inf for quantile 0\.5"):
        _order_statistic(np.ones(5), 0.5, 1.0)


def test_losses_scale_with_the_sensitivity_and_need_independent_noise() -> None:
    tradeoff = inca.Tradeoff(VIEW)
    noise_levels = NoiseLevels(independent=1.5, cancelling=7.0)
    once = tradeoff.losses(noise_levels)
    assert once.method == "tradeoff" and once.honest.tolist() == VIEW.honest.tolist()
    np.testing.assert_allclose(tradeoff.losses(noise_levels, sensitivity=4.0).mu, 4.0 * once.mu)
    np.testing.assert_allclose(once.mu, inca.account(VIEW, noise_levels, sensitivity=1.0).mu, rtol=1e-6)
    assert tradeoff.losses(noise_levels, sensitivity=0.0).max_mu == 0.0
    with pytest.raises(inca.InvalidInput, match=r"sensitivity must be at least 0, got -1\.0"):
        tradeoff.losses(noise_levels, sensitivity=-1.0)
    with pytest.raises(inca.InvalidInput, match=r"sigma_independent must be above 0, got 0\.0"):
        tradeoff.losses(NoiseLevels(independent=0.0, cancelling=7.0))


def test_how_far_values_move_is_what_noise_is_found_for() -> None:
    tradeoff = inca.Tradeoff(VIEW)
    once = tradeoff.sigma_cancelling(0.3, sigma_independent=1.0)
    assert tradeoff.sigma_cancelling(0.6, sigma_independent=1.0, sensitivity=2.0) == pytest.approx(once)
    assert tradeoff.sigma_cancelling(0.3, sigma_independent=2.0, sensitivity=2.0) == pytest.approx(2.0 * once)
    own = tradeoff.sigma_independent(0.3, sigma_cancelling=5.0)
    assert tradeoff.sigma_independent(0.3, sigma_cancelling=10.0, sensitivity=2.0) == pytest.approx(2.0 * own)
    assert tradeoff.sigma_cancelling(0.3, sigma_independent=1.0, sensitivity=0.0) == 0.0
    assert tradeoff.sigma_independent(0.3, sigma_cancelling=1.0, sensitivity=0.0) == 0.0
    calibrated = inca.calibrate([VIEW], 0.6 / 2.0, sigma_independent=1.0)
    assert calibrated.level == pytest.approx(once) and (calibrated.quantile, calibrated.confidence) == (1.0, 0.999)
    assert inca.calibrate([VIEW], 0.6 / 4.0, sigma_cancelling=10.0).level == pytest.approx(2.0 * own)


def test_the_level_that_a_refusal_names_is_where_noise_begins_to_suffice() -> None:
    tradeoff = inca.Tradeoff(VIEW)
    with pytest.raises(inca.InvalidInput) as refused:
        tradeoff.sigma_cancelling(0.3, sigma_independent=0.1, sensitivity=2.0)
    least = float(str(refused.value).split("above ")[1].split()[0])
    assert least == pytest.approx(2.0 / 0.3 / math.sqrt(27), rel=1e-5)  # 27 honest parties hide one another
    assert tradeoff.sigma_cancelling(0.3, sigma_independent=1.01 * least, sensitivity=2.0) > 0.0
    with pytest.raises(inca.InvalidInput):
        tradeoff.sigma_cancelling(0.3, sigma_independent=0.99 * least, sensitivity=2.0)


def test_each_partys_least_ratio_meets_its_target_exactly() -> None:
    """At unit independent noise, held against the accountant."""
    targets = np.array([0.08, 0.3, 1.0])
    ratios = inca.Tradeoff(VIEW).least_ratios(targets)
    assert ratios.shape == (3, VIEW.honest.size) and not ratios[2].any()
    for target, row in zip(targets[:2], ratios[:2], strict=True):
        for place in range(0, VIEW.honest.size, 5):
            noise_levels = NoiseLevels(independent=1.0, cancelling=math.sqrt(row[place]))
            square = inca.account(VIEW, noise_levels, sensitivity=1.0).mu[place] ** 2
            assert square == pytest.approx(target, rel=2e-3)  # interpolated


def test_a_theorem_that_fails_or_asks_for_more_own_noise_tells_no_level() -> None:
    tradeoff = inca.Tradeoff(VIEW)
    checks = {check.name: check for check in conditions(VIEW)}
    least = checks["Theorem 2"].least_sigma_independent(0.3)
    with pytest.raises(inca.InvalidInput, match=r"sigma_independent must be above .* for Theorem 2"):
        tradeoff.sigma_cancelling_by_theorem(checks["Theorem 2"], 0.3, sigma_independent=0.999 * least)
    failed = replace(checks["Theorem 2"], holds=False)
    with pytest.raises(inca.InvalidInput, match="Theorem 2 must hold to tell the noise"):
        tradeoff.sigma_cancelling_by_theorem(failed, 0.3, sigma_independent=2 * least)
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0], [-1]]] * 2), inca.incremental_injection(2))
    apart, together = inca.View(execution), inca.Execution(inca.complete_graph(3, 2), inca.incremental_injection(2))
    theorem = next(check for check in conditions(inca.View(together)) if check.name == "Theorem 2")
    with pytest.raises(inca.InvalidInput, match="Theorem 2 must be that of this view"):
        inca.Tradeoff(apart).sigma_cancelling_by_theorem(theorem, 0.3, sigma_independent=10.0)


@pytest.mark.parametrize("name", ["Theorem 2", "Theorem 3", "Theorem 4"])
def test_a_theorems_level_is_that_of_the_shortest_noise_that_hides_its_changes(name: str) -> None:
    """B f + A Delta = 0 by a least-squares solver; then |Delta|^2 / sigma^2 is what the target leaves for it."""
    theorem = next(check for check in conditions(VIEW) if check.name == name)
    changes = VIEW.value @ shifts(VIEW, theorem).T
    hidden = np.linalg.lstsq(VIEW.noise, -changes, rcond=1e-12)[0]
    np.testing.assert_allclose(VIEW.noise @ hidden, -changes, atol=1e-9)
    own, mu, far = 3.0, 0.4, 2.0
    assert theorem.factor_sharp is not None
    left = (mu / far) ** 2 - theorem.factor_sharp / own**2
    expected = math.sqrt(float((hidden**2).sum(axis=0).max()) / left)
    level = inca.Tradeoff(VIEW).sigma_cancelling_by_theorem(theorem, mu, sigma_independent=own, sensitivity=far)
    assert level == pytest.approx(expected, rel=1e-6)
