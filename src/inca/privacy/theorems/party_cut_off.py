"""How many rounds of random permutations join a party with enough others, before the permutations are drawn.

Of n parties, those known are removed: colluders and leavers, whoever they are, if that does not depend on the draw.
A message between two of the h others is hidden unless it is lost. A party is *cut off* if hidden messages join it with
fewer than h - spare of these h, itself included. With P_s, an upper bound on the probability that no hidden message of
a round crosses between s given parties and the other h - s, a party is cut off after T rounds with probability at most

    sum over s = 1 .. h/2 of  w_s C(h, s) P_s^T,    w_s = s/h for s <= spare and for s = h/2, else 1.

The proofs are in docs/failure-probability.md, P_s in C4 and C9, the sum in C9. It holds for every smaller number of
leavers, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inca._base.types import Array
from inca._base.validation import between_0_and_1, finite_float, integer, positive, refuse, whole_parties
from inca.privacy.theorems._cut_probabilities import (
    FailureSetting,
    log_cut_permutation,
    log_number_of_sets,
    log_sum,
    size_blocks,
)

SPARE_COST = 0.0049
"""By how much more a party's loss mu^2 may be because the spare parties are not joined with it: h / (h - spare) - 1."""
_LEAST_LOST = 1e-9  # a smaller positive probability is taken for this one: its powers are still floats
_MOST_ROUNDS = 2**31 - 1
_ROUNDED = 1e-9  # relative, what exponentials and logarithms of a bound may be off, and far more


@dataclass(frozen=True)
class RoundsNeeded:
    """How many rounds of permutations suffice.

    Attributes:
        rounds: T.
        spare: How many of the h honest parties that stay may not be joined with a party.
        failure_probability: A bound on the probability that more of them are not, for a given party.
    """

    rounds: int
    spare: int
    failure_probability: float


