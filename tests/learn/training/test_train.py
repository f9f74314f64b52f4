from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.examples import examples
from inca import Conditions, InvalidInput
from inca._base.types import Array
from inca.errors import BudgetExceeded
from inca.learn.averagers.base import VectorMean
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.training.clipping import Clipping, PartyWeights
from inca.learn.training.contributions import LocalSteps, PartyData
from inca.learn.training.optimizers import SGD, Adam, Optimizer
from inca.learn.training.train import TrainingResult, TrainingRules, train
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


def records(sizes: list[int], seed: int = 1, d: int = 3) -> list[PartyData]:
    rng = np.random.default_rng(seed)
    truth = np.arange(1.0, d + 1)
    xs = [rng.standard_normal((size, d)) for size in sizes]
    return [(x, x @ truth + 0.1 * rng.standard_normal(len(x))) for x in xs]


def plain(
    datasets: list[PartyData], clipping: Clipping, steps: int, optimizer: Optimizer, local: LocalSteps | None = None
) -> Array:
    """Train without privacy but with the same clipping, written down anew."""
    model, theta = Least(), np.zeros(3)
    sizes = np.array([len(np.asarray(y)) for _, y in datasets])
    by_size = (clipping.weights or {"party": "equal", "record": "records"}[clipping.level]) == "records"
    weights = sizes / sizes.sum() if by_size else np.full(len(datasets), 1 / len(datasets))
    step_rule = optimizer.begin(3)

    def cut(vector: Array) -> Array:
        return vector * min(1.0, clipping.max_norm / float(np.linalg.norm(vector)))

    for _ in range(steps):
        total = np.zeros(3)
        for weight, data in zip(weights, datasets, strict=True):
            x, y = (np.asarray(table) for table in data)
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
        theta = step_rule(theta, total)
    return theta


RULES = {"clipping", "optimizer", "local", "penalty", "mu"}


def run(
    datasets: list[PartyData], epsilon: float = HUGE, steps: int = 20, clipping: Clipping | None = None, **more: Any
) -> TrainingResult:
    averager = more.pop("averager", None) or SimulatedAverager.of("central", len(datasets))
    rng = np.random.default_rng(more.pop("seed", 3))
    budget = more.pop("budget", None) or Budget(epsilon, 1e-5)
    model = more.pop("model", None) or Least()
    rules = TrainingRules(clipping or Clipping(1.0), **{name: more.pop(name) for name in RULES & more.keys()})
    return train(model, datasets, averager, budget, steps, rng, rules, **more)


@pytest.mark.parametrize("optimizer", [SGD(0.3), SGD(0.2, 0.8), Adam(0.1)])
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
    optimizer: Optimizer, level: ProtectionLevel, weights: PartyWeights | None, local: LocalSteps | None
) -> None:
    datasets, clipping = records([5, 1, 9, 4]), Clipping(0.7, level, weights)
    result = run(datasets, clipping=clipping, optimizer=optimizer, local=local)
    assert np.abs(result.parameters - plain(datasets, clipping, 20, optimizer, local)).max() < 1e-6


class Spy(SimulatedAverager):
    """Keeps what the averager is given."""

    def __init__(self, parties: int) -> None:
        super().__init__(SimulatedAverager.of("central", parties).mechanism)
        self.seen: list[tuple[Array, float]] = []

    def average(
        self, vectors: Any, sensitivity: float, mu: float, rng: np.random.Generator, *, max_norm: float | None = None
    ) -> VectorMean:
        self.seen.append((np.array(vectors), sensitivity))
        assert max_norm is not None and np.linalg.norm(vectors, axis=1).max() <= max_norm * (1 + 1e-12)
        return super().average(vectors, sensitivity, mu, rng)


