"""Statistics with their plain counterparts, and records to take them of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import beta

from inca import Conditions, Interval
from inca._base.types import Array
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.statistics.distribution import distribution
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.moments import covariance, histogram, moments
from inca.learn.statistics.records import Records

DOMAIN = Interval(-2, 6)
EDGES, GRID = np.linspace(-2, 6, 9), np.linspace(-2, 6, 25)[1:-1]


def draws(rng: np.random.Generator, parties: int, per_party: int = 1, columns: int = 0) -> list[Array]:
    """Skewed numbers in [-2, 6]."""
    shape = (parties, per_party, columns) if columns else (parties, per_party)
    return list(8 * rng.beta(3, 7, size=shape) - 2)


@cache
def own() -> SimulatedAverager:
    """inca for 12 parties; the plan takes seconds, so it is made once for all tests."""
    return SimulatedAverager.of("inca", 12, Conditions(dropout=0.2, messages=8, colluding=0.0))


def mean(
    records: Records, averager: SimulatedAverager, loss: Any, rng: np.random.Generator, **options: Any
) -> Estimate:
    return moments(records, averager, loss, rng, **options).mean


def variance(
    records: Records, averager: SimulatedAverager, loss: Any, rng: np.random.Generator, **options: Any
) -> Estimate:
    return moments(records, averager, loss, rng, **options).variance


LAW = beta(3, 7, loc=-2, scale=8)
"""Of the numbers that are drawn."""

Statistic = Callable[[Records, SimulatedAverager, Any, np.random.Generator], Estimate]
STATISTICS: dict[str, tuple[Statistic, Callable[[Array], Array], int]] = {
    "mean": (mean, lambda table: table.mean(axis=0), 3),
    "variance": (variance, lambda table: table.var(axis=0), 3),
    "covariance": (covariance, lambda table: np.cov(table.T, bias=True), 3),
    "histogram": (
        lambda records, averager, loss, rng: histogram(records, EDGES, averager, loss, rng),
        lambda table: np.histogram(table, EDGES)[0] / table.size,
        0,
    ),
    "distribution": (
        lambda records, averager, loss, rng: distribution(records, GRID, averager, loss, rng),
        lambda table: np.array([(table <= point).mean() for point in GRID]),
        0,
    ),
}
POPULATION: dict[str, Array] = {
    "mean": np.full(3, LAW.mean()),
    "variance": np.full(3, LAW.var()),
    "covariance": LAW.var() * np.eye(3),
    "histogram": np.diff(LAW.cdf(EDGES)),
    "distribution": LAW.cdf(GRID),
}
"""What the plain statistic of more and more draws comes to."""
