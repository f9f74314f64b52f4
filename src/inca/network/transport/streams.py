"""A stream of frames over TLS that keeps to their format and to the limits.

It drives the TLS engine itself, so that a frame stays unencrypted, and known to be unsent, until the kernel takes it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np

from inca.errors import TransportViolation
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import BYE, CONTROL_BYTES, DATA, HEADER, HELLO, PING, PONG, Bye, Received
from inca.network.transport.limits import Limits

READ_BYTES = 1 << 17  # taken from a socket in one go, and handed to it
RECORD_BYTES = 1 << 14  # what TLS encrypts as one
_FRAMES_PER_TURN = 256  # delivered before other connections get their turn
_LINGER_S = 1.0  # for the other side to read our last words


class ConnectionEvents(Protocol):
    """What a connection tells those who keep it; where it says so they may raise `TransportViolation`."""

    def on_opened(self, connection: Any) -> None:
        """There is a socket."""

    def on_secured(self, connection: Any) -> None:
        """TLS is agreed. May raise."""

    def on_frame(self, connection: Any, kind: int, body: Received) -> None:
        """Take a frame, and with it the buffer. May raise."""

    def on_read(self, connection: Any, frames: int, size: int) -> float:
        """Count what was read in one go; return for how many seconds to read no more. May raise."""

    def on_writable(self, connection: Any) -> None:
        """More can be written."""

    def on_broken(self, connection: Any, error: TransportViolation | ssl.SSLError) -> None:
        """Answer an error of the other side, usually by `finish`."""

    def on_closed(self, connection: Any, error: Exception | None) -> None:
        """The socket is closed."""


class Stream(asyncio.BufferedProtocol):
    """Frames over TLS on one socket, as the side that accepts (`server`) or connects.

    `buffer` is what the streams of a loop share to read from their sockets: it is empty again after each turn.
    A body keeps to the size allowed for its kind, and before `greeted` is set there are hellos and goodbyes only.
    """

    def __init__(
        self,
        events: ConnectionEvents,
        context: ssl.SSLContext,
        limits: Limits,
        buffer: memoryview,
        *,
        server: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events, self._limits, self._buffer = events, limits, buffer
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_side=server)
        self.socket: asyncio.Transport | None = None
        self.greeted = self._secure = self._deaf = self._ending = self._eof = False
        self._paused = True  # until there is a socket
        self._unencrypted: deque[memoryview] = deque()  # to be written, in order
        self._plain = b""  # decrypted and not yet delivered
        self._needed_bytes = HEADER.size  # that there must be before something can be delivered
        # The kind and the body of a large frame, into which the rest of it is decrypted. Whatever was announced, memory
        # is set aside as bytes arrive: the kernel has none behind an array before something is written to it.
        self._large: tuple[int, memoryview] | None = None
        self.arriving = 0
        """How many bytes of it are here."""
        self._unread_bytes = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._events.on_opened(self)
        self.socket = cast(asyncio.Transport, transport)
        if self._ending:  # it was given up before there was a socket
            self.socket.abort()
            return
        self.socket.set_write_buffer_limits(high=0)  # what the kernel does not take waits here, unencrypted
        self._paused = False
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._deaf = self._ending = self._paused = True
        self._unencrypted.clear()
        self._forget_frames()
        self._events.on_closed(self, exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the shared buffer."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        if not self._deaf:
            self._in.write(self._buffer[:nbytes])
            self._unread_bytes += nbytes
            self._advance()

    def set_timer(self, name: str, seconds: float, callback: Callable[[], object]) -> None:
        """Set the timer of that name anew."""
        self.stop_timer(name)
        self._timers[name] = self._loop.call_later(seconds, callback)

    def stop_timer(self, name: str) -> None:
        """Stop the timer of that name if there is one."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    @property
    def held_back(self) -> bool:
        """Whether reading pauses."""
        return "hold" in self._timers

    @property
    def writable(self) -> bool:
        """Whether the kernel takes more."""
        return not (self._paused or self._unencrypted or self._ending)

    def write(self, *pieces: bytes | memoryview) -> None:
        """Send the pieces, in order, as fast as the kernel takes them."""
        if not self._ending:
            self._unencrypted.extend(map(memoryview, pieces))
            self._pump()

    def write_control(self, kind: int, body: bytes) -> None:
        """Send a short frame."""
        self.write(HEADER.pack(len(body), kind) + body)

    def finish(self, bye: Bye | None, deaf: bool = True) -> None:
        """Say goodbye and close when the other side has, in bounded time; `deaf`: deliver no more frames."""
        self._deaf |= deaf
        if deaf:
            self._forget_frames()
        if self._ending or self.socket is None:
            return
        if bye is not None and self._secure:
            self.write_control(BYE, bytes((bye,)))
        self._ending = True
        self._pump()
        self.set_timer("end", min(_LINGER_S, self._limits.hello_timeout_s), self.abort)
        if deaf:
            self.stop_timer("hold")
            self.socket.resume_reading()

    def abort(self) -> None:
        """Close at once."""
        self._deaf = self._ending = True
        if self.socket is not None:
            self.socket.abort()

    def pause_writing(self) -> None:
        """Watch that the other side goes on reading."""
        self._paused = True
        self._watch_writing(-1, self._loop.time())

    def resume_writing(self) -> None:
        """Go on."""
        self._paused = False
        self.stop_timer("stall")
        self._pump()
        if self.writable:
            self._events.on_writable(self)

    def _watch_writing(self, last_left: int, since: float) -> None:
        assert self.socket is not None
        left, now = self.socket.get_write_buffer_size(), self._loop.time()
        timeout = self._limits.stall_timeout_s
        if left != last_left:
            since = now
        if now - since < timeout:
            self.set_timer("stall", timeout / 4, lambda: self._watch_writing(left, since))
            return
        if not self._ending:
            error = TransportViolation(f"has read nothing for {timeout:g} s", FailureCause.UNRESPONSIVE)
            self._events.on_broken(self, error)
        self.abort()  # it would not read a goodbye either

    def _pump(self) -> None:
        """Encrypt and send as much as the kernel takes."""
        while self._secure and self._unencrypted and not self._paused:
            while self._unencrypted and self._out.pending < READ_BYTES:
                view = self._unencrypted[0]
                written = self.tls.write(view[:RECORD_BYTES]) if view else 0
                if written == len(view):
                    self._unencrypted.popleft()
                else:
                    self._unencrypted[0] = view[written:]
            self._send()
        if self._ending and not self._unencrypted and not self._eof and self.socket and not self.socket.is_closing():
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
                self._events.on_secured(self)
            frames, finished = self._decrypt()
            size, self._unread_bytes = self._unread_bytes, 0
            pause = self._events.on_read(self, frames, size)
            if (pause or not finished) and not self._deaf and self.socket is not None:
                self.socket.pause_reading()
                self.set_timer("hold", pause, self._resume)
        except (TransportViolation, ssl.SSLError) as error:
            if isinstance(error, ssl.SSLError):
                self._secure = False  # the engine is of no more use
                self._unencrypted.clear()
                self._send()
            if self._ending:
                self.abort()
            else:
                self._events.on_broken(self, error)

    def _resume(self) -> None:
        del self._timers["hold"]
        self._advance()
        if not self.held_back and self.socket is not None:
            self.socket.resume_reading()

    def _decrypt(self) -> tuple[int, bool]:
        """Deliver what has arrived; return how many frames, and whether that was all."""
        frames = 0
        while not self._deaf:
            frames += self._deliver(_FRAMES_PER_TURN - frames)
            if frames >= _FRAMES_PER_TURN:
                return frames, False
            if not (self._in.pending or self.tls.pending()):
                break
            try:
                size = self._read_record()
            except ssl.SSLWantReadError:
                break
            if not size and self.socket is not None:  # the other side ended TLS in good order
                self.socket.close()
                self._deaf = True
        self._send()  # answers of TLS itself, as to a change of keys
        return frames, True

    def _read_record(self) -> int:
        """Decrypt a record, or what a large frame lacks; return how many bytes."""
        if self._large is None:
            record = self.tls.read(RECORD_BYTES)
            self._plain += record
            return len(record)
        size = cast(int, self.tls.read(RECORD_BYTES, self._large[1][self.arriving :]))
        self.arriving += size
        return size

    def _forget_frames(self) -> None:
        self._plain, self._large, self.arriving = b"", None, 0

    def _deliver(self, max_frames: int) -> int:
        """Deliver the frames that are complete, up to `max_frames`; return how many."""
        if self._large is not None:
            kind, body = self._large
            if self.arriving < len(body):
                return 0
            self._forget_frames()
            self._events.on_frame(self, kind, body)
            return 1
        if len(self._plain) < self._needed_bytes:
            return 0
        frames = 0
        plain, at, self._needed_bytes = self._plain, 0, HEADER.size
        while len(plain) - at >= HEADER.size and not self._deaf:
            length, kind = HEADER.unpack_from(plain, at)
            self._check(kind, length)
            start, end = at + HEADER.size, at + HEADER.size + length
            if len(plain) < end and length > RECORD_BYTES:
                body, self._plain, self.arriving = np.empty(length, np.uint8).data, b"", len(plain) - start
                body[: self.arriving] = plain[start:]
                self._large = kind, body
                return frames
            if len(plain) < end or frames == max_frames:
                self._needed_bytes = end - at
                break
            at = end
            frames += 1
            self._events.on_frame(self, kind, plain[start:end])
        self._plain = plain[at:]
        return frames

    def _check(self, kind: int, length: int) -> None:
        allowed = self._limits.max_frame_bytes if kind == DATA else CONTROL_BYTES.get(kind)
        if allowed is None:
            problem = f"sent a frame of unknown kind {kind}"
        elif not self.greeted and kind not in (HELLO, BYE):
            problem = "sent a frame before hello"
        elif length > allowed or (kind in (PING, PONG, BYE) and length != allowed):
            problem = f"sent a frame of kind {kind} and {length} bytes, where {allowed} are allowed"
        else:
            return
        raise TransportViolation(problem, FailureCause.VIOLATION)


def leave_no_trace(sock: socket.socket) -> None:
    """See that nothing of a socket stays in the kernel when it is closed: there may be thousands."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
