"""Logs of outcomes, written at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from inca._base.types import Array
from inca.network.sequence.outcome_log import OutcomeLog, SessionResult

Outcomes = list[Array | None]


def vector(number: float) -> Array:
    return np.array([number, -number / 3.0])


A, B, C, D = map(vector, (1.0, 2.0, 3.0, 4.0))


BEACON = b"beacon".ljust(32)


def digest_of(average: Array) -> bytes:
    """The digest of a result of `log_of`."""
    return hashlib.sha256(average.tobytes() + BEACON).digest()


def result_of(average: Array, standard_error: float | None = None) -> SessionResult:
    """The result of a session with that average, and always the same beacon."""
    return SessionResult(average, standard_error, BEACON)


def log_of(folder: Path, outcomes: Outcomes) -> OutcomeLog:
    """Write so many outcomes; the k-th average has a standard error of k / 10."""
    log = OutcomeLog(folder)
    for number, average in enumerate(outcomes, 1):
        log.append(number, None if average is None else result_of(average, 0.1 * number))
    return log
