"""The trade-off between epsilon and delta when all that an adversary sees is a Gaussian shifted by mu.

Telling N(0, 1) from N(mu, 1) is exactly as hard as telling two neighbouring inputs from what our adversary sees
(fact F4), so mu says everything. Two rules turn it into (epsilon, delta):

- `exact`, the default, for every epsilon: delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
  (Balle, Wang 2018, "analytic Gaussian mechanism");
- `classic`, the paper's: mu = epsilon / c with c^2 = 2 ln(1.25/delta), proven for epsilon < 1 only (erratum E12).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import refuse

Rule = Literal["exact", "classic"]

_HALVINGS = 200  # ends long before: the midpoint of neighbouring doubles is one of them
_SMALL = 1e-2  # shifts below which neighbouring values of erfcx are subtracted by quadrature
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)  # exact to about (shift/2)^10


def log_delta(mu: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return ln delta(epsilon) of a Gaussian shift by mu, by the exact rule; shapes are broadcast.

    With a = mu/2 - epsilon/mu and b = a - mu, e^epsilon Phi(b) = e^(-a^2/2) erfcx(-b / sqrt 2) / 2, so neither
    e^epsilon nor the tails ever leave the range of doubles.

    >>> float(np.exp(log_delta(1.0, 1.0)).round(6))
    0.126937
    """
    shift, budget = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (mu, epsilon)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = shift / 2 - budget / shift
        x, y = -a / math.sqrt(2), (shift - a) / math.sqrt(2)
        tail = -a * a / 2 + np.log(_difference(x, y, shift) / 2)  # for a <= 0, or a small shift
        bulk = np.log(np.maximum(ndtr(a) - np.exp(-a * a / 2) * erfcx(y) / 2, 0.0))  # for a > 0
    result = np.where((a > 0) & (shift > _SMALL), bulk, tail)
    result = np.where(np.isinf(shift) & (budget < np.inf), 0.0, result)
    return np.where((shift == 0) | (budget == np.inf), -np.inf, result)


