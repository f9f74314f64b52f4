from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import generator
from inca.mechanisms.base import measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.requirements import Wish

WISH = Wish(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2)


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    return Wish(
        parties=draw(st.integers(2, 500)),
        epsilon=draw(st.floats(0.05, 0.99)),
        delta=draw(st.floats(1e-9, 0.1)),
        colluding=draw(st.floats(0.0, 0.4)),
        dropout=draw(st.floats(0.0, 0.4)),
        rule=draw(st.sampled_from(("exact", "classic"))),
        sensitivity=draw(st.floats(0.1, 10)),
    )


@given(wishes(), st.data())
def test_the_sum_protects_whenever_there_is_one(wish: Wish, data: st.DataObject) -> None:
    aggregation = SecureAggregation(wish)
    survivors = data.draw(st.integers(aggregation.threshold, wish.parties))
    honest = max(1, survivors - wish.colluders)  # all leavers honest; the one whom we protect is there
    shift = wish.sensitivity / (aggregation.sigma_independent * math.sqrt(honest))
    assert shift <= wish.mu * (1 + 1e-12)


@given(wishes())
def test_the_least_noise_is_that_of_the_honest_survivors(wish: Wish) -> None:
    aggregation = SecureAggregation(wish)
    honest = wish.parties - wish.colluders - wish.leavers
    assert aggregation.honest_survivors == max(1, honest)
    expected = wish.parties**2 / (max(1, honest) * wish.survivors)
    assert aggregation.expected_error(wish.dropout).budget.noise == pytest.approx(expected * wish.central_mse)
    central, local = CentralDP(wish).expected_error(wish.dropout), LocalDP(wish).expected_error(wish.dropout)
    found = aggregation.expected_error(wish.dropout).mse
    assert central.mse * (1 - 1e-12) <= found <= local.mse * (1 + 1e-12)


def test_without_colluders_and_leavers_it_is_as_good_as_a_curator() -> None:
    wish = Wish(parties=100, epsilon=0.2, delta=1e-5)
    assert SecureAggregation(wish).expected_error(0.0).mse == pytest.approx(wish.central_mse)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_error_is_as_predicted(dropout: float) -> None:
    aggregation = SecureAggregation(WISH)
    found = measure(aggregation, generator(21), dropout, runs=8000)
    # A normal mean is 6 standard errors off with chance 2e-9; squares are skewed, which raises it to 1e-7 at 8000 runs.
    assert abs(found.mse - aggregation.expected_error(dropout).mse) < 6 * found.standard_error
    assert found.failed == 0


@given(st.integers(0, 30), st.integers(0, 30))
def test_below_the_threshold_there_is_no_result(assumed: int, leavers: int) -> None:
    aggregation = SecureAggregation(WISH, assumed_dropout=assumed / 30)
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
        ({"rule": "classic"}, {"rule": "exact"}),
    ],
)
def test_a_weaker_wish_costs_less(less: dict[str, Any], more: dict[str, Any]) -> None:
    base: dict[str, Any] = {"parties": 50, "epsilon": 0.5, "delta": 1e-6, "colluding": 0.2, "dropout": 0.1}
    strict, lenient = SecureAggregation(Wish(**base | less)), SecureAggregation(Wish(**base | more))
    assert strict.expected_error(0.1).mse > lenient.expected_error(0.1).mse


def test_assuming_more_leavers_costs_accuracy_and_buys_a_result() -> None:
    bold, careful = SecureAggregation(WISH, assumed_dropout=0.1), SecureAggregation(WISH, assumed_dropout=0.5)
    assert bold.expected_error(0.1).mse < careful.expected_error(0.1).mse
    assert bold.expected_error(0.5).mse == math.inf > careful.expected_error(0.5).mse


def test_messages_count_neighbours_twice_and_the_server_twice() -> None:
    assert SecureAggregation(WISH).messages == 2 * 29 + 2
    assert SecureAggregation(WISH, neighbours=5).messages == 12
    assert "needs a server" in SecureAggregation.promise


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: SecureAggregation(WISH, assumed_dropout=2.0), "assumed_dropout is 2.0, but a number from 0 to 1"),
    (lambda: SecureAggregation(WISH, neighbours=30), "neighbours is 30, but a whole number from 1 to 29 was expected"),
    (lambda: SecureAggregation(WISH, neighbours=0), "neighbours is 0, but a whole number from 1 to 29 was expected"),
    (lambda: SecureAggregation(WISH).expected_error(1.01), "dropout is 1.01, but a number from 0 to 1 was expected"),
    (lambda: SecureAggregation(WISH).run(np.zeros(3), generator(1)), "the number of rows of values is 3, but one row"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
