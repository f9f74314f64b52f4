"""Distribution functions and quantiles of records, each from one private average.

The share of records up to each of K points is a running sum over bins. Adding up a noisy histogram adds up its noise,
to a variance of up to K / 4 times that of a bin. So what is averaged is the histogram times a square root M of the
matrix of sums (`root_of_sums`), whose noise grows as (ln K)^2. For few points the plain histogram is better; which one
is taken depends on K alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from inca._base.types import Array
from inca._base.validation import real, refuse, whole
from inca.learn.averagers.base import Averaging
from inca.learn.statistics.estimates import Answer, Target, normal_quantile
from inca.learn.statistics.features import Bins, root_of_sums
from inca.learn.statistics.moments import increasing, share_spread
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import Loss, release

_MOST_POINTS = 2000
_ONE_SIGMA = 0.6826894921370859  # P(|z| <= 1)


@dataclass(frozen=True, eq=False)
class Distribution(Answer):
    """The share of records up to each point of a grid; `value` never falls, intervals are around what is unbiased."""

    grid: Array | None = None
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The domain of the records."""

    def quantile(self, share: float) -> Quantile:
        """Return the number up to which this share of the records lies; it is computed from the same release."""
        return Quantile(self, _share(share))


@dataclass(frozen=True, eq=False)
class Quantile:
    """A quantile as a distribution function on a grid shows it: between two points it is a straight line."""

    distribution: Distribution
    share: float

    @property
    def value(self) -> float:
        """The estimate."""
        low, high = self.distribution.ends
        inside = (self._points > low) & (self._points < high)
        points = np.concatenate([[low], self._points[inside], [high]])
        heights = np.concatenate([[0.0], np.asarray(self.distribution.value)[inside], [1.0]])
        right = int(np.clip(np.searchsorted(heights, self.share, side="left"), 1, points.size - 1))
        rise = heights[right] - heights[right - 1]
        part = (self.share - heights[right - 1]) / rise if rise > 0.0 else 0.0
        return float(points[right - 1] + part * (points[right] - points[right - 1]))

    @property
    def standard_error(self) -> float:
        """Half of the interval of level 0.683, which is what it would be if errors were normal."""
        low, high = self.interval(_ONE_SIGMA)
        return (high - low) / 2.0

    @property
    def population_standard_error(self) -> float:
        """The same for the target "population"."""
        low, high = self.interval(_ONE_SIGMA, "population")
        return (high - low) / 2.0

    def interval(self, level: float = 0.95, target: Target = "sample") -> tuple[float, float]:
        """Return points between which the quantile lies with at least this probability; they are points of the grid.

        The lower end is the last point up to which at *all* points the share is surely too small. If it is beyond the
        quantile, then the share was found too small at the first point from the quantile on, where it is not: that is
        one event with half of the probability that is left. The upper end alike. So this is exact, however many points
        there are.
        """
        normal_quantile(level)
        lower, upper = (np.asarray(end) for end in Answer.interval(self._unmoved, level, target))
        low, high = self.distribution.ends
        small, large = np.logical_and.accumulate(upper < self.share), lower >= self.share
        large = np.logical_and.accumulate(large[::-1])[::-1]
        start = float(self._points[small][-1]) if small.any() else low
        end = float(self._points[large][0]) if large.any() else high
        value = self.value
        return min(max(start, low), value), max(min(end, high), value)

    @property
    def mu(self) -> float:
        """The loss of the release."""
        return self.distribution.mu

    @property
    def _points(self) -> Array:
        assert self.distribution.grid is not None
        return self.distribution.grid

    @property
    def _unmoved(self) -> Answer:
        """The shares as they were estimated, not cut off at 0 and 1."""
        whole_answer = self.distribution
        return Answer(whole_answer.centre, whole_answer.noise, whole_answer.sampling)


