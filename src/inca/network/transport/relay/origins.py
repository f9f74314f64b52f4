"""Where connections to a relay come from, as labels: they tell origins apart, and mean nothing beyond this run."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets

from inca._base.extras import importing
from inca.network.transport.acceptor import origin_of
from inca.network.transport.relay.options import RelayOptions

with importing("inca.network", extra="network"):
    from websockets.http11 import Request

_LABEL_BYTES = 8


class Origins:
    """Labels of origins. X-Forwarded-For is believed of named proxies alone, as anybody can send one."""

    def __init__(self, options: RelayOptions) -> None:
        self._in_words, self._salt = options.log_addresses, secrets.token_bytes(16)
        self._trusted = [ipaddress.ip_network(network) for network in options.trusted_proxies]

    def of(self, host: str, port: int) -> str:
        """Return the label of a connection; each of a trusted proxy is one by itself, until it says whose it is."""
        return self._label(f"{host}:{port}" if self._trusts(host) else origin_of(host))

    def forwarded(self, host: str, request: Request) -> str | None:
        """Return the label of whom a trusted proxy has connected, None if that is not what has come."""
        if not self._trusts(host):
            return None
        hosts = [part.strip() for value in request.headers.get_all("X-Forwarded-For") for part in value.split(",")]
        while hosts and self._trusts(hosts[-1]):
            hosts.pop()
        return self._label(origin_of(hosts[-1])) if hosts and _parsed(hosts[-1]) is not None else None

    def _label(self, origin: str) -> str:
        if self._in_words:
            return origin
        return hashlib.blake2b(origin.encode(), digest_size=_LABEL_BYTES, key=self._salt).hexdigest()

    def _trusts(self, host: str) -> bool:
        address = _parsed(host)
        return address is not None and any(address in network for network in self._trusted)


def _parsed(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address; one of IPv4 as such, also where a socket for both spells it otherwise."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
