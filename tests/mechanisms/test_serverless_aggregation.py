"""Secure aggregation without a server: the error is the floor, and there is nothing if recovery fails."""

from __future__ import annotations

import math

import numpy as np
import pytest

import inca
from helpers.examples import cases
from helpers.strategies import generator
from inca.mechanisms.base import measure
from inca.mechanisms.mask_graph import MaskGraph
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.mechanisms.serverless_aggregation import ServerlessAggregation
from inca.planning.requirements import Requirements

REQUIREMENTS = Requirements(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2)


def test_the_error_is_that_of_ideal_secure_aggregation() -> None:
    own, ideal = ServerlessAggregation(REQUIREMENTS), SecureAggregation(REQUIREMENTS)
    for dropout in (0.0, 0.1, 0.2):
        assert own.expected_error(dropout) == ideal.expected_error(dropout)
    assert own.expected_error(0.5).mse == math.inf  # more than was assumed
    assert own.recovery_failure(0.2) <= REQUIREMENTS.failure


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
def test_the_error_is_as_predicted(dropout: float) -> None:
    own = ServerlessAggregation(REQUIREMENTS)
    measured = measure(own, generator(21), dropout, runs=cases(2000, 8000))
    # A normal mean is 6 standard errors off with probability 2e-9; the skewness of squares raises it to 1e-7.
    assert abs(measured.mse - own.expected_error(dropout).mse) < 6 * measured.standard_error
    assert measured.failed == 0


def test_without_a_quorum_there_is_nothing() -> None:
    own = ServerlessAggregation(REQUIREMENTS, assumed_dropout=0.5, graph=MaskGraph(30, 8, 4))
    measured = measure(own, generator(22), 0.3, runs=2000)
    bound = own.recovery_failure(0.3)
    # A mean of coin flips is 5 standard errors above its expectation with probability 3e-7.
    assert 0 < measured.failed / 2000 <= bound + 5 * math.sqrt(bound / 2000)
    # The error of those with a result is the predicted one: who leaves does not depend on values.
    assert abs(measured.mse - own.expected_error(0.3).mse) < 6 * measured.standard_error
    assert own.run(np.ones(30), generator(1), 1.0) is None
    assert own.recovery_failure(1.0) == 1.0


def test_messages_and_promise() -> None:
    own = ServerlessAggregation(REQUIREMENTS, graph=MaskGraph(30, 8, 4))
    assert own.messages == 2 * 8 + 1
    assert not own.weaker
    for word in ("keys", "quorum"):
        assert word in own.promise
    vector = own.run(np.ones((30, 2)), generator(1))
    assert isinstance(vector, np.ndarray) and vector.shape == (2,)


@pytest.mark.parametrize("parties", [20, 40])
def test_a_graph_for_others_is_refused(parties: int) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        ServerlessAggregation(REQUIREMENTS, graph=MaskGraph(parties, 8, 4))
    assert str(caught.value) == f"the number of parties of graph must be the required number (30), got {parties}"
