"""How much cancelling noise suffices for all but a tiny fraction of random schedules and adversaries.

A sampled view tells, for each of its honest parties, the least ratio of the two variances with which that party's loss
meets its target. The largest of N samples says little about a probability of 1e-6. Their tail does: what exceeds a high
threshold follows a generalised Pareto distribution (Balkema, de Haan 1974; Pickands 1975), whose two parameters we
estimate by probability-weighted moments (Hosking, Wallis 1987). Two cautions: a tail is never taken to be bounded (its
shape is at least 0), and the result is an upper confidence limit, bootstrapped over views, as the parties of a view are
dependent.

This is an extrapolation, not a proof. docs/planner.md holds it against simulations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array
from inca._base.validation import between_0_and_1, finite_array, finite_float, generator, refuse

_TAIL_FRACTION = 0.05  # of the samples
_MIN_TAIL_SAMPLES = 50
_MIN_SAMPLES_ABOVE = 50  # a quantile with which it is read off, not extrapolated
_RESAMPLES = 400
_MAX_SHAPE = 0.9  # a generalised Pareto distribution of shape 1 has no mean, and moments say nothing


def least_ratios(squares: Array, stiffness: Array, targets: Array) -> Array:
    """Return, for every target and party, the least ratio r with h_i(r) <= target; infinity if none will do.

    h_i(r) = sum_j squares[i, j] / (1 + r stiffness[j]) is the squared loss of party i, in units of 1 over the variance
    of the independent noise, if the cancelling noise has r times that variance. All mechanisms of this kind have that
    shape: with GOPA, the stiffness are the eigenvalues of the honest graph's Laplacian.

    >>> least_ratios(np.eye(2), np.array([0.0, 4.0]), np.array([1.0, 0.2])).round(3).tolist()
    [[0.0, 0.0], [inf, 1.0]]
    """
    ratios = np.geomspace(1e-6, 1e9, 320)
    with np.errstate(invalid="ignore"):
        loss = squares @ (1.0 / (1.0 + np.multiply.outer(stiffness, ratios)))
    log_targets = -np.log(targets)
    log_ratios = np.empty((targets.size, len(squares)))
    for party, curve in enumerate(loss):
        # h is smooth and falls in r, so it is inverted in logarithms, where it is nearly straight; exact to 1e-3.
        falling = -np.log(np.maximum(curve, np.finfo(float).tiny))
        log_ratios[:, party] = np.interp(log_targets, falling, np.log(ratios), left=-np.inf, right=np.inf)
    return np.where(targets[:, np.newaxis] >= 1.0, 0.0, np.maximum(np.exp(log_ratios), ratios[0]))


def tail_level(
    samples: Sequence[Array], probability: float, rng: np.random.Generator | None = None, *, confidence: float = 0.95
) -> float:
    """Return the level that an entry exceeds with at most the given probability, with the stated confidence.

    `samples` holds one array per independent view. Without a generator for resampling the result is the plain estimate.
    If even one entry is infinite, no level will do.

    >>> rng = np.random.default_rng(1)
    >>> views = [rng.exponential(size=200) for _ in range(100)]
    >>> round(tail_level(views, 1e-8), 1), round(tail_level(views, 1e-8, rng), 1)  # the truth is 18.4
    (18.1, 21.1)
    """
    if not finite_float("probability", probability, 0.0, 1.0) > 0.0:
        refuse("probability", probability, "above 0")
    between_0_and_1("confidence", confidence)
    everything = np.concatenate(samples) if samples else np.empty(0)
    if everything.size < 2:
        refuse("the number of samples", everything.size, "at least 2")
    if np.isinf(everything).any():
        return math.inf
    finite_array("samples", everything, (1,), "(N,)")
    repeats = np.ones((1, len(samples)))
    if rng is not None:
        drawn = generator(rng).multinomial(len(samples), np.full(len(samples), 1.0 / len(samples)), _RESAMPLES)
        repeats = np.vstack([repeats, drawn])
    allowed = probability * (repeats @ np.array([float(view.size) for view in samples]))
    tail, _ = tail_size(everything.size, probability)
    threshold = float(np.quantile(everything, 1.0 - tail))
    views, excess = _excesses(samples, threshold)
    levels = threshold + _exceeded(excess, repeats[:, views], allowed)
    level = float(levels[0])
    if rng is not None:
        level = max(level, float(np.quantile(levels[1:], confidence, method="higher")))
    # Where nothing was seen to exceed a level of this probability, nothing seen may exceed the level.
    return level if probability * everything.size > 1.0 else max(level, float(everything.max()))


def tail_size(samples: int, probability: float) -> tuple[float, float]:
    """Return the fraction of so many samples that the tail is fitted to, and how many these are.

    >>> tail_size(54_000, 1e-9), tail_size(200, 1e-9)
    ((0.05, 2700.0), (0.25, 50.0))
    """
    tail = min(0.5, max(_TAIL_FRACTION, _MIN_TAIL_SAMPLES / samples, 2.0 * probability))
    return tail, tail * samples


def _excesses(samples: Sequence[Array], threshold: float) -> tuple[NDArray[np.intp], Array]:
    """Return from which views the samples above the threshold are, and by how much they exceed it, in order."""
    by_view = [view[view > threshold] - threshold for view in samples]
    views = np.repeat(np.arange(len(samples)), [above.size for above in by_view])
    excess = np.concatenate(by_view)
    order = np.argsort(excess, kind="stable")
    return views[order], excess[order]


def _exceeded(excess: Array, weights: Array, allowed: Array) -> Array:
    """Return, for each row of weights of the sorted excesses, the level that `allowed` of them exceed (maybe 0.01)."""
    count = weights.sum(axis=1)
    few = (count < 2.0) | (allowed >= count)
    count = np.where(few, 2.0, count)
    above = count[:, np.newaxis] - np.cumsum(weights, axis=1)
    # Here E[X] = scale / (1 - shape) and E[X (1 - F(X))] = scale / (4 - 2 shape), which estimate both. Copies
    # of a sample lie above one another half of the time.
    mean = weights @ excess / count
    product = np.einsum("bi,i,bi->b", weights, excess, above + (weights - 1.0) / 2.0) / (count * (count - 1.0))
    spread = mean - 2.0 * product
    shape = np.clip(2.0 - mean / np.where(spread > 0.0, spread, np.inf), 0.0, _MAX_SHAPE)
    shape = np.where(spread > 0.0, shape, 0.0)
    decades = np.log(count) - np.log(np.maximum(np.minimum(allowed, count), np.finfo(float).smallest_subnormal))
    growth = np.where(shape > 1e-6, np.expm1(shape * decades) / np.maximum(shape, 1e-6), decades)
    level = mean * (1.0 - shape) * growth
    if excess.size:
        # Where enough samples lie above it, the level is read off.
        read_off = excess[np.minimum((above > allowed[:, np.newaxis]).sum(axis=1), excess.size - 1)]
        level = np.where(allowed >= _MIN_SAMPLES_ABOVE, read_off, level)
    return np.where(few, 0.0, level)
