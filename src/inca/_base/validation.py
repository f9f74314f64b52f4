"""Checks of input: each returns what it was given or raises `InvalidInput`, which says what must be and what was."""

from __future__ import annotations

import math
import operator
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca.errors import InvalidInput


def refuse(name: str, value: object, must_be: str) -> NoReturn:
    """Refuse argument `name` in one sentence: what it must be, and what it was.

    >>> refuse("delta", 2.0, "between 0 and 1")
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: delta must be between 0 and 1, got 2.0
    """
    raise InvalidInput(f"{name} must be {must_be}, got {_short(value)}") from None


def integer(name: str, value: SupportsIndex | Any, min: int = 0, max: int | None = None) -> int:
    """Return `value` as an int between `min` and `max` (inclusive), or refuse it.

    >>> integer("rounds", 20, min=1)
    20
    >>> integer("rounds", 0, min=1)
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: rounds must be at least 1, got 0
    """
    span = f"at least {min}" if max is None else f"from {min} to {max}"
    if isinstance(value, (bool, np.bool_)):
        refuse(name, value, f"an integer, {span}")
    try:
        number = operator.index(value)
    except TypeError:
        refuse(name, value, f"an integer, {span}")
    if number < min or (max is not None and number > max):
        refuse(name, value, span)
    return number


def finite_float(name: str, value: float, min: float = -math.inf, max: float = math.inf) -> float:
    """Return `value` as a finite float between `min` and `max` (inclusive), or refuse it.

    >>> finite_float("sigma_independent", 2, min=0)
    2.0
    """
    if math.isinf(min) and math.isinf(max):
        span = ""
    elif math.isinf(max):
        span = f"at least {min:g}"
    else:
        span = f"from {min:g} to {max:g}"
    kind = f"a finite number, {span}" if span else "a finite number"
    if isinstance(value, (bool, np.bool_, str, bytes)):
        refuse(name, value, kind)
    try:
        number = float(value)
    except (TypeError, ValueError):
        refuse(name, value, kind)
    if not math.isfinite(number):
        refuse(name, value, kind)
    if not min <= number <= max:
        refuse(name, value, span)
    return number


def positive(name: str, value: float) -> float:
    """Return `value` as a finite float above 0, or refuse it.

    >>> positive("radius", 2)
    2.0
    """
    if (number := finite_float(name, value)) <= 0.0:
        refuse(name, value, "above 0")
    return number


def between_0_and_1(name: str, value: float, why: str = "") -> float:
    """Return `value` as a float strictly between 0 and 1, or refuse it; `why` says what goes wrong at the ends.

    >>> between_0_and_1("delta", 1e-5)
    1e-05
    """
    if not 0.0 < (number := finite_float(name, value)) < 1.0:
        refuse(name, value, f"between 0 and 1{f' ({why})' if why else ''}")
    return number


def finite_array(name: str, value: ArrayLike, dimensions: tuple[int, ...], shape: str) -> Array:
    """Return `value` as a C-ordered float array of finite numbers, or refuse it.

    `dimensions` are the accepted numbers of axes, and `shape` says the same in words.

    >>> finite_array("value", [1, 2], (1,), "(T+1,)")
    array([1., 2.])
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        # Entries may be private, so they are not repeated.
        kind = type(value).__name__
        raise InvalidInput(f"{name} must be an array of numbers, {shape}, got a {kind} that is not one") from None
    if array.ndim not in dimensions:
        refuse(f"the shape of {name}", array.shape, shape)
    if not np.isfinite(array).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        refuse(f"{name}{list(where)}", float(array[where]), "a finite number")
    return np.ascontiguousarray(array)


def generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a NumPy generator, or refuse it.

    >>> generator(np.random.default_rng(1)).integers(1)
    np.int64(0)
    """
    if not isinstance(rng, np.random.Generator):
        refuse("rng", rng, "a numpy.random.Generator")
    return rng


def party_values(values: ArrayLike, parties: int) -> Array:
    """Return `values` as an (n,) or (n, d) array with one row per party, or refuse them.

    >>> party_values([0.5, 1.0], parties=2)
    array([0.5, 1. ])
    """
    array = finite_array("values", values, (1, 2), f"({parties},) or ({parties}, d)")
    if array.shape[0] != parties:
        refuse("the number of rows of values", array.shape[0], f"{parties}, one per party")
    if array.size == 0:
        refuse("the shape of values", array.shape, f"({parties},) or ({parties}, d) with d at least 1")
    return array


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, np.generic) else repr(value.item())
    return text if len(text) <= 60 else text[:57] + "..."
