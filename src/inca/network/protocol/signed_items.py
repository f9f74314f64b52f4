"""Signed items that everyone should have: parts of the coin flip, digests, who is ready, final messages.

Two parties tell each other whose items they hold and ask for what they lack. Items are signed by their owners, so
it does not matter from whom one has them. Nothing private is in an item before its owner decides to publish it. What an
item says is known by its hash: a party that signs two different items of a kind is two-faced, which the two prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar, get_args

import msgspec

from inca.errors import InvalidPeerMessage
from inca.network.protocol.agreement.public_randomness import SECRET_BYTES
from inca.network.protocol.messages import (
    Account,
    Count,
    Have,
    Item,
    ItemProof,
    Want,
    Wire,
    bit_field,
    members,
    unpack,
)
from inca.network.protocol.session import SessionConfig, check_weight

Kind = Literal["commit", "confirm", "reveal", "digest", "ready", "final", "done"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ONCE: tuple[Kind, ...] = ("digest", "final")
"""What a party signs once, whatever happens: its witnesses show it what it has signed."""
_BATCH_BYTES = 2**20  # of items in one answer, if there is more than one item
_MAX_TEXT = 200  # characters of a peer that are shown to people
_MAX_VARIANTS = 2  # of an item: two prove that its owner is two-faced; further ones only while a proposal names them

Sign = Callable[[bytes], bytes]
Verify = Callable[[int, bytes, bytes], bool]
"""(party, message, signature) -> whether the party signed the message."""


class Digest(Wire, frozen=True):
    """The whole account of a party, and its commitment for the session's beacon."""

    account: Account
    commitment: bytes


class Ready(Wire, frozen=True):
    """A party's word on a cohort that was decided (number `instance`, by its hash): ready, or why it refuses."""

    instance: Count
    cohort: bytes
    refusal: str = ""


class Final(Wire, frozen=True):
    """A settled final message, and the party's secret for the session's beacon."""

    payload: bytes
    secret: bytes


Body = TypeVar("Body", Digest, Ready, Final)
_encoder = msgspec.msgpack.Encoder()


