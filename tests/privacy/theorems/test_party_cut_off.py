"""How likely random permutations cut a party off: every schedule of a few parties, simulation, exact sums, rounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, special, stats
from scipy.sparse.csgraph import connected_components

import inca
from helpers.examples import cases, examples
from inca.errors import InvalidInput
from inca.privacy.theorems import party_cut_off
from inca.privacy.theorems._cut_probabilities import FailureSetting, log_cut_permutation
from inca.privacy.theorems.party_cut_off import (
    SPARE_COST,
    RoundsNeeded,
    log_cut_off_for_party,
    permutation_rounds,
    spare_parties,
)

FALSE_ALARM = 1e-8  # of each of the statistical tests below, about 20, so that all are below 1e-6; seeds are fixed
NEARLY = 1e-9  # relative


def isolation(n: int, known: int, rounds: int, lost: float = 0.0, away: float = 0.0) -> float:
    """Return how likely a given party has no hidden message at all (docs/failure-probability.md, C8)."""
    derangements = [1, 0]
    for size in range(2, n + 1):
        derangements.append((size - 1) * (derangements[-1] + derangements[-2]))
    h, two_cycle = n - known, (n - 1) * derangements[n - 2] / derangements[n]
    once, twice = away + (1 - away) * lost, away + (1 - away) * lost**2
    pairs = known * (known - 1) + 2 * known * (h - 1) * once + (h - 1) * (h - 2) * once**2
    # The party sends to the one that sends to it, or to another one.
    same, apart = (known + (h - 1) * twice) / (n - 1), pairs / ((n - 1) * (n - 2)) if n > 2 else 0.0
    return (away + (1 - away) * (two_cycle * same + (1 - two_cycle) * apart)) ** rounds


# Every schedule of a few parties, with all losses and absences: exact probabilities


@cache
def subset_probabilities(n: int, known: int, lost: float, away: float) -> NDArray[np.float64]:
    """For every set of pairs among the h = n - known others, how likely all hidden messages of a round are in it."""
    h = n - known
    pairs = {pair: place for place, pair in enumerate(itertools.combinations(range(h), 2))}
    subsets = np.arange(1 << len(pairs))
    inside = np.array([(subsets >> place) & 1 for place in range(len(pairs))], dtype=bool).reshape(len(pairs), -1)
    total, count = np.zeros(subsets.size), 0
    for receivers in itertools.permutations(range(n)):
        if any(receiver == sender for sender, receiver in enumerate(receivers)):
            continue
        count += 1
        messages = [(i, receivers[i]) for i in range(h) if receivers[i] < h]
        for here in itertools.product((False, True), repeat=h) if away else [(True,) * h]:
            chance = math.prod(1.0 - away if present else away for present in here)
            product = np.full(subsets.size, chance)
            for i, j in messages:
                if here[i] and here[j]:
                    product *= np.where(inside[pairs[min(i, j), max(i, j)]], 1.0, lost)
            total += product
    return total / count


def exact_cut_off(n: int, known: int, rounds: int, spare: int, lost: float, away: float) -> float:
    """How likely fewer than h - spare are joined with party 0, over all schedules of so many rounds."""
    h = n - known
    pairs = list(itertools.combinations(range(h), 2))
    chance = subset_probabilities(n, known, lost, away) ** rounds  # that all rounds' messages are in a set of pairs
    for place in range(len(pairs)):  # that they are exactly those pairs
        chance = chance.reshape(-1, 2, 1 << place)
        chance = np.stack([chance[:, 0], chance[:, 1] - chance[:, 0]], axis=1).reshape(-1)
    total = 0.0
    for subset, probability in enumerate(chance.tolist()):
        joined = {0}
        for _ in range(h):
            joined |= {k for p, pair in enumerate(pairs) if subset >> p & 1 and joined & set(pair) for k in pair}
        total += probability if h - len(joined) > spare else 0.0
    return total


EXACT = [
    pytest.param(n, lost, away, marks=[pytest.mark.slow] if (n > 4 and away) or n > 5 else [])
    for n in (3, 4, 5, 6)
    for lost, away in ((0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.2, 0.3))
    if n < 6 or not away
]


@pytest.mark.parametrize(("n", "lost", "away"), EXACT)
def test_the_bound_holds_over_all_schedules_losses_and_absences(n: int, lost: float, away: float) -> None:
    """Not below the truth, and where it says something for everyone not far above it."""
    for known in range(max(0, n - 5), n - 1):
        for rounds, spare in itertools.product((1, 2, 3, 6, 12), range((n - known - 1) // 2 + 1)):
            exact = exact_cut_off(n, known, rounds, spare, lost, away)
            bound = math.exp(bound_with_independent_losses(n, known, rounds, spare, lost, away))
            assert bound >= exact * (1 - NEARLY) - 1e-13
            if spare == 0 and n > 4 and exact > 1e-9 and bound < 0.05:
                assert bound < (2.5 if lost or away else 1.2) * exact


def bound_with_independent_losses(n: int, known: int, rounds: int, spare: int, lost: float, away: float) -> float:
    """The log of the bound without rounding up to whole messages of a round, which is for eavesdropping."""
    union = party_cut_off._Union.of(n, n - known, spare, lost, away)
    return union.log_bound(rounds)


def test_two_parties_cut_off_from_each_other_are_counted_exactly() -> None:
    """They are if each has no hidden message; with losses this is nearly so, if n is not small."""
    for n, nearly in ((3, 3.0), (4, 2.0), (10, 0.2), (100, 2e-3)):
        for lost, away in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.5, 0.25)):
            alone = isolation(n, n - 2, 3, lost, away)
            bound = math.exp(bound_with_independent_losses(n, n - 2, 3, 0, lost, away))
            assert alone * (1 - NEARLY) <= bound <= alone * (1 + (nearly if lost or away else 1e-8))
            assert n > 4 or alone == pytest.approx(exact_cut_off(n, n - 2, 3, 0, lost, away))


# Simulation

SIMULATED = [
    (24, 8, 2, 0, 0.0, 0.0),
    (24, 8, 2, 2, 0.0, 0.0),
    pytest.param(40, 12, 3, 0, 0.0, 0.0, marks=pytest.mark.slow),
    pytest.param(40, 4, 2, 1, 0.1, 0.0, marks=pytest.mark.slow),
    pytest.param(60, 20, 3, 5, 0.1, 0.0, marks=pytest.mark.slow),
    (20, 4, 4, 0, 0.0, 0.2),
    (20, 4, 3, 2, 0.0, 0.2),
    pytest.param(20, 4, 4, 1, 0.1, 0.2, marks=pytest.mark.slow),
    pytest.param(30, 6, 3, 2, 0.05, 0.15, marks=pytest.mark.slow),
    pytest.param(60, 6, 4, 0, 0.0, 0.15, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("n", "known", "rounds", "spare", "eavesdropped", "away"), SIMULATED)
def test_simulated_parties_are_cut_off_as_rarely_as_the_bound_says(
    n: int, known: int, rounds: int, spare: int, eavesdropped: float, away: float
) -> None:
    """One party of each run, on schedules as they are drawn for sessions."""
    runs = cases(400, 800) if min(spare, 1) + rounds < 4 or away else 4000
    rng, count, h = np.random.default_rng((n, rounds, spare)), 0, n - known
    for seed in range(runs):
        schedule = inca.PermutationReceivers(n, rounds, seed=seed)
        heard = inca.Adversary.random(n, rounds, rng, eavesdropped=eavesdropped).eavesdropped
        receivers = np.array([schedule.round(t).receivers[:, 0] for t in range(1, rounds + 1)], dtype=np.int64)
        here = rng.random((rounds, n)) >= away
        sender = np.broadcast_to(np.arange(n), receivers.shape)
        hidden = (sender < h) & (receivers < h) & here & np.take_along_axis(here, receivers, axis=1)
        for t, i in heard:
            hidden[t, i] = False
        graph = sparse.csr_array((np.ones(hidden.sum()), (sender[hidden], receivers[hidden])), shape=(h, h))
        _, component = connected_components(graph, directed=False)
        count += int(h - (component == component[0]).sum() > spare)
    log_bound = log_cut_off_for_party(n, known, rounds, spare=spare, eavesdropped=eavesdropped, away=away)
    assert count > 3  # so that it says something
    assert log_bound < math.log(0.9)
    assert stats.binom.sf(count - 1, runs, math.exp(log_bound)) > FALSE_ALARM


def test_two_independent_losses_are_less_than_one_absence() -> None:
    """An absence takes both messages of a party at once, which is what cuts it off."""
    as_losses = log_cut_off_for_party(50, 5, 4, eavesdropped=0.2)
    truth = isolation(50, 5, 4, away=0.1)
    assert as_losses < math.log(45 * truth) - 1.0
    assert log_cut_off_for_party(50, 5, 4, away=0.1) >= math.log(truth)


# Exact arithmetic


Number = Fraction | float


@cache
def fixes_none(places: int, marked: int) -> Fraction:
    total, term = Fraction(1), Fraction(1)
    for m in range(1, marked + 1):
        term *= Fraction(-(marked - m + 1), m * (places - m + 1))
        total += term
    return total


def lost_at_crossing(n: int, h: int, s: int, u: int, once: Number, twice: Number, away: bool) -> Number:
    """The mean, over the u whom a set of s sends to and the u who send to it, of the probability that all is lost.

    Times how likely nothing else is fixed; C9 of docs/failure-probability.md, term by term.
    """
    rest, known, others = h - s, n - h, n - s
    mean = sum((math.comb(rest, p) * math.comb(known, u - p) * once**p for p in range(u + 1)), Fraction(0)) / math.comb(
        others, u
    )
    if mean == 0:
        return mean
    again = mean
    if away:
        met = sum((p * math.comb(rest, p) * math.comb(known, u - p) * once**p for p in range(u + 1)), Fraction(0))
        raised = once + (twice / once - once) * met / math.comb(others, u) / mean / rest
        terms = (math.comb(rest, p) * math.comb(known, u - p) * raised**p for p in range(u + 1))
        again = sum(terms, Fraction(0)) / math.comb(others, u)
    free, places = others - u, others if once else max(known, 1)
    apart = min(u, free)
    none = fixes_none(free, free)
    slope = (fixes_none(free, free - apart) - none) / apart if apart else Fraction(0)
    return none * mean * again + slope * (u * mean * again - Fraction(u * u, places) * mean**2)


@cache
def plain_cut(n: int, h: int, s: int, lost: Number, away: Number) -> Number:
    """P_s of C9 in exact arithmetic."""
    once, twice = away + (1 - away) * lost, away + (1 - away) * lost**2
    total: Number = Fraction(0)
    for m in range(s + 1):
        cut: Number = Fraction(0)
        for u in range(m + 1):
            leave = Fraction(math.comb(m, u) * math.comb(n - m, u), math.comb(n, m)) * fixes_none(m, m - u)
            cut += leave * lost_at_crossing(n, h - (s - m), m, u, once, twice, away > 0) / fixes_none(n, n)
        total += math.comb(s, m) * (1 - away) ** m * away ** (s - m) * min(cut, Fraction(1))
    return total


def plain_bound(n: int, known: int, rounds: int, spare: int, lost: Fraction, away: Fraction) -> Number:
    h = n - known
    total: Number = Fraction(0)
    for s in range(1, h // 2 + 1):
        weight = Fraction(s, h) if s <= spare or 2 * s == h else Fraction(1)
        total += weight * math.comb(h, s) * min(Fraction(1), plain_cut(n, h, s, lost, away)) ** rounds
    return min(total, Fraction(1))


@examples(15, 300)
@given(st.integers(3, 26), st.data(), st.integers(1, 12))
def test_the_sum_is_that_of_exact_arithmetic(n: int, data: st.DataObject, rounds: int) -> None:
    known = data.draw(st.integers(0, n - 2))
    spare = data.draw(st.integers(0, (n - known - 1) // 2))
    lost = data.draw(st.sampled_from([Fraction(0), Fraction(1, 16), Fraction(1, 4)]))
    away = data.draw(st.sampled_from([Fraction(0), Fraction(1, 16), Fraction(1, 4)]))
    if away and (n - known) // 2 > 12:
        known = n - 24
        spare = min(spare, (n - known - 1) // 2)
    expected = float(plain_bound(n, known, rounds, spare, lost, away))
    bound = math.exp(bound_with_independent_losses(n, known, rounds, spare, float(lost), float(away)))
    assert expected * (1 - 1e-15 * rounds * n) <= bound <= expected * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "away"), [(0.0, 0.0), (0.125, 0.0), (0.0, 0.1), (0.1, 0.3)])
def test_closed_forms_for_large_sets_are_above_the_sums(lost: float, away: float) -> None:
    """In floats: no sum has more than 10^3 terms. Such sets weigh next to nothing where the bound is small."""
    n, h = 130, 110
    sizes = np.array([1.0, 5.0, 12.0, 13.0, 20.0, 32.0, 33.0, 40.0, 55.0])
    setting = FailureSetting(n, h, lost, sizes, sizes, away)
    for s, log_cut in zip(sizes.astype(int).tolist(), log_cut_permutation(setting).tolist(), strict=True):
        expected = math.log(plain_cut(n, h, s, lost, away))
        closed_form = s > (12 if away else 32)
        assert expected - 1e-9 * s <= log_cut <= expected + (0.6 * s if closed_form else 1e-9 * s)


@pytest.mark.parametrize(("lost", "away"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1)])
def test_sizes_in_blocks_add_little_to_the_sum_over_all_of_them(lost: float, away: float) -> None:
    """A sum over each single size, of up to 5,000, is what blocks stand for."""
    n, known, spare = 12_000, 2000, 48
    sizes = np.arange(1.0, 5001.0)
    setting = FailureSetting(n, n - known, lost, sizes, sizes, away)
    weights = np.where((sizes <= spare) | (sizes == 5000), sizes / 10_000, 1.0)
    choices = special.gammaln(10_001.0) - special.gammaln(sizes + 1) - special.gammaln(10_001.0 - sizes)
    for rounds in (8, 12):
        expected = float(special.logsumexp(np.log(weights) + choices + rounds * log_cut_permutation(setting)))
        bound = bound_with_independent_losses(n, known, rounds, spare, lost, away)
        assert expected - 1e-9 <= bound <= expected + 1e-3


@examples(25, 600)
@given(st.integers(4, 10**9), st.floats(0, 0.95), st.integers(1, 40), st.sampled_from([0.0, 0.01, 0.2]), st.data())
def test_no_bound_is_below_what_a_single_party_has(
    n: int, share: float, rounds: int, away: float, data: st.DataObject
) -> None:
    known = min(int(share * n), n - 2)
    lost = data.draw(st.sampled_from([0.0, 0.01, 0.2]))
    spare = data.draw(st.integers(0, (n - known - 1) // 2))
    alone = isolation_of_many(n, known, rounds, lost, away)
    assert log_cut_off_for_party(n, known, rounds, spare=spare, eavesdropped=lost, away=away) >= alone - 1e-6 * rounds


def isolation_of_many(n: int, known: int, rounds: int, lost: float, away: float) -> float:
    """The log of `isolation`, also where n is too large for its derangements; then exact up to 1 / (n-4)!."""
    if n <= 100:
        alone = isolation(n, known, 1, lost, away)
        return rounds * math.log(alone) if alone else -math.inf
    h, two_cycle = n - known, 1.0 / n
    once, twice = away + (1 - away) * lost, away + (1 - away) * lost**2
    pairs = known * (known - 1) + 2 * known * (h - 1) * once + (h - 1) * (h - 2) * once**2
    apart = pairs / ((n - 1) * (n - 2)) * (1 - two_cycle)
    same = (known + (h - 1) * twice) / (n - 1) * two_cycle
    alone = away + (1 - away) * (apart + same)
    return rounds * math.log(alone) if alone else -math.inf


# Rounds

TABLE = {
    5: ((7, 10), (11, 15), (11, 15)),
    10: ((5, 6), (6, 8), (8, 11)),
    20: ((4, 6), (6, 8), (8, 11)),
    50: ((4, 6), (6, 8), (8, 11)),
    200: ((5, 6), (6, 9), (8, 11)),
    1000: ((4, 5), (5, 7), (6, 9)),
    10**5: ((4, 5), (5, 7), (6, 9)),
    10**7: ((4, 5), (5, 7), (7, 9)),
    10**9: ((5, 5), (6, 7), (8, 9)),
}
"""At 1e-6 and 1e-9, for 0, 10 and 20 % leaving and a tenth colluding, both rounded up."""


def test_the_table_of_rounds() -> None:
    for n, row in TABLE.items():
        colluders = -(-n // 10)
        for tenths, expected in enumerate(row):
            known = min(colluders + -(-n * tenths // 10), n - 2)
            assert tuple(permutation_rounds(n, known, failure).rounds for failure in (1e-6, 1e-9)) == expected


@pytest.mark.slow
def test_a_tenth_and_a_tenth_take_six_rounds_or_just_miss_it() -> None:
    """Some numbers of parties up to 257 need a seventh: six rounds leave up to 1.3e-6, which is nearly the truth."""
    sizes = sorted({*range(71, 320), *(round(10 ** (k / 20)) for k in range(50, 181))})
    more = {}
    for n in sizes:
        known = 2 * -(-n // 10)
        if permutation_rounds(n, known, 1e-6).rounds > 6:
            more[n] = math.exp(log_cut_off_for_party(n, known, 6))
    assert len(more) == 48 and max(more) == 257 and max(more.values()) < 1.35e-6
    assert all(permutation_rounds(n, 2 * -(-n // 10), 1e-6, cost=0.019).rounds <= 6 for n in sizes)


@examples(25, 600)
@given(
    st.integers(2, 10**9),
    st.floats(0, 0.6),
    st.floats(-12, -0.5),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.sampled_from([0.0, 0.01, 0.2]),
)
def test_rounds_are_the_least_that_meet_the_failure(
    n: int, share: float, exponent: float, eavesdropped: float, away: float
) -> None:
    known, failure = min(int(share * n), n - 2), 10.0**exponent
    losses: dict[str, Any] = {"eavesdropped": eavesdropped, "away": away}
    needed = permutation_rounds(n, known, failure, **losses)
    assert needed.spare == spare_parties(n - known)
    bound = log_cut_off_for_party(n, known, needed.rounds, spare=needed.spare, **losses)
    assert math.exp(bound) <= needed.failure_probability <= failure
    assert needed.failure_probability <= math.exp(bound) * 1.001
    if needed.rounds > 1:
        fewer = log_cut_off_for_party(n, known, needed.rounds - 1, spare=needed.spare, **losses)
        assert fewer > math.log(failure) - 1e-6
    assert permutation_rounds(n, known, failure / 10, **losses).rounds >= needed.rounds
    assert permutation_rounds(n, known, failure, most=needed.rounds, **losses) == needed


@examples(25, 600)
@given(st.integers(4, 10**9), st.floats(0, 0.8), st.integers(1, 30), st.integers(0, 50), st.floats(0, 0.3), st.data())
def test_more_rounds_help_and_more_losses_do_not(
    n: int, share: float, rounds: int, spare: int, loss: float, data: st.DataObject
) -> None:
    known = min(int(share * n), n - 3)
    spare = min(spare, (n - known - 2) // 2)
    kind = data.draw(st.sampled_from(["eavesdropped", "away"]))
    losses: dict[str, Any] = {kind: loss}
    bound = log_cut_off_for_party(n, known, rounds, spare=spare, **losses)
    slack = 1e-6 * (1.0 + abs(bound))
    assert log_cut_off_for_party(n, known, rounds + 1, spare=spare, **losses) <= bound + slack
    assert log_cut_off_for_party(n, known, rounds, spare=spare, **{kind: 1.3 * loss}) >= bound - slack
    assert log_cut_off_for_party(n, known, rounds, **losses) >= bound - slack
    anyone, more = (log_cut_off_for_party(n, removed, rounds + 2, **losses) for removed in (known, known + 1))
    assert more >= anyone - slack or anyone > math.log(0.01)  # of few that are left, few can be cut off


@pytest.mark.parametrize("away", [0.0, 0.1])
def test_rounds_are_as_few_as_a_single_party_without_hidden_messages_allows(away: float) -> None:
    """What all sets but those of one party add costs no round, up to a hundred thousand parties."""
    for n in (20, 71, 150, 300, 10**4, 10**5):
        known = 2 * -(-n // 10)
        needed = permutation_rounds(n, known, 1e-6, away=away)
        anyone = 0.0 if needed.spare else math.log(n - known)
        assert isolation_of_many(n, known, needed.rounds - 1, 0.0, away) + anyone > math.log(1e-6) - 0.07


@examples(10, 200)
@given(st.integers(5, 6), st.data())
def test_fewer_leavers_than_planned_are_bounded_too(n: int, data: st.DataObject) -> None:
    """Over all schedules: fewer are removed, and a party still needs as many as if all had left."""
    known = data.draw(st.integers(max(1, n - 4), n - 2))
    left = data.draw(st.integers(max(0, n - 5), known - 1))
    rounds, spare = data.draw(st.integers(1, 6)), data.draw(st.integers(0, (n - known - 1) // 2))
    exact = exact_cut_off(n, left, rounds, spare + known - left, 0.0, 0.0)
    assert exact <= math.exp(log_cut_off_for_party(n, known, rounds, spare=spare)) * (1 + NEARLY)


def test_spare_parties_cost_what_they_may_and_no_more() -> None:
    for honest in (1, 2, 3, 205, 206, 410, 411, 412, 10**5, 10**9, 2**31 - 1):
        spare = spare_parties(honest)
        assert Fraction(honest, honest - spare) <= 1 + Fraction(SPARE_COST)
        assert Fraction(honest, honest - spare - 1) > 1 + Fraction(SPARE_COST) if honest > 1 else spare == 0
    assert spare_parties(7, cost=100.0) == 3  # below half


def test_extremes() -> None:
    assert log_cut_off_for_party(5, 4, 1) == -math.inf  # the only one left
    assert permutation_rounds(5, 4, 1e-9) == RoundsNeeded(1, 0, 0.0)
    assert log_cut_off_for_party(2, 0, 1) <= -math.inf  # they send to each other
    assert log_cut_off_for_party(50, 5, 9, away=1.0) == log_cut_off_for_party(50, 5, 9, eavesdropped=1.0) == 0.0
    assert permutation_rounds(10**6, 10**6 - 2, 0.5).rounds > 10**5
    tiny = permutation_rounds(200, 40, 5e-324)
    assert 0.0 < tiny.failure_probability <= 5e-324 and 100 < tiny.rounds < 1000
    rare: list[dict[str, Any]] = [{"away": 1e-200}, {"eavesdropped": 1e-200}]
    for losses in rare:
        assert log_cut_off_for_party(60, 6, 5, **losses) == pytest.approx(log_cut_off_for_party(60, 6, 5), abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parties": 1}, "parties must be from 2 to"),
        ({"parties": 2**31}, "parties must be from 2 to"),
        ({"known": 50}, r"known must be below the number of parties \(50\)"),
        ({"known": -1}, "known must be at least 0"),
        ({"known": 2.5}, "known must be an integer"),
        ({"failure": 0.0}, "failure must be between 0 and 1"),
        ({"failure": 1.0}, "failure must be between 0 and 1"),
        ({"failure": math.nan}, "failure must be a finite number"),
        ({"failure": 1e-9, "most": 3}, "failure must be at least .* the bound after 3 rounds; allow more rounds"),
        ({"most": 0}, "most must be from 1 to"),
        ({"eavesdropped": 1.1}, "eavesdropped must be from 0 to 1"),
        ({"eavesdropped": 1.0}, "failure must be at least 1"),
        ({"away": -0.1}, "away must be from 0 to 1"),
        ({"away": math.nan}, "away must be a finite number"),
        ({"cost": 0.0}, "cost must be above 0"),
        ({"cost": math.inf}, "cost must be a finite number"),
    ],
)
def test_refusals_of_permutation_rounds(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        permutation_rounds(**({"parties": 50, "known": 10, "failure": 1e-6} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds must be from 1 to"),
        ({"known": 50}, "known must be below the number of parties"),
        ({"spare": 20}, "spare must be below half of the 40 parties"),
        ({"spare": -1}, "spare must be at least 0"),
        ({"known": 49, "spare": 1}, "spare must be below half of the 1 parties"),
        ({"away": math.nan}, "away must be a finite number"),
        ({"eavesdropped": "much"}, "eavesdropped must be a finite number"),
    ],
)
def test_refusals_of_the_bound(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        log_cut_off_for_party(**({"parties": 50, "known": 10, "rounds": 6} | arguments))
