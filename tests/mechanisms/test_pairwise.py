from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.strategies import generator, seeds
from inca._base.kernels import Flags
from inca._base.types import Array
from inca.mechanisms import gopa as gopa_module
from inca.mechanisms.base import measure
from inca.mechanisms.central_local import LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa, cut_off_chance, fewest_neighbours, joined_pairs, random_graph
from inca.mechanisms.pairwise import Pairwise, complete_loss, complete_ratio, losses
from inca.planning.requirements import Wish
from inca.planning.sampling import paper_factor

WISH = Wish(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2, messages=10)
levels = st.floats(0.2, 20)


@cache
def gopa(wish: Wish = WISH, late: float = 0.5) -> Gopa:
    return Gopa(wish, late=late, views=100)


def with_factor(wish: Wish, late: float = 0.5) -> Gopa:
    return Gopa(wish, late=late, factor=4.0, views=100)


def graph_of(n: int, seed: int) -> Array:
    upper = np.triu(generator(seed).random((n, n)) < 0.6, 1)
    return np.asarray(upper + upper.T, dtype=np.float64)


def flags(n: int, *chosen: int) -> list[bool]:
    return [party in chosen for party in range(n)]


# Accounting


def by_hand(graph: Array, honest: Flags, own: float, shared: float, early: Flags, late: Flags) -> Array:
    """What is published, as a matrix on all noise terms that the adversary does not know, column by column."""
    n = len(graph)
    columns = []
    for party in range(n):
        column = np.zeros(n)
        column[party] = own
        columns.append(column)
    for i, j in itertools.combinations(range(n), 2):
        rolled_back = early[i] or early[j]
        known = not (honest[i] and honest[j])
        if graph[i, j] and not rolled_back and not known:
            column = np.zeros(n)
            column[i], column[j] = shared, -shared
            columns.append(column)
    seen = np.flatnonzero(honest & ~early & ~late)
    published = np.array(columns).T[seen]
    inverse = np.linalg.inv(published @ published.T)
    return np.sqrt(np.diagonal(inverse))


@given(st.integers(2, 9), seeds, levels, levels)
def test_losses_are_those_of_the_published_vector(n: int, seed: int, own: float, shared: float) -> None:
    kinds = generator(seed).integers(5, size=n)  # 0: colludes; 1: leaves early; 2: leaves late
    honest, early, late = kinds != 0, kinds == 1, kinds == 2
    assume((honest & ~early & ~late).any())
    graph = graph_of(n, seed)
    found = losses(graph, honest, own, shared, early=early, late=late, sensitivity=3.0)
    np.testing.assert_allclose(found, 3.0 * by_hand(graph, honest, own, shared, early, late), rtol=1e-8)


@given(st.integers(3, 9), seeds, levels, levels)
def test_early_leavers_harm_and_late_leavers_help(n: int, seed: int, own: float, shared: float) -> None:
    graph, everyone, one = graph_of(n, seed), flags(n, *range(n)), flags(n, n - 1)
    all_there = losses(graph, everyone, own, shared)[:-1]
    assert (losses(graph, everyone, own, shared, early=one) >= all_there * (1 - 1e-9)).all()
    assert (losses(graph, everyone, own, shared, late=one) <= all_there * (1 + 1e-9)).all()


@given(st.integers(1, 12), st.integers(0, 11), st.integers(0, 3), levels, levels)
def test_the_closed_form_is_that_of_the_complete_graph(
    honest: int, late: int, colluders: int, own: float, shared: float
) -> None:
    assume(late < honest)
    n = honest + colluders
    dense = losses(1 - np.eye(n), flags(n, *range(honest)), own, shared, late=flags(n, *range(late)))
    np.testing.assert_allclose(dense, complete_loss(honest, own, shared, late=late), rtol=1e-8)
    assert complete_loss(honest, own, shared, late=late) <= complete_loss(honest, own, shared) * (1 + 1e-12)


