"""Limits follow from the session, and honest messages keep to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers import ledgers
from helpers.transports import held_for_one_peer
from inca.network.node.transport_setup import limits_for
from inca.network.protocol.messages import Account, Item, Items, Offer, OfferProof, Seen, encode
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, _encoder, in_batches
from inca.network.protocol.traffic import Traffic

SMALL = replace(ledgers.SESSION, parties=12, rounds=3, dimension=100, schedule="circle", period=4.0)
MILLION = replace(SMALL, dimension=10**6)
TEN_MILLION = replace(SMALL, parties=10, rounds=2, dimension=10**7, period=60.0)
MANY = replace(SMALL, parties=300, rounds=30, dimension=10**4)
SESSIONS = pytest.mark.parametrize("session", [SMALL, MILLION, MANY], ids=["small", "million", "many"])


@SESSIONS
def test_the_largest_honest_messages_keep_to_the_limits(session: SessionConfig) -> None:
    n, traffic = session.parties, Traffic(session)
    big = 2**32 - 1
    signature, hash_ = bytes(64), bytes(32)
    account = Account([big] * session.rounds, [3] * session.rounds, [big] * session.rounds)
    digest = Item("digest", n - 1, _encoder.encode(Digest(account, hash_, [hash_] * COHORTS)), signature)
    body = _encoder.encode(Deposit(8, hash_, hash_, hash_, bytes(80 * n)))
    deposit = Item("deposit", n - 1, body, signature, bytes(traffic.sealed_bytes))
    proof = OfferProof(big, bytes(8), hash_, signature)
    frames = [
        encode(Offer(big, bytes(session.payload_bytes), signature)),
        encode(Seen([proof] * 2 * session.rounds, big, big, [digest.proof] * 3)),
        *(encode(Items(batch)) for items in ([digest] * n, [deposit] * 4) for batch in in_batches(items)),
    ]
    assert max(map(len, frames)) < traffic.message_bytes
    beside = [len(item.body) + len(item.signature) for item in (digest, deposit)]
    assert sum(beside) * n < traffic.backlog_bytes
    assert traffic.sealed_bytes * n + session.payload_bytes * session.rounds < traffic.all_payload_bytes


@SESSIONS
def test_an_honest_peer_is_never_held_back_and_all_that_is_for_it_may_wait(session: SessionConfig) -> None:
    traffic, limits = Traffic(session), limits_for(session)
    assert limits.burst_bytes >= traffic.all_payload_bytes <= limits.max_queue_shared_bytes
    assert limits.bytes_per_second * session.period >= traffic.all_payload_bytes


@pytest.mark.parametrize(("session", "megabytes"), [(SMALL, 42), (MILLION, 66), (TEN_MILLION, 282)])
def test_what_one_peer_can_make_a_transport_hold(session: SessionConfig, megabytes: int) -> None:
    """The bound that is tried in `tests/network/transport/test_large_frames.py`."""
    assert held_for_one_peer(limits_for(session)) // 10**6 == megabytes


def test_an_answer_to_a_ping_waits_for_two_payloads() -> None:
    assert limits_for(MILLION).ping_timeout_s == 10.0 + 2 * 4.0  # a payload takes a period at most
    assert limits_for(TEN_MILLION).ping_timeout_s == 30.0 + 2 * 60.0
    assert limits_for(replace(TEN_MILLION, period=3600.0)).ping_timeout_s == pytest.approx(60.0 + 2 * 80.0)
