"""Processes that die and come again: the latest life counts, and no earlier one is heard after it."""

from __future__ import annotations

import asyncio
import random
import struct
import time

import pytest

from helpers.transports import World, packed, raw, run, until
from inca.network.transport.frames import DATA, Bye, Hello


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


def test_the_latest_life_wins_and_the_old_one_is_mute(world: World) -> None:
    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
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
                    assert await again.bye() is Bye.LIFE
                assert a.connected == {1}
            await until(lambda: not a.connected)

    run(main())


def test_a_hello_of_a_dead_process_does_not_count(world: World) -> None:
    """It lay in the network when a later life arrived: nobody can confirm it."""

    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
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


def test_an_answer_to_a_process_that_died_does_not_count(world: World) -> None:
    """Its confirmation arrives after a later life is there."""

    async def main() -> None:
        async with world.node(0) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as early, raw(a.address, context) as new:
                early.hello(1, b"e" * 16)
                answer = Hello.decode((await early.frame())[1])
                await new.greet(1, b"n" * 16)
                await until(lambda: a.connected)
                early.hello(1, b"e" * 16, 2, answer.nonce)
                early.writer.write(packed(DATA, b"too late"))
                assert await early.bye() is Bye.LIFE
                new.writer.write(packed(DATA, b"alive"))
                await log.reach(1)
                assert log.frames == [(1, b"alive")] and log.ups == [1]

    run(main())


def test_a_second_connection_of_the_same_life_replaces_the_first(world: World) -> None:
    async def main() -> None:
        async with world.node(2) as (a, log):
            context = world.client(1)
            async with raw(a.address, context) as first, raw(a.address, context) as second:
                await first.greet(1, b"l" * 16, 5)
                await until(lambda: a.connected)
                first.writer.write(packed(DATA, b"before"))
                async with raw(a.address, context) as stale:
                    stale.hello(1, b"l" * 16, 2)
                    assert await stale.bye() is Bye.SIMULTANEOUS
                second.hello(1, b"l" * 16, 8)  # said by somebody who has lost the first
                assert await first.bye() is Bye.REPLACED
                assert not a.connected
                answer = Hello.decode((await second.frame())[1])
                second.hello(1, b"l" * 16, 9, answer.nonce)
                first.writer.write(packed(DATA, b"on its way"))
                await log.reach(2)
                a.send(1, b"answer")
                assert await second.frame() == (DATA, b"answer")

    run(main())


def test_restarts_at_random(world: World) -> None:
    """What is unsent never arrives, nothing arrives twice or out of order, and no life speaks after a later one."""
    chance = random.Random(3)

    async def main() -> None:
        arrived: dict[int, list[tuple[int, int, int]]] = {}
        unsent: set[object] = set()
        sent = [0]

        async def live(me: int, end: float) -> None:
            for life in range(100):
                if time.perf_counter() > end:
                    return
                async with world.node(me, idle=0.2) as (node, log):
                    until_ = min(time.perf_counter() + chance.uniform(0.05, 0.8), end + 0.3)
                    while time.perf_counter() < until_:
                        for _ in range(chance.randrange(4)):
                            peer = chance.choice([each for each in range(4) if each != me])
                            sent[0] += 1
                            frame = struct.pack(">III", me, life, sent[0]) + bytes(chance.choice([0, 100, 50_000]))
                            node.send(peer, frame, sent[0])
                        await asyncio.sleep(chance.choice([0, 0.001, 0.02]))
                assert not log.reasons(), log.reasons()
                unsent.update(log.gave_up)
                arrived[100 * me + life] = [struct.unpack_from(">III", frame) for _, frame in log.frames]

        await asyncio.gather(*(live(me, time.perf_counter() + 2.5) for me in range(4)))
        numbers = [number for frames in arrived.values() for _, _, number in frames]
        assert len(numbers) == len(set(numbers)) > sent[0] / 3
        assert unsent and not unsent & set(numbers)
        for frames in arrived.values():
            for sender in range(4):
                mine = [(life, number) for who, life, number in frames if who == sender]
                assert mine == sorted(mine)

    run(main(), 15)
