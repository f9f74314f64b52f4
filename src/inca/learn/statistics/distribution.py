"""Distribution functions and quantiles of records, each from one private average.

The share of records up to each of K points is a running sum over bins. Adding up a noisy histogram adds up its noise,
to a variance of up to K / 4 times that of a bin. So what is averaged is the histogram times a square root M of the
matrix of sums (`root_of_sums`), whose noise grows as (ln K)^2. For few points the plain histogram is better; which one
is taken depends on K alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from inca._base.types import Array
from inca._base.validation import between_0_and_1, integer, listed, refuse
from inca.learn.averagers.base import Averager
from inca.learn.statistics.estimates import Estimate, IntervalTarget
from inca.learn.statistics.features import Bins, root_of_sums
from inca.learn.statistics.moments import increasing, one_column
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import ReleaseLoss, average_features, check_release

QUANTILE_POINTS = 127  # of a grid, unless it is said how many
_MAX_POINTS = 2000
_ONE_SIGMA = 0.6826894921370859  # P(|z| <= 1)


@dataclass(frozen=True, eq=False)
class DistributionEstimate(Estimate):
    """The share of records up to each point of a grid; it never falls, and intervals are around what is unbiased.

    Attributes:
        grid: The points.
        domain: The lower and the upper end of the records' domain.
    """

    grid: Array = field(default_factory=lambda: np.empty(0))
    domain: tuple[float, float] = (-np.inf, np.inf)

    def quantile(self, share: float) -> QuantileEstimate:
        """Return the number up to which this share of the records lies, from the same release.

        Args:
            share: Between 0 and 1.

        Returns:
            The quantile.
        """
        return QuantileEstimate(self, _checked_share(share))


@dataclass(frozen=True, eq=False)
class QuantileEstimate:
    """A quantile as a distribution function on a grid shows it: between two points it is a straight line.

    Attributes:
        distribution: The distribution function that it is read off.
        share: The share of the records up to the quantile.
    """

    distribution: DistributionEstimate
    share: float

    @property
    def estimate(self) -> float:
        """The quantile."""
        grid, (low, high) = self.distribution.grid, self.distribution.domain
        inside = (grid > low) & (grid < high)
        points = np.concatenate([[low], grid[inside], [high]])
        heights = np.concatenate([[0.0], np.asarray(self.distribution.estimate)[inside], [1.0]])
        right = int(np.clip(np.searchsorted(heights, self.share, side="left"), 1, points.size - 1))
        rise = heights[right] - heights[right - 1]
        part = (self.share - heights[right - 1]) / rise if rise > 0.0 else 0.0
        return float(points[right - 1] + part * (points[right] - points[right - 1]))

    @property
    def standard_error(self) -> float:
        """Half of the interval of level 0.683, which is what it would be if errors were normal."""
        return self._half_width("sample")

    @property
    def population_standard_error(self) -> float:
        """The same for the target "population"."""
        return self._half_width("population")

    @property
    def mu(self) -> float:
        """The loss of the release."""
        return self.distribution.mu

    @property
    def failure_probability(self) -> float | None:
        """How likely the averager's plan fails in the release; it adds to delta. None: not known."""
        return self.distribution.failure_probability

    def interval(self, level: float = 0.95, target: IntervalTarget = "sample") -> tuple[float, float]:
        """Return points of the grid between which the quantile lies with at least this probability.

        The lower end is the last point up to which at *all* points the share is surely too small. If it is beyond the
        quantile, then the share was estimated too small at the first point from the quantile on, where it is not: that
        is one event with half of the probability that is left. The upper end alike. So this holds however many points
        there are.

        Args:
            level: The probability that the interval holds the target's quantile.
            target: "sample" or "population".

        Returns:
            The lower and the upper end.
        """
        shares, grid = self.distribution, self.distribution.grid
        lower, upper = shares.ends(level, target)  # not cut off at 0 and 1
        too_small = np.logical_and.accumulate(upper < self.share)
        large_enough = np.logical_and.accumulate((lower >= self.share)[::-1])[::-1]
        low, high = shares.domain
        start = float(grid[too_small][-1]) if too_small.any() else low
        end = float(grid[large_enough][0]) if large_enough.any() else high
        estimate = self.estimate
        return min(max(start, low), estimate), max(min(end, high), estimate)

    def _half_width(self, target: IntervalTarget) -> float:
        low, high = self.interval(_ONE_SIGMA, target)
        return (high - low) / 2.0


