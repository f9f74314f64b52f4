"""Means, variances, covariances and histograms of records, each from one private average.

All functions take the records, an averager for as many parties, the loss of the release (its mu, or a budget of which
`fraction` is spent, or all that is left of it) and a generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import finite_array, integer, refuse
from inca.learn.averagers.base import Averager
from inca.learn.statistics.estimates import Estimate, IntervalTarget
from inca.learn.statistics.features import Bins, Powers, Products
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import FeatureMean, ReleaseLoss, average_features, check_release

MAX_BINS = 1000  # more would be mostly noise


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of all columns, from one release.

    Attributes:
        mean: The mean of each column.
        variance: The variance of each column, with divisor N.
    """

    mean: Estimate
    variance: Estimate


def moments(
    records: Records,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> Moments:
    """Estimate means and variances of the columns; together they cost as much as the means alone (see `Powers`).

    Args:
        records: The parties' records.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        The means and the variances.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> rng = np.random.default_rng(1)
        >>> records = Records.of([rng.normal(50, 10, size=3) for _ in range(200)], Interval(0, 100), clip=True)
        >>> mu = 1.0
        >>> both = moments(records, SimulatedAverager.of("central", 200), mu, rng)
        >>> print(f"{both.mean.estimate:.2f} +- {both.mean.standard_error:.2f}")
        49.76 +- 0.17
        >>> print(f"{both.variance.estimate:.1f} +- {both.variance.standard_error:.1f}")
        90.8 +- 5.0
    """
    check_release(records, averager)
    features = Powers(records.lower, records.upper)
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    half, columns, var_noise = features.half, records.columns, released.var_noise
    middle, square = released.mean[:columns], released.mean[columns:] / features.weight
    # The square of a noisy mean is too large by the variance of its noise.
    spread = square - middle**2 + var_noise
    possible = np.clip(spread, 0.0, np.maximum(1.0 - middle**2, 0.0))
    var_square = var_noise / features.weight**2
    var_spread = var_square + 4.0 * middle**2 * var_noise + 2.0 * var_noise**2

    def reach_of_mean(level: float, target: IntervalTarget) -> Array:
        return shaped(half * released.reach(level, target, 1.0, var_noise))

    def reach_of_variance(level: float, target: IntervalTarget) -> Array:
        """Both moments are as near as this at once with the probability `level`, by the union bound."""
        part_level = (1.0 + level) / 2.0
        mean = released.reach(part_level, target, 1.0, var_noise)
        second = released.reach(part_level, target, 0.5, var_square)  # u^2 is from 0 to 1
        return shaped(half**2 * (second + 2.0 * np.abs(middle) * mean + mean**2 + var_noise))

    def shaped(part: Array) -> Array:
        return part[0] if records.scalar else part

    of_mean = released.errors(reach_of_mean, shaped(half**2 * var_noise), shaped(half**2 * possible))
    influence = 0.5 + 2.0 * np.abs(middle)  # on the variance: u^2 - 2 m u, at most this far from its mean on average
    of_variance = released.errors(reach_of_variance, shaped(half**4 * var_spread), shaped(half**4 * influence**2))
    return Moments(
        Estimate(
            shaped(features.centre + half * middle), low=shaped(records.lower), high=shaped(records.upper), **of_mean
        ),
        Estimate(shaped(half**2 * spread), low=0.0, high=shaped(half**2), **of_variance),
    )


def covariance(
    records: Records,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> Estimate:
    """Estimate the (p, p) covariance matrix of records with p >= 2 columns, with divisor N.

    The estimate is the nearest matrix without negative eigenvalues, in units of the domain; intervals are around the
    estimate before that.

    Args:
        records: The parties' records.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        The matrix.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> rng = np.random.default_rng(1)
        >>> records = Records.of([[[number, number]] for number in rng.random(500)], Interval(0, 1))
        >>> mu = 1.0
        >>> matrix = covariance(records, SimulatedAverager.of("central", 500), mu, rng)
        >>> matrix.estimate.round(2), matrix.standard_error.round(4)
        (array([[0.08, 0.08],
               [0.08, 0.08]]), array([[0.0018, 0.0013],
               [0.0013, 0.0018]]))
    """
    check_release(records, averager)
    if records.columns < 2:
        refuse("the number of columns", records.columns, "at least 2 (moments() has the variance of one)")
    features = Products(records.lower, records.upper)
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    middle, square = features.matrices(released.mean)
    unit, var_noise = np.outer(features.half, features.half), released.var_noise
    varied = square - np.outer(middle, middle) + var_noise * np.eye(records.columns)
    squares = middle**2
    var_varied = features.var_products(var_noise) + var_noise * np.add.outer(squares, squares) + var_noise**2
    # On the diagonal, the error of the mean counts twice: 4 m^2 var_noise and 2 var_noise^2.
    var_varied[np.diag_indices_from(var_varied)] += 2.0 * var_noise * squares + var_noise**2
    eigenvalues, eigenvectors = np.linalg.eigh(varied)
    nearest = (eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
    # Columns that vary more than numbers in [-1, 1] can are scaled down, which keeps eigenvalues from being negative.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(nearest), 1.0))
    nearest = np.outer(scale, scale) * (nearest + nearest.T) / 2.0
    low = np.where(np.eye(records.columns, dtype=bool), 0.0, -unit)

    def reach(level: float, target: IntervalTarget) -> Array:
        return unit * covariance_reach(released, features, middle, 1.0 - (1.0 - level) / 3.0, target)[1]

    sizes = np.abs(middle)
    influence = half_products(records.columns) + np.add.outer(sizes, sizes)
    errors = released.errors(reach, unit**2 * var_varied, unit**2 * influence**2)
    return Estimate(unit * varied, constrained=unit * nearest, low=low, high=unit, **errors)


def histogram(
    records: Records,
    edges: ArrayLike,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> Estimate:
    """Estimate the share of records in each bin, as `numpy.histogram` has bins: with the left edge, the last with both.

    Records outside of the edges count in no bin but in the whole. All shares with that of outside are known to sum to
    1; this takes off the part of the noise that all bins have in common.

    Args:
        records: The parties' records, of one column.
        edges: Increasing numbers, at least two, of which one at least is within the domain.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        One share per bin.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> records = Records.of([[i / 100] for i in range(100)], Interval(0, 1))
        >>> averager, rng = SimulatedAverager.of("central", 100), np.random.default_rng(1)
        >>> mu = 1.0
        >>> shares = histogram(records, [0, 0.25, 1], averager, mu, rng)
        >>> shares.estimate.round(2), shares.standard_error.round(4)
        (array([0.26, 0.74]), array([0.01, 0.01]))
    """
    check_release(records, averager)
    one_column(records)
    points = increasing("edges", edges, min_size=2)
    points[-1] = np.nextafter(points[-1], np.inf)
    below, above = points[0] > records.lower[0], points[-1] <= records.upper[0]
    inner = points[0 if below else 1 : points.size if above else -1]
    if inner.size == 0:
        refuse("edges", points.tolist(), "numbers of which at least one is within the records' domain")
    features = Bins(inner, np.eye(inner.size + 1), side="right")
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    shares = released.mean + (1.0 - released.mean.sum()) / features.size
    shares = shares[int(below) : features.size - int(above)]
    var_shares = np.full(shares.size, released.var_noise * (1.0 - 1.0 / features.size))

    def reach(level: float, target: IntervalTarget) -> Array:
        return released.reach(level, target, 0.5, var_shares)

    errors = released.errors(reach, var_shares, np.full(shares.size, 0.25))
    return Estimate(shares, low=0.0, high=1.0, **errors)


def equal_bins(name: str, count: int, low: float, high: float) -> Array:
    """Return the edges of equal bins over a domain; refuse, by the name of their number, too few or too many.

    Example:
        >>> equal_bins("bins", 4, 0.0, 2.0)
        array([0. , 0.5, 1. , 1.5, 2. ])
    """
    return np.linspace(low, high, integer(name, count, 2, MAX_BINS) + 1)


def half_products(columns: int) -> Array:
    """Return half of the width that products of numbers in [-1, 1] can differ by: squares are at least 0."""
    return np.asarray(1.0 - 0.5 * np.eye(columns))


def covariance_reach(
    released: FeatureMean, features: Products, middle: Array, part_level: float, target: IntervalTarget
) -> tuple[Array, Array]:
    """Return how far means, (p,), and covariances, (p, p), in units of [-1, 1] can be off."""
    mean = np.broadcast_to(released.reach(part_level, target, 1.0, released.var_noise), middle.shape)
    half, sizes = half_products(middle.size), np.abs(middle)
    products = released.reach(part_level, target, half, features.var_products(released.var_noise))
    crossed = np.outer(sizes, mean)
    # `released.var_noise` is what makes the estimated variances unbiased.
    varied = products + crossed + crossed.T + np.outer(mean, mean) + released.var_noise * np.eye(middle.size)
    return mean, varied


def one_column(records: Records) -> None:
    """Refuse records of more than one column."""
    if records.columns != 1:
        refuse("the number of columns", records.columns, "1 (Records.column picks one)")


def increasing(name: str, values: ArrayLike, min_size: int) -> Array:
    """Return increasing numbers as an array, or refuse them.

    Example:
        >>> increasing("edges", [0, 1, 4], min_size=2)
        array([0., 1., 4.])
    """
    array = finite_array(name, values, (1,), "a list of numbers").copy()
    if array.size < min_size:
        refuse(f"the number of {name}", array.size, f"at least {min_size}")
    if not (np.diff(array) > 0.0).all():
        refuse(name, array.tolist(), "increasing numbers")
    return array
