"""Refusing bad input: every error names the argument, its value and what was expected."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array


class InputError(ValueError):
    """Input that inca refuses; the message is one sentence fit for a user to read."""

    status = 2
    """What the command line ends with."""


def refuse(name: str, value: object, expected: str) -> InputError:
    """Build the one-sentence error for argument `name`.

    >>> print(refuse("rounds", 0, "a whole number of at least 1"))
    rounds is 0, but a whole number of at least 1 was expected
    """
    return InputError(f"{name} is {_short(value)}, but {expected} was expected")


def whole(name: str, value: SupportsIndex | Any, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int between `least` and `most` (inclusive), or refuse it.

    >>> whole("rounds", 20, least=1)
    20
    """
    span = f"at least {least}" if most is None else f"from {least} to {most}"
    expected = f"a whole number {'of ' if most is None else ''}{span}"
    if isinstance(value, (bool, np.bool_)):
        raise refuse(name, value, expected)
    try:
        number = operator.index(value)
    except TypeError:
        raise refuse(name, value, expected) from None
    if number < least or (most is not None and number > most):
        raise refuse(name, value, expected)
    return number


def real(name: str, value: float, least: float = -math.inf, most: float = math.inf) -> float:
    """Return `value` as a finite float between `least` and `most` (inclusive), or refuse it.

    >>> real("sigma_independent", 2, least=0)
    2.0
    """
    if math.isinf(least) and math.isinf(most):
        expected = "a finite number"
    elif math.isinf(most):
        expected = f"a finite number of at least {least:g}"
    else:
        expected = f"a number from {least:g} to {most:g}"
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise refuse(name, value, expected)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise refuse(name, value, expected) from None
    if not math.isfinite(number) or not least <= number <= most:
        raise refuse(name, value, expected)
    return number


def positive(name: str, value: float) -> float:
    """Return `value` as a finite float above 0, or refuse it.

    >>> positive("radius", 2)
    2.0
    """
    if (number := real(name, value, least=0.0)) == 0.0:
        raise refuse(name, value, "a finite number above 0")
    return number


def finite_array(name: str, value: ArrayLike, dimensions: tuple[int, ...], expected: str) -> Array:
    """Return `value` as a C-ordered float array of finite numbers, or refuse it.

    `dimensions` are the accepted numbers of axes, `expected` says the same in words.

    >>> finite_array("value", [1, 2], (1,), "a list of numbers")
    array([1., 2.])
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of numbers, but {expected} was expected") from None
    if array.ndim not in dimensions:
        raise refuse(f"the shape of {name}", array.shape, expected)
    if not np.isfinite(array).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise refuse(f"{name}{list(where)}", float(array[where]), "a finite number")
    return np.ascontiguousarray(array)


def generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a NumPy generator, or refuse it.

    >>> generator(np.random.default_rng(1)).integers(1)
    np.int64(0)
    """
    if not isinstance(rng, np.random.Generator):
        raise refuse("rng", rng, "a numpy.random.Generator")
    return rng


def party_values(values: ArrayLike, parties: int) -> Array:
    """Return `values` as an (n,) or (n, d) array with one row per party, or refuse them.

    >>> party_values([0.5, 1.0], parties=2)
    array([0.5, 1. ])
    """
    array = finite_array("values", values, (1, 2), f"({parties},) or ({parties}, d)")
    if array.shape[0] != parties:
        raise refuse("the number of rows of values", array.shape[0], f"one row per party ({parties})")
    if array.size == 0:
        raise refuse("the shape of values", array.shape, f"({parties},) or ({parties}, d) with d at least 1")
    return array


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, np.generic) else repr(value.item())
    return text if len(text) <= 60 else text[:57] + "..."
