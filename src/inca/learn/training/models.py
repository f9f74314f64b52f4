"""What can be trained: the shape of a model, and logistic regression in NumPy."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from inca._base.types import Array
from inca._base.validation import integer


class Model(Protocol):
    """What is trained: a vector of parameters and the gradient of a mean loss."""

    @property
    def parameters(self) -> Array:
        """Where training begins, (d,)."""
        ...

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the mean loss over the records, (d,)."""
        ...


@runtime_checkable
class RecordModel(Model, Protocol):
    """A model that also knows the gradient of each record; privacy of single records needs it."""

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of each record's loss, (m, d)."""
        ...


class LogisticModel:
    """The loss of logistic regression: one row of weights for two classes, a softmax over one row each for more.

    Targets are numbers of classes, 0..K-1. Features come with a column of ones if there shall be an intercept.
    Training begins with weights of 0, where all classes are equally likely.

    Args:
        features: The number of features of a record.
        classes: The number K of classes.

    Example:
        >>> model = LogisticModel(features=2, classes=2)
        >>> model.gradient(model.parameters, np.array([[1.0, 3.0]]), np.array([1])).tolist()
        [-0.5, -1.5]
    """

    def __init__(self, features: int, classes: int) -> None:
        self.features, self.classes = integer("features", features, min=1), integer("classes", classes, min=2)
        self.rows = 1 if classes == 2 else classes

    @property
    def parameters(self) -> Array:
        """Zeros."""
        return np.zeros(self.rows * self.features)

    def scores(self, parameters: Array, features: Array) -> Array:
        """Return each row's score of each record, (m, 1) for two classes and (m, K) for more."""
        return features @ parameters.reshape(self.rows, self.features).T

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the mean of (probabilities - one-hot target) times features."""
        total: Array = self._residuals(parameters, features, targets).T @ features
        return total.reshape(-1) / len(features)

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return (probabilities - one-hot target) times features of each record."""
        residuals = self._residuals(parameters, features, targets)
        products: Array = residuals[:, :, np.newaxis] * features[:, np.newaxis, :]
        return products.reshape(len(features), -1)

    def _residuals(self, parameters: Array, features: Array, targets: NDArray[Any]) -> Array:
        scores = self.scores(parameters, features)
        if self.rows == 1:
            return np.asarray(expit(scores) - targets[:, np.newaxis])
        residuals = np.asarray(softmax(scores, axis=1))
        residuals[np.arange(len(targets)), targets] -= 1.0
        return residuals
