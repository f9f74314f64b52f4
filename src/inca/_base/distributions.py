"""Binomial and hypergeometric distributions, to the last digit those of `scipy.stats`.

That module takes longer to load than all else that a plan needs, and its methods spend most of their time on checks of
their arguments. What it calls in the end is loaded with `scipy.special`, where the names are private; should they move,
`scipy.stats` is asked after all. What they return may be above 1 by rounding, and is cut there, as `scipy.stats` does.
Arguments are not checked: the callers have done it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array


def _load(distribution: str, function: str) -> Any:
    """Return what works out a function of a distribution, with its arguments in the order of `scipy.special`."""
    try:
        rounded = getattr(import_module("scipy.special._ufuncs"), f"_{distribution}_{function}")
        return rounded if function == "ppf" else lambda *arguments: np.minimum(rounded(*arguments), 1.0)
    except (ImportError, AttributeError):
        method = getattr(getattr(import_module("scipy.stats"), distribution), function)
        if distribution == "binom":
            return method
        return lambda k, good, draws, population: method(k, population, good, draws)


_binom_pmf, _binom_cdf, _binom_ppf = (_load("binom", name) for name in ("pmf", "cdf", "ppf"))
_hypergeom_pmf, _hypergeom_cdf, _hypergeom_sf = (_load("hypergeom", name) for name in ("pmf", "cdf", "sf"))


def binom_pmf(k: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> Array:
    """Return how likely k of so many independent trials succeed.

    >>> binom_pmf([-1, 0, 1, 2, 3], 2, 0.25).tolist()
    [0.0, 0.5625, 0.375, 0.0625, 0.0]
    """
    k, trials = np.asarray(k), np.asarray(trials)
    inside = (k >= 0) & (k <= trials)
    return np.asarray(np.where(inside, _binom_pmf(np.where(inside, k, 0), trials, probability), 0.0))


def binom_cdf(k: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> Array:
    """Return how likely at most k of so many independent trials succeed.

    >>> binom_cdf([-1, 0, 1, 2], 2, 0.25).tolist()
    [0.0, 0.5625, 0.9375, 1.0]
    """
    k, trials = np.asarray(k), np.asarray(trials)
    inside = (k >= 0) & (k < trials)
    below = _binom_cdf(np.where(inside, k, 0), trials, probability)
    return np.asarray(np.where(inside, below, np.where(k < 0, 0.0, 1.0)))


def binom_ppf(quantile: float, trials: int, probability: float) -> int:
    """Return the least k such that at most k trials succeed with at least the probability `quantile`; -1 for 0.

    >>> [binom_ppf(quantile, 2, 0.25) for quantile in (0.0, 0.5, 0.9, 1.0)]
    [-1, 0, 1, 2]
    """
    if quantile in (0.0, 1.0):
        return -1 if quantile == 0.0 else trials
    return int(_binom_ppf(quantile, trials, probability))


def hypergeom_pmf(k: ArrayLike, population: ArrayLike, good: ArrayLike, draws: ArrayLike) -> Array:
    """Return how likely k of those drawn are good, if so many are drawn from a population without replacement.

    >>> hypergeom_pmf([0, 1, 2, 3], 4, 2, 2).round(4).tolist()
    [0.1667, 0.6667, 0.1667, 0.0]
    """
    inside, k, good, draws, population = _support(k, population, good, draws)
    return np.asarray(np.where(inside, _hypergeom_pmf(k, good, draws, population), 0.0))


def hypergeom_cdf(k: int, population: int, good: int, draws: int) -> float:
    """Return how likely at most k of those drawn are good.

    >>> [round(hypergeom_cdf(k, 4, 2, 2), 4) for k in (-1, 0, 1, 2)]
    [0.0, 0.1667, 0.8333, 1.0]
    """
    least, most = max(0, draws - (population - good)), min(good, draws)
    if k < least or k >= most:
        return float(k >= most)
    return float(_hypergeom_cdf(k, good, draws, population))


def hypergeom_sf(k: int, population: int, good: int, draws: int) -> float:
    """Return how likely more than k of those drawn are good.

    >>> [round(hypergeom_sf(k, 4, 2, 2), 4) for k in (-1, 0, 1, 2)]
    [1.0, 0.8333, 0.1667, 0.0]
    """
    least, most = max(0, draws - (population - good)), min(good, draws)
    if k < least or k >= most:
        return float(k < least)
    return float(_hypergeom_sf(k, good, draws, population))


def hypergeom_isf(probability: float, population: int, good: int, draws: int) -> int:
    """Return the least k such that more of those drawn are good with at most this probability.

    >>> [hypergeom_isf(probability, 4, 2, 2) for probability in (0.9, 0.5, 0.1)]
    [0, 1, 2]
    """
    low, high = max(0, draws - (population - good)) - 1, min(good, draws)  # too few; enough
    while high - low > 1:
        middle = (low + high) // 2
        if hypergeom_sf(middle, population, good, draws) <= probability:
            high = middle
        else:
            low = middle
    return high


def _support(k: ArrayLike, population: ArrayLike, good: ArrayLike, draws: ArrayLike) -> tuple[Any, ...]:
    """Return which numbers can be drawn at all, and the arguments with the least of these where k cannot."""
    wanted, n, right, drawn = np.broadcast_arrays(k, population, good, draws)
    least = np.maximum(0, drawn - (n - right))
    inside = (wanted >= least) & (wanted <= np.minimum(right, drawn))
    return inside, np.where(inside, wanted, least), right, drawn, n
