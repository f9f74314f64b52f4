"""Whole numbers on the wire: the lattice on which values, noise and messages live, and noise drawn on it exactly.

Floating point leaks: the low bits of a noisy value depend on the value in ways that no analysis of real numbers sees
(Mironov 2012). Here a coordinate is an int64 multiple of one public step, shares and portions conserve every unit,
and noise follows the discrete Gaussian law (Canonne, Kamath, Steinke 2020), decided by whole numbers alone.
"""

from __future__ import annotations

import hmac
import math
import sys
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import ArrayLike, NDArray

from inca._base.kernels import U, Words, compiled
from inca._base.types import Array
from inca._base.validation import InputError, finite_array, real, refuse
from inca._base.validation import whole as whole_number

Numbers = NDArray[np.int64]
"""Whole multiples of a lattice's step."""

# How the sampler differs from the discrete Gaussian law, if the words are uniform. Uniform numbers between 0 and 1 are
# read 64 bits at a time. Where that leaves a comparison open, it is settled as the bits that were not read would settle
# it: two equal words by a coin, a word that straddles j/sigma by the chance that it lies below. Both are exact unless
# the bits that were not read have settled something before, and they have only if the comparison before in the same
# descending run was left open too: chance 2^-64 for each of the two, 2^-128 for both.
# It remains to count such pairs. Let p = exp(-1/2). A try makes at most 1 / (1 - p) < 2.6 trials of chance p in step 1
# and as many in step 2, on average, each comparing fewer than 1 / p - 1 < 0.7 pairs of words; step 4 makes at most
# 1 / (1 - p) runs, each comparing fewer than e - 1 < 1.8 pairs: fewer than 9 a try in all. A try succeeds with chance
# (1 - p) / (2 sigma) * (sum over x of exp(-x^2 / (2 sigma^2))), where the sum is at least sigma * sqrt(2 pi) by Poisson
# summation: more than 0.49. So there are fewer than 9 / 0.49 < 2^5 pairs a sample. That k sigma + j overflows would
# take k >= 2^12, of chance below exp(-2^22). The distance in total variation is below 2^-128 * 2^5 and that.
DISTANCE = 2.0**-122
"""How far a sample of `discrete_gaussian` is from its law in total variation, at most, given uniform words."""

_Truth = bool | np.bool_
_MOST_SIGMA = 2**50
_LIMIT = 2.0**62
_CHUNK = 2**14  # words drawn at once: 128 KiB, which stay in the cache until they are used
_STREAM_WORDS = 2**35  # the cipher's block counter has 32 bits, and implementations differ in what they do after it
_LOW32 = U(0xFFFFFFFF)
_32 = U(32)
_GOLDEN = U(0x9E3779B97F4A7C15)  # an odd number near 2^64 / 1.618: its multiples are spread out
_MARK = U(1 << 63)


class Keystream:
    """Secret 64-bit words, the same for the same seed and label on every platform: the ChaCha20 stream cipher.

    Noise hides a value only from those who cannot predict it. A statistical generator's state can be computed from
    some of its output, and then all its other output, past and to come; noise is known in part to whoever knows the
    value it hid. Nothing of the kind is known for a stream cipher, whose words cannot be told from random ones
    without the key.

    The key is HMAC-SHA-256 under `seed` of the ASCII text `inca-keystream/1` and `label`, the nonce and the first
    block's number are 0 (RFC 8439), and words are little-endian. `seed` (32 bytes of the operating system's
    randomness) must be kept secret.

    >>> stream = Keystream(bytes(32), b"example")
    >>> first, second = stream.words(2), stream.words(1)
    >>> Keystream(bytes(32), b"example").words(3).tolist() == [*first.tolist(), *second.tolist()]
    True
    """

    def __init__(self, seed: bytes, label: bytes) -> None:
        """Begin the stream of `seed` (exactly 32 bytes) and `label` (any bytes)."""
        if not isinstance(seed, bytes):
            raise InputError(f"seed is a {type(seed).__name__}, but a byte string was expected")
        if len(seed) != 32:  # the length only: an error must not show a secret
            raise refuse("the length of seed", len(seed), "32 bytes")
        if not isinstance(label, bytes):
            raise refuse("label", label, "a byte string")
        key = hmac.digest(seed, b"inca-keystream/1" + label, "sha256")
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._left = _STREAM_WORDS
        self._returned = np.empty(0, np.uint64)

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        count = whole_number("count", count)
        old, self._returned = self._returned[:count], self._returned[count:]
        fresh = count - old.size
        if fresh > self._left:
            raise refuse("count", count, f"at most the {self._left} words that are left of the stream")
        self._left -= fresh
        new = np.frombuffer(self._cipher.update(bytes(8 * fresh)), dtype="<u8")
        return np.concatenate([old, new], dtype=np.uint64)

    def unread(self, words: Words) -> None:
        """Take back the last words handed out, so that they come next again."""
        self._returned = np.concatenate([words, self._returned])


