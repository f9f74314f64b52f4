"""Frames through a relay: real transports on both sides, a real relay, real TLS inside and outside."""

from __future__ import annotations

import random

import pytest

from helpers.blind_relays import RelayNetwork, address_of, registered
from helpers.transports import run, until
from inca.errors import PeerUnreachable
from inca.network.transport.failures import FailureCause

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


def test_frames_arrive_in_order_and_intact_both_ways(network: RelayNetwork) -> None:
    sizes = [0, 1, 5, 16379, 16384, 80_000, 262_144, 800_000, 3_000_000, 7]
    frames = [random.Random(size).randbytes(size) for size in sizes] + [b"%d" % i for i in range(1000)]

    async def main() -> None:
        async with network.relay(0, 1) as relay, network.node(0) as (a, log_a), network.node(1) as (b, log_b):
            await registered(relay, 2)
            for frame in frames:
                a.send(1, frame)
                b.send(0, frame)
            await log_b.reach(len(frames))
            await log_a.reach(len(frames))
            assert [frame for _, frame in log_b.frames] == frames == [frame for _, frame in log_a.frames]
            assert a.connected == {1} and a.registered == {address_of(relay)}
            assert log_a.ups == [1] and log_b.ups == [0] and not log_a.unsent_tokens and not log_a.downs
            assert not log_a.violations + log_b.violations
            with pytest.raises(RuntimeError, match="does not listen"):
                _ = a.address

    run(main())


def test_a_peer_that_is_not_there_yet(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(0, 1) as relay, network.node(0) as (a, log):
            with pytest.raises(PeerUnreachable, match="does not have the peer") as caught:
                await a.measure(1)
            assert caught.value.cause is FailureCause.NOT_REGISTERED
            async with network.node(1) as (_, other):
                await registered(relay, 2)
                await a.measure(1)
                a.send(1, b"here")
                await other.reach(1)
            await until(lambda: not a.connected)
            assert [failure.cause for _, failure in log.losses] == [FailureCause.LOST]

    run(main())
