"""Linear and ridge regression from one private average of second moments.

Records are rows (x_1, ..., x_p, y). The least squares line needs nothing but the means of all columns and of their
products. Their noise is known, so the error that it causes in the line is, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import finite_array, finite_float, refuse
from inca.learn.averagers.base import Averager
from inca.learn.statistics.estimates import Estimate, IntervalTarget
from inca.learn.statistics.features import Products
from inca.learn.statistics.moments import covariance_reach
from inca.learn.statistics.records import Records
from inca.learn.statistics.release import FeatureMean, ReleaseLoss, average_features, check_release


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A fitted line y = intercept + coefficients . x.

    Intervals hold their line, or that of least error in the population, for any records in the domain. They are bounds
    and often several standard errors wide; where the noise, or few records, leave it open whether the inputs vary at
    all, both ends are infinite. With a ridge they are for the ridge solution, not for the line without one. Standard
    errors are first-order in the noise: right where `eigenvalues_raised` is 0 and no eigenvalue is near the noise. For
    the population they assume errors of y around the line that are independent and of constant variance.

    Attributes:
        intercept: The height of the line at 0.
        coefficients: The slope of each input, (p,).
        residual_variance: The mean squared distance of y from the line, as the noisy moments show it, and at least 0.
        eigenvalues_raised: How many eigenvalues of the inputs' covariance were below the noise and were raised to it.
        smallest_eigenvalue: The smallest eigenvalue of the inputs' covariance with the ridge, in units of the noise;
            below 1 it is raised.
    """

    intercept: Estimate
    coefficients: Estimate
    residual_variance: float
    eigenvalues_raised: int
    smallest_eigenvalue: float
    _raw: Array
    """Intercept and coefficients, (p + 1,)."""
    _cov_noise: Array
    _cov_drawn: Array
    """The covariance of both by drawing one record."""
    _errors: _LineErrors

    def predict(self, inputs: ArrayLike) -> Estimate:
        """Return the height of the line at each row of inputs; the error is that of the line, not of a new y.

        Args:
            inputs: One row of p numbers per prediction.

        Returns:
            One height per row.
        """
        table = finite_array("inputs", inputs, (2,), "one row of numbers per prediction")
        if table.shape[1] != self._raw.size - 1:
            refuse("the number of columns of inputs", table.shape[1], f"{self._raw.size - 1}")
        rows = np.column_stack([np.ones(len(table)), table])
        var_noise, var_drawn = (
            np.einsum("ij,jk,ik->i", rows, covariance, rows) for covariance in (self._cov_noise, self._cov_drawn)
        )
        return self._errors.height(table, rows @ self._raw, var_noise, var_drawn)


