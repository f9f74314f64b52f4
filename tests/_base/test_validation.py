from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from inca import InvalidInput
from inca._base.validation import (
    between_0_and_1,
    finite_array,
    finite_float,
    generator,
    integer,
    party_values,
    positive,
    refuse,
)


def sentence(check: Any, *arguments: Any, **options: Any) -> str:
    """Return the one sentence with which a check refuses."""
    with pytest.raises(InvalidInput) as caught:
        check(*arguments, **options)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_refusal_says_what_must_be_and_what_was() -> None:
    assert sentence(refuse, "rounds", 0, "at least 1") == "rounds must be at least 1, got 0"
    assert sentence(refuse, "schedule", "ring", "random") == "schedule must be random, got 'ring'"
    assert sentence(refuse, "share", np.float64(0.5), "above 1") == "share must be above 1, got 0.5"
    assert sentence(refuse, "ids", list(range(99)), "few").endswith("got " + str(list(range(99)))[:57] + "...")


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3), np.array(3)])
def test_integers_are_taken(value: Any) -> None:
    taken = integer("rounds", value)
    assert (taken, type(taken)) == (3, int)
    assert integer("rounds", value, 3, 3) == 3
    assert integer("level", -5, min=-9) == -5


@pytest.mark.parametrize(
    ("value", "limits", "expected"),
    [
        (0, {"min": 1}, "rounds must be at least 1, got 0"),
        (-1, {}, "rounds must be at least 0, got -1"),
        (np.int64(-1), {}, "rounds must be at least 0, got -1"),
        (9, {"min": 1, "max": 8}, "rounds must be from 1 to 8, got 9"),
        (2.0, {"min": 1}, "rounds must be an integer, at least 1, got 2.0"),
        (np.float64(2.0), {"min": 1}, "rounds must be an integer, at least 1, got 2.0"),
        (math.nan, {"max": 8}, "rounds must be an integer, from 0 to 8, got nan"),
        (math.inf, {}, "rounds must be an integer, at least 0, got inf"),
        (True, {}, "rounds must be an integer, at least 0, got True"),
        (np.bool_(True), {}, "rounds must be an integer, at least 0, got True"),
        ("3", {}, "rounds must be an integer, at least 0, got '3'"),
        (None, {}, "rounds must be an integer, at least 0, got None"),
        ([3], {}, "rounds must be an integer, at least 0, got [3]"),
    ],
)
def test_other_things_are_no_integers(value: Any, limits: dict[str, int], expected: str) -> None:
    assert sentence(integer, "rounds", value, **limits) == expected


def test_integers_that_python_does_not_write_are_refused_all_the_same() -> None:
    assert sentence(integer, "rounds", 10**5000, max=8) == "rounds must be from 0 to 8, got a huge integer"


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2.0), np.int64(2), np.array(2.0), Fraction(2)])
def test_finite_floats_are_taken(value: Any) -> None:
    for taken in (finite_float("sigma", value), finite_float("sigma", value, 0.0, 2.0), positive("sigma", value)):
        assert (taken, type(taken)) == (2.0, float)


@pytest.mark.parametrize(
    ("value", "limits", "expected"),
    [
        (-1.0, {"min": 0.0}, "sigma must be at least 0, got -1.0"),
        (1.5, {"min": 0.0, "max": 1.0}, "sigma must be from 0 to 1, got 1.5"),
        (np.float64(1.5), {"min": 0.0, "max": 1.0}, "sigma must be from 0 to 1, got 1.5"),
        (math.nan, {}, "sigma must be a finite number, got nan"),
        (math.inf, {"min": 0.0}, "sigma must be a finite number, at least 0, got inf"),
        (-math.inf, {"min": 0.0, "max": 1.0}, "sigma must be a finite number, from 0 to 1, got -inf"),
        (np.float32(math.nan), {}, "sigma must be a finite number, got nan"),
        (True, {}, "sigma must be a finite number, got True"),
        (np.bool_(False), {"min": 0.0}, "sigma must be a finite number, at least 0, got False"),
        ("1", {}, "sigma must be a finite number, got '1'"),
        (b"1", {}, "sigma must be a finite number, got b'1'"),
        (None, {}, "sigma must be a finite number, got None"),
        ([1.0, 2.0], {}, "sigma must be a finite number, got [1.0, 2.0]"),
        (1j, {}, "sigma must be a finite number, got 1j"),
        (np.complex128(1j), {}, "sigma must be a finite number, got 1j"),
        (np.array([2.0]), {}, "sigma must be a finite number, got array([2.])"),
        (np.datetime64(5, "ns"), {}, "sigma must be a finite number, got 5"),
        (10**400, {}, "sigma must be a finite number, got 1" + 56 * "0" + "..."),
    ],
)
def test_other_things_are_no_finite_floats(value: Any, limits: dict[str, float], expected: str) -> None:
    assert sentence(finite_float, "sigma", value, **limits) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "radius must be above 0, got 0"),
        (-2.5, "radius must be above 0, got -2.5"),
        (np.float64(0.0), "radius must be above 0, got 0.0"),
        (math.inf, "radius must be a finite number, got inf"),
        (math.nan, "radius must be a finite number, got nan"),
        (True, "radius must be a finite number, got True"),
        ("2", "radius must be a finite number, got '2'"),
    ],
)
def test_what_is_not_positive(value: Any, expected: str) -> None:
    assert sentence(positive, "radius", value) == expected


