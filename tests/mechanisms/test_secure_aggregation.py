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
from helpers.strategies import generator
from inca.mechanisms.base import measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.mask_graph import least_mask_graph
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.requirements import Requirements

REQUIREMENTS = Requirements(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2)


@st.composite
def any_requirements(draw: st.DrawFn) -> Requirements:
    return Requirements(
        parties=draw(st.integers(2, 500)),
        epsilon=draw(st.floats(0.05, 0.99)),
        delta=draw(st.floats(1e-9, 0.1)),
        colluding=draw(st.floats(0.0, 0.4)),
        dropout=draw(st.floats(0.0, 0.4)),
        rule=draw(st.sampled_from(("analytic", "classic"))),
        sensitivity=draw(st.floats(0.1, 10)),
    )


@given(any_requirements(), st.data())
def test_the_sum_protects_whenever_there_is_one(requirements: Requirements, data: st.DataObject) -> None:
    aggregation = SecureAggregation(requirements)
    survivors = data.draw(st.integers(aggregation.threshold, requirements.parties))
    honest = max(1, survivors - requirements.colluders)  # all leavers honest; the one whom we protect is there
    shift = requirements.sensitivity / (aggregation.sigma_independent * math.sqrt(honest))
    assert shift <= requirements.mu * (1 + 1e-12)


@given(any_requirements())
def test_the_least_noise_is_that_of_the_honest_survivors(requirements: Requirements) -> None:
    aggregation = SecureAggregation(requirements)
    honest = requirements.parties - requirements.colluders - requirements.leavers
    assert aggregation.honest_survivors == max(1, honest)
    expected = requirements.parties**2 / (max(1, honest) * requirements.survivors)
    error, central, local = (
        mechanism.expected_error(requirements.dropout)
        for mechanism in (aggregation, CentralDP(requirements), LocalDP(requirements))
    )
    assert error.budget.noise == pytest.approx(expected * requirements.central_mse)
    assert central.mse * (1 - 1e-12) <= error.mse <= local.mse * (1 + 1e-12)


def test_without_colluders_and_leavers_it_is_as_good_as_a_curator() -> None:
    requirements = Requirements(parties=100, epsilon=0.2, delta=1e-5, colluding=0.0, dropout=0.0)
    assert SecureAggregation(requirements).expected_error(0.0).mse == pytest.approx(requirements.central_mse)


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
def test_the_error_is_as_predicted(dropout: float) -> None:
    aggregation = SecureAggregation(REQUIREMENTS)
    measured = measure(aggregation, generator(21), dropout, runs=cases(2000, 8000))
    # A normal mean is 6 standard errors off with probability 2e-9; the skewness of squares raises it to 1e-7.
    assert abs(measured.mse - aggregation.expected_error(dropout).mse) < 6 * measured.standard_error
    assert measured.failed == 0


@given(st.integers(0, 30), st.integers(0, 30))
def test_below_the_threshold_there_is_no_result(assumed: int, leavers: int) -> None:
    aggregation = SecureAggregation(REQUIREMENTS, assumed_dropout=assumed / 30)
    result = aggregation.run(np.ones(30), generator(1), leavers / 30)
    refused = 30 - leavers < max(1, 30 - assumed)
    assert (result is None) == refused
    assert math.isinf(aggregation.expected_error(leavers / 30).mse) == refused


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"epsilon": 0.5}, {"epsilon": 0.6}),
        ({"delta": 1e-6}, {"delta": 1e-5}),
        ({"colluding": 0.3}, {"colluding": 0.2}),
        ({"rule": "classic"}, {"rule": "analytic"}),
    ],
)
def test_a_weaker_guarantee_costs_less(less: dict[str, Any], more: dict[str, Any]) -> None:
    base: dict[str, Any] = {"parties": 50, "epsilon": 0.5, "delta": 1e-6, "colluding": 0.2, "dropout": 0.1}
    strict, lenient = SecureAggregation(Requirements(**base | less)), SecureAggregation(Requirements(**base | more))
    assert strict.expected_error(0.1).mse > lenient.expected_error(0.1).mse


def test_assuming_more_leavers_costs_accuracy_and_buys_a_result() -> None:
    bold, careful = (
        SecureAggregation(REQUIREMENTS, assumed_dropout=0.1),
        SecureAggregation(REQUIREMENTS, assumed_dropout=0.5),
    )
    assert bold.expected_error(0.1).mse < careful.expected_error(0.1).mse
    assert bold.expected_error(0.5).mse == math.inf > careful.expected_error(0.5).mse


def test_messages_count_neighbours_twice_and_the_server_twice() -> None:
    assert SecureAggregation(REQUIREMENTS).messages == 2 * 29 + 2
    assert SecureAggregation(REQUIREMENTS, neighbours=5).messages == 12
    assert "needs a server" in SecureAggregation.promise


def test_one_honest_survivor_has_to_protect_itself() -> None:
    """Two of five collude and two may leave: whoever is left adds as much noise as if nobody else were there."""
    requirements = Requirements(parties=5, epsilon=0.7, delta=1e-4, colluding=0.4, dropout=0.4, sensitivity=3.0)
    assert (requirements.colluders, requirements.leavers) == (2, 2)
    assert SecureAggregation(requirements).sigma_independent == pytest.approx(3.0 / requirements.mu)


def test_the_promise_holds_however_many_leave_and_fails_only_if_keys_are_among_few() -> None:
    among_all, among_few = SecureAggregation(REQUIREMENTS), SecureAggregation(REQUIREMENTS, neighbours=8)
    assert among_all.failure_probability == 0.0 < among_few.failure_probability
    assert among_all.any_dropout and among_few.any_dropout
    assert all(among_all.expected_error(rate).budget.cancelling == 0.0 for rate in (0.0, 0.2, 0.5))  # it has none


def test_too_few_neighbours_do_not_keep_the_promise_and_say_so() -> None:
    """One neighbour can take off all masks if it colludes, and was said to fail once in a million runs."""
    requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
    enough = least_mask_graph(requirements).neighbours
    failures = [SecureAggregation(requirements, neighbours=k).failure_probability for k in range(1, enough + 1)]
    assert failures[0] == 1.0 and failures[-1] <= requirements.failure < failures[-2]
    assert all(later <= earlier for earlier, later in zip(failures[::2], failures[2::2], strict=False))
    more_leave = SecureAggregation(requirements, assumed_dropout=0.3, neighbours=enough)
    assert more_leave.failure_probability > requirements.failure


def test_everyone_stays_if_nothing_is_said_of_leavers() -> None:
    aggregation = SecureAggregation(Requirements(parties=30, epsilon=1e6, delta=0.5, colluding=0.0, dropout=0.0))
    assert aggregation.run(np.arange(30.0), generator(1)) == pytest.approx(14.5, abs=0.05)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: SecureAggregation(REQUIREMENTS, assumed_dropout=2.0), "assumed_dropout must be from 0 to 1, got 2.0"),
    (lambda: SecureAggregation(REQUIREMENTS, neighbours=30), "neighbours must be from 1 to 29, got 30"),
    (lambda: SecureAggregation(REQUIREMENTS, neighbours=0), "neighbours must be from 1 to 29, got 0"),
    (lambda: SecureAggregation(REQUIREMENTS).expected_error(1.01), "dropout must be from 0 to 1, got 1.01"),
    (
        lambda: SecureAggregation(REQUIREMENTS).run(np.zeros(3), generator(1)),
        "the number of rows of values must be ",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)
