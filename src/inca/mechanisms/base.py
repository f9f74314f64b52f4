"""The interface of all mechanisms: they are calibrated, predict their error, run, and say what they promise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array, Progress
from inca._base.validation import generator, integer, party_values, whole_parties
from inca.planning.requirements import Requirements
from inca.protocol.expected_error import ErrorBudget

MeanEstimate = float | Array | None
"""The estimate of the mean: a number, d numbers, or None if there is no result."""


@dataclass(frozen=True)
class ExpectedError:
    """A mechanism's expected error per coordinate; `standard_error` is 0 where the expectation is exact."""

    budget: ErrorBudget
    standard_error: float = 0.0

    @property
    def mse(self) -> float:
        """The mean squared error per coordinate, of noise and missing values."""
        return self.budget.total


class Mechanism(ABC):
    """A way to average privately, calibrated to requirements when it is made.

    The mechanism chooses its noise for the dropout rate that is required. At any other rate, too, its error can be
    predicted and it can be run.

    Args:
        requirements: The guarantee, the adversary and the dropout rate.
    """

    name: str
    promise: str
    """Against whom the guarantee holds, in a few words."""
    weaker: bool = False
    """Whether the promise is weaker than ours: privacy against colluders who see messages and know the topology."""

    promised: bool = True
    """Whether its epsilon is promised to every party: not if noise was handed in, or a mean over parties is bounded."""
    any_dropout: bool = False
    """Whether the guarantee holds however many leave, and not only up to the required dropout rate."""

    def __init__(self, requirements: Requirements) -> None:
        self.requirements = requirements

    @property
    def failure_probability(self) -> float:
        """How likely the guarantee fails for a party, at most; it adds to delta."""
        return self.requirements.failure

    @property
    @abstractmethod
    def messages(self) -> float:
        """Messages that a party sends, on average, before the result is spread."""

    @abstractmethod
    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the expected error per coordinate.

        Args:
            dropout: The fraction of the parties that leaves for good.
        """

    @abstractmethod
    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once.

        Args:
            values: One number or vector per party: (n,) or (n, d).
            rng: Decides all noise, and who leaves.
            dropout: The fraction of the parties that leaves for good.

        Returns:
            The estimate of the mean, or None if there is no result.
        """

    def _validate(self, values: ArrayLike, rng: np.random.Generator, dropout: float) -> tuple[Array, int]:
        """Return the values as an (n, d) array and the number of leavers."""
        generator(rng)
        table = party_values(values, self.requirements.parties)
        return table.reshape(len(table), -1), self._leavers(dropout)

    def _leavers(self, dropout: float, name: str = "dropout") -> int:
        return whole_parties(name, dropout, self.requirements.parties)

    def _missing_values(self, leavers: int) -> float:
        """The error of averaging over those present, if who leaves does not depend on values: v (1/m - 1/n)."""
        n = self.requirements.parties
        return self.requirements.value_variance * (1.0 / (n - leavers) - 1.0 / n) if leavers < n else math.inf


def match_shape(estimate: Array, values: ArrayLike) -> float | Array:
    """Return a (d,) estimate as a number if the values were numbers."""
    return float(estimate[0]) if np.ndim(values) == 1 else estimate


@dataclass(frozen=True)
class MeasuredError:
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
) -> MeasuredError:
    """Run a mechanism on fresh values and compare the estimates with the exact mean.

    Args:
        mechanism: What is run.
        rng: Decides values, noise and who leaves.
        dropout: The fraction of the parties that leaves for good.
        runs: How many runs, each on new values, uniform on an interval and with the required variance.
        progress: Called with the runs done and their total.

    Returns:
        The mean squared error of the runs that had a result.
    """
    total = integer("runs", runs, min=2)
    width = math.sqrt(12.0 * mechanism.requirements.value_variance)
    squares = []
    for done in range(total):
        values = width * generator(rng).random(mechanism.requirements.parties)
        estimate = mechanism.run(values, rng, dropout)
        if estimate is not None:
            squares.append((float(estimate) - float(values.mean())) ** 2)
        if progress is not None:
            progress(done + 1, total)
    if len(squares) < 2:
        return MeasuredError(math.inf, math.inf, total - len(squares))
    errors = np.array(squares)
    return MeasuredError(float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(errors.size), total - errors.size)
