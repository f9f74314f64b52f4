"""What a release costs: taken off a budget before anything is computed, with the probability that its plan fails."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca._base.validation import positive
from inca.errors import InvalidInput
from inca.learn.averagers.base import Averager
from inca.learn.budget import Budget, ProtectionLevel

ReleaseLoss = float | Budget
"""The budget that a release is taken from, or its mu (which is no epsilon)."""


@dataclass(frozen=True)
class ReleaseCost:
    """What releases cost."""

    mu: float
    failure_probability: float | None


def take_release(
    loss: ReleaseLoss, averager: Averager, level: ProtectionLevel, fraction: float | None = None
) -> ReleaseCost:
    """Take one release off its budget, if it has one.

    Example:
        >>> from inca.learn import SimulatedAverager
        >>> budget, averager = Budget(epsilon=1.0, delta=1e-5), SimulatedAverager.of("central", 20)
        >>> take_release(budget, averager, "record", 0.25).mu == budget.mu / 2, budget.level
        (True, 'record')
        >>> take_release(2.0, averager, "record")
        ReleaseCost(mu=2.0, failure_probability=0.0)
    """
    if not isinstance(loss, Budget):
        if fraction is not None:
            raise InvalidInput("fraction cannot be combined with a mu: only a budget can be split")
        mu = positive("mu", loss)
        averager.expect(None, 1)
        return ReleaseCost(mu, averager.failure_probability)
    mu = loss.rest() if fraction is None else loss.part(positive("fraction", fraction))
    return _take(loss, averager, level, 1, mu)


def take_releases(
    budget: Budget, averager: Averager, level: ProtectionLevel, releases: int, mu: float | None = None
) -> ReleaseCost:
    """Take several releases of equal loss off a budget.

    Example:
        >>> from inca.learn import SimulatedAverager
        >>> budget, averager = Budget(epsilon=1.0, delta=1e-5), SimulatedAverager.of("central", 20)
        >>> take_releases(budget, averager, "party", 4).mu == budget.mu / 2, round(budget.epsilon_spent, 6)
        (True, 1.0)
    """
    mu_one = budget.split([1.0] * releases)[0] if mu is None else positive("mu", mu)
    return _take(budget, averager, level, releases, mu_one)


def _take(budget: Budget, averager: Averager, level: ProtectionLevel, releases: int, mu: float) -> ReleaseCost:
    averager.expect(budget, releases)
    failure = averager.failure_probability
    budget.spend(
        mu * math.sqrt(releases),
        level=level,
        releases=releases,
        failure_probability=failure,
        planned_releases=averager.releases,
    )
    return ReleaseCost(mu, None if failure is None else min(1.0, releases * failure))
