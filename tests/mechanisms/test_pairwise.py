from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
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
from inca.mechanisms.gopa import Gopa, cut_off_probability, fewest_neighbours, random_graph
from inca.mechanisms.pairwise import Pairwise, complete_loss, complete_ratio, losses
from inca.planning.requirements import Requirements
from inca.planning.sampled import paper_factor
from inca.protocol.noise_levels import NoiseLevels

REQUIREMENTS = Requirements(parties=30, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.2, messages=10)
levels = st.floats(0.2, 20)
noise = st.builds(NoiseLevels, independent=levels, cancelling=levels)


@cache
def gopa(requirements: Requirements = REQUIREMENTS, late: float = 0.5, exchanges: int | None = None) -> Gopa:
    return Gopa(requirements, exchanges, late, views=100)


def with_factor(requirements: Requirements, late: float = 0.5) -> Gopa:
    return Gopa(requirements, late=late, factor=4.0, views=100)


def graph_of(n: int, seed: int) -> Array:
    upper = np.triu(generator(seed).random((n, n)) < 0.6, 1)
    return np.asarray(upper + upper.T, dtype=np.float64)


def flags(n: int, *chosen: int) -> list[bool]:
    return [party in chosen for party in range(n)]


# Accounting


def by_hand(graph: Array, honest: Flags, noise_levels: NoiseLevels, early: Flags, late: Flags) -> Array:
    """What is published, as a matrix on all noise terms that the adversary does not know, column by column."""
    n = len(graph)
    columns = []
    for party in range(n):
        column = np.zeros(n)
        column[party] = noise_levels.independent
        columns.append(column)
    for i, j in itertools.combinations(range(n), 2):
        rolled_back = early[i] or early[j]
        known = not (honest[i] and honest[j])
        if graph[i, j] and not rolled_back and not known:
            column = np.zeros(n)
            column[i], column[j] = noise_levels.cancelling, -noise_levels.cancelling
            columns.append(column)
    seen = np.flatnonzero(honest & ~early & ~late)
    published = np.array(columns).T[seen]
    inverse = np.linalg.inv(published @ published.T)
    return np.sqrt(np.diagonal(inverse))


@given(st.integers(2, 9), seeds, noise)
def test_losses_are_those_of_the_published_vector(n: int, seed: int, noise_levels: NoiseLevels) -> None:
    kinds = generator(seed).integers(5, size=n)  # 0: colludes; 1: leaves early; 2: leaves late
    honest, early, late = kinds != 0, kinds == 1, kinds == 2
    assume((honest & ~early & ~late).any())
    graph = graph_of(n, seed)
    exact = losses(graph, honest, noise_levels, early=early, late=late, sensitivity=3.0)
    np.testing.assert_allclose(exact, 3.0 * by_hand(graph, honest, noise_levels, early, late), rtol=1e-8)


@given(st.integers(3, 9), seeds, noise)
def test_early_leavers_harm_and_late_leavers_help(n: int, seed: int, noise_levels: NoiseLevels) -> None:
    graph, everyone, one = graph_of(n, seed), flags(n, *range(n)), flags(n, n - 1)
    all_there = losses(graph, everyone, noise_levels)[:-1]
    assert (losses(graph, everyone, noise_levels, early=one) >= all_there * (1 - 1e-9)).all()
    assert (losses(graph, everyone, noise_levels, late=one) <= all_there * (1 + 1e-9)).all()


@given(st.integers(1, 12), st.integers(0, 11), st.integers(0, 3), noise)
def test_the_closed_form_is_that_of_the_complete_graph(
    honest: int, late: int, colluders: int, noise_levels: NoiseLevels
) -> None:
    assume(late < honest)
    n = honest + colluders
    dense = losses(1 - np.eye(n), flags(n, *range(honest)), noise_levels, late=flags(n, *range(late)))
    closed_form = complete_loss(honest, noise_levels, late=late)
    np.testing.assert_allclose(dense, closed_form, rtol=1e-8)
    assert closed_form <= complete_loss(honest, noise_levels) * (1 + 1e-12)


@given(st.integers(1, 50), st.integers(1, 50), st.floats(1.01, 60))
def test_the_ratio_of_the_complete_graph_is_the_least(honest: int, publishing: int, factor: float) -> None:
    assume(publishing <= honest)
    ratio, own = complete_ratio(factor, honest, publishing), math.sqrt(factor / honest)  # in units where s = mu = 1
    if ratio == math.inf:
        assert factor <= honest / publishing
        return

    def loss(share: float) -> float:
        noise_levels = NoiseLevels(independent=own, cancelling=own * math.sqrt(ratio * share))
        return complete_loss(publishing, noise_levels)

    assert loss(1.0) <= 1.0 + 1e-9
    if ratio > 0.0:
        assert loss(0.99) > 1.0


