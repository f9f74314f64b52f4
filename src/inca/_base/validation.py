"""Checks of input: each returns what it was given or raises `InvalidInput`, which says what must be and what was."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca.errors import InvalidInput

T = TypeVar("T")

_LARGEST = 2**63 - 1  # an integer of NumPy


def refuse(name: str, value: object, must_be: str) -> NoReturn:
    """Refuse argument `name` in one sentence: what it must be, and what it was.

    >>> refuse("delta", 2.0, "between 0 and 1")
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: delta must be between 0 and 1, got 2.0
    """
    raise InvalidInput(f"{name} must be {must_be}, got {_short(value)}") from None


def integer(name: str, value: SupportsIndex | Any, min: int = 0, max: float | None = None) -> int:
    """Return `value` as an int between `min` and `max` (inclusive), or refuse it; without `max`, of 63 bits.

    >>> integer("rounds", 20, min=1)
    20
    >>> integer("rounds", 0, min=1)
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: rounds must be at least 1, got 0
    """
    span = f"at least {min}" if max in (None, math.inf) else f"from {min} to {max}"
    if isinstance(value, (bool, np.bool_)):
        refuse(name, value, f"an integer, {span}")
    try:
        number = operator.index(value)
    except TypeError:
        refuse(name, value, f"an integer, {span}")
    if number > _LARGEST and max is None:
        refuse(name, value, f"from {min} to {_LARGEST}")
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
    array_kind = value.dtype.kind if isinstance(value, (np.generic, np.ndarray)) else "f"
    if isinstance(value, (bool, str, bytes)) or array_kind not in "iuf" or getattr(value, "ndim", 0) > 0:
        refuse(name, value, kind)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
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


def whole_parties(name: str, fraction: float, parties: int) -> int:
    """Return how many of n parties a fraction is, rounded up, but for rounding errors: 7 % of 100 are 7, not 8.

    >>> whole_parties("dropout", 0.07, 100), whole_parties("dropout", 0.1, 5)
    (7, 1)
    """
    return math.ceil(finite_float(name, fraction, 0.0, 1.0) * parties - 1e-9)


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
    array = real_array(name, value, shape)
    if array.ndim not in dimensions:
        refuse(f"the shape of {name}", array.shape, shape)
    # Its ends are enough to know, and take no memory beside that of the array.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        refuse(f"{name}{list(where)}", float(array[where]), "a finite number")
    return np.ascontiguousarray(array)


def real_array(name: str, value: ArrayLike, shape: str) -> Array:
    """Return `value` as a float array, or refuse what holds anything but real numbers, or hides some.

    Entries may be private, so they are not repeated.

    >>> real_array("value", np.array([1j]), "(n,)")
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: value must be an array of numbers, (n,), got an array of complex128
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of tensors that require gradients
        array = np.empty(0, dtype=object)
    rows = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        got = "a masked array that hides some (fill or drop them first)"
    elif array.dtype.kind in "iuf":
        return array.astype(np.float64, copy=False)
    elif isinstance(value, np.ndarray):
        got = f"an array of {value.dtype}"
    else:
        got = f"a {type(value).__name__} that is not one"
    raise InvalidInput(f"{name} must be an array of numbers, {shape}, got {got}") from None


def instance(name: str, value: T, kind: type, must_be: str = "") -> T:
    """Return `value` if it is of this class, or refuse it.

    >>> instance("rounds", 3, int)
    3
    >>> instance("records", [1.0], dict)
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: records must be a dict, got a list
    """
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise InvalidInput(f"{name} must be {must_be or f'{article} {kind.__name__}'}, got a {type(value).__name__}")


def method_of(name: str, value: object, method: str, must_be: str) -> None:
    """Refuse an object without this method, for protocols: whatever has it may be of any class."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise InvalidInput(f"{name} must be {must_be}, got a {type(value).__name__}")


def one_of(name: str, value: object, words: Iterable[str]) -> None:
    """Refuse what is not one of these words.

    >>> one_of("weights", "equal", ["equal", "records"])
    """
    allowed = list(words)
    if not isinstance(value, str) or value not in allowed:
        refuse(name, value, f"one of {', '.join(allowed)}" if len(allowed) > 2 else " or ".join(allowed))


def listed(name: str, value: Any, entries: str) -> list[Any]:
    """Return the entries of a list, tuple or array, or refuse what is none, text included.

    >>> listed("shares", (0.5,), "numbers")
    [0.5]
    """
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise InvalidInput(f"{name} must be a list of {entries}, got a {type(value).__name__}")
    return list(value)


def flags(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return booleans (or 0 and 1) of this shape, or refuse them.

    >>> flags("lost", [1, 0], (2,))
    array([ True, False])
    """
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), dtype=object)
    if array.shape != shape:
        refuse(f"the shape of {name}", array.shape, str(shape))
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        refuse(f"the entries of {name}", f"an array of {array.dtype}", "true or false")
    return array.astype(bool)


def file_path(name: str, value: object) -> Path:
    """Return a path, or refuse what is neither a path nor text."""
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise InvalidInput(f"{name} must be a path, got a {type(value).__name__}")
    return Path(value)


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
    try:
        text = repr(value) if not isinstance(value, np.generic) else repr(value.item())
    except ValueError:  # of more digits than Python writes
        text = "a huge integer"
    return text if len(text) <= 60 else text[:57] + "..."
