"""Frames between parties: their format, and the limits on a peer.

A frame is the length of its body (4 bytes, big-endian), its kind (1 byte) and the body.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from inca._base.validation import positive, refuse, whole

HELLO, DATA, PING, PONG, BYE = range(1, 6)
HEADER = struct.Struct(">IB")
PROBE = struct.Struct(">Qd")  # number and sending time of a ping
ECHO = struct.Struct(">Qddd")  # the same, and when the ping arrived and its pong left
_HELLO = struct.Struct(">8s32sI16sQ16s16s")
_PROTOCOL = b"inca/1\0\0"
CONTROL = {HELLO: 256, PING: PROBE.size, PONG: ECHO.size, BYE: 1}  # hello has room for other versions


class Bye(IntEnum):
    """Why a connection ends, as told to the other side."""

    CLOSING = 0
    IDLE = 1
    SIMULTANEOUS = 2  # another connection between the two is ahead of this one
    REPLACED = 3
    LIFE = 4
    VERSION = 5
    SESSION = 6
    IDENTITY = 7
    PENALTY = 8
    PROTOCOL = 9

    @property
    def text(self) -> str:
        """What it means to the one who is told."""
        return _BYES[self]


_BYES = {
    Bye.CLOSING: "it closes",
    Bye.IDLE: "it has nothing to say and heard nothing",
    Bye.SIMULTANEOUS: "both sides connected at the same time",
    Bye.REPLACED: "a newer connection replaces this one",
    Bye.LIFE: "it knows a later life of ours",
    Bye.VERSION: "it speaks another version of the protocol",
    Bye.SESSION: "it is in another session",
    Bye.IDENTITY: "it does not believe who we are",
    Bye.PENALTY: "it refuses us for a while after too many errors",
    Bye.PROTOCOL: "it found an error in what we sent",
}


class Fault(Exception):
    """Something that an honest peer with this session and version does not do; `strike`: it counts as an offence."""

    def __init__(self, reason: str, bye: Bye = Bye.PROTOCOL, strike: bool = True) -> None:
        """Keep what the other side is told."""
        super().__init__(reason)
        self.bye, self.strike = bye, strike


class Hello(NamedTuple):
    """Who speaks: session, party, the life of its process, how many hellos it said before, a nonce and the other's."""

    session: bytes
    party: int
    life: bytes
    serial: int
    nonce: bytes
    echo: bytes

    def encode(self) -> bytes:
        """Return the body of the frame."""
        return _HELLO.pack(_PROTOCOL, *self)

    @classmethod
    def decode(cls, body: bytes) -> Hello:
        """Read a body, or raise `Fault`."""
        if body[: len(_PROTOCOL)] != _PROTOCOL:
            raise Fault("speaks another protocol or version", Bye.VERSION, strike=False)
        if len(body) != _HELLO.size:
            raise Fault("sent a malformed hello")
        return cls(*_HELLO.unpack(body)[1:])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a transport allows; times in seconds, sizes in bytes.

    An address is refused after its strikes like a party is, and with it every party that connects from there (those
    connected stay, and it can still be dialled): mind `per_address` and `strikes` where parties share an address.
    """

    frame: int = 1 << 23  # largest body
    queue: int = 1 << 26  # waiting for one peer; beyond, the oldest unsent frames are given up
    handshake: float = 10.0  # for reaching a peer, and again for agreeing on TLS
    hello: float = 10.0  # for the exchange of hellos, and for the answer to a ping
    idle: float = 120.0  # a connection on which nothing is heard that long is closed
    stall: float = 20.0  # a write that makes no progress that long ends its connection
    frames_per_second: float = 2000.0  # read from one peer in the long run; above, reading pauses
    burst: int = 4000  # frames read from one peer at full speed
    bytes_per_second: float = 1e8
    burst_bytes: int = 1 << 28
    unknown: int = 256  # incoming connections that have not completed their hello, in all
    per_address: int = 128  # the same from one address
    strikes: int = 5  # protocol errors before a peer is refused
    penalty: float = 30.0  # how long it is refused, and how long a strike is remembered

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("frame", "queue", "burst", "burst_bytes", "unknown", "per_address", "strikes"):
            whole(name, getattr(self, name), least=1, most=2**32 - 1 if name == "frame" else None)
        for name in ("handshake", "hello", "idle", "stall", "frames_per_second", "bytes_per_second", "penalty"):
            positive(name, getattr(self, name))
        if self.queue < self.frame:
            raise refuse("queue", self.queue, f"at least frame ({self.frame})")


class Bucket:
    """How much one peer may send: two token buckets that may fall into debt by the work of one wake-up."""

    __slots__ = ("_at", "_bytes", "_frames", "_limits", "over")

    def __init__(self, limits: Limits, now: float) -> None:
        """Begin full."""
        self._limits, self._at = limits, now
        self._frames, self._bytes = float(limits.burst), float(limits.burst_bytes)
        self.over: float | None = None
        """Since when the peer has been held back without a break."""

    def take(self, frames: int, size: int, now: float) -> float:
        """Count what was read; return for how many seconds to read no more."""
        limits, elapsed = self._limits, now - self._at
        self._at = now
        self._frames = min(limits.burst, self._frames + elapsed * limits.frames_per_second) - frames
        self._bytes = min(limits.burst_bytes, self._bytes + elapsed * limits.bytes_per_second) - size
        wait = max(-self._frames / limits.frames_per_second, -self._bytes / limits.bytes_per_second)
        if wait > 0:
            self.over = now if self.over is None else self.over
            return max(wait, 0.02)  # many tiny pauses would cost more than they spare
        if self._frames > limits.burst / 2 and self._bytes > limits.burst_bytes / 2:
            self.over = None
        return 0.0


class Strikes:
    """Offences by name (a party or an address), and who is refused for them; forgets the oldest beyond `most` names."""

    def __init__(self, limits: Limits, most: int = 4096) -> None:
        """Begin without any."""
        self._limits, self._most = limits, most
        self._names: dict[int | str, tuple[int, float]] = {}

    def add(self, name: int | str, now: float) -> int:
        """Count one; return how many there are now."""
        count, last = self._names.pop(name, (0, now))
        count = 1 if now - last >= self._limits.penalty else count + 1
        self._names[name] = count, now
        if len(self._names) > self._most:
            del self._names[next(iter(self._names))]
        return count

    def refused(self, name: int | str, now: float) -> float:
        """Return for how many more seconds it is refused: 0 if it is not."""
        count, last = self._names.get(name, (0, now))
        return max(0.0, last + self._limits.penalty - now) if count >= self._limits.strikes else 0.0
