"""What honest parties can send and hand over never exceeds the bounds; what exceeds them is not credited."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from helpers.ledgers import SESSION, possible, sessions
from helpers.network_faults import Faults
from helpers.parties import PACED, START, N, Room, offer_of
from helpers.simulated_network import SimulatedNetwork
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import NOISE_BOUND
from inca.network.lattice.fixed_point import granularity_for, largest_balance
from inca.network.protocol.context import Effects
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import MAX_NUMBER, Ack, Offer, Voided, pack, unpack
from inca.network.protocol.records import Began, Credited, Opened, Seeded, Tombstoned
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.share_bounds import largest_total, share_bounds
from inca.network.testing.expected_sum import expected_sum
from inca.protocol.topup import TopUp


def largest_noisy(session: SessionConfig) -> int:
    return session.largest_value + NOISE_BOUND * session.sigma_independent


# --- ledgers with the largest noise there can be --------------------------------------------------------------------


@contextmanager
def largest_noise(signs: dict[tuple[int, int], int]) -> Iterator[None]:
    """Let the mask of a party's r-th draw be as large as any, with the sign of (party, r); top-up is the largest."""

    def draw(ledger: Ledger, r: int) -> Numbers:
        most = NOISE_BOUND * ledger.session.sigma_cancelling
        return np.full(ledger.session.dimension, signs.get((ledger.me, r), 1) * most, dtype=np.int64)

    def topup(ledger: Ledger, sigma: int) -> Numbers:
        return np.full(ledger.session.dimension, NOISE_BOUND * sigma, dtype=np.int64)

    with patch.object(Ledger, "_draw", draw), patch.object(Ledger, "topup", topup):
        yield


def opened(session: SessionConfig, me: int, sign: int = 1) -> Ledger:
    """A ledger with the largest value there can be, and its noise."""
    ledger = Ledger(session, me)
    value = np.full(session.dimension, sign * largest_noisy(session), dtype=np.int64)
    ledger.apply(Opened(pack(value), bytes(32), bytes(32)))
    assert session.seed is not None
    ledger.apply(Seeded(session.seed))
    return ledger


LARGE: dict[str, Any] = {"largest_value": 2**34, "sigma_independent": 2**20, "sigma_cancelling": 2**33}


@settings(parent=examples(20, 100), deadline=None)
@given(st.data())
def test_no_honest_party_ever_has_to_send_more_than_the_bound_whatever_is_lost_or_lied(data: st.DataObject) -> None:
    """Rounds are missed, shares come back or are lost, and a liar sends as much as it may.

    No balance exceeds what the lattice is chosen for, whatever n is.
    """
    session = replace(data.draw(sessions()), **LARGE)
    n, T = session.parties, session.rounds
    rng = data.draw(st.randoms(use_true_random=False))
    liar = data.draw(st.sampled_from([None, 0]))
    bounds = share_bounds(session)
    steps = inca.NoiseLevels(independent=session.sigma_independent, cancelling=session.sigma_cancelling)
    most_held = largest_balance(steps, session.largest_value + 2 * T, 10**9, T) / 2.0
    with largest_noise({(i, r): rng.choice([1, -1]) for i in range(n) for r in range(T)}):
        ledgers = [opened(session, i, rng.choice([1, -1])) for i in range(n)]
        for _ in range(8 * n * T):
            i = rng.randrange(n)
            if not (events := possible(ledgers, i)):
                continue
            j, record = rng.choice(events)
            if isinstance(record, Began) and j != liar:
                assert not bounds.excess(Offer(record.round, record.share))
            if isinstance(record, Credited) and i == liar:
                most, weight = bounds.values[record.round], bounds.weights[record.round]
                lie = [rng.choice([1, -1]) * most for _ in range(session.dimension)]
                record = msgspec.structs.replace(record, payload=pack(np.array([*lie, weight], dtype=np.int64)))
            ledgers[j].apply(record)
            if j != liar:
                assert np.abs(ledgers[j].balance[:-1]).max() <= most_held + 3.0**T


def in_lockstep(session: SessionConfig, signs: dict[tuple[int, int], int]) -> dict[int, float]:
    """Hold all rounds with the largest numbers; return the largest share of each, as a fraction of the bound."""
    bounds, fractions = share_bounds(session), dict[int, float]()
    assert session.seed is not None
    topology = session.topology(session.seed)
    with largest_noise(signs):
        ledgers = [opened(session, i) for i in range(session.parties)]
        for t in range(1, session.rounds + 1):
            shares = [ledger.next_share() for ledger in ledgers]
            numbers = [np.abs(unpack(share, session.dimension + 1)[:-1]).max() for share in shares]
            fractions[t] = max(int(number) / bounds.values[t] for number in numbers)
            for ledger, share in zip(ledgers, shares, strict=True):
                ledger.apply(Began(t, share))
            for i, share in enumerate(shares):
                ledgers[topology.receivers[t][i]].apply(Credited(t, share))
    return fractions


