"""Relays in processes of their own: they drain, reload, are killed, and stand thousands of connections."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from helpers.blind_relays import RelayNetwork, RelayProcess, relay_process
from helpers.transports import RecordedEvents, run, until
from inca.network.transport.failures import FailureCause

pytestmark = pytest.mark.real_time


@pytest.fixture
def network(tmp_path: Path) -> RelayNetwork:
    return RelayNetwork(tmp_path)


def test_sigterm_lets_what_is_under_way_arrive(network: RelayNetwork) -> None:
    async def main() -> None:
        async with relay_process(network, limits={"drain_s": 30.0}) as relay:
            network.reached_at(relay.address, 0, 1)
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
                await until(lambda: a.registered and b.registered)
                await a.measure(1)
                for _ in range(40):
                    a.send(1, bytes(1_000_000))
                relay.signal(signal.SIGTERM)
                await relay.event("draining")
                await log_b.reach(40)
                stopped = await relay.event("stopped")
                assert stopped["bytes"] > 40_000_000 and await relay.process.wait() == 0
                await until(lambda: not a.connected and not a.registered)
                assert not log_a.doubtful_tokens
                causes = [failure for _, failure in log_a.registrations if failure is not None]
                assert "is shutting down" in causes[0].detail and causes[0].cause is FailureCause.LOST
                assert any("is shutting down" in failure.detail for _, failure in log_a.losses + log_b.losses)

    run(main())


def test_sighup_reads_the_allow_list_and_the_certificate_anew(network: RelayNetwork, tmp_path: Path) -> None:
    allow = tmp_path / "allow"
    allow.write_text(network.names[0])

    async def main() -> None:
        async with relay_process(network, allow=str(allow)) as relay:
            network.reached_at(relay.address, 0, 1)
            async with network.node(0) as (a, _), network.node(1) as (_, log):
                await until(lambda: a.registered and log.registrations)
                failure = log.registrations[0][1]
                assert failure is not None and failure.cause is FailureCause.RELAY_REFUSES
                assert "allow-list" in failure.detail
            allow.write_text(network.names[1])
            relay.signal(signal.SIGHUP)
            assert (await relay.event("reloaded"))["allowed"] == 1
            async with network.node(0) as (_, log), network.node(1) as (b, _):
                await until(lambda: b.registered and log.registrations)
            allow.unlink()
            relay.signal(signal.SIGHUP)
            assert "allow" in (await relay.event("reload failed"))["reason"]
            async with network.node(1) as (b, _):
                await until(lambda: b.registered)  # the old list stays

    run(main())


def test_a_relay_that_is_killed_in_mid_transfer_is_not_taken_for_the_peer(network: RelayNetwork) -> None:
    async def main() -> None:
        async with relay_process(network) as relay:
            network.reached_at(relay.address, 0, 1)
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
                await until(lambda: a.registered and b.registered)
                for number in range(200):
                    a.send(1, bytes(1_000_000), number)
                await log_b.reach(3)
                relay.signal(signal.SIGKILL)
                await until(lambda: log_a.losses and log_b.losses and log_a.downs)
                a.send(1, b"again")
                await until(lambda: len(log_a.downs) > 1)
                for log in (log_a, log_b):
                    assert_blames_the_relay(log, relay)
                assert log_a.doubtful_tokens and log_a.unsent_tokens
                async with relay_process(network, port=relay.address.port):
                    await until(lambda: a.registered and b.registered)
                    a.send(1, b"last")
                    await until(lambda: any(frame == b"last" for _, frame in log_b.frames))

    run(main())


def assert_blames_the_relay(log: RecordedEvents, relay: RelayProcess) -> None:
    failures = [failure for _, failure in log.losses + log.downs] + [
        failure for _, failure in log.registrations if failure is not None
    ]
    assert {failure.cause for failure in failures} <= {FailureCause.LOST, FailureCause.RELAY_UNREACHABLE}
    assert all(f"the relay {relay.address}" in failure.detail for failure in failures)
    assert not any("the peer is not running" in failure.detail for failure in failures)
    assert not log.violations


def test_of_two_relays_one_is_killed(network: RelayNetwork) -> None:
    async def main() -> None:
        async with relay_process(network) as first, relay_process(network) as second:
            for relay in (first, second):
                network.reached_at(relay.address, 0, 1)
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
                await until(lambda: len(a.registered) == len(b.registered) == 2)
                a.send(1, b"by the first")
                await log_b.reach(1)
                first.signal(signal.SIGKILL)
                await until(lambda: log_a.losses and log_b.losses)
                a.send(1, b"by the second")
                b.send(0, b"and back")
                await log_b.reach(2)
                await log_a.reach(1)
                assert not log_a.downs + log_b.downs  # of the peers, nobody was out of reach
                assert a.registered == b.registered == {second.address}

    run(main())


@pytest.mark.slow
def test_a_thousand_connections_that_say_nothing_cost_little(network: RelayNetwork) -> None:
    """Without TLS, after TLS, and with an unanswered challenge: at most 64 MB each."""

    async def hold(relay: RelayProcess, send: bytes, tls: bool) -> list[asyncio.StreamWriter]:
        writers = []
        for _ in range(1000):
            try:
                _, writer = await asyncio.open_connection(
                    "127.0.0.1",
                    relay.address.port,
                    ssl=network.context if tls else None,
                    server_hostname="127.0.0.1" if tls else None,
                )
            except OSError:
                continue
            writer.write(send)
            writers.append(writer)
        return writers

    upgrade = (
        b"GET /inca HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    async def main() -> None:
        patient = {"open_timeout_s": 3600.0, "challenge_timeout_s": 3600.0, "max_pending_per_origin": 10_000}
        for send, tls in ((b"", False), (b"", True), (upgrade, True)):
            async with relay_process(network, limits=patient) as relay:
                before = relay.resident_bytes()
                writers = await hold(relay, send, tls)
                await asyncio.sleep(1.0)
                grown = relay.resident_bytes() - before
                print(f"{'TLS' if tls else 'TCP'} and {len(send)} bytes: {grown / 1e6:.1f} MB")
                assert grown < 64e6
                for writer in writers:
                    writer.transport.abort()
                await asyncio.sleep(0)

    run(main())
