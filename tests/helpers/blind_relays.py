"""Blind relays on this machine, parties that are reached through them, and parties by hand that lie to them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import trustme
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from helpers.pace import allowance
from helpers.transports import DEADLINE_S, TlsNetwork, TlsParty, until
from inca.network.addresses import Address
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.relay.messages import (
    Challenge,
    ClaimRefused,
    FromRelay,
    Kind,
    Registered,
    RelayClaim,
    RelayRefusal,
    claim_text,
    from_relay,
)
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

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def access(self, party: int) -> RelayAccess:
        own = self.parties[party]
        return RelayAccess(key=own.raw_key, sign=own.sign, names=self.names, ca=self.ca)

    def options(self, **changes: Any) -> RelayOptions:
        limits = {"max_pending_per_origin": 256, **changes.pop("limits", {})}
        limits |= {name: allowance() * value for name, value in limits.items() if name.endswith("_s")}
        usual: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "certificate": self.certificate}
        return RelayOptions(**usual | changes, limits=RelayLimits(**limits))

    def reached_at(self, relay: Address, *parties: int) -> None:
        """Say that these parties are reached at a relay, and at those before it, alone."""
        for party in parties:
            before = [address for address in self.addresses[party] if address.relayed]
            self.addresses[party] = [*before, relay]

    @asynccontextmanager
    async def relay(self, *parties: int, kind: type[Relay] = Relay, **options: Any) -> AsyncIterator[Relay]:
        """Run a relay where these parties are reached."""
        relay = kind(self.options(**options))
        await relay.start()
        self.reached_at(address_of(relay), *parties)
        try:
            yield relay
        finally:
            await relay.close()
            for party in parties:
                self.addresses[party] = [Address("127.0.0.1", 1)]

    @asynccontextmanager
    async def visitor(
        self, relay: Relay, host: str = "127.0.0.1", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Visitor]:
        """Connect to a relay by hand."""
        address = address_of(relay, host)
        socket = await connect(
            str(address), ssl=self.context, proxy=None, ping_interval=None, close_timeout=1, additional_headers=headers
        )
        try:
            challenge = from_relay(await socket.recv(decode=False))
            assert isinstance(challenge, Challenge)
            yield Visitor(socket, address, challenge.nonce)
        finally:
            socket.transport.abort()
            await socket.wait_closed()


class Visitor:
    """Somebody at a relay who says what they like."""

    def __init__(self, socket: ClientConnection, address: Address, nonce: bytes) -> None:
        self.socket, self.address, self.nonce = socket, address, nonce

    def claim(self, party: TlsParty, kind: Kind = "register", about: str = "") -> RelayClaim:
        """Return an honest claim."""
        about = about or secrets.token_hex(16)
        signature = party.sign(claim_text(kind, self.address.authority, self.nonce, about))
        return RelayClaim(kind, party.raw_key, self.address.authority, about, signature)

    async def say(self, message: object) -> None:
        await self.socket.send(msgspec.json.encode(message).decode())

    async def hear(self) -> FromRelay:
        return from_relay(await self.socket.recv(decode=False))

    async def ask(self, message: object) -> FromRelay:
        await self.say(message)
        return await self.hear()

    async def register(self, party: TlsParty) -> None:
        assert isinstance(await self.ask(self.claim(party)), Registered)

    async def refused(self, message: object) -> RelayRefusal:
        answer = await self.ask(message)
        assert isinstance(answer, ClaimRefused), answer
        await self.ended()
        return answer.reason

    async def ended(self) -> int | None:
        """Wait until the relay has closed the connection; return the code with which."""
        try:
            while True:
                await self.socket.recv()
        except ConnectionClosed as end:
            return None if end.rcvd is None else end.rcvd.code


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


class RelayProcess:
    """A relay in a process of its own, as `inca relay` runs it."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.address = process, Address("127.0.0.1", port, PATH)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def event(self, name: str) -> dict[str, Any]:
        """Wait for an event in its log."""
        assert self.process.stderr is not None
        async with asyncio.timeout(DEADLINE_S):
            while True:
                line = await self.process.stderr.readline()
                assert line, f"the relay ended before {name!r}"
                fields: dict[str, Any] = json.loads(line)
                if fields["event"] == name:
                    return fields

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_PROGRAM = """
import asyncio, json, logging, sys
from pathlib import Path
from inca.network.transport.relay.server import RelayLimits, RelayOptions, serve

options = json.loads(sys.argv[1])
allow = Path(options.pop("allow")) if "allow" in options else None
def read():
    return frozenset(allow.read_text().split())
limits = RelayLimits(**options.pop("limits", {}))
certificate = Path(options.pop("certificate"))
logging.basicConfig(level=logging.INFO, format="%(message)s")
logging.getLogger("asyncio").setLevel(logging.CRITICAL)
logging.getLogger("websockets").setLevel(logging.CRITICAL)
options = RelayOptions(certificate=certificate, limits=limits, allow=allow and read(), **options)
asyncio.run(serve(options, ready=lambda place: print(place[1], flush=True), reload=allow and read))
"""


@asynccontextmanager
async def relay_process(network: RelayNetwork, port: int = 0, **options: Any) -> AsyncIterator[RelayProcess]:
    """Run a relay in a process; `allow` is a file with fingerprints."""
    options = {"host": "127.0.0.1", "port": port, "certificate": str(network.certificate)} | options
    command = [sys.executable, "-c", _PROGRAM, json.dumps(options)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    assert process.stdout is not None and process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        yield RelayProcess(process, int(line))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
