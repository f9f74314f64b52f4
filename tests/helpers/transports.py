"""Transports over real TLS on the loopback interface, and parties by hand that say what they like to them."""

from __future__ import annotations

import asyncio
import datetime
import secrets
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from helpers.pace import allowance
from inca.network.addresses import Address
from inca.network.keys import fingerprint_of, raw_key, signed_text
from inca.network.transport.failures import Failure
from inca.network.transport.frames import BYE, HEADER, HELLO, Bye, Hello, Received
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Limits
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.transport import Transport

SESSION = bytes(range(32))
PATIENT = Limits(idle_timeout_s=30, max_violations=1000, frames_per_second=1e6, burst_frames=10**6)
DEADLINE_S = 60.0  # for what happens within milliseconds on an idle machine


class TlsParty:
    """A certificate with its key, and the contexts that go with it."""

    def __init__(self, folder: Path, name: str) -> None:
        key, now = Ed25519PrivateKey.generate(), datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        certificate = builder.not_valid_after(now + datetime.timedelta(days=1)).sign(key, None)
        self.der, self.key = certificate.public_bytes(Encoding.DER), key
        self.file = folder / f"{name}.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(signed_text(message))

    @property
    def raw_key(self) -> bytes:
        return raw_key(self.key.public_key())

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.raw_key)

    def context(self, side: int, trusted: Sequence[TlsParty], show: bool = True) -> ssl.SSLContext:
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=b"".join(party.der for party in trusted))
        if side == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0
        if show:
            context.load_cert_chain(self.file)
        return context


class RecordedEvents(TransportEvents):
    """Keeps all that a transport tells."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, Received]] = []
        self.unsent_tokens: list[object] = []
        self.doubtful_tokens: list[object] = []
        self.downs: list[tuple[int, Failure]] = []
        self.losses: list[tuple[int, Failure]] = []
        self.ups: list[int] = []
        self.violations: list[tuple[int | None, Failure]] = []
        self.log: list[tuple[str, dict[str, object]]] = []
        self.registrations: list[tuple[Address, Failure | None]] = []
        self.contests: list[Address] = []
        self.reply: Callable[[int, Any], None] = lambda peer, frame: None

    def received(self, peer: int, frame: Received) -> None:
        self.frames.append((peer, frame))
        self.reply(peer, frame)

    def unsent(self, peer: int, token: object) -> None:
        self.unsent_tokens.append(token)

    def in_doubt(self, peer: int, token: object) -> None:
        self.doubtful_tokens.append(token)

    def up(self, peer: int) -> None:
        self.ups.append(peer)

    def lost(self, peer: int, failure: Failure) -> None:
        self.losses.append((peer, failure))

    def down(self, peer: int, failure: Failure) -> None:
        self.downs.append((peer, failure))

    def violated(self, peer: int | None, address: str, failure: Failure, violations: int) -> None:
        self.violations.append((peer, failure))

    def registered(self, relay: Address) -> None:
        self.registrations.append((relay, None))

    def unregistered(self, relay: Address, failure: Failure) -> None:
        self.registrations.append((relay, failure))

    def contested(self, relay: Address) -> None:
        self.contests.append(relay)

    def log_event(self, event: str, **fields: object) -> None:
        self.log.append((event, fields))

    async def reach(self, count: int) -> None:
        await until(lambda: len(self.frames) >= count)

    @property
    def complaints(self) -> list[str]:
        """What was said about those who broke the rules."""
        return [failure.detail for _, failure in self.violations]

    @property
    def logged(self) -> list[str]:
        """The names of the events in the log."""
        return [name for name, _ in self.log]


class TlsNetwork:
    """Five parties and a stranger, and transports for them on ports of the system's choice."""

    def __init__(self, folder: Path) -> None:
        self.parties = [TlsParty(folder, f"party{i}") for i in range(5)]
        self.stranger = TlsParty(folder, "stranger")
        self.addresses: list[list[Address]] = [[Address("127.0.0.1", 1)]] * 5

    def move(self, party: int, place: tuple[str, int]) -> None:
        """Say where a party is reached."""
        self.addresses[party] = [Address(*place)]

    def identify(self, der: bytes) -> int | None:
        return next((i for i, party in enumerate(self.parties) if party.der == der), None)

    def access(self, party: int) -> RelayAccess | None:
        """Return who a party is at relays."""
        return None

    def client(self, party: int) -> ssl.SSLContext:
        return self.parties[party].context(ssl.PROTOCOL_TLS_CLIENT, self.parties)

    def server(self, party: int) -> ssl.SSLContext:
        return self.parties[party].context(ssl.PROTOCOL_TLS_SERVER, self.parties)

    @asynccontextmanager
    async def node(
        self,
        me: int,
        clock: Callable[[], float] = time.time,
        session: bytes = SESSION,
        server: ssl.SSLContext | None = None,
        **limits: Any,
    ) -> AsyncIterator[tuple[Transport, RecordedEvents]]:
        events = RecordedEvents()
        limits = {name: allowance() * limit if name.endswith("_timeout_s") else limit for name, limit in limits.items()}
        config = TransportConfig(
            me=me,
            addresses=self.addresses,
            session=session,
            server=server or self.server(me),
            client=self.client(me),
            identify=self.identify,
            limits=replace(PATIENT, **limits),
            clock=clock,
            relay=self.access(me),
        )
        transport = Transport(config, events)
        await transport.start(port=0)
        if not self.addresses[me][0].relayed:
            self.addresses[me] = [Address(*transport.address), *self.addresses[me][1:]]
        try:
            yield transport, events
        finally:
            async with asyncio.timeout(10.0):  # it takes two seconds at the very most
                await transport.close()


