"""The bound on the probability of failure, summed in exact arithmetic, and what tests of it share."""

from __future__ import annotations

import math
from fractions import Fraction

from inca.privacy.theorems import _cut_probabilities

ROUGHLY = 1e-6  # relative; the slack for rounding errors is part of the bounds


def setting(parties: int, colluding: int, eavesdropped: float = 0.0) -> _cut_probabilities.FailureSetting:
    honest = parties - colluding
    return _cut_probabilities.FailureSetting(
        parties, honest, eavesdropped, *_cut_probabilities.size_blocks(honest // 2)
    )


def plain_random(n: int, c: int, rounds: int, eavesdropped: int) -> Fraction:
    """The bound for k = 1 as it is printed in the docstring, in exact arithmetic; `eavesdropped` messages a round."""
    h, g = n - c, Fraction(n - eavesdropped, n) / (n - 1)
    total = Fraction(0)
    for s in range(1, h // 2 + 1):
        term = math.comb(h, s) * (1 - g * (h - s)) ** (s * rounds) * (1 - g * s) ** ((h - s) * rounds)
        total += term / 2 if 2 * s == h else term
    return min(total, Fraction(1))
