from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import inca
from helpers.examples import cases
from helpers.hidden_messages import drawn, exact_rank, plain_messages, solvable, views
from inca.privacy.theorems import hidden_messages
from inca.privacy.theorems.hidden_messages import HiddenRank, edge_vectors, hidden_rank
from inca.privacy.theorems.preconditions import theorem4
from inca.privacy.view import View


def hidden_graph(view: View) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(view.honest.size))
    for column in plain_messages(view).values():
        graph.add_edges_from((int(np.flatnonzero(column < 0)[0]), int(j)) for j in np.flatnonzero(column > 0))
    return graph


def sink_count(graph: nx.DiGraph) -> int:
    condensed = nx.condensation(graph)
    return sum(condensed.out_degree(c) == 0 for c in condensed)


@given(views())
def test_edge_vectors_follow_the_definition_and_cannot_be_seen(view: View) -> None:
    edges, plain = edge_vectors(view), plain_messages(view)
    weights = view.execution.total_weights[view.honest]
    assert [tuple(message) for message in edges.messages.tolist()] == list(plain)
    vectors = edges.matrix.toarray()
    if plain:
        assert np.allclose(vectors * weights, np.stack(list(plain.values())), atol=1e-14)
    assert np.abs(vectors @ weights).max(initial=0.0) < 1e-12
    assert solvable(view, vectors.T)


@given(views())
def test_edge_vectors_and_leavers_span_all_that_cannot_be_seen(view: View) -> None:
    """What cannot be seen, {f: B f in the columns of A}, is spanned by edge vectors and by units of leavers."""
    staying = view.execution.presence.row(view.execution.rounds)[view.honest]
    span = np.vstack([edge_vectors(view).matrix.toarray(), np.eye(view.honest.size)[~staying]])
    noise = np.linalg.matrix_rank(view.noise, tol=1e-9)
    both = np.linalg.matrix_rank(np.hstack([view.value, view.noise]), tol=1e-9)
    assert np.linalg.matrix_rank(span, tol=1e-9) == view.honest.size - (both - noise)


@given(views())
def test_rank_is_exact(view: View) -> None:
    rank, rows = hidden_rank(view), list(plain_messages(view).values())
    assert rank.exact
    assert rank.hidden == exact_rank(rows, view.honest.size)
    assert rank.hidden == (np.linalg.matrix_rank(np.stack(rows)) if rows else 0)
    assert rank.needed == view.honest.size - 1
    assert rank.met == (rank.hidden == rank.needed)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_each_step_of_the_cascade_is_right(rounds: int, k: int) -> None:
    for seed in range(cases(4, 10)):
        view = drawn(24, rounds, k, seed, leaving=0.1 * (seed % 2))
        rank, graph = hidden_rank(view), hidden_graph(view)
        assert rank.hidden == exact_rank(list(plain_messages(view).values()), view.honest.size)
        sinks, connected = sink_count(graph), nx.is_weakly_connected(graph)
        assert rank.components == nx.number_weakly_connected_components(graph)
        assert rank.met <= connected  # fact F2
        assert (sinks == 1) <= rank.met
        assert rank.hidden >= view.honest.size - sinks
        if all(len(set(np.flatnonzero(column > 0))) == 1 for column in plain_messages(view).values()):
            assert rank.how == "union-find"
            continue
        assert rank.sinks == sinks
        assert rank.how == (
            "not weakly connected" if not connected else "one sink component" if sinks == 1 else "exact rank"
        )


def test_all_steps_occur() -> None:
    seen = {(rank.how, rank.met) for seed in range(60) for rank in [hidden_rank(drawn(24, 1 + seed % 6, 2, seed))]}
    assert seen >= {("exact rank", True), ("exact rank", False), ("one sink component", True)}


def test_rank_of_several_sinks_over_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = inca.ExplicitSchedule([[[1, 2], [-1, -1], [-1, -1]]])
    lonely = inca.ExplicitSchedule([[[1, 2], [-1, -1], [-1, -1], [-1, -1]]])
    views = [View(inca.Execution(schedule, inca.incremental_injection(1))) for schedule in (fork, lonely)]
    assert str(hidden_rank(views[0])) == "the hidden messages have rank 1 of 2 needed (exact rank)"
    assert hidden_rank(views[1]) == HiddenRank(1, 3, "not weakly connected", 2, 3)
    monkeypatch.setattr(hidden_messages, "_MAX_COLUMNS_DECIDED", 2)
    monkeypatch.setattr(hidden_messages, "_MAX_COLUMNS_REPORTED", 2)
    words = "the hidden messages have rank at least 1 of"
    assert str(hidden_rank(views[0])) == f"{words} 2 needed (undecided)"
    assert str(hidden_rank(views[1])) == f"{words} 3 needed (not weakly connected, 2 components)"
    assert not hidden_rank(views[0]).exact
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 0]])
    left = View(
        inca.Execution(inca.ExplicitSchedule([[[1, -1], [0, 2], [-1, -1]]]), inca.incremental_injection(1), presence)
    )
    assert theorem4(left).coalition == (0, 1)
    assert theorem4(views[0]).why == f"no coalition was found: {words} 2 needed (undecided)"


def test_a_party_that_injects_nothing_in_total_has_no_edge_vector() -> None:
    """c = (1, -1, 1): party 0, absent in round 1, injects 1 - 1 = 0, and then sends a message that nobody else sees."""
    injection = inca.Injection([1.0, -1.0, 1.0], [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    presence = inca.Presence.explicit([[1, 1, 1], [0, 1, 1], [1, 1, 1]])
    view = View(inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]] * 2), injection, presence))
    assert view.execution.total_weights.tolist() == [0.0, 1.0, 1.0]
    sentence = "the total weight of party 0 must be other than 0, as it sends or receives a hidden message, got 0.0"
    with pytest.raises(inca.InvalidInput, match=sentence):
        edge_vectors(view)
