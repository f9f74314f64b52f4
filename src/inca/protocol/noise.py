"""The noise terms of a run, drawn in blocks: the same for any number of threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca._base.randomness import Normals, check_normals, fill, split
from inca._base.types import Array
from inca._base.validation import instance, integer, refuse
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels

BLOCK_ENTRIES = 1 << 15  # of noise drawn at a time: a quarter of a megabyte, which fits a core's own cache


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise terms of a run; they are as private as the values.

    Args:
        independent: eta*, of shape (n,) or (n, d).
        cancelling: eta, of shape (n, T) or (n, T, d).
        topup: What parties add when they settle, of the shape of `independent`; None for nothing.

    Example:
        >>> Noise(np.zeros(4), np.zeros((4, 3)))
        Noise(independent of shape (4,), cancelling of (4, 3))
    """

    independent: Array
    cancelling: Array
    topup: Array | None = None

    def __repr__(self) -> str:
        return f"Noise(independent of shape {np.shape(self.independent)}, cancelling of {np.shape(self.cancelling)})"


def draw_noise(execution: Execution, noise_levels: NoiseLevels, rng: Normals, *, dimensions: int = 1) -> Noise:
    """Draw all noise terms, the very ones that `simulate` uses for the same arguments.

    Args:
        execution: Who is present decides which terms are used.
        noise_levels: The standard deviations of eta* and eta.
        rng: What noise is drawn from: a `numpy.random.Generator`, or `SystemNormals` for values of real persons.
        dimensions: The number of coordinates d.

    Returns:
        eta* of shape (n, d) and eta of shape (n, T, d).

    Raises:
        InvalidInput: If an argument is of another kind, or `dimensions` below 1.

    Example:
        >>> from inca import Execution, RandomReceivers, incremental_injection
        >>> execution = Execution(RandomReceivers(10, rounds=3, seed=1), incremental_injection(3))
        >>> draw_noise(execution, NoiseLevels(independent=1.0, cancelling=2.0), np.random.default_rng(1))
        Noise(independent of shape (10, 1), cancelling of (10, 3, 1))
    """
    levels, source = check_source(noise_levels, rng)
    instance("execution", execution, Execution)
    n, rounds, d = execution.parties, execution.rounds, integer("dimensions", dimensions, min=1)
    blocks = spans(n * d, BLOCK_ENTRIES)
    streams = split(source, len(blocks))
    drawn = np.empty((rounds + 1, n, d))
    for terms in drawn:
        for stream, (lo, hi) in zip(streams, blocks, strict=True):
            fill(stream, terms.reshape(-1)[lo:hi])
    # A party uses what was drawn in round t as its noise term number r+1, if it was there (erratum E2).
    eta = np.zeros((n, rounds, d))
    counter = np.zeros(n, dtype=np.int64)
    for t in range(rounds):
        here = np.flatnonzero(execution.presence.row(t))
        eta[here, counter[here]] = drawn[t + 1, here]
        counter[here] += 1
    return Noise(levels.independent * drawn[0], levels.cancelling * eta, draw_topup(levels, source, (n, d)))


def draw_topup(levels: NoiseLevels, source: Normals, shape: tuple[int, ...]) -> Array | None:
    """Draw what parties add when they settle; None if that is nothing."""
    if levels.topup == 0.0:
        return None
    drawn = np.empty(shape)
    fill(split(source, 1)[0], drawn.reshape(-1))
    return np.asarray(levels.topup * drawn)


def check_source(noise_levels: NoiseLevels | None, rng: Normals | None) -> tuple[NoiseLevels, Normals]:
    """Return the levels and what noise is drawn from, or refuse them."""
    if not isinstance(noise_levels, NoiseLevels):
        refuse("noise_levels", noise_levels, "inca.NoiseLevels(independent=..., cancelling=...)")
    return noise_levels, check_normals(rng)


def spans(size: int, step: int) -> list[tuple[int, int]]:
    """Return the ranges of `step` entries, the last one perhaps shorter, that make up `size` entries."""
    return [(lo, min(size, lo + step)) for lo in range(0, size, step)]
