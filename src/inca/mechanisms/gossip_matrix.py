"""Gossip on a fixed graph: parties average with their neighbours, round after round, until all know the mean.

A round multiplies the parties' numbers with a symmetric, doubly stochastic matrix W that is 0 between parties who are
not neighbours. Plain gossip gives x^t = W^t x^0. Accelerated gossip takes a plain first step and then

    x^(t+1) = g W x^t + (1 - g) x^(t-1),   g = 2 (1 - sqrt(l (1 - l/4))) / (1 - l/2)^2,

with l the spectral gap, the second smallest eigenvalue of I - W (Cyffers et al. 2022). Either way
x^t = P_t x^0, with P_t a polynomial in W that leaves the mean alone; were the first step not plain, it would be lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph, csr_array
from scipy.spatial import cKDTree
from scipy.special import comb

from inca._base.extras import importing
from inca._base.types import Array
from inca._base.validation import generator, integer, party_values, positive, refuse
from inca.protocol.schedules.graphs import hypercube_neighbours

_MAX_PARTIES = 4096  # parties up to which n x n matrices are stored and their eigenvalues computed
_REDRAWS = 100  # random graphs drawn in search of a connected one
_ROUNDING = 1e-12  # how far a computed eigenvalue may be from 0


@dataclass(frozen=True, eq=False)
class GossipGraph:
    """A gossip matrix W and its spectrum; made by the functions below, or by `gossip_graph` from a name.

    Example:
        >>> graph = hypercube_gossip(1024)
        >>> round(graph.second_eigenvalue * 11, 9), round(graph.gap * 11, 9), int(graph.degrees.max())
        (9.0, 2.0, 10)
    """

    name: str
    matrix: csr_array
    eigenvalues: Array
    """Eigenvalues of W, the largest, which is 1, first."""

    @property
    def parties(self) -> int:
        """The number of parties n."""
        return int(self.matrix.shape[0])

    @property
    def second_eigenvalue(self) -> float:
        """The second largest eigenvalue of W."""
        return float(self.eigenvalues[1])

    @property
    def gap(self) -> float:
        """The spectral gap l, the second smallest eigenvalue of I - W."""
        return 1.0 - self.second_eigenvalue

    @property
    def averages_at_once(self) -> bool:
        """Whether one round gives everyone the mean: all eigenvalues but the first are 0."""
        return float(np.abs(self.eigenvalues[1:]).max()) < _ROUNDING

    @cached_property
    def adjacency(self) -> csr_array:
        """The graph: 1 between neighbours, 0 elsewhere and on the diagonal."""
        entries = self.matrix.tocoo()
        near = (entries.row != entries.col) & (entries.data != 0)
        return _sparse(entries.row[near], entries.col[near], np.ones(int(near.sum())), self.parties)

    @cached_property
    def degrees(self) -> Array:
        """How many neighbours each party has: (n,)."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64)

    def momentum(self, accelerated: bool) -> float:
        """Return g, which is 1 for plain gossip.

        The published g is 2 / (1 + sqrt(l (1 - l/4))), written here so that it does not cancel.

        Example:
            >>> round(hypercube_gossip(1024).momentum(accelerated=True), 4)
            1.4118
        """
        return 2.0 / (1.0 + math.sqrt(self.gap * (1.0 - self.gap / 4.0))) if accelerated else 1.0

    def mix(self, values: ArrayLike, rounds: int, accelerated: bool = True) -> Array:
        """Return what the parties hold after T rounds, for (n,) or (n, d) values.

        Example:
            >>> complete_gossip(4).mix([0, 0, 0, 1], rounds=1).tolist()
            [0.25, 0.25, 0.25, 0.25]
        """
        start = party_values(values, self.parties)
        return gossip(self.matrix, start, integer("rounds", rounds), self.momentum(accelerated))

    def polynomials(self, accelerated: bool = True) -> Iterator[Array]:
        """Yield P_0 = I, P_1 = W, P_2, ... without end, as (n, n) arrays: x^t = P_t x^0.

        Example:
            >>> graph = GossipGraph("lazy", csr_array([[0.75, 0.25], [0.25, 0.75]]), np.array([1.0, 0.5]))
            >>> [float(p[0, 0]) for p in islice(graph.polynomials(accelerated=False), 4)]
            [1.0, 0.75, 0.625, 0.5625]
        """
        _storable(self.parties, self.name)
        return _states(lambda x: self.matrix @ x, np.eye(self.parties), self.momentum(accelerated))

    def self_weight(self, rounds: int, accelerated: bool = True) -> float:
        """Return the mean over parties i of sum_j (P_T)_ij^2: 1/n once everyone holds the mean.

        It is the trace of P_T^2 divided by n, hence needs the eigenvalues only.

        Example:
            >>> complete_gossip(4).self_weight(rounds=1, accelerated=False)
            0.25
        """
        states = _states(lambda x: self.eigenvalues * x, np.ones(self.parties), self.momentum(accelerated))
        return float(np.mean(next(islice(states, integer("rounds", rounds), None)) ** 2))

    def without(self, gone: NDArray[np.int64]) -> csr_array:
        """Return the gossip matrix of those who stay, with Metropolis weights, if the parties `gone` have left.

        Example:
            >>> complete_gossip(4).without(np.array([3])).toarray().round(2).tolist()
            [[0.33, 0.33, 0.33], [0.33, 0.33, 0.33], [0.33, 0.33, 0.33]]
        """
        stays = np.setdiff1d(np.arange(self.parties), gone)
        left = self.adjacency[stays][:, stays].tocoo()
        return _metropolis(left.row, left.col, stays.size)


