"""One connection to a peer, and how far it has come."""

from __future__ import annotations

import asyncio
import secrets
from enum import Enum, auto

from inca.errors import TransportViolation
from inca.network.addresses import Address
from inca.network.transport.failures import FailureCause
from inca.network.transport.interface import TransportConfig
from inca.network.transport.streams import ConnectionEvents, Stream, leave_no_trace


class ConnectionState(Enum):
    """How far a connection has come."""

    CONNECTING = auto()  # reaching the peer, and TLS
    AWAITING_HELLO = auto()  # accepted, and no hello heard yet
    HELLO_SENT = auto()  # dialled, and our first hello said
    HELLO_ANSWERED = auto()  # accepted, and their first hello answered
    LIVE = auto()
    DRAINING = auto()  # replaced by a newer one; what the peer has sent still counts
    DONE = auto()


DELIVERING = (ConnectionState.LIVE, ConnectionState.DRAINING)


class Connection(Stream):
    """A connection, and what is known about it.

    `peer` is the party that was dialled; one that was accepted has None until the other side has proven who it is.
    `origin` is what counts as one address.
    """

    def __init__(
        self,
        events: ConnectionEvents,
        config: TransportConfig,
        buffer: memoryview,
        *,
        address: str,
        origin: str = "",
        peer: int | None = None,
        relay: Address | None = None,
    ) -> None:
        self.outgoing = peer is not None
        context = config.client if self.outgoing else config.server
        super().__init__(events, context, config.limits, buffer, server=not self.outgoing)
        self.address, self.origin, self.peer, self.relay = address, origin, peer, relay
        self.state = ConnectionState.CONNECTING
        self.proven = False  # whether `peer` is whose certificate it is
        self.nonce, self.own_serial = secrets.token_bytes(16), 0  # of our first hello
        self.incarnation, self.peer_serial = b"", 0  # of the peer's first hello
        self.live_since = self.last_heard = self._loop.time()
        self.heard_since_write = True
        self.pings: dict[int, tuple[float, asyncio.Future[tuple[float, float, float, float]]]] = {}
        self.unanswered_ping: tuple[int, float, float] | None = None  # number, sent, arrived: when it can be written
        self.tokens: list[object] = []  # of frames written to it, which are in doubt when it ends
        self.dial_task: asyncio.Task[None] | None = None
        self.hasten(config.limits.handshake_timeout_s)

    def hasten(self, seconds: float) -> None:
        """Give it so long at most to reach the peer and to agree on TLS."""
        self.set_deadline(min(seconds, self._limits.handshake_timeout_s), "did not agree on TLS")

    @property
    def who(self) -> str:
        """The other side in words."""
        return f"party {self.peer}" if self.proven else self.address

    def set_deadline(self, seconds: float, undone: str) -> None:
        """End it after so many seconds unless another deadline is set; `undone` is what was not done by then."""
        self.set_timer("deadline", seconds, lambda: self._time_out(f"{undone} within {seconds:g} s"))

    def _time_out(self, undone: str) -> None:
        if self.socket:
            behind = self.outgoing and self.state is ConnectionState.CONNECTING
            error = TransportViolation(undone, FailureCause.NO_ANSWER if behind else FailureCause.UNRESPONSIVE)
        else:
            error = TransportViolation("does not answer (the network, or the peer's machine)", FailureCause.TIMED_OUT)
        self._events.on_broken(self, error)

    def give_way(self) -> None:
        """Close at once, and leave no trace in the kernel."""
        if self.socket is None:
            self.drop()
        else:
            leave_no_trace(self.socket.get_extra_info("socket"))
        self.abort()

    def drop(self) -> None:
        """Forget it, and the dial or the answer to a call that leads to it."""
        self.state = ConnectionState.DONE
        if self.dial_task is not None and not self.dial_task.done():
            self.dial_task.cancel()
        self.stop_timer("deadline")
        self.finish(None)
