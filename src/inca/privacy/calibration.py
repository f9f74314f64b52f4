"""How much noise is enough: the least level of one kind of noise, given the other and a wanted loss.

With M the covariance, per unit of cancelling noise, of the best unbiased estimate of the noisy values from the view,

    B^T Sigma^-1 B = (sigma_independent^2 I + sigma_cancelling^2 M)^-1,

whatever the two levels are (apply Woodbury's identity to Theorem 1's Sigma; fact F4). So one factorisation at one ratio
of the levels, and the eigenvectors of the n_H x n_H result, give all losses for all levels: with g the eigenvalues at
ratio r0, those at ratio r are g / (g + (r/r0)^2 (1 - g)). Finding a level is then a root of a monotone function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.stats import binom

from inca._base.threads import blas_threads_for
from inca._base.types import Array
from inca._base.validation import InputError, positive, real, refuse
from inca.privacy.accountant import Losses, information
from inca.privacy.tail_quantile import least_ratios
from inca.privacy.theorems.preconditions import Verdict, shifts
from inca.privacy.view import View

_REFERENCE = 10.0  # ratio of the levels at which the view is factored: near those that calibration finds
_SURE = 1e-12  # how near to 1 an eigenvalue counts as 1, per honest party
_ROUND_UP = 1.0 + 1e-9  # a level found is raised by this much, so that rounding does not break the promise


class Tradeoff:
    """The losses of one view for all noise levels.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental(10))
    >>> tradeoff = Tradeoff(inca.View(execution, inca.Adversary(colluding=range(5))))
    >>> level = tradeoff.sigma_cancelling(mu=0.2, sigma_independent=1.0)
    >>> round(level, 3), round(tradeoff.losses(1.0, level).worst[1], 6)
    (3.489, 0.2)
    """

    def __init__(self, view: View) -> None:
        """Factor the view once."""
        self.view = view
        matrix, _ = information(view, 1.0, _REFERENCE, matrix=True)
        with blas_threads_for(len(matrix)):
            g, vectors = eigh(matrix, check_finite=False)
        self._g = np.where(g > 1.0 - _SURE * g.size, 1.0, np.maximum(g, 0.0))
        self._vectors = vectors

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(self._vectors**2)

    def losses(self, sigma_independent: float, sigma_cancelling: float, sensitivity: float = 1.0) -> Losses:
        """Return every honest party's loss at these levels, the first above 0."""
        own = positive("sigma_independent", sigma_independent)
        shared = real("sigma_cancelling", sigma_cancelling, least=0.0)
        reach = real("sensitivity", sensitivity, least=0.0)
        return Losses(self.view.honest, reach * np.sqrt(self._at(own, shared)), "tradeoff")

    def sigma_cancelling(self, mu: float, sigma_independent: float, sensitivity: float = 1.0) -> float:
        """Return the least cancelling noise with which nobody's loss exceeds mu; refuse if none suffices."""
        own, wanted = positive("sigma_independent", sigma_independent), _square(mu, sensitivity)
        if 1.0 / own**2 <= wanted:
            return 0.0
        bound = float(self._squares[:, self._g == 1.0].sum(axis=1).max()) / own**2  # with no end of cancelling noise
        if bound >= wanted:
            least = own * math.sqrt(bound / wanted)
            raise refuse("sigma_independent", sigma_independent, f"more than {least:.6g} against this adversary")
        return _root(lambda level: self._at(own, level).max() - wanted, own * _REFERENCE)

    def sigma_independent(self, mu: float, sigma_cancelling: float, sensitivity: float = 1.0) -> float:
        """Return the least independent noise with which nobody's loss exceeds mu."""
        shared, wanted = real("sigma_cancelling", sigma_cancelling, least=0.0), _square(mu, sensitivity)
        if math.isinf(wanted) or (shared > 0 and self._at(0.0, shared).max() <= wanted):
            return 0.0
        enough = 1.0 / math.sqrt(wanted)  # Local DP
        return min(enough, _root(lambda level: self._at(level, shared).max() - wanted, enough))

    def least_ratios(self, targets: Array) -> Array:
        """Return, for every target and honest party, the least (sigma_cancelling / sigma_independent)^2 it needs.

        With that ratio, the party's squared loss is at most target / sigma_independent^2 for unit sensitivity: a target
        of 1 is Local DP, one of 1 / n_H what the independent noise in the sum alone could give at best (Theorem 2).
        The result has one row per target; see `inca.privacy.tail_quantile.least_ratios`.
        """
        with np.errstate(divide="ignore"):
            stiffness = (1.0 - self._g) / self._g / _REFERENCE**2
        return least_ratios(self._squares, stiffness, targets)

    def sigma_cancelling_by_theorem(
        self, verdict: Verdict, mu: float, sigma_independent: float, sensitivity: float = 1.0
    ) -> float:
        """Return the sigma_cancelling that Theorem 2, 3 or 4 asks for: xi fixed by the proof, Delta of least norm.

        It is never below `sigma_cancelling`, which chooses xi best.
        """
        own, wanted = positive("sigma_independent", sigma_independent), _square(mu, sensitivity)
        if not verdict.holds or verdict.factor_sharp is None:
            raise InputError(f"{verdict.name} was given, but a theorem that holds was expected: {verdict.why}")
        left = wanted - verdict.factor_sharp / own**2
        if left <= 0:
            least = math.sqrt(verdict.factor_sharp / wanted)
            raise refuse("sigma_independent", sigma_independent, f"more than {least:.6g} for {verdict.name}")
        along = shifts(self.view, verdict) @ self._vectors
        sure = self._g == 1.0
        if sure.any() and np.abs(along[:, sure]).max() > 1e-6:
            raise InputError(f"{verdict.name} was given, but its change of values is visible to this adversary")
        # ||Delta||^2 = f^T B^T (A A^T)^-1 B f, the inverse of M on what can be hidden.
        cost = along[:, ~sure] ** 2 @ (_REFERENCE**2 * self._g[~sure] / (1.0 - self._g[~sure]))
        return math.sqrt(float(cost.max()) / left)

    def _at(self, own: float, shared: float) -> Array:
        """Return mu_i^2 for unit sensitivity at these levels; infinite where nothing hides."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = self._g / (own**2 * self._g + (shared / _REFERENCE) ** 2 * (1.0 - self._g))
        part = np.where(self._g == 0.0, 0.0, part)
        if np.isinf(part).any():
            given_away = (self._squares[:, np.isinf(part)] > _SURE).any(axis=1)
            return np.where(given_away, np.inf, self._squares @ np.where(np.isinf(part), 0.0, part))
        return np.asarray(self._squares @ part)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A level that suffices for many executions and adversaries.

    `samples` are the levels that each of them needs, in the order given. With `quantile` 1 the `level` is the largest;
    else it is at least that quantile of the distribution they were drawn from, with the stated `confidence`.
    """

    level: float
    samples: Array
    quantile: float
    confidence: float


