from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

import inca
from helpers.examples import cases
from helpers.plain_failure_bounds import ROUGHLY, plain_random, setting
from inca.privacy.theorems import _cut_probabilities
from inca.privacy.theorems.failure_bounds import failure_bound, log_failure_bound

FALSE_ALARM = 1e-8  # of each of the statistical tests below, about 30; seeds are fixed

# The sums against exact arithmetic and enumeration


def plain_distinct(n: int, c: int, rounds: int) -> Fraction:
    h, total = n - c, Fraction(0)

    def missed(targets: int) -> Fraction:
        return Fraction(math.comb(n - 1 - targets, rounds), math.comb(n - 1, rounds))

    for s in range(1, h // 2 + 1):
        term = math.comb(h, s) * missed(h - s) ** s * missed(s) ** (h - s)
        total += term / 2 if 2 * s == h else term
    return min(total, Fraction(1))


def plain_two_closed(n: int, c: int, k: int, rounds: int, eavesdropped: int, leavers: int = 0) -> float:
    """The bound for k > 1 in plain loops: leavers are missing in every probability, and not in the number of sets."""
    everyone, hidden = n - c, 1 - eavesdropped / n
    h = everyone - leavers
    if h < 2:
        return 1.0

    def q(s: int) -> float:
        return 1 - hidden * (math.comb(h - 1, k) - math.comb(min(s, h) - 1, k)) / math.comb(n - 1, k)

    one = sum(math.comb(everyone, s) * q(s) ** (s * rounds) for s in range(1, everyone // 2 + 1))
    pairs = (1 - 1 / everyone) / 2 * one**2
    for rest in range(1, (everyone - 1) // 2 + 1):
        small, larger = rest * q(rest) ** rounds, max(h - rest, rest + 1)
        pairs += math.comb(everyone, rest) * q(larger) ** (larger * rounds) * small * math.exp(small)
    return min(1.0, one, pairs)


@given(st.integers(2, 40), st.integers(0, 39), st.integers(1, 12), st.integers(0, 40))
def test_random_receivers_match_exact_arithmetic(n: int, c: int, rounds: int, eavesdropped: int) -> None:
    assume(c < n - 1 and eavesdropped <= n)
    expected = float(plain_random(n, c, rounds, eavesdropped))
    assert failure_bound(n, c, rounds, eavesdropped=eavesdropped / n) == pytest.approx(expected, rel=ROUGHLY)


@given(st.integers(3, 60), st.integers(0, 58), st.integers(1, 59))
@example(n=6, c=0, rounds=1)  # both bounds are the same
def test_distinct_receivers_match_exact_arithmetic(n: int, c: int, rounds: int) -> None:
    assume(c < n - 1 and rounds < n)
    exact = plain_distinct(n, c, rounds)
    assert failure_bound(n, c, rounds, schedule="distinct") == pytest.approx(float(exact), rel=ROUGHLY, abs=1e-300)
    assert exact <= plain_random(n, c, rounds, 0)


@given(st.integers(3, 40), st.integers(0, 38), st.integers(2, 6), st.integers(1, 12), st.integers(0, 40))
def test_several_receivers_match_plain_loops(n: int, c: int, k: int, rounds: int, eavesdropped: int) -> None:
    assume(c < n - 1 and k < n and eavesdropped <= n)
    expected = plain_two_closed(n, c, k, rounds, eavesdropped)
    bound = failure_bound(n, c, rounds, receivers=k, eavesdropped=eavesdropped / n)
    assert bound == pytest.approx(expected, rel=ROUGHLY, abs=1e-15)


@pytest.mark.parametrize(
    ("n", "c", "k", "rounds", "eavesdropped", "leavers"),
    [(6, 2, 2, 8, 0, 0), (8, 2, 2, 6, 0, 0), (10, 2, 2, 6, 1, 0), (20, 2, 2, 8, 0, 3), (30, 0, 2, 6, 3, 5)],
)
def test_several_receivers_match_plain_loops_where_large_sets_and_leavers_count(
    n: int, c: int, k: int, rounds: int, eavesdropped: int, leavers: int
) -> None:
    expected = plain_two_closed(n, c, k, rounds, eavesdropped, leavers)
    assert 1e-9 < expected < 1.0
    bound = failure_bound(n, c, rounds, receivers=k, eavesdropped=eavesdropped / n, leavers=leavers)
    assert bound == pytest.approx(expected, rel=ROUGHLY)


@pytest.mark.parametrize("leavers", range(8, 18))
@pytest.mark.parametrize("rounds", [1, 1000])
def test_nothing_is_promised_with_several_receivers_if_half_of_the_honest_may_leave(leavers: int, rounds: int) -> None:
    """Half of 16 honest parties may be all that stay: that set can send to nobody else, so it is closed."""
    bound = failure_bound(20, 4, rounds, receivers=2, leavers=leavers)
    assert bound == plain_two_closed(20, 4, 2, rounds, 0, min(leavers, 16)) == 1.0


@pytest.mark.parametrize("log_cut", [_cut_probabilities.log_cut_random, _cut_probabilities.log_cut_permutation])
def test_who_has_nobody_to_send_to_is_cut_off_surely(
    log_cut: Callable[[_cut_probabilities.FailureSetting], NDArray[np.float64]],
) -> None:
    """Sets of as many as are honest and present, or more; and any set if all messages are eavesdropped on."""
    sizes = np.arange(1.0, 51.0)
    few = _cut_probabilities.FailureSetting(100, 10, 0.0, sizes, sizes)
    assert (log_cut(few)[:9] < 0.0).all() and (log_cut(few)[9:] == 0.0).all()
    all_heard = _cut_probabilities.FailureSetting(100, 80, 1.0, sizes, sizes)
    assert log_cut(all_heard) == pytest.approx(0.0, abs=1e-12)


def cut_probabilities(maps: NDArray[np.int64], h: int, eavesdropped: int) -> list[float]:
    """For sets of s = 1..h/2 honest parties: the exact probability that all messages across are eavesdropped on."""
    n = maps.shape[1]
    all_heard = [math.comb(n - a, eavesdropped - a) / math.comb(n, eavesdropped) for a in range(eavesdropped + 1)]
    heard = np.array(all_heard + [0.0] * (n - eavesdropped))  # by the number of messages across
    probabilities = []
    for s in range(1, h // 2 + 1):
        side = np.repeat([0, 1, 2], [s, h - s, n - h])
        across = ((side[maps] != side) & (side[maps] < 2) & (side < 2)).sum(axis=1)
        probabilities.append(float(heard[across].mean()))
    return probabilities


def all_maps(n: int) -> NDArray[np.int64]:
    return np.array(list(itertools.product(*[[j for j in range(n) if j != i] for i in range(n)])))


def all_derangements(n: int) -> NDArray[np.int64]:
    maps = np.array(list(itertools.permutations(range(n))))
    return np.asarray(maps[(maps != np.arange(n)).all(axis=1)])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_probability_of_a_cut_matches_all_maps(n: int) -> None:
    maps = all_maps(n)
    for c, eavesdropped in itertools.product(range(n - 1), range(n + 1)):
        exact = np.array(cut_probabilities(maps, n - c, eavesdropped))
        bound = np.exp(_cut_probabilities.log_cut_random(setting(n, c, eavesdropped / n)))
        assert (bound >= exact - 1e-12).all()
        if eavesdropped in {0, n}:
            assert bound == pytest.approx(exact, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8])
def test_the_probability_of_a_cut_matches_all_derangements(n: int) -> None:
    maps = all_derangements(n)
    for c, eavesdropped in itertools.product(range(n - 1), range(0, n + 1, 2)):
        exact = np.array(cut_probabilities(maps, n - c, eavesdropped))
        bound = np.exp(_cut_probabilities.log_cut_permutation(setting(n, c, eavesdropped / n)))
        assert (bound >= exact - 1e-12).all()
        if eavesdropped == 0:
            assert bound[0] == pytest.approx(exact[0], rel=1e-12, abs=1e-15)
            assert bound == pytest.approx(exact, rel=0.12, abs=1e-15)


def test_the_closed_form_for_permutations_is_above_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(n, c, f) for n in (70, 200, 5000) for c in (0, 1, n // 10, n // 2, n - 66) for f in (0.0, 0.1, 0.6)]
    monkeypatch.setattr(_cut_probabilities, "_SMALL", 40)
    sums = [_cut_probabilities.log_cut_permutation(setting(*case))[32:40] for case in cases]
    monkeypatch.setattr(_cut_probabilities, "_SMALL", 32)
    forms = [_cut_probabilities.log_cut_permutation(setting(*case))[32:40] for case in cases]
    for exact, form in zip(sums, forms, strict=True):
        assert (form >= exact).all()
        assert form.size == 0 or (form[0] <= exact[0] * 0.4).all()  # roughly right, as (s/n)^s is beside 1/C(n, s)


@given(st.integers(0, 12), st.integers(0, 12))
def test_permutations_without_fixed_points_among_the_marked(places: int, marked: int) -> None:
    assume(marked <= places)
    among = sum((-1) ** m * math.comb(marked, m) * math.factorial(places - m) for m in range(marked + 1))
    exact = among / math.factorial(places)
    without = _cut_probabilities.no_fixed_point(np.array(float(places)), np.array(float(marked)))
    assert float(without) == pytest.approx(exact)
    # The inequality on which the closed form rests.
    assert exact <= math.exp(-marked / max(places, 1)) + 1 / math.factorial(places + 1)


# Exact probabilities of the precondition, for so few parties that all schedules can be listed


def connected(edges: list[tuple[int, int]], h: int) -> bool:
    label = list(range(h))
    for i, j in edges:
        label = [label[i] if x == label[j] else x for x in label]
    return len(set(label)) == 1


@pytest.mark.parametrize(("n", "c", "rounds"), [(3, 0, 2), (3, 1, 3), (4, 0, 1), (4, 1, 2), (4, 2, 2), (5, 2, 1)])
def test_the_bound_is_above_the_probability_over_all_schedules(n: int, c: int, rounds: int) -> None:
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
    assert failure_bound(n, c, rounds, receivers=k) >= failed / total - 1e-12


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


def simulated_failures(kind: str, n: int, c: int, rounds: int, k: int, eavesdropped: int, runs: int, seed: int) -> int:
    """Count runs whose hidden graph is not connected (k = 1) or has several sinks (k > 1)."""
    h, rng = n - c, np.random.default_rng(seed)
    senders, targets = [], []
    for run, receivers in drawn(kind, n, rounds, k, runs, seed):
        unseen = np.ones(n, dtype=bool)
        unseen[rng.choice(n, size=eavesdropped, replace=False)] = False
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


# Every kind of schedule, k = 1 and more, with and without eavesdropping: what is slow repeats them with more parties.
@pytest.mark.parametrize(
    ("kind", "n", "c", "rounds", "k", "eavesdropped", "runs", "tight"),
    [
        ("random", 100, 50, 6, 1, 0, cases(1000, 2000), 0.85),
        pytest.param("random", 100, 20, 5, 1, 20, 1500, 0.8, marks=pytest.mark.slow),
        pytest.param("distinct", 100, 50, 6, 1, 0, 1000, 0.85, marks=pytest.mark.slow),
        ("distinct", 60, 20, 5, 1, 10, cases(500, 1000), 0.6),
        pytest.param("permutation", 100, 50, 5, 1, 0, 1200, 0.9, marks=pytest.mark.slow),
        pytest.param("permutation", 20, 5, 2, 1, 0, 2000, 0.9, marks=pytest.mark.slow),
        pytest.param("permutation", 20, 5, 3, 1, 3, 1200, 0.8, marks=pytest.mark.slow),
        ("permutation", 10, 0, 2, 1, 2, cases(1000, 2000), 0.6),
        pytest.param("random", 100, 30, 8, 2, 0, 1000, 0.4, marks=pytest.mark.slow),
        ("random", 20, 5, 6, 2, 2, cases(500, 1000), 0.5),
        pytest.param("random", 100, 10, 6, 3, 5, 1000, 0.3, marks=pytest.mark.slow),
        pytest.param("distinct", 40, 10, 7, 2, 0, 500, 0.0, marks=pytest.mark.slow),
    ],
)
def test_simulated_failures_are_as_rare_as_promised_and_not_much_rarer(
    kind: str, n: int, c: int, rounds: int, k: int, eavesdropped: int, runs: int, tight: float
) -> None:
    bound = failure_bound(n, c, rounds, receivers=k, schedule=kind, eavesdropped=eavesdropped / n)
    seen = simulated_failures(kind, n, c, rounds, k, eavesdropped, runs, seed=1000)
    assert 0.001 < bound < 0.2
    assert seen <= stats.binom.ppf(1 - FALSE_ALARM, runs, bound)
    assert seen >= stats.binom.ppf(FALSE_ALARM, runs, tight * bound)


def test_the_figures_known_from_long_simulations() -> None:
    assert [failure_bound(100, 50, rounds) for rounds in (6, 8, 10)] == pytest.approx([0.0432, 0.00397, 0.000373], 1e-3)
    assert log_failure_bound(5000, 2500, 16) / math.log(10) == pytest.approx(-4.9, abs=0.02)
