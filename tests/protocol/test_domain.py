from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inca import Ball, Domain, Interval, InvalidInput
from inca._base.types import Array
from inca.protocol.domain import falls_short

numbers = st.floats(-1e6, 1e6)


@given(arrays(float, (4, 3), elements=numbers), st.sampled_from([Interval(-2, 5), Ball(3)]))
def test_clipped_values_are_admitted_and_differ_by_at_most_the_sensitivity(values: Array, domain: Domain) -> None:
    inside = domain.validate(values, clip=True)
    again = domain.validate(inside * (1 - 1e-12), clip=False)
    assert np.array_equal(domain.validate(again, clip=True), again)
    for a in inside:
        for b in inside:
            assert np.linalg.norm(a - b) <= domain.sensitivity(3) * (1 + 1e-12)


def test_lengths_of_many_rows_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).normal(size=(10, 3))
    rows[7] *= 5.0 / np.linalg.norm(rows[7])
    monkeypatch.setattr("inca.protocol.domain._ENTRIES", 7)  # two rows at a time
    assert np.array_equal(Ball(4.9).validate(rows[:7]), rows[:7])
    with pytest.raises(InvalidInput, match=r"the length of values\[7\] must be at most 4.9"):
        Ball(4.9).validate(rows)


def test_sensitivities() -> None:
    assert Interval(0, 240).sensitivity() == 240
    assert Interval(0, 1).sensitivity(16) == 4
    assert Ball(1.5).sensitivity(7) == 3
    assert str(Interval(0, 1)) == "[0, 1]" and "1.5" in str(Ball(1.5))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Interval(1, 1), r"high must be above low \(1\), got 1"),
        (lambda: Interval(2, 1), r"high must be above low \(2\), got 1"),
        (lambda: Interval(0, math.inf), "high must be a finite number, got inf"),
        (lambda: Interval(math.nan, 1), "low must be a finite number, got nan"),
        (lambda: Ball(0), "radius must be above 0, got 0"),
        (lambda: Ball(-1), "radius must be above 0, got -1"),
        (lambda: Ball(1e-170), r"radius must be from 1e-100 to 1e\+100, got 1e-170"),
        (lambda: Ball(1e160), r"radius must be from 1e-100 to 1e\+100, got 1e\+160"),
        (lambda: Interval(0, 5e-324), r"high - low must be at least 1e-100, got 5e-324"),
        (lambda: Interval(-1e308, 1e308), r"high - low must be at most 1e\+100, got inf"),
        (lambda: Interval(1e6, 1e6 + 1e-9), r"high - low must be at least 1e-06, got 1\.0"),
        (lambda: Ball(math.nan), "radius must be a finite number, got nan"),
        (lambda: Interval(0, 1).validate([0.5, 1.5]), r"values\[1\] must be in \[0, 1\], got one outside"),
        (lambda: Interval(0, 1).validate([[0.5], [-1.0]]), r"values\[1, 0\] must be in \[0, 1\], got one outside"),
        (lambda: Interval(0, 1).validate([0.5, math.nan], clip=True), r"values\[1\] must be a finite number, got nan"),
        (lambda: Interval(0, 1).validate([]), "the number of values must be at least 1, got 0"),
        (lambda: Ball(1).validate([[3.0, 4.0]]), r"the length of values\[0\] must be at most 1, got a longer one"),
        (lambda: Ball(1).validate([2.0]), r"the length of values\[0\] must be at most 1, got a longer one"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


@given(st.floats(1e-90, 1e90), st.floats(1e-9, 1.0))
def test_a_stated_sensitivity_falls_short_by_a_fraction_whatever_the_unit(sensitivity: float, short: float) -> None:
    """Metres or millimetres: what is a billionth too small is refused, what is off by rounding is not."""
    assert falls_short(sensitivity * (1.0 - short), sensitivity)
    assert not falls_short(sensitivity * (1.0 - 1e-15), sensitivity)
    assert not falls_short(sensitivity * (1.0 + short), sensitivity)


@pytest.mark.parametrize("kind", [Interval, Ball])
def test_domains_are_called_as_any_domain_is_and_refuse_what_is_outside_if_nothing_is_said(kind: type[Domain]) -> None:
    for name in ("sensitivity", "validate"):
        of_all, of_this = (
            [(entry.name, entry.default) for entry in inspect.signature(getattr(each, name)).parameters.values()]
            for each in (Domain, kind)
        )
        assert of_this == of_all
    with pytest.raises(InvalidInput):
        (Interval(-1, 1) if kind is Interval else Ball(1)).validate([1.5])
