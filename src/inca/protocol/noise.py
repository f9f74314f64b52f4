"""The noise terms of a run, drawn in blocks: the same for any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from inca._base.randomness import Normals, check_normals, fill, split
from inca._base.types import Array
from inca._base.validation import instance, integer, refuse
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels

BLOCK_ENTRIES = 1 << 15  # of noise drawn at a time: a quarter of a megabyte, which fits a core's own cache
CACHE_LINE_COLUMNS = 8  # coordinates that share a line of the cache: threads that mix fewer would disturb each other


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
    independent, eta = np.empty((n, d)), np.empty((n, rounds, d))
    topup = np.empty((n, d)) if levels.topup > 0.0 else None
    for block in noise_blocks(levels, source, n, d):
        terms = draw_block(execution, levels, block)
        independent[:, block.columns], eta[:, :, block.columns] = terms.independent, terms.cancelling
        if topup is not None:
            topup[:, block.columns] = terms.topup
    return Noise(independent, eta, topup)


@dataclass(frozen=True, eq=False)
class NoiseBlock:
    """Coordinates that are drawn, and run, on their own.

    Args:
        columns: Which they are.
        streams: What their noise is drawn from: one for every 2^15 entries. None at all if the noise is given.
        topup: What their top-up is drawn from, if there is one.
    """

    columns: slice
    streams: Sequence[Normals] = ()
    topup: Normals | None = None

    def draw_topup(self, levels: NoiseLevels, parties: int) -> Array | None:
        """Draw what parties add when they settle; None if that is nothing."""
        if self.topup is None:
            return None
        drawn = np.empty((parties, self.columns.stop - self.columns.start))
        fill(self.topup, drawn.reshape(-1))
        return np.asarray(levels.topup * drawn)


def draw_block(execution: Execution, levels: NoiseLevels, block: NoiseBlock) -> Noise:
    """Draw all terms of some coordinates."""
    n, rounds, width = execution.parties, execution.rounds, block.columns.stop - block.columns.start

    def drawn() -> Array:
        numbers = np.empty((n, width))
        for stream, part in stream_parts(block.streams, numbers):
            fill(stream, part)
        return numbers

    independent = levels.independent * drawn()
    # A party uses what was drawn in round t as its noise term number r+1, if it was there (erratum E2).
    eta = np.zeros((n, rounds, width))
    counter = np.zeros(n, dtype=np.int64)
    for t in range(rounds):
        here, numbers = np.flatnonzero(execution.presence.row(t)), drawn()
        eta[here, counter[here]] = levels.cancelling * numbers[here]
        counter[here] += 1
    return Noise(independent, eta, block.draw_topup(levels, n))


def column_blocks(parties: int, dimensions: int) -> list[slice]:
    """Return the ranges of coordinates that are drawn, and run, on their own: with few parties, as fit a core's cache.

    >>> column_blocks(100, 700)
    [slice(0, 320, None), slice(320, 640, None), slice(640, 700, None)]
    """
    lines = max(1, BLOCK_ENTRIES // (parties * CACHE_LINE_COLUMNS))
    return [slice(lo, hi) for lo, hi in spans(dimensions, lines * CACHE_LINE_COLUMNS)]


def noise_blocks(levels: NoiseLevels, source: Normals, parties: int, dimensions: int) -> list[NoiseBlock]:
    """Return the `column_blocks` with streams of noise of their own."""
    blocks = column_blocks(parties, dimensions)
    counts = [-(-parties * (columns.stop - columns.start) // BLOCK_ENTRIES) for columns in blocks]
    streams = iter(split(source, sum(counts)))
    topups = split(source, len(blocks)) if levels.topup > 0.0 else [None] * len(blocks)
    return [
        NoiseBlock(*parts) for parts in zip(blocks, [list(islice(streams, k)) for k in counts], topups, strict=True)
    ]


def stream_parts(streams: Sequence[Normals], array: Array) -> list[tuple[Normals, Array]]:
    """Return the streams of a block, with the part of one of its arrays that each of them fills."""
    parts = [array.reshape(-1)[lo:hi] for lo, hi in spans(array.size, BLOCK_ENTRIES)]
    return list(zip(streams, parts, strict=True))


def check_source(noise_levels: NoiseLevels | None, rng: Normals | None) -> tuple[NoiseLevels, Normals]:
    """Return the levels and what noise is drawn from, or refuse them."""
    if not isinstance(noise_levels, NoiseLevels):
        refuse("noise_levels", noise_levels, "inca.NoiseLevels(independent=..., cancelling=...)")
    return noise_levels, check_normals(rng)


def spans(size: int, step: int) -> list[tuple[int, int]]:
    """Return the ranges of `step` entries, the last one perhaps shorter, that make up `size` entries."""
    return [(lo, min(size, lo + step)) for lo in range(0, size, step)]
