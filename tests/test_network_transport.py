from __future__ import annotations

import asyncio
import datetime
import os
import random
import secrets
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from inca.network.framing import BYE, DATA, HEADER, HELLO, PING, Bucket, Bye, Fault, Hello, Limits, Strikes
from inca.network.listener import Unreachable
from inca.network.transport import Transport
from inca.validation import InputError

SESSION = bytes(range(32))
BASE = Limits(handshake=1, hello=0.6, idle=30, stall=0.6, penalty=0.8, strikes=1000, frames_per_second=1e6, burst=10**6)


class Party:
    """A certificate with its key, and the contexts that go with it."""

    def __init__(self, folder: Path, name: str) -> None:
        key, now = Ed25519PrivateKey.generate(), datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        certificate = builder.not_valid_after(now + datetime.timedelta(days=1)).sign(key, None)
        self.der = certificate.public_bytes(Encoding.DER)
        self.file = folder / f"{name}.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))

    def context(self, side: int, trusted: Sequence[Party], show: bool = True) -> ssl.SSLContext:
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


class Log:
    """A listener that keeps all it is told."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.gave_up: list[object] = []
        self.downs: list[tuple[int, str]] = []
        self.ups: list[int] = []
        self.notes: list[tuple[str, dict[str, object]]] = []
        self.reply: Callable[[int, bytes], None] = lambda peer, frame: None

    def received(self, peer: int, frame: bytes) -> None:
        self.frames.append((peer, frame))
        self.reply(peer, frame)

    def unsent(self, peer: int, token: object) -> None:
        self.gave_up.append(token)

    def down(self, peer: int, reason: str) -> None:
        self.downs.append((peer, reason))

    def up(self, peer: int) -> None:
        self.ups.append(peer)

    def note(self, event: str, **fields: object) -> None:
        self.notes.append((event, fields))

    async def reach(self, count: int, seconds: float = 5.0) -> None:
        await until(lambda: len(self.frames) >= count, seconds)

    def reasons(self, event: str = "fault") -> list[str]:
        return [str(fields["reason"]) for name, fields in self.notes if name == event]


class World:
    """Five parties and a stranger, and transports for them on ports of the system's choice."""

    def __init__(self, folder: Path) -> None:
        self.parties = [Party(folder, f"party{i}") for i in range(5)]
        self.stranger = Party(folder, "stranger")
        self.addresses: list[tuple[str, int]] = [("127.0.0.1", 0)] * 5

    def identify(self, der: bytes) -> int | None:
        return next((i for i, party in enumerate(self.parties) if party.der == der), None)

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
    ) -> AsyncIterator[tuple[Transport, Log]]:
        log = Log()
        allowed = replace(BASE, **limits)
        contexts = {"server": server or self.server(me), "client": self.client(me)}
        addresses, identify = self.addresses, self.identify
        node = Transport(
            me=me, addresses=addresses, session=session, identify=identify, limits=allowed, listener=log, clock=clock,
            **contexts
        )  # fmt: skip
        await node.start(port=0)
        self.addresses[me] = node.address
        try:
            yield node, log
        finally:
            began = time.perf_counter()
            await node.close()
            assert time.perf_counter() - began < 2.5


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


def run(work: Coroutine[object, object, None], seconds: float = 10.0) -> None:
    async def main() -> None:
        async with asyncio.timeout(seconds):
            await work
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(main())