@given(st.integers(1, 50), st.integers(1, 50), st.floats(1.01, 60))
def test_the_ratio_of_the_complete_graph_is_the_least(honest: int, publishing: int, factor: float) -> None:
    assume(publishing <= honest)
    ratio, own = complete_ratio(factor, honest, publishing), math.sqrt(factor / honest)  # in units where s = mu = 1
    if ratio == math.inf:
        assert factor <= honest / publishing
        return
    assert complete_loss(publishing, own, own * math.sqrt(ratio)) <= 1.0 + 1e-9
    if ratio > 0.0:
        assert complete_loss(publishing, own, own * math.sqrt(ratio * 0.99)) > 1.0


# Calibration


@pytest.mark.parametrize("rule", ["exact", "classic"])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_fresh_views_pass_their_own_accounting(rule: Any, dropout: float) -> None:
    wish = Wish(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=dropout, messages=10, rule=rule)
    mechanism, rng = gopa(wish), generator(5)
    sigmas = mechanism.sigma_independent, mechanism.sigma_cancelling
    worst = []
    for _ in range(100):
        graph = random_graph(30, 10, rng, rows=30)
        roles = rng.permutation(30)
        honest = roles >= wish.colluders
        gone = generator(int(rng.integers(2**32))).permutation(30)
        late = gone < mechanism._late(wish.leavers)
        early = (gone < wish.leavers) & ~late
        for leaving in ({}, {"early": early}, {"early": early, "late": late}):
            worst.append(losses(graph, honest, *sigmas, **leaving).max())  # type: ignore[arg-type]
    assert max(worst) <= wish.mu
    assert max(worst) > 0.8 * wish.mu  # and not by far too much


def test_unlucky_parties_are_protected_too() -> None:
    # As few honest neighbours as happens once in 1e6 graphs: sampled graphs hardly show that.
    wish, rng = WISH, generator(6)
    mechanism = gopa(wish)
    publishing = wish.honest - (wish.leavers - mechanism._late(wish.leavers))
    fewest = fewest_neighbours(30, 10, publishing, wish.failure / 2 / publishing)
    assert fewest >= 1
    worst = []
    for _ in range(100):
        graph = random_graph(30, 10, rng, rows=publishing)
        neighbours = np.flatnonzero(graph[0])
        dropped = rng.permutation(neighbours)[fewest:]
        graph[0, dropped] = graph[dropped, 0] = 0.0
        everyone = flags(publishing, *range(publishing))
        worst.append(losses(graph, everyone, mechanism.sigma_independent, mechanism.sigma_cancelling)[0])
    assert 0.97 * wish.mu < max(worst) <= wish.mu


def test_joining_all_and_losing_all_late_is_cordp() -> None:
    for factor in (None, 1.3, 5.0):
        one, other = Gopa(WISH, exchanges=29, late=1.0, factor=factor), CorDP(WISH, factor)
        assert one.factor == other.factor
        assert one.sigma_cancelling == pytest.approx(other.sigma_cancelling)
        assert one.edge_chance == other.edge_chance == 1.0
        assert one.expected_error(0.2).mse == pytest.approx(other.expected_error(0.2).mse)


def test_nearly_all_pairs_need_nearly_what_all_pairs_need() -> None:
    wish = Wish(parties=60, epsilon=0.7, delta=1e-4, dropout=0.1)
    sampled = Gopa(wish, exchanges=50, late=1.0, factor=3.0, views=100)
    fewer = 59 / fewest_neighbours(60, 50, 60, wish.failure / 2 / 60)
    assert 1.0 < fewer < 1.2
    assert fewer < (sampled.sigma_cancelling / CorDP(wish, 3.0).sigma_cancelling) ** 2 < 1.03 * fewer


def test_sub_populations_need_what_the_whole_population_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    wish = Wish(parties=120, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.1, messages=12)
    whole = Gopa(wish, factor=1.5, views=100)
    monkeypatch.setattr(gopa_module, "_LARGEST", 60)
    part = Gopa(wish, factor=1.5, views=100)
    assert (whole.sampled_parties, part.sampled_parties) == (120, 60)
    assert 0.97 < (part.sigma_cancelling / whole.sigma_cancelling) ** 2 < 1.1


