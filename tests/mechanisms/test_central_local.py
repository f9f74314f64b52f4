from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import cases
from helpers.strategies import generator, seeds
from inca.mechanisms.base import Mechanism, measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.planning.requirements import Requirements

REQUIREMENTS = Requirements(parties=20, epsilon=0.7, delta=1e-4, colluding=0.2, dropout=0.2)


@st.composite
def any_requirements(draw: st.DrawFn) -> Requirements:
    return Requirements(
        parties=draw(st.integers(2, 1000)),
        epsilon=draw(st.floats(0.01, 0.99)),
        delta=draw(st.floats(1e-9, 0.1)),
        rule=draw(st.sampled_from(("analytic", "classic"))),
        sensitivity=draw(st.floats(0.1, 10)),
        colluding=0.0,
        dropout=0.0,
    )


@given(any_requirements(), st.floats(0, 1))
def test_local_noise_is_as_many_times_central_noise_as_parties_are_present(
    requirements: Requirements, dropout: float
) -> None:
    central, local = CentralDP(requirements).expected_error(dropout), LocalDP(requirements).expected_error(dropout)
    present = requirements.parties - math.ceil(dropout * requirements.parties - 1e-9)
    if present == 0:
        assert central.mse == local.mse == math.inf
        return
    assert local.budget.noise == pytest.approx(present * central.budget.noise)
    assert central.budget.noise == pytest.approx((requirements.sensitivity / requirements.mu / present) ** 2)
    assert central.budget.data == local.budget.data
    assert central.standard_error == local.standard_error == 0.0


@given(any_requirements())
def test_with_everyone_present_the_requirements_know_both_errors(requirements: Requirements) -> None:
    assert CentralDP(requirements).expected_error(0.0).mse == pytest.approx(requirements.central_mse)
    assert LocalDP(requirements).expected_error(0.0).mse == pytest.approx(requirements.local_mse)


@pytest.mark.parametrize("make", [CentralDP, LocalDP])
@pytest.mark.parametrize("dropout", [0.0, 0.2, 0.95])
def test_the_error_is_as_predicted(make: Callable[[Requirements], Mechanism], dropout: float) -> None:
    mechanism = make(REQUIREMENTS)
    measured = measure(mechanism, generator(11), dropout, runs=2000)
    # A normal mean is 6 standard errors off with probability 2e-9; the skewness of squares raises it to 1e-7.
    assert abs(measured.mse - mechanism.expected_error(dropout).mse) < 6 * measured.standard_error
    assert measured.failed == 0


@pytest.mark.parametrize("make", [CentralDP, LocalDP])
def test_missing_values_count_when_noise_is_small(make: Callable[[Requirements], Mechanism]) -> None:
    mechanism = make(Requirements(parties=20, epsilon=50.0, delta=0.1, variance=30.0, colluding=0.0, dropout=0.0))
    predicted = mechanism.expected_error(0.4)
    assert predicted.budget.data > 100 * predicted.budget.noise
    measured = measure(mechanism, generator(12), 0.4, runs=cases(2000, 8000))
    assert abs(measured.mse - predicted.mse) < 6 * measured.standard_error  # false alarms: below 1e-6, as above


@given(st.sampled_from([CentralDP, LocalDP]), seeds, st.integers(1, 4))
def test_every_coordinate_is_averaged(make: Callable[[Requirements], Mechanism], seed: int, d: int) -> None:
    mechanism = make(Requirements(parties=9, epsilon=1e6, delta=0.5, colluding=0.0, dropout=0.0))
    values = generator(seed).normal(size=(9, d))
    estimate = mechanism.run(values, generator(seed))
    assert isinstance(estimate, np.ndarray)
    np.testing.assert_allclose(estimate, values.mean(axis=0), atol=0.05)
    assert isinstance(mechanism.run(values[:, 0], generator(seed)), float)


@pytest.mark.parametrize("make", [CentralDP, LocalDP])
def test_without_anyone_there_is_no_result(make: Callable[[Requirements], Mechanism]) -> None:
    assert make(REQUIREMENTS).run(np.zeros(20), generator(1), 1.0) is None
    assert make(REQUIREMENTS).expected_error(1.0).mse == math.inf


def test_what_is_promised() -> None:
    assert CentralDP(REQUIREMENTS).weaker
    assert not LocalDP(REQUIREMENTS).weaker
    assert (CentralDP(REQUIREMENTS).messages, LocalDP(REQUIREMENTS).messages) == (1.0, 0.0)
    assert "curator" in CentralDP.promise
    assert "all other parties may collude" in LocalDP.promise


@given(any_requirements(), st.floats(0, 1))
def test_both_promises_hold_always_and_however_many_leave(requirements: Requirements, dropout: float) -> None:
    """A value moves the mean of m parties by s / m; in units of the noise that is never more than mu."""
    central, local = CentralDP(requirements), LocalDP(requirements)
    present = requirements.parties - math.ceil(dropout * requirements.parties - 1e-9)
    if present:
        of_mean = requirements.sensitivity / present / math.sqrt(central.expected_error(dropout).budget.noise)
        of_one = requirements.sensitivity / math.sqrt(present * local.expected_error(dropout).budget.noise)
        assert max(of_mean, of_one) <= requirements.mu * (1 + 1e-9)
    for mechanism in (central, local):
        assert mechanism.any_dropout and mechanism.failure_probability == 0.0


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: CentralDP(REQUIREMENTS).expected_error(1.5), "dropout must be from 0 to 1, got 1.5"),
    (lambda: LocalDP(REQUIREMENTS).expected_error(-0.1), "dropout must be from 0 to 1, got -0.1"),
    (lambda: CentralDP(REQUIREMENTS).run(np.zeros(19), generator(1)), "the number of rows of values must be "),
    (lambda: LocalDP(REQUIREMENTS).run(np.zeros(20), 1), "rng must be a numpy.random.Generator, got 1"),  # type: ignore[arg-type]
    (lambda: LocalDP(REQUIREMENTS).run([math.nan] * 20, generator(1)), "values[0] must be a finite number, got nan"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)
