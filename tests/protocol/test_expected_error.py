from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers import reference
from helpers.executions import fates, offers, present_flags
from helpers.strategies import executions, generator, interrupted, seeds
from inca.protocol.expected_error import sum_coefficients, sum_coefficients_by_term


def plain_coefficients(execution: inca.Execution) -> tuple[np.ndarray, np.ndarray]:
    """Push every party's unit value and unit noise terms through the effective weight matrices."""
    n, rounds = execution.parties, execution.rounds
    value, noise = np.zeros(n), np.zeros(n)
    matrices = [execution.weights(t).toarray() for t in range(1, rounds + 1)]
    for i in range(n):
        c, z = execution.coefficients(i)
        y = np.zeros((n, rounds + 1))
        y[i] = np.concatenate([[c[0]], z[0]])
        for t in range(1, rounds + 1):
            y = matrices[t - 1] @ y
            y[i] += np.concatenate([[c[t]], z[t]])
        final = y[execution.published].sum(axis=0)
        value[i], noise[i] = final[0], np.square(final[1:]).sum()
    return value, noise


@given(executions())
def test_adjoint_equals_pushing_every_term_forward(execution: inca.Execution) -> None:
    value, noise = plain_coefficients(execution)
    coefficients = sum_coefficients(execution)
    assert np.allclose(coefficients.value, value, rtol=0, atol=1e-12)
    assert np.allclose(coefficients.noise_squared, noise, rtol=1e-9, atol=1e-9)
    assert coefficients.value.sum() == pytest.approx(execution.weight, abs=1e-12)


@given(executions(all_at_end=True))
def test_without_permanent_leavers_no_cancelling_noise_is_left(execution: inca.Execution) -> None:
    budget = inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=1e3))
    assert budget.total == pytest.approx(0.0, abs=1e-9)


@given(executions(), seeds)
def test_values_priors_and_worst_case_are_consistent(execution: inca.Execution, seed: int) -> None:
    if execution.weight < 1e-9:
        return
    domain, rng = inca.Interval(-1, 3), generator(seed)
    worst = inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), domain=domain)
    for _ in range(5):
        values = rng.uniform(-1, 3, execution.parties)
        budget = inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), values=values)
        noiseless = inca.simulate(execution, values, inca.NoiseLevels(independent=0.0, cancelling=0.0), rng).estimate
        assert budget.data == pytest.approx((noiseless - values.mean()) ** 2, abs=1e-9)
        assert budget.total <= worst.total + 1e-9
        assert budget.noise == worst.noise
    extreme = np.where(sum_coefficients(execution).value / execution.weight > 1 / execution.parties, 3.0, -1.0)
    assert inca.expected_error(
        execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), values=extreme
    ).data == pytest.approx(worst.data, abs=1e-9)


@given(executions(), st.integers(2, 4))
def test_vectors_sum_their_coordinates(execution: inca.Execution, d: int) -> None:
    scalar = inca.expected_error(
        execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), domain=inca.Interval(0, 1)
    )
    vector = inca.expected_error(
        execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), dimensions=d, domain=inca.Interval(0, 1)
    )
    assert vector.total == pytest.approx(d * scalar.total)
    ball = inca.expected_error(
        execution, inca.NoiseLevels(independent=1.0, cancelling=2.0), dimensions=d, domain=inca.Ball(0.5)
    )
    assert ball.data == pytest.approx(scalar.data)


def test_variance_prior_is_the_mean_over_random_values() -> None:
    """A mean of 20,000 squared normals of known variance: chi-square, false alarms 1e-6."""
    n, rounds, runs = 30, 5, 20_000
    presence = inca.Presence.leaving(n, rounds, 0.3, generator(1))
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=2), inca.incremental_injection(rounds), presence)
    budget = inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=0.0), variance=4.0)
    values = generator(3).normal(10.0, 2.0, size=(n, runs))
    estimates = inca.simulate(
        execution, values, inca.NoiseLevels(independent=0.0, cancelling=0.0), generator(4)
    ).estimate
    ratio = np.square(estimates - values.mean(axis=0)).mean() / budget.total
    assert abs(ratio - 1) < 5 * np.sqrt(2 / runs)


def test_error_grows_with_noise_and_needs_one_prior() -> None:
    presence = inca.Presence.leaving(30, 5, 0.3, generator(1))
    execution = inca.Execution(inca.RandomReceivers(30, 5, seed=2), inca.incremental_injection(5), presence)
    assert inca.expected_error(execution, inca.NoiseLevels(independent=2.0, cancelling=0.0)).total == pytest.approx(
        4 * inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=0.0)).total
    )
    assert inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=3.0)).total == pytest.approx(
        9 * inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=1.0)).total
    )
    with pytest.raises(inca.InvalidInput, match="variance cannot be combined with domain"):
        inca.expected_error(
            execution, inca.NoiseLevels(independent=1.0, cancelling=1.0), variance=1.0, domain=inca.Ball(1)
        )
    with pytest.raises(inca.InvalidInput, match="sigma_independent must be at least 0, got -1"):
        inca.expected_error(execution, inca.NoiseLevels(independent=-1, cancelling=1.0))
    with pytest.raises(inca.InvalidInput, match="variance must be a finite number, at least 0, got nan"):
        inca.expected_error(execution, inca.NoiseLevels(independent=1, cancelling=1.0), variance=float("nan"))
    with pytest.raises(inca.InvalidInput, match="dimensions must be at least 1, got 0"):
        inca.expected_error(execution, inca.NoiseLevels(independent=1, cancelling=1.0), dimensions=0)


@given(interrupted())
def test_late_and_lost_shares_enter_the_sum_as_accounts_with_pending_shares_say(execution: inca.Execution) -> None:
    n, share = execution.parties, execution.schedule.round(1).share
    histories = [execution.coefficients(i) for i in range(n)]

    def in_sum(party: int, amounts: Sequence[float]) -> float:
        """What ends up in the published sum if this party alone puts in these amounts."""
        held = reference.balances(
            offers(execution),
            share,
            present_flags(execution),
            fates(execution),
            (),
            lambda i, t: float(amounts[t]) if i == party else 0.0,
        )[-1]
        return float(np.array(held)[execution.published].sum())

    values = [in_sum(i, c.tolist()) for i, (c, _) in enumerate(histories)]
    terms = [[in_sum(i, column) for column in z.T.tolist()] for i, (_, z) in enumerate(histories)]
    total, by_term = sum_coefficients(execution), sum_coefficients_by_term(execution)
    np.testing.assert_allclose(total.value, values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_term[0], values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_term[1], terms, rtol=0, atol=1e-10)
    np.testing.assert_allclose(total.noise_squared, np.square(terms).sum(axis=1), rtol=1e-9, atol=1e-10)
