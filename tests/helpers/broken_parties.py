"""Parties that lie about their deposits or keys; and the real classes with one rule of `sealed final messages` broken.

A liar keeps every other rule. Which of its lies it tells, and to whom, follows from the session's id, so that it tells
the same ones after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MethodType
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers import simulated_network
from inca.network.protocol import context, finalization, party, signed_items, stages
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.finalization import Lie
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Item, Items, Message, Proposal, Propose
from inca.network.protocol.opening import shamir
from inca.network.protocol.opening.cohort_keys import KEY_BYTES, CohortSecrets, clamped, derived
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.opening.opening import Opened, Opening
from inca.network.protocol.opening.trustees import Trustees, trustees_of
from inca.network.protocol.party import Party
from inca.network.protocol.records import Record, Secret, Voted
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Body, Digest, Key, Kind, Sign, SignedItems, Verify, read
from inca.network.protocol.stage_rule import PartyComponents, Stage

# --- liars ----------------------------------------------------------------------------------------------------------


class Liar(Party):
    """Keeps the rules, but for what it signs and sends of its own."""

    def __init__(self, session: SessionConfig, me: int, *, sign: Sign, verify: Verify, **other: Any) -> None:
        super().__init__(session, me, sign=sign, verify=verify, **other)
        self.whims = random.Random(session.id + bytes([me]))
        self.dupes = {peer for peer in range(session.parties) if self.whims.random() < 0.5}
        """To whom it lies, if not to everyone."""
        publish_once = self._context.publish_once

        def lie_once(kind: Kind, body: Body, *, sealed: bytes = b"", cohort: int | None = None) -> None:
            if isinstance(body, Deposit):
                deposit, sealed = self.dealt(body, sealed)
                publish_once(kind, deposit, sealed=sealed, cohort=cohort)
            else:
                publish_once(kind, body, sealed=sealed, cohort=cohort)

        self._context.publish_once = lie_once  # type: ignore[method-assign, assignment]

    def dealt(self, deposit: Deposit, sealed: bytes) -> tuple[Deposit, bytes]:
        """Return what it deposits instead of its deposit."""
        return deposit, sealed

    def sent(self, peer: int, item: Item) -> Item | None:
        """Return what it sends a peer instead of its own item; None for nothing."""
        return item

    def _advance(self, now: float) -> Effects:
        effects = super()._advance(now)
        effects.sends = [(peer, self._told(peer, message)) for peer, message in effects.sends]
        return effects

    def _told(self, peer: int, message: Message) -> Message:
        if not isinstance(message, Items) or all(item.party != self.me for item in message.items):
            return message
        told = [self.sent(peer, item) if item.party == self.me else item for item in message.items]
        return Items([item for item in told if item is not None])


class GarbageDealer(Liar):
    """Its shares, and the sealed message, are random bytes."""

    def dealt(self, deposit: Deposit, sealed: bytes) -> tuple[Deposit, bytes]:
        return msgspec.structs.replace(deposit, shares=self.whims.randbytes(len(deposit.shares))), sealed


class WrongSharesDealer(Liar):
    """Some of its shares are other numbers, of no polynomial."""

    mask = b"\x01" + bytes(shamir.SHARE_BYTES - 1)

    def dealt(self, deposit: Deposit, sealed: bytes) -> tuple[Deposit, bytes]:
        size, shares = shamir.SHARE_BYTES, bytearray(deposit.shares)
        places = range(len(shares) // size)
        for place in self.whims.sample(places, self.whims.randint(1, max(1, len(places) // 2))):
            part = slice(size * place, size * (place + 1))
            shares[part] = bytes(a ^ b for a, b in zip(shares[part], self.mask, strict=True))
        return msgspec.structs.replace(deposit, shares=bytes(shares)), sealed


class UndecipherableDealer(WrongSharesDealer):
    """Some of its shares decrypt to what is no number of the field."""

    mask = bytes(shamir.SHARE_BYTES - 1) + b"\x80"


class TwoFacedDealer(Liar):
    """It makes two deposits, both valid, and shows the second one, in which a number is larger by one, to some."""

    _other: Item | None = None

    def dealt(self, deposit: Deposit, sealed: bytes) -> tuple[Deposit, bytes]:
        opening = self._components.finalization._opening
        assert opening is not None and self.ledger.secrets is not None
        dealing, secret = opening._dealing(self.me), self.ledger.secrets.dealing
        numbers = bytearray(dealing._padded(secret, sealed))
        numbers[:8] = (np.frombuffer(numbers[:8], dtype="<i8") + 1).tobytes()
        other = derived(secret, b"another")
        self._other = self.signed_items.sign("deposit", *dealing.deal(other, bytes(numbers)))
        return deposit, sealed

    def sent(self, peer: int, item: Item) -> Item | None:
        other = self._other
        swapped = item.kind == "deposit" and peer in self.dupes and other is not None
        return other if swapped else item


class DealerWithoutBytes(Liar):
    """It shows some its deposit without the sealed message, and everyone in a third of the sessions."""

    def sent(self, peer: int, item: Item) -> Item | None:
        bare = item.kind == "deposit" and (peer in self.dupes or self.session.id[0] % 3 == 0)
        return msgspec.structs.replace(item, sealed=b"") if bare else item


class HidingDealer(Liar):
    """It shows its deposit to nobody, and wants it committed to."""

    def sent(self, peer: int, item: Item) -> Item | None:
        return None if item.kind == "deposit" else item


class SilentTrustee(Liar):
    """It never shows its key."""

    def sent(self, peer: int, item: Item) -> Item | None:
        return None if item.kind == "key" else item


class WrongTrustee(Liar):
    """It shows another key than its own."""

    def sent(self, peer: int, item: Item) -> Item | None:
        if item.kind != "key":
            return item
        return self.signed_items.sign("key", self.another(read(item, Key)))

    def another(self, key: Key) -> Key:
        return Key(key.cohort, clamped(self.whims.randbytes(KEY_BYTES)))


class UnclampedTrustee(WrongTrustee):
    """It shows another encoding of its key: that of the same public key."""

    def another(self, key: Key) -> Key:
        return Key(key.cohort, bytes([key.private[0] | 7, *key.private[1:]]))


class LowOrderTrustee(Liar):
    """The public keys in its digest are of low order."""

    def sent(self, peer: int, item: Item) -> Item | None:
        if item.kind != "digest":
            return item
        digest = read(item, Digest)
        return self.signed_items.sign("digest", msgspec.structs.replace(digest, keys=[bytes(32)] * len(digest.keys)))


DEALERS: tuple[type[Liar], ...] = (
    GarbageDealer,
    WrongSharesDealer,
    UndecipherableDealer,
    TwoFacedDealer,
    DealerWithoutBytes,
    HidingDealer,
)
TRUSTEES: tuple[type[Liar], ...] = (SilentTrustee, WrongTrustee, UnclampedTrustee, LowOrderTrustee)
