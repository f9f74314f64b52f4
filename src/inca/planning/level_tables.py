"""How much cancelling noise settled runs need, looked up in counts over a million to ten million drawn views each.

A *level* is sigma_cancelling^2 in units of (s / mu)^2, the variance of Local DP's noise; a *factor* is the independent
variance of all honest survivors together in the same units, of which 1 is the least there can be (Theorem 2). A party
is *known* to the adversary with all that it exchanges if it colludes, or if it left: counting leavers as colluders
bounds what settled messages tell (docs/settlement.md). The level that suffices for all but a tiny fraction of the
parties depends on rounds, fraction known, fraction eavesdropped and factor, and hardly on how many parties there are:
the views have 50, and entries with 10, 20 and 200 show the same (docs/planner.md). `tools/level_draws.py` draws them.

Probabilities too small to be counted are products. Told all messages of the even rounds, an adversary knows more, so a
party that needs more than a level needs more than it in that view as well, and in the one with the odd rounds told. The
first depends on whom everybody meets in odd rounds alone, the second on the even ones: they are independent, so that
P(need > level) <= P(need > level, even rounds told) P(need > level, odd rounds told).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
import numpy as np
from scipy.special import betaincinv

from inca._base.types import Array
from inca.planning.leavers import level_that_protects_leavers
from inca.protocol.injection import Injection

DRAWN_PARTIES = 50
"""How many parties the views have that plans are looked up in."""
FEWEST_PARTIES = 10
"""Down to so many parties views show the same levels, but for products."""
_TAIL_RATIO = 100.0  # between the two probabilities that show how levels grow
_ROUNDING = 1.0 + 1e-12
_CAUTION = 2.0  # how much faster levels are taken to grow than the counts show, beyond what was drawn


class _Counts(msgspec.Struct, frozen=True):
    """In how many of the views one party, always the same, needed more than each level, for each factor."""

    parties: int
    rounds: int
    known: float
    receivers: int
    eavesdropped: float
    told: Literal["none", "even", "odd"]  # the rounds of which the adversary knows all messages
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
    residues: dict[str, list[float]]
    tables: list[_Counts]
    leavers: list[_LeaverCounts]


@dataclass(frozen=True)
class NeededLevel:
    """A level, and how it is known."""

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
    rounds: int,
    known: float,
    factor: float,
    parties: int,
    *,
    failure: float,
    confidence: float,
    receivers: int = 1,
    eavesdropped: float = 0.0,
) -> NeededLevel | None:
    """Return the level that a party of a settled run needs more than with at most the allowed probability.

    Fractions and levels in between are rounded up to those drawn; where there are more or fewer parties than were
    drawn, the level is one step higher. A probability too small to be counted is the product of two that are not; one
    that is too small for these as well is extrapolated, with levels growing twice as fast as the counts show.

    Example:
        >>> usual = needed_level(20, 0.3, 1.05, 50, failure=1e-6, confidence=0.95)
        >>> round(usual.level, 1), usual.drawn
        (11.3, True)
        >>> rare = needed_level(20, 0.3, 1.05, 50, failure=1e-9, confidence=0.95)
        >>> bool(rare.level < 4 * usual.level), rare.drawn
        (True, True)
        >>> needed_level(20, 0.3, 1.05, 50, failure=1e-15, confidence=0.95).drawn
        False
    """
    tables = level_tables()
    entries = [
        entry
        for entry in _drawn(rounds, receivers)
        if _covers(entry, rounds, known) and entry.eavesdropped >= eavesdropped - 1e-12
    ]
    if parties < DRAWN_PARTIES:  # half of a run may hide nothing at all, which is likelier among few
        entries = [entry for entry in entries if entry.told == "none"]
    if not entries or parties < FEWEST_PARTIES:
        return None
    nearest = min((entry.eavesdropped, entry.known) for entry in entries)
    counts: dict[str, _Counts] = {
        entry.told: entry for entry in entries if (entry.eavesdropped, entry.known) == nearest
    }
    levels, row = factor * np.array(tables.levels_per_factor), tables.factors.index(factor)
    step = 1.0 if parties == DRAWN_PARTIES else tables.levels_per_factor[1] / tables.levels_per_factor[0]
    level, drawn, views = _rarest_level(levels, counts, row, failure, confidence)
    if level is None or (step > 1.0 and level == levels[-1]):  # nothing is known of a step above the last one
        return None
    return NeededLevel(step * level, drawn, views, nearest[1])


def leavers_level(
    rounds: int, known: float, parties: int, injection: Injection, *, failure: float, confidence: float
) -> float:
    """Return the level that a leaver of a settled run needs more than with at most the allowed probability.

    It rests on a proven bound for each leaver (`inca.planning.leavers`), which is drawn where it depends on whom a
    party sends to; it is never more than what suffices whoever that is. The fewer parties the larger it is, so there
    are entries for 10 and for 50.

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
    levels = np.array(tables.levels_per_factor)
    limits = _upper_limits(np.array(counts.exceeding), counts.views, confidence)
    least = float(_upper_limits(np.zeros(1), counts.views, confidence)[0])
    level, _ = _extreme_level(levels, limits, least, failure)
    return always if level is None else min(always, level)


