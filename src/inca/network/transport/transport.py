"""Sends frames to the other parties of a session, hands on theirs, and compares clocks."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import NamedTuple

from inca._base.validation import integer, refuse
from inca.errors import PeerUnreachable
from inca.network.addresses import Address
from inca.network.transport.connection import DELIVERING, Connection
from inca.network.transport.connections import CLOSED, Connections
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.frames import HEADER, PAD, PAD_BYTES
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.peers import Frame
from inca.network.transport.tcp import listen

_PADDING = bytes(PAD_BYTES)
_SHORTEST_S = 1e-4  # that can be told from the round trip


@dataclass(frozen=True, slots=True)
class ClockMeasurement:
    """The clock of a peer minus ours, and the round trip of the exchange that says so, in seconds.

    The offset is off by at most half the round trip.
    """

    offset: float
    round_trip: float

    @property
    def largest_skew(self) -> float:
        """How far the two clocks may be apart: the offset, and half of the round trip.

        >>> ClockMeasurement(-0.25, 0.5).largest_skew
        0.5
        """
        return abs(self.offset) + self.round_trip / 2.0


class Way(NamedTuple):
    """How a peer is reached: through a relay or directly, and who has dialled.

    >>> print(Way(None, dialled=True), Way(Address("relay.example.org", 443, "/inca"), dialled=False), sep="; ")
    directly; through wss://relay.example.org/inca (it connected to us)
    """

    relay: Address | None
    dialled: bool

    def __str__(self) -> str:
        """Return it in words that follow a verb."""
        way = "directly" if self.relay is None else f"through {self.relay}"
        return way if self.dialled else f"{way} (it connected to us)"


class Transport:
    """One TLS connection for each pair of parties, opened when there is something to send.

    Nothing here raises because of the network, except `measure`. Nothing happens before `start`.
    """

    def __init__(self, config: TransportConfig, events: TransportEvents) -> None:
        self._config, self._limits, self._events = config, config.limits, events
        self._connections = Connections(config, events)
        self._listening: socket.socket | None = None
        self._started = False
        self._pings = 0

    @property
    def connected(self) -> set[int]:
        """The peers with a live connection."""
        return {party for party, peer in self._connections.peers.items() if peer.live is not None}

    @property
    def ways(self) -> dict[int, Way]:
        """How each peer with a live connection is reached."""
        live = {party: peer.live for party, peer in self._connections.peers.items() if peer.live is not None}
        return {party: Way(connection.relay, connection.outgoing) for party, connection in live.items()}

    @property
    def registered(self) -> set[Address]:
        """The relays at which the others can reach us now."""
        return set(self._connections.registered)

    @property
    def arriving(self) -> list[int]:
        """How many bytes are here of each large frame that is on its way."""
        return [one.arriving for one in self._connections.open if one.state in DELIVERING and one.arriving]

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, if it does."""
        if self._listening is None:
            raise RuntimeError("the transport does not listen: it has not been started, or has no address of its own")
        host, port = self._listening.getsockname()[:2]
        return host, port

    async def start(self, host: str | None = None, port: int | None = None) -> None:
        """Listen, on its own address unless told otherwise, if it has one; register at relays."""
        self._loop = asyncio.get_running_loop()
        own = next((address for address in self._config.addresses[self._config.me] if not address.relayed), None)
        if own is not None:
            self._listening = await listen(own.host if host is None else host, own.port if port is None else port)
        self._connections.start(self._listening)
        self._started = True

    async def close(self) -> None:
        """Say goodbye to everyone and stop, within about two seconds; frames still waiting are `unsent`."""
        if self._started and not self._connections.closed:
            await self._connections.close()

    def send(self, peer: int, frame: bytes | Frame, token: object = None) -> None:
        """Send a frame when there is a connection, opened if need be; see `TransportEvents` for what may follow.

        A frame may be in pieces. It waits by reference, and large pieces are never copied: whoever sends the same one
        to many holds it once.
        """
        if isinstance(frame, bytes):
            frame, length = (frame,), len(frame)
        else:
            length = sum(map(len, frame))
        if length > self._limits.max_frame_bytes:
            refuse("the length of frame", length, f"at most {self._limits.max_frame_bytes}")
        to = self._connections.peer(peer)
        if self._connections.closed:
            self._loop.call_soon(self._events.unsent, peer, token)
            return
        for given_up in to.enqueue(frame, length, token):
            self._loop.call_soon(self._events.unsent, peer, given_up)
        self._connections.wake(to)

    def report_violation(self, peer: int, what: str) -> int:
        """Count a message of `peer` that no honest peer sends, or passes on.

        Such violations count like those that the transport itself notices. After `max_violations` of them, the peer is
        refused for `penalty_s`: its connections end, nothing more of it is delivered, and it is not dialled. `what` it
        did is said in words that follow its name; how many violations of it are remembered is returned.
        """
        return self._connections.report_violation(peer, what)

    def refuses(self, peer: int) -> bool:
        """Return whether a peer is refused now: what it sent before is better left alone, too."""
        return self._connections.refused_for(peer) > 0

    async def measure(self, peer: int, count: int = 5) -> ClockMeasurement:
        """Compare clocks with `peer`: return the exchange with the shortest round trip, or raise `PeerUnreachable`."""
        to = self._connections.peer(peer)
        if self._connections.closed:
            raise CLOSED.as_error()
        if to.live is None:
            waiter = self._loop.create_future()
            to.waiters.append(waiter)
            self._connections.wake(to)
            await waiter  # every dial ends in time
        measurements = [await self._ping(peer) for _ in range(integer("count", count, min=1))]
        measurements = [measurement for measurement in measurements if measurement.round_trip >= 0]
        if not measurements:
            detail = f"our clock or that of party {peer} was set while they were compared"
            raise Failure(FailureCause.CLOCK_SET, detail).as_error()
        return min(measurements, key=lambda measurement: measurement.round_trip)

    async def measure_rate(self, peer: int, size: int, seconds: float) -> float:
        """Measure how many bytes a second `peer` takes from us, by padding that it drops, or raise `PeerUnreachable`.

        More is sent each time, until that takes an eighth of `seconds`, or is `size` bytes. If the padding did not
        arrive within `seconds`, the rate is the one that it was not sent at.
        """
        trip, began_all = (await self.measure(peer)).round_trip, self._loop.time()
        count, most = 1, -(-size // PAD_BYTES)
        while True:
            connection, began = self._live(peer), self._loop.time()
            for _ in range(count):
                connection.write(HEADER.pack(PAD_BYTES, PAD), _PADDING)
            try:
                await self._ping(peer, max(0.0, began_all + seconds - began))
            except PeerUnreachable as error:
                if error.cause != FailureCause.UNRESPONSIVE:
                    raise
            took = max(self._loop.time() - began - trip, _SHORTEST_S)
            if count >= most or took >= seconds / 8:
                return count * PAD_BYTES / took
            count = min(4 * count, most)

    def _live(self, peer: int) -> Connection:
        if (connection := self._connections.peer(peer).live) is None:
            raise Failure(FailureCause.LOST, f"the connection to party {peer} was lost").as_error()
        return connection

    async def _ping(self, peer: int, timeout: float | None = None) -> ClockMeasurement:
        connection = self._live(peer)
        self._pings += 1
        number, answer = self._pings, self._loop.create_future()
        connection.pings[number] = self._config.clock(), answer
        self._connections.ping(connection, number)
        timeout = self._limits.ping_timeout_s if timeout is None else timeout
        try:
            async with asyncio.timeout(timeout):
                sent, arrived, left, returned = await answer
        except TimeoutError:
            detail = f"party {peer} did not answer a ping within {timeout:g} s"
            raise Failure(FailureCause.UNRESPONSIVE, detail).as_error() from None
        finally:
            connection.pings.pop(number, None)
        return ClockMeasurement(((arrived - sent) + (left - returned)) / 2, (returned - sent) - (left - arrived))
