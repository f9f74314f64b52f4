from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from inca import Interval, InvalidInput
from inca._base.types import Array
from inca.learn.averagers.base import RemoteRecords
from inca.learn.budget import ProtectionLevel
from inca.learn.statistics.features import Bins, FeatureMap, Powers, Products, root_of_sums
from inca.learn.statistics.records import Box, Records

UNIT = Interval(-1, 1)
units = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 1.0]))  # inside, and often at the ends
seeds = st.integers(0, 2**32 - 1)


def features_of(kind: str, columns: int) -> FeatureMap:
    lower, upper = -np.ones(columns), np.ones(columns)
    match kind:
        case "powers":
            return Powers(lower, upper)
        case "products":
            return Products(lower, upper)
        case "bins":
            return Bins(np.linspace(-1, 1, 9)[1:-1], np.eye(8))
        case _:
            return Bins(np.linspace(-1, 1, 9)[1:-1], root_of_sums(8))


kinds = st.sampled_from([("powers", 1), ("powers", 4), ("products", 2), ("products", 5), ("bins", 1), ("sums", 1)])


# --- how far apart features are -------------------------------------------------------------------------------------


@given(kinds, st.data())
def test_two_records_are_no_further_apart_than_the_diameter(kind: tuple[str, int], data: st.DataObject) -> None:
    features = features_of(*kind)
    pair = features(data.draw(arrays(float, (2, kind[1]), elements=units)))
    assert pair.shape == (2, features.size)
    assert np.linalg.norm(pair[0] - pair[1]) <= features.diameter * (1 + 1e-12)
    assert np.linalg.norm(pair, axis=1).max() <= features.max_norm * (1 + 1e-12)


@pytest.mark.parametrize(("kind", "columns"), [("powers", 1), ("powers", 3), ("products", 2), ("products", 3)])
def test_no_search_finds_records_further_apart_than_the_diameter(kind: str, columns: int) -> None:
    features, rng = features_of(kind, columns), np.random.default_rng(5)

    def closeness(pair: Array) -> float:
        first, second = features(pair.reshape(2, columns))
        return -float(np.linalg.norm(first - second))

    starts = rng.uniform(-1, 1, (40, 2 * columns))
    distances = [-float(minimize(closeness, start, bounds=[(-1, 1)] * (2 * columns)).fun) for start in starts]
    assert 0.95 * features.diameter <= max(distances) <= features.diameter * (1 + 1e-9)


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7])
def test_corners_of_the_box_come_near_the_diameter_of_products(columns: int) -> None:
    features = features_of("products", columns)
    corners = features(np.array(list(itertools.product([-1.0, 1.0], repeat=columns))))
    farthest = max(np.linalg.norm(corners - corner, axis=1).max() for corner in corners)
    assert 0.95 * features.diameter <= farthest <= features.diameter * (1 + 1e-12)


def test_no_larger_weight_of_squares_would_be_free() -> None:
    free = features_of("powers", 1)
    assert isinstance(free, Powers)
    table = np.linspace(-1, 1, 2001)[:, np.newaxis]
    heavier = Powers(free.lower, free.upper, weight=1.001 * free.weight)
    assert np.linalg.norm(free(table)[-1] - free(table), axis=1).max() <= 2.0 + 1e-12
    assert np.linalg.norm(heavier(table)[-1] - heavier(table), axis=1).max() > 2.0


@given(st.integers(2, 6), st.data())
def test_products_give_back_the_moments(columns: int, data: st.DataObject) -> None:
    table = data.draw(arrays(float, (7, columns), elements=units))
    features = features_of("products", columns)
    assert isinstance(features, Products)
    first, second = features.matrices(features(table).mean(axis=0))
    assert np.allclose(first, table.mean(axis=0)) and np.allclose(second, table.T @ table / 7)
    block = features(table)[:, columns:] / features.weight
    assert np.allclose(np.linalg.norm(block, axis=1), (table**2).sum(axis=1))  # the Frobenius norm of u u^T


