"""mu is the mu of mu-GDP (Dong, Roth, Su 2022, "Gaussian differential privacy"), and what it means as (epsilon, delta).

A mechanism is mu-GDP if telling two neighbouring inputs apart is at least as hard as telling N(0, 1) from N(mu, 1).
What our adversary sees is Gaussian, so for its best test the two are exactly as hard (fact F4), and mu says everything.
Losses of independent releases compose as mu^2 = mu_1^2 + mu_2^2 + ... Two rules turn mu into (epsilon, delta):

- `analytic`, the default, exact for every epsilon (Balle, Wang 2018, "analytic Gaussian mechanism"):
  delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu);
- `classic`, the paper's: mu = epsilon / c with c^2 = 2 ln(1.25/delta), proven for epsilon < 1 only (erratum E12).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr

from inca._base.kernels import Flags
from inca._base.options import Rule
from inca._base.types import Array
from inca._base.validation import finite_float, one_of, real_array, refuse

"""How mu is turned into (epsilon, delta)."""

_IN_FILES: dict[Rule, str] = {"analytic": "exact", "classic": "classic"}
_MAX_STEPS = 200  # of a search for a root, which ends long before, as there is no double between neighbours
_EVALUATED_AT_ONCE = 127  # as many as take little longer than one
_SMALL = 1e-2  # shifts below which neighbouring values of erfcx are subtracted by quadrature
_LEAST_MU = 1e-100  # whose square, which budgets add up, is still a double
_LARGEST_EPSILON = 1e13  # above, rounding in mu/2 - epsilon/mu could be seen in delta
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)  # exact to about (shift/2)^10


def rule_to_file(rule: Rule) -> str:
    """Return the word for a rule in plans, rosters and certificates, whose formats call the analytic rule `exact`."""
    return _IN_FILES[_check_rule(rule)]


def rule_from_file(word: str) -> Rule:
    """Return the rule that a plan, roster or certificate names.

    >>> rule_from_file("exact")
    'analytic'
    """
    for rule, name in _IN_FILES.items():
        if word == name:
            return rule
    refuse("rule", word, "exact or classic")


def log_delta(mu: ArrayLike, epsilon: ArrayLike) -> Array:
    """Return ln delta(epsilon) of mu-GDP by the analytic rule; shapes are broadcast.

    With a = mu/2 - epsilon/mu and b = a - mu, e^epsilon Phi(b) = e^(-a^2/2) erfcx(-b / sqrt 2) / 2, so neither
    e^epsilon nor the tails ever leave the range of doubles. A finite epsilon above 1e13 counts as 1e13, so that delta
    is never too small.

    >>> float(np.exp(log_delta(1.0, 1.0)).round(6))
    0.126937
    """
    shift, budget = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), np.asarray(epsilon, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = shift / 2 - np.minimum(budget, _LARGEST_EPSILON) / shift
        x, y = -a / math.sqrt(2), (shift - a) / math.sqrt(2)
        tail = -a * a / 2 + np.log(_difference(x, y, shift) / 2)  # for a <= 0, or a small shift
        bulk = np.log(np.maximum(ndtr(a) - np.exp(-a * a / 2) * erfcx(y) / 2, 0.0))  # for a > 0
    result = np.where((a > 0) & (shift > _SMALL), bulk, tail)
    result = np.where(np.isinf(shift) & (budget < np.inf), 0.0, result)
    return np.where((shift == 0) | (budget == np.inf), -np.inf, result)


def delta_for(mu: ArrayLike, epsilon: float, rule: Rule = "analytic") -> Array:
    """Return the least delta with which mu-GDP implies (epsilon, delta)-DP.

    By the analytic rule delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). By the classic one
    delta = 1.25 exp(-(epsilon/mu)^2 / 2), at most 1, and 1 (no guarantee) for epsilon >= 1.

    Args:
        mu: One loss or an array of them, each at least 0; infinity means no privacy.
        epsilon: At least 0, infinity included.
        rule: `analytic` or `classic`.

    Returns:
        One delta for each mu.

    Raises:
        InvalidInput: If mu or epsilon is negative or not a number, or the rule is unknown.

    Example:
        >>> delta_for([0.0, 0.5, np.inf], epsilon=1.0).round(6).tolist()
        [0.0, 0.00683, 1.0]
    """
    shift, budget = _check_mu(mu), _check_epsilon(epsilon)
    if _check_rule(rule) == "analytic":
        return np.exp(log_delta(shift, budget))
    if budget >= 1.0:
        return np.where(shift == 0, 0.0, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(shift == 0, 0.0, np.minimum(1.0, 1.25 * np.exp(-((budget / shift) ** 2) / 2)))


def epsilon_for(mu: ArrayLike, delta: float, rule: Rule = "analytic") -> Array:
    """Return the least epsilon with which mu-GDP implies (epsilon, delta)-DP.

    The analytic rule inverts `delta_for`; the root is rounded up, so that the promise holds in floating point. The
    classic rule gives epsilon = c mu with c^2 = 2 ln(1.25/delta) where that is below 1, and infinity elsewhere.

    Args:
        mu: One loss or an array of them, each at least 0; infinity means no privacy.
        delta: From 0 to 1.
        rule: `analytic` or `classic`.

    Returns:
        One epsilon for each mu; infinity where there is no guarantee.

    Raises:
        InvalidInput: If mu is negative or not a number, delta out of range, or the rule unknown.

    Example:
        >>> epsilon_for([0.0, 0.05, np.inf], delta=1e-5).round(4).tolist()
        [0.0, 0.16, inf]
        >>> epsilon_for([0.05, 0.5], delta=1e-5, rule="classic").round(4).tolist()
        [0.2422, inf]
    """
    shift, delta = _check_mu(mu), finite_float("delta", delta, 0.0, 1.0)
    if _check_rule(rule) == "classic":
        with np.errstate(invalid="ignore"):
            classic = np.where(shift == 0, 0.0, shift * _classic_constant(delta))
        return np.where(classic < 1.0, classic, np.inf)
    if delta in (0.0, 1.0):
        return np.where((shift == 0) | (delta == 1.0), 0.0, np.inf)
    distinct, places = np.unique(shift, return_inverse=True)
    finite = np.where(np.isinf(distinct), 0.0, distinct)
    target = math.log(delta)
    # delta <= Phi(a) <= exp(-a^2/2) bounds the root from above, closely where it is too large to be searched for.
    with np.errstate(over="ignore"):
        above = finite * (finite / 2 + math.sqrt(-2 * target)) * (1 + 1e-15)
    high = np.minimum(above, _LARGEST_EPSILON)
    roots = _least(lambda budget: log_delta(finite, budget) <= target, np.zeros_like(finite), high, first=False)
    roots = np.where(above < _LARGEST_EPSILON, roots, above)
    return np.asarray(np.where(np.isinf(distinct), np.inf, roots)[places].reshape(shift.shape))


def mu_for(epsilon: float, delta: float, rule: Rule = "analytic") -> float:
    """Return the largest mu with which mu-GDP implies (epsilon, delta)-DP.

    A value of sensitivity s has that mu under Gaussian noise of standard deviation s / mu.

    Args:
        epsilon: At least 0, infinity included; below 1 for the classic rule.
        delta: From 0 to 1.
        rule: `analytic` or `classic`.

    Returns:
        mu, rounded down, to 0 below 1e-100; infinity where any loss is allowed.

    Raises:
        InvalidInput: If epsilon or delta is out of range, or the rule unknown.

    Example:
        >>> round(1 / mu_for(0.1, 1e-5), 6), round(1 / mu_for(0.2, 1e-5, rule="classic") ** 2, 1)
        (30.749566, 586.8)
    """
    budget, delta = _check_epsilon(epsilon), finite_float("delta", delta, 0.0, 1.0)
    if _check_rule(rule) == "classic":
        if budget >= 1.0:
            refuse("epsilon", epsilon, "below 1 for the classic rule, which is proven only there")
        constant = _classic_constant(delta)
        mu = budget / constant if constant > 0 else math.inf
    elif delta == 1.0 or math.isinf(budget):
        mu = math.inf
    else:
        mu = _analytic_mu(budget, delta) if delta > 0.0 else 0.0
    return mu if mu >= _LEAST_MU else 0.0


def compose(*losses: ArrayLike) -> Array:
    """Return the mu of several independent releases about the same person: the root of the sum of squares.

    >>> float(compose(0.3, 0.4))
    0.5
    """
    return np.asarray(np.sqrt(np.sum([_check_mu(mu) ** 2 for mu in losses], axis=0)))


def _difference(x: Array, y: Array, shift: Array) -> Array:
    """Return erfcx(x) - erfcx(y) for x <= y = x + shift / sqrt 2, without cancellation where the shift is small."""
    plain = np.maximum(erfcx(np.maximum(x, 0.0)) - erfcx(y), 0.0)
    if not (shift <= _SMALL).any():
        return plain
    width = shift / math.sqrt(2)  # y - x would lose its digits, or all of a shift below an ulp of x
    nodes = x[..., np.newaxis] + (_NODES + 1) / 2 * width[..., np.newaxis]
    slopes = 2 / math.sqrt(math.pi) - 2 * nodes * erfcx(nodes)  # minus the derivative of erfcx
    small = width / 2 * (slopes @ _WEIGHTS)
    return np.where(shift <= _SMALL, np.maximum(small, 0.0), plain)


def _least(met: Callable[[Array], Flags], low: Array, high: Array, *, first: bool) -> Array:
    """Return, entry by entry, the least double known to satisfy `met`, which holds at `high` and is monotone.

    This is bisection into more than two parts, as `met` takes little longer on many numbers than on one. Rounding may
    make `met` waver: then the result is the first place that was seen to satisfy it, or lies above the last place that
    was seen not to.
    """
    cuts = max(1, _EVALUATED_AT_ONCE // max(1, low.size))
    parts = np.arange(1, cuts + 1).reshape(-1, *(1,) * low.ndim) / (cuts + 1)
    no = np.zeros_like(low, dtype=bool)
    high = np.where(met(low), low, high)
    for _ in range(_MAX_STEPS):
        between = low + (high - low) * parts
        if not ((between > low) & (between < high)).any():
            break
        bounds = np.concatenate([low[np.newaxis], between, high[np.newaxis]])
        good = np.concatenate([[no], met(between) & (between > low) | (between >= high), [~no]])
        place = np.argmax(good, axis=0) if first else len(good) - np.argmax(~good[::-1], axis=0)
        low, high = (np.take_along_axis(bounds, place[np.newaxis] - step, axis=0)[0] for step in (1, 0))
    return high


@lru_cache  # training asks for the same guarantee in every step
def _analytic_mu(epsilon: float, delta: float) -> float:
    target, high = math.log(delta), 1.0
    if epsilon > _LARGEST_EPSILON:  # by the bound of `epsilon_for`, solved for mu
        tail = math.sqrt(-2 * target)
        return 2 * (epsilon / (tail + math.hypot(tail, math.sqrt(2) * math.sqrt(epsilon)))) * (1 - 1e-15)
    while log_delta(high, epsilon) <= target:
        high *= 2.0
    too_much = _least(lambda shift: log_delta(shift, epsilon) > target, np.zeros(1), np.array([high]), first=True)
    return float(np.nextafter(too_much[0], 0.0))


def _classic_constant(delta: float) -> float:
    return math.inf if delta == 0 else math.sqrt(max(0.0, 2 * (math.log(1.25) - math.log(delta))))


def _check_rule(rule: Rule) -> Rule:
    one_of("rule", rule, _IN_FILES)
    return rule


def _check_mu(mu: ArrayLike) -> Array:
    shift = real_array("mu", mu, "or a number")
    if not (shift >= 0).all():
        refuse("mu", float(shift[~(shift >= 0)].flat[0]), "at least 0")
    return shift


def _check_epsilon(epsilon: float) -> float:
    """Return epsilon; unlike other numbers, it may be infinite."""
    return math.inf if isinstance(epsilon, float) and epsilon == math.inf else finite_float("epsilon", epsilon, min=0.0)
