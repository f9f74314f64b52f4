"""Sigma and B as operators beside Sigma and B written down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.operators import scaled_b, scaled_sigma
from helpers.strategies import executions, generator, interrupted, seeds, settled
from helpers.views import adversary_of, incremental_ones
from inca.privacy._covariance_operator import WIDTH, covariance_operator, imitate, of_sums, workspace
from inca.privacy.view import noise_root


def compare(view: inca.View, ratio: float, topup: float) -> None:
    operator = covariance_operator(view, ratio, topup)
    root = noise_root(view, inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=topup))
    scale = operator.scale[:, np.newaxis]
    sigma, b = scaled_sigma(operator) / operator.scale / scale, scaled_b(operator, view.honest.size) / scale
    np.testing.assert_allclose(sigma, root @ root.T, rtol=1e-12, atol=1e-12 * ratio**2)
    np.testing.assert_allclose(b, view.value, rtol=1e-12, atol=1e-13)


ratios = st.sampled_from([0.2, 1.0, 30.0])


@given(executions(), seeds, ratios)
def test_without_colluders_they_are_those_of_the_system(execution: inca.Execution, seed: int, ratio: float) -> None:
    """What colluders put into messages is known, and left out; so no rows need to be the same if there are any."""
    execution = incremental_ones(execution)
    compare(inca.View(execution, adversary_of(execution, seed, colluding=0.0)), ratio, topup=0.0)


@given(settled(), seeds, ratios, st.sampled_from([0.0, 0.7]))
def test_settled_messages_too(execution: inca.Execution, seed: int, ratio: float, topup: float) -> None:
    if execution.injection.mask_scales is not None:
        compare(inca.View(execution, adversary_of(execution, seed, colluding=0.0)), ratio, topup)


@given(interrupted(), seeds, ratios)
def test_late_and_lost_shares_too(execution: inca.Execution, seed: int, ratio: float) -> None:
    """They are known; which rows differ by multiples of them is up to `View`, so that losses are compared elsewhere."""
    if execution.injection.mask_scales is not None:
        view = inca.View(execution, adversary_of(execution, seed))
        sigma = scaled_sigma(covariance_operator(view, ratio, 0.0))
        np.testing.assert_allclose(sigma, sigma.T, rtol=1e-12, atol=1e-12)
        assert np.linalg.eigvalsh(sigma).min(initial=0.0) >= -1e-12


@pytest.mark.parametrize("leaving", [0.0, 0.2])
def test_rows_have_a_variance_of_about_one(leaving: float) -> None:
    """Or else conjugate gradients need many more steps."""
    n, rounds = 300, 12
    presence = inca.Presence.leaving(n, rounds, leaving, generator(1))
    plain = inca.Execution(inca.RandomReceivers(n, rounds, 2, seed=1), inca.incremental_injection(rounds), presence)
    for execution in (plain, plain.settled(presence.row(rounds))):
        view = inca.View(execution, inca.Adversary.random(n, rounds, generator(2), colluding=0.1, eavesdropped=0.1))
        operator = covariance_operator(view, 20.0, 0.3)
        variances = np.diagonal(scaled_sigma(operator))
        assert variances.min() > 0.2 and variances.max() < 8.0


@pytest.mark.parametrize("receivers", [1, 2, 3])
def test_masks_cancel_from_the_sum_of_all_final_messages(receivers: int) -> None:
    """It tells the noise of the honest parties alone, whatever colluders and eavesdroppers know of the rest."""
    execution = inca.Execution(inca.RandomReceivers(40, 6, receivers, seed=3), inca.incremental_injection(6))
    view = inca.View(execution, inca.Adversary.random(40, 6, generator(4), colluding=0.2, eavesdropped=0.3))
    for ratio in (1.0, 1e6):
        operator = covariance_operator(view, ratio, 0.0, given_sums=True)
        np.testing.assert_allclose(operator.total, [view.honest.size], rtol=1e-12)
        assert of_sums(operator, 5) == pytest.approx(1.0 / view.honest.size)
        eigenvalues = np.linalg.eigvalsh(scaled_sigma(operator))
        assert abs(eigenvalues[0]) < 1e-13 and eigenvalues[1] > 1e-3  # nothing is left of it


@given(settled(all_publish=False), seeds, ratios, st.sampled_from([0.0, 0.7]))
def test_what_sums_tell_and_what_is_left_add_up(
    execution: inca.Execution, seed: int, ratio: float, topup: float
) -> None:
    """Sigma is what is left of it, and what it has in common with each sum; so are the columns of B."""
    if execution.injection.mask_scales is None:
        return
    view = inca.View(execution, adversary_of(execution, seed))
    whole, left = (covariance_operator(view, ratio, topup, given_sums=with_sums) for with_sums in (False, True))
    common = scaled_sigma(whole) - scaled_sigma(left)
    assert np.linalg.matrix_rank(common, tol=1e-10) <= left.total.size
    of_values = np.zeros((view.honest.size, left.total.size))
    members = np.flatnonzero(left.group >= 0)
    of_values[members, left.group[members]] = left.weights[members] / left.total[left.group[members]]
    b, rest = scaled_b(whole, view.honest.size), scaled_b(left, view.honest.size, given_sums=True)
    shared = (b - rest) @ of_values * left.total / np.maximum((of_values**2).sum(axis=0) * left.total, 1e-300)
    np.testing.assert_allclose(shared / left.total @ shared.T, common, atol=1e-10)


@given(executions(), seeds, ratios)
def test_noise_that_imitates_a_change_costs_no_less_than_the_loss(
    execution: inca.Execution, seed: int, ratio: float
) -> None:
    """However bad the solution is that it comes from, and hardly more if that is right."""
    execution = incremental_ones(execution)
    view = inca.View(execution, adversary_of(execution, seed))
    operator = covariance_operator(view, ratio, 0.0, given_sums=True)
    if not operator.height:
        return
    levels, rng = inca.NoiseLevels(independent=1.0, cancelling=ratio), generator(seed)
    losses = inca.account(view, levels, sensitivity=1.0, method="dense").mu ** 2
    parties = np.arange(view.honest.size)[:WIDTH]
    wild = rng.normal(size=(operator.height, WIDTH))
    imitated = imitate(operator, parties, wild, workspace(operator))[: parties.size]
    assert (imitated >= losses[parties] * (1.0 - 1e-9)).all()
    right = np.zeros_like(wild)
    right[:, : parties.size] = scaled_b(operator, view.honest.size, given_sums=True)[:, parties]
    solution = np.linalg.pinv(scaled_sigma(operator), rcond=1e-11, hermitian=True) @ right
    imitated = imitate(operator, parties, solution, workspace(operator))[: parties.size]
    np.testing.assert_allclose(imitated, losses[parties], rtol=1e-8, atol=1e-14)
