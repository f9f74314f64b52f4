"""The way to a relay: through proxies, or to something that is no relay; each failure says whose it looks like."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec

import pytest
import trustme

from helpers.blind_relays import PATH, RelayNetwork, address_of, registered
from helpers.pace import allowance
from helpers.proxies import proxy
from helpers.transports import RecordedEvents, closed_port, run, until
from inca.errors import InvalidInput
from inca.network.addresses import Address
from inca.network.transport.failures import Failure, FailureCause, Unreached
from inca.network.transport.relay import client, opening
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.relay.server import Relay

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


async def why_not(network: RelayNetwork, address: Address, host: str = "") -> Failure:
    """Return why a party could not register there, which it also tells whoever wants to reach it."""
    network.addresses[0] = [replace(address, host=host or address.host)]
    network.addresses[1] = network.addresses[0]
    async with network.node(0) as (a, log):
        await until(lambda: log.registrations)
        assert not a.registered
        (relay, failure), *_ = log.registrations
        assert relay == network.addresses[0][0] and failure is not None
        assert str(relay.host) in failure.detail or "proxy" in failure.detail
        a.send(1, b"x")
        await until(lambda: log.downs)
        assert log.downs[0][1].cause is failure.cause is not FailureCause.REFUSED
        assert not log.violations
    return failure


@pytest.fixture
def set_proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda url: monkeypatch.setenv("HTTPS_PROXY", url)


@pytest.mark.parametrize("credentials", ["", "anna:secret", "anna:p%40ss"])
def test_parties_talk_through_a_proxy(
    network: RelayNetwork, set_proxy: Callable[[str], None], credentials: str
) -> None:
    async def main() -> None:
        async with proxy(credentials.replace("%40", "@")) as way, network.relay(0, 1) as relay:
            set_proxy(way.url.replace("p@ss", "p%40ss"))
            async with network.node(0) as (a, _), network.node(1) as (b, log):
                await registered(relay, 2)
                a.send(1, bytes(200_000))
                await log.reach(1)
                await b.measure(0)
                place = f"127.0.0.1:{relay.address[1]}"
                assert way.connected == [place] * 4  # two registrations, and both ends of a call
                way.cut()
                await until(lambda: a.registered and b.registered and len(way.connected) >= 6)
                a.send(1, b"again")
                await log.reach(2)

    run(main())


def test_no_proxy_is_obeyed(
    network: RelayNetwork, set_proxy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    async def main() -> None:
        async with proxy(status=403) as way, network.relay(0) as relay:
            set_proxy(way.url)
            async with network.node(0):
                await registered(relay, 1)

    run(main())


PROXIES: dict[str, tuple[dict[str, object], str, FailureCause, str]] = {
    "no password": ({"credentials": "anna:secret"}, "http://127.0.0.1:{port}", FailureCause.PROXY_REFUSES, "password"),
    "a wrong one": (
        {"credentials": "anna:secret"},
        "http://anna:s3cret@127.0.0.1:{port}",
        FailureCause.PROXY_REFUSES,
        "wants a name and a password",
    ),
    "forbidden": ({"status": 403}, "http://127.0.0.1:{port}", FailureCause.PROXY_REFUSES, "does not let us connect"),
    "nothing behind": ({"status": 502}, "http://127.0.0.1:{port}", FailureCause.RELAY_UNREACHABLE, "answers 502"),
    "not a URL": ({}, "ftp://127.0.0.1:{port}", FailureCause.PROXY_REFUSES, "wrongly given"),
    "SOCKS": ({}, "socks5://127.0.0.1:{port}", FailureCause.PROXY_REFUSES, "python-socks"),
}


@pytest.mark.parametrize("case", [case for case in PROXIES if case != "SOCKS" or not find_spec("python_socks")])
def test_a_proxy_that_says_no(network: RelayNetwork, set_proxy: Callable[[str], None], case: str) -> None:
    options, url, cause, words = PROXIES[case]

    async def main() -> None:
        async with proxy(**options) as way, network.relay() as relay:  # type: ignore[arg-type]
            set_proxy(url.format(port=way.port))
            failure = await why_not(network, address_of(relay))
            assert failure.cause is cause and words in failure.detail
            assert f"127.0.0.1:{way.port}" in failure.detail and "cret" not in failure.detail

    run(main())


def test_a_dead_proxy_is_told_from_a_dead_relay(network: RelayNetwork, set_proxy: Callable[[str], None]) -> None:
    async def main() -> None:
        async with network.relay() as relay, proxy() as way:
            there = address_of(relay)
            with closed_port(network, 4):
                dead = network.addresses[4][0]
            set_proxy(f"http://127.0.0.1:{dead.port}")
            failure = await why_not(network, there)
            assert failure.cause is FailureCause.PROXY_REFUSES and "does not answer" in failure.detail
            set_proxy(way.url)
            failure = await why_not(network, Address("127.0.0.1", dead.port, PATH))
            assert failure.cause is FailureCause.RELAY_UNREACHABLE and "answers 502" in failure.detail

    run(main())


def test_a_proxy_that_falls_silent(
    network: RelayNetwork, set_proxy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_OPEN_TIMEOUT_S", 0.5 * allowance())

    async def main() -> None:
        async with network.relay() as relay, proxy(silent=True) as way:
            set_proxy(way.url)
            failure = await why_not(network, address_of(relay))
            assert failure.cause is FailureCause.RELAY_UNREACHABLE
            assert "nothing answers" in failure.detail and f"through the proxy 127.0.0.1:{way.port}" in failure.detail

    run(main())


@asynccontextmanager
async def answering(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], context: ssl.SSLContext | None
) -> AsyncIterator[Address]:
    """Stand in for a relay."""
    held = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await talk(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1], PATH)
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.02)


def web(network: RelayNetwork) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(network.certificate)
    return context


def test_what_is_no_relay(network: RelayNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_OPEN_TIMEOUT_S", 1.0 * allowance())
    monkeypatch.setattr(opening, "_PAUSE_S", 0.01)

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ESMTP\r\n" * 10)

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def full(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n")

    async def main() -> None:
        with closed_port(network, 4):
            failure = await why_not(network, Address("127.0.0.1", network.addresses[4][0].port, PATH))
            assert (failure.cause, "nothing listens there" in failure.detail) == (FailureCause.RELAY_UNREACHABLE, True)
        failure = await why_not(network, Address("no-such-host.invalid", 443, PATH))
        assert (failure.cause, "looked up" in failure.detail) == (FailureCause.RELAY_UNREACHABLE, True)
        for talk, context, cause, words in (
            (close, None, FailureCause.RELAY_UNREACHABLE, "closes the connection at once"),
            (close, web(network), FailureCause.RELAY_UNREACHABLE, "closes the connection at once"),
            (say, None, FailureCause.RELAY_UNREACHABLE, "does not speak TLS"),
            (say, web(network), FailureCause.RELAY_UNREACHABLE, "closes the connection at once"),
            (hang, web(network), FailureCause.RELAY_UNREACHABLE, "nothing answers"),
            (page, web(network), FailureCause.RELAY_UNREACHABLE, "answers 404"),
            (full, web(network), FailureCause.RELAY_REFUSES, "limits"),
        ):
            async with answering(talk, context) as address:
                failure = await why_not(network, address)
                assert failure.cause is cause and words in failure.detail, (talk, failure)

    run(main())


def test_a_relay_with_a_certificate_that_is_not_its_own(network: RelayNetwork) -> None:
    async def main() -> None:
        other = trustme.CA()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        other.issue_cert("127.0.0.1").configure_cert(context)

        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with answering(hang, context) as address:
            failure = await why_not(network, address)
            assert failure.cause is FailureCause.RELAY_UNTRUSTED
            assert "the relay wss://127.0.0.1" in failure.detail and "its authority" in failure.detail

    run(main())


@pytest.mark.parametrize("said", ["", '{"type":"registered"}', "hello", None])
def test_a_relay_that_talks_nonsense(network: RelayNetwork, said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a challenge, or (None) in place of an answer."""
    monkeypatch.setattr("inca.network.transport.relay.client._REPLY_TIMEOUT_S", 1.0)

    class Odd(Relay):
        def on_opened(self, link: object) -> None:
            assert isinstance(link, type(next(iter(self._links))))
            if said is None:
                self.switchboard.greet(link)
            else:
                link.send_text(said.encode())

    async def main() -> None:
        async with network.relay(kind=Odd) as relay:
            if said is None:
                relay.switchboard.on_message = (  # type: ignore[method-assign]
                    lambda link, text: link.send_text(b'{"type":"incoming","ticket":"t","origin":"o"}')
                )
            failure = await why_not(network, address_of(relay))
            assert failure.cause is FailureCause.RELAY_UNREACHABLE

    run(main())