@given(st.integers(1, 60), seeds)
def test_bins_give_back_the_shares_by_any_strategy(size: int, seed: int) -> None:
    table = np.random.default_rng(seed).uniform(-1, 1, (50, 1))
    edges = np.linspace(-1, 1, size + 2)[1:-1]
    expected = np.array([(table <= edge).mean() for edge in edges])
    for strategy in (np.eye(size + 1), root_of_sums(size + 1)):
        features = Bins(edges, strategy)
        shares = features.shares(features(table).mean(axis=0))
        assert np.allclose(np.cumsum(shares)[:-1], expected) and math.isclose(shares.sum(), 1.0)


@given(st.integers(1, 300))
def test_the_root_of_sums_is_one_with_short_columns(size: int) -> None:
    root = root_of_sums(size)
    assert np.allclose(root @ root, np.tri(size))
    assert (root**2).sum(axis=0).max() <= 1 + (1 + math.log(size)) / math.pi + 1e-12


# --- how far a party's sum moves ------------------------------------------------------------------------------------


@given(kinds, st.lists(st.integers(0, 4), min_size=2, max_size=5), st.sampled_from(["record", "party"]), st.data())
def test_a_neighbour_moves_one_sum_by_at_most_the_sensitivity(
    kind: tuple[str, int], sizes: list[int], level: ProtectionLevel, data: st.DataObject
) -> None:
    sizes[0] += 1
    held = [data.draw(arrays(float, (size, kind[1]), elements=units)) for size in sizes]
    records, features = Records.of(held, UNIT, level=level), features_of(*kind)
    party = data.draw(st.sampled_from([i for i, size in enumerate(sizes) if size]))
    replaced = slice(None) if level == "party" else data.draw(st.integers(0, sizes[party] - 1))
    other = [table.copy() for table in held]
    other[party][replaced] = data.draw(arrays(float, other[party][replaced].shape, elements=units))
    neighbour = Records.of(other, UNIT, level=level)
    moved = neighbour.sums(features, features.size) - records.sums(features, features.size)
    assert not np.delete(moved, party, axis=0).any()
    assert np.linalg.norm(moved) <= records.sensitivity(features.diameter) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("kind", ["powers", "bins", "sums"])
def test_the_sensitivity_is_attained_at_extremes(kind: str) -> None:
    features = features_of(kind, 1)
    low, high = (Records.of([[end] * 3, [0.0]], UNIT, level="party") for end in (-1.0, 1.0))
    moved = np.linalg.norm(high.sums(features, features.size) - low.sums(features, features.size))
    assert 0.8 * low.sensitivity(features.diameter) < moved <= low.sensitivity(features.diameter) * (1 + 1e-12)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), seeds)
def test_sums_are_those_of_each_party(sizes: list[int], seed: int) -> None:
    sizes[-1] += 1
    rng = np.random.default_rng(seed)
    records = Records.of([rng.uniform(-1, 1, (size, 3)) for size in sizes], UNIT)
    features = features_of("products", 3)
    sums = records.sums(features, features.size)
    for party, table in enumerate(map(np.asarray, records.tables)):
        assert np.allclose(sums[party], features(table).sum(axis=0) if len(table) else 0.0)
    assert records.total == sum(sizes) == len(records.everything())


def test_sums_of_more_records_than_fit_in_one_piece() -> None:
    rng = np.random.default_rng(2)
    records = Records.of([rng.uniform(-1, 1, size) for size in (70_000, 3, 0, 140_000, 1)], UNIT)
    features = features_of("powers", 1)
    expected = [features(np.asarray(table)).sum(axis=0) for table in records.tables]
    assert np.allclose(records.sums(features, 2), expected)


# --- records --------------------------------------------------------------------------------------------------------


def test_a_cap_leaves_out_the_later_records_and_bounds_what_a_party_moves() -> None:
    held = [[0.1, 0.2, 0.3], [0.4], []]
    capped = Records.of(held, UNIT, level="party", cap=2)
    assert np.ravel(np.asarray(capped.tables[0])).tolist() == [0.1, 0.2] and capped.sizes.tolist() == [2, 1, 0]
    assert capped.sensitivity(1.0) == 2.0 and Records.of(held, UNIT, level="party").sensitivity(1.0) == 3.0
    assert Records.of(held, UNIT).sensitivity(1.0) == 1.0


