"""X25519, HKDF and ChaCha20 as their standards describe them, in plain Python; to compare with, not to use."""

from __future__ import annotations

import hmac
from hashlib import sha256

FIELD = 2**255 - 19


def plain_x25519(scalar: bytes, point: bytes) -> bytes:
    """The Montgomery ladder of RFC 7748, section 5."""
    fixed = bytearray(scalar)
    fixed[0] &= 248
    fixed[31] = fixed[31] & 127 | 64
    number, u = int.from_bytes(fixed, "little"), int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in reversed(range(255)):
        if number >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus, minus = x2 + z2, x2 - z2
        cross, other = (x3 + z3) * minus, (x3 - z3) * plus
        x3, z3 = (cross + other) ** 2 % FIELD, u * (cross - other) ** 2 % FIELD
        difference = plus**2 - minus**2
        x2, z2 = plus**2 * minus**2 % FIELD, difference * (plus**2 + 121665 * difference) % FIELD
        if number >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, FIELD - 2, FIELD) % FIELD).to_bytes(32, "little")


def plain_hkdf(secret: bytes, purpose: bytes, count: int) -> bytes:
    """RFC 5869 with SHA-256 and without salt."""
    key = hmac.digest(bytes(32), secret, sha256)
    output = block = b""
    for number in range(1, -(-count // 32) + 1):
        block = hmac.digest(key, block + purpose + bytes([number]), sha256)
        output += block
    return output[:count]


def plain_chacha20(key: bytes, content: bytes) -> bytes:
    """RFC 8439 from block 0 on, with a nonce of zeros: encrypts, and decrypts."""
    stream = b"".join(_block(key, number) for number in range(-(-len(content) // 64)))
    return bytes(byte ^ pad for byte, pad in zip(content, stream, strict=False))


def _block(key: bytes, number: int) -> bytes:
    words = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    words += [int.from_bytes(key[place : place + 4], "little") for place in range(0, 32, 4)]
    words += [number, 0, 0, 0]
    state = list(words)
    columns = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for _ in range(10):
        for a, b, c, d in (*columns, *diagonals):
            for added, to, turned, by in ((b, a, d, 16), (d, c, b, 12), (b, a, d, 8), (d, c, b, 7)):
                state[to] = (state[to] + state[added]) % 2**32
                state[turned] ^= state[to]
                state[turned] = (state[turned] << by | state[turned] >> 32 - by) % 2**32
    return b"".join(((one + other) % 2**32).to_bytes(4, "little") for one, other in zip(words, state, strict=True))
