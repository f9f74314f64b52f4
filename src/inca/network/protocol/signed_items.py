"""Signed items that everyone should have: parts of the coin flip, digests, deposits, refusals, keys of trustees.

Two parties tell each other whose items they hold and ask for what they lack. Items are signed by their owners, so
it does not matter from whom one has them. What an item says is known by its hash: a party that signs two different
items of a kind is two-faced, which the two prove.

Whatever comes from a peer passes `SignedItems.take`, which follows the table `KINDS`: first its size, then whether it
matters now, then its signature, and only then what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import msgspec

from inca.errors import CannotJoin, InvalidPeerMessage
from inca.network.protocol.agreement.public_randomness import SECRET_BYTES, commitment
from inca.network.protocol.ledger import Ledger
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
    payload_hash,
)
from inca.network.protocol.opening.cohort_keys import COHORTS, KEY_BYTES, check_public, proves
from inca.network.protocol.opening.deposits import Deposit, check_deposit
from inca.network.protocol.opening.shamir import SHARE_BYTES
from inca.network.protocol.realized_execution import check_account
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.traffic import BATCH_BYTES, Traffic

Kind = Literal["commit", "confirm", "reveal", "digest", "deposit", "refusal", "key", "done"]
_MAX_TEXT = 200  # characters of a peer that are shown to people
_MAX_VARIANTS = 2  # of an item: two prove that its owner is two-faced; further ones only while a proposal names them
_FRAME_BYTES = 256  # of an item's body beside its parts of varying size: more than any has
_DIGEST_BYTES = _FRAME_BYTES + COHORTS * (KEY_BYTES + 2)
_ROUND_BYTES = 11  # of an account, at most: a round's number, a fate, and the number again

Sign = Callable[[bytes], bytes]
Verify = Callable[[int, bytes, bytes], bool]
"""(party, message, signature) -> whether the party signed the message."""


class Digest(Wire, frozen=True):
    """The whole account of a party, its commitment for the session's beacon, and its public keys as a trustee.

    There is a key for each cohort that the session may come to.
    """

    account: Account
    commitment: bytes
    keys: list[bytes]


class Refusal(Wire, frozen=True):
    """A party's word that it will not be in a cohort, known by its number and its hash, and why."""

    cohort: Count
    hash: bytes
    reason: str


class Key(Wire, frozen=True):
    """A trustee's private key for a cohort that was committed to."""

    cohort: Count
    private: bytes


Body = TypeVar("Body", Digest, Deposit, Refusal, Key)
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


# --- the table of kinds ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KindRule:
    """What is known of a kind of items."""

    largest: Callable[[SessionConfig], int]  # how many bytes the body may have
    check: Callable[[SignedItems, Item], None]  # refuses one that is signed and yet invalid
    form: type[Any] = bytes  # of the body
    once: bool = False  # whether a party signs it once in a session, or once in a cohort
    sealed: bool = False  # whether it has sealed bytes


def _check_secret(_: SignedItems, item: Item) -> None:
    _check_size(f"a {item.kind}", item.body)


def _check_digest(items: SignedItems, item: Item) -> None:
    digest = read(item, Digest)
    _check_size("the commitment in a digest", digest.commitment)
    if len(digest.keys) != COHORTS:
        raise InvalidPeerMessage(f"a digest must have {COHORTS} keys, got {len(digest.keys)}")
    for key in digest.keys:
        check_public(key)
    check_account(items.session, item.party, digest.account)


def _check_deposit(items: SignedItems, item: Item) -> None:
    deposit = read(item, Deposit)
    check_deposit(deposit, items.trustees)
    _check_sealed(deposit, item)


def _check_sealed(deposit: Deposit, item: Item) -> None:
    if payload_hash(item.sealed) != deposit.sealed:
        raise InvalidPeerMessage("a deposit with other sealed bytes than its hash says")


def _check_refusal(_: SignedItems, item: Item) -> None:
    reason = read(item, Refusal).reason
    if len(reason) > _MAX_TEXT or not reason.isprintable():
        raise InvalidPeerMessage(f"a refusal must have at most {_MAX_TEXT} printable characters")


def _check_key(items: SignedItems, item: Item) -> None:
    public = items.public_keys.get(item.party)
    if public is None or not proves(read(item, Key).private, public):
        raise InvalidPeerMessage("a key that is not the one behind its party's digest")


def _check_size(what: str, content: bytes) -> None:
    if len(content) != SECRET_BYTES:
        raise InvalidPeerMessage(f"{what} must have {SECRET_BYTES} bytes, got {len(content)}")