def test_a_relay_that_is_away_is_tried_less_and_less_often(
    network: RelayNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most every few seconds, and not all parties at the same moment; one that refuses us, still less often."""
    pauses: list[float] = []
    away = Unreached(Failure(FailureCause.RELAY_UNREACHABLE, "away"))

    async def open_nothing(*_: object) -> None:
        raise away

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 200:
            raise asyncio.CancelledError

    monkeypatch.setattr(client, "open_link", open_nothing)
    monkeypatch.setattr("inca.network.transport.relay.client.asyncio.sleep", sleep)
    log = RecordedEvents()

    async def main() -> None:
        relay = Address.parse("wss://relay.example.org")
        relays = client.Relays(network.access(0), [relay], memoryview(b""), log, lambda *_: False)
        with pytest.raises(asyncio.CancelledError):
            await relays._stay_registered(relay)
        assert pauses[0] <= 0.1 and all(0.0 < pause <= 3.0 for pause in pauses)
        assert all(1.5 <= pause <= 3.0 for pause in pauses[6:]) and len(set(pauses[6:])) > 190
        assert log.registrations == [(relay, away.failure)]  # told once
        pauses.clear()
        away.failure = Failure(FailureCause.RELAY_REFUSES, "not you")
        with pytest.raises(asyncio.CancelledError):
            await relays._stay_registered(relay)
        assert min(pauses) >= 5.0 and log.registrations[1:] == [(relay, away.failure)]

    asyncio.run(main())


def test_the_certificates_of_authorities_are_read_before_anything_else(network: RelayNetwork) -> None:
    own = network.access(0)
    for ca, words in (
        (network.ca.with_name("missing"), "No such file"),
        (network.parties[0].file.with_name("x"), "PEM"),
    ):
        (network.parties[0].file.with_name("x")).write_text("no certificate")
        with pytest.raises(InvalidInput, match=words):
            RelayAccess(key=own.key, sign=own.sign, names=own.names, ca=ca).context()
