"""One private average of record features: what every statistic here is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import generator, instance, method_of, refuse, whole_parties
from inca.errors import NoResult
from inca.learn.averagers.base import Averager
from inca.learn.spending import ReleaseLoss, take_release
from inca.learn.statistics.estimates import IntervalTarget, Reach, bounded_reach
from inca.learn.statistics.features import FeatureMap
from inca.learn.statistics.records import Records

__all__ = ["FeatureMean", "ReleaseLoss", "average_features"]

_COUNT_PRECISION = 1e-6  # relative noise in how many records were present; far below all else


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMean:
    """The mean of features over all records, as one release of loss `mu` shows it.

    The error of a mean of which a record's part is in an interval of half-width h is its noise, plus at most h^2
    `missing` for the records that dropped out, plus h^2 `drawing` if the records are draws from a population.
    """

    mean: Array
    var_noise: float
    missing: float
    drawing: float
    mu: float
    failure_probability: float | None = None

    def __repr__(self) -> str:
        return f"FeatureMean(shape={self.mean.shape}, mu={self.mu:.4g})"

    def reach(self, level: float, target: IntervalTarget, half: Array | float, var_noise: Array | float) -> Array:
        """Return how far means can be off, with this probability at most; see `bounded_reach`."""
        variance = self.missing
        if target == "population":
            variance += self.drawing
        elif variance > 0.0:  # Serfling has (1 - (n - 1) / N) / n, which is 1 / n - 1 / N and this
            variance += self.drawing * (self.missing + self.drawing)
        return bounded_reach(level, var_noise, np.square(half) * variance)

    def errors(self, reach: Reach, var_noise: Array, var_record: Array) -> dict[str, Any]:
        """Return what an `Estimate` is to know of its error."""
        return {
            "var_noise": var_noise + var_record * self.missing,
            "var_sampling": var_record * self.drawing,
            "reach": reach,
            "mu": self.mu,
            "failure_probability": self.failure_probability,
        }


def check_release(records: Records, averager: Averager) -> None:
    """Refuse records and an averager that are none."""
    instance("records", records, Records, "inca.learn.Records")
    method_of("averager", averager, "average", "an averager, such as inca.learn.SimulatedAverager")


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
    check_release(records, averager)
    if records.parties != averager.parties:
        refuse("the number of parties with records", records.parties, f"that of the averager, {averager.parties}")
    generator(rng)
    sensitivity = records.sensitivity(features.diameter)
    if averager.parties == whole_parties("dropout", averager.dropout, averager.parties):
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
    stayed = typical * (records.parties - whole_parties("dropout", averager.dropout, records.parties))
    drawing = 1.0 / records.total
    missing = 0.0 if math.isclose(stayed, records.total) else max(0.0, 1.0 / stayed - drawing)
    noise = average.var_noise / per_party**2
    return FeatureMean(vector / per_party, noise, missing, drawing, mu, cost.failure_probability)