def delta_for(mu: ArrayLike, epsilon: float, rule: Rule = "exact") -> Array:
    """Return the least delta of each shift mu for a given epsilon.

    The classic rule gives 1.25 exp(-(epsilon/mu)^2 / 2), at most 1, and 1 (no guarantee) for epsilon >= 1.

    >>> delta_for([0.0, 0.5, np.inf], epsilon=1.0).round(6).tolist()
    [0.0, 0.00683, 1.0]
    """
    shift, budget = _shifts(mu), _epsilon(epsilon)
    if _rule(rule) == "exact":
        return np.exp(log_delta(shift, budget))
    if budget >= 1.0:
        return np.where(shift == 0, 0.0, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(shift == 0, 0.0, np.minimum(1.0, 1.25 * np.exp(-((budget / shift) ** 2) / 2)))


def epsilon_for(mu: ArrayLike, delta: float, rule: Rule = "exact") -> Array:
    """Return the least epsilon of each shift mu for a given delta; infinity where there is no guarantee.

    The exact rule's root is rounded up, so that the promise holds in floating point. The classic rule gives
    c mu where that is below 1 and infinity elsewhere.

    >>> epsilon_for([0.0, 0.05, np.inf], delta=1e-5).round(4).tolist()
    [0.0, 0.16, inf]
    >>> epsilon_for([0.05, 0.5], delta=1e-5, rule="classic").round(4).tolist()
    [0.2422, inf]
    """
    shift, chance = _shifts(mu), _delta(delta)
    if _rule(rule) == "classic":
        with np.errstate(invalid="ignore"):
            classic = np.where(shift == 0, 0.0, shift * _classic_constant(chance))
        return np.where(classic < 1.0, classic, np.inf)
    if chance in (0.0, 1.0):
        return np.where((shift == 0) | (chance == 1.0), 0.0, np.inf)
    distinct, places = np.unique(shift, return_inverse=True)
    finite = np.where(np.isinf(distinct), 0.0, distinct)
    # delta <= Phi(a) <= exp(-a^2/2) bounds the root from above.
    above = finite**2 / 2 + finite * math.sqrt(-2 * math.log(chance))
    wanted = math.log(chance)
    roots = _bisect(lambda budget: log_delta(finite, budget) <= wanted, np.zeros_like(finite), above)
    return np.asarray(np.where(np.isinf(distinct), np.inf, roots)[places].reshape(shift.shape))


def mu_for(epsilon: float, delta: float, rule: Rule = "exact") -> float:
    """Return the largest shift mu that is (epsilon, delta)-DP; the noise of a value of sensitivity s is s / mu.

    >>> round(1 / mu_for(0.1, 1e-5), 6), round(1 / mu_for(0.2, 1e-5, rule="classic") ** 2, 1)
    (30.749566, 586.8)
    """
    budget, chance = _epsilon(epsilon), _delta(delta)
    if _rule(rule) == "classic":
        if budget >= 1.0:
            raise refuse("epsilon", epsilon, "a number below 1 for the classic rule (it is proven only there)")
        constant = _classic_constant(chance)
        return budget / constant if constant > 0 else math.inf
    if chance == 1.0 or math.isinf(budget):
        return math.inf
    if chance == 0.0:
        return 0.0
    wanted, high = math.log(chance), 1.0
    while log_delta(high, budget) <= wanted:
        high *= 2.0
    too_much = _bisect(lambda shift: log_delta(shift, budget) > wanted, np.zeros(1), np.array([high]))
    return float(np.nextafter(too_much[0], 0.0))


def compose(*shifts: ArrayLike) -> Array:
    """Return the shift of several independent releases about the same person: the root of the sum of squares.

    >>> float(compose(0.3, 0.4))
    0.5
    """
    return np.asarray(np.sqrt(np.sum([_shifts(each) ** 2 for each in shifts], axis=0)))


def _difference(x: Array, y: Array, shift: Array) -> Array:
    """Return erfcx(x) - erfcx(y) for x <= y = x + shift / sqrt 2, without cancellation where the shift is small."""
    plain = erfcx(np.maximum(x, 0.0)) - erfcx(y)
    nodes = x[..., np.newaxis] + (_NODES + 1) / 2 * (y - x)[..., np.newaxis]
    slopes = 2 / math.sqrt(math.pi) - 2 * nodes * erfcx(nodes)  # minus the derivative of erfcx
    small = (y - x) / 2 * (slopes @ _WEIGHTS)
    return np.maximum(np.where(shift <= _SMALL, small, plain), 0.0)


def _bisect(met: Callable[[Array], Flags], low: Array, high: Array) -> Array:
    """Return, entry by entry, the least double known to satisfy `met`, which holds at `high` and is monotone."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    high = np.where(met(low), low, high)
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if not ((middle > low) & (middle < high)).any():
            break
        good = met(middle)
        high, low = np.where(good, middle, high), np.where(good, low, middle)
    return high


def _classic_constant(delta: float) -> float:
    return math.inf if delta == 0 else math.sqrt(max(0.0, 2 * math.log(1.25 / delta)))


def _rule(rule: str) -> str:
    if rule not in ("exact", "classic"):
        raise refuse("rule", rule, "exact or classic")
    return rule


def _shifts(mu: ArrayLike) -> Array:
    shift = np.asarray(mu, dtype=np.float64)
    if not (shift >= 0).all():
        raise refuse("mu", float(shift[~(shift >= 0)].flat[0]), "a number of at least 0")
    return shift


def _epsilon(epsilon: float) -> float:
    if isinstance(epsilon, (bool, str)) or not float(epsilon) >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    return float(epsilon)


def _delta(delta: float) -> float:
    if isinstance(delta, (bool, str)) or not 0.0 <= float(delta) <= 1.0:
        raise refuse("delta", delta, "a number from 0 to 1")
    return float(delta)
