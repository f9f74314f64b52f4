"""Connections before the start are opened a few at a time, and in large sessions to those alone that are needed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import ledgers
from inca.network.node.connect_ahead import AT_ONCE, ConnectAhead, connected_ahead
from inca.network.node.transport_setup import limits_for
from inca.network.transport.limits import Limits

SESSION = replace(ledgers.SESSION, parties=50, rounds=20, dimension=1, period=4.0)


@given(count=st.integers(0, 60), order=st.randoms(use_true_random=False))
def test_all_peers_are_connected_to_in_order_and_few_at_once(count: int, order: random.Random) -> None:
    begun: list[int] = []
    ahead = ConnectAhead(begun.append)
    ahead.begin(range(count))
    over: set[int] = set()
    while set(begun) - over:
        assert len(set(begun) - over) <= AT_ONCE
        peer = order.choice(sorted(set(begun) - over))
        over.add(peer)
        ahead.settled(peer)
    assert begun == list(range(count))


def test_word_of_a_peer_that_was_not_waited_for_begins_nothing() -> None:
    begun: list[int] = []
    ahead = ConnectAhead(begun.append)
    ahead.begin(range(20))
    ahead.settled(19)
    ahead.settled(0)
    ahead.settled(0)
    assert begun == list(range(AT_ONCE + 1))


def test_a_peer_that_has_connected_itself_is_not_waited_for() -> None:
    """Nothing would be heard of a connection that stands already, and its place never be free again."""
    begun: list[int] = []
    ahead = ConnectAhead(begun.append)
    ahead.begin(range(4 * AT_ONCE))
    for peer in range(AT_ONCE, 3 * AT_ONCE):
        ahead.settled(peer)
    for peer in range(AT_ONCE):
        ahead.settled(peer)
    assert begun == [*range(AT_ONCE), *range(3 * AT_ONCE, 4 * AT_ONCE)]


@pytest.mark.parametrize(("parties", "peers"), [(3, 2), (50, 49), (128, 127), (129, 58), (300, 60), (1000, 62)])
def test_a_large_session_is_connected_where_it_is_needed(parties: int, peers: int) -> None:
    assert connected_ahead(replace(SESSION, parties=parties)) == peers


def test_limits_of_a_usual_session_are_the_usual_ones() -> None:
    usual, limits = Limits(), limits_for(SESSION)
    sizes = ("max_frame_bytes", "max_queue_bytes", "max_queue_shared_bytes")
    assert replace(limits, ping_timeout_s=10.0, **{name: getattr(usual, name) for name in sizes}) == usual
    assert 10.0 < limits.ping_timeout_s < 10.001  # a payload of two numbers may be in the way


def test_long_rounds_leave_more_time_and_many_parties_more_room() -> None:
    usual, limits = Limits(), limits_for(replace(SESSION, parties=1000, period=60.0))
    assert limits.handshake_timeout_s == limits.hello_timeout_s == 30.0
    assert limits.stall_timeout_s == 60.0 and limits.idle_timeout_s == 240.0
    assert limits.max_pending >= 1000 and limits.max_pending_per_address >= 999
    hours = limits_for(replace(SESSION, period=36_000.0))
    assert (hours.handshake_timeout_s, hours.stall_timeout_s, hours.idle_timeout_s) == (60.0, 120.0, 600.0)
    assert limits.max_violations == usual.max_violations and limits.penalty_s == usual.penalty_s
