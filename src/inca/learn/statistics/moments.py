"""Means, variances, covariances and histograms of records, each from one private average.

All functions take the records, an aggregator for as many parties, the loss of the release (its mu, or a budget of which
`fraction` is spent, or all that is left of it) and a generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import finite_array, refuse
from inca.learn.averagers.base import Averaging
from inca.learn.statistics.estimates import Answer
from inca.learn.statistics.features import Bins, Powers, Products
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import Loss, release


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of all columns, from one release."""

    mean: Answer
    variance: Answer
    """With divisor N. Its population interval is on the safe side, see `fourth_moment`."""


def moments(
    records: Records, aggregator: Averaging, loss: Loss, rng: np.random.Generator, *, fraction: float | None = None
) -> Moments:
    """Estimate means and variances of the columns; together they cost as much as the means alone (see `Powers`).

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> rng = np.random.default_rng(1)
    >>> records = Records.of([rng.normal(50, 10, size=3) for _ in range(200)], Interval(0, 100), clip=True)
    >>> found = moments(records, Aggregator.of("central", 200), 1.0, rng)
    >>> print(f"{found.mean.value:.2f} +- {found.mean.standard_error:.2f}")
    49.76 +- 0.17
    >>> print(f"{found.variance.value:.1f} +- {found.variance.standard_error:.1f}")
    90.8 +- 5.0
    """
    features = Powers(records.lower, records.upper)
    found = release(records, features, aggregator, loss, rng, fraction)
    half, columns = features.half, records.columns
    middle, square = found.mean[:columns], found.mean[columns:] / features.weight
    # The square of a noisy mean is too large by the variance of its noise.
    varied = square - middle**2 + found.noise
    spread = np.clip(varied, 0.0, np.maximum(1.0 - middle**2, 0.0))
    noise = found.noise / features.weight**2 + 4.0 * middle**2 * found.noise + 2.0 * found.noise**2
    fourth = np.maximum(fourth_moment(middle, spread) - spread**2, 0.0)
    of_mean = (features.centre + half * middle, half**2 * found.noise, half**2 * spread, records.lower, records.upper)
    of_variance = (half**2 * varied, half**4 * noise, half**4 * fourth, np.zeros(columns), half**2)
    mean, variance = (
        found.answer(*([part[0] for part in parts] if records.scalar else parts)) for parts in (of_mean, of_variance)
    )
    return Moments(mean, variance)


def mean(
    records: Records, aggregator: Averaging, loss: Loss, rng: np.random.Generator, *, fraction: float | None = None
) -> Answer:
    """Estimate the mean of each column.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> records = Records.of([[i / 100] for i in range(100)], Interval(0, 1))
    >>> answer = mean(records, Aggregator.of("central", 100), 1.0, np.random.default_rng(1))
    >>> print(f"{answer.value:.3f} +- {answer.standard_error:.3f}")
    0.507 +- 0.010
    """
    return moments(records, aggregator, loss, rng, fraction=fraction).mean


def variance(
    records: Records, aggregator: Averaging, loss: Loss, rng: np.random.Generator, *, fraction: float | None = None
) -> Answer:
    """Estimate the variance of each column, with divisor N.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> records = Records.of([[i / 100] for i in range(100)], Interval(0, 1))
    >>> answer = variance(records, Aggregator.of("central", 100), 1.0, np.random.default_rng(1))
    >>> print(f"{answer.value:.3f} +- {answer.standard_error:.3f}")
    0.083 +- 0.003
    """
    return moments(records, aggregator, loss, rng, fraction=fraction).variance


