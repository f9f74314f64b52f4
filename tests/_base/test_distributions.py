"""Binomial and hypergeometric numbers are those of `scipy.stats`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from inca._base import distributions
from inca._base.distributions import (
    binom_cdf,
    binom_pmf,
    binom_ppf,
    hypergeom_cdf,
    hypergeom_isf,
    hypergeom_pmf,
    hypergeom_sf,
)

PROBABILITIES = st.just(0.0) | st.floats(1e-300, 1.0)  # SciPy ends in an OverflowError for some that are less


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, int]:
    """A population, how many of it are good, and how many are drawn."""
    population = draw(st.integers(1, 10 ** draw(st.sampled_from([1, 3, 9]))))
    good = draw(st.integers(0, population))
    return population, good, draw(st.integers(0, min(population, 1000)))


@given(st.integers(0, 10**6), PROBABILITIES, st.integers(-3, 10**6 + 3), PROBABILITIES)
@example(trials=2, probability=1e-40, k=0, quantile=0.0)  # what scipy.special has is above 1 here
def test_binomial_numbers_are_those_of_scipy(trials: int, probability: float, k: int, quantile: float) -> None:
    ks = np.array([k, -1, 0, trials // 2, trials, trials + 1])
    np.testing.assert_array_equal(binom_pmf(ks, trials, probability), binom.pmf(ks, trials, probability))
    np.testing.assert_array_equal(binom_cdf(ks, trials, probability), binom.cdf(ks, trials, probability))
    assert binom_ppf(quantile, trials, probability) == binom.ppf(quantile, trials, probability)


@given(draws(), st.integers(-3, 1003), st.floats(1e-12, 1.0, exclude_max=True))
def test_hypergeometric_numbers_are_those_of_scipy(drawn: tuple[int, int, int], k: int, probability: float) -> None:
    ks = np.array([k, -1, 0, drawn[2] // 2, drawn[2], drawn[2] + 1])
    np.testing.assert_array_equal(hypergeom_pmf(ks, *drawn), hypergeom.pmf(ks, *drawn))
    for number in ks.tolist():
        assert hypergeom_cdf(number, *drawn) == hypergeom.cdf(number, *drawn)
        assert hypergeom_sf(number, *drawn) == hypergeom.sf(number, *drawn)
    least = hypergeom_isf(probability, *drawn)
    assert hypergeom_sf(least, *drawn) <= probability
    assert least == max(0, drawn[2] - (drawn[0] - drawn[1])) or hypergeom_sf(least - 1, *drawn) > probability


@pytest.mark.parametrize("distribution", ["binom", "hypergeom"])
def test_scipy_stats_is_asked_if_the_names_have_moved(distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (3, 10, 0.25) if distribution == "binom" else (3, 6, 5, 20)
    before = distributions._load(distribution, "cdf")(*arguments)

    def moved(name: str) -> ModuleType:
        if name == "scipy.special._ufuncs":
            raise ImportError
        return import_module(name)

    monkeypatch.setattr(distributions, "import_module", moved)
    assert distributions._load(distribution, "cdf")(*arguments) == before
