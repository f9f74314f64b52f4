"""Settled views to hold the inequality of `inca.privacy.theorems.joined_bound` against, and the inequality plainly."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import inca
from inca._base.types import Array
from inca.protocol.schedules import Round

SHAPES = ("path", "star", "circle", "tree", "pair", "permutation", "random")


def joined_view(seed: int, largest: int = 8, most_rounds: int = 6) -> inca.View:
    """Return a small settled view that the inequality covers: any shape, absences, leavers, offers that failed."""
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(2, largest + 1)), int(rng.integers(1, most_rounds + 1))
    receivers = _receivers(rng, n, rounds)
    present = rng.random((rounds + 1, n)) >= rng.choice([0.0, 0.0, 0.2, 0.5])
    if rng.random() < 0.3:
        present &= np.arange(rounds + 1)[:, np.newaxis] < rng.integers(1, 2 * rounds + 2, n)
    present[0] = True
    if rng.random() < 0.5 or not present[-1].any():
        present[-1] = True
    fails = (rng.random((rounds, n)) < rng.choice([0.0, 0.0, 0.2])) & (receivers >= 0) & present[1:]
    equal = rng.random() < 0.7 or bool(fails.any())
    weights = np.where(receivers >= 0, rng.choice([0.5, 0.75, 1.0], (rounds, n)), 0.0)
    undelivered = [
        (step + 1, i, int(receivers[step, i]), int(rng.choice([0, step + 1])))
        for step, i in np.argwhere(fails).tolist()
    ]
    receivers[fails] = -1
    schedule: inca.Schedule = inca.ExplicitSchedule(
        receivers[:, :, np.newaxis], share=float(rng.choice([0.5, 0.5, 0.6, 1.0])) if equal else None
    )
    if not equal:
        schedule = WeightedSchedule(receivers, weights)
    execution = inca.Execution(
        schedule, _injection(rng, rounds), inca.Presence.explicit(present), undelivered=undelivered
    )
    cohort = present[-1] & (rng.random(n) < rng.choice([1.0, 0.8]))
    cohort[rng.choice(np.flatnonzero(present[-1]))] = True
    colluding = set(rng.permutation(n)[: rng.binomial(n - 1, rng.choice([0.0, 0.0, 0.2]))].tolist())
    if not cohort[sorted(set(range(n)) - colluding)].any():
        colluding = set()
    tapped = rng.random((rounds, n)) < rng.choice([0.0, 0.0, 0.1])
    if rng.random() < 0.6:  # what is not sent is known, too: then states can change by what is sent alone
        tapped |= receivers < 0
    adversary = inca.Adversary(sorted(colluding), [(int(t), int(i)) for t, i in np.argwhere(tapped)])
    return inca.View(execution.settled(cohort), adversary)


class WeightedSchedule(inca.Schedule):
    """One receiver a round, and the fraction of the message that it gets: both are (T, n)."""

    slots = 1

    def __init__(self, receivers: NDArray[np.integer], fractions: Array) -> None:
        self.rounds, self.parties = receivers.shape
        self._receivers, self._fractions = receivers.astype(np.int32), fractions

    def round(self, t: int) -> Round:
        fractions = self._fractions[t - 1, :, np.newaxis]
        return Round(self._receivers[t - 1, :, np.newaxis], 0.5, fractions)


def joined_levels(seed: int) -> inca.NoiseLevels:
    rng = np.random.default_rng((seed, 1))
    independent, topup = ((1.0, 0.0), (1.0, 0.3), (1.0, 3.0), (0.1, 1.0))[rng.integers(4)]
    return inca.NoiseLevels(independent=independent, cancelling=float(10.0 ** rng.uniform(-2.0, 3.0)), topup=topup)


def _receivers(rng: np.random.Generator, n: int, rounds: int) -> NDArray[np.intp]:
    """Return whom each party sends to in each round, (T, n), -1 for nobody, in one of the shapes, perhaps thinned."""
    shape, names = rng.choice(SHAPES), rng.permutation(n)
    places = np.arange(n)
    receivers = np.full((rounds, n), -1)
    for t in range(rounds):
        if shape == "permutation":
            row = np.roll(rng.permutation(n), 1)
            row = np.where(row == places, -1, row)
        elif shape == "circle":
            row = (places + 1 + t % (n - 1)) % n
        elif shape == "random":
            row = (places + rng.integers(1, n, n)) % n
        else:
            parent = {"path": places - 1, "star": 0 * places, "pair": places ^ 1}.get(shape)
            if parent is None:
                parent = (places * np.random.default_rng(n).random(n)).astype(int)
            parent = np.where(parent < n, parent, -1)
            parent[0] = 1 if shape == "pair" else -1
            row = parent if rng.random() < 0.5 else _turned(parent)
        receivers[t] = row
    one_a_round = rng.random() < 0.3
    if one_a_round:  # in order, backwards, or any
        senders = rng.choice(n, rounds) if rng.random() < 0.4 else np.arange(rounds)[:: int(rng.choice([-1, 1]))] % n
        receivers[places[np.newaxis] != senders[:, np.newaxis]] = -1
    receivers[rng.random(receivers.shape) < rng.choice([0.0, 0.0, 0.3, 0.6])] = -1
    renamed = np.full_like(receivers, -1)
    renamed[:, names] = np.where(receivers >= 0, names[receivers], -1)
    return renamed


def _turned(parent: NDArray[np.intp]) -> NDArray[np.intp]:
    """Let parents send to their last child."""
    row = np.full_like(parent, -1)
    row[parent[parent >= 0]] = np.flatnonzero(parent >= 0)
    return row


def _injection(rng: np.random.Generator, rounds: int) -> inca.Injection:
    kind = rng.integers(4)
    if kind < 2:
        return inca.incremental_injection(rounds, quiet=int(rng.integers(0, rounds + 1)) * int(kind))
    portions = np.eye(rounds + 1)[rng.integers(rounds + 1)] if kind == 2 else rng.dirichlet(np.full(rounds + 1, 0.3))
    return inca.Injection(portions, inca.incremental_injection(rounds).noise)


def hidden_graph(view: inca.View, known: Iterable[int] | None = None) -> nx.Graph:
    """Return the honest parties of the cohort, with an edge for each hidden message and each party that it goes to.

    `known` are parties that count as such; by default those outside the cohort.
    """
    execution = view.execution
    if known is None:
        assert execution.cohort is not None
        known = np.flatnonzero(~execution.cohort).tolist()
    inside = set(view.honest.tolist()) - set(known)
    graph = nx.Graph()
    graph.add_nodes_from(sorted(inside))
    for t in range(1, execution.rounds + 1):
        here = execution.presence.row(t)
        for i in inside:
            if here[i] and not view.known_when_sent[t - 1, i]:
                others = set(execution.sends(t).receivers[i].tolist()) - {-1, i}
                if others <= inside:
                    graph.add_edges_from((i, j) for j in others)
    return graph


class PlainBound(NamedTuple):
    """The parts of the inequality's bound on mu_i^2: of independent noise, and of masks by the tree or closed form."""

    independent: Fraction
    masks_by_tree: Fraction
    masks: Fraction

    @property
    def tree(self) -> Fraction:
        return self.independent + self.masks_by_tree

    @property
    def closed(self) -> Fraction:
        return self.independent + self.masks


