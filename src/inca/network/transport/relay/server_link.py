"""The relay's end of a connection: TLS on memory buffers, the upgrade to WebSocket, and where it comes from."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

from inca._base.extras import importing
from inca.network.transport.relay.link import CHUNK_BYTES, WebSocketLink
from inca.network.transport.streams import RECORD_BYTES, leave_no_trace

with importing("inca.network", extra="network"):
    from websockets.http11 import Request
    from websockets.protocol import Event
    from websockets.server import ServerProtocol

if TYPE_CHECKING:
    from inca.network.transport.relay.server import Relay

REQUEST_BYTES = 1 << 14  # of TLS's and HTTP's headers, and of what else comes before a claim
_READ_BYTES = (
    1 << 16
)  # handled in one go, less if the messages are tiny: each costs as much as one of thousands of bytes
_FEW = 16
_HIGH_WATER = 1 << 17  # bytes that wait for the kernel before the other end is held back
_MOST_UNREAD_BYTES = 1 << 20  # more than the other end can have on its way then
_USER_TIMEOUT_MS = 180_000  # a machine that vanished without a word is noticed at the latest then


class Role(Enum):
    """What a connection has become."""

    PENDING = auto()  # no claim yet
    PROVING = auto()  # claimed a name that is taken, by a process that may be dead
    REGISTERED = auto()
    WAITING = auto()  # dialled, and the callee has not answered
    JOINED = auto()
    DONE = auto()


class ServerLink(WebSocketLink):
    """A connection that a relay has accepted; `origin` says where from, in words that mean nothing to others."""

    def __init__(
        self,
        relay: Relay,
        buffer: memoryview,
        context: ssl.SSLContext | None,
        *,
        address: str,
        origin: str,
    ) -> None:
        super().__init__(ServerProtocol(max_size=CHUNK_BYTES), buffer)
        self._relay, self._board = relay, relay.switchboard
        self._open_timeout_s = self._board.limits.open_timeout_s
        self.address, self.origin = address, origin
        self.role, self.nonce = Role.PENDING, secrets.token_bytes(32)
        self.name, self.instance = "", ""
        self.partner: ServerLink | None = None
        self._early_bytes, self._read_bytes = 0, RECORD_BYTES
        self.ticket, self.pair = "", frozenset[str]()  # of the call that it makes
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = None if context is None else context.wrap_bio(self._in, self._out, server_side=True)
        self._secure = context is None

    # --- TLS ---------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Await TLS, or the request."""
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.set_write_buffer_limits(high=_HIGH_WATER)
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
        self.set_timer("deadline", self._open_timeout_s, self.abort)

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt what was read."""
        if self.role is Role.PENDING:
            self._early_bytes += nbytes
            if self._early_bytes > REQUEST_BYTES:
                self.abort()
                return
        self._in.write(self._buffer[:nbytes])
        try:
            self._advance()
        except AssertionError:  # of the library, if frames come before our answer to the request
            self.abort()

    def on_released(self) -> None:
        """Take what had to wait."""
        self._advance()

    def _advance(self) -> None:
        try:
            if not self._secure and self._tls is not None:
                self._tls.do_handshake()
                self._secure = True
                self._drain()
                self.set_timer("deadline", self._open_timeout_s, self.abort)
            while not self._held and self.transport is not None and (size := self._read()):
                messages = self.receive(self._buffer[:size])
                self._read_bytes = _READ_BYTES if messages < _FEW else RECORD_BYTES
                self._board.on_read(self, messages, size)
        except ssl.SSLWantReadError:
            self._drain()  # our part of the handshake
        except ssl.SSLError:
            self._drain()  # the alert that says what is wrong
            self.abort()

    def _read(self) -> int:
        """Decrypt into the shared buffer; return how many bytes."""
        size = 0
        try:
            while size < self._read_bytes:
                if self._tls is None:
                    data = self._in.read(self._read_bytes)
                    self._buffer[: len(data)] = data
                    return len(data)
                read = cast(int, self._tls.read(RECORD_BYTES, self._buffer[size:]))
                if not read:  # the other side ended TLS in good order
                    assert self.transport is not None
                    self.transport.close()
                    break
                size += read
        except ssl.SSLWantReadError:
            self._drain()  # a new key, perhaps
        return size

    def put(self, data: bytes) -> None:
        """Encrypt and write."""
        if self.transport is None or self.transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
            self.abort()  # it asks, by pings above all, and reads no answers
            return
        if self._tls is None:
            super().put(data)
            return
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view) :]
        self._drain()

    def _drain(self) -> None:
        if self._out.pending:
            super().put(self._out.read())

    # --- WebSocket ---------------------------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        """Answer the request, then take frames."""
        if not isinstance(event, Request):
            super().on_event(event)
            return
        assert isinstance(self.websocket, ServerProtocol)
        answer = self._relay.on_request(self, event)
        response = self.websocket.reject(*answer) if answer is not None else self.websocket.accept(event)
        self.websocket.send_response(response)
        self._flush()
        if self.open:
            self._relay.on_opened(self)

    def on_text(self, text: bytes) -> None:
        """Pass it on."""
        self._board.on_message(self, text)

    def on_data(self, data: bytes | bytearray) -> None:
        """Pass it on."""
        self._board.on_piece(self, data)

    def on_end(self) -> None:
        """Pass it on."""
        self._board.on_piece(self, b"")

    def on_writable(self) -> None:
        """Pass it on."""
        self._board.on_writable(self)

    def on_closed(self, error: Exception | None) -> None:
        """Pass it on."""
        self._relay.on_gone(self)

    def give_way(self) -> None:
        """Close at once, and leave no trace in the kernel."""
        if self.transport is not None:
            leave_no_trace(self.transport.get_extra_info("socket"))
        self.abort()
