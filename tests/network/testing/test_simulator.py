"""Whole sessions under all faults at once, and proof that the same checks see a party that breaks the rules."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from helpers.ledger_sums import Violation
from helpers.network_faults import Faults, random_session, without_faults
from helpers.simulated_network import MakeParty, SimulatedNetwork, plain_party
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Items, Offer, Proposal, Voided, pack
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.opening.opening import Opening
from inca.network.protocol.party import Party
from inca.network.protocol.records import Answered, Opened, Sealed
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.signed_items import Key, Sign, Verify
from inca.network.protocol.transfers import Transfers

SEEDS, CHUNK = 150, 25
MORE = 3250


def quickly(first: range, *others: range) -> list[Any]:
    """Return parameters of which the first is quick, and the others show the same in more sessions."""
    return [first, *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in others)]


def run_session(seed: int) -> SimulatedNetwork:
    """Run a session and check it; whatever goes wrong names the seed."""
    network = SimulatedNetwork(seed)
    try:
        network.run()
        network.check_end()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return network


def test_sessions_are_as_long_as_plans_are_on_circles_and_with_permutations() -> None:
    drawn = [random_session(random.Random(seed)) for seed in range(400)]
    for kind in ("circle", "permutation"):
        assert {session.rounds for session in drawn if session.schedule == kind} == set(range(2, 9))


@pytest.mark.parametrize(
    "seeds",
    quickly(range(4), range(4, CHUNK), *(range(first, first + CHUNK) for first in range(CHUNK, SEEDS, CHUNK))),
)
def test_nothing_is_lost_or_counted_twice_under_all_faults(seeds: range) -> None:
    networks = [run_session(seed) for seed in seeds]
    assert any(network.results for network in networks), "no session with a result was tested"
    assert any(network.crashes for network in networks), "no session with a crash was tested"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MORE, 250))
def test_nothing_is_lost_or_counted_twice_under_all_faults_in_many_sessions(first: int) -> None:
    for seed in range(first, first + 250):
        run_session(seed)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 5, 9))])
def test_a_seed_decides_everything(seed: int) -> None:
    one, two = run_session(seed), run_session(seed)
    assert (one.steps, one.crashes, one.now) == (two.steps, two.crashes, two.now)
    assert [machine.journal for machine in one.machines] == [machine.journal for machine in two.machines]
    assert {i: party.stage for i, party in one.survivors.items()} == {i: p.stage for i, p in two.survivors.items()}


@pytest.mark.parametrize("seeds", quickly(range(3), range(3, 16)))
def test_nobody_waits_for_parties_that_have_said_that_they_are_done(seeds: range) -> None:
    """Whoever hears it first leaves first, and those who hear it from nobody would wait a whole period."""
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=without_faults())
        while len(network.results) < len(network.machines):
            network.step()
        known = network.now
        while not all(party.finished for party in network.survivors.values()):
            network.step()
        assert network.now - known < 0.5 * network.session.period, seed


@cache
def faultless(seed: int) -> SimulatedNetwork:
    """A session in which nothing went wrong, for several tests to look at."""
    network = SimulatedNetwork(seed, faults=without_faults())
    network.run()
    return network


@pytest.mark.parametrize("seeds", quickly(range(3), range(3, 20)))
def test_without_faults_everyone_has_the_exact_result(seeds: range) -> None:
    for seed in seeds:
        network = faultless(seed)
        network.check_end()
        n, result = network.session.parties, network.results[0]
        assert set(network.results) == result.realized.cohort == set(range(n)), f"seed {seed}"
        assert all(party.stage == "over" and not party.reason for party in network.survivors.values()), f"seed {seed}"
        noisy = np.sum([machine.noisy for machine in network.machines], axis=0)
        assert network.session.sigma_topup([1.0] * n) == 0 and result.total.tolist() == noisy.tolist(), f"seed {seed}"
        assert result.weight == n * WEIGHT and result.exact, f"seed {seed}"


@pytest.mark.parametrize("seeds", quickly(range(3), range(3, 20)))
def test_without_faults_every_offer_is_credited_in_its_round(seeds: range) -> None:
    """If the seed is agreed on, that is: whoever is not up yet when others flip the coin counts as down in round 1."""
    for seed in seeds:
        network = faultless(seed)
        if network.session.seed is not None:
            assert not network.results[0].realized.execution.undelivered, f"seed {seed}"


def with_a_second_ledger() -> tuple[SimulatedNetwork, Ledger]:
    """Party 0's disk is lost after its deposit counts, and it seals another ledger; return the lost one, too."""
    network = SimulatedNetwork(3, faults=without_faults())
    network.run()
    machine = network.machines[0]
    assert machine.party is not None
    lost, second = machine.party.ledger, Ledger(network.session, 0)
    second.apply(Opened(pack(machine.noisy + 1), bytes(32), bytes(32), True))
    second.apply(Sealed())
    machine.lost_ledgers, machine.party, machine.ledger = [lost], None, second
    return network, lost