async def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
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

    def hello(self, me: int, life: bytes, serial: int = 1, echo: bytes = bytes(16), session: bytes = SESSION) -> None:
        self.writer.write(packed(HELLO, Hello(session, me, life, serial, self.nonce, echo).encode()))

    async def greet(self, me: int, life: bytes, serial: int = 1) -> None:
        self.hello(me, life, serial)
        kind, body = await self.frame()
        assert kind == HELLO
        answer = Hello.decode(body)
        assert answer.echo == self.nonce
        self.hello(me, life, serial + 1, answer.nonce)

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
    world: World, party: int, talk: Callable[[Raw], Awaitable[None]], context: ssl.SSLContext | None
) -> AsyncIterator[None]:
    """Stand in for a party."""
    held = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(Raw(reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    world.addresses[party] = server.sockets[0].getsockname()[:2]
    try:
        yield
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.02)


@contextmanager
def closed_port(world: World, party: int) -> Iterator[None]:
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        world.addresses[party] = held.getsockname()[:2]
    yield


def test_frames_arrive_in_order_and_intact(world: World) -> None:
    sizes = [0, 1, 5, 16379, 16384, 80_000, 262_144, 800_000, 3_000_000, 7]
    frames = [random.Random(size).randbytes(size) for size in sizes] + [b"%d" % i for i in range(3000)]

    async def main() -> None:
        async with world.node(0) as (a, log_a), world.node(1) as (b, log_b):
            for frame in frames:
                a.send(1, frame)
            await log_b.reach(len(frames))
            for frame in frames:
                b.send(0, frame)
            await log_a.reach(len(frames))
            assert [frame for _, frame in log_b.frames] == frames == [frame for _, frame in log_a.frames]
            assert a.connected == {1}
            assert log_a.ups == [1] and log_b.ups == [0] and not log_a.gave_up and not log_a.downs

    run(main())


def test_five_parties_all_at_once(world: World) -> None:
    async def main() -> None:
        async with (
            world.node(0) as n0, world.node(1) as n1, world.node(2) as n2, world.node(3) as n3, world.node(4) as n4
        ):  # fmt: skip
            nodes = [n0, n1, n2, n3, n4]
            for number in range(40):
                for i, (node, _) in enumerate(nodes):
                    for j in range(5):
                        if j != i:
                            node.send(j, struct.pack(">HH", i, number) + bytes(2000 * (number % 7)))
                if number % 10 == 3:
                    await asyncio.sleep(0.003)
            await until(lambda: all(len(log.frames) == 160 for _, log in nodes))
            for i, (node, log) in enumerate(nodes):
                assert node.connected == set(range(5)) - {i}
                assert not log.gave_up and not log.downs and not log.reasons()
                for j in range(5):
                    seen = [struct.unpack_from(">HH", frame) for peer, frame in log.frames if peer == j]
                    assert seen == ([] if i == j else [(j, number) for number in range(40)])

    run(main())


def test_simultaneous_dials_leave_one_connection(world: World) -> None:
    async def main() -> None:
        for attempt in range(15):
            async with world.node(0) as (a, log_a), world.node(1) as (b, log_b):
                a.send(1, b"first")
                if attempt % 5:
                    await asyncio.sleep(0.001 * (attempt % 5))
                b.send(0, b"first")
                await log_a.reach(1)
                await log_b.reach(1)
                a.send(1, b"second")
                b.send(0, b"second")
                await log_a.reach(2)
                await log_b.reach(2)
                assert [frame for _, frame in log_b.frames] == [b"first", b"second"]
                assert not log_a.gave_up + log_b.gave_up + log_a.downs + log_b.downs
                assert log_a.ups == [1] and log_b.ups == [0]
                assert not log_a.reasons("fault") + log_b.reasons("fault") + log_a.reasons("lost")

    run(main())


def test_refused_port_is_down_and_unsent(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log):
            with closed_port(world, 1):
                a.send(1, b"x", "one")
                a.send(1, b"y", "two")
                await until(lambda: log.downs)
                assert log.gave_up == ["one", "two"]
                assert "refused" in log.downs[0][1]
                began = time.perf_counter()
                for _ in range(3):
                    a.send(1, b"z", "later")
                await until(lambda: len(log.downs) == 2)
                assert time.perf_counter() - began > 0.03  # the back-off
                assert log.gave_up == ["one", "two", *["later"] * 3]
                with pytest.raises(Unreachable, match="refused"):
                    await a.measure(1)
            async with world.node(1) as (_, other):
                a.send(1, b"here")
                await other.reach(1)

    run(main())


def test_the_oldest_frames_are_given_up_beyond_the_queue(world: World) -> None:
    async def main() -> None:
        async with world.node(0, frame=1000, queue=3500) as (a, log), closed_listener(world, 1):
            for number in range(5):
                a.send(1, bytes(1000), number)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert log.gave_up == [0, 1]
            with pytest.raises(InputError, match="length of frame"):
                a.send(1, bytes(1001))
            with pytest.raises(InputError, match="another party"):
                a.send(0, b"")
            with pytest.raises(InputError, match="peer"):
                a.send(5, b"")
        assert log.gave_up == [0, 1, 2, 3, 4]  # certain at the end too

    run(main())


@asynccontextmanager
async def closed_listener(world: World, party: int) -> AsyncIterator[None]:
    """Accept connections in the kernel and never say anything."""
    with closing(socket.create_server(("127.0.0.1", 0))) as held:
        world.addresses[party] = held.getsockname()[:2]
        yield


@pytest.mark.parametrize("seed", range(6))
def test_never_unsent_after_a_byte_left(world: World, seed: int) -> None:
    """The other side dies in the middle; whatever it saw a part of is in doubt, never `unsent`."""
    chance = random.Random(seed)
    seen: set[int] = set()

    async def main() -> None:
        async with world.node(0) as (a, log):
            stop = chance.randrange(1, 8_000_000)

            async def read_some(other: Raw) -> None:
                server.close()
                _, body = await other.frame()
                other.hello(1, bytes([1]) * 16, 1, Hello.decode(body).nonce)
                got = 0
                await other.frame()
                while got < stop:
                    length, _ = HEADER.unpack(await other.reader.readexactly(HEADER.size))
                    seen.add(struct.unpack(">I", await other.reader.readexactly(4))[0])
                    got += length
                    await other.reader.readexactly(length - 4)
                other.writer.transport.abort()

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await read_some(Raw(reader, writer))

            server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=world.server(1))
            world.addresses[1] = server.sockets[0].getsockname()[:2]
            for number in range(200):
                a.send(1, struct.pack(">I", number) + bytes(80_000), number)
            await until(lambda: log.downs)
            assert seen and log.gave_up
            assert not seen & set(log.gave_up)
            assert min(number for number in log.gave_up if isinstance(number, int)) > max(seen)
            assert sorted(log.gave_up, key=str) == sorted(set(log.gave_up), key=str)

    run(main())


