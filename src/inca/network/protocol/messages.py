"""What parties say to each other, and how it becomes bytes.

A connection belongs to one session and two known parties, so messages name neither. In a round each party sends to one
and hears from one, so a transfer between the two is known by its round. Payloads are int64 numbers of fixed width,
little-endian: the coordinates, then the weight. The `repr` of a message shows how many bytes there are, never which.

A payload may be tens of megabytes. A final message goes to everyone, and waits for each of them: `encode_in_pieces`
refers to it and copies nothing.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from inca.errors import InvalidPeerMessage
from inca.network.lattice import Numbers
from inca.network.payloads import LARGE_BYTES, contents

Count = Annotated[int, Meta(ge=0, lt=2**32)]
Ballot = Annotated[int, Meta(ge=0, lt=2**62)]
Step = Literal["cohort", "commit"]

MAX_NUMBER = 2**62  # entries beyond could overflow a balance; no honest party has any
_LARGE_HEADER = struct.Struct(">BI")  # what msgpack writes before one: its type and length
_LARGE_TYPE = 0xC6


def sizes_only(struct: msgspec.Struct) -> str:
    """Return the `repr` of a struct with the size of each byte string in place of its bytes.

    >>> sizes_only(Item("key", 3, b"a private key", b"signature"))
    "Item(kind='key', party=3, body=<13 bytes>, signature=<9 bytes>, sealed=<0 bytes>)"
    """
    values = {name: getattr(struct, name) for name in struct.__struct_fields__}
    shown = [
        f"{name}={f'<{len(value)} bytes>' if isinstance(value, bytes) else repr(value)}"
        for name, value in values.items()
    ]
    return f"{type(struct).__name__}({', '.join(shown)})"


def payload_hash(payload: bytes) -> bytes:
    """Return 32 bytes of BLAKE2b: payloads may be large, and SHA-256 takes half as long again."""
    return hashlib.blake2b(contents(payload), digest_size=32).digest()


class Wire(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The base of everything that travels: arrays of msgpack, in the order of the fields."""

    def __repr__(self) -> str:
        return sizes_only(self)


class Account(Wire, frozen=True):
    """What a party did so far, without any value: public, and all that an auditor needs.

    `present` lists the rounds it took part in. `fates` has, for each of them, what became of its offer: `NOBODY` (it
    never left), `ACKED`, `BACK` (voided, and back in its own round) or `OPEN` (set aside: no answer in its own round).
    `credited` lists the rounds in which it credited what it was offered.
    """

    present: list[Count]
    fates: list[Count]
    credited: list[Count]


NOBODY, ACKED, OPEN, BACK = range(4)


class OfferProof(Wire, frozen=True):
    """What the sender of an offer has signed, without its payload: whoever shows it has seen the offer.

    `payload_hash` is that of the payload, and `weight` its last number, as it travels.
    """

    round: Count
    weight: bytes
    payload_hash: bytes
    signature: bytes


class Offer(Wire, frozen=True, tag="offer", dict=True):
    """A share of the sender's message, to be credited in this round or never; byte-identical on every retry.

    Signed by its sender. Without a signature it means nothing to others.
    """

    round: Count
    payload: bytes
    signature: bytes = b""

    @cached_property
    def proof(self) -> OfferProof:
        """What remains of it for others, the payload being the receiver's alone; it is hashed once."""
        hashed = payload_hash(self.payload)
        return OfferProof(self.round, bytes(self.payload[-8:]), hashed, self.signature)


class Ack(Wire, frozen=True, tag="ack"):
    """The offer has been credited, durably."""

    round: Count


class Voided(Wire, frozen=True, tag="voided"):
    """The offer will never be credited: there is a tombstone, durably."""

    round: Count


class Nudge(Wire, frozen=True, tag="nudge"):
    """Your offer of this round is waited for. It also finds out whether the peer is there at all."""

    round: Count


class Skipped(Wire, frozen=True, tag="skipped"):
    """I am not there in this round: wait for no offer. A hint: should one come all the same, it can be decided."""

    round: Count


class Goodbye(Wire, frozen=True, tag="goodbye"):
    """I leave the session for good: wait for nothing more of mine."""


class Ask(Wire, frozen=True, tag="ask"):
    """I have been away: what have you seen of me, and where are you?"""


class ItemProof(Wire, frozen=True):
    """What the owner of an item has signed, without its body: whoever shows it has seen the item."""

    kind: str
    body_hash: bytes
    signature: bytes


