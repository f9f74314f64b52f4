"""A party's secrets for the cohorts that a session may come to, one after the other.

For each cohort a party has a private key, by which it is a trustee, the secret from which its deposit is dealt, and a
key stream for top-up noise. All follow from one state of 32 bytes, and so does the state of the next cohort; the step
forward cannot be undone. So whoever keeps only the state of a later cohort has erased the secrets of all earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from inca._base.extras import importing
from inca.errors import InvalidPeerMessage

with importing("inca.network", extra="network"):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
COHORTS = 8
"""To so many cohorts a session may come."""

_FIELD = 2**255 - 19
# The points whose order divides 8 (RFC 7748, section 6.1): an exchange with them gives the same secret to everyone.
_LOW_ORDER = frozenset(
    {
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        _FIELD - 1,
    }
)


def derived(secret: bytes, purpose: bytes, count: int = KEY_BYTES) -> bytes:
    """Return bytes that follow from a secret for one purpose: HKDF-SHA-256 (RFC 5869)."""
    return HKDF(SHA256(), count, salt=None, info=purpose).derive(secret)


def clamped(scalar: bytes) -> bytes:
    """Return the encoding of a private key in which RFC 7748 fixes five bits."""
    return bytes([scalar[0] & 248, *scalar[1:31], scalar[31] & 127 | 64])


def public_of(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def shared_secrets(private: bytes, publics: Iterable[bytes]) -> list[bytes]:
    """Return what a key has in common with each of others, which must be ones that `check_public` lets pass."""
    key = X25519PrivateKey.from_private_bytes(private)  # once: it takes as long as an exchange
    return [key.exchange(_loaded(public)) for public in publics]


@lru_cache(maxsize=512)
def _loaded(public: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(public)


def check_public(public: bytes) -> None:
    """Refuse a public key of low order, or written in another way than the usual one."""
    number = int.from_bytes(public, "little")
    if len(public) != KEY_BYTES or number >= _FIELD or number in _LOW_ORDER:
        raise InvalidPeerMessage("a public key must be one of Curve25519, and not of low order")


def proves(private: bytes, public: bytes) -> bool:
    """Return whether this is the private key behind a public one; of its 32 encodings only the clamped one counts."""
    return len(private) == KEY_BYTES and clamped(private) == private and public_of(private) == public


@dataclass(frozen=True)
class CohortSecrets:
    """The secrets of a party for cohort number `cohort`, from which those of later ones follow, not of earlier ones."""

    state: bytes
    cohort: int

    def __repr__(self) -> str:
        return f"CohortSecrets(cohort {self.cohort})"

    def advanced(self, cohort: int) -> CohortSecrets:
        """Return the secrets of a later cohort; there is no way back to those of an earlier one."""
        if cohort < self.cohort:
            raise ValueError(f"the secrets of cohort {cohort} are erased, got those of cohort {self.cohort}")
        state = self.state
        for _ in range(self.cohort, cohort):
            state = derived(state, b"inca-next-cohort/1")
        return CohortSecrets(state, cohort)

    @cached_property
    def private_key(self) -> bytes:
        """The key that this party shows as a trustee once the cohort is committed to."""
        return clamped(derived(self.state, b"inca-trustee/1"))

    @property
    def dealing(self) -> bytes:
        """The secret from which this party's deposit is dealt."""
        return derived(self.state, b"inca-dealing/1")

    @property
    def topup(self) -> bytes:
        """The key of the stream from which the top-up noise for this cohort is drawn."""
        return derived(self.state, b"inca-topup/1")

    def public_keys(self, count: int) -> list[bytes]:
        """Return the public keys of this cohort and of those that follow."""
        keys, secrets = [], self
        for _ in range(count):
            keys.append(public_of(secrets.private_key))
            secrets = secrets.advanced(secrets.cohort + 1)
        return keys
