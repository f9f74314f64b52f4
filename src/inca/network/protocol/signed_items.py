"""Signed items that everyone should have: parts of the coin flip, digests, final messages, decisions.

Two parties tell each other whose items they hold and ask for what they lack. Items are signed by their owners, so
it does not matter from whom one has them. Nothing private is in an item before its owner decides to publish it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, get_args

import msgspec

from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import Account, Count, Have, Item, Want, Wire, bit_field, members, unpack
from inca.network.protocol.session import SessionConfig

Kind = Literal["commit", "reveal", "digest", "final", "decision", "done"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_BATCH_BYTES = 2**20  # of items in one answer, if there is more than one item
_SECRET_BYTES = 32

Sign = Callable[[bytes], bytes]
Verify = Callable[[int, bytes, bytes], bool]
"""(party, message, signature) -> whether the party signed the message."""


class Digest(Wire, frozen=True):
    """The whole account of a party, and the last account it has of each party that offered it something."""

    account: Account
    last_known_accounts: list[tuple[Count, Account]]


class Final(Wire, frozen=True):
    """A final message, or an empty one with the reason why it is withheld."""

    payload: bytes
    withheld: str = ""


class Vote(Wire, frozen=True):
    """The digests and final messages, as bit fields, of which the result is made."""

    digests: bytes
    finals: bytes


Body = TypeVar("Body", Digest, Final, Vote)
_encoder = msgspec.msgpack.Encoder()


def read(item: Item, form: type[Body]) -> Body:
    """Return what an item says; refuse what is not of that form."""
    try:
        return msgspec.msgpack.decode(item.body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPeerMessage(f"a {item.kind} that cannot be read: {error}") from None


def commitment(session: bytes, party: int, secret: bytes) -> bytes:
    """Return what a party shows of its secret for the coin flip before it reveals it.

    Args:
        session: The session's identifier.
        party: The number of the party.
        secret: Its 32 secret bytes.

    Returns:
        SHA-256 of a label, the session, the party and the secret: binding, and hiding as the secret is random.

    Example:
        >>> commitment(bytes(32), 3, b"x" * 32) == commitment(bytes(32), 4, b"x" * 32)
        False
    """
    return hashlib.sha256(b"inca-toss/1" + session + party.to_bytes(4, "little") + secret).digest()


def flipped_seed(session: bytes, secrets: list[bytes]) -> bytes:
    """Return the public seed: the outcome of the coin flip.

    Args:
        session: The session's identifier.
        secrets: The revealed secrets of all parties, in order of party.

    Returns:
        32 bytes that nobody could predict or choose, if one secret is random and all were committed to before.

    Example:
        >>> len(flipped_seed(bytes(32), [bytes(32), bytes(32)]))
        32
    """
    return hashlib.sha256(b"inca-seed/1" + session + b"".join(secrets)).digest()


class SignedItems:
    """The signed items that a party holds.

    Args:
        session: The terms of the session.
        me: The number of the party.
        sign: Signs as this party.
        verify: Verifies the signature of any party.
    """

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify) -> None:
        self.session, self.me = session, me
        self._sign, self._verify = sign, verify
        self.by_kind: dict[str, dict[int, Item]] = {kind: {} for kind in KINDS}
        """The items that are held: kind -> party -> item."""
        self._bits: dict[str, int] = dict.fromkeys(KINDS, 0)  # the same, as bits
        self._read: dict[tuple[str, int], Any] = {}
        self._everyone = set(range(session.parties))

    def sign(self, kind: Kind, body: bytes | Digest | Final | Vote) -> Item:
        """Return an own item, signed."""
        content = body if isinstance(body, bytes) else _encoder.encode(body)
        return Item(kind, self.me, content, self._sign(self._text(kind, self.me, content)))

    def add(self, item: Item) -> bool:
        """Keep an item; return whether it was new. Refuse one that its owner did not sign."""
        if item.kind not in self.by_kind or item.party >= self.session.parties:
            raise InvalidPeerMessage(f"an item of the unknown kind {item.kind!r} or the unknown party {item.party}")
        if item.party in self.by_kind[item.kind]:
            return False
        if not self._verify(item.party, self._text(item.kind, item.party, item.body), item.signature):
            raise InvalidPeerMessage(f"a {item.kind} that party {item.party} has not signed")
        self._check(item)
        self.by_kind[item.kind][item.party] = item
        self._bits[item.kind] |= 1 << item.party
        return True

    @property
    def count(self) -> int:
        """How many items are held."""
        return sum(len(items) for items in self.by_kind.values())

    def have(self, *, reply: bool = False) -> Have:
        """Say what is held."""
        n = self.session.parties
        held = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in self._bits.items()}
        return Have(held, reply)

    def lacking(self, other: Have) -> dict[str, int]:
        """Return the items that the other has and that are missing here: for each kind a bit per party."""
        n = self.session.parties
        theirs = {kind: bit_field(field, n) for kind, field in other.held.items() if kind in self._bits}
        return {kind: number & ~self._bits[kind] for kind, number in theirs.items()}

    def has_more_than(self, other: Have) -> bool:
        """Return whether there is something here that the other lacks."""
        theirs = {kind: bit_field(field, self.session.parties) for kind, field in other.held.items()}
        return any(number & ~theirs.get(kind, 0) for kind, number in self._bits.items())

    def batches(self, want: Want) -> Iterator[list[Item]]:
        """Yield the wanted items that are held, in batches."""
        n, batch, size = self.session.parties, list[Item](), 0
        for kind, field in want.wanted.items():
            for party in sorted(members(field, n) & set(self.by_kind.get(kind, {}))):
                item = self.by_kind[kind][party]
                if batch and size + len(item.body) > _BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
                batch.append(item)
                size += len(item.body)
        if batch:
            yield batch

    def bodies(self, kind: Kind, form: type[Body]) -> dict[int, Body]:
        """Return what all held items of a kind say."""
        for party, item in self.by_kind[kind].items():
            if (kind, party) not in self._read:
                self._read[kind, party] = read(item, form)
        return {party: self._read[kind, party] for party in self.by_kind[kind]}

    def missing(self, kind: Kind) -> set[int]:
        """Return the parties whose item of that kind is missing."""
        return self._everyone.difference(self.by_kind[kind])

    def _text(self, kind: str, party: int, body: bytes) -> bytes:
        return b"inca-item/1" + self.session.id + kind.encode() + party.to_bytes(4, "little") + body

    def _check(self, item: Item) -> None:
        """Refuse an item that is signed and yet invalid, before it is passed on."""
        match item.kind:
            case "done":
                if item.body:
                    raise InvalidPeerMessage(f"a done must be empty, got {len(item.body)} bytes")
            case "commit" | "reveal":
                if len(item.body) != _SECRET_BYTES:
                    raise InvalidPeerMessage(f"a {item.kind} must have {_SECRET_BYTES} bytes, got {len(item.body)}")
            case "digest":
                read(item, Digest)
            case "final":
                final = read(item, Final)
                if final.payload:
                    unpack(final.payload, self.session.dimension + 1)
            case "decision":
                vote = read(item, Vote)
                members(vote.digests, self.session.parties)
                members(vote.finals, self.session.parties)
