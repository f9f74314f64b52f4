"""Frames over TLS: their format, the limits on a peer, and a stream of frames that keeps to both.

A frame is the length of its body (4 bytes, big-endian), its kind (1 byte) and the body. The stream drives the TLS
engine itself: asyncio's keeps a quarter of a megabyte for each connection, which a hundred parties on one machine
multiply by ten thousand, and it hides how much of a frame has left.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, cast

from inca.validation import positive, refuse, whole

HELLO, DATA, PING, PONG, BYE = range(1, 6)
HEADER = struct.Struct(">IB")
PROBE = struct.Struct(">Qd")  # number and sending time of a ping
ECHO = struct.Struct(">Qddd")  # the same, and when the ping arrived and its pong left
_HELLO = struct.Struct(">8s32sI16sQ16s16s")
_PROTOCOL = b"inca/1\0\0"
_CONTROL = {HELLO: 256, PING: PROBE.size, PONG: ECHO.size, BYE: 1}  # hello has room for other versions

READ = 1 << 18  # bytes taken from a socket in one go, and handed to it
RECORD = 1 << 14  # what TLS encrypts as one
_WORK = 256  # frames delivered before other connections get their turn
_LINGER = 1.0  # seconds for the other side to read our last words
_SPILL = 1 << 23  # bytes thrown away meanwhile


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


class Pool:
    """Buffers that all streams of one loop share: each is empty again when a stream has had its turn."""

    def __init__(self) -> None:
        """Set them aside."""
        self.cipher = memoryview(bytearray(READ))
        self.plain = memoryview(bytearray(HEADER.size + RECORD))


class Stream(asyncio.BufferedProtocol):
    """Frames over TLS on one socket; subclasses say what happens at each of the six events below.

    A body keeps to the size allowed for its kind, and before `open` is set there are hellos and goodbyes only.
    """

    def __init__(self, context: ssl.SSLContext, limits: Limits, pool: Pool, *, server: bool, host: str) -> None:
        """Prepare for a socket, as the side that accepts (`server`) or connects to `host`."""
        self._loop = asyncio.get_running_loop()
        self._limits, self._pool = limits, pool
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = host if context.check_hostname and not server else None
        self.tls = context.wrap_bio(self._in, self._out, server_side=server, server_hostname=name)
        self.socket: asyncio.Transport | None = None
        self.open = self._secure = self._deaf = self._ending = self._eof = False
        self._paused = True  # until there is a socket
        self._rest: deque[memoryview] = deque()  # to be encrypted, in order
        self._head = b""  # decrypted and not yet delivered: the beginning of a header, or ...
        self._more = False  # ... whole frames, for which there was no time left
        self._kind = self._missing = 0  # of a body that comes in pieces
        self._pieces: list[bytearray] = []
        self._view = memoryview(b"")  # what is free in the last piece
        self._fresh = self._spilt = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def secured(self) -> None:
        """TLS is agreed; may raise `Fault`."""

    def frame(self, kind: int, body: bytes) -> None:
        """Take a frame; may raise `Fault`."""

    def count(self, frames: int, size: int) -> float:
        """Take what was read in one go; return for how many seconds to read no more. May raise `Fault`."""
        return 0.0

    def room(self) -> None:
        """More can be written."""

    def broken(self, error: Fault | ssl.SSLError) -> None:
        """Answer an error of the other side, usually by `finish`."""

    def gone(self, error: Exception | None) -> None:
        """Clean up: the socket is closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self.socket = cast(asyncio.Transport, transport)
        self.socket.set_write_buffer_limits(high=0)  # what the kernel does not take waits here, unencrypted
        self._paused = False
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._deaf = self._ending = self._paused = True
        self._rest.clear()
        self.gone(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the shared buffer."""
        return self._pool.cipher

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        if self._deaf:
            self._spilt += nbytes
            if self._spilt > _SPILL:
                self.abort()
            return
        self._in.write(self._pool.cipher[:nbytes])
        self._fresh += nbytes
        self._advance()

    def after(self, name: str, seconds: float, run: Callable[[], object] | None) -> None:
        """Set the timer of that name anew; None only stops it."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        if run is not None:
            self._timers[name] = self._loop.call_later(seconds, run)

    @property
    def held(self) -> bool:
        """Whether reading pauses."""
        return "hold" in self._timers

    @property
    def writable(self) -> bool:
        """Whether the kernel takes more."""
        return not (self._paused or self._rest or self._ending)

    def write(self, *pieces: bytes | memoryview) -> None:
        """Send the pieces, in order, as fast as the kernel takes them."""
        if not self._ending:
            self._rest.extend(map(memoryview, pieces))
            self._pump()

    def control(self, kind: int, body: bytes) -> None:
        """Send a short frame."""
        self.write(HEADER.pack(len(body), kind) + body)

    def finish(self, bye: Bye | None, deaf: bool = True) -> None:
        """Say goodbye and close when the other side has, in bounded time; `deaf`: deliver no more frames."""
        self._deaf |= deaf
        if self._ending or self.socket is None:
            return
        if bye is not None and self._secure:
            self.control(BYE, bytes((bye,)))
        self._ending = True
        self._pump()
        self.after("end", min(_LINGER, self._limits.hello), self.abort)
        if deaf:
            self.after("hold", 0, None)
            self.socket.resume_reading()

    def abort(self) -> None:
        """Close at once."""
        self._deaf = self._ending = True
        if self.socket is not None:
            self.socket.abort()

    def pause_writing(self) -> None:
        """Watch that the other side goes on reading."""
        self._paused = True
        self._watch(-1, self._loop.time())

    def resume_writing(self) -> None:
        """Go on."""
        self._paused = False
        self.after("stall", 0, None)
        self._pump()
        if self.writable:
            self.room()

    def _watch(self, before: int, since: float) -> None:
        assert self.socket is not None
        left, now = self.socket.get_write_buffer_size(), self._loop.time()
        if left != before:
            since = now
        if now - since < self._limits.stall:
            self.after("stall", self._limits.stall / 4, lambda: self._watch(left, since))
            return
        if not self._ending:
            self.broken(Fault(f"has read nothing for {self._limits.stall:g} s"))
        self.abort()  # it would not read a goodbye either

    def _pump(self) -> None:
        """Encrypt and send as much as the kernel takes."""
        while self._secure and self._rest and not self._paused:
            while self._rest and self._out.pending < READ:
                view = self._rest[0]
                done = self.tls.write(view[:RECORD]) if view else 0
                if done == len(view):
                    self._rest.popleft()
                else:
                    self._rest[0] = view[done:]
            self._send()
        if self._ending and not self._rest and not self._eof and self.socket and not self.socket.is_closing():
            self._eof = True
            try:
                self.socket.write_eof()
            except OSError:  # the other side is gone already
                self.socket.abort()

    def _send(self) -> None:
        if self._out.pending and self.socket is not None and not self._eof:
            self.socket.write(self._out.read())

    def _advance(self) -> None:
        try:
            if not self._secure:
                try:
                    self.tls.do_handshake()
                except ssl.SSLWantReadError:
                    return
                finally:
                    self._send()  # our part of the handshake, or the alert that says what is wrong
                self._secure = True
                self.secured()
            frames, finished = self._decrypt()
            size, self._fresh = self._fresh, 0
            wait = self.count(frames, size)
            if (wait or not finished) and not self._deaf and self.socket is not None:
                self.socket.pause_reading()
                self.after("hold", wait, self._resume)
        except (Fault, ssl.SSLError) as error:
            if isinstance(error, ssl.SSLError):
                self._secure = False  # the engine is of no more use
                self._rest.clear()
                self._send()
            if self._ending:
                self.abort()
            else:
                self.broken(error)

    def _resume(self) -> None:
        del self._timers["hold"]
        self._advance()
        if not self.held and self.socket is not None:
            self.socket.resume_reading()

    def _decrypt(self) -> tuple[int, bool]:
        """Deliver what has arrived; return how many frames, and whether that was all."""
        frames, plain = 0, self._pool.plain
        while not self._deaf and (self._more or self._in.pending or self.tls.pending()):
            if frames >= _WORK:
                return frames, False
            kept, got = len(self._head), 0
            plain[:kept] = self._head
            if self._more:
                frames += self._split(kept, _WORK)
                continue
            room = self._view if self._missing else plain[kept:]
            try:
                got = cast(int, self.tls.read(len(room), cast(bytearray, room)))
            except ssl.SSLWantReadError:
                break
            if not got and self.socket is not None:  # the other side ended TLS in good order
                self.socket.close()
                self._deaf = True
            frames += self._fill(got) if self._missing else self._split(kept + got, _WORK - frames)
        self._send()  # answers of TLS itself, as to a change of keys
        return frames, True

    def _split(self, end: int, most: int) -> int:
        """Deliver up to `most` frames from the shared buffer."""
        plain, at, frames = self._pool.plain, 0, 0
        self._head, self._more = b"", False
        while end - at >= HEADER.size and not self._deaf:
            if frames == most:
                self._more = True
                break
            length, kind = HEADER.unpack_from(plain, at)
            self._check(kind, length)
            at += HEADER.size
            if length > end - at:  # decrypt the rest of it to where it belongs
                self._kind, self._missing = kind, length
                self._piece()
                self._view[: end - at] = plain[at:end]
                return frames + self._fill(end - at)
            body = bytes(plain[at : at + length])
            at += length
            frames += 1
            self.frame(kind, body)
        self._head = bytes(plain[at:end])
        return frames

    def _fill(self, got: int) -> int:
        """Count what has come of a body in pieces, and deliver it when it is complete."""
        self._missing -= got
        self._view = self._view[got:]
        if self._missing:
            if not self._view:
                self._piece()
            return 0
        pieces, self._pieces = self._pieces, []
        self.frame(self._kind, b"".join(pieces))
        return 1

    def _piece(self) -> None:
        # Not all at once: an announced length costs its sender nothing.
        self._pieces.append(bytearray(min(self._missing, READ)))
        self._view = memoryview(self._pieces[-1])

    def _check(self, kind: int, length: int) -> None:
        most = self._limits.frame if kind == DATA else _CONTROL.get(kind)
        if most is None:
            raise Fault(f"sent a frame of unknown kind {kind}")
        if not self.open and kind not in (HELLO, BYE):
            raise Fault("sent a frame before hello")
        if length > most or (kind in (PING, PONG, BYE) and length != most):
            raise Fault(f"sent a frame of kind {kind} and {length} bytes, where {most} are allowed")