@cache
def _drawn(rounds: int, receivers: int) -> tuple[_Counts, ...]:
    wanted = DRAWN_PARTIES, rounds, receivers
    return tuple(entry for entry in level_tables().tables if (entry.parties, entry.rounds, entry.receivers) == wanted)


def _covers(entry: _Counts | _LeaverCounts, rounds: int, known: float) -> bool:
    return entry.rounds == rounds and entry.known >= known - 1e-12


def _rarest_level(
    levels: Array, counts: dict[str, _Counts], row: int, failure: float, confidence: float
) -> tuple[float | None, bool, int]:
    """Return the level for a failure probability, whether it was drawn, and in how many views.

    Counted if the views are enough, else a product. Which of the two depends on the number of views alone, never on
    what was counted in them, so that the confidence is that of one.
    """
    exceeding = {told: np.array(entry.views_exceeding[row]) for told, entry in counts.items()}
    direct = counts.get("none")
    floor = 0.0
    if direct is not None:
        limits = _upper_limits(exceeding["none"], direct.views, confidence)
        least = float(_upper_limits(np.zeros(1), direct.views, confidence)[0])
        if failure >= least or "even" not in counts:
            level, drawn = _extreme_level(levels, limits, least, failure)
            return level, drawn, direct.views
        lowest = _first_below(levels, limits, least)
        if lowest is None:
            return None, False, direct.views
        floor = lowest  # what is rarer never needs less
    single = (1.0 + confidence) / 2.0  # both hold at once with the stated confidence
    halves = [(exceeding["even"], counts["even"].views), (exceeding["odd"], counts["odd"].views)]
    first, second = (_upper_limits(exceeded, views, single) for exceeded, views in halves)
    rarest, second_rarest = (float(_upper_limits(np.zeros(1), views, single)[0]) for _, views in halves)
    level, drawn = _extreme_level(levels, first * second, rarest * second_rarest, failure)
    if level is None and direct is not None:  # beyond the last level
        return *_extreme_level(levels, limits, least, failure), direct.views
    return None if level is None else max(level, floor), drawn, sum(views for _, views in halves)


def _extreme_level(levels: Array, limits: Array, least: float, failure: float) -> tuple[float | None, bool]:
    """Return the level that is exceeded with at most the allowed probability, and whether it was drawn."""
    level = _first_below(levels, limits, max(failure, least))
    if level is None or failure >= least:
        return level, True
    lower = _first_below(levels, limits, _TAIL_RATIO * least)
    growth = math.log(level / (level if lower is None else lower)) / math.log(_TAIL_RATIO)
    return level * (least / failure) ** (_CAUTION * growth), False


def _first_below(levels: Array, limits: Array, failure: float) -> float | None:
    """Return the least level whose limit is at most the allowed probability.

    Limits fall with the level, so this level is too low only if one limit is: that of the level below the true one.
    """
    enough = np.flatnonzero(limits <= failure * _ROUNDING)
    return float(levels[enough[0]]) if enough.size else None


def _upper_limits(exceeding: Array, views: int, confidence: float) -> Array:
    """Return the exact upper confidence limits of binomial probabilities (Clopper, Pearson 1934).

    One party a view is counted, so counts are binomial.
    """
    return _limits_of_bytes(np.asarray(exceeding, dtype=np.float64).tobytes(), views, confidence)


@lru_cache(maxsize=1024)  # nearly all of the time of a plan, and the same for all numbers of parties
def _limits_of_bytes(exceeding: bytes, views: int, confidence: float) -> Array:
    counts = np.frombuffer(exceeding)
    most = np.minimum(counts, views - 1)
    limits = np.where(counts >= views, 1.0, betaincinv(most + 1.0, views - most, confidence))
    limits.setflags(write=False)
    return limits


def unfinished_residue(rounds: int, leaving: float) -> float:
    """Return the variance in the settled sum without one final message, per unit of cancelling variance.

    Example:
        >>> round(unfinished_residue(20, 0.0), 1), unfinished_residue(20, 0.1) > 1.5
        (1.0, True)
    """
    tables = level_tables()
    return float(np.interp(leaving, tables.leaving, tables.residues[str(rounds)]))
