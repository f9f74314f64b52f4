"""Blind relays on the loopback interface, and parties that are reached through them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trustme

from helpers.pace import allowance
from helpers.transports import TlsNetwork, until
from inca.network.addresses import Address
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.relay.options import RelayLimits, RelayOptions
from inca.network.transport.relay.server import Relay

PATH = "/inca"


class RelayNetwork(TlsNetwork):
    """Parties that know relays, and relays with certificates for this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        authority = trustme.CA()
        self.ca, self.certificate = folder / "authority.pem", folder / "relay.pem"
        authority.cert_pem.write_to_path(self.ca)
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(self.certificate)

    @property
    def names(self) -> list[str]:
        return [party.fingerprint for party in self.parties]

    def access(self, party: int) -> RelayAccess:
        own = self.parties[party]
        return RelayAccess(key=own.raw_key, sign=own.sign, names=self.names, ca=self.ca)

    def options(self, **changes: Any) -> RelayOptions:
        limits = changes.pop("limits", {})
        timeouts = {name: allowance() * value for name, value in limits.items() if name.endswith("_s")}
        limits = RelayLimits(**{"max_pending_per_origin": 256, **limits, **timeouts})
        return RelayOptions(
            **{"host": "127.0.0.1", "port": 0, "certificate": self.certificate} | changes, limits=limits
        )

    @asynccontextmanager
    async def relay(self, *parties: int, kind: type[Relay] = Relay, **options: Any) -> AsyncIterator[Relay]:
        """Run a relay; these parties are reached there, and nowhere else unless they had a relay before."""
        relay = kind(self.options(**options))
        await relay.start()
        for party in parties:
            before = [address for address in self.addresses[party] if address.relayed]
            self.addresses[party] = [*before, address_of(relay)]
        try:
            yield relay
        finally:
            await relay.close()
            for party in parties:
                self.addresses[party] = [Address("127.0.0.1", 1)]


def address_of(relay: Relay, host: str = "127.0.0.1") -> Address:
    return Address(host, relay.address[1], PATH)


async def registered(relay: Relay, parties: int) -> None:
    await until(lambda: len(relay.switchboard.registered) == parties)


class RelayLog(logging.Handler):
    """The events that relays log while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.events.append(json.loads(record.getMessage()))

    def __enter__(self) -> RelayLog:
        logger = logging.getLogger("inca.relay")
        self._level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        logger = logging.getLogger("inca.relay")
        logger.removeHandler(self)
        logger.setLevel(self._level)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for fields in self.events if fields["event"] == event]


async def quiet(seconds: float) -> None:
    await asyncio.sleep(seconds * allowance())
