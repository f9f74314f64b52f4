"""Schedules drawn plainly, straight from their definition."""

from __future__ import annotations


def plain_draw(words: list[int], q: int, size: int) -> int:
    """The documented map of draw q to 0..size-1, in plain Python."""

    def mix64(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    word = words[q // 2]
    product = ((word >> (32 * (q % 2))) % 2**32) * size
    while product % 2**32 < 2**32 % size:
        word = mix64((word + 0x9E3779B97F4A7C15) % 2**64)
        product = (word >> 32) * size
    return product >> 32
