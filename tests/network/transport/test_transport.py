"""Frames between honest parties: all arrive, in order, or are known to be unsent."""

from __future__ import annotations

import asyncio
import random
import struct
import time

import pytest

from helpers.transports import Raw, World, closed_listener, closed_port, raw, run, until
from inca._base.validation import InputError
from inca.network.transport.events import Unreachable
from inca.network.transport.frames import HEADER, Hello


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


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