def linear_regression(
    records: Records,
    averager: Averager,
    loss: ReleaseLoss,
    rng: np.random.Generator,
    *,
    ridge: float = 0.0,
    fraction: float | None = None,
) -> LinearFit:
    """Fit the last column as a linear function of the others, with an intercept.

    Eigenvalues of the inputs' covariance (ridge included) that are below the largest that noise alone would show are
    raised to it, so that a line always exists.

    Args:
        records: The parties' records: inputs and, last, what they explain.
        averager: Averages vectors of as many parties.
        loss: The budget that it is taken from, or the mu of the release (which is no epsilon).
        rng: The source of all randomness.
        ridge: r of the term r |b|^2 that is added to the mean squared error, where b are the coefficients if each
            column's interval is scaled to [-1, 1]; the intercept is free.
        fraction: The part of the budget to spend; all that is left by default.

    Returns:
        The line.

    Raises:
        BudgetExceeded: If less is left of the budget.
        NoResult: If all parties with records left.

    Example:
        >>> from inca import Interval
        >>> from inca.learn import SimulatedAverager
        >>> rng = np.random.default_rng(1)
        >>> x = rng.random((2000, 1))
        >>> rows = np.column_stack([x, 1.0 + 2.0 * x + 0.1 * rng.standard_normal(x.shape)])
        >>> records = Records.of(rows[:, np.newaxis], [Interval(0, 1), Interval(0, 4)], clip=True)
        >>> mu = 1.0
        >>> line = linear_regression(records, SimulatedAverager.of("central", 2000), mu, rng)
        >>> line.coefficients.estimate.round(2), line.coefficients.standard_error.round(2)
        (array([1.99]), array([0.02]))
        >>> round(line.intercept.estimate, 2)
        1.0
    """
    check_release(records, averager)
    if records.columns < 2:
        refuse("the number of columns", records.columns, "at least 2: inputs and, last, what they explain")
    penalty = finite_float("ridge", ridge, min=0.0)
    features = Products(records.lower, records.upper)
    released = average_features(records, features, averager, loss, rng, fraction=fraction)
    middle, square = features.matrices(released.mean)
    inputs, var_products = records.columns - 1, features.var_products(released.var_noise)
    centred = square - np.outer(middle, middle) + released.var_noise * np.eye(inputs + 1)  # see statistics.moments
    eigenvalues, eigenvectors = np.linalg.eigh(centred[:-1, :-1] + penalty * np.eye(inputs))
    # The noise is a Gaussian orthogonal matrix; its eigenvalues are within 2 sqrt p standard deviations (Wigner).
    floor = 2.0 * math.sqrt(inputs * var_products[0, 1])
    inverse = (eigenvectors / np.maximum(eigenvalues, floor)) @ eigenvectors.T
    slopes = inverse @ centred[:-1, -1]
    unit = np.concatenate([[middle[-1] - slopes @ middle[:-1]], slopes])
    residual, covariances = _covariances(middle, square, var_products, released, unit, inverse, penalty)
    shift, turn = _to_raw(features)
    raw = shift + turn @ unit
    cov_noise, cov_drawn = (turn @ part @ turn.T for part in covariances)
    raised = int((eigenvalues < floor).sum())
    errors = _LineErrors(released, features, middle, slopes, None if raised else inverse)
    var_noise, var_drawn = np.diag(cov_noise), np.diag(cov_drawn)
    return LinearFit(
        errors.height(np.zeros((1, inputs)), raw[:1], var_noise[:1], var_drawn[:1], scalar=True),
        errors.coefficients(raw[1:], var_noise[1:], var_drawn[1:]),
        float(max(residual, 0.0) * features.half[-1] ** 2),
        raised,
        float(eigenvalues[0] / floor),
        raw,
        cov_noise,
        cov_drawn,
        errors,
    )


