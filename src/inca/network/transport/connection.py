"""One connection to a peer and how far it has come, and what is known about the peer."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import deque
from enum import Enum, auto
from typing import Protocol

from inca.network.transport.frames import HELLO, Bucket, Fault, Hello, Limits
from inca.network.transport.streams import Pool, Stream


class Stage(Enum):
    """How far a connection has come."""

    SHAKING = auto()  # reaching the peer, TLS
    WAITING = auto()  # for the first hello
    GREETED = auto()  # first hello said
    REPLIED = auto()  # first hello answered
    LIVE = auto()
    DRAINING = auto()  # replaced by a newer one; what the peer has sent still counts
    DONE = auto()


DELIVERS = (Stage.LIVE, Stage.DRAINING)


class Home(Protocol):
    """What a connection asks of those who keep it, and tells them."""

    client: ssl.SSLContext
    server: ssl.SSLContext
    limits: Limits
    pool: Pool

    def greet(self, nonce: bytes, echo: bytes) -> Hello:
        """Return our next hello."""

    def opened(self, link: Link) -> None:
        """There is a socket."""

    def secured(self, link: Link) -> None:
        """TLS is agreed; may raise `Fault`."""

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Take a frame; may raise `Fault`."""

    def count(self, link: Link, frames: int, size: int) -> float:
        """Take what was read in one go; return for how many seconds to read no more. May raise `Fault`."""

    def flush(self, party: int) -> None:
        """Write what waits for this party."""

    def broken(self, link: Link, error: Fault | ssl.SSLError) -> None:
        """Answer an error of the other side."""

    def gone(self, link: Link, error: Exception | None) -> None:
        """The socket is closed."""


class Link(Stream):
    """A connection, and what is known about it."""

    def __init__(self, home: Home, address: str, host: str, peer: int | None) -> None:
        """Begin with a dial to `peer`, or with one that was accepted: then `peer` is None until it is proven."""
        self.outgoing = peer is not None
        context = home.client if self.outgoing else home.server
        super().__init__(context, home.limits, home.pool, server=not self.outgoing, host=host)
        self.home, self.address, self.host, self.peer = home, address, host, peer
        self.stage = Stage.SHAKING
        self.proven = False  # whether `peer` is whose certificate it is
        self.nonce, self.order = secrets.token_bytes(16), 0
        self.life, self.serial = b"", 0
        self.began = self.heard = self._loop.time()
        self.answered = True  # whether something was heard after we last wrote
        self.unknown = not self.outgoing  # whether it counts among the connections without hello
        self.pings: dict[int, tuple[float, asyncio.Future[tuple[float, float, float, float]]]] = {}
        self.dial: asyncio.Task[None] | None = None
        self.deadline(home.limits.handshake, "did not agree on TLS")

    def deadline(self, seconds: float, what: str) -> None:
        """End it after so many seconds unless another deadline is set; `what` was not done by then."""
        self.after("deadline", seconds, lambda: self._late(f"{what} within {seconds:g} s"))

    def _late(self, what: str) -> None:
        what = what if self.socket else "does not answer at all (the network, or the peer's machine)"
        self.broken(Fault(f"timed out: {what}"))

    def hello(self, echo: bytes) -> None:
        """Say hello, repeating the other's nonce."""
        hello = self.home.greet(self.nonce, echo)
        self.order = self.order or hello.serial
        self.control(HELLO, hello.encode())

    def drop(self) -> None:
        """Forget a dial that is no longer needed."""
        self.stage = Stage.DONE
        if self.dial is not None and not self.dial.done():
            self.dial.cancel()
        self.after("deadline", 0, None)
        self.finish(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.home.opened(self)
        super().connection_made(transport)

    def secured(self) -> None:
        """TLS is agreed."""
        self.home.secured(self)

    def frame(self, kind: int, body: bytes) -> None:
        """Take a frame."""
        self.home.frame(self, kind, body)

    def count(self, frames: int, size: int) -> float:
        """Count what was read."""
        return self.home.count(self, frames, size)

    def room(self) -> None:
        """More can be written."""
        if self.peer is not None:
            self.home.flush(self.peer)

    def broken(self, error: Fault | ssl.SSLError) -> None:
        """Tell home."""
        self.home.broken(self, error)

    def gone(self, error: Exception | None) -> None:
        """Tell home."""
        self.home.gone(self, error)


class Peer:
    """What a transport knows about one party."""

    def __init__(self, party: int, limits: Limits, now: float) -> None:
        """Begin without any connection."""
        self.party = party
        self.queue: deque[tuple[bytes, object]] = deque()
        self.queued = 0
        self.live: Link | None = None
        self.dial: Link | None = None
        self.answered: set[Link] = set()
        self.life, self.order = b"", 0
        self.ended: deque[bytes] = deque(maxlen=64)  # lives
        self.bucket = Bucket(limits, now)
        self.flushing = False
        self.backoff, self.next_dial, self.trying = 0.0, 0.0, 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.waiters: list[asyncio.Future[None]] = []