def test_the_bound_is_reached_and_grows_by_a_mask_a_round_with_one_sender() -> None:
    """By a party whose masks have one sign while it holds them, where those that it hears from have the other."""
    session = replace(SESSION, parties=6, rounds=3, **{**LARGE, "largest_value": 2**20})
    mask, bounds = NOISE_BOUND * session.sigma_cancelling, share_bounds(session)
    rng = np.random.default_rng(3)
    best = dict.fromkeys((1, 2, 3), 0.0)
    for _ in range(200):
        signs = {(i, r): int(rng.choice([1, -1])) for i in range(6) for r in range(3)}
        best = {t: max(best[t], fraction) for t, fraction in in_lockstep(session, signs).items()}
    assert all(0.95 < fraction <= 1.0 for fraction in best.values())
    growth = [2 * (bounds.values[t + 1] - bounds.values[t]) / mask for t in (1, 2)]
    assert growth == pytest.approx([1.0, 1.0], abs=0.01)


def test_the_bound_grows_by_half_at_most_where_shares_come_back() -> None:
    session = replace(SESSION, rounds=60, **LARGE)
    values = share_bounds(session).values
    ratios = [values[t + 1] / values[t] for t in range(20, 40)]
    assert all(1.4 < ratio < 1.5001 for ratio in ratios)
    assert values[60] == MAX_NUMBER - 1  # an int64 holds no more


@pytest.mark.parametrize(("n", "rounds"), [(10, 2), (70, 8), (1_000, 7), (10_000, 7), (10_000_000, 9), (30, 20)])
def test_on_the_lattice_of_a_proven_plan_no_offer_and_no_total_comes_near_to_64_bits(n: int, rounds: int) -> None:
    """With noise drawn twice as large as agreed; offers follow from the rounds, whatever n is, so here of ten."""
    known = -(-n // 10)
    noise = inca.NoiseLevels(
        independent=1.0, cancelling=(n - known) * np.sqrt(200.0 * (rounds + 6)), topup=1.0 / np.sqrt(8.0)
    )
    step = granularity_for(noise, 1.0, n, rounds)
    session = replace(
        SESSION,
        parties=10,
        rounds=rounds,
        largest_value=int(1.0 / step) + 2,
        sigma_independent=int(2.0 / step) + 1,
        sigma_cancelling=int(2.0 * noise.cancelling / step) + 1,
        topup=TopUp(2.0 * noise.topup / step * math.sqrt(n - known), 0.0, known),
    )
    most = max(share_bounds(session).values)
    assert 2 * most + 2 < 2**62 or n * (32 * 2 * (rounds + 1) * noise.cancelling) < 2**62 * step
    assert largest_total(replace(session, parties=n), n) < 2**63


def test_beyond_an_int64_there_is_no_bound() -> None:
    huge = replace(SESSION, parties=30, rounds=3, **(LARGE | {"largest_value": 2**100}))
    assert share_bounds(huge).values[1:] == 3 * [MAX_NUMBER - 1]


# --- honest sessions ------------------------------------------------------------------------------------------------


class Watched(SimulatedNetwork):
    """A simulated session of which every offer is looked at."""

    offers = 0

    def _perform(self, i: int, effects: Effects) -> None:
        assert not [event for event, _ in effects.log_events if event in ("refused offer", "invalid message")]
        for _, message in effects.sends:
            if isinstance(message, Offer):
                self.offers += 1
                assert not share_bounds(self.session).excess(message)
        super()._perform(i, effects)


@pytest.mark.parametrize("seeds", [range(4, 8), pytest.param(range(200), marks=pytest.mark.slow)])
def test_honest_sessions_keep_to_the_bounds_whatever_goes_wrong(seeds: range) -> None:
    results = offers = 0
    for seed in seeds:
        network = Watched(seed, faults=replace(Faults.random(random.Random(seed)), disk_loss=0.0))
        network.run()
        offers += network.offers
        for result in network.results.values():
            results += 1
            cohort = result.realized.cohort
            assert np.abs(result.total).max() <= largest_total(network.session, len(cohort))
    assert offers > 100 and results > 10


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_the_largest_total_is_what_a_cohort_of_the_largest_values_and_noise_holds(gone: int) -> None:
    session = replace(SESSION, **LARGE, parties=6, topup=TopUp(2.0**29, 0.0, colluders=1))
    with largest_noise({(i, r): (-1) ** (i * r) for i in range(6) for r in range(session.rounds)}):
        ledgers = [opened(session, i) for i in range(session.parties - gone)]
        for ledger in ledgers:
            for t in range(1, session.rounds + 1):
                ledger.apply(Began(t, ledger.next_share()))
        total = expected_sum(session, ledgers)
    assert total[:-1].tolist() == session.dimension * [largest_total(session, len(ledgers))]


# --- at the door ----------------------------------------------------------------------------------------------------


def waiting(t: int) -> tuple[Room, int]:
    """A session in which no offer arrives, when party 2 has begun round t; and who sends to it."""
    session, room = PACED, Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Offer)
    room.open().run(until=START + (t - 1) * session.period + 0.1)
    assert room.parties[2].ledger.round == t and session.seed is not None
    return room, session.topology(session.seed).senders[t][2]


