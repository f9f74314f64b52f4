from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

import inca
from inca.privacy.theorems import failure_bounds as chance
from inca.privacy.theorems.failure_bounds import failure_bound, least_rounds, log_failure_bound
from inca.protocol.adversary import Adversary

FALSE_ALARM = 1e-8  # of each of the statistical tests below, about 30; seeds are fixed

ROUGHLY = 1e-6  # relative; the slack for rounding errors is part of the bounds


def setting(parties: int, colluding: int, tapped: float = 0.0) -> chance._Setting:
    honest = parties - colluding
    return chance._Setting(parties, honest, tapped, *chance._blocks(honest // 2))


# The sums against exact arithmetic and enumeration


def plain_random(n: int, c: int, rounds: int, tapped: int) -> Fraction:
    """The bound for k = 1 as it is printed in the docstring, in exact arithmetic; `tapped` messages a round."""
    h, g = n - c, Fraction(n - tapped, n) / (n - 1)
    total = Fraction(0)
    for s in range(1, h // 2 + 1):
        term = math.comb(h, s) * (1 - g * (h - s)) ** (s * rounds) * (1 - g * s) ** ((h - s) * rounds)
        total += term / 2 if 2 * s == h else term
    return min(total, Fraction(1))


def plain_distinct(n: int, c: int, rounds: int) -> Fraction:
    h, total = n - c, Fraction(0)

    def missed(targets: int) -> Fraction:
        return Fraction(math.comb(n - 1 - targets, rounds), math.comb(n - 1, rounds))

    for s in range(1, h // 2 + 1):
        term = math.comb(h, s) * missed(h - s) ** s * missed(s) ** (h - s)
        total += term / 2 if 2 * s == h else term
    return min(total, Fraction(1))


def plain_two_closed(n: int, c: int, k: int, rounds: int, tapped: int) -> float:
    """The bound for k > 1 in plain loops."""
    h, hidden = n - c, 1 - tapped / n

    def q(s: int) -> float:
        return 1 - hidden * (math.comb(h - 1, k) - math.comb(s - 1, k)) / math.comb(n - 1, k)

    one = sum(math.comb(h, s) * q(s) ** (s * rounds) for s in range(1, h // 2 + 1))
    pairs = (1 - 1 / h) / 2 * one**2
    for rest in range(1, (h - 1) // 2 + 1):
        small = rest * q(rest) ** rounds
        pairs += math.comb(h, rest) * q(h - rest) ** ((h - rest) * rounds) * small * math.exp(small)
    return min(1.0, one, pairs)


@given(st.integers(2, 40), st.integers(0, 39), st.integers(1, 12), st.integers(0, 40))
def test_random_receivers_match_exact_arithmetic(n: int, c: int, rounds: int, tapped: int) -> None:
    assume(c < n - 1 and tapped <= n)
    expected = float(plain_random(n, c, rounds, tapped))
    assert failure_bound(n, c, rounds, eavesdropped=tapped / n) == pytest.approx(expected, rel=ROUGHLY)


@given(st.integers(3, 60), st.integers(0, 58), st.integers(1, 59))
def test_distinct_receivers_match_exact_arithmetic(n: int, c: int, rounds: int) -> None:
    assume(c < n - 1 and rounds < n)
    exact = float(plain_distinct(n, c, rounds))
    assert failure_bound(n, c, rounds, schedule="distinct") == pytest.approx(exact, rel=ROUGHLY, abs=1e-300)
    assert exact <= plain_random(n, c, rounds, 0)


@given(st.integers(3, 40), st.integers(0, 38), st.integers(2, 6), st.integers(1, 12), st.integers(0, 40))
def test_several_receivers_match_plain_loops(n: int, c: int, k: int, rounds: int, tapped: int) -> None:
    assume(c < n - 1 and k < n and tapped <= n)
    expected = plain_two_closed(n, c, k, rounds, tapped)
    assert failure_bound(n, c, rounds, k, eavesdropped=tapped / n) == pytest.approx(expected, rel=ROUGHLY, abs=1e-15)


def cut_chances(maps: NDArray[np.int64], h: int, tapped: int) -> list[float]:
    """For sets of s = 1..h/2 honest parties: the exact chance that all messages across are among the tapped ones."""
    n = maps.shape[1]
    found = []
    for s in range(1, h // 2 + 1):
        side = np.repeat([0, 1, 2], [s, h - s, n - h])
        across = ((side[maps] != side) & (side[maps] < 2) & (side < 2)).sum(axis=1)
        all_tapped = [math.comb(n - a, tapped - a) / math.comb(n, tapped) if a <= tapped else 0.0 for a in range(n + 1)]
        found.append(float(np.array(all_tapped)[across].mean()))
    return found


def all_maps(n: int) -> NDArray[np.int64]:
    return np.array(list(itertools.product(*[[j for j in range(n) if j != i] for i in range(n)])))


def all_derangements(n: int) -> NDArray[np.int64]:
    maps = np.array(list(itertools.permutations(range(n))))
    return np.asarray(maps[(maps != np.arange(n)).all(axis=1)])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_chance_of_a_cut_matches_all_maps(n: int) -> None:
    maps = all_maps(n)
    for c, tapped in itertools.product(range(n - 1), range(n + 1)):
        exact = np.array(cut_chances(maps, n - c, tapped))
        bound = np.exp(chance._cut_random(setting(n, c, tapped / n)))
        assert (bound >= exact - 1e-12).all()
        if tapped in {0, n}:
            assert bound == pytest.approx(exact, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8])
def test_the_chance_of_a_cut_matches_all_derangements(n: int) -> None:
    maps = all_derangements(n)
    for c, tapped in itertools.product(range(n - 1), range(0, n + 1, 2)):
        exact = np.array(cut_chances(maps, n - c, tapped))
        bound = np.exp(chance._cut_permutation(setting(n, c, tapped / n)))
        assert (bound >= exact - 1e-12).all()
        if tapped == 0:
            assert bound[0] == pytest.approx(exact[0], rel=1e-12, abs=1e-15)
            assert bound == pytest.approx(exact, rel=0.12, abs=1e-15)


def test_the_closed_form_for_permutations_is_above_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(n, c, f) for n in (70, 200, 5000) for c in (0, 1, n // 10, n // 2, n - 66) for f in (0.0, 0.1, 0.6)]
    monkeypatch.setattr(chance, "_SMALL", 40)
    sums = [chance._cut_permutation(setting(*case))[32:40] for case in cases]
    monkeypatch.setattr(chance, "_SMALL", 32)
    forms = [chance._cut_permutation(setting(*case))[32:40] for case in cases]
    for exact, form in zip(sums, forms, strict=True):
        assert (form >= exact).all()
        assert form.size == 0 or (form[0] <= exact[0] * 0.4).all()  # roughly right, as (s/n)^s is beside 1/C(n, s)


@given(st.integers(0, 12), st.integers(0, 12))
def test_permutations_without_fixed_points_among_the_marked(places: int, marked: int) -> None:
    assume(marked <= places)
    among = sum((-1) ** m * math.comb(marked, m) * math.factorial(places - m) for m in range(marked + 1))
    exact = among / math.factorial(places)
    assert float(chance._no_fixed_point(np.array(float(places)), np.array(float(marked)))) == pytest.approx(exact)
    # The inequality on which the closed form rests.
    assert exact <= math.exp(-marked / max(places, 1)) + 1 / math.factorial(places + 1)


# Exact chances of the precondition, for so few parties that all schedules can be listed


def connected(edges: list[tuple[int, int]], h: int) -> bool:
    label = list(range(h))
    for i, j in edges:
        label = [label[i] if x == label[j] else x for x in label]
    return len(set(label)) == 1


@pytest.mark.parametrize(("n", "c", "rounds"), [(3, 0, 2), (3, 1, 3), (4, 0, 1), (4, 1, 2), (4, 2, 2), (5, 2, 1)])
def test_the_bound_is_above_the_chance_over_all_schedules(n: int, c: int, rounds: int) -> None:
    h = n - c
    for schedule, maps in (("random", all_maps(n)), ("permutation", all_derangements(n))):
        one_round = {tuple((i, int(j)) for i, j in enumerate(one[:h]) if j < h): 0 for one in maps}
        for one in maps:
            one_round[tuple((i, int(j)) for i, j in enumerate(one[:h]) if j < h)] += 1
        failed = 0.0
        for runs in itertools.product(one_round, repeat=rounds):
            if not connected([edge for one in runs for edge in one], h):
                failed += math.prod(one_round[one] / len(maps) for one in runs)
        bound = failure_bound(n, c, rounds, schedule=schedule)
        assert bound >= failed - 1e-12
        if h == 2:  # one split only
            assert bound == pytest.approx(failed, rel=1e-6, abs=1e-12)


def rank_is_short(messages: list[tuple[int, tuple[int, ...]]], h: int) -> bool:
    rows = np.zeros((len(messages), h))
    for row, (sender, receivers) in zip(rows, messages, strict=True):
        row[list(receivers)] = 1.0
        row[sender] = -len(receivers)
    return int(np.linalg.matrix_rank(rows)) < h - 1 if messages else h > 1


@pytest.mark.parametrize(("n", "c", "rounds"), [(3, 0, 1), (4, 0, 1), (4, 1, 1), (4, 1, 2), (4, 2, 2), (5, 2, 1)])
def test_two_receivers_over_all_schedules_by_rank(n: int, c: int, rounds: int) -> None:
    h, k = n - c, 2
    choices = [[(i, r) for r in itertools.combinations([j for j in range(n) if j != i], k)] for i in range(h)]
    failed = total = 0
    for messages in itertools.product(*choices * rounds):
        hidden = [(i, r) for i, r in messages if max(r) < h]
        failed += rank_is_short(hidden, h)
        total += 1
    assert failure_bound(n, c, rounds, k) >= failed / total - 1e-12


# Against simulated schedules


def drawn(kind: str, n: int, rounds: int, k: int, runs: int, seed: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield (run, receivers) for every round of every run."""
    if kind == "distinct":  # rounds depend on each other
        for run in range(runs):
            one = inca.random_schedule(kind, n, rounds, k, seed=seed + run)
            yield from ((run, one.round(t).receivers) for t in range(1, rounds + 1))
    else:
        one = inca.random_schedule(kind, n, rounds * runs, k, seed=seed)
        yield from ((t // rounds, one.round(t + 1).receivers) for t in range(rounds * runs))


def simulated_failures(kind: str, n: int, c: int, rounds: int, k: int, tapped: int, runs: int, seed: int) -> int:
    """Count runs whose hidden graph is not connected (k = 1) or has several sinks (k > 1)."""
    h, rng = n - c, np.random.default_rng(seed)
    senders, targets = [], []
    for run, receivers in drawn(kind, n, rounds, k, runs, seed):
        unseen = np.ones(n, dtype=bool)
        unseen[rng.choice(n, size=tapped, replace=False)] = False
        who = np.flatnonzero(unseen[:h] & (receivers[:h].max(axis=1) < h))
        senders.append(np.repeat(who, k) + run * h)
        targets.append(receivers[who].reshape(-1).astype(np.int64) + run * h)
    source, target = np.concatenate(senders), np.concatenate(targets)
    size = runs * h
    graph = sparse.coo_array((np.ones(source.size), (source, target)), shape=(size, size)).tocsr()
    count, label = connected_components(graph, connection="weak" if k == 1 else "strong")
    sink = np.ones(count, dtype=bool)
    sink[label[source][label[source] != label[target]]] = False
    run_of = np.zeros(count, dtype=np.int64)
    run_of[label] = np.arange(size) // h
    return int((np.bincount(run_of[sink], minlength=runs) > 1).sum())


# Every kind of schedule, k = 1 and more, with messages tapped and without: what is slow repeats them with more parties.
@pytest.mark.parametrize(
    ("kind", "n", "c", "rounds", "k", "tapped", "runs", "tight"),
    [
        ("random", 100, 50, 6, 1, 0, 2000, 0.85),
        pytest.param("random", 100, 20, 5, 1, 20, 1500, 0.8, marks=pytest.mark.slow),
        pytest.param("distinct", 100, 50, 6, 1, 0, 1000, 0.85, marks=pytest.mark.slow),
        ("distinct", 60, 20, 5, 1, 10, 1000, 0.6),
        pytest.param("permutation", 100, 50, 5, 1, 0, 1200, 0.9, marks=pytest.mark.slow),
        ("permutation", 20, 5, 2, 1, 0, 2000, 0.9),
        ("permutation", 20, 5, 3, 1, 3, 1200, 0.8),
        ("permutation", 10, 0, 2, 1, 2, 2000, 0.6),
        pytest.param("random", 100, 30, 8, 2, 0, 1000, 0.4, marks=pytest.mark.slow),
        ("random", 20, 5, 6, 2, 2, 1000, 0.5),
        pytest.param("random", 100, 10, 6, 3, 5, 1000, 0.3, marks=pytest.mark.slow),
        ("distinct", 40, 10, 7, 2, 0, 500, 0.0),
    ],
)
def test_simulated_failures_are_as_rare_as_promised_and_not_much_rarer(
    kind: str, n: int, c: int, rounds: int, k: int, tapped: int, runs: int, tight: float
) -> None:
    bound = failure_bound(n, c, rounds, k, kind, tapped / n)
    seen = simulated_failures(kind, n, c, rounds, k, tapped, runs, seed=1000)
    assert 0.001 < bound < 0.2
    assert seen <= stats.binom.ppf(1 - FALSE_ALARM, runs, bound)
    assert seen >= stats.binom.ppf(FALSE_ALARM, runs, tight * bound)


def test_the_figures_known_from_long_simulations() -> None:
    assert [failure_bound(100, 50, rounds) for rounds in (6, 8, 10)] == pytest.approx([0.0432, 0.00397, 0.000373], 1e-3)
    assert log_failure_bound(5000, 2500, 16) / math.log(10) == pytest.approx(-4.9, abs=0.02)


# Many parties


@pytest.mark.parametrize("most", [0, 1, 2, 511, 512, 513, 520, 10_000, 2**30])
def test_blocks_are_a_partition_of_the_sizes(most: int) -> None:
    first, last = chance._blocks(most)
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
    for colluding in (n // 10, n // 2, n - 300):
        for probability in (0.09, 1e-6):
            if k > 1 and colluding > n // 2:
                continue
            rounds = least_rounds(n, colluding, probability, k, schedule, f)
            blocked = log_failure_bound(n, colluding, rounds, k, schedule, f)
            with monkeypatch.context() as patch:
                patch.setattr(chance, "_ALONE", 10**9)
                patch.setattr(chance, "_RUNS", min(rounds, 1000))
                full = log_failure_bound(n, colluding, rounds, k, schedule, f)
            assert -1e-9 <= blocked - full < 0.01


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.integers(1, 5000))
def test_draws_without_replacement_are_bounded_from_both_sides(part: int, rest: int, draws: int) -> None:
    assume(draws <= part)
    exact = sum(math.log1p(-rest / (part + rest - j)) for j in range(draws))
    below, above = (
        float(chance._log_all_within(np.array(float(part)), np.array(float(rest)), draws, above=side))
        for side in (False, True)
    )
    assert below <= exact * (1 - 1e-12) and exact * (1 + 1e-12) <= above
    if draws <= chance._RUNS:
        assert below == above
    elif 2 * draws <= part:
        assert above - below <= 0.02 * -exact


@pytest.mark.parametrize("h", [2, 3, 1023, 1024, 1025, 3000])
def test_the_number_of_sets_is_bounded_and_nearly_exact(h: int) -> None:
    one = setting(h + 1, 1)
    for bound, first, last in zip(chance._log_sets(one), one.first, one.last, strict=True):
        exact = math.log(sum(math.comb(h, s) for s in range(int(first), int(last) + 1)))
        assert bound >= exact - 1e-12 * exact
        if first == last:
            assert bound == pytest.approx(exact, abs=3e-4)  # 1/(12 * 512), and as much for the rest


def test_a_billion_parties() -> None:
    n = 10**9
    for schedule in chance.SCHEDULES:
        rounds = least_rounds(n, n // 2, 1e-6, schedule=schedule)
        assert 20 < rounds < 32
        assert log_failure_bound(n, n // 2, rounds, schedule=schedule) <= math.log(1e-6)
        # One isolated party is all that matters then, and is easy to compute apart.
        alone = 0.25 if schedule == "permutation" else 0.5 * math.exp(-0.5)
        expected = math.log(n / 2) + rounds * math.log(alone)
        assert log_failure_bound(n, n // 2, rounds, schedule=schedule) == pytest.approx(expected, abs=1e-5)
    assert 10 < least_rounds(n, n // 10, 1e-6, receivers=2) < 20
    assert least_rounds(n, n - 1000, 0.5, most=2**31 - 1) > 10**6


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
    now, later = (log_failure_bound(n, int(share * n), t, k, schedule, f) for t in (rounds, rounds + 1))
    assert later < now or now == later == 0.0 or now == later == -math.inf


@given(settings, st.integers(1, 40), st.floats(0.0, 0.9))
def test_more_tapping_fails_more_often(
    case: tuple[int, float, tuple[str, int], float], rounds: int, other: float
) -> None:
    n, share, (schedule, k), f = case
    rounds = min(rounds, (n - 1) // k)
    less, more = (log_failure_bound(n, int(share * n), rounds, k, schedule, g) for g in sorted((f, other)))
    assert less <= more or less - more <= 1e-9 * abs(more)  # both may be minus infinity


@pytest.mark.parametrize("n", [40, 500, 10_000])
@pytest.mark.parametrize(("schedule", "k"), [("random", 1), ("distinct", 1), ("permutation", 1), ("random", 2)])
def test_more_colluders_fail_more_often(n: int, schedule: str, k: int) -> None:
    for rounds in (3, 8, 19):
        bounds = [log_failure_bound(n, c, rounds, k, schedule) for c in range(0, n - 10, n // 20)]
        assert (np.diff(bounds[1:]) >= 0).all() and bounds[0] <= bounds[1]
    assert bounds[1] < bounds[-1]


@given(settings, st.floats(1e-12, 1.0))
def test_least_rounds_are_the_inverse(case: tuple[int, float, tuple[str, int], float], probability: float) -> None:
    n, share, (schedule, k), f = case
    colluding = int(share * n)
    try:
        rounds = least_rounds(n, colluding, probability, k, schedule, f, most=500)
    except inca.InputError:
        last = min(500, (n - 1) // k) if schedule == "distinct" else 500
        assert failure_bound(n, colluding, last, k, schedule, f) > probability
        return
    assert failure_bound(n, colluding, rounds, k, schedule, f) <= probability
    assert rounds == 1 or failure_bound(n, colluding, rounds - 1, k, schedule, f) > probability


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
def test_tapped_messages_are_counted_as_by_the_adversary(fraction: float) -> None:
    n = 100
    tapped = len(Adversary.random(n, 1, np.random.default_rng(1), eavesdropped=fraction).eavesdropped)
    expected = float(plain_random(n, 40, 9, tapped))
    assert failure_bound(n, 40, 9, eavesdropped=fraction) == pytest.approx(expected, rel=ROUGHLY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parties": 1}, "parties is 1, but a whole number from 2 to 2147483647 was expected"),
        ({"colluding": -1}, "colluding is -1, but a whole number of at least 0 was expected"),
        (
            {"colluding": 100},
            "colluding is 100, but fewer than all 100 parties, so that someone is left to protect, was expected",
        ),
        ({"colluding": 0.5}, "colluding is 0.5, but a whole number of at least 0 was expected"),
        ({"rounds": 0}, "rounds is 0, but a whole number from 1 to 2147483647 was expected"),
        ({"receivers": 0}, "receivers is 0, but a whole number of at least 1 was expected"),
        ({"receivers": 100}, "receivers is 100, but fewer than the number of parties (100) was expected"),
        ({"schedule": "ring"}, "schedule is 'ring', but one of random, distinct, permutation was expected"),
        (
            {"schedule": "permutation", "receivers": 2},
            "receivers is 2, but 1 for permutations, as no bound is proven for more, was expected",
        ),
        (
            {"schedule": "distinct", "rounds": 50, "receivers": 2},
            "rounds is 50, but receivers times rounds below the number of parties (100) was expected",
        ),
        ({"eavesdropped": 1.5}, "eavesdropped is 1.5, but a number from 0 to 1 was expected"),
        ({"eavesdropped": math.nan}, "eavesdropped is nan, but a number from 0 to 1 was expected"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"parties": 100, "colluding": 10, "rounds": 5}
    for function in (log_failure_bound, failure_bound):
        with pytest.raises(inca.InputError, match=f"^{re.escape(message)}$"):
            function(**good | arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probability": 0.0}, "probability is 0.0, but a number above 0 and at most 1 was expected"),
        ({"probability": 2}, "probability is 2, but a number from 0 to 1 was expected"),
        ({"most": 0}, "most is 0, but a whole number from 1 to 2147483647 was expected"),
        (
            {"parties": 10**6, "colluding": 10**6 - 2},
            "probability is 1e-06, but at least 0.98, the bound after 10000 rounds, was expected",
        ),
        (
            {"parties": 10, "schedule": "distinct", "colluding": 5, "receivers": 2},
            "probability is 1e-06, but at least 1, the bound after 4 rounds, was expected",
        ),
    ],
)
def test_refusals_of_least_rounds(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"parties": 100, "colluding": 10, "probability": 1e-6}
    with pytest.raises(inca.InputError, match=f"^{re.escape(message)}$"):
        least_rounds(**good | arguments)  # type: ignore[arg-type]
