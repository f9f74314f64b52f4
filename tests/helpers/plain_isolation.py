"""How likely a given party has no hidden message at all, from the equations of docs/failure-probability.md (C8)."""

from __future__ import annotations

import math


def isolation(
    schedule: str, n: int, known: int, rounds: int, receivers: int = 1, eavesdropped: float = 0.0, away: float = 0.0
) -> tuple[float, bool]:
    """Return the probability, and whether it is exact; where messages are eavesdropped on it is an upper bound.

    Args:
        schedule: `random`, `distinct` or `permutation`.
        n: How many parties there are.
        known: How many of the others collude or have left.
        rounds: T.
        receivers: k.
        eavesdropped: The fraction of the messages of a round that is eavesdropped on.
        away: The probability with which a party misses a round, for one receiver.
    """
    h, f, k = n - known, eavesdropped, receivers
    if schedule == "permutation":
        # The receiver j and the sender l of the party: derangements with a two-cycle j = l, and those with two others.
        same = 1.0 / (n - 1) * _two_cycle(n)
        apart = (1.0 - _two_cycle(n)) / ((n - 1) * (n - 2)) if n > 2 else 0.0
        once, twice = away + (1 - away) * f, away + (1 - away) * f**2
        pairs = known * (known - 1) + 2 * known * (h - 1) * once + (h - 1) * (h - 2) * once**2
        alone = away + (1 - away) * (same * (known + (h - 1) * twice) + apart * pairs)
        return alone**rounds, f == 0.0
    if schedule == "distinct" and k == 1 and f == 0.0:
        own = math.prod((known - j) / (n - 1 - j) for j in range(rounds))
        return max(0.0, own) * (1.0 - rounds / (n - 1)) ** (h - 1), True
    own = (1 - f) * math.comb(h - 1, k) / math.comb(n - 1, k)
    met = (1 - f) * k / (n - 1) * (math.comb(h - 2, k - 1) / math.comb(n - 2, k - 1) if h > 1 else 0.0)
    if away == 0.0:
        return ((1 - own) * (1 - met) ** (h - 1)) ** rounds, f == 0.0 and schedule == "random"
    missed, present = away + (1 - away) * (1 - met), (h - 1) * (1 - away)
    alone = missed ** (h - 1) - (1 - f) / (n - 1) * present * (1 - met) * missed ** (h - 2)
    return (away + (1 - away) * alone) ** rounds, f == 0.0


def _two_cycle(n: int) -> float:
    """Return how likely a given party of a random derangement of n sends to the one that sends to it."""
    derangements = [1, 0]
    for size in range(2, n + 1):
        derangements.append((size - 1) * (derangements[-1] + derangements[-2]))
    return (n - 1) * derangements[n - 2] / derangements[n]
