"""Updates that are not finite count as zero, and nothing longer than what is clipped to gets through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inca import InvalidInput
from inca._base.types import Array
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.training.clipping import Clipping
from inca.learn.training.contributions import Contributions, PartyData
from inca.learn.training.train import train

D = 3


class Linear:
    """A model whose gradient is the mean of the features, times a factor."""

    def __init__(self, factor: float = 1.0) -> None:
        self.parameters, self.factor = np.zeros(D), factor

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.record_gradients(parameters, features, targets).mean(axis=0))

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.factor * features)


def datasets(*sizes: int) -> list[PartyData]:
    rng = np.random.default_rng(1)
    return [(rng.uniform(-0.5, 0.5, (size, D)), np.zeros(size)) for size in sizes]


def broken(bad: float) -> list[PartyData]:
    """Return records of three parties, of which the second has one record that leads to no number."""
    held = datasets(3, 7, 4)
    np.asarray(held[1][0])[2, 1] = bad
    return held


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("level", ["party", "record"])
def test_an_update_that_is_not_finite_counts_as_zero(bad: float, level: ProtectionLevel) -> None:
    """Also one that overflows: to warn or to raise would depend on private records as much."""
    model, clipping = Linear(factor=10.0), Clipping(9.0, level, "equal")
    with np.errstate(all="raise"):
        rows = Contributions(model, broken(bad), clipping, None, D).at(np.zeros(D)).copy()
    whole = Contributions(model, datasets(3, 7, 4), clipping, None, D).at(np.zeros(D))
    assert np.array_equal(rows[[0, 2]], whole[[0, 2]])
    if level == "party":
        assert not rows[1].any()
    else:
        others = np.delete(np.asarray(datasets(3, 7, 4)[1][0]), 2, axis=0)
        assert np.allclose(rows[1], 10.0 * others.sum(axis=0) / 7)


@pytest.mark.parametrize("level", ["party", "record"])
def test_training_goes_on_and_nothing_tells_of_it(level: ProtectionLevel) -> None:
    averager, budget, rng = SimulatedAverager.of("central", 3), Budget(1.0, 1e-5), np.random.default_rng(1)
    result = train(Linear(), broken(math.nan), averager, budget, 4, rng, clipping=Clipping(1.0, level))
    assert len(result.history) == 4 and not any(step.skipped for step in result.history)
    assert np.isfinite(result.parameters).all()


def test_a_shape_that_does_not_fit_is_refused_without_naming_a_party() -> None:
    wrong: list[PartyData] = [(np.ones((2, D + 1)), np.zeros(2))] * 2
    with pytest.raises(InvalidInput, match=r"the shape of a gradient must be \(3,\), .*, got \(4,\)"):
        Contributions(Linear(), wrong, Clipping(1.0), None, D).at(np.zeros(D))


@given(st.floats(-100.0, 100.0), st.floats(0.0, 150.0))
def test_no_length_that_is_accepted_lets_longer_updates_pass(length: float, longer: float) -> None:
    """Squares of very short vectors vanish: a ball of radius 1e-170 would let 1e-163 pass."""
    max_norm = 10.0**length
    held: list[PartyData] = [(np.full((1, D), 10.0**longer), np.zeros(1))] * 2
    rows = Contributions(Linear(max_norm), held, Clipping(max_norm), None, D).at(np.zeros(D))
    assert (np.linalg.norm(rows / max_norm, axis=1) <= 1.0 + 1e-9).all()


@pytest.mark.parametrize("length", [1e-170, 1e-101, 5e-324, 1e101, 1e300])
def test_lengths_that_doubles_cannot_clip_to_are_refused(length: float) -> None:
    with pytest.raises(InvalidInput, match=r"max_norm must be from 1e-100 to 1e\+100, got"):
        Clipping(length)
