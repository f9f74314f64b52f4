"""Noise on the lattice, drawn exactly: the discrete Gaussian (Canonne, Kamath, Steinke 2020) from secret words.

Every decision of the sampler is a comparison of integers. Floating point would leak: the low bits of a noisy value
depend on the value in ways that no analysis of real numbers sees (Mironov 2012).
"""

from __future__ import annotations

import hmac

import numpy as np

from inca._base.extras import importing
from inca._base.kernels import U, Words, compiled
from inca._base.validation import integer, refuse
from inca.errors import InvalidInput
from inca.network.lattice import Numbers

with importing("inca.network", extra="network"):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

# How the sampler differs from the discrete Gaussian distribution, if the words are uniform. Uniform numbers between 0
# and 1 are read 64 bits at a time. Where that leaves a comparison open, it is settled as the bits that were not read
# would settle it: two equal words by a coin, a word that straddles j/sigma by the probability that it lies below. Both
# are exact unless the bits that were not read have settled something before, and they have only if the comparison
# before in the same descending run was left open too: probability 2^-64 for each of the two, 2^-128 for both.
# It remains to count such pairs. Let p = exp(-1/2). A try makes at most 1 / (1 - p) < 2.6 trials of probability p in
# step 1 and as many in step 2, on average, each comparing fewer than 1 / p - 1 < 0.7 pairs of words; step 4 makes at
# most 1 / (1 - p) runs, each comparing fewer than e - 1 < 1.8 pairs: fewer than 9 a try in all. A try succeeds with
# probability (1 - p) / (2 sigma) * (sum over x of exp(-x^2 / (2 sigma^2))), where the sum is at least sigma * sqrt(2
# pi) by Poisson summation: more than 0.49. So there are fewer than 9 / 0.49 < 2^5 pairs a sample. That k sigma + j
# overflows would take k >= 2^12, of probability below exp(-2^22). The distance in total variation is below 2^-128 * 2^5
# and that.
DISTANCE = 2.0**-122
"""How far a sample of `discrete_gaussian` is from its distribution in total variation at most, given uniform words."""

MAX_SIGMA = 2**50
"""The widest noise that can be drawn, in lattice steps."""

NOISE_BOUND = 32
"""How many standard deviations no draw of noise exceeds.

P(|X| > 32 sigma) <= 2 exp(-32^2 / 2) < 10^-222 for a discrete Gaussian X; so none of the 10^20 draws of the largest
session does, but for a probability below 10^-200.
"""

_Truth = bool | np.bool_
_CHUNK = 2**14  # words drawn at once: 128 KiB, which stay in the cache until they are used
_STREAM_WORDS = 2**35  # the cipher's block counter has 32 bits, and implementations differ in what they do after it
_LOW32 = U(0xFFFFFFFF)
_32 = U(32)
_GOLDEN = U(0x9E3779B97F4A7C15)  # an odd number near 2^64 / 1.618: its multiples are spread out
_SUPPLY_END = U(1 << 63)


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
        if not isinstance(seed, bytes):  # the type only: an error must not show a secret
            raise InvalidInput(f"seed must be a byte string, got a {type(seed).__name__}")
        if len(seed) != 32:
            refuse("the length of seed", len(seed), "32 bytes")
        if not isinstance(label, bytes):
            refuse("label", label, "a byte string")
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
        count = integer("count", count)
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
    coins, at = (_word(words, at) | _SUPPLY_END, at + U(1)) if coins == U(1) else (coins, at)
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
    then U is below with probability (2^64 - low) / sigma, as the bits of U that were not read are uniform.
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

    Of uniform numbers U1, U2, ... let n be the number of those in the run 1/2 > U1 > U2 > ... The probability of n >= m
    is (1/2)^m / m!, so that n is even with probability 1 - 1/2 + (1/2)^2 / 2! - ... = exp(-1/2). The first bit of each
    U is a coin, the others are a word, which is drawn only if the first bit leaves the matter open.
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

    The run is x > Z1 > Z2 > ..., and each of its numbers must also pass a trial of probability f = (2k + x) / (2k + 2);
    n >= m has the probability (x f)^m / m!, so that n is even with probability exp(-x f). The trial asks for a uniform
    number between 0 and 2k + 2 to be below 2k + x: its integer part decides, and if that is 2k, its fraction against x.
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
    """Fill `out` by algorithm D of Karney (2016) for mean 0 and integer sigma, as far as `words` go.

    Return how many samples are done and how many words they took. A sample that runs out of words is not counted, nor
    are its words: it starts again from the same ones when more follow them. Its value is thus the same function of the
    stream as if all words had been there at once.

    A sample is +-(k + x) sigma with x = j / sigma. As k^2 + x (2k + x) = (k + x)^2, k and j are accepted together with
    probability proportional to exp(-(k + x)^2 / 2). Only 0 can come with both signs, so one of the two is refused.
    """
    done, used, at, end = 0, U(0), U(0), U(words.size)
    while done < out.size and at <= end:
        at, coins = used, U(1)  # no coins from the sample before: a sample depends on its own words only
        k, j = U(0), U(0)
        accepted: _Truth = False
        negative: _Truth = False
        while not accepted:
            # Step 1: k, the number of successes before the first failure, has probability proportional to exp(-k/2).
            # Step 2: if k (k - 1) more succeed it is accepted: with probability exp(-k (k-1) / 2), so exp(-k^2 / 2).
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
            left = k + U(1)  # step 4: with probability exp(-x (2k + x) / 2), the (k+1)-th power of what one run gives
            while accepted and left > U(0):
                accepted, at, coins = _accept(words, at, coins, k, j, sigma)
                left -= U(1)
        if at <= end:
            size = np.int64(k * sigma + j)
            out[done] = -size if negative else size
            done, used = done + 1, at
    return done, int(used)


def discrete_gaussian(sigma: int, count: int, stream: Keystream) -> Numbers:
    """Draw from the discrete Gaussian: integers x with probability proportional to exp(-x^2 / (2 sigma^2)).

    The samples are exact up to `DISTANCE`: C. F. F. Karney, "Sampling exactly from the normal distribution", ACM
    Transactions on Mathematical Software 42(1), 2016, with all comparisons between integers. They depend on the stream
    and sigma only; two calls give what one call for both would. The time that a sample takes depends on its value, so
    draw all of them before the first message.

    Example:
        >>> discrete_gaussian(3, 8, Keystream(bytes(32), b"example")).tolist()
        [4, 1, -1, 4, 5, 2, -2, 2]
    """
    width = U(integer("sigma", sigma, min=1, max=MAX_SIGMA))
    out = np.empty(integer("count", count), np.int64)
    if not isinstance(stream, Keystream):
        refuse("stream", stream, "a Keystream")
    done = ahead = 0
    while done < out.size:
        # A sample takes 10 words on average, so that for few of them less than a chunk will do.
        words = stream.words(ahead + min(_CHUNK, 10 * (out.size - done) + 64))
        more, used = _fill(words, width, out[done:])
        stream.unread(words[used:])
        done, ahead = done + more, words.size - used
    return out