def test_records_elsewhere_count_although_nobody_here_sees_them() -> None:
    """A party on another machine may hold the most records: what it can move decides the noise of all."""
    held: list[ArrayLike | RemoteRecords] = [[0.1, 0.2, 0.3], RemoteRecords(7), [], RemoteRecords(0)]
    records = Records.of(held, UNIT, level="party")
    assert records.sizes.tolist() == [3, 7, 0, 0] and records.total == 10 and records.held == [0, 2]
    assert records.sensitivity(1.0) == 7.0
    assert records.sums(lambda rows: rows, 1).ravel() == pytest.approx([0.6, 0.0])
    with pytest.raises(InvalidInput, match="records of all 4 parties must be here, got those of 2 only"):
        records.everything()


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 25))
def test_a_cap_holds_for_records_elsewhere_as_for_those_that_are_here(here: int, there: int, cap: int) -> None:
    held: list[ArrayLike | RemoteRecords] = [np.zeros(here + 1), RemoteRecords(there)]
    capped = Records.of(held, UNIT, level="party", cap=cap)
    everyone = Records.of([np.zeros(here + 1), np.zeros(there)], UNIT, level="party", cap=cap)
    assert capped.sizes.tolist() == everyone.sizes.tolist() == [min(here + 1, cap), min(there, cap)]
    assert capped.sensitivity(1.0) == everyone.sensitivity(1.0) <= cap


@pytest.mark.parametrize(
    ("domain", "columns", "scalar"),
    [
        (UNIT, 1, True),
        ((-1, 1), 1, True),
        ([UNIT, UNIT, UNIT], 3, False),
        (([0, 0, 0], [1, 2, 3]), 3, False),
    ],
)
def test_the_box_tells_a_party_without_records_what_the_others_records_look_like(
    domain: Box, columns: int, scalar: bool
) -> None:
    records = Records.of([[], RemoteRecords(4)], domain)
    assert (records.columns, records.scalar, records.sizes.tolist()) == (columns, scalar, [0, 4])
    assert np.asarray(records.tables[0]).shape == (0, columns)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_column_can_be_taken_out_and_records_elsewhere_stay_there(index: int) -> None:
    table = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    records = Records.of([table, RemoteRecords(4)], ([0, 0, 0], [1, 2, 3])).column(index)
    assert np.array_equal(np.asarray(records.tables[0]), table[:, [index]]) and records.sizes.tolist() == [2, 4]
    assert records.upper.tolist() == [index + 1.0] and records.held == [0]


def test_a_box_is_given_in_three_ways() -> None:
    held = [[[0.5, 3.0]], [[0.0, 4.0]]]
    ways = (
        Records.of(held, [Interval(0, 1), Interval(2, 4)]),
        Records.of(held, ([0, 2], [1, 4])),
        Records.of(held, ([0.0, 2.0], [1.0, 4.0]), clip=True),
    )
    for records in ways:
        assert records.lower.tolist() == [0, 2] and records.upper.tolist() == [1, 4] and not records.scalar
    assert Records.of(held, (0, 5)).upper.tolist() == [5, 5]
    assert Records.of(held, Interval(0, 5)).upper.tolist() == [5, 5]


def test_one_column_keeps_its_domain_and_level() -> None:
    records = Records.of([[[0.5, 3.0]], []], ([0, 2], [1, 4]), level="party").column(1)
    assert records.lower == 2 and records.upper == 4 and records.level == "party" and records.scalar
    assert records.everything().tolist() == [[3.0]] and records.sizes.tolist() == [1, 0]


def test_no_record_is_shown_when_records_are_printed() -> None:
    records = Records.of([[0.123], [0.456, 0.789]], UNIT, level="party")
    assert repr(records) == str(records) == "Records(parties=2, records=3, columns=1, level='party')"