def test_queued_frames_go_out_on_the_next_connection(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log_a):
            async with world.node(1) as (b, log_b):
                a.send(1, b"x")
                await log_b.reach(1)
                port = b.address[1]
            await until(lambda: not a.connected)
            a.send(1, b"nobody there", "lost")
            await until(lambda: log_a.downs)
            assert log_a.gave_up == ["lost"]
            async with world.node(1) as (_, log_b):
                assert world.addresses[1][1] != port
                a.send(1, b"again")
                await log_b.reach(1)
                assert log_b.frames == [(0, b"again")] and log_a.ups == [1, 1]

    run(main())


def test_the_latest_life_wins_and_the_old_one_is_mute(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as old, raw(a.address, context) as new:
                await old.greet(1, b"o" * 16)
                old.writer.write(packed(DATA, b"old"))
                await log.reach(1)
                await new.greet(1, b"n" * 16)
                new.writer.write(packed(DATA, b"new"))
                old.writer.write(packed(DATA, b"late"))
                await log.reach(2)
                await old.ended()
                await asyncio.sleep(0.05)
                assert log.frames == [(1, b"old"), (1, b"new")]
                async with raw(a.address, context) as again:  # two processes with one key: no turning back
                    await again.greet(1, b"o" * 16, 5)
                    assert await again.bye() is Bye.LIFE
                assert a.connected == {1}
            await until(lambda: not a.connected)

    run(main())


def test_a_hello_of_a_dead_process_does_not_count(world: World) -> None:
    """It lay in the network when a later life arrived: nobody can confirm it."""

    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as new, raw(a.address, context) as dead:
                await new.greet(1, b"n" * 16)
                dead.hello(1, b"d" * 16)
                dead.hello(1, b"d" * 16, 2, b"a guessed nonce!")
                dead.writer.write(packed(DATA, b"from the grave"))
                await dead.ended()
                new.writer.write(packed(DATA, b"alive"))
                await log.reach(1)
                assert log.frames == [(1, b"alive")] and a.connected == {1}

    run(main())


def test_an_answer_to_a_process_that_died_does_not_count(world: World) -> None:
    """Its confirmation arrives after a later life is there."""

    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as early, raw(a.address, context) as new:
                early.hello(1, b"e" * 16)
                answer = Hello.decode((await early.frame())[1])
                await new.greet(1, b"n" * 16)
                await until(lambda: a.connected)
                early.hello(1, b"e" * 16, 2, answer.nonce)
                early.writer.write(packed(DATA, b"too late"))
                assert await early.bye() is Bye.LIFE
                new.writer.write(packed(DATA, b"alive"))
                await log.reach(1)
                assert log.frames == [(1, b"alive")] and log.ups == [1]

    run(main())


def test_a_second_connection_of_the_same_life_replaces_the_first(world: World) -> None:
    async def main() -> None:
        async with world.node(2) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as first, raw(a.address, context) as second:
                await first.greet(1, b"l" * 16, 5)
                await until(lambda: a.connected)
                first.writer.write(packed(DATA, b"before"))
                async with raw(a.address, context) as stale:
                    stale.hello(1, b"l" * 16, 2)
                    assert await stale.bye() is Bye.SIMULTANEOUS
                second.hello(1, b"l" * 16, 8)  # said by somebody who has lost the first
                assert await first.bye() is Bye.REPLACED
                assert not a.connected
                answer = Hello.decode((await second.frame())[1])
                second.hello(1, b"l" * 16, 9, answer.nonce)
                first.writer.write(packed(DATA, b"on its way"))
                await log.reach(2)
                a.send(1, b"answer")
                assert await second.frame() == (DATA, b"answer")

    run(main())


def test_silent_peers(world: World) -> None:
    async def mute(other: Raw) -> None:
        await other.reader.read()

    async def main() -> None:
        async with world.node(0) as (a, log):
            async with closed_listener(world, 1):  # accepts, says nothing
                a.send(1, b"x", "unheard")
                await until(lambda: log.downs)
                assert "timed out" in log.downs[0][1] and "TLS" in log.downs[0][1] and log.gave_up == ["unheard"]
            async with serving(world, 2, mute, world.server(2)):  # agrees on TLS, says no hello
                a.send(2, b"x", "unsaid")
                await until(lambda: len(log.downs) == 2)
                assert "hello" in log.downs[1][1] and log.gave_up == ["unheard", "unsaid"]
            async with raw(a.address, None) as tcp, raw(a.address, world.client(3)) as tls:
                assert await tcp.ended() == b""
                assert (await tls.bye()) is Bye.PROTOCOL
            assert any("TLS" in reason for reason in log.reasons())

    run(main())


def test_wrong_certificates(world: World) -> None:
    async def nothing(other: Raw) -> None:
        await other.reader.read()

    async def main() -> None:
        async with world.node(0) as (a, log):
            stranger = world.stranger.context(ssl.PROTOCOL_TLS_SERVER, [*world.parties, world.stranger])
            async with serving(world, 1, nothing, stranger):
                a.send(1, b"secret", 1)
                await until(lambda: log.downs)
                assert "wrong certificate" in log.downs[-1][1]
            async with serving(world, 2, nothing, world.server(3)):  # a party, but not that one
                with pytest.raises(Unreachable, match=r"wrong certificate.* party 3"):
                    await a.measure(2)
            # The other way round: nobody without a certificate of the roster gets anywhere.
            bare = world.parties[1].context(ssl.PROTOCOL_TLS_CLIENT, world.parties, show=False)
            outside = world.stranger.context(ssl.PROTOCOL_TLS_CLIENT, world.parties)
            for context, words in ((bare, "no certificate"), (outside, "wrong certificate")):
                async with raw(a.address, context) as other:
                    other.hello(1, b"l" * 16)
                    assert await other.ended() == b""
                assert words in log.reasons()[-1]
            async with raw(a.address, world.client(0)) as other:
                await other.ended()
                assert "our own certificate" in log.reasons()[-1]
            assert log.gave_up == [1] and not a.connected and not log.frames

    run(main())


def test_a_peer_that_refuses_our_certificate(world: World) -> None:
    others = world.parties[1].context(ssl.PROTOCOL_TLS_SERVER, world.parties[1:])

    async def main() -> None:
        async with world.node(0) as (a, _), world.node(1, server=others) as (_, log):
            with pytest.raises(Unreachable, match="refuses us in TLS"):
                await a.measure(1)
            assert "wrong certificate" in log.reasons()[0]

    run(main())


def test_other_session_and_impersonation(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log_a), world.node(1, session=bytes(32)) as (_, log_b):
            with pytest.raises(Unreachable, match="session"):
                await a.measure(1)
            a.send(1, b"x", "token")
            await until(lambda: log_a.gave_up)
            assert log_a.gave_up == ["token"] and "session" in log_a.downs[-1][1]
            assert "is in another session" in log_b.reasons() and not log_b.frames
            async with raw(a.address, world.client(2)) as liar:
                liar.hello(3, b"l" * 16)
                liar.writer.write(packed(DATA, b"from 3"))
                assert await liar.bye() is Bye.IDENTITY
            fields = [fields for name, fields in log_a.notes if name == "fault"][-1]
            assert fields["peer"] == 2 and fields["reason"] == "claims to be party 3"
            async with raw(a.address, world.client(2)) as other:
                other.writer.write(packed(HELLO, b"inca/2\0\0" + bytes(40)))
                assert await other.bye() is Bye.VERSION
            assert not log_a.frames and not a.connected

    run(main())


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (packed(DATA, b"x"), "before hello"),
        (packed(PING, bytes(16)), "before hello"),
        (packed(99), "unknown kind 99"),
        (packed(HELLO, bytes(300)), "300 bytes"),
        (packed(HELLO, b"inca/1\0\0"), "malformed"),
    ],
)
def test_errors_before_hello(world: World, sent: bytes, words: str) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log), raw(a.address, world.client(1)) as other:
            other.writer.write(sent)
            assert await other.bye() is Bye.PROTOCOL
            assert words in log.reasons()[0] and not log.frames

    run(main())


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (HEADER.pack(1001, DATA), "1001 bytes"),
        (HEADER.pack(2**32 - 1, DATA), "bytes"),
        (packed(0, b""), "unknown kind 0"),
        (packed(PING, bytes(3)), "3 bytes"),
        (packed(HELLO, Hello(SESSION, 1, b"l" * 16, 3, bytes(16), bytes(16)).encode()), "answers none"),
    ],
)
def test_errors_after_hello_lead_to_a_penalty(world: World, sent: bytes, words: str) -> None:
    async def main() -> None:
        async with world.node(0, frame=1000, strikes=2) as (a, log), world.node(3) as (_, friend):
            for _ in range(2):
                async with raw(a.address, world.client(1)) as other:
                    await other.greet(1, secrets.token_bytes(16))
                    other.writer.write(packed(DATA, b"good") + sent + packed(DATA, b"after"))
                    assert await other.bye() is Bye.PROTOCOL
            assert words in log.reasons()[0]
            assert log.frames == [(1, b"good")] * 2
            async with raw(a.address, world.client(1)) as other:
                assert await other.bye() is Bye.PENALTY
            a.send(1, b"no", "refused")
            a.send(3, b"yes")
            await until(lambda: log.downs and friend.frames)
            assert "too many errors" in log.downs[0][1] and log.gave_up == ["refused"]
            await asyncio.sleep(0.8)
            async with raw(a.address, world.client(1)) as other:
                await other.greet(1, b"r" * 16)
                await until(lambda: 1 in a.connected)

    run(main())


