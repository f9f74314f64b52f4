"""Who gets as far as a challenge: limits before TLS, time, origins, and what a web server is asked besides."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from helpers.blind_relays import PATH, RelayLog, RelayNetwork, quiet, registered
from helpers.transports import run, until
from inca.errors import InvalidInput
from inca.network.addresses import Address
from inca.network.transport.limits import Limits
from inca.network.transport.relay.certificate import RelayCertificate
from inca.network.transport.relay.messages import Incoming
from inca.network.transport.relay.metrics import serving
from inca.network.transport.relay.options import RelayLimits, RelayOptions
from inca.network.transport.relay.server import Relay

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def silent(relay: Relay, host: str, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections from an address of this machine that say nothing."""
    opened = [await asyncio.open_connection(*relay.address, local_addr=(host, 0)) for _ in range(count)]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()
        await asyncio.sleep(0)


def ended(readers: list[asyncio.StreamReader]) -> int:
    return sum(reader.at_eof() or reader.exception() is not None for reader in readers)


def test_an_origin_has_so_many_pending_and_in_all_there_are_so_many(network: RelayNetwork) -> None:
    limits = {"max_pending_per_origin": 4, "max_pending": 10, "open_timeout_s": 3600.0}

    async def main() -> None:
        async with network.relay(limits=limits) as relay:
            async with silent(relay, "127.0.0.2", 7) as readers:
                await until(lambda: ended(readers) == 3)
                assert relay.pending == 4
                async with network.visitor(relay) as visitor:  # from 127.0.0.1
                    await visitor.register(network.parties[0])
                async with (
                    silent(relay, "127.0.0.3", 4) as second,
                    silent(relay, "127.0.0.4", 4) as third,
                ):
                    await until(lambda: ended(readers) + ended(second) + ended(third) == 3 + 2)
                    assert relay.pending == 10  # the oldest gave way
            await until(lambda: relay.pending == 0)

    run(main())


