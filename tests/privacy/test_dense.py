"""The plain method against exact fractions, and its factorisation against what it promises of rows."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

import inca
from helpers import reference
from helpers.exact_losses import rational
from helpers.executions import intended, present_flags
from helpers.strategies import generator, seeds
from inca._base.types import Array
from inca.privacy._dense import factor, information, information_matrix


def small_view(seed: int, colluding: int = 1) -> inca.View:
    """A view of four parties and two rounds, some of them absent, with numbers that fractions take over exactly."""
    rng = generator(seed)
    present = rng.random((3, 4)) < 0.8
    present[0] = True
    schedule = inca.RandomReceivers(4, 2, seed=seed % 1000)
    execution = inca.Execution(schedule, inca.incremental_injection(2, quiet=1), inca.Presence.explicit(present))
    taps = [(int(rng.integers(3)), int(rng.integers(4)))]
    return inca.View(execution, inca.Adversary(rng.choice(4, colluding, replace=False).tolist(), taps))


def exact_squares(view: inca.View, own: Fraction, shared: Fraction) -> list[Fraction]:
    """mu^2 for unit sensitivity by elimination in fractions."""
    execution = view.execution
    weights = [[[Fraction(x) for x in row] for row in matrix] for matrix in intended(execution)]
    c = [Fraction(x) for x in execution.injection.value.tolist()]
    z = [[Fraction(x) for x in row] for row in execution.injection.noise.tolist()]
    seen = [(int(t), int(i)) for t, i in view.rows]
    return reference.losses(weights, present_flags(execution), c, z, seen, view.honest.tolist(), own**2, shared**2)


@settings(max_examples=25)
@given(seeds, st.sampled_from([(1, 4), (3, 1), (2, 50)]))
def test_squares_are_those_of_exact_fractions_up_to_the_error_that_is_told(seed: int, levels: tuple[int, int]) -> None:
    view = small_view(seed)
    exact = [float(square) for square in exact_squares(view, *map(Fraction, levels))]
    squares, errors = information(view, inca.NoiseLevels(independent=levels[0], cancelling=levels[1]))
    assert (errors < 1e-11).all() and (errors[squares > 0.0] > 0.0).all()
    assert (np.abs(squares - exact) <= errors * squares).all()


@settings(max_examples=25)
@given(seeds)
def test_the_matrix_is_that_of_all_pairs(seed: int) -> None:
    view = small_view(seed, colluding=0)
    b, a = view.value, view.noise
    sigma = 4.0 * b @ b.T + 9.0 * a @ a.T
    levels = inca.NoiseLevels(independent=2.0, cancelling=3.0)
    matrix, error = information_matrix(view, levels)
    np.testing.assert_allclose(matrix, b.T @ np.linalg.pinv(sigma, rcond=1e-12) @ b, rtol=1e-8, atol=1e-10)
    squares, errors = information(view, levels)
    np.testing.assert_allclose(np.diagonal(matrix), squares, rtol=1e-9)
    assert 4.0 * (errors * squares).max() <= error < 1e-11  # in units of 1 over the variance of the independent noise


@settings(max_examples=40)
@given(seeds)
def test_without_independent_noise_a_value_is_given_away_exactly_if_no_noise_can_imitate_it(seed: int) -> None:
    view = small_view(seed)
    b, a = view.value, view.noise
    squares, _ = information(view, inca.NoiseLevels(independent=0.0, cancelling=2.0))
    for place in range(view.honest.size):
        imitation = np.linalg.lstsq(2.0 * a, b[:, place], rcond=1e-10)[0]
        gap = float(np.linalg.norm(2.0 * a @ imitation - b[:, place]))
        if gap > 1e-9:
            assert np.isinf(squares[place])
        else:
            assert squares[place] == pytest.approx(float(imitation @ imitation), rel=1e-8, abs=1e-12)


def test_with_independent_noise_nothing_is_given_away_however_many_rows_depend_on_others() -> None:
    """The same message twice: the second row moves as the first, and its noise, too."""
    for seed in range(20):
        squares, _ = information(small_view(seed), inca.NoiseLevels(independent=1.0, cancelling=0.0))
        assert np.isfinite(squares).all() and (squares <= 1.0 + 1e-9).all()  # Local DP at worst


def some_rows(seed: int) -> tuple[Array, int]:
    """Rows of very different lengths of which some depend on others, and their rank."""
    rng = generator(seed)
    rank, more, width = int(rng.integers(1, 6)), int(rng.integers(0, 4)), int(rng.integers(6, 12))
    rows = rng.normal(size=(rank, width))
    rows = np.vstack([rows, rng.integers(-3, 4, (more, rank)) @ rows])
    return rows[rng.permutation(len(rows))] * 10.0 ** rng.integers(-6, 7, len(rows))[:, np.newaxis], rank


@given(seeds)
def test_factored_rows_tell_the_rank_independent_rows_and_a_basis(seed: int) -> None:
    rows, rank = some_rows(seed)
    factored = factor(rows)
    assert factored.rank == rank == len(factored.kept) == factored.basis.shape[1]
    assert sorted(factored.order.tolist()) == list(range(len(rows)))
    kept = rows[factored.kept]
    unit = kept / np.linalg.norm(kept, axis=1)[:, np.newaxis]
    assert np.linalg.matrix_rank(unit) == rank
    np.testing.assert_allclose(factored.basis.T @ factored.basis, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose(unit @ factored.basis @ factored.basis.T, unit, atol=1e-10)
    np.testing.assert_allclose(factored.basis @ factored.r[:rank, :rank], unit.T, atol=1e-12)


@given(seeds)
def test_imitations_are_as_long_as_the_shortest_solution(seed: int) -> None:
    rows, _ = some_rows(seed)
    targets = rows @ generator(seed + 1).normal(size=(rows.shape[1], 3))
    lengths = np.linalg.norm(factor(rows).imitation(targets), axis=0)
    scale = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, np.newaxis]
    shortest = np.linalg.lstsq(rows / scale, targets / scale, rcond=1e-10)[0]
    np.testing.assert_allclose(lengths, np.linalg.norm(shortest, axis=0), rtol=1e-7)
    imitations = factor(rows).imitate(targets)
    np.testing.assert_array_equal(np.linalg.norm(imitations.coordinates, axis=0), lengths)
    np.testing.assert_allclose(imitations.squares, lengths**2, rtol=1e-14)


def test_rows_of_nothing_are_none_of_the_rank() -> None:
    factored = factor(np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]))
    assert factored.rank == 1 and factored.kept.tolist() == [1]
    assert factored.scale.ravel().tolist() == [1.0, 5.0]
    nothing = factor(np.zeros((2, 3)))
    assert nothing.rank == 0 and nothing.basis.shape == (3, 0)
    imitations = nothing.imitate(np.zeros((2, 4)))
    assert imitations.squares.tolist() == imitations.relative_errors.tolist() == 4 * [0.0]


def nearly(distance: float) -> Array:
    """Two rows that nearly depend on each other."""
    return np.array([[1.0, 0.0, 0.0, 0.0], [1.0, distance, 0.0, 0.0]])


def test_rows_may_come_near_to_dependence_until_it_is_refused() -> None:
    """What is between two rows is known to its own last digit, if they have it of noise of its own."""
    for distance in (1.0, 1e-3, 1e-8):
        factored = factor(nearly(distance))
        assert factored.rank == 2
        for values, exact in (([1.0, 1.0], 1.0), ([1.0, 2.0], 1.0 + distance**-2)):
            imitations = factored.imitate(np.array(values)[:, np.newaxis])
            error = imitations.relative_errors[0]
            assert 2.0**-52 < error < 1e-11 and abs(imitations.squares[0] - exact) < error * exact
    for distance in (1e-12, 1e-14):
        with pytest.raises(inca.InvalidInput, match="so nearly dependent that double precision does not tell"):
            factor(nearly(distance))
    assert factor(nearly(1e-17)).rank == 1 and factor(nearly(0.0)).rank == 1  # clearly dependent


def test_the_error_is_no_less_than_what_the_last_digit_of_a_value_makes() -> None:
    """Rows that are 1e-10 apart: what a value is off by counts 1e10 times, squared where nothing is there."""
    factored, unit = factor(nearly(1e-10)), 2.0**-52 / 1e-10
    nothing, something = (factored.imitate(np.array([[1.0], [1.0 + k * 2.0**-52]])) for k in (0, 2**21))
    assert nothing.squares == pytest.approx(1.0) and nothing.relative_errors[0] > unit**2
    assert something.relative_errors[0] * something.squares[0] > 2 * 2**21 * unit**2


@pytest.mark.parametrize("exponent", [-8, -4, 0, 4, 8])
def test_noise_of_any_size_beside_another_loses_no_digits(exponent: int) -> None:
    """Masks that cancel from a sum leave what is tiny beside them, and drowns in the first solution."""
    ratio = 10.0**exponent
    rng = np.random.default_rng(8)
    values, masks = np.eye(6), rng.integers(-8, 9, (6, 9)).astype(float)
    masks[5] = -masks[:5].sum(axis=0)  # so that the sum of all rows has none of them
    imitations = factor(np.hstack([values, ratio * masks])).imitate(values)
    exact = exact_lengths(values, masks, ratio)
    assert (np.abs(imitations.squares - exact) <= imitations.relative_errors * exact).all()
    assert (imitations.relative_errors < 1e-11).all()


def exact_lengths(values: Array, masks: Array, ratio: float) -> Array:
    def whole(a: Array) -> fmpq_mat:
        return fmpq_mat([[rational(x) for x in row] for row in a.tolist()])

    b, a = whole(values), whole(ratio * masks)
    solved = (b * b.transpose() + a * a.transpose()).solve(b)
    squares = [sum((b[k, i] * solved[k, i] for k in range(b.nrows())), start=fmpq(0)) for i in range(b.ncols())]
    return np.array([int(x.p) / int(x.q) for x in squares])


@pytest.mark.parametrize(
    ("value", "gap", "given_away"),
    [
        (1.0, 0.0, False),
        (1.0, 5e-12, False),  # ten thousand times the rounding of three columns is 6.7e-12
        (1.0, 1e-11, True),
        (1e-2, 5e-12, False),
        (1e-2, 1e-11, True),
        (10.0, 5e-11, False),  # in proportion to how far a row moves, where that is far
        (10.0, 1e-10, True),
    ],
)
def test_what_is_rounding_and_what_gives_a_value_away(value: float, gap: float, given_away: bool) -> None:
    """Two messages with the same noise: if a value moves them differently, their difference tells it."""
    view: Any = SimpleNamespace(value=np.array([[value], [value + gap]]), noise=np.array([[1.0, 0.0], [1.0, 0.0]]))
    squares, _ = information(view, inca.NoiseLevels(independent=0.0, cancelling=1.0))
    assert np.isinf(squares[0]) == given_away
    if not given_away:
        assert squares[0] == pytest.approx(value**2)
