"""Lengths and intervals that doubles can compute with: squares of others vanish or overflow, and so would clipping.

The norm of a vector is the root of a sum of squares. Entries below 1e-162 have squares of 0, so that a ball of radius
1e-170 lets vectors of length 1e-163 pass: ten million times what its sensitivity says.
"""

from __future__ import annotations

from inca._base.validation import positive, refuse

_LEAST, _LARGEST = 1e-100, 1e100  # squares of what is 1e-50 times as long or as short are still exact enough
_LEAST_SHARE = 1e-12  # of an interval's ends, that it must be wide: else next to no doubles lie in it


def safe_length(name: str, value: float) -> float:
    """Return a length that vectors can be clipped to, or refuse it.

    Example:
        >>> safe_length("max_norm", 2)
        2.0
        >>> safe_length("max_norm", 1e-170)
        Traceback (most recent call last):
            ...
        inca.errors.InvalidInput: max_norm must be from 1e-100 to 1e+100, got 1e-170
    """
    number = positive(name, value)
    if not _LEAST <= number <= _LARGEST:
        refuse(name, value, f"from {_LEAST:g} to {_LARGEST:g}")
    return number


def safe_width(name: str, low: float, high: float) -> float:
    """Return the width of the interval [low, high], or refuse one that records cannot be scaled by.

    Example:
        >>> safe_width("the width of age", 0.0, 120.0)
        120.0
    """
    width = high - low
    least = max(_LEAST, _LEAST_SHARE * max(abs(low), abs(high)))
    if not width <= _LARGEST:
        refuse(name, width, f"at most {_LARGEST:g}")
    if not width >= least:
        refuse(name, width, f"at least {least:g}")
    return width
