"""Accepts connections: strangers are let in within limits, and refusals are logged once a second.

When too many connections are without hello, one of them gives way to a new one: the oldest from the address with the
most. Idle connections from a few addresses leave no party out then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Protocol

from inca.network.transport.failures import describe_failure
from inca.network.transport.interface import TransportEvents
from inca.network.transport.limits import Limits, Violations
from inca.network.transport.streams import leave_no_trace

_ACCEPTS_PER_TURN = 16  # many may be waiting, but so may be others
_RETRY_S = 0.1  # after a failure, above all for want of file descriptors: others will be closed
_LOG_EVERY_S = 1.0
_MAX_REASONS = 64  # told apart in the log
_SLOW_S = 0.25  # between two connections from an address that made too many violations
_MAX_ADDRESSES = 4096  # remembered


class PendingConnection(Protocol):
    """An accepted connection without hello."""

    origin: str

    def give_way(self) -> None:
        """Close at once, and leave no trace in the kernel."""


class Acceptor:
    """Accepts connections; `on_accepted` takes a socket, its address in words, and what counts as one address.

    What it makes of that is `now_pending` until it is `no_longer_pending`.

    Parties may share an address with others (a proxy, a health check), so no address is refused altogether: one that
    made too many violations is let in slowly, one connection at a time, and one from which a party has shown its
    certificate is not slowed down at all, unless that party is refused itself.
    """

    def __init__(
        self,
        limits: Limits,
        violations: Violations,
        events: TransportEvents,
        on_accepted: Callable[[socket.socket, str, str], Awaitable[None]],
        origin: Callable[[str, int], str] = lambda host, port: origin_of(host),
    ) -> None:
        self._limits, self._violations, self._events, self._on_accepted = limits, violations, events, on_accepted
        self._origin = origin
        self._pending: dict[str, dict[PendingConnection, int]] = {}  # by address, with their numbers, the oldest first
        self._accepted = 0
        self._refusals: Counter[str] = Counter()  # not yet logged
        self._parties: dict[str, set[int]] = {}  # by address, the oldest first
        self._slowed_until: dict[str, float] = {}

    async def run(self, listening: socket.socket) -> None:
        """Accept until cancelled."""
        for turn in count(1):
            if turn % _ACCEPTS_PER_TURN == 0:
                await asyncio.sleep(0)
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                await _readable(listening)
                continue
            except OSError as error:
                reason = describe_failure(error, "our own socket").detail
                self._events.log_event("accepting failed", reason=reason)
                await asyncio.sleep(_RETRY_S)
                continue
            sock.setblocking(False)
            origin = self._origin(*address[:2])
            if refusal := self.refusal(origin):
                self.refuse(refusal)
                leave_no_trace(sock)
                sock.close()
            else:
                await self._on_accepted(sock, f"{address[0]}:{address[1]}", origin)

    def now_pending(self, connection: PendingConnection) -> None:
        """Count a connection among those without hello; if they are too many, one gives way."""
        self._accepted += 1
        self._pending.setdefault(connection.origin, {})[connection] = self._accepted
        if self.pending > self._limits.max_pending:
            oldest = min(self._pending.values(), key=lambda pending: (-len(pending), next(iter(pending.values()))))
            giving_way = next(iter(oldest))
            self.no_longer_pending(giving_way)
            self.refuse(f"too many connections without hello: one of {giving_way.origin} gave way to another")
            giving_way.give_way()

    def no_longer_pending(self, connection: PendingConnection) -> None:
        """Count a connection no longer among those without hello."""
        of_origin = self._pending.get(connection.origin, {})
        if of_origin.pop(connection, None) is not None and not of_origin:
            del self._pending[connection.origin]

    def party_seen(self, origin: str, party: int) -> None:
        """Remember that a party comes from this address."""
        self._parties.setdefault(origin, set()).add(party)
        _forget_oldest(self._parties)

    def refuse(self, reason: str) -> None:
        """Log a refusal, together with others: there may be thousands."""
        if not self._refusals:
            asyncio.get_running_loop().call_later(_LOG_EVERY_S, self.log_refusals)
        self._refusals[reason if len(self._refusals) < _MAX_REASONS else "others"] += 1

    def log_refusals(self) -> None:
        """Log the refusals that have gathered."""
        refusals, self._refusals = self._refusals, Counter()
        for reason, times in refusals.items():
            self._events.log_event("refused", reason=reason, times=times)

    @property
    def pending(self) -> int:
        """How many connections have not completed their hello."""
        return sum(map(len, self._pending.values()))

    def refusal(self, origin: str) -> str:
        """Return why nobody from this address may come in now; empty if somebody may."""
        now = asyncio.get_running_loop().time()
        welcome = any(not self._violations.refused_for(party, now) for party in self._parties.get(origin, ()))
        if self._violations.refused_for(origin, now) > 0 and not welcome:
            if origin in self._pending or now < self._slowed_until.get(origin, 0.0):
                return f"{origin} made too many violations"
            self._slowed_until[origin] = now + _SLOW_S
            _forget_oldest(self._slowed_until)
        full = len(self._pending.get(origin, ())) >= self._limits.max_pending_per_address
        return f"too many connections of {origin} without hello" if full else ""


def _forget_oldest(addresses: dict[str, Any]) -> None:
    if len(addresses) > _MAX_ADDRESSES:
        del addresses[next(iter(addresses))]


def origin_of(address: str) -> str:
    """Return what counts as one address: with IPv6, a whole network is given to one customer.

    >>> origin_of("10.0.0.1"), origin_of("2001:db8::1")
    ('10.0.0.1', '2001:db8::/64')
    """
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed.version == 6 and parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


async def _readable(listening: socket.socket) -> None:
    # Not sock_accept, which loses a connection when it is cancelled at the wrong moment.
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(listening, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listening)
