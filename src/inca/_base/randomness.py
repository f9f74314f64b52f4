"""Where random numbers come from: reproducible streams for research, the system's randomness for real data.

Schedules draw 64-bit *words* addressed by labels (round, slot, ...), so that any round can be generated again
at any time without storing it. Noise is drawn as standard normals from a stream that can be split in
independent ones, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import hashlib
import math
import ssl
from dataclasses import dataclass
from functools import cache

import numpy as np

from inca._base.kernels import Words, seeded_state, xoshiro_words, ziggurat
from inca._base.types import Array
from inca._base.validation import integer, refuse

_TAIL = 3.6541528853610088  # where the tail of a ziggurat of 256 layers begins
_MOST_AT_ONCE = 1 << 15  # numbers that words are asked for: a quarter of a megabyte


@dataclass(frozen=True)
class Seed:
    """Words of statistical quality from an integer: xoshiro256++ streams keyed by NumPy's SeedSequence.

    >>> Seed(7).words((1,), 2).tolist() == Seed(7).words((1,), 2).tolist()
    True
    """

    seed: int

    def __post_init__(self) -> None:
        integer("seed", self.seed, max=math.inf)

    def state(self, label: tuple[int, ...]) -> Words:
        """Return the xoshiro256++ state with which the words of `label` begin."""
        key = _entropy(int(self.seed))
        entropy = key + [0] * (4 - len(key))  # as SeedSequence does, so that no seed and label are another seed
        for number in label:
            entropy += _entropy(number)
        state = np.empty(4, np.uint64)
        seeded_state(np.array(entropy, np.uint64), state)
        return state

    def words(self, label: tuple[int, ...], count: int) -> Words:
        """Return `count` words that belong to `label`."""
        out = np.empty(count, np.uint64)
        xoshiro_words(self.state(label), out)
        return out


@dataclass(frozen=True)
class PublicSeed:
    """Words from a public seed by a keyed pseudo-random function: the same on every platform and version.

    Word b of a label is bytes 8b..8b+7, little-endian, of SHAKE-256 over the ASCII text `inca-schedule/1`, the
    seed's length and the label's length as 8-byte little-endian numbers, the seed, and the label's entries as
    8-byte little-endian numbers.

    Args:
        seed: At least 1 byte, known to all parties.

    Raises:
        InvalidInput: If the seed is empty or no byte string.

    Example:
        >>> hex(PublicSeed(b"consortium, 2026").words((1,), 1)[0])
        '0xb5d7feffebfcad55'
    """

    seed: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.seed, bytes):
            refuse("seed", self.seed, "a byte string")
        if not self.seed:
            refuse("seed", self.seed, "at least 1 byte long")

    def words(self, label: tuple[int, ...], count: int) -> Words:
        """Return `count` words that belong to `label`."""
        numbers = [len(self.seed), len(label)]
        head = b"".join(number.to_bytes(8, "little") for number in numbers)
        tail = b"".join(number.to_bytes(8, "little") for number in label)
        stream = hashlib.shake_256(b"inca-schedule/1" + head + self.seed + tail).digest(8 * count)
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def _entropy(number: int) -> list[int]:
    """Return the 32-bit words of a number, the lowest first; at least one."""
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words


def word_source(seed: int | PublicSeed) -> Seed | PublicSeed:
    """Return the words for a schedule's `seed`: an integer, or a `PublicSeed`."""
    return seed if isinstance(seed, PublicSeed) else Seed(seed)


class SystemNormals:
    """Standard normals by the ziggurat, from the system's randomness; for values of real persons.

    Pass it as `rng` wherever noise is drawn. The words are those of OpenSSL's generator, a cipher whose keys come from
    the operating system: the system's own words take ten times as long. Each is used once and not kept. |z| stays below
    13.8: what is cut off has a probability below 2^-60.

    Example:
        >>> SystemNormals().normals(3).shape
        (3,)
    """

    def normals(self, count: int) -> Array:
        """Return `count` fresh standard normals."""
        out = np.empty(count)
        self.fill(out)
        return out

    def fill(self, out: Array) -> None:
        """Fill the contiguous one-dimensional `out` with fresh standard normals."""
        edges, heights = _layers()
        while out.size:
            count = min(out.size, _MOST_AT_ONCE)
            words = np.frombuffer(ssl.RAND_bytes(8 * (count + count // 32 + 128)), dtype=np.uint64)
            out = out[ziggurat(words, edges, heights, out[:count]) :]


@cache
def _layers() -> tuple[Array, Array]:
    """Return the edges of the ziggurat's 256 layers of equal area, and the heights that they lie between."""
    area = _TAIL * math.exp(-0.5 * _TAIL**2) + math.sqrt(math.pi / 2.0) * math.erfc(_TAIL / math.sqrt(2.0))
    edges = [area * math.exp(0.5 * _TAIL**2), _TAIL]  # the lowest layer with its tail, as a rectangle
    for _ in range(254):
        edges.append(math.sqrt(-2.0 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    steps = np.array([*edges, 0.0])
    return steps, np.exp(-0.5 * steps**2)


Normals = np.random.Generator | SystemNormals
"""What noise may be drawn from."""


def check_normals(rng: object) -> Normals:
    """Return `rng` if noise can be drawn from it, or refuse it."""
    if isinstance(rng, (np.random.Generator, SystemNormals)):
        return rng
    refuse("rng", rng, "a numpy.random.Generator or an inca.SystemNormals()")


def split(rng: Normals, count: int) -> list[Normals]:
    """Return `count` independent streams, decided by what `rng` draws next.

    They are PCG64DXSM, which NumPy recommends over its default PCG64 where many streams run in parallel.
    """
    if isinstance(rng, SystemNormals):
        return [rng] * count
    seed = np.random.SeedSequence(rng.integers(2**32, size=8).tolist())
    return [np.random.Generator(np.random.PCG64DXSM(child)) for child in seed.spawn(count)]


def fill(rng: Normals, out: Array) -> None:
    """Fill the contiguous one-dimensional `out` with standard normals."""
    if isinstance(rng, SystemNormals):
        rng.fill(out)
    else:
        rng.standard_normal(out=out)
