"""What is averaged: features of records with a bound on how far apart two records' features can be.

A column with values in [low, high] is first moved and scaled to u in [-1, 1]. How many records there are is public, so
constants cost nothing: only *differences* of features count. Within one release, the weight w of a block of features
against the others is what splits the loss between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from inca._base.types import Array

_FREE_WEIGHT = math.sqrt((11.0 + 5.0 * math.sqrt(5.0)) / 8.0)  # 1.665; see `Powers`


class FeatureMap(Protocol):
    """A map from records to vectors."""

    @property
    def size(self) -> int:
        """The number of features of a record."""
        ...

    @property
    def diameter(self) -> float:
        """A bound on the Euclidean distance between the features of two records."""
        ...

    @property
    def max_norm(self) -> float:
        """A bound on the Euclidean norm of a record's features."""
        ...

    def __call__(self, table: Array) -> Array:
        """Return the features of (m, p) records, (m, size)."""
        ...


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    """Columns moved and scaled to [-1, 1].

    Example:
        >>> ScaledColumns(np.array([0.0]), np.array([4.0])).unit(np.array([[1.0], [4.0]])).ravel()
        array([-0.5,  1. ])
    """

    lower: Array
    upper: Array

    @property
    def centre(self) -> Array:
        """The middle of each column's interval."""
        return self.lower / 2.0 + self.upper / 2.0

    @property
    def half(self) -> Array:
        """Half of the width of each column's interval."""
        return self.upper / 2.0 - self.lower / 2.0

    def unit(self, table: Array) -> Array:
        """Return the records in units of half an interval; rounding never leads out of [-1, 1]."""
        return np.clip((table - self.centre) / self.half, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Powers(ScaledColumns):
    """Each column's u and w u^2, for means and variances: the second moments are free.

    For one column let d = |u - t| and s = |u + t| <= 2 - d. The squared distance is d^2 (1 + w^2 s^2), at most d^2 +
    w^2 d^2 (2 - d)^2, and that is at most 4, the value at the ends u = 1 and t = -1, if w^2 is at most (2 + d) / (d^2
    (2 - d)) for every d. The least of this is (11 + 5 sqrt 5) / 8, at d = sqrt 5 - 1. So with this w^2 the features are
    no further apart than u alone, and the mean is as good as if nothing else had been asked. Columns vary freely in a
    box, so their squares add up.

    Example:
        >>> Powers(np.zeros(4), np.ones(4)).diameter
        4.0
    """

    weight: float = _FREE_WEIGHT
    """w; larger ones are not free."""

    @property
    def size(self) -> int:
        """First and second powers."""
        return 2 * self.lower.size

    @property
    def diameter(self) -> float:
        """2 sqrt p."""
        return 2.0 * math.sqrt(self.lower.size)

    @property
    def max_norm(self) -> float:
        """sqrt(p (1 + w^2))."""
        return math.sqrt(self.lower.size * (1.0 + self.weight**2))

    def __call__(self, table: Array) -> Array:
        """Return first powers, then weighted squares."""
        unit = self.unit(table)
        return np.hstack([unit, self.weight * unit**2])


@dataclass(frozen=True, eq=False)
class Products(ScaledColumns):
    """u and w times all products u_j u_k, for covariances and regression, of p >= 2 columns.

    Products of different columns appear once, times sqrt 2, so that the block has the Frobenius norm of u u^T. Let k^2
    = 1 / (2 w^2), so that features / w are the matrix (k, u) (k, u)^T without its constant. For vectors a and b of
    squared lengths at most L, |a a^T - b b^T|^2 = |a|^4 + |b|^4 - 2 (a.b)^2 <= 2 L^2. Here L = p + k^2, thus the
    distance is at most w sqrt 2 (p + k^2). Corners of the box with u.t = -k^2 would attain it.

    The error of a variance is w^-2 D^2 (1 + 2 m^2 / k^2) with D the diameter and m the mean in units of u, that of a
    covariance alike. Its least is where k^4 + m^2 k^2 = m^2 p. The mean is not known beforehand; k is right for means
    half-way between the centre and the end, m = 1/2. Two releases of half the (squared) loss each would be worse for
    every m and p.

    Example:
        >>> products = Products(np.zeros(2), np.ones(2))
        >>> products.size, round(products.weight, 3), round(products.diameter, 3)
        (5, 0.918, 3.367)
    """

    @property
    def size(self) -> int:
        """First moments and the upper triangle of second ones."""
        columns = self.lower.size
        return columns + columns * (columns + 1) // 2

    @property
    def weight(self) -> float:
        """w = 1 / (k sqrt 2)."""
        return math.sqrt(0.5 / self._constant)

    @property
    def diameter(self) -> float:
        """The bound w sqrt 2 (p + k^2)."""
        return self.weight * math.sqrt(2.0) * (self.lower.size + self._constant)

    @property
    def max_norm(self) -> float:
        """sqrt(p + (w p)^2)."""
        return math.hypot(math.sqrt(self.lower.size), self.weight * self.lower.size)

    @property
    def _constant(self) -> float:
        """k^2, the root of k^4 + k^2 / 4 = p / 4."""
        return (math.sqrt(1.0 / 16.0 + self.lower.size) - 0.25) / 2.0

    @cached_property
    def _triangle(self) -> tuple[Array, tuple[np.ndarray, np.ndarray]]:
        rows, columns = np.triu_indices(self.lower.size)
        return self.weight * np.where(rows == columns, 1.0, math.sqrt(2.0)), (rows, columns)

    def __call__(self, table: Array) -> Array:
        """Return first moments, then the weighted upper triangle, row by row."""
        unit, (weights, (rows, columns)) = self.unit(table), self._triangle
        return np.hstack([unit, weights * unit[:, rows] * unit[:, columns]])

    def matrices(self, features: Array) -> tuple[Array, Array]:
        """Return the mean of u, (p,), and of u u^T, (p, p), from the mean features."""
        count = self.lower.size
        weights, (rows, columns) = self._triangle
        second = np.empty((count, count))
        second[rows, columns] = second[columns, rows] = features[count:] / weights
        return features[:count].copy(), second

    def var_products(self, var_noise: float) -> Array:
        """Return the variances of the noise in the second moments, (p, p), from that in the features."""
        variances = np.full((self.lower.size,) * 2, 0.5 * var_noise / self.weight**2)
        np.fill_diagonal(variances, var_noise / self.weight**2)
        return variances


@dataclass(frozen=True, eq=False)
class Bins:
    """Which of the bins between inner edges a number is in, as columns of a strategy matrix M (K, K).

    Bin 0 holds numbers up to the first edge, bin k those above edge k - 1 up to edge k; a number on an edge belongs to
    the bin on its left, or on its right if `side` says so. With M the identity, features are one-hot and sqrt 2 apart.
    There are finitely many features, so the diameter is exact.

    Example:
        >>> bins = Bins(np.array([1.0, 2.0]), np.eye(3))
        >>> bins(np.array([[0.5], [2.0], [7.0]])).tolist(), round(bins.diameter, 3)
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 1.414)
    """

    edges: Array
    strategy: Array
    side: Literal["left", "right"] = "left"

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.strategy)

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two columns of M."""
        gram = self.strategy.T @ self.strategy
        squares = np.diag(gram)
        return math.sqrt(float((squares[:, np.newaxis] + squares - 2.0 * gram).max()))

    @property
    def max_norm(self) -> float:
        """The length of the longest column of M."""
        return float(np.linalg.norm(self.strategy, axis=0).max())

    def __call__(self, table: Array) -> Array:
        """Return the column of each record's bin."""
        return np.ascontiguousarray(self.strategy.T[np.searchsorted(self.edges, table[:, 0], side=self.side)])

    def shares(self, features: Array) -> Array:
        """Return the shares of the bins from the mean features: M^-1 times them."""
        return np.asarray(solve_triangular(self.strategy, features, lower=True))

    @cached_property
    def covariance(self) -> Array:
        """M^-1 M^-T: the covariance of the noise in the shares, if that in the features is 1."""
        inverse = self.shares(np.eye(self.size))
        return np.asarray(inverse @ inverse.T)


def root_of_sums(size: int) -> Array:
    """Return the lower triangular M with M M = the matrix of running sums.

    Its entries are c_0 = 1 and c_k = c_(k-1) (1 - 1 / (2 k)) on the k-th diagonal, and each row and column has squared
    norm at most 1 + (1 + ln K) / pi. So running sums of K bins have noise that grows as (ln K)^2 instead of K
    (Fichtenberger, Henzinger, Upadhyay, "Constant matters: fine-grained error bound on differentially private continual
    observation").

    Example:
        >>> root = root_of_sums(4)
        >>> root[:, 0], np.allclose(root @ root, np.tri(4))
        (array([1.    , 0.5   , 0.375 , 0.3125]), True)
    """
    steps = np.arange(1, size)
    return np.asarray(toeplitz(np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / steps])), np.zeros(size)))
