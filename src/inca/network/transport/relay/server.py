"""A relay: listens, lets links in within limits, and serves until it is told to stop.

Example:
    asyncio.run(serve(RelayOptions(port=443, certificate=Path("fullchain.pem"), key=Path("privkey.pem"))))
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
import logging
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from inca._base.extras import importing
from inca.errors import InvalidInput
from inca.network.transport.acceptor import Acceptor
from inca.network.transport.interface import TransportEvents
from inca.network.transport.limits import Limits, Violations
from inca.network.transport.relay.certificate import RelayCertificate
from inca.network.transport.relay.options import RelayLimits, RelayOptions
from inca.network.transport.relay.origins import Origins
from inca.network.transport.relay.server_link import ServerLink
from inca.network.transport.relay.switchboard import Switchboard
from inca.network.transport.streams import READ_BYTES
from inca.network.transport.tcp import listen

with importing("inca.network", extra="network"):
    from websockets.http11 import Request

__all__ = ["RelayLimits", "RelayOptions", "serve"]

_QUIET_S = 0.5  # without a byte passed on, nothing is under way
_log = logging.getLogger("inca.relay")


def log_event(event: str, **fields: object) -> None:
    """Log one event as a line of JSON."""
    _log.info(json.dumps({"event": event, **fields}, default=str))


async def serve(
    options: RelayOptions,
    *,
    ready: Callable[[tuple[str, int]], None] | None = None,
    stop: asyncio.Event | None = None,
    reload: Callable[[], frozenset[str] | None] | None = None,
) -> None:
    """Run a relay until `stop` is set, or SIGTERM or SIGINT comes; then let what is under way come to its end.

    An `OSError` says why it cannot listen; options that cannot work are refused.

    Args:
        options: How it runs.
        ready: Called with host and port when it listens.
        stop: Set to stop it.
        reload: Called at SIGHUP, returns the allow-list anew; an `InvalidInput` leaves the old one. The certificate is
            read again, too.
    """
    relay = Relay(options)
    _allow_files()
    await relay.start()
    stop = stop or asyncio.Event()
    try:
        async with _metrics(options.metrics_port, relay):
            with _signals(stop.set, lambda: relay.reload(reload)):
                if ready is not None:
                    ready(relay.address)
                log_event("listening", host=relay.address[0], port=relay.address[1])
                await stop.wait()
                await relay.drain()
    finally:
        await relay.close()


class Relay:
    """A relay that runs in this loop."""

    switchboard_type: type[Switchboard] = Switchboard

    def __init__(self, options: RelayOptions) -> None:
        self._options, limits = options, options.limits
        self._certificate, self._origins = RelayCertificate(options), Origins(options)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._violations = Violations(Limits())
        self._links: set[ServerLink] = set()
        self._gone = asyncio.Event()
        self.draining = False
        self.switchboard = self.switchboard_type(limits, options.allow, self._certificate.is_for, log_event)
        accepting = Limits(max_pending=limits.max_pending, max_pending_per_address=limits.max_pending_per_origin)
        self._acceptor = Acceptor(accepting, self._violations, _Events(), self._on_accepted, self._origins.of)
        self.switchboard.settled = self._acceptor.no_longer_pending
        self.switchboard.offended = lambda link: self._offended(link.origin)
        self.switchboard.refused = self._acceptor.refuse

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listening.getsockname()[:2]
        return host, port

    @property
    def pending(self) -> int:
        """How many connections have not claimed anything."""
        return self._acceptor.pending

    @property
    def health(self) -> tuple[http.HTTPStatus, str]:
        """What those hear who ask whether it is well."""
        if self.draining:
            return http.HTTPStatus.SERVICE_UNAVAILABLE, "draining\n"
        return http.HTTPStatus.OK, "ok\n"

    async def start(self) -> None:
        """Listen."""
        self._loop = asyncio.get_running_loop()
        self._listening = await _listen(self._options)
        self._accepting = self._loop.create_task(self._acceptor.run(self._listening))

    async def drain(self) -> None:
        """Take no more registrations and calls, and wait until nothing is under way, or for `drain_s`."""
        log_event("draining")
        self._stop_accepting()
        self.switchboard.dismiss()
        until, counts = self._loop.time() + self._options.limits.drain_s, self.switchboard.counts
        while self.switchboard.data and self._loop.time() < until:
            before = counts.bytes
            await asyncio.sleep(min(_QUIET_S, self._options.limits.drain_s))
            if counts.bytes == before:
                break

    async def close(self) -> None:
        """End all connections."""
        self._stop_accepting()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self.switchboard.hang_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while self._links:
                    self._gone.clear()
                    await self._gone.wait()
        for link in list(self._links):
            link.abort()
        self._acceptor.log_refusals()
        await asyncio.sleep(0)
        log_event("stopped", bytes=self.switchboard.counts.bytes, calls=self.switchboard.counts.joined)

    def _stop_accepting(self) -> None:
        self.draining = True
        self._accepting.cancel()
        self._listening.close()

    def reload(self, read: Callable[[], frozenset[str] | None] | None) -> None:
        """Read the certificate and the allow-list anew; each stays as it was if it cannot be read."""

        def read_list() -> None:
            if read is not None:
                self.switchboard.allow_only(read())

        failed = False
        for renew in (self._certificate.renew, read_list):
            try:
                renew()
            except (InvalidInput, OSError) as error:
                failed = True
                log_event("reload failed", reason=str(error))
        if not failed:
            allow = self.switchboard.allow
            log_event("reloaded", allowed=None if allow is None else len(allow))

    # --- what happens on links ---------------------------------------------------------------------------------------

    def _offended(self, origin: str) -> None:
        self._violations.add(origin, self._loop.time())

    async def _on_accepted(self, sock: socket.socket, address: str, origin: str) -> None:
        link = ServerLink(self, self._buffer, self._certificate.context, address=address, origin=origin)
        self._links.add(link)
        self._acceptor.now_pending(link)
        try:
            await self._loop.connect_accepted_socket(lambda: link, sock)
        except OSError:
            self.on_gone(link)

    def on_request(self, link: ServerLink, request: Request) -> tuple[http.HTTPStatus, str] | None:
        """Answer what is no WebSocket for us; learn where it comes from."""
        path = request.path.partition("?")[0]
        if path == "/healthz" or self.draining:
            return self.health
        if path != self._options.path:
            return http.HTTPStatus.NOT_FOUND, "not here\n"
        if (origin := self._origins.forwarded(link.address.rpartition(":")[0], request)) is not None:
            self._acceptor.no_longer_pending(link)
            link.origin = origin
            if refusal := self._acceptor.refusal(origin):
                self._acceptor.refuse(refusal)
                return http.HTTPStatus.TOO_MANY_REQUESTS, "too many connections\n"
            self._acceptor.now_pending(link)
        return None

    def on_opened(self, link: ServerLink) -> None:
        """Ask who is there."""
        self.switchboard.greet(link)

    def on_gone(self, link: ServerLink) -> None:
        """Forget a link."""
        self._links.discard(link)
        self._acceptor.no_longer_pending(link)
        self.switchboard.on_gone(link)
        self._gone.set()


class _Events(TransportEvents):
    def log_event(self, event: str, **fields: object) -> None:
        log_event(event, **fields)


async def _listen(options: RelayOptions) -> socket.socket:
    """Return a socket that listens, or raise an `OSError`: whoever starts a relay knows which of them may pass."""
    if options.host:
        return await listen(options.host, options.port)
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    listening = socket.create_server(("", options.port), family=family, dualstack_ipv6=both, backlog=1024)
    listening.setblocking(False)
    return listening


def _allow_files() -> None:
    """Have as many open files as the system lets us: each connection is one."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def _signals(stop: Callable[[], None], reload: Callable[[], None]) -> Iterator[None]:
    """Handle signals, in the main thread of a program."""
    loop, handled = asyncio.get_running_loop(), []
    for number, act in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, reload)):
        with contextlib.suppress(ValueError, RuntimeError):
            loop.add_signal_handler(number, act)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _metrics(port: int | None, relay: Relay) -> AsyncIterator[None]:
    if port is None:
        yield
        return
    from inca.network.transport.relay.metrics import serving

    async with serving(port, relay) as bound:
        log_event("metrics", port=bound)
        yield