# Calibration


@pytest.mark.parametrize("rule", ["analytic", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_fresh_views_pass_their_own_accounting(rule: Any, dropout: float) -> None:
    requirements = replace(REQUIREMENTS, dropout=dropout, rule=rule)
    mechanism, rng = gopa(requirements), generator(5)
    worst = []
    for _ in range(100):
        graph = random_graph(30, 10, rng, rows=30)
        roles = rng.permutation(30)
        honest = roles >= requirements.colluders
        gone = generator(int(rng.integers(2**32))).permutation(30)
        late = gone < mechanism._late(requirements.leavers)
        early = (gone < requirements.leavers) & ~late
        for leaving in ({}, {"early": early}, {"early": early, "late": late}):
            worst.append(losses(graph, honest, mechanism.noise_levels, **leaving).max())  # type: ignore[arg-type]
    assert max(worst) <= requirements.mu
    assert max(worst) > 0.8 * requirements.mu  # and not by far too much


def test_unlucky_parties_are_protected_too() -> None:
    # As few honest neighbours as happens once in 1e6 graphs: sampled graphs hardly show that.
    requirements, rng = REQUIREMENTS, generator(6)
    mechanism = gopa(requirements)
    publishing = requirements.honest - (requirements.leavers - int(mechanism._late(requirements.leavers)))
    fewest = fewest_neighbours(30, 10, publishing, requirements.failure / 2 / publishing)
    assert fewest >= 1
    worst = []
    for _ in range(100):
        graph = random_graph(30, 10, rng, rows=publishing)
        neighbours = np.flatnonzero(graph[0])
        dropped = rng.permutation(neighbours)[fewest:]
        graph[0, dropped] = graph[dropped, 0] = 0.0
        everyone = flags(publishing, *range(publishing))
        worst.append(losses(graph, everyone, mechanism.noise_levels)[0])
    assert 0.97 * requirements.mu < max(worst) <= requirements.mu


def test_joining_all_and_losing_all_late_is_cordp() -> None:
    for factor in (None, 1.3, 5.0):
        one, other = Gopa(REQUIREMENTS, exchanges=29, late=1.0, factor=factor), CorDP(REQUIREMENTS, factor)
        assert one.factor == other.factor
        assert one.noise_levels.cancelling == pytest.approx(other.noise_levels.cancelling)
        assert one.edge_probability == other.edge_probability == 1.0
        assert one.expected_error(0.2).mse == pytest.approx(other.expected_error(0.2).mse)


def test_nearly_all_pairs_need_nearly_what_all_pairs_need() -> None:
    requirements = Requirements(parties=60, epsilon=0.7, delta=1e-4, dropout=0.1, colluding=0.0)
    sampled = Gopa(requirements, exchanges=50, late=1.0, factor=3.0, views=100)
    fewer = 59 / fewest_neighbours(60, 50, 60, requirements.failure / 2 / 60)
    assert 1.0 < fewer < 1.2
    complete = CorDP(requirements, 3.0)
    assert fewer < (sampled.noise_levels.cancelling / complete.noise_levels.cancelling) ** 2 < 1.03 * fewer


def test_sub_populations_need_what_the_whole_population_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = Requirements(parties=120, epsilon=0.7, delta=1e-4, colluding=0.1, dropout=0.1, messages=12)
    whole = Gopa(requirements, factor=1.5, views=100)
    monkeypatch.setattr(gopa_module, "_MAX_SAMPLED_PARTIES", 60)
    part = Gopa(requirements, factor=1.5, views=100)
    assert (whole.sampled_parties, part.sampled_parties) == (120, 60)
    assert 0.97 < (part.noise_levels.cancelling / whole.noise_levels.cancelling) ** 2 < 1.1


@pytest.mark.parametrize("make", [with_factor, CorDP])
@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"epsilon": 0.5}, {"epsilon": 0.6}),
        ({"delta": 1e-6}, {"delta": 1e-5}),
        ({"colluding": 0.3}, {"colluding": 0.1}),
        ({"rule": "classic"}, {"rule": "analytic"}),
    ],
)
def test_a_weaker_guarantee_costs_less(
    make: Callable[[Requirements], Pairwise], less: dict[str, Any], more: dict[str, Any]
) -> None:
    base: dict[str, Any] = {"parties": 24, "epsilon": 0.5, "delta": 1e-6, "colluding": 0.1, "dropout": 0.125}
    base["messages"] = 12
    strict, lenient = make(Requirements(**base | less)), make(Requirements(**base | more))
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
    requirements = Requirements(n, epsilon, delta, colluding=colluding, dropout=dropout, sensitivity=2.0)
    for cordp in (CorDP(requirements), CorDP(requirements, factor)):
        for late in {0, min(requirements.leavers, requirements.honest - 1)}:
            loss = complete_loss(requirements.honest, cordp.noise_levels, late=late, sensitivity=2.0)
            assert loss <= requirements.mu * (1 + 1e-9)
    local = LocalDP(requirements).expected_error(dropout).budget.noise
    assert CorDP(requirements).lower_bound(dropout) <= local * (1 + 1e-12)