def distribution(
    records: Records,
    grid: ArrayLike,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> DistributionEstimate:
    """Estimate the share of records up to each point of a grid.

    That all records together are a share of 1 is used: estimates are conditioned on it. The estimate is the nearest
    function that never falls (isotonic regression) and stays within 0 and 1.

    Args:
        records: The parties' records, of one column.
        grid: Increasing numbers, at most 2,000.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        One share per point; any number of quantiles can be read off it.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> records = Records.of([[i / 1000] for i in range(1000)], Interval(0, 1))
        >>> averager, rng = SimulatedAverager.of("central", 1000), np.random.default_rng(1)
        >>> mu = 1.0
        >>> shares = distribution(records, np.linspace(0, 1, 33)[1:-1], averager, mu, rng)
        >>> shares.estimate[7::8].round(2), shares.standard_error[7::8].round(4)
        (array([0.25, 0.49, 0.75]), array([0.0023, 0.0024, 0.0024]))
        >>> round(shares.quantile(0.5).estimate, 2)
        0.51
    """
    check_release(records, averager)
    one_column(records)
    points = increasing("grid", grid, min_size=1)
    if points.size > _MAX_POINTS:
        refuse("the number of points of grid", points.size, f"at most {_MAX_POINTS}")
    strategy, variances, pull = _strategy(points.size + 1)
    features = Bins(points, strategy)
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    sums = np.cumsum(features.shares(released.mean))
    shares = sums[:-1] + pull * (1.0 - sums[-1])
    weights = 1.0 / np.maximum(variances, 1e-12)
    monotone = np.clip(isotonic_regression(shares, weights=weights).x, 0.0, 1.0)
    var_shares = released.var_noise * variances

    def reach(level: float, target: IntervalTarget) -> Array:
        return released.reach(level, target, 0.5, var_shares)

    return DistributionEstimate(
        shares,
        constrained=monotone,
        low=0.0,
        high=1.0,
        grid=points,
        domain=(float(records.lower[0]), float(records.upper[0])),
        **released.errors(reach, var_shares, np.full(points.size, 0.25)),
    )


def quantile(
    records: Records,
    share: float,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    points: int = QUANTILE_POINTS,
    fraction: float | None = None,
) -> QuantileEstimate:
    """Estimate one quantile on an even grid within the domain.

    The number of points hardly matters for the noise, so take one that resolves what is of interest.

    Args:
        records: The parties' records, of one column.
        share: The share of the records up to the quantile, between 0 and 1.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        points: The number of points of the grid, at most 2,000.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        The quantile.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> records = Records.of([[i / 1000] for i in range(1000)], Interval(0, 1))
        >>> averager, rng = SimulatedAverager.of("central", 1000), np.random.default_rng(1)
        >>> mu = 1.0
        >>> median = quantile(records, 0.5, averager, mu, rng)
        >>> round(median.estimate, 2), [round(end, 2) for end in median.interval()]
        (0.5, [0.49, 0.51])
    """
    return quantiles(records, [share], averager, loss, rng, points=points, fraction=fraction)[0]


def quantiles(
    records: Records,
    shares: Sequence[float],
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    points: int = QUANTILE_POINTS,
    fraction: float | None = None,
) -> tuple[QuantileEstimate, ...]:
    """Estimate several quantiles on an even grid within the domain; together they cost as much as one.

    Args:
        records: The parties' records, of one column.
        shares: The shares of the records up to the quantiles, each between 0 and 1.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        points: The number of points of the grid, at most 2,000.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        One quantile per share, all read off one distribution function.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> records = Records.of([[i / 1000] for i in range(1000)], Interval(0, 1))
        >>> averager, rng = SimulatedAverager.of("central", 1000), np.random.default_rng(1)
        >>> mu = 1.0
        >>> lower, upper = quantiles(records, [0.25, 0.75], averager, mu, rng)
        >>> round(lower.estimate, 2), round(upper.estimate, 2), lower.distribution is upper.distribution
        (0.25, 0.75, True)
    """
    wanted = [_checked_share(share) for share in listed("shares", shares, "numbers between 0 and 1")]
    if not wanted:
        refuse("the number of shares", 0, "at least 1")
    check_release(records, averager)
    one_column(records)
    grid = even_grid(float(records.lower[0]), float(records.upper[0]), points)
    estimated = distribution(records, grid, averager, loss, rng, fraction=fraction)
    return tuple(estimated.quantile(share) for share in wanted)


def even_grid(low: float, high: float, points: int) -> Array:
    """Return so many points at equal distances within a domain; refuse too many.

    Example:
        >>> even_grid(0.0, 2.0, 3)
        array([0.5, 1. , 1.5])
    """
    return np.linspace(low, high, integer("points", points, 1, _MAX_POINTS) + 2)[1:-1]


def _checked_share(share: float) -> float:
    return between_0_and_1("share", share, "extremes belong to single records")


@lru_cache(maxsize=16)
def _strategy(size: int) -> tuple[Array, Array, Array]:
    """Return the strategy for so many bins with the least total variance of running sums at the same loss.

    With it come the variances of the sums if the noise of the features is 1, and how much each sum moves per unit that
    the last one was wrong. Given that the last sum is 1, the k-th one is known better by c_k^2 / c, with c_k its
    covariance with the last and c the variance of that.
    """
    strategies = []
    for matrix in (np.eye(size), root_of_sums(size)):
        features = Bins(np.arange(size - 1.0), matrix)
        running = np.cumsum(np.cumsum(features.covariance, axis=0), axis=1)
        pull = running[:-1, -1] / running[-1, -1]
        variances = np.diag(running)[:-1] - pull * running[:-1, -1]
        strategies.append((features.diameter**2 * variances.sum(), matrix, variances, pull))
    _, matrix, variances, pull = min(strategies, key=lambda strategy: float(strategy[0]))
    return matrix, variances, pull
