"""How likely hidden messages join a party of a settled run with too few others: enumeration, simulation, formulas."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

import inca
from helpers.plain_isolation import isolation
from inca.errors import InvalidInput
from inca.privacy.theorems.failure_bounds import failure_bound, log_isolation_random, log_settled_bound

FALSE_ALARM = 1e-8  # of each of the statistical tests below, about 20; seeds are fixed
RUNS = 4000
MORE = ((5, 2), (6, 1))


def settled_bound(
    parties: int, colluding: int, rounds: int, leavers: int = 0, away: float = 0.0, **options: Any
) -> float:
    return log_settled_bound(parties, colluding, rounds, absent=(leavers, away), **options)


def joined(receivers: NDArray[np.int64], hides: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the sizes of the components of the parties that neither collude nor left; 0 for all others.

    Args:
        receivers: Whom each party sends to in each round, (T, n).
        hides: Which parties these are.
    """
    n = hides.size
    sender = np.broadcast_to(np.arange(n), receivers.shape)
    hidden = hides[sender] & hides[receivers]
    graph = sparse.csr_array((np.ones(hidden.sum()), (sender[hidden], receivers[hidden])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    sizes = np.bincount(component[hides], minlength=n)
    return np.where(hides, sizes[component], 0)


@cache
def all_derangements(n: int) -> NDArray[np.int64]:
    maps = np.array(list(itertools.permutations(range(n))))
    return np.asarray(maps[(maps != np.arange(n)).all(axis=1)])


@pytest.mark.parametrize(
    ("n", "rounds"), [(3, 1), (4, 1), (4, 2), (5, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)]
)
def test_the_bound_holds_for_all_schedules_and_every_number_of_leavers(n: int, rounds: int) -> None:
    """Of a given party: over all schedules, one by one. Who colludes or left does not matter, but how many do."""
    runs = list(itertools.product(all_derangements(n), repeat=rounds))
    for known in range(n - 1):
        hides = np.arange(n) >= known
        sizes = np.array([joined(np.array(run), hides)[-1] for run in runs])
        for lacking in (0.0, 0.2, 0.34, 0.5):
            exact = float(np.mean(n - known - sizes > lacking * (n - known) + 1e-12))
            for colluding in range(known + 1):
                for leavers in range(known - colluding, n - colluding):
                    options: dict[str, Any] = {"leavers": leavers, "lacking": lacking}
                    assert math.exp(settled_bound(n, colluding, rounds, **options)) >= exact * (1 - 1e-9)


SIMULATED = [
    pytest.param("permutation", 30, 6, 4, 2, 1, 0.0, marks=pytest.mark.slow),
    ("permutation", 30, 6, 4, 2, 1, 0.2),
    ("permutation", 12, 2, 2, 1, 1, 0.0),
    pytest.param("random", 30, 6, 4, 2, 1, 0.0, marks=pytest.mark.slow),
    pytest.param("random", 30, 6, 4, 2, 1, 0.2, marks=pytest.mark.slow),
    ("random", 30, 6, 4, 3, 2, 0.0),
    pytest.param("random", 20, 4, 4, 4, 3, 0.1, marks=pytest.mark.slow),
    ("distinct", 30, 6, 4, 2, 1, 0.0),
    pytest.param("distinct", 20, 6, 6, 2, 3, 0.1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("schedule", "n", "colluding", "leavers", "rounds", "receivers", "eavesdropped"), SIMULATED)
def test_parties_without_a_hidden_message_are_as_frequent_as_the_formula_says(
    schedule: str, n: int, colluding: int, leavers: int, rounds: int, receivers: int, eavesdropped: float
) -> None:
    """A party of each of 4,000 runs, counted on its messages; where the formula is a bound, only from above."""
    rng, alone = np.random.default_rng((n, rounds, receivers)), 0
    for seed in range(RUNS):
        receivers_of = inca.random_schedule(schedule, n, rounds, receivers, seed=seed)
        known = np.zeros(n, dtype=bool)
        known[rng.choice(n, colluding + leavers, replace=False)] = True
        heard = set(inca.Adversary.random(n, rounds, rng, eavesdropped=eavesdropped).eavesdropped)
        me = int(rng.choice(np.flatnonzero(~known)))
        alone += not any(
            (sender == me or me in row) and not known[sender] and not known[row].any() and (t - 1, sender) not in heard
            for t in range(1, rounds + 1)
            for sender, row in enumerate(receivers_of.round(t).receivers.reshape(n, -1))
        )
    expected, exact = isolation(schedule, n, colluding + leavers, rounds, receivers, eavesdropped)
    assert 0.003 < expected < 0.9
    assert stats.binom.sf(alone - 1, RUNS, expected) > FALSE_ALARM
    assert not exact or stats.binom.cdf(alone, RUNS, expected) > FALSE_ALARM


@pytest.mark.parametrize("away", [0.1, 0.4])
@pytest.mark.parametrize("schedule", ["random", "permutation"])
def test_absent_parties_are_left_alone_as_often_as_the_formula_says(schedule: str, away: float) -> None:
    """In each round each party is away with this probability; a message to or from it is not sent."""
    rng, alone, n, known = np.random.default_rng(7), 0, 20, 5
    for seed in range(RUNS):
        receivers, me = inca.random_schedule(schedule, n, 3, seed=seed), int(rng.integers(known, n))
        found = False
        for t in range(1, 4):
            here, row = rng.random(n) >= away, receivers.round(t).receivers.reshape(n)
            hidden = here & here[row] & (np.arange(n) >= known) & (row >= known)
            found |= bool(hidden[me] or (hidden & (row == me)).any())
        alone += not found
    expected, _ = isolation(schedule, n, known, 3, 1, 0.0, away)
    assert min(stats.binom.sf(alone - 1, RUNS, expected), stats.binom.cdf(alone, RUNS, expected)) > FALSE_ALARM
    assert expected <= math.exp(settled_bound(n, known, 3, schedule=schedule, away=away))


@pytest.mark.parametrize(
    ("lacking", "rounds", "leavers"),
    [(0.1, 2, 0), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.0, 4, 5), (0.1, 3, 5), (0.3, 3, 5)))],
)
def test_simulated_parties_are_joined_with_too_few_as_rarely_as_the_bound_says(
    lacking: float, rounds: int, leavers: int
) -> None:
    """A party of each of 4,000 runs of 24, at every other number of leavers up to the one that is bounded."""
    bound = math.exp(settled_bound(24, 4, rounds, leavers=leavers, lacking=lacking))
    counts = []
    for gone in range(0, leavers + 1, 2 if leavers else 1):
        hides, few = np.arange(24) >= 4 + gone, 0
        for seed in range(RUNS):
            schedule = inca.PermutationReceivers(24, rounds, seed=seed)
            rows = np.array([schedule.round(t).receivers.reshape(24) for t in range(1, rounds + 1)], dtype=np.int64)
            few += int(20 - gone - joined(rows, hides)[-1] > lacking * (20 - gone))
        assert stats.binom.sf(few - 1, RUNS, bound) > FALSE_ALARM
        counts.append(few)
    assert max(counts) > 3  # so that it says something


