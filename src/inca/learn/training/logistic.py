"""Logistic regression of parties that keep their records: a scikit-learn estimator on top of `train`.

It needs scikit-learn, which is optional elsewhere: pip install 'inca[learn]'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from inca._base.extras import importing
from inca._base.options import Conditions
from inca._base.safe_numbers import safe_length
from inca._base.types import Array
from inca._base.validation import finite_float, integer, positive, refuse
from inca.errors import InvalidInput
from inca.learn.averagers.simulated import KINDS, SimulatedAverager, calibrated
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.training.clipping import Clipping, PartyWeights
from inca.learn.training.contributions import LocalSteps
from inca.learn.training.models import LogisticModel
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import TrainingRules, train
from inca.protocol.domain import Ball

with importing("PrivateLogisticRegression", extra="learn"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data

_FAILURE = 1e-6  # that a plan is made for by default, in all steps together

PUBLIC = "public"
"""Says that the classes which occur in y are public."""


class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Logistic regression by private averages of the parties' gradients.

    What must be public: everything given here, the number of features, who holds how many records, and the set of
    classes. After `fit` there are `coef_`, `intercept_`, `classes_`, `n_features_in_`, `epsilon_` (spent),
    `failure_probability_`, `history_` and `n_iter_`. What is promised is `epsilon_` at delta + `failure_probability_`.

    Args:
        epsilon: The epsilon of the whole fit, against the averager's adversary.
        delta: The delta of the whole fit.
        parties: How many equal parts the records are divided into, in order, if `fit` gets no groups.
        averager: "inca", "central", "gopa", "cordp" or "local", calibrated so that the guarantee fails in any of the
            steps with a probability of at most `failure`; or a `SimulatedAverager`, which must be made for as many
            `releases` as there are steps.
        failure: The largest probability that the averager's plan fails in any of the steps, which adds to delta. By
            default at most delta is accepted, and "inca" and "gopa" are planned for one in a million or delta, if that
            is less.
        colluding: The fraction of the parties that pools what it sees; by default a tenth, at least one.
        dropout: The fraction of the parties that leaves during every step; by default none does, and a tenth may.
        level: What is protected: each party with all its records ("party"), or each record ("record": for many
            records, far less noise).
        weights: "equal" or "records", see `Clipping`.
        radius: Records longer than this are scaled down to it, in `fit` and when predicting; features should be scaled
            by public numbers beforehand.
        clip: The length that gradients of parties or records are scaled down to.
        steps: The number of shared steps, each a private average.
        rate: The learning rate.
        momentum: How much of the last shared step is kept.
        local_steps: More than 1 makes it model averaging (steps of each party between two averages), at level "party"
            only.
        l2: The ridge, per mean loss, not on the intercept.
        fit_intercept: Whether there is an intercept.
        classes: All classes that there can be, at least two; or "public" if those that occur in y are known to
            everyone. They are never looked up in private labels without being asked to.
        random_state: None, a number, a RandomState or a Generator; whoever knows a seed knows the noise.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> X = rng.standard_normal((2000, 2))
        >>> y = np.where(X[:, 0] > 0, "yes", "no")
        >>> model = PrivateLogisticRegression(
        ...     epsilon=2.0, classes=["no", "yes"], level="record", averager="central", random_state=1
        ... )
        >>> bool(model.fit(X, y).score(X, y) > 0.95), round(model.epsilon_, 6), model.failure_probability_
        (True, 2.0, 0.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        parties: int = 20,
        averager: str | SimulatedAverager = "inca",
        failure: float | None = None,
        colluding: float = Conditions.colluding,
        dropout: float | None = None,
        level: ProtectionLevel = "party",
        weights: PartyWeights | None = None,
        radius: float = 3.0,
        clip: float = 0.25,
        steps: int = 20,
        rate: float = 1.0,
        momentum: float = 0.5,
        local_steps: int = 1,
        l2: float = 0.0,
        fit_intercept: bool = True,
        classes: Sequence[Any] | str | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.parties, self.averager, self.failure = parties, averager, failure
        self.colluding, self.dropout = colluding, dropout
        self.level, self.weights = level, weights
        self.radius, self.clip = radius, clip
        self.steps, self.rate, self.momentum, self.local_steps = steps, rate, momentum, local_steps
        self.l2, self.fit_intercept = l2, fit_intercept
        self.classes, self.random_state = classes, random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> PrivateLogisticRegression:
        """Train on records X with classes y.

        Args:
            X: One row of features per record.
            y: The class of each record. A party may hold one class only.
            groups: The party of each record; the parties are then the groups that occur, whatever `parties` says.

        Returns:
            The fitted model.
        """
        table, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, targets = _numbered(labels, self.classes)
        budget = Budget(self.epsilon, self.delta, failure=self.failure)
        members = _parties(len(table), self.parties, groups)
        averager = self._averager(len(members), budget)
        columns, width = self._columns(table), table.shape[1]
        model = LogisticModel(columns.shape[1], len(self.classes_))
        ridge = np.zeros((model.rows, columns.shape[1]))
        ridge[:, :width] = finite_float("l2", self.l2, min=0.0)
        turns, rate = integer("local_steps", self.local_steps, min=1), positive("rate", self.rate)
        result = train(
            model,
            [(columns[rows], targets[rows]) for rows in members],
            averager,
            budget,
            self.steps,
            _generator(self.random_state),
            TrainingRules(
                Clipping(positive("clip", self.clip), self.level, self.weights),
                optimizer=SGD(rate * turns, self.momentum),
                local=LocalSteps(turns, rate) if turns > 1 else None,
                penalty=lambda parameters: ridge.reshape(-1) * parameters,
            ),
        )
        weights = result.parameters.reshape(model.rows, -1)
        self.coef_ = weights[:, :width]
        self.intercept_ = weights[:, width] if self.fit_intercept else np.zeros(model.rows)
        self.history_, self.n_iter_ = result.history, len(result.history)
        self.epsilon_, self.failure_probability_ = budget.epsilon_spent, budget.failure_probability
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the score of the second class, (m,), or of each of more classes, (m, K)."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self._inside(table) @ self.coef_.T + self.intercept_
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

    def _inside(self, table: Array) -> Array:
        return Ball(safe_length("radius", self.radius)).validate(table, clip=True)

    def _columns(self, table: Array) -> Array:
        inside = self._inside(table)
        return np.column_stack([inside, np.ones(len(inside))]) if self.fit_intercept else inside

    def _averager(self, parties: int, budget: Budget) -> SimulatedAverager:
        if isinstance(self.averager, SimulatedAverager):
            return self.averager
        if not isinstance(self.averager, str):
            refuse("averager", self.averager, f"a SimulatedAverager or one of {', '.join(KINDS)}")
        steps = integer("steps", self.steps, min=1)
        failure = min(_FAILURE, budget.delta) if self.failure is None else self.failure
        return calibrated(
            self.averager,
            parties,
            Conditions(colluding=self.colluding, dropout=self.dropout, failure=failure),
            releases=steps,
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters without the seed: whoever knows it knows the noise."""
        shown = type(self)(**{**self.get_params(deep=False), "random_state": None})
        return str(super(PrivateLogisticRegression, shown).__repr__(N_CHAR_MAX))