def gossip(matrix: csr_array, values: Array, rounds: int, momentum: float = 1.0) -> Array:
    """Return the numbers after T rounds of gossip with a given matrix and g; g = 1 is plain gossip.

    Example:
        >>> gossip(csr_array(np.full((2, 2), 0.5)), np.array([0.0, 1.0]), rounds=3).tolist()
        [0.5, 0.5]
    """
    return next(islice(_states(lambda x: matrix @ x, values, momentum), rounds, None))


def hypercube_gossip(parties: int) -> GossipGraph:
    """Return W = (I + adjacency) / (m + 1) on the hypercube of n = 2^m parties.

    Its eigenvalues are (m + 1 - 2k) / (m + 1), each (m choose k) times.
    """
    columns = hypercube_neighbours(parties)
    n, m = columns.shape
    rows, k = np.repeat(np.arange(n), m), np.arange(m + 1)
    spectrum = np.repeat((m + 1.0 - 2.0 * k) / (m + 1.0), comb(m, k).round().astype(np.int64))
    return GossipGraph("hypercube", _metropolis(rows, columns.ravel(), n), spectrum)


def complete_gossip(parties: int) -> GossipGraph:
    """Return W = 11^T / n: everyone hears everyone, and one round gives everyone the mean.

    Example:
        >>> complete_gossip(8).gap
        1.0
    """
    n = _storable(integer("parties", parties, min=2), "complete")
    spectrum = np.zeros(n)
    spectrum[0] = 1.0
    return GossipGraph("complete", csr_array(np.full((n, n), 1.0 / n)), spectrum)


def regular_gossip(parties: int, rng: np.random.Generator, degree: int | None = None) -> GossipGraph:
    """Return (I + adjacency) / (d + 1) on a random connected graph where each party has d neighbours (needs networkx).

    The default degree is that of a hypercube of the size, log2(n) rounded up, or one more where n times that is odd.

    Example:
        >>> regular_gossip(20, np.random.default_rng(1), degree=3).degrees.max()
        np.float64(3.0)
    """
    n = _storable(integer("parties", parties, min=2), "regular")
    usual = (n - 1).bit_length()
    d = integer("degree", usual + (usual * n) % 2 if degree is None else degree, 1, n - 1)
    if n * d % 2:
        refuse("degree", d, f"even for {n} parties, an odd number")
    with importing("a regular graph", extra="graphs"):
        import networkx as nx

    def draw(source: np.random.Generator) -> NDArray[np.int64]:
        edges = nx.random_regular_graph(d, n, seed=int(source.integers(2**32))).edges
        return np.array(list(edges), dtype=np.int64)

    return _connected("regular", n, rng, draw, "degree", d)


