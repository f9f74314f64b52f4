"""How likely those who stay to the end hide too little if others leave for good, or miss rounds and come back.

A message to or from an absent party is not sent, so in each round the absent count as seen. How many honest parties are
missing in a round is random; the probability that a set is cut off in it grows with that number M, and its logarithm
lies below some line a + b M. The mean of e^(b M) is known, so any line gives a bound, and a good one is nearly exact.
The proofs are in docs/failure-probability.md, cited here as C7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inca._base.types import Array
from inca.privacy.theorems._cut_probabilities import FailureSetting, log_sum

LogCut = Callable[[FailureSetting], Array]
"""The log probability, in one round, that sets of each block are cut off."""

_ALONE, _BLOCKS = 200, 60  # numbers of missing parties that are told apart: likely ones, and the others
_SLOPES = 60  # of lines that are tried
_ITERATIONS = 4  # of the search for the best of them
_LEAVERS_COUNTED = 12  # with whom a large set of stayers exchanges nothing, either
_IMPOSSIBLE = -1e15  # taken for a log probability of minus infinity, so that lines have slopes
_MAX_EXPONENT = 500.0  # of a mean of exponentials
_NEGLIGIBLE = math.log(1e-6)  # relative, of what larger sets add


def stayers_curve(
    setting: FailureSetting, log_cut: LogCut, leavers: int, away: float, log_number: Array
) -> Callable[[int], float]:
    """Return the log of the bound for stayers as a function of T (C7)."""
    table = _cut_table(setting, log_cut, leavers, away)
    if leavers:  # how likely all members of a set stay
        log_number = log_number + setting.first * np.log1p(-leavers / setting.parties)

    large_sets = _LargeSets.of(table, log_cut) if leavers else None  # if all stay, those are complements of small ones

    def bound(rounds: int) -> float:
        small = _sum_over_sets(log_number, table, rounds)
        if large_sets is None:
            return min(0.0, small)
        large = log_sum(log_number, large_sets.log_cut(rounds), rounds)
        return min(0.0, float(np.logaddexp(small, large)))

    return bound


@dataclass(frozen=True, eq=False)
class _CutTable:
    """The log probability, in one round, that a set (column) is cut off, if so many others are missing (row).

    Row r is for numbers from `least[r]` to `most[r]`, and holds the largest of their values.
    """

    setting: FailureSetting
    leavers: int
    away: float
    least: Array
    most: Array
    log_cut: Array

    def lines(self, column: int) -> tuple[Array, Array]:
        """Return slopes b, and for each an a such that a set is cut off with probability e^(a + b G) at most.

        G is how many other honest parties are gone for good in the round, and the probability is that over who is away.
        A line a' + b M is above the column, where M counts all who are missing; those of the set who are away send and
        get nothing, and are missing for its other members.
        """
        size = self.setting.first[column]
        slopes = np.append(0.0, size * np.geomspace(0.3 / self.setting.parties, 4.0, _SLOPES))
        slopes = slopes[slopes <= _MAX_EXPONENT]
        line = (self.log_cut[:, column] - np.multiply.outer(slopes, self.least)).max(axis=1)
        if not self.away:
            return slopes, np.asarray(line)
        log_set = size * np.logaddexp(math.log1p(-self.away) + line / size, math.log(self.away) + slopes)
        others = max(0.0, self.setting.honest - size) * np.log1p(self.away * np.expm1(slopes))
        return slopes, np.asarray(log_set + others)

    def with_gone(self, column: int, gone: float) -> float:
        """Return the log probability that a set is cut off in a round, if so many others are gone."""
        slopes, lines = self.lines(column)
        return min(0.0, float((lines + slopes * gone).min()))

    @cached_property
    def all_gone(self) -> Array:
        """The log probability that sets are cut off in a round in which all leavers are gone."""
        if not self.away:
            return np.asarray(self.log_cut.max(axis=0))
        return np.array([self.with_gone(column, self.leavers) for column in range(self.setting.first.size)])


def _cut_table(setting: FailureSetting, log_cut: LogCut, leavers: int, away: float) -> _CutTable:
    h = setting.honest
    largest = h if away else min(leavers, h)
    likely = min(largest, 2 * math.ceil(leavers + away * h) + 10)
    numbers = np.concatenate([np.linspace(0, likely, _ALONE), np.linspace(likely, largest, _BLOCKS)])
    most = np.unique(np.round(numbers))
    least = np.concatenate([[0.0], most[:-1] + 1.0])
    table = np.array([log_cut(replace(setting, honest=h - int(missing))) for missing in most])
    # A set of at most half of the stayers leaves room for so many honest leavers, and so many there must be.
    room = h - 2 * setting.first
    if away:  # so that subsets of a set are no more likely to be cut off, by the power of their size: see `lines`
        table = setting.first * np.maximum.accumulate(table / setting.last, axis=1)
    else:
        table[np.greater.outer(least, room)] = _IMPOSSIBLE
    table[:, leavers - (setting.parties - h) > room] = _IMPOSSIBLE
    return _CutTable(setting, leavers, away, least, most, np.clip(table, _IMPOSSIBLE, 0.0))


def _sum_over_sets(log_number: Array, table: _CutTable, rounds: int) -> float:
    """Bound the expected number of sets of stayers that are cut off from all other honest parties."""
    log_cut = rounds * table.all_gone  # too large, but at once for all sizes; improved as long as it matters
    later = np.logaddexp.accumulate((log_number + log_cut)[::-1])[::-1]
    so_far = -math.inf
    for column in range(log_cut.size):
        if later[column] < so_far + _NEGLIGIBLE:
            break
        log_cut[column] = min(log_cut[column], _log_cut_in_all_rounds(table, column, rounds))
        so_far = float(np.logaddexp(so_far, log_number[column] + log_cut[column]))
    return log_sum(log_number, log_cut, rounds)


def _log_cut_in_all_rounds(table: _CutTable, column: int, rounds: int) -> float:
    """Bound the mean over all who are missing of the probability that a set is cut off in every round."""
    setting, leavers = table.setting, table.leavers
    size = setting.first[column]
    honest_share = (setting.honest - size) / (setting.parties - size)  # of those who leave, given that the set stays
    slopes, lines = table.lines(column)
    flat = slopes <= _MAX_EXPONENT / rounds
    slopes, lines = slopes[flat], lines[flat]
    gone = leavers * honest_share * np.arange(1, rounds + 1) / rounds
    best = 0.0
    for _ in range(_ITERATIONS):
        # Any line will do for a round. The best one touches where most of the mean comes from.
        chosen = np.argmin(lines + np.multiply.outer(gone, slopes), axis=1)
        after_leaving = np.exp(np.cumsum(slopes[chosen][::-1])[::-1])  # by the round of leaving
        log_mean = leavers * math.log1p(honest_share * float(np.mean(after_leaving - 1.0)))
        best = min(best, float(lines[chosen].sum()) + log_mean)
        weights = honest_share * after_leaving / rounds
        gone = leavers * np.cumsum(weights) / (1.0 - honest_share + weights.sum())
    return best


@dataclass(frozen=True, eq=False)
class _LargeSets:
    """For sets R of at most half of the stayers: how likely all other stayers are cut off from R and from leavers.

    Attributes:
        alone: The log probability, in one round, that R and the other stayers exchange nothing.
        slope: By how much each honest leaver that is there lowers it.
        counted: How many leavers are counted.
        honest_share: How likely one of them is honest.
    """

    alone: Array
    slope: Array
    counted: Array
    honest_share: Array

    @classmethod
    def of(cls, table: _CutTable, log_cut: LogCut) -> _LargeSets:
        """Work them out for all sizes of R."""
        setting, leavers = table.setting, table.leavers
        h, size, last = setting.honest, setting.first, setting.last
        # R is at most half of the stayers, and these are all but the leavers at least.
        missing = np.minimum(leavers, np.maximum(h - 2 * last, 0.0))
        all_missing = missing == leavers
        if table.away:
            alone = np.array([table.with_gone(column, float(gone)) for column, gone in enumerate(missing)])
        else:
            alone = log_cut(replace(setting, honest=h - leavers)) if leavers < h else np.zeros(size.size)
            for column in np.flatnonzero(~all_missing):
                one = replace(setting, first=size[column : column + 1], last=last[column : column + 1])
                alone[column] = log_cut(replace(one, honest=h - int(missing[column])))[0]
        counted = 0 if table.away else min(leavers, _LEAVERS_COUNTED)
        slope = np.full(size.size, np.inf)
        for there in range(1, counted + 1):
            joined = replace(setting, first=size + there, last=last + there, honest=h - leavers + there)
            slope = np.minimum(slope, (alone - log_cut(joined)) / there)
        slope = np.where(
            all_missing & (2 * (last + counted) <= setting.parties) & (counted > 0), np.maximum(slope, 0.0), 0.0
        )
        return cls(alone, slope, np.where(all_missing, counted, 0), (h - size) / (setting.parties - size))

    def log_cut(self, rounds: int) -> Array:
        """Return the log probability for all rounds; a leaver of round t is there in the t - 1 before."""
        while_there = np.exp(-np.multiply.outer(np.arange(rounds), self.slope)).mean(axis=0)
        return np.asarray(rounds * self.alone + self.counted * np.log1p(self.honest_share * (while_there - 1.0)))
