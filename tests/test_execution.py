from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

import inca
import plain
from strategies import executions, generator, seeds


def intended(execution: inca.Execution) -> list[plain.Matrix]:
    matrices = []
    for t in range(1, execution.rounds + 1):
        step = execution.schedule.round(t)
        fractions = np.full(step.receivers.shape, step.share) if step.weights is None else step.weights
        matrices.append(plain.intended_weights(step.receivers.tolist(), fractions.tolist()))
    return matrices


@given(executions())
def test_effective_weights_are_those_of_algorithm_2(execution: inca.Execution) -> None:
    for t, matrix in enumerate(intended(execution), start=1):
        expected = plain.effective_weights(matrix, execution.presence.row(t).tolist())
        assert np.allclose(execution.weights(t).toarray(), np.array(expected, dtype=float), rtol=0, atol=1e-15)


@given(executions())
def test_columns_sum_to_one(execution: inca.Execution) -> None:
    for t in range(1, execution.rounds + 1):
        weights = execution.weights(t).toarray()
        assert np.allclose(weights.sum(axis=0), 1.0, rtol=0, atol=1e-12)
        assert (weights >= -1e-15).all()


@given(executions(), seeds)
def test_mix_and_its_adjoint_are_the_matrix_and_its_transpose(execution: inca.Execution, seed: int) -> None:
    y = generator(seed).normal(size=(execution.parties, 3))
    for t in range(1, execution.rounds + 1):
        weights = execution.weights(t).toarray()
        assert np.allclose(execution.mix(t, y), weights @ y, rtol=0, atol=1e-12)
        assert np.allclose(execution.mix_adjoint(t, y), weights.T @ y, rtol=0, atol=1e-12)
        assert np.allclose(execution.mix(t, y[:, 0]), weights @ y[:, 0], rtol=0, atol=1e-12)
        assert np.allclose(execution.mix_adjoint(t, y[:, 0]), weights.T @ y[:, 0], rtol=0, atol=1e-12)


@given(executions(), seeds)
def test_mixing_conserves_mass(execution: inca.Execution, seed: int) -> None:
    y = generator(seed).normal(size=execution.parties) * 1000
    for t in range(1, execution.rounds + 1):
        assert abs(execution.mix(t, y).sum() - y.sum()) <= 1e-12 * np.abs(y).sum()


@given(executions())
def test_coefficients_are_those_of_erratum_2(execution: inca.Execution) -> None:
    for party in range(execution.parties):
        present = [bool(execution.presence.row(t)[party]) for t in range(execution.rounds + 1)]
        injection = execution.injection
        c, z = plain.adapted(injection.value.tolist(), injection.noise.tolist(), present)
        own_c, own_z = execution.coefficients(party)
        assert np.array_equal(own_c, np.array(c, dtype=float))
        assert np.allclose(own_z, np.array(z, dtype=float), rtol=0, atol=1e-12)
        if present[-1]:
            assert np.allclose(own_z.sum(axis=0), 0.0, atol=1e-9)
        assert execution.total_weights[party] == pytest.approx(own_c.sum(), abs=1e-12)


@given(executions())
def test_weight_is_conserved_in_every_round(execution: inca.Execution) -> None:
    injected = 0.0
    coefficients = [execution.coefficients(i)[0] for i in range(execution.parties)]
    for t, weights in enumerate(execution.weight_history()):
        injected += sum(c[t] for c in coefficients)
        assert weights.sum() == pytest.approx(injected, abs=1e-12)
    assert np.array_equal(weights, execution.message_weights)
    assert execution.weight == pytest.approx(weights[execution.published].sum(), abs=1e-12)


def small() -> inca.Execution:
    return inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental(3))


def test_a_lost_final_message_is_not_counted_but_its_mixing_happened() -> None:
    whole = small()
    execution = whole.losing([False, True, False, False])
    assert execution.published.tolist() == [True, False, True, True]
    assert execution.weight == pytest.approx(whole.message_weights[[0, 2, 3]].sum())
    assert np.array_equal(execution.weights(3).toarray(), whole.weights(3).toarray())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental(4)),
            "rounds of the injection is 4",
        ),
        (
            lambda: inca.Execution(
                inca.RandomReceivers(4, 3, seed=1), inca.incremental(3), inca.Presence.everyone(5, 3)
            ),
            r"presence is \(5, 3\)",
        ),
        (
            lambda: inca.Execution(
                inca.RandomReceivers(2, 1, seed=1),
                inca.incremental(1),
                inca.Presence.explicit([[1, 1], [1, 0]]),
                np.array([True, True]),
            ),
            "published is 1, but only parties that are present",
        ),
        (lambda: small().losing([True]), r"shape of lost is \(1,\)"),
        (lambda: small().mix(0, np.ones(4)), "t is 0"),
        (lambda: small().mix(1, np.ones(5)), "rows of values is 5"),
        (lambda: small().mix(1, [1, 2, np.nan, 3]), r"values\[2\] is nan"),
        (lambda: small().coefficients(4), "party is 4"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(inca.InputError, match=words):
        make()
