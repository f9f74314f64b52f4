"""A stream of frames over TLS that keeps to their format and to the limits.

It drives the TLS engine itself: asyncio's keeps a quarter of a megabyte for each connection, which a hundred parties on
one machine multiply by ten thousand, and it hides how much of a frame has left.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import cast

from inca.network.transport.frames import BYE, CONTROL, DATA, HEADER, HELLO, PING, PONG, Bye, Fault, Limits

READ = 1 << 18  # bytes taken from a socket in one go, and handed to it
RECORD = 1 << 14  # what TLS encrypts as one
_WORK = 256  # frames delivered before other connections get their turn
_LINGER = 1.0  # seconds for the other side to read our last words
_SPILL = 1 << 23  # bytes thrown away meanwhile


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
        most = self._limits.frame if kind == DATA else CONTROL.get(kind)
        if most is None:
            raise Fault(f"sent a frame of unknown kind {kind}")
        if not self.open and kind not in (HELLO, BYE):
            raise Fault("sent a frame before hello")
        if length > most or (kind in (PING, PONG, BYE) and length != most):
            raise Fault(f"sent a frame of kind {kind} and {length} bytes, where {most} are allowed")