def test_time_is_limited_for_tls_the_request_and_the_challenge(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(limits={"open_timeout_s": 0.3, "challenge_timeout_s": 3600.0}) as relay:
            async with silent(relay, "127.0.0.1", 1) as readers:
                await until(lambda: ended(readers) == 1)
            reader, writer = await asyncio.open_connection(
                *relay.address, ssl=network.context, server_hostname="127.0.0.1"
            )
            writer.write(b"GET /inca HTTP/1.1\r\n")
            assert not await reader.read()
            writer.transport.abort()
            async with network.visitor(relay) as visitor:
                await quiet(0.5)
                await visitor.register(network.parties[0])  # the challenge is another matter
        async with network.relay(limits={"challenge_timeout_s": 0.3}) as relay, network.visitor(relay) as visitor:
            await visitor.ended()

    run(main())


def test_headers_without_end(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay:
            reader, writer = await asyncio.open_connection(
                *relay.address, ssl=network.context, server_hostname="127.0.0.1"
            )
            writer.write(b"GET /inca HTTP/1.1\r\n" + b"X-Long: 0123456789abcdef\r\n" * 2000)
            with suppress(ConnectionError):
                assert not await reader.read()
            writer.transport.abort()

    run(main())


def test_who_speaks_no_tls_is_cut_off(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay:
            reader, writer = await asyncio.open_connection(*relay.address)
            writer.write(b"GET /inca HTTP/1.1\r\n\r\n" * 10)
            with suppress(ConnectionError):
                await reader.read()
            writer.transport.abort()
            await until(lambda: relay.pending == 0)

    run(main())


async def fetch(place: tuple[str, int], request: str, context: ssl.SSLContext | None = None) -> str:
    host = "127.0.0.1" if context else None
    reader, writer = await asyncio.open_connection(*place, ssl=context, server_hostname=host)
    writer.write(f"GET {request} HTTP/1.1\r\nHost: relay\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.transport.abort()
    return answer


def test_it_looks_like_a_web_server(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay:
            place, context = relay.address, network.context
            healthy = await fetch(place, "/healthz", context)
            assert healthy.startswith("HTTP/1.1 200") and healthy.endswith("ok\n")
            assert (await fetch(place, "/", context)).startswith("HTTP/1.1 404")
            assert (await fetch(place, "/inca", context)).startswith("HTTP/1.1 426")
            await until(lambda: relay.pending == 0)
            relay.draining = True
            assert (await fetch(place, "/healthz", context)).startswith("HTTP/1.1 503")
            with pytest.raises(InvalidStatus, match="503"):
                async with network.visitor(relay):
                    pass

    run(main())


def test_metrics_are_public_facts(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay, serving(0, relay) as port, network.visitor(relay) as visitor:
            await visitor.register(network.parties[0])
            async with network.visitor(relay) as other:
                await other.refused(other.claim(network.parties[0]))
            page = await fetch(("127.0.0.1", port), "/metrics")
            for line in ("inca_relay_registered 1.0", 'inca_relay_refused_total{reason="taken"} 1.0'):
                assert line in page
            assert "process_open_fds" in page and "inca_relay_bytes_total 0.0" in page
            assert network.names[0] not in page and "127.0.0.1" not in page
            assert (await fetch(("127.0.0.1", port), "/healthz")).endswith("ok\n")
            assert (await fetch(("127.0.0.1", port), "/")).startswith("HTTP/1.1 404")

    run(main())


def test_forwarded_addresses_count_from_named_proxies_alone(network: RelayNetwork) -> None:
    """Behind a proxy, each client is one origin; a client that lies about it is believed by nobody."""

    async def origins(headers: list[str], **options: Any) -> list[str]:
        """Return the labels that a callee sees of clients that send these headers."""
        async with network.relay(**options) as relay, network.visitor(relay) as bert, AsyncExitStack() as stack:
            await bert.register(network.parties[1])
            labels = []
            for header in headers:
                client = await stack.enter_async_context(network.visitor(relay, headers={"X-Forwarded-For": header}))
                await client.say(client.claim(network.parties[0], "dial", network.names[1]))
                incoming = await bert.hear()
                assert isinstance(incoming, Incoming)
                labels.append(incoming.origin)
            return labels

    async def main() -> None:
        headers = ["10.1.1.1", "10.1.1.2", "10.1.1.1", "8.8.8.8, 10.1.1.1"]
        assert len(set(await origins(headers))) == 1  # all from 127.0.0.1, which is no named proxy
        one, two, again, lying = await origins(headers, trusted_proxies=("127.0.0.0/8",))
        assert one == again == lying != two
        through_two = ["10.1.1.1, 10.9.9.9", "10.1.1.2, 10.9.9.9"]
        one, two = await origins(through_two, trusted_proxies=("127.0.0.1", "10.9.9.0/24"), log_addresses=True)
        assert (one, two) == ("10.1.1.1", "10.1.1.2")
        (own,) = await origins(["nonsense"], trusted_proxies=("127.0.0.1",), log_addresses=True)
        assert own.startswith("127.0.0.1:")  # as if there were no header
        other = await origins(["10.1.1.1"], trusted_proxies=("127.0.0.1",))
        assert other != [one]  # labels mean nothing beyond a run

    run(main())


def test_a_named_proxy_is_no_origin_itself_but_those_behind_it_are(network: RelayNetwork) -> None:
    limits = {"max_pending_per_origin": 2, "open_timeout_s": 3600.0, "challenge_timeout_s": 3600.0}

    async def main() -> None:
        async with (
            network.relay(limits=limits, trusted_proxies=("127.0.0.1",)) as relay,
            silent(relay, "127.0.0.1", 5),
            AsyncExitStack() as stack,
        ):
            await until(lambda: relay.pending == 5)
            for _ in range(2):
                await stack.enter_async_context(network.visitor(relay, headers={"X-Forwarded-For": "10.1.1.1"}))
            with pytest.raises(InvalidStatus, match="429"):
                async with network.visitor(relay, headers={"X-Forwarded-For": "10.1.1.1"}):
                    pass
            async with network.visitor(relay, headers={"X-Forwarded-For": "10.1.1.2"}):
                pass

    run(main())


def test_behind_a_reverse_proxy_it_speaks_without_tls(network: RelayNetwork) -> None:
    """A proxy that ends TLS, as nginx does."""

    async def main() -> None:
        async with network.relay(certificate=None, names=("127.0.0.1",)) as relay:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(network.certificate)
            writers = []

            async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writers.append(writer)
                while chunk := await reader.read(1 << 16):
                    writer.write(chunk)
                    await writer.drain()
                writer.close()

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                there, back = await asyncio.open_connection(*relay.address)
                await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)

            server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
            network.reached_at(Address("127.0.0.1", server.sockets[0].getsockname()[1], PATH), 0, 1)
            async with network.node(0) as (a, _), network.node(1) as (_, log):
                await registered(relay, 2)
                a.send(1, bytes(300_000))
                await log.reach(1)
            server.close()
            for writer in writers:
                writer.transport.abort()
            await quiet(0.05)
            network.addresses[:2] = [[Address("127.0.0.1", 1)]] * 2

    run(main())


def test_frames_that_come_before_the_answer(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay:
            for path in ("/", "/inca"):
                reader, writer = await asyncio.open_connection(
                    *relay.address, ssl=network.context, server_hostname="127.0.0.1"
                )
                request = f"GET {path} HTTP/1.1\r\nHost: relay\r\n\r\n".encode()
                writer.write(request + b"\x88\x82\0\0\0\0\x03\xe8")  # a close frame
                with suppress(ConnectionError):
                    await reader.read()
                writer.transport.abort()
            await until(lambda: relay.pending == 0 and not relay._links)

    run(main())


def test_who_asks_without_end_and_reads_nothing_is_cut_off(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(limits={"burst_messages": 1 << 40}) as relay, network.visitor(relay) as visitor:
            await visitor.register(network.parties[0])
            visitor.socket.transport.pause_reading()
            ping = Frame(Opcode.PING, bytes(125)).serialize(mask=True)
            while relay.switchboard.registered:
                visitor.socket.transport.write(ping * 1000)
                await asyncio.sleep(0.001)
            visitor.socket.transport.resume_reading()

    run(main())


def test_origins_that_lie_are_slowed_down(network: RelayNetwork) -> None:
    async def main() -> None:
        with RelayLog() as log:
            async with network.relay() as relay:
                relay._violations._limits = Limits(penalty_s=3600.0)
                for _ in range(5):
                    async with network.visitor(relay) as liar:
                        claim = liar.claim(network.stranger, about="x")
                        await liar.refused(type(claim)("dial", claim.key, claim.authority, "x", bytes(64)))
                async with silent(relay, "127.0.0.1", 3) as readers:
                    await until(lambda: ended(readers) == 2)
                await quiet(0.1)
        assert any("too many violations" in str(fields["reason"]) for fields in log.named("refused"))

    run(main())


def test_options_are_refused_in_a_sentence(tmp_path: Path, network: RelayNetwork) -> None:
    with pytest.raises(InvalidInput, match="names: a relay without a certificate"):
        RelayOptions()
    with pytest.raises(InvalidInput, match="trusted_proxies must be an address or a network"):
        RelayOptions(names=("x.example",), trusted_proxies=("nginx",))
    with pytest.raises(InvalidInput, match="path must be a path that begins with /"):
        RelayOptions(names=("x.example",), path="inca")
    with pytest.raises(InvalidInput, match="port"):
        RelayOptions(names=("x.example",), port=70_000)
    with pytest.raises(InvalidInput, match="metrics_port"):
        RelayOptions(names=("x.example",), metrics_port=-1)
    with pytest.raises(InvalidInput, match="max_pending must be at least 1"):
        RelayLimits(max_pending=0)
    with pytest.raises(InvalidInput, match="drain_s"):
        RelayLimits(drain_s=0.0)

    async def main() -> None:
        with pytest.raises(InvalidInput, match=r"missing\.pem cannot be used: No such file"):
            Relay(RelayOptions(certificate=tmp_path / "missing.pem"))
        with pytest.raises(InvalidInput, match="do not belong together"):
            Relay(RelayOptions(certificate=network.certificate, key=network.parties[0].file))
        nameless = tmp_path / "nameless.pem"
        nameless.write_bytes(network.parties[0].file.read_bytes())
        with pytest.raises(InvalidInput, match=r"must be a certificate .* that names hosts"):
            Relay(RelayOptions(certificate=nameless))

    asyncio.run(main())


def test_a_certificate_is_renewed_whole_or_not_at_all(tmp_path: Path, network: RelayNetwork) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"

    def put(issued: trustme.LeafCert) -> None:
        certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())

    put(trustme.CA().issue_cert("old.example.org"))
    own = RelayCertificate(RelayOptions(certificate=certificate, key=key))
    before = own.context
    new = trustme.CA().issue_cert("new.example.org")
    certificate.write_bytes(new.cert_chain_pems[0].bytes())  # the key has yet to come
    with pytest.raises(InvalidInput, match="do not belong together"):
        own.renew()
    assert own.context is before and own.is_for("old.example.org") and not own.is_for("new.example.org")
    put(new)
    own.renew()
    assert own.context is not before and own.is_for("new.example.org") and not own.is_for("old.example.org")


def test_wildcards_in_certificates(tmp_path: Path) -> None:
    certificate = tmp_path / "wild.pem"
    trustme.CA().issue_cert("*.example.org").private_key_and_cert_chain_pem.write_to_path(certificate)

    own = RelayCertificate(RelayOptions(certificate=certificate))
    assert own.is_for("relay.example.org") and own.is_for("Relay.Example.org:8443")
    assert not any(map(own.is_for, ("example.org", "a.b.example.org", "relay.example.com", "no host")))
