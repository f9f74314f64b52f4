"""How likely a random schedule hides too little, before it is drawn: proven bounds, instant for any number of parties.

Theorem 2 needs the edge vectors of the hidden messages to have rank n_H - 1. It fails only if some set S of honest
parties is cut off from the others (k = 1), or if two disjoint sets are closed (k > 1). So we sum, over the sizes s
of such sets, how many there are times the probability of one. The proofs are in docs/failure-probability.md, cited here
as C1 to C6.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import finite_float, integer, refuse
from inca.protocol.adversary import rounded_up

SCHEDULES = ("random", "distinct", "permutation")

_ALONE = 512  # sizes below this one are summed one by one, larger ones s in blocks of s/64
_FINENESS = 64
_RUNS = 128  # up to so many draws without replacement are followed one by one
_SMALL = 32  # permutations: up to this size a set's probability is a sum, above it a closed form
_TERMS = 20  # of the series 1 - 1 + 1/2! - ...; an even number, as cutting must err upwards
_SLACK = 1e-10  # far more than the rounding error of any logarithm here, relative and per round


def log_failure_bound(
    parties: int,
    colluding: int,
    rounds: int,
    *,
    receivers: int = 1,
    schedule: str = "random",
    eavesdropped: float = 0.0,
) -> float:
    """Return the natural logarithm of `failure_bound`, for probabilities too small to be written as floats.

    It is minus infinity where failure is impossible, as with a single honest party.

    >>> round(log_failure_bound(5000, colluding=2500, rounds=16) / math.log(10), 2)
    -4.89
    >>> round(log_failure_bound(10**9, colluding=10**8, rounds=1000) / math.log(10))
    -1382
    """
    total = integer("rounds", rounds, min=1, max=2**31 - 1)
    curve, longest = _curve(parties, colluding, receivers, schedule, eavesdropped)
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
) -> float:
    """Return an upper bound on the probability that the precondition of Theorem 2 fails, everyone being present.

    n parties, of which `colluding` collude and n_H do not, send for T rounds to k receivers each; of the n messages
    of a round, the fraction `eavesdropped` (rounded up to f n of them) is eavesdropped on, chosen at random. For k = 1
    and the schedule `random` it is, with g = (1 - f) / (n - 1), the sum over s <= n_H / 2 of

        C(n_H, s) (1 - g (n_H - s))^(s T) (1 - g s)^((n_H - s) T),

    half of the last term if s = n_H / 2. docs/failure-probability.md has the sums for the other schedules and for
    k > 1, which `permutation` does not offer.

    Args:
        parties: n.
        colluding: How many of them collude.
        rounds: T.
        receivers: k.
        schedule: `random`, `distinct` or `permutation`.
        eavesdropped: The fraction of each round's messages.

    Returns:
        The bound, at most 1.

    Raises:
        InvalidInput: If a number is out of range, or no bound is proven for the schedule.

    Example:
        >>> [round(failure_bound(100, colluding=50, rounds=rounds), 6) for rounds in (6, 8, 10)]
        [0.043177, 0.003968, 0.000373]
        >>> round(failure_bound(100, colluding=50, rounds=10, schedule="permutation"), 6)
        5.8e-05
    """
    log_bound = log_failure_bound(
        parties, colluding, rounds, receivers=receivers, schedule=schedule, eavesdropped=eavesdropped
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
    max_rounds: int = 10_000,
) -> int:
    """Return the least T whose `failure_bound` is at most `probability`; refuse if that is more than `max_rounds`.

    >>> least_rounds(1000, colluding=100, probability=1e-6)
    7
    >>> least_rounds(1000, colluding=100, probability=1e-6, schedule="permutation")
    5
    """
    if not finite_float("probability", probability, 0.0, 1.0) > 0.0:
        refuse("probability", probability, "above 0")
    curve, longest = _curve(parties, colluding, receivers, schedule, eavesdropped)
    longest = min(integer("max_rounds", max_rounds, min=1, max=2**31 - 1), longest)
    target = math.log(probability)
    enough = 1
    while curve(enough) > target:
        if enough == longest:
            bound = math.exp(curve(longest))
            refuse("probability", probability, f"at least {bound:.3g}, the bound after {longest} rounds")
        enough = min(2 * enough, longest)
    return bisect_left(range(enough), True, lo=enough // 2 + 1, key=lambda rounds: curve(rounds) <= target)


@dataclass(frozen=True)
class _FailureSetting:
    """n, n_H and f, and the sizes 1..n_H/2 of sets in blocks `first`..`last`."""

    parties: int
    honest: int
    eavesdropped: float
    first: Array
    last: Array


def _curve(
    parties: int, colluding: int, receivers: int, schedule: str, eavesdropped: float
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
    eavesdropped = rounded_up("eavesdropped", eavesdropped, n) / n
    longest = (n - 1) // k if schedule == "distinct" else 2**31 - 1
    setting = _FailureSetting(n, n - c, eavesdropped, *_blocks((n - c) // 2))

    if n - c == 1:
        return lambda rounds: -math.inf, longest
    if k > 1:
        return _two_closed(setting, k), longest
    if schedule == "distinct" and eavesdropped == 0:
        return lambda rounds: _one_cut(setting, _cut_distinct(setting, rounds), rounds), longest
    per_round = _cut_permutation(setting) if schedule == "permutation" else _cut_random(setting)
    return lambda rounds: _one_cut(setting, rounds * per_round, rounds), longest


def _one_cut(setting: _FailureSetting, log_cut: Array, rounds: int) -> float:
    """Bound the probability that any set is cut off, given the log probability of one set of each block (C2)."""
    log_number = _log_sets(setting)
    if setting.honest == 2 * setting.first[-1]:
        log_number[-1] -= math.log(2.0)  # of the sets of half of the parties, each split has two
    return min(0.0, _log_sum(log_number, log_cut, rounds))


@np.errstate(divide="ignore")
def _cut_random(setting: _FailureSetting) -> Array:
    """Log of the probability, in one round, that no hidden message crosses between a set and the rest (C2)."""
    n, f, s, rest = setting.parties, setting.eavesdropped, setting.first, setting.honest - setting.last

    def missed(targets: Array) -> Array:
        return -np.log1p((1.0 - f) * targets / (n - 1 - targets + f * targets))

    return s * missed(rest) + rest * missed(s)


def _cut_distinct(setting: _FailureSetting, rounds: int) -> Array:
    """Log of the probability, in all rounds, that no message crosses; receivers are drawn without replacement (C3)."""
    n, s, rest = setting.parties, setting.first, setting.honest - setting.last
    return s * _log_all_within(n - 1 - rest, rest, rounds) + rest * _log_all_within(n - 1 - s, s, rounds)


@np.errstate(divide="ignore")
def _cut_permutation(setting: _FailureSetting) -> Array:
    """Log of the probability, in one round, that no hidden message of a random derangement crosses (C4)."""
    n, h, f, a, b = setting.parties, setting.honest, setting.eavesdropped, setting.first, setting.last
    seen = n - h + f * (h - a)
    base = (b * np.exp(-1.0 / b) + np.exp(2.0 / (n - b)) * seen**2 / (n - b)) / n
    log_cut = a * np.log(np.minimum(base * (1.0 + 1e-14), 1.0))  # raised, as a is large where rounding matters
    for s in range(1, min(_SMALL, h // 2) + 1):
        log_cut[s - 1] = np.log(min(1.0, _cut_small_permutation(setting, s)))
    return log_cut


def _cut_small_permutation(setting: _FailureSetting, s: int) -> float:
    """Sum the probability of `_cut_permutation` over u, how many of s parties send out of their set (C4)."""
    n, h, f = setting.parties, setting.honest, setting.eavesdropped
    outside = n - s
    u = np.arange(s + 1.0)

    def choose(things: int) -> Array:
        return np.concatenate(([1.0], np.cumprod((things - u[:-1]) / u[1:])))

    u_leave = choose(s) * choose(outside) / choose(n)[s]
    all_seen = np.convolve(choose(h - s) * f**u, choose(n - h))[: s + 1] / choose(outside)
    free = outside - u
    most_apart = np.minimum(u, free)
    mean_apart = u * (1.0 - u / (outside if f > 0 else max(n - h, 1)))
    none, all_apart = _no_fixed_point(free, free), _no_fixed_point(free, free - most_apart)
    others = none + mean_apart / np.maximum(most_apart, 1.0) * (all_apart - none)
    probabilities = u_leave * all_seen**2 * _no_fixed_point(np.full_like(u, s), s - u) * others
    return float(probabilities.sum() / _no_fixed_point(np.array(float(n)), np.array(float(n))))


def _no_fixed_point(places: Array, marked: Array) -> Array:
    """Probability that a random permutation of `places` things fixes none of the `marked` ones among them."""
    m = np.arange(1.0, _TERMS + 1)
    places, marked = places[..., np.newaxis], marked[..., np.newaxis]
    factors = (m - 1 - marked) / (m * np.maximum(places - m + 1, 1.0))
    return np.asarray(1.0 + np.cumprod(factors, axis=-1).sum(axis=-1))


@np.errstate(divide="ignore")
def _two_closed(setting: _FailureSetting, k: int) -> Callable[[int], float]:
    """Bound the probability that there are two disjoint closed sets, as a function of T (C5)."""
    n, h, f = setting.parties, setting.honest, setting.eavesdropped
    log_hidden = _log_all_within(np.array(h - 1.0), np.array(float(n - h)), k, above=False)

    def log_stay(sizes: Array) -> Array:
        """Log of the probability that a message is seen or stays within a set of that size."""
        log_inside = _log_all_within(sizes - 1, h - sizes, k)
        leave = -(1.0 - f) * np.exp(log_hidden) * np.expm1(log_inside)
        log_either = np.logaddexp(np.log(f - (1.0 - f) * np.expm1(log_hidden)), np.log1p(-f) + log_hidden + log_inside)
        return np.where(leave < 0.5, np.log1p(-leave), log_either)  # each where it is precise

    closed = setting.first * log_stay(setting.last)
    # A closed set of more than half of the parties is the complement of a set that holds the other closed set.
    rest = _FailureSetting(n, h, f, *_blocks((h - 1) // 2))
    large, small = (h - rest.last) * log_stay(h - rest.first), log_stay(rest.last)

    def bound(rounds: int) -> float:
        one = _log_sum(_log_sets(setting), rounds * closed, rounds)
        both_small = 2.0 * one + math.log((1.0 - 1.0 / h) / 2.0)
        pairs = _log_sets(rest) + np.log(rest.last) + rest.last * np.exp(rounds * small)
        one_large = _log_sum(pairs, rounds * (large + small), rounds)
        return min(0.0, one, float(np.logaddexp(both_small, one_large)))

    return bound


def _blocks(most: int) -> tuple[Array, Array]:
    """Cut the sizes 1..most into blocks; return the first and the last size of each."""
    starts = []
    start = 1
    while start <= most:
        starts.append(start)
        start += 1 if start < _ALONE else start // _FINENESS
    first = np.array(starts, dtype=np.float64)
    return first, np.append(first, most + 1.0)[1:] - 1.0


def _log_sets(setting: _FailureSetting) -> Array:
    """Bound the log number of sets of honest parties in each block: its length times C(n_H, last) (C6)."""
    h, size = setting.honest, setting.last
    log_choose = size * np.log(h / size) - (h - size) * np.log1p(-size / h)
    log_choose += 0.5 * np.log(h / (2.0 * math.pi * size * (h - size)))
    single = size[size < _ALONE]
    log_choose[: single.size] = np.cumsum(np.log((h - single + 1) / single))
    return np.asarray(log_choose + np.log(size - setting.first + 1))


@np.errstate(divide="ignore")
def _log_all_within(part: Array, rest: Array, draws: int, *, above: bool = True) -> Array:
    """Bound log C(part, draws) / C(part + rest, draws): the draws without replacement all fall within the part.

    Many draws are taken in runs, each as if all were the run's most likely (`above`) or least likely one.
    """
    runs = min(draws, _RUNS)
    edges = np.arange(runs + 1) * draws // runs
    before = edges[:-1] if above else edges[1:] - 1
    left = np.maximum(part[..., np.newaxis] - before, 0.0)
    return np.asarray(-(np.diff(edges) * np.log1p(rest[..., np.newaxis] / left)).sum(axis=-1))


def _log_sum(log_number: Array, log_probability: Array, rounds: int) -> float:
    """Sum number times probability over the blocks, in logarithms, with the slack for rounding errors."""
    terms = (1.0 + _SLACK) * log_number + (1.0 - _SLACK) * log_probability + _SLACK * rounds
    return float(np.logaddexp.reduce(terms))
