"""The exact loss of every honest party against one adversary in one execution (Theorem 1).

What the adversary sees is Gaussian; a change of x_i by at most the sensitivity shifts it by mu_i standard deviations
of the best test's statistic, mu_i^2 = sensitivity^2 h_i^T Sigma^-1 h_i (fact F4). So the execution is mu_i-GDP for
party i, and epsilon and delta follow from mu_i.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array, Progress
from inca._base.validation import finite_float, refuse
from inca.errors import InvalidInput, SingularView
from inca.privacy import _dense, _device, _state_space, gaussian
from inca.privacy._device import Device
from inca.privacy.gaussian import Rule
from inca.privacy.view import View
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.rounding import Rounding

Method = Literal["auto", "dense", "state-space"]

MAX_NOISE_RATIO = 1e7  # of the two levels; beyond, double precision does not tell the losses apart
_HAND_OVER_ERROR = 2.5e-10  # estimated relative error of mu^2 from which on the dense method is taken where it can be
_MAX_ERROR = 1e-6  # and from which on a loss is refused rather than named
_TOO_CLOSE = (
    "the observed messages are so nearly dependent that double precision does not tell the loss; "
    "noise levels closer to each other would help"
)


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss mu of every honest party: what the adversary sees is mu-GDP for that party's value.

    mu is the mu of Gaussian differential privacy (Dong, Roth, Su 2022): mu_i = sensitivity sqrt(h_i^T Sigma^-1 h_i).

    Attributes:
        honest: The ids of the honest parties.
        mu: Their losses, in the same order; infinity where a value is given away.
        method: How they were computed: `dense`, `state-space`, `tradeoff` or `composed`.

    Example:
        >>> losses = Losses(np.array([0, 2]), np.array([0.1, 0.3]))
        >>> losses.max_mu, losses.worst_party
        (0.3, 2)
    """

    honest: NDArray[np.intp]
    mu: Array
    method: str = ""

    @property
    def worst_party(self) -> int:
        """The id of the honest party with the largest loss."""
        return int(self.honest[int(np.argmax(self.mu))])

    @property
    def max_mu(self) -> float:
        """The largest loss of an honest party."""
        return float(self.mu.max())

    def epsilon(self, delta: float, rule: Rule = "analytic") -> Array:
        """Return every honest party's epsilon at delta; see `inca.epsilon_for`.

        Args:
            delta: From 0 to 1.
            rule: `analytic` or `classic`.

        Returns:
            One epsilon per honest party; infinity where there is no guarantee.

        Raises:
            InvalidInput: If delta is out of range, or the rule unknown.
        """
        return gaussian.epsilon_for(self.mu, delta, rule)

    def delta(self, epsilon: float, rule: Rule = "analytic") -> Array:
        """Return every honest party's delta at epsilon; see `inca.delta_for`.

        Args:
            epsilon: At least 0.
            rule: `analytic` or `classic`.

        Returns:
            One delta per honest party.

        Raises:
            InvalidInput: If epsilon is out of range, or the rule unknown.
        """
        return gaussian.delta_for(self.mu, epsilon, rule)

    def in_whole_numbers(self, rounding: Rounding | None) -> Losses:
        """Return the losses of the same run in whole numbers; these if it was one in real ones.

        Args:
            rounding: What whole numbers did to it; see `Transcript.rounding`.
        """
        return self if rounding is None else replace(self, mu=rounding.loss(self.mu))


def account(
    view: View,
    noise_levels: NoiseLevels,
    *,
    sensitivity: float,
    method: Method = "auto",
    device: Device | None = None,
    progress: Progress | None = None,
) -> Losses:
    """Return the exact loss of every honest party against the adversary of `view` (Theorem 1).

    mu_i^2 = sensitivity^2 h_i^T Sigma^-1 h_i with Sigma = sigma_*^2 B B^T + sigma_Delta^2 A A^T, and h_i the column of
    B that belongs to party i.

    Args:
        view: What the adversary knows.
        noise_levels: sigma_* and sigma_Delta. A level of 0 is allowed, and may give an infinite loss.
        sensitivity: How far one party's value can move, in Euclidean distance; see `Domain.sensitivity`.
        method: `dense` writes the linear system down and takes any injection; `state-space` is fast and takes the
            incremental family with noise above 0; both give the same numbers. `auto` chooses.
        device: Where the state-space method works: `cpu`, or `cuda` for a GPU, which needs PyTorch; both give the same
            numbers. None takes a GPU if there is one and the view is large enough for it to pay.
        progress: Called with (rounds done, T+1), by the state-space method only.

    Returns:
        The losses, never understated by rounding.

    Raises:
        InvalidInput: If the method does not suit, the device is not there or too small, or double precision does not
            suffice.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental_injection(10))
        >>> view = inca.View(execution, inca.Adversary(colluding=range(5)))
        >>> losses = account(view, inca.NoiseLevels(independent=1.0, cancelling=10.0), sensitivity=1.0)
        >>> round(losses.max_mu, 4), round(float(losses.epsilon(delta=1e-5).max()), 3)
        (0.1563, 0.554)
    """
    distance = finite_float("sensitivity", sensitivity, min=0.0)
    squares, taken = information(view, noise_levels, method=method, device=device, progress=progress)
    with np.errstate(invalid="ignore"):
        mu = np.where(squares == 0, 0.0, np.sqrt(squares) * distance) if distance > 0 else np.zeros_like(squares)
    return Losses(view.honest, mu, taken)