def covariance(
    records: Records, aggregator: Averaging, loss: Loss, rng: np.random.Generator, *, fraction: float | None = None
) -> Answer:
    """Estimate the (p, p) covariance matrix of records with p >= 2 columns, with divisor N.

    The value is moved to the nearest matrix without negative eigenvalues, in units of the domain; intervals are around
    the estimate before that. For the population they are on the safe side, see `fourth_moment`.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> rng = np.random.default_rng(1)
    >>> first = rng.random(500)
    >>> records = Records.of([[[a, a]] for a in first], Interval(0, 1))
    >>> answer = covariance(records, Aggregator.of("central", 500), 1.0, rng)
    >>> answer.value.round(2), answer.standard_error.round(4)
    (array([[0.08, 0.08],
           [0.08, 0.08]]), array([[0.0018, 0.0013],
           [0.0013, 0.0018]]))
    """
    if records.columns < 2:
        raise refuse("the number of columns", records.columns, "at least 2, as for one there is variance()")
    features = Products(records.lower, records.upper)
    found = release(records, features, aggregator, loss, rng, fraction)
    middle, square = features.matrices(found.mean)
    unit = np.outer(features.half, features.half)
    varied = square - np.outer(middle, middle) + found.noise * np.eye(records.columns)
    squares = middle**2
    noise = features.noise(found.noise) + found.noise * np.add.outer(squares, squares) + found.noise**2
    # On the diagonal, the error of the mean counts twice: 4 m^2 noise and 2 noise^2.
    noise[np.diag_indices_from(noise)] += 2.0 * found.noise * squares + found.noise**2
    spread = np.clip(np.diag(varied), 0.0, np.maximum(1.0 - squares, 0.0))
    fourth = fourth_moment(middle, spread)
    # E y_j^2 y_k^2: at most what Cauchy and Schwarz say, and at most the variance of one times the most of the other.
    most = spread[:, np.newaxis] * (1.0 + np.abs(middle)) ** 2
    mixed = np.minimum(np.sqrt(np.outer(fourth, fourth)), np.minimum(most, most.T))
    sampling = np.maximum(mixed - varied**2, 0.0)
    values, vectors = np.linalg.eigh(varied)
    moved = (vectors * np.maximum(values, 0.0)) @ vectors.T
    # Columns that vary more than numbers in [-1, 1] can are scaled down, which keeps eigenvalues from being negative.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(moved), 1.0))
    moved = np.outer(scale, scale) * (moved + moved.T) / 2.0
    low = np.where(np.eye(records.columns, dtype=bool), 0.0, -unit)
    return found.answer(unit * varied, unit**2 * noise, unit**2 * sampling, low, unit, unit * moved)


def histogram(
    records: Records,
    edges: ArrayLike,
    aggregator: Averaging,
    loss: Loss,
    rng: np.random.Generator,
    *,
    fraction: float | None = None,
) -> Answer:
    """Estimate the share of records in each bin, as `numpy.histogram` has bins: with the left edge, the last with both.

    Records outside of the edges count in no bin but in the whole. All shares with that of outside are known to sum to
    1; this takes off the part of the noise that all bins have in common.

    >>> from inca.protocol.domain import Interval
    >>> from inca.learn import Aggregator
    >>> records = Records.of([[i / 100] for i in range(100)], Interval(0, 1))
    >>> answer = histogram(records, [0, 0.25, 1], Aggregator.of("central", 100), 1.0, np.random.default_rng(1))
    >>> answer.value.round(2), answer.standard_error.round(4)
    (array([0.26, 0.74]), array([0.01, 0.01]))
    """
    if records.columns != 1:
        raise refuse("the number of columns", records.columns, "1; column() picks one")
    points = increasing("edges", edges, least=2)
    points[-1] = np.nextafter(points[-1], np.inf)
    below, above = points[0] > records.lower[0], points[-1] <= records.upper[0]
    inner = points[0 if below else 1 : points.size if above else -1]
    if inner.size == 0:
        raise refuse("edges", points.tolist(), "at least one edge within the records' domain")
    features = Bins(inner, np.eye(inner.size + 1), side="right")
    found = release(records, features, aggregator, loss, rng, fraction)
    shares = found.mean + (1.0 - found.mean.sum()) / features.size
    shares = shares[int(below) : features.size - int(above)]
    noise = np.full(shares.size, found.noise * (1.0 - 1.0 / features.size))
    return found.answer(shares, noise, share_spread(shares, records.total), 0.0, 1.0)


def share_spread(shares: Array, count: int) -> Array:
    """Return the variance p (1 - p) of being among a share, with two more yes and two more no than were counted.

    This keeps intervals of small shares from being too short (Agresti and Coull, "Approximate is better than exact").

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

    >>> fourth_moment(np.array([0.0, 0.5]), np.array([0.25, 0.75]))  # the second is attained by -1 and 1
    array([0.25  , 1.3125])
    """
    simple = (1.0 + np.abs(middle)) ** 2 * spread
    sharp = (1.0 + 2.0 * middle**2) * spread + np.maximum(middle**2 * (1.0 - middle**2), 0.0)
    return np.minimum(simple, sharp)


def increasing(name: str, values: ArrayLike, least: int) -> Array:
    """Return increasing numbers as an array, or refuse them.

    >>> increasing("edges", [0, 1, 4], least=2)
    array([0., 1., 4.])
    """
    array = finite_array(name, values, (1,), "a list of numbers").copy()
    if array.size < least:
        raise refuse(f"the number of {name}", array.size, f"at least {least}")
    if not (np.diff(array) > 0.0).all():
        raise refuse(name, array.tolist(), "numbers that increase")
    return array
