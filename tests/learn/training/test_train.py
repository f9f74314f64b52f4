from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inca import InputError
from inca._base.types import Array
from inca.learn.averagers.simulated import Aggregator, Average
from inca.learn.budget import Budget, UsedUp
from inca.learn.training.train import (
    Adam,
    Clipping,
    Descent,
    Level,
    LocalSteps,
    Optimiser,
    Part,
    Training,
    Weights,
    train,
)
from inca.privacy.gaussian import epsilon_for

HUGE = 1e16  # epsilon: noise far below 1e-6, and squares of mu that doubles still add


class Least:
    """Least squares: the loss of a record is (features . parameters - target)^2 / 2."""

    def __init__(self, dimensions: int = 3) -> None:
        self.parameters = np.zeros(dimensions)

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray(self.record_gradients(parameters, features, targets).mean(axis=0))

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.asarray((features @ parameters - targets)[:, np.newaxis] * features)


class Flat(Least):
    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.zeros_like(parameters)


def records(sizes: list[int], seed: int = 1, d: int = 3) -> list[Part]:
    rng = np.random.default_rng(seed)
    truth = np.arange(1.0, d + 1)
    xs = [rng.standard_normal((size, d)) for size in sizes]
    return [(x, x @ truth + 0.1 * rng.standard_normal(len(x))) for x in xs]


def plain(
    parts: list[Part], clipping: Clipping, steps: int, optimiser: Optimiser, local: LocalSteps | None = None
) -> Array:
    """Training without privacy but with the same clipping, written down anew."""
    model, theta = Least(), np.zeros(3)
    sizes = np.array([len(np.asarray(y)) for _, y in parts])
    by_size = (clipping.weights or {"party": "equal", "record": "records"}[clipping.level]) == "records"
    weights = sizes / sizes.sum() if by_size else np.full(len(parts), 1 / len(parts))
    move = optimiser.begin(3)

    def cut(vector: Array) -> Array:
        return vector * min(1.0, clipping.length / float(np.linalg.norm(vector)))

    for _ in range(steps):
        total = np.zeros(3)
        for weight, part in zip(weights, parts, strict=True):
            x, y = (np.asarray(each) for each in part)
            if clipping.level == "record":
                update = np.mean([cut(g) for g in model.record_gradients(theta, x, y)], axis=0)
            elif local is None:
                update = cut(model.gradient(theta, x, y))
            else:
                own = theta
                for _ in range(local.count):
                    own = own - local.rate * model.gradient(own, x, y)
                update = cut((theta - own) / (local.count * local.rate))
            total += weight * update
        theta = move(theta, total)
    return theta


def run(
    parts: list[Part], epsilon: float = HUGE, steps: int = 20, clipping: Clipping | None = None, **more: Any
) -> Training:
    aggregator = more.pop("aggregator", None) or Aggregator.of("central", len(parts))
    rng = np.random.default_rng(more.pop("seed", 3))
    budget = more.pop("budget", None) or Budget(epsilon, 1e-5)
    model = more.pop("model", None) or Least()
    return train(model, parts, aggregator, budget, steps, rng, clipping=clipping or Clipping(1.0), **more)


@pytest.mark.parametrize("optimiser", [Descent(0.3), Descent(0.2, 0.8), Adam(0.1)])
@pytest.mark.parametrize(
    ("level", "weights", "local"),
    [
        ("party", None, None),
        ("party", "records", None),
        ("party", None, LocalSteps(4, 0.1)),
        ("record", None, None),
        ("record", "equal", None),
    ],
)
def test_with_hardly_any_noise_it_is_plain_training_with_the_same_clipping(
    optimiser: Optimiser, level: Level, weights: Weights | None, local: LocalSteps | None
) -> None:
    parts, clipping = records([5, 1, 9, 4]), Clipping(0.7, level, weights)
    found = run(parts, clipping=clipping, optimiser=optimiser, local=local)
    assert np.abs(found.parameters - plain(parts, clipping, 20, optimiser, local)).max() < 1e-6


