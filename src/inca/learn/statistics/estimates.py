"""An estimate and what is known about its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from inca._base.types import Array
from inca._base.validation import between_0_and_1, refuse

IntervalTarget = Literal["sample", "population"]
"""Of what a statistic is wanted: of the records that the parties hold, or of the distribution they are drawn from."""

_SHARE_OF_VARIANCE = 0.1  # of the probability of error, kept for the noise in how much records vary


@dataclass(frozen=True, eq=False)
class Estimate:
    """A statistic, estimated from one release.

    Intervals are for each number on its own, not for all of them together, and rest on the normal distribution:
    exact for the noise in means, shares and distribution functions, first-order for what is computed from several
    of them. What they cover:

    - target "sample": the statistic of the records that the parties hold. The error is the noise of privacy alone,
      plus, if parties drop out, that of their missing records, as if records were handed to parties at random.
    - target "population": the statistic of the distribution of which all records are independent draws. The error
      is the noise plus that of sampling; it is not enough if the records of one party resemble each other.

    How much records vary is itself known with noise only. Where it matters (for the population, and if parties drop
    out) a tenth of the probability of error is kept for it: the interval is computed with an upper confidence bound of
    the variance, and the other nine tenths are for the statistic. For means, what few records say about it is
    accounted for by Student's t. So such intervals are a little too wide rather than too narrow.

    Attributes:
        unconstrained: The estimate before it is moved to where the statistic can be; intervals are around it.
        var_noise: The variance of the error for the target "sample".
        var_sampling: What is added to it for the target "population".
        constrained: The estimate after it was moved; None if clipping to [low, high] is all that is to be done.
        low: The smallest value that the statistic can have.
        high: The largest value that the statistic can have.
        mu: The loss of the release.
        failure_probability: How likely the averager's plan fails in it; it adds to delta. None: not known.
        var_noise_error: The standard deviation of the noise in `var_noise`.
        var_sampling_error: The standard deviation of the noise in `var_sampling`, which is the same noise.
        degrees: From how many records, less one, it is known how much they vary; infinite where that is not used.

    Example:
        >>> answer = Estimate(np.array(2.0), np.array(0.09), np.array(0.16))
        >>> answer.estimate, answer.standard_error, answer.population_standard_error
        (2.0, 0.3, 0.5)
        >>> [round(end, 3) for end in answer.interval(0.9, "population")]
        [1.178, 2.822]
    """

    unconstrained: Array
    var_noise: Array
    var_sampling: Array
    constrained: Array | None = None
    low: Array | float = -np.inf
    high: Array | float = np.inf
    mu: float = np.nan
    failure_probability: float | None = None
    var_noise_error: Array | float = 0.0
    var_sampling_error: Array | float = 0.0
    degrees: float = np.inf

    @property
    def estimate(self) -> float | Array:
        """The statistic, moved to where it can be."""
        if self.constrained is not None:
            return _plain(self.constrained)
        return _plain(np.clip(self.unconstrained, self.low, self.high))

    @property
    def standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "sample"."""
        return _plain(np.sqrt(self.var_noise))

    @property
    def population_standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "population"."""
        return _plain(np.sqrt(self._variance("population")))

    def interval(self, level: float = 0.95, target: IntervalTarget = "sample") -> tuple[float | Array, float | Array]:
        """Return a confidence interval.

        What no statistic can be is cut off, and the estimate is always in the interval.

        Args:
            level: The probability that the interval holds the target's statistic.
            target: "sample" or "population".

        Returns:
            The lower and the upper end.
        """
        variance, error = self._variance(target), self._variance_error(target)
        quantile = normal_quantile(level)
        if np.any(error):
            kept = (1.0 - level) * _SHARE_OF_VARIANCE  # one-sided: that the variance is larger than its bound
            variance = variance + error * float(ndtri(1.0 - kept))
            # Variances here have the divisor N; one that is to tell of other records has N - 1.
            unbiased = math.sqrt(1.0 + 1.0 / self.degrees)
            quantile = unbiased * float(stdtrit(self.degrees, (1.0 + level + kept) / 2.0))
        width = quantile * np.sqrt(variance)
        lower, upper = (np.clip(self.unconstrained + side * width, self.low, self.high) for side in (-1.0, 1.0))
        return _plain(np.minimum(lower, self.estimate)), _plain(np.maximum(upper, self.estimate))

    def _variance(self, target: IntervalTarget) -> Array:
        if target not in get_args(IntervalTarget):
            refuse("target", target, f"one of {', '.join(get_args(IntervalTarget))}")
        return self.var_noise if target == "sample" else self.var_noise + self.var_sampling

    def _variance_error(self, target: IntervalTarget) -> Array | float:
        return self.var_noise_error if target == "sample" else self.var_noise_error + self.var_sampling_error


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal number is within -z and z with probability `level`.

    Example:
        >>> round(normal_quantile(0.95), 3)
        1.96
    """
    return float(ndtri((1.0 + between_0_and_1("level", level)) / 2.0))


def _plain(numbers: Array) -> float | Array:
    return float(numbers) if np.ndim(numbers) == 0 else numbers