def test_the_end_is_checked_with_the_ledgers_that_count() -> None:
    network, lost = with_a_second_ledger()
    assert 0 in network.results[1].realized.cohort
    network.check_end()
    lost._mask = lost._mask + 1
    with pytest.raises(Violation, match="not the sum of what the cohort injected and topped up"):
        network.check_end()


def test_a_result_without_its_ledger_is_caught() -> None:
    network, lost = with_a_second_ledger()
    del lost.own_items["deposit", 0]
    with pytest.raises(Violation, match=r"parties \[0\] have no ledger"):
        network.check_end()


@pytest.mark.parametrize("seeds", quickly(range(3), range(3, 20)))
def test_every_offer_is_credited_in_its_round_if_clocks_are_a_bit_off(seeds: range) -> None:
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=Faults(delay=0.001, skew=0.1))
        network.run()
        network.check_end()
        assert not network.results[0].realized.execution.undelivered, f"seed {seed}"


# --- the end ------------------------------------------------------------------------------------------------------


def stepwise(network: SimulatedNetwork) -> None:
    """Run a session, and look at decisions and words after every step."""
    known = -1
    while network.goes_on():
        network.step()
        count = sum(len(ledger.decided) + len(ledger.own_items) for _, ledger in network.ledgers())
        if count != known:
            network._check_decisions()
            known = count
    network.check_end()


@pytest.mark.parametrize("seeds", quickly(range(3, 8), range(8, 20), range(20, 30), range(30, 40)))
def test_nobody_shows_a_key_before_commit_or_for_two_cohorts_at_any_time(seeds: range) -> None:
    """Commit and a smaller cohort exclude each other: what commit names are the deposits of the whole last cohort."""
    shrunk = 0
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=Faults(loss=0.05, delay=0.02, refusal=0.15, crash=0.01, comeback=0.7))
        stepwise(network)
        chains = [[decision.proposal for decision in ledger.decided] for _, ledger in network.ledgers()]
        shrunk += any([proposal.step for proposal in chain[:2]] == ["cohort", "cohort"] for chain in chains)
        for chain in chains:
            for before, proposal in pairwise(chain):
                assert before.step == "cohort"
                if proposal.step == "commit":
                    assert proposal.parties == before.parties and proposal is chain[-1]
    assert shrunk >= 2


@pytest.mark.parametrize("seeds", quickly(range(1, 10), range(10, 40)))
def test_settled_sums_are_what_the_cohort_injected_and_topped_up_whoever_left(seeds: range) -> None:
    """With top-up noise and leavers; `check_end` compares with the ledgers, not with messages."""
    left = topped_up = 0
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=Faults(loss=0.1, delay=0.02, crash=0.01, comeback=0.3))
        network.run()
        network.check_end()
        for result in list(network.results.values())[:1]:
            left += len(result.realized.cohort) < network.session.parties
            topped_up += network.session.sigma_topup(result.realized.execution.cohort_weights) > 0
    assert left >= 4 and topped_up >= 3


def cut_all_links(network: SimulatedNetwork, begin: float, duration: float) -> None:
    """Cut every party off from every other for a while; everyone notices that it cannot reach the others."""
    n = network.session.parties

    def cut() -> None:
        network._sides = list(range(n))
        for i in range(n):
            for j in set(range(n)) - {i}:
                network._down(i, network.machines[i].incarnation, j)

    def heal() -> None:
        network._sides = None

    network._at(begin, cut)
    network._at(begin + duration, heal)


