"""Frames between parties that know each other's certificates: one TLS connection per pair, whoever opened it.

**Hello.** The side that connects says hello first, the other answers, and the first confirms; each hello but the first
repeats the other's nonce. So neither side takes a connection for live before the other has proven to be there *now*,
and what a process left in the network when it died is never taken for one that came later. Each process draws a *life*
at its start: the latest one proven counts, and all connections of earlier ones are closed with nothing more delivered.

**One connection.** Nobody says a first hello while having a live or an answered connection to that peer, and hellos are
numbered. So a first hello with a later number than the hello of the connection at hand shows that the peer has lost the
latter; an earlier number, that it had not seen it yet. When both say a first hello at once, the smaller id's counts.

**Certainty.** A frame is `unsent` only if nothing of it was ever given to TLS. What was given and not answered is in
doubt, and whoever sends has to deal with that.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inca._base.validation import refuse, whole
from inca.network.transport.connections import Connections
from inca.network.transport.events import Listener, Unreachable
from inca.network.transport.frames import HEADER, Limits


@dataclass(frozen=True, slots=True)
class Measured:
    """The clock of a peer minus ours, and the round trip of the exchange that says so, in seconds.

    The offset is off by at most half the round trip.
    """

    offset: float
    round_trip: float


class Transport:
    """Sends frames to the other parties of a session and hands on theirs.

    `addresses` is read at every dial. `identify` tells the party of a certificate (DER), or None; `clock` is what
    `measure` compares. Nothing here raises because of the network, except `measure`.
    """

    def __init__(
        self,
        *,
        me: int,
        addresses: Sequence[tuple[str, int]],
        session: bytes,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        identify: Callable[[bytes], int | None],
        limits: Limits,
        listener: Listener,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing happens before `start`."""
        self._connections = Connections(
            me=me,
            addresses=addresses,
            session=session,
            server=server,
            client=client,
            identify=identify,
            limits=limits,
            listener=listener,
            clock=clock,
        )
        self._own, self._addresses, self._limits, self._listener, self._clock = me, addresses, limits, listener, clock
        self._listening: socket.socket | None = None
        self._pings = 0

    @property
    def connected(self) -> set[int]:
        """The peers with a live connection."""
        return {party for party, peer in self._connections.peers.items() if peer.live is not None}

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        if self._listening is None:
            raise RuntimeError("the transport has not been started")
        host, port = self._listening.getsockname()[:2]
        return host, port

    async def start(self, host: str | None = None, port: int | None = None) -> None:
        """Listen, on its own address unless told otherwise."""
        self._loop = asyncio.get_running_loop()
        own = self._addresses[self._own]
        where = (own[0] if host is None else host, own[1] if port is None else port)
        found = await self._loop.getaddrinfo(*where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self._listening = socket.create_server(found[0][4][:2], family=found[0][0], backlog=1024)
        self._listening.setblocking(False)
        self._connections.begin(self._listening)

    async def close(self) -> None:
        """Say goodbye to everyone and stop, within about two seconds; frames still waiting are `unsent`."""
        if self._listening is not None and not self._connections.closed:
            await self._connections.end()

    def send(self, peer: int, frame: bytes, token: object = None) -> None:
        """Send a frame when there is a connection, which is opened if need be; see `Listener` for what may follow."""
        if len(frame) > self._limits.frame:
            raise refuse("the length of frame", len(frame), f"at most {self._limits.frame}")
        to = self._connections.peer(peer)
        if self._connections.closed:
            self._loop.call_soon(self._listener.unsent, peer, token)
            return
        to.queue.append((frame, token))
        to.queued += len(frame) + HEADER.size
        while to.queued > self._limits.queue and len(to.queue) > 1:
            old, lost = to.queue.popleft()
            to.queued -= len(old) + HEADER.size
            self._loop.call_soon(self._listener.unsent, peer, lost)
        self._connections.wake(to)

    async def measure(self, peer: int, count: int = 5) -> Measured:
        """Compare clocks with `peer` by `count` exchanges and return the best; raise `Unreachable` if there is none."""
        to = self._connections.peer(peer)
        if self._connections.closed:
            raise Unreachable("this transport is closed")
        if to.live is None:
            waiter = self._loop.create_future()
            to.waiters.append(waiter)
            self._connections.wake(to)
            await waiter  # every dial ends in time
        found = []
        for _ in range(whole("count", count, least=1)):
            if (link := to.live) is None:
                raise Unreachable(f"the connection to party {peer} was lost")
            self._pings += 1
            number, answer = self._pings, self._loop.create_future()
            link.pings[number] = self._clock(), answer
            self._connections.ping(link, number)
            try:
                async with asyncio.timeout(self._limits.hello):
                    t0, t1, t2, t3 = await answer
            except TimeoutError:
                text = f"timed out: party {peer} did not answer a ping within {self._limits.hello:g} s"
                raise Unreachable(text) from None
            finally:
                link.pings.pop(number, None)
            found.append(Measured(((t1 - t0) + (t2 - t3)) / 2, (t3 - t0) - (t2 - t1)))
        found = [each for each in found if each.round_trip >= 0]
        if not found:
            raise Unreachable(f"our clock or that of party {peer} was set while they were compared")
        return min(found, key=lambda each: each.round_trip)