@pytest.mark.parametrize("made", [with_factor, CorDP])
@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"epsilon": 0.5}, {"epsilon": 0.6}),
        ({"delta": 1e-6}, {"delta": 1e-5}),
        ({"colluding": 0.3}, {"colluding": 0.1}),
        ({"rule": "classic"}, {"rule": "exact"}),
    ],
)
def test_a_weaker_wish_costs_less(made: Callable[[Wish], Pairwise], less: dict[str, Any], more: dict[str, Any]) -> None:
    base: dict[str, Any] = {"parties": 24, "epsilon": 0.5, "delta": 1e-6, "colluding": 0.1, "dropout": 0.125}
    base["messages"] = 12
    strict, lenient = made(Wish(**base | less)), made(Wish(**base | more))
    assert strict.expected_error(0.125).mse > lenient.expected_error(0.125).mse


@given(
    st.integers(2, 300),
    st.floats(0.05, 0.95),
    st.floats(1e-8, 1e-2),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.floats(1.01, 10),
)
def test_cordp_is_private_whoever_leaves(
    n: int, epsilon: float, delta: float, colluding: float, dropout: float, factor: float
) -> None:
    wish = Wish(parties=n, epsilon=epsilon, delta=delta, colluding=colluding, dropout=dropout, sensitivity=2.0)
    for mechanism in (CorDP(wish), CorDP(wish, factor)):
        sigmas = mechanism.sigma_independent, mechanism.sigma_cancelling
        for late in {0, min(wish.leavers, wish.honest - 1)}:
            assert complete_loss(wish.honest, *sigmas, late=late, sensitivity=2.0) <= wish.mu * (1 + 1e-9)
    assert CorDP(wish).lower_bound(dropout) <= LocalDP(wish).expected_error(dropout).budget.noise * (1 + 1e-12)


def test_the_best_factor_is_better_than_others() -> None:
    for made in (lambda factor: Gopa(WISH, factor=factor, views=100), lambda factor: CorDP(WISH, factor)):
        best = made(None)
        for change in (0.7, 1.4):
            if best.factor * change > 1.2:
                assert made(best.factor * change).expected_error(0.2).mse > best.expected_error(0.2).mse * 0.999


def test_a_given_factor_is_used_as_it_is() -> None:
    factor = paper_factor(WISH)
    assert factor == pytest.approx(1.3 * 27 / 21)
    for mechanism in (Gopa(WISH, factor=factor, views=100), CorDP(WISH, factor)):
        assert mechanism.factor == factor
        assert mechanism.sigma_independent**2 == pytest.approx(1.3 * WISH.var_local / 21)


def test_given_noise_is_used_as_it_is_and_the_error_is_that_of_a_calibration_that_finds_it() -> None:
    for found, take in (
        (Gopa(WISH, factor=paper_factor(WISH), views=100), lambda levels: Gopa(WISH, noise=levels)),
        (CorDP(WISH), lambda levels: CorDP(WISH, noise=levels)),
    ):
        taken = take((found.sigma_independent, found.sigma_cancelling))
        assert taken.factor == pytest.approx(found.factor)
        assert taken.expected_error(0.2) == found.expected_error(0.2)
        values = generator(1).random(30)
        assert taken.run(values, generator(2), 0.2) == found.run(values, generator(2), 0.2)


# Random graphs


def test_the_law_of_neighbours_is_exact() -> None:
    # All ways in which 5 parties can each pick 2 others; 4 of them are honest.
    picks = [list(itertools.combinations([other for other in range(5) if other != party], 2)) for party in range(5)]
    counts, cut_off = np.zeros(4), 0
    for drawn in itertools.product(*picks):
        joined = np.zeros((5, 5), dtype=np.bool_)
        for party, chosen in enumerate(drawn):
            joined[party, list(chosen)] = True
        degrees = (joined | joined.T)[:4, :4].sum(axis=1)
        counts[degrees[0]] += 1
        cut_off += int((degrees == 0).any())
    fewer = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])  # chance of fewer than d neighbours
    for d in range(4):
        assert fewest_neighbours(5, 2, 4, fewer[d] + 1e-9) == max(e for e in range(4) if fewer[e] <= fewer[d] + 1e-9)
        if fewer[d] > 1e-6:
            assert fewest_neighbours(5, 2, 4, fewer[d] - 1e-9) < d
    assert cut_off / 6**5 <= cut_off_chance(5, 2, 4, largest=1) <= 4 * cut_off / 6**5 + 1e-12