@dataclass(frozen=True, eq=False)
class _LineErrors:
    """What is known of the error of a line, all in units of [-1, 1].

    If means, covariances of inputs C and those with the output c are off by at most w, D and d, the true slopes b of
    C' b = c' and the estimated ones b0 of C b0 = c differ by b - b0 = C^-1 ((c' - c) - (C' - C) b). With e = |b - b0|
    and |b| <= |b0| + e, entry by entry, e <= |C^-1| (d + D |b0|) + |C^-1| D e. So e is at most
    (1 - |C^-1| D)^-1 |C^-1| (d + D |b0|) if |C^-1| D has a spectral radius below 1. Otherwise nothing is known.
    """

    released: FeatureMean
    features: Products
    middle: Array
    slopes: Array
    inverse: Array | None
    """C^-1, with the ridge; None if C was below the noise."""

    def reach(self, level: float, target: IntervalTarget) -> tuple[Array, Array]:
        """Return how far means, (p + 1,), and slopes, (p,), are off at once, with this probability at most."""
        count = self.middle.size
        part_level = 1.0 - (1.0 - level) / (count + count * (count + 1) // 2)
        means, varied = covariance_reach(self.released, self.features, self.middle, part_level, target)
        unknown = np.full(count - 1, np.inf)
        if self.inverse is None:
            return means, unknown
        size = np.abs(self.inverse)
        turned = size @ varied[:-1, :-1]
        if np.abs(np.linalg.eigvals(turned)).max() >= 1.0 - 1e-9:
            return means, unknown
        start = size @ (varied[:-1, -1] + varied[:-1, :-1] @ np.abs(self.slopes))
        return means, np.asarray(np.linalg.solve(np.eye(count - 1) - turned, start))

    def coefficients(self, raw: Array, var_noise: Array, var_drawn: Array) -> Estimate:
        """Return the coefficients."""
        ratios = self.features.half[-1] / self.features.half[:-1]
        return Estimate(
            raw,
            **self.released.errors(lambda *which: ratios * self.reach(*which)[1], var_noise, var_drawn),
        )

    def height(
        self, inputs: Array, raw: Array, var_noise: Array, var_drawn: Array, *, scalar: bool = False
    ) -> Estimate:
        """Return the height of the line at each row of inputs: m_y + b (x - m) in units of [-1, 1]."""
        centre, half = self.features.centre, self.features.half
        away = np.abs((inputs - centre[:-1]) / half[:-1] - self.middle[:-1])
        place = 0 if scalar else slice(None)

        def reach(level: float, target: IntervalTarget) -> Array:
            means, slopes = self.reach(level, target)
            with np.errstate(invalid="ignore"):  # 0 times infinity
                by_slopes = np.nan_to_num(away * slopes, nan=0.0, posinf=np.inf).sum(axis=1)
            by_means = means[-1] + float(means[:-1] @ (np.abs(self.slopes) + slopes))
            return np.asarray(half[-1] * (by_means + by_slopes))[place]

        return Estimate(raw[place], **self.released.errors(reach, var_noise[place], var_drawn[place]))


def _covariances(
    middle: Array,
    square: Array,
    var_products: Array,
    released: FeatureMean,
    unit: Array,
    inverse: Array,
    penalty: float,
) -> tuple[float, tuple[Array, Array]]:
    """Return the residual variance, and covariances of (intercept, slopes) by noise and by drawing one record.

    With z = (1, u, v), M the mean of z z^T and c = (-line, 1), the line solves (M c) = 0 but for the last row and the
    ridge. Noise E in M therefore moves it by A^-1 E c to first order, A being the block of M without v plus the ridge.
    E is symmetric with independent entries of variance V_jk, so (E c)_j has variance sum_k V_jk c_k^2, and (E c)_j and
    (E c)_k have covariance V_jk c_j c_k. The residual variance is c M c.
    """
    size = middle.size + 1
    moments, spread = np.ones((size, size)), np.zeros((size, size))
    moments[0, 1:] = moments[1:, 0] = middle
    moments[1:, 1:] = square
    spread[0, 1:] = spread[1:, 0] = released.var_noise
    spread[1:, 1:] = var_products
    contrast = np.concatenate([-unit, [1.0]])
    score = spread * np.outer(contrast, contrast)
    np.fill_diagonal(score, spread @ contrast**2)
    inputs = middle[:-1]
    # The inverse of [[1, m], [m, S + m m^T]] with S the centred block.
    bread = np.empty((size - 1, size - 1))
    bread[1:, 1:] = inverse
    bread[0, 1:] = bread[1:, 0] = -inverse @ inputs
    bread[0, 0] = 1.0 + inputs @ inverse @ inputs
    residual = float(contrast @ moments @ contrast)
    # A without the ridge is the meat of the sampling error: residual variance times A^-1 (A - ridge) A^-1.
    without = np.diag(np.concatenate([[0.0], np.full(size - 2, penalty)]))
    drawn = bread - bread @ without @ bread
    by_noise = bread @ score[:-1, :-1] @ bread
    return residual, (by_noise, max(residual, 0.0) * drawn)


def _to_raw(features: Products) -> tuple[Array, Array]:
    """Return shift and matrix that take (intercept, slopes) from units of [-1, 1] to those of the records."""
    half, centre = features.half, features.centre
    ratios = half[-1] / half[:-1]
    turn = np.diag(np.concatenate([[half[-1]], ratios]))
    turn[0, 1:] = -ratios * centre[:-1]
    shift = np.zeros(half.size)
    shift[0] = centre[-1]
    return shift, turn
