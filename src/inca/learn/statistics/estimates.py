"""An estimate and what is known about its error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from inca._base.types import Array
from inca._base.validation import real, refuse

Target = Literal["sample", "population"]
"""Of what a statistic is wanted: of the records that the parties hold, or of the distribution they are drawn from."""


class NoResult(RuntimeError):
    """A release after which nobody with a record was left to publish a result; its loss counts all the same."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A statistic, estimated from one release.

    Intervals are for each number on its own, not for all of them together, and rest on the normal distribution:
    exact for the noise in means, shares and distribution functions, first-order for what is computed from several
    of them. What they cover:

    - target "sample": the statistic of the records that the parties hold. The error is the noise of privacy alone,
      plus, if parties drop out, that of their missing records, as if records were handed to parties at random.
    - target "population": the statistic of the distribution of which all records are independent draws. The error
      is the noise plus that of sampling; it is not enough if the records of one party resemble each other.

    >>> answer = Answer(np.array(2.0), np.array(0.09), np.array(0.16))
    >>> answer.value, answer.standard_error, answer.population_standard_error
    (2.0, 0.3, 0.5)
    >>> [round(end, 3) for end in answer.interval(0.9, "population")]
    [1.178, 2.822]
    """

    centre: Array
    """The estimate before it was moved to where the statistic can be; intervals are around it."""
    noise: Array
    """The variance of the error for the target "sample"."""
    sampling: Array
    """What is added to it for the target "population"."""
    moved: Array | None = None
    """The estimate after it was moved; None if it was not."""
    low: Array | float = field(default=-np.inf)
    """The least that the statistic can be."""
    high: Array | float = field(default=np.inf)
    """The most that the statistic can be."""
    mu: float = np.nan
    """The loss of the release."""

    @property
    def value(self) -> float | Array:
        """The estimate."""
        return _plain(np.clip(self.centre, self.low, self.high) if self.moved is None else self.moved)

    @property
    def standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "sample"."""
        return _plain(np.sqrt(self.noise))

    @property
    def population_standard_error(self) -> float | Array:
        """The standard deviation of the error for the target "population"."""
        return _plain(np.sqrt(self._variance("population")))

    def interval(self, level: float = 0.95, target: Target = "sample") -> tuple[float | Array, float | Array]:
        """Return lower and upper ends that hold the target's statistic between them with this probability.

        What no statistic can be is cut off, and the value is always in the interval.
        """
        reach = normal_quantile(level) * np.sqrt(self._variance(target))
        ends = (np.clip(self.centre + side * reach, self.low, self.high) for side in (-1.0, 1.0))
        lower, upper = ends
        return _plain(np.minimum(lower, self.value)), _plain(np.maximum(upper, self.value))

    def _variance(self, target: Target) -> Array:
        return self.noise if checked_target(target) == "sample" else self.noise + self.sampling


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal number is within -z and z with probability `level`.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    chance = real("level", level, 0.0, 1.0)
    if chance in (0.0, 1.0):
        raise refuse("level", level, "a number between 0 and 1")
    return float(ndtri((1.0 + chance) / 2.0))


def checked_target(target: Target) -> Target:
    """Return the target, or refuse what is none.

    >>> checked_target("sample")
    'sample'
    """
    if target not in get_args(Target):
        raise refuse("target", target, f"one of {', '.join(get_args(Target))}")
    return target


def _plain(numbers: Array) -> float | Array:
    return float(numbers) if np.ndim(numbers) == 0 else numbers
