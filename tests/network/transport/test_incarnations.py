"""Processes that die and come again: the latest incarnation counts, and no earlier one is heard after it."""

from __future__ import annotations

import asyncio
import random
import struct
import time

import pytest

from helpers.transports import RecordedEvents, TlsNetwork, packed, raw, run, until
from inca.network.transport.frames import DATA, Bye, Hello

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


def test_the_latest_incarnation_wins_and_the_old_one_is_mute(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log):
            context = network.client(1)
            async with raw(a.address, context) as old, raw(a.address, context) as new:
                await old.greet(1, b"o" * 16)
                old.writer.write(packed(DATA, b"old"))
                await log.reach(1)
                await new.greet(1, b"n" * 16)
                new.writer.write(packed(DATA, b"new"))
                old.writer.write(packed(DATA, b"late"))
                await log.reach(2)
                await old.ended()
                await asyncio.sleep(0.05)
                assert log.frames == [(1, b"old"), (1, b"new")]
                async with raw(a.address, context) as again:  # two processes with one key: no turning back
                    await again.greet(1, b"o" * 16, 5)
                    assert await again.bye() is Bye.OLD_INCARNATION
                assert a.connected == {1}
            await until(lambda: not a.connected)

    run(main())


def test_a_hello_of_a_dead_process_does_not_count(network: TlsNetwork) -> None:
    """It lay in the network when a later incarnation arrived: nobody can confirm it."""

    async def main() -> None:
        async with network.node(0) as (a, log):
            context = network.client(1)
            async with raw(a.address, context) as new, raw(a.address, context) as dead:
                await new.greet(1, b"n" * 16)
                dead.hello(1, b"d" * 16)
                dead.hello(1, b"d" * 16, 2, b"a guessed nonce!")
                dead.writer.write(packed(DATA, b"from the grave"))
                await dead.ended()
                new.writer.write(packed(DATA, b"alive"))
                await log.reach(1)
                assert log.frames == [(1, b"alive")] and a.connected == {1}

    run(main())


def test_an_answer_to_a_process_that_died_does_not_count(network: TlsNetwork) -> None:
    """Its confirmation arrives after a later incarnation is there."""

    async def main() -> None:
        async with network.node(0) as (a, log):
            context = network.client(1)
            async with raw(a.address, context) as early, raw(a.address, context) as new:
                early.hello(1, b"e" * 16)
                answer = Hello.decode((await early.frame())[1])
                await new.greet(1, b"n" * 16)
                await until(lambda: a.connected)
                early.hello(1, b"e" * 16, 2, answer.nonce)
                early.writer.write(packed(DATA, b"too late"))
                assert await early.bye() is Bye.OLD_INCARNATION
                new.writer.write(packed(DATA, b"alive"))
                await log.reach(1)
                assert log.frames == [(1, b"alive")] and log.ups == [1]

    run(main())


def test_a_second_connection_of_the_same_incarnation_replaces_the_first(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(2) as (a, log):
            context = network.client(1)
            async with raw(a.address, context) as first, raw(a.address, context) as second:
                await first.greet(1, b"l" * 16, 5)
                await until(lambda: a.connected)
                a.send(1, b"perhaps lost", "perhaps lost")
                first.writer.write(packed(DATA, b"before"))
                async with raw(a.address, context) as stale:
                    stale.hello(1, b"l" * 16, 2)
                    assert await stale.bye() is Bye.SIMULTANEOUS
                second.hello(1, b"l" * 16, 8)  # said by somebody who has lost the first
                assert await first.frame() == (DATA, b"perhaps lost")
                assert await first.bye() is Bye.REPLACED
                assert log.doubtful_tokens == ["perhaps lost"]
                assert not a.connected
                answer = Hello.decode((await second.frame())[1])
                second.hello(1, b"l" * 16, 9, answer.nonce)
                first.writer.write(packed(DATA, b"on its way"))
                await log.reach(2)
                a.send(1, b"answer")
                assert await second.frame() == (DATA, b"answer")

    run(main())


def test_restarts_at_random(network: TlsNetwork) -> None:
    """What is unsent never arrives, nothing arrives twice or out of order, and no earlier incarnation speaks again."""
    rng = random.Random(3)

    async def main() -> None:
        arrived: dict[int, list[tuple[int, int, int]]] = {}
        unsent: set[object] = set()
        sent = 0
        logs: list[RecordedEvents] = []
        give_up = time.perf_counter() + 60.0

        def over(end: float) -> bool:
            """However slow the machine is, there must be something to look at."""
            enough = sum(len(log.frames) for log in logs) >= 100
            return time.perf_counter() > (end if enough else give_up)

        async def live(me: int, end: float) -> None:
            nonlocal sent
            for incarnation in range(100):
                if over(end):
                    return
                async with network.node(me, idle_timeout_s=0.2) as (node, log):
                    logs.append(log)
                    death = time.perf_counter() + rng.uniform(0.05, 0.8)
                    while time.perf_counter() < death or (not node.connected and not over(end)):
                        for _ in range(rng.randrange(4)):
                            peer = rng.choice([party for party in range(4) if party != me])
                            sent += 1
                            frame = struct.pack(">III", me, incarnation, sent) + bytes(rng.choice([0, 100, 50_000]))
                            node.send(peer, frame, sent)
                        await asyncio.sleep(rng.choice([0, 0.001, 0.02]))
                assert not log.complaints, log.complaints
                unsent.update(log.unsent_tokens)
                arrived[100 * me + incarnation] = [struct.unpack_from(">III", frame) for _, frame in log.frames]

        await asyncio.gather(*(live(me, time.perf_counter() + 2.5) for me in range(4)))
        numbers = [number for frames in arrived.values() for _, _, number in frames]
        assert len(numbers) == len(set(numbers)) >= 100
        assert unsent and not unsent & set(numbers)
        for frames in arrived.values():
            for sender in range(4):
                mine = [(incarnation, number) for who, incarnation, number in frames if who == sender]
                assert mine == sorted(mine)

    run(main())