def log_cut_off_for_party(
    parties: int, known: int, rounds: int, *, spare: int = 0, eavesdropped: float = 0.0, away: float = 0.0
) -> float:
    """Return the log of a proven bound on the probability that a party is cut off from more than `spare` others.

    Args:
        parties: n.
        known: Colluders and leavers, who hide nothing; h = n - known remain.
        rounds: T, each a uniformly random permutation without fixed points.
        spare: How many of the h need not be joined with the party; below h / 2.
        eavesdropped: The probability with which a message is lost or seen, independently of others; or the fraction of
            the messages of each round, rounded up, that is seen, at random.
        away: The probability with which any party misses any round, independently; all its messages are lost then.

    Returns:
        The logarithm, at most 0; minus infinity if h = 1, as nobody is left to be joined with.

    Example:
        >>> f"{math.exp(log_cut_off_for_party(200, 40, rounds=6)):.2g}"
        '7e-07'
        >>> f"{math.exp(log_cut_off_for_party(1000, 200, rounds=5, spare=3)):.2g}"
        '1e-07'
    """
    n, most = _checked_sizes(parties, known)
    total = integer("rounds", rounds, min=1, max=_MOST_ROUNDS)
    if integer("spare", spare) > max(0, (most - 1) // 2):
        refuse("spare", spare, f"below half of the {most} parties that are not known")
    return _Union.of(n, most, int(spare), *_losses(n, eavesdropped, away)).log_bound(total)


def permutation_rounds(
    parties: int,
    known: int,
    failure: float,
    *,
    most: int | None = None,
    eavesdropped: float = 0.0,
    away: float = 0.0,
    cost: float = SPARE_COST,
) -> RoundsNeeded:
    """Return the least number of rounds whose `log_cut_off_for_party` meets a failure probability for any given party.

    Args:
        parties: n, at least 2.
        known: Colluders and leavers; at most n - 1.
        failure: With which probability a given party may be cut off.
        most: The most rounds that are allowed.
        eavesdropped: As for `log_cut_off_for_party`.
        away: As for `log_cut_off_for_party`.
        cost: h / (h - spare) may be so much above 1.

    Returns:
        Rounds, how many parties are spare, and the bound, which is at most `failure`.

    Raises:
        InvalidInput: If an argument is out of range, or `most` rounds do not suffice.

    Example:
        >>> needed = permutation_rounds(1000, known=200, failure=1e-6)
        >>> needed.rounds, needed.spare, f"{needed.failure_probability:.1g}"
        (5, 3, '1e-07')
    """
    n, honest = _checked_sizes(parties, known)
    target = math.log(between_0_and_1("failure", failure))
    longest = _MOST_ROUNDS if most is None else integer("most", most, min=1, max=_MOST_ROUNDS)
    spare = spare_parties(honest, cost)
    union = _Union.of(n, honest, spare, *_losses(n, eavesdropped, away))
    enough = 1
    while union.log_bound(enough) > target - _ROUNDED:
        if enough == longest:
            bound = math.exp(union.log_bound(longest))
            refuse("failure", failure, f"at least {bound:.3g}, the bound after {longest} rounds; allow more rounds")
        enough = min(2 * enough, longest)
    rounds = bisect_left(
        range(enough), True, lo=enough // 2 + 1, key=lambda total: union.log_bound(total) <= target - _ROUNDED
    )
    log_bound = union.log_bound(rounds)
    stated = 0.0 if log_bound == -math.inf else math.exp(log_bound) * (1.0 + _ROUNDED) + math.ulp(0.0)
    return RoundsNeeded(rounds, spare, min(float(failure), stated))


def spare_parties(honest: int, cost: float = SPARE_COST) -> int:
    """Return the largest s below h / 2 with h / (h - s) <= 1 + cost.

    >>> [spare_parties(h) for h in (205, 206, 800, 8 * 10**8)]
    [0, 1, 3, 3900885]
    """
    limit = 1.0 + positive("cost", cost)
    h = integer("honest", honest, min=1, max=_MOST_ROUNDS)
    spare = min(int(h * (1.0 - 1.0 / limit)) + 1, (h - 1) // 2)
    while spare and h > limit * (h - spare):
        spare -= 1
    return spare


@dataclass(frozen=True, eq=False)
class _Union:
    """The sum over all sizes of sets that must not be cut off: the log of w_s C(h, s), and of P_s."""

    log_number: Array
    log_cut: Array

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, parties: int, honest: int, spare: int, lost: float, away: float) -> _Union:
        """Work it out for h = `honest` of n parties."""
        setting = FailureSetting(parties, honest, lost, *size_blocks(honest // 2), away)
        # Of sets of half of the h, too, a party counts only those that it is in.
        for_members = (setting.last <= spare) | (2 * setting.first == honest)
        weight = np.where(for_members, setting.last / honest, 1.0)
        return cls(log_number_of_sets(setting) + np.log(weight), log_cut_permutation(setting))

    def log_bound(self, rounds: int) -> float:
        """Return the log of the bound after so many rounds."""
        return min(0.0, log_sum(self.log_number, rounds * self.log_cut, rounds))


def _checked_sizes(parties: int, known: int) -> tuple[int, int]:
    """Return n and h."""
    n = integer("parties", parties, min=2, max=_MOST_ROUNDS)
    if integer("known", known) > n - 1:
        refuse(
            "known", known, f"below the number of parties ({n}): count colluders and leavers, and keep one to protect"
        )
    return n, n - int(known)


def _losses(parties: int, eavesdropped: float, away: float) -> tuple[float, float]:
    """Return how likely a message is lost by itself, rounded up to whole messages, and a party misses a round."""
    lost = max(whole_parties("eavesdropped", eavesdropped, parties) / parties, float(eavesdropped))
    missed = finite_float("away", away, 0.0, 1.0)
    return max(lost, _LEAST_LOST) if lost else 0.0, max(missed, _LEAST_LOST) if missed else 0.0
