"""What parties say to each other, and how it becomes bytes.

A connection belongs to one session and two known parties, so messages name neither. A transfer is named by its round,
its sender, its slot among the sender's receivers, and its receiver; sender and receiver are the two ends, which leaves
(round, slot) to be said. Payloads are int64 numbers of fixed width, little-endian: the coordinates, then the weight.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Count = Annotated[int, Meta(ge=0, lt=2**32)]
Ballot = Annotated[int, Meta(ge=0, lt=2**62)]

_LARGEST = 2**62  # entries beyond could overflow a balance; no honest party has any


class Account(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party did so far, without any value: public, and all that an auditor needs.

    `present` lists the rounds it took part in. `fates` has, for each of them, what became of its k offers (`NOBODY`,
    `ACKED`, `OPEN`, or `BACK` + the round in which the share was back). `credited` lists what it received, as
    (round, sender, slot).
    """

    present: list[Count]
    fates: list[list[Count]]
    credited: list[tuple[Count, Count, Count]]

    @property
    def last(self) -> int:
        """The last round it took part in; 0 if none."""
        return self.present[-1] if self.present else 0


NOBODY, ACKED, OPEN, BACK = 0, 1, 2, 2  # a share that is back in round r >= 1 has fate BACK + r, that is, 3 or more


class Offer(msgspec.Struct, frozen=True, tag="offer", array_like=True, forbid_unknown_fields=True):
    """A share of the sender's message, to be credited in this round or never; byte-identical on every retry.

    It carries its sender's account as it was when the round began, so that peers can tell what the sender did should
    it vanish.
    """

    round: Count
    slot: Count
    payload: bytes
    account: Account


class Ack(msgspec.Struct, frozen=True, tag="ack", array_like=True, forbid_unknown_fields=True):
    """The offer has been credited, durably."""

    round: Count
    slot: Count


class Voided(msgspec.Struct, frozen=True, tag="voided", array_like=True, forbid_unknown_fields=True):
    """The offer will never be credited: there is a tombstone, durably."""

    round: Count
    slot: Count


class Resolve(msgspec.Struct, frozen=True, tag="resolve", array_like=True, forbid_unknown_fields=True):
    """What became of this offer? One that was never seen is voided by this question."""

    round: Count
    slot: Count


class Nudge(msgspec.Struct, frozen=True, tag="nudge", array_like=True, forbid_unknown_fields=True):
    """Your offers of this round are waited for. It also finds out whether the peer is there at all."""

    round: Count


class Skipped(msgspec.Struct, frozen=True, tag="skipped", array_like=True, forbid_unknown_fields=True):
    """I am not there in this round: wait for no offer. A hint: should one come all the same, it can be decided."""

    round: Count


class Ask(msgspec.Struct, frozen=True, tag="ask", array_like=True, forbid_unknown_fields=True):
    """I have been away: what have you seen of me, and where are you?"""


class Seen(msgspec.Struct, frozen=True, tag="seen", array_like=True, forbid_unknown_fields=True):
    """The offers of the asking party that were seen here, and the round in which the answering party is.

    It cannot tell of rounds before `since`: it came late itself.
    """

    offers: list[tuple[Count, Count]]
    round: Count
    since: Count


class Item(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Something signed by a party that everyone should have; `body` is encoded by its kind."""

    kind: str
    party: Count
    body: bytes
    signature: bytes


class Have(msgspec.Struct, frozen=True, tag="have", array_like=True, forbid_unknown_fields=True):
    """Whose items the sender holds: for each kind a bit per party. `reply`: it answers a `Have`, send none back."""

    held: dict[str, bytes]
    reply: bool


class Want(msgspec.Struct, frozen=True, tag="want", array_like=True, forbid_unknown_fields=True):
    """Send me these items: for each kind a bit per party."""

    wanted: dict[str, bytes]


class Items(msgspec.Struct, frozen=True, tag="items", array_like=True, forbid_unknown_fields=True):
    """Items that the receiver wanted."""

    items: list[Item]


class Prepare(msgspec.Struct, frozen=True, tag="prepare", array_like=True, forbid_unknown_fields=True):
    """Agreement: promise to follow no proposal below this ballot."""

    ballot: Ballot


class Promise(msgspec.Struct, frozen=True, tag="promise", array_like=True, forbid_unknown_fields=True):
    """Agreement: promised; and what was accepted last, in which ballot (0: nothing yet)."""

    ballot: Ballot
    accepted: Ballot
    digests: bytes
    finals: bytes


class Accept(msgspec.Struct, frozen=True, tag="accept", array_like=True, forbid_unknown_fields=True):
    """Agreement: let the result be made of these digests and final messages."""

    ballot: Ballot
    digests: bytes
    finals: bytes


class Yes(msgspec.Struct, frozen=True, tag="yes", array_like=True, forbid_unknown_fields=True):
    """Agreement: accepted, durably."""

    ballot: Ballot


Transfer = Offer | Ack | Voided | Resolve | Nudge | Skipped
Talking = Have | Want | Items
Agreeing = Prepare | Promise | Accept | Yes
Message = Transfer | Ask | Seen | Talking | Agreeing

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class Nonsense(ValueError):
    """A message that no party following the protocol would send."""


def encode(message: Message) -> bytes:
    """Return the bytes of a message.

    >>> decode(encode(Ack(3, 0)))
    Ack(round=3, slot=0)
    """
    return _encoder.encode(message)


def decode(frame: bytes) -> Message:
    """Return the message in a frame; refuse anything else as `Nonsense`."""
    try:
        return _decoder.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Nonsense(str(error)) from None


def pack(numbers: Numbers) -> bytes:
    """Return numbers as bytes of fixed width: a length must not tell a magnitude.

    >>> len(pack(np.array([1, -1]))) == len(pack(np.array([2**60, 7])))
    True
    """
    return numbers.astype("<i8").tobytes()


def unpack(payload: bytes, count: int) -> Numbers:
    """Return `count` numbers from bytes; refuse another width and numbers that no balance can hold.

    >>> unpack(pack(np.array([1, -1])), 2)
    array([ 1, -1])
    """
    if len(payload) != 8 * count:
        raise Nonsense(f"a payload of {len(payload)} bytes where {8 * count} were expected")
    numbers = np.frombuffer(payload, dtype="<i8").astype(np.int64)
    if numbers.max() >= _LARGEST or numbers.min() <= -_LARGEST:
        raise Nonsense("a payload with a number beyond 2^62")
    return numbers


def bits(parties: set[int] | frozenset[int], count: int) -> bytes:
    """Return a set of party ids below `count` as bits.

    >>> members(bits({0, 9}, 12), 12)
    {0, 9}
    """
    return sum(1 << party for party in parties).to_bytes(-(-count // 8), "little")


def members(field: bytes, count: int) -> set[int]:
    """Return the ids whose bits are set; refuse a field of another size."""
    number, found = number_of(field, count), set()
    while number:
        lowest = number & -number
        found.add(lowest.bit_length() - 1)
        number ^= lowest
    return found


def number_of(field: bytes, count: int) -> int:
    """Return a field of bits as a number; refuse one of another size."""
    number = int.from_bytes(field, "little")
    if len(field) != -(-count // 8) or number >> count:
        raise Nonsense(f"a field of bits that does not fit {count} parties")
    return number
