"""Peers that are silent, are not who they should be, or break the protocol are cut off and named."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import ssl
import struct

import pytest

from helpers.transports import SESSION, Raw, World, closed_listener, packed, raw, run, serving, until
from inca.network.transport.events import Unreachable
from inca.network.transport.frames import DATA, HEADER, HELLO, PING, Bye, Hello


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


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