def geometric_gossip(parties: int, rng: np.random.Generator, radius: float | None = None) -> GossipGraph:
    """Return Metropolis weights for random points of the unit square, neighbours if at most `radius` apart.

    The default radius, sqrt(2 ln(n) / (pi n)), lies safely above the one where such graphs become connected.

    Example:
        >>> bool(0 < geometric_gossip(50, np.random.default_rng(1)).gap < 1)
        True
    """
    n = _storable(integer("parties", parties, min=2), "geometric")
    distance = math.sqrt(2.0 * math.log(n) / (math.pi * n)) if radius is None else positive("radius", radius)

    def draw(source: np.random.Generator) -> NDArray[np.int64]:
        return np.asarray(cKDTree(source.random((n, 2))).query_pairs(distance, output_type="ndarray"), dtype=np.int64)

    return _connected("geometric", n, rng, draw, "radius", distance)


def gossip_graph(graph: str | GossipGraph, parties: int, rng: np.random.Generator | None = None) -> GossipGraph:
    """Return the graph of a name (hypercube, complete, regular or geometric), or a graph of the right size itself.

    The random ones, regular and geometric, are drawn with `rng`.

    Example:
        >>> gossip_graph("hypercube", 16).gap
        0.4
    """
    if isinstance(graph, GossipGraph):
        if graph.parties != parties:
            refuse("the number of parties of graph", graph.parties, f"the required number ({parties})")
        return graph
    if graph == "hypercube":
        return hypercube_gossip(parties)
    if graph == "complete":
        return complete_gossip(parties)
    if graph == "regular":
        return regular_gossip(parties, generator(rng))
    if graph == "geometric":
        return geometric_gossip(parties, generator(rng))
    refuse("graph", graph, "hypercube, complete, regular, geometric or a GossipGraph")


def _states(step: Callable[[Array], Array], start: Array, momentum: float) -> Iterator[Array]:
    """Yield x^0, x^1, ...: numbers, matrices (the polynomials) or eigenvalues alike, as `step` multiplies with W."""
    yield start
    before, now = start, step(start)
    while True:
        yield now
        before, now = now, momentum * step(now) + (1.0 - momentum) * before


def _connected(
    name: str,
    n: int,
    rng: np.random.Generator,
    draw: Callable[[np.random.Generator], NDArray[np.int64]],
    parameter: str,
    value: float,
) -> GossipGraph:
    """Draw edges until the graph is connected: on another one, gossip never finds the mean."""
    source = generator(rng)
    for _ in range(_REDRAWS):
        one, other = draw(source).reshape(-1, 2).T
        matrix = _metropolis(np.concatenate([one, other]), np.concatenate([other, one]), n)
        pieces, _ = csgraph.connected_components(matrix, directed=False)
        if pieces == 1:
            return GossipGraph(name, matrix, _spectrum(matrix.toarray()))
    refuse(parameter, value, f"large enough to connect {n} parties in one of {_REDRAWS} random graphs")


def _metropolis(rows: NDArray[Any], columns: NDArray[Any], n: int) -> csr_array:
    """Return W_ij = 1 / (1 + max(d_i, d_j)) for neighbours and what is missing to 1 on the diagonal."""
    degrees = np.bincount(rows, minlength=n)
    weights = 1.0 / (1.0 + np.maximum(degrees[rows], degrees[columns]))
    own = 1.0 - np.bincount(rows, weights, minlength=n)
    ids = np.arange(n)
    return _sparse(np.concatenate([rows, ids]), np.concatenate([columns, ids]), np.concatenate([weights, own]), n)


def _sparse(rows: NDArray[Any], columns: NDArray[Any], entries: Array, n: int) -> csr_array:
    return csr_array((entries, (rows, columns)), shape=(n, n))


def _spectrum(matrix: Array) -> Array:
    return np.ascontiguousarray(np.linalg.eigvalsh(matrix)[::-1])


def _storable(n: int, name: str) -> int:
    if n > _MAX_PARTIES:
        refuse("parties", n, f"at most {_MAX_PARTIES}, as matrices of the {name} graph are stored in full")
    return n