def test_a_group_is_cut_off_as_often_as_the_bound_says() -> None:
    rng, runs = generator(8), 3000
    alone = sum(bool((random_graph(12, 2, rng, rows=9).sum(axis=1) == 0).any()) for _ in range(runs))
    bound = cut_off_chance(12, 2, 9, largest=1)
    # Two parties cut off at once hardly ever happen, so the bound is nearly exact; 5 standard errors: below 1e-6.
    assert 0.9 * bound - 5 * math.sqrt(bound / runs) < alone / runs < bound + 5 * math.sqrt(bound / runs)
    assert cut_off_chance(12, 2, 9, 8) > bound
    assert cut_off_chance(12, 11, 9, 8) == cut_off_chance(12, 2, 1, 8) == 0.0


@pytest.mark.parametrize(("n", "k"), [(2, 1), (10, 1), (10, 5), (10, 9)])
def test_pairs_are_joined_as_often_as_predicted(n: int, k: int) -> None:
    rng, runs = generator(9), 1000
    chance = 1 - (1 - k / (n - 1)) ** 2
    pairs = [joined_pairs(n, k, rng) for _ in range(runs)]
    for first, second in pairs:
        assert (first < second).all()
        assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == first.size >= n * k / 2
    graphs = [random_graph(n, k, rng, rows=n) for _ in range(runs)]
    # Picks exclude each other, so that the number of pairs varies less than with independent ones; 5 errors: < 1e-6.
    error = 5 * math.sqrt(chance * (1 - chance) / runs / (n * (n - 1) / 2)) + 1e-12
    assert abs(np.mean([first.size for first, _ in pairs]) / (n * (n - 1) / 2) - chance) < error
    assert abs(np.mean([graph.sum() for graph in graphs]) / (n * (n - 1)) - chance) < error


# Runs


@pytest.mark.parametrize("made", [gopa, CorDP])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_error_is_as_predicted(made: Callable[[Wish], Pairwise], dropout: float) -> None:
    mechanism = made(WISH)
    found = measure(mechanism, generator(31), dropout, runs=2500)
    # A normal mean is 6 standard errors off with chance 2e-9; squares are skewed, which raises it to 1e-7 at 2500 runs.
    assert abs(found.mse - mechanism.expected_error(dropout).mse) < 6 * found.standard_error
    assert found.failed == 0


def test_the_uncancelled_noise_is_as_predicted() -> None:
    wish = Wish(parties=30, epsilon=0.7, delta=1e-4, dropout=0.2, messages=10, variance=0.0)
    mechanism = Gopa(wish, late=0.5, factor=2.0, views=100)
    mechanism.sigma_independent = 0.0
    predicted = mechanism.expected_error(0.2)
    assert predicted.mse == predicted.budget.cancelling > 0.0
    found = measure(mechanism, generator(32), 0.2, runs=2500)
    # Heavier tails than a normal error's, since the number of terms varies; 6 standard errors: still below 1e-6.
    assert abs(found.mse - predicted.mse) < 6 * found.standard_error


