"""Noise on the lattice, drawn exactly: the discrete Gaussian from secret words, by rejection.

A sample x has a probability proportional to p(x) = exp(-x^2 / (2 sigma^2)). Its absolute value is drawn from columns of
width w = ceil(sigma / 16). Column k of 128 is proposed with a probability proportional to a whole number W_k, at least
W_0 exp(-(k / 16)^2 / 2): one slot of a table for each unit, the same table for every sigma. As k w >= k sigma / 16, no
p(x) of the column is larger than W_k / W_0. Then each place in the column is proposed alike, and x = k w + j accepted
with the probability p(x) W_0 / W_k. A last column, the tail, has one slot, a width of 24 sigma, and begins at 128 w, at
least 8 sigma, where p is below exp(-32): there p(x) W_0 24 sigma / w is less than 1. What lies beyond 32 sigma is
refused. So the law is exact, but for that.

A uniform number U decides whether x is accepted. Of its bits 47 are read first. They nearly always settle it: below the
least probability of the column without any work, else by a float whose error is bounded. What floats leave open, less
than once in 2^40 samples, is worked out in decimals, with as many digits, and as many more bits of U, as it takes.
Floating point thus never decides anything that the exact numbers would decide otherwise (Mironov 2012).
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from inca._base.extras import importing
from inca._base.kernels import U, Words, compiled
from inca._base.types import Array
from inca._base.validation import integer, refuse
from inca.network.lattice import Numbers

with importing("inca.network", extra="network"):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

DISTANCE = 2.0**-700
"""How far a sample of `discrete_gaussian` is from its distribution in total variation at most, given uniform words.

It has no values of 32 sigma or more: P(|X| >= 32 sigma) <= 2 exp(-32^2 / 2) < 2^-737 for a discrete Gaussian X.
"""

MAX_SIGMA = 2**50
"""The widest noise that can be drawn, in lattice steps."""

NOISE_BOUND = 32
"""How many standard deviations no draw of noise exceeds."""

_Truth = bool | np.bool_
_CHUNK = 2**14  # words drawn at once: 128 KiB, which stay in the cache until they are used
_STREAM_WORDS = 2**35  # the cipher's block counter has 32 bits, and implementations differ in what they do after it
_LOW32 = U(0xFFFFFFFF)
_32 = U(32)
_IN_SIGMA, _COLUMNS = 16, 128  # columns in a sigma, and in all, up to 8 sigma and a little more
_TAIL_WIDTH = 24  # sigmas
_SLOTS = 2**16
_NOTHING = _COLUMNS + 1  # what a slot holds that proposes nothing
_SLOT_BITS, _FIRST_BITS = 16, 47  # of a word: the slot, the sign, and the first bits of U
_WIDE = 2**16  # from this sigma on, w is sigma / 16 but for a part of less than 2^-12
_ULPS = 2.0**-48  # far more than what floats are off: a quotient, a square, an exponential and a product


class Keystream:
    """Secret 64-bit words, the same for the same seed and label on every platform: the ChaCha20 stream cipher.

    A statistical generator's state can be computed from some of its output, and then all its other output, past and to
    come; noise is known in part to whoever knows the value it hid. The words of a stream cipher cannot be told from
    random ones without the key.

    The key is HMAC-SHA-256 under `seed` of the ASCII text `inca-keystream/1` and `label`, the nonce and the first
    block's number are 0 (RFC 8439), and words are little-endian. `seed` (32 bytes of the operating system's
    randomness) must be kept secret.

    Example:
        >>> stream = Keystream(bytes(32), b"example")
        >>> first, second = stream.words(2), stream.words(1)
        >>> Keystream(bytes(32), b"example").words(3).tolist() == [*first.tolist(), *second.tolist()]
        True
        >>> stream
        Keystream(label=b'example', 3 words read)
    """

    def __init__(self, seed: bytes, label: bytes) -> None:
        if len(seed) != 32:
            refuse("the length of seed", len(seed), "32 bytes")
        key = hmac.digest(seed, b"inca-keystream/1" + label, "sha256")
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._label = label
        self._left = _STREAM_WORDS
        self._returned = np.empty(0, np.uint64)

    def __repr__(self) -> str:
        read = _STREAM_WORDS - self._left - self._returned.size
        return f"Keystream(label={self._label!r}, {read} words read)"

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        old, self._returned = self._returned[:count], self._returned[count:]
        fresh = count - old.size
        if fresh > self._left:
            refuse("count", count, f"at most the {self._left} words that are left of the stream")
        self._left -= fresh
        new = np.frombuffer(self._cipher.update(bytes(8 * fresh)), dtype="<u8")
        return np.concatenate([old, new], dtype=np.uint64)

    def unread(self, words: Words) -> None:
        """Take back the last words handed out, so that they come next again."""
        self._returned = np.concatenate([words, self._returned])


@compiled
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower 64 bits of a * b."""
    low = (a & _LOW32) * (b & _LOW32)
    one = (a >> _32) * (b & _LOW32) + (low >> _32)
    two = (a & _LOW32) * (b >> _32) + (one & _LOW32)
    return (a >> _32) * (b >> _32) + (one >> _32) + (two >> _32), a * b