def calibrate(
    views: Iterable[View],
    mu: float,
    *,
    sigma_independent: float | None = None,
    sigma_cancelling: float | None = None,
    sensitivity: float = 1.0,
    quantile: float = 1.0,
    confidence: float = 0.999,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Return the least level of the noise that is not given with which nobody's loss exceeds mu in `views`.

    Give one of `sigma_independent` and `sigma_cancelling`. Executions are calibrated as they are: for a promise that
    does not count on dropouts, give executions with everyone present (erratum E11). `progress` is told how many
    views are done.

    >>> import inca
    >>> def drawn(seed):
    ...     execution = inca.Execution(inca.RandomReceivers(30, rounds=8, seed=seed), inca.incremental(8))
    ...     return inca.View(execution, inca.Adversary.random(30, 8, np.random.default_rng(seed), colluding=0.1))
    >>> found = calibrate((drawn(seed) for seed in range(20)), mu=0.3, sigma_independent=1.0)
    >>> bool(found.level == found.samples.max())
    True
    """
    if (sigma_independent is None) == (sigma_cancelling is None):
        given = (sigma_independent, sigma_cancelling)
        raise refuse("(sigma_independent, sigma_cancelling)", given, "exactly one of the two")
    real("quantile", quantile, 0.0, 1.0)
    real("confidence", confidence, 0.0, 1.0)
    samples = []
    for view in views:
        tradeoff = Tradeoff(view)
        if sigma_independent is not None:
            samples.append(tradeoff.sigma_cancelling(mu, sigma_independent, sensitivity))
        else:
            assert sigma_cancelling is not None
            samples.append(tradeoff.sigma_independent(mu, sigma_cancelling, sensitivity))
        if progress is not None:
            progress(len(samples))
    if not samples:
        raise refuse("the number of views", 0, "at least 1")
    levels = np.array(samples)
    return Calibration(_order_statistic(levels, quantile, confidence), levels, quantile, confidence)


def _order_statistic(levels: Array, quantile: float, confidence: float) -> float:
    """Return the smallest sample that is at least the quantile with this confidence, whatever the distribution.

    The r-th smallest of N is below the quantile q only if at least r samples are, and their number is
    Binomial(N, q) at most; so P(Binomial(N, q) >= r) <= 1 - confidence will do (Wilks 1941).
    """
    ordered, count = np.sort(levels), levels.size
    if quantile == 1.0:
        return float(ordered[-1])
    below = int(binom.ppf(confidence, count, quantile))  # the least b with P(Binomial <= b) >= confidence
    if below >= count:
        needed = math.ceil(math.log1p(-confidence) / math.log(quantile)) if confidence < 1 else math.inf
        wanted = f"at least {needed} for quantile {quantile:g} at confidence {confidence:g}"
        raise refuse("the number of views", count, wanted)
    return float(ordered[below])


def _root(excess: Callable[[float], float], guess: float) -> float:
    """Return where a falling function of a level above 0 crosses 0, rounded up; `guess` is a level of its size."""
    low = high = guess
    while excess(high) > 0:
        low, high = high, high * 4.0
    while excess(low) <= 0:
        low /= 4.0
        if low < guess * 1e-12:
            return 0.0
    return float(math.exp(brentq(lambda x: excess(math.exp(x)), math.log(low), math.log(high), xtol=1e-13))) * _ROUND_UP


def _square(mu: float, sensitivity: float) -> float:
    """Return the wanted mu^2 per unit of sensitivity."""
    if not isinstance(mu, (int, float)) or isinstance(mu, bool) or not mu > 0:
        raise refuse("mu", mu, "a number above 0")
    reach = real("sensitivity", sensitivity, least=0.0)
    return math.inf if reach == 0 else (mu / reach) ** 2
