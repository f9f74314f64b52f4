"""Rules for the shared steps: from the parameters and an averaged gradient to the next parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from inca._base.types import Array
from inca._base.validation import finite_float, positive, refuse

UpdateRule = Callable[[Array, Array], Array]
"""From parameters and a gradient to the next parameters."""

_ADAM_FLOOR = 1e-8  # of the root of a coordinate's mean square


class Optimizer(Protocol):
    """A rule for steps; its state is made of released averages only, so everyone has the same."""

    def begin(self, dimensions: int) -> UpdateRule:
        """Return the rule with a fresh state."""
        ...


@dataclass(frozen=True)
class SGD:
    """Gradient descent with momentum: v <- momentum v + g, parameters <- parameters - rate v.

    Args:
        rate: The learning rate.
        momentum: How much of the last step is kept, from 0 to 1.

    Example:
        >>> update = SGD(rate=0.5, momentum=0.5).begin(1)
        >>> update(update(np.zeros(1), np.ones(1)), np.ones(1)).tolist()
        [-1.25]
    """

    rate: float = 0.1
    momentum: float = 0.0

    def begin(self, dimensions: int) -> UpdateRule:
        """Return the rule with no velocity."""
        rate, momentum = positive("rate", self.rate), finite_float("momentum", self.momentum, 0.0, 1.0)
        velocity = np.zeros(dimensions)

        def update(parameters: Array, gradient: Array) -> Array:
            np.multiply(velocity, momentum, out=velocity)
            np.add(velocity, gradient, out=velocity)
            return parameters - rate * velocity

        return update


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma, Ba 2015, algorithm 1): each coordinate's step is divided by the root of its mean square.

    Args:
        rate: The learning rate.
        beta1: The decay of the mean gradient, below 1.
        beta2: The decay of the mean squared gradient, below 1.

    Example:
        >>> update = Adam(rate=0.5).begin(2)
        >>> update(np.zeros(2), np.array([1e-3, -7.0])).round(3).tolist()
        [-0.5, 0.5]
    """

    rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999

    def begin(self, dimensions: int) -> UpdateRule:
        """Return the rule with no past."""
        rate, beta1, beta2 = positive("rate", self.rate), self.beta1, self.beta2
        for name in ("beta1", "beta2"):
            if finite_float(name, getattr(self, name), 0.0, 1.0) == 1.0:
                refuse(name, 1.0, "below 1")
        mean, square = np.zeros(dimensions), np.zeros(dimensions)
        count = 0

        def update(parameters: Array, gradient: Array) -> Array:
            nonlocal count
            count += 1
            mean[:] = beta1 * mean + (1.0 - beta1) * gradient
            square[:] = beta2 * square + (1.0 - beta2) * gradient**2
            root = np.sqrt(square / (1.0 - beta2**count))
            return parameters - rate * (mean / (1.0 - beta1**count)) / (root + _ADAM_FLOOR)

        return update
