from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import inca
from helpers.plain_schedules import plain_draw
from helpers.strategies import schedules, seeds
from inca.protocol.schedules import Round

FALSE_ALARM = 1e-7  # of each statistical test below; seeds are fixed

sizes = st.tuples(st.integers(2, 9), st.integers(1, 5))


@given(sizes.flatmap(lambda size: schedules(*size)))
def test_every_round_is_a_column_stochastic_matrix_without_sends_to_oneself(schedule: inca.Schedule) -> None:
    for t in range(1, schedule.rounds + 1):
        step = schedule.round(t)
        assert step.receivers.shape == (schedule.parties, schedule.slots)
        assert step.receivers.dtype == np.int32
        assert ((step.receivers >= -1) & (step.receivers < schedule.parties)).all()
        assert not (step.receivers == np.arange(schedule.parties)[:, np.newaxis]).any()
        for row in step.receivers.tolist():
            there = [j for j in row if j >= 0]
            assert len(set(there)) == len(there)
        assert (step.kept >= -1e-12).all() and (step.kept <= 1).all()


@given(sizes.flatmap(lambda size: schedules(*size)))
def test_a_round_is_the_same_whenever_it_is_asked_for(schedule: inca.Schedule) -> None:
    rounds = list(range(1, schedule.rounds + 1))
    first = {t: schedule.round(t).receivers.copy() for t in rounds}
    assert all(np.array_equal(first[t], schedule.round(t).receivers) for t in reversed(rounds))