@examples(40, 100)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5),
    st.sampled_from(["party", "record"]),
    st.sampled_from(["equal", "records"]),
    st.floats(0.1, 10.0),
    st.integers(0, 2**32 - 1),
)
def test_a_protected_change_moves_the_contributions_by_at_most_the_sensitivity(
    sizes: list[int], level: ProtectionLevel, weights: PartyWeights, length: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    datasets = records(sizes, seed)
    party = int(rng.integers(len(sizes)))
    x, y = (np.array(table) for table in datasets[party])
    changed = slice(None) if level == "party" else slice(1)
    x[changed] = 10 * rng.standard_normal(x[changed].shape)
    y[changed] *= -10
    neighbour = [*datasets[:party], (x, y), *datasets[party + 1 :]]
    spies = [Spy(len(sizes)), Spy(len(sizes))]
    for spy, data in zip(spies, (datasets, neighbour), strict=True):
        run(data, steps=1, clipping=Clipping(length, level, weights), averager=spy)
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
        datasets: list[PartyData] = [
            (np.array([[sign * 9.0, 0, 0], [1, 0, 0]]), np.ones(2)),
            (np.ones((6, 3)), np.ones(6)),
        ]
        run(datasets, steps=1, clipping=Clipping(0.5, "record"), averager=spy)
        spies.append(spy)
    moved = np.linalg.norm(spies[0].seen[0][0] - spies[1].seen[0][0])
    assert moved == pytest.approx(spies[0].seen[0][1]) == pytest.approx(2 * 0.5 * 2 / 8)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 3), (3.0, 20), pytest.param(8.0, 100, marks=pytest.mark.slow)])
def test_the_composed_epsilon_is_that_of_dp_accounting(epsilon: float, steps: int) -> None:
    budget = Budget(epsilon, 1e-5)
    result = run(records([3] * 4), budget=budget, steps=steps)
    # The curator's noise in the mean has deviation s / (n mu), and a party moves the mean by s / n.
    ratio = result.history[0].sigma_noise / (result.sensitivity / 4)
    accountant = PLDAccountant().compose(SelfComposedDpEvent(GaussianDpEvent(ratio), steps))
    assert accountant.get_epsilon(1e-5) == pytest.approx(epsilon, rel=1e-3)
    assert float(epsilon_for(result.mu, 1e-5)) == pytest.approx(epsilon, rel=1e-9)
    assert budget.epsilon_spent == pytest.approx(epsilon, rel=1e-9)


def test_the_noise_of_the_average_is_what_the_history_says() -> None:
    # Gradients of 0: one step of rate 1 releases minus the noise. 30,000 squares; the band is 5.2 deviations of their
    # sum wide, so a sound implementation fails with probability below 1e-6.
    d = 30_000
    averager, budget, rng = SimulatedAverager.of("central", 4), Budget(1.0, 1e-5), np.random.default_rng(5)
    result = train(
        Flat(d), records([2] * 4), averager, budget, 1, rng, TrainingRules(Clipping(1.0), optimizer=SGD(1.0))
    )
    ratio = float(np.mean(result.parameters**2)) / result.history[0].sigma_noise ** 2
    assert abs(ratio - 1) < 5.2 * math.sqrt(2 / d)
    assert result.history[0].norm == pytest.approx(float(np.linalg.norm(result.parameters)))
    assert result.history[0].sigma_noise == pytest.approx(result.sensitivity / (4 * budget.mu))


def test_the_budget_is_taken_before_any_record_is_looked_at() -> None:
    budget = Budget(1.0, 1e-5)
    touched = []

    class Watching(Least):
        def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
            touched.append(budget.left)
            return super().gradient(parameters, features, targets)

    arguments = (records([3] * 4), SimulatedAverager.of("central", 4), budget)
    with pytest.raises(BudgetExceeded, match=r"must be at most 0\.\d+, which is left"):
        train(Watching(), *arguments, 5, np.random.default_rng(1), TrainingRules(Clipping(1.0), mu=budget.mu / 2))
    assert not touched and budget.spent == 0.0
    train(Watching(), *arguments, 4, np.random.default_rng(1), TrainingRules(Clipping(1.0), mu=budget.mu / 2))
    assert len(touched) == 16 and max(touched) < 1e-4 * budget.mu
    with pytest.raises(BudgetExceeded, match="must be left of the budget epsilon 1 at delta 1e-05, got nothing"):
        train(Watching(), *arguments, 1, np.random.default_rng(1), TrainingRules(Clipping(1.0)))
    assert len(touched) == 16


