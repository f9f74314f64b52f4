"""However small delta is, noise is what is stated, or the request is refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from inca import Conditions, Interval, InvalidInput, RequirementsNotMet
from inca.learn import Budget, Records, SimulatedAverager, moments


def test_an_interval_is_as_wide_as_its_noise_at_a_very_small_delta() -> None:
    records = Records.of([[50.0] * 20] * 12, Interval(0, 100))
    averager = SimulatedAverager.of("inca", 12, Conditions(failure=1e-60))
    mean = moments(records, averager, Budget(1.0, 1e-60), np.random.default_rng(1)).mean
    low, high = mean.interval(0.999999)
    assert float(mean.standard_error) < high - low and low <= 50.0 <= high


@pytest.mark.parametrize("failure", [1e-300, 1e-320])
def test_a_failure_that_few_messages_cannot_bound_is_refused(failure: float) -> None:
    """The mean came out as -1e19, in an interval of width 0."""
    with pytest.raises(RequirementsNotMet, match=r"19 rounds are too few .*: \d+ are needed"):
        SimulatedAverager.of("inca", 300, Conditions(failure=failure, messages=20))
    averager = SimulatedAverager.of("inca", 300, Conditions(failure=failure))
    mean = averager.average(np.full((300, 1), 0.5), 1.0, 1.0, np.random.default_rng(1))
    assert mean.estimate is not None and abs(mean.estimate[0] - 0.5) < 10.0 * mean.standard_error


@pytest.mark.parametrize("kind", ["central", "local"])
def test_noise_that_no_double_can_square_is_refused(kind: str) -> None:
    averager = SimulatedAverager.of(kind, 12)
    with pytest.raises(InvalidInput, match=r"sensitivity / mu must be from 1e-100 to 1e[+]100"):
        averager.average(np.zeros((12, 1)), 1.0, 1e-200, np.random.default_rng(1))


def test_a_budget_whose_square_is_0_is_refused() -> None:
    """Any number of releases could be taken off it."""
    with pytest.raises(InvalidInput, match="a guarantee that Gaussian noise can give"):
        Budget(1e-300, 1e-300)