class Spy(Aggregator):
    """Keeps what the aggregator is given."""

    def __init__(self, parties: int) -> None:
        super().__init__(Aggregator.of("central", parties).mechanism)
        self.seen: list[tuple[Array, float]] = []

    def average(
        self, vectors: Any, sensitivity: float, mu: float, rng: np.random.Generator, *, reach: float | None = None
    ) -> Average:
        self.seen.append((np.array(vectors), sensitivity))
        assert reach is not None and np.linalg.norm(vectors, axis=1).max() <= reach * (1 + 1e-12)
        return super().average(vectors, sensitivity, mu, rng)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5),
    st.sampled_from(["party", "record"]),
    st.sampled_from(["equal", "records"]),
    st.floats(0.1, 10.0),
    st.integers(0, 2**32 - 1),
)
def test_a_protected_change_moves_the_contributions_by_at_most_the_sensitivity(
    sizes: list[int], level: Level, weights: Weights, length: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = records(sizes, seed)
    party = int(rng.integers(len(sizes)))
    x, y = (np.array(each) for each in parts[party])
    changed = slice(None) if level == "party" else slice(1)
    x[changed] = 10 * rng.standard_normal(x[changed].shape)
    y[changed] *= -10
    neighbour = [*parts[:party], (x, y), *parts[party + 1 :]]
    spies = [Spy(len(sizes)), Spy(len(sizes))]
    for spy, data in zip(spies, (parts, neighbour), strict=True):
        run(data, steps=1, clipping=Clipping(length, level, weights), aggregator=spy)
    (one, sensitivity), (two, again) = spies[0].seen[0], spies[1].seen[0]
    assert sensitivity == again
    assert np.linalg.norm(one - two) <= sensitivity * (1 + 1e-9)
    assert np.abs(np.delete(one - two, party, axis=0)).max() == 0.0


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=9))
def test_with_weights_by_records_every_record_counts_the_same(sizes: list[int]) -> None:
    n, total = len(sizes), sum(sizes)
    assert Clipping(1.5, "record").sensitivity(sizes) == pytest.approx(3.0 * n / total)
    assert Clipping(1.5, "record", "equal").sensitivity(sizes) == pytest.approx(3.0 / min(sizes))
    assert Clipping(1.5, "party", "records").sensitivity(sizes) == pytest.approx(3.0 * n * max(sizes) / total)
    assert Clipping(1.5, "party", "records").party_weights(sizes).mean() == pytest.approx(1.0)


def test_the_sensitivity_is_reached() -> None:
    spies = []
    for sign in (1.0, -1.0):
        spy = Spy(2)
        parts: list[Part] = [(np.array([[sign * 9.0, 0, 0], [1, 0, 0]]), np.ones(2)), (np.ones((6, 3)), np.ones(6))]
        run(parts, steps=1, clipping=Clipping(0.5, "record"), aggregator=spy)
        spies.append(spy)
    moved = np.linalg.norm(spies[0].seen[0][0] - spies[1].seen[0][0])
    assert moved == pytest.approx(spies[0].seen[0][1]) == pytest.approx(2 * 0.5 * 2 / 8)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 3), (3.0, 20), (8.0, 100)])
def test_the_composed_epsilon_is_that_of_dp_accounting(epsilon: float, steps: int) -> None:
    budget = Budget(epsilon, 1e-5)
    found = run(records([3] * 4), budget=budget, steps=steps)
    # The curator's noise in the mean has deviation s / (n mu), and a party moves the mean by s / n.
    ratio = found.history[0].noise / (found.sensitivity / 4)
    accountant = PLDAccountant().compose(SelfComposedDpEvent(GaussianDpEvent(ratio), steps))
    assert accountant.get_epsilon(1e-5) == pytest.approx(epsilon, rel=1e-3)
    assert float(epsilon_for(found.mu, 1e-5)) == pytest.approx(epsilon, rel=1e-9)
    assert budget.epsilon_spent == pytest.approx(epsilon, rel=1e-9)


def test_the_noise_of_the_average_is_what_the_history_says() -> None:
    # Gradients of 0: one step of rate 1 releases minus the noise. 30,000 squares; the band is 5.2 deviations of their
    # sum wide, so a sound implementation fails with probability below 1e-6.
    d = 30_000
    aggregator, budget, rng = Aggregator.of("central", 4), Budget(1.0, 1e-5), np.random.default_rng(5)
    found = train(Flat(d), records([2] * 4), aggregator, budget, 1, rng, clipping=Clipping(1.0), optimiser=Descent(1.0))
    ratio = float(np.mean(found.parameters**2)) / found.history[0].noise ** 2
    assert abs(ratio - 1) < 5.2 * math.sqrt(2 / d)
    assert found.history[0].length == pytest.approx(float(np.linalg.norm(found.parameters)))
    assert found.history[0].noise == pytest.approx(found.sensitivity / (4 * budget.mu))


