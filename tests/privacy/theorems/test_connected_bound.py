"""The level that is proven wherever hidden messages connect the honest parties, against exact losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import inca
from inca.errors import InvalidInput
from inca.privacy.theorems.connected_bound import connected_cost, connected_level

seeds = st.integers(0, 2**32 - 1)


def hidden_messages_connect(view: inca.View) -> bool:
    n, honest = view.execution.parties, view.honest
    ends = [
        (party, int(view.execution.sends(t).receivers[party, 0]))
        for t in range(1, view.execution.rounds + 1)
        for party in honest
        if not view.known_when_sent[t - 1, party]
    ]
    inside = np.array([pair for pair in ends if pair[1] in honest], dtype=int).reshape(-1, 2)
    graph = coo_array((np.ones(len(inside)), (inside[:, 0], inside[:, 1])), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    return len(set(labels[honest].tolist())) == 1


@given(seeds, st.floats(1.01, 4.0), st.booleans())
def test_at_that_level_no_party_loses_more_than_allowed(seed: int, factor: float, settled: bool) -> None:
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(2, 14)), int(rng.integers(1, 12))
    injection = inca.incremental_injection(rounds, quiet=int(rng.integers(0, rounds)))
    kind = [inca.PermutationReceivers, inca.RandomReceivers][int(rng.integers(2))]
    presence = inca.Presence.leaving(n, rounds, 0.3 if settled else 0.0, rng)
    execution = inca.Execution(kind(n, rounds, seed=seed), injection, presence)
    adversary = inca.Adversary.random(n, rounds, rng, colluding=0.2, eavesdropped=0.3 * float(rng.integers(2)))
    view = inca.View(execution, adversary)
    if settled:
        assume(len(set(np.flatnonzero(presence.row(rounds)).tolist()) - set(adversary.colluding)) > 0)
        view = inca.View(execution.settled(), adversary).of_cohort()
    assume(hidden_messages_connect(view))
    honest = view.honest.size
    level = connected_level(honest, rounds, factor)
    noise = inca.NoiseLevels(independent=math.sqrt(factor / honest), cancelling=math.sqrt(level))
    assert inca.account(view, noise, sensitivity=1.0).max_mu <= 1 + 1e-9


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("honest", [2, 3, 9, 30])
def test_on_a_path_one_message_after_the_other(honest: int, backwards: bool) -> None:
    """What the bound is made for: one hidden message a round, along a path; nothing else is sent among them."""
    rounds = honest - 1
    receivers = np.full((rounds, honest, 1), -1)
    for t in range(rounds):
        receivers[t, t, 0] = t + 1
    if backwards:
        receivers = receivers[::-1]
    run = inca.Execution(inca.ExplicitSchedule(receivers), inca.incremental_injection(rounds))
    factor = 1.2
    level = connected_level(honest, rounds, factor)
    noise = inca.NoiseLevels(independent=math.sqrt(factor / honest), cancelling=math.sqrt(level))
    assert inca.account(inca.View(run), noise, sensitivity=1.0).max_mu <= 1


def test_the_cost_of_a_tree_is_at_most_that_of_the_formula() -> None:
    """The flow of the proof on random trees of hidden messages, priced message by message."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        n, rounds = int(rng.integers(2, 12)), int(rng.integers(1, 30))
        parent = [-1, *(int(rng.integers(j)) for j in range(1, n))]
        below = np.ones(n)
        for j in range(n - 1, 0, -1):
            below[parent[j]] += below[j]
        taken = set()
        edges = {}  # (round, sender) -> receiver and amount
        for j in range(1, n):
            ends = (j, parent[j]) if rng.random() < 0.5 else (parent[j], j)
            free = [t for t in range(rounds) if (t, ends[0]) not in taken]
            if not free:
                break
            t = int(rng.choice(free))
            taken.add((t, ends[0]))
            edges[t, ends[0]] = (ends[1], below[j] / n * (1.0 if ends[0] == parent[j] else -1.0))
        if len(edges) < n - 1:
            continue
        c = inca.incremental_injection(rounds, quiet=int(rng.integers(0, rounds))).value
        f = np.full(n, -1 / n)
        f[0] += 1
        state, cost = c[0] * f, 0.0
        for t in range(rounds):
            moved = np.zeros(n)
            for j in range(n):
                _, amount = edges.get((t, j), (j, 0.0))
                cost += (2 * amount - state[j]) ** 2
                moved[j] -= amount
            for (when, _), (receiver, amount) in edges.items():
                if when == t:
                    moved[receiver] += amount
            state = state + moved + c[t + 1] * f
        assert np.abs(state).max() < 1e-12  # everything has arrived: no mask is left that would have to stay
        assert cost <= connected_cost(n, rounds)


def test_a_party_on_its_own_needs_no_masks_and_nonsense_is_refused() -> None:
    assert connected_cost(1, 5) == 0.0 == connected_level(1, 5, 2.0)
    assert connected_cost(2, 1) == pytest.approx(7 * 3 * 5 / 12)
    assert connected_cost(3, 4) == pytest.approx(10 * 4 * 7 / 18)
    assert connected_level(2, 1, 1.25) == pytest.approx(5 * connected_cost(2, 1))
    with pytest.raises(InvalidInput, match="honest parties must be"):
        connected_cost(0, 5)
    with pytest.raises(InvalidInput, match="rounds must be"):
        connected_cost(3, 0)
    with pytest.raises(InvalidInput, match="factor must be above 1, got 1"):
        connected_level(3, 5, 1.0)
