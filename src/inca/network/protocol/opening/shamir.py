"""Shamir's secret sharing (1979): any t of the shares of a secret give it, fewer tell nothing.

The field has a prime order a little above 2^256, so that it holds every secret of 32 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

PRIME = 2**256 + 297
SHARE_BYTES = 33


def share(secret: int, coefficients: Sequence[int], place: int) -> int:
    """Return the share at a place from 1 on: the value there of the polynomial that is `secret` at 0.

    >>> share(7, [2, 1], place=3)
    22
    """
    value = 0
    for coefficient in reversed([secret, *coefficients]):
        value = value * place + coefficient
    return value % PRIME  # once: a place is small, so the number grows slowly


def recovered(shares: Mapping[int, int]) -> int:
    """Return the secret that shares give, place by place; of another polynomial than theirs it is some number.

    >>> recovered({place: share(7, [2, 1], place) for place in (1, 3, 4)})
    7
    """
    weights = _weights(tuple(shares))
    return sum(weight * value for weight, value in zip(weights, shares.values(), strict=True)) % PRIME


@lru_cache(maxsize=16)
def _weights(places: Collection[int]) -> tuple[int, ...]:
    """Return Lagrange's weights at 0, the same for all that was dealt to these places."""
    weights = []
    for place in places:
        numerator = denominator = 1
        for other in places:
            if other != place:
                numerator = numerator * other % PRIME
                denominator = denominator * (other - place) % PRIME
        weights.append(numerator * pow(denominator, -1, PRIME) % PRIME)
    return tuple(weights)
