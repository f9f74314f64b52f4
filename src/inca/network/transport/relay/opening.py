"""A WebSocket to a relay, through the proxy if there is one; and if it cannot be had, whose fault that looks like."""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from inca._base.extras import importing
from inca.network.addresses import Address
from inca.network.transport.failures import Failure, FailureCause, Unreached, describe_failure
from inca.network.transport.relay.link import CHUNK_BYTES
from inca.network.transport.relay.messages import PROTOCOL, Challenge, from_relay
from inca.network.transport.relay.stream import ClientLink

with importing("inca.network", extra="network"):
    from websockets.asyncio.client import connect
    from websockets.exceptions import (
        ConnectionClosed,
        InvalidMessage,
        InvalidProxy,
        InvalidProxyStatus,
        InvalidStatus,
        ProxyError,
        WebSocketException,
    )

_OPEN_TIMEOUT_S = 15.0  # through a slow proxy
_TRIES, _PAUSE_S = 3, 0.3  # while the relay has no room: many may come at the same moment
_PROBE_S = 3.0
_BEHIND_PROXY = (502, 503, 504)  # what a proxy says if it does not reach the relay
_FULL = (429, 503)
_quiet = logging.getLogger("inca.network.transport.relay")  # all that matters of it is told as failures
_quiet.setLevel(logging.CRITICAL)


async def open_link(address: Address, context: ssl.SSLContext, buffer: memoryview) -> tuple[ClientLink, Challenge]:
    """Return a WebSocket to a relay and its challenge, or raise `Unreached`."""
    for left in reversed(range(_TRIES)):
        try:
            return await _open(address, context, buffer)
        except (OSError, ValueError, ImportError, WebSocketException) as error:
            if isinstance(error, Unreached):
                raise
            if not left or not _passes(error):
                raise Unreached(await _describe(error, address)) from None
        await asyncio.sleep(_PAUSE_S * random.uniform(0.5, 1.5))
    raise AssertionError


async def _open(address: Address, context: ssl.SSLContext, buffer: memoryview) -> tuple[ClientLink, Challenge]:
    opened = await connect(
        str(address),
        ssl=context,
        compression=None,
        user_agent_header="inca",
        open_timeout=_OPEN_TIMEOUT_S,
        ping_interval=None,
        max_size=CHUNK_BYTES,
        logger=_quiet,
    )
    try:
        async with asyncio.timeout(_OPEN_TIMEOUT_S):
            challenge = from_relay(await opened.recv(decode=False))
        if not isinstance(challenge, Challenge):
            raise ValueError("it does not begin with a challenge")
        if challenge.protocol != PROTOCOL:
            detail = f"the relay {address} speaks another version of the protocol than we do"
            raise Unreached(Failure(FailureCause.OTHER_VERSION, detail))
        link = ClientLink(opened.protocol, buffer, str(address))
        opened.transport.set_protocol(link)  # takes over: a relay says nothing more before it has heard a claim
        link.connection_made(opened.transport)
    except BaseException:
        opened.transport.abort()
        raise
    return link, challenge


def _passes(error: Exception) -> bool:
    """Return whether a relay that has no room, or restarts, looks like this."""
    if isinstance(error, InvalidStatus):
        return error.response.status_code in _FULL
    cut = ConnectionResetError | ConnectionAbortedError | BrokenPipeError | ssl.SSLEOFError
    return isinstance(error, cut | InvalidMessage | ConnectionClosed)


async def _describe(error: Exception, address: Address) -> Failure:
    relay, proxy = f"the relay {address}", _proxy_for(address)
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "a private relay, or a proxy that opens TLS, needs the certificate of its authority: --relay-ca"
        detail = f"{relay} shows a wrong certificate: {error.verify_message} ({hint})"
        return Failure(FailureCause.RELAY_UNTRUSTED, detail)
    if proxy is not None:
        if (refusal := await _refusal_of_proxy(error, relay, *proxy)) is not None:
            return refusal
        relay += f" (through the proxy {proxy[0]})"
    if isinstance(error, InvalidStatus) and error.response.status_code in _FULL:
        return Failure(FailureCause.RELAY_REFUSES, f"{relay} has reached its limits, or is shutting down")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        return describe_failure(error, relay)
    return Failure(FailureCause.RELAY_UNREACHABLE, f"{relay} cannot be reached: {_reason(error)}")


async def _refusal_of_proxy(error: Exception, relay: str, proxy: str, place: tuple[str, int]) -> Failure | None:
    """Return what the proxy has against it, None if it seems to have let us through."""
    if isinstance(error, InvalidProxyStatus):
        status = error.response.status_code
        if status in _BEHIND_PROXY:
            return None
        if status == 407:
            what = f"the proxy {proxy} wants a name and a password, or others than in HTTPS_PROXY"
        else:
            what = f"the proxy {proxy} does not let us connect to {relay} (it answers {status})"
    elif isinstance(error, ImportError):
        what = f"the proxy {proxy} cannot be used (HTTPS_PROXY): {error}"
    elif isinstance(error, ProxyError | InvalidProxy):
        what = f"the proxy {proxy} does not answer as a proxy does, or is wrongly given (HTTPS_PROXY)"
    elif isinstance(error, OSError) and not await _answers(*place):
        what = f"the proxy {proxy} does not answer (HTTPS_PROXY, or our network), so {relay} is out of reach"
    else:
        return None
    return Failure(FailureCause.PROXY_REFUSES, what)


def _reason(error: Exception) -> str:
    if _passes(error):
        return "it closes the connection at once (it is full or shutting down, or a firewall is between)"
    if isinstance(error, ssl.SSLError):
        return f"what answers there does not speak TLS with us: {error.reason}"
    if isinstance(error, InvalidStatus | InvalidProxyStatus):
        return f"the web server or the proxy there answers {error.response.status_code}"
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return reason
    return str(error.strerror or error) if isinstance(error, OSError) else "what answers there is not a relay"


_REASONS: dict[type[Exception], str] = {
    socket.gaierror: "its host name cannot be looked up (its address, or the name service)",
    ConnectionRefusedError: "nothing listens there",
    TimeoutError: "nothing answers (the network, ours or the relay's, or the relay's machine)",
}


def _proxy_for(address: Address) -> tuple[str, tuple[str, int]] | None:
    """Return the proxy on the way to an address, without its password, as the library finds it."""
    if proxy_bypass(f"{address.host}:{address.port}"):
        return None
    proxies = getproxies()
    url = next((proxies[scheme] for scheme in ("wss", "socks", "https") if scheme in proxies), None)
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        place = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "in HTTPS_PROXY", ("", 0)
    return f"{place[0]}:{place[1]}", place


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, ValueError):
        return False
    writer.transport.abort()
    return True
