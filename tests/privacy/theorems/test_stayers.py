"""How likely those who stay hide too little: the bounds against enumeration, simulation and the exact accountant."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

import inca
from helpers.examples import examples
from helpers.plain_failure_bounds import setting
from helpers.strategies import generator
from inca.privacy.theorems import _stayers, failure_bounds
from inca.privacy.theorems._cut_probabilities import FailureSetting, log_cut_permutation, log_cut_random
from inca.privacy.theorems.failure_bounds import failure_bound, least_rounds, log_failure_bound
from inca.protocol.adversary import Adversary
from inca.protocol.presence import Presence
from inca.protocol.schedules import random_schedule

FALSE_ALARM = 1e-8  # of each of the statistical tests below, about 12; seeds are fixed
Maps = NDArray[np.int64]
Flags = NDArray[np.bool_]


def hides_too_little(receivers: Maps, present: Flags, honest: Flags) -> bool:
    """Whether some stayers, but not all, exchange no hidden message with another honest party.

    `receivers` and `present` have one row for each of the rounds 1..T.
    """
    n = honest.size
    edges = np.zeros((n, n))
    for row, here in zip(receivers, present, strict=True):
        hidden = honest & here & honest[row] & here[row]
        edges[np.flatnonzero(hidden), row[hidden]] = 1
    _, component = connected_components(sparse.csr_array(edges), directed=False)
    stays = honest & present[-1]
    for one in set(component[stays].tolist()):
        members = (component == one) & honest
        if not (members & ~stays).any() and (members != stays).any():
            return True
    return False


def all_rounds(schedule: str, n: int) -> Maps:
    if schedule == "random":
        return np.array(list(itertools.product(*[[j for j in range(n) if j != i] for i in range(n)])))
    maps = np.array(list(itertools.permutations(range(n))))
    return np.asarray(maps[(maps != np.arange(n)).all(axis=1)])


def exact(schedule: str, n: int, c: int, rounds: int, leavers: int, away: float = 0.0) -> float:
    """The probability over all schedules, leavers, times of leaving and absences, one by one."""
    honest, failed, maps = np.arange(n) >= c, 0.0, all_rounds(schedule, n)
    weights = {gone: away**gone * (1 - away) ** (n - gone) for gone in range(n + 1)} if away else {0: 1.0}
    absences = [out for out in itertools.product([0, 1], repeat=n) if sum(out) in weights]
    cases = 0
    for who in itertools.combinations(range(n), leavers):
        for when in itertools.product(range(1, rounds + 1), repeat=leavers):
            departure = np.full(n, rounds + 1)
            departure[list(who)] = when
            cases += 1
            for outs in itertools.product(absences, repeat=rounds):
                weight = math.prod(weights[sum(out)] for out in outs)
                there = np.array([departure > t for t in range(1, rounds + 1)]) & ~np.array(outs, dtype=bool)
                # Whoever is only away has not left: the last row says who stays.
                present = np.vstack([there, departure > rounds])
                for steps in itertools.product(maps, repeat=rounds):
                    nothing = np.arange(n)  # in the last row nobody sends to another
                    failed += weight * hides_too_little(np.vstack([*steps, nothing]), present, honest)
    return float(failed / (cases * len(maps) ** rounds))


@pytest.mark.parametrize(
    ("schedule", "n", "c", "rounds", "leavers"),
    [
        ("random", 3, 0, 2, 1), ("random", 4, 1, 1, 1), ("random", 4, 0, 1, 2),
        ("permutation", 3, 0, 3, 1), ("permutation", 4, 0, 2, 1),
        pytest.param("permutation", 4, 1, 2, 2, marks=pytest.mark.slow), ("permutation", 5, 1, 1, 2),
    ],
)  # fmt: skip
def test_the_bound_holds_for_all_schedules_and_leavers(
    schedule: str, n: int, c: int, rounds: int, leavers: int
) -> None:
    assert failure_bound(n, c, rounds, schedule=schedule, leavers=leavers) >= exact(schedule, n, c, rounds, leavers)


@pytest.mark.parametrize(
    ("schedule", "n", "c", "rounds", "leavers", "away"),
    [("random", 3, 0, 1, 0, 0.1), ("permutation", 3, 0, 2, 1, 0.02), ("permutation", 4, 1, 1, 0, 0.05)],
)
def test_the_bound_holds_for_all_absences(
    schedule: str, n: int, c: int, rounds: int, leavers: int, away: float
) -> None:
    bound = failure_bound(n, c, rounds, schedule=schedule, leavers=leavers, away=away)
    assert bound >= exact(schedule, n, c, rounds, leavers, away)


def simulated(case: tuple[str, int, int, int, int, int, float, int], runs: int) -> int:
    """In how many runs stayers hide too little; for k > 1, in how many stayers have several sinks among themselves."""
    schedule, n, c, rounds, k, leavers, away, eavesdropped = case
    rng, failed = generator(n + 10 * rounds + leavers), 0
    for _ in range(runs):
        honest = rng.permutation(n) >= c
        presence = Presence.leaving(n, rounds, leavers / n, rng)
        stays = presence.row(rounds)
        steps = random_schedule(schedule, n, rounds, k, seed=int(rng.integers(2**31)))
        edges = np.zeros((n, n))
        for t in range(1, rounds + 1):
            here = presence.row(t) & (rng.random(n) >= away)
            row = steps.round(t).receivers
            heard = np.zeros(n, dtype=bool)
            heard[rng.permutation(n)[:eavesdropped]] = True
            hidden = honest & here & ~heard & (honest[row] & (here[row] | (k > 1))).all(axis=1)
            for slot in range(k):
                edges[np.flatnonzero(hidden), row[hidden, slot]] = 1
        if k == 1:
            _, part = connected_components(sparse.csr_array(edges), directed=False)
            kept = honest & stays
            pure = [one for one in set(part[kept].tolist()) if not (honest & ~stays)[part == one].any()]
            failed += any((kept != (kept & (part == one))).any() for one in pure)
        else:
            places = np.flatnonzero(honest & stays)
            among = edges[np.ix_(places, places)]
            count, part = connected_components(sparse.csr_array(among), directed=True, connection="strong")
            leaves = {int(part[i]) for i, j in np.argwhere(among) if part[i] != part[j]}
            failed += count - len(leaves) > 1
    return failed


@pytest.mark.parametrize(
    ("case", "how_far"),
    [
        (("permutation", 40, 12, 4, 1, 8, 0.0, 0), 2.0),
        pytest.param(("random", 40, 12, 5, 1, 8, 0.0, 0), 2.0, marks=pytest.mark.slow),
        pytest.param(("distinct", 40, 12, 5, 1, 8, 0.0, 0), 3.0, marks=pytest.mark.slow),
        pytest.param(("random", 30, 6, 5, 1, 6, 0.0, 6), 2.5, marks=pytest.mark.slow),
        (("permutation", 40, 8, 4, 1, 0, 0.1, 0), 20.0),
        pytest.param(("permutation", 40, 8, 7, 1, 4, 0.05, 0), 60.0, marks=pytest.mark.slow),
        pytest.param(("random", 40, 8, 7, 1, 0, 0.05, 0), 8.0, marks=pytest.mark.slow),
        pytest.param(("random", 60, 6, 7, 2, 6, 0.0, 0), 60.0, marks=pytest.mark.slow),
    ],
)
def test_simulated_stayers_hide_too_little_as_rarely_as_promised(
    case: tuple[str, int, int, int, int, int, float, int], how_far: float
) -> None:
    schedule, n, c, rounds, k, leavers, away, eavesdropped = case
    runs = 700
    bound = failure_bound(
        n, c, rounds, receivers=k, schedule=schedule, leavers=leavers, away=away, eavesdropped=eavesdropped / n
    )
    failed = simulated(case, runs)
    assert 0 < bound < 0.9
    assert failed <= stats.binom.isf(FALSE_ALARM, runs, bound)
    assert bound <= how_far * max(failed, 1) / runs  # and it is not idle


def expected_alone(schedule: str, n: int, c: int, rounds: int, leavers: int, draws: int) -> float:
    """The expected number of stayers without any hidden message: exact but for who leaves when, which is drawn."""
    rng, total = generator(5), 0.0
    for _ in range(draws):
        honest = rng.permutation(n) >= c
        presence = Presence.leaving(n, rounds, leavers / n, rng)
        alone = 1.0
        for t in range(1, rounds + 1):
            there = int((honest & presence.row(t)).sum())
            send = (n - there) / (n - 1)
            # In a derangement of many the two are all but independent.
            alone *= send * (send if schedule == "permutation" else (1 - 1 / (n - 1)) ** (there - 1))
        total += alone * int((honest & presence.row(rounds)).sum())
    return total / draws


@pytest.mark.parametrize(
    ("n", "c", "rounds", "leavers", "old"), [(100, 30, 9, 20, 5e-7), (100, 10, 5, 20, 5e-7), (200, 20, 6, 40, 5e-7)]
)
def test_the_bound_is_at_least_the_number_of_stayers_without_a_hidden_message_and_hardly_more(
    n: int, c: int, rounds: int, leavers: int, old: float
) -> None:
    for schedule in ("permutation", "random"):
        bound = failure_bound(n, c, rounds, schedule=schedule, leavers=leavers)
        alone = expected_alone(schedule, n, c, rounds, leavers, draws=500)
        assert 0.95 * alone < bound < 1.25 * alone  # the mean over who leaves when is within 3 %
        assert bound > old > failure_bound(n, c, rounds, schedule="permutation")  # full attendance said far too little


CUTS = {"random": log_cut_random, "permutation": log_cut_permutation}


def one_size(n: int, h: int, s: int) -> FailureSetting:
    return FailureSetting(n, h, 0.0, np.array([float(s)]), np.array([float(s)]))


def mean_over_leavers(schedule: str, n: int, c: int, rounds: int, leavers: int, s: int) -> float:
    """Log of the mean probability that a set of s is cut off in all rounds: all numbers and times of honest leavers."""
    h = n - c
    logs = [float(CUTS[schedule](one_size(n, h - missing, s))[0]) for missing in range(leavers + 1)]
    total = 0.0
    for honest in range(leavers + 1):
        times = list(itertools.product(range(1, rounds + 1), repeat=honest))
        gone = [[sum(left <= t for left in when) for t in range(1, rounds + 1)] for when in times]
        mean = sum(math.exp(sum(logs[missing] for missing in row)) for row in gone) / len(times)
        total += float(stats.hypergeom.pmf(honest, n - s, h - s, leavers)) * mean
    return math.log(total)


@pytest.mark.parametrize("schedule", CUTS)
@pytest.mark.parametrize(
    ("n", "c", "rounds", "leavers", "s", "how_far"),
    [(10, 5, 3, 1, 1, 1.015), (20, 8, 4, 1, 1, 1.015), (20, 8, 4, 3, 1, 1.05), (20, 8, 4, 3, 2, 1.1)],
)
def test_the_bound_of_one_set_is_at_least_the_mean_over_all_leavers_and_hardly_more(
    schedule: str, n: int, c: int, rounds: int, leavers: int, s: int, how_far: float
) -> None:
    """With one leaver a line through both points is exact, but for the slopes that are tried."""
    table = _stayers._cut_table(setting(n, c), CUTS[schedule], leavers, 0.0)
    bound = _stayers._log_cut_in_all_rounds(table, s - 1, rounds)
    mean = mean_over_leavers(schedule, n, c, rounds, leavers, s)
    assert mean - 1e-9 <= bound <= mean + math.log(how_far)


def test_hardly_any_other_choice_of_lines_is_better() -> None:
    """The formula of C7 with any line for each round, improved round by round as long as that helps."""
    n, c, rounds, leavers = 100, 30, 9, 20
    table = _stayers._cut_table(setting(n, c), log_cut_permutation, leavers, 0.0)
    slopes, lines = table.lines(0)
    share = (n - c - 1) / (n - 1)

    def log_bound(chosen: list[int]) -> float:
        later = [math.exp(sum(slopes[chosen[t:]])) for t in range(rounds)]
        return float(sum(lines[chosen])) + leavers * math.log(1.0 - share + share * sum(later) / rounds)

    chosen, best = [0] * rounds, math.inf
    while log_bound(chosen) < best:
        best = log_bound(chosen)
        for t in range(rounds):
            others = [[*chosen[:t], each, *chosen[t + 1 :]] for each in range(min(50, slopes.size))]
            chosen = min(others, key=log_bound)
    assert best - 1e-9 <= _stayers._log_cut_in_all_rounds(table, 0, rounds) <= best + 0.005


def test_telling_numbers_of_missing_parties_apart_only_roughly_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    roughly = log_failure_bound(2000, 200, 7, leavers=400)
    monkeypatch.setattr(_stayers, "_ALONE", 10_000)
    monkeypatch.setattr(_stayers, "_BLOCKS", 10_000)
    failure_bounds._curve.cache_clear()
    one_by_one = log_failure_bound(2000, 200, 7, leavers=400)
    failure_bounds._curve.cache_clear()
    assert one_by_one <= roughly <= one_by_one + 0.05


def plain_cut(n: int, one: int, other: int) -> float:
    """Log of the probability that two sets of so many exchange no message in a round of random receivers."""
    return one * math.log(1.0 - other / (n - 1)) + other * math.log(1.0 - one / (n - 1))


@pytest.mark.parametrize(("n", "c", "leavers"), [(60, 10, 5), (60, 0, 20), (40, 20, 2)])
def test_leavers_who_are_still_there_are_counted_on_for_no_more_than_they_do(n: int, c: int, leavers: int) -> None:
    """Each of l leavers who sides with the few lowers the probability by the slope, and one number of them by no more.

    The others stay: all honest ones but the few and the leavers.
    """
    sets = _stayers._LargeSets.of(_stayers._cut_table(setting(n, c), log_cut_random, leavers, 0.0), log_cut_random)
    h, counted = n - c, min(leavers, 12)
    for few in range(1, (h - leavers) // 2 + 1):
        many = h - leavers - few
        assert sets.alone[few - 1] == pytest.approx(plain_cut(n, few, many))
        if sets.slope[few - 1] > 0.0:
            per_leaver = [
                (sets.alone[few - 1] - plain_cut(n, few + there, many)) / there for there in range(1, counted + 1)
            ]
            assert sets.slope[few - 1] == pytest.approx(min(per_leaver))
    assert sets.slope[0] > 0.0 and sets.counted[0] == counted


def test_leavers_are_not_counted_on_if_parties_may_be_away() -> None:
    table = _stayers._cut_table(setting(60, 10), log_cut_random, 5, 0.05)
    sets = _stayers._LargeSets.of(table, log_cut_random)
    assert sets.log_cut(7) == pytest.approx(7 * sets.alone) and (sets.alone[:5] < 0.0).all()


@pytest.mark.parametrize("gone", [0, 3, 10])
def test_with_absences_a_single_party_is_cut_off_no_more_rarely_than_without_and_still_rarely(gone: int) -> None:
    """Hardly anyone is away here, but any number may be: what is known then is a straight line from none to all."""
    n, c = 60, 10
    h = n - c
    none, some = (plain_cut(n, 1, h - 1 - missing) for missing in (0, gone))
    table = _stayers._cut_table(setting(n, c), log_cut_random, gone, 1e-12)
    assert some - 1e-9 <= table.with_gone(0, gone) <= 0.8 * none * (1.0 - gone / h)


@given(st.integers(4, 9), st.integers(0, 3), st.integers(2, 5), st.integers(0, 3), st.integers(0, 2**31), st.data())
def test_hiding_too_little_is_what_the_accountant_finds(
    n: int, c: int, rounds: int, leavers: int, seed: int, data: st.DataObject
) -> None:
    """With unlimited cancelling noise a stayer is one of all stayers, or better off, unless stayers hide too little."""
    assume(c + leavers < n - 1)
    rng = generator(seed)
    schedule = random_schedule(data.draw(st.sampled_from(["random", "permutation"])), n, rounds, 1, seed=seed)
    presence = Presence.leaving(n, rounds, leavers / n, rng)
    honest = rng.permutation(n) >= c
    kept = honest & presence.row(rounds)
    assume(kept.any())
    view = inca.View(
        inca.Execution(schedule, inca.incremental_injection(rounds), presence),
        Adversary(colluding=np.flatnonzero(~honest)),
    )
    losses = inca.account(view, inca.NoiseLevels(independent=1.0, cancelling=1e5), sensitivity=1.0)
    squares = dict(zip(view.honest.tolist(), (losses.mu**2).tolist(), strict=True))
    weights = view.execution.total_weights
    assume(np.allclose(weights[kept], weights[kept][0]))  # else parties count differently, and no bound is 1 / m
    present = np.array([presence.row(t) for t in range(1, rounds + 1)])
    receivers = np.array([schedule.round(t).receivers[:, 0] for t in range(1, rounds + 1)])
    worst = max(squares[int(party)] for party in np.flatnonzero(kept))
    if hides_too_little(receivers, present, honest):
        assert worst > (1 + 1e-6) / kept.sum()
    else:
        assert worst < (1 + 1e-3) / kept.sum()


@examples(12, 30)
@given(
    st.integers(3, 200),
    st.floats(0, 0.5),
    st.floats(0, 0.4),
    st.integers(1, 12),
    st.sampled_from([("random", 1), ("permutation", 1), ("distinct", 1), ("random", 2)]),
)
def test_more_leavers_and_fewer_rounds_never_help(
    n: int, colluding: float, leaving: float, rounds: int, kind: tuple[str, int]
) -> None:
    c, leavers, (schedule, k) = int(colluding * n), int(leaving * n), kind
    assume(k < n and c < n - 1 and c + leavers < n - 1 and (schedule != "distinct" or rounds + 1 < n))

    def bound(t: int, gone: int) -> float:
        return log_failure_bound(n, c, t, receivers=k, schedule=schedule, leavers=gone)

    assert bound(rounds + 1, leavers) <= bound(rounds, leavers) + 1e-6
    assert bound(rounds, leavers) <= bound(rounds, leavers + 1) + 0.02
    assert bound(rounds, 0) <= bound(rounds, leavers) + 1e-6


@examples(8, 15)
@given(st.integers(3, 100), st.integers(1, 10), st.floats(0, 0.3), st.sampled_from(["random", "permutation"]))
def test_more_absences_never_help(n: int, rounds: int, away: float, schedule: str) -> None:
    less, more = (log_failure_bound(n, n // 10, rounds, schedule=schedule, away=share) for share in (away, 1.2 * away))
    assert log_failure_bound(n, n // 10, rounds, schedule=schedule) <= less + 1e-6
    assert less <= more + 0.02


def test_billions_of_parties_are_bounded_as_well() -> None:
    n = 2**31 - 1
    assert least_rounds(n, n // 10, 1e-6) < least_rounds(n, n // 10, 1e-6, absent=(n // 10, 0.0)) < 25
    assert log_failure_bound(n, n // 10, 20, schedule="permutation", leavers=n // 10) < math.log(1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"leavers": -1}, "leavers must be from 0 to 10, got -1"),
        ({"leavers": 11}, "leavers must be from 0 to 10, got 11"),
        ({"away": 1.5}, "away must be from 0 to 1, got 1.5"),
        ({"away": math.nan}, "away must be a finite number, from 0 to 1, got nan"),
        ({"away": 0.1, "receivers": 2}, "away must be 0 for several receivers or distinct ones, as no bound"),
        ({"away": 0.1, "schedule": "distinct"}, "away must be 0 for several receivers or distinct ones, as no bound"),
    ],
)
def test_bad_input_is_refused(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        failure_bound(10, 2, 3, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)


def test_the_ends_of_the_scale() -> None:
    assert failure_bound(10, 2, 3, leavers=10) == 0.0  # nobody stays
    assert failure_bound(10, 2, 3, leavers=9) > 0.1
    assert failure_bound(10, 2, 3, away=1.0) == 1.0
    assert failure_bound(10, 9, 3, leavers=5) == 0.0  # a single honest party has nothing to be connected to
