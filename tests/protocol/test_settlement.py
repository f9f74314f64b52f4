"""Settlement: what the cohort exchanged with others is undone. The reference books every single transfer."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.settlement import booked, injected_by
from helpers.strategies import executions, generator, interrupted, seeds, settled
from inca._base.types import Array
from inca.protocol.expected_error import sum_coefficients_by_term


def some_noise(execution: inca.Execution, seed: int, d: int = 2) -> tuple[Array, inca.Noise]:
    rng, n = generator(seed), execution.parties
    drawn = inca.Noise(rng.normal(size=(n, d)), 10 * rng.normal(size=(n, execution.rounds, d)))
    return rng.normal(size=(n, d)), drawn


@given(settled(all_publish=False), seeds)
def test_settled_messages_are_those_of_the_books(execution: inca.Execution, seed: int) -> None:
    values, noise = some_noise(execution, seed)
    expected = booked(execution, injected_by(execution, values + noise.independent, noise.cancelling))
    messages = inca.simulate(execution, values, noise=noise).messages
    np.testing.assert_allclose(messages, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


@given(settled(), seeds)
def test_the_sum_is_the_cohorts_own_values_and_independent_noise(execution: inca.Execution, seed: int) -> None:
    values, noise = some_noise(execution, seed)
    cohort, weights = execution.cohort, execution.total_weights
    outcome = inca.simulate(execution, values, noise=noise)
    own = (weights[:, np.newaxis] * (values + noise.independent))[cohort].sum(axis=0)
    scale = max(1.0, float(np.abs(noise.cancelling).max()))
    np.testing.assert_allclose(outcome.messages[cohort].sum(axis=0), own, rtol=0, atol=1e-12 * scale * len(values))
    assert outcome.weight == pytest.approx(weights[cohort].sum(), abs=1e-12)
    assert outcome.weights[cohort].sum() == pytest.approx(weights[cohort].sum(), abs=1e-12)


@given(settled(all_publish=False))
def test_weights_are_settled_like_values(execution: inca.Execution) -> None:
    parts = np.stack([execution.coefficients(i)[0] for i in range(execution.parties)], axis=1)
    expected = booked(execution, parts[:, :, np.newaxis])[:, 0]
    np.testing.assert_allclose(execution.message_weights, expected, rtol=0, atol=1e-12)
    assert execution.weight == pytest.approx(expected[execution.published].sum(), abs=1e-12)


@given(executions(all_at_end=True), seeds)
def test_with_everybody_present_settlement_changes_nothing(execution: inca.Execution, seed: int) -> None:
    values, noise = some_noise(execution, seed)
    again = execution.settled()
    before, after = (inca.simulate(case, values, noise=noise) for case in (execution, again))
    assert not again.settlement_matters
    assert np.array_equal(before.messages, after.messages) and before.weight == after.weight


@given(settled(all_publish=False), seeds)
def test_drawn_noise_gives_what_the_same_noise_given_gives(execution: inca.Execution, seed: int) -> None:
    """The incremental family is run without storing its noise."""
    levels = inca.NoiseLevels(independent=1.0, cancelling=5.0, topup=2.0)
    values = generator(seed).normal(size=(execution.parties, 3))
    noise = inca.draw_noise(execution, levels, generator(seed), dimensions=3)
    drawn = inca.simulate(execution, values, levels, generator(seed)).messages
    held = inca.simulate(execution, values, noise=noise).messages
    np.testing.assert_allclose(drawn, held, rtol=0, atol=1e-11)
    assert execution.cohort is not None and noise.topup is not None
    without = inca.simulate(execution, values, noise=inca.Noise(noise.independent, noise.cancelling)).messages
    np.testing.assert_allclose(held - without, np.where(execution.cohort[:, np.newaxis], noise.topup, 0), atol=1e-11)


@given(settled(all_publish=False))
def test_coefficients_of_the_sum_are_those_of_the_books(execution: inca.Execution) -> None:
    """Late leavers included: inject one unit of one party's value or noise, and look at the published sum."""
    assert execution.cohort is not None
    value, terms = sum_coefficients_by_term(execution)
    n, rounds = execution.parties, execution.rounds
    units = np.eye(n * (rounds + 1))
    u, eta = units[:n].reshape(n, -1), units[n:].reshape(n, rounds, -1)
    total = booked(execution, injected_by(execution, u, eta))[execution.published].sum(axis=0)
    np.testing.assert_allclose(value, total[:n], atol=1e-12)
    np.testing.assert_allclose(terms, total[n:].reshape(n, rounds), atol=1e-10)
    if np.array_equal(execution.published, execution.cohort):
        np.testing.assert_allclose(value, np.where(execution.cohort, execution.total_weights, 0.0), atol=1e-12)
        np.testing.assert_allclose(terms, 0.0, atol=1e-10)


