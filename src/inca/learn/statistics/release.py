"""One private average of record features: what every statistic here is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import generator, refuse
from inca.errors import NoResult
from inca.learn.averagers.base import Averager
from inca.learn.spending import ReleaseLoss, take_release
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.features import FeatureMap
from inca.learn.statistics.records import Records

__all__ = ["FeatureMean", "ReleaseLoss", "average_features"]

_COUNT_PRECISION = 1e-6  # relative noise in how many records were present; far below all else


@dataclass(frozen=True, eq=False, repr=False)
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
        failure_probability: How likely the averager's plan fails in it; it adds to delta. None: not known.
    """

    mean: Array
    var_noise: float
    missing: float
    drawing: float
    mu: float
    failure_probability: float | None = None

    def __repr__(self) -> str:
        return f"FeatureMean(shape={self.mean.shape}, mu={self.mu:.4g})"

    @property
    def stayed(self) -> float:
        """How many records are in the release, at least: 1 / (missing + drawing)."""
        return 1.0 / (self.missing + self.drawing)

    def errors(self, var_noise: Array, var_record: Array, record_error: Array) -> dict[str, Any]:
        """Return what an `Estimate` is to know of its error.

        Args:
            var_noise: The variance of the noise in the statistic.
            var_record: The variance v of a record's influence, as the release shows it.
            record_error: The standard deviation of the noise in v.
        """
        return {
            "var_noise": var_noise + var_record * self.missing,
            "var_sampling": var_record * self.drawing,
            "var_noise_error": record_error * self.missing,
            "var_sampling_error": record_error * self.drawing,
            "mu": self.mu,
            "failure_probability": self.failure_probability,
        }

    def to_estimate(
        self,
        unconstrained: Array,
        var_noise: Array,
        var_record: Array,
        record_error: Array,
        low: Array | float,
        high: Array | float,
        constrained: Array | None = None,
    ) -> Estimate:
        """Return a statistic whose error has the variance `var_noise`, and `var_record` for each record."""
        errors = self.errors(var_noise, var_record, record_error)
        return Estimate(unconstrained, constrained=constrained, low=low, high=high, **errors)


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
    scale: a large one, so that its noise does not matter, costs nothing. How many records are missing, for intervals,
    is also told by that number: of unequal parties, the share that stayed says little about the share of the records.

    Args:
        records: The parties' records.
        features: What is averaged of each record.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
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
        >>> mu = 1.0
        >>> released = average_features(records, Powers(records.lower, records.upper), averager, mu, rng)
        >>> released.mean.shape, round(released.var_noise, 9), released.drawing  # (2 / 100)^2
        ((2,), 0.0004, 0.01)
    """
    if records.parties != averager.parties:
        refuse("the number of parties with records", records.parties, f"that of the averager, {averager.parties}")
    generator(rng)
    sensitivity = records.sensitivity(features.diameter)
    if averager.parties == round(averager.dropout * averager.parties):
        raise NoResult("all parties are said to leave, so there is no release, and nothing was spent")
    cost = take_release(loss, averager, records.level, fraction)
    mu = cost.mu
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
    # At least so many parties stayed, each with so many records on average: the mean of all, if noise alone differs.
    usual = float(sizes.mean())
    typical = usual if math.isclose(per_party, usual, rel_tol=10.0 * _COUNT_PRECISION) else per_party
    stayed = typical * (records.parties - round(averager.dropout * records.parties))
    drawing = 1.0 / records.total
    missing = max(0.0, 1.0 / stayed - drawing)
    noise = average.var_noise / per_party**2
    return FeatureMean(vector / per_party, noise, missing, drawing, mu, cost.failure_probability)