def refused(effects: Effects) -> list[dict[str, Any]]:
    return [fields for event, fields in effects.log_events if event == "refused offer"]


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("place", [0, 1, -1], ids=["a number", "another one", "the weight"])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_offer_up_to_the_bound_is_credited_and_one_above_is_not(t: int, place: int, sign: int) -> None:
    room, sender = waiting(t)
    bounds = share_bounds(room.session)
    most = (bounds.weights if place == -1 else bounds.values)[t]
    for beyond in (0, 1):
        room, sender = waiting(t)
        numbers = [3, -4, 5]
        numbers[place] = sign * (most + beyond)
        if place == -1 and sign < 0:
            numbers[place] = -beyond
        offer = offer_of(room, t, sender, 2, numbers)
        effects = room.hand(sender, 2, offer)
        if not beyond:
            assert effects.records == [Credited(t, offer.payload, offer.proof)] and not refused(effects)
            assert (sender, Ack(t)) in effects.sends
            continue
        assert effects.records == [Tombstoned(t, offer.proof, offer.payload)]
        assert (sender, Voided(t)) in effects.sends
        (fields,) = refused(effects)
        assert fields["peer"] == sender and fields["hash"] == offer.proof.payload_hash.hex()
        assert fields["what"].startswith(f"party {sender} has signed what no honest party can: the ")
        again = room.hand(sender, 2, offer)
        assert not again.records and not refused(again)  # written once


@pytest.mark.parametrize("number", [2**61, -(2**61), 2**62, 2**63 - 1, -(2**63)])
def test_an_offer_of_2_to_the_61_in_the_first_round_is_refused_and_its_sender_named(number: int) -> None:
    """It would make the balance of every honest party large."""
    room, sender = waiting(1)
    before = room.parties[2].ledger.balance.tolist()
    effects = room.hand(sender, 2, offer_of(room, 1, sender, 2, [number, 0, WEIGHT // 8]))
    assert [fields["peer"] for fields in refused(effects)] == [sender]
    assert room.parties[2].ledger.balance.tolist() == before
    assert str(abs(number)) not in str(effects.log_events)  # what it offered stays in the journal


def test_a_refused_offer_convicts_its_sender_from_the_journal_alone() -> None:
    room, sender = waiting(1)
    room.hand(sender, 2, offer_of(room, 1, sender, 2, [2**61, 0, 0]))
    (record,) = [record for record in room.journals[2] if isinstance(record, Tombstoned)]
    assert record.proof is not None
    offer = Offer(record.round, record.refused, record.proof.signature)
    assert offer.proof == record.proof and share_bounds(room.session).excess(offer)
    assert room.parties[2].transfers._signatures.proves(sender, 2, offer.proof)


def test_an_offer_that_came_before_its_round_is_measured_when_its_round_begins() -> None:
    room, _ = waiting(1)
    assert room.session.seed is not None
    sender = room.session.topology(room.session.seed).senders[2][2]
    assert not room.hand(sender, 2, offer_of(room, 2, sender, 2, [2**61, 0, 0])).records
    room.run(until=START + room.session.period + 0.1)
    events = [fields for i, event, fields in room.log_events if (i, event) == (2, "refused offer")]
    assert [fields["peer"] for fields in events] == [sender]
    assert 2 not in room.parties[2].ledger.received


def test_a_session_with_a_liar_that_offers_too_much_ends_with_a_result_of_the_others() -> None:
    room = Room(PACED)

    def drops(sender: int, receiver: int, message: object) -> bool:
        if isinstance(message, Offer) and sender == 0 and unpack(message.payload, 3)[0] != 2**61:
            room.send(0, receiver, offer_of(room, message.round, 0, receiver, [2**61, 0, 0]))
            return True
        return False

    room.drops = drops
    room.open().run()
    named = {fields["peer"] for i, event, fields in room.log_events if event == "refused offer"}
    assert named == {0} and set(room.results) == set(range(N))
    total = next(iter(room.results.values())).total
    assert np.abs(total).max() <= largest_total(PACED, N)
