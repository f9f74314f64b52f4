"""How likely a random schedule hides too little, before it is drawn: proven bounds, instant for any number of parties.

Theorem 2 needs the edge vectors of the hidden messages to have rank n_H - 1. It fails only if some set S of honest
parties is cut off from the others (k = 1), or if two disjoint sets are closed (k > 1). So we sum, over the sizes s
of such sets, how many there are times the probability of one. The proofs are in docs/failure-probability.md, cited here
as C1 to C7.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from inca._base.types import Array
from inca._base.validation import finite_float, integer, refuse, whole_parties
from inca.privacy.theorems._cut_probabilities import (
    FailureSetting,
    log_all_within,
    log_cut_distinct,
    log_cut_permutation,
    log_cut_random,
    log_number_of_sets,
    log_sum,
    size_blocks,
)
from inca.privacy.theorems._stayers import stayers_curve

SCHEDULES = ("random", "distinct", "permutation")


def log_failure_bound(
    parties: int,
    colluding: int,
    rounds: int,
    *,
    receivers: int = 1,
    schedule: str = "random",
    eavesdropped: float = 0.0,
    leavers: int = 0,
    away: float = 0.0,
) -> float:
    """Return the natural logarithm of `failure_bound`, for probabilities too small to be written as floats.

    It is minus infinity where failure is impossible, as with a single honest party.

    >>> round(log_failure_bound(5000, colluding=2500, rounds=16) / math.log(10), 2)
    -4.89
    >>> round(log_failure_bound(10**9, colluding=10**8, rounds=1000) / math.log(10))
    -1382
    """
    total = integer("rounds", rounds, min=1, max=2**31 - 1)
    curve, longest = _curve(parties, colluding, receivers, schedule, eavesdropped, (leavers, away))
    if total > longest:
        refuse("receivers times rounds", receivers * total, f"below the number of parties ({parties})")
    return curve(total)


def failure_bound(
    parties: int,
    colluding: int,
    rounds: int,
    *,
    receivers: int = 1,
    schedule: str = "random",
    eavesdropped: float = 0.0,
    leavers: int = 0,
    away: float = 0.0,
) -> float:
    """Return an upper bound on the probability that messages hide too little: the precondition of Theorem 2 fails.

    n parties, of which `colluding` collude and n_H do not, send for T rounds to k receivers each; of the n messages
    of a round, the fraction `eavesdropped` (rounded up to f n of them) is eavesdropped on, chosen at random. For k = 1
    and the schedule `random` it is, with g = (1 - f) / (n - 1), the sum over s <= n_H / 2 of

        C(n_H, s) (1 - g (n_H - s))^(s T) (1 - g s)^((n_H - s) T),

    half of the last term if s = n_H / 2. docs/failure-probability.md has the sums for the other schedules and for
    k > 1, which `permutation` does not offer.

    If parties leave, those who stay are meant: some of them, but not all, exchange no hidden message with any other
    honest party, whether it stays or has yet to leave. (What a leaver has not cancelled protects it, and whoever it
    exchanged a hidden message with.)

    Example:
        >>> [round(failure_bound(100, colluding=50, rounds=rounds), 6) for rounds in (6, 8, 10)]
        [0.043177, 0.003968, 0.000373]
        >>> round(failure_bound(100, colluding=50, rounds=10, schedule="permutation"), 6)
        5.8e-05
        >>> f"{failure_bound(100, colluding=30, rounds=9, schedule='permutation', leavers=20):.2g}"
        '1.9e-06'
    """
    log_bound = log_failure_bound(
        parties,
        colluding,
        rounds,
        receivers=receivers,
        schedule=schedule,
        eavesdropped=eavesdropped,
        leavers=leavers,
        away=away,
    )
    return math.exp(log_bound)


def least_rounds(
    parties: int,
    colluding: int,
    probability: float,
    *,
    receivers: int = 1,
    schedule: str = "random",
    eavesdropped: float = 0.0,
    absent: tuple[int, float] = (0, 0.0),
    max_rounds: int = 10_000,
) -> int:
    """Return the least T whose `failure_bound` is at most `probability`; refuse if that is more than `max_rounds`.

    `absent` says how many leave, and with which probability the others miss a round.

    >>> least_rounds(1000, colluding=100, probability=1e-6)
    7
    >>> least_rounds(1000, colluding=100, probability=1e-6, schedule="permutation")
    5
    """
    if not finite_float("probability", probability, 0.0, 1.0) > 0.0:
        refuse("probability", probability, "above 0")
    curve, longest = _curve(parties, colluding, receivers, schedule, eavesdropped, absent)
    longest = min(integer("max_rounds", max_rounds, min=1, max=2**31 - 1), longest)
    target = math.log(probability)
    enough = 1
    while curve(enough) > target:
        if enough == longest:
            bound = math.exp(curve(longest))
            refuse("probability", probability, f"at least {bound:.3g}, the bound after {longest} rounds")
        enough = min(2 * enough, longest)
    return bisect_left(range(enough), True, lo=enough // 2 + 1, key=lambda rounds: curve(rounds) <= target)


@lru_cache(maxsize=512)
def _curve(
    parties: int,
    colluding: int,
    receivers: int,
    schedule: str,
    eavesdropped: float,
    absent: tuple[int, float] = (0, 0.0),
) -> tuple[Callable[[int], float], int]:
    """Return the logarithm of the bound as a function of T, and the largest T that the schedule allows."""
    n = integer("parties", parties, min=2, max=2**31 - 1)
    c = integer("colluding", colluding)
    if c >= n:
        refuse("colluding", colluding, f"below the number of parties ({n}), so that someone is left to protect")
    k = integer("receivers", receivers, min=1)
    if k >= n:
        refuse("receivers", receivers, f"below the number of parties ({n})")
    if schedule not in SCHEDULES:
        refuse("schedule", schedule, "one of " + ", ".join(SCHEDULES))
    if schedule == "permutation" and k > 1:
        refuse("receivers", receivers, "1 for permutations, as no bound is proven for more")
    gone, missed = integer("leavers", absent[0], 0, n), finite_float("away", absent[1], 0.0, 1.0)
    if missed and (k > 1 or schedule == "distinct"):
        refuse("away", absent[1], "0 for several receivers or distinct ones, as no bound is proven for more")
    eavesdropped = whole_parties("eavesdropped", eavesdropped, n) / n
    longest = (n - 1) // k if schedule == "distinct" else 2**31 - 1
    setting = FailureSetting(n, n - c, eavesdropped, *size_blocks((n - c) // 2))

    if n - c == 1 or gone == n:
        return lambda rounds: -math.inf, longest
    if missed == 1.0:
        return lambda rounds: 0.0, longest
    if k > 1:
        return _two_closed(setting, k, gone), longest
    log_cut = log_cut_permutation if schedule == "permutation" else log_cut_random
    log_number = log_number_of_sets(setting)
    if gone or missed:
        return stayers_curve(setting, log_cut, gone, missed, log_number), longest
    if setting.honest == 2 * setting.first[-1]:
        log_number[-1] -= math.log(2.0)  # of the sets of half of the parties, each split has two
    if schedule == "distinct" and eavesdropped == 0:
        return lambda rounds: min(0.0, log_sum(log_number, log_cut_distinct(setting, rounds), rounds)), longest
    per_round = log_cut(setting)
    return lambda rounds: min(0.0, log_sum(log_number, rounds * per_round, rounds)), longest


@np.errstate(divide="ignore")
def _two_closed(setting: FailureSetting, k: int, leavers: int) -> Callable[[int], float]:
    """Bound the probability that there are two disjoint closed sets, as a function of T (C5).

    Leavers count as colluders, so that at least h - leavers honest parties are left (C7).
    """
    n, f, counted = setting.parties, setting.eavesdropped, setting.honest
    h = counted - leavers
    if h < 2:  # too few may be left for any set to send out of
        return lambda rounds: 0.0
    log_hidden = log_all_within(np.array(h - 1.0), np.array(float(n - h)), k, above=False)

    def log_stay(sizes: Array) -> Array:
        """Log of the probability that a message is seen or stays within a set of that size."""
        log_inside = log_all_within(np.minimum(sizes, h) - 1, np.maximum(h - sizes, 0.0), k)
        leave = -(1.0 - f) * np.exp(log_hidden) * np.expm1(log_inside)
        log_either = np.logaddexp(np.log(f - (1.0 - f) * np.expm1(log_hidden)), np.log1p(-f) + log_hidden + log_inside)
        return np.where(leave < 0.5, np.log1p(-leave), log_either)  # each where it is precise

    closed = setting.first * log_stay(setting.last)
    # A closed set of more than half of the parties is the complement of a set that holds the other closed set.
    rest = FailureSetting(n, counted, f, *size_blocks((counted - 1) // 2))
    others = np.maximum(h - rest.first, rest.first + 1.0)
    large, small = np.maximum(h - rest.last, rest.last + 1.0) * log_stay(others), log_stay(rest.last)

    def bound(rounds: int) -> float:
        one = log_sum(log_number_of_sets(setting), rounds * closed, rounds)
        both_small = 2.0 * one + math.log((1.0 - 1.0 / counted) / 2.0)
        pairs = log_number_of_sets(rest) + np.log(rest.last) + rest.last * np.exp(rounds * small)
        one_large = log_sum(pairs, rounds * (large + small), rounds)
        return min(0.0, one, float(np.logaddexp(both_small, one_large)))

    return bound
