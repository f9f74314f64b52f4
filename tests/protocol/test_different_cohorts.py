"""Runs in which parties settle for different cohorts: `benchmarks/different_cohorts.py` against books kept by hand."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.paths import ROOT
from helpers.strategies import generator, seeds

LEVELS = inca.NoiseLevels(independent=0.7, cancelling=3.0, topup=0.4)
VARIANCE = 0.3


def benchmark(name: str) -> ModuleType:
    """Import a benchmark as its own commands do; the name `benchmarks` is known from the root of the tree only."""
    sys.path.insert(0, str(ROOT))
    try:
        return __import__(f"benchmarks.{name}", fromlist=[name])
    finally:
        sys.path.remove(str(ROOT))


cohorts: Any = benchmark("different_cohorts")
sizes: Any = benchmark("session_bytes")


@st.composite
def runs(draw: st.DrawFn) -> inca.Execution:
    """Settled runs of the incremental family with one receiver a round; some leave, miss rounds, or do not settle."""
    n, rounds = draw(st.integers(3, 8)), draw(st.integers(1, 5))
    rng = generator(draw(seeds))
    away = draw(st.sampled_from([0.0, 0.2]))
    presence = inca.Presence.leaving(n, rounds, draw(st.sampled_from([0.0, 0.3, 0.5])), rng, away=away)
    injection = inca.incremental_injection(rounds, quiet=draw(st.integers(0, rounds - 1)))
    kind = draw(st.sampled_from(["permutation", "random"]))
    schedule = inca.random_schedule(kind, n, rounds, seed=draw(seeds))
    cohort = presence.row(rounds) & (rng.random(n) < 0.9)
    assume(cohort.any())
    return inca.Execution(schedule, injection, presence).settled(cohort)


@st.composite
def opinions(draw: st.DrawFn) -> Any:
    chance = st.sampled_from([0.0, 0.2, 0.5, 1.0])
    return cohorts.Beliefs(draw(chance), draw(chance), draw(st.integers(0, 1000)))


def by_hand(execution: inca.Execution, beliefs: Any, noisy: list[float], terms: list[list[float]]) -> list[float]:
    """Run the protocol party by party with a book of every transfer; each of the cohort undoes what it believes."""
    assert execution.cohort is not None
    n, cohort = execution.parties, execution.cohort
    assert cohort is not None
    held, book = [0.0] * n, []
    for t in range(execution.rounds + 1):
        before = list(held)
        if t > 0:
            for sender, receiver in enumerate(execution.sends(t).receivers[:, 0].tolist()):
                if receiver not in (-1, sender):
                    held[sender] -= before[sender] / 2
                    held[receiver] += before[sender] / 2
                    book.append((sender, receiver, before[sender] / 2))
        for party in range(n):
            value, noise = execution.coefficients(party)
            held[party] += value[t] * noisy[party] + sum(z * e for z, e in zip(noise[t], terms[party], strict=True))

    def gone(party: int, partner: int) -> bool:
        publishes = cohort[partner : partner + 1]
        return bool(beliefs.takes_for_gone(np.array([party]), np.array([partner]), publishes)[0])

    for sender, receiver, amount in book:
        held[sender] += amount if gone(sender, receiver) else 0.0
        held[receiver] -= amount if gone(receiver, sender) else 0.0
    return held


@given(runs(), opinions(), seeds)
def test_what_is_published_is_what_the_books_say(execution: inca.Execution, beliefs: Any, seed: int) -> None:
    rng, n = generator(seed), execution.parties
    noisy, terms = rng.normal(size=n), rng.normal(size=(n, execution.rounds))
    messages = list(cohorts.messages_in_units(execution))
    final = cohorts.final_messages(execution, messages, cohorts.all_beliefs(execution, beliefs))
    expected = by_hand(execution, beliefs, noisy.tolist(), terms.tolist())
    np.testing.assert_allclose(final @ np.concatenate([noisy, terms.reshape(-1)]), expected, atol=1e-9)


@given(runs(), opinions())
def test_the_error_is_that_of_the_sum_of_what_is_published(execution: inca.Execution, beliefs: Any) -> None:
    """The pass backwards over the rounds, for a million parties, against every coefficient written down."""
    n, cohort = execution.parties, execution.cohort
    assert cohort is not None
    messages = list(cohorts.messages_in_units(execution))
    final = cohorts.final_messages(execution, messages, cohorts.all_beliefs(execution, beliefs))
    value, terms = np.split(final[cohort].sum(axis=0), [n])
    weight = value.sum()
    assume(abs(weight) > 1e-3)
    outcome = cohorts.expected_error(execution, LEVELS, beliefs, VARIANCE)
    independent = LEVELS.independent**2 * value @ value + LEVELS.topup**2 * cohort.sum()
    assert outcome.weight == pytest.approx(weight)
    assert outcome.error.independent == pytest.approx(independent / weight**2)
    assert outcome.error.cancelling == pytest.approx(
        LEVELS.cancelling**2 * terms @ terms / weight**2, rel=1e-9, abs=1e-20
    )
    assert outcome.error.data == pytest.approx(VARIANCE * np.square(value / weight - 1 / n).sum())


@given(runs())
def test_if_all_agree_it_is_the_settled_run_and_if_nobody_knows_of_leavers_the_unsettled_one(
    execution: inca.Execution,
) -> None:
    assume(execution.weight > 1e-3)
    agreed = cohorts.expected_error(execution, LEVELS, cohorts.Beliefs(), VARIANCE)
    settled = inca.expected_error(execution, LEVELS, variance=VARIANCE)
    assert agreed.one_sided == 0 and agreed.error.cancelling < 1e-25
    assert agreed.error.total == pytest.approx(settled.total)
    plain = inca.Execution(execution.schedule, execution.injection, execution.presence, published=execution.cohort)
    assume(plain.weight > 1e-3)
    levels = inca.NoiseLevels(independent=0.7, cancelling=3.0)
    unknown = cohorts.expected_error(execution, levels, cohorts.Beliefs(missed=1.0), VARIANCE)
    assert unknown.error.total == pytest.approx(inca.expected_error(plain, levels, variance=VARIANCE).total)


@given(runs(), opinions(), st.integers(0, 2))
def test_losses_are_those_of_the_accountant_and_bounded_whoever_believes_what(
    execution: inca.Execution, beliefs: Any, colluders: int
) -> None:
    """Leavers count as colluders, and what was undone between two who publish as eavesdropped on (docs/growth.md)."""
    cohort, colluding = execution.cohort, list(range(colluders))
    assert cohort is not None
    agree, gone = (cohorts.all_beliefs(execution, one) for one in (cohorts.Beliefs(), beliefs))
    exact = inca.account(inca.View(execution, inca.Adversary(colluding)), LEVELS, sensitivity=1.0)
    once = cohorts.losses(execution, colluding, LEVELS, [agree])
    np.testing.assert_allclose([once[i] for i in exact.honest.tolist()], exact.mu, rtol=1e-6, atol=1e-9)
    known = {*colluding, *np.flatnonzero(~cohort).tolist()}
    assume(len(known) < execution.parties)
    undone = [
        (t - 1, sender)
        for t in range(1, execution.rounds + 1)
        for sender, receiver in enumerate(execution.sends(t).receivers[:, 0].tolist())
        if receiver not in (-1, sender) and sender not in known and (gone[sender, receiver] or gone[receiver, sender])
    ]
    bound = inca.account(inca.View(execution, inca.Adversary(known, undone)), LEVELS, sensitivity=1.0)
    for published in ([gone], [agree, gone]):  # once, and again after all agree
        different = cohorts.losses(execution, colluding, LEVELS, published)
        for party, limit in zip(bound.honest.tolist(), bound.mu.tolist(), strict=True):
            assert different[party] <= limit * (1 + 1e-6)


def test_parties_of_whom_nothing_is_seen_lose_nothing() -> None:
    only_a_colluder_stays = inca.Presence.explicit([[1, 1, 1], [1, 0, 0]])
    schedule = inca.RandomReceivers(3, rounds=1, seed=1)
    execution = inca.Execution(schedule, inca.incremental_injection(1), only_a_colluder_stays).settled()
    agree = cohorts.all_beliefs(execution, cohorts.Beliefs())
    assert cohorts.losses(execution, [0], LEVELS, [agree]) == {1: 0.0, 2: 0.0}


def test_publishing_again_without_a_party_that_published_lays_it_bare() -> None:
    execution = inca.Execution(inca.PermutationReceivers(12, rounds=8, seed=3), inca.incremental_injection(8)).settled()
    levels = inca.NoiseLevels(independent=1.0, cancelling=30.0)
    agree = cohorts.all_beliefs(execution, cohorts.Beliefs())
    without = agree.copy()
    without[:, 5] = True
    assert max(cohorts.losses(execution, [], levels, [agree]).values()) < 0.5
    assert cohorts.losses(execution, [], levels, [agree, without])[5] == pytest.approx(1.0, rel=1e-6)


def test_coins_of_pairs_are_fair_and_independent_of_their_order() -> None:
    """False alarms have a probability below 1e-6: five standard errors, four times; the numbers are fixed."""
    party, partner = np.indices((400, 400)).reshape(2, -1)
    coins = cohorts.pair_coins(party, partner, seed=5)
    count = coins.size
    assert abs(coins.mean() - 0.5) < 5 * math.sqrt(1 / 12 / count)
    assert abs((coins < 0.01).mean() - 0.01) < 5 * math.sqrt(0.0099 / count)
    other = cohorts.pair_coins(partner, party, seed=5)
    off = party != partner
    for one in (other[off], cohorts.pair_coins(party, partner, seed=6)[off]):
        assert abs(np.corrcoef(coins[off], one)[0, 1]) < 5 / math.sqrt(off.sum() / 2)


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_sessions_receive_at_least_what_the_formula_says() -> None:
    received = sizes.counted(7, rounds=6, dimension=3)
    least = sizes.today(7, rounds=6, dimension=3, signature=16)
    ended = sum(count for name, count in received.items() if name not in ("Offer", "Ack"))
    assert least.words < received["Items"] and 0.8 * (least.words + least.decisions) < ended
    assert sizes.rounds_bytes(6, 3, signature=16) <= received["Offer"] + received["Ack"]


def test_today_grows_with_n_and_the_design_beyond_hardly() -> None:
    few, many = sizes.today(10**4, 20, 1), sizes.today(10**6, 20, 1)  # as many trustees: they are drawn
    assert 90 < many.words / few.words < 120 and 0.9e4 < many.proposer / few.proposer < 1.2e4
    few, many = sizes.beyond(10**3, 20, 1), sizes.beyond(10**9, 20, 1)
    assert many.partners < 1.1 * few.partners and many.tree < 1.1 * few.tree and many.tree_delays == 32


def test_the_formulas_of_the_page_are_those_of_the_encodings() -> None:
    for rounds, d in ((20, 1), (14, 10), (30, 1000)):
        end, design = sizes.today(10**6, rounds, d), sizes.beyond(10**6, rounds, d)
        assert sizes.rounds_bytes(rounds, d) == pytest.approx(rounds * (90 + 8 * d), rel=0.015)
        assert end.words == pytest.approx(10**6 * (715 + 3 * rounds + 8 * d + 33 * 57), rel=0.015)
        assert end.decisions == pytest.approx(384 * 10**6, rel=0.01)
        assert end.proposer == pytest.approx(384 * 10**12, rel=0.01)
        assert design.partners == pytest.approx(250 * rounds, rel=0.01)
        assert design.tree == pytest.approx(3536 + 272 * d, rel=0.01)
