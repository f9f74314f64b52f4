from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr

import inca
from inca.network.lattice import discrete_gaussian as discrete_gaussian_module
from inca.network.lattice.discrete_gaussian import DISTANCE, Keystream, discrete_gaussian

SEED = bytes(range(32))


class Plain:
    """The sampler in plain Python on unbounded numbers, reading the same words in the same order."""

    def __init__(self, words: Iterator[int]) -> None:
        self.words = words
        self.coins: list[int] = []

    def coin(self) -> bool:
        if not self.coins:
            word = next(self.words)
            self.coins = [word >> place & 1 for place in range(63)]
        return bool(self.coins.pop(0))

    def below(self, size: int) -> int:
        while (product := next(self.words) * size) % 2**64 < 2**64 % size:
            pass
        return product >> 64

    def under(self, word: int, j: int, sigma: int) -> bool:
        if (word + 1) * sigma <= j << 64:
            return True
        if word * sigma >= j << 64:
            return False
        return self.below(sigma) < (j << 64) - word * sigma

    def descends(self, word: int, last: int) -> bool:
        return self.coin() if word == last else word < last

    def root(self) -> bool:
        """A run below 1/2: its length is the number of numbers that keep it going."""
        bits = [self.coin(), self.coin()]
        if bits[0] or bits[1]:
            return bits[0]
        length, last = 1, next(self.words)
        while True:
            word = next(self.words)
            less, high = self.descends(word, last), self.coin()
            length += less
            if high or not less:
                return length % 2 == 0
            last = word

    def accept(self, k: int, j: int, sigma: int) -> bool:
        length, last = 0, next(self.words)
        less = self.under(last, j, sigma)
        while less:
            part = self.below(2 * k + 2) if k else int(self.coin())
            if part > 2 * k or (part == 2 * k and not self.under(next(self.words), j, sigma)):
                break
            length, word = length + 1, next(self.words)
            less, last = self.descends(word, last), word
        return length % 2 == 0

    def sample(self, sigma: int) -> int:
        self.coins = []
        while True:
            k = 0
            while self.root():
                k += 1
            if not all(self.root() for _ in range(k * (k - 1))):
                continue
            negative, j = self.coin(), self.below(sigma)
            if negative and k == 0 and j == 0:
                continue
            if all(self.accept(k, j, sigma) for _ in range(k + 1)):
                return -(k * sigma + j) if negative else k * sigma + j


def plain_samples(sigma: int, words: list[int]) -> tuple[list[int], int]:
    """Return the samples that `words` suffice for, and how many words they take."""
    samples, used, at = [], 0, 0

    def read() -> Iterator[int]:
        nonlocal at
        for word in words:
            at += 1
            yield word

    plain = Plain(read())
    try:
        while True:
            samples.append(plain.sample(sigma))
            used = at
    except (StopIteration, RuntimeError):  # a generator turns the one into the other
        return samples, used


def test_words_are_chacha20_under_a_derived_key() -> None:
    # HMAC (RFC 2104) written out: two hashes, the key padded to a block of 64 bytes.
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in SEED + bytes(32)) + b"inca-keystream/1" + b"label").digest()
    key = hashlib.sha256(bytes(b ^ 0x5C for b in SEED + bytes(32)) + inner).digest()
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * 40))
    expected = [int.from_bytes(stream[8 * b : 8 * b + 8], "little") for b in range(40)]
    assert Keystream(SEED, b"label").words(40).tolist() == expected
    assert expected[:2] == [0x15A3F68A039DDD1D, 0xF81885A43B410AFA]


def chacha20_block(key: bytes) -> list[int]:
    """Return block 0 for nonce 0 as 8 words, by RFC 8439, section 2.3."""

    def rotated(x: int, by: int) -> int:
        return (x << by | x >> (32 - by)) % 2**32

    head = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start = [*head, *(int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)), 0, 0, 0, 0]
    s = start.copy()
    columns = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
    diagonals = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
    for _ in range(10):
        for a, b, c, d in columns + diagonals:
            for by, (x, y, z) in zip((16, 12, 8, 7), ((a, b, d), (c, d, b)) * 2, strict=True):
                s[x] = (s[x] + s[y]) % 2**32
                s[z] = rotated(s[z] ^ s[x], by)
    low = [(mine + first) % 2**32 for mine, first in zip(s, start, strict=True)]
    return [low[2 * i] + (low[2 * i + 1] << 32) for i in range(8)]


