"""An estimate and what is known about its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from inca._base.types import Array
from inca._base.validation import between_0_and_1, one_of

IntervalTarget = Literal["sample", "population"]
"""Of what a statistic is wanted: of the records that the parties hold, or of the distribution they are drawn from."""

_KEPT = 0.1  # of the probability of error, for records, where the noise is nearly all of the error


Reach = Callable[[float, IntervalTarget], Array]
"""From a level and a target to how far the statistic may be from its estimate with that probability, at most."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic, estimated from one release.

    Intervals are for each number on its own, not for all of them together. They hold their target with at least the
    probability that is their level, for any records in the domain and however few there are. Targets are

    - "sample": the statistic of the records that the parties hold. The error is the noise of privacy alone, plus, if
      parties drop out, that of their missing records, as if records were handed to parties at random.
    - "population": the statistic of the distribution of which all records are independent draws. The error is the
      noise plus that of sampling; it is not enough if the records of one party resemble each other.

    How much records vary is not taken from the release, which tells it badly if they are few: of twenty values of 0 or
    1 all may be 0. What is assumed is that they vary as much as the domain lets them (Hoeffding's bound, and Serfling's
    for missing records), so these intervals are often too wide.

    Attributes:
        unconstrained: The estimate before it is moved to where the statistic can be; intervals are around it.
        var_noise: The variance of the error for the target "sample". The part of it for records that drop out is an
            estimate for means and lines, and a bound for all else.
        var_sampling: What is added to it for the target "population", an estimate or a bound alike.
        reach: Half of the width of an interval, from its level and target.
        constrained: The estimate after it was moved; None if clipping to [low, high] is all that is to be done.
        low: The smallest value that the statistic can have.
        high: The largest value that the statistic can have.
        mu: The loss of the release.
        failure_probability: How likely the averager's plan fails in it; it adds to delta. None: not known.

    Example:
        >>> answer = Estimate(np.array(2.0), np.array(0.09), np.array(0.16), lambda level, target: np.array(level))
        >>> answer.estimate, answer.standard_error, answer.population_standard_error
        (2.0, 0.3, 0.5)
        >>> [round(end, 3) for end in answer.interval(0.9, "population")]
        [1.1, 2.9]
    """

    unconstrained: Array
    var_noise: Array
    var_sampling: Array
    reach: Reach
    constrained: Array | None = None
    low: Array | float = -np.inf
    high: Array | float = np.inf
    mu: float = np.nan
    failure_probability: float | None = None

    @property
    def estimate(self) -> float | Array:
        """The statistic, moved to where it can be."""
        if self.constrained is not None:
            return _plain(self.constrained)
        return _plain(np.clip(self.unconstrained, self.low, self.high))

    @property
    def standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "sample", as far as the release tells it."""
        return _plain(np.sqrt(self.var_noise))

    @property
    def population_standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "population", as far as the release tells it."""
        return _plain(np.sqrt(self.var_noise + self.var_sampling))

    def interval(self, level: float = 0.95, target: IntervalTarget = "sample") -> tuple[float | Array, float | Array]:
        """Return a confidence interval.

        What no statistic can be is cut off, and the estimate is always in the interval.

        Args:
            level: The probability that the interval holds the target's statistic, at least.
            target: "sample" or "population".

        Returns:
            The lower and the upper end.
        """
        lower, upper = (np.clip(end, self.low, self.high) for end in self.ends(level, target))
        return _plain(np.minimum(lower, self.estimate)), _plain(np.maximum(upper, self.estimate))

    def ends(self, level: float, target: IntervalTarget) -> tuple[Array, Array]:
        """Return the ends of an interval of which nothing is cut off."""
        one_of("target", target, get_args(IntervalTarget))
        width = self.reach(between_0_and_1("level", level), target)
        return self.unconstrained - width, self.unconstrained + width


def bounded_reach(level: float, var_noise: Array | float, var_records: Array | float) -> Array:
    """Return how far a mean can be from what it is an estimate of, with this probability at most.

    The noise is normal. The other error is that of a mean of bounded records, of which exp(t error) has a mean of at
    most exp(t^2 var_records / 2) for every t (Hoeffding 1963; Serfling 1974 for draws without replacement). With the
    noise this is so for the sum of variances, which gives sqrt(2 ln(2 / (1 - level))) standard deviations. Where there
    is next to no such error, nine tenths of the probability of error are better left to the noise.

    Example:
        >>> [round(float(bounded_reach(0.95, *variances)), 2) for variances in ((1.0, 0.0), (0.0, 1.0), (1.0, 1e-9))]
        [1.96, 2.72, 2.0]
    """
    error = 1.0 - level
    noise, records = np.sqrt(var_noise), np.sqrt(var_records)
    joint = math.sqrt(2.0 * math.log(2.0 / error)) * np.hypot(noise, records)
    kept = _KEPT * error
    split = normal_quantile(level + kept) * noise + math.sqrt(2.0 * math.log(2.0 / kept)) * records
    return np.asarray(np.where(records > 0.0, np.minimum(joint, split), normal_quantile(level) * noise))


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal number is within -z and z with probability `level`.

    Example:
        >>> round(normal_quantile(0.95), 3)
        1.96
    """
    return float(ndtri((1.0 + between_0_and_1("level", level)) / 2.0))


def _plain(numbers: Array) -> float | Array:
    return float(numbers) if np.ndim(numbers) == 0 else numbers
