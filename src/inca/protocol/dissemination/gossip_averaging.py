"""Averaging in place: everyone ends up close to the mean, by exchanges of sums and weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from inca._base.kernels import Ids, compiled
from inca._base.types import Array
from inca._base.validation import finite_float, generator, integer, positive, refuse
from inca.protocol.dissemination.base import (
    Dissemination,
    Indices,
    estimates_from,
    exact,
    farthest,
    published_messages,
    random_others,
)
from inca.protocol.schedules.graphs import GraphLike, StaticGraph
from inca.protocol.simulation import Outcome

_MAX_NODES = 5_000  # of a graph whose eigenvalues are computed densely


def gossip_average(
    outcome: Outcome,
    accuracy: float,
    rng: Generator,
    *,
    graph: GraphLike | None = None,
    max_rounds: int = 10_000,
) -> Dissemination:
    """Average by random pairs (Boyd, Ghosh, Prabhakar, Shah 2006, "Randomized gossip algorithms").

    In every tick a uniformly random one of the m publishing parties wakes and picks a uniformly random other, or
    neighbour. Both replace (sum, weight) by the mean of theirs, 2 messages; their estimate is sum / weight. A round is
    m ticks. We stop after the round that brings all within `accuracy`; parties, who cannot know, take `gossip_rounds`.

    Args:
        outcome: What the rounds left behind.
        accuracy: The largest distance from the exact estimate, above 0.
        rng: Decides who wakes, and whom it picks.
        graph: Who may pick whom; its nodes are the publishing parties in order of id. By default everyone.
        max_rounds: After how many rounds to give up.

    Returns:
        What the parties know.

    Raises:
        InvalidInput: If the graph is not connected, a number is out of range, or `max_rounds` are too few.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> gossip_average(Outcome(execution, np.arange(4.0)), 1e-9, np.random.default_rng(1)).deviation < 1e-9
        True
    """
    near = None if graph is None or outcome.present < 2 else _neighbours(graph, outcome.present)
    generator(rng)
    return _average("gossip", outcome, accuracy, max_rounds, lambda state: _gossip_round(state, rng, near))


def gossip_rounds(parties: int, relative_accuracy: float, *, graph: GraphLike | None = None) -> int:
    """Return how many rounds of gossip give ||x - mean|| <= eps ||x(0)|| with probability at least 1 - eps.

    This is the bound of Boyd et al. 2006: 3 ln(1/eps) / ln(1/lambda2) ticks, lambda2 being the second largest
    eigenvalue of the expected matrix of a tick, W = I - sum_ij P_ij (e_i-e_j)(e_i-e_j)^T / (2n). Without a
    graph P_ij = 1/(n-1), the sum is 2 (n I - 1 1^T) / (n-1), and so lambda2 = 1 - 1/(n-1).

    Args:
        parties: n, the parties with final messages.
        relative_accuracy: eps, above 0 and at most 1.
        graph: Who may pick whom; by default everyone.

    Returns:
        The number of rounds.

    Raises:
        InvalidInput: If the graph is not connected or too large, or a number is out of range.

    Example:
        >>> gossip_rounds(1000, 1e-6)
        42
    """
    n, epsilon = integer("parties", parties, min=1), finite_float("relative_accuracy", relative_accuracy, 1e-300, 1.0)
    if n == 1:
        return 0
    gap = 1.0 / (n - 1) if graph is None else _gossip_gap(_neighbours(graph, n))
    # Where lambda2 = 0 a single tick makes all equal, but that one is needed.
    ticks = 1.0 if gap >= 1.0 else max(1.0, 3.0 * math.log(epsilon) / math.log1p(-gap))
    return math.ceil(ticks / n)


def push_sum(outcome: Outcome, accuracy: float, rng: Generator, *, max_rounds: int = 10_000) -> Dissemination:
    """Average by one-way sends (Kempe, Dobra, Gehrke 2003, "Gossip-based computation of aggregate ...").

    In every round each of the m publishing parties keeps half of its (sum, weight) and sends half to a uniformly random
    other, m messages in all; its estimate is sum / weight. We stop as in `gossip_average`.

    Args:
        outcome: What the rounds left behind.
        accuracy: The largest distance from the exact estimate, above 0.
        rng: Decides who sends to whom.
        max_rounds: After how many rounds to give up.

    Returns:
        What the parties know.

    Raises:
        InvalidInput: If a number is out of range, or `max_rounds` are too few.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> push_sum(Outcome(execution, np.arange(4.0)), 1e-9, np.random.default_rng(1)).deviation < 1e-9
        True
    """
    generator(rng)
    return _average("push-sum", outcome, accuracy, max_rounds, lambda state: _push_round(state, rng))


def _average(
    method: str, outcome: Outcome, accuracy: float, max_rounds: int, step: Callable[[Array], int]
) -> Dissemination:
    tolerance, limit = positive("accuracy", accuracy), integer("max_rounds", max_rounds, min=1)
    ids, state = published_messages(outcome)
    if (aim := outcome.estimate) is None:
        return replace(exact(outcome), method=method)
    rounds = messages = 0
    while (off := farthest(estimates := estimates_from(state, outcome), aim)) > tolerance:
        if rounds == limit:
            refuse("max_rounds", limit, f"larger, as {method} is still {off:g} off and accuracy is {tolerance:g}")
        messages += step(state)
        rounds += 1
    return Dissemination(method, outcome, estimates, ids, rounds, messages, True)


def _neighbours(graph: GraphLike, parties: int) -> Ids:
    """Return the neighbours of each node, padded with -1, of a connected undirected graph on n >= 2 nodes."""
    if len(graph.adj) != parties:
        refuse("the number of nodes of graph", len(graph.adj), f"{parties}, one per party")
    return StaticGraph.from_networkx(graph, rounds=1).round(1).receivers


def _gossip_gap(near: Ids) -> float:
    """Return 1 - lambda2(W) for gossip on a graph, as the second smallest eigenvalue of I - W."""
    if (n := near.shape[0]) > _MAX_NODES:
        refuse("the number of nodes of graph", n, f"at most {_MAX_NODES}")
    node, slot = np.nonzero(near >= 0)
    p = np.zeros((n, n))
    p[node, near[node, slot]] = 1.0 / np.bincount(node)[node]
    both = (p + p.T) / (2.0 * n)
    return float(np.linalg.eigvalsh(np.diag(both.sum(axis=1)) - both)[1])


@compiled
def _average_pairs(state: Array, wake: Indices, other: Indices) -> None:
    """Let the pairs average their rows, one pair after the other."""
    for tick in range(wake.size):
        for e in range(state.shape[1]):
            mean = 0.5 * (state[wake[tick], e] + state[other[tick], e])
            state[wake[tick], e] = mean
            state[other[tick], e] = mean


def _gossip_round(state: Array, rng: Generator, near: Ids | None = None) -> int:
    wake = np.asarray(rng.integers(len(state), size=len(state)))
    _average_pairs(state, wake, random_others(wake, rng, near))
    return 2 * len(state)


def _push_round(state: Array, rng: Generator) -> int:
    state *= 0.5
    np.add.at(state, random_others(np.arange(len(state)), rng), state.copy())
    return len(state)