def read(item: Item, form: type[Body]) -> Body:
    """Return what an item says; refuse what is not of that form, or not written in the shortest way."""
    known = item.read_as.get(form)
    if isinstance(known, form):
        return known
    try:
        body = msgspec.msgpack.decode(item.body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPeerMessage(f"a {item.kind} that cannot be read: {error}") from None
    if _encoder.encode(body) != item.body:
        raise InvalidPeerMessage(f"a {item.kind} must be written in the shortest way, got {len(item.body)} bytes")
    item.read_as[form] = body
    return body


class SignedItems:
    """The signed items that a party holds."""

    def __init__(self, session: SessionConfig, me: int, sign: Sign, verify: Verify) -> None:
        self.session, self.me = session, me
        self._sign, self._verify = sign, verify
        self.by_kind: dict[str, dict[int, Item]] = {kind: {} for kind in KINDS}
        """The items that are held: kind -> party -> item; once it is decided which one counts, that one."""
        self.changes = 0
        """How often something became held, or was forgotten."""
        self.ready_for = 0
        """The number of the decision that parties now say they are ready for; earlier words are forgotten."""
        self._bits: dict[str, int] = dict.fromkeys(KINDS, 0)  # the same, as bits
        self._variants: dict[tuple[str, int], dict[bytes, Item]] = {}
        self._named: dict[int | None, set[tuple[str, int, bytes]]] = {}  # by the last proposal of each; None: decided
        self._kept: set[tuple[str, int, bytes]] = set()  # behind what this party has accepted
        self._everyone = set(range(session.parties))

    # --- own items ----------------------------------------------------------------------------------------------

    def sign(self, kind: Kind, body: bytes | Digest | Ready | Final) -> Item:
        """Return an own item, signed."""
        content = body if isinstance(body, bytes) else _encoder.encode(body)
        unsigned = Item(kind, self.me, content, b"")
        return msgspec.structs.replace(unsigned, signature=self._sign(self._text(self.me, unsigned.proof)))

    # --- items of all ---------------------------------------------------------------------------------------------

    def signed_by_owner(self, item: Item) -> bool:
        """Return whether the party that an item is said to be of has signed it."""
        return self.proves(item.party, item.proof)

    def proves(self, party: int, proof: ItemProof) -> bool:
        """Return whether a proof shows that a party has signed an item."""
        return self._verify(party, self._text(party, proof), proof.signature)

    def check_known(self, item: Item) -> None:
        """Refuse an item of a kind or a party that there is not."""
        if item.kind not in self.by_kind or item.party >= self.session.parties:
            raise InvalidPeerMessage(f"an item of the unknown kind {item.kind[:20]!r} or party {item.party}")

    def add(self, item: Item) -> bool:
        """Keep an item; return whether it was new. Refuse one that its owner did not sign."""
        self.check_known(item)
        hash_ = item.hash
        variants = self._variants.get((item.kind, item.party), {})
        if hash_ in variants or not (self._needs(item.kind, item.party, hash_) or len(variants) < _MAX_VARIANTS):
            return False
        if not self.signed_by_owner(item):
            raise InvalidPeerMessage(f"a {item.kind} that {self.session.name(item.party)} has not signed")
        if not self._check(item):
            return False
        self._variants[item.kind, item.party] = {**self._without_spares(item.kind, item.party), hash_: item}
        if item.party not in self.by_kind[item.kind]:
            self._hold(item)
        return True

    def _needs(self, kind: str, party: int, hash_: bytes) -> bool:
        """Return whether something that was proposed, accepted or decided rests on an item."""
        content = (kind, party, hash_)
        return content in self._kept or any(content in named for named in self._named.values())

    def _without_spares(self, kind: str, party: int) -> dict[bytes, Item]:
        """Return the variants of an item that must be kept; a party that signs without end must not fill the memory."""
        variants = self._variants.get((kind, party), {})
        first = list(variants)[:_MAX_VARIANTS]
        held = self.by_kind[kind].get(party)
        return {h: i for h, i in variants.items() if h in first or i is held or self._needs(kind, party, h)}

    def keep(self, kind: str, contents: Iterable[tuple[int, bytes]]) -> None:
        """Never forget the items with these contents: this party has accepted a proposal that names them."""
        self._kept.update((kind, party, hash_) for party, hash_ in contents)

    def _hold(self, item: Item) -> None:
        self.by_kind[item.kind][item.party] = item
        self._bits[item.kind] |= 1 << item.party
        self.changes += 1

    def two_faced(self, kind: Kind) -> set[int]:
        """Return the parties that have signed two different items of a kind."""
        return {party for (of, party), variants in self._variants.items() if of == kind and len(variants) > 1}

    def lacking_contents(
        self, kind: Kind, contents: list[tuple[int, bytes]], proposer: int | None
    ) -> list[tuple[int, bytes]]:
        """Return which contents are not held, of those that a proposer has named, or a decision (None).

        They are kept when they come, whatever else is held, until the same proposer names others.
        """
        self._named[proposer] = {(kind, party, hash_) for party, hash_ in contents}
        return [(party, hash_) for party, hash_ in contents if hash_ not in self._variants.get((kind, party), {})]

    def with_contents(self, kind: str, contents: Iterable[tuple[int, bytes]]) -> list[Item]:
        """Return the items with these contents that are held."""
        variants = [(self._variants.get((kind, party), {}), hash_) for party, hash_ in dict.fromkeys(contents)]
        return [held[hash_] for held, hash_ in variants if hash_ in held]

    def pin(self, kind: Kind, contents: Iterable[tuple[int, bytes]]) -> None:
        """Hold the items that count, of those parties, from now on."""
        for item in self.with_contents(kind, contents):
            self._hold(item)

    def expect_ready(self, instance: int) -> None:
        """Forget who was ready for an earlier cohort."""
        self.ready_for, self.by_kind["ready"], self._bits["ready"] = instance, {}, 0
        self.changes += 1
        self._variants = {key: variants for key, variants in self._variants.items() if key[0] != "ready"}

    def have(self, decided: int, *, reply: bool = False) -> Have:
        """Say what is held, and how many decisions are known."""
        n = self.session.parties
        held = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in self._bits.items()}
        return Have(held, decided, reply)

    def lacking(self, other: Have) -> dict[str, int]:
        """Return the items that the other has and that are missing here: for each kind a bit per party."""
        return {kind: more for kind, number in self._theirs(other).items() if (more := number & ~self._bits[kind])}

    def has_more_than(self, other: Have) -> bool:
        """Return whether there is something here that the other lacks."""
        theirs = self._theirs(other)
        return any(number & ~theirs.get(kind, 0) for kind, number in self._bits.items())

    def _theirs(self, other: Have) -> dict[str, int]:
        n = self.session.parties
        return {kind: bit_field(field, n) for kind, field in other.held.items() if kind in self._bits}

    def batches(self, want: Want) -> Iterator[list[Item]]:
        """Yield the wanted items that are held, in batches."""
        n = self.session.parties
        wanted = [(kind, members(field, n)) for kind, field in want.wanted.items() if kind in self.by_kind]
        yield from in_batches(
            self.by_kind[kind][party] for kind, parties in wanted for party in sorted(parties & set(self.by_kind[kind]))
        )

    def bodies(self, kind: Kind, form: type[Body]) -> dict[int, Body]:
        """Return what all held items of a kind say."""
        return {party: read(item, form) for party, item in self.by_kind[kind].items()}

    def missing(self, kind: Kind) -> set[int]:
        """Return the parties whose item of that kind is missing."""
        return self._everyone.difference(self.by_kind[kind])

    def _text(self, party: int, proof: ItemProof) -> bytes:
        """Return what is signed: the hash of what it says, so that a large item is hashed once."""
        return b"inca-item/2" + self.session.id + party.to_bytes(4, "little") + proof.body_hash + proof.kind.encode()

    def _check(self, item: Item) -> bool:
        """Refuse an item that is signed and yet invalid, before it is passed on; return whether it matters now."""
        match item.kind:
            case "done":
                if item.body:
                    raise InvalidPeerMessage(f"a done must be empty, got {len(item.body)} bytes")
            case "commit" | "confirm" | "reveal":
                _check_size(f"a {item.kind}", item.body)
            case "digest":
                _check_size("the commitment in a digest", read(item, Digest).commitment)
            case "ready":
                ready = read(item, Ready)
                if len(ready.refusal) > _MAX_TEXT or not ready.refusal.isprintable():
                    raise InvalidPeerMessage(f"a refusal must have at most {_MAX_TEXT} printable characters")
                return ready.instance == self.ready_for
            case "final":
                final = read(item, Final)
                _check_size("the secret in a final message", final.secret)
                numbers = unpack(final.payload, self.session.dimension + 1)
                check_weight(abs(numbers[-1:]), self.session.parties)  # a settled weight may be negative
        return True


def _check_size(what: str, content: bytes) -> None:
    if len(content) != SECRET_BYTES:
        raise InvalidPeerMessage(f"{what} must have {SECRET_BYTES} bytes, got {len(content)}")


def in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in batches that fit in a message; a large one is alone."""
    batch, size = list[Item](), 0
    for item in items:
        if batch and size + len(item.body) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item.body)
    if batch:
        yield batch


def not_among(items: Iterable[Item], known: Iterable[Item]) -> list[Item]:
    """Return the items whose contents are not among those of others."""
    contents = {(item.kind, item.party, item.hash) for item in known}
    return [item for item in items if (item.kind, item.party, item.hash) not in contents]


def printable(text: str) -> str:
    """Return a text as it may be shown to others: one line of at most 200 printable characters.

    >>> printable("no\\x1b[2J good")
    'no?[2J good'
    """
    return "".join(character if character.isprintable() else "?" for character in text)[:_MAX_TEXT]