# A kernel that draws takes and returns the place `at` of the next word and a supply of coins. Each has one exit, and a
# branch that reads words has an alternative: only then the compiler sees that `words` need not be counted as referenced
# anew, which would take several times as long as all the rest.


@compiled
def _word(words: Words, at: np.uint64) -> np.uint64:
    """Return the word at a place; beyond the end one just good enough for a sample to end, which is thrown away."""
    return words[at] if at < U(words.size) else (at * _GOLDEN) ^ ((at * _GOLDEN) >> _32)


@compiled
def _coin(words: Words, at: np.uint64, coins: np.uint64) -> tuple[_Truth, np.uint64, np.uint64]:
    """Return a fair coin: the next of the low 63 bits of a word, whose top bit is set to mark the end of the supply."""
    coins, at = (_word(words, at) | _MARK, at + U(1)) if coins == U(1) else (coins, at)
    return (coins & U(1)) != U(0), at, coins >> U(1)


@compiled
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower 64 bits of a * b."""
    low = (a & _LOW32) * (b & _LOW32)
    one = (a >> _32) * (b & _LOW32) + (low >> _32)
    two = (a & _LOW32) * (b >> _32) + (one & _LOW32)
    return (a >> _32) * (b >> _32) + (one >> _32) + (two >> _32), a * b


@compiled
def _below(words: Words, at: np.uint64, size: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return a number that is exactly uniform in 0..size-1: multiply, and reject what would bias it (Lemire 2019)."""
    high, low = _product(_word(words, at), size)
    at += U(1)
    while low < size and low < (U(0) - size) % size:
        high, low = _product(_word(words, at), size)
        at += U(1)
    return high, at


@compiled
def _under(words: Words, at: np.uint64, j: np.uint64, sigma: np.uint64) -> tuple[_Truth, np.uint64]:
    """Is a uniform number U below j / sigma? Its first 64 bits are the word at `at`.

    sigma * U lies between high + low / 2^64 and that plus sigma / 2^64. Only if j is between the two it is open, and
    then U is below with chance (2^64 - low) / sigma, as the bits of U that were not read are uniform.
    """
    high, low = _product(_word(words, at), sigma)
    at += U(1)
    if high + U(1) == j and low > U(0) - sigma:
        rest, at = _below(words, at, sigma)
        less = rest < U(0) - low
    else:
        less = high < j
    return less, at


@compiled
def _descends(words: Words, at: np.uint64, coins: np.uint64, last: np.uint64) -> tuple[_Truth, np.uint64, np.uint64]:
    """Is a uniform number that begins with the word at `at` below one that begins with `last`? A coin breaks ties."""
    word = _word(words, at)
    at += U(1)
    if word == last:
        less, at, coins = _coin(words, at, coins)
    else:
        less = word < last
    return less, at, coins


@compiled
def _root(words: Words, at: np.uint64, coins: np.uint64) -> tuple[_Truth, np.uint64, np.uint64]:
    """Return True with probability exp(-1/2), by von Neumann's descending runs (1951).

    Of uniform numbers U1, U2, ... let n be the number of those in the run 1/2 > U1 > U2 > ... The chance of n >= m is
    (1/2)^m / m!, so that n is even with chance 1 - 1/2 + (1/2)^2 / 2! - ... = exp(-1/2). The first bit of each U is a
    coin, the others are a word, which is drawn only if the first bit leaves the matter open.
    """
    first, at, coins = _coin(words, at, coins)
    second, at, coins = _coin(words, at, coins)
    even, over = first, first or second  # n = 0 if the first bit of U1 is 1; else n = 1 if that of U2 is 1
    last = _word(words, at)
    at += U(not over)
    while not over:
        word = _word(words, at)
        less, at, coins = _descends(words, at, coins, last)
        high, at, coins = _coin(words, at, coins)
        even, over, last = even != less, high or not less, word
    return even, at, coins


@compiled
def _accept(
    words: Words, at: np.uint64, coins: np.uint64, k: np.uint64, j: np.uint64, sigma: np.uint64
) -> tuple[_Truth, np.uint64, np.uint64]:
    """Return True with probability exp(-x (2k + x) / (2k + 2)), x = j / sigma: algorithm B of Karney (2016).

    The run is x > Z1 > Z2 > ..., and each of its numbers must also pass a trial of chance f = (2k + x) / (2k + 2);
    n >= m has the chance (x f)^m / m!, so that n is even with chance exp(-x f). The trial asks for a uniform number
    between 0 and 2k + 2 to be below 2k + x: its whole part decides, and if that is 2k, its fraction against x.
    """
    even, last = True, _word(words, at)
    more, at = _under(words, at, j, sigma)
    while more:
        if k == U(0):
            high, at, coins = _coin(words, at, coins)
            part = U(high)
        else:
            part, at = _below(words, at, k + k + U(2))
        if part == k + k:
            more, at = _under(words, at, j, sigma)
        else:
            more = part < k + k
        if more:
            even, word = not even, _word(words, at)
            more, at, coins = _descends(words, at, coins, last)
            last = word
    return even, at, coins


