"""Large frames: what a peer can make a transport hold with them, and that they are not copied on their way."""

from __future__ import annotations

import asyncio
import os
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import psutil
import pytest

from helpers.transports import Raw, TlsNetwork, closed_listener, held_for_one_peer, packed, raw, run, until
from inca.network.transport import streams
from inca.network.transport.connection import ConnectionState
from inca.network.transport.frames import DATA, HEADER, PING, PING_BODY, PONG, PONG_BODY
from inca.network.transport.limits import Limits
from inca.network.transport.streams import RECORD_BYTES
from inca.network.transport.transport import Transport

pytestmark = pytest.mark.real_time
MIB = 2**20
LIVE = ConnectionState.LIVE


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def held() -> int:
    """How many bytes were allocated by streams and not freed."""
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, streams.__file__)])
    return sum(trace.size for trace in snapshot.traces)


def resident() -> int:
    """How many bytes of memory this process has."""
    return int(psutil.Process().memory_info().rss)


async def send_part(other: Raw, announced: int, sent: int) -> None:
    other.writer.write(HEADER.pack(announced, DATA) + bytes(sent))
    await other.writer.drain()


@pytest.mark.usefixtures("traced")
def test_memory_is_set_aside_as_bytes_arrive(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_frame_bytes=2**27) as (a, log), raw(a.address, network.client(1)) as other:
            await other.greet(1, b"l" * 16)
            await until(lambda: a.connected)
            (connection,) = a._connections.open
            before = resident()
            await send_part(other, 2**27, 0)
            await until(lambda: connection._large is not None)
            other.writer.write(bytes(2 * MIB))
            await until(lambda: connection.arriving == 2 * MIB)
            assert resident() < before + 32 * MIB and a.arriving == [2 * MIB]  # of 128
            connection.abort()
            await until(lambda: not a._connections.open)
            assert held() < MIB and not log.frames and a.arriving == []

    run(main())


@pytest.mark.usefixtures("traced")
def test_a_peer_that_connects_again_and_again_holds_no_more_than_the_limits_say(network: TlsNetwork) -> None:
    """On each connection it leaves a frame of which a byte is missing, and does not read."""
    limits = Limits(max_frame_bytes=2 * MIB, max_queue_bytes=MIB, max_queue_shared_bytes=2 * MIB)

    async def main() -> None:
        async with network.node(0, max_frame_bytes=2 * MIB) as (a, _), AsyncExitStack() as stack:
            most = []
            for number in range(10):
                other = await stack.enter_async_context(raw(a.address, network.client(1)))
                await other.greet(1, b"l" * 16, serial=2 * number + 1)
                transport = other.writer.transport
                assert isinstance(transport, asyncio.Transport)
                transport.pause_reading()
                await send_part(other, 2 * MIB, 2 * MIB - 1)
                await until(lambda: any(of_state(a, LIVE, 2 * MIB - 1)))
                most.append(held())
            assert max(most) > 3 * MIB  # two of them
            assert max(most) + limits.max_queue_bytes <= held_for_one_peer(limits)

    run(main())


def of_state(transport: Transport, state: ConnectionState, size: int) -> Iterator[bool]:
    return (one.state is state and one.arriving == size for one in transport._connections.open)


def test_what_was_held_of_a_peer_that_breaks_the_rules_is_let_go_at_once(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_frame_bytes=2 * MIB) as (a, log), raw(a.address, network.client(1)) as other:
            await other.greet(1, b"l" * 16)
            await send_part(other, 2 * MIB, 2 * MIB - 1)
            await until(lambda: any(of_state(a, LIVE, 2 * MIB - 1)))
            (connection,) = a._connections.open
            for _ in range(connection._limits.max_violations):
                a.report_violation(1, "is tried here")
            assert connection._large is None and not log.frames

    run(main())


