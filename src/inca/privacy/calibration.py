"""How much noise is enough: the least level of one kind of noise, given the other and the loss that is allowed.

With M the covariance, per unit of cancelling noise, of the best unbiased estimate of the noisy values from the view,

    B^T Sigma^-1 B = (sigma_independent^2 I + sigma_cancelling^2 M)^-1,

whatever the two levels are (apply Woodbury's identity to Theorem 1's Sigma; fact F4). So one factorisation at one ratio
of the levels, and the eigenvectors of the n_H x n_H result, give all losses for all levels: with g the eigenvalues at
ratio r0, those at ratio r are g / (g + (r/r0)^2 (1 - g)). Finding a level is then a root of a monotone function.

That function of g is operator monotone: a matrix at r0 that is rounded up by a multiple of the unit matrix gives a
matrix at r that is no less than the true one, so that no loss is understated and no level too low.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from inca._base.distributions import binom_ppf
from inca._base.threads import blas_threads_for
from inca._base.types import Array
from inca._base.validation import finite_float, instance, positive, refuse
from inca.errors import InvalidInput
from inca.privacy._device import Device, eigenvectors, on_gpu
from inca.privacy.accountant import Losses, account, information_matrix
from inca.privacy.tail_quantile import least_ratios
from inca.privacy.theorems.preconditions import TheoremCheck, shifts
from inca.privacy.view import View
from inca.protocol.noise_levels import NoiseLevels

_REFERENCE_RATIO = 10.0  # of the levels, at which the view is factored: near those that calibration finds
_SURE = 1e-12  # how near to 1 an eigenvalue counts as 1, per honest party
_MAX_ERROR = 1e-6  # of mu^2, from which on losses are worked out anew,
_NO_LOSS = 1e-12  # unless they are next to nothing
_EPS = float(np.finfo(np.float64).eps)
_ROUND_UP = 1.0 + 1e-9  # a level found is raised by this much, so that rounding does not break the promise


class Tradeoff:
    """The losses of one view for all noise levels, as B^T Sigma^-1 B = (sigma_*^2 I + sigma_Delta^2 M)^-1.

    Args:
        view: What the adversary knows.
        device: Where to factor it: `cpu`, `cuda` for a GPU, or None to choose; see `inca.account`.

    Raises:
        InvalidInput: If double precision does not suffice, or the device is not there or too small.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental_injection(10))
        >>> tradeoff = Tradeoff(inca.View(execution, inca.Adversary(colluding=range(5))))
        >>> level = tradeoff.sigma_cancelling(mu=0.2, sigma_independent=1.0)
        >>> round(level, 3), round(tradeoff.losses(inca.NoiseLevels(independent=1.0, cancelling=level)).max_mu, 6)
        (3.489, 0.2)
    """

    def __init__(self, view: View, *, device: Device | None = None) -> None:
        self.view = instance("view", view, View)
        levels = NoiseLevels(independent=1.0, cancelling=_REFERENCE_RATIO)
        matrix, bound, taken = information_matrix(view, levels, device=device)
        g, vectors = _eigenvectors(matrix, taken == "state-space" and on_gpu(device, view, suits=True))
        error = bound + 8.0 * _EPS * g.size  # of the matrix, and of eigenvalues
        self._g = np.where(g > 1.0 - _SURE * g.size, 1.0, np.clip(g + error, 0.0, 1.0))
        self._least = np.clip(g - error, 0.0, 1.0)
        self._vectors = vectors
        self._device = device

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(self._vectors**2)

    def losses(self, noise_levels: NoiseLevels, *, sensitivity: float = 1.0) -> Losses:
        """Return every honest party's loss at these levels.

        Args:
            noise_levels: The levels, the independent one above 0.
            sensitivity: How far one party's value can move, in Euclidean distance.

        Returns:
            The losses, as `inca.account` would give them. Far from the levels at which the view was factored, where
            that does not tell them to a millionth, `inca.account` gives them.

        Raises:
            InvalidInput: If there is no independent noise, the sensitivity is negative, or double precision does not
                suffice.
        """
        positive("sigma_independent", noise_levels.independent)
        distance = finite_float("sensitivity", sensitivity, min=0.0)
        independent, cancelling = noise_levels.independent, noise_levels.cancelling
        squares = self._squared_losses(independent, cancelling)
        least = self._squares @ self._parts(self._least, independent, cancelling)
        if (squares * (1.0 - _MAX_ERROR) > least + _NO_LOSS / independent**2).any():
            levels = NoiseLevels(independent=independent, cancelling=cancelling)
            return account(self.view, levels, sensitivity=distance, device=self._device)
        return Losses(self.view.honest, distance * np.sqrt(squares), "tradeoff")

    def sigma_cancelling(self, mu: float, *, sigma_independent: float, sensitivity: float = 1.0) -> float:
        """Return the least cancelling noise with which nobody's loss exceeds mu.

        Args:
            mu: The largest loss that is allowed, above 0; see `inca.mu_for`.
            sigma_independent: The level of the independent noise, above 0.
            sensitivity: How far one party's value can move, in Euclidean distance.

        Returns:
            The level of the cancelling noise, rounded up.

        Raises:
            InvalidInput: If no amount of cancelling noise suffices, or a number is out of range.
        """
        independent, target = positive("sigma_independent", sigma_independent), _target(mu, sensitivity)
        if 1.0 / independent**2 <= target:
            return 0.0
        limit = float(self._squares[:, self._g == 1.0].sum(axis=1).max()) / independent**2  # of endless noise
        if limit >= target:
            least = independent * math.sqrt(limit / target)
            refuse("sigma_independent", sigma_independent, f"above {least:.6g} against this adversary")
        guess = independent * _REFERENCE_RATIO
        return _root(lambda level: self._squared_losses(independent, level).max() - target, guess)

    def sigma_independent(self, mu: float, *, sigma_cancelling: float, sensitivity: float = 1.0) -> float:
        """Return the least independent noise with which nobody's loss exceeds mu.

        Args:
            mu: The largest loss that is allowed, above 0; see `inca.mu_for`.
            sigma_cancelling: The level of the cancelling noise.
            sensitivity: How far one party's value can move, in Euclidean distance.

        Returns:
            The level of the independent noise, rounded up; never more than sensitivity / mu, which is Local DP.

        Raises:
            InvalidInput: If a number is out of range.
        """
        cancelling, target = finite_float("sigma_cancelling", sigma_cancelling, min=0.0), _target(mu, sensitivity)
        if math.isinf(target) or (cancelling > 0 and self._squared_losses(0.0, cancelling).max() <= target):
            return 0.0
        enough = 1.0 / math.sqrt(target)  # Local DP
        return min(enough, _root(lambda level: self._squared_losses(level, cancelling).max() - target, enough))

    def least_ratios(self, targets: Array) -> Array:
        """Return, for every target and honest party, the least (sigma_cancelling / sigma_independent)^2 it needs.

        With that ratio, the party's squared loss is at most target / sigma_independent^2 for unit sensitivity: a target
        of 1 is Local DP, one of 1 / n_H what the independent noise in the sum alone could give at best (Theorem 2).
        The result has one row per target; see `inca.privacy.tail_quantile.least_ratios`.
        """
        with np.errstate(divide="ignore"):
            stiffness = (1.0 - self._g) / self._g / _REFERENCE_RATIO**2
        return least_ratios(self._squares, stiffness, targets)

    def sigma_cancelling_by_theorem(
        self, theorem: TheoremCheck, mu: float, *, sigma_independent: float, sensitivity: float = 1.0
    ) -> float:
        """Return the cancelling noise that a theorem asks for: xi fixed by the proof, Delta of least norm.

        It is never below `sigma_cancelling`, which chooses xi best.

        Args:
            theorem: The check of Theorem 2, 3 or 4 for this view, which must hold.
            mu: The largest loss that is allowed, above 0.
            sigma_independent: The level of the independent noise, above 0.
            sensitivity: How far one party's value can move, in Euclidean distance.

        Returns:
            The level of the cancelling noise.

        Raises:
            InvalidInput: If the theorem does not hold, or the independent noise is too little for it.
        """
        independent, target = positive("sigma_independent", sigma_independent), _target(mu, sensitivity)
        if not theorem.holds or theorem.factor_sharp is None:
            raise InvalidInput(f"{theorem.name} must hold to tell the noise, but {theorem.why}")
        left = target - theorem.factor_sharp / independent**2
        if left <= 0:
            least = math.sqrt(theorem.factor_sharp / target)
            refuse("sigma_independent", sigma_independent, f"above {least:.6g} for {theorem.name}")
        along = shifts(self.view, theorem) @ self._vectors
        sure = self._g == 1.0
        if sure.any() and np.abs(along[:, sure]).max() > 1e-6:
            raise InvalidInput(f"{theorem.name} must be that of this view, whose adversary sees its change of values")
        # ||Delta||^2 = f^T B^T (A A^T)^-1 B f, the inverse of M on what can be hidden.
        cost = along[:, ~sure] ** 2 @ (_REFERENCE_RATIO**2 * self._g[~sure] / (1.0 - self._g[~sure]))
        return math.sqrt(float(cost.max()) / left)

    def _squared_losses(self, independent: float, cancelling: float) -> Array:
        """Return mu_i^2 for unit sensitivity at these levels; infinite where nothing hides."""
        part = self._parts(self._g, independent, cancelling)
        if np.isinf(part).any():
            given_away = (self._squares[:, np.isinf(part)] > _SURE).any(axis=1)
            return np.where(given_away, np.inf, self._squares @ np.where(np.isinf(part), 0.0, part))
        return np.asarray(self._squares @ part)

    @staticmethod
    def _parts(g: Array, independent: float, cancelling: float) -> Array:
        """Return the eigenvalues at these levels, of those where the view was factored; 0 / 0 is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = g / (independent**2 * g + (cancelling / _REFERENCE_RATIO) ** 2 * (1.0 - g))
        return np.where(g == 0.0, 0.0, part)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A level that suffices for many executions and adversaries.

    Attributes:
        level: The largest of the samples if `quantile` is 1; else at least that quantile of the distribution that they
            were drawn from, with the stated confidence.
        samples: The level that each view needs, in order.
        quantile: The fraction of executions and adversaries for which the level suffices.
        confidence: How sure that is.
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
    quantile: float = 1.0,
    confidence: float = 0.999,
    device: Device | None = None,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Return the least level of one kind of noise, given the other, with which nobody's loss exceeds mu in any view.

    Executions are calibrated as they are: for a promise that does not count on dropouts, take executions with everyone
    present (erratum E11).

    Args:
        views: What adversaries know of executions; for a quantile, drawn at random.
        mu: The largest loss that is allowed if a value can move by 1, above 0: `inca.mu_for(epsilon, delta)`, over how
            far it can move (the sensitivity).
        sigma_independent: The level of the independent noise, to find the cancelling one.
        sigma_cancelling: The level of the cancelling noise, to find the independent one; instead of the former.
        quantile: For which fraction of the distribution of views the level suffices; 1 stands for all of `views`.
        confidence: How sure that is, for a quantile below 1.
        device: Where to factor the views: `cpu`, `cuda` for a GPU, or None to choose; see `inca.account`.
        progress: Called with the number of views done.

    Returns:
        The level, with what each view needs.

    Raises:
        InvalidInput: If not exactly one level is given, or the views are too few for the quantile.

    Example:
        >>> import inca
        >>> def drawn(seed):
        ...     execution = inca.Execution(inca.RandomReceivers(30, rounds=8, seed=seed), inca.incremental_injection(8))
        ...     return inca.View(execution, inca.Adversary.random(30, 8, np.random.default_rng(seed), colluding=0.1))
        >>> calibration = calibrate((drawn(seed) for seed in range(20)), mu=0.3, sigma_independent=1.0)
        >>> bool(calibration.level == calibration.samples.max())
        True
    """
    if sigma_independent is None and sigma_cancelling is None:
        raise InvalidInput("sigma_independent or sigma_cancelling must be given, got neither")
    if sigma_independent is not None and sigma_cancelling is not None:
        raise InvalidInput("sigma_independent cannot be combined with sigma_cancelling")
    finite_float("quantile", quantile, 0.0, 1.0)
    finite_float("confidence", confidence, 0.0, 1.0)
    samples = []
    for view in views:
        tradeoff = Tradeoff(view, device=device)
        if sigma_independent is not None:
            samples.append(tradeoff.sigma_cancelling(mu, sigma_independent=sigma_independent))
        else:
            assert sigma_cancelling is not None
            samples.append(tradeoff.sigma_independent(mu, sigma_cancelling=sigma_cancelling))
        if progress is not None:
            progress(len(samples))
    if not samples:
        refuse("the number of views", 0, "at least 1")
    levels = np.array(samples)
    return Calibration(_order_statistic(levels, quantile, confidence), levels, quantile, confidence)


def _eigenvectors(matrix: Array, on_gpu: bool) -> tuple[Array, Array]:
    """Return the eigenvalues in rising order and the eigenvectors as columns, from the GPU if it has the memory."""
    if on_gpu:
        try:
            return eigenvectors(matrix)
        except MemoryError:  # they take more of it than the losses
            warnings.warn("the GPU is not used for eigenvectors: its memory ran out", stacklevel=3)
    with blas_threads_for(len(matrix)):
        g, vectors = eigh(matrix, check_finite=False)
    return np.asarray(g), np.asarray(vectors)


def _order_statistic(levels: Array, quantile: float, confidence: float) -> float:
    """Return the smallest sample that is at least the quantile with this confidence, whatever the distribution.

    The r-th smallest of N is below the quantile q only if at least r samples are, and their number is
    Binomial(N, q) at most; so P(Binomial(N, q) >= r) <= 1 - confidence will do (Wilks 1941).
    """
    ordered, count = np.sort(levels), levels.size
    if quantile == 1.0:
        return float(ordered[-1])
    below = binom_ppf(confidence, count, quantile)  # the least b with P(Binomial <= b) >= confidence
    if below >= count:
        needed = math.ceil(math.log1p(-confidence) / math.log(quantile)) if confidence < 1 else math.inf
        must_be = f"at least {needed} for quantile {quantile:g} at confidence {confidence:g}"
        refuse("the number of views", count, must_be)
    return float(ordered[below])


def _root(excess: Callable[[float], float], guess: float) -> float:
    """Return where a falling function of a level above 0 crosses 0, rounded up; `guess` is a level of its size."""

    def excess_at(log_level: float) -> float:
        return excess(math.exp(log_level))  # also for the ends: exp(log(x)) is not quite x

    low = high = math.log(guess)
    while excess_at(high) > 0:
        low, high = high, high + math.log(4.0)
    while excess_at(low) <= 0:
        low -= math.log(4.0)
        if low < math.log(guess * 1e-12):
            return 0.0
    return float(math.exp(brentq(excess_at, low, high, xtol=1e-13))) * _ROUND_UP


def _target(mu: float, sensitivity: float) -> float:
    """Return mu^2 per unit of sensitivity; mu may be infinite."""
    loss = math.inf if mu == math.inf else positive("mu", mu)
    distance = finite_float("sensitivity", sensitivity, min=0.0)
    return math.inf if distance == 0 else (loss / distance) ** 2
