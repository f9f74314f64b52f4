"""The fast method by itself: its matrix, and how its work is cut into pieces."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator, seeds
from helpers.views import adversary_of, incremental_ones, plain_system
from inca.errors import SingularView
from inca.privacy import _state_space
from inca.privacy._recursion import Recursion

VIEW = inca.View(inca.Execution(inca.RandomReceivers(6, 3, seed=1), inca.incremental_injection(3)))


@settings(max_examples=20)
@given(st.integers(3, 40), st.integers(1, 6), seeds)
def test_cutting_the_work_into_ranges_changes_nothing(n: int, rounds: int, seed: int) -> None:
    rng = generator(seed)
    presence = inca.Presence.markov(n, rounds, 0.2, 0.5, rng)
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=seed), inca.incremental_injection(rounds), presence)
    view = inca.View(execution, inca.Adversary.random(n, rounds, rng, colluding=0.3, eavesdropped=0.2))
    at_once, _ = _state_space.information(view, 7.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_state_space, "_MIN_ROWS_TO_CUT", 1)
        patch.setattr(_state_space, "_MIN_RANGE_ROWS", 1 + seed % 7)
        in_ranges, _ = _state_space.information(view, 7.0)
    np.testing.assert_allclose(in_ranges, at_once, rtol=1e-12)


@given(executions(largest=8), seeds, st.floats(0.1, 20), st.sampled_from([0.1, 0.5, 2.0]))
def test_messages_observed_one_by_one_tell_what_they_tell_at_once(
    execution: inca.Execution, seed: int, ratio: float, few: float
) -> None:
    """None, some and all of them are observed one by one."""
    view = inca.View(incremental_ones(execution), adversary_of(execution, seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_state_space, "_FEW", 0.0)
        at_once, its_error = _state_space.information(view, ratio, topup=0.3, matrix=True)
        patch.setattr(_state_space, "_FEW", few)
        one_by_one, error = _state_space.information(view, ratio, topup=0.3, matrix=True)
    np.testing.assert_allclose(one_by_one, at_once, rtol=1e-9, atol=1e3 * float(its_error))
    assert error == pytest.approx(its_error, rel=1e-3)


def test_a_large_view_observes_its_first_messages_one_by_one_and_then_all_of_a_round_at_once() -> None:
    execution = inca.Execution(inca.RandomReceivers(300, 8, seed=1), inca.incremental_injection(8))
    view = inca.View(execution, inca.Adversary(range(30)))
    with ThreadPoolExecutor(2) as pool:
        worker = _state_space._Filter(Recursion(view, 5.0, 0.0), pool)
        sparse = []
        for t in range(8):
            worker.observe(t)
            worker.advance(t + 1)
            sparse.append(worker.sparse)
    assert sparse[:2] == [True, True] and not sparse[-1]


def test_a_message_without_variance_is_refused_one_by_one_as_well() -> None:
    with ThreadPoolExecutor(1) as pool:
        worker = _state_space._Filter(Recursion(VIEW, 1.0, 0.0), pool)
        worker.states[2] = worker.states[:, 2] = worker.cross[:, 2] = 0.0
        with pytest.raises(SingularView):
            worker._observe_one_by_one(np.array([2]), np.zeros(1))


@pytest.mark.parametrize(("count", "cores"), [(1, 2), (399, 2), (400, 2), (1000, 1), (5000, 2), (5000, 16)])
def test_work_is_cut_into_ranges_only_where_that_pays(count: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is worked on once; no piece is tiny, and there are no more than sixteen for each core."""
    monkeypatch.setattr(_state_space, "available_cores", lambda: cores)
    ranges: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as pool:
        worker = _state_space._Filter(Recursion(VIEW, 1.0, 0.0), pool)
        worker._in_ranges(count, lambda lo, hi: ranges.append((lo, hi)))
    pieces = sorted(ranges)
    assert [row for lo, hi in pieces for row in range(lo, hi)] == list(range(count))
    if count < 400:
        assert pieces == [(0, count)]
    else:
        assert min(hi - lo for lo, hi in pieces[:-1]) >= 64 and 2 <= len(pieces) <= 16 * cores


@settings(max_examples=15)
@given(executions(largest=5), seeds, st.floats(0.1, 20))
def test_the_matrix_of_the_state_space_is_that_of_the_definition(
    execution: inca.Execution, seed: int, ratio: float
) -> None:
    """B^T Sigma^+ B with Sigma = B B^T + ratio^2 A A^T, from what the plain protocol holds."""
    view = inca.View(incremental_ones(execution), adversary_of(execution, seed))
    b, a = plain_system(view)
    assume(len(b))
    expected = b.T @ np.linalg.pinv(b @ b.T + ratio**2 * a @ a.T, rcond=1e-13, hermitian=True) @ b
    matrix, _ = _state_space.information(view, ratio, matrix=True)
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    squares, _ = _state_space.information(view, ratio)
    np.testing.assert_allclose(np.diagonal(matrix), squares, rtol=1e-9, atol=1e-12)