def test_the_cipher_is_that_of_the_standard() -> None:
    key = hashlib.sha256(b"any").digest()
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(64))
    assert np.frombuffer(stream, "<u8").tolist() == chacha20_block(key)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_words_continue_and_can_be_given_back(steps: list[tuple[int, int]]) -> None:
    stream, expected, at = Keystream(SEED, b""), Keystream(SEED, b"").words(300).tolist(), 0
    for count, back in steps:
        words = stream.words(count)
        assert words.dtype == np.uint64 and words.tolist() == expected[at : at + count]
        kept = max(count - back, 0)
        stream.unread(words[kept:])
        at += kept


def test_seeds_and_labels_give_different_words() -> None:
    streams = [Keystream(bytes([s]) * 32, bytes([x])) for s in range(10) for x in range(10)]
    assert len({tuple(stream.words(2).tolist()) for stream in streams}) == 100


@pytest.mark.parametrize("sigma", [1, 2, 3, 5, 1000, 2**32 + 1, 2**49 + 2**48 + 1, 2**50])
def test_samples_are_those_of_the_plain_sampler(sigma: int) -> None:
    words = Keystream(SEED, b"plain").words(15_000)
    expected, used = plain_samples(sigma, words.tolist())
    out = np.empty(3000, np.int64)
    assert discrete_gaussian_module._fill(words, np.uint64(sigma), out) == (len(expected), used)
    assert out[: len(expected)].tolist() == expected
    stream = Keystream(SEED, b"plain")
    assert discrete_gaussian(sigma, len(expected), stream).tolist() == expected
    assert stream.words(1)[0] == words[used]


rare = st.sampled_from([0, 1, 2, 2**62, 2**63 - 1, 2**63, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 2**64 - 2, 2**64 - 1])


@given(
    st.lists(st.one_of(rare, rare, st.integers(0, 2**64 - 1)), min_size=60, max_size=60),
    st.one_of(st.sampled_from([1, 2, 3, 7, 2**50, 2**50 - 1]), st.integers(1, 2**50)),
)
def test_ties_and_open_comparisons_are_those_of_the_plain_sampler(words: list[int], sigma: int) -> None:
    expected, used = plain_samples(sigma, words)
    out = np.empty(60, np.int64)
    assert discrete_gaussian_module._fill(np.array(words, np.uint64), np.uint64(sigma), out) == (len(expected), used)
    assert out[: len(expected)].tolist() == expected


