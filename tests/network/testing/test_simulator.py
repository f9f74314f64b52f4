"""Whole sessions under all faults at once, and proof that the same checks see a party that breaks the rules."""

from __future__ import annotations

import random

import numpy as np
import pytest

from inca.network.protocol.joining import Arrival
from inca.network.protocol.ledger import Ledger, Opened, Sealed, Settled
from inca.network.protocol.messages import Resolve, Voided, pack
from inca.network.protocol.party import Party
from inca.network.protocol.session import WEIGHT, Session
from inca.network.protocol.signed_items import Sign, Verify
from inca.network.protocol.transfers import Transfers
from inca.network.testing.faults import Faults, without_faults
from inca.network.testing.simulator import MakeParty, Violation, World, plain_party

SEEDS, CHUNK = 150, 25
MORE = 3250


def live(seed: int) -> World:
    """Run a session and check it; whatever goes wrong names the seed."""
    world = World(seed)
    try:
        world.run()
        world.check_end()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return world


@pytest.mark.parametrize(
    "first", [0, CHUNK, *(pytest.param(first, marks=pytest.mark.slow) for first in range(2 * CHUNK, SEEDS, CHUNK))]
)
def test_nothing_is_lost_or_counted_twice_under_all_faults(first: int) -> None:
    worlds = [live(seed) for seed in range(first, first + CHUNK)]
    assert any(world.results for world in worlds) and any(world.crashes for world in worlds)  # both were tested


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MORE, 250))
def test_nothing_is_lost_or_counted_twice_under_all_faults_in_many_sessions(first: int) -> None:
    for seed in range(first, first + 250):
        live(seed)


@pytest.mark.parametrize("seed", [1, 2, 5, 9])
def test_a_seed_decides_everything(seed: int) -> None:
    one, two = live(seed), live(seed)
    assert (one.steps, one.crashes, one.now) == (two.steps, two.crashes, two.now)
    assert [machine.journal for machine in one.machines] == [machine.journal for machine in two.machines]
    assert {i: party.stage for i, party in one.survivors.items()} == {i: p.stage for i, p in two.survivors.items()}


def test_nobody_waits_for_parties_that_have_said_that_they_are_done() -> None:
    """Whoever hears it first leaves first, and those who hear it from nobody would wait a whole period."""
    for seed in range(40):
        world = World(seed, faults=without_faults())
        while len(world.results) < len(world.machines):
            world.step()
        known = world.now
        while not all(party.finished for party in world.survivors.values()):
            world.step()
        assert world.now - known < 0.5 * world.session.period, seed


def test_without_faults_everyone_has_the_exact_result() -> None:
    for seed in range(20):
        world = World(seed, faults=without_faults())
        world.run()
        world.check_end()
        n, result = world.session.parties, world.results[0]
        assert set(world.results) == result.finals == set(range(n)), f"seed {seed}"
        assert all(party.stage == "over" and not party.reason for party in world.survivors.values()), f"seed {seed}"
        noisy = np.sum([machine.noisy for machine in world.machines], axis=0)
        assert result.total.tolist() == noisy.tolist(), f"seed {seed}"
        assert result.weight == n * WEIGHT and not result.realised.doubts, f"seed {seed}"


def test_without_faults_every_offer_is_credited_in_its_round() -> None:
    """If the seed is given, that is: whoever is not up yet when others toss it counts as down in round 1."""
    for seed in range(20):
        world = World(seed, faults=without_faults())
        if world.session.seed is not None:
            world.run()
            assert not world.results[0].realised.execution.undelivered, f"seed {seed}"


def with_a_second_book() -> tuple[World, Ledger]:
    """Party 0's disk is lost after its final message counts, and it seals another book; return the lost one, too."""
    world = World(3, faults=without_faults())
    world.run()
    machine = world.machines[0]
    assert machine.party is not None
    lost, second = machine.party.ledger, Ledger(world.session, 0)
    second.apply(Opened(pack(machine.noisy + 1), bytes(32), bytes(32), True))
    second.apply(Sealed())
    machine.ghosts, machine.party, machine.book = [lost], None, second
    return world, lost


def test_the_end_is_checked_with_the_books_that_count() -> None:
    world, lost = with_a_second_book()
    assert 0 in world.results[1].finals
    world.check_end()
    lost.balance = lost.balance + 1
    with pytest.raises(Violation, match="not the sum of what the parties"):
        world.check_end()


