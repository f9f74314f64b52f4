"""Randomness that all parties share and none can choose: secrets that were committed to, and are revealed later.

A coin flip before the session gives its public seed, by which parties know who sends to whom. A beacon at its end gives
the seed of the next session of a sequence: every party commits to a secret in its digest, and seals it with its final
message. All seals are opened together, after commit. So a party that spoils its own part, by another secret than it
committed to, does so before it knows the others'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

SECRET_BYTES = 32


def commitment(session: bytes, party: int, secret: bytes) -> bytes:
    """Return what a party shows of its secret for the coin flip before it reveals it."""
    return hashlib.sha256(b"inca-toss/1" + session + party.to_bytes(4, "little") + secret).digest()


def flipped_seed(session: bytes, secrets: list[bytes]) -> bytes:
    """Return the public seed: the outcome of the coin flip."""
    return hashlib.sha256(b"inca-seed/1" + session + b"".join(secrets)).digest()


def beacon_commitment(session: bytes, party: int, secret: bytes) -> bytes:
    """Return what a party shows in its digest of the secret that lies sealed with its final message."""
    return hashlib.sha256(b"inca-beacon-commit/1" + session + party.to_bytes(4, "little") + secret).digest()


def beacon(session: bytes, commitments: Mapping[int, bytes], secrets: Mapping[int, bytes]) -> bytes:
    """Return what the revealed secrets of a session give."""
    valid = [
        party.to_bytes(4, "little") + secret
        for party, secret in sorted(secrets.items())
        if beacon_commitment(session, party, secret) == commitments.get(party)
    ]
    return hashlib.sha256(b"inca-beacon/1" + session + b"".join(valid)).digest()
