"""The exact loss of every honest party against one adversary in one execution (Theorem 1).

What the adversary sees is Gaussian; a change of x_i by at most the sensitivity shifts it by mu_i standard deviations
of the best test's statistic, mu_i^2 = sensitivity^2 h_i^T Sigma^-1 h_i (fact F4). Epsilon and delta follow from mu.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array, Progress
from inca._base.validation import InputError, real, refuse
from inca.privacy import _dense as dense
from inca.privacy import _state_space as statespace
from inca.privacy import gaussian
from inca.privacy.gaussian import Rule
from inca.privacy.view import View

Route = Literal["auto", "dense", "state-space"]

WIDEST = 1e7  # ratio of the noise levels beyond which double precision does not tell the losses apart
_HANDS_OVER = 2.5e-10  # estimated relative error of mu^2 from which on the dense route is taken where it can be
_UNRELIABLE = 1e-6  # and from which on a loss is refused rather than named
_TOO_NEAR = (
    "the observed messages are so nearly dependent that double precision does not tell the loss, "
    "but noise levels closer to each other were expected"
)


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss mu of every honest party; `honest` are their ids, in the same order."""

    honest: NDArray[np.intp]
    mu: Array
    route: str = ""
    """How it was computed: `dense` or `state-space`."""

    @property
    def worst(self) -> tuple[int, float]:
        """The honest party with the largest loss, and that loss."""
        place = int(np.argmax(self.mu))
        return int(self.honest[place]), float(self.mu[place])

    def epsilon(self, delta: float, rule: Rule = "exact") -> Array:
        """Return every honest party's epsilon at delta; infinity where there is no guarantee."""
        return gaussian.epsilon_for(self.mu, delta, rule)

    def delta(self, epsilon: float, rule: Rule = "exact") -> Array:
        """Return every honest party's delta at epsilon."""
        return gaussian.delta_for(self.mu, epsilon, rule)


def account(
    view: View,
    sigma_independent: float,
    sigma_cancelling: float,
    sensitivity: float = 1.0,
    *,
    route: Route = "auto",
    progress: Progress | None = None,
) -> Losses:
    """Return the exact loss of every honest party against the adversary of `view` (Theorem 1).

    `sensitivity` is how far one party's value can move, in Euclidean distance (`Domain.sensitivity`). Noise of
    level 0 is allowed and may give an infinite loss. Two routes give the same numbers: `dense` writes the linear
    system down and takes any injection; `state-space` is fast and takes the incremental family with noise above 0.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental(10))
    >>> losses = account(inca.View(execution, inca.Adversary(colluding=range(5))), 1.0, 10.0)
    >>> round(losses.worst[1], 4), round(float(losses.epsilon(delta=1e-5).max()), 3)
    (0.1563, 0.554)
    """
    own = real("sigma_independent", sigma_independent, least=0.0)
    shared = real("sigma_cancelling", sigma_cancelling, least=0.0)
    reach = real("sensitivity", sensitivity, least=0.0)
    squares, taken = information(view, own, shared, route=route, progress=progress)
    with np.errstate(invalid="ignore"):
        mu = np.where(squares == 0, 0.0, np.sqrt(squares) * reach) if reach > 0 else np.zeros_like(squares)
    return Losses(view.honest, mu, taken)


def compose(*losses: Losses) -> Losses:
    """Return the losses of several averages of the same parties' data, each with fresh noise: mu^2 adds up.

    A party counts if it is honest in all of them; the others have given their values away anyway.

    >>> once = Losses(np.array([0, 1]), np.array([0.3, 0.1]))
    >>> compose(once, Losses(np.array([0, 2]), np.array([0.4, 0.1]))).mu
    array([0.5])
    """
    if not losses:
        raise refuse("the number of losses", 0, "at least 1")
    common = losses[0].honest
    for each in losses[1:]:
        common = np.intersect1d(common, each.honest, assume_unique=True)
    if not common.size:
        raise InputError("no party is honest in all of the losses, but at least one was expected")
    shifts = [each.mu[np.searchsorted(each.honest, common)] for each in losses]
    return Losses(common, gaussian.compose(*shifts), "composed")


def _route(view: View, own: float, shared: float, wanted: str) -> str:
    if wanted not in ("auto", "dense", "state-space"):
        raise refuse("route", wanted, "auto, dense or state-space")
    suits = view.execution.injection.mask_scales is not None and own > 0 and shared > 0
    if wanted == "state-space" and not suits:
        raise refuse("route", wanted, "dense, as state-space needs the incremental family and noise above 0,")
    if own > 0 and shared > 0 and not 1 / WIDEST <= shared / own <= WIDEST:
        wanted_ratio = f"from {1 / WIDEST:g} to {WIDEST:g}, where double precision suffices,"
        raise refuse("sigma_cancelling / sigma_independent", shared / own, wanted_ratio)
    return "state-space" if suits and wanted != "dense" else "dense"


def information(
    view: View,
    own: float,
    shared: float,
    *,
    matrix: bool = False,
    route: Route = "auto",
    progress: Progress | None = None,
) -> tuple[Array, str]:
    """Return mu_i^2 for unit sensitivity, or all of B^T Sigma^-1 B, and the route that was taken in the end.

    Losses are rounded up by their estimated error, handed over to the dense route where that is needed and
    possible, and refused where double precision does not tell them.
    """
    if _route(view, own, shared, route) == "state-space":
        try:
            found, error = statespace.information(view, shared / own, progress, matrix=matrix)
        except statespace.Dependent:
            found, error = np.empty(0), np.inf
        if error <= (_HANDS_OVER if route == "auto" and view.fits else _UNRELIABLE):
            return found / own**2 * (1.0 + error), "state-space"
        if route == "state-space" or not view.fits:
            raise InputError(_TOO_NEAR)
    found, error = (dense.information_matrix if matrix else dense.information)(view, own, shared)
    if error > _UNRELIABLE:
        raise InputError(_TOO_NEAR)
    return found * (1.0 + error), "dense"
