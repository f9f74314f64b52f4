"""Logistic regression of parties that keep their records: a scikit-learn estimator on top of `train`.

It needs scikit-learn, which is optional elsewhere: pip install 'inca[learn]'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from inca._base.types import Array
from inca._base.validation import InputError, positive, real, refuse, whole
from inca.learn.averagers.simulated import KINDS, Aggregator, calibrated
from inca.learn.budget import Budget
from inca.learn.training.models import LogisticModel
from inca.learn.training.train import Clipping, Descent, Level, LocalSteps, Weights, train
from inca.protocol.domain import Ball

_MESSAGES = 20  # of a party in each average


class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic regression by private averages of the parties' gradients.

    What must be public: everything given here, the number of features, who holds how many records, and the set of
    classes (`classes`; by default those that occur in y, which is then taken for public).

    `epsilon`, `delta`: the guarantee for the whole fit, against the aggregator's adversary. `level`: what it protects,
    each party with all its records ("party"), or each record ("record": for many records, far less noise).
    `parties`: how many equal parts the records are divided into, in order, if `fit` gets no groups.
    `aggregator`: a kind ("inca", "central", "gopa", "cordp", "local"), calibrated with `colluding` and `dropout` (the
    fraction that leaves during every step), so that the promise fails in any of the steps with a chance of at most one
    in a million; or an `Aggregator`, which should be made for as many `releases` as there are steps.
    `radius`: records longer than this are scaled down to it, in `fit` and when predicting; features should be scaled by
    public numbers beforehand. `clip`: the length that gradients of parties or records are cut to.
    `steps`, `rate`, `momentum`: of the shared descent. `local_steps`: more than one makes it model averaging (steps
    of each party between two averages), at level "party" only. `l2`: of the ridge, per mean loss, not on the intercept.
    `weights`: "equal" or "records", see `inca.learn.training.train.Clipping`. `views`: of the plan of "inca".
    `random_state`: None, a number, a RandomState or a Generator; whoever knows a seed knows the noise.

    After `fit`: `coef_`, `intercept_`, `classes_`, `n_features_in_`, `epsilon_` (spent), `history_` and `n_iter_`.

    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((2000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> found = PrivateLogisticRegression(epsilon=2.0, level="record", aggregator="central", random_state=1).fit(X, y)
    >>> bool(found.score(X, y) > 0.95), round(found.epsilon_, 6)
    (True, 2.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        parties: int = 20,
        aggregator: str | Aggregator = "inca",
        colluding: float = 0.0,
        dropout: float = 0.0,
        views: int = 100,
        level: Level = "party",
        weights: Weights | None = None,
        radius: float = 3.0,
        clip: float = 0.25,
        steps: int = 20,
        rate: float = 1.0,
        momentum: float = 0.5,
        local_steps: int = 1,
        l2: float = 0.0,
        fit_intercept: bool = True,
        classes: Sequence[Any] | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        """Keep the parameters; `fit` looks at them."""
        self.epsilon, self.delta = epsilon, delta
        self.parties, self.aggregator = parties, aggregator
        self.colluding, self.dropout, self.views = colluding, dropout, views
        self.level, self.weights = level, weights
        self.radius, self.clip = radius, clip
        self.steps, self.rate, self.momentum, self.local_steps = steps, rate, momentum, local_steps
        self.l2, self.fit_intercept = l2, fit_intercept
        self.classes, self.random_state = classes, random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> PrivateLogisticRegression:
        """Train on records X with classes y; records of the same group are one party's.

        The parties are the groups that occur, whatever `parties` says. A party may hold one class only.
        """
        table, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, targets = _numbered(labels, self.classes)
        members = _parties(len(table), self.parties, groups)
        aggregator = self._aggregator(len(members))
        columns, width = self._columns(table), table.shape[1]
        model = LogisticModel(columns.shape[1], len(self.classes_))
        ridge = np.zeros((model.rows, columns.shape[1]))
        ridge[:, :width] = real("l2", self.l2, least=0.0)
        turns, rate = whole("local_steps", self.local_steps, least=1), positive("rate", self.rate)
        budget = Budget(self.epsilon, self.delta)
        found = train(
            model,
            [(columns[rows], targets[rows]) for rows in members],
            aggregator,
            budget,
            self.steps,
            _generator(self.random_state),
            clipping=Clipping(positive("clip", self.clip), self.level, self.weights),
            optimiser=Descent(rate * turns, self.momentum),
            local=LocalSteps(turns, rate) if turns > 1 else None,
            penalty=lambda parameters: ridge.reshape(-1) * parameters,
        )
        weights = found.parameters.reshape(model.rows, -1)
        self.coef_ = weights[:, :width]
        self.intercept_ = weights[:, width] if self.fit_intercept else np.zeros(model.rows)
        self.history_, self.n_iter_, self.epsilon_ = found.history, len(found.history), budget.epsilon_spent
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the score of the second class, (m,), or of each of more classes, (m, K)."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self._admit(table) @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class for each record, (m, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each record."""
        scores = self.decision_function(X)
        number = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[number])

    def _admit(self, table: Array) -> Array:
        return Ball(self.radius).admit(table, clip=True)

    def _columns(self, table: Array) -> Array:
        inside = self._admit(table)
        return np.column_stack([inside, np.ones(len(inside))]) if self.fit_intercept else inside

    def _aggregator(self, parties: int) -> Aggregator:
        if isinstance(self.aggregator, Aggregator):
            return self.aggregator
        if not isinstance(self.aggregator, str):
            raise refuse("aggregator", self.aggregator, f"an Aggregator or one of {', '.join(KINDS)}")
        steps = whole("steps", self.steps, least=1)
        return calibrated(self.aggregator, parties, self.colluding, self.dropout, _MESSAGES, self.views, steps)


def _numbered(labels: NDArray[Any], classes: Sequence[Any] | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes in order, and each label's number among them."""
    known = np.unique(labels if classes is None else np.asarray(classes))
    if len(known) < 2:
        raise InputError(f"y has one class, {known[:1].tolist()}, but at least two classes were expected")
    numbers = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    strange = known[numbers] != labels
    if strange.any():
        raise refuse("a label in y", labels[strange][0], f"one of the classes {known.tolist()}")
    return known, numbers


def _parties(records: int, parties: int, groups: ArrayLike | None) -> list[NDArray[np.intp]]:
    """Return which records each party holds."""
    if groups is None:
        count = whole("parties", parties, least=2)
        if records < count:
            raise InputError(f"n_samples={records}, but at least one record for each of {count} parties was expected")
        return list(np.array_split(np.arange(records), count))
    names = np.asarray(groups)
    if names.shape != (records,):
        raise refuse("the shape of groups", names.shape, f"one group for each of {records} records")
    _, party = np.unique(names, return_inverse=True)
    return np.split(np.argsort(party, kind="stable"), np.cumsum(np.bincount(party))[:-1])


def _generator(random_state: int | np.random.RandomState | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; without a state, from the operating system's randomness."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
