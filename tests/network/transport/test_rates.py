"""How fast a peer takes bytes is measured by padding that it drops."""

from __future__ import annotations

import pytest

from helpers.relays import Absence, relay
from helpers.transports import TlsNetwork, packed, raw, run
from inca.errors import PeerUnreachable
from inca.network.testing.local_cluster import free_ports
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import PAD, PAD_BYTES, Bye

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("rate", [2e5, 1e6])
def test_the_rate_of_a_link_is_measured(network: TlsNetwork, rate: float) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log_a), network.node(1) as (b, log_b):
            fast = await a.measure_rate(1, 2**20, 30.0)
            port = free_ports(1)[0]
            async with relay(port, b.address[1], rate=rate), network.node(2) as (c, _):
                network.move(1, ("127.0.0.1", port))
                measured = await c.measure_rate(1, 2**20, 4.0)
            assert 0.1 * rate < measured < 1.2 * rate < fast
            assert not log_a.frames and not log_b.frames and not log_b.violations  # nobody hears of it

    run(main())


def test_a_link_that_takes_nothing_in_time_has_at_most_the_rate_that_it_did_not_bear(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(1) as (b, _):
            port = free_ports(1)[0]
            async with relay(port, b.address[1], rate=2e4), network.node(0) as (a, _):
                network.move(1, ("127.0.0.1", port))
                assert await a.measure_rate(1, 2**20, 1.0) < 2 * PAD_BYTES

    run(main())


@pytest.mark.parametrize("absence", ["closes", "resets"])
def test_a_relay_without_a_party_behind_it_gives_no_answer(network: TlsNetwork, absence: Absence) -> None:
    async def main() -> None:
        port, nothing = free_ports(2)
        async with relay(port, nothing, absence), network.node(0) as (a, log):
            network.move(1, ("127.0.0.1", port))
            with pytest.raises(PeerUnreachable) as caught:
                await a.measure_rate(1, 1, 1.0)
            assert caught.value.cause is FailureCause.NO_ANSWER and not log.violations

    run(main())


def test_padding_is_bounded_and_comes_after_hello(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log):
            for sent, greets in ((packed(PAD, bytes(PAD_BYTES + 1)), True), (packed(PAD, b"x"), False)):
                async with raw(a.address, network.client(1)) as other:
                    if greets:
                        await other.greet(1, b"l" * 16)
                        other.writer.write(packed(PAD) + packed(PAD, bytes(PAD_BYTES)))
                    other.writer.write(sent)
                    assert await other.bye() is Bye.PROTOCOL
            assert "kind 6" in log.complaints[0] and "before hello" in log.complaints[1]

    run(main())
