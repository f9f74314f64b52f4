"""Schedules on a fixed graph, the same in every round; the ground of plain gossip (Theorem 6 warns of them)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Ids
from inca._base.validation import integer, listed, one_of, refuse
from inca.errors import InvalidInput
from inca.protocol.schedules.base import Round, Schedule, check_size


class GraphLike(Protocol):
    """As much of a networkx graph as we use."""

    @property
    def adj(self) -> Any:
        """The neighbours of every node."""
        ...


class StaticGraph(Schedule):
    """Every party sends to all its neighbours in a fixed undirected graph, in every round.

    Memory grows with n times the largest degree.

    Args:
        neighbours: Entry i lists the neighbours of party i.
        rounds: T, at least 1.
        weights: `metropolis` for W_ji = 1/(1 + max(d_i, d_j)), symmetric and doubly stochastic on any graph; `uniform`
            for W_ji = 1/(1 + d_i), column stochastic. On regular graphs both agree.
        disconnected: Whether the graph may consist of several components. Parties of different components exchange
            nothing, so they do not hide one another, and gossip in the graph does not bring anyone the mean.

    Raises:
        InvalidInput: If a neighbour is unknown, the party itself or has no way back, `weights` is another word, or the
            graph is not connected and `disconnected` does not allow it.

    Example:
        >>> StaticGraph([[1], [0, 2], [1]], rounds=1).round(1).weights.round(2).tolist()
        [[0.33, 0.0], [0.33, 0.33], [0.33, 0.0]]
    """

    valid = True

    def __init__(
        self,
        neighbours: Sequence[Iterable[int]],
        rounds: int,
        *,
        weights: str = "metropolis",
        disconnected: bool = False,
    ) -> None:
        self.rounds = integer("rounds", rounds, min=1)
        one_of("weights", weights, ("metropolis", "uniform"))
        rows = [listed("neighbours", near, "ids") for near in listed("neighbours", neighbours, "lists of ids")]
        self.parties = integer("parties", len(rows), min=2)
        lists = [sorted({integer(f"a neighbour of {i}", j, 0, self.parties - 1) for j in near}) for i, near in
                 enumerate(rows)]  # fmt: skip
        degrees = np.array([len(near) for near in lists])
        self.slots = max(1, int(degrees.max()))
        receivers = np.full((self.parties, self.slots), -1, np.int32)
        for i, near in enumerate(lists):
            receivers[i, : len(near)] = near
        _check_undirected(receivers)
        if not disconnected:
            _check_connected(receivers)
        degree = np.broadcast_to(degrees[:, np.newaxis], receivers.shape)
        if weights == "metropolis":
            degree = np.maximum(degree, degrees[receivers])
        fractions = np.where(receivers >= 0, 1.0 / (1.0 + degree), 0.0)
        self._round = Round(receivers, 1.0 / (self.slots + 1), fractions)

    @classmethod
    def from_networkx(
        cls, graph: GraphLike, rounds: int, *, weights: str = "metropolis", disconnected: bool = False
    ) -> StaticGraph:
        """Take a networkx graph; its nodes, in their order, become parties 0..n-1.

        Args:
            graph: The graph.
            rounds: T, at least 1.
            weights: `metropolis` or `uniform`.
            disconnected: Whether the graph may consist of several components.

        Returns:
            The schedule.

        Example:
            >>> import networkx
            >>> StaticGraph.from_networkx(networkx.cycle_graph(5), rounds=2).slots
            2
        """
        if not hasattr(graph, "adj"):
            refuse("graph", type(graph).__name__, "a networkx graph")
        ids = {node: i for i, node in enumerate(graph.adj)}
        neighbours = [[ids[other] for other in graph.adj[node]] for node in ids]
        return cls(neighbours, rounds, weights=weights, disconnected=disconnected)

    def round(self, t: int) -> Round:
        """Return round t = 1..T: always the same."""
        self._check_round(t)
        return self._round


def hypercube_graph(parties: int, rounds: int) -> StaticGraph:
    """Return the hypercube on n = 2^m parties: neighbours differ in one bit of their number.

    Args:
        parties: n, a power of 2.
        rounds: T, at least 1.

    Returns:
        The schedule.

    Raises:
        InvalidInput: If n is not a power of 2, or there are no rounds.

    Example:
        >>> hypercube_graph(8, rounds=1).slots
        3
    """
    return StaticGraph(hypercube_neighbours(parties).tolist(), rounds)


def hypercube_neighbours(parties: int) -> NDArray[np.int64]:
    """Return the neighbours of each of n = 2^m parties in the hypercube, as n rows of m.

    >>> hypercube_neighbours(4).tolist()
    [[1, 2], [0, 3], [3, 0], [2, 1]]
    """
    n = integer("parties", parties, min=2)
    if n & (n - 1):
        refuse("parties", parties, "a power of 2 for a hypercube")
    return np.arange(n)[:, np.newaxis] ^ (1 << np.arange(n.bit_length() - 1))


def complete_graph(parties: int, rounds: int) -> StaticGraph:
    """Return the complete graph: everyone sends to everyone, W_ji = 1/n.

    Args:
        parties: n, at least 2.
        rounds: T, at least 1.

    Returns:
        The schedule.

    Raises:
        InvalidInput: If there are too few parties or rounds.

    Example:
        >>> complete_graph(4, rounds=1).slots
        3
    """
    n, _, _ = check_size(parties, rounds, 1)
    return StaticGraph([[j for j in range(n) if j != i] for i in range(n)], rounds)


def _check_connected(receivers: Ids) -> None:
    import scipy.sparse as sp  # slow to import
    from scipy.sparse.csgraph import connected_components

    n = receivers.shape[0]
    sender, slot = np.nonzero(receivers >= 0)
    links = sp.coo_array((np.ones(sender.size), (sender, receivers[sender, slot])), shape=(n, n))
    count, component = connected_components(links, directed=False)
    if count > 1:
        other = int(np.flatnonzero(component != component[0])[0])
        raise InvalidInput(
            f"the graph must be connected, got {count} components: parties 0 and {other} are in different ones, which "
            "never exchange anything, so they do not hide one another and gossip brings nobody the mean "
            "(disconnected=True allows it)"
        )


def _check_undirected(receivers: Ids) -> None:
    n = receivers.shape[0]
    sender, slot = np.nonzero(receivers >= 0)
    receiver: NDArray[np.int64] = receivers[sender, slot].astype(np.int64)
    if (receiver == sender).any():
        i = int(sender[receiver == sender][0])
        refuse(f"a neighbour of {i}", i, "another party")
    one_way = np.setdiff1d(sender * n + receiver, receiver * n + sender)
    if one_way.size:
        i, j = divmod(int(one_way[0]), n)
        raise InvalidInput(f"neighbours must be mutual, got {j} as a neighbour of {i} but not {i} as one of {j}")
