"""Payloads: byte strings that may be tens of megabytes. Large ones are not copied, and need not stay in memory.

A driver may put one away where it is durable. It leaves `StoredBytes` in the place of the bytes, and whoever holds that
reads them again when it needs them.
"""

from __future__ import annotations

from typing import Protocol, cast

LARGE_BYTES = 2**16
"""A byte string from this length on is not copied on its way, and lies in a file of its own."""


class StoredBytes(Protocol):
    """Bytes that were put away."""

    def __len__(self) -> int:
        """Return how many there are."""

    def read(self) -> memoryview:
        """Return them; they are in memory once, however many look at them at the same time."""


def contents(payload: bytes | memoryview | StoredBytes) -> bytes:
    """Return the bytes of a payload, or a view of them, wherever they are.

    >>> contents(b"in memory")
    b'in memory'
    """
    return cast(bytes, payload) if isinstance(payload, bytes | memoryview) else cast(bytes, payload.read())