def test_the_budget_is_taken_before_any_record_is_looked_at() -> None:
    budget = Budget(1.0, 1e-5)
    touched = []

    class Watching(Least):
        def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
            touched.append(budget.left)
            return super().gradient(parameters, features, targets)

    arguments = (records([3] * 4), Aggregator.of("central", 4), budget)
    with pytest.raises(UsedUp, match=r"only mu 0\.\d+ is left"):
        train(Watching(), *arguments, 5, np.random.default_rng(1), clipping=Clipping(1.0), mu=budget.mu / 2)
    assert not touched and budget.spent == 0.0
    train(Watching(), *arguments, 4, np.random.default_rng(1), clipping=Clipping(1.0), mu=budget.mu / 2)
    assert len(touched) == 16 and max(touched) < 1e-4 * budget.mu
    with pytest.raises(UsedUp, match="1 steps were asked for, but nothing is left of the budget"):
        train(Watching(), *arguments, 1, np.random.default_rng(1), clipping=Clipping(1.0))
    assert len(touched) == 16


def test_two_trainings_share_a_budget() -> None:
    budget = Budget(2.0, 1e-5)
    first = run(records([3] * 4), budget=budget, steps=4, mu=budget.part(0.25 / 4))
    second = run(records([3] * 4), budget=budget, steps=6)
    assert math.hypot(first.mu, second.mu) == pytest.approx(budget.mu)
    assert second.mu**2 == pytest.approx(0.75 * budget.mu**2)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("level", ["party", "record"])
def test_a_bad_gradient_stops_training_before_the_step_releases_anything(bad: float, level: Level) -> None:
    class Breaking(Least):
        def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
            found = super().record_gradients(parameters, features, targets)
            return np.where(parameters.any() & (len(features) == 7), bad, found)

    spy, budget = Spy(3), Budget(1.0, 1e-5)
    seen: list[int] = []

    def note(step: int, parameters: Array) -> None:
        seen.append(step)

    with pytest.raises(InputError, match=r"the gradient of party 1 in step 2 is not finite.*nothing was released in"):
        run(
            records([3, 7, 4]),
            clipping=Clipping(1.0, level),
            model=Breaking(),
            aggregator=spy,
            budget=budget,
            after=note,
        )
    assert len(spy.seen) == 1 and seen == [1]
    assert budget.left < 1e-4 * budget.mu  # what was set apart stays spent


def test_parameters_that_leave_the_range_of_numbers_are_refused() -> None:
    with (
        pytest.raises(InputError, match="parameters after step 1 are not finite: a smaller rate"),
        np.errstate(all="ignore"),
    ):
        run(records([3] * 4), optimiser=Descent(1e308), epsilon=0.01)


def test_steps_in_which_nobody_is_left_are_skipped_and_counted() -> None:
    class Deserted(Spy):
        def average(
            self, vectors: Any, sensitivity: float, mu: float, rng: np.random.Generator, *, reach: float | None = None
        ) -> Average:
            average = super().average(vectors, sensitivity, mu, rng, reach=reach)
            return average if len(self.seen) % 2 else Average(None, math.inf, mu)

    parts, released = records([3] * 4), []
    found = run(parts, steps=6, aggregator=Deserted(4), after=lambda step, theta: released.append(theta))
    assert [step.skipped for step in found.history] == [False, True] * 3
    assert all(np.array_equal(released[i], released[i + 1]) for i in (0, 2, 4))
    assert np.abs(found.parameters - plain(parts, Clipping(1.0), 3, Descent())).max() < 1e-6
    assert found.mu == pytest.approx(math.sqrt(6) * found.history[0].mu)


def test_a_penalty_is_neither_clipped_nor_noised() -> None:
    model = Flat()
    model.parameters += 100.0
    found = run(records([2, 2]), steps=1, model=model, optimiser=Descent(1.0), penalty=lambda theta: 0.5 * theta)
    assert np.abs(found.parameters - 50).max() < 1e-6


def test_gradients_of_records_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = records([11, 4])
    whole = run(parts, clipping=Clipping(1.0, "record"))
    monkeypatch.setattr("inca.learn.training.train._ENTRIES", 9)  # three records at a time
    assert np.allclose(run(parts, clipping=Clipping(1.0, "record")).parameters, whole.parameters, atol=1e-9)


@pytest.fixture(scope="module")
def leaving() -> Aggregator:
    return Aggregator.of("inca", 20, dropout=0.2, views=10)


@pytest.mark.slow
def test_parties_that_leave_in_every_step_are_back_in_the_next(leaving: Aggregator) -> None:
    # One party of 20 alone knows the last coordinate, and it takes many steps to learn. It leaves in a fifth of them:
    # had leavers stayed away, it would have been there for five steps on average.
    for aggregator in (leaving, Aggregator.of("central", 20, dropout=0.2)):
        parts = records([6] * 20)
        for features, _ in parts[1:]:
            np.asarray(features)[:, 2] = 0.0
        parts = [(x, np.asarray(x) @ np.array([1.0, 2.0, 3.0])) for x, _ in parts]
        found = run(parts, steps=300, clipping=Clipping(5.0), optimiser=Descent(0.5, 0.8), aggregator=aggregator)
        assert np.abs(found.parameters - [1, 2, 3]).max() < 0.1