def plain_bounds(
    view: inca.View, levels: inca.NoiseLevels, known: Iterable[int] | None = None
) -> dict[int, PlainBound]:
    """Return the inequality's bounds for unit sensitivity: from its words, nothing rounded, nothing refused.

    Where there are circles, any breadth-first tree may be meant.
    """
    execution, graph = view.execution, hidden_graph(view, known)
    portions = [Fraction(portion) for portion in execution.injection.value.tolist()]
    independent, topup, cancelling = (
        Fraction(level) ** 2 for level in (levels.independent, levels.topup, levels.cancelling)
    )
    present = {j: sum(bool(execution.presence.row(t)[j]) for t in range(execution.rounds + 1)) for j in graph}
    weight = {j: sum(portions[: present[j]], start=Fraction(0)) for j in graph}
    v = {j: weight[j] ** 2 * independent + topup for j in graph}
    bounds = {}
    for i in graph:
        if not weight[i]:
            bounds[i] = PlainBound(Fraction(0), Fraction(0), Fraction(0))
            continue
        downwards = [i, *(child for _, child in nx.bfs_edges(graph, i))]
        total = sum((v[j] for j in downwards), start=Fraction(0))
        below = {j: v[j] for j in downwards}
        for parent, child in reversed(list(nx.bfs_edges(graph, i))):
            below[parent] += below[child]
        over = weight[i] ** 2 / cancelling
        tree = sum(((present[j] + 5) * (below[j] / total) ** 2 for j in downwards), start=Fraction(0))
        bounds[i] = PlainBound(weight[i] ** 2 / total, over * tree, over * sum(present[j] + 5 for j in downwards))
    return bounds
