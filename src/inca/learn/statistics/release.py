"""One private average of record features: what every statistic here is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import InputError, generator, positive, refuse
from inca.learn.averagers.base import Averaging
from inca.learn.budget import Budget, UsedUp
from inca.learn.statistics.estimates import Answer, NoResult
from inca.learn.statistics.features import Features
from inca.learn.statistics.records import Records

Loss = float | Budget
"""The mu of a release, or the budget that it is taken from."""

_PRECISION = 1e-6  # relative noise in how many records were present; far below all else


@dataclass(frozen=True, eq=False)
class Release:
    """The mean of features over all records, as one release of loss `mu` shows it.

    `noise` is the variance of the noise in each coordinate. The error of a statistic whose influence on a record varies
    by v (per record) is then its noise, plus v `missing` for the records that dropped out, plus v `drawing` if the
    records are draws from a population.
    """

    mean: Array
    noise: float
    missing: float
    drawing: float
    mu: float

    def answer(
        self,
        centre: Array,
        noise: Array,
        spread: Array,
        low: Array | float,
        high: Array | float,
        moved: Array | None = None,
    ) -> Answer:
        """Return an answer whose error has these variances: `noise`, and `spread` for each record."""
        return Answer(centre, noise + spread * self.missing, spread * self.drawing, moved, low, high, self.mu)


def release(
    records: Records,
    features: Features,
    aggregator: Averaging,
    loss: Loss,
    rng: np.random.Generator,
    fraction: float | None = None,
) -> Release:
    """Average the parties' sums of features and divide by how many records there are.

    From a budget, `fraction` of the whole is spent (all that is left, if it is None) before anything is computed.

    If parties can leave and hold different numbers of records, the number of records is averaged along with the sums,
    so that it is the number of those who stayed. It is public, hence no neighbour differs in it, and it may have any
    scale: a large one, so that its noise does not matter, costs nothing.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn.averagers.simulated import Aggregator
    >>> from inca.learn.statistics.features import Powers
    >>> records = Records.of([[0.0, 1.0]] * 50, Interval(0, 1))
    >>> found = release(records, Powers(records.lower, records.upper), Aggregator.of("central", 50), 1.0,
    ...     np.random.default_rng(1))
    >>> found.mean.shape, round(found.noise, 9), found.drawing  # (2 / 100)^2
    ((2,), 0.0004, 0.01)
    """
    if records.parties != aggregator.parties:
        raise refuse(
            "the number of parties with records", records.parties, f"that of the aggregator, {aggregator.parties}"
        )
    generator(rng)
    sensitivity = records.sensitivity(features.diameter)
    if aggregator.parties == round(aggregator.dropout * aggregator.parties):
        raise NoResult("all parties are said to leave, so there is no release, and nothing was spent")
    mu = spend(loss, fraction)
    sums, sizes = records.sums(features, features.size), records.sizes
    reach = float(sizes.max()) * features.reach
    varying = aggregator.dropout > 0.0 and bool((sizes != sizes[0]).any())
    if varying:
        scale = math.sqrt(aggregator.noise(sensitivity, mu)) / (_PRECISION * sizes.mean())
        sums = np.column_stack([sums, scale * sizes[records.held]])
        reach = math.hypot(reach, scale * float(sizes.max()))
    average = aggregator.average(sums, sensitivity, mu, rng, reach=reach)
    if average.vector is None:
        raise NoResult("all parties left before a result was published, and the loss of the release is spent")
    vector, each = average.vector, float(sizes.mean())
    if varying:
        vector, each = vector[:-1], float(vector[-1] / scale)
        if each < 0.5 / records.parties:
            raise NoResult("all parties with records left, and the loss of the release is spent")
    stayed = 1.0 - round(aggregator.dropout * records.parties) / records.parties
    drawing = 1.0 / records.total
    return Release(vector / each, average.noise / each**2, drawing / stayed - drawing, drawing, mu)


def spend(loss: Loss, fraction: float | None = None) -> float:
    """Return the mu of a release, taken off its budget if it has one.

    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> spend(budget, 0.25) == budget.mu / 2, spend(2.0)
    (True, 2.0)
    """
    if not isinstance(loss, Budget):
        if fraction is not None:
            raise InputError("a fraction was given with a mu, but only a budget can be split")
        return positive("mu", loss)
    mu = loss.left if fraction is None else loss.part(positive("fraction", fraction))
    if mu == 0.0:
        raise UsedUp(f"nothing is left of the budget epsilon {loss.epsilon:g} at delta {loss.delta:g}")
    loss.spend(mu)
    return mu
