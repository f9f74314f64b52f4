"""What is signed with a party's key, and the fingerprint by which people and relays know that key.

`Identity` in `network/membership/` holds the private key. Relays check signatures from the bare public key: they know
no certificates.
"""

from __future__ import annotations

import hashlib

from inca._base.extras import importing

with importing("inca.network", extra="network"):
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_PURPOSE = b"inca-signature/1\0"


def signed_text(message: bytes) -> bytes:
    """Return what is signed in place of a message.

    A prefix that says what is signed keeps such a signature from ever passing for one of a TLS handshake, which the
    same key makes.
    """
    return _PURPOSE + message


def verifies(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the holder of this raw public key of 32 bytes signed the message with `Identity.sign`."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, signed_text(message))
    except (InvalidSignature, ValueError):
        return False
    return True


def raw_key(public_key: Ed25519PublicKey) -> bytes:
    """Return the 32 bytes of a public key."""
    return public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def fingerprint_of(public_key: Ed25519PublicKey | bytes) -> str:
    """Return what two people compare to be sure of a key: the first 128 bits of the SHA-256 of the public key (DER).

    The key may be given as its 32 raw bytes.

    Example:
        >>> fingerprint_of(bytes(32))
        '722a-bd12-e99a-5367-f375-aeb9-672a-8e07'
    """
    key = Ed25519PublicKey.from_public_bytes(public_key) if isinstance(public_key, bytes) else public_key
    digits = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()[:32]
    return "-".join(digits[start : start + 4] for start in range(0, 32, 4))