@pytest.mark.parametrize("seeds", quickly(range(11, 14), *(range(first, first + 11) for first in (0, 14, 25, 36, 47))))
def test_a_cut_of_all_links_shorter_than_a_period_costs_time_and_nothing_else(seeds: range) -> None:
    for seed in seeds:
        session = small(seed)
        clean = SimulatedNetwork(seed, faults=without_faults(), session=session)
        while len(clean.results) < session.parties:
            clean.step()
        network = SimulatedNetwork(seed, faults=without_faults(), session=session)
        at = session.start + random.Random(seed).random() * (clean.now - session.start)
        cut_all_links(network, at, 0.95 * session.period)
        network.run()
        network.check_end()
        assert set(network.results) == set(range(session.parties)), f"seed {seed}"
        result = network.results[0]
        assert result.realized.cohort == set(range(session.parties)) and result.weight == 6 * WEIGHT, f"seed {seed}"


@pytest.mark.parametrize("seeds", quickly(range(2), range(2, 10)))
def test_whoever_dies_right_after_commit_counts_and_the_others_have_the_result_of_all(seeds: range) -> None:
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=Faults(delay=0.01, comeback=0.0), session=small(seed))
        while not any(ledger.committed for _, ledger in network.ledgers()):
            network.step()
        for i in random.Random(seed).sample(range(6), 2):  # four of six open
            network._crash(i)
        network.run()
        network.check_end()
        assert len(network.results) == 4, f"seed {seed}"
        assert all(r.exact and r.realized.cohort == set(range(6)) for r in network.results.values())


@pytest.mark.parametrize("seeds", quickly(range(2), range(2, 10)))
def test_one_more_death_after_commit_leaves_the_others_waiting_for_one_to_come_back(seeds: range) -> None:
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=Faults(delay=0.01, comeback=0.0), session=small(seed))
        while not (knowing := {i for i, ledger in network.ledgers() if ledger.committed}):
            network.step()
        gone = random.Random(seed).sample(sorted(set(range(6)) - knowing), 3)
        for i in gone:
            network._crash(i)
        network._at(network.now + 5.0, network._boot, gone[0])
        while network.now < network.machines[gone[1]].crashed_at + 4.0:
            network.step()
            assert not network.results
        waiting = [party.reason for i, party in network.survivors.items() if i not in gone]
        assert len(waiting) == 3 and all("1 more of" in reason for reason in waiting), f"seed {seed}: {waiting}"
        network.run()
        network.check_end()
        assert len(network.results) == 4 and all(r.exact for r in network.results.values()), f"seed {seed}"


# --- parties and drivers that break a rule ------------------------------------------------------------------------


class Keeping(Transfers):
    """Keeps the share of an offer without an answer: if only the answer was lost, it is there twice."""

    def begin_round(self, t: int) -> None:
        ledger = self._context.ledger
        if ledger.round in ledger.open:
            self._context.record(Answered(ledger.round, "voided"))
        super().begin_round(t)


class Forgetful(Transfers):
    """Says that an offer is void, without a tombstone, when it comes first, and credits it when it comes again."""

    seen: set[int]

    def handle_offer(self, peer: int, offer: Offer) -> None:
        self.seen = getattr(self, "seen", set())
        t, ledger = offer.round, self._context.ledger
        if self.deciding and t == ledger.round and t not in self.seen | set(ledger.decisions):
            self.seen.add(t)
            self._context.send(peer, Voided(t))
        else:
            super().handle_offer(peer, offer)


class Hasty(Finalization):
    """Shows its key as soon as it has made its deposit."""

    def _answer(self, cohort: Proposal, opening: Opening, refusal: str) -> None:
        super()._answer(cohort, opening, refusal)
        ledger = self._context.ledger
        if not refusal and ledger.secrets is not None:
            item = self._context.signed_items.sign("key", Key(ledger.secrets.cohort, ledger.secrets.private_key))
            for peer in sorted(self._context.others):
                self._context.send(peer, Items([item]))