def test_the_same_piece_waits_for_many_and_is_held_once(network: TlsNetwork) -> None:
    payload = os.urandom(8 * MIB)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            a, log = await stack.enter_async_context(network.node(0, max_frame_bytes=9 * MIB))
            for party in (1, 2, 3, 4):
                await stack.enter_async_context(closed_listener(network, party))
            tracemalloc.start()
            for party in (1, 2, 3, 4):
                for number in range(3):
                    a.send(party, (b"head", payload, b"tail"), number)
            peers = a._connections.peers.values()
            assert sum(len(peer.queue) for peer in peers) == 12
            batches = [peer.next_batch()[0] for peer in peers for _ in range(3)]
            assert tracemalloc.get_traced_memory()[1] < MIB
            tracemalloc.stop()
            for batch in batches:
                assert b"".join(batch)[HEADER.size :] == b"head" + payload + b"tail"
                assert len(batch) == 3 and len(batch[0]) == RECORD_BYTES  # it begins with a full record
            assert not log.unsent_tokens

    run(main())


def test_pieces_arrive_as_one_frame(network: TlsNetwork) -> None:
    pieces = tuple(random.Random(1).randbytes(size) for size in (3, 70_000, 0, 16_384, 100, 3 * MIB, 200_000, 5))

    async def main() -> None:
        async with network.node(0) as (a, _), network.node(1) as (_, log):
            for number in range(2 * len(pieces)):
                a.send(1, pieces[number % 8 :], number)
                a.send(1, b"%d" % number)
            await log.reach(4 * len(pieces))
            for number in range(2 * len(pieces)):
                assert log.frames[2 * number : 2 * number + 2] == [
                    (0, b"".join(pieces[number % 8 :])),
                    (0, b"%d" % number),
                ]

    run(main())


def test_queues_are_bounded_whatever_frames_are_like(network: TlsNetwork) -> None:
    """Tiny frames cost more than their bytes; large pieces count by themselves."""
    large = bytes(MIB)

    async def main() -> None:
        bounds: dict[str, Any] = {
            "max_frame_bytes": MIB + 10,
            "max_queue_bytes": 100_000,
            "max_queue_shared_bytes": 3 * MIB,
        }
        async with network.node(0, **bounds) as (a, log), closed_listener(network, 1), closed_listener(network, 2):
            for number in range(5000):
                a.send(1, b"", number)
            assert len(a._connections.peers[1].queue) < 1000
            for number in range(5):
                a.send(2, (b"h", large), 10_000 + number)
            await until(lambda: 10_001 in log.unsent_tokens)
            assert [waiting[-1] for waiting in a._connections.peers[2].queue] == [10_002, 10_003, 10_004]
            left = [waiting[-1] for waiting in a._connections.peers[1].queue]
            assert left == list(range(5000 - len(left), 5000))  # the oldest are given up
        assert sorted(log.unsent_tokens, key=str) == sorted([*range(5000), *range(10_000, 10_005)], key=str)

    run(main())


def test_a_ping_is_answered_between_large_frames(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_frame_bytes=16 * MIB) as (a, log), raw(a.address, network.client(1)) as other:
            await other.greet(1, b"l" * 16)
            await until(lambda: a.connected)
            (connection,) = a._connections.open
            for _ in range(4):
                a.send(1, bytes(16 * MIB))
            await until(lambda: not connection.writable and len(a._connections.peers[1].queue) < 4)
            for number in (0, 6, 7):  # number 0 asks for a sign of life, which there is
                other.writer.write(packed(PING, PING_BODY.pack(number, 1.0)))
            await until(lambda: connection.unanswered_ping is not None and connection.unanswered_ping[0] == 7)
            kinds = [(await other.frame()) for _ in range(5)]
            assert [kind for kind, _ in kinds].index(PONG) < 4  # not after all that waits
            (answer,) = [body for kind, body in kinds if kind == PONG]
            assert PONG_BODY.unpack(answer)[:2] == (7, 1.0) and not log.violations

    run(main())
