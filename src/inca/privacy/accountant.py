"""The exact loss of every honest party against one adversary in one execution (Theorem 1).

What the adversary sees is Gaussian; a change of x_i by at most the sensitivity shifts it by mu_i standard deviations
of the best test's statistic, mu_i^2 = sensitivity^2 h_i^T Sigma^-1 h_i (fact F4). So the execution is mu_i-GDP for
party i, and epsilon and delta follow from mu_i.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from inca._base.options import Rule
from inca._base.types import Array, Progress
from inca._base.validation import finite_float, instance, integer, one_of, refuse
from inca.errors import InvalidInput, SingularView
from inca.privacy import _conjugate_gradients, _dense, _device, _state_space, gaussian
from inca.privacy._covariance_operator import WIDTH
from inca.privacy._device import Device
from inca.privacy.view import View
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.rounding import Rounding

Method = Literal["auto", "dense", "state-space", "conjugate-gradients"]

MAX_NOISE_RATIO = 1e12  # sigma_cancelling / sigma_independent: a plan for a billion parties needs 5e10
_MAX_PLAIN_RATIO = 1e8  # where the dense method takes part; its inverse is the least
_HAND_OVER_ERROR = 1.6e-8  # bound on the relative error of mu^2 from which on the dense method is tried where it can be
_TEN_DIGITS, _QUICK_ROWS = 1e-10, 500  # and with so few rows, for which it takes some hundredths of a second
_MAX_ERROR = 1e-6  # and from which on a loss is refused rather than named
_PAYS_BELOW = 6_500  # see `_few_products`; measured by benchmarks/privacy.py --eight
_MAX_FILTERED = 15_000  # honest parties up to whom the filter is tried if conjugate gradients do not suffice
_TOO_CLOSE = (
    "the observed messages are so nearly dependent that double precision does not tell the loss; "
    "noise levels closer to each other would help"
)


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss mu of every honest party: what the adversary sees is mu-GDP for that party's value.

    mu is the mu of Gaussian differential privacy (Dong, Roth, Su 2022): mu_i = sensitivity sqrt(h_i^T Sigma^-1 h_i).

    Attributes:
        honest: The ids of the honest parties, or of those that were asked for.
        mu: Their losses, in the same order; infinity where a value is given away.
        method: How they were computed: `dense`, `state-space`, `conjugate-gradients`, `tradeoff` or `composed`.

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
        """The id of the party with the largest of these losses."""
        return int(self.honest[int(np.argmax(self.mu))])

    @property
    def max_mu(self) -> float:
        """The largest of these losses."""
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
    parties: Iterable[int] | None = None,
    method: Method = "auto",
    device: Device | None = None,
    progress: Progress | None = None,
) -> Losses:
    """Return the exact loss of every honest party, or of some, against the adversary of `view` (Theorem 1).

    mu_i^2 = sensitivity^2 h_i^T Sigma^-1 h_i with Sigma = sigma_*^2 B B^T + sigma_Delta^2 A A^T, and h_i the column of
    B that belongs to party i.

    Args:
        view: What the adversary knows.
        noise_levels: sigma_* and sigma_Delta. A level of 0 is allowed, and may give an infinite loss.
        sensitivity: How far one party's value can move, in Euclidean distance; see `Domain.sensitivity`.
        parties: The ids of honest parties whose losses are wanted; None for all. Of a few parties the losses take
            seconds in a view of a hundred thousand, and minutes in one of a million. The largest of these is not the
            largest of all.
        method: `dense` writes the linear system down and takes any injection; `state-space` is fast and takes the
            incremental family with noise above 0; `conjugate-gradients` takes the same, and is faster for few parties
            or very many. All give the same numbers. `auto` chooses.
        device: Where the state-space method works: `cpu`, or `cuda` for a GPU, which needs PyTorch; both give the same
            numbers. None takes a GPU if there is one and the view is large enough for it to pay.
        progress: Called with (steps done, all steps), by the fast methods only.

    Returns:
        The losses, in the order of `parties` if these are given; never understated by rounding.

    Raises:
        InvalidInput: If a party is not honest, the method does not suit, the device is not there or too small, or
            double precision does not suffice.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental_injection(10))
        >>> view = inca.View(execution, inca.Adversary(colluding=range(5)))
        >>> losses = account(view, inca.NoiseLevels(independent=1.0, cancelling=10.0), sensitivity=1.0)
        >>> round(losses.max_mu, 4), round(float(losses.epsilon(delta=1e-5).max()), 3)
        (0.1563, 0.554)
        >>> of_two = account(view, inca.NoiseLevels(independent=1.0, cancelling=10.0), sensitivity=1.0, parties=[7, 49])
        >>> of_two.honest.tolist(), bool(of_two.max_mu <= losses.max_mu)
        ([7, 49], True)
    """
    distance = finite_float("sensitivity", sensitivity, min=0.0)
    instance("view", view, View)
    instance("noise_levels", noise_levels, NoiseLevels)
    if device is not None:
        one_of("device", device, get_args(Device))
    places = None if parties is None else _places(view, parties)
    squares, taken = information(view, noise_levels, places=places, method=method, device=device, progress=progress)
    with np.errstate(invalid="ignore"):
        mu = np.where(squares == 0, 0.0, np.sqrt(squares) * distance) if distance > 0 else np.zeros_like(squares)
    return Losses(view.honest if places is None else view.honest[places], mu, taken)


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
    for release in losses:
        instance("losses", release, Losses)
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
    places: NDArray[np.intp] | None = None,
    method: Method = "auto",
    device: Device | None = None,
    progress: Progress | None = None,
) -> tuple[Array, str]:
    """Return mu_i^2 for unit sensitivity, rounded up by its error, and the method that was taken in the end.

    `places` says whose, by their places in `view.honest`. Losses are handed over to a more exact or a plainer method
    where that is needed and possible, and refused where double precision does not tell them.
    """
    squares, error, taken = _tried(view, noise_levels, False, places, method, device, progress)
    return squares * (1.0 + error), taken


def information_matrix(
    view: View, noise_levels: NoiseLevels, *, device: Device | None = None
) -> tuple[Array, float, str]:
    """Return all of B^T Sigma^-1 B, a bound on the norm of its error, and the method, for noise above 0."""
    squares, error, taken = _tried(view, noise_levels, True, None, "auto", device, None)
    return squares, float(error) / noise_levels.independent**2, taken


def _tried(
    view: View,
    noise_levels: NoiseLevels,
    matrix: bool,
    places: NDArray[np.intp] | None,
    method: Method,
    device: Device | None,
    progress: Progress | None,
) -> tuple[Array, Array | float, str]:
    """Return what the first method gives whose error is small enough, and that error: relative, if not of a matrix."""
    order, device = _order(view, noise_levels, matrix, places, method, device)
    hand_over = min(_TEN_DIGITS, _HAND_OVER_ERROR) if len(view.rows) <= _QUICK_ROWS else _HAND_OVER_ERROR
    best: tuple[Array, Array | float, str] | None = None
    for taken, following in zip(order, [*order[1:], None], strict=True):
        error: Array | float
        try:
            if taken == "conjugate-gradients":
                squares, error = _by_products(view, noise_levels, places, progress)
            elif taken == "state-space":
                squares, error = _filtered(view, noise_levels, matrix, device, progress)
            else:
                squares, error = (_dense.information_matrix if matrix else _dense.information)(view, noise_levels)
        except SingularView:
            continue
        except InvalidInput:
            if best is None:
                raise
            continue
        if places is not None and taken != "conjugate-gradients":
            squares, error = squares[places], np.broadcast_to(error, squares.shape)[places]
        if best is None or not np.max(best[1]) <= np.max(error):
            best = squares, error, taken
        if np.max(error) <= (hand_over if following == "dense" else _MAX_ERROR):
            break
    if best is None or not np.max(best[1]) <= _MAX_ERROR:
        raise InvalidInput(_TOO_CLOSE)
    return best


def _order(
    view: View,
    noise_levels: NoiseLevels,
    matrix: bool,
    places: NDArray[np.intp] | None,
    method: Method,
    device: Device | None,
) -> tuple[tuple[Method, ...], Device | None]:
    """Return the methods to be tried one after the other, and the device for the filter; None is a GPU, if it can."""
    suits = _suits(view, noise_levels, method)
    wanted = view.honest.size if places is None else places.size
    plain = view.fits and noise_levels.ratio <= _MAX_PLAIN_RATIO
    few = method == "auto" and suits and not matrix and device != "cuda"
    few = few and _few_products(view, noise_levels, wanted)
    if few and (places is not None or not _device.on_gpu(device, view, suits=True)):
        filtered = ("state-space",) if view.honest.size <= _MAX_FILTERED else ()
        return ("conjugate-gradients", *filtered, *(("dense",) if plain else ())), "cpu"
    order: tuple[Method, ...] = (method,)
    if method == "auto":
        plainer: tuple[Method, ...] = ("dense",) if plain else () if matrix else ("conjugate-gradients",)
        order = ("state-space", *plainer) if suits else ("dense",)
    on_gpu = _device.on_gpu(device, view, suits=order[0] == "state-space")
    return order, device if on_gpu else "cpu"


def _places(view: View, parties: Iterable[int]) -> NDArray[np.intp]:
    """Return where these parties are in `view.honest`."""
    if not isinstance(parties, Iterable):
        refuse("parties", parties, "the ids of some honest parties")
    ids = [integer("party", party, min=0) for party in parties]
    if not ids:
        refuse("the number of parties whose losses are wanted", 0, "at least 1")
    if len(set(ids)) < len(ids):
        refuse("parties", ids, "different from each other")
    places = np.searchsorted(view.honest, ids)
    for party, place in zip(ids, places, strict=True):
        if place == view.honest.size or view.honest[place] != party:
            must_be = f"an honest one of parties 0..{view.execution.parties - 1}"
            refuse("a party whose loss is wanted", party, must_be)
    return np.asarray(places)


def _few_products(view: View, noise_levels: NoiseLevels, wanted: int) -> bool:
    """Return whether conjugate gradients for so many parties are faster than the filter.

    A filter takes time in proportion to rows n_H^2, conjugate gradients to T n_H for each party, at least one batch of
    which goes with a batch of random right-hand sides. With little cancelling noise they need many more products.
    """
    products = _PAYS_BELOW * view.execution.rounds * max(wanted, 2 * WIDTH)
    return noise_levels.ratio >= 1.0 and products < len(view.rows) * view.honest.size


def _by_products(
    view: View, noise_levels: NoiseLevels, places: NDArray[np.intp] | None, progress: Progress | None
) -> tuple[Array, Array | float]:
    """Return what conjugate gradients give, and the estimate of its relative error."""
    ratio, topup = noise_levels.ratio, noise_levels.topup / noise_levels.independent
    wanted = np.arange(view.honest.size) if places is None else places
    squares, error = _conjugate_gradients.information(view, ratio, wanted, progress, topup=topup)
    return squares / noise_levels.independent**2, error


def _filtered(
    view: View, noise_levels: NoiseLevels, matrix: bool, device: Device | None, progress: Progress | None
) -> tuple[Array, Array | float]:
    """Return what the state-space method gives, and the estimate of its relative error; None is a GPU, if it can."""
    ratio, topup = noise_levels.ratio, noise_levels.topup / noise_levels.independent
    squares, error = _on_device(view, ratio, topup, matrix, device, progress)
    return squares / noise_levels.independent**2, error


def _on_device(
    view: View, ratio: float, topup: float, matrix: bool, device: Device | None, progress: Progress | None
) -> tuple[Array, Array | float]:
    if device != "cpu":
        try:
            return _device.information(view, ratio, progress, topup=topup, matrix=matrix)
        except MemoryError:  # others may work on the GPU, too
            if device == "cuda":
                raise InvalidInput("device cuda cannot be used here: its memory ran out") from None
            warnings.warn("the GPU is not used: its memory ran out", stacklevel=2)
    return _state_space.information(view, ratio, progress, topup=topup, matrix=matrix)


def _suits(view: View, noise_levels: NoiseLevels, method: str) -> bool:
    """Return whether the fast methods can be used; refuse one that was asked for and cannot."""
    one_of("method", method, get_args(Method))
    noisy = noise_levels.independent > 0 and noise_levels.cancelling > 0
    suits = noisy and view.execution.injection.mask_scales is not None
    if method in ("state-space", "conjugate-gradients") and not suits:
        refuse("method", method, f"dense, as {method} needs the incremental family and noise above 0")
    most = MAX_NOISE_RATIO if suits and method != "dense" else _MAX_PLAIN_RATIO
    if noisy and not 1 / _MAX_PLAIN_RATIO <= noise_levels.ratio <= most:
        must_be = f"from {1 / _MAX_PLAIN_RATIO:g} to {most:g}, where double precision suffices"
        refuse("sigma_cancelling / sigma_independent", noise_levels.ratio, must_be)
    return suits