@given(seeds, st.integers(2, 12), st.integers(1, 3), st.data())
def test_noise_cancels_if_nobody_leaves_late(seed: int, n: int, d: int, data: st.DataObject) -> None:
    wish = Wish(parties=n, epsilon=0.5, delta=1e-3)
    dropout = data.draw(st.integers(0, n - 1)) / n
    k = data.draw(st.integers(1, n - 1))
    mechanism = Gopa(wish, exchanges=k, late=0.0, factor=float(n))
    values = generator(seed).normal(size=(n, d))
    mechanism.sigma_independent, mechanism.sigma_cancelling = 0.0, 1e6
    assert mechanism.expected_error(dropout).budget.noise == 0.0
    np.testing.assert_allclose(mechanism.run(np.ones((n, d)), generator(seed), dropout), np.ones(d), atol=1e-7)  # type: ignore[arg-type]
    np.testing.assert_allclose(mechanism.run(values, generator(seed)), values.mean(axis=0), atol=1e-7)  # type: ignore[arg-type]
    other = CorDP(wish)
    other.sigma_independent, other.sigma_cancelling = 0.0, 1e6
    np.testing.assert_allclose(other.run(values, generator(seed)), values.mean(axis=0), atol=1e-7)  # type: ignore[arg-type]
    assert isinstance(other.run(values[:, 0], generator(seed)), float)


def test_blocks_of_pairs_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inca.mechanisms.cordp._BLOCK", 3 * 30)  # three rows at a time
    mechanism = CorDP(WISH)
    mechanism.sigma_independent, mechanism.sigma_cancelling = 0.0, 1.0
    messages, kept = np.zeros((30, 1)), np.ones(30, dtype=np.bool_)
    squares, rng = np.zeros((30, 30)), generator(33)
    for _ in range(500):
        messages[:] = 0.0
        mechanism._add_terms(messages, kept, rng)
        squares += messages @ messages.T
    assert abs(messages.sum()) < 1e-9
    # Covariance n I - 11^T, each entry to within 7 standard errors: 1e-9 after a union over 900 entries.
    np.testing.assert_allclose(squares / 500, 30 * np.eye(30) - 1, atol=7 * 30 * math.sqrt(2 / 500))


# Edge cases


def test_a_share_or_a_number_of_leavers_is_late() -> None:
    assert [gopa()._late(leavers) for leavers in (0, 1, 3, 6)] == [0, 0, 2, 3]
    one = Gopa(WISH, late_leavers=1, factor=2.0, views=100)
    assert [one._late(leavers) for leavers in (0, 1, 6)] == [0, 1, 1]
    assert with_factor(WISH, late=0.0).expected_error(0.2).budget.cancelling == 0.0
    assert gopa().expected_error(0.0).budget.cancelling == 0.0


@pytest.mark.parametrize("made", [gopa, CorDP])
def test_without_anyone_there_is_no_result(made: Callable[[Wish], Pairwise]) -> None:
    assert made(WISH).run(np.zeros(30), generator(1), 1.0) is None
    assert made(WISH).expected_error(1.0).mse == math.inf


@pytest.mark.parametrize("made", [gopa, CorDP])
def test_one_honest_party_has_local_dp(made: Callable[[Wish], Pairwise]) -> None:
    wish = Wish(parties=5, epsilon=0.5, delta=1e-5, colluding=0.8, messages=2)
    mechanism = made(wish)
    assert (mechanism.factor, mechanism.sigma_cancelling) == (1.0, 0.0)
    assert mechanism.expected_error(0.0).mse == pytest.approx(LocalDP(wish).expected_error(0.0).mse)


def test_two_parties() -> None:
    wish = Wish(parties=2, epsilon=0.5, delta=1e-5)
    for mechanism in (Gopa(wish), CorDP(wish)):
        assert (mechanism.exchanges, mechanism.messages, mechanism.factor) == (1, 1.0, 1.01)
        assert complete_loss(2, mechanism.sigma_independent, mechanism.sigma_cancelling) <= wish.mu * (1 + 1e-9)
        assert isinstance(mechanism.run([0.0, 1.0], generator(1), 0.5), float)


def test_too_few_exchanges_leave_local_dp() -> None:
    # With one pick each, someone picks a colluder and is picked by nobody far more often than once in 1e6.
    wish = Wish(parties=20, epsilon=0.5, delta=1e-5, colluding=0.2, messages=1)
    mechanism = gopa(wish)
    assert (mechanism.factor, mechanism.sigma_cancelling) == (16.0, 0.0)
    assert mechanism.expected_error(0.0).mse == pytest.approx(LocalDP(wish).expected_error(0.0).mse)


