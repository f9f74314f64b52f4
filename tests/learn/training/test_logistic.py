from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers.paths import ROOT
from inca import Conditions, InvalidInput, Requirements
from inca._base.types import Array
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.training.logistic import PrivateLogisticRegression
from inca.learn.training.models import LogisticModel
from inca.mechanisms.central_local import CentralDP

FREE = 1e16  # epsilon at which noise is far below what is compared


def regression(epsilon: float = FREE, **more: Any) -> PrivateLogisticRegression:
    chosen: dict[str, Any] = {"averager": "central", "parties": 4, "random_state": 1, "classes": "public"}
    return PrivateLogisticRegression(epsilon, **chosen | more)


def clouds(records: int = 200, classes: int = 2, seed: int = 1) -> tuple[Array, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    y = np.arange(records) % classes
    angle = 2 * np.pi * y / classes
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.5 * rng.standard_normal((records, 2)), y


def expected_failures(estimator: PrivateLogisticRegression) -> dict[str, str]:
    if estimator.epsilon >= FREE or estimator.level == "record":
        return {}
    return {
        "check_classifiers_train": "wants an accuracy of 0.83, which noise that hides one of 4 parties does not leave"
    }


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [regression(level="record", random_state=None)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator: PrivateLogisticRegression, check: Callable[[object], None]) -> None:
    check(estimator)


OTHERS: list[tuple[str, list[float]]] = [("party", []), ("party", [3.0]), ("record", [3.0])]


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [regression(*epsilon, level=level, random_state=None) for level, epsilon in OTHERS],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions_at_the_other_levels(
    estimator: PrivateLogisticRegression, check: Callable[[object], None]
) -> None:
    check(estimator)


@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_slopes_of_the_loss(classes: int) -> None:
    x, y = clouds(30, classes)
    model = LogisticModel(2, classes)
    rng = np.random.default_rng(2)
    theta, direction = rng.standard_normal((2, model.parameters.size))

    def loss(parameters: Array) -> float:
        scores = model.scores(parameters, x)
        full = np.column_stack([np.zeros(len(x)), scores]) if classes == 2 else scores
        return float(np.mean(logsumexp(full, axis=1) - full[np.arange(len(x)), y]))

    slope = (loss(theta + 1e-6 * direction) - loss(theta - 1e-6 * direction)) / 2e-6
    assert float(model.gradient(theta, x, y) @ direction) == pytest.approx(slope, rel=1e-6)
    gradients = model.record_gradients(theta, x, y)
    assert gradients.shape == (30, theta.size)
    assert np.allclose(gradients.mean(axis=0), model.gradient(theta, x, y), atol=1e-14)


@pytest.mark.parametrize("level", ["party", "record"])
@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_and_clipping_it_finds_the_minimum(level: str, classes: int) -> None:
    x, y = clouds(201, classes)  # parties of different sizes
    groups = np.repeat([0, 1, 2], 67) if level == "party" else np.arange(201) % 7 // 3
    estimator = regression(level=level, clip=50.0, radius=100.0, steps=300, rate=1.0, momentum=0.9, l2=0.1)
    estimator.fit(x, y, groups)
    reference = LogisticRegression(C=1 / (201 * 0.1), tol=1e-10, max_iter=10_000).fit(x, y)
    assert np.abs(estimator.coef_ - reference.coef_).max() < 1e-4
    if classes == 2:
        assert np.abs(estimator.intercept_ - reference.intercept_).max() < 1e-4
    assert np.abs(estimator.predict_proba(x) - reference.predict_proba(x)).max() < 1e-4


def test_the_minimum_of_clipped_records_is_not_that_of_all() -> None:
    # Clipping the gradient of each record is a choice with consequences; the scaled records are seen in `predict`, too.
    x, y = clouds()
    near, far = regression(level="record", clip=0.01, steps=5).fit(x, y), regression(level="record", clip=9.0).fit(x, y)
    assert np.linalg.norm(near.coef_) < 0.1 * np.linalg.norm(far.coef_)
    scaled = regression(radius=0.5).fit(x, y)
    assert np.allclose(
        scaled.predict_proba(1e3 * x), scaled.predict_proba(0.5 * x / np.linalg.norm(x, axis=1)[:, None])
    )


@pytest.mark.parametrize("kind", ["central", "local", "cordp", pytest.param("inca", marks=pytest.mark.slow)])
def test_every_kind_of_averager_learns(kind: str) -> None:
    x, y = clouds(2000)
    estimator = regression(8.0, parties=10, averager=kind, level="record", dropout=0.2).fit(x, y)
    assert estimator.score(x, y) > 0.9 and estimator.epsilon_ == pytest.approx(8.0)


def test_a_given_averager_and_groups_of_any_names() -> None:
    x, y = clouds(100)
    groups = np.array(["b", "a", "c", "a"] * 25)
    estimator = regression(averager=SimulatedAverager.of("central", 3)).fit(x, y, groups=groups)
    order = np.argsort(groups, kind="stable")
    again = regression(averager="central").fit(x[order], y[order], groups=np.repeat([1, 2, 3], [50, 25, 25]))
    assert np.array_equal(estimator.coef_, again.coef_)
    with pytest.raises(InvalidInput, match="the number of datasets must be 5, one for each party, got 3"):
        regression(averager=SimulatedAverager.of("central", 5)).fit(x, y, groups)


def test_the_plan_is_for_all_steps_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def noted(kind: str, parties: int, conditions: Conditions, **more: Any) -> SimulatedAverager:
        asked.append(more["releases"])
        return SimulatedAverager(CentralDP(Requirements(parties, 1.0, 1e-5, colluding=0.0, dropout=0.0)))

    monkeypatch.setattr(SimulatedAverager, "of", noted)
    x, y = clouds(26)  # as many parties as no other test has, since averagers are kept
    for steps in (3, 5, 3):
        regression(1.0, parties=13, steps=steps).fit(x, y)
    assert asked == [3, 5]


def test_the_plan_fails_with_at_most_delta_unless_more_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def noted(kind: str, parties: int, conditions: Conditions, **more: Any) -> SimulatedAverager:
        asked.append(conditions.failure)
        mechanism = CentralDP(Requirements(parties, 1.0, 1e-5, colluding=0.0, dropout=0.0))
        return SimulatedAverager(mechanism, releases=more["releases"], failure=conditions.failure)

    monkeypatch.setattr(SimulatedAverager, "of", noted)
    x, y = clouds(22)  # as many parties as no other test has, since averagers are kept
    failures = []
    for delta, failure in ((1e-9, None), (1e-5, None), (1e-9, 1e-4)):
        estimator = regression(1.0, parties=11, delta=delta, failure=failure).fit(x, y)
        failures.append(estimator.failure_probability_)
    assert asked == [1e-9, 1e-6, 1e-4] and failures == pytest.approx(asked)
    planned = SimulatedAverager(
        CentralDP(Requirements(11, 1.0, 1e-5, colluding=0.0, dropout=0.0)), releases=20, failure=1e-6
    )
    with pytest.raises(InvalidInput, match=r"a plan fails in any release must be at most 1e-09 .*, got 1e-06"):
        regression(1.0, delta=1e-9, averager=planned, parties=11).fit(x, y)
    once = SimulatedAverager(CentralDP(Requirements(11, 1.0, 1e-5, colluding=0.0, dropout=0.0)), failure=1e-6)
    with pytest.raises(InvalidInput, match=r"must be at most 1, which the averager was made for, got 20"):
        regression(1.0, averager=once, parties=11).fit(x, y)


def test_no_seed_is_shown_when_it_is_printed() -> None:
    estimator = regression(2.0, random_state=987654)
    assert "987654" not in repr(estimator) and "averager='central'" in repr(estimator)
    assert estimator.random_state == 987654


def test_a_party_may_hold_one_class_only() -> None:
    x, y = clouds(200)
    estimator = regression(steps=100).fit(x, y, groups=y)
    assert estimator.score(x, y) > 0.95


def test_classes_can_be_public() -> None:
    x, y = clouds(60)
    estimator = regression(classes=[2, 0, 1]).fit(x, y)
    assert estimator.classes_.tolist() == [0, 1, 2] and estimator.coef_.shape == (3, 2)
    assert estimator.predict_proba(x).shape == (60, 3) and set(estimator.predict(x)) == {0, 1}
    with pytest.raises(InvalidInput, match=r"y\[1\] must be one of the 2 classes, got something else"):
        regression(classes=[0, 7]).fit(x, y)


def test_classes_are_never_read_from_private_labels_unless_asked_for() -> None:
    x, y = clouds(60)
    for classes in (None, "all"):
        with pytest.raises(InvalidInput, match="classes must be all classes that there can be, or 'public'"):
            PrivateLogisticRegression(averager="central", classes=classes).fit(x, y)
    with pytest.raises(InvalidInput, match="classes must have at least two classes"):
        regression(classes=[3]).fit(x, y)
    one = regression(classes=["no", "yes"]).fit(x, np.full(60, "no"))  # what occurs makes no difference
    assert one.classes_.tolist() == ["no", "yes"]


def test_words_as_classes_three_of_them_and_no_intercept() -> None:
    x, y = clouds(300, 3)
    names = np.array(["oak", "ash", "elm"])[y]
    estimator = regression(fit_intercept=False, steps=50).fit(x, names)
    assert estimator.score(x, names) > 0.9 and not estimator.intercept_.any()
    assert estimator.decision_function(x).shape == (300, 3) and np.allclose(estimator.predict_proba(x).sum(axis=1), 1)


def test_seeds_states_and_generators() -> None:
    x, y = clouds(40)

    def coefficients(state: object) -> Array:
        return np.asarray(regression(1.0, random_state=state).fit(x, y).coef_)

    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        assert np.array_equal(coefficients(make()), coefficients(make()))
    assert not np.array_equal(coefficients(None), coefficients(None))


def test_it_works_inside_scikit_learn() -> None:
    x, y = clouds(200)
    pipeline = make_pipeline(FunctionTransformer(lambda table: table / 2), regression())
    search = GridSearchCV(pipeline, {"privatelogisticregression__clip": [0.1, 1.0]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.9
    copied = clone(regression(2.0, clip=0.7))
    assert copied.get_params()["clip"] == 0.7 and copied.set_params(epsilon=1.5).epsilon == 1.5


def test_local_steps_make_it_model_averaging() -> None:
    x, y = clouds(200)
    # One step of five local ones, nothing clipped: the mean of what each party finds in five steps alone.
    estimator = regression(steps=1, local_steps=5, clip=9.0, momentum=0.0).fit(x, y)
    alone = [
        regression(steps=5, clip=9.0, momentum=0.0).fit(x[part], y[part], np.arange(50) % 2).coef_
        for part in np.split(np.arange(200), 4)
    ]
    assert np.abs(estimator.coef_ - np.mean(alone, axis=0)).max() < 1e-6


@pytest.fixture(scope="module")
def halves() -> list[list[Array]]:
    """Splits of the breast cancer data, scaled by numbers that its description publishes."""
    scaled = runpy.run_path(str(ROOT / "benchmarks" / "learning.py"))["publicly_scaled"]
    x, y = scaled()
    assert np.linalg.norm(x, axis=1).max() < 4 and x.shape == (569, 30)
    return [train_test_split(x, y, test_size=0.3, stratify=y, random_state=seed) for seed in range(10)]


@pytest.mark.parametrize(
    ("least", "settings"),
    [
        (0.90, {"level": "party", "steps": 5, "rate": 3.0, "clip": 0.1, "local_steps": 3}),
        (0.92, {"level": "record", "steps": 40, "rate": 2.0, "clip": 0.5}),
        pytest.param(
            0.92,
            {"level": "record", "steps": 40, "rate": 2.0, "clip": 0.5, "averager": "inca", "dropout": 0.2},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_twenty_parties_at_epsilon_3_come_close_to_what_is_known_without_privacy(
    halves: list[list[Array]], least: float, settings: dict[str, Any]
) -> None:
    # Fixed seeds. Over 100 splits (the benchmark) the means are 0.94 and, twice, 0.955, with deviations of 0.02 from
    # split to split: the mean of ten misses these bounds by accident with probability below 1e-6. Not private: 0.975.
    scores = [
        regression(3.0, parties=20, **settings | {"random_state": seed}).fit(x, y).score(x_, y_)
        for seed, (x, x_, y, y_) in enumerate(halves)
    ]
    assert np.mean(scores) > least


def test_three_classes_of_iris() -> None:
    data = load_iris()
    x = (data.data - 4.0) / 4.0  # lengths of petals and sepals in centimetres, between 0 and 8
    order = np.random.default_rng(1).permutation(150)
    estimator = regression(steps=100, rate=3.0).fit(x[order], data.target[order])
    assert estimator.score(x, data.target) > 0.9


def minimum_without_noise(x: Array, y: Array, l2: float) -> Array:
    """The minimum by a general method, for two classes."""
    model = LogisticModel(x.shape[1], 2)

    def slope(theta: Array) -> Array:
        return model.gradient(theta, x, y) + l2 * theta

    def loss(theta: Array) -> float:
        scores = model.scores(theta, x)[:, 0]
        return float(np.mean(np.logaddexp(0, scores) - y * scores) + l2 * theta @ theta / 2)

    return np.asarray(minimize(loss, model.parameters, jac=slope, tol=1e-12).x)


def test_the_ridge_is_per_mean_loss() -> None:
    x, y = clouds()
    estimator = regression(clip=9.0, radius=50.0, steps=300, momentum=0.9, l2=0.3, fit_intercept=False).fit(x, y)
    assert np.abs(estimator.coef_[0] - minimum_without_noise(x, y, 0.3)).max() < 1e-5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be .*got 0.0"),
        ({"delta": 0.0}, "must be a guarantee that Gaussian noise can give|delta"),
        ({"delta": 1.0}, "must be a guarantee that Gaussian noise can give|delta"),
        ({"parties": 1}, "parties must be .*got 1"),
        ({"parties": 41}, "there must be at least 41 records, one for each party, got n_samples=40"),
        ({"averager": "best"}, "kind must be .*got 'best'"),
        (
            {"averager": ["central"]},
            r"averager must be a SimulatedAverager or one of inca, central.*, got \['central'\]",
        ),
        ({"radius": 0.0}, "radius must be .*got 0.0"),
        ({"clip": -1.0}, "clip must be .*got -1.0"),
        ({"steps": 0}, "steps must be .*got 0"),
        ({"rate": 0.0}, "rate must be .*got 0.0"),
        ({"momentum": -0.1}, "momentum must be .*got -0.1"),
        ({"l2": -1.0}, "l2 must be .*got -1.0"),
        ({"level": "person"}, "level must be .*got 'person'"),
        ({"weights": "size"}, "weights must be .*got 'size'"),
        ({"local_steps": 0}, "local_steps must be .*got 0"),
        ({"local_steps": 2, "level": "record"}, "local steps cannot be combined with level 'record'"),
        ({"dropout": 1.5}, "dropout must be .*got 1.5"),
    ],
)
def test_bad_parameters_are_refused_by_fit(changes: dict[str, Any], words: str) -> None:
    x, y = clouds(40)
    estimator = regression(1.0).set_params(**changes)
    with pytest.raises(InvalidInput, match=words):
        estimator.fit(x, y)


def test_bad_records_are_refused() -> None:
    x, y = clouds(40)
    with pytest.raises(InvalidInput, match="y must have at least two classes, got one class"):
        regression().fit(x, np.ones(40))
    with pytest.raises(InvalidInput, match=r"the shape of groups must be \(40,\), one .* record, got \(3,\)"):
        regression().fit(x, y, groups=[1, 2, 3])
    with pytest.raises(InvalidInput, match=r"parties must be .*got 1"):
        regression().fit(x, y, groups=np.zeros(40))
    with pytest.raises(ValueError, match="NaN"):
        regression().fit(np.where(x > 1, np.nan, x), y)
    with pytest.raises(NotFittedError):
        regression().predict(x)