@dataclass(frozen=True, eq=False)
class _Table:
    """The columns."""

    slots: NDArray[np.uint8]  # the column of each slot: 0..127, 128 for the tail, 129 for nothing
    surely: Words  # first bits of U below this accept whatever is proposed in the column, if sigma is wide
    weights: list[int]  # W_k


@lru_cache(maxsize=1)
def _table() -> _Table:
    """Return the columns: whole numbers, which do not depend on how floats are rounded anywhere."""
    up, down = Context(prec=30, rounding=ROUND_CEILING), Context(prec=30, rounding=ROUND_FLOOR)
    nearly_1 = 1 - Decimal(2) ** -12

    def density(columns: Decimal, rounded: Context) -> Decimal:
        """Return exp(-(columns / 16)^2 / 2), rounded; the last digit is given away, as an exponential ignores this."""
        exact = rounded.exp(-(columns * columns) / (2 * _IN_SIGMA**2))
        return exact * (1 + (1 if rounded is up else -1) * Decimal(10) ** -28)

    heights = [density(Decimal(k), up) for k in range(_COLUMNS)]
    highest = int((_SLOTS - _COLUMNS - 1) / sum(heights))
    weights = [highest, *(math.ceil(highest * height) for height in heights[1:]), 1]
    slots = np.full(_SLOTS, _NOTHING, dtype=np.uint8)
    slots[: sum(weights)] = np.repeat(np.arange(_COLUMNS + 1, dtype=np.uint8), weights)
    least = [density((k + 1) / nearly_1, down) for k in range(_COLUMNS)]
    surely = [math.floor(2**_FIRST_BITS * highest * p / weight) for p, weight in zip(least, weights, strict=False)]
    return _Table(slots, np.array([*surely, 0, 0], dtype=np.uint64), weights)


def _odds(sigma: int, width: int) -> list[tuple[int, int]]:
    """Return what p(x) is multiplied with to accept x, by column: W_0 / W_k as a numerator and a denominator."""
    *weights, tail = _table().weights
    return [*((weights[0], weight) for weight in weights), (weights[0] * _TAIL_WIDTH * sigma, tail * width)]


@compiled
def _fill(
    words: Words,
    sigma: np.uint64,
    width: np.uint64,
    slots: NDArray[np.uint8],
    surely: Words,
    odds: Array,
    out: Numbers,
    ulps: float = _ULPS,
) -> tuple[int, int, _Truth]:
    """Fill `out` as far as `words` go.

    Return how many samples are done, how many words they took, and whether the next one is left open. A sample that
    runs out of words is not counted, nor are its words: it starts again from the same ones when more follow them. Its
    value is thus the same function of the stream as if all words had been there at once.
    """
    done, used, at, end = 0, 0, 0, words.size
    is_open: _Truth = False
    lacking: _Truth = False
    while done < out.size and at < end and not (is_open or lacking):
        word = words[at]
        at += 1
        k = slots[word & U(_SLOTS - 1)]
        if k != _NOTHING:
            size = sigma * U(_TAIL_WIDTH) if k == _COLUMNS else width
            high, low, lacking = U(0), U(0), True
            while (
                lacking and at < end
            ):  # exactly uniform in 0..size-1: multiply, and reject what would bias it (Lemire)
                high, low = _product(words[at], size)
                at += 1
                lacking = low < size and low < (U(0) - size) % size
            x, first = U(k) * width + high, word >> U(_SLOT_BITS + 1)
            accepted: _Truth = first < surely[k]
            if not accepted:
                ratio = np.float64(x) / np.float64(sigma)
                half = ratio * ratio / 2.0
                probability = math.exp(-half) * odds[k]
                error = probability * (half + 1.0) * ulps
                accepted = (np.float64(first) + 1.0) * 2.0**-_FIRST_BITS <= probability - error
                is_open = not accepted and np.float64(first) * 2.0**-_FIRST_BITS < probability + error
            negative, inside = (word >> U(_SLOT_BITS)) & U(1) != U(0), x < U(NOISE_BOUND) * sigma
            is_open = is_open and inside and not lacking
            if accepted and inside and not lacking and not (negative and x == U(0)):  # 0 would come with both signs
                out[done] = -np.int64(x) if negative else np.int64(x)
                done, used = done + 1, at
    return done, used, is_open