def _numbered(labels: NDArray[Any], classes: Sequence[Any] | str | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes in order, and each label's number among them."""
    if classes is None or (isinstance(classes, str) and classes != PUBLIC):
        refuse("classes", classes, f"all classes that there can be, or {PUBLIC!r} if those in y are known to everyone")
    public = isinstance(classes, str)
    known = np.unique(labels if public else np.asarray(classes))
    if len(known) < 2:
        name = "y" if public else "classes"
        raise InvalidInput(f"{name} must have at least two classes, got one class, {known[:1].tolist()}")
    numbers = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    unknown = np.flatnonzero(known[numbers] != labels)
    if unknown.size:
        raise InvalidInput(f"y[{unknown[0]}] must be one of the {len(known)} classes, got something else")
    return known, numbers


def _parties(records: int, parties: int, groups: ArrayLike | None) -> list[NDArray[np.intp]]:
    """Return which records each party holds."""
    if groups is None:
        count = integer("parties", parties, min=2)
        if records < count:
            raise InvalidInput(f"there must be at least {count} records, one for each party, got n_samples={records}")
        return list(np.array_split(np.arange(records), count))
    names = np.asarray(groups)
    if names.shape != (records,):
        refuse("the shape of groups", names.shape, f"({records},), one group for each record")
    _, party = np.unique(names, return_inverse=True)
    return np.split(np.argsort(party, kind="stable"), np.cumsum(np.bincount(party))[:-1])


def _generator(random_state: int | np.random.RandomState | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; without a state, from the operating system's randomness."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
