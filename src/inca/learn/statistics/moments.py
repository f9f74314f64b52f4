"""Means, variances, covariances and histograms of records, each from one private average.

All functions take the records, an averager for as many parties, the loss of the release (its mu, or a budget of which
`fraction` is spent, or all that is left of it) and a generator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import finite_array, integer, refuse
from inca.learn.averagers.base import Averager
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.features import Bins, Powers, Products
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import ReleaseLoss, average_features

MAX_BINS = 1000  # more would be mostly noise


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of all columns, from one release.

    Attributes:
        mean: The mean of each column.
        variance: The variance of each column, with divisor N. Its population interval is on the safe side, see
            `fourth_moment`.
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
    features = Powers(records.lower, records.upper)
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    half, columns, var_noise = features.half, records.columns, released.var_noise
    middle, square = released.mean[:columns], released.mean[columns:] / features.weight
    # The square of a noisy mean is too large by the variance of its noise.
    spread = square - middle**2 + var_noise
    possible = np.clip(spread, 0.0, np.maximum(1.0 - middle**2, 0.0))
    var_spread = var_noise / features.weight**2 + 4.0 * middle**2 * var_noise + 2.0 * var_noise**2
    fourth = np.maximum(fourth_moment(middle, possible) - possible**2, 0.0)
    spread_error = np.sqrt(var_spread)
    # The bound of the fourth moment grows with the variance by at most this factor.
    fourth_error = (1.0 + np.abs(middle)) ** 2 * spread_error
    of_mean = (
        features.centre + half * middle,
        half**2 * var_noise,
        half**2 * possible,
        half**2 * spread_error,
        records.lower,
        records.upper,
    )
    of_variance = (
        half**2 * spread,
        half**4 * var_spread,
        half**4 * fourth,
        half**4 * fourth_error,
        np.zeros(columns),
        half**2,
    )
    mean, variance = (
        released.to_estimate(*([part[0] for part in parts] if records.scalar else parts))
        for parts in (of_mean, of_variance)
    )
    return Moments(replace(mean, degrees=max(released.stayed - 1.0, 1.0)), variance)


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
    estimate before that. For the population they are on the safe side, see `fourth_moment`.

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
    spread = np.clip(np.diag(varied), 0.0, np.maximum(1.0 - squares, 0.0))
    fourth = fourth_moment(middle, spread)
    # E y_j^2 y_k^2: at most what Cauchy and Schwarz say, and at most the variance of one times the most of the other.
    bound = spread[:, np.newaxis] * (1.0 + np.abs(middle)) ** 2
    mixed = np.minimum(np.sqrt(np.outer(fourth, fourth)), np.minimum(bound, bound.T))
    var_record = np.maximum(mixed - varied**2, 0.0)
    eigenvalues, eigenvectors = np.linalg.eigh(varied)
    nearest = (eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
    # Columns that vary more than numbers in [-1, 1] can are scaled down, which keeps eigenvalues from being negative.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(nearest), 1.0))
    nearest = np.outer(scale, scale) * (nearest + nearest.T) / 2.0
    low = np.where(np.eye(records.columns, dtype=bool), 0.0, -unit)
    fourth_error = (1.0 + np.abs(middle)) ** 2 * np.sqrt(np.diag(var_varied))
    record_error = np.maximum.outer(fourth_error, fourth_error)
    return released.to_estimate(
        unit * varied, unit**2 * var_varied, unit**2 * var_record, unit**2 * record_error, low, unit, unit * nearest
    )


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
    # p (1 - p) changes by at most as much as p does.
    return released.to_estimate(shares, var_shares, share_spread(shares, records.total), np.sqrt(var_shares), 0.0, 1.0)


def equal_bins(name: str, count: int, low: float, high: float) -> Array:
    """Return the edges of equal bins over a domain; refuse, by the name of their number, too few or too many.

    Example:
        >>> equal_bins("bins", 4, 0.0, 2.0)
        array([0. , 0.5, 1. , 1.5, 2. ])
    """
    return np.linspace(low, high, integer(name, count, 2, MAX_BINS) + 1)


def share_spread(shares: Array, count: int) -> Array:
    """Return the variance p (1 - p) of being among a share, with two more yes and two more no than were counted.

    This keeps intervals of small shares from being too short (Agresti and Coull, "Approximate is better than exact").

    Example:
        >>> share_spread(np.array([0.0, 0.5]), 96).round(4)
        array([0.0196, 0.25  ])
    """
    cautious = (np.clip(shares, 0.0, 1.0) * count + 2.0) / (count + 4.0)
    return np.asarray(cautious * (1.0 - cautious))


def fourth_moment(middle: Array, spread: Array) -> Array:
    """Return a bound on the central fourth moment of numbers in [-1, 1] with this mean m and variance s.

    It is what the sampling error of a variance needs and what no release here contains. With y the number less m, y^2
    is at most (1 + |m|)^2. And (y + 1 + m) (y - 1 + m) (y - m)^2 is never positive; its mean has no third moment, which
    bounds the fourth by (1 + 2 m^2) s + m^2 (1 - m^2).

    Example:
        >>> fourth_moment(np.array([0.0, 0.5]), np.array([0.25, 0.75]))  # the second is attained by -1 and 1
        array([0.25  , 1.3125])
    """
    simple = (1.0 + np.abs(middle)) ** 2 * spread
    sharp = (1.0 + 2.0 * middle**2) * spread + np.maximum(middle**2 * (1.0 - middle**2), 0.0)
    return np.minimum(simple, sharp)


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
