"""Frames between honest parties: all arrive, in order, or are known to be unsent."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from contextlib import AsyncExitStack

import pytest

from helpers.pace import allowance
from helpers.transports import Raw, TlsNetwork, closed_listener, closed_port, packed, raw, run, until
from inca.errors import InvalidInput, PeerUnreachable
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import DATA, HEADER, Hello

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


def test_frames_arrive_in_order_and_intact(network: TlsNetwork) -> None:
    sizes = [0, 1, 5, 16379, 16384, 80_000, 262_144, 800_000, 3_000_000, 7]
    frames = [random.Random(size).randbytes(size) for size in sizes] + [b"%d" % i for i in range(3000)]

    async def main() -> None:
        async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
            for frame in frames:
                a.send(1, frame)
            await log_b.reach(len(frames))
            for frame in frames:
                b.send(0, frame)
            await log_a.reach(len(frames))
            assert [frame for _, frame in log_b.frames] == frames == [frame for _, frame in log_a.frames]
            assert a.connected == {1}
            assert log_a.ups == [1] and log_b.ups == [0] and not log_a.unsent_tokens and not log_a.downs

    run(main())


def test_a_frame_in_tiny_pieces(network: TlsNetwork) -> None:
    frame = random.Random(1).randbytes(3000)

    async def main() -> None:
        async with network.node(0) as (a, log), raw(a.address, network.client(1)) as other:
            await other.greet(1, b"l" * 16)
            await until(lambda: a.connected)
            (connection,) = a._connections.open
            sent = packed(DATA, frame)
            for byte in sent[:-1]:  # in a record of TLS each
                other.writer.write(bytes((byte,)))
            await until(lambda: len(connection._plain) == len(sent) - 1)
            assert not log.frames
            other.writer.write(sent[-1:] + packed(DATA, b"next"))
            await log.reach(2)
            assert log.frames == [(1, frame), (1, b"next")]

    run(main())


def test_five_parties_all_at_once(network: TlsNetwork) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(network.node(party)) for party in range(5)]
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
                assert not log.unsent_tokens and not log.downs and not log.complaints
                for j in range(5):
                    seen = [struct.unpack_from(">HH", frame) for peer, frame in log.frames if peer == j]
                    assert seen == ([] if i == j else [(j, number) for number in range(40)])

    run(main())


def test_simultaneous_dials_leave_one_connection(network: TlsNetwork) -> None:
    async def main() -> None:
        for attempt in range(15):
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
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
                assert not log_a.unsent_tokens + log_b.unsent_tokens + log_a.downs + log_b.downs
                assert log_a.ups == [1] and log_b.ups == [0]
                assert not log_a.violations + log_b.violations and not log_a.losses

    run(main())


def test_refused_port_is_down_and_unsent(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log):
            with closed_port(network, 1):
                a.send(1, b"x", "one")
                a.send(1, b"y", "two")
                await until(lambda: log.downs)
                assert log.unsent_tokens == ["one", "two"]
                assert log.downs[0][1].cause is FailureCause.REFUSED
                assert "nothing listens at 127.0.0.1" in log.downs[0][1].detail
                began = time.perf_counter()
                for _ in range(3):
                    a.send(1, b"z", "later")
                await until(lambda: len(log.downs) == 2)
                assert time.perf_counter() - began > 0.03  # the back-off
                assert log.unsent_tokens == ["one", "two", *["later"] * 3]
                with pytest.raises(PeerUnreachable, match="nothing listens") as caught:
                    await a.measure(1)
                assert caught.value.cause is FailureCause.REFUSED
            async with network.node(1) as (_, other):
                a.send(1, b"here")
                await other.reach(1)

    run(main())


def test_the_oldest_frames_are_given_up_beyond_the_queue(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_frame_bytes=1000, max_queue_bytes=3500) as (a, log), closed_listener(network, 1):
            for number in range(5):
                a.send(1, bytes(1000), number)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert log.unsent_tokens == [0, 1]
            with pytest.raises(InvalidInput, match="length of frame"):
                a.send(1, bytes(1001))
            with pytest.raises(InvalidInput, match="another party"):
                a.send(0, b"")
            with pytest.raises(InvalidInput, match="peer"):
                a.send(5, b"")
        assert log.unsent_tokens == [0, 1, 2, 3, 4]  # certain at the end too

    run(main())


@pytest.mark.parametrize("seed", range(6))
def test_never_unsent_after_a_byte_left(network: TlsNetwork, seed: int) -> None:
    """The other side dies in the middle; whatever it saw a part of is in doubt, never `unsent`."""
    rng = random.Random(seed)
    seen: set[int] = set()

    async def main() -> None:
        async with network.node(0) as (a, log):
            stop = rng.randrange(1, 8_000_000)

            async def read_some(other: Raw) -> None:
                server.close()
                _, body = await other.frame()
                other.hello(1, bytes([1]) * 16, 1, Hello.decode(body).nonce)
                read = 0
                await other.frame()
                while read < stop:
                    length, _ = HEADER.unpack(await other.reader.readexactly(HEADER.size))
                    seen.add(struct.unpack(">I", await other.reader.readexactly(4))[0])
                    read += length
                    await other.reader.readexactly(length - 4)
                other.writer.transport.abort()

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await read_some(Raw(reader, writer))

            server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=network.server(1))
            network.move(1, server.sockets[0].getsockname()[:2])
            for number in range(200):
                a.send(1, struct.pack(">I", number) + bytes(80_000), number)
            await until(lambda: log.downs)
            assert seen and log.unsent_tokens
            assert not seen & set(log.unsent_tokens)
            assert min(number for number in log.unsent_tokens if isinstance(number, int)) > max(seen)
            assert sorted(log.unsent_tokens, key=str) == sorted(set(log.unsent_tokens), key=str)
            assert seen <= set(log.doubtful_tokens)  # each frame is told of once, as one or the other
            assert sorted([*log.unsent_tokens, *log.doubtful_tokens], key=str) == sorted(range(200), key=str)

    run(main())


def test_queued_frames_go_out_on_the_next_connection(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log_a):
            async with network.node(1) as (b, log_b):
                a.send(1, b"x", "arrived, as nobody here can know")
                a.send(1, b"y")
                await log_b.reach(2)
                assert not log_a.doubtful_tokens  # as long as the connection stands
                port = b.address[1]
            await until(lambda: not a.connected)
            a.send(1, b"nobody there", "lost")
            await until(lambda: log_a.downs)
            assert log_a.unsent_tokens == ["lost"]
            assert log_a.doubtful_tokens == ["arrived, as nobody here can know"]
            async with network.node(1) as (_, log_b):
                assert network.addresses[1][0].port != port
                a.send(1, b"again")
                await log_b.reach(1)
                assert log_b.frames == [(0, b"again")] and log_a.ups == [1, 1]

    run(main())


def test_idle_connections_close_and_open_again(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, idle_timeout_s=1.0) as (a, log), network.node(1) as (b, other):
            a.send(1, b"x")
            await other.reach(1)
            await until(lambda: not a.connected and not b.connected)
            assert log.losses[0][1].cause is FailureCause.IDLE
            a.send(1, b"y")
            await other.reach(2)
            for _ in range(20):  # one side speaks, the other listens: that is no silence
                await asyncio.sleep(0.1 * allowance())
                a.send(1, b"z")
            await until(lambda: a.connected)
            assert log.ups == [1, 1]
            assert not log.downs and not log.unsent_tokens and not log.violations and not other.violations

    run(main())


def test_measure(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, _), network.node(1, clock=lambda: time.time() + 12.5) as (b, _):
            measurement = await a.measure(1, 20)
            assert 0 < measurement.round_trip < 1
            assert abs(measurement.offset - 12.5) <= measurement.round_trip / 2 + 1e-6
            assert abs((await b.measure(0)).offset + 12.5) < 0.5

    run(main())


def test_measuring_someone_who_stops_answering(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, ping_timeout_s=1.5) as (a, _):
            async with raw(a.address, network.client(1)) as other:
                await other.greet(1, b"l" * 16)
                await until(lambda: a.connected)
                with pytest.raises(PeerUnreachable, match="did not answer a ping") as caught:
                    await a.measure(1)
                assert caught.value.cause is FailureCause.UNRESPONSIVE
                waiting = asyncio.create_task(a.measure(1))
                await asyncio.sleep(0.05)
            with pytest.raises(PeerUnreachable):
                await waiting
            async with raw(a.address, network.client(1)) as other:
                await other.greet(1, b"m" * 16)
                await until(lambda: a.connected)
                waiting = asyncio.create_task(a.measure(1))
                await asyncio.sleep(0.01)
                await a.close()
                with pytest.raises(PeerUnreachable, match="closed"):
                    await waiting
        with pytest.raises(PeerUnreachable, match="closed"):
            await a.measure(1)

    run(main())


def test_close_in_the_middle_of_everything(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log), network.node(1) as (b, _), closed_listener(network, 2):
            for number in range(100):
                a.send(1, bytes(80_000), number)
                a.send(2, bytes(80_000), number)
                b.send(0, bytes(80_000), number)
            await asyncio.sleep(0.01)
        assert len(log.unsent_tokens) >= 100
        a.send(1, b"too late", "late")
        await asyncio.sleep(0)
        assert log.unsent_tokens[-1] == "late"

    run(main())