def test_noise_never_gets_through(world: World) -> None:
    """Random bytes before, in and after the handshake; an honest peer notices nothing."""
    chance = random.Random(7)

    async def main() -> None:
        async with world.node(0) as (a, log), world.node(1) as (b, log_b):
            log_b.reply = b.send
            context = world.client(2)
            for case in range(260):
                a.send(1, b"%d" % case)
                async with raw(a.address, None) as other:
                    noise = chance.randbytes(chance.randrange(1, 600))
                    if case % 3 == 0:  # looks like a record of a handshake
                        noise = b"\x16\x03\x01" + struct.pack(">H", len(noise)) + noise
                    other.writer.write(noise)
                    if case % 20:
                        other.writer.write_eof()
                        await other.ended()
            for case in range(140):
                a.send(1, b"%d" % (260 + case))
                async with raw(a.address, context) as other:
                    if case % 2:
                        await other.greet(2, secrets.token_bytes(16))
                    noise = chance.randbytes(chance.randrange(1, 300))
                    if case % 5 == 0:  # past TLS, into the ciphertext
                        os.write(other.writer.get_extra_info("socket").fileno(), noise)
                    other.writer.write(HEADER.pack(len(noise), chance.randrange(256)) + noise if case % 3 else noise)
                    other.writer.write(chance.randbytes(400))
                    await other.ended()
            await log.reach(400)
            assert [frame for peer, frame in log.frames if peer == 1] == [b"%d" % case for case in range(400)]
            assert a.connected == {1}
            assert len(log.reasons()) > 250

    run(main(), 25)