KINDS: dict[Kind, KindRule] = {
    "commit": KindRule(lambda _: SECRET_BYTES, _check_secret),
    "confirm": KindRule(lambda _: SECRET_BYTES, _check_secret),
    "reveal": KindRule(lambda _: SECRET_BYTES, _check_secret),
    "digest": KindRule(lambda of: _DIGEST_BYTES + _ROUND_BYTES * of.rounds, _check_digest, Digest, once=True),
    "deposit": KindRule(
        lambda of: _FRAME_BYTES + SHARE_BYTES * of.parties, _check_deposit, Deposit, once=True, sealed=True
    ),
    "refusal": KindRule(lambda _: _FRAME_BYTES + 4 * _MAX_TEXT, _check_refusal, Refusal, once=True),
    "key": KindRule(lambda _: _FRAME_BYTES, _check_key, Key),
    "done": KindRule(lambda _: 0, lambda items, item: None),
}
ONCE: tuple[Kind, ...] = ("digest",)
"""What a party says once in a session, so that others can tell a party without its journal that it has said it."""
WORDS: tuple[Kind, ...] = ("deposit", "refusal")
"""What parties say of a cohort."""
PER_COHORT: tuple[Kind, ...] = ("deposit", "refusal", "key")
"""What is about one cohort, and forgotten when there is a smaller one."""