@compiled
def _fill(words: Words, sigma: np.uint64, out: Numbers) -> tuple[int, int]:
    """Fill `out` by algorithm D of Karney (2016) for mean 0 and whole sigma, as far as `words` go.

    Return how many samples are done and how many words they took. A sample that runs out of words is not counted, nor
    are its words: it starts again from the same ones when more follow them. Its value is thus the same function of the
    stream as if all words had been there at once.

    A sample is +-(k + x) sigma with x = j / sigma. As k^2 + x (2k + x) = (k + x)^2, k and j are accepted together with
    chance proportional to exp(-(k + x)^2 / 2). Only 0 can come with both signs, so one of the two is refused.
    """
    done, used, at, end = 0, U(0), U(0), U(words.size)
    while done < out.size and at <= end:
        at, coins = used, U(1)  # no coins from the sample before: a sample depends on its own words only
        k, j = U(0), U(0)
        accepted: _Truth = False
        negative: _Truth = False
        while not accepted:
            # Step 1: k, the trials that succeed before the first that does not, has chance proportional to exp(-k/2).
            # Step 2: if k (k - 1) more succeed it is accepted: chance exp(-k (k-1) / 2), which makes it exp(-k^2 / 2).
            accepted, counting, k, left = True, True, U(0), U(1)
            while accepted and left > U(0):
                success, at, coins = _root(words, at, coins)
                if not counting:
                    accepted = success
                    left -= U(1)
                elif success:
                    k += U(1)
                else:
                    counting, left = False, k * (k - U(1))
            if accepted:  # step 3: the sign, and the place between k sigma and (k + 1) sigma
                negative, at, coins = _coin(words, at, coins)
                j, at = _below(words, at, sigma)
                accepted = not negative or k > U(0) or j > U(0)
            left = k + U(1)  # step 4: with chance exp(-x (2k + x) / 2), the (k+1)-th power of what one run gives
            while accepted and left > U(0):
                accepted, at, coins = _accept(words, at, coins, k, j, sigma)
                left -= U(1)
        if at <= end:
            size = np.int64(k * sigma + j)
            out[done] = -size if negative else size
            done, used = done + 1, at
    return done, int(used)


def discrete_gaussian(sigma: int, count: int, stream: Keystream) -> Numbers:
    """Return `count` samples x of the discrete Gaussian: whole, with chance proportional to exp(-x^2 / (2 sigma^2)).

    `sigma` is a whole number from 1 to 2^50. The samples are exact up to `DISTANCE`: C. F. F. Karney, "Sampling
    exactly from the normal distribution", ACM Transactions on Mathematical Software 42(1), 2016, with all comparisons
    between whole numbers. They depend on the stream and sigma only; two calls give what one call for both would. The
    time that a sample takes depends on its value, so draw all of them before the first message.

    >>> discrete_gaussian(3, 8, Keystream(bytes(32), b"example")).tolist()
    [4, 1, -1, 4, 5, 2, -2, 2]
    """
    width = U(whole_number("sigma", sigma, least=1, most=_MOST_SIGMA))
    out = np.empty(whole_number("count", count), np.int64)
    if not isinstance(stream, Keystream):
        raise refuse("stream", stream, "a Keystream")
    done = ahead = 0
    while done < out.size:
        # A sample takes 10 words on average, so that for few of them less than a chunk will do.
        words = stream.words(ahead + min(_CHUNK, 10 * (out.size - done) + 64))
        more, used = _fill(words, width, out[done:])
        stream.unread(words[used:])
        done, ahead = done + more, words.size - used
    return out


