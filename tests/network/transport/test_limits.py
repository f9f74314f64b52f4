"""Too much of everything: floods, peers that do not read, connections and file descriptors."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import Any

import pytest

from helpers.transports import TlsNetwork, raw, run, until
from inca.errors import InvalidInput, TransportViolation
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import Hello
from inca.network.transport.limits import Limits, TokenBuckets, Violations

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


def test_a_flood_is_slowed_down_and_others_are_not(network: TlsNetwork) -> None:
    async def main() -> None:
        slow: dict[str, Any] = {"frames_per_second": 2000.0, "burst_frames": 1000}
        async with network.node(0, **slow) as (a, log), network.node(1) as (b, log_b), network.node(2) as (c, _):
            log.reply = lambda peer, frame: a.send(peer, frame) if peer == 1 else None
            for number in range(100_000):
                c.send(0, b"%d" % number)
            began = time.perf_counter()
            read_meanwhile = []  # of the flood, while another peer waits for its answer

            def flooded() -> int:
                return sum(peer == 2 for peer, _ in log.frames)

            await asyncio.sleep(0.2)
            for number in range(100):
                before = flooded()
                b.send(0, b"ping")
                await log_b.reach(number + 1)
                read_meanwhile.append(flooded() - before)
            taken = time.perf_counter() - began
            assert flooded() < 1000 + 2000 * taken + 300
            assert sorted(read_meanwhile)[90] < 1000
            assert ("throttled", 2) in [(name, fields.get("peer")) for name, fields in log.log]
            assert not log.complaints and 2 in a.connected

    run(main())


def test_a_flood_without_end_is_closed(network: TlsNetwork) -> None:
    async def main() -> None:
        limits: dict[str, Any] = {"frames_per_second": 1000.0, "burst_frames": 100, "idle_timeout_s": 0.5}
        async with network.node(0, **limits) as (_, log), network.node(2) as (c, _):
            for number in range(100_000):
                c.send(0, b"%d" % number)
            await until(lambda: log.violations)
            assert "too much" in log.complaints[0]

    run(main())


def test_a_peer_that_does_not_read_is_closed(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, stall_timeout_s=0.6) as (a, log), network.node(1) as (b, log_b):
            context = network.client(2)
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
                await until(lambda: log.violations)
                assert "read nothing" in log.complaints[0]
                assert 1 in a.connected and b.connected == {0}

    run(main())


def test_two_thousand_connections_from_one_address(network: TlsNetwork) -> None:
    async def main() -> None:
        async with (
            network.node(0, max_pending_per_address=20, max_pending=40) as (a, log),
            network.node(1) as (b, log_b),
        ):
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
                assert sorted(trips)[190] < 1.0
                assert len(a._connections.open) <= 21
                await until(lambda: "refused" in log.logged)
                refused = sum(int(str(fields["times"])) for name, fields in log.log if name == "refused")
                assert refused > 500
            finally:
                for one in sockets:
                    one.close()

    run(main())


async def talk_nonsense(address: tuple[str, int], times: int) -> None:
    for _ in range(times):
        async with raw(address, None) as other:
            other.writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await other.ended()


def test_an_address_that_errs_again_and_again_is_slowed_down_and_parties_behind_it_get_in(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=3, penalty_s=60.0) as (a, log):
            await talk_nonsense(a.address, 30)
            assert 3 <= len(log.complaints) < 20
            async with network.node(1) as (b, _):  # from the same address, long before the penalty is over
                for _ in range(100):
                    b.send(0, b"here I am")  # a party that was refused tries again
                    await asyncio.sleep(0.1)
                    if a.connected:
                        break
                assert a.connected

    run(main())


def test_an_address_that_a_party_has_come_from_is_not_slowed_down(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=3, penalty_s=60.0) as (a, log):
            async with raw(a.address, network.client(1)) as friend:
                await friend.greet(1, b"l" * 16)
                await until(lambda: a.connected)
            await talk_nonsense(a.address, 10)
            assert len(log.complaints) >= 10
            async with raw(a.address, network.client(2)) as friend:  # at once, in spite of them
                await friend.greet(2, b"m" * 16)
                await until(lambda: 2 in a.connected)

    run(main())


def test_no_file_descriptors_left(network: TlsNetwork) -> None:
    resource = pytest.importorskip("resource")

    async def main() -> None:
        async with network.node(0) as (a, log), network.node(1) as (b, other):
            old = resource.getrlimit(resource.RLIMIT_NOFILE)
            ready = [socket.socket() for _ in range(3)]
            used = max(one.fileno() for one in ready) + 1
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, old[1]))
            held = []
            try:
                with suppress(OSError):
                    while True:
                        held.append(socket.socket())
                for one in ready:
                    one.setblocking(False)
                    one.connect_ex(a.address)
                await until(lambda: "accepting failed" in log.logged)
                assert "our own machine" in str(dict(log.log)["accepting failed"]["reason"])
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, old)
                for one in [*ready, *held]:
                    one.close()
            b.send(0, b"x")
            await log.reach(1)
            assert not other.downs

    run(main())


def test_buckets_and_violations() -> None:
    limits = Limits(
        frames_per_second=10, burst_frames=5, bytes_per_second=100, burst_bytes=1000, max_violations=2, penalty_s=3
    )
    buckets = TokenBuckets(limits, 0.0)
    assert buckets.take(5, 0, 0.0) == 0.0
    assert buckets.take(2, 0, 0.0) == pytest.approx(0.2) and buckets.over_since == 0.0
    assert buckets.take(0, 0, 1.0) == 0.0 and buckets.over_since is None
    assert buckets.take(0, 1500, 1.0) == pytest.approx(5.0)
    violations = Violations(limits, max_culprits=2)
    assert violations.add("a", 0.0) == 1 and violations.refused_for("a", 0.0) == 0.0
    assert violations.add("a", 1.0) == 2
    assert violations.refused_for("a", 2.0) == 2.0 and violations.refused_for("a", 4.0) == 0.0
    assert violations.add("a", 4.0) == 1  # forgotten
    violations.add("b", 4.0)
    violations.add("c", 4.0)
    assert violations.add("a", 4.0) == 1  # pushed out


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"max_queue_shared_bytes must be at least max_frame_bytes \(10\), got 5"):
        Limits(max_frame_bytes=10, max_queue_shared_bytes=5)
    with pytest.raises(InvalidInput, match="max_pending must be at least 1, got 0"):
        Limits(max_pending=0)
    with pytest.raises(InvalidInput, match="penalty_s must be above 0, got 0"):
        Limits(penalty_s=0)
    with pytest.raises(InvalidInput, match="max_frame_bytes must be from 1 to 4294967295"):
        Limits(max_frame_bytes=2**32, max_queue_shared_bytes=2**32)


def test_a_hello_of_another_version_is_told_apart() -> None:
    with pytest.raises(TransportViolation, match="version") as caught:
        Hello.decode(b"")
    assert caught.value.cause is FailureCause.OTHER_VERSION