def test_a_result_without_its_book_is_caught() -> None:
    world, lost = with_a_second_book()
    del lost.signed["final"]
    with pytest.raises(Violation, match=r"parties \[0\] have no book"):
        world.check_end()


def test_every_offer_is_credited_in_its_round_if_clocks_are_a_bit_off() -> None:
    for seed in range(20):
        world = World(seed, faults=Faults(delay=0.001, skew=0.1))
        world.run()
        world.check_end()
        assert not world.results[0].realised.execution.undelivered, f"seed {seed}"


# --- parties and drivers that break a rule ------------------------------------------------------------------------


class Keeping(Transfers):
    """Keeps the share of an offer without an answer: if only the answer was lost, it is there twice."""

    def begin(self, t: int) -> None:
        for key in self._desk.ledger.open:
            self._desk.record(Settled(*key, "voided"))
        super().begin(t)


class Forgetful(Transfers):
    """Says that an unseen offer is void without a tombstone: the offer may still arrive."""

    def hear_resolve(self, peer: int, message: Resolve) -> None:
        key = (message.round, peer, message.slot)
        if self.deciding and key not in self._desk.ledger.decisions:
            self._desk.send(peer, Voided(message.round, message.slot))
        else:
            super().hear_resolve(peer, message)


def made_of(transfers: type[Transfers] = Transfers, arrival: type[Arrival] = Arrival) -> MakeParty:
    def make(session: Session, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
        party = plain_party(session, me, sign, verify, rng)
        party._transfers = transfers(party._desk)
        party._arrival = arrival(party._desk)
        return party

    return make


def small(seed: int) -> Session:
    """Return a session that depends on nothing but the seed."""
    rng = random.Random(seed)
    return Session(
        id=rng.randbytes(32),
        parties=6,
        rounds=6,
        receivers=1,
        schedule="permutation",  # everyone is offered something in every round
        quiet=0,
        dimension=1,
        sigma_independent=2**30,
        sigma_cancelling=2**33,
        least_cohort=2,
        start=10.0,
        period=1.0,
        seed=rng.randbytes(32),
    )


def breaks(seed: int, faults: Faults, make: MakeParty = plain_party, hasty: bool = False) -> bool:
    """Whether the usual checks find something in a session."""
    world = World(seed, faults=faults, session=small(seed), make=make, answers_before_writing=hasty)
    try:
        world.run()
        world.check_end()
    except Violation:
        return True
    return False


def seeds_needed(faults: Faults, make: MakeParty = plain_party, *, hasty: bool = False, first: int = 0) -> int:
    """Return how many seeds it takes to see that a rule is broken, where parties that keep it pass."""
    most = 300
    for seed in range(first, first + most):
        if breaks(seed, faults, make, hasty) and not breaks(seed, faults):
            return seed - first + 1
    raise AssertionError(f"{most} sessions did not show that a rule was broken")


def test_keeping_the_share_on_a_missing_answer_is_caught() -> None:
    assert seeds_needed(Faults(loss=0.5, delay=0.03), made_of(Keeping)) <= 20  # 1; all of the first 10 show it


def test_answering_before_the_write_is_caught() -> None:
    faults = Faults(loss=0.05, delay=0.03, crash=0.1, comeback=1.0)
    assert seeds_needed(faults, hasty=True) <= 20  # 1; 11 of the first 15 show it


def test_forgetting_tombstones_is_caught() -> None:
    faults = Faults(loss=0.3, delay=0.2, skew=0.9, duplication=0.3, false_hints=0.1)
    assert seeds_needed(faults, made_of(Forgetful)) <= 20  # 1; 13 of the first 15 show it


@pytest.mark.parametrize(
    "faults",
    [
        Faults(loss=0.5, delay=0.03),
        Faults(loss=0.05, delay=0.03, crash=0.1, comeback=1.0),
        Faults(loss=0.3, delay=0.2, skew=0.9, duplication=0.3, false_hints=0.1),
    ],
)
def test_those_faults_harm_nobody_who_keeps_the_rules(faults: Faults) -> None:
    assert not [seed for seed in range(8) if breaks(seed, faults)]