@given(st.integers(3, 12), st.integers(1, 3), seeds)
def test_distinct_receivers_are_never_repeated(n: int, k: int, seed: int) -> None:
    rounds = max(1, (n - 1) // k)
    if k * rounds >= n:
        return
    schedule = inca.UnrepeatedReceivers(n, rounds, k, seed=seed)
    chosen = np.concatenate([schedule.round(t).receivers for t in range(1, rounds + 1)], axis=1)
    assert all(len(set(row)) == k * rounds for row in chosen.tolist())


@given(st.integers(3, 12), st.integers(1, 4), seeds)
def test_permutations_have_in_degree_k(n: int, k: int, seed: int) -> None:
    k = min(k, (n + 1) // 2)
    receivers = inca.PermutationReceivers(n, 2, k, seed=seed).round(2).receivers
    assert np.bincount(receivers.reshape(-1), minlength=n).tolist() == [k] * n


def chi_square(counts: list[int]) -> float:
    return float(stats.chisquare(counts).pvalue)


def test_random_receivers_are_uniform_over_sets() -> None:
    n, k, rounds = 5, 2, 8000
    schedule = inca.RandomReceivers(n, rounds, k, seed=11)
    sets = [frozenset(schedule.round(t).receivers[2].tolist()) for t in range(1, rounds + 1)]
    expected = [frozenset(pair) for pair in itertools.combinations([0, 1, 3, 4], 2)]
    assert set(sets) <= set(expected)
    assert chi_square([sets.count(pair) for pair in expected]) > FALSE_ALARM


def test_one_random_receiver_is_uniform_for_even_and_odd_numbers_of_parties() -> None:
    for n in (6, 7):
        schedule = inca.RandomReceivers(n, 3000, seed=12)
        picks = np.stack([schedule.round(t).receivers[:, 0] for t in range(1, 3001)])
        for i in range(n):
            counts = np.bincount(picks[:, i], minlength=n)
            assert counts[i] == 0
            assert chi_square(np.delete(counts, i).tolist()) > FALSE_ALARM


def test_distinct_receivers_are_a_uniform_ordered_sample() -> None:
    orders = []
    for seed in range(4000):
        schedule = inca.UnrepeatedReceivers(4, 3, seed=seed)
        orders.append(tuple(int(schedule.round(t).receivers[1, 0]) for t in (1, 2, 3)))
    expected = list(itertools.permutations([0, 2, 3]))
    assert chi_square([orders.count(order) for order in expected]) > FALSE_ALARM


def test_permutations_are_uniform_derangements() -> None:
    schedule = inca.PermutationReceivers(4, 9000, seed=13)
    seen = [tuple(schedule.round(t).receivers[:, 0].tolist()) for t in range(1, 9001)]
    derangements = [p for p in itertools.permutations(range(4)) if all(p[i] != i for i in range(4))]
    assert len(derangements) == 9 and set(seen) <= set(derangements)
    assert chi_square([seen.count(p) for p in derangements]) > FALSE_ALARM


def plain_public_words(seed: bytes, label: tuple[int, ...], count: int) -> list[int]:
    """The documented pseudo-random function, in plain Python."""
    data = b"inca-schedule/1" + len(seed).to_bytes(8, "little") + len(label).to_bytes(8, "little") + seed
    stream = hashlib.shake_256(data + b"".join(x.to_bytes(8, "little") for x in label)).digest(8 * count)
    return [int.from_bytes(stream[8 * b : 8 * b + 8], "little") for b in range(count)]


@given(st.binary(min_size=1, max_size=40), st.integers(2, 40), st.integers(1, 3), st.integers(1, 9))
def test_public_random_receivers_follow_their_specification(seed: bytes, n: int, k: int, t: int) -> None:
    k = min(k, n - 1)
    words = plain_public_words(seed, (1, n, k, t), (n * k + 1) // 2)
    expected = []
    for i in range(n):
        chosen: list[int] = []
        for s in range(k):
            pick = plain_draw(words, i * k + s, n - k + s)
            chosen.append(n - k + s - 1 if pick in chosen else pick)
        expected.append([j + (j >= i) for j in chosen])
    schedule = inca.RandomReceivers(n, 9, k, seed=inca.PublicSeed(seed))
    assert schedule.round(t).receivers.tolist() == expected


@given(st.binary(min_size=1, max_size=8), st.integers(4, 30))
def test_public_distinct_receivers_follow_their_specification(seed: bytes, n: int) -> None:
    rounds, k = (n - 1) // 2, 2
    if k * rounds >= n:
        return
    schedule = inca.UnrepeatedReceivers(n, rounds, k, seed=inca.PublicSeed(seed))
    words = [plain_public_words(seed, (2, n, k, step), (n + 1) // 2) for step in range(k * rounds)]
    for i in (0, n // 2, n - 1):
        order = [j for j in range(n) if j != i]
        for step in range(k * rounds):
            other = step + plain_draw(words[step], i, n - 1 - step)
            order[step], order[other] = order[other], order[step]
        chosen = [int(j) for t in range(1, rounds + 1) for j in schedule.round(t).receivers[i]]
        assert chosen == order[: k * rounds]


@given(st.binary(min_size=1, max_size=8), st.integers(2, 20))
def test_public_permutations_follow_their_specification(seed: bytes, n: int) -> None:
    attempt = 0
    while True:
        words = plain_public_words(seed, (3, n, 1, 2, 0, attempt), (n + 1) // 2)
        order = list(range(n))
        for i in range(n - 1, -1, -1):
            j = plain_draw(words, n - 1 - i, i + 1)
            order[i], order[j] = order[j], order[i]
        if all(order[i] != i for i in range(n)):
            break
        attempt += 1
    schedule = inca.PermutationReceivers(n, 2, seed=inca.PublicSeed(seed))
    assert schedule.round(2).receivers[:, 0].tolist() == order


def test_golden_schedules_never_change() -> None:
    """The same on every platform and version: what parties agreed on yesterday must hold tomorrow."""
    public = inca.PublicSeed(b"inca golden seed")
    digests = {}
    for kind, receivers in (
        ("random", 1),
        ("random", 3),
        ("distinct", 2),
        ("permutation", 1),
        ("permutation", 2),
    ):
        schedule = inca.random_schedule(kind, 1001, 5, receivers, seed=public)
        rounds = [schedule.round(t).receivers.astype("<i4").tobytes() for t in range(1, 6)]
        digests[f"{kind} {receivers}"] = hashlib.sha256(b"".join(rounds)).hexdigest()[:16]
    assert digests == {
        "random 1": "4ce12a320330acef",
        "random 3": "1cd5b84d02c2a9af",
        "distinct 2": "0c8846ea96e31ba3",
        "permutation 1": "b8a158f6ac97f643",
        "permutation 2": "9bc8324a22e5c031",
    }
    seeded = inca.RandomReceivers(1001, 5, seed=7)
    rounds = [seeded.round(t).receivers.astype("<i4").tobytes() for t in range(1, 6)]
    assert hashlib.sha256(b"".join(rounds)).hexdigest()[:16] == "334180cd17f259f9"


@pytest.mark.parametrize("weights", ["metropolis", "uniform"])
def test_graph_weights(weights: str) -> None:
    graph = nx.random_geometric_graph(30, 0.3, seed=4)
    schedule = inca.StaticGraph.from_networkx(graph, 2, weights=weights, disconnected=True)
    matrix = inca.Execution(schedule, inca.incremental_injection(2)).weights(2).toarray()
    degree = dict(graph.degree)
    for i, j in itertools.permutations(range(30), 2):
        expected = 0.0
        if graph.has_edge(i, j):
            expected = 1 / (1 + (max(degree[i], degree[j]) if weights == "metropolis" else degree[i]))
        assert matrix[j, i] == pytest.approx(expected, abs=1e-15)
    if weights == "metropolis":
        assert np.allclose(matrix, matrix.T)


def test_a_disconnected_graph_is_a_graph_on_request_and_hides_nobody_from_another_component() -> None:
    two_pairs = inca.StaticGraph.from_networkx(nx.Graph([(0, 1), (2, 3)]), 3, disconnected=True)
    execution = inca.Execution(two_pairs, inca.incremental_injection(3))
    view = inca.View(execution, inca.Adversary([3]))
    losses = inca.account(view, inca.NoiseLevels(independent=1.0, cancelling=1000.0), sensitivity=1.0)
    assert losses.mu[2] == pytest.approx(1.0), "alone with a colluder: no better than Local DP, however much cancels"
    assert max(losses.mu[:2]) < 0.8


def test_hypercube_has_the_spectrum_of_the_paper() -> None:
    """Erratum E10: n = 1024, second eigenvalue 9/11 of the gossip matrix (I + A)/11."""
    matrix = inca.Execution(inca.hypercube_graph(1024, 1), inca.incremental_injection(1)).weights(1)
    eigenvalues = np.linalg.eigvalsh(matrix.toarray())
    assert eigenvalues[-1] == pytest.approx(1.0) and eigenvalues[-2] == pytest.approx(9 / 11)


def test_complete_graph_averages_at_once() -> None:
    execution = inca.Execution(inca.complete_graph(5, 1), inca.incremental_injection(1))
    assert np.allclose(execution.mix(1, [1, 2, 3, 4, 5]), 3.0)


def test_matrices_dense_and_sparse_are_the_same() -> None:
    rng = np.random.default_rng(1)
    matrices = rng.random((3, 6, 6)) * (rng.random((3, 6, 6)) < 0.5) + np.eye(6)
    matrices /= matrices.sum(axis=1, keepdims=True)
    for given_as in (list(matrices), [sparse.csr_array(matrix) for matrix in matrices]):
        execution = inca.Execution(inca.ExplicitSchedule.from_matrices(given_as), inca.incremental_injection(3))
        for t in (1, 2, 3):
            assert np.allclose(execution.weights(t).toarray(), matrices[t - 1], atol=1e-15)


def swap(a: int = 1, b: int = 0) -> list[list[list[int]]]:
    return [[[a], [b]]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: inca.RandomReceivers(1, 3, seed=1), "parties must be from 2 to 2147483647, got 1"),
        (lambda: inca.RandomReceivers(5, 0, seed=1), "rounds must be at least 1, got 0"),
        (
            lambda: inca.RandomReceivers(5, 3, 5, seed=1),
            r"receivers must be below the number of parties \(5\), got 5",
        ),
        (lambda: inca.RandomReceivers(5, 3, 0, seed=1), "receivers must be at least 1, got 0"),
        (lambda: inca.RandomReceivers(5, 3, seed=-1), "seed must be at least 0, got -1"),
        (lambda: inca.RandomReceivers(5, 3, seed="x"), "seed must be an integer, at least 0, got 'x'"),  # type: ignore[arg-type]
        (lambda: inca.RandomReceivers(5, 3, seed=1, share=0.0), r"share must be above 0 and at most 1, got 0\.0"),
        (
            lambda: inca.RandomReceivers(5, 3, 2, seed=1, share=0.6),
            r"share must be above 0 and at most 1/2, got 0\.6",
        ),
        (lambda: inca.RandomReceivers(5, 3, seed=1, share=math.nan), "share must be above 0 and at most 1, got nan"),
        (lambda: inca.RandomReceivers(5, 3, seed=1).round(0), "t must be from 1 to 3, got 0"),
        (lambda: inca.RandomReceivers(5, 3, seed=1).round(4), "t must be from 1 to 3, got 4"),
        (
            lambda: inca.UnrepeatedReceivers(5, 5, seed=1),
            r"receivers times rounds must be below the number of parties \(5\), so that no receiver is repeated, got 5",
        ),
        (
            lambda: inca.PermutationReceivers(20, 5, 9, seed=1),
            "receivers must be at most 8 for permutations of 20 parties, got 9",
        ),
        (lambda: inca.PublicSeed(b""), "seed must be at least 1 byte long, got b''"),
        (lambda: inca.PublicSeed("text"), "seed must be a byte string, got 'text'"),  # type: ignore[arg-type]
        (
            lambda: inca.random_schedule("star", 5, 3, seed=1),
            "schedule must be one of random, distinct, permutation, got 'star'",
        ),
        (lambda: inca.hypercube_graph(12, 1), "parties must be a power of 2 for a hypercube, got 12"),
        (lambda: inca.complete_graph(1, 1), "parties must be from 2 to 2147483647, got 1"),
        (
            lambda: inca.StaticGraph([[1], [0]], 1, weights="heavy"),
            "weights must be metropolis or uniform, got 'heavy'",
        ),
        (lambda: inca.StaticGraph([[0], []], 1), "a neighbour of 0 must be another party, got 0"),
        (
            lambda: inca.StaticGraph([[1], []], 1),
            "neighbours must be mutual, got 1 as a neighbour of 0 but not 0 as one of 1",
        ),
        (
            lambda: inca.StaticGraph([[1], [0], [3], [2], []], 1),
            "the graph must be connected, got 3 components: parties 0 and 2 are in different ones, which never "
            "exchange anything, so they do not hide one another and gossip brings nobody the mean \\(disconnected=True "
            "allows it\\)",
        ),
        (
            lambda: inca.StaticGraph.from_networkx(nx.DiGraph([(0, 1), (1, 2), (2, 0)]), 1),
            "neighbours must be mutual, got 1 as a neighbour of 0 but not 0 as one of 1",
        ),
        (lambda: inca.StaticGraph([[2], [0]], 1), "a neighbour of 0 must be from 0 to 1, got 2"),
        (
            lambda: inca.ExplicitSchedule(swap(b=1)),
            "receiver 0 of party 1 in round 1 must be another party than the sender, got 1",
        ),
        (
            lambda: inca.ExplicitSchedule(swap(a=2)),
            "receiver 0 of party 0 in round 1 must be a party id from 0 to 1, or -1 for nobody, got 2",
        ),
        (
            lambda: inca.ExplicitSchedule(swap(a=-2)),
            "receiver 0 of party 0 in round 1 must be a party id from 0 to 1, or -1 for nobody, got -2",
        ),
        (
            lambda: inca.ExplicitSchedule([[[1.5], [0.0]]]),
            "the type of receivers must be an integer type, got 'float64'",
        ),
        (lambda: inca.ExplicitSchedule([[[1], [0, 2]]]), "rows of different lengths"),
        (lambda: inca.ExplicitSchedule([[1], [0]]), r"the shape of receivers must be \(T, n, k\), got \(2, 1\)"),
        (lambda: inca.ExplicitSchedule(np.empty((0, 3, 1), int)), "rounds must be at least 1, got 0"),
        (lambda: inca.ExplicitSchedule([[[0]]]), "parties must be from 2 to 2147483647, got 1"),
        (
            lambda: inca.ExplicitSchedule([[[1, 1], [0, 2], [0, 1]]]),
            r"the receivers of party 0 in round 1 must be different from each other, got \[1, 1\]",
        ),
        (lambda: inca.ExplicitSchedule(swap(), share=2.0), r"share must be above 0 and at most 1, got 2\.0"),
        (
            lambda: inca.ExplicitSchedule(swap(), weights=[[[0.5], [1.5]]]),
            r"the weights of party 1 in round 1 must be at least 0, at most 1 together, and 0 for nobody, got \[1\.5\]",
        ),
        (lambda: inca.ExplicitSchedule(swap(), weights=[[[-0.5], [0.5]]]), r"weights of party 0 in round 1"),
        (lambda: inca.ExplicitSchedule(swap(), weights=[[[0.5]]]), "shape of weights"),
        (
            lambda: inca.ExplicitSchedule(swap(), share=0.5, weights=[[[0.5], [0.5]]]),
            "share cannot be combined with weights",
        ),
        (
            lambda: inca.ExplicitSchedule.from_matrices([]),
            "the number of matrices must be at least 1, one per round, got 0",
        ),
        (
            lambda: inca.ExplicitSchedule.from_matrices([np.eye(2), np.eye(3)]),
            r"the sizes of matrices must be all the same, got \[2, 3\]",
        ),
        (
            lambda: inca.ExplicitSchedule.from_matrices([[[1, 0.5], [0, 0.4]]]),
            r"the sum of column 1 of matrix 1 must be 1 \(column stochasticity\), got 0\.9",
        ),
        (
            lambda: inca.ExplicitSchedule.from_matrices([[[2, 0], [-1, 1]]]),
            r"an entry of matrix 1 must be a finite number, at least 0, got -1\.0",
        ),
        (
            lambda: inca.ExplicitSchedule.from_matrices([np.ones((2, 3))]),
            r"the shape of matrix 1 must be \(n, n\), got \(2, 3\)",
        ),
    ],
)
def test_bad_schedules_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        make()


class Own(inca.Schedule):
    """A schedule as users write them; nothing has checked its rounds."""

    def __init__(self, step: Round) -> None:
        self.parties, self.rounds, self.slots = 3, 1, 1
        self.step = step

    def round(self, t: int) -> Round:
        return self.step


def ids(*receivers: int) -> np.ndarray:
    return np.array(receivers, dtype=np.int32).reshape(-1, 1)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            Round(ids(1, 2, 3), 0.5),
            "receiver 0 of party 2 in round 1 must be a party id from 0 to 2, or -1 for nobody, got 3",
        ),
        (
            Round(ids(1, 2, -2), 0.5),
            "receiver 0 of party 2 in round 1 must be a party id from 0 to 2, or -1 for nobody, got -2",
        ),
        (Round(ids(1, 1, 0), 0.5), "receiver 0 of party 1 in round 1 must be another party than the sender, got 1"),
        (Round(ids(1, 2), 0.5), r"shape \(2, 1\)"),
        (Round(ids(1, 2, 0).astype(np.int64), 0.5), "int64"),
        (Round(ids(1, 2, 0), 1.5), r"share must be above 0 and at most 1, got 1\.5"),
        (Round(ids(1, 2, 0), 0.5, np.array([[0.5], [1.5], [0.5]])), "weights of party 1 in round 1"),
        (Round(ids(1, 2, 0), 0.5, np.array([[0.5], [np.nan], [0.5]])), "weights of party 1 in round 1"),
        (Round(ids(1, 2, -1), 0.5, np.full((3, 1), 0.5)), "weights of party 2 in round 1"),
        (
            Round(ids(1, 2, 0), 0.5, np.full(3, 0.5)),
            r"the weights of round 1 must be float64 of shape \(3, 1\), got 'float64 of shape \(3,\)'",
        ),
    ],
)
def test_rounds_of_own_schedules_are_checked(step: Round, words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        inca.Execution(Own(step), inca.incremental_injection(1)).mix(1, np.ones(3))


def test_an_even_share_that_is_not_kept_to_is_refused() -> None:
    for step in (Round(ids(1, 2, -1), 0.5), Round(ids(1, 2, 0), 0.25), Round(ids(1, 2, 0), 0.5, np.full((3, 1), 0.5))):
        schedule = Own(step)
        schedule.even_share = 0.5
        with pytest.raises(inca.InvalidInput, match=r"even_share must be None, as round 1 has other sends, got 0\.5"):
            inca.simulate(
                inca.Execution(schedule, inca.incremental_injection(1)),
                np.ones(3),
                inca.NoiseLevels(independent=1.0, cancelling=1.0),
                np.random.default_rng(1),
            )


def test_own_schedules_work() -> None:
    execution = inca.Execution(Own(Round(ids(1, 2, -1), 0.25)), inca.incremental_injection(1))
    assert execution.mix(1, [4.0, 0.0, 1.0]).tolist() == [3.0, 1.0, 1.0]
