"""Whether a cohort stays joined whichever of its members collude, against every coalition one by one."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from helpers.strategies import generator, seeds
from inca.errors import InvalidInput
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.hidden_messages import hidden_rank
from inca.privacy.theorems.message_graph import MessageGraph, has_paths
from inca.privacy.view import View
from inca.protocol.adversary import Adversary

Messages = list[tuple[int, int]]


def fewest_that_cut(cohort: list[int], messages: Messages) -> int:
    """Return the fewest colluders that cut others off, or leave fewer than two, by going through all coalitions."""
    beside = dict.fromkeys(cohort, 0)
    for sender, receiver in messages:
        if sender in beside and receiver in beside:
            beside[sender] |= 1 << receiver
            beside[receiver] |= 1 << sender
    everyone = sum(1 << member for member in cohort)
    for size in range(len(cohort) - 1):
        for coalition in combinations(cohort, size):
            others = everyone & ~sum(1 << member for member in coalition)
            reached = ahead = others & -others
            while ahead:
                member = ahead & -ahead
                ahead = (ahead ^ member) | (beside[member.bit_length() - 1] & others & ~reached)
                reached |= ahead
            if reached != others:
                return size
    return max(len(cohort) - 1, 0)


def agrees(cohort: list[int], messages: Messages) -> None:
    graph, fewest = MessageGraph.among(cohort, messages), fewest_that_cut(cohort, messages)
    answers = [graph.keeps_joined(c) for c in range(len(cohort) + 2)]
    assert answers == [c < fewest for c in range(len(cohort) + 2)], (cohort, messages)


@given(st.integers(0, 9), st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), seeds)
@examples(quick=50, thorough=3000)
def test_it_answers_as_all_coalitions_do_on_random_graphs(n: int, rate: float, seed: int) -> None:
    rng = generator(seed)
    messages = [(i, j) for i in range(n + 2) for j in range(n + 2) if i != j and rng.random() < rate / 1.5]
    agrees(rng.permutation(n + 2)[:n].tolist(), messages)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(1, 4), seeds)
@examples(quick=30, thorough=1000)
def test_two_groups_joined_by_a_few(left: int, right: int, between: int, seed: int) -> None:
    """Where few members hold a cohort together, and more partners than these do not help."""
    rng = generator(seed)
    names = rng.permutation(left + between + right).tolist()
    sides = names[: left + between], names[left:]
    messages = [pair for side in sides for pair in combinations(side, 2)]
    cohort = rng.permutation(names).tolist()
    graph = MessageGraph.among(cohort, messages)
    assert graph.keeps_joined(between - 1) and not graph.keeps_joined(between)
    agrees(cohort, messages)


def sparse_graph(rng: np.random.Generator) -> nx.Graph[int]:
    """Return a graph of long paths, where later paths have to take back steps of earlier ones."""
    graph = nx.cycle_graph(int(rng.integers(3, 6)))
    while len(graph) < 16 or rng.random() < 0.8:
        one, other = rng.choice(list(graph), 2, replace=False).tolist()
        nx.add_path(graph, [one, *range(len(graph), len(graph) + int(rng.integers(0, 4))), other])
    return graph


@given(seeds, st.integers(0, 3))
@examples(quick=25, thorough=2000)
def test_it_is_the_connectivity_of_sparse_graphs(seed: int, lost: int) -> None:
    rng = generator(seed)
    graph = sparse_graph(rng)
    messages = list(graph.edges)
    graph.remove_edges_from([messages[place] for place in rng.permutation(len(messages))[:lost]])
    fewest = nx.node_connectivity(graph)
    joined = MessageGraph.among(rng.permutation(list(graph)).tolist(), graph.edges)
    assert [joined.keeps_joined(c) for c in range(7)] == [c < fewest for c in range(7)]


@given(seeds)
@examples(quick=60, thorough=5000)
def test_paths_are_as_many_as_the_largest_flow(seed: int) -> None:
    rng = generator(seed)
    graph = sparse_graph(rng)
    start, *ends = rng.permutation(len(graph))[: rng.integers(2, 8)].tolist()
    flow = nx.DiGraph([((member, "behind"), (other, "before")) for member in graph for other in graph[member]])
    flow.add_edges_from([((member, "before"), (member, "behind")) for member in graph], capacity=1)
    flow.add_edges_from([((end, "behind"), "all ends") for end in ends])
    flow.remove_node((start, "before"))
    most = nx.maximum_flow_value(flow, (start, "behind"), "all ends")
    partners = [frozenset(graph[member]) for member in range(len(graph))]
    assert [has_paths(partners, start, frozenset(ends), k) for k in range(8)] == [k <= most for k in range(8)]


def test_a_member_that_a_path_gave_up_is_free_for_another() -> None:
    """The first path is 0 1 2 3 4. The second comes to 3 and pushes it back from 2 to 1; the third needs 2."""
    graph = nx.Graph()
    for path in ([0, 1, 2, 3, 4], [0, 5, 6, 7, 3], [1, 8, 9, 10, 11], [0, 12, 13, 14, 15, 16, 2], [2, *range(17, 23)]):
        nx.add_path(graph, path)
    partners = [frozenset(graph[member]) for member in range(len(graph))]
    ends = frozenset({4, 11, 22})
    assert has_paths(partners, 0, ends, 3) and not has_paths(partners, 0, ends, 4)
    first_two = [others & frozenset(range(12)) for others in partners[:12]]
    assert has_paths(first_two, 0, ends, 2) and not has_paths(first_two, 0, ends, 3)


def circle(n: int, rounds: int) -> Messages:
    return [(i, (i + r) % n) for i in range(n) for r in range(1, rounds + 1)]


@pytest.mark.parametrize("n", [*range(2, 9), *(pytest.param(n, marks=pytest.mark.slow) for n in range(9, 15))])
def test_circles_with_every_lost_message(n: int) -> None:
    """As all parties are alike, one of party 0 stands for those of others."""
    for rounds in range(1, n):
        agrees(list(range(n)), circle(n, rounds))
        for lost in range(1, rounds + 1):
            agrees(list(range(n)), [pair for pair in circle(n, rounds) if pair != (0, lost)])


@given(st.integers(4, 60), st.integers(0, 8), st.integers(0, 8), st.integers(0, 3), seeds)
def test_a_cohort_of_a_planned_circle_is_joined(n: int, colluders: int, leavers: int, lost: int, seed: int) -> None:
    if colluders + leavers > n - 2 or (rounds := circle_rounds(n, colluders + leavers, lost)) is None:
        return
    rng = generator(seed)
    cohort = rng.permutation(n)[leavers:].tolist()
    messages = circle(n, rounds)
    for place in sorted(rng.permutation(len(messages))[:lost].tolist(), reverse=True):
        del messages[place]
    graph = MessageGraph.among(cohort, messages)
    assert graph.keeps_joined(colluders)
    assert min(map(graph.partners_in, cohort)) > colluders


@given(st.integers(3, 7), st.sampled_from([0.0, 0.2, 0.5]), seeds)
@examples(quick=12, thorough=400)
def test_it_is_what_the_accountant_sees_of_every_coalition(n: int, rate: float, seed: int) -> None:
    """Absences, leavers and lost messages included: the rank of Theorem 3 among those of the cohort that are honest."""
    rng = generator(seed)
    rounds = int(rng.integers(1, n))
    receivers = np.stack([inca.CircleSchedule(n, rounds).round(r).receivers for r in range(1, rounds + 1)])
    receivers[rng.random(receivers.shape) < rate / 2] = -1
    present = rng.random((rounds + 1, n)) >= rate
    present[0] = True
    execution = inca.Execution(
        inca.ExplicitSchedule(receivers), inca.incremental_injection(rounds), inca.Presence.explicit(present)
    )
    if execution.published.sum() < 2:
        return
    execution = execution.settled()
    cohort = np.flatnonzero(execution.published).tolist()
    graph = MessageGraph.of(View(execution).of_cohort())
    assert list(graph.partners) == cohort
    for colluders in range(len(cohort) - 1):
        coalitions = (c for size in range(colluders + 1) for c in combinations(cohort, size))
        views = (View(execution, Adversary(coalition)).of_cohort() for coalition in coalitions)
        assert graph.keeps_joined(colluders) == all(hidden_rank(view).met for view in views)


def test_partners_are_counted_once_in_either_direction_and_inside_the_cohort() -> None:
    messages = [(0, 1), (1, 0), (0, 1), (2, 0), (0, 9), (9, 1), (3, 3)]
    graph = MessageGraph.among([0, 1, 2, 3], messages)
    assert [graph.partners_in(party) for party in (0, 1, 2, 3, 9)] == [2, 1, 1, 0, 0]
    assert graph.partners[0] == {1, 2}


def test_fewer_than_two_honest_members_are_not_joined() -> None:
    everyone_to_everyone = MessageGraph.among(range(5), combinations(range(5), 2))
    assert [everyone_to_everyone.keeps_joined(c) for c in range(6)] == [True, True, True, True, False, False]
    assert not MessageGraph.among([3], []).keeps_joined(0) and not MessageGraph.among([], []).keeps_joined(0)
    with pytest.raises(InvalidInput, match="colluders must be at least 0, got -1"):
        everyone_to_everyone.keeps_joined(-1)


def test_messages_with_several_receivers_are_refused() -> None:
    """Partners do not decide there: a triangle withstands one colluder, but each message went to that one, too."""
    together = inca.ExplicitSchedule([[[1, 2], [0, 2], [0, 1]]])
    execution = inca.Execution(together, inca.incremental_injection(1))
    assert not hidden_rank(View(execution, Adversary([2]))).met
    with pytest.raises(InvalidInput, match="the number of receivers of a message must be 1, got 2"):
        MessageGraph.of(View(execution))


def test_a_seventy_party_circle_that_lost_some() -> None:
    """Large enough that going through coalitions is out of reach; what surrounds a party is found all the same."""
    messages = circle(70, 8)
    cohort = [i for i in range(70) if i % 10]
    graph = MessageGraph.among(cohort, messages)
    assert graph.keeps_joined(7)
    neighbours = sorted(graph.partners[34])
    cut = [pair for pair in messages if not (34 in pair and set(pair) & set(neighbours[7:]))]
    assert MessageGraph.among(cohort, cut).partners_in(34) == 7
    assert MessageGraph.among(cohort, cut).keeps_joined(6) and not MessageGraph.among(cohort, cut).keeps_joined(7)


@given(st.integers(1, 9), st.sampled_from([0.2, 0.4, 0.6, 0.9]), st.integers(0, 4), seeds)
@examples(quick=50, thorough=3000)
def test_a_cut_around_a_member_is_there_if_any_coalition_cuts_it_off(n: int, rate: float, c: int, seed: int) -> None:
    graph = nx.gnp_random_graph(n, rate, seed=seed)
    member, names = seed % n, [10 + node for node in range(n)]
    cut = MessageGraph.among(names, ((10 + i, 10 + j) for i, j in graph.edges)).cut_around(10 + member, c)
    others = [node for node in range(n) if node != member]

    def alone(coalition: tuple[int, ...]) -> bool:
        left = graph.subgraph(set(graph) - set(coalition))
        return len(left) < 2 or not nx.is_connected(left)

    cuts = [coalition for size in range(min(c, n - 1) + 1) for coalition in combinations(others, size)]
    cuts = [coalition for coalition in cuts if alone(coalition)]
    assert (cut is None) is (not cuts)
    if cut is not None:
        chosen = tuple(node - 10 for node in cut)
        assert len(chosen) <= c and member not in chosen and alone(chosen)
        if n > c + 1 and graph.degree[member] > c:
            assert len(chosen) == len(cuts[0])
        else:
            assert graph.degree[member] == len(set(graph[member]) & set(chosen))