def test_a_flood_is_slowed_down_and_others_are_not(world: World) -> None:
    async def main() -> None:
        slow: dict[str, Any] = {"frames_per_second": 2000.0, "burst": 1000}
        async with world.node(0, **slow) as (a, log), world.node(1) as (b, log_b), world.node(2) as (c, _):
            log.reply = lambda peer, frame: a.send(peer, frame) if peer == 1 else None
            for number in range(100_000):
                c.send(0, b"%d" % number)
            began = time.perf_counter()
            trips = []
            await asyncio.sleep(0.2)
            for number in range(100):
                start = time.perf_counter()
                b.send(0, b"ping")
                await log_b.reach(number + 1)
                trips.append(time.perf_counter() - start)
            taken = time.perf_counter() - began
            flooded = Counter(peer for peer, _ in log.frames)[2]
            assert flooded < 1000 + 2000 * taken + 300
            assert sorted(trips)[90] < 0.1
            assert ("throttled", 2) in [(name, fields.get("peer")) for name, fields in log.notes]
            assert not log.reasons() and 2 in a.connected

    run(main())


def test_a_flood_without_end_is_closed(world: World) -> None:
    async def main() -> None:
        limits: dict[str, Any] = {"frames_per_second": 1000.0, "burst": 100, "idle": 0.5}
        async with world.node(0, **limits) as (_, log), world.node(2) as (c, _):
            for number in range(100_000):
                c.send(0, b"%d" % number)
            await until(log.reasons)
            assert "too much" in log.reasons()[0]

    run(main())


