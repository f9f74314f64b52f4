"""Parties that lie about their deposits or keys; and the real classes with one rule of `sealed final messages` broken.

A liar keeps every other rule. Which of its lies it tells, and to whom, follows from the session's id, so that it tells
the same ones after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers import simulated_network
from helpers.trustee_keys import in_common
from inca.network.protocol import signed_items, stages
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Lie
from inca.network.protocol.messages import Item, Items, Message, Proposal, Propose
from inca.network.protocol.opening import shamir
from inca.network.protocol.opening.cohort_keys import KEY_BYTES, CohortSecrets, clamped, derived
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.opening.opening import OpenedDeposits, Opening
from inca.network.protocol.opening.trustees import Trustees, trustees_of
from inca.network.protocol.party import Party
from inca.network.protocol.records import Secret
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Body, Digest, Key, Kind, KindRule, Sign, SignedItems, Verify, read
from inca.network.protocol.stage_rule import Stage

# --- liars ----------------------------------------------------------------------------------------------------------


class Liar(Party):
    """Keeps the rules, but for what it signs and sends of its own."""

    def __init__(self, session: SessionConfig, me: int, *, sign: Sign, verify: Verify, **other: Any) -> None:
        super().__init__(session, me, sign=sign, verify=verify, **other)
        self.whims = random.Random(session.id + bytes([me]))
        self.dupes = {peer for peer in range(session.parties) if self.whims.random() < 0.5}
        """To whom it lies, if not to everyone."""
        publish_once = self.context.publish_once

        def lie_once(kind: Kind, body: Body, *, sealed: bytes = b"", cohort: int | None = None) -> None:
            if isinstance(body, Deposit):
                deposit, sealed = self.dealt(body, sealed)
                publish_once(kind, deposit, sealed=sealed, cohort=cohort)
            else:
                publish_once(kind, body, sealed=sealed, cohort=cohort)

        self.context.publish_once = lie_once  # type: ignore[method-assign]

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

    def __init__(self, *arguments: Any, **terms: Any) -> None:
        super().__init__(*arguments, **terms)
        self.signed_items._in_journal = lambda item: True  # type: ignore[method-assign]  # or others would evict it

    def dealt(self, deposit: Deposit, sealed: bytes) -> tuple[Deposit, bytes]:
        opening = self.finalization._opening
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

# --- broken rules: real classes in which one rule is another ---------------------------------------------------------

Patch = pytest.MonkeyPatch


def colluders_are_enough(patch: Patch) -> None:
    """The threshold is c, so that the colluders open everything."""

    def trustees(session: SessionConfig, cohort: Collection[int], seed: bytes = b"") -> Trustees:
        return Trustees(trustees_of(session, cohort, seed).members, session.colluders)

    patch.setattr("inca.network.protocol.context.trustees_of", trustees)
    patch.setattr("helpers.sealed_sessions.trustees_of", trustees)


def words_on_any_cohort(patch: Patch) -> None:
    """Deposits and refusals do not say for which cohort they are, and count for any."""
    is_current = SignedItems._is_current
    patch.setattr(signed_items, "check_deposit", lambda deposit, trustees: None)  # else their sizes might tell
    patch.setattr(
        SignedItems, "_is_current", lambda self, item, word: item.kind != "key" or is_current(self, item, word)
    )


def one_key(patch: Patch) -> None:
    """A trustee has one key for all cohorts."""
    _never_advancing(patch)
    patch.setattr(CohortSecrets, "dealing", property(lambda self: derived(self.state, b"dealing %d" % self.cohort)))


def one_secret(patch: Patch) -> None:
    """A dealer has one secret for all cohorts."""
    _never_advancing(patch)
    key = property(lambda self: clamped(derived(self.state, b"trustee %d" % self.cohort)))
    patch.setattr(CohortSecrets, "private_key", key)


def _never_advancing(patch: Patch) -> None:
    patch.setattr(CohortSecrets, "advanced", lambda self, cohort: CohortSecrets(self.state, cohort))


def silence_is_a_lie(patch: Patch) -> None:
    """Whoever has not shown its key in time is named as a liar."""

    def name_the_silent(party: Party, _: float) -> Stage:
        party.finalization.lie = Lie(min(party.finalization.missing_keys), ())
        party.finalization.opened = True
        return "serving"

    patch.setitem(stages.STAGES, "opening", replace(stages.STAGES["opening"], then=name_the_silent))


def keys_with_deposits(patch: Patch) -> None:
    """A trustee shows its key with its deposit, before commit."""
    deposit = Opening.deposit

    def deposit_and_show(self: Opening, message: bytes) -> None:
        deposit(self, message)
        secrets = self._context.ledger.secrets
        assert secrets is not None
        self._context.publish("key", Key(self.number, secrets.private_key))

    patch.setattr(Opening, "deposit", deposit_and_show)


def bytes_come_later(patch: Patch) -> None:
    """A deposit counts without the sealed bytes, which its dealer is expected to send later."""
    check_known, rule, open_ = SignedItems.check_known, signed_items.KINDS["deposit"], Opening.open

    def check_size(self: SignedItems, item: Item) -> KindRule:
        bare = item.kind == "deposit" and not item.sealed
        return check_known(self, msgspec.structs.replace(item, sealed=bytes(self.sealed_bytes)) if bare else item)

    def check(items: SignedItems, item: Item) -> None:
        if item.sealed:
            rule.check(items, item)

    def open_with_bytes(self: Opening, committed: Proposal) -> OpenedDeposits | None:
        held = self._context.signed_items.with_contents("deposit", committed.contents)
        return open_(self, committed) if all(item.sealed for item in held) else None

    patch.setattr(SignedItems, "check_known", check_size)
    patch.setitem(signed_items.KINDS, "deposit", replace(rule, check=check))
    patch.setattr(Opening, "open", open_with_bytes)


def erases_when_it_votes(patch: Patch) -> None:
    """Who votes for a smaller cohort erases its secrets for the earlier ones, though it may never be decided."""
    vote = Consensus._vote

    def vote_and_erase(self: Consensus, now: float, peer: int, message: Propose) -> None:
        ledger, number = self._context.ledger, self._context.ledger.cohorts
        before = ledger.voted.get(message.instance)
        vote(self, now, peer, message)
        smaller = message.proposal.step == "cohort" and number > 0 and ledger.voted.get(message.instance) != before
        if smaller and ledger.secrets is not None and ledger.secrets.cohort < number:
            later = ledger.secrets.advanced(number)
            self._context.record(Secret(later.cohort, later.state))

    patch.setattr(Consensus, "_vote", vote_and_erase)


def valid_by_hash_alone(patch: Patch) -> None:
    """A deposit is valid if its sealed bytes have the hash that it says; nobody deals again."""

    def opened(self: Dealing, deposit: Deposit, sealed: bytes, common: Mapping[int, bytes]) -> bytes:
        places = {trustee: place for place, trustee in enumerate(self.trustees, start=1)}
        shares = {places[one]: self.share_of(deposit, one, key) or 0 for one, key in common.items()}
        number = shamir.recovered(shares)
        return self._padded((number % 2**256).to_bytes(KEY_BYTES, "little"), sealed)

    patch.setattr(Dealing, "opened", opened)


def garbage_is_missing(patch: Patch) -> None:
    """A share that does not decrypt counts as missing: others are waited for."""
    open_ = Opening.open

    def open_if_decrypted(self: Opening, committed: Proposal) -> OpenedDeposits | None:
        items = self._context.signed_items
        shown = sorted(items.by_kind["key"].items())[: self.threshold]
        if getattr(self, "_vain", None) == len(items.by_kind["key"]):
            return None
        self._vain = len(items.by_kind["key"])  # type: ignore[attr-defined]
        for item in items.with_contents("deposit", committed.contents):
            dealing, deposit = self._dealing(item.party), read(item, Deposit)
            if any(
                dealing.share_of(deposit, party, in_common(deposit, read(key, Key).private)) is None
                for party, key in shown
            ):
                return None
        return open_(self, committed)

    patch.setattr(Opening, "open", open_if_decrypted)


def accepts_what_it_lacks(patch: Patch) -> None:
    """Commit is accepted without the deposits that it names."""
    lacks = Agenda.lacks

    def lacking(self: Agenda, proposal: Proposal, proposer: int) -> list[tuple[int, bytes]]:
        return [] if proposal.step == "commit" else lacks(self, proposal, proposer)

    patch.setattr(Agenda, "lacks", lacking)


def never_erases(patch: Patch) -> None:
    """A journal keeps the secrets for earlier cohorts."""
    patch.setattr(simulated_network, "on_disk", list)
