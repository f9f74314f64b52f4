"""A WebSocket on a connection, driven without tasks: what arrives is handled at once, and nothing waits in queues."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import cast

from inca._base.extras import importing
from inca.network.transport.relay.messages import MESSAGE_BYTES

with importing("inca.network", extra="network"):
    from websockets.frames import Frame, Opcode
    from websockets.protocol import Event, Protocol, State

CHUNK_BYTES = 1 << 16  # of a message with data, at most
# How a connection ends: as WebSocket numbers it, and with a number of our own.
NORMAL, GOING_AWAY, VIOLATION, OTHER_SIDE_LOST = 1000, 1001, 1002, 4000


class WebSocketLink(asyncio.BufferedProtocol):
    """One end of a WebSocket. Text messages are short; binary ones are pieces of a stream, and an empty one ends it.

    `buffer` is what the links of a loop share to read from their sockets: it is empty again after each turn. A paused
    reader answers no pings, so only links that never pause are given a `patience`.
    """

    def __init__(self, websocket: Protocol, buffer: memoryview) -> None:
        self.websocket, self._buffer = websocket, buffer
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.stalled = False  # whether the kernel takes no more for now
        self.heard = self._loop.time()
        self._held: set[str] = set()
        self._text: bytes | None = None  # of a message of which frames are still to come
        self._timers: dict[str, asyncio.TimerHandle] = {}

    # --- what an end of a call or a registration makes of it ---------------------------------------------------------

    def on_text(self, text: bytes) -> None:
        """Take a text message."""

    def on_data(self, data: bytes | bytearray) -> None:
        """Take a piece of the stream."""

    def on_end(self) -> None:
        """Learn that no more will come."""

    def on_writable(self) -> None:
        """Learn that the kernel takes more again."""

    def on_closed(self, error: Exception | None) -> None:
        """Learn that the connection is closed; `websocket` knows whether and how the other side said so."""

    # --- writing -----------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether messages can be sent."""
        return self.websocket.state is State.OPEN and self.transport is not None

    def send_text(self, text: bytes) -> None:
        """Send a text message."""
        if self.open:
            self.websocket.send_text(text)
            self._flush()

    def send_data(self, data: bytes | bytearray | memoryview) -> None:
        """Send a piece of the stream, of at most 64 KiB; an empty one says that it was the last."""
        if self.open:
            self.websocket.send_binary(data)
            self._flush()

    def close(self, code: int, linger: float) -> None:
        """Close in good order, within so many seconds."""
        if self.websocket.state is State.OPEN:
            self.websocket.send_close(code)
            self._flush()
        elif self.websocket.state is State.CONNECTING:
            self.abort()
        if self.transport is not None:
            self.set_timer("end", linger, self.abort)
            self.release(*self._held)  # or the answer would never be read

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    def put(self, data: bytes) -> None:
        """Write bytes of the WebSocket."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _flush(self) -> None:
        for data in self.websocket.data_to_send():
            if data:
                self.put(data)
            elif self.transport is not None:  # all is said
                self.set_timer("end", 1.0, self.abort)
                self.transport.close()

    def pause_writing(self) -> None:
        """Remember it."""
        self.stalled = True

    def resume_writing(self) -> None:
        """Go on."""
        self.stalled = False
        self.on_writable()

    # --- reading -----------------------------------------------------------------------------------------------------

    def hold(self, reason: str) -> None:
        """Read no more until each reason not to is gone."""
        if not self._held and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self._held.add(reason)

    def release(self, *reasons: str) -> None:
        """Go on unless there is another reason not to."""
        before = bool(self._held)
        self._held.difference_update(reasons)
        if before and not self._held and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
            self.on_released()

    def on_released(self) -> None:
        """Take what had to wait."""

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the shared buffer."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        self.receive(self._buffer[:nbytes])

    def receive(self, data: memoryview | bytes) -> int:
        """Take bytes of the WebSocket; return how many events that were."""
        self.heard = self._loop.time()
        if self.websocket.state is State.CLOSED:
            return 0
        self.websocket.receive_data(cast(bytes, data))
        events = self.websocket.events_received()
        for event in events:
            self.on_event(event)
        self._flush()
        return len(events)

    def on_event(self, event: Event) -> None:
        """Take a frame."""
        if not isinstance(event, Frame):
            return
        if event.opcode is Opcode.BINARY or (event.opcode is Opcode.CONT and self._text is None):
            if event.data:
                self.on_data(cast(bytearray, event.data))
            elif event.fin and event.opcode is Opcode.BINARY:
                self.on_end()
        elif event.opcode is Opcode.TEXT or event.opcode is Opcode.CONT:
            self._text = (self._text or b"") + bytes(event.data)
            if len(self._text) > MESSAGE_BYTES:
                self.close(VIOLATION, linger=1.0)
            elif event.fin:
                text, self._text = self._text, None
                self.on_text(text)

    # --- life and death ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast(asyncio.Transport, transport)

    def eof_received(self) -> None:
        """Let the socket close."""
        self.websocket.receive_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        self.transport = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.websocket.receive_eof()
        self.on_closed(exc)

    def set_timer(self, name: str, seconds: float, callback: Callable[[], object]) -> None:
        """Set the timer of that name anew."""
        self.stop_timer(name)
        self._timers[name] = self._loop.call_later(seconds, callback)

    def stop_timer(self, name: str) -> None:
        """Stop the timer of that name if there is one."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def keep_alive(self, every: float, patience: float | None) -> None:
        """Ping from now on, as proxies cut connections that are idle; abort if nothing is heard for `patience`."""
        if patience is not None and self._loop.time() - self.heard > patience:
            self.abort()
            return
        self.set_timer("ping", every * random.uniform(0.8, 1.0), lambda: self._ping(every, patience))

    def _ping(self, every: float, patience: float | None) -> None:
        self.ping()
        self.keep_alive(every, patience)

    def ping(self) -> None:
        """Ask for a sign of life, unless so much waits to be written already that it would only wait behind it."""
        if self.open and not self.stalled:
            self.websocket.send_ping(b"")
            self._flush()
