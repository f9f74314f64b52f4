"""Deposits: a party's settled final message, sealed, and the key of the seal in encrypted shares for the trustees.

Everything in a deposit follows from one secret of its dealer, bound to the session, the cohort and the dealer: the pad
under which the message lies, the polynomial, the ephemeral key by which shares are encrypted. So a deposit is *valid*
if and only if dealing again from the secret gives its exact bytes. Any t keys of trustees give the secret if there is
one, whichever t they are; and if they give none, that proves that the dealer has lied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from inca._base.extras import importing
from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import Count, Wire, payload_hash
from inca.network.protocol.opening import shamir
from inca.network.protocol.opening.cohort_keys import (
    KEY_BYTES,
    check_public,
    clamped,
    derived,
    proves,
    public_of,
    shared_secrets,
)

with importing("inca.network", extra="network"):
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

HASH_BYTES = 32
_COEFFICIENT_BYTES = 64  # reduced modulo the prime, which is then uniform to 2^-254


class Deposit(Wire, frozen=True):
    """What a party deposits for a cohort, known by the number of its decision and by its hash; the sealed bytes apart.

    `sealed` is the hash of the sealed message; `shares` are those of all trustees, in order, encrypted.
    """

    cohort: Count
    hash: bytes
    sealed: bytes
    ephemeral: bytes
    shares: bytes


def check_deposit(deposit: Deposit, trustees: int) -> None:
    """Refuse a deposit whose parts have another size than everyone's, or whose key anyone could guess."""
    sizes = len(deposit.hash), len(deposit.sealed), len(deposit.shares)
    expected = HASH_BYTES, HASH_BYTES, shamir.SHARE_BYTES * trustees
    if sizes != expected:
        raise InvalidPeerMessage(f"the parts of a deposit must have {expected} bytes, got {sizes}")
    check_public(deposit.ephemeral)


def _under_stream(key: bytes, content: bytes) -> bytes:
    """Return bytes under the ChaCha20 stream of a key that is used once, or without it."""
    return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(content)


@dataclass(frozen=True)
class Dealing:
    """Who deals for which cohort, known by its number and by the hash of its decision, and to whom."""

    session: bytes
    cohort: int
    hash: bytes
    dealer: int
    trustees: Mapping[int, bytes]  # their public keys for this cohort, in order of their shares
    threshold: int

    @cached_property
    def _bound(self) -> bytes:
        numbers = self.cohort.to_bytes(4, "little") + self.dealer.to_bytes(4, "little")
        return b"inca-deposit/1" + self.session + numbers + self.hash

    @cached_property
    def _places(self) -> dict[int, int]:
        return {trustee: place for place, trustee in enumerate(self.trustees, start=1)}

    def deal(self, secret: bytes, message: bytes) -> tuple[Deposit, bytes]:
        """Return the deposit of a message that follows from a secret, and the sealed message."""
        sealed = self._padded(secret, message)
        return self._deposit(secret, payload_hash(sealed)), sealed

    def _deposit(self, secret: bytes, sealed: bytes, known: Mapping[int, bytes] | None = None) -> Deposit:
        """Return the deposit of a secret; what its ephemeral key has in common with some trustees may be known.

        If it is what another key has in common with them, so is the ephemeral key, and the deposit is another one.
        """
        ephemeral = clamped(derived(secret, b"ephemeral" + self._bound))
        coefficients, common = self._coefficients(secret), dict(known or {})
        others = {trustee: key for trustee, key in self.trustees.items() if trustee not in common}
        common |= zip(others, shared_secrets(ephemeral, others.values()), strict=True)
        shares = []
        for trustee, place in self._places.items():
            share = shamir.share(int.from_bytes(secret, "little"), coefficients, place)
            shares.append(self._encrypted(trustee, common[trustee], share.to_bytes(shamir.SHARE_BYTES, "little")))
        return Deposit(self.cohort, self.hash, sealed, public_of(ephemeral), b"".join(shares))

    def _coefficients(self, secret: bytes) -> list[int]:
        """Return the coefficients of the polynomial but that of degree 0, which is the secret."""
        size, count = _COEFFICIENT_BYTES, self.threshold - 1
        wide = _under_stream(derived(secret, b"polynomial" + self._bound), bytes(size * count))
        parts = (wide[size * number : size * (number + 1)] for number in range(count))
        return [int.from_bytes(part, "little") % shamir.PRIME for part in parts]

    def share_of(self, deposit: Deposit, trustee: int, common: bytes) -> int | None:
        """Return the share of a trustee by what its key and the dealer's have in common; None if there is none."""
        end = shamir.SHARE_BYTES * self._places[trustee]
        part = deposit.shares[end - shamir.SHARE_BYTES : end]
        share = int.from_bytes(self._encrypted(trustee, common, part), "little")
        return share if share < shamir.PRIME else None

    def opened(self, deposit: Deposit, sealed: bytes, common: Mapping[int, bytes]) -> bytes | None:
        """Return the message of a deposit, or None, which proves that its dealer lied.

        `common` is what the keys of `threshold` trustees and the dealer's have in common. A share that does not decrypt
        is garbage, not missing: whichever trustees open, the end is the same.
        """
        if len(common) != self.threshold:
            raise ValueError(f"a deposit is opened by {self.threshold} trustees, got {len(common)}")
        shares = {self._places[trustee]: self.share_of(deposit, trustee, key) for trustee, key in common.items()}
        known = {place: share for place, share in shares.items() if share is not None}
        if len(known) < self.threshold:
            return None
        number = shamir.recovered(known)
        if number >= 2 ** (8 * KEY_BYTES):
            return None
        secret = number.to_bytes(KEY_BYTES, "little")
        return self._padded(secret, sealed) if self._deposit(secret, deposit.sealed, common) == deposit else None

    def proves_lie(self, deposit: Deposit, sealed: bytes, keys: Mapping[int, bytes]) -> bool:
        """Return whether the keys of `threshold` trustees prove that the dealer of a deposit has lied."""
        if len(keys) != self.threshold or not all(
            trustee in self.trustees and proves(key, self.trustees[trustee]) for trustee, key in keys.items()
        ):
            return False
        common = {trustee: shared_secrets(key, [deposit.ephemeral])[0] for trustee, key in keys.items()}
        return self.opened(deposit, sealed, common) is None

    def _padded(self, secret: bytes, message: bytes) -> bytes:
        """Return a message under the pad of a secret, or without it."""
        return _under_stream(derived(secret, b"pad" + self._bound), message)

    def _encrypted(self, trustee: int, secret: bytes, share: bytes) -> bytes:
        """Return a share under the key that dealer and trustee have in common, or without it."""
        pad = derived(secret, b"share" + self._bound + trustee.to_bytes(4, "little"), shamir.SHARE_BYTES)
        return (int.from_bytes(pad, "little") ^ int.from_bytes(share, "little")).to_bytes(shamir.SHARE_BYTES, "little")
