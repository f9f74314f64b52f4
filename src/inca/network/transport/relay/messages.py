"""What a relay and a party say to each other before bytes are passed on: JSON in text messages of at most 4 KiB.

A relay begins every connection with a challenge. The party answers with a *claim*: what it wants, under which name it
dialled the relay, and a signature of both and the challenge. The connection is then a registration, on which the relay
announces calls, or one end of a call, on which bytes follow.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from inca.network.keys import verifies
from inca.network.transport.failures import FailureCause

MESSAGE_BYTES = 1 << 12
PROTOCOL = "inca-relay/1"
Kind = Literal["register", "dial", "answer"]
Word = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9_.:/-]*$")]
"""What programs make up or look up: short, and nothing that a log or a terminal would stumble over."""


class RelayRefusal(StrEnum):
    """Why a relay refuses a claim: what it means to the party, and in words that follow the relay's address."""

    cause: FailureCause
    meaning: str

    def __new__(cls, value: str, cause: FailureCause = FailureCause.RELAY_REFUSES, meaning: str = "") -> RelayRefusal:
        """Make a member, or return the one of a value."""
        member = str.__new__(cls, value)
        member._value_, member.cause, member.meaning = value, cause, meaning
        return member

    PROOF = "proof", FailureCause.RELAY_REFUSES, "does not accept the signature that shows who we are"
    NAME = "name", FailureCause.RELAY_REFUSES, "does not know itself by this name: its names or its address are wrong"
    NOT_ALLOWED = "not allowed", FailureCause.RELAY_REFUSES, "does not have our key in its allow-list"
    TAKEN = "taken", FailureCause.RELAY_REFUSES, "has another process registered with our key: a second one, or a copy"
    FULL = "full", FailureCause.RELAY_REFUSES, "has reached its limits"
    NOT_REGISTERED = (
        "not registered",
        FailureCause.NOT_REGISTERED,
        "does not have the peer: it is not running yet, or does not reach the relay",
    )
    NO_ANSWER = "no answer", FailureCause.NO_ANSWER, "has the peer registered, which does not answer there"
    DECLINED = "declined", FailureCause.HUNG_UP, "passes on that the peer takes no more connections from here"


class Challenge(msgspec.Struct, frozen=True, tag="challenge"):
    """Said first by a relay; the nonce was never used before."""

    nonce: bytes
    protocol: str = PROTOCOL


class RelayClaim(msgspec.Struct, frozen=True, tag="claim"):
    """What a party wants, and the proof of who it is.

    `about` is, of a registration, a random name of the process that is the same when it comes again; of a dial, the
    fingerprint of the peer; of an answer, the ticket of the call.
    """

    kind: Kind
    key: bytes
    authority: Annotated[str, msgspec.Meta(max_length=300)]
    about: Word
    signature: bytes

    def proves(self, nonce: bytes) -> bool:
        """Return whether the holder of the key has signed this claim for this challenge."""
        return verifies(self.key, claim_text(self.kind, self.authority, nonce, self.about), self.signature)


class Declined(msgspec.Struct, frozen=True, tag="declined"):
    """Said by a registered party: it does not take this call."""

    ticket: Word


class PresenceQuery(msgspec.Struct, frozen=True, tag="ask"):
    """Said by a registered party: is this one registered, too? A call that comes to nothing would cost much more."""

    name: Word


class Registered(msgspec.Struct, frozen=True, tag="registered"):
    """The claim to register is granted."""


class Contested(msgspec.Struct, frozen=True, tag="contested"):
    """Said to a registered party: another process with its key wanted to register, and was refused."""


class Incoming(msgspec.Struct, frozen=True, tag="incoming"):
    """Said to a registered party: somebody calls. `origin` is an opaque label of where the call comes from."""

    ticket: Word
    origin: Word


class PresenceReply(msgspec.Struct, frozen=True, tag="presence"):
    """Whether a party is registered."""

    name: Word
    here: bool


class CallJoined(msgspec.Struct, frozen=True, tag="joined"):
    """Said to both ends of a call: from now on bytes are passed on."""


class ClaimRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The claim is not granted; the relay closes the connection."""

    reason: RelayRefusal


FromParty = RelayClaim | Declined | PresenceQuery
FromRelay = Challenge | Registered | Contested | Incoming | PresenceReply | CallJoined | ClaimRefused
_from_party: msgspec.json.Decoder[FromParty] = msgspec.json.Decoder(FromParty)
_from_relay: msgspec.json.Decoder[FromRelay] = msgspec.json.Decoder(FromRelay)


def from_party(text: bytes) -> FromParty:
    """Read a message of a party, or raise `ValueError`."""
    return _from_party.decode(text)


def from_relay(text: bytes) -> FromRelay:
    """Read a message of a relay, or raise `ValueError`."""
    return _from_relay.decode(text)


def claim_text(kind: Kind, authority: str, nonce: bytes, about: str) -> bytes:
    """Return what is signed: with the name under which the relay was dialled, so that no other relay can pass it on."""
    return f"{PROTOCOL}\0{json.dumps([kind, authority, nonce.hex(), about], separators=(',', ':'))}".encode()