def test_with_dropouts_and_privacy_it_still_learns(leaving: Aggregator) -> None:
    parts = records([200] * 20)
    found = run(
        parts, epsilon=3.0, steps=30, clipping=Clipping(2.0, "record"), optimiser=Descent(0.5), aggregator=leaving
    )
    assert np.abs(found.parameters - [1, 2, 3]).max() < 0.5  # starts 3 away; the noise's share is about 0.1
    assert not any(step.skipped for step in found.history)


def test_memory_grows_with_parties_and_parameters_but_not_with_steps() -> None:
    def peak(n: int, d: int, steps: int) -> float:
        """The most memory that training holds, in tables of n times d doubles."""
        parts, aggregator = records([1] * n, d=d), Aggregator.of("central", n)
        tracemalloc.start()
        train(Least(d), parts, aggregator, Budget(1.0, 1e-5), steps, np.random.default_rng(1), clipping=Clipping(1.0))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most / (8 * n * d)

    sizes = [peak(20, 5000, 2), peak(20, 5000, 20), peak(80, 5000, 2), peak(20, 20_000, 2)]
    assert max(sizes) < 4.5 and max(sizes) / min(sizes) < 1.5


def test_the_same_seed_gives_the_same_model() -> None:
    one, two, other = (run(records([3] * 4), epsilon=1.0, seed=seed).parameters for seed in (1, 1, 2))
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def call(**changes: Any) -> Callable[[], object]:
    def go() -> object:
        arguments: dict[str, Any] = {
            "model": Least(),
            "parts": records([3, 3]),
            "aggregator": Aggregator.of("central", 2),
            "budget": Budget(1.0, 1e-5),
            "steps": 2,
            "rng": np.random.default_rng(1),
            "clipping": Clipping(1.0),
        } | changes
        return train(**arguments)

    return go


class NoRecords:
    parameters = np.zeros(3)

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.zeros(2)


class Short(Least):
    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        return np.zeros((1, 3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (call(steps=0), "steps is 0"),
        (call(steps=1.5), "steps is 1.5"),
        (call(rng=3), "rng is 3"),
        (call(parts=records([3])), "the number of parts is 1, but one for each of 2"),
        (call(parts=[*records([3]), (np.zeros((0, 3)), np.zeros(0))]), r"parts\[1\] is empty"),
        (call(parts=[*records([3]), (np.zeros((2, 3)), np.zeros(3))]), r"the shapes of parts\[1\]"),
        (call(parts=[*records([3]), (np.full((2, 3), np.nan), np.zeros(2))]), "party 1 in step 1 is not finite"),
        (call(mu=0.0), "mu is 0.0"),
        (call(mu=9.0), "a release of mu .* was asked for"),
        (call(model=Least(0)), "model.parameters is empty"),
        (call(model=NoRecords()), r"the gradient of party 0 in step 1 is of shape \(1, 2\), but 3 finite"),
        (call(model=NoRecords(), clipping=Clipping(1.0, "record")), "model is 'NoRecords'.*record_gradients"),
        (call(model=Short(), clipping=Clipping(1.0, "record")), r"record_gradients is \(1, 3\), but one row per"),
        (call(clipping=Clipping(1.0, "record"), local=LocalSteps(2, 0.1)), "local steps are given at level 'record'"),
        (call(optimiser=Descent(0.0)), "rate is 0.0"),
        (call(optimiser=Descent(1.0, 1.5)), "momentum is 1.5"),
        (call(optimiser=Adam(1.0, 1.0)), "first is 1.0"),
        (lambda: Clipping(0.0), "length is 0.0"),
        (lambda: Clipping(1.0, "person"), "level is 'person'"),  # type: ignore[arg-type]
        (lambda: Clipping(1.0, weights="size"), "weights is 'size'"),  # type: ignore[arg-type]
        (lambda: LocalSteps(0, 0.1), "count is 0"),
        (lambda: LocalSteps(1, 0.0), "rate is 0.0"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_refused_arguments_cost_nothing() -> None:
    budget = Budget(1.0, 1e-5)
    wrong: list[dict[str, Any]] = [
        {"clipping": Clipping(1.0, "record"), "local": LocalSteps(2, 0.1)},
        {"parts": []},
        {"rng": 1},
    ]
    for changes in wrong:
        with pytest.raises(InputError):
            call(budget=budget, **changes)()
    assert budget.spent == 0.0