@given(st.one_of(st.integers(2, 2**50), st.sampled_from([2, 4, 2**50])), st.data())
def test_a_word_that_straddles_the_bound_is_settled_by_a_uniform_number(sigma: int, data: st.DataObject) -> None:
    j = data.draw(st.integers(1, sigma - 1))
    word = (j << 64) // sigma + data.draw(st.integers(-1, 1))
    settling = min(max((j << 64) - word * sigma + data.draw(st.integers(-1, 1)), 0), sigma - 1)
    words = [
        word,
        -((-settling << 64) // sigma) % 2**64,
        2**63 + 1,
        2**62 + 1,
    ]  # the second gives the number `settling`
    following = iter(words[1:])
    expected = Plain(following).under(word, j, sigma)
    less, at = discrete_gaussian_module._under(np.array(words, np.uint64), np.uint64(0), np.uint64(j), np.uint64(sigma))
    assert bool(less) == expected and int(at) == len(words) - len(list(following))


@pytest.mark.parametrize("sigma", [1, 2, 2**32, 2**50])
def test_a_sample_without_words_ends(sigma: int) -> None:
    """Wherever the words end, the makeshift ones after them must bring the sample to an end."""
    for size in range(0, 3000, 7):
        words = np.full(size, 0x5555555555555555, np.uint64)
        assert discrete_gaussian_module._fill(words, np.uint64(sigma), np.empty(10**6, np.int64))[1] <= size


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 200), st.sampled_from([1, 5, 2**40]))
def test_chunks_and_calls_do_not_matter(first: int, second: int, chunk: int, sigma: int) -> None:
    stream = Keystream(SEED, b"chunks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrete_gaussian_module, "_CHUNK", chunk)
        parts = [discrete_gaussian(sigma, first, stream), discrete_gaussian(sigma, second, stream)]
    expected = discrete_gaussian(sigma, 700, Keystream(SEED, b"chunks"))
    assert np.concatenate(parts).tolist() == expected[: first + second].tolist()


COUNT = 1_000_000


def check_counts(seen: NDArray[np.int64], expected: NDArray[np.float64]) -> None:
    """Chi-square test with a false alarm of 1e-7; there are seven of them, and no small bins that would alter that."""
    assert expected.min() > 50 and seen.sum() == COUNT and expected.sum() == pytest.approx(COUNT)
    assert chdtrc(expected.size - 1, ((seen - expected) ** 2 / expected).sum()) > 1e-7


@pytest.mark.parametrize("sigma", [1, pytest.param(2, marks=pytest.mark.slow), 5])
def test_small_samples_follow_the_distribution(sigma: int) -> None:
    most = 4 * sigma - 1  # what lies beyond is one bin
    samples = discrete_gaussian(sigma, COUNT, Keystream(SEED, b"law"))
    weight = {x: math.exp(-(x**2) / (2 * sigma**2)) for x in range(-40 * sigma, 40 * sigma + 1)}
    probability = np.array([weight[x] for x in range(-most, most + 1)]) / sum(weight.values())
    seen = np.bincount(samples[np.abs(samples) <= most] + most, minlength=2 * most + 1)
    check_counts(np.append(seen, COUNT - seen.sum()), COUNT * np.append(probability, 1 - probability.sum()))


@pytest.mark.parametrize("sigma", [pytest.param(2**32, marks=pytest.mark.slow), 2**50])
def test_large_samples_follow_the_distribution(sigma: int) -> None:
    """The bins are so many steps wide that the normal distribution tells their probabilities."""
    samples = discrete_gaussian(sigma, COUNT, Keystream(SEED, b"law"))
    edges = np.concatenate([[-np.inf], np.linspace(-3.5, 3.5, 101), [np.inf]])
    check_counts(np.histogram(samples / sigma, edges)[0], COUNT * np.diff(ndtr(edges)))
    # The low bits are uniform but for less than exp(-2^40), by Poisson summation.
    check_counts(np.bincount(samples & 255, minlength=256), np.full(256, COUNT / 256))


@pytest.mark.parametrize("sigma", [1, 3, 2**20, 2**50])
def test_moments(sigma: int) -> None:
    """Moments of the normal distribution, to which those of the discrete one are equal up to 1e-6 of sigma^2 and less.

    Six standard errors of means of 200,000: false alarms below 1e-8 for each of 12.
    """
    count = 200_000
    z = discrete_gaussian(sigma, count, Keystream(SEED, b"moments")) / sigma
    assert abs(z.mean()) < 6 / count**0.5
    assert abs((z**2).mean() - 1) < 6 * (2 / count) ** 0.5 + 1e-6
    assert abs((z[1:] * z[:-1]).mean()) < 6 / count**0.5


def test_the_distance_is_as_promised() -> None:
    assert DISTANCE < 2.0**-60


STREAM = Keystream(SEED, b"")
REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (Keystream, (bytes(31), b""), "the length of seed must be 32 bytes, got 31"),
    (Keystream, ("s" * 32, b""), "seed must be a byte string, got a str"),
    (Keystream, (SEED, "label"), "label must be a byte string, got 'label'"),
    (STREAM.words, (-1,), "count must be at least 0, got -1"),
    (
        STREAM.words,
        (2**35 + 1,),
        "count must be at most the 34359738368 words that are left of the stream, got 34359738",
    ),
    (discrete_gaussian, (0, 1, STREAM), "sigma must be from 1 to 1125899906842624, got 0"),
    (discrete_gaussian, (2**50 + 1, 1, STREAM), "sigma must be from 1 to 1125899906842624, got 1125899906842625"),
    (discrete_gaussian, (1.5, 1, STREAM), "sigma must be an integer, from 1 to 1125899906842624, got 1.5"),
    (discrete_gaussian, (1, -1, STREAM), "count must be at least 0, got -1"),
    (discrete_gaussian, (1, 1, None), "stream must be a Keystream, got None"),
]


@pytest.mark.parametrize(("call", "arguments", "sentence"), REFUSED)
def test_refusals(call: Callable[..., Any], arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call(*arguments)
    assert str(caught.value).startswith(sentence)


def test_neither_an_error_nor_the_repr_shows_the_seed() -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        Keystream(b"secret", b"")
    assert "secret" not in str(caught.value)
    stream = Keystream(b"secret".ljust(32), b"masks")
    assert repr(stream) == "Keystream(label=b'masks', 0 words read)"
    words = stream.words(5)
    stream.unread(words[3:])
    assert repr(stream) == "Keystream(label=b'masks', 3 words read)"
