"""A peer with several addresses: which is tried when, and what is said when none leads to it."""

from __future__ import annotations

import pytest

from helpers.pace import allowance
from helpers.transports import TlsNetwork, closed_listener, closed_port, run, until
from inca.errors import PeerUnreachable
from inca.network.addresses import Address
from inca.network.transport import connections
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.routes import AVOID_S, Routes

DIRECT, FIRST, SECOND = (
    Address("10.0.0.1", 7001),
    Address.parse("wss://one.example"),
    Address.parse("wss://two.example"),
)
ADDRESSES = (DIRECT, FIRST, SECOND)
DROPPED = Failure(FailureCause.TIMED_OUT, "nothing answers")
ABSENT = Failure(FailureCause.NOT_REGISTERED, "not there yet")


def test_each_is_tried_once_in_order_and_then_all_is_said() -> None:
    routes = Routes()
    assert routes.next(ADDRESSES, 0.0) == DIRECT and routes.more
    assert routes.failed(DROPPED, 0.0) is None
    assert routes.next(ADDRESSES, 0.0) == FIRST
    assert routes.failed(ABSENT, 0.0) is None
    assert routes.next(ADDRESSES, 0.0) == SECOND and not routes.more
    told = routes.failed(DROPPED, 0.0)
    assert told == Failure(FailureCause.NOT_REGISTERED, "nothing answers; not there yet")
    assert routes.next(ADDRESSES, 0.0) == DIRECT  # all have failed: the preferred one first again


def test_what_failed_comes_last_for_a_while() -> None:
    routes = Routes()
    routes.next(ADDRESSES, 0.0)
    routes.failed(DROPPED, 1.0)
    assert routes.next(ADDRESSES, 2.0) == FIRST
    routes.reached(by_us=True)
    assert [routes.next(ADDRESSES, AVOID_S) for _ in range(3)] == [FIRST, SECOND, DIRECT]
    routes.reached(by_us=True)  # by the direct one, which is preferred from now on
    assert routes.next(ADDRESSES, AVOID_S) == DIRECT
    routes.failed(DROPPED, AVOID_S)
    routes.reached(by_us=False)  # the peer has come by itself
    assert routes.next(ADDRESSES, AVOID_S + 1.0) == FIRST
    routes.reached(by_us=False)
    assert routes.next(ADDRESSES, 2 * AVOID_S) == DIRECT  # a while has passed


def test_where_both_dialled_at_once_the_same_address_is_tried_again() -> None:
    routes = Routes()
    routes.next(ADDRESSES, 0.0)
    routes.again()
    assert routes.next(ADDRESSES, 0.0) == DIRECT and routes.more


@pytest.fixture
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


@pytest.mark.real_time
def test_another_address_of_the_peer_is_dialled_and_nobody_hears_of_the_first(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log), network.node(1) as (_, other):
            (there,) = network.addresses[1]
            with closed_port(network, 1):
                network.addresses[1] = [*network.addresses[1], there]
                a.send(1, b"x")
                await other.reach(1)
                assert not log.downs and not log.violations and not log.unsent_tokens

    run(main())


@pytest.mark.real_time
def test_an_address_that_never_answers_costs_little(network: TlsNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_PATIENCE_WITH_OTHERS_S", 1.0 * allowance())

    async def main() -> None:
        async with network.node(0, handshake_timeout_s=3600.0) as (a, log), network.node(1) as (_, other):
            (there,) = network.addresses[1]
            async with closed_listener(network, 1):
                network.addresses[1] = [*network.addresses[1], there]
                a.send(1, b"x")
                await other.reach(1)
            assert not log.downs and not log.unsent_tokens

    run(main())


@pytest.mark.real_time
def test_if_none_leads_to_the_peer_it_is_down_once_for_all_reasons(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, log), network.node(2):
            with closed_port(network, 1):
                network.addresses[1] = [*network.addresses[1], *network.addresses[2]]
                with pytest.raises(PeerUnreachable, match=r"nothing listens.*; .*certificate") as caught:
                    await a.measure(1)
            assert caught.value.cause is FailureCause.WRONG_CERTIFICATE
            await until(lambda: len(log.downs) == 1)

    run(main())
