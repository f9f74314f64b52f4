"""How much cancelling noise settled runs need, looked up in counts over ten million drawn views for each entry.

A *level* is sigma_cancelling^2 in units of (s / mu)^2, the variance of Local DP's noise; a *factor* is the independent
variance of all honest survivors together in the same units, of which 1 is the least there can be (Theorem 2). A party
is *known* to the adversary with all that it exchanges if it colludes, or if it left: counting leavers as colluders
bounds what settled messages tell (docs/settlement.md). The level that suffices for all but a tiny fraction of the
parties depends on rounds, fraction known and factor, and hardly on how many parties there are: the views have 50, and
entries with 10, 20 and 200 show the same (docs/planner.md). `tools/level_tables.py` draws them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import msgspec
import numpy as np
from numpy.typing import NDArray

from inca._base.distributions import binom_cdf, binom_ppf
from inca._base.types import Array
from inca.planning.leavers import level_that_protects_leavers
from inca.protocol.injection import Injection

DRAWN_PARTIES = 50
"""How many parties the views have that plans are looked up in."""
FEWEST_PARTIES = 10
"""Down to so many parties views show the same levels."""
_TAIL_RATIO = 100.0  # between the two probabilities that show how levels grow
_CAUTION = 2.0  # how much faster levels are taken to grow than the counts show, beyond what was drawn


class _Counts(msgspec.Struct, frozen=True):
    """In how many of the views one party, always the same, needed more than each level, for each factor."""

    parties: int
    rounds: int
    known: float
    views: int
    seed: int
    views_exceeding: list[list[int]]


class _LeaverCounts(msgspec.Struct, frozen=True):
    """How many drawn leavers needed more than each level (`inca.planning.leavers`), whatever the factor."""

    parties: int
    rounds: int
    known: float
    views: int
    exceeding: list[int]


class _LevelTables(msgspec.Struct, frozen=True):
    format: str
    quiet: int
    factors: list[float]
    levels_per_factor: list[float]
    leaving: list[float]
    late_residues: dict[str, list[float]]
    tables: list[_Counts]
    leavers: list[_LeaverCounts]


@dataclass(frozen=True)
class NeededLevel:
    """A level, and how it is known.

    Attributes:
        level: What at most the allowed fraction of the parties needs more than.
        drawn: Whether counts show it with the stated confidence; else it is extrapolated from them.
        views: How many views were counted.
        known: The fraction of the parties that was known in them.
    """

    level: float
    drawn: bool
    views: int
    known: float


@cache
def level_tables() -> _LevelTables:
    """Return everything that was drawn."""
    text = files("inca.planning").joinpath("level_tables.json").read_bytes()
    return msgspec.json.decode(text, type=_LevelTables)


@cache
def drawn_rounds() -> tuple[int, ...]:
    """Return the numbers of rounds that plans are looked up for.

    >>> drawn_rounds()
    (6, 8, 10, 14, 20, 30)
    """
    return tuple(sorted({counts.rounds for counts in level_tables().tables if counts.parties == DRAWN_PARTIES}))


def needed_level(
    rounds: int, known: float, factor: float, parties: int, *, failure: float, confidence: float
) -> NeededLevel | None:
    """Return the level that a party of a settled run needs more than with at most the allowed probability.

    Fractions known and levels in between are rounded up to those drawn; where there are more or fewer parties than
    were drawn, the level is one step higher. A probability too small for the number of views is extrapolated, with
    levels growing twice as fast as the counts show.

    Args:
        rounds: One of `drawn_rounds`.
        known: The fraction of the parties that collude or leave.
        factor: One of the factors of the tables.
        parties: How many parties there are.
        failure: The allowed probability, for a party.
        confidence: That of the level.

    Returns:
        The level; None if nothing drawn tells it.

    Example:
        >>> usual = needed_level(20, 0.3, 1.05, 50, failure=1e-6, confidence=0.95)
        >>> round(usual.level, 1), usual.drawn
        (11.3, True)
        >>> rare = needed_level(20, 0.3, 1.05, 50, failure=1e-9, confidence=0.95)
        >>> bool(rare.level > 2 * usual.level), rare.drawn
        (True, False)
    """
    tables = level_tables()
    entries = [entry for entry in tables.tables if entry.parties == DRAWN_PARTIES and _covers(entry, rounds, known)]
    if not entries or parties < FEWEST_PARTIES:
        return None
    counts = min(entries, key=lambda entry: entry.known)
    exceeding = np.array(counts.views_exceeding[tables.factors.index(factor)])
    levels = factor * np.array(tables.levels_per_factor)
    step = 1.0 if parties == DRAWN_PARTIES else tables.levels_per_factor[1] / tables.levels_per_factor[0]
    level, drawn = _extreme_level(levels, exceeding, counts.views, failure, confidence)
    if level is None or (step > 1.0 and level == levels[-1]):  # nothing is known of a step above the last one
        return None
    return NeededLevel(step * level, drawn, counts.views, counts.known)


def leavers_level(
    rounds: int, known: float, parties: int, injection: Injection, *, failure: float, confidence: float
) -> float:
    """Return the level that a leaver of a settled run needs more than with at most the allowed probability.

    It rests on a proven bound for each leaver (`inca.planning.leavers`), which is drawn where it depends on whom a
    party sends to; it is never more than what suffices whoever that is. The fewer parties the larger it is, so there
    are entries for 10 and for 50.

    Args:
        rounds: The number of rounds.
        known: The fraction of the parties that collude or leave.
        parties: How many parties there are.
        injection: How values enter.
        failure: The allowed probability, for a leaver.
        confidence: That of the level.

    Example:
        >>> from inca import incremental_injection
        >>> injection = incremental_injection(20, quiet=1)
        >>> always = leavers_level(20, 0.9, 100, injection, failure=1e-6, confidence=0.95)  # nothing was drawn
        >>> usual = leavers_level(20, 0.2, 100, injection, failure=1e-6, confidence=0.95)
        >>> round(always, 2), usual < always / 2
        (7.18, True)
    """
    always = level_that_protects_leavers(injection)
    tables = level_tables()
    size = max((entry.parties for entry in tables.leavers if entry.parties <= parties), default=0)
    entries = [entry for entry in tables.leavers if entry.parties == size and _covers(entry, rounds, known)]
    if not entries:
        return always
    counts = min(entries, key=lambda entry: entry.known)
    levels, exceeding = np.array(tables.levels_per_factor), np.array(counts.exceeding)
    level, _ = _extreme_level(levels, exceeding, counts.views, failure, confidence)
    return always if level is None else min(always, level)


def _covers(entry: _Counts | _LeaverCounts, rounds: int, known: float) -> bool:
    return entry.rounds == rounds and entry.known >= known - 1e-12


def _extreme_level(
    levels: Array, exceeding: NDArray[np.int64], views: int, failure: float, confidence: float
) -> tuple[float | None, bool]:
    """Return the level that is exceeded with at most the allowed probability, and whether it was drawn."""
    least = -math.log(1.0 - confidence) / views  # with a smaller probability, no count says anything
    level = _quantile(levels, exceeding, views, max(failure, least), confidence)
    if level is None or failure >= least:
        return level, True
    lower = _quantile(levels, exceeding, views, _TAIL_RATIO * least, confidence)
    growth = math.log(level / (level if lower is None else lower)) / math.log(_TAIL_RATIO)
    return level * (least / failure) ** (_CAUTION * growth), False


def _quantile(
    levels: Array, exceeding: NDArray[np.int64], views: int, failure: float, confidence: float
) -> float | None:
    """Return the least level above the upper confidence limit of a quantile, which is an order statistic.

    One party a view is counted, so counts are binomial; the limit is the largest need but r, where so few exceed the
    quantile with a probability of at most 1 - confidence (David, Nagaraja 2003, 7.1).
    """
    enough = np.flatnonzero(exceeding <= _most_exceeding(views, failure, confidence))
    return float(levels[enough[0]]) if enough.size else None


@lru_cache(maxsize=256)  # the same for all levels and factors of an entry, and nearly all of the time of a plan
def _most_exceeding(views: int, failure: float, confidence: float) -> int:
    allowed = binom_ppf(1.0 - confidence, views, failure)
    if binom_cdf(allowed, views, failure) > 1.0 - confidence:
        allowed -= 1
    return max(allowed, 0)


def late_residue(rounds: int, leaving: float) -> float:
    """Return the variance that one late leaver leaves in the settled sum, per unit of cancelling variance.

    Args:
        rounds: One of `drawn_rounds`.
        leaving: The fraction of the parties that left before.

    Example:
        >>> round(late_residue(20, 0.0), 1), late_residue(20, 0.1) > 1.5
        (1.0, True)
    """
    tables = level_tables()
    return float(np.interp(leaving, tables.leaving, tables.late_residues[str(rounds)]))
