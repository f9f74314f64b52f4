"""Who the trustees of a cohort are, how many of them open its deposits, and how many parties may be missing.

Up to 48 parties everyone in the cohort is a trustee. Above, up to 1,000, the first of the cohort in the roster's order
are: more than can collude, whoever they are, so that the work stays bounded. Above that they are drawn from the
*roster*, by the public seed, and never replaced: were they the first of whoever is left, who cuts links would move
colluders up. Of those who may leave count no more than may be missing before commit, whatever the terms allow: a
session without a quorum never comes to commit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inca.network.protocol.session import SessionConfig, order_by_hash, quorum_of
from inca.protocol.adversary import smallest_cohort

_ALL_UP_TO = 48
_FIRST_UP_TO = 1000
_SPARE = 6  # above the colluders for the threshold, and above that and the leavers for the number
_TAIL = 1e-14  # above 1,000 parties: the probability that colluders reach the threshold, or fewer than that stay


@dataclass(frozen=True)
class Trustees:
    """The trustees of a cohort in order of their shares, and how many keys open its deposits."""

    members: tuple[int, ...]
    threshold: int


def trustees_of(session: SessionConfig, cohort: Collection[int], seed: bytes = b"") -> Trustees:
    """Return the trustees of a cohort; `seed` is public, and fixed after the roster."""
    members = sorted(cohort)
    count, threshold = _numbers(session.parties, session.colluders, session.leavers, len(members))
    if len(members) <= _ALL_UP_TO or not are_drawn(session):
        return Trustees(tuple(members[:count]), threshold)
    drawn = _drawn(session.id + seed, session.parties, count)
    return Trustees(tuple(member for member in members if member in drawn), threshold)


def are_drawn(session: SessionConfig) -> bool:
    """Return whether the trustees of large cohorts are drawn by the public seed."""
    return session.parties > _FIRST_UP_TO


def _numbers(parties: int, colluders: int, leavers: int, cohort: int) -> tuple[int, int]:
    """Return how many trustees a cohort of this size has at most, and how many of them open."""
    leavers = min(leavers, parties - quorum_of(parties))
    if cohort <= _ALL_UP_TO:
        return cohort, max(cohort // 2 + 1, colluders + 1)
    if parties <= _FIRST_UP_TO:
        threshold = colluders + _SPARE
        return threshold + leavers + _SPARE, threshold
    return drawn_numbers(parties, colluders, leavers)


@lru_cache(maxsize=64)
def drawn_numbers(parties: int, colluders: int, leavers: int) -> tuple[int, int]:
    """Return how many trustees are drawn among very many parties, and how many of them open.

    It is the least number for which both tails of the hypergeometric distribution are at most 1e-14: that so many are
    colluders as open, and that fewer than that stay.

    >>> drawn_numbers(1000, 100, 100)
    (53, 27)
    """
    from scipy.stats import hypergeom

    for count in range(1, parties + 1):
        colluding = hypergeom(parties, colluders, count).sf(np.arange(count + 1) - 1)  # at least so many
        staying = hypergeom(parties, parties - leavers, count).cdf(np.arange(count + 1) - 1)  # fewer than so many
        fit = np.flatnonzero((colluding <= _TAIL) & (staying <= _TAIL))
        if fit.size and fit[0] > 0:
            return count, int(fit[0])
    return parties, colluders + 1


@lru_cache(maxsize=4)
def _drawn(seed: bytes, parties: int, count: int) -> frozenset[int]:
    """Return the trustees among very many parties: those whose hashes with the seed are the lowest."""
    return frozenset(order_by_hash(b"inca-trustees/1" + seed, parties)[:count])


@dataclass(frozen=True)
class Tolerance:
    """How many parties may be missing for there still to be a result, if nobody else is."""

    parties: int
    trustees: int
    threshold: int  # how many of their keys open all
    before: int  # how many may be missing until commit
    after: int  # how many of a cohort of all may be gone for good after commit, whoever they are
    smallest: int  # cohort that may be agreed on

    @property
    def sentence(self) -> str:
        """What people are told of it."""
        return (
            f"{_may(self.before)} be missing until the final messages are committed to, and {_may(self.after)} "
            f"be gone for good after that: {self.threshold} of {self.trustees} trustees open them"
        )


def _may(count: int) -> str:
    return f"{count or 'no'} {'party' if count == 1 else 'parties'} may"


def tolerance_of(parties: int, colluders: int, leavers: int) -> Tolerance:
    """Return how many parties of a session may be missing, before commit and after it."""
    smallest = max(parties - leavers, smallest_cohort(colluders))
    count, threshold = _numbers(parties, colluders, leavers, parties)
    trustees = min(count, parties)
    before = max(0, min(parties - quorum_of(parties), parties - smallest))
    return Tolerance(parties, trustees, threshold, before, max(0, trustees - threshold), smallest)