def test_the_best_factor_is_better_than_others() -> None:
    def gopa_with(factor: float | None) -> Pairwise:
        return Gopa(REQUIREMENTS, factor=factor, views=100)

    def cordp_with(factor: float | None) -> Pairwise:
        return CorDP(REQUIREMENTS, factor)

    for make in (gopa_with, cordp_with):
        best = make(None)
        for change in (0.7, 1.4):
            if best.factor * change > 1.2:
                assert make(best.factor * change).expected_error(0.2).mse > best.expected_error(0.2).mse * 0.999


class Noted(Pairwise):
    """A mechanism whose error is what is stated as the ratio of its noise."""

    exchanges = 1

    def _late(self, leavers: int) -> float:
        return 0.0

    def _add_terms(self, messages: Array, kept: Flags, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _noise_error(self, var_independent: float, ratio: float) -> float:
        return ratio


@pytest.mark.parametrize("step", [1, 2, 4, 5])
@pytest.mark.parametrize("least", range(12))
def test_the_search_ends_at_the_best_factor_wherever_it_is(least: int, step: int) -> None:
    """The error falls up to the best one and rises from there on."""
    mechanism, factors = Noted(REQUIREMENTS), np.linspace(1.5, 7.0, 12)
    mechanism._choose_noise(factors, lambda place: float(abs(place - least)), step)
    assert mechanism.factor == factors[least]


def test_a_given_factor_is_used_as_it_is() -> None:
    factor = paper_factor(REQUIREMENTS)
    assert factor == pytest.approx(1.3 * 27 / 21)
    for mechanism in (Gopa(REQUIREMENTS, factor=factor, views=100), CorDP(REQUIREMENTS, factor)):
        assert mechanism.factor == factor
        assert mechanism.noise_levels.independent**2 == pytest.approx(1.3 * REQUIREMENTS.var_local_dp / 21)


def test_given_noise_is_used_as_it_is_and_the_error_is_that_of_a_calibration_that_chooses_it() -> None:
    gopa, cordp = Gopa(REQUIREMENTS, factor=paper_factor(REQUIREMENTS), views=100), CorDP(REQUIREMENTS)
    with_noise: list[tuple[Pairwise, Pairwise]] = [
        (gopa, Gopa(REQUIREMENTS, noise_levels=gopa.noise_levels)),
        (cordp, CorDP(REQUIREMENTS, noise_levels=cordp.noise_levels)),
    ]
    for calibrated, fixed in with_noise:
        assert fixed.factor == pytest.approx(calibrated.factor)
        assert fixed.expected_error(0.2) == calibrated.expected_error(0.2)
        values = generator(1).random(30)
        assert fixed.run(values, generator(2), 0.2) == calibrated.run(values, generator(2), 0.2)


# Runs


@pytest.mark.parametrize("make", [gopa, CorDP])
@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
def test_the_error_is_as_predicted(make: Callable[[Requirements], Pairwise], dropout: float) -> None:
    mechanism = make(REQUIREMENTS)
    measured = measure(mechanism, generator(31), dropout, runs=2500)
    # A normal mean is 6 standard errors off with probability 2e-9; the skewness of squares raises it to 1e-7.
    assert abs(measured.mse - mechanism.expected_error(dropout).mse) < 6 * measured.standard_error
    assert measured.failed == 0


def test_the_uncancelled_noise_is_as_predicted() -> None:
    requirements = Requirements(
        parties=30, epsilon=0.7, delta=1e-4, dropout=0.2, messages=10, variance=0.0, colluding=0.0
    )
    mechanism = Gopa(requirements, late=0.5, factor=2.0, views=100)
    mechanism.noise_levels = NoiseLevels(independent=0.0, cancelling=mechanism.noise_levels.cancelling)
    predicted = mechanism.expected_error(0.2)
    assert predicted.mse == predicted.budget.cancelling > 0.0
    measured = measure(mechanism, generator(32), 0.2, runs=2500)
    # Heavier tails than a normal error's, since the number of terms varies; 6 standard errors: still below 1e-6.
    assert abs(measured.mse - predicted.mse) < 6 * measured.standard_error


@given(seeds, st.integers(2, 12), st.integers(1, 3), st.data())
def test_noise_cancels_if_nobody_leaves_late(seed: int, n: int, d: int, data: st.DataObject) -> None:
    requirements = Requirements(parties=n, epsilon=0.5, delta=1e-3, colluding=0.0, dropout=0.0)
    dropout = data.draw(st.integers(0, n - 1)) / n
    k = data.draw(st.integers(1, n - 1))
    mechanism = Gopa(requirements, exchanges=k, late=0.0, factor=float(n))
    values = generator(seed).normal(size=(n, d))
    mechanism.noise_levels = NoiseLevels(independent=0.0, cancelling=1e6)
    assert mechanism.expected_error(dropout).budget.noise == 0.0
    np.testing.assert_allclose(mechanism.run(np.ones((n, d)), generator(seed), dropout), np.ones(d), atol=1e-7)  # type: ignore[arg-type]
    np.testing.assert_allclose(mechanism.run(values, generator(seed)), values.mean(axis=0), atol=1e-7)  # type: ignore[arg-type]
    other = CorDP(requirements)
    other.noise_levels = mechanism.noise_levels
    np.testing.assert_allclose(other.run(values, generator(seed)), values.mean(axis=0), atol=1e-7)  # type: ignore[arg-type]
    assert isinstance(other.run(values[:, 0], generator(seed)), float)


def test_blocks_of_pairs_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inca.mechanisms.cordp._BLOCK", 3 * 30)  # three rows at a time
    mechanism = CorDP(REQUIREMENTS)
    mechanism.noise_levels = NoiseLevels(independent=0.0, cancelling=1.0)
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
    one = Gopa(REQUIREMENTS, late_leavers=1, factor=2.0, views=100)
    assert [one._late(leavers) for leavers in (0, 1, 6)] == [0, 1, 1]
    assert with_factor(REQUIREMENTS, late=0.0).expected_error(0.2).budget.cancelling == 0.0
    assert gopa().expected_error(0.0).budget.cancelling == 0.0


@pytest.mark.parametrize("make", [gopa, CorDP])
def test_without_anyone_there_is_no_result(make: Callable[[Requirements], Pairwise]) -> None:
    assert make(REQUIREMENTS).run(np.zeros(30), generator(1), 1.0) is None
    assert make(REQUIREMENTS).expected_error(1.0).mse == math.inf


@pytest.mark.parametrize("make", [gopa, CorDP])
def test_one_honest_party_has_local_dp(make: Callable[[Requirements], Pairwise]) -> None:
    requirements = Requirements(parties=5, epsilon=0.5, delta=1e-5, colluding=0.8, messages=2, dropout=0.0)
    mechanism = make(requirements)
    assert (mechanism.factor, mechanism.noise_levels.cancelling) == (1.0, 0.0)
    assert mechanism.expected_error(0.0).mse == pytest.approx(LocalDP(requirements).expected_error(0.0).mse)


def test_two_parties() -> None:
    requirements = Requirements(parties=2, epsilon=0.5, delta=1e-5, colluding=0.0, dropout=0.0)
    for mechanism in (Gopa(requirements), CorDP(requirements)):
        assert (mechanism.exchanges, mechanism.messages, mechanism.factor) == (1, 1.0, 1.01)
        assert complete_loss(2, mechanism.noise_levels) <= requirements.mu * (1 + 1e-9)
        assert isinstance(mechanism.run([0.0, 1.0], generator(1), 0.5), float)


def test_too_few_exchanges_leave_local_dp() -> None:
    # With one pick each, someone picks a colluder and is picked by nobody far more often than once in 1e6.
    requirements = Requirements(parties=20, epsilon=0.5, delta=1e-5, colluding=0.2, dropout=0.0)
    mechanism = gopa(requirements, exchanges=1)
    assert (mechanism.factor, mechanism.noise_levels.cancelling) == (16.0, 0.0)
    assert mechanism.expected_error(0.0).mse == pytest.approx(LocalDP(requirements).expected_error(0.0).mse)


def test_a_group_too_rare_to_be_sampled_is_reckoned_with() -> None:
    # Someone is isolated in 4e-5 of all graphs: not to be seen in 100 views, and more than the requirements allow.
    requirements = Requirements(parties=60, epsilon=0.5, delta=1e-5, colluding=0.1, messages=4, dropout=0.0)
    assert requirements.failure < cut_off_probability(60, 4, 54, 1) < 1e-2 / 100
    assert gopa(requirements).noise_levels.cancelling == 0.0


def test_messages_and_promise() -> None:
    assert (gopa().messages, CorDP(REQUIREMENTS).messages) == (10.0, 29.0)
    for mechanism in (gopa(), CorDP(REQUIREMENTS)):
        assert not mechanism.weaker
        assert "topology" in mechanism.promise
    noise = CorDP(REQUIREMENTS).expected_error(0.2).budget.noise
    assert CorDP(REQUIREMENTS).lower_bound(0.2) == noise < CorDP(REQUIREMENTS).expected_error(0.2).mse


EAVESDROPPED = Requirements(parties=30, epsilon=0.7, delta=1e-4, eavesdropped=0.1, colluding=0.0, dropout=0.0)
LARGE = Requirements(parties=20_000, epsilon=0.7, delta=1e-4, colluding=0.0, dropout=0.0)
HALVES = Requirements(parties=10, epsilon=0.7, delta=1e-4, colluding=0.5, dropout=0.5)
QUIET, LOUD = NoiseLevels(independent=0.0, cancelling=1.0), NoiseLevels(independent=1.0, cancelling=1.0)
PAIR = 1 - np.eye(2)
NO_CHANNELS = "eavesdropped must be 0, as pairwise noise needs private channels, got 0.1"
NO_GRAPH = "adjacency must be a symmetric (n, n) matrix with nothing on its diagonal, got "
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Gopa(REQUIREMENTS, exchanges=30), "exchanges must be from 1 to 29, got 30"),
    (lambda: Gopa(REQUIREMENTS, exchanges=0), "exchanges must be from 1 to 29, got 0"),
    (lambda: Gopa(REQUIREMENTS, late=1.5), "late must be from 0 to 1, got 1.5"),
    (lambda: Gopa(REQUIREMENTS, late_leavers=-1), "late_leavers must be at least 0, got -1"),
    (lambda: Gopa(REQUIREMENTS, views=10), "views must be at least 100, got 10"),
    (lambda: Gopa(REQUIREMENTS, factor=1.0), "factor must be above 1, got 1.0"),
    (lambda: CorDP(REQUIREMENTS, factor=0.5), "factor must be above 1, got 0.5"),
    (
        lambda: Gopa(REQUIREMENTS, factor=1.05, views=100),
        "factor must be larger, as no cancelling noise makes up for so little, got 1.05",
    ),
    (lambda: Gopa(REQUIREMENTS, noise_levels=QUIET), "sigma_independent must be above 0, got 0.0"),
    (lambda: CorDP(REQUIREMENTS, noise_levels=QUIET), "sigma_independent must be above 0, got 0.0"),
    (lambda: Gopa(EAVESDROPPED), NO_CHANNELS),
    (lambda: CorDP(EAVESDROPPED), NO_CHANNELS),
    (
        lambda: CorDP(LARGE).run(np.zeros(20_000), generator(1)),
        "n^2 d must be at most 2e+08 (all pairs share d numbers), got 400000000",
    ),
    (lambda: gopa().expected_error(1.5), "dropout must be from 0 to 1, got 1.5"),
    (
        lambda: gopa().run(np.zeros(3), generator(1)),
        "the number of rows of values must be ",
    ),
    (lambda: paper_factor(HALVES), "colluding + dropout must be fractions that leave an honest party present"),
    (lambda: losses(np.ones((2, 3)), [True] * 2, LOUD), NO_GRAPH + "(2, 3)"),
    (lambda: losses(np.eye(2), [True] * 2, LOUD), NO_GRAPH + "(2, 2)"),
    (lambda: losses(PAIR, [True], LOUD), "honest must be 2 flags, one per party, got [True]"),
    (lambda: losses(PAIR, [True] * 2, QUIET), "sigma_independent must be above 0, got 0.0"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)
