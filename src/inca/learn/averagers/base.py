"""What statistics and training need of whoever averages: a simulated mechanism, or sessions over a network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import integer
from inca.learn.budget import Budget


@dataclass(frozen=True, eq=False, repr=False)
class VectorMean:
    """The estimated mean of the parties' vectors.

    Attributes:
        estimate: The mean, (d,); None if nobody was left to publish a result.
        var_noise: The variance of the noise that privacy added to each coordinate; infinite without a result.
        mu: The loss of the release.
    """

    estimate: Array | None
    var_noise: float
    mu: float

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise that privacy added to each coordinate; infinite without a result."""
        return math.sqrt(self.var_noise)

    def __repr__(self) -> str:
        shape = None if self.estimate is None else self.estimate.shape
        return f"VectorMean(shape={shape}, mu={self.mu:.4g})"


class Averager(Protocol):
    """A private mean of one vector per party: what all statistics and all training are made of."""

    @property
    def parties(self) -> int:
        """The number of parties."""
        ...

    @property
    def dropout(self) -> float:
        """The fraction of the parties that may leave during an average."""
        ...

    @property
    def failure_probability(self) -> float | None:
        """How likely the plan behind it fails in one release, at most; it adds to delta. None: not known."""
        ...

    @property
    def releases(self) -> int | None:
        """How many releases of one budget the plan is for; None: any number."""
        ...

    def expect(self, budget: Budget | None, releases: int) -> None:
        """Be told that so many releases are to come, and from which budget; None: each has a mu of its own.

        Args:
            budget: The budget.
            releases: How many calls of `average` follow.

        Raises:
            InvalidInput: If the averager cannot keep to such a budget.
        """
        ...

    def var_noise(self, sensitivity: float, mu: float) -> float:
        """Return the expected variance of the noise in each coordinate of the mean."""
        ...

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        max_norm: float | None = None,
    ) -> VectorMean:
        """Average one vector per party with loss mu.

        Args:
            vectors: One row for each party whose data are here: all in a simulation, this party's own on a network.
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.
            rng: The source of a simulation's noise.
            max_norm: A bound on the Euclidean norm of any party's row; a network needs it.

        Returns:
            The estimated mean.
        """
        ...


@dataclass(frozen=True)
class RemoteRecords:
    """The records of a party that are on another machine; only their number is known here.

    Args:
        count: How many records the party holds.

    Example:
        >>> len(RemoteRecords(40))
        40
    """

    count: int

    def __post_init__(self) -> None:
        integer("count", self.count)

    def __len__(self) -> int:
        return self.count
