"""Averages over the network, as a replay."""

from __future__ import annotations

from typing import Any

import numpy as np

from inca._base.types import Array
from inca.learn.averagers.network import Sessions
from inca.learn.averagers.simulated import Aggregator
from inca.learn.budget import Budget
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression


def averaged(mine: Sessions, records: Records, task: str) -> Array:
    """Return what everyone's rows for a statistic average to without noise, as a network would average them."""
    seen: list[tuple[Array, float]] = []

    class Spy(Aggregator):
        def average(self, vectors: Any, *arguments: Any, reach: float | None = None) -> Any:
            seen.append((np.array(vectors), reach or 0.0))
            return super().average(vectors, *arguments)

        def noise(self, sensitivity: float, mu: float) -> float:
            return mine.noise(sensitivity, mu)

    spy = Spy(Aggregator.of("central", mine.parties).mechanism, mine.dropout)
    statistic: Any = {"moments": moments, "regression": linear_regression}[task]
    statistic(records, spy, Budget(2.0, 1e-5), np.random.default_rng(0))
    ((rows, reach),) = seen
    assert (np.linalg.norm(rows, axis=1) <= reach).all()
    return np.asarray(rows.mean(axis=0))
