"""Logs of outcomes, written at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inca._base.types import Array
from inca.network.sequence.outcome_log import OutcomeLog

Outcomes = list[Array | None]


def vector(number: float) -> Array:
    return np.array([number, -number / 3.0])


A, B, C, D = map(vector, (1.0, 2.0, 3.0, 4.0))


def log_of(folder: Path, outcomes: Outcomes) -> OutcomeLog:
    """Write so many outcomes; the k-th average has a standard error of k / 10."""
    log = OutcomeLog(folder)
    for number, average in enumerate(outcomes, 1):
        log.append(number, average, None if average is None else 0.1 * number)
    return log
