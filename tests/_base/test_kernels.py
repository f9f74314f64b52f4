from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plain_schedules import plain_draw
from inca._base.kernels import compiled, redirect, uniform, xoshiro_words
from inca._base.randomness import Seed

words = st.integers(0, 2**64 - 1)


@given(words, st.integers(0, 1), st.one_of(st.integers(1, 2**32 - 1), st.integers(2**31, 2**31 + 10)))
def test_uniform_is_the_documented_map(word: int, half: int, size: int) -> None:
    """Sizes just above 2^31 replace every second half, so that the rare branch is common here."""
    assert int(uniform(np.uint64(word), half, size)) == plain_draw([word], half, size) < size


@given(st.integers(0, 2**200), st.lists(st.one_of(st.integers(0, 9), words), min_size=1))
def test_seeded_states_are_those_of_numpy(seed: int, label: list[int]) -> None:
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(label))
    assert Seed(seed).state(tuple(label)).tolist() == sequence.generate_state(4, np.uint64).tolist()


@given(st.tuples(words, words, words, words).filter(any))
def test_xoshiro_follows_its_publication(state: tuple[int, int, int, int]) -> None:
    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (64 - by))) % 2**64

    s, expected = list(state), []
    for _ in range(20):
        expected.append((rotated((s[0] + s[3]) % 2**64, 23) + s[0]) % 2**64)
        shifted = (s[1] << 17) % 2**64
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
    out = np.empty(20, np.uint64)
    xoshiro_words(np.array(state, np.uint64), out)
    assert out.tolist() == expected


def test_seeds_and_labels_give_different_words() -> None:
    seen = {tuple(Seed(seed).words((label,), 4).tolist()) for seed in range(20) for label in range(20)}
    assert len(seen) == 400


@given(st.integers(2, 9), st.integers(1, 3), st.integers(0, 2**32))
def test_redirect_sends_back_what_involves_an_absent_party(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    receivers, present = rng.integers(-1, n, (n, k)).astype(np.int32), rng.random(n) < 0.5
    out = np.empty_like(receivers)
    redirect(receivers.reshape(-1), present, out.reshape(-1))
    for i in range(n):
        for s in range(k):
            j = receivers[i, s]
            assert out[i, s] == (-1 if j < 0 else j if present[i] and present[j] else i)


def test_without_a_place_to_keep_them_kernels_still_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def homeless(**options: Any) -> Callable[..., Any]:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        made: Callable[..., Any] = real(**options)
        return made

    monkeypatch.setattr(numba, "njit", homeless)

    def twice(x: float) -> float:
        return 2 * x

    assert compiled(twice)(2.0) == 4.0
