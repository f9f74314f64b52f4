"""The shape of all mechanisms: calibrated to a wish, they predict their error, run, and say what they promise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array, Progress
from inca._base.validation import generator, party_values, real, whole
from inca.planning.requirements import Wish
from inca.protocol.expected_error import ErrorBudget

Estimate = float | Array | None
"""The estimate of the mean: a number, d numbers, or None if there is no result."""


@dataclass(frozen=True)
class Prediction:
    """A mechanism's expected error per coordinate; `standard_error` is 0 where the expectation is exact."""

    budget: ErrorBudget
    standard_error: float = 0.0

    @property
    def mse(self) -> float:
        """The mean squared error per coordinate, of noise and missing values."""
        return self.budget.total


class Mechanism(ABC):
    """A way to average privately, calibrated to a wish when it is made.

    The wish's `dropout` is what the mechanism reckons with when it chooses its noise. At any other rate, too, its error
    can be asked for and it can be run.
    """

    name: str
    promise: str
    """Against whom the guarantee holds, in a few words."""
    weaker: bool = False
    """Whether the promise is weaker than ours: privacy against colluders who see messages and know the topology."""

    def __init__(self, wish: Wish) -> None:
        """Keep the wish; subclasses choose their noise."""
        self.wish = wish

    @property
    @abstractmethod
    def messages(self) -> float:
        """Messages that a party sends, on average, before the result is spread."""

    @abstractmethod
    def expected_error(self, dropout: float) -> Prediction:
        """Return the expected error per coordinate if the fraction `dropout` of the parties leaves for good."""

    @abstractmethod
    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> Estimate:
        """Run once on (n,) or (n, d) values while the fraction `dropout` of the parties leaves for good."""

    def _admit(self, values: ArrayLike, rng: np.random.Generator, dropout: float) -> tuple[Array, int]:
        """Return the values as an (n, d) array and the number of leavers."""
        generator(rng)
        table = party_values(values, self.wish.parties)
        return table.reshape(len(table), -1), self._leavers(dropout)

    def _leavers(self, dropout: float, name: str = "dropout") -> int:
        return round(real(name, dropout, 0.0, 1.0) * self.wish.parties)

    def _missing_values(self, leavers: int) -> float:
        """The error of averaging over those present, if who leaves does not depend on values: v (1/m - 1/n)."""
        n = self.wish.parties
        return self.wish.value_variance * (1.0 / (n - leavers) - 1.0 / n) if leavers < n else math.inf


def shaped(estimate: Array, values: ArrayLike) -> float | Array:
    """Return a (d,) estimate as a number if the values were numbers."""
    return float(estimate[0]) if np.ndim(values) == 1 else estimate


@dataclass(frozen=True)
class Measured:
    """A mean squared error over simulated runs, its standard error, and how many runs had no result."""

    mse: float
    standard_error: float
    failed: int


def measure(
    mechanism: Mechanism,
    rng: np.random.Generator,
    dropout: float = 0.0,
    runs: int = 1000,
    progress: Progress | None = None,
) -> Measured:
    """Run a mechanism on fresh values with the wish's variance and compare the estimates with the exact mean.

    Values are uniform on an interval, anew for every run.
    """
    total = whole("runs", runs, least=2)
    width = math.sqrt(12.0 * mechanism.wish.value_variance)
    squares = []
    for done in range(total):
        values = width * generator(rng).random(mechanism.wish.parties)
        estimate = mechanism.run(values, rng, dropout)
        if estimate is not None:
            squares.append((float(estimate) - float(values.mean())) ** 2)
        if progress is not None:
            progress(done + 1, total)
    if len(squares) < 2:
        return Measured(math.inf, math.inf, total - len(squares))
    errors = np.array(squares)
    return Measured(float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(errors.size), total - errors.size)
