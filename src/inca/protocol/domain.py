"""The public set that every private value lies in; it decides how much one party can change the result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import InputError, finite_array, positive, real, refuse


class Domain(Protocol):
    """What the library needs to know of a domain (section "Problem Statement": the convex set X)."""

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the largest Euclidean distance between two admissible values of `dimensions` coordinates."""
        ...

    def admit(self, values: ArrayLike, clip: bool = False) -> Array:
        """Return `values` if all lie in the domain; outside ones are refused, or moved in if `clip`."""
        ...


@dataclass(frozen=True)
class Interval:
    """Every coordinate lies between `low` and `high`.

    >>> Interval(0, 1).sensitivity()
    1.0
    >>> Interval(0, 1).admit([0.2, 1.5], clip=True)
    array([0.2, 1. ])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse an empty or unbounded interval."""
        low, high = real("low", self.low), real("high", self.high)
        if not low < high:
            raise refuse("high", self.high, f"a number above low ({self.low})")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the diagonal of the box: (high - low) sqrt(d)."""
        return (self.high - self.low) * math.sqrt(dimensions)

    def admit(self, values: ArrayLike, clip: bool = False) -> Array:
        """Return the values, refusing (or clipping) coordinates outside [low, high]."""
        array = _one_row_each(values)
        if clip:
            return np.clip(array, self.low, self.high)
        outside = (array < self.low) | (array > self.high)
        if outside.any():
            where = [int(index) for index in np.argwhere(outside)[0]]
            raise refuse(f"values{where}", float(array[tuple(where)]), f"a number in {self}")
        return array

    def __str__(self) -> str:
        """Write the interval as people do."""
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Ball:
    """Every value is a vector of Euclidean norm at most `radius`.

    >>> Ball(2).sensitivity(10)
    4.0
    >>> Ball(1).admit([[3.0, 4.0]], clip=True)
    array([[0.6, 0.8]])
    """

    radius: float

    def __post_init__(self) -> None:
        """Refuse a ball without inside."""
        object.__setattr__(self, "radius", positive("radius", self.radius))

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the diameter, whatever the number of coordinates."""
        del dimensions
        return 2.0 * self.radius

    def admit(self, values: ArrayLike, clip: bool = False) -> Array:
        """Return the values, refusing (or scaling to the surface) those longer than the radius."""
        array = _one_row_each(values)
        lengths = np.abs(array) if array.ndim == 1 else np.linalg.norm(array, axis=1)
        if clip:
            scale = np.minimum(1.0, self.radius / np.maximum(lengths, self.radius))
            return array * (scale if array.ndim == 1 else scale[:, np.newaxis])
        outside = lengths > self.radius
        if outside.any():
            party = int(np.flatnonzero(outside)[0])
            raise refuse(f"the length of values[{party}]", float(lengths[party]), f"at most {self.radius:g}")
        return array

    def __str__(self) -> str:
        """Write the ball as people do."""
        return f"the ball of radius {self.radius:g}"


def _one_row_each(values: ArrayLike) -> Array:
    array = finite_array("values", values, (1, 2), "one number or one row of numbers per party")
    if array.size == 0:
        raise InputError("values is empty, but one number or one row of numbers per party was expected")
    return array
