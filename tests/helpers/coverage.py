"""How often intervals hold what they should: counting, and the limits that random deviations keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.stats import binom

from inca._base.types import Array

ALARM = 1e-6
"""How often a limit below is exceeded although coverage is right."""


def holds(interval: tuple[float | Array, float | Array], truth: float | Array, at: int = 0) -> bool:
    """Say whether one number of an interval (the next one each time, so that releases are independent) is held."""
    low, high, true = (np.ravel(part) for part in (*interval, truth))
    index = at % true.size
    return bool(low[index] <= true[index] <= high[index])


def assert_covers(hits: Iterable[bool], level: float, at_least: bool = False) -> float:
    """Refuse a coverage that random deviations alone do not explain, above its level only without `at_least`."""
    counted = list(hits)
    least, most = binom.ppf(ALARM / 2, len(counted), level), binom.isf(ALARM / 2, len(counted), level)
    assert least <= sum(counted), f"{sum(counted)} of {len(counted)} hits at level {level}, at least {least} expected"
    assert at_least or sum(counted) <= most, f"{sum(counted)} of {len(counted)} hits, at most {most} expected"
    return sum(counted) / len(counted)


def repeat(trials: int, once: Callable[[int, np.random.Generator], bool], seed: int) -> list[bool]:
    """Do something so many times with one generator."""
    rng = np.random.default_rng(seed)
    return [once(trial, rng) for trial in range(trials)]