@given(st.integers(4, 60), st.data(), st.integers(1, 20), st.sampled_from(["random", "distinct", "permutation"]))
def test_no_bound_is_below_what_one_party_alone_has(n: int, data: st.DataObject, rounds: int, schedule: str) -> None:
    known = data.draw(st.integers(0, n - 2))
    colluding = data.draw(st.integers(0, known))
    eavesdropped = data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    lacking = data.draw(st.floats(0, 0.6))
    assume(schedule != "distinct" or rounds < n)
    alone, _ = isolation(schedule, n, known, rounds, 1, math.ceil(eavesdropped * n - 1e-9) / n)
    options: dict[str, Any] = {"schedule": schedule, "eavesdropped": eavesdropped, "leavers": known - colluding}
    bound = math.exp(settled_bound(n, colluding, rounds, lacking=lacking, **options))
    assert bound >= min(1.0, alone) * (1 - 1e-9)
    assert bound <= math.exp(settled_bound(n, colluding, rounds, **options)) * (1 + 1e-9)


@given(st.integers(4, 40), st.data(), st.integers(1, 12), st.integers(2, 3))
def test_several_receivers_are_bounded_at_every_number_of_leavers(
    n: int, data: st.DataObject, rounds: int, receivers: int
) -> None:
    known = data.draw(st.integers(0, n - 2))
    colluding = data.draw(st.integers(0, known))
    settled = settled_bound(n, colluding, rounds, receivers=receivers, schedule="random", leavers=known - colluding)
    assert math.exp(settled) >= failure_bound(n, known, rounds, receivers=receivers) * (1 - 1e-9)
    alone, _ = isolation("random", n, known, rounds, receivers, 0.25)
    if n - known > receivers:
        log_alone = log_isolation_random(n, known, rounds, receivers=receivers, eavesdropped=0.25)
        assert math.exp(log_alone) == pytest.approx(alone, rel=1e-9, abs=1e-300)


def test_without_leavers_it_is_the_bound_for_everyone_and_a_single_party_has_none() -> None:
    for schedule in ("random", "distinct", "permutation"):
        for eavesdropped in (0.0, 0.1):
            options: dict[str, Any] = {"schedule": schedule, "eavesdropped": eavesdropped}
            settled = math.exp(settled_bound(50, 10, 6, **options))
            assert settled == pytest.approx(failure_bound(50, 10, 6, **options))
    assert settled_bound(5, 4, 3) == settled_bound(5, 4, 3, leavers=3) == -math.inf
    assert log_isolation_random(5, 0, 3, receivers=4) == -math.inf  # all send to all
    assert log_isolation_random(5, 3, 3, receivers=2) == 0.0
    with pytest.raises(InvalidInput, match="lacking must be 0 for several receivers"):
        settled_bound(50, 10, 6, receivers=2, schedule="random", lacking=0.1)
    with pytest.raises(InvalidInput, match="receivers times rounds must be below the number of parties"):
        settled_bound(50, 10, 50, schedule="distinct")


def test_blocks_of_leavers_cost_nothing_where_the_largest_number_decides() -> None:
    for n in (50, 1000, 10**6):
        settled = math.exp(settled_bound(n, n // 10, 9, leavers=n // 5))
        assert settled == pytest.approx(failure_bound(n, n // 10 + n // 5, 9, schedule="permutation"))