class Unsettled(Finalization):
    """Deposits what it holds, as if nobody had left and nothing had been lost."""

    def _answer(self, cohort: Proposal, opening: Opening, refusal: str) -> None:
        ledger = self._context.ledger
        settled, ledger.settled = ledger.settled, lambda cohort, credited: ledger.balance.copy()  # type: ignore[method-assign]
        super()._answer(cohort, opening, refusal)
        ledger.settled = settled  # type: ignore[method-assign]


def made_with(transfers: type[Transfers]) -> MakeParty:
    def make(session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
        party = plain_party(session, me, sign, verify, rng)
        party.transfers = transfers(party.context, OfferSignatures(session, me, sign, verify))
        return party

    return make


def ending_with(finalization: type[Finalization]) -> MakeParty:
    def make(session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
        party = plain_party(session, me, sign, verify, rng)
        components = party
        components.finalization = components.anti_entropy._finalization = finalization(party.context)
        return party

    return make


def small(seed: int) -> SessionConfig:
    """Return a session that depends on nothing but the seed."""
    rng = random.Random(seed)
    return SessionConfig(
        id=rng.randbytes(32),
        parties=6,
        rounds=6,
        schedule="permutation",
        dimension=1,
        largest_value=2**32,
        sigma_independent=2**30,
        sigma_cancelling=2**33,
        min_participants=3,
        start=10.0,
        period=1.0,
        seed=rng.randbytes(32),
    )


def breaks(seed: int, faults: Faults, make: MakeParty = plain_party, hasty: bool = False) -> bool:
    """Whether the usual checks find something in a session."""
    network = SimulatedNetwork(seed, faults=faults, session=small(seed), make=make, answers_before_writing=hasty)
    try:
        network.run()
        network.check_end()
    except Violation:
        return True
    return False


@cache
def harms(seed: int, faults: Faults) -> bool:
    """Whether a session of parties that keep the rules breaks; several tests ask for the same ones."""
    return breaks(seed, faults)


def seeds_needed(faults: Faults, make: MakeParty = plain_party, *, hasty: bool = False, first: int = 0) -> int:
    """Return how many seeds it takes to see that a rule is broken, where parties that keep it pass."""
    most = 300
    for seed in range(first, first + most):
        if breaks(seed, faults, make, hasty) and not harms(seed, faults):
            return seed - first + 1
    raise AssertionError(f"{most} sessions did not show that a rule was broken")


def test_keeping_the_share_on_a_missing_answer_is_caught() -> None:
    assert seeds_needed(Faults(loss=0.5, delay=0.03), made_with(Keeping)) <= 20  # 1; all of the first 10 show it


def test_answering_before_the_write_is_caught() -> None:
    faults = Faults(loss=0.05, delay=0.03, crash=0.1, comeback=1.0)
    assert seeds_needed(faults, hasty=True) <= 20  # 1; 11 of the first 15 show it


def test_forgetting_tombstones_is_caught() -> None:
    faults = Faults(loss=0.3, delay=0.2, skew=0.9, duplication=0.3, false_hints=0.1)
    assert seeds_needed(faults, made_with(Forgetful)) <= 20  # 1; 13 of the first 15 show it


def test_showing_a_key_before_commit_is_caught() -> None:
    assert seeds_needed(Faults(delay=0.03), ending_with(Hasty)) <= 20


def test_a_deposit_that_is_not_settled_is_caught() -> None:
    assert seeds_needed(Faults(loss=0.1, delay=0.03, crash=0.02, comeback=0.0), ending_with(Unsettled)) <= 20


@pytest.mark.parametrize("seeds", quickly(range(2), range(2, 8)))
@pytest.mark.parametrize(
    "faults",
    [
        Faults(delay=0.03, refusal=0.3),
        Faults(loss=0.1, delay=0.03, crash=0.02, comeback=0.0),
        Faults(loss=0.5, delay=0.03),
        Faults(loss=0.05, delay=0.03, crash=0.1, comeback=1.0),
        Faults(loss=0.3, delay=0.2, skew=0.9, duplication=0.3, false_hints=0.1),
    ],
)
def test_those_faults_harm_nobody_who_keeps_the_rules(faults: Faults, seeds: range) -> None:
    assert not [seed for seed in seeds if harms(seed, faults)]