def test_two_trainings_share_a_budget() -> None:
    budget = Budget(2.0, 1e-5)
    first = run(records([3] * 4), budget=budget, steps=4, mu=budget.part(0.25 / 4))
    second = run(records([3] * 4), budget=budget, steps=6)
    assert math.hypot(first.mu, second.mu) == pytest.approx(budget.mu)
    assert second.mu**2 == pytest.approx(0.75 * budget.mu**2)


def test_parameters_that_leave_the_range_of_numbers_are_refused() -> None:
    with (
        pytest.raises(InvalidInput, match="parameters after step 1 are not finite: a smaller rate"),
        np.errstate(all="ignore"),
    ):
        run(records([3] * 4), optimizer=SGD(1e308), epsilon=0.01)


def test_steps_in_which_nobody_is_left_are_skipped_and_counted() -> None:
    class Deserted(Spy):
        def average(
            self,
            vectors: Any,
            sensitivity: float,
            mu: float,
            rng: np.random.Generator,
            *,
            max_norm: float | None = None,
        ) -> VectorMean:
            average = super().average(vectors, sensitivity, mu, rng, max_norm=max_norm)
            return average if len(self.seen) % 2 else VectorMean(None, math.inf, mu)

    datasets, released = records([3] * 4), []
    result = run(datasets, steps=6, averager=Deserted(4), on_step=lambda step, theta: released.append(theta))
    assert [step.skipped for step in result.history] == [False, True] * 3
    assert all(np.array_equal(released[i], released[i + 1]) for i in (0, 2, 4))
    assert np.abs(result.parameters - plain(datasets, Clipping(1.0), 3, SGD())).max() < 1e-6
    assert result.mu == pytest.approx(math.sqrt(6) * result.history[0].mu)


def test_a_penalty_is_neither_clipped_nor_noised() -> None:
    model = Flat()
    model.parameters += 100.0
    result = run(records([2, 2]), steps=1, model=model, optimizer=SGD(1.0), penalty=lambda theta: 0.5 * theta)
    assert np.abs(result.parameters - 50).max() < 1e-6


def test_gradients_of_records_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = records([11, 4])
    whole = run(datasets, clipping=Clipping(1.0, "record"))
    monkeypatch.setattr("inca.learn.training.contributions._BLOCK_ENTRIES", 9)  # three records at a time
    assert np.allclose(run(datasets, clipping=Clipping(1.0, "record")).parameters, whole.parameters, atol=1e-9)


@pytest.fixture(scope="module")
def leaving() -> SimulatedAverager:
    return SimulatedAverager.of("inca", 20, Conditions(dropout=0.2, colluding=0.0), releases=300)


@pytest.mark.slow
def test_parties_that_leave_in_every_step_are_back_in_the_next(leaving: SimulatedAverager) -> None:
    # One party of 20 alone knows the last coordinate, and it takes many steps to learn. It leaves in a fifth of them:
    # had leavers stayed away, it would have been there for five steps on average.
    for averager in (leaving, SimulatedAverager.of("central", 20, Conditions(dropout=0.2, colluding=0.0))):
        datasets = records([6] * 20)
        for features, _ in datasets[1:]:
            np.asarray(features)[:, 2] = 0.0
        datasets = [(x, np.asarray(x) @ np.array([1.0, 2.0, 3.0])) for x, _ in datasets]
        result = run(datasets, steps=300, clipping=Clipping(5.0), optimizer=SGD(0.5, 0.8), averager=averager)
        assert np.abs(result.parameters - [1, 2, 3]).max() < 0.1


def test_with_dropouts_and_privacy_it_still_learns(leaving: SimulatedAverager) -> None:
    datasets = records([200] * 20)
    result = run(
        datasets, epsilon=3.0, steps=30, clipping=Clipping(2.0, "record"), optimizer=SGD(0.5), averager=leaving
    )
    assert np.abs(result.parameters - [1, 2, 3]).max() < 0.5  # starts 3 away; the noise's share is about 0.1
    assert not any(step.skipped for step in result.history)


