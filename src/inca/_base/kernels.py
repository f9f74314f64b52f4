"""The compiled inner loops. Plain functions on arrays; no validation: the callers have done it.

Arguments that may be None (`weights`) are resolved when a kernel is compiled for its argument types, so that the
common case (equal shares) pays for no branch. Ranges are unsigned where they do not start at 0: an index that might
be negative costs a test at every use, which doubles the time of the shortest loops. Receivers and weights are flat
where they are only read in order: those of party 0, then those of party 1, ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array

P = ParamSpec("P")
R = TypeVar("R")
Words = NDArray[np.uint64]
Ids = NDArray[np.int32]
Flags = NDArray[np.bool_]

U = np.uint64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


class _Compiled:
    """A function that Numba compiles at its first call, and that other compiled functions may call.

    Importing Numba takes longer than most commands, and many a command needs no kernel.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba has it; kept for later processes once a folder for it can be written."""
        import numba

        plain = self.__wrapped__  # type: ignore[attr-defined]  # set by update_wrapper
        try:
            return numba.njit(nogil=True, cache=True)(plain)
        except RuntimeError:  # nowhere to keep what is compiled: do it in every process
            return numba.njit(nogil=True)(plain)

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks an object for that it finds in a function it compiles."""
        import numba

        return numba.types.Dispatcher(self.dispatcher)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.dispatcher(*arguments, **named)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` for the machine when it is first called; it runs without the lock."""
    return cast(Callable[P, R], _Compiled(function))


@compiled
def mix64(z: np.uint64) -> np.uint64:
    """Return the splitmix64 finaliser of z (Steele, Lea, Flood 2014): a bijection that looks random."""
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


@compiled
def xoshiro(s0: np.uint64, s1: np.uint64, s2: np.uint64, s3: np.uint64) -> tuple[np.uint64, ...]:
    """Return the next word of xoshiro256++ (Blackman, Vigna 2021) and the state after it."""
    total = s0 + s3
    word = ((total << U(23)) | (total >> U(41))) + s0
    shifted = s1 << U(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << U(45)) | (s3 >> U(19))
    return word, s0, s1, s2, s3


@compiled
def _hashed(word: np.uint64, factor: np.uint64, next_factor: np.uint64) -> np.uint64:
    word = ((word ^ factor) * next_factor) & _LOW32
    return word ^ (word >> U(16))


@compiled
def _mixed(x: np.uint64, y: np.uint64) -> np.uint64:
    word = (U(0xCA01F9DD) * x - U(0x4973F715) * y) & _LOW32
    return word ^ (word >> U(16))


@compiled
def seeded_state(entropy: Words, out: Words) -> None:
    """Fill `out` with 4 words as `numpy.random.SeedSequence` does from 4 or more 32-bit words (O'Neill 2015).

    NumPy promises that they never change; its own way to them takes longer than the words that are drawn from them.
    """
    factor, pool = U(0x43B0D7E5), np.empty(4, np.uint64)
    for i in range(4):
        next_factor = (factor * U(0x931E8875)) & _LOW32
        pool[i], factor = _hashed(entropy[i], factor, next_factor), next_factor
    for i in range(entropy.size):
        for j in range(4):
            if i != j:
                next_factor = (factor * U(0x931E8875)) & _LOW32
                word = _hashed(pool[i] if i < 4 else entropy[i], factor, next_factor)
                pool[j], factor = _mixed(pool[j], word), next_factor
    factor = U(0x8B51F9DD)
    for i in range(4):
        out[i] = 0
        for half in range(2):
            next_factor = (factor * U(0x58F38DED)) & _LOW32
            word = _hashed(pool[(2 * i + half) % 4], factor, next_factor)
            out[i], factor = out[i] | (word << U(32 * half)), next_factor


@compiled
def xoshiro_words(state: Words, out: Words) -> None:
    """Fill `out` with the words of xoshiro256++ that follow `state` (4 words, left as it is)."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for b in range(out.size):
        out[b], s0, s1, s2, s3 = xoshiro(s0, s1, s2, s3)


@compiled
def uniform(word: np.uint64, half: int, size: int) -> np.uint64:
    """Return a number made of one half (0: low, 1: high) of `word`, exactly uniform in 0..size-1, size < 2^32.

    Lemire 2019: multiply and shift. A half that would bias the result (probability below size / 2^32) is replaced by
    the high half of mix64(word + golden), then of its successors.
    """
    m = U(size)
    product = ((word >> U(32 * half)) & _LOW32) * m
    if (product & _LOW32) < m:
        threshold = ((_LOW32 - m) + U(1)) % m
        while (product & _LOW32) < threshold:
            word = mix64(word + _GOLDEN)
            product = (word >> _32) * m
    return product >> _32


@compiled
def below(words: Words, q: int, size: int) -> np.uint64:
    """Return draw number q of `words` in 0..size-1: draw 2b is made of word b's low half, 2b+1 of its high half."""
    return uniform(words[q >> 1], q & 1, size)


@compiled
def ziggurat(words: Words, edges: Array, heights: Array, out: Array) -> int:
    """Fill `out` with standard normals made of `words`, and return how many there are before the words run out.

    Marsaglia and Tsang 2000, with 256 layers: layer i reaches from height i to height i+1 of the density exp(-z^2 / 2),
    and out to edge i; layer 0 is the lowest one with the tail beyond edge 1, cut square. A word's disjoint bits
    choose a layer, a sign and a place. Words that do not yield a number are never used again, and whether they suffice
    for one more attempt is asked before it, so that nothing is learnt from their end.
    """
    place, p, reserve = 2.0**-53, 0, 64  # an attempt needs 2 words; in the tail 3, and 2 more with a probability of 7 %
    for i in range(out.size):
        while True:
            if p + reserve > words.size:
                return i
            word = words[p]
            layer = np.int64(word & U(255))
            z = np.float64(word >> U(11)) * place * edges[layer]
            sign = 1.0 - 2.0 * np.float64((word >> U(8)) & U(1))
            p += 1
            if z < edges[layer + 1]:
                break
            if layer > 0:
                y = heights[layer] + np.float64(words[p] >> U(11)) * place * (heights[layer + 1] - heights[layer])
                p += 1
                if y < math.exp(-0.5 * z * z):
                    break
                continue
            beyond, accepted = 0.0, False
            while not accepted:  # Marsaglia 1964: exponential beyond edge 1, thinned
                if p + 2 > words.size:  # less likely than 1e-30
                    return i
                beyond = -math.log1p(-np.float64(words[p] >> U(11)) * place) / edges[1]
                accepted = -2.0 * math.log1p(-np.float64(words[p + 1] >> U(11)) * place) > beyond * beyond
                p += 2
            z = edges[1] + beyond
            break
        out[i] = sign * z
    return out.size


@compiled
def choose_one(state: Words, out: Ids) -> None:
    """`choose_receivers` for k = 1, out of shape (n,), with the words of `xoshiro_words` made as they are used."""
    n = out.size
    m = U(n - 1)
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for b in range(n // 2):
        word, s0, s1, s2, s3 = xoshiro(s0, s1, s2, s3)
        low, high = (word & _LOW32) * m, (word >> _32) * m
        if (low & _LOW32) >= m and (high & _LOW32) >= m:  # nearly always; `uniform` would do the same
            first, second = low >> _32, high >> _32
        else:
            first, second = uniform(word, 0, n - 1), uniform(word, 1, n - 1)
        i = U(2 * b)
        out[i] = first + (first >= i)
        out[i + U(1)] = second + (second > i)
    if n % 2:
        out[n - 1] = uniform(xoshiro(s0, s1, s2, s3)[0], 0, n - 1)


@compiled
def choose_receivers(words: Words, out: Ids) -> None:
    """Choose for every party a uniformly random set of k others (Floyd's sampling: k draws, no retries)."""
    n, k = out.shape
    for i in range(n):
        for s in range(k):
            size = n - k + s
            pick = np.int32(below(words, i * k + s, size))
            for e in range(s):
                if out[i, e] == pick:
                    pick = np.int32(size - 1)
                    break
            out[i, s] = pick
        for s in range(k):
            out[i, s] += out[i, s] >= i


@compiled
def choose_unrepeated(words: Words, first: int, out: Ids) -> None:
    """Continue every party's random order of the others: entries first .. first+k-1, none ever repeated.

    Party i's order is the Fisher-Yates shuffle whose step p swaps places p and r_p(i), the latter uniform in
    p..n-2; `words[p]` holds the draws of step p for all parties. Instead of storing the shuffled order we
    follow one entry back through the earlier swaps.
    """
    n, k = out.shape
    for i in range(n):
        for s in range(k):
            step = first + s
            place = step + np.int64(below(words[step], i, n - 1 - step))
            for earlier in range(step - 1, -1, -1):
                if earlier + np.int64(below(words[earlier], i, n - 1 - earlier)) == place:
                    place = np.int64(earlier)
            out[i, s] = place + (place >= i)


@compiled
def try_permutation(words: Words, slot: int, out: Ids) -> bool:
    """Shuffle the parties into column `slot`; give up (False) when anyone meets itself or an earlier column."""
    n = out.shape[0]
    for i in range(n):
        out[i, slot] = i
    for i in range(n - 1, -1, -1):
        j = np.int64(below(words, n - 1 - i, i + 1))
        chosen = out[j, slot]
        out[j, slot] = out[i, slot]
        out[i, slot] = chosen
        if chosen == i:
            return False
        for e in range(slot):
            if out[i, e] == chosen:
                return False
    return True


@compiled
def redirect(receivers: Ids, present: Flags, out: Ids) -> None:
    """Send back to its sender whatever involves an absent party: both ends must be there (erratum E1)."""
    k = receivers.size // present.size
    q = U(0)
    for i in range(present.size):
        here = np.int32(present[i])
        for _ in range(k):
            j = receivers[q]
            back = (np.int32(1) - (here & np.int32(present[U(max(j, 0))]))) & np.int32(j >= 0)
            out[q] = j + back * (i - j)  # arithmetic, as a branch would be mispredicted for every leaver
            q += U(1)


@compiled
def scatter(
    out: Array,
    y: Array,
    receivers: Ids,
    share: float,
    weights: Array | None,
    lo: int,
    hi: int,
    first: int,
    last: int,
) -> None:
    """Add what parties lo..hi-1 send to what their receivers hold.

    Acts on columns first..last-1 of (n, d) arrays, or on (n,) arrays. Receiver -1 means "nobody".
    """
    n = out.shape[0]
    k = receivers.size // n
    q = U(lo * k)
    for i in range(U(lo), U(hi)):
        for _ in range(k):
            j = U(receivers[q])  # -1 becomes a number beyond n
            w = share
            if weights is not None:
                w = weights[q]
            q += U(1)
            if j >= U(n):
                continue
            if y.ndim == 1:
                out[j] += w * y[i]
            else:
                for e in range(U(first), U(last)):
                    out[j, e] += w * y[i, e]


@compiled
def scatter_one(out: Array, y: Array, receivers: Ids, share: float, lo: int, hi: int) -> None:
    """`scatter` on (n,) arrays when everyone has one receiver: so short that many cache misses overlap."""
    y, receivers = y[lo:hi], receivers[lo:hi]
    for i in range(y.size):
        out[U(receivers[i])] += share * y[i]


@compiled
def gather(out: Array, v: Array, receivers: Ids, share: float, weights: Array | None) -> None:
    """Adjoint of `scatter` on (n, d) or (n,) arrays: every sender collects from its receivers."""
    n = out.shape[0]
    k = receivers.size // n
    q = U(0)
    for i in range(n):
        for _ in range(k):
            j = U(receivers[q])
            w = share
            if weights is not None:
                w = weights[q]
            q += U(1)
            if j >= U(n):
                continue
            if v.ndim == 1:
                out[i] += w * v[j]
            else:
                for e in range(v.shape[1]):
                    out[i, e] += w * v[j, e]


@compiled
def gather_one(out: Array, v: Array, receivers: Ids, share: float) -> None:
    """`gather` on (n,) arrays when everyone has one receiver."""
    for i in range(v.size):
        out[i] += share * v[U(receivers[i])]


@compiled
def renew_all(
    held: Array, mask: Array, u: Array, scale: float, kept: float, portion: float, first: int, last: int
) -> None:
    """One round of the incremental family for columns first..last-1 when everyone is always present.

    On entry `held` is what parties hold but for their live masks, which are in `mask`; on exit `mask` holds the
    messages sent, and `held` what their owners keep, with the next portion of the value, less the old mask.
    """
    for i in range(held.shape[0]):
        for e in range(U(first), U(last)):
            m = scale * mask[i, e]
            message = held[i, e] + m
            mask[i, e] = message
            held[i, e] = kept * message + portion * u[i, e] - m


@compiled
def renew_some(
    held: Array,
    mask: Array,
    u: Array,
    live: Array,
    scales: Array,
    portions: Array,
    kept: Array,
    counter: Ids,
    renewed: Flags,
    present: Flags,
    first: int,
    last: int,
) -> None:
    """`renew_all` under absence (erratum E2).

    counter[i] is the number r of earlier rounds in which i was present, so that its live mask is number r
    and its next portion c_r; `renewed` marks those who were present in the round before, the others still have
    the mask kept in `live`.
    """
    for i in range(held.shape[0]):
        r = counter[i]
        scale = scales[r - 1]
        portion = portions[r] if present[i] else 0.0
        renews, keeps = renewed[i], kept[i]  # read once, as the loop might be writing to where they are
        for e in range(U(first), U(last)):
            raw = mask[i, e] if renews else live[i, e]
            live[i, e] = raw
            m = scale * raw
            message = held[i, e] + m
            mask[i, e] = message
            held[i, e] = keeps * message + portion * u[i, e] - m


@compiled
def settle_own(settled: Array, sent: Array, u: Array, kept: Array, portions: Array) -> None:
    """Add to settled messages what their owners keep of what they sent, and the next portion of their values."""
    for i in range(settled.shape[0]):
        keeps, portion = kept[i] - 1.0, portions[i]
        for e in range(settled.shape[1]):
            settled[i, e] += keeps * sent[i, e] + portion * u[i, e]
