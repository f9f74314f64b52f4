"""How likely a given set of honest parties exchanges no hidden message with the others, and how many sets there are.

The proofs are in docs/failure-probability.md, cited here as C2 to C6 and C9. All probabilities are natural
logarithms, and upper bounds where they are not exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from inca._base.types import Array

_ALONE = 512  # sizes below this one are summed one by one, larger ones s in blocks of s/64
_FINENESS = 64
_RUNS = 128  # up to so many draws without replacement are followed one by one
_SMALL = 32  # permutations: up to this size a set's probability is a sum, above it a closed form
_SMALL_AWAY = 12  # the same where parties may be away, with one such sum for each number of members that are present
_AWAY_FACTOR = 1.5  # of that closed form, a round: what its approximations may lack in sets that small (C9)
_TERMS = 20  # of the series 1 - 1 + 1/2! - ...; an even number, as cutting must err upwards
_SLACK = 1e-10  # far more than the rounding error of any logarithm here, relative and per round


@dataclass(frozen=True)
class FailureSetting:
    """n, how many of them are honest and present, f, and the sizes of sets in blocks `first`..`last`.

    `away` is the probability that one of those `honest` misses a round all the same; `log_cut_permutation` reads it.
    """

    parties: int
    honest: int
    eavesdropped: float
    first: Array
    last: Array
    away: float = 0.0


@np.errstate(divide="ignore", invalid="ignore")
def log_cut_random(setting: FailureSetting) -> Array:
    """Log of the probability, in one round, that no hidden message crosses between a set and the rest (C2)."""
    n, f, s = setting.parties, setting.eavesdropped, setting.first
    rest = np.maximum(setting.honest - setting.last, 0.0)

    def missed(targets: Array) -> Array:
        return -np.log1p((1.0 - f) * targets / (n - 1 - targets + f * targets))

    # Who has nobody to send to sends nothing across: 0, also where the other factor is infinite.
    return np.asarray(s * missed(rest) + np.where(rest > 0, rest * missed(np.minimum(s, n - 1.0)), 0.0))


def log_cut_distinct(setting: FailureSetting, rounds: int) -> Array:
    """Log of the probability, in all rounds, that no message crosses; receivers are drawn without replacement (C3)."""
    n, s, rest = setting.parties, setting.first, np.maximum(setting.honest - setting.last, 0.0)
    return s * log_all_within(n - 1 - rest, rest, rounds) + rest * log_all_within(n - 1 - s, s, rounds)


@np.errstate(divide="ignore", invalid="ignore")
def log_cut_permutation(setting: FailureSetting) -> Array:
    """Log of the probability, in one round, that no hidden message of a random derangement crosses (C4, C9)."""
    n, h, first, last = setting.parties, setting.honest, setting.first, setting.last
    # Of a message that crosses, the other end is away or it is seen; each party has two messages a round.
    both_ends = 1.0 - (1.0 - setting.away) ** 2 * (1.0 - setting.eavesdropped)
    lost = math.sqrt(both_ends) if setting.away else setting.eavesdropped
    others = np.maximum(h - first, 0.0)
    seen = n - first - others + lost * others
    base = (last * np.exp(-1.0 / last) + np.exp(2.0 / (n - last)) * seen**2 / (n - last)) / n
    if setting.away:
        base = np.minimum(base, _base_of_present(setting))
    log_cut = first * np.log(
        np.minimum(base * (1.0 + 1e-14), 1.0)
    )  # raised, as `first` is large where rounding matters
    if setting.away:
        log_cut = np.minimum(log_cut + math.log(_AWAY_FACTOR), 0.0)
    most = min(_SMALL_AWAY if setting.away else _SMALL, n // 2)
    for place, s in enumerate(first[first <= most].astype(int).tolist()):
        log_cut[place] = np.log(min(1.0, _small_with_absences(setting, s))) if s < h else 0.0
    return np.where((last < h) & (2 * last <= n), log_cut, 0.0)  # no more is known of sets of more than half of all


def _lost_messages(setting: FailureSetting) -> tuple[float, float]:
    """How likely a present member's message is lost, and both messages that it exchanges with one other party are."""
    f, away = setting.eavesdropped, setting.away
    return away + (1.0 - away) * f, away + (1.0 - away) * f**2


def _base_of_present(setting: FailureSetting) -> Array:
    """Return x such that a set of s parties is cut off in a round with probability 1.5 x^s at most (C9)."""
    n, size, rest = setting.parties, setting.last, np.maximum(setting.honest - setting.last, 0.0)
    once, twice = _lost_messages(setting)
    again = once + (twice / once - once) * np.minimum(1.0, size / (n - size))
    known = n - rest  # absent members of the set are known
    sent = (known + once * rest) * (known + again * rest) / n
    return np.asarray(
        setting.away
        + (1.0 - setting.away) * np.minimum(1.0, (size * np.exp(-1.0 / size) + np.exp(2.0 / (n - size)) * sent) / n)
    )


