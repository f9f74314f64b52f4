"""Gossip matrices: entry by entry from their definitions."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy.sparse import csr_array

from helpers.gossip_graphs import graph_of
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.mechanisms.gossip_matrix import (
    GossipGraph,
    complete_gossip,
    geometric_gossip,
    gossip,
    gossip_graph,
    hypercube_gossip,
    regular_gossip,
)


def path(n: int) -> Array:
    """Return the matrix of parties in a row, everyone with weights 1/3 to its neighbours: no two are alike."""
    matrix = (np.eye(n, k=1) + np.eye(n, k=-1)) / 3
    return np.asarray(matrix + np.diag(1 - matrix.sum(axis=1)))


def plain_metropolis(near: list[set[int]]) -> Array:
    """Return 1 / (1 + max(d_i, d_j)) between neighbours, with loops."""
    n = len(near)
    matrix = np.zeros((n, n))
    for i in range(n):
        for j in near[i]:
            matrix[i, j] = 1 / (1 + max(len(near[i]), len(near[j])))
        matrix[i, i] = 1 - matrix[i].sum()
    return matrix


def plain_near(points: Array, radius: float) -> list[set[int]]:
    n = len(points)
    return [{j for j in range(n) if j != i and math.dist(points[i], points[j]) <= radius} for i in range(n)]


@pytest.mark.parametrize("radius", [None, 0.6])
def test_a_geometric_graph_joins_points_up_to_a_distance_with_metropolis_weights(radius: float | None) -> None:
    graph, rng = geometric_gossip(24, np.random.default_rng(2), radius), np.random.default_rng(2)
    distance = math.sqrt(2 * math.log(24) / (24 * math.pi)) if radius is None else radius
    near = plain_near(rng.random((24, 2)), distance)
    np.testing.assert_allclose(graph.matrix.toarray(), plain_metropolis(near), rtol=0, atol=1e-15)
    assert graph.degrees.tolist() == [len(neighbours) for neighbours in near]
    assert graph.adjacency.toarray().tolist() == [[float(j in near[i]) for j in range(24)] for i in range(24)]
    assert graph.name == "geometric" and np.all(np.diff(graph.eigenvalues) <= 0)
    np.testing.assert_allclose(graph.eigenvalues[::-1], np.linalg.eigvalsh(plain_metropolis(near)), atol=1e-13)


def test_a_graph_in_pieces_is_drawn_again_a_hundred_times_at_most() -> None:
    rng, again = np.random.default_rng(9), np.random.default_rng(9)
    graph = geometric_gossip(12, rng, 0.33)
    draws = [plain_near(again.random((12, 2)), 0.33)]
    while not np.array_equal(graph.adjacency.toarray(), [[float(j in row) for j in range(12)] for row in draws[-1]]):
        draws.append(plain_near(again.random((12, 2)), 0.33))
    second = [np.linalg.eigvalsh(plain_metropolis(near))[-2] for near in draws]
    assert len(draws) > 1 and all(value > 1 - 1e-9 for value in second[:-1]) and second[-1] < 1 - 1e-9
    with pytest.raises(InvalidInput, match="to connect 12 parties in one of 100 random graphs"):
        geometric_gossip(12, rng, 1e-9)
    for _ in range(100):
        again.random((12, 2))
    assert rng.random() == again.random()


@pytest.mark.parametrize(("parties", "degree"), [(2, 1), (3, 2), (8, 3), (9, 4), (16, 4), (17, 6), (32, 5), (33, 6)])
def test_everyone_has_as_many_neighbours_as_in_a_hypercube_of_the_size(parties: int, degree: int) -> None:
    graph = regular_gossip(parties, np.random.default_rng(1))
    assert set(graph.degrees) == {float(degree)} and graph.name == "regular"
    entries = graph.matrix.toarray()
    np.testing.assert_allclose(entries[entries > 0], 1 / (degree + 1), rtol=1e-12)


def test_two_parties_are_the_fewest() -> None:
    rng = np.random.default_rng(1)
    graphs = [regular_gossip(2, rng), geometric_gossip(2, rng, 2.0), complete_gossip(2), hypercube_gossip(2)]
    for graph in [*graphs, graph_of(np.full((2, 2), 0.5))]:
        np.testing.assert_allclose(graph.matrix.toarray(), np.full((2, 2), 0.5), rtol=1e-15)
    for make in (complete_gossip, lambda n: regular_gossip(n, rng), lambda n: geometric_gossip(n, rng)):
        with pytest.raises(InvalidInput, match="parties must be at least 2, got 1"):
            make(1)


def test_graphs_are_stored_up_to_a_number_of_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inca.mechanisms.gossip_matrix._MAX_PARTIES", 8)
    rng = np.random.default_rng(1)
    assert next(hypercube_gossip(8).polynomials()).shape == (8, 8)
    assert {gossip_graph(name, 8, rng).parties for name in ("complete", "regular", "geometric")} == {8}
    for name in ("complete", "regular", "geometric"):
        with pytest.raises(InvalidInput, match=f"at most 8, as matrices of the {name} graph are stored in full"):
            gossip_graph(name, 10, rng)
    with pytest.raises(InvalidInput, match="at most 8, as matrices of the hypercube graph"):
        hypercube_gossip(16).polynomials()


def test_one_round_is_enough_only_where_all_other_eigenvalues_are_0() -> None:
    halves = np.array([1.0, 1.0, -1.0, -1.0])
    for change in (0.0, 0.125, -0.125):  # the second or the last eigenvalue is 4 times that
        graph = graph_of(0.25 + change * np.outer(halves, halves))
        once = graph.mix(np.arange(4.0), 1, accelerated=False)
        assert graph.averages_at_once == (change == 0.0) == bool(np.allclose(once, 1.5))


def test_entries_that_are_stored_but_0_join_nobody() -> None:
    entries, rows, columns = [0.5, 0.5, 0.5, 0.5, 1.0, 0.0, 0.0], [0, 0, 1, 1, 2, 1, 2], [0, 1, 0, 1, 2, 2, 1]
    graph = GossipGraph("by hand", csr_array((entries, (rows, columns)), shape=(3, 3)), np.array([1.0, 1.0, 0.0]))
    assert graph.matrix.nnz == 7 and graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_gossip_is_accelerated_unless_it_is_said_to_be_plain() -> None:
    graph, start = graph_of(path(6)), np.arange(6.0)
    fast, plain = (next(islice(graph.polynomials(way), 4, None)) for way in (True, False))
    assert np.abs(fast - plain).max() > 0.01
    assert np.array_equal(next(islice(graph.polynomials(), 4, None)), fast)
    np.testing.assert_allclose(graph.mix(start, 4), fast @ start, rtol=1e-12)
    assert graph.self_weight(4) == pytest.approx(float((fast**2).sum()) / 6) != graph.self_weight(4, False)
    np.testing.assert_allclose(gossip(graph.matrix, start, 4), plain @ start, rtol=1e-12)  # a function of W alone
    gap = 1 - float(np.linalg.eigvalsh(path(6))[-2])
    assert graph.momentum(True) == pytest.approx(2 * (1 - math.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2)
    assert graph.momentum(False) == 1.0


def test_graphs_by_name_are_those_of_their_functions() -> None:
    for name, make in (("regular", regular_gossip), ("geometric", geometric_gossip)):
        drawn = gossip_graph(name, 10, np.random.default_rng(3)).matrix.toarray()
        assert np.array_equal(drawn, make(10, np.random.default_rng(3)).matrix.toarray())
    assert gossip_graph("hypercube", 8).name == "hypercube" and gossip_graph("complete", 8).name == "complete"
    own = graph_of(path(4))
    assert gossip_graph(own, 4) is own
    for parties in (3, 5):
        with pytest.raises(InvalidInput, match=rf"must be the required number \({parties}\), got 4"):
            gossip_graph(own, parties)


def test_who_stays_has_metropolis_weights_among_those_who_stay() -> None:
    graph = graph_of(path(6))
    near: list[set[int]] = [{1}, {0}, {3}, {2}]  # of 0, 1, 4 and 5, once 2 and 3 have gone
    np.testing.assert_allclose(graph.without(np.array([2, 3])).toarray(), plain_metropolis(near), atol=1e-15)
