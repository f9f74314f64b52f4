"""Bound the loss of every honest party whom hidden messages join with others: proven for any number of parties.

Let J be the honest parties of the cohort that hidden messages join with party i, whoever sent to whom. Party j injects
the part w_j of its value, tops up when it settles, and is present in m_j rounds; V is the sum over J of
v_j = w_j^2 sigma_*^2 + sigma_top^2. Hang a tree of hidden messages from i, and let phi_j be w_i / V times the sum of
v_k over j and all parties below it. Then (docs/settlement.md has the proof)

    mu_i^2 <= s^2 [ w_i^2 / V + sum_J (m_j + 5) phi_j^2 / sigma_Delta^2 ]            (tree)
           <= s^2 [ w_i^2 / V + w_i^2 sum_J (m_j + 5) / sigma_Delta^2 ]            (closed)
           <= s^2 [ w_i^2 / V + (T + 6) |J| w_i^2 / sigma_Delta^2 ],

if each hidden message goes to one party, which gets at least half of it, portions of the value are not negative, and
each round present has a fresh mask, all of one variance. Formulas are evaluated in rational arithmetic and rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction

from inca._base.validation import finite_float, integer, positive, refuse

MORE = 5  # squares of phi_j for messages that carry something, less the final message, which has no mask
_MORE_MASKS = 1 + MORE  # T + 6 with T + 1 rounds present


def squared_loss_bound(
    *, weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> float:
    """Return mu_i^2 at most: s^2 [ w_i^2 / V + (T + 6) |J| w_i^2 / sigma_Delta^2 ], rounded up.

    Args:
        weight: w_i, the part of its value that the party injects: 1 if it missed no round.
        variance: V, the independent variance of J: the sum of w_j^2 sigma_*^2 + sigma_top^2.
        joined: |J|, how many honest parties of the cohort hidden messages join with this one, itself included.
        rounds: T.
        cancelling_variance: sigma_Delta^2.
        sensitivity: s.

    Returns:
        The bound; infinity if V or sigma_Delta^2 is 0, and 0 for a party that injects nothing.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> squared_loss_bound(
        ...     weight=1.0, variance=4.0, joined=9, rounds=2, cancelling_variance=7200.0, sensitivity=1.0
        ... )
        0.26
    """
    return rounded_up(_closed(weight, variance, joined, rounds, cancelling_variance, sensitivity))


def loss_bound(
    *, weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> float:
    """Return mu_i at most: the root of `squared_loss_bound`, rounded up once.

    So it is at most mu if and only if the inequality gives at most mu, to the last digit.

    Example:
        >>> numbers = {"weight": 1.0, "joined": 9, "rounds": 2, "sensitivity": 1.0}
        >>> enough = least_cancelling_variance(mu=0.3, variance=12.0, **numbers)
        >>> loss_bound(variance=12.0, cancelling_variance=enough, **numbers)
        0.3
    """
    return root_rounded_up(_closed(weight, variance, joined, rounds, cancelling_variance, sensitivity))


def least_cancelling_variance(
    *, mu: float, weight: float, variance: float, joined: int, rounds: int, sensitivity: float
) -> float:
    """Return the least sigma_Delta^2 with which the inequality gives at most mu, rounded up.

    It is (T + 6) |J| w_i^2 s^2 / (mu^2 - s^2 w_i^2 / V).

    Args:
        mu: The loss that is allowed, above 0.
        weight: w_i.
        variance: V.
        joined: |J|.
        rounds: T.
        sensitivity: s.

    Returns:
        The variance; infinity if the independent noise alone allows a loss of mu or more.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> numbers = {"weight": 1.0, "joined": 9, "rounds": 2, "sensitivity": 1.0}
        >>> least_cancelling_variance(mu=0.5, variance=8.0, **numbers)
        576.0
        >>> least_cancelling_variance(mu=0.5, variance=4.0, **numbers)
        inf
    """
    allowed, reach, cost = _wanted(mu, weight, joined, rounds, sensitivity)
    if not reach:
        return 0.0
    if not (independent := Fraction(finite_float("variance", variance, min=0.0))):
        return math.inf
    left = allowed - reach / independent
    return rounded_up(cost * reach / left) if left > 0 else math.inf


def cancelling_variance_for_factor(
    *, factor: float, mu: float, weight: float, joined: int, rounds: int, sensitivity: float
) -> float:
    """Return the least sigma_Delta^2 if V is `factor` times the w_i^2 s^2 / mu^2 that would do alone, rounded up.

    Such a V leaves (1 - 1 / factor) mu^2 for the masks, hence (T + 6) |J| w_i^2 s^2 / ((1 - 1 / factor) mu^2).

    Args:
        factor: Above 1.
        mu: The loss that is allowed, above 0.
        weight: w_i.
        joined: |J|.
        rounds: T.
        sensitivity: s.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> cancelling_variance_for_factor(factor=1.25, mu=0.5, weight=1.0, joined=9, rounds=2, sensitivity=1.0)
        1440.0
    """
    allowed, reach, cost = _wanted(mu, weight, joined, rounds, sensitivity)
    if not (exact := Fraction(finite_float("factor", factor))) > 1:
        refuse("factor", factor, "above 1")
    return rounded_up(cost * reach * exact / (allowed * (exact - 1)))


def loss_of_cost(reach: Fraction, variance: Fraction, cost: Fraction | int, cancelling: Fraction) -> Fraction | None:
    """Return s^2 w_i^2 [ 1 / V + cost / sigma_Delta^2 ], of reach = s^2 w_i^2 and V; None for infinity."""
    if not reach:
        return Fraction(0)
    if not variance or not cancelling:
        return None
    return reach / variance + reach * cost / cancelling


def _closed(
    weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> Fraction | None:
    cost, reach = _cost(joined, rounds), _reach(weight, sensitivity)
    independent = Fraction(finite_float("variance", variance, min=0.0))
    cancelling = Fraction(finite_float("cancelling_variance", cancelling_variance, min=0.0))
    return loss_of_cost(reach, independent, cost, cancelling)


def _wanted(
    mu: float, weight: float, joined: int, rounds: int, sensitivity: float
) -> tuple[Fraction, Fraction, Fraction]:
    return Fraction(positive("mu", mu)) ** 2, _reach(weight, sensitivity), _cost(joined, rounds)


def _reach(weight: float, sensitivity: float) -> Fraction:
    distance = Fraction(finite_float("sensitivity", sensitivity, min=0.0))
    return (distance * Fraction(finite_float("weight", weight, min=0.0))) ** 2


def _cost(joined: int, rounds: int) -> Fraction:
    return Fraction((integer("rounds", rounds, min=1) + _MORE_MASKS) * integer("joined", joined, min=1))


def rounded_up(number: Fraction | None) -> float:
    """Return the least double that is not below; None is infinity."""
    try:
        near = math.inf if number is None else float(number)
    except OverflowError:
        return math.inf
    return near if number is None or near >= number else math.nextafter(near, math.inf)


def root_rounded_up(square: Fraction | None) -> float:
    """Return the least double whose square is not below; None is infinity.

    With a root of more than 64 bits before the point, no double lies between the true root and that of the integer.
    """
    if not square:
        return math.inf if square is None else 0.0
    top, bottom = square.as_integer_ratio()
    shift = max(0, 64 - (top.bit_length() - bottom.bit_length()) // 2)
    scaled = -(-(top << 2 * shift) // bottom)
    return rounded_up(Fraction(math.isqrt(scaled - 1) + 1, 1 << shift))
