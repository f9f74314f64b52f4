"""Noise from the system's randomness: the ziggurat against itself written plainly, and against the normal law."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from inca._base.kernels import Words, ziggurat
from inca._base.randomness import SystemNormals, _layers
from inca._base.types import Array

_TAIL = _layers()[0][1]


def plain_ziggurat(words: list[int]) -> list[float]:
    """Return the numbers that words make, until fewer than 64 are left before an attempt."""
    (edges, heights), numbers, rest = _layers(), [], words[::-1]
    while len(rest) >= 64:
        word = rest.pop()
        layer, sign, place = word % 256, -1.0 if word // 256 % 2 else 1.0, (word >> 11) / 2**53
        z = place * edges[layer]
        if z < edges[layer + 1]:
            numbers.append(sign * z)
        elif layer > 0:
            y = heights[layer] + (rest.pop() >> 11) / 2**53 * (heights[layer + 1] - heights[layer])
            if y < math.exp(-z * z / 2):
                numbers.append(sign * z)
        else:
            while True:
                beyond = -math.log1p(-(rest.pop() >> 11) / 2**53) / edges[1]
                if -2.0 * math.log1p(-(rest.pop() >> 11) / 2**53) > beyond**2:
                    break
            numbers.append(sign * (edges[1] + beyond))
    return numbers


def from_words(words: Words) -> Array:
    out = np.empty(words.size)
    return out[: ziggurat(words, *_layers(), out)]


def words_of(seed: int, count: int, low: int = 0, high: int = 256) -> Words:
    """Return words whose layers are from low to high - 1."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(2**64, size=count, dtype=np.uint64)
    return (drawn & ~np.uint64(255)) | rng.integers(low, high, size=count, dtype=np.uint64)


@given(st.integers(0, 2**32), st.integers(0, 300), st.sampled_from([1, 2, 256]))
def test_it_equals_the_plain_ziggurat(seed: int, count: int, layers: int) -> None:
    """The lowest layers are those with tail and wide wedges; words run out at the end."""
    words = words_of(seed, count, 0, layers)
    np.testing.assert_allclose(from_words(words), plain_ziggurat(words.tolist()), rtol=1e-13, atol=0)


def test_layers_have_equal_areas_and_end_at_the_top() -> None:
    edges, heights = _layers()
    areas = edges[1:-1] * np.diff(heights[1:])
    below = _TAIL * heights[1] + math.sqrt(math.pi / 2) * math.erfc(_TAIL / math.sqrt(2))
    np.testing.assert_allclose(areas, below, rtol=1e-12)
    assert edges[0] * heights[1] == pytest.approx(below, rel=1e-14) and (np.diff(edges) < 0).all()


def test_numbers_are_normal_in_the_middle_and_in_the_tails() -> None:
    """Chi-square over four million numbers; false alarms: 1e-6, and the seed is fixed."""
    cuts = np.array([0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.3, 3.5, _TAIL, 3.8, 4.0, 4.3])
    numbers = from_words(np.random.PCG64(1).random_raw(1 << 22))
    beyond = stats.norm.sf(cuts)
    middle = np.concatenate((-np.diff(beyond), beyond[-1:]))
    law = np.concatenate((middle[::-1], [1.0 - 2.0 * beyond[0]], middle))
    counts = np.bincount(np.searchsorted(np.concatenate((-cuts[::-1], cuts)), numbers), minlength=law.size)
    assert stats.chisquare(counts, law * numbers.size).pvalue > 1e-6


def test_the_tail_is_that_of_a_normal() -> None:
    """Kolmogorov-Smirnov on the tail of two million words of the lowest layer; false alarms: 1e-6, fixed seed."""
    numbers = np.abs(from_words(words_of(2, 1 << 21, 0, 1)))
    tail = numbers[numbers > _TAIL]
    assert tail.size > 100_000
    assert stats.kstest(tail, lambda z: 1.0 - stats.norm.sf(z) / stats.norm.sf(_TAIL)).pvalue > 1e-6


def test_the_system_fills_every_place_and_never_repeats() -> None:
    out = np.full(100_001, np.nan)
    SystemNormals().fill(out)
    assert np.isfinite(out).all() and np.unique(out).size > 100_000 - 10
    assert SystemNormals().normals(0).size == 0


def test_copies_of_a_process_draw_different_numbers() -> None:
    """The generator is a cipher, whose key a fork copies: it must notice."""
    drawn = [SystemNormals().normals(4).tobytes()]
    for _ in range(2):
        heard, said = os.pipe()
        if not (child := os.fork()):
            try:
                os.write(said, SystemNormals().normals(4).tobytes())
            finally:
                os._exit(0)
        os.close(said)
        with os.fdopen(heard, "rb") as pipe:
            drawn.append(pipe.read())
        os.waitpid(child, 0)
    drawn.append(SystemNormals().normals(4).tobytes())
    assert [len(numbers) for numbers in drawn] == 4 * [32] and len(set(drawn)) == 4
