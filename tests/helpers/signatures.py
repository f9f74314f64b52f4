"""Signatures that cost little, and are about all of a text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable


def sign(me: int) -> Callable[[bytes], bytes]:
    return lambda text: bytes([me]) + hashlib.blake2b(text, digest_size=8).digest()


def verify(party: int, text: bytes, signature: bytes) -> bool:
    return signature == sign(party)(text)
