"""Signatures that cost nothing."""

from __future__ import annotations

from collections.abc import Callable


def sign(me: int) -> Callable[[bytes], bytes]:
    return lambda text: bytes([me]) + text[-8:]


def verify(party: int, text: bytes, signature: bytes) -> bool:
    return signature == bytes([party]) + text[-8:]
