"""A stream of bytes through a relay, as a transport of asyncio: what works on a TCP connection works on it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

from inca._base.extras import importing
from inca.network.transport.failures import Failure, FailureCause, Unreached
from inca.network.transport.relay.link import CHUNK_BYTES, GOING_AWAY, NORMAL, OTHER_SIDE_LOST, WebSocketLink
from inca.network.transport.relay.messages import CallJoined, FromRelay, from_relay

with importing("inca.network", extra="network"):
    from websockets.protocol import Protocol

DATA_PING_S = 25.0
_QUEUE = 4  # messages that wait to be read before the relay is held back
_LINGER_S = 1.0
_ENDS = {
    GOING_AWAY: "{} is shutting down",
    OTHER_SIDE_LOST: "{} has lost the other side",
}


class ClientLink(WebSocketLink):
    """A party's end of a connection to a relay: messages at first, then perhaps a stream.

    `name` is the relay's address. What ends it is a `Failure` in words about the relay: the peer may well be there.
    """

    def __init__(self, websocket: Protocol, buffer: memoryview, name: str) -> None:
        super().__init__(websocket, buffer)
        self.name = name
        self._messages: list[FromRelay] = []
        self._waiter: asyncio.Future[None] | None = None
        self._stream: RelayedStream | None = None
        self._end: Unreached | None = None

    async def receive_message(self) -> FromRelay:
        """Return the next message, or raise `Unreached`."""
        while not self._messages:
            if self._end is not None:
                raise self._end
            self._waiter = self._loop.create_future()
            await self._waiter
        message = self._messages.pop(0)
        if not isinstance(message, CallJoined):
            self.release("messages")
        return message

    async def closed(self) -> None:
        """Wait until the connection is closed, and drop what comes until then."""
        with contextlib.suppress(Unreached):
            while True:
                await self.receive_message()

    def attach(self, protocol: asyncio.BufferedProtocol) -> None:
        """Let a protocol have the stream that has begun."""
        if self._end is not None:
            raise self._end
        self._stream = RelayedStream(self, protocol)
        self.keep_alive(DATA_PING_S, None)
        protocol.connection_made(self._stream)
        self.release("messages")

    def on_text(self, text: bytes) -> None:
        """Keep a message for whoever reads messages."""
        try:
            message = from_relay(text)
        except ValueError:
            self.abort()
            return
        self._messages.append(message)
        if isinstance(message, CallJoined) or len(self._messages) >= _QUEUE:
            self.hold("messages")
        self._wake()

    def on_data(self, data: bytes | bytearray) -> None:
        """Hand it on."""
        if self._stream is None:
            self.abort()  # the bytes of a stream come when it has begun, and are not read before
        else:
            self._stream.take(data)

    def on_end(self) -> None:
        """Hand it on."""
        if self._stream is not None:
            self._stream.take(b"")

    def on_writable(self) -> None:
        """Hand it on."""
        if self._stream is not None:
            self._stream.protocol.resume_writing()

    def pause_writing(self) -> None:
        """Hand it on."""
        super().pause_writing()
        if self._stream is not None:
            self._stream.protocol.pause_writing()

    def on_closed(self, error: Exception | None) -> None:
        """Say why, as far as the relay has said so."""
        received = self.websocket.close_rcvd
        if received is None:
            why = "{} broke the connection off (the relay, or the network between)"
        else:
            why = _ENDS.get(received.code, "{} closed the connection")
        self._end = Unreached(Failure(FailureCause.LOST, why.format(f"the relay {self.name}")))
        self._wake()
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.lost(None if received is not None and received.code == NORMAL else self._end)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RelayedStream(asyncio.Transport):
    """The stream of a link for a protocol; there is no half-close, so its end is told by an empty message."""

    def __init__(self, link: ClientLink, protocol: asyncio.BufferedProtocol) -> None:
        assert link.transport is not None
        super().__init__()
        self._link, self.protocol, self._below = link, protocol, link.transport
        self._closing = self._ended = False
        self._waiting: list[bytes | bytearray] = []  # what came in one go with what made the reader pause
        self._paused = False

    def take(self, data: bytes | bytearray) -> None:
        """Hand a piece to the protocol; empty at the end."""
        if self._closing:
            return
        if self._paused:
            self._waiting.append(data)
        elif not data:
            if not self.protocol.eof_received():
                self.close()
        else:
            view = memoryview(data)
            while view:
                into = cast(memoryview, self.protocol.get_buffer(len(view)))
                size = min(len(into), len(view))
                into[:size] = view[:size]
                self.protocol.buffer_updated(size)
                view = view[size:]

    def lost(self, error: Exception | None) -> None:
        """Tell the protocol that the stream is gone."""
        self._closing = True
        self._waiting.clear()
        self.protocol.connection_lost(error)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send bytes, in pieces that a relay takes."""
        if len(data) <= CHUNK_BYTES:
            if data and not self._closing:
                self._link.send_data(data)
            return
        view = memoryview(data)
        for start in range(0, len(view), CHUNK_BYTES):
            self.write(view[start : start + CHUNK_BYTES])

    def write_eof(self) -> None:
        """Say that no more will come."""
        if not self._ended and not self._closing:
            self._ended = True
            self._link.send_data(b"")

    def can_write_eof(self) -> bool:
        """It can, as far as the other side is concerned."""
        return True

    def close(self) -> None:
        """Close when what was written has left, in bounded time."""
        if not self._closing:
            self._closing = True
            self._link.close(NORMAL, _LINGER_S)

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        self._link.abort()

    def is_closing(self) -> bool:
        """Return whether it is closed, or about to be."""
        return self._closing

    def pause_reading(self) -> None:
        """Take nothing more from the relay."""
        self._paused = True
        self._link.hold("reader")

    def resume_reading(self) -> None:
        """Go on, with what had to wait first."""
        self._paused = False
        while self._waiting and not self._paused:
            self.take(self._waiting.pop(0))
        if not self._paused:
            self._link.release("reader")

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the kernel."""
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say when the protocol is to pause; TLS in asyncio takes 0 for "always"."""
        self._below.set_write_buffer_limits(None if high is None else max(1, high), low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection to the relay."""
        return self._below.get_extra_info(name, default)
