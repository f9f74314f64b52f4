"""Integers on the wire: the lattice on which values, noise and messages live.

Floating point leaks: the low bits of a noisy value depend on the value in ways that no analysis of real numbers sees
(Mironov 2012). Here a coordinate is an int64 multiple of one public step, and shares and portions conserve every unit.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import refuse
from inca.errors import InvalidInput
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import MAX_SIGMA, NOISE_BOUND
from inca.protocol.noise_levels import NoiseLevels

_LIMIT = 2.0**62
_BLOCK = 2**15  # numbers that stay in a core's own cache while they are worked on
_MIN_NOISE_BITS, _MAX_NOISE_BITS = 20, 30  # how many steps the smaller noise has, as a power of two
_RAISED = 1.0 + 2.0**-4  # room for noise to be drawn larger than agreed, to make up for rounding
_ALL_BOUND = 16  # standard deviations of all noise of a session at once


def largest_balance(noise: NoiseLevels, max_norm: float, parties: int, rounds: int) -> float:
    """Return what the balances of honest parties are below: what they hold between rounds.

    All that was ever injected may be in one place. As one party sends to it in a round, it cannot all come there so
    soon: the part u of a balance that is not the live mask, |u| <= U, keeps at most all of itself and is joined by a
    share of at most (U + M) / 2, M being what no mask exceeds,

        U' = max(U, (U + M) / 2) + (U + M) / 2,

    whoever sends it (`protocol.share_bounds`, where portions and rounding are). Noise counts double there, as it may
    be raised for what rounding costs.

    Example:
        >>> noise = NoiseLevels(independent=1.0, cancelling=1e5)
        >>> [f"{largest_balance(noise, 1.0, 10_000, rounds):.1e}" for rounds in (7, 70)]
        ['1.5e+08', '2.3e+12']
    """
    spread = noise.independent + 2.0 * (rounds + 1) * noise.cancelling
    everything = parties * (max_norm + _ALL_BOUND * spread)
    mask, unmasked = NOISE_BOUND * noise.cancelling, max_norm + NOISE_BOUND * noise.independent
    for _ in range(rounds):
        if not unmasked < everything:
            break
        unmasked = max(unmasked, (unmasked + mask) / 2.0) + (unmasked + mask) / 2.0
    return min(everything, 2.0 * (unmasked + mask))


def granularity_for(noise: NoiseLevels, max_norm: float, parties: int, rounds: int) -> float:
    """Return the lattice's step: the largest power of two that is at most 2^-30 of the smaller noise.

    Top-up noise, of which `noise` has the largest, is not the smaller one. If balances (`largest_balance`) or the total
    of all parties might reach 2^62 steps, or noise be too wide to be drawn, the step is the smallest power of two that
    avoids it, up to 2^-20 of the smaller noise; beyond that it is refused.

    Example:
        >>> granularity_for(NoiseLevels(independent=1.0, cancelling=3.0), 100.0, parties=50, rounds=20) == 2.0**-30
        True
        >>> proven = NoiseLevels(independent=1.0, cancelling=4.6e5)  # for 10,000 parties
        >>> granularity_for(proven, 1.0, parties=10_000, rounds=7) == 2.0**-30
        True
    """
    total = parties * (max_norm + NOISE_BOUND * (noise.independent + noise.topup))
    largest = max(largest_balance(noise, max_norm, parties, rounds), total)
    smaller, widest = min(noise.independent, noise.cancelling), max(noise.independent, noise.cancelling, noise.topup)
    drawn = _RAISED * widest
    exponent = math.frexp(smaller)[1] - 1  # of the largest power of two that is not above the smaller noise
    for bits in range(_MAX_NOISE_BITS, _MIN_NOISE_BITS - 1, -1):
        step = math.ldexp(1.0, exponent - bits)
        if step >= sys.float_info.min and largest < _LIMIT * step and drawn <= MAX_SIGMA * step:
            return step
    coarsest = math.ldexp(1.0, exponent - _MIN_NOISE_BITS)
    raise InvalidInput(
        f"numbers of 64 bits do not suffice: with {smaller:g} for the smaller noise the other may be up to "
        f"{MAX_SIGMA * coarsest / _RAISED:.3g} and balances up to {_LIMIT * coarsest:.3g}, "
        f"got {widest:.3g} and {largest:.3g}"
    )


@dataclass(frozen=True)
class Lattice:
    """The multiples of a step that is a power of two, so that scaling by it rounds nothing.

    Example:
        >>> lattice = Lattice(0.25)
        >>> lattice.encode([1.0, -0.6]), lattice.decode(np.array([4, -2])), lattice.level(1.1)
        (array([ 4, -2]), array([ 1. , -0.5]), 5)
    """

    granularity: float

    def encode(self, values: ArrayLike) -> Numbers:
        """Return values in steps, each rounded to the nearest, halves to even; they must be of the agreed domain."""
        return np.rint(np.asarray(values) / self.granularity).astype(np.int64)

    def decode(self, numbers: Numbers) -> Array:
        """Return the values of integer numbers of steps, each rounded to the nearest float64."""
        values = numbers.astype(np.float64)
        values *= self.granularity
        return values

    def level(self, sigma: float) -> int:
        """Return the noise level `sigma` in steps, rounded up: noise is never below what was asked for."""
        steps = sigma / self.granularity
        if not steps <= MAX_SIGMA:
            refuse("sigma", sigma, f"from 0 to {MAX_SIGMA * self.granularity:g}")
        return math.ceil(steps)


def portion(value: Numbers, r: int, pieces: int) -> Numbers:
    """Return the r-th of the `pieces` nearly equal parts of `value`: they sum to it exactly.

    The first r parts together are floor(r * value / pieces); parts beyond the last are 0.

    Example:
        >>> [portion(np.array([7, -7]), r, 3).tolist() for r in range(4)]
        [[2, -3], [2, -2], [3, -2], [0, 0]]
    """
    if r >= pieces:
        return np.zeros_like(value)
    part = np.empty_like(value)
    for lo in range(0, value.size, _BLOCK):
        block = value[lo : lo + _BLOCK]
        quotient = block // np.int64(pieces)
        rest = block - pieces * quotient  # at least 0 and below `pieces`, so that the products fit in int64
        part[lo : lo + _BLOCK] = quotient + (rest * (r + 1) // pieces - rest * r // pieces)
    return part