def test_a_peer_that_does_not_read_is_closed(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log), world.node(1) as (b, log_b):
            context = world.client(2)
            async with raw(a.address, context) as other:
                await other.greet(2, b"l" * 16)
                await until(lambda: a.connected)
                transport = other.writer.transport
                assert isinstance(transport, asyncio.Transport)
                transport.pause_reading()
                for number in range(400):
                    a.send(2, bytes(80_000), number)
                for number in range(50):
                    a.send(1, b"%d" % number)
                await log_b.reach(50)
                await until(log.reasons)
                assert "read nothing" in log.reasons()[0]
                assert 1 in a.connected and b.connected == {0}

    run(main())


def test_two_thousand_connections_from_one_address(world: World) -> None:
    async def main() -> None:
        async with world.node(0, per_address=20, unknown=40) as (a, log), world.node(1) as (b, log_b):
            log.reply = a.send
            b.send(0, b"0")
            await log_b.reach(1)
            sockets, trips = [], []
            for number in range(1, 201):
                for _ in range(10):
                    one = socket.socket()
                    one.setblocking(False)
                    one.connect_ex(a.address)
                    sockets.append(one)
                start = time.perf_counter()
                b.send(0, b"%d" % number)
                await log_b.reach(number + 1)
                trips.append(time.perf_counter() - start)
            try:
                assert sorted(trips)[190] < 0.1
                assert len(a._connections._links) <= 21
                await until(lambda: "refused" in [name for name, _ in log.notes])
                refused = sum(int(str(fields["times"])) for name, fields in log.notes if name == "refused")
                assert refused > 500
            finally:
                for one in sockets:
                    one.close()

    run(main())