class Seen(Wire, frozen=True, tag="seen"):
    """The offers of the asking party that were seen here, and the round in which the answering party is.

    It cannot tell of rounds before `since`: it came late itself. `signed` are the signed items of the asking party that
    are known here, which it must not sign differently. Of all this the asking party believes what it has signed.
    """

    offers: list[OfferProof]
    round: Count
    since: Count
    signed: list[ItemProof]


class Item(Wire, frozen=True, dict=True):
    """Something signed by a party that everyone should have; `body` is encoded by its kind.

    `sealed` are the bytes of a sealed final message, whose hash is in the body of its deposit; else there are none.
    """

    kind: str
    party: Count
    body: bytes
    signature: bytes
    sealed: bytes = b""

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of its body, by which parties agree on what it says."""
        return hashlib.sha256(self.body).digest()

    @property
    def size(self) -> int:
        """How many bytes it has, more or less."""
        return len(self.body) + len(self.sealed)

    @property
    def proof(self) -> ItemProof:
        """What remains of it for somebody who has seen it."""
        return ItemProof(self.kind, self.hash, self.signature)

    @cached_property
    def read_as(self) -> dict[type, msgspec.Struct]:
        """What its body says, by form, once it has been read: it is looked at many times until the end of a session."""
        return {}


class Have(Wire, frozen=True, tag="have"):
    """Whose items the sender holds, for each kind a bit per party, and how many decisions it knows.

    `reply`: it answers a `Have`, send none back.
    """

    held: dict[str, bytes]
    decided: Count
    reply: bool


class Want(Wire, frozen=True, tag="want"):
    """Send me these items, for each kind a bit per party, and the decisions from this one on."""

    wanted: dict[str, bytes]
    decided: Count


class Fetch(Wire, frozen=True, tag="fetch"):
    """Send me the items with these contents, which your message names: (party, hash)."""

    kind: str
    contents: list[tuple[Count, bytes]]


class Items(Wire, frozen=True, tag="items"):
    """Items that the receiver wanted."""

    items: list[Item]


class Proposal(Wire, frozen=True, dict=True):
    """What parties agree on, by contents: (party, hash of its item), in order of party.

    `step` is "cohort" (these digests make up the cohort) or "commit" (these deposits of the whole cohort are opened).
    """

    step: Step
    contents: list[tuple[Count, bytes]]

    @property
    def kind(self) -> Literal["digest", "deposit"]:
        """The kind of items that it names."""
        return "digest" if self.step == "cohort" else "deposit"

    @cached_property
    def parties(self) -> frozenset[int]:
        """Who is in it."""
        return frozenset(party for party, _ in self.contents)

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of its encoding."""
        return hashlib.sha256(_encoder.encode(self)).digest()


class Prepare(Wire, frozen=True, tag="prepare"):
    """Consensus on decision number `instance`: promise to follow no proposal below this ballot."""

    instance: Count
    ballot: Ballot


class Lock(Wire, frozen=True):
    """A proposal for which a quorum has voted in a ballot, with their signatures: (party, signature)."""

    ballot: Ballot
    proposal: Proposal
    votes: list[tuple[Count, bytes]]


class Promise(Wire, frozen=True, tag="promise"):
    """Consensus: promised; and on what the party was locked last, if on anything. Signed, to be shown to others."""

    instance: Count
    ballot: Ballot
    lock: Lock | None
    signature: bytes


class Propose(Wire, frozen=True, tag="propose"):
    """Consensus: vote for this.

    `promises` show that the proposer may: (party, the ballot it was locked in or 0, signature); `votes` are those of
    the latest of these locks, which must be on this proposal.
    """

    instance: Count
    ballot: Ballot
    proposal: Proposal
    promises: list[tuple[Count, Ballot, bytes]]
    votes: list[tuple[Count, bytes]]


class Vote(Wire, frozen=True, tag="vote"):
    """Consensus: voted, durably, for the one proposal of this ballot; signed."""

    instance: Count
    ballot: Ballot
    signature: bytes


class Accept(Wire, frozen=True, tag="accept"):
    """Consensus: a quorum has voted for this; let it be decided."""

    instance: Count
    lock: Lock


class Yes(Wire, frozen=True, tag="yes"):
    """Consensus: accepted, durably; signed, so that a decision can be shown to anyone."""

    instance: Count
    ballot: Ballot
    signature: bytes


class Decision(Wire, frozen=True):
    """What was decided, with the signatures of a quorum that has accepted it: (party, signature)."""

    ballot: Ballot
    proposal: Proposal
    signatures: list[tuple[Count, bytes]]


class Decisions(Wire, frozen=True, tag="decisions"):
    """Decisions from number `first` on."""

    first: Count
    decisions: list[Decision]


