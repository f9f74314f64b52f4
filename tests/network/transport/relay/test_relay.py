"""Frames through a relay: real transports on both sides, a real relay, real TLS inside and outside."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import replace

import msgspec
import pytest

from helpers.blind_relays import RelayNetwork, address_of, registered
from helpers.transports import run, until
from inca.errors import InvalidInput, PeerUnreachable
from inca.network.addresses import Address
from inca.network.transport.failures import FailureCause
from inca.network.transport.interface import TransportConfig
from inca.network.transport.limits import Limits
from inca.network.transport.relay.messages import CallJoined, Incoming
from inca.network.transport.relay.server import Relay
from inca.network.transport.relay.server_link import ServerLink

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
            await until(lambda: a.registered)
            before = relay.switchboard.counts.refused.total()
            with pytest.raises(PeerUnreachable, match="does not have the peer"):
                await a.measure(1)
            assert relay.switchboard.counts.refused.total() == before  # asked, and not called in vain
            async with network.node(1) as (_, other):
                await registered(relay, 2)
                await a.measure(1)
                a.send(1, b"here")
                await other.reach(1)
            await until(lambda: not a.connected)
            assert [failure.cause for _, failure in log.losses] == [FailureCause.LOST]

    run(main())


def test_direct_where_it_can_be_and_through_the_relay_else(network: RelayNetwork) -> None:
    """Party 0 has an address of its own, and is at the relay too; party 1 is at the relay alone."""

    async def main() -> None:
        async with network.relay(0, 1) as relay:
            network.addresses[0] = [Address("127.0.0.1", 1), *network.addresses[0]]
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
                await registered(relay, 2)
                b.send(0, b"straight")
                await log_a.reach(1)
                (connected,) = [fields for name, fields in log_a.log if name == "connected"]
                assert "wss" not in str(connected["address"]) and not relay.switchboard.data
                assert log_b.log[-1][1]["address"] == str(network.addresses[0][0])
            async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
                await registered(relay, 2)
                a.send(1, b"by the relay")
                await log_b.reach(1)
                assert len(relay.switchboard.data) == 2 and a.connected == {1}
                network.addresses[0][0] = Address("127.0.0.1", 1)  # a firewall comes up
                for link in list(relay.switchboard.data):
                    link.abort()
                await until(lambda: not b.connected)
                b.send(0, b"around it")
                await log_a.reach(1)
                assert not log_b.downs

    run(main())


def test_a_party_at_no_relay_reaches_those_who_are(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(1) as relay, network.node(0) as (a, _), network.node(1) as (_, log):
            await registered(relay, 1)
            a.send(1, b"x")
            await log.reach(1)
            assert not a.registered

    run(main())


def test_five_parties_all_at_once_through_one_relay(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(*range(5)) as relay, AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(network.node(party)) for party in range(5)]
            await registered(relay, 5)
            for number in range(20):
                for i, (node, _) in enumerate(nodes):
                    for j in range(5):
                        if j != i:
                            node.send(j, bytes((i, number)) + bytes(2000 * (number % 7)))
            await until(lambda: all(len(log.frames) == 80 for _, log in nodes))
            for i, (node, log) in enumerate(nodes):
                assert node.connected == set(range(5)) - {i}
                assert not log.unsent_tokens and not log.downs and not log.complaints
            await until(lambda: len(relay.switchboard.data) == 20)  # one connection for each pair

    run(main())


def test_a_second_process_with_our_key_is_told_and_so_are_we(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(0, limits={"give_way_s": 0.5}) as relay, network.node(0) as (a, log):
            await registered(relay, 1)
            async with network.node(0) as (copy, other):
                await until(lambda: other.registrations and log.contests)
                failure = other.registrations[0][1]
                assert failure is not None and failure.cause is FailureCause.RELAY_REFUSES
                assert "second one, or a copy" in failure.detail
                assert log.contests == [address_of(relay)] and a.registered and not copy.registered

    run(main())


def test_a_process_that_starts_anew_is_registered_again(network: RelayNetwork) -> None:
    """Also if the relay does not know that the one before is gone."""

    async def main() -> None:
        async with network.relay(0, limits={"give_way_s": 0.5}) as relay:
            async with network.node(0):
                await registered(relay, 1)
                (dead,) = relay.switchboard.registered.values()
                assert dead.transport is not None
                dead.hold("its network is cut")
            async with network.node(0) as (a, log):
                await until(lambda: a.registered)
                assert not log.contests and relay.switchboard.registered[network.names[0]] is not dead

    run(main())


def test_labels_tell_outsiders_apart(network: RelayNetwork) -> None:
    """A stranger who calls makes violations of its own origin, at this relay, and not of the parties there."""

    async def main() -> None:
        async with network.relay(1) as relay, network.node(1, max_pending_per_address=2) as (b, log):
            await registered(relay, 1)
            async with AsyncExitStack() as stack:
                strangers = [await stack.enter_async_context(network.visitor(relay)) for _ in range(3)]
                for stranger in strangers:
                    await stranger.say(stranger.claim(network.stranger, "dial", network.names[1]))
                answers = [await stranger.hear() for stranger in strangers]
                assert sorted(type(answer).__name__ for answer in answers) == [
                    "CallJoined",
                    "CallJoined",
                    "ClaimRefused",
                ]
                joined = [one for one, answer in zip(strangers, answers, strict=True) if isinstance(answer, CallJoined)]
                await joined[0].socket.send(b"no TLS")
                await until(lambda: log.violations)
                (culprit,) = b._connections._violations._culprits
                assert str(culprit).endswith(f"at {address_of(relay)}") and "127.0.0.1:" not in str(culprit).split()[0]
                assert log.violations[0][0] is None

    run(main())


def test_a_call_that_the_callee_gives_up_before_it_is_joined(network: RelayNetwork) -> None:
    """When too many are pending, the oldest gives way, whether or not its stream has begun."""

    class Slow(Relay):
        def on_opened(self, link: ServerLink) -> None:
            if not self.switchboard.registered:
                super().on_opened(link)

    async def main() -> None:
        async with network.relay(1, kind=Slow) as relay, network.node(1, max_pending=2) as (b, log):
            await registered(relay, 1)
            (control,) = relay.switchboard.registered.values()
            for number in range(5):
                control.send_text(msgspec.json.encode(Incoming(f"ticket-{number}", f"origin-{number}")))
            await until(lambda: "refused" in log.logged)
            assert b._connections._acceptor.pending == 2

    run(main())


def test_access_is_needed_for_addresses_at_relays(network: RelayNetwork) -> None:
    relayed = [[Address.parse("wss://relay.example.org")]] * 5
    config = TransportConfig(
        me=0,
        addresses=[[Address("127.0.0.1", 1)]] * 5,
        session=bytes(32),
        server=network.server(0),
        client=network.client(0),
        identify=network.identify,
        limits=Limits(),
    )
    with pytest.raises(InvalidInput, match="relay: parties are reached at relays"):
        replace(config, addresses=relayed)
    few = replace(network.access(0), names=network.names[:4])
    with pytest.raises(InvalidInput, match=r"relay\.names must be a name for each of the 5 parties"):
        replace(config, addresses=relayed, relay=few)