def test_records_outside_the_box_are_moved_into_it_and_nothing_is_told() -> None:
    """Whether there is a release must not depend on a private record."""
    held = [[[0.5, 3.5]], [[1e300, -1e300], [9.0, 3.0]]]
    records = Records.of(held, ([0, 2], [1, 4]))
    assert records.everything().tolist() == [[0.5, 3.5], [1.0, 2.0], [1.0, 3.0]]


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("clip", [True, False])
def test_missing_records_are_refused_by_their_place(missing: float, clip: bool) -> None:
    """They counted as the middle of the box: a mean of 19.97 came out as 26.08, in an interval of width 0.6."""
    with pytest.raises(InvalidInput, match=r"data\[1\]\[1\] must be a finite number"):
        Records.of([[0.5], [0.1, missing]], UNIT, clip=clip)
    with pytest.raises(InvalidInput, match=r"data\[0\]\[0, 1\] must be a finite number"):
        Records.of([[[0.5, missing]]], ([0, 2], [1, 4]), clip=clip)


def test_a_refusal_shows_no_record() -> None:
    for held in ([[0.5, 777.25]], [[777.25, math.nan]], [["777.25 kg"]]):
        with pytest.raises(InvalidInput) as refusal:
            Records.of(held, UNIT, clip=False)
        assert "777" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Records.of([], UNIT), r"data must be one array of records per party, at least one, got \[\]"),
        (lambda: Records.of([[], []], UNIT), "the number of records of all parties must be at least 1, got 0"),
        (
            lambda: Records.of([[0.5], [math.nan]], UNIT, clip=False),
            r"data\[1\]\[0\] must be a finite number, got nan",
        ),
        (lambda: Records.of([[0.5], ["a"]], UNIT), r"data\[1\] must be an array of numbers"),
        (lambda: Records.of([0.5, 0.2], UNIT), r"the shape of data\[0\]"),
        (lambda: Records.of([[0.5], [[0.5, 0.1]]], UNIT), "the shapes of records"),
        (lambda: Records.of([np.zeros((2, 0))], UNIT), "the number of columns must be at least 1, got 0"),
        (
            lambda: Records.of([[0.5], [0.1, 2.0]], UNIT, clip=False),
            r"column 0 of data\[1\]\[1\] must be from -1 to 1, got something else",
        ),
        (
            lambda: Records.of([[[0.5, 7.0]]], ([0, 0], [1, 4]), clip=False),
            r"column 1 of data\[0\]\[0\] must be from 0 to 4, got something else",
        ),
        (lambda: Records.of([[0.0]], (0, 5e-324)), "the width of column 0 of the domain must be at least 1e-100"),
        (lambda: Records.of([[0.0]], (0, 1e-170)), "the width of column 0 of the domain must be at least 1e-100"),
        (lambda: Records.of([[0.0]], (-1e200, 1e200)), "the width of column 0 of the domain must be .*got 2e"),
        (lambda: Records.of([[1.0]], (1, 1 + 2e-16)), "the width of column 0 of the domain must be at least 1e-12"),
        (lambda: Records.of([[0.5]], UNIT, cap=0), "cap must be .*got 0"),
        (lambda: Records.of([[0.5]], UNIT, level="all"), "level must be .*got 'all'"),  # type: ignore[arg-type]
        (lambda: Records.of([[0.5]], [UNIT, UNIT]), "number of lower ends of the domain must be .*got 2"),
        (lambda: Records.of([[[0.5, 1.0]]], ([0, 1], [1, 1])), r"upper\[1\] must be .*got 1.0"),
        (lambda: Records.of([[0.5]], (0, math.inf)), r"upper\[\] must be .*got inf"),
        (lambda: Records.of([[0.5]], []), "domain must be an interval, one for each column"),
        (lambda: Records.of([[0.5]], UNIT).column(1), "index must be .*got 1"),
        (lambda: Records.of([[0.5]], UNIT).sensitivity(0.0), "diameter must be .*got 0"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()
