"""How much an estimate says: its interval within the domain, and whether guessing the middle would do as well.

Whoever guesses the middle of the domain needs no data and is never further off than half of its width. One rule
(`says_nothing`) sets every error against that: of plans, of means, of results of sessions, on the page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from inca._base.types import Array
from inca.protocol.domain import Ball, Domain, Interval
from inca.protocol.expected_error import ErrorBudget

_ROUNDING = 1e-9  # of the sensitivity: an estimate that is less outside was taken there by rounding, not by noise


def says_nothing(standard_error: float, half_width: float, lost: float = 0.0) -> bool:
    """Return whether guessing the middle of the domain would do as well as an estimate.

    The rule: two standard errors, and whatever values that were lost can move the mean by, reach half of the domain's
    width. A guess is never further off than that, and an estimate is, by normal noise, in one of 22 runs; its 95 %
    interval is then as wide as the domain. Without lost values this is a standard error of a quarter of the range. The
    rule is kind to the estimate, since the mean of values that differ lies nearer to the middle than its ends do.

    Example:
        >>> says_nothing(0.3, half_width=0.5), says_nothing(0.1, half_width=0.5)
        (True, False)
    """
    return 2.0 * standard_error + lost >= half_width


def remark_on_error(mse: float, sensitivity: float) -> str:
    """Return what to say of an expected error if only the sensitivity is known, as in a plan.

    The domain is taken to be an interval as long as the sensitivity.

    Example:
        >>> remark_on_error(0.0961, sensitivity=1.0).partition(": ")[0]
        'The expected error 0.31 is a large part of a range of 1'
        >>> remark_on_error(0.01, sensitivity=1.0)
        ''
    """
    error = math.sqrt(mse)
    if not says_nothing(error, sensitivity / 2.0):
        return ""
    if math.isinf(error):
        return "The expected error is unbounded: guessing the middle of the domain would do as well."
    return (
        f"The expected error {error:.3g} is a large part of a range of {sensitivity:g}: if all values lie in one, "
        "guessing its middle would do as well."
    )


def remark_on_noise(
    domain: Domain, standard_error: float, *, dimensions: int = 1, lost: float = 0.0, name: str = "standard error"
) -> str:
    """Return what to say of the error of an estimate in a domain.

    Example:
        >>> remark_on_noise(Interval(0, 1), 0.31)
        'The standard error 0.31 is a large part of the range [0, 1]: guessing 0.5, the middle, would do as well.'
    """
    width = domain.sensitivity(dimensions)
    if not says_nothing(math.sqrt(dimensions) * standard_error, width / 2.0, lost):
        return ""
    if math.isinf(standard_error):
        return f"The {name} is unbounded: {_guess(domain)}."
    of = "" if dimensions == 1 else f" of each of {dimensions:,} coordinates"
    subject = f"The {name} {standard_error:.3g}{of}"
    where = f"the range {domain}" if isinstance(domain, Interval) else str(domain)
    if lost <= _ROUNDING * width:
        return f"{subject} is a large part of {where}: {_guess(domain)}."
    per_coordinate = lost / math.sqrt(dimensions) if isinstance(domain, Interval) else lost
    return (
        f"{subject}, and lost values that can move the mean by {per_coordinate:.3g}, are a large part of {where}: "
        f"{_guess(domain)}."
    )


@dataclass(frozen=True)
class CoordinateRule:
    """How an estimate in an interval or a ball, and its interval, follow from one coordinate of it as noise leaves it.

    Args:
        low: The least value of a coordinate.
        high: The largest.
        scale: What a ball's surface is reached by; 1 inside, and for intervals.
        half_width: What noise and lost values can do, with the agreed confidence.

    Example:
        >>> rule, estimate = CoordinateRule(low=0.0, high=1.0, scale=1.0, half_width=0.25), np.array([0.5, 1.5])
        >>> rule.constrained(estimate), rule.interval(estimate)
        (array([0.5, 1. ]), (array([0.25, 0.75]), array([0.75, 1.  ])))
    """

    low: float
    high: float
    scale: float
    half_width: float

    def constrained(self, estimate: Array) -> Array:
        """Return coordinates moved into the domain."""
        return np.clip(self.scale * estimate, self.low, self.high)

    def interval(self, estimate: Array, constrained: Array | None = None) -> tuple[Array, Array]:
        """Return the lower and upper ends for coordinates; they hold these coordinates moved into the domain.

        A coordinate is moved into its range first, and the half-width is put to either side. That never empties an
        interval, and it covers as often as one around the unconstrained estimate.
        """
        shown = self.constrained(estimate) if constrained is None else constrained
        centre = np.clip(estimate, self.low, self.high)
        lower = np.minimum(np.clip(centre - self.half_width, self.low, self.high), shown)
        upper = np.maximum(np.clip(centre + self.half_width, self.low, self.high), shown)
        return lower, upper


@dataclass(frozen=True, eq=False)
class EstimateInDomain:
    """An estimate as people are told it: in the domain, with its interval, and with what must be said of it.

    The mean of values in a convex set lies in that set, so an estimate outside was taken there by noise. Moving it to
    the nearest point of the set is free, since the set is public, and brings it no further from the mean.

    Args:
        unconstrained: The estimate as the noise leaves it, a number or one per coordinate.
        domain: The public set that every value lies in.
        error: The expected squared error, summed over coordinates, with the worst case of lost values; None: not known.
        confidence: The probability with which an interval covers its mean, at least.

    Example:
        >>> shown = EstimateInDomain(111.7, Interval(0, 100), ErrorBudget(9.0, 0.0, 0.0))
        >>> shown.estimate, [round(end, 2) for end in shown.interval]
        (100.0, [94.12, 100.0])
        >>> print(*shown.remarks)
        The noise took the estimate to 111.7, outside [0, 100]: 100 is the nearest mean there is.
    """

    unconstrained: float | Array
    domain: Domain
    error: ErrorBudget | None
    confidence: float = 0.95

    @property
    def dimensions(self) -> int:
        """The number of coordinates."""
        return int(np.size(self.unconstrained))

    @cached_property
    def estimate(self) -> float | Array:
        """The point of the domain that is nearest to the estimate."""
        if np.ndim(self.unconstrained) == 0:
            return float(self.domain.validate([float(self.unconstrained)], clip=True)[0])
        row: Array = self.domain.validate(np.asarray(self.unconstrained)[np.newaxis, :], clip=True)[0]
        return row

    @cached_property
    def interval(self) -> tuple[float | Array, float | Array]:
        """The lower and the upper end for each coordinate on its own, in the domain and around the estimate."""
        lower, upper = self.rule.interval(np.asarray(self.unconstrained), np.asarray(self.estimate))
        return (float(lower), float(upper)) if np.ndim(self.unconstrained) == 0 else (lower, upper)

    @cached_property
    def rule(self) -> CoordinateRule:
        """How the interval, and the estimate in an interval or a ball, follow from one coordinate."""
        low, high = _range(self.domain)
        scale = 1.0
        if isinstance(self.domain, Ball):
            scale = min(1.0, self.domain.radius / max(self.domain.radius, self._length))
        reach = math.inf
        if self.error is not None:
            # The worst case is a distance of vectors; in a box it is the same in every coordinate.
            alike = self.dimensions if isinstance(self.domain, Interval) else 1
            quantile = float(ndtri((1.0 + self.confidence) / 2.0))
            reach = quantile * self._standard_error + math.sqrt(self.error.data / alike)
        return CoordinateRule(low, high, scale, reach)

    @property
    def says_nothing(self) -> bool:
        """Whether guessing the middle of the domain would do as well; so it would if the error is not known."""
        if self.error is None:
            return True
        half_width = self.domain.sensitivity(self.dimensions) / 2.0
        return says_nothing(math.sqrt(self.error.noise), half_width, math.sqrt(self.error.data))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be said of the estimate, in sentences: that it was outside, that a guess would do as well."""
        if self.error is None:
            error = f"The error is not known, since shares were late or lost: {_guess(self.domain)}."
        else:
            lost = math.sqrt(self.error.data)
            error = remark_on_noise(self.domain, self._standard_error, dimensions=self.dimensions, lost=lost)
        return tuple(sentence for sentence in (self._outside(), error) if sentence)

    @property
    def _standard_error(self) -> float:
        return math.inf if self.error is None else math.sqrt(self.error.noise / self.dimensions)

    @cached_property
    def _length(self) -> float:
        return float(np.linalg.norm(self.unconstrained))

    def _outside(self) -> str:
        """Say where the noise took the estimate, if that is outside of the domain."""
        tolerance = _ROUNDING * self.domain.sensitivity(self.dimensions)
        if np.ndim(self.unconstrained) > 0 and isinstance(self.domain, Interval):  # without a copy of a long vector
            low, high = self.domain.low - tolerance, self.domain.high + tolerance
            moved = np.count_nonzero(self.unconstrained < low) + np.count_nonzero(self.unconstrained > high)
            where = f"out of {self.domain} in {moved:,} of {self.dimensions:,} coordinates"
            return f"The noise took the estimate {where}: each of them is the nearer end now." if moved else ""
        if isinstance(self.domain, Ball):
            outside = self._length > self.domain.radius + tolerance
        else:
            outside = bool((np.abs(np.asarray(self.unconstrained) - self.estimate) > tolerance).any())
        if not outside:
            return ""
        if np.ndim(self.unconstrained) == 0:
            where = f"to {self.unconstrained:.6g}, outside {self.domain}"
            return f"The noise took the estimate {where}: {self.estimate:.6g} is the nearest mean there is."
        where = f"to a length of {self._length:.3g}, outside {self.domain}"
        return f"The noise took the estimate {where}: it is scaled to the surface."


def _guess(domain: Domain) -> str:
    match domain:
        case Interval(low, high):
            middle = f"{(low + high) / 2.0:.6g}, the middle,"
        case Ball():
            middle = "0, the centre,"
        case _:
            middle = "its middle"
    return f"guessing {middle} would do as well"


def _range(domain: Domain) -> tuple[float, float]:
    """Return the least and the largest value of a coordinate, as far as they are known."""
    match domain:
        case Interval(low, high):
            return low, high
        case Ball(radius):
            return -radius, radius
        case _:
            return -math.inf, math.inf
