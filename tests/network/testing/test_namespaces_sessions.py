"""Sessions of five parties at sites that nobody can connect to: through relays and proxies, the same as directly."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from helpers.netns.internet import DROPPED_S, PORT, Internet, need_namespaces
from helpers.netns.parties import (
    PERIOD_S,
    N,
    Parties,
    Seat,
    hidden_seat,
    mistaken_seat,
    open_seat,
)
from helpers.netns.proxy import proxy_url, start_proxy
from helpers.netns.relays import Relay
from helpers.pace import allowance

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

RESTART_S = 0.3 * PERIOD_S  # from the end of a relay to its next start


@pytest.fixture
def net() -> Iterator[Internet]:
    need_namespaces()
    with Internet() as net:
        yield net


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of a session without relays, of sites whose routers let the others in."""
    need_namespaces()
    with Internet() as net:
        parties = Parties.agree(tmp_path_factory.mktemp("direct"), [open_seat(net, i) for i in range(N)])
        parties.launch()
        return parties.finish()


@pytest.fixture
def relay(net: Internet, tmp_path: Path) -> Callable[[int], Relay]:
    return lambda number: Relay(net, number, tmp_path)


def assert_same(result: dict[str, Any], direct: dict[str, Any]) -> None:
    """Whatever the way, all values count, and what the session is said to give away is the same."""
    stated = ("cohort", "present", "weight", "epsilon", "delta", "wanted", "failure", "granularity", "standard_error")
    assert {name: result[name] for name in stated} == {name: direct[name] for name in stated}


def ways(parties: Parties) -> dict[frozenset[str], tuple[str, str]]:
    """Return for each pair of parties who has reached whom at which address, the last time that they connected."""
    entries = [(entry["time"], i, entry) for i in range(N) for entry in parties.log(i) if entry["event"] == "connected"]
    made = [(parties.names[i], entry) for _, i, entry in sorted(entries, key=itemgetter(0)) if entry["dialled"]]
    return {frozenset((name, entry["peer"])): (entry["peer"], entry["address"]) for name, entry in made}


def assert_closed(net: Internet, seats: list[Seat]) -> None:
    """The test of the test: a party behind its firewall cannot be reached, and the attempt is dropped there."""
    for number, seat in enumerate(seats):
        before = net.refused(number)
        assert seats[number - 1].place.dial(seat.place.address, PORT, seconds=DROPPED_S) == "TimeoutError"
        assert net.refused(number) > before


def test_all_through_one_relay(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    one = relay(1)
    seats = [replace(hidden_seat(net, i, [one]), card=()) for i in range(N)]  # the roster names it for all
    parties = Parties.agree(tmp_path, seats, common=[one])
    running = one.start("--allow", tmp_path / "roster.json")
    parties.launch()
    parties.wait_until(lambda: parties.in_round(1))
    assert_closed(net, seats)
    assert_same(parties.finish(), direct)
    assert len(ways(parties)) == N * (N - 1) // 2
    assert all(one.name in address for _, address in ways(parties).values())
    assert running.status is None


def test_one_of_two_relays_is_killed_in_mid_session(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    relays = [relay(1), relay(2)]
    parties = Parties.agree(tmp_path, [hidden_seat(net, i, relays) for i in range(N)])
    running = {each.name: each.start("--allow", tmp_path / "roster.json") for each in relays}
    parties.launch()
    parties.wait_until(lambda: parties.in_round(2))
    used = Counter(name for _, address in ways(parties).values() for name in running if name in address)
    killed, most = used.most_common(1)[0]
    assert 2 * most >= N * (N - 1) // 2
    running.pop(killed).kill()
    assert_same(parties.finish(), direct)
    assert not any(killed in address for _, address in ways(parties).values())
    assert [process.status for process in running.values()] == [None]


def test_a_site_whose_firewall_lets_it_reach_one_of_two_relays(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    first, second = relays = [relay(1), relay(2)]
    seats = [hidden_seat(net, i, relays, only=second.place.address if i == 0 else None) for i in range(N)]
    parties = Parties.agree(tmp_path, seats)
    for each in relays:
        each.start("--allow", tmp_path / "roster.json")
    assert seats[0].place.dial(first.place.address, 443, seconds=DROPPED_S) == "TimeoutError"
    parties.launch()
    assert_same(parties.finish(), direct)
    for pair, (_, address) in ways(parties).items():
        if parties.names[0] in pair:
            assert second.name in address


def test_the_only_relay_is_killed_and_is_back_within_a_period(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    one = relay(1)
    parties = Parties.agree(tmp_path, [hidden_seat(net, i, [one]) for i in range(N)])
    running = one.start("--allow", tmp_path / "roster.json")
    parties.launch()
    parties.wait_until(lambda: parties.in_round(2))
    running.kill()
    time.sleep(allowance() * RESTART_S)
    one.start("--allow", tmp_path / "roster.json")
    assert_same(parties.finish(), direct)


def test_through_a_proxy_that_only_connects_to_https(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    one, proxy = relay(1), net.host("proxy", 20)
    proxy.knows({one.name: one.place.address})
    said = start_proxy(proxy, tmp_path / "proxy.txt")
    settings = {"HTTPS_PROXY": proxy_url(proxy)}
    seats = [hidden_seat(net, i, [one], only=proxy.address, environment=settings) for i in range(N)]
    for seat in seats:
        seat.place.knows({})  # only the proxy knows where the relay is
    parties = Parties.agree(tmp_path, seats)
    one.start("--allow", tmp_path / "roster.json")
    assert seats[0].place.dial(one.place.address, 443, seconds=DROPPED_S) == "TimeoutError"
    parties.launch()
    assert_same(parties.finish(), direct)
    assert set(said.said.splitlines()) == {"listens", f"CONNECT {one.name}:443 200"}


def test_some_are_reached_directly_and_some_through_a_relay(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    one = relay(1)
    seats = [open_seat(net, i, [one]) if i < 2 else hidden_seat(net, i, [one]) for i in range(N)]
    parties = Parties.agree(tmp_path, seats)
    one.start("--allow", tmp_path / "roster.json")
    parties.launch()
    assert_same(parties.finish(), direct)
    for peer, address in ways(parties).values():
        number = parties.names.index(peer)
        assert address == f"{seats[number].place.address}:{PORT}" if number < 2 else one.name in address


def test_a_firewall_that_drops_what_comes_to_a_direct_address_costs_no_round(
    net: Internet, relay: Callable[[int], Relay], direct: dict[str, Any], tmp_path: Path
) -> None:
    one = relay(1)
    seats = [mistaken_seat(net, i, [one]) for i in range(N)]
    parties = Parties.agree(tmp_path, seats)
    one.start("--allow", tmp_path / "roster.json")
    parties.launch()
    assert_same(parties.finish(), direct)
    assert all(one.name in address for _, address in ways(parties).values())
    assert all(net.refused(i) > 0 for i in range(N))