def test_a_group_too_rare_to_be_sampled_is_reckoned_with() -> None:
    # Someone is isolated in 4e-5 of all graphs: not to be seen in 100 views, and more than the wish allows.
    wish = Wish(parties=60, epsilon=0.5, delta=1e-5, colluding=0.1, messages=4)
    assert wish.failure < cut_off_chance(60, 4, 54, 1) < 1e-2 / 100
    assert gopa(wish).sigma_cancelling == 0.0


def test_messages_and_promise() -> None:
    assert (gopa().messages, CorDP(WISH).messages) == (10.0, 29.0)
    for mechanism in (gopa(), CorDP(WISH)):
        assert not mechanism.weaker
        assert "topology" in mechanism.promise
    noise = CorDP(WISH).expected_error(0.2).budget.noise
    assert CorDP(WISH).lower_bound(0.2) == noise < CorDP(WISH).expected_error(0.2).mse


TAPPED = Wish(parties=30, epsilon=0.7, delta=1e-4, eavesdropped=0.1)
LARGE = Wish(parties=20_000, epsilon=0.7, delta=1e-4)
HALVES = Wish(parties=10, epsilon=0.7, delta=1e-4, colluding=0.5, dropout=0.5)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Gopa(WISH, exchanges=30), "exchanges is 30, but a whole number from 1 to 29 was expected"),
    (lambda: Gopa(WISH, exchanges=0), "exchanges is 0, but a whole number from 1 to 29 was expected"),
    (lambda: Gopa(WISH, late=1.5), "late is 1.5, but a number from 0 to 1 was expected"),
    (lambda: Gopa(WISH, late_leavers=-1), "late_leavers is -1, but a whole number of at least 0 was expected"),
    (lambda: Gopa(WISH, views=10), "views is 10, but a whole number of at least 100 was expected"),
    (lambda: Gopa(WISH, seed=-1), "seed is -1, but a whole number of at least 0 was expected"),
    (lambda: Gopa(WISH, factor=1.0), "factor is 1.0, but a number above 1 was expected"),
    (lambda: CorDP(WISH, factor=0.5), "factor is 0.5, but a number above 1 was expected"),
    (lambda: Gopa(WISH, factor=1.05, views=100), "factor is 1.05, but a larger number (no cancelling noise makes up"),
    (lambda: Gopa(WISH, noise=(0.0, 1.0)), "sigma_independent is 0.0, but a finite number above 0"),
    (lambda: CorDP(WISH, noise=(1.0, -1.0)), "sigma_cancelling is -1.0, but a finite number of at least 0"),
    (lambda: Gopa(TAPPED), "eavesdropped is 0.1, but 0 (pairwise noise needs private channels) was expected"),
    (lambda: CorDP(TAPPED), "eavesdropped is 0.1, but 0 (pairwise noise needs private channels) was expected"),
    (lambda: CorDP(LARGE).run(np.zeros(20_000), generator(1)), "n^2 d is 400000000, but at most 2e+08 (all pairs"),
    (lambda: gopa().expected_error(1.5), "dropout is 1.5, but a number from 0 to 1 was expected"),
    (lambda: gopa().run(np.zeros(3), generator(1)), "the number of rows of values is 3, but one row per party (30)"),
    (lambda: paper_factor(HALVES), "colluding + dropout is 1.0, but fractions that leave an honest party present"),
    (lambda: losses(np.ones((2, 3)), [True] * 2, 1.0, 1.0), "adjacency is (2, 3), but a symmetric (n, n) matrix with"),
    (lambda: losses(np.eye(2), [True] * 2, 1.0, 1.0), "adjacency is (2, 2), but a symmetric (n, n) matrix with"),
    (lambda: losses(1 - np.eye(2), [True], 1.0, 1.0), "honest is [True], but 2 flags was expected"),
    (lambda: losses(1 - np.eye(2), [True] * 2, 0.0, 1.0), "sigma_independent is 0.0, but a finite number above 0"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