class SignedItems:
    """The signed items that a party holds."""

    def __init__(self, session: SessionConfig, me: int, ledger: Ledger, sign: Sign, verify: Verify) -> None:
        self.session, self.me, self.ledger = session, me, ledger
        self.sealed_bytes = Traffic(session).sealed_bytes
        self._sign, self._verify = sign, verify
        self.by_kind: dict[str, dict[int, Item]] = {kind: {} for kind in KINDS}
        """The items that are held: kind -> party -> item; once it is decided which one counts, that one."""
        self.changes = 0
        """How often something became held, or was forgotten."""
        self.cohort = -1
        """The number of the cohort that words are about; earlier words are forgotten."""
        self.trustees = 0
        """How many trustees it has."""
        self.public_keys: Mapping[int, bytes] = {}
        """The keys of its trustees, once it was committed to."""
        self.key_came_early = False
        """Whether a trustee has shown its key of a cohort that was not committed to, as far as is known here."""
        self._hash = b""  # of the cohort
        self._bits: dict[str, int] = dict.fromkeys(KINDS, 0)  # the same, as bits
        self._variants: dict[tuple[str, int], dict[bytes, Item]] = {}
        self._early: dict[tuple[str, int], Item] = {}  # words of the next cohort, and keys before commit
        self._named: dict[int | None, set[tuple[str, int, bytes]]] = {}  # by the last proposal of each; None: decided
        self._kept: set[tuple[str, int, bytes]] = set()  # behind what this party has accepted
        self._everyone = set(range(session.parties))

    # --- own items ----------------------------------------------------------------------------------------------

    def sign(self, kind: Kind, body: bytes | Body, sealed: bytes = b"") -> Item:
        """Return an own item, signed."""
        content = body if isinstance(body, bytes) else _encoder.encode(body)
        unsigned = Item(kind, self.me, content, b"", sealed)
        return msgspec.structs.replace(unsigned, signature=self._sign(self._text(self.me, unsigned.proof)))

    def hold_own(self, item: Item) -> None:
        """Hold an own item that was just signed."""
        self._variants[item.kind, item.party] = {item.hash: item}
        self._hold(item)

    # --- items of all ---------------------------------------------------------------------------------------------

    def check_known(self, item: Item) -> KindRule:
        """Refuse an item of a kind or a party that there is not, or larger than any; it costs next to nothing."""
        rule = KINDS.get(cast(Kind, item.kind))
        if rule is None or item.party >= self.session.parties:
            raise InvalidPeerMessage(f"an item of the unknown kind {item.kind[:20]!r} or party {item.party}")
        largest, sealed = rule.largest(self.session), self.sealed_bytes if rule.sealed else 0
        if len(item.body) > largest or len(item.sealed) != sealed:
            got = f"{len(item.body)} and {len(item.sealed)}"
            raise InvalidPeerMessage(f"a {item.kind} must have at most {largest} bytes and {sealed} sealed, got {got}")
        return rule

    def take(self, item: Item) -> bool:
        """Keep an item; return whether it was new. Refuse one that is invalid, or that its owner did not sign.

        `CannotJoin`: this party has said something in an earlier incarnation that its journal does not know.
        """
        rule = self.check_known(item)
        if item.kind in PER_COHORT and not self._is_current(item, read(item, rule.form)):
            return False
        hash_, variants = item.hash, self._variants.get((item.kind, item.party), {})
        if hash_ in variants or not (self._needs(item.kind, item.party, hash_) or len(variants) < _MAX_VARIANTS):
            return False
        self._check_signed(item)
        if item.kind == "reveal" and not self._was_committed(item):
            return False
        if rule.once and item.party == self.me and not self._in_journal(item):
            raise CannotJoin(f"the journal is behind: a peer has a {item.kind} of this party that it lacks")
        rule.check(self, item)
        self._variants[item.kind, item.party] = {**self._without_spares(item.kind, item.party), hash_: item}
        if item.party not in self.by_kind[item.kind]:
            self._hold(item)
        return True

    def proves(self, party: int, proof: ItemProof) -> bool:
        """Return whether a proof shows that a party has signed an item."""
        return self._verify(party, self._text(party, proof), proof.signature)

    def _in_journal(self, item: Item) -> bool:
        return any(own.kind == item.kind and own.hash == item.hash for own in self.ledger.own_items.values())

    def _was_committed(self, item: Item) -> bool:
        """Return whether a secret is the one that its owner committed to: another one is as if it had never come.

        Were it held, nobody would send the right one any more, and a liar could choose who fails.
        """
        committed = self.by_kind["commit"].get(item.party)
        return committed is not None and commitment(self.session.id, item.party, item.body) == committed.body

    def _is_current(self, item: Item, word: Deposit | Refusal | Key) -> bool:
        """Return whether a word is about the cohort of now; one of the next is kept until it is known here."""
        now = word.cohort == self.cohort
        if now and not isinstance(word, Key):
            return word.hash == self._hash
        if now and self.public_keys:
            return True
        if now or word.cohort == self.cohort + 1:
            place = item.kind, item.party
            known = self._early.get(place)
            if known is None or known.hash != item.hash:
                self._check_signed(item)
                if isinstance(word, Deposit):
                    _check_sealed(word, item)
                self._early[place] = item
            if isinstance(word, Key):
                self.key_came_early = True  # there is a decision that this party does not know
        return False

    def _check_signed(self, item: Item) -> None:
        if not self.proves(item.party, item.proof):
            raise InvalidPeerMessage(f"a {item.kind} that {self.session.name(item.party)} has not signed")

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

    # --- one cohort after the other -------------------------------------------------------------------------------

    def expect_words(self, number: int, hash_: bytes, trustees: int) -> None:
        """Forget what is about earlier cohorts; take words on this one from now on, and those that came before."""
        self.cohort, self._hash, self.public_keys, self.trustees = number, hash_, {}, trustees
        for kind in PER_COHORT:
            self.by_kind[kind], self._bits[kind] = {}, 0
        self.changes += 1
        self._variants = {key: variants for key, variants in self._variants.items() if key[0] not in PER_COHORT}
        self._take_early(WORDS)

    def expect_keys(self, publics: Mapping[int, bytes]) -> None:
        """Take keys of these trustees from now on: the cohort was committed to."""
        self.public_keys = publics
        self._take_early(("key",))

    def _take_early(self, kinds: tuple[Kind, ...]) -> None:
        for (kind, party), item in list(self._early.items()):
            if kind in kinds:
                del self._early[kind, party]
                try:
                    self.take(item)
                except InvalidPeerMessage:
                    continue  # signed by its owner, and invalid: as if it had never come

    # --- what is held ---------------------------------------------------------------------------------------------

    def have(self, *, reply: bool = False) -> Have:
        """Say what is held, and how many decisions are known."""
        n = self.session.parties
        held = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in self._bits.items()}
        return Have(held, len(self.ledger.decided), reply)

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

    def wanted(self, want: Want) -> list[Item]:
        """Return the wanted items that are held."""
        n = self.session.parties
        wanted = [(held, members(want.wanted[kind], n)) for kind, held in self.by_kind.items() if kind in want.wanted]
        return [held[party] for held, parties in wanted for party in sorted(parties & set(held))]

    def missing(self, kind: Kind) -> set[int]:
        """Return the parties whose item of that kind is missing."""
        return self._everyone.difference(self.by_kind[kind])

    def _text(self, party: int, proof: ItemProof) -> bytes:
        return signed_text(self.session.id, party, proof)


def signed_text(session: bytes, party: int, proof: ItemProof) -> bytes:
    """Return what the owner of an item signs: the hash of what it says, so that a large item is hashed once."""
    return b"inca-item/2" + session + party.to_bytes(4, "little") + proof.body_hash + proof.kind.encode()


def in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in batches that fit in a message; a large one is alone."""
    batch, size = list[Item](), 0
    for item in items:
        if batch and size + item.size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size
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
