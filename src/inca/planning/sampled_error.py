"""The error that sampled runs leave: of Algorithm 2 where parties leave, and of settled runs where they miss rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np

from inca._base.validation import refuse
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence

_MOST_PARTIES = 100_000
_MAX_SENDERS = 400_000  # parties in all runs together


def sampled_error(
    requirements: Requirements,
    design: ProtocolDesign,
    levels_of: Callable[[Execution], NoiseLevels],
    dropout: float,
    runs: int,
    *,
    settled: bool = False,
) -> tuple[ErrorBudget, float]:
    """Return the mean of the exact errors of sampled runs, and its standard error (0 where one run is all).

    Args:
        requirements: How many parties, how often they are away, and the variance of their values.
        design: The schedule, which is drawn anew for each run.
        levels_of: The noise of an execution.
        dropout: The fraction of the parties that leaves for good.
        runs: How many runs, at most.
        settled: Whether those who stay settle.
    """
    n, away = requirements.parties, requirements.away
    if n > _MOST_PARTIES:
        refuse(
            "parties", n, f"at most {_MOST_PARTIES:,} where an expected error is sampled (with away, or not settled)"
        )
    # If nobody is absent, all runs are the same.
    count = 1 if dropout == 0.0 and away == 0.0 else max(4, min(runs, _MAX_SENDERS // n))

    def error_of_run(number: int) -> ErrorBudget:
        rng = np.random.default_rng((0, 2, number))
        presence = Presence.leaving(n, design.rounds, dropout, rng, away=away)
        execution = Execution(design.draw_schedule(n, number), design.injection(), presence)
        execution = execution.settled() if settled else execution
        return expected_error(execution, levels_of(execution), variance=requirements.value_variance)

    errors = np.array([astuple(error_of_run(number)) for number in range(count)])
    spread = 0.0 if count == 1 else float(errors.sum(axis=1).std(ddof=1) / math.sqrt(count))
    return ErrorBudget(*(float(part) for part in errors.mean(axis=0))), spread
