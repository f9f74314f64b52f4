"""The bounds for many parties, how they change with each argument, and what is refused."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import inca
from helpers.plain_failure_bounds import ROUGHLY, plain_random, setting
from inca.privacy.theorems import _cut_probabilities, failure_bounds
from inca.privacy.theorems.failure_bounds import failure_bound, least_rounds, log_failure_bound
from inca.protocol.adversary import Adversary

# Many parties


@pytest.mark.parametrize("most", [0, 1, 2, 511, 512, 513, 520, 10_000, 2**30])
def test_blocks_are_a_partition_of_the_sizes(most: int) -> None:
    first, last = _cut_probabilities.size_blocks(most)
    assert first.size == last.size < 2000
    assert (first <= last).all() and (first[1:] == last[:-1] + 1).all()
    assert (last - first + 1).sum() == most


@pytest.mark.parametrize("n", [2000, 20_000, 100_000])
@pytest.mark.parametrize(
    ("schedule", "k", "f"),
    [("random", 1, 0.0), ("random", 1, 0.3), ("distinct", 1, 0.0), ("permutation", 1, 0.2), ("random", 3, 0.1)],
)
def test_blocks_cost_less_than_one_percent(
    n: int, schedule: str, k: int, f: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Any = {"receivers": k, "schedule": schedule, "eavesdropped": f}
    for colluding in (n // 10, n // 2, n - 300):
        for probability in (0.09, 1e-6):
            if k > 1 and colluding > n // 2:
                continue
            rounds = least_rounds(n, colluding, probability, **options)
            blocked = log_failure_bound(n, colluding, rounds, **options)
            with monkeypatch.context() as patch:
                patch.setattr(_cut_probabilities, "_ALONE", 10**9)
                patch.setattr(_cut_probabilities, "_RUNS", min(rounds, 1000))
                full = log_failure_bound(n, colluding, rounds, **options)
            assert -1e-9 <= blocked - full < 0.01


def log_quotient(a: int, b: int) -> float:
    """Return log(a / b), by the one of two formulas that does not cancel digits."""
    return math.log(a / b) if 2 * a < b else math.log1p((a - b) / b)


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.integers(1, 5000))
@example(part=2, rest=475_711, draws=2)
def test_draws_without_replacement_are_bounded_from_both_sides(part: int, rest: int, draws: int) -> None:
    assume(draws <= part)
    exact = math.fsum(log_quotient(part - j, part + rest - j) for j in range(draws))
    below, above = (
        float(_cut_probabilities.log_all_within(np.array(float(part)), np.array(float(rest)), draws, above=side))
        for side in (False, True)
    )
    assert below <= exact * (1 - 1e-12) and exact * (1 + 1e-12) <= above
    if draws <= _cut_probabilities._RUNS:
        assert below == above
    elif 2 * draws <= part:
        assert above - below <= 0.02 * -exact


@pytest.mark.parametrize("h", [2, 3, 1023, 1024, 1025, 3000])
def test_the_number_of_sets_is_bounded_and_nearly_exact(h: int) -> None:
    one = setting(h + 1, 1)
    for bound, first, last in zip(_cut_probabilities.log_number_of_sets(one), one.first, one.last, strict=True):
        exact = math.log(sum(math.comb(h, s) for s in range(int(first), int(last) + 1)))
        assert bound >= exact - 1e-12 * exact
        if first == last:
            assert bound == pytest.approx(exact, abs=3e-4)  # 1/(12 * 512), and as much for the rest


@pytest.mark.parametrize("rounds", [1, 10**6, 2 * 10**9])
def test_rounding_errors_of_every_round_are_allowed_for(rounds: int) -> None:
    numbers, probabilities = np.log([2.0, 3.0]), np.log([0.25, 0.5])
    assert _cut_probabilities.log_sum(numbers, probabilities, rounds) == pytest.approx(
        math.log(2.0) + 1e-10 * rounds, abs=1e-9
    )


def test_a_billion_parties() -> None:
    n = 10**9
    for schedule in failure_bounds.SCHEDULES:
        rounds = least_rounds(n, n // 2, 1e-6, schedule=schedule)
        assert 20 < rounds < 32
        assert log_failure_bound(n, n // 2, rounds, schedule=schedule) <= math.log(1e-6)
        # One isolated party is all that matters then, and is easy to compute apart.
        alone = 0.25 if schedule == "permutation" else 0.5 * math.exp(-0.5)
        expected = math.log(n / 2) + rounds * math.log(alone)
        assert log_failure_bound(n, n // 2, rounds, schedule=schedule) == pytest.approx(expected, abs=1e-5)
    assert 10 < least_rounds(n, n // 10, 1e-6, receivers=2) < 20
    assert least_rounds(n, n - 1000, 0.5, max_rounds=2**31 - 1) > 10**6


# Shape of the bound

settings = st.tuples(
    st.integers(12, 3000),
    st.floats(0.0, 0.8),
    st.sampled_from([("random", 1), ("distinct", 1), ("permutation", 1), ("random", 2), ("distinct", 3)]),
    st.floats(0.0, 0.9),
)


@given(settings, st.integers(1, 40))
def test_more_rounds_fail_less_often(case: tuple[int, float, tuple[str, int], float], rounds: int) -> None:
    n, share, (schedule, k), f = case
    rounds = min(rounds, (n - 1) // k - 1)
    options: Any = {"receivers": k, "schedule": schedule, "eavesdropped": f}
    now, later = (log_failure_bound(n, int(share * n), t, **options) for t in (rounds, rounds + 1))
    assert later < now or now == later == 0.0 or now == later == -math.inf


@given(settings, st.integers(1, 40), st.floats(0.0, 0.9))
def test_more_eavesdropping_fails_more_often(
    case: tuple[int, float, tuple[str, int], float], rounds: int, other: float
) -> None:
    n, share, (schedule, k), f = case
    rounds = min(rounds, (n - 1) // k)
    less, more = (
        log_failure_bound(n, int(share * n), rounds, receivers=k, schedule=schedule, eavesdropped=fraction)
        for fraction in sorted((f, other))
    )
    assert less <= more or less - more <= 1e-9 * abs(more)  # both may be minus infinity


@pytest.mark.parametrize("n", [40, 500, 10_000])
@pytest.mark.parametrize(("schedule", "k"), [("random", 1), ("distinct", 1), ("permutation", 1), ("random", 2)])
def test_more_colluders_fail_more_often(n: int, schedule: str, k: int) -> None:
    for rounds in (3, 8, 19):
        bounds = [log_failure_bound(n, c, rounds, receivers=k, schedule=schedule) for c in range(0, n - 10, n // 20)]
        assert (np.diff(bounds[1:]) >= 0).all() and bounds[0] <= bounds[1]
    assert bounds[1] < bounds[-1]


@given(settings, st.floats(1e-12, 1.0))
def test_least_rounds_are_the_inverse(case: tuple[int, float, tuple[str, int], float], probability: float) -> None:
    n, share, (schedule, k), f = case
    colluding = int(share * n)
    options: Any = {"receivers": k, "schedule": schedule, "eavesdropped": f}
    try:
        rounds = least_rounds(n, colluding, probability, **options, max_rounds=500)
    except inca.InvalidInput:
        last = min(500, (n - 1) // k) if schedule == "distinct" else 500
        assert failure_bound(n, colluding, last, **options) > probability
        return
    assert failure_bound(n, colluding, rounds, **options) <= probability
    assert rounds == 1 or failure_bound(n, colluding, rounds - 1, **options) > probability


def test_edge_cases() -> None:
    assert log_failure_bound(5, 4, 1) == -math.inf  # one honest party: nothing to connect
    assert failure_bound(5, 4, 1, schedule="permutation", eavesdropped=1.0) == 0.0
    assert least_rounds(5, 4, 1e-9) == 1
    assert failure_bound(2, 0, 1) == failure_bound(2, 0, 1, schedule="permutation") == 0.0  # they send to each other
    assert failure_bound(10, 3, 50, eavesdropped=1.0) == 1.0
    assert failure_bound(10, 8, 50, receivers=3) == 1.0  # three receivers always include a colluder
    assert failure_bound(1000, 1, 1, receivers=999) == 1.0
    assert failure_bound(10**6, 0, 1, receivers=500) < 1e-100
    assert failure_bound(100, 99 - 1, 50) == pytest.approx((1 - 1 / 99) ** 100)


@pytest.mark.parametrize("fraction", [0.0, 1e-3, 0.07, 0.29, 0.5, 1.0])
def test_eavesdropped_messages_are_counted_as_by_the_adversary(fraction: float) -> None:
    n = 100
    eavesdropped = len(Adversary.random(n, 1, np.random.default_rng(1), eavesdropped=fraction).eavesdropped)
    expected = float(plain_random(n, 40, 9, eavesdropped))
    assert failure_bound(n, 40, 9, eavesdropped=fraction) == pytest.approx(expected, rel=ROUGHLY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parties": 1}, "parties must be from 2 to 2147483647, got 1"),
        ({"colluding": -1}, "colluding must be at least 0, got -1"),
        (
            {"colluding": 100},
            "colluding must be below the number of parties (100), so that someone is left to protect, got 100",
        ),
        ({"colluding": 0.5}, "colluding must be an integer, at least 0, got 0.5"),
        ({"rounds": 0}, "rounds must be from 1 to 2147483647, got 0"),
        ({"rounds": 2**31}, "rounds must be from 1 to 2147483647, got 2147483648"),
        ({"receivers": 0}, "receivers must be at least 1, got 0"),
        ({"receivers": 100}, "receivers must be below the number of parties (100), got 100"),
        ({"schedule": "ring"}, "schedule must be one of random, distinct, permutation, got 'ring'"),
        (
            {"schedule": "permutation", "receivers": 2},
            "receivers must be 1 for permutations, as no bound is proven for more, got 2",
        ),
        (
            {"schedule": "distinct", "rounds": 50, "receivers": 2},
            "receivers times rounds must be below the number of parties (100), got 100",
        ),
        ({"eavesdropped": 1.5}, "eavesdropped must be from 0 to 1, got 1.5"),
        ({"eavesdropped": math.nan}, "eavesdropped must be a finite number, from 0 to 1, got nan"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"parties": 100, "colluding": 10, "rounds": 5}
    for function in (log_failure_bound, failure_bound):
        with pytest.raises(inca.InvalidInput, match=f"^{re.escape(message)}$"):
            function(**good | arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probability": 0.0}, "probability must be above 0, got 0.0"),
        ({"probability": 2}, "probability must be from 0 to 1, got 2"),
        ({"max_rounds": 0}, "max_rounds must be from 1 to 2147483647, got 0"),
        (
            {"parties": 10**6, "colluding": 10**6 - 2},
            "probability must be at least 0.98, the bound after 10000 rounds, got 1e-06",
        ),
        (
            {"parties": 10, "schedule": "distinct", "colluding": 5, "receivers": 2},
            "probability must be at least 1, the bound after 4 rounds, got 1e-06",
        ),
    ],
)
def test_refusals_of_least_rounds(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"parties": 100, "colluding": 10, "probability": 1e-6}
    with pytest.raises(inca.InvalidInput, match=f"^{re.escape(message)}$"):
        least_rounds(**good | arguments)  # type: ignore[arg-type]
