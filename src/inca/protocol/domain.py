"""The public set that every private value lies in; it decides how much one party can change the result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from inca._base.safe_numbers import safe_length, safe_width
from inca._base.types import Array
from inca._base.validation import finite_array, finite_float, integer, refuse
from inca.errors import InvalidInput

_SAME = 1e-12  # relative difference below which two sensitivities are the same but for rounding


_ENTRIES = 1 << 20  # of values whose lengths are worked out at a time


def falls_short(stated: float, sensitivity: float) -> bool:
    """Return whether a stated sensitivity is too small for values that can move by another, but for rounding.

    >>> falls_short(1.0, 1.0 + 1e-15), falls_short(1.0, 2.0)
    (False, True)
    """
    return stated < sensitivity * (1 - _SAME)


class Domain(Protocol):
    """What the library needs to know of a domain (section "Problem Statement": the convex set X).

    `Interval` and `Ball` are domains; so is whatever has these two methods.
    """

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the largest Euclidean distance between two values.

        Args:
            dimensions: The number of coordinates d.

        Returns:
            The distance.
        """
        ...

    def validate(self, values: ArrayLike, *, clip: bool = False) -> Array:
        """Return the values if all lie in the domain.

        Args:
            values: One number or one row of numbers per party, (n,) or (n, d).
            clip: Whether values outside are moved in instead of being refused.

        Returns:
            The values as a float array of the same shape.

        Raises:
            InvalidInput: If there are none, or one is not finite or, without `clip`, lies outside.
        """
        ...


@dataclass(frozen=True)
class Interval:
    """The box of values whose coordinates lie between `low` and `high`: X = [low, high]^d.

    Args:
        low: The least value of a coordinate.
        high: The largest value of a coordinate, above `low`.

    Raises:
        InvalidInput: If the interval is empty or unbounded, or so narrow or wide that doubles cannot compute in it.

    Example:
        >>> Interval(0, 1).sensitivity()
        1.0
        >>> Interval(0, 1).validate([0.2, 1.5], clip=True)
        array([0.2, 1. ])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = finite_float("low", self.low), finite_float("high", self.high)
        if not low < high:
            refuse("high", self.high, f"above low ({self.low})")
        safe_width("high - low", low, high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the diagonal of the box, (high - low) sqrt(d).

        Args:
            dimensions: The number of coordinates d.

        Returns:
            The largest Euclidean distance between two values.
        """
        return (self.high - self.low) * math.sqrt(integer("dimensions", dimensions, min=1))

    def validate(self, values: ArrayLike, *, clip: bool = False) -> Array:
        """Return the values if every coordinate lies in [low, high].

        Args:
            values: One number or one row of numbers per party, (n,) or (n, d).
            clip: Whether coordinates outside are moved to the nearer end instead of being refused.

        Returns:
            The values as a float array of the same shape.

        Raises:
            InvalidInput: If there are none, or one is not finite or, without `clip`, lies outside.
        """
        array = _value_array(values)
        if clip:
            return np.clip(array, self.low, self.high)
        if array.min() < self.low or array.max() > self.high:
            where = [int(index) for index in np.argwhere((array < self.low) | (array > self.high))[0]]
            # What was found there is private.
            raise InvalidInput(f"values{where} must be in {self}, got one outside")
        return array

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Ball:
    """The ball of vectors of Euclidean norm at most `radius`.

    Args:
        radius: The largest norm, above 0.

    Raises:
        InvalidInput: If the radius is not above 0, or its square is out of the range of doubles.

    Example:
        >>> Ball(2).sensitivity(10)
        4.0
        >>> Ball(1).validate([[3.0, 4.0]], clip=True)
        array([[0.6, 0.8]])
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", safe_length("radius", self.radius))

    def sensitivity(self, dimensions: int = 1) -> float:
        """Return the diameter, 2 radius.

        Args:
            dimensions: The number of coordinates, which makes no difference.

        Returns:
            The largest Euclidean distance between two values.
        """
        integer("dimensions", dimensions, min=1)
        return 2.0 * self.radius

    def validate(self, values: ArrayLike, *, clip: bool = False) -> Array:
        """Return the values if none is longer than the radius.

        Args:
            values: One number or one row of numbers per party, (n,) or (n, d).
            clip: Whether longer vectors are scaled to the surface instead of being refused.

        Returns:
            The values as a float array of the same shape.

        Raises:
            InvalidInput: If there are none, or one is not finite or, without `clip`, lies outside.
        """
        array = _value_array(values)
        lengths = np.abs(array) if array.ndim == 1 else _lengths(array)
        if clip:
            scale = np.minimum(1.0, self.radius / np.maximum(lengths, self.radius))
            return array * (scale if array.ndim == 1 else scale[:, np.newaxis])
        outside = lengths > self.radius
        if outside.any():
            party = int(np.flatnonzero(outside)[0])
            raise InvalidInput(f"the length of values[{party}] must be at most {self.radius:g}, got a longer one")
        return array

    def __str__(self) -> str:
        return f"the ball of radius {self.radius:g}"


def _value_array(values: ArrayLike) -> Array:
    array = finite_array("values", values, (1, 2), "(n,) or (n, d)")
    if array.size == 0:
        refuse("the number of values", 0, "at least 1")
    return array


def _lengths(rows: Array) -> Array:
    """Return the Euclidean norms of rows, some at a time, as NumPy copies what it works on."""
    step = max(1, _ENTRIES // rows.shape[1])
    return np.concatenate([np.linalg.norm(rows[lo : lo + step], axis=1) for lo in range(0, len(rows), step)])
