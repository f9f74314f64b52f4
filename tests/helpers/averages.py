"""Averages over the network, as a replay."""

from __future__ import annotations

from typing import Any

import numpy as np

from inca._base.types import Array
from inca.learn.averagers.network import NetworkAverager
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget
from inca.learn.statistics.distribution import quantiles
from inca.learn.statistics.moments import histogram, moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression


def averaged(mine: NetworkAverager, records: Records, task: str, chosen: Any = None) -> Array:
    """Return what everyone's rows for a statistic average to without noise, as a network would average them.

    A histogram's edges, or the shares of quantiles, are what is `chosen`.
    """
    seen: list[tuple[Array, float]] = []

    class Spy(SimulatedAverager):
        def average(self, vectors: Any, *arguments: Any, max_norm: float | None = None) -> Any:
            seen.append((np.array(vectors), max_norm or 0.0))
            return super().average(vectors, *arguments)

        def var_noise(self, sensitivity: float, mu: float) -> float:
            return mine.var_noise(sensitivity, mu)

    spy = Spy(SimulatedAverager.of("central", mine.parties).mechanism, mine.dropout)
    budget, rng = Budget(2.0, 1e-5), np.random.default_rng(0)
    release: Any = {"moments": moments, "regression": linear_regression, "histogram": histogram, "quantiles": quantiles}
    options = [] if chosen is None else [chosen]
    release[task](records, *options, spy, budget, rng)
    ((rows, max_norm),) = seen
    assert (np.linalg.norm(rows, axis=1) <= max_norm).all()
    return np.asarray(rows.mean(axis=0))
