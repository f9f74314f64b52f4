from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr

import inca
from inca.network.lattice import discrete_gaussian as module
from inca.network.lattice.discrete_gaussian import DISTANCE, Keystream, discrete_gaussian

SEED = bytes(range(32))


def plain_samples(sigma: int, words: list[int]) -> tuple[list[int], int]:
    """Return the samples that `words` suffice for by the definition in decimals, and how many words they take."""
    samples, used, at = [], 0, 0

    def read() -> Iterator[int]:
        nonlocal at
        for word in words:
            at += 1
            yield word

    source = read()
    try:
        while True:
            samples.append(module._sample(sigma, source))
            used = at
    except (StopIteration, RuntimeError):  # a generator turns the one into the other
        return samples, used


def fast_samples(sigma: int, words: list[int], ulps: float) -> tuple[list[int], int, Any]:
    """Return the samples of the compiled form, as far as it goes, how many words they take, and what is open."""
    width, table, out = -(-sigma // 16), module._table(), np.empty(len(words) + 1, np.int64)
    surely = table.surely if sigma >= 2**16 else np.zeros_like(table.surely)
    odds = np.array([times / over for times, over in module._odds(sigma, width)] + [0.0])
    numbers = np.array(words, np.uint64), np.uint64(sigma), np.uint64(width)
    done, used, is_open = module._fill(*numbers, table.slots, surely, odds, out, ulps)
    return out[:done].tolist(), used, is_open


def exact_density(x: int, sigma: int) -> Decimal:
    """Return exp(-x^2 / (2 sigma^2)) with 100 digits."""
    context = Context(prec=100)
    return context.exp(context.divide(Decimal(-x * x), Decimal(2 * sigma * sigma)))


# --- the law ----------------------------------------------------------------------------------------------------------

WIDTHS = [1, 2, 3, 5, 15, 16, 17, 1000, 2**16 - 1, 2**16, 2**32 + 1, 2**49 + 2**48 + 1, 2**50]


@pytest.mark.parametrize("sigma", WIDTHS)
def test_proposal_times_acceptance_is_the_density_wherever_a_sample_may_lie(sigma: int) -> None:
    """In column k slots[k] / width is proposed for each place and p(x) odds accepted: p(x) times one number."""
    width, table = -(-sigma // 16), module._table()
    odds, counts = module._odds(sigma, width), np.bincount(table.slots, minlength=130).tolist()
    assert counts[:129] == table.weights and sum(counts) == 2**16 and counts[128] == 1
    for k, ((times, over), count) in enumerate(zip(odds, counts, strict=False)):
        size = 24 * sigma if k == 128 else width
        assert Fraction(count * times, size * over) == Fraction(counts[0], width)
        first = k * width
        assert exact_density(first, sigma) * times <= over  # a probability, in all of the column
        if sigma >= 2**16 and k < 128:
            least = exact_density(first + size - 1, sigma) * times / over
            assert int(table.surely[k]) <= least * 2**47 < int(table.surely[k]) + 2**47 * least / 20 + 1
    assert (
        128 * width >= 8 * sigma and 128 * width + 24 * sigma >= 32 * sigma
    )  # columns and tail reach as far as wanted


@given(st.integers(1, 2**50), st.integers(0, 2**47 - 1), st.integers(0, 40 * 2**50), st.data())
def test_the_exact_comparison_reads_more_bits_only_where_the_first_leave_it_open(
    sigma: int, u: int, place: int, data: st.DataObject
) -> None:
    x = place % (9 * sigma)
    times, over = data.draw(st.sampled_from(module._odds(sigma, -(-sigma // 16))[:100]))
    wanted = exact_density(x, sigma) * times / over
    if data.draw(st.booleans()):  # next to the probability, where it is open
        u = min(int(wanted * 2**47), 2**47 - 1)
    more = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
    following = iter(more)
    accepted = module._accepted(u, x, sigma, (times, over), following)
    read = 4 - len(list(following))
    number, bits = u, 47
    for word in more[:read]:
        number, bits = (number << 64) | word, bits + 64
    low, high = Decimal(number) / 2**bits, Decimal(number + 1) / 2**bits
    assert high <= wanted if accepted else low >= wanted
    assert read == 0 or abs(Decimal(u) / 2**47 - wanted) <= Decimal(2) ** -47


@pytest.mark.parametrize("sigma", WIDTHS)
def test_samples_are_those_of_the_definition(sigma: int) -> None:
    words = Keystream(SEED, b"plain").words(4001 if sigma > 100 else 1001)
    expected, used = plain_samples(sigma, words.tolist())
    assert fast_samples(sigma, words.tolist(), module._ULPS) == (expected, used, False)
    stream = Keystream(SEED, b"plain")
    assert discrete_gaussian(sigma, len(expected), stream).tolist() == expected
    assert stream.words(words.size - used).tolist() == words[used:].tolist()


@pytest.mark.parametrize("sigma", [1, 2**20, 2**50])
@pytest.mark.parametrize("ulps", [0.3, 0.02])
def test_what_is_left_open_is_settled_by_the_definition(
    sigma: int, ulps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With floats that are trusted far less nothing changes, but much more is left open."""
    words = Keystream(SEED, b"open").words(4000).tolist()
    some, used, is_open = fast_samples(sigma, words, ulps)
    assert is_open and some == plain_samples(sigma, words)[0][: len(some)] and used < len(words)
    expected = discrete_gaussian(sigma, 500, Keystream(SEED, b"open")).tolist()
    fill: Any = module._fill
    monkeypatch.setattr(module, "_fill", lambda *arguments: fill(*arguments, ulps))
    assert discrete_gaussian(sigma, 500, Keystream(SEED, b"open")).tolist() == expected


rare = st.sampled_from([0, 1, 2, 2**62, 2**63 - 1, 2**63, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 2**64 - 2, 2**64 - 1])
corners = st.builds(  # a slot, a sign and the first bits of U
    lambda slot, sign, first: slot | sign << 16 | first << 17,
    st.sampled_from([0, 3181, 3182, 65490, 65491, 65492, 65535]),
    st.integers(0, 1),
    st.sampled_from([0, 1, 2**46, 2**47 - 1]),
)


@given(
    st.lists(st.one_of(rare, corners, st.integers(0, 2**64 - 1)), min_size=60, max_size=60),
    st.one_of(st.sampled_from([1, 2, 3, 7, 2**50, 2**50 - 1]), st.integers(1, 2**50)),
)
def test_ties_and_corners_are_those_of_the_definition(words: list[int], sigma: int) -> None:
    expected, used = plain_samples(sigma, words)
    samples, read, is_open = fast_samples(sigma, words, module._ULPS)
    assert samples == expected[: len(samples)] and (is_open or (len(samples), read) == (len(expected), used))


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


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 200), st.sampled_from([1, 5, 2**40]))
def test_chunks_and_calls_do_not_matter(first: int, second: int, chunk: int, sigma: int) -> None:
    stream = Keystream(SEED, b"chunks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
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
    (
        STREAM.words,
        (2**35 + 1,),
        "count must be at most the 34359738368 words that are left of the stream, got 34359738",
    ),
    (discrete_gaussian, (0, 1, STREAM), "sigma must be from 1 to 1125899906842624, got 0"),
    (discrete_gaussian, (2**50 + 1, 1, STREAM), "sigma must be from 1 to 1125899906842624, got 1125899906842625"),
    (discrete_gaussian, (1.5, 1, STREAM), "sigma must be an integer, from 1 to 1125899906842624, got 1.5"),
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