def test_an_address_that_errs_again_and_again_is_refused(world: World) -> None:
    async def main() -> None:
        async with world.node(0, strikes=3) as (a, log):
            for _ in range(6):
                async with raw(a.address, None) as other:
                    other.writer.write(b"GET / HTTP/1.1\r\n\r\n")
                    await other.ended()
            assert len(log.reasons()) == 3
            await asyncio.sleep(0.85)
            async with raw(a.address, world.client(1)) as friend:
                await friend.greet(1, b"l" * 16)
                await until(lambda: a.connected)

    run(main())


def test_idle_connections_close_and_open_again(world: World) -> None:
    async def main() -> None:
        async with world.node(0, idle=0.3) as (a, log), world.node(1) as (b, other):
            a.send(1, b"x")
            await other.reach(1)
            await until(lambda: not a.connected and not b.connected)
            assert "nothing was heard" in log.reasons("lost")[0]
            a.send(1, b"y")
            await other.reach(2)
            for _ in range(10):  # one side speaks, the other listens: that is no silence
                await asyncio.sleep(0.08)
                a.send(1, b"z")
            assert a.connected and log.ups == [1, 1]
            assert not log.downs and not log.gave_up and not log.reasons() and not other.reasons()

    run(main())


def test_measure(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, _), world.node(1, clock=lambda: time.time() + 12.5) as (b, _):
            found = await a.measure(1, 20)
            assert 0 < found.round_trip < 1
            assert abs(found.offset - 12.5) <= found.round_trip / 2 + 1e-6
            assert abs((await b.measure(0)).offset + 12.5) < 0.5

    run(main())


def test_measuring_someone_who_stops_answering(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, _):
            async with raw(a.address, world.client(1)) as other:
                await other.greet(1, b"l" * 16)
                await until(lambda: a.connected)
                with pytest.raises(Unreachable, match="did not answer a ping"):
                    await a.measure(1)
                waiting = asyncio.create_task(a.measure(1))
                await asyncio.sleep(0.05)
            with pytest.raises(Unreachable):
                await waiting
            async with raw(a.address, world.client(1)) as other:
                await other.greet(1, b"m" * 16)
                await until(lambda: a.connected)
                waiting = asyncio.create_task(a.measure(1))
                await asyncio.sleep(0.01)
                await a.close()
                with pytest.raises(Unreachable, match="closed"):
                    await waiting
        with pytest.raises(Unreachable, match="closed"):
            await a.measure(1)

    run(main())