def run(work: Coroutine[object, object, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(3 * DEADLINE_S):
            await work
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that comes soon, however busy the machine is."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.005)


def packed(kind: int, body: bytes = b"") -> bytes:
    return HEADER.pack(len(body), kind) + body


class Raw:
    """A party by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.nonce = reader, writer, secrets.token_bytes(16)

    async def frame(self) -> tuple[int, bytes]:
        length, kind = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        return kind, await self.reader.readexactly(length)

    async def bye(self) -> Bye:
        kind, body = await self.frame()
        assert kind == BYE
        return Bye(body[0])

    def hello(
        self, me: int, incarnation: bytes, serial: int = 1, echo: bytes = bytes(16), session: bytes = SESSION
    ) -> None:
        self.writer.write(packed(HELLO, Hello(session, me, incarnation, serial, self.nonce, echo).encode()))

    async def greet(self, me: int, incarnation: bytes, serial: int = 1, session: bytes = SESSION) -> None:
        self.hello(me, incarnation, serial, session=session)
        kind, body = await self.frame()
        assert kind == HELLO
        answer = Hello.decode(body)
        assert answer.echo == self.nonce
        self.hello(me, incarnation, serial + 1, answer.nonce, session)

    async def ended(self) -> bytes:
        with suppress(ConnectionError, ssl.SSLError):
            return await self.reader.read()
        return b""


@asynccontextmanager
async def raw(address: tuple[str, int], context: ssl.SSLContext | None) -> AsyncIterator[Raw]:
    name = "party" if context else None
    reader, writer = await asyncio.open_connection(*address, ssl=context, server_hostname=name)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(
    network: TlsNetwork, party: int, talk: Callable[[Raw], Awaitable[None]], context: ssl.SSLContext | None
) -> AsyncIterator[None]:
    """Stand in for a party."""
    held = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(Raw(reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    network.move(party, server.sockets[0].getsockname()[:2])
    try:
        yield
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.02)


@contextmanager
def closed_port(network: TlsNetwork, party: int) -> Iterator[None]:
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        network.move(party, held.getsockname()[:2])
    yield


@asynccontextmanager
async def closed_listener(network: TlsNetwork, party: int) -> AsyncIterator[None]:
    """Accept connections in the kernel and never say anything."""
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        network.move(party, held.getsockname()[:2])
        yield


@contextmanager
def dropping_port(network: TlsNetwork, party: int) -> Iterator[None]:
    """Drop what comes to a party's port, as firewalls do: the kernel's queue of connections there is full."""
    with ExitStack() as held:
        full = held.enter_context(closing(socket.socket()))
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = held.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        network.move(party, full.getsockname())
        yield


def held_for_one_peer(limits: Limits) -> int:
    """Return how many bytes one peer can make a transport hold, whatever it does.

    Two connections, of which one is replaced by the other, may each have a frame of which a byte is missing, and hold
    less than a mebibyte of what TLS has not decrypted yet, or encrypted and not sent. One frame is being read. And
    small messages wait for a peer that asks and does not read; what waits by reference is held by whoever sends it in
    any case.
    """
    return 2 * (limits.max_frame_bytes + 2**20) + limits.max_frame_bytes + limits.max_queue_bytes