def _small_with_absences(setting: FailureSetting, s: int) -> float:
    """Sum the probability of `log_cut_permutation` over how many of s parties are present (C9)."""
    away = setting.away
    if away == 0.0:
        return _small_permutation(setting, s)
    total = away**s
    for present in range(1, s + 1):
        # The absent ones are known to the others.
        as_known = replace(setting, honest=setting.honest - (s - present))
        how_likely = math.comb(s, present) * (1.0 - away) ** present * away ** (s - present)
        total += how_likely * min(1.0, _small_permutation(as_known, present))
    return total


def _small_permutation(setting: FailureSetting, s: int) -> float:
    """Sum the probability, if all of s parties are present, over u, how many of them send out of their set (C4, C9)."""
    n, h = setting.parties, setting.honest
    once, twice = _lost_messages(setting)
    common, none, all_apart_more = _any_adversary(n, s)
    u = np.arange(s + 1.0)
    unseen, known = _choose(h - s, s) * once**u, _choose(n - h, s)
    seen = np.convolve(unseen, known)[: s + 1] if once > 0.0 else known
    ratio = np.ones(s + 1)
    if setting.away:
        met = np.convolve(u * unseen, known)[: s + 1] / (seen * (h - s))  # how likely one of the rest is sent to
        raised = 1.0 + (twice / once**2 - 1.0) * met  # and sends back to the set: then it is more likely to be away
        ratio = (
            np.array([(unseen[: j + 1] * raised[j] ** u[: j + 1] * known[j::-1]).sum() for j in range(s + 1)]) / seen
        )
    mean_apart = u * (ratio - u / (n - s if once > 0 else max(n - h, 1)))
    return float((common * (seen / _choose(n - s, s)) ** 2 * (ratio * none + mean_apart * all_apart_more)).sum())


@lru_cache(maxsize=4096)
def _any_adversary(n: int, s: int) -> tuple[Array, Array, Array]:
    """Return the factors of `_small_permutation` that depend on n and s alone, for u = 0..s."""
    u = np.arange(s + 1.0)
    free = n - s - u
    most_apart = np.minimum(u, free)
    none, all_apart = no_fixed_point(free, free), no_fixed_point(free, free - most_apart)
    leave = _choose(s, s) * _choose(n - s, s) / _choose(n, s)[s]
    nothing_fixed = no_fixed_point(np.array(float(n)), np.array(float(n)))
    common = leave * no_fixed_point(np.full_like(u, s), s - u) / nothing_fixed
    return common, none, (all_apart - none) / np.maximum(most_apart, 1.0)


def _choose(things: int, most: int) -> Array:
    """Return the binomial coefficients C(things, u) for u = 0..most."""
    u = np.arange(most)
    return np.concatenate(([1.0], np.cumprod((things - u) / (u + 1.0))))


def no_fixed_point(places: Array, marked: Array) -> Array:
    """Probability that a random permutation of `places` things fixes none of the `marked` ones among them."""
    m = np.arange(1.0, _TERMS + 1)
    places, marked = places[..., np.newaxis], marked[..., np.newaxis]
    factors = (m - 1 - marked) / (m * np.maximum(places - m + 1, 1.0))
    return np.asarray(1.0 + np.cumprod(factors, axis=-1).sum(axis=-1))


def size_blocks(most: int) -> tuple[Array, Array]:
    """Cut the sizes 1..most into blocks; return the first and the last size of each."""
    starts = []
    start = 1
    while start <= most:
        starts.append(start)
        start += 1 if start < _ALONE else start // _FINENESS
    first = np.array(starts, dtype=np.float64)
    return first, np.append(first, most + 1.0)[1:] - 1.0


def log_number_of_sets(setting: FailureSetting) -> Array:
    """Bound the log number of sets of honest parties in each block: its length times C(n_H, last) (C6)."""
    h, size = setting.honest, setting.last
    log_choose = size * np.log(h / size) - (h - size) * np.log1p(-size / h)
    log_choose += 0.5 * np.log(h / (2.0 * math.pi * size * (h - size)))
    single = size[size < _ALONE]
    log_choose[: single.size] = np.cumsum(np.log((h - single + 1) / single))
    return np.asarray(log_choose + np.log(size - setting.first + 1))


@np.errstate(divide="ignore", invalid="ignore")
def log_all_within(part: Array, rest: Array, draws: int, *, above: bool = True) -> Array:
    """Bound log C(part, draws) / C(part + rest, draws): the draws without replacement all fall within the part.

    Many draws are taken in runs, each as if all were the run's most likely (`above`) or least likely one.
    """
    runs = min(draws, _RUNS)
    edges = np.arange(runs + 1) * draws // runs
    before = edges[:-1] if above else edges[1:] - 1
    left = np.maximum(part[..., np.newaxis] - before, 0.0)
    log_within = -(np.diff(edges) * np.log1p(rest[..., np.newaxis] / left)).sum(axis=-1)
    return np.where(rest > 0, log_within, 0.0)


def log_sum(log_number: Array, log_probability: Array, rounds: int) -> float:
    """Sum number times probability over the blocks, in logarithms, with the slack for rounding errors."""
    terms = (1.0 + _SLACK) * log_number + (1.0 - _SLACK) * log_probability + _SLACK * rounds
    return float(np.logaddexp.reduce(terms))
