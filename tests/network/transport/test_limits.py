"""Too much of everything: floods, peers that do not read, connections and file descriptors."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from helpers.transports import World, raw, run, until
from inca._base.validation import InputError
from inca.network.transport.frames import Bucket, Fault, Hello, Limits, Strikes


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


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
