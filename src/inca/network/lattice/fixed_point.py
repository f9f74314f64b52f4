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
from inca._base.validation import finite_array, finite_float, integer, refuse
from inca.errors import InvalidInput
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import MAX_SIGMA
from inca.protocol.noise_levels import NoiseLevels

_LIMIT = 2.0**62
_MIN_NOISE_BITS, _MAX_NOISE_BITS = 20, 30  # how many steps the smaller noise has, as a power of two


def granularity_for(noise: NoiseLevels, max_norm: float, parties: int, rounds: int) -> float:
    """Return the lattice's step: the largest power of two that is at most 2^-30 of the smaller noise.

    A noise of 0 does not count. If balances might leave int64, all noise at 16 standard deviations and all of it in one
    place, or noise be too wide to be drawn, the step is the smallest power of two that avoids it, up to 2^-20 of the
    smaller noise.

    Example:
        >>> granularity_for(NoiseLevels(independent=1.0, cancelling=3.0), 100.0, parties=50, rounds=20) == 2.0**-30
        True
    """
    widest = finite_float("max_norm", max_norm, min=0.0)
    parties = integer("parties", parties, min=1, max=2**32)
    rounds = integer("rounds", rounds, min=1, max=2**32)
    sigmas = [sigma for sigma in (noise.independent, noise.cancelling) if sigma > 0.0]
    if not sigmas:
        raise InvalidInput("sigma_independent or sigma_cancelling must be above 0, got 0 for both")
    total = parties * (widest + 16.0 * noise.independent + 2.0 * 16.0 * (rounds + 1) * noise.cancelling)
    exponent = math.frexp(min(sigmas))[1] - 1  # of the largest power of two that is not above the smaller noise
    for bits in range(_MAX_NOISE_BITS, _MIN_NOISE_BITS - 1, -1):
        step = math.ldexp(1.0, exponent - bits)
        if step >= sys.float_info.min and total < _LIMIT * step and max(sigmas) <= MAX_SIGMA * step:
            return step
    raise InvalidInput(
        "noise must be from 2^20 to 2^50 steps of a lattice on which balances are below 2^62 steps, "
        f"got a smaller noise of {min(sigmas):g} and balances of up to {total:g}"
    )


@dataclass(frozen=True)
class Lattice:
    """The multiples of a step that is a power of two, so that scaling by it rounds nothing.

    Args:
        granularity: The step.

    Example:
        >>> lattice = Lattice(0.25)
        >>> lattice.encode([1.0, -0.6]), lattice.decode(np.array([4, -2])), lattice.level(1.1)
        (array([ 4, -2]), array([ 1. , -0.5]), 5)
    """

    granularity: float

    def __post_init__(self) -> None:
        """Refuse what is not a power of two."""
        step = finite_float("granularity", self.granularity, min=0.0)
        if step < sys.float_info.min or math.frexp(step)[0] != 0.5:
            refuse("granularity", self.granularity, "a power of two")

    def encode(self, values: ArrayLike) -> Numbers:
        """Return the (d,) or (n, d) values in steps, each rounded to the nearest, halves to even."""
        array = finite_array("values", values, (1, 2), "(d,) or (n, d)")
        with np.errstate(over="ignore", under="ignore"):  # too large is refused below, too small is 0
            steps = np.rint(array / self.granularity)
        if not (fits := np.abs(steps) < _LIMIT).all():
            where = tuple(int(index) for index in np.argwhere(~fits)[0])
            limit = _LIMIT * self.granularity
            raise InvalidInput(f"values{list(where)} must be below {limit:g} in absolute value, got a larger one")
        return steps.astype(np.int64)

    def decode(self, numbers: Numbers) -> Array:
        """Return the values of integer numbers of steps, each rounded to the nearest float64."""
        return np.asarray(_numbers("numbers", numbers).astype(np.float64) * self.granularity, dtype=np.float64)

    def level(self, sigma: float) -> int:
        """Return the noise level `sigma` in steps, rounded up: noise is never below what was asked for."""
        steps = finite_float("sigma", sigma, min=0.0) / self.granularity
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
    array = _numbers("value", value)
    r = integer("r", r)
    pieces = integer("pieces", pieces, min=1, max=2**31)
    if r >= pieces:
        return np.zeros_like(array)
    quotient, rest = np.divmod(array, np.int64(pieces))  # 0 <= rest < pieces, so that the products fit in int64
    return np.asarray(quotient + (rest * (r + 1) // pieces - rest * r // pieces), dtype=np.int64)


def share(balance: Numbers, receivers: int) -> Numbers:
    """Return what each of `receivers` gets of a balance, rounded down; the sender keeps balance - receivers * share.

    Example:
        >>> share(np.array([10, -10]), receivers=2).tolist()
        [3, -4]
    """
    receivers = integer("receivers", receivers, max=2**31)
    return np.asarray(_numbers("balance", balance) // np.int64(receivers + 1), dtype=np.int64)


def _numbers(name: str, value: Numbers) -> Numbers:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        kind = value.dtype.name if isinstance(value, np.ndarray) else type(value).__name__
        refuse(f"the type of {name}", kind, "an int64 array")
    return value
