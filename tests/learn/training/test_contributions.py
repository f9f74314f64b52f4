"""Updates that are not finite count as zero, and nothing longer than what is clipped to gets through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inca import InvalidInput
from inca._base.types import Array
from inca.learn.averagers.base import RemoteRecords
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.training import contributions
from inca.learn.training.clipping import Clipping, PartyWeights
from inca.learn.training.contributions import Contributions, LocalSteps, PartyData
from inca.learn.training.train import TrainingRules, train

D = 3


BROKEN = 77.0  # a feature at which the gradient of `Linear` is whatever a test says


class Linear:
    """A model whose gradient is the mean of the features, times a factor."""

    def __init__(self, factor: float = 1.0, bad: float = math.nan) -> None:
        self.parameters, self.factor, self.bad = np.zeros(D), factor, bad

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.record_gradients(parameters, features, targets).mean(axis=0))

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.factor * np.where(features == BROKEN, self.bad, features))


def datasets(*sizes: int) -> list[PartyData]:
    rng = np.random.default_rng(1)
    return [(rng.uniform(-0.5, 0.5, (size, D)), np.zeros(size)) for size in sizes]


def broken(value: float = BROKEN) -> list[PartyData]:
    """Return records of three parties, of which the second has one record that leads to no number."""
    held = datasets(3, 7, 4)
    np.asarray(held[1][0])[2, 1] = value
    return held


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
def test_records_with_missing_numbers_are_refused_before_anything_is_spent(missing: float) -> None:
    """They counted as zero: a model trained on other records than its users thought."""
    averager, budget, rng = SimulatedAverager.of("central", 3), Budget(1.0, 1e-5), np.random.default_rng(1)
    with pytest.raises(InvalidInput, match=r"the features of datasets\[1\]\[2, 1\] must be a finite number"):
        train(Linear(), broken(missing), averager, budget, 4, rng, TrainingRules(Clipping(1.0)))
    held = datasets(3, 7, 4)
    held[2] = (held[2][0], np.full(4, missing))
    with pytest.raises(InvalidInput, match=r"the targets of datasets\[2\]\[0\] must be a finite number"):
        train(Linear(), held, averager, budget, 4, rng, TrainingRules(Clipping(1.0)))
    assert budget.spent == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("level", ["party", "record"])
def test_an_update_that_is_not_finite_counts_as_zero(bad: float, level: ProtectionLevel) -> None:
    """Also one that overflows: to warn or to raise would depend on private records as much."""
    model, clipping = Linear(10.0, bad), Clipping(9.0, level, "equal")
    with np.errstate(all="raise"):
        rows = Contributions(model, broken(), clipping, None, D).at(np.zeros(D)).copy()
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
    result = train(Linear(), broken(), averager, budget, 4, rng, TrainingRules(Clipping(1.0, level)))
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


# --- who counts for how much -----------------------------------------------------------------------------------------


def large(*sizes: int) -> list[PartyData]:
    """Return records of which each is far longer than what is clipped to."""
    return [(np.tile([0.0, 30.0, 40.0], (size, 1)), np.zeros(size)) for size in sizes]


@pytest.mark.parametrize("level", ["party", "record"])
@pytest.mark.parametrize("weights", ["equal", "records"])
def test_the_longest_row_is_as_long_as_is_said(level: ProtectionLevel, weights: PartyWeights) -> None:
    """A party with three quarters of the records of two counts for 1.5, so its row is 1.5 times as long."""
    all_of_them = Contributions(Linear(), large(10, 30), Clipping(2.0, level, weights), None, D)
    lengths = np.linalg.norm(all_of_them.at(np.zeros(D)), axis=1)
    assert lengths == pytest.approx([2.0, 2.0] if weights == "equal" else [1.0, 3.0])
    assert all_of_them.max_norm == pytest.approx(lengths.max())


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.sampled_from(["equal", "records"]), st.data())
def test_replacing_what_is_protected_moves_a_row_by_at_most_the_sensitivity(
    sizes: list[int], weights: PartyWeights, data: st.DataObject
) -> None:
    level: ProtectionLevel = data.draw(st.sampled_from(["party", "record"]))
    party = data.draw(st.integers(0, len(sizes) - 1))
    replaced = slice(None) if level == "party" else data.draw(st.integers(0, sizes[party] - 1))
    before, after = large(*sizes), large(*sizes)
    np.asarray(after[party][0])[replaced] *= -1.0
    rows, moved = (Contributions(Linear(), held, Clipping(2.0, level, weights), None, D) for held in (before, after))
    distance = np.linalg.norm(moved.at(np.zeros(D)) - rows.at(np.zeros(D)), axis=1)
    assert not np.delete(distance, party).any() and 0.0 < distance[party] <= rows.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("level", ["party", "record"])
def test_parties_elsewhere_count_although_they_have_no_row_here(level: ProtectionLevel) -> None:
    held, clipping = large(10, 30, 20), Clipping(2.0, level, "records")
    everyone = Contributions(Linear(), held, clipping, None, D)
    one_here = Contributions(Linear(), [RemoteRecords(10), RemoteRecords(30), held[2]], clipping, None, D)
    assert np.array_equal(one_here.at(np.zeros(D)), everyone.at(np.zeros(D))[[2]])
    assert (one_here.max_norm, one_here.sensitivity) == (everyone.max_norm, everyone.sensitivity)


# --- steps of one's own ----------------------------------------------------------------------------------------------


class Parabola:
    """A model that descends to the mean of the features: its gradient is the difference to it."""

    parameters = np.zeros(D)

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(parameters - features.mean(axis=0))


@given(st.integers(1, 6), st.floats(0.01, 0.9))
def test_local_steps_contribute_the_mean_gradient_on_the_way(count: int, rate: float) -> None:
    """Each step leaves 1 - rate of the distance, so that the gradients are a geometric series."""
    features, start = np.array([[1.0, -2.0, 0.5]]), np.array([3.0, 0.0, 0.5])
    update = LocalSteps(count, rate).update(Parabola(), start, features, np.zeros(1))
    gradients = [(1.0 - rate) ** step * (start - features[0]) for step in range(count)]
    assert update == pytest.approx(np.mean(gradients, axis=0))
    rows = Contributions(Parabola(), [(features, np.zeros(1))], Clipping(1e3), LocalSteps(count, rate), D)
    assert rows.at(start)[0] == pytest.approx(update)


def test_local_steps_do_not_go_with_single_records() -> None:
    with pytest.raises(InvalidInput, match="local steps cannot be combined with level 'record'"):
        Contributions(Linear(), datasets(2, 2), Clipping(1.0, "record"), LocalSteps(2, 0.1), D)
    with pytest.raises(InvalidInput, match="model must be a model with record_gradients, for level 'record', got 'Par"):
        Contributions(Parabola(), datasets(2, 2), Clipping(1.0, "record"), None, D)


@pytest.mark.parametrize(
    ("count", "rate", "words"),
    [(0, 0.1, "count must be at least 1, got 0"), (1, 0.0, r"rate must be above 0, got 0\.0")],
)
def test_no_step_at_all_is_refused(count: int, rate: float, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        LocalSteps(count, rate)


# --- gradients of single records -------------------------------------------------------------------------------------


class Counting(Linear):
    """A model that notes how many records it is asked for at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        self.asked.append(len(targets))
        return super().record_gradients(parameters, features, targets)