def compose(*losses: Losses) -> Losses:
    """Return the losses of several averages of the same parties' data, each with fresh noise: mu^2 adds up.

    A party counts if it is honest in all of them; the others have given their values away anyway.

    Args:
        losses: At least one.

    Returns:
        The losses of all averages together.

    Raises:
        InvalidInput: If there are none, or no party is honest in all of them.

    Example:
        >>> once = Losses(np.array([0, 1]), np.array([0.3, 0.1]))
        >>> compose(once, Losses(np.array([0, 2]), np.array([0.4, 0.1]))).mu
        array([0.5])
    """
    if not losses:
        refuse("the number of losses", 0, "at least 1")
    common = losses[0].honest
    for release in losses[1:]:
        common = np.intersect1d(common, release.honest, assume_unique=True)
    if not common.size:
        refuse("the number of parties that are honest in all of the losses", 0, "at least 1")
    mu = [release.mu[np.searchsorted(release.honest, common)] for release in losses]
    return Losses(common, gaussian.compose(*mu), "composed")


def information(
    view: View,
    noise_levels: NoiseLevels,
    *,
    matrix: bool = False,
    method: Method = "auto",
    device: Device | None = None,
    progress: Progress | None = None,
) -> tuple[Array, str]:
    """Return mu_i^2 for unit sensitivity, or all of B^T Sigma^-1 B, and the method that was taken in the end.

    Losses are rounded up by their estimated error, handed over to the dense method where that is needed and
    possible, and refused where double precision does not tell them.
    """
    chosen = _choose_method(view, noise_levels, method)
    on_gpu = _device.on_gpu(device, view, suits=chosen == "state-space")
    if chosen == "state-space":
        try:
            squares, error = _filtered(view, noise_levels, matrix, device if on_gpu else "cpu", progress)
        except SingularView:
            squares, error = np.empty(0), np.inf
        if error <= (_HAND_OVER_ERROR if method == "auto" and view.fits else _MAX_ERROR):
            return squares / noise_levels.independent**2 * (1.0 + error), "state-space"
        if method == "state-space" or not view.fits:
            raise InvalidInput(_TOO_CLOSE)
    squares, error = (_dense.information_matrix if matrix else _dense.information)(view, noise_levels)
    if error > _MAX_ERROR:
        raise InvalidInput(_TOO_CLOSE)
    return squares * (1.0 + error), "dense"


def _filtered(
    view: View, noise_levels: NoiseLevels, matrix: bool, device: Device | None, progress: Progress | None
) -> tuple[Array, float]:
    """Return what the state-space method gives, and the estimate of its relative error; None is a GPU, if it can."""
    ratio, topup = noise_levels.ratio, noise_levels.topup / noise_levels.independent
    if device != "cpu":
        try:
            return _device.information(view, ratio, progress, topup=topup, matrix=matrix)
        except MemoryError:  # others may work on the GPU, too
            if device == "cuda":
                raise InvalidInput("device cuda cannot be used here: its memory ran out") from None
            warnings.warn("the GPU is not used: its memory ran out", stacklevel=2)
    return _state_space.information(view, ratio, progress, topup=topup, matrix=matrix)


def _choose_method(view: View, noise_levels: NoiseLevels, method: str) -> str:
    if method not in ("auto", "dense", "state-space"):
        refuse("method", method, "auto, dense or state-space")
    noisy = noise_levels.independent > 0 and noise_levels.cancelling > 0
    suits = noisy and view.execution.injection.mask_scales is not None
    if method == "state-space" and not suits:
        refuse("method", method, "dense, as state-space needs the incremental family and noise above 0")
    if noisy and not 1 / MAX_NOISE_RATIO <= noise_levels.ratio <= MAX_NOISE_RATIO:
        must_be = f"from {1 / MAX_NOISE_RATIO:g} to {MAX_NOISE_RATIO:g}, where double precision suffices"
        refuse("sigma_cancelling / sigma_independent", noise_levels.ratio, must_be)
    return "state-space" if suits and method != "dense" else "dense"
