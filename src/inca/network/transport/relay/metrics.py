"""What a relay shows whoever runs it, on the loopback interface: /metrics for Prometheus, and /healthz.

Public facts only: numbers of connections, calls, refusals and bytes; no names, keys or addresses.
"""

from __future__ import annotations

import http
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from inca._base.extras import importing

with importing("inca relay --metrics-port", extra="relay"):
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

with importing("inca.network", extra="network"):
    from websockets.asyncio.server import ServerConnection
    from websockets.asyncio.server import serve as serve_websockets
    from websockets.http11 import Request, Response

if TYPE_CHECKING:
    from inca.network.transport.relay.server import Relay


class RelayCollector(Collector):
    """The numbers of a relay, as they are when they are asked for."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        board, counts = self._relay.switchboard, self._relay.switchboard.counts
        yield GaugeMetricFamily("inca_relay_registered", "Parties that are registered", len(board.registered))
        yield GaugeMetricFamily("inca_relay_data_connections", "Ends of calls", len(board.data))
        yield GaugeMetricFamily("inca_relay_waiting_calls", "Calls that wait for their callee", len(board.calls))
        yield GaugeMetricFamily("inca_relay_pending", "Connections that have not proven a key", self._relay.pending)
        yield CounterMetricFamily("inca_relay_bytes", "Bytes passed on", counts.bytes)
        yield CounterMetricFamily("inca_relay_calls", "Calls that were answered", counts.joined)
        yield CounterMetricFamily("inca_relay_registrations", "Registrations", counts.registered)
        refused = CounterMetricFamily("inca_relay_refused", "Claims that were refused", labels=["reason"])
        for reason, times in counts.refused.items():
            refused.add_metric([reason], times)
        yield refused


@asynccontextmanager
async def serving(port: int, relay: Relay) -> AsyncIterator[int]:
    """Answer on a port of the loopback interface; yields the port."""
    registry = CollectorRegistry()
    registry.register(RelayCollector(relay))
    ProcessCollector(registry=registry)

    def answer(connection: ServerConnection, request: Request) -> Response:
        if request.path == "/metrics":
            response = connection.respond(http.HTTPStatus.OK, generate_latest(registry).decode())
            response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8"
            return response
        if request.path == "/healthz":
            return connection.respond(*relay.health)
        return connection.respond(http.HTTPStatus.NOT_FOUND, "/metrics or /healthz\n")

    async def nothing(connection: ServerConnection) -> None:
        """Never called: every request is answered above."""

    async with serve_websockets(nothing, "127.0.0.1", port, process_request=answer) as server:
        yield server.sockets[0].getsockname()[1]
