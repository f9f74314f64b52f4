"""Peers that are silent, are not who they should be, or break the protocol are cut off and named."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import ssl
import struct

import pytest

from helpers.transports import SESSION, Raw, TlsNetwork, closed_listener, packed, raw, run, serving, until
from inca.errors import PeerUnreachable
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import DATA, HEADER, HELLO, PING, Bye, Hello

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


def test_silent_peers(network: TlsNetwork) -> None:
    async def mute(other: Raw) -> None:
        await other.reader.read()

    async def main() -> None:
        async with network.node(0, handshake_timeout_s=1.5, hello_timeout_s=1.5) as (a, log):
            async with closed_listener(network, 1):  # accepts, says nothing
                a.send(1, b"x", "unheard")
                await until(lambda: log.downs)
                failure = log.downs[0][1]
                assert failure.cause is FailureCause.NO_ANSWER and "did not agree on TLS" in failure.detail
                assert log.unsent_tokens == ["unheard"]
            async with serving(network, 2, mute, network.server(2)):  # agrees on TLS, says no hello
                a.send(2, b"x", "unsaid")
                await until(lambda: len(log.downs) == 2)
                failure = log.downs[1][1]
                assert failure.cause is FailureCause.UNRESPONSIVE and "said no hello" in failure.detail
                assert log.unsent_tokens == ["unheard", "unsaid"]
            async with raw(a.address, None) as tcp, raw(a.address, network.client(3)) as tls:
                assert await tcp.ended() == b""
                assert (await tls.bye()) is Bye.PROTOCOL
            assert any("TLS" in complaint for complaint in log.complaints)

    run(main())


def test_wrong_certificates(network: TlsNetwork) -> None:
    async def nothing(other: Raw) -> None:
        await other.reader.read()

    async def main() -> None:
        async with network.node(0) as (a, log):
            stranger = network.stranger.context(ssl.PROTOCOL_TLS_SERVER, [*network.parties, network.stranger])
            async with serving(network, 1, nothing, stranger):
                a.send(1, b"secret", 1)
                await until(lambda: log.downs)
                assert log.downs[-1][1].cause is FailureCause.WRONG_CERTIFICATE
            async with serving(network, 2, nothing, network.server(3)):  # a party, but not that one
                with pytest.raises(PeerUnreachable, match=r"wrong certificate: of party 3, not of party 2") as caught:
                    await a.measure(2)
                assert caught.value.cause is FailureCause.WRONG_CERTIFICATE
            # The other way round: nobody without a certificate of the roster gets anywhere.
            bare = network.parties[1].context(ssl.PROTOCOL_TLS_CLIENT, network.parties, show=False)
            outside = network.stranger.context(ssl.PROTOCOL_TLS_CLIENT, network.parties)
            for context, words in ((bare, "no certificate"), (outside, "wrong certificate")):
                async with raw(a.address, context) as other:
                    other.hello(1, b"l" * 16)
                    assert await other.ended() == b""
                peer, failure = log.violations[-1]
                assert peer is None and failure.cause is FailureCause.WRONG_CERTIFICATE and words in failure.detail
            async with raw(a.address, network.client(0)) as other:
                await other.ended()
                assert "shows a wrong certificate: our own" in log.complaints[-1]
            assert log.unsent_tokens == [1] and not a.connected and not log.frames

    run(main())


def test_a_peer_that_refuses_our_certificate(network: TlsNetwork) -> None:
    others = network.parties[1].context(ssl.PROTOCOL_TLS_SERVER, network.parties[1:])

    async def main() -> None:
        async with network.node(0) as (a, _), network.node(1, server=others) as (_, log):
            with pytest.raises(PeerUnreachable, match="refuses us in TLS") as caught:
                await a.measure(1)
            assert caught.value.cause is FailureCause.CERTIFICATE_REFUSED
            assert log.violations[0][1].cause is FailureCause.WRONG_CERTIFICATE

    run(main())


def test_other_session_and_impersonation(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log_a), network.node(1, session=bytes(32)) as (_, log_b):
            with pytest.raises(PeerUnreachable, match="session") as caught:
                await a.measure(1)
            assert caught.value.cause is FailureCause.OTHER_SESSION
            a.send(1, b"x", "token")
            await until(lambda: log_a.unsent_tokens)
            assert log_a.unsent_tokens == ["token"] and log_a.downs[-1][1].cause is FailureCause.OTHER_SESSION
            assert "party 0 is in another session" in log_b.complaints and not log_b.frames
            async with raw(a.address, network.client(2)) as liar:
                liar.hello(3, b"l" * 16)
                liar.writer.write(packed(DATA, b"from 3"))
                assert await liar.bye() is Bye.IDENTITY
            peer, failure = log_a.violations[-1]
            assert (peer, failure.cause) == (2, FailureCause.IMPERSONATION)
            assert failure.detail == "party 2 claims to be party 3"
            async with raw(a.address, network.client(2)) as other:
                other.writer.write(packed(HELLO, b"inca/2\0\0" + bytes(40)))
                assert await other.bye() is Bye.VERSION
            assert log_a.violations[-1][1].cause is FailureCause.OTHER_VERSION
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
def test_errors_before_hello(network: TlsNetwork, sent: bytes, words: str) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log), raw(a.address, network.client(1)) as other:
            other.writer.write(sent)
            assert await other.bye() is Bye.PROTOCOL
            assert words in log.complaints[0] and not log.frames

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
def test_errors_after_hello_lead_to_a_penalty(network: TlsNetwork, sent: bytes, words: str) -> None:
    async def main() -> None:
        async with network.node(0, max_frame_bytes=1000, max_violations=2) as (a, log), network.node(3) as (_, friend):
            for _ in range(2):
                async with raw(a.address, network.client(1)) as other:
                    await other.greet(1, secrets.token_bytes(16))
                    other.writer.write(packed(DATA, b"good") + sent + packed(DATA, b"after"))
                    assert await other.bye() is Bye.PROTOCOL
            assert words in log.complaints[0]
            assert log.frames == [(1, b"good")] * 2
            async with raw(a.address, network.client(1)) as other:
                assert await other.bye() is Bye.PENALTY
            a.send(1, b"no", "refused")
            a.send(3, b"yes")
            await until(lambda: log.downs and friend.frames)
            assert log.downs[0][1].cause is FailureCause.PENALTY and log.unsent_tokens == ["refused"]

    run(main())


def test_after_the_penalty_a_peer_is_welcome_again(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=1, penalty_s=2.0) as (a, log):
            async with raw(a.address, network.client(1)) as other:
                other.writer.write(packed(99))
                assert await other.bye() is Bye.PROTOCOL
            async with raw(a.address, network.client(1)) as other:
                assert await other.bye() is Bye.PENALTY
            await asyncio.sleep(2.05)
            async with raw(a.address, network.client(1)) as other:
                await other.greet(1, b"r" * 16)
                await until(lambda: 1 in a.connected)
            assert len(log.violations) == 1

    run(main())


@pytest.mark.parametrize(("plain", "encrypted"), [(120, 60), pytest.param(260, 140, marks=pytest.mark.slow)])
def test_noise_never_gets_through(network: TlsNetwork, plain: int, encrypted: int) -> None:
    """Random bytes before, in and after the handshake; an honest peer notices nothing."""
    rng = random.Random(7)

    async def main() -> None:
        async with network.node(0) as (a, log), network.node(1) as (b, log_b):
            log_b.reply = b.send
            context = network.client(2)
            for case in range(plain):
                a.send(1, b"%d" % case)
                async with raw(a.address, None) as other:
                    noise = rng.randbytes(rng.randrange(1, 600))
                    if case % 3 == 0:  # looks like a record of a handshake
                        noise = b"\x16\x03\x01" + struct.pack(">H", len(noise)) + noise
                    other.writer.write(noise)
                    if case % 20:
                        other.writer.write_eof()
                        await other.ended()
            for case in range(encrypted):
                a.send(1, b"%d" % (plain + case))
                async with raw(a.address, context) as other:
                    if case % 2:
                        await other.greet(2, secrets.token_bytes(16))
                    noise = rng.randbytes(rng.randrange(1, 300))
                    if case % 5 == 0:  # past TLS, into the ciphertext
                        os.write(other.writer.get_extra_info("socket").fileno(), noise)
                    other.writer.write(HEADER.pack(len(noise), rng.randrange(256)) + noise if case % 3 else noise)
                    other.writer.write(rng.randbytes(400))
                    await other.ended()
            count = plain + encrypted
            await log.reach(count)
            assert [frame for peer, frame in log.frames if peer == 1] == [b"%d" % case for case in range(count)]
            assert a.connected == {1}
            assert len(log.complaints) > 0.625 * count

    run(main())