def test_no_file_descriptors_left(world: World) -> None:
    resource = pytest.importorskip("resource")

    async def main() -> None:
        async with world.node(0) as (a, log), world.node(1) as (b, other):
            old = resource.getrlimit(resource.RLIMIT_NOFILE)
            ready = [socket.socket() for _ in range(3)]
            used = max(each.fileno() for each in ready) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, old[1]))
            held = []
            try:
                with suppress(OSError):
                    while True:
                        held.append(socket.socket())
                for each in ready:
                    each.setblocking(False)
                    each.connect_ex(a.address)
                await until(lambda: "accepting failed" in [name for name, _ in log.notes])
                assert "our own machine" in log.reasons("accepting failed")[0]
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, old)
                for each in [*ready, *held]:
                    each.close()
            b.send(0, b"x")
            await log.reach(1)
            assert not other.downs

    run(main())


def test_close_in_the_middle_of_everything(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log), world.node(1) as (b, _), closed_listener(world, 2):
            for number in range(100):
                a.send(1, bytes(80_000), number)
                a.send(2, bytes(80_000), number)
                b.send(0, bytes(80_000), number)
            await asyncio.sleep(0.01)
        assert len(log.gave_up) >= 100
        a.send(1, b"too late", "late")
        await asyncio.sleep(0)
        assert log.gave_up[-1] == "late"

    run(main())


def test_restarts_at_random(world: World) -> None:
    """What is unsent never arrives, nothing arrives twice or out of order, and no life speaks after a later one."""
    chance = random.Random(3)

    async def main() -> None:
        arrived: dict[int, list[tuple[int, int, int]]] = {}
        unsent: set[object] = set()
        sent = [0]

        async def live(me: int, end: float) -> None:
            for life in range(100):
                if time.perf_counter() > end:
                    return
                async with world.node(me, idle=0.2) as (node, log):
                    until_ = min(time.perf_counter() + chance.uniform(0.05, 0.8), end + 0.3)
                    while time.perf_counter() < until_:
                        for _ in range(chance.randrange(4)):
                            peer = chance.choice([each for each in range(4) if each != me])
                            sent[0] += 1
                            frame = struct.pack(">III", me, life, sent[0]) + bytes(chance.choice([0, 100, 50_000]))
                            node.send(peer, frame, sent[0])
                        await asyncio.sleep(chance.choice([0, 0.001, 0.02]))
                assert not log.reasons(), log.reasons()
                unsent.update(log.gave_up)
                arrived[100 * me + life] = [struct.unpack_from(">III", frame) for _, frame in log.frames]

        await asyncio.gather(*(live(me, time.perf_counter() + 2.5) for me in range(4)))
        numbers = [number for frames in arrived.values() for _, _, number in frames]
        assert len(numbers) == len(set(numbers)) > sent[0] / 3
        assert unsent and not unsent & set(numbers)
        for frames in arrived.values():
            for sender in range(4):
                mine = [(life, number) for who, life, number in frames if who == sender]
                assert mine == sorted(mine)

    run(main(), 15)


def test_bucket_and_strikes() -> None:
    limits = Limits(frames_per_second=10, burst=5, bytes_per_second=100, burst_bytes=1000, strikes=2, penalty=3)
    bucket = Bucket(limits, 0.0)
    assert bucket.take(5, 0, 0.0) == 0.0
    assert bucket.take(2, 0, 0.0) == pytest.approx(0.2) and bucket.over == 0.0
    assert bucket.take(0, 0, 1.0) == 0.0 and bucket.over is None
    assert bucket.take(0, 1500, 1.0) == pytest.approx(5.0)
    strikes = Strikes(limits, most=2)
    assert strikes.add("a", 0.0) == 1 and strikes.refused("a", 0.0) == 0.0
    assert strikes.add("a", 1.0) == 2 and strikes.refused("a", 2.0) == 2.0 and strikes.refused("a", 4.0) == 0.0
    assert strikes.add("a", 4.0) == 1  # forgotten
    strikes.add("b", 4.0)
    strikes.add("c", 4.0)
    assert strikes.add("a", 4.0) == 1  # pushed out
    with pytest.raises(InputError, match="queue is 5"):
        Limits(frame=10, queue=5)
    with pytest.raises(Fault, match="version"):
        Hello.decode(b"")
