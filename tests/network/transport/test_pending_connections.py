"""Connections that say nothing, from few addresses, leave no party out: over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from helpers.transports import TlsNetwork, raw, run, until

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def idle(
    address: tuple[str, int], counts: dict[str, int]
) -> AsyncIterator[dict[str, list[asyncio.StreamReader]]]:
    """Connect so many times from each address, and say nothing."""
    readers: dict[str, list[asyncio.StreamReader]] = {}
    writers = []
    try:
        for origin, count in counts.items():
            for _ in range(count):
                reader, writer = await asyncio.open_connection(*address, local_addr=(origin, 0))
                readers.setdefault(origin, []).append(reader)
                writers.append(writer)
        yield readers
    finally:
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def ended(readers: list[asyncio.StreamReader]) -> list[bool]:
    """Which connections the other side has closed."""
    return [reader.at_eof() or reader.exception() is not None for reader in readers]


THREE = {"127.0.0.2": 100, "127.0.0.3": 100, "127.0.0.4": 100}


def test_300_idle_connections_from_three_addresses_leave_no_party_out(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, handshake_timeout_s=60.0) as (a, log), idle(a.address, THREE) as readers:
            assert 300 > a._limits.max_pending == 256
            await until(lambda: sum(map(sum, map(ended, readers.values()))) >= 300 - 256)
            async with network.node(1) as (b, _), network.node(2) as (c, _):
                await b.measure(0)
                await c.measure(0)
                assert a.connected == {1, 2}
            await until(lambda: "refused" in log.logged)
            reasons = [str(fields["reason"]) for name, fields in log.log if name == "refused"]
            assert all("gave way" in reason for reason in reasons)
            assert not log.violations  # who is slow to speak breaks no rule before its time is over

    run(main())


def test_the_oldest_of_the_largest_origin_gives_way_and_the_others_stay(network: TlsNetwork) -> None:
    counts = {"127.0.0.2": 2, "127.0.0.3": 5, "127.0.0.4": 3}

    async def main() -> None:
        async with (
            network.node(0, handshake_timeout_s=60.0, max_pending=10) as (a, _),
            idle(a.address, counts) as readers,
            idle(a.address, {"127.0.0.5": 2}) as newer,
        ):
            await until(lambda: sum(ended(readers["127.0.0.3"])) == 2)
            assert ended(readers["127.0.0.3"]) == [True, True, False, False, False]
            assert not any(ended(readers["127.0.0.2"]) + ended(readers["127.0.0.4"]) + ended(newer["127.0.0.5"]))

    run(main())


def test_a_party_whose_hello_is_done_gives_way_to_nobody(network: TlsNetwork) -> None:
    async def main() -> None:
        async with (
            network.node(0, handshake_timeout_s=60.0, max_pending=3) as (a, log),
            raw(a.address, network.client(1)) as other,
        ):
            await other.greet(1, b"l" * 16)
            await until(lambda: a.connected == {1})
            async with idle(a.address, {"127.0.0.1": 6}) as readers, network.node(2) as (b, _):
                await until(lambda: sum(ended(readers["127.0.0.1"])) == 3)
                assert a.connected == {1} and not log.losses
                await b.measure(0)
                assert a.connected == {1, 2}

    run(main())