def test_fractions_lie_strictly_between_0_and_1() -> None:
    value: Any
    for value in (1e-300, 0.5, np.float32(0.5), 1 - 1e-16):
        assert 0.0 < between_0_and_1("delta", value) < 1.0
    for value in (0, 1, 0.0, 1.0, -0.1, 7, np.float64(1.0)):
        assert sentence(between_0_and_1, "delta", value) == f"delta must be between 0 and 1, got {value}"
    for value in (math.nan, math.inf, True, "0.5", None):
        assert sentence(between_0_and_1, "delta", value) == f"delta must be a finite number, got {value!r}"
    expected = "delta must be between 0 and 1 (nothing is promised at the ends), got 1"
    assert sentence(between_0_and_1, "delta", 1, "nothing is promised at the ends") == expected


def test_arrays_are_taken_in_rows() -> None:
    for value in ([[1, 2], [3, 4]], np.array([[1, 3], [2, 4]]).T, np.array([[1, 2], [3, 4]], dtype=np.uint8)):
        array = finite_array("noise", value, (2,), "(T+1, T)")
        assert array.dtype == np.float64 and array.flags.c_contiguous
        assert array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert finite_array("end", 2, (0, 1), "a number or one per column").tolist() == [2.0]


HIDDEN = (
    "noise must be an array of numbers, (n,) or (n, d), got a masked array that hides some (fill or drop them first)"
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1.0, math.nan], "noise[1] must be a finite number, got nan"),
        ([1.0, -math.inf], "noise[1] must be a finite number, got -inf"),
        ([[1.0], [math.inf]], "noise[1, 0] must be a finite number, got inf"),
        (1.0, "the shape of noise must be (n,) or (n, d), got ()"),
        (np.ones((2, 2, 2)), "the shape of noise must be (n,) or (n, d), got (2, 2, 2)"),
        ([0.25, "x"], "noise must be an array of numbers, (n,) or (n, d), got a list that is not one"),
        ("0.25", "noise must be an array of numbers, (n,) or (n, d), got a str that is not one"),
        ([[1.0], [2.0, 3.0]], "noise must be an array of numbers, (n,) or (n, d), got a list that is not one"),
        ({"a": 1}, "noise must be an array of numbers, (n,) or (n, d), got a dict that is not one"),
        (None, "noise must be an array of numbers, (n,) or (n, d), got a NoneType that is not one"),
        ((x for x in [1.0]), "noise must be an array of numbers, (n,) or (n, d), got a generator that is not one"),
        ([10**400], "noise must be an array of numbers, (n,) or (n, d), got a list that is not one"),
        ([True, False], "noise must be an array of numbers, (n,) or (n, d), got a list that is not one"),
        (np.array([True]), "noise must be an array of numbers, (n,) or (n, d), got an array of bool"),
        (np.array([1j]), "noise must be an array of numbers, (n,) or (n, d), got an array of complex128"),
        (np.array([1.0, None]), "noise must be an array of numbers, (n,) or (n, d), got an array of object"),
        (np.array(["1"]), "noise must be an array of numbers, (n,) or (n, d), got an array of <U1"),
        (np.array(["2026-01-01"], "M8[D]"), "noise must be an array of numbers, (n,) or (n, d), got an array of date"),
        (np.array([3], "m8[s]"), "noise must be an array of numbers, (n,) or (n, d), got an array of timedelta64[s]"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), HIDDEN),
        ([np.ma.array([1.0], mask=[True]), [2.0]], HIDDEN),
    ],
)
def test_other_things_are_no_arrays(value: Any, expected: str) -> None:
    assert sentence(finite_array, "noise", value, (1, 2), "(n,) or (n, d)").startswith(expected)


def test_a_mask_that_hides_nothing_is_no_reason_to_refuse() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, False])
    assert finite_array("noise", masked, (1,), "(n,)").tolist() == [1.0, 2.0]
    assert type(finite_array("noise", masked, (1,), "(n,)")) is np.ndarray


def test_generators_are_taken() -> None:
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    for value, shown in ((None, "None"), (7, "7"), ("rng", "'rng'")):
        assert sentence(generator, value) == f"rng must be a numpy.random.Generator, got {shown}"
    assert sentence(generator, np.random.RandomState(1)).startswith("rng must be a numpy.random.Generator, got Rand")


def test_parties_have_one_row_each() -> None:
    assert party_values([1, 2, 3], parties=3).tolist() == [1.0, 2.0, 3.0]
    assert party_values(np.ones((3, 2)), parties=3).shape == (3, 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], "the number of rows of values must be 3, one per party, got 2"),
        ([], "the number of rows of values must be 3, one per party, got 0"),
        (np.ones((3, 0)), "the shape of values must be (3,) or (3, d) with d at least 1, got (3, 0)"),
        (np.ones((3, 1, 1)), "the shape of values must be (3,) or (3, d), got (3, 1, 1)"),
        ([1, 2, math.nan], "values[2] must be a finite number, got nan"),
        (["a", "b", "c"], "values must be an array of numbers, (3,) or (3, d), got a list that is not one"),
    ],
)
def test_rows_that_do_not_fit_are_refused(values: Any, expected: str) -> None:
    assert sentence(party_values, values, 3) == expected
