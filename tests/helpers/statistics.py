"""Statistics with their plain counterparts, and records to take them of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from inca import Interval
from inca._base.types import Array
from inca.learn.averagers.simulated import Aggregator
from inca.learn.statistics.distribution import distribution
from inca.learn.statistics.estimates import Answer
from inca.learn.statistics.moments import covariance, histogram, mean, variance
from inca.learn.statistics.records import Records

DOMAIN = Interval(-2, 6)
EDGES, GRID = np.linspace(-2, 6, 9), np.linspace(-2, 6, 25)[1:-1]


def draws(rng: np.random.Generator, parties: int, each: int = 1, columns: int = 0) -> list[Array]:
    """Skewed numbers in [-2, 6]."""
    return [8 * rng.beta(3, 7, size=(each, columns) if columns else each) - 2 for _ in range(parties)]


@cache
def own() -> Aggregator:
    """inca for 12 parties; the plan takes seconds, so it is made once for all tests."""
    return Aggregator.of("inca", 12, dropout=0.2, messages=8, views=10)


Statistic = Callable[[Records, Aggregator, Any, np.random.Generator], Answer]
STATISTICS: dict[str, tuple[Statistic, Callable[[Array], Array], int]] = {
    "mean": (mean, lambda table: table.mean(axis=0), 3),
    "variance": (variance, lambda table: table.var(axis=0), 3),
    "covariance": (covariance, lambda table: np.cov(table.T, bias=True), 3),
    "histogram": (
        lambda records, aggregator, loss, rng: histogram(records, EDGES, aggregator, loss, rng),
        lambda table: np.histogram(table, EDGES)[0] / table.size,
        0,
    ),
    "distribution": (
        lambda records, aggregator, loss, rng: distribution(records, GRID, aggregator, loss, rng),
        lambda table: np.array([(table <= point).mean() for point in GRID]),
        0,
    ),
}
