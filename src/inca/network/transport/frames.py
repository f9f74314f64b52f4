"""The format of frames between parties.

A frame is the length of its body (4 bytes, big-endian), its kind (1 byte) and the body. A body of data is anything; the
others are hellos, pings, pongs, goodbyes, and padding, which is dropped: it shows how fast a link is.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from inca.errors import TransportViolation
from inca.network.transport.failures import FailureCause

HELLO, DATA, PING, PONG, BYE, PAD = range(1, 7)
Received = bytes | memoryview
"""The body of a frame: a large one is the buffer that it was received into, which is nobody else's."""
PAD_BYTES = 1 << 16  # at most, in a frame
HEADER = struct.Struct(">IB")
PING_BODY = struct.Struct(">Qd")  # number and sending time of a ping
PONG_BODY = struct.Struct(">Qddd")  # the same, and when the ping arrived and its pong left
_HELLO_BODY = struct.Struct(">8s32sI16sQ16s16s")
_PROTOCOL = b"inca/1\0\0"
# Hello has room for other versions.
CONTROL_BYTES = {HELLO: 256, PING: PING_BODY.size, PONG: PONG_BODY.size, BYE: 1, PAD: PAD_BYTES}


class Bye(IntEnum):
    """Why a connection ends, as told to the other side: its number, what it means to the one who is told, in words."""

    cause: FailureCause
    meaning: str

    def __new__(cls, number: int, cause: FailureCause = FailureCause.UNKNOWN, meaning: str = "") -> Bye:
        """Make a member, or return the one of a number."""
        member = int.__new__(cls, number)
        member._value_, member.cause, member.meaning = number, cause, meaning
        return member

    CLOSING = 0, FailureCause.LOST, "it closes"
    IDLE = 1, FailureCause.IDLE, "it has nothing to say and heard nothing"
    # Another connection between the two is ahead of this one.
    SIMULTANEOUS = 2, FailureCause.LOST, "both sides connected at the same time"
    REPLACED = 3, FailureCause.LOST, "a newer connection replaces this one"
    OLD_INCARNATION = 4, FailureCause.OLD_INCARNATION, "it knows a later incarnation of ours"
    VERSION = 5, FailureCause.OTHER_VERSION, "it speaks another version of the protocol"
    SESSION = 6, FailureCause.OTHER_SESSION, "it is in another session"
    IDENTITY = 7, FailureCause.CERTIFICATE_REFUSED, "it does not believe who we are"
    PENALTY = 8, FailureCause.PENALTY, "it refuses us for a while after too many violations"
    PROTOCOL = 9, FailureCause.VIOLATION, "it objects to what we sent"

    @classmethod
    def read(cls, body: Received) -> Bye:
        """Return the goodbye in a frame; one that we do not know complains about us."""
        return cls(body[0]) if body[0] in cls.__members__.values() else cls.PROTOCOL

    @classmethod
    def because_of(cls, cause: FailureCause) -> Bye:
        """Return how to tell the other side of a failure of its own."""
        return _BYE_FOR.get(cause, cls.PROTOCOL)


_BYE_FOR = {
    FailureCause.OLD_INCARNATION: Bye.OLD_INCARNATION,
    FailureCause.OTHER_VERSION: Bye.VERSION,
    FailureCause.OTHER_SESSION: Bye.SESSION,
    FailureCause.IMPERSONATION: Bye.IDENTITY,
}


class Hello(NamedTuple):
    """Who speaks: the session, the party, its incarnation, how many hellos it said before, a nonce and the other's."""

    session: bytes
    party: int
    incarnation: bytes
    serial: int
    nonce: bytes
    echo: bytes

    def encode(self) -> bytes:
        """Return the body of the frame."""
        return _HELLO_BODY.pack(_PROTOCOL, *self)

    @classmethod
    def decode(cls, body: Received) -> Hello:
        """Read a body, or raise `TransportViolation`."""
        if body[: len(_PROTOCOL)] != _PROTOCOL:
            raise TransportViolation("speaks another protocol or version", FailureCause.OTHER_VERSION)
        if len(body) != _HELLO_BODY.size:
            raise TransportViolation("sent a malformed hello", FailureCause.VIOLATION)
        return cls(*_HELLO_BODY.unpack(body)[1:])
