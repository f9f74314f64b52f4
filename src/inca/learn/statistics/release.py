"""One private average of record features: what every statistic here is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import generator, positive, refuse
from inca.errors import BudgetExceeded, InvalidInput, NoResult
from inca.learn.averagers.base import Averager
from inca.learn.budget import Budget
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.features import FeatureMap
from inca.learn.statistics.records import Records

ReleaseLoss = float | Budget
"""The mu of a release, or the budget that it is taken from."""

_COUNT_PRECISION = 1e-6  # relative noise in how many records were present; far below all else


@dataclass(frozen=True, eq=False)
class FeatureMean:
    """The mean of features over all records, as one release of loss `mu` shows it.

    The error of a statistic whose influence on a record varies by v (per record) is its noise, plus v `missing` for
    the records that dropped out, plus v `drawing` if the records are draws from a population.

    Attributes:
        mean: The mean features, with noise.
        var_noise: The variance of the noise in each coordinate.
        missing: The variance per unit of v of the records that dropped out.
        drawing: The variance per unit of v of drawing records from a population, 1 / N.
        mu: The loss of the release.
    """

    mean: Array
    var_noise: float
    missing: float
    drawing: float
    mu: float

    def to_estimate(
        self,
        unconstrained: Array,
        var_noise: Array,
        var_record: Array,
        low: Array | float,
        high: Array | float,
        constrained: Array | None = None,
    ) -> Estimate:
        """Return a statistic whose error has the variance `var_noise`, and `var_record` for each record."""
        sample, population = var_noise + var_record * self.missing, var_record * self.drawing
        return Estimate(unconstrained, sample, population, constrained, low, high, self.mu)


def average_features(
    records: Records,
    features: FeatureMap,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> FeatureMean:
    """Average the parties' sums of features and divide by how many records there are.

    From a budget, `fraction` of the whole is spent (all that is left, if it is None) before anything is computed.

    If parties can leave and hold different numbers of records, the number of records is averaged along with the sums,
    so that it is the number of those who stayed. It is public, hence no neighbour differs in it, and it may have any
    scale: a large one, so that its noise does not matter, costs nothing.

    Args:
        records: The parties' records.
        features: What is averaged of each record.
        averager: Averages vectors of as many parties.
        loss: The mu of the release, or the budget that it is taken from.
        rng: The source of all randomness.
        fraction: The part of the budget to spend.

    Returns:
        The mean features of all records.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left; unless it says otherwise, the loss is spent.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> from inca.learn.statistics.features import Powers
        >>> records = Records.of([[0.0, 1.0]] * 50, Interval(0, 1))
        >>> averager, rng = SimulatedAverager.of("central", 50), np.random.default_rng(1)
        >>> released = average_features(records, Powers(records.lower, records.upper), averager, 1.0, rng)
        >>> released.mean.shape, round(released.var_noise, 9), released.drawing  # (2 / 100)^2
        ((2,), 0.0004, 0.01)
    """
    if records.parties != averager.parties:
        refuse("the number of parties with records", records.parties, f"that of the averager, {averager.parties}")
    generator(rng)
    sensitivity = records.sensitivity(features.diameter)
    if averager.parties == round(averager.dropout * averager.parties):
        raise NoResult("all parties are said to leave, so there is no release, and nothing was spent")
    mu = spend(loss, fraction)
    sums, sizes = records.sums(features, features.size), records.sizes
    max_norm = float(sizes.max()) * features.max_norm
    varying = averager.dropout > 0.0 and bool((sizes != sizes[0]).any())
    if varying:
        scale = math.sqrt(averager.var_noise(sensitivity, mu)) / (_COUNT_PRECISION * sizes.mean())
        sums = np.column_stack([sums, scale * sizes[records.held]])
        max_norm = math.hypot(max_norm, scale * float(sizes.max()))
    average = averager.average(sums, sensitivity, mu, rng, max_norm=max_norm)
    if average.estimate is None:
        raise NoResult("all parties left before a result was published, and the loss of the release is spent")
    vector, per_party = average.estimate, float(sizes.mean())
    if varying:
        vector, per_party = vector[:-1], float(vector[-1] / scale)
        if per_party < 0.5 / records.parties:
            raise NoResult("all parties with records left, and the loss of the release is spent")
    stayed = 1.0 - round(averager.dropout * records.parties) / records.parties
    drawing = 1.0 / records.total
    return FeatureMean(vector / per_party, average.var_noise / per_party**2, drawing / stayed - drawing, drawing, mu)


def spend(loss: ReleaseLoss, fraction: float | None = None) -> float:
    """Return the mu of a release, taken off its budget if it has one.

    Example:
        >>> budget = Budget(epsilon=1.0, delta=1e-5)
        >>> spend(budget, 0.25) == budget.mu / 2, spend(2.0)
        (True, 2.0)
    """
    if not isinstance(loss, Budget):
        if fraction is not None:
            raise InvalidInput("fraction cannot be combined with a mu: only a budget can be split")
        return positive("mu", loss)
    mu = loss.left if fraction is None else loss.part(positive("fraction", fraction))
    if mu == 0.0:
        raise BudgetExceeded(f"nothing is left of the budget epsilon {loss.epsilon:g} at delta {loss.delta:g}")
    loss.spend(mu)
    return mu