@given(st.one_of(executions(), settled(all_publish=False)))
def test_the_error_is_the_variance_of_an_estimate_from_units_of_noise(execution: inca.Execution) -> None:
    """Run once with a coordinate for every noise term, in which that one is 1 and all others are 0."""
    n, rounds = execution.parties, execution.rounds
    units = np.eye(n * (rounds + 1))
    noise = inca.Noise(units[:n], units[n:].reshape(n, rounds, -1))
    estimate = inca.simulate(execution, np.zeros((n, len(units))), noise=noise).estimate
    error = inca.expected_error(execution, inca.NoiseLevels(independent=2.0, cancelling=5.0), dimensions=3)
    if estimate is None:
        assert error.noise == math.inf
    else:
        squares = np.asarray(estimate) ** 2
        assert error.independent == pytest.approx(3 * 4.0 * squares[:n].sum(), rel=1e-9, abs=1e-12)
        assert error.cancelling == pytest.approx(3 * 25.0 * squares[n:].sum(), rel=1e-9, abs=1e-12)


@given(settled(all_publish=False))
def test_the_error_counts_top_up_noise_of_those_who_published(execution: inca.Execution) -> None:
    plain = inca.NoiseLevels(independent=1.0, cancelling=5.0)
    more = inca.NoiseLevels(independent=1.0, cancelling=5.0, topup=3.0)
    without, added = (inca.expected_error(execution, levels, dimensions=2) for levels in (plain, more))
    assert without.cancelling == added.cancelling
    if execution.published.any():
        count = execution.published.sum()
        assert added.independent - without.independent == pytest.approx(2 * 9 * count / execution.weight**2)


def test_in_whole_numbers_the_sums_are_equal() -> None:
    """Three parties by hand: party 2 leaves with half of party 1's message, and has given party 0 half of its own."""
    execution = inca.Execution(
        inca.ExplicitSchedule([[[1], [2], [0]], [[1], [0], [0]]]),
        inca.early_injection(2),
        inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [1, 1, 0]]),
    ).settled()
    values = [Fraction(3), Fraction(5), Fraction(7)]
    y0 = values
    y1 = [y0[0] / 2 + y0[2] / 2, y0[1] / 2 + y0[0] / 2, y0[2] / 2 + y0[1] / 2]
    y2 = [y1[0] / 2 + y1[1] / 2, y1[1] / 2 + y1[0] / 2]
    by_hand = [y2[0] - y0[2] / 2, y2[1] + y0[1] / 2]
    assert sum(by_hand) == values[0] + values[1]
    noise = inca.Noise(np.zeros(3), np.zeros((3, 2)))
    outcome = inca.simulate(execution, [3.0, 5.0, 7.0], noise=noise)
    assert outcome.messages[:2].tolist() == [float(number) for number in by_hand]
    assert outcome.estimate == 4.0 and outcome.weight == 2.0


@given(interrupted(returns=False), seeds)
def test_lost_shares_are_missing_without_settlement(execution: inca.Execution, seed: int) -> None:
    values, noise = some_noise(execution, seed)
    mass = injected_by(execution, values + noise.independent, noise.cancelling).sum(axis=(0, 1))
    found = inca.simulate(execution, values, noise=noise).messages.sum(axis=0)
    settled_sum = inca.simulate(execution.settled(), values, noise=noise).messages.sum(axis=0)
    if not execution.late:
        np.testing.assert_allclose(found, mass, atol=1e-10)
    elif execution.presence.row(execution.rounds).all():
        np.testing.assert_allclose(settled_sum, mass, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda run: run.settled([True, True]), r"cohort must be bool of shape \(3,\), got 'bool of shape \(2,\)'"),
        (lambda run: run.settled([1, 1, 0]), "cohort must be bool of shape"),
        (lambda run: run.settled([True, True, True]), "a party of the cohort must be present in round T, got 2"),
        (
            lambda run: inca.Execution(
                run.schedule,
                run.injection,
                run.presence,
                cohort=np.array([True, False, False]),
                published=np.array([True, True, False]),
            ),
            "a published party must be in the cohort, got 1",
        ),
        (lambda run: run.settlement(1, [1.0, 2.0, 3.0]), "an execution without a cohort has no settlement"),
        (
            lambda run: inca.simulate(
                run, [0.0] * 3, inca.NoiseLevels(independent=1.0, cancelling=1.0, topup=1.0), generator(0)
            ),
            "sigma_topup must be 0, as nobody settles, got 1.0",
        ),
    ],
)
def test_bad_input_is_refused(make: Callable[[inca.Execution], object], words: str) -> None:
    schedule = inca.ExplicitSchedule([[[1], [2], [0]]])
    run = inca.Execution(schedule, inca.early_injection(1), inca.Presence.explicit([[1, 1, 1], [1, 1, 0]]))
    with pytest.raises(inca.InvalidInput, match=words):
        make(run)


def test_shares_do_not_come_back_late_where_someone_settles() -> None:
    schedule = inca.ExplicitSchedule([[[-1], [0]], [[1], [0]]])
    late = inca.Execution(schedule, inca.early_injection(2), undelivered=[(1, 0, 1, 2)])
    with pytest.raises(inca.InvalidInput, match=r"with a cohort no share comes back later, got \(1, 0, 1, 2\)"):
        late.settled()


def test_nobody_settles_nobody_publishes_and_there_is_no_estimate() -> None:
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.early_injection(1)).settled([False, False])
    noise = inca.Noise(np.zeros(2), np.zeros((2, 1)))
    outcome = inca.simulate(execution, [1.0, 2.0], noise=noise)
    assert outcome.estimate is None and outcome.weight == 0.0 and outcome.present == 0
    levels = inca.NoiseLevels(independent=1.0, cancelling=1.0)
    assert inca.expected_error(execution, levels).total == float("inf")