def _sample(sigma: int, words: Iterator[int]) -> int:
    """Return the sample that these words give: the definition, in whole numbers and decimals."""
    width = -(-sigma // _IN_SIGMA)
    slots, odds = _table().slots, _odds(sigma, width)
    while True:
        word = next(words)
        if (k := int(slots[word % _SLOTS])) == _NOTHING:
            continue
        size = sigma * _TAIL_WIDTH if k == _COLUMNS else width
        while (product := next(words) * size) % 2**64 < 2**64 % size:
            pass
        x, negative = k * width + (product >> 64), word >> _SLOT_BITS & 1
        if x >= NOISE_BOUND * sigma or not _accepted(word >> (_SLOT_BITS + 1), x, sigma, odds[k], words):
            continue
        if not (negative and x == 0):
            return -x if negative else x


def _accepted(u: int, x: int, sigma: int, odds: tuple[int, int], words: Iterator[int]) -> bool:
    """Is U, whose first 47 bits are `u`, below p(x) times the odds? Read as many more bits as it takes."""
    (times, over), bits, digits = odds, _FIRST_BITS, 40
    while True:
        context = Context(prec=digits)
        p = context.exp(context.divide(Decimal(-x * x), Decimal(2 * sigma * sigma)))
        slack = Decimal(10) ** (4 - digits)  # x is at most 32 sigma, so that a rounded quotient is off by less
        low, high = (
            context.multiply(context.multiply(Decimal(2**bits * times), p), 1 + sign * slack) for sign in (-1, 1)
        )
        if (u + 1) * over <= low:
            return True
        if u * over >= high:
            return False
        u, bits, digits = (u << 64) | next(words), bits + 64, digits + 25


def discrete_gaussian(sigma: int, count: int, stream: Keystream) -> Numbers:
    """Draw from the discrete Gaussian: integers x with probability proportional to exp(-x^2 / (2 sigma^2)).

    The samples are exact up to `DISTANCE`. They depend on the stream and sigma only; two calls give what one call for
    both would. The time that a sample takes depends on its value, so draw all of them before the first message.

    Example:
        >>> discrete_gaussian(3, 8, Keystream(bytes(32), b"example")).tolist()
        [2, 1, 3, -2, 1, 5, 1, -4]
    """
    sigma = integer("sigma", sigma, min=1, max=MAX_SIGMA)
    out = np.empty(count, np.int64)
    width, table, done, ahead = -(-sigma // _IN_SIGMA), _table(), 0, 0
    surely = table.surely if sigma >= _WIDE else np.zeros_like(table.surely)
    odds = np.array([times / over for times, over in _odds(sigma, width)] + [0.0])
    while done < out.size:
        # A sample takes little more than two words, so that for few of them less than a chunk will do.
        words = stream.words(ahead + min(_CHUNK, 3 * (out.size - done) + 64))
        more, used, is_open = _fill(words, U(sigma), U(width), table.slots, surely, odds, out[done:])
        stream.unread(words[used:])
        done, ahead = done + more, words.size - used
        if is_open:
            out[done] = _sample(sigma, iter(lambda: int(stream.words(1)[0]), None))
            done, ahead = done + 1, 0
    return out
