"""What whoever runs a relay decides: where it listens, whom it serves, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from pathlib import Path

from inca._base.validation import integer, positive, refuse
from inca.errors import InvalidInput
from inca.network.addresses import Address


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayLimits:
    """What a relay allows; times in seconds, sizes in bytes.

    Without an allow-list anybody can make keys, so that connections and registrations are limited by key and origin
    too; with one, only pairs of its keys can talk, and `max_per_pair` limits them all.
    """

    max_pending: int = 256  # connections that have not proven a key, in all
    max_pending_per_origin: int = 16
    max_per_pair: int = 4  # both may dial at once, and either may leave one behind that is not known to be dead yet
    max_per_key: int = 512  # data connections of one key, without an allow-list
    max_calls_per_origin: int = 512  # made from one, without an allow-list
    max_waiting: int = 16  # dials that wait for one callee
    max_registered: int = 4096
    max_registered_per_origin: int = 256  # without an allow-list
    open_timeout_s: float = 5.0  # for TLS and the upgrade to WebSocket, each
    challenge_timeout_s: float = 5.0  # for the answer to the challenge
    callee_timeout_s: float = 10.0  # for the callee to take a call
    give_way_s: float = 2.0  # for a registered connection to show that it is alive when its key comes again
    bytes_per_second: float = 5e7  # from one key in the long run; above, reading pauses
    burst_bytes: int = 1 << 26  # from one key at full speed
    messages_per_second: float = 5000.0  # of WebSocket, of any kind and size
    burst_messages: int = 20_000
    drain_s: float = 10.0  # at the end, for what is under way

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for limit in fields(self):
            if limit.type == "int":
                integer(limit.name, getattr(self, limit.name), min=1)
            else:
                positive(limit.name, getattr(self, limit.name))


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayOptions:
    """How a relay runs.

    Attributes:
        host: Where it listens; empty for all addresses of the machine.
        port: Its port.
        certificate: A file with its certificate and those that vouch for it (PEM); None behind a reverse proxy that
            ends TLS.
        key: The file of the certificate's key; None if it is in `certificate`, too.
        path: The path at which it is a relay.
        names: The hosts under which parties reach it; by default those in its certificate. A party signs under which
            name it dialled, so that no other relay can pass its signature on to this one.
        allow: The fingerprints of the keys that it serves; None for any.
        trusted_proxies: Networks whose X-Forwarded-For says where a connection comes from.
        log_addresses: Whether logs name addresses; if not, they have labels that mean nothing beyond this run.
        limits: What it allows.
        metrics_port: A port on the loopback interface for /metrics and /healthz; None for neither.
    """

    host: str = ""
    port: int = 443
    certificate: Path | None = None
    key: Path | None = None
    path: str = "/inca"
    names: tuple[str, ...] = ()
    allow: frozenset[str] | None = None
    trusted_proxies: tuple[str, ...] = ()
    log_addresses: bool = False
    limits: RelayLimits = field(default_factory=RelayLimits)
    metrics_port: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        integer("port", self.port, min=0, max=65535)
        if self.metrics_port is not None:
            integer("metrics_port", self.metrics_port, min=0, max=65535)
        if not self.path.startswith("/"):
            refuse("path", self.path, "a path that begins with /")
        if self.certificate is None and not self.names:
            raise InvalidInput(
                "names: a relay without a certificate must be given the host names under which parties reach it, "
                "such as relay.example.org"
            )
        for name in self.names:
            Address(name.removeprefix("*."), 1)
        for network in self.trusted_proxies:
            try:
                ipaddress.ip_network(network)
            except ValueError:
                refuse("trusted_proxies", network, "an address or a network, such as 10.0.0.0/8")