def granularity_for(
    sigma_independent: float, sigma_cancelling: float, reach: float, parties: int, rounds: int
) -> float:
    """Return the lattice's step: the largest power of two that is at most 2^-30 of the smaller noise.

    A noise of 0 does not count; `reach` is the largest absolute value of a coordinate. If balances might leave int64,
    all noise at 16 standard deviations and all of it in one place, or noise be too wide to be drawn, the step is
    the smallest power of two that avoids it, up to 2^-20 of the smaller noise.

    >>> granularity_for(1.0, 3.0, reach=100.0, parties=50, rounds=20) == 2.0**-30
    True
    """
    independent = real("sigma_independent", sigma_independent, least=0.0)
    cancelling = real("sigma_cancelling", sigma_cancelling, least=0.0)
    widest = real("reach", reach, least=0.0)
    parties = whole_number("parties", parties, least=1, most=2**32)
    rounds = whole_number("rounds", rounds, least=1, most=2**32)
    sigmas = [sigma for sigma in (independent, cancelling) if sigma > 0.0]
    if not sigmas:
        raise InputError("sigma_independent and sigma_cancelling are both 0, but at least one above 0 was expected")
    total = parties * (widest + 16.0 * independent + 2.0 * 16.0 * (rounds + 1) * cancelling)
    exponent = math.frexp(min(sigmas))[1] - 1  # of the largest power of two that is not above the smaller noise
    for bits in range(30, 19, -1):
        step = math.ldexp(1.0, exponent - bits)
        if step >= sys.float_info.min and total < _LIMIT * step and max(sigmas) <= _MOST_SIGMA * step:
            return step
    raise InputError(
        f"the smaller noise is {min(sigmas):g} and balances may reach {total:g}, but noise of at least 2^20 steps of "
        "a lattice was expected, with balances below 2^62 and noise of at most 2^50 steps"
    )


@dataclass(frozen=True)
class Lattice:
    """The multiples of a step that is a power of two, so that scaling by it rounds nothing.

    >>> lattice = Lattice(0.25)
    >>> lattice.encode([1.0, -0.6]), lattice.decode(np.array([4, -2])), lattice.level(1.1)
    (array([ 4, -2]), array([ 1. , -0.5]), 5)
    """

    granularity: float

    def __post_init__(self) -> None:
        """Refuse what is not a power of two."""
        step = real("granularity", self.granularity, least=0.0)
        if step < sys.float_info.min or math.frexp(step)[0] != 0.5:
            raise refuse("granularity", self.granularity, "a power of two")

    def encode(self, values: ArrayLike) -> Numbers:
        """Return the (d,) or (n, d) values in steps, each rounded to the nearest, halves to even."""
        array = finite_array("values", values, (1, 2), "(d,) or (n, d)")
        with np.errstate(over="ignore", under="ignore"):  # too large is refused below, too small is 0
            steps = np.rint(array / self.granularity)
        if not (fits := np.abs(steps) < _LIMIT).all():
            where = tuple(int(index) for index in np.argwhere(~fits)[0])
            most = _LIMIT * self.granularity
            raise refuse(f"values{list(where)}", float(array[where]), f"a number below {most:g} in absolute value")
        return steps.astype(np.int64)

    def decode(self, numbers: Numbers) -> Array:
        """Return the values of whole numbers of steps, each rounded to the nearest float64."""
        return np.asarray(_numbers("numbers", numbers).astype(np.float64) * self.granularity, dtype=np.float64)

    def level(self, sigma: float) -> int:
        """Return the noise level `sigma` in steps, rounded up: noise is never below what was asked for."""
        steps = real("sigma", sigma, least=0.0) / self.granularity
        if not steps <= _MOST_SIGMA:
            raise refuse("sigma", sigma, f"a number from 0 to {_MOST_SIGMA * self.granularity:g}")
        return math.ceil(steps)


def portion(whole: Numbers, r: int, pieces: int) -> Numbers:
    """Return the r-th of the `pieces` nearly equal parts of `whole` (r from 0): they sum to it exactly.

    The first r parts together are floor(r * whole / pieces); parts beyond the last are 0.

    >>> [portion(np.array([7, -7]), r, 3).tolist() for r in range(4)]
    [[2, -3], [2, -2], [3, -2], [0, 0]]
    """
    array = _numbers("whole", whole)
    r = whole_number("r", r)
    pieces = whole_number("pieces", pieces, least=1, most=2**31)
    if r >= pieces:
        return np.zeros_like(array)
    quotient, rest = np.divmod(array, np.int64(pieces))  # 0 <= rest < pieces, so that the products fit in int64
    return np.asarray(quotient + (rest * (r + 1) // pieces - rest * r // pieces), dtype=np.int64)


def share(balance: Numbers, receivers: int) -> Numbers:
    """Return what each of `receivers` gets of a balance, rounded down; the sender keeps balance - receivers * share.

    >>> share(np.array([10, -10]), receivers=2).tolist()
    [3, -4]
    """
    receivers = whole_number("receivers", receivers, most=2**31)
    return np.asarray(_numbers("balance", balance) // np.int64(receivers + 1), dtype=np.int64)


def _numbers(name: str, value: Numbers) -> Numbers:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        kind = value.dtype.name if isinstance(value, np.ndarray) else type(value).__name__
        raise refuse(f"the type of {name}", kind, "an int64 array")
    return value
