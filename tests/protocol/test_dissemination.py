"""Tests of inca.protocol.dissemination; the statistical ones have fixed seeds and false alarms of at most 1e-6."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from inca import Execution, InvalidInput, Outcome, Presence, RandomReceivers, early_injection, incremental_injection
from inca.protocol import dissemination as d

RARE = 1e-6
seeds = st.integers(0, 2**32)


def some_outcome(n: int, seed: int, dimensions: int | None = None, unpublished: int = 0) -> Outcome:
    """Random messages of various weights, some of which are not published."""
    rng = np.random.default_rng(seed)
    published = rng.permutation(n) >= unpublished
    execution = Execution(RandomReceivers(n, rounds=3, seed=seed), incremental_injection(3), published=published)
    return Outcome(execution, rng.standard_normal(n if dimensions is None else (n, dimensions)))


def zero_weights(n: int) -> Outcome:
    """Everybody sends everything on, so whoever receives nothing has a message of weight 0."""
    execution = Execution(RandomReceivers(n, rounds=1, seed=1, share=1.0), early_injection(1))
    assert (execution.message_weights == 0.0).any()
    return Outcome(execution, np.arange(n, dtype=float))


def gossip(outcome: Outcome, accuracy: float = 1e-9, **more: Any) -> d.Dissemination:
    return d.gossip_average(outcome, accuracy, np.random.default_rng(1), **more)


def epidemic(outcome: Outcome, rounds: int = 20, **more: Any) -> d.Dissemination:
    return d.epidemic(outcome, rounds, np.random.default_rng(1), **more)


def failed_epidemics(n: int, rounds: int, seed: int, trials: int, loss: float = 0.0, crash: float = 0.0) -> int:
    """Return after how many of the epidemics some survivor lacks some message, or nobody survives."""
    rng = np.random.default_rng(seed)
    return sum(not d._held_by_all(*d._spread(n, rounds, rng, loss, crash)[:2]).all() for _ in range(trials))


any_method = pytest.mark.parametrize("method", [d.exact, gossip, epidemic])


@given(seeds, st.integers(2, 40), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_round_conserves_sum_and_weight(seed: int, m: int, columns: int, cycle: bool) -> None:
    rng = np.random.default_rng(seed)
    state = rng.standard_normal((m, columns + 1)) * 10.0 ** rng.integers(-3, 4, size=columns + 1)
    before, size = state.sum(axis=0), np.abs(state).sum(axis=0)
    for _ in range(10):
        near = d._neighbours(networkx.cycle_graph(m), m) if cycle and m > 2 else None
        d._gossip_round(state, rng, near)
    assert (np.abs(state.sum(axis=0) - before) <= 1e-12 * size).all()


@pytest.mark.parametrize("dimensions", [None, 1, 3])
def test_averaging_reaches_the_accuracy(dimensions: int | None) -> None:
    outcome = some_outcome(50, 3, dimensions, unpublished=7)
    coarse, fine = gossip(outcome, 1e-2), gossip(outcome, 1e-11)
    assert outcome.estimate is not None
    for result, accuracy in ((coarse, 1e-2), (fine, 1e-11)):
        assert result.estimates.shape == ((43,) if dimensions is None else (43, dimensions))
        off = np.linalg.norm(result.estimates.reshape(43, -1) - outcome.estimate, axis=1)
        assert result.deviation == pytest.approx(off.max()) and off.max() <= accuracy
        assert result.messages == result.rounds * 86
        assert result.survivors.tolist() == np.flatnonzero(outcome.execution.published).tolist()
        assert result.agreed and result.outcome is outcome
    assert 0 < coarse.rounds < fine.rounds


def test_zero_weights_are_infinitely_far_but_not_for_ever() -> None:
    outcome = zero_weights(30)
    huge = gossip(outcome, 1e300)  # satisfied as soon as everybody has any weight at all
    assert huge.rounds > 0 and np.isfinite(huge.estimates).all()
    deviation = gossip(outcome).deviation
    assert deviation is not None and deviation <= 1e-9


def test_gossip_takes_a_graph() -> None:
    outcome = some_outcome(20, 1)
    slow, fast = gossip(outcome, graph=networkx.path_graph(20)), gossip(outcome)
    assert slow.deviation is not None and slow.deviation <= 1e-9 and slow.rounds > 3 * fast.rounds


@given(seeds, st.integers(2, 140), st.floats(0, 1), st.floats(0, 0.3))
@settings(max_examples=30, deadline=None)
def test_a_push_pull_round_against_sets(seed: int, m: int, arrive: float, gone: float) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.random((m, m)) < 0.1
    words = np.zeros((m, 8 * (-(-m // 64))), np.uint8)
    words[:, : -(-m // 8)] = np.packbits(bits, axis=1, bitorder="little")
    known = words.view("<u8").astype(np.uint64)
    fresh = known.copy()
    contacts, arrives = d._random_others(np.arange(m), rng), rng.random((m, 2)) < arrive
    there = rng.random(m) >= gone
    before = [set(np.flatnonzero(row)) for row in bits]
    after = [set(row) for row in before]
    for i, j in enumerate(contacts):
        assert i != j and 0 <= j < m
        after[j] |= before[i] if arrives[i, 0] else set()
        after[i] |= before[j] if arrives[i, 1] else set()
    d._push_pull(known, fresh, contacts, arrives)
    holders = [after[i] for i in np.flatnonzero(there)]
    common = set.intersection(*holders) if holders else set()
    assert set(np.flatnonzero(d._held_by_all(fresh, there))) == common
    for i in range(m):
        assert set(np.flatnonzero(d._held_by_all(fresh, np.arange(m) == i))) == after[i]


@given(seeds, st.integers(1, 90), st.integers(1, 8), st.sampled_from([None, 2]), st.sampled_from([0.0, 0.1, 0.5]))
@settings(max_examples=60, deadline=None)
def test_epidemic_tells_what_was_lost(seed: int, m: int, rounds: int, dimensions: int | None, crash: float) -> None:
    outcome = some_outcome(m + 3, seed, dimensions, unpublished=3)
    ids = np.flatnonzero(outcome.execution.published)
    result = d.epidemic(outcome, rounds, np.random.default_rng(seed), loss=0.2, crash=crash)
    known, there, messages = d._spread(m, rounds, np.random.default_rng(seed), 0.2, crash)
    held = [ids[d._held_by_all(known, np.arange(m) == i)] for i in np.flatnonzero(there)]
    common = set.intersection(*(set(h) for h in held)) if held else set()
    assert set(np.flatnonzero(result.outcome.execution.published)) == common
    assert result.survivors.tolist() == ids[there].tolist() and (result.rounds, result.messages) == (
        rounds,
        messages,
    )
    assert result.agreed == all(set(h) == common for h in held)
    own = [outcome.messages[h].sum(axis=0) / outcome.weights[h].sum() for h in held]
    shape = (len(held),) if dimensions is None else (len(held), dimensions)
    assert np.allclose(result.estimates, np.reshape(own, shape), rtol=1e-9, atol=1e-9)
    if not common:
        assert result.outcome.estimate is None and result.deviation is None
    elif result.agreed:
        assert result.deviation == 0.0
    if crash == 0.0:
        assert messages == (2 * m * rounds if m > 1 else 0)


def test_epidemic_without_survivors() -> None:
    result = epidemic(some_outcome(20, 1, 3), rounds=2, crash=1.0)
    assert result.estimates.shape == (0, 3) and result.survivors.size == 0 and result.messages == 0
    assert result.outcome.present == 0 and result.outcome.estimate is None and result.deviation is None


def test_epidemic_without_arrivals() -> None:
    outcome = zero_weights(20)
    result = epidemic(outcome, loss=1.0)
    assert result.outcome.estimate is None and not result.agreed and result.messages == 20 * 2 * 20
    assert (np.isnan(result.estimates) == (outcome.weights == 0.0)).all()


def test_an_undefined_estimate_is_infinitely_far() -> None:
    result = epidemic(zero_weights(4), rounds=30)
    broken = d.Dissemination("epidemic", result.outcome, np.array([1.0, np.nan]), np.arange(2), 1, 1, False)
    assert result.deviation == 0.0 and broken.deviation == math.inf


@pytest.mark.parametrize(("loss", "crash"), [pytest.param(0.3, 0.0, marks=pytest.mark.slow), (0.5, 0.1)])
def test_two_parties_by_hand(loss: float, crash: float) -> None:
    """Both call each other, so each message has two ways to go in a round; one crash loses a message."""
    exact = 1 - (1 - crash) ** 2 * (1 - loss**2) ** 2
    failed = failed_epidemics(2, 1, seed=2, trials=4000, loss=loss, crash=crash)
    assert min(binom.cdf(failed, 4000, exact), binom.sf(failed - 1, 4000, exact)) > RARE / 2


def dense_failures(n: int, rounds: int, loss: float) -> list[float]:
    """The pull-only chain as a full transition matrix."""
    step = np.zeros((n, n))
    for i in range(1, n + 1):
        learns, misses = (1 - loss) * i / (n - 1), (n - 1 - i + loss * i) / (n - 1)  # each exact on its own
        for k in range(n - i + 1):
            step[i - 1, i + k - 1] = math.comb(n - i, k) * learns**k * misses ** (n - i - k)
    probabilities, failures = np.eye(n)[0], []
    for _ in range(rounds):
        probabilities = probabilities @ step
        failures.append(float(probabilities[:-1].sum()))
    return failures


@given(st.integers(2, 30), st.sampled_from([0.0, 1e-12, 0.01, 0.3, 0.9]))
@settings(max_examples=40, deadline=None)
def test_epidemic_loss_against_dense_matrices(n: int, loss: float) -> None:
    for r, failure in enumerate(dense_failures(n, 40, loss), start=1):
        bound = d.epidemic_loss(n, r, loss=loss)
        # The bound errs upwards; the reference sums transitions that are exact to 1e-13 or so.
        assert min(1.0, n * failure) * (1 - 1e-11) <= bound <= n * failure * (1 + 1e-9) + 1e-33


def test_epidemic_loss_against_a_larger_matrix() -> None:
    failures = dense_failures(400, 60, 0.2)
    for r in (10, 20, 40, 60):
        assert d.epidemic_loss(400, r, loss=0.2) == pytest.approx(min(1.0, 400 * failures[r - 1]), rel=1e-9)


@given(st.integers(1, 300), st.integers(1, 60), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_epidemic_loss_is_monotone(n: int, rounds: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    bound = d.epidemic_loss(n, rounds, loss=low)
    assert 0.0 <= d.epidemic_loss(n, rounds + 1, loss=low) <= bound <= 1.0
    assert bound <= d.epidemic_loss(n, rounds, loss=high) * (1 + 1e-9) + 1e-30


@given(st.integers(2, 300), st.floats(1e-15, 1), st.floats(0, 0.9))
@settings(max_examples=40, deadline=None)
def test_epidemic_rounds_are_the_least(n: int, failure: float, loss: float) -> None:
    rounds = d.epidemic_rounds(n, failure, loss=loss)
    assert d.epidemic_loss(n, rounds, loss=loss) <= failure
    assert rounds == 1 or d.epidemic_loss(n, rounds - 1, loss=loss) > failure


@pytest.mark.parametrize(
    ("n", "rounds", "loss"),
    [
        pytest.param(2, 4, 0.3, marks=pytest.mark.slow),
        (10, 10, 0.0),
        pytest.param(40, 18, 0.2, marks=pytest.mark.slow),
        pytest.param(5, 8, 0.1, marks=pytest.mark.slow),
        pytest.param(70, 14, 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_bound_holds_in_simulation(n: int, rounds: int, loss: float) -> None:
    bound = d.epidemic_loss(n, rounds, loss=loss)
    assert bound < 0.5  # or the test says little
    failed = failed_epidemics(n, rounds, seed=n, trials=2000, loss=loss)
    assert binom.sf(failed - 1, 2000, bound) > RARE


def test_many_rounds_and_hopeless_losses_end() -> None:
    assert d.epidemic_loss(50, 10**9) < 1e-30
    assert d.epidemic_loss(50, 5, loss=5e-324) == pytest.approx(d.epidemic_loss(50, 5))
    assert d.epidemic_loss(50, 10, loss=1.0) == 1.0 and d.epidemic_loss(1, 1, loss=1.0) == 0.0
    assert d.epidemic_rounds(1, 0.1, loss=1.0) == 0


@any_method
@pytest.mark.parametrize("dimensions", [None, 2])
def test_nothing_published(method: Callable[..., d.Dissemination], dimensions: int | None) -> None:
    gone = Presence.explicit([[1, 1, 1], [0, 0, 0]])
    execution = Execution(RandomReceivers(3, rounds=1, seed=1), incremental_injection(1), gone)
    result = method(Outcome(execution, np.ones(3 if dimensions is None else (3, dimensions))))
    assert result.estimates.shape == ((0,) if dimensions is None else (0, dimensions))
    assert result.deviation is None and result.outcome.estimate is None
    assert result.survivors.size == result.messages == 0


@any_method
def test_messages_without_weight_have_no_estimate(method: Callable[..., d.Dissemination]) -> None:
    outcome = zero_weights(30)
    weightless = Outcome(outcome.execution.without_finals(outcome.weights > 0.0), outcome.messages)
    result = method(weightless)
    assert weightless.present > 1 and result.deviation is None and result.outcome.estimate is None
    assert np.isnan(result.estimates).all()  # none at all, but in an epidemic, whose survivors hold messages
    assert result.estimates.size == result.survivors.size == (weightless.present if method is epidemic else 0)


@any_method
def test_a_single_party_knows(method: Callable[..., d.Dissemination]) -> None:
    result = method(some_outcome(8, 1, unpublished=7))
    assert result.deviation == 0.0 and result.messages == 0 and result.agreed
    assert result.rounds == (20 if method is epidemic else 0)


def test_exact_tells_everyone() -> None:
    outcome = some_outcome(9, 1, 2, unpublished=2)
    result = d.exact(outcome)
    assert (result.rounds, result.messages, result.deviation) == (0, 42, 0.0)
    assert result.estimates.shape == (7, 2)


refusals: dict[str, tuple[str, Callable[[Outcome, np.random.Generator], object]]] = {
    "gossip accuracy 0": ("accuracy must be above 0, got 0", lambda o, g: d.gossip_average(o, 0, g)),
    "gossip accuracy NaN": ("accuracy must be a finite number, got nan", lambda o, g: d.gossip_average(o, math.nan, g)),
    "gossip unreached": (
        r"max_rounds must be larger, as gossip is still 1\.37666 off and accuracy is 1e-09, got 2",
        lambda o, g: d.gossip_average(o, 1e-9, g, max_rounds=2),
    ),
    "max_rounds 0": ("max_rounds must be at least 1, got 0", lambda o, g: d.gossip_average(o, 1e-9, g, max_rounds=0)),
    "no rng": (r"rng must be a numpy\.random\.Generator, got 1", lambda o, g: d.gossip_average(o, 1.0, 1)),  # type: ignore[arg-type]
    "size of graph": (
        "the number of nodes of graph must be 30, one per party, got 4",
        lambda o, g: d.gossip_average(o, 1, g, graph=networkx.path_graph(4)),
    ),
    "parts of graph": (
        "the graph must be connected, got 30 components",
        lambda o, g: d.gossip_average(o, 1, g, graph=networkx.empty_graph(30)),
    ),
    "epidemic rounds 0": ("rounds must be at least 1, got 0", lambda o, g: d.epidemic(o, 0, g)),
    "epidemic loss": (r"loss must be from 0 to 1, got 1\.5", lambda o, g: d.epidemic(o, 1, g, loss=1.5)),
    "epidemic crash": (r"crash must be from 0 to 1, got -0\.1", lambda o, g: d.epidemic(o, 1, g, crash=-0.1)),
    "epidemic rng": (r"rng must be a numpy\.random\.Generator, got None", lambda o, g: d.epidemic(o, 1, None)),  # type: ignore[arg-type]
    "too many": (
        r"the number of final messages must be at most 50000 \(for more, epidemic_loss gives a bound "
        r"without simulation\), got 50001",
        lambda o, g: d.epidemic(some_outcome(50001, 1), 1, g),
    ),
    "bound rounds 0": ("rounds must be from 1 to 2147483648, got 0", lambda o, g: d.epidemic_loss(5, 0)),
    "bound loss": (
        "loss must be a finite number, from 0 to 1, got nan",
        lambda o, g: d.epidemic_loss(5, 1, loss=math.nan),
    ),
    "bound parties": ("parties must be at least 1, got 0", lambda o, g: d.epidemic_loss(0, 1)),
    "failure": ("failure must be from 1e-20 to 1, got 0", lambda o, g: d.epidemic_rounds(5, 0)),
    "hopeless": (
        r"loss must be small enough for a failure of 0\.1 within 100,000 rounds, got 1\.0",
        lambda o, g: d.epidemic_rounds(5, 0.1, loss=1.0),
    ),
}


@pytest.mark.parametrize("case", refusals)
def test_bad_input_is_refused(case: str) -> None:
    sentence, call = refusals[case]
    with pytest.raises(InvalidInput, match=sentence):
        call(some_outcome(30, 1), np.random.default_rng(1))