def distribution(
    records: Records,
    grid: ArrayLike,
    aggregator: Averaging,
    loss: Loss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> Distribution:
    """Estimate the share of records up to each point of a grid.

    That all records together are a share of 1 is used: estimates are conditioned on it. The value is the nearest
    function that never falls (isotonic regression) and stays within 0 and 1.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> records = Records.of([[i / 1000] for i in range(1000)], Interval(0, 1))
    >>> grid = np.linspace(0, 1, 33)[1:-1]
    >>> shares = distribution(records, grid, Aggregator.of("central", 1000), 1.0, np.random.default_rng(1))
    >>> shares.value[7::8].round(2), shares.standard_error[7::8].round(4)
    (array([0.25, 0.49, 0.75]), array([0.0023, 0.0024, 0.0024]))
    >>> round(shares.quantile(0.5).value, 2)
    0.51
    """
    if records.columns != 1:
        raise refuse("the number of columns", records.columns, "1; column() picks one")
    points = increasing("grid", grid, least=1)
    if points.size > _MOST_POINTS:
        raise refuse("the number of points of grid", points.size, f"at most {_MOST_POINTS}")
    strategy, variances, pull = _strategy(points.size + 1)
    features = Bins(points, strategy)
    found = release(records, features, aggregator, loss, rng, fraction)
    sums = np.cumsum(features.shares(found.mean))
    estimate = sums[:-1] + pull * (1.0 - sums[-1])
    noise = found.noise * variances
    sampling = share_spread(estimate, records.total)
    weights = 1.0 / np.maximum(variances, 1e-12)
    monotone = np.clip(isotonic_regression(estimate, weights=weights).x, 0.0, 1.0)
    return Distribution(
        estimate,
        noise + sampling * found.missing,
        sampling * found.drawing,
        monotone,
        0.0,
        1.0,
        found.mu,
        points,
        (float(records.lower[0]), float(records.upper[0])),
    )


def quantile(
    records: Records,
    share: float,
    aggregator: Averaging,
    loss: Loss,
    rng: np.random.Generator,
    *,
    points: int = 127,
    fraction: float | None = None,
) -> Quantile:
    """Estimate one quantile on an even grid of so many points within the domain.

    The number of points hardly matters for the noise, so take one that resolves what is of interest.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> records = Records.of([[i / 1000] for i in range(1000)], Interval(0, 1))
    >>> median = quantile(records, 0.5, Aggregator.of("central", 1000), 1.0, np.random.default_rng(1))
    >>> round(median.value, 2), [round(end, 2) for end in median.interval()]
    (0.5, [0.49, 0.51])
    """
    number = whole("points", points, 1, _MOST_POINTS)
    _share(share)
    if records.columns != 1:
        raise refuse("the number of columns", records.columns, "1; column() picks one")
    grid = np.linspace(records.lower[0], records.upper[0], number + 2)[1:-1]
    return distribution(records, grid, aggregator, loss, rng, fraction=fraction).quantile(share)


def _share(share: float) -> float:
    if (checked := real("share", share, 0.0, 1.0)) in (0.0, 1.0):
        raise refuse("share", share, "a number between 0 and 1, as extremes belong to single records")
    return checked


@lru_cache(maxsize=16)
def _strategy(size: int) -> tuple[Array, Array, Array]:
    """Return the strategy for so many bins with the least total variance of running sums at the same loss.

    With it come the variances of the sums if the noise of the features is 1, and how much each sum moves per unit that
    the last one was wrong. Given that the last sum is 1, the k-th one is known better by c_k^2 / c, with c_k its
    covariance with the last and c the variance of that.
    """
    found = []
    for matrix in (np.eye(size), root_of_sums(size)):
        features = Bins(np.arange(size - 1.0), matrix)
        running = np.cumsum(np.cumsum(features.covariance, axis=0), axis=1)
        pull = running[:-1, -1] / running[-1, -1]
        variances = np.diag(running)[:-1] - pull * running[:-1, -1]
        found.append((features.diameter**2 * variances.sum(), matrix, variances, pull))
    _, matrix, variances, pull = min(found, key=lambda strategy: float(strategy[0]))
    return matrix, variances, pull