@pytest.mark.parametrize(("entries", "pieces"), [(None, [5]), (2 * D, [2, 2, 1]), (1, [1] * 5)])
def test_gradients_of_records_are_held_in_pieces_that_fit_and_add_up(
    entries: int | None, pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if entries is not None:
        monkeypatch.setattr(contributions, "_BLOCK_ENTRIES", entries)
    model, held = Counting(), datasets(5)
    row = Contributions(model, held, Clipping(9.0, "record"), None, D).at(np.zeros(D))[0]
    assert model.asked == pieces
    assert row == pytest.approx(np.asarray(held[0][0]).mean(axis=0))


class Wrong(Linear):
    """A model that returns something else than one gradient for each record."""

    def __init__(self, gradients: Any) -> None:
        super().__init__()
        self.gradients = gradients

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.gradients)


@pytest.mark.parametrize("gradients", [0.5, np.zeros((1, D)), np.zeros((4, D)), np.zeros((0, D))])
def test_gradients_that_are_not_one_for_each_record_are_refused(gradients: Any) -> None:
    """A record that is in several rows could move the sum by more than is accounted for."""
    with pytest.raises(InvalidInput, match="the shape of record_gradients must be one row per record, got"):
        Contributions(Wrong(gradients), datasets(3), Clipping(1.0, "record"), None, D).at(np.zeros(D))


# --- data that do not fit together -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((np.zeros((3, D)), np.zeros(2)), r"the shapes of datasets\[1\] must be as many targets as rows of features"),
        ((np.zeros(()), np.zeros(2)), r"the shapes of datasets\[1\]"),
        ((np.zeros((3, D)), np.zeros(())), r"the shapes of datasets\[1\]"),
        ((np.zeros((0, D)), np.zeros(0)), r"the number of records of datasets\[1\] must be at least 1, got 0"),
        (RemoteRecords(0), r"the number of records of datasets\[1\] must be at least 1, got 0"),
    ],
)
def test_data_without_a_target_for_every_record_are_refused(data: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Contributions(Linear(), [*datasets(2), data], Clipping(1.0), None, D)


def test_records_of_plain_numbers_are_records() -> None:
    class OneParameter(Linear):
        def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
            return np.array([features.mean()])

    held: list[PartyData] = [([1.0, 2.0, 6.0], [0.0, 0.0, 0.0])]
    assert Contributions(OneParameter(), held, Clipping(9.0), None, 1).at(np.zeros(1)).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Clipping(1.0, "person"), "level must be record or party, got 'person'"),  # type: ignore[arg-type]
        (lambda: Clipping(1.0, weights="size"), "weights must be equal or records, got 'size'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_protected_and_who_counts_for_what_is_one_of_those_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()
