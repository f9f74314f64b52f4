"""Sensitivities of features, held against distances between records: none is larger, and some come near."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca._base.types import Array
from inca.learn.statistics.features import Bins, FeatureMap, Powers, Products, ScaledColumns, root_of_sums

LOWER, UPPER = np.array([-3.0, 0.0, 10.0, -1.0]), np.array([5.0, 0.5, 30.0, 0.0])


def largest_distance(features: Array) -> float:
    squares = (features**2).sum(axis=1)
    return math.sqrt(max(0.0, float((squares[:, np.newaxis] + squares - 2 * features @ features.T).max())))


def box(columns: int, rng: np.random.Generator) -> Array:
    """Corners of the box [-1, 1]^p and points inside of it."""
    corners = np.array(list(product([-1.0, 1.0], repeat=columns)))
    return np.vstack([corners, rng.uniform(-1, 1, (400, columns)), corners * rng.uniform(0, 1, corners.shape)])


# --- columns ----------------------------------------------------------------------------------------------------------


def test_the_ends_of_a_column_become_minus_1_and_1_and_its_middle_0() -> None:
    columns = ScaledColumns(LOWER, UPPER)
    assert columns.centre == pytest.approx([1.0, 0.25, 20.0, -0.5])
    assert columns.half == pytest.approx([4.0, 0.25, 10.0, 0.5])
    table = np.vstack([LOWER, UPPER, columns.centre, LOWER + 0.75 * (UPPER - LOWER)])
    expected = np.outer([-1.0, 1.0, 0.0, 0.5], np.ones(4))
    np.testing.assert_allclose(columns.unit(table), expected, atol=1e-15)


def test_no_record_leaves_the_box_whatever_it_holds() -> None:
    columns = ScaledColumns(LOWER, UPPER)
    outside = np.vstack([LOWER - 100.0, UPPER + 1e-9, UPPER * 1e6 + 1e6])
    np.testing.assert_array_equal(columns.unit(outside), np.outer([-1.0, 1.0, 1.0], np.ones(4)))
    for features in (Powers(LOWER, UPPER), Products(LOWER, UPPER)):
        everything = features(np.vstack([outside, LOWER, UPPER]))
        assert largest_distance(everything) <= features.diameter * (1 + 1e-12)
        assert np.linalg.norm(everything, axis=1).max() <= features.max_norm * (1 + 1e-12)


def test_columns_as_wide_as_doubles_allow_are_scaled_without_overflow() -> None:
    wide = ScaledColumns(np.array([-1.5e308]), np.array([1.5e308]))
    assert wide.half == pytest.approx([1.5e308]) and wide.centre == pytest.approx([0.0])


# --- powers and products ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_powers_are_u_and_weighted_squares_no_further_apart_than_u_alone(columns: int) -> None:
    powers = Powers(LOWER[:columns], UPPER[:columns])
    unit = box(columns, np.random.default_rng(columns))
    features = powers(powers.centre + powers.half * unit)
    np.testing.assert_allclose(features, np.hstack([unit, powers.weight * unit**2]), atol=1e-12)
    assert features.shape[1] == powers.size == 2 * columns
    assert powers.diameter == pytest.approx(2 * math.sqrt(columns))
    assert largest_distance(features) == pytest.approx(powers.diameter)  # attained at opposite corners
    assert np.linalg.norm(features, axis=1).max() == pytest.approx(powers.max_norm)


def test_the_weight_of_squares_is_the_largest_that_is_free() -> None:
    grid = np.linspace(-1, 1, 1001)[:, np.newaxis]
    powers = Powers(-np.ones(1), np.ones(1))
    assert largest_distance(powers(grid)) <= powers.diameter + 1e-9
    assert largest_distance(Powers(-np.ones(1), np.ones(1), powers.weight * 1.01)(grid)) > powers.diameter + 1e-3


@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_products_are_no_further_apart_than_their_diameter_and_corners_come_near(columns: int) -> None:
    products = Products(-np.ones(columns), np.ones(columns))
    features = products(box(columns, np.random.default_rng(columns)))
    assert features.shape[1] == products.size == columns + columns * (columns + 1) // 2
    assert 0.95 * products.diameter <= largest_distance(features) <= products.diameter * (1 + 1e-12)
    assert np.linalg.norm(features, axis=1).max() == pytest.approx(products.max_norm)


@pytest.mark.parametrize("columns", [2, 4])
def test_products_hold_the_matrix_of_second_moments_once(columns: int) -> None:
    products = Products(LOWER[:columns], UPPER[:columns])
    rng = np.random.default_rng(1)
    unit = rng.uniform(-1, 1, (30, columns))
    features = products(products.centre + products.half * unit)
    # The block has the Frobenius norm of u u^T, times the weight.
    frobenius = [np.linalg.norm(np.outer(row, row)) for row in unit]
    np.testing.assert_allclose(np.linalg.norm(features[:, columns:], axis=1), products.weight * np.array(frobenius))
    first, second = products.matrices(features.mean(axis=0))
    np.testing.assert_allclose(first, unit.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(second, np.mean([np.outer(row, row) for row in unit], axis=0), atol=1e-12)


@pytest.mark.parametrize("columns", [2, 5])
def test_the_noise_of_second_moments_follows_from_that_of_the_features(columns: int) -> None:
    """Each entry is a multiple of features; with independent noise of variance 0.7, squares of multiples add up."""
    products = Products(-np.ones(columns), np.ones(columns))
    responses = [products.matrices(feature)[1] for feature in np.eye(products.size)]
    expected = 0.7 * sum(response**2 for response in responses)
    np.testing.assert_allclose(products.var_products(0.7), expected)


@pytest.mark.parametrize("columns", [2, 3, 10])
def test_the_weight_of_products_is_best_for_means_half_way_to_the_end(columns: int) -> None:
    """The error of a variance, D^2 (1 / w^2 + 4 m^2), at m = 1/2; D = sqrt 2 w (p + 1 / (2 w^2)) for every w."""

    def error(weight: float) -> float:
        diameter = math.sqrt(2.0) * weight * (columns + 0.5 / weight**2)
        return diameter**2 * (weight**-2 + 1.0)

    products = Products(-np.ones(columns), np.ones(columns))
    assert error(products.weight) < min(error(0.99 * products.weight), error(1.01 * products.weight))
    assert products.diameter == pytest.approx(math.sqrt(2.0) * products.weight * (columns + 0.5 / products.weight**2))


# --- bins -------------------------------------------------------------------------------------------------------------


@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_the_diameter_of_bins_is_the_largest_distance_of_two_columns(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    strategy = np.tril(rng.normal(size=(count, count))) + 3 * np.eye(count)
    bins = Bins(np.arange(count - 1.0), strategy)
    columns = list(strategy.T)
    assert bins.size == count
    assert bins.diameter == pytest.approx(max(np.linalg.norm(a - b) for a, b in combinations(columns, 2)))
    assert bins.max_norm == pytest.approx(max(np.linalg.norm(column) for column in columns))
    inverse = np.linalg.inv(strategy)
    shares = rng.random(count)
    np.testing.assert_allclose(bins.shares(strategy @ shares), shares, atol=1e-9)
    np.testing.assert_allclose(bins.covariance, inverse @ inverse.T, atol=1e-9)


@pytest.mark.parametrize(("side", "on_edge"), [("left", [0, 1]), ("right", [1, 2])])
def test_a_number_on_an_edge_is_in_the_bin_on_its_left_unless_told_otherwise(side: str, on_edge: list[int]) -> None:
    strategy = np.array([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
    bins = Bins(np.array([1.0, 2.0]), strategy, side)  # type: ignore[arg-type]
    table = np.array([[0.5], [1.5], [2.5], [1.0], [2.0]])
    np.testing.assert_array_equal(bins(table), strategy.T[[0, 1, 2, *on_edge]])


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_the_root_of_sums_is_one_and_its_columns_stay_short(size: int) -> None:
    root = root_of_sums(size)
    np.testing.assert_allclose(root @ root, np.tri(size), atol=1e-12)
    np.testing.assert_array_equal(root, np.tril(root))
    assert (root**2).sum(axis=0).max() <= 1 + (1 + math.log(size)) / math.pi


def test_every_kind_of_features_is_a_feature_map() -> None:
    kinds: list[FeatureMap] = [Powers(LOWER, UPPER), Products(LOWER, UPPER), Bins(np.array([0.0]), np.eye(2))]
    for features in kinds:
        table = np.zeros((3, 4))
        assert features(table).shape == (3, features.size)