TransferMessage = Offer | Ack | Voided | Nudge | Skipped
ItemMessage = Have | Want | Fetch | Items | Decisions
ConsensusMessage = Prepare | Promise | Propose | Vote | Accept | Yes
Message = TransferMessage | Goodbye | Ask | Seen | ItemMessage | ConsensusMessage

_encoder = msgspec.msgpack.Encoder(enc_hook=contents)
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """Return the bytes of a message.

    Example:
        >>> encode(Ack(3)).hex(), decode(encode(Ack(3)))
        ('92a361636b03', Ack(round=3))
    """
    return _encoder.encode(message)


def encode_in_pieces(message: Message) -> tuple[bytes, ...]:
    """Return the bytes of a message in pieces, among which are its large byte strings themselves.

    Example:
        >>> offer = Offer(3, bytes(2**20), b"signature")
        >>> pieces = encode_in_pieces(offer)
        >>> [len(piece) for piece in pieces], pieces[1] is offer.payload, b"".join(pieces) == encode(offer)
        ([13, 1048576, 11], True, True)
    """
    if isinstance(message, Offer) and len(message.payload) >= LARGE_BYTES:
        rest = encode(msgspec.structs.replace(message, payload=b""))
        cut = len(rest) - len(_encoder.encode(message.signature))
        return _before_large(rest[:cut], message.payload), message.payload, rest[cut:]
    if isinstance(message, Items) and any(len(item.sealed) >= LARGE_BYTES for item in message.items):
        return tuple(_pieces_of_items(message.items))
    return (encode(message),)


def _pieces_of_items(items: list[Item]) -> Iterator[bytes]:
    count = len(items)
    small = [encode(Items([]))[:-1], _encoder.encode([None] * count)[:-count]]  # up to the number of items
    for item in items:
        if len(item.sealed) >= LARGE_BYTES:
            open_ended = _encoder.encode(msgspec.structs.replace(item, sealed=b""))
            yield b"".join((*small, _before_large(open_ended, item.sealed)))
            yield contents(item.sealed)
            small.clear()
        else:
            small.append(_encoder.encode(item))
    if small:
        yield b"".join(small)


def _before_large(encoded: bytes, content: bytes) -> bytes:
    """Return what was encoded with an empty byte string at its end, which becomes the beginning of a large one."""
    return encoded[: -len(_encoder.encode(b""))] + _LARGE_HEADER.pack(_LARGE_TYPE, len(content))


def decode(frame: bytes | memoryview) -> Message:
    """Return the message in a frame; it holds nothing of the frame itself."""
    try:
        return _decoder.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPeerMessage(str(error)) from None


def pack(numbers: Numbers) -> bytes:
    """Return numbers as bytes of fixed width, so that the length does not reveal a magnitude.

    Example:
        >>> len(pack(np.array([1, -1]))) == len(pack(np.array([2**60, 7]))), unpack(pack(np.array([1, -1])), 2)
        (True, array([ 1, -1]))
    """
    return numbers.astype("<i8", copy=False).tobytes()


def unpack(payload: bytes, count: int) -> Numbers:
    """Return the numbers in a payload."""
    if len(payload) != 8 * count:
        raise InvalidPeerMessage(f"a payload must have {8 * count} bytes, got {len(payload)}")
    numbers = np.frombuffer(payload, dtype="<i8").astype(np.int64, copy=False)
    if numbers.max() >= MAX_NUMBER or numbers.min() <= -MAX_NUMBER:
        raise InvalidPeerMessage("the numbers of a payload must be below 2^62 in absolute value")
    return numbers


def bits(parties: set[int] | frozenset[int], count: int) -> bytes:
    """Return a set of party ids below `count` as a bit field.

    >>> members(bits({0, 9}, 12), 12)
    {0, 9}
    """
    return sum(1 << party for party in parties).to_bytes(-(-count // 8), "little")


def members(field: bytes, count: int) -> set[int]:
    """Return the ids whose bits are set; refuse a field of another size."""
    remaining, parties = bit_field(field, count), set()
    while remaining:
        lowest = remaining & -remaining
        parties.add(lowest.bit_length() - 1)
        remaining ^= lowest
    return parties


def bit_field(field: bytes, count: int) -> int:
    """Return a bit field as an integer; refuse a field of another size."""
    number = int.from_bytes(field, "little")
    if len(field) != -(-count // 8) or number >> count:
        raise InvalidPeerMessage(f"a bit field must be that of {count} parties, got {len(field)} bytes")
    return number