def test_memory_grows_with_parties_and_parameters_but_not_with_steps() -> None:
    def peak(n: int, d: int, steps: int) -> float:
        """The most memory that training holds, in tables of n times d doubles."""
        datasets, averager = records([1] * n, d=d), SimulatedAverager.of("central", n)
        tracemalloc.start()
        train(
            Least(d),
            datasets,
            averager,
            Budget(1.0, 1e-5),
            steps,
            np.random.default_rng(1),
            TrainingRules(Clipping(1.0)),
        )
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
            "datasets": records([3, 3]),
            "averager": SimulatedAverager.of("central", 2),
            "budget": Budget(1.0, 1e-5),
            "steps": 2,
            "rng": np.random.default_rng(1),
        }
        rules = {"clipping": Clipping(1.0)} | {name: changes[name] for name in RULES & changes.keys()}
        arguments |= {name: change for name, change in changes.items() if name not in RULES}
        return train(**arguments, rules=TrainingRules(**rules))

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
        (call(steps=0), "steps must be .*got 0"),
        (call(steps=1.5), "steps must be .*got 1.5"),
        (call(rng=3), "rng must be .*got 3"),
        (call(datasets=records([3])), "the number of datasets must be 2, one for each party, got 1"),
        (
            call(datasets=[*records([3]), (np.zeros((0, 3)), np.zeros(0))]),
            r"the number of records of datasets\[1\] must be at least 1, got 0",
        ),
        (call(datasets=[*records([3]), (np.zeros((2, 3)), np.zeros(3))]), r"the shapes of datasets\[1\]"),
        (call(mu=0.0), "mu must be .*got 0.0"),
        (call(model=Least(0)), "the number of model.parameters must be at least 1, got 0"),
        (call(model=NoRecords()), r"the shape of a gradient must be \(3,\), that of the parameters, got \(2,\)"),
        (
            call(model=NoRecords(), clipping=Clipping(1.0, "record")),
            "model must be a model with record_gradients.*, got 'NoRecords'",
        ),
        (
            call(model=Short(), clipping=Clipping(1.0, "record")),
            r"record_gradients must be one row per.*, got \(1, 3\)",
        ),
        (
            call(clipping=Clipping(1.0, "record"), local=LocalSteps(2, 0.1)),
            "local steps cannot be combined with level 'record'",
        ),
        (call(optimizer=SGD(0.0)), "rate must be .*got 0.0"),
        (call(optimizer=SGD(1.0, 1.5)), "momentum must be .*got 1.5"),
        (call(optimizer=Adam(1.0, 1.0)), "beta1 must be below 1, got 1.0"),
        (lambda: Clipping(0.0), "max_norm must be .*got 0.0"),
        (lambda: Clipping(1e-170), r"max_norm must be from 1e-100 to 1e\+100, got 1e-170"),
        (lambda: Clipping(1e170), r"max_norm must be from 1e-100 to 1e\+100, got 1e\+170"),
        (lambda: Clipping(1.0, "person"), "level must be .*got 'person'"),  # type: ignore[arg-type]
        (lambda: Clipping(1.0, weights="size"), "weights must be .*got 'size'"),  # type: ignore[arg-type]
        (lambda: LocalSteps(0, 0.1), "count must be .*got 0"),
        (lambda: LocalSteps(1, 0.0), "rate must be .*got 0.0"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_steps_that_cost_more_than_the_budget_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match=r"the mu of a release must be at most .*, got 12\.73"):
        call(mu=9.0)()


def test_refused_arguments_cost_nothing() -> None:
    budget = Budget(1.0, 1e-5)
    wrong: list[dict[str, Any]] = [
        {"clipping": Clipping(1.0, "record"), "local": LocalSteps(2, 0.1)},
        {"datasets": []},
        {"rng": 1},
    ]
    for changes in wrong:
        with pytest.raises(InvalidInput):
            call(budget=budget, **changes)()
    assert budget.spent == 0.0
