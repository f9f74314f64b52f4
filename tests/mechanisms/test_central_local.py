from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import generator, seeds
from inca.mechanisms.base import Mechanism, measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.planning.requirements import Wish

WISH = Wish(parties=20, epsilon=0.7, delta=1e-4, colluding=0.2, dropout=0.2)


@st.composite
def wishes(draw: st.DrawFn) -> Wish:
    return Wish(
        parties=draw(st.integers(2, 1000)),
        epsilon=draw(st.floats(0.01, 0.99)),
        delta=draw(st.floats(1e-9, 0.1)),
        rule=draw(st.sampled_from(("exact", "classic"))),
        sensitivity=draw(st.floats(0.1, 10)),
    )


@given(wishes(), st.floats(0, 1))
def test_local_noise_is_as_many_times_central_noise_as_parties_are_present(wish: Wish, dropout: float) -> None:
    central, local = CentralDP(wish).expected_error(dropout), LocalDP(wish).expected_error(dropout)
    present = wish.parties - round(dropout * wish.parties)
    if present == 0:
        assert central.mse == local.mse == math.inf
        return
    assert local.budget.noise == pytest.approx(present * central.budget.noise)
    assert central.budget.noise == pytest.approx((wish.sensitivity / wish.mu / present) ** 2)
    assert central.budget.data == local.budget.data
    assert central.standard_error == local.standard_error == 0.0


@given(wishes())
def test_with_everyone_present_the_wish_knows_both_errors(wish: Wish) -> None:
    assert CentralDP(wish).expected_error(0.0).mse == pytest.approx(wish.central_mse)
    assert LocalDP(wish).expected_error(0.0).mse == pytest.approx(wish.local_mse)


@pytest.mark.parametrize("made", [CentralDP, LocalDP])
@pytest.mark.parametrize("dropout", [0.0, 0.2, 0.95])
def test_the_error_is_as_predicted(made: Callable[[Wish], Mechanism], dropout: float) -> None:
    mechanism = made(WISH)
    found = measure(mechanism, generator(11), dropout, runs=8000)
    # A normal mean is 6 standard errors off with chance 2e-9; squares are skewed, which raises it to 1e-7 at 8000 runs.
    assert abs(found.mse - mechanism.expected_error(dropout).mse) < 6 * found.standard_error
    assert found.failed == 0


@pytest.mark.parametrize("made", [CentralDP, LocalDP])
def test_missing_values_count_when_noise_is_small(made: Callable[[Wish], Mechanism]) -> None:
    mechanism = made(Wish(parties=20, epsilon=50.0, delta=0.1, variance=30.0))
    predicted = mechanism.expected_error(0.4)
    assert predicted.budget.data > 100 * predicted.budget.noise
    found = measure(mechanism, generator(12), 0.4, runs=8000)
    assert abs(found.mse - predicted.mse) < 6 * found.standard_error  # false alarms: below 1e-6, as above


@given(st.sampled_from([CentralDP, LocalDP]), seeds, st.integers(1, 4))
def test_every_coordinate_is_averaged(made: Callable[[Wish], Mechanism], seed: int, d: int) -> None:
    mechanism = made(Wish(parties=9, epsilon=1e6, delta=0.5))
    values = generator(seed).normal(size=(9, d))
    estimate = mechanism.run(values, generator(seed))
    assert isinstance(estimate, np.ndarray)
    np.testing.assert_allclose(estimate, values.mean(axis=0), atol=0.05)
    assert isinstance(mechanism.run(values[:, 0], generator(seed)), float)


@pytest.mark.parametrize("made", [CentralDP, LocalDP])
def test_without_anyone_there_is_no_result(made: Callable[[Wish], Mechanism]) -> None:
    assert made(WISH).run(np.zeros(20), generator(1), 1.0) is None
    assert made(WISH).expected_error(1.0).mse == math.inf


def test_what_is_promised() -> None:
    assert CentralDP(WISH).weaker
    assert not LocalDP(WISH).weaker
    assert (CentralDP(WISH).messages, LocalDP(WISH).messages) == (1.0, 0.0)
    assert "curator" in CentralDP.promise
    assert "all other parties may collude" in LocalDP.promise


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: CentralDP(WISH).expected_error(1.5), "dropout is 1.5, but a number from 0 to 1 was expected"),
    (lambda: LocalDP(WISH).expected_error(-0.1), "dropout is -0.1, but a number from 0 to 1 was expected"),
    (lambda: CentralDP(WISH).run(np.zeros(19), generator(1)), "the number of rows of values is 19, but one row per"),
    (lambda: LocalDP(WISH).run(np.zeros(20), 1), "rng is 1, but a numpy.random.Generator was expected"),  # type: ignore[arg-type]
    (lambda: LocalDP(WISH).run([math.nan] * 20, generator(1)), "values[0] is nan, but a finite number was expected"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
