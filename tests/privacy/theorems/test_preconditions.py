from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator, interrupted
from inca.privacy.theorems import hidden_messages as hiding
from inca.privacy.theorems.hidden_messages import Hidden, edge_vectors, hidden_rank
from inca.privacy.theorems.preconditions import (
    Facts,
    Verdict,
    conditions,
    first_round_met,
    one_sink,
    rank_curve,
    rounds_to_connect,
    shifts,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    theorem6,
)
from inca.privacy.view import View
from inca.protocol.adversary import Adversary

flint = pytest.importorskip("flint")


@st.composite
def views(draw: st.DrawFn, all_at_end: bool = False) -> View:
    execution = draw(executions(all_at_end))
    n, rounds = execution.parties, execution.rounds
    colluding = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    rng, rate = generator(draw(st.integers(0, 2**32))), draw(st.sampled_from([0.0, 0.1, 0.4]))
    tapped = [(t, i) for t in range(rounds + 1) for i in range(n) if rng.random() < rate]
    return View(execution, Adversary(colluding, tapped))


def drawn(n: int, rounds: int, k: int, seed: int, colluding: float = 0.3, leaving: float = 0.0) -> View:
    rng = generator(seed)
    presence = inca.Presence.leaving(n, rounds, leaving, rng)
    execution = inca.Execution(inca.RandomReceivers(n, rounds, k, seed=seed), inca.incremental(rounds), presence)
    return View(execution, Adversary.random(n, rounds, rng, colluding, eavesdropped=0.05))


def plain_messages(view: View) -> dict[tuple[int, int], np.ndarray]:
    """Columns of W^O_{t+1} - I of hidden messages, from the definition: all that sent something unobserved."""
    execution, found = view.execution, {}
    for t in range(execution.rounds):
        step = execution.weights(t + 1).toarray()
        for i in view.honest.tolist():
            held = [s for s in range(t + 1) if execution.presence.row(s)[i]][-1]
            same = [s for s in range(held, execution.rounds + 1) if view.computed[s, i] == held]
            column = step[:, i] * (np.arange(execution.parties) != i)
            if column.any() and not any(view.seen[s, i] for s in same):
                column[i] = -sum(Fraction(entry) for entry in column)
                found[t, i] = column[view.honest]
    return found


def exact_rank(rows: list[np.ndarray], parties: int) -> int:
    """The rank of vectors whose entries off the diagonal are doubles and that sum to 0, by rational arithmetic."""
    entries = []
    for row in rows:
        numbers = [Fraction(float(x)) if x > 0 else Fraction(0) for x in row]
        numbers[int(np.flatnonzero(row < 0)[0])] = -sum(numbers, Fraction(0))
        entries += [flint.fmpq(x.numerator, x.denominator) for x in numbers]
    return int(flint.fmpq_mat(len(rows), parties, entries).rref()[1]) if rows else 0


def hidden_graph(view: View) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(view.honest.size))
    for column in plain_messages(view).values():
        graph.add_edges_from((int(np.flatnonzero(column < 0)[0]), int(j)) for j in np.flatnonzero(column > 0))
    return graph


def sink_count(graph: nx.DiGraph) -> int:
    condensed = nx.condensation(graph)
    return sum(condensed.out_degree(c) == 0 for c in condensed)


def solvable(view: View, changes: np.ndarray) -> bool:
    """Whether B f + A Delta = 0 has a solution for every column f of `changes`."""
    right = view.value @ changes
    if not right.size:
        return True
    solution = np.linalg.lstsq(view.noise, -right, rcond=None)[0]
    return bool(np.abs(view.noise @ solution + right).max() < 1e-7)


# --- edge vectors


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


def test_parties_that_inject_nothing_are_refused_and_named() -> None:
    late = inca.Injection([0.0, 0.0, 1.0], inca.incremental(2).noise)
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 1]])
    swap = inca.ExplicitSchedule([[[1], [2], [0]], [[1], [2], [0]]])
    view = View(inca.Execution(swap, late, presence))
    with pytest.raises(inca.InputError, match=r"the total weight of party 2 is 0\.0, but a part of its value"):
        edge_vectors(view)
    for check in (theorem3, theorem4, theorem5, one_sink):
        assert check(view).why == "party 2 injects nothing of its value"
    gone = View(inca.Execution(swap, late, inca.Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 0]])))
    assert not theorem3(gone).holds
    assert theorem4(gone).coalition == (0, 1)
    nobody = View(inca.Execution(swap, late, inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [0, 0, 0]])))
    assert theorem4(nobody).why == "no honest party injects anything of its value"


# --- ranks


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
    for seed in range(10):
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
    views = [View(inca.Execution(schedule, inca.incremental(1))) for schedule in (fork, lonely)]
    assert str(hidden_rank(views[0])) == "the hidden messages have rank 1 of 2 needed (exact rank)"
    assert hidden_rank(views[1]) == hiding.HiddenRank(1, 3, "not weakly connected", 2, 3)
    monkeypatch.setattr(hiding, "_MOST_DECIDED", 2)
    monkeypatch.setattr(hiding, "_MOST_REPORTED", 2)
    words = "the hidden messages have rank at least 1 of"
    assert str(hidden_rank(views[0])) == f"{words} 2 needed (undecided)"
    assert str(hidden_rank(views[1])) == f"{words} 3 needed (not weakly connected, 2 components)"
    assert not hidden_rank(views[0]).exact
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 0]])
    left = View(inca.Execution(inca.ExplicitSchedule([[[1, -1], [0, 2], [-1, -1]]]), inca.incremental(1), presence))
    assert theorem4(left).coalition == (0, 1)
    assert theorem4(views[0]).why == f"no coalition was found: {words} 2 needed (undecided)"


def test_arithmetic_modulo_primes() -> None:
    rng = generator(1)
    numbers = np.concatenate([rng.random(50), [1 / 3, 1.0, 5e-324, 2.0**-1030 * 3, 1e-300]])
    for prime in hiding._PRIMES:
        assert flint.fmpz(prime).is_prime()
        residues, p, q = hiding._dyadic(numbers, prime)
        for number, residue in zip(numbers.tolist(), residues.tolist(), strict=True):
            exact = Fraction(number)
            assert residue == exact.numerator * pow(exact.denominator, -1, prime) * 2**32 % prime
            back = np.uint64(hiding.inverse(np.uint64(residue), p, q))
            assert hiding.times(np.uint64(residue), back, p, q) == 2**32 % prime
        for size, rank in ((1, 1), (7, 3), (20, 20), (30, 11)):
            low = (rng.integers(prime, size=(size, rank)) @ rng.integers(2, size=(rank, size + 3))) % prime
            low[rng.random(low.shape) < 0.2] = 0
            expected = flint.nmod_mat(size, size + 3, low.reshape(-1).tolist(), prime).rank()
            assert len(hiding.eliminate(low.astype(np.uint32), p, q)) == expected


# --- the curve over rounds


@pytest.mark.parametrize("k", [1, 2])
def test_curve_is_the_rank_of_every_shorter_execution(k: int) -> None:
    for seed in range(12):
        n, rounds = 12, 8
        view = drawn(n, rounds, k, seed)
        curve = rank_curve(view)
        met = [r for r in range(rounds + 1) if curve[r] == view.honest.size - 1]
        assert first_round_met(view) == (met[0] if met else None)
        assert curve[0] == 0
        for r in range(1, rounds + 1):
            tapped = [(t, i) for t, i in view.adversary.eavesdropped if t <= r]
            short = inca.Execution(inca.RandomReceivers(n, r, k, seed=seed), inca.incremental(r))
            cut = View(short, Adversary(view.adversary.colluding, tapped))
            assert curve[r] == exact_rank(list(plain_messages(cut).values()), cut.honest.size)


@given(views())
def test_curve_ends_at_the_rank_under_absence_too(view: View) -> None:
    curve, messages = rank_curve(view), plain_messages(view)
    for r in range(view.execution.rounds + 1):
        early = [column for (t, _), column in messages.items() if t < r]
        assert curve[r] == exact_rank(early, view.honest.size)
    met = np.flatnonzero(curve == view.honest.size - 1)
    assert first_round_met(view) == (int(met[0]) if met.size else None)


def test_kernel_level_function_says_the_same() -> None:
    for seed in range(40):
        view = drawn(30, 6, 1, seed, colluding=0.4)
        execution = view.execution
        receivers = np.stack([execution.sends(t).receivers[:, 0] for t in range(1, 7)])
        colluding = np.isin(np.arange(30), view.adversary.colluding)
        tapped = np.zeros((6, 30), dtype=bool)
        for t, i in view.adversary.eavesdropped:
            tapped[t, i] = True
        assert rounds_to_connect(receivers, colluding, tapped) == first_round_met(view)
        untapped = View(execution, Adversary(view.adversary.colluding))
        assert rounds_to_connect(receivers, colluding) == first_round_met(untapped)


def test_kernel_level_function_refuses() -> None:
    ring, nobody = np.array([[1, 2, 0]], dtype=np.int32), np.zeros(3, dtype=bool)
    with pytest.raises(inca.InputError, match=r"receivers is 'int64 of shape \(1, 3\)', but int32"):
        rounds_to_connect(ring.astype(np.int64), nobody)
    with pytest.raises(inca.InputError, match="colluding is 'bool of shape"):
        rounds_to_connect(ring, nobody[:2])
    with pytest.raises(inca.InputError, match="tapped is 'int64"):
        rounds_to_connect(ring, nobody, np.zeros((1, 3), dtype=np.int64))
    with pytest.raises(inca.InputError, match="receivers has an id out of range, but -1 to 2 was expected"):
        rounds_to_connect(ring + np.int32(1), nobody)


# --- theorems


@given(views())
def test_verdicts_are_consistent_and_their_changes_cannot_be_seen(view: View) -> None:
    verdicts = {verdict.name: verdict for verdict in conditions(view)}
    rank = hidden_rank(view)
    assert verdicts["Theorem 5"].holds <= verdicts["One sink"].holds <= rank.met
    assert verdicts["Theorem 3"].holds == rank.met <= verdicts["Theorem 4"].holds
    assert verdicts["Theorem 2"].holds == (rank.met and view.execution.presence.nobody_absent)
    assert rank.met <= verdicts["Theorem 6"].holds
    for check in (theorem2, theorem3, theorem4, theorem5, one_sink, theorem6):
        alone = check(view)
        assert alone == verdicts[alone.name]
    for verdict in verdicts.values():
        assert verdict.why
        assert "\n" not in verdict.why
        if not verdict.holds or verdict.name == "Theorem 6":
            assert (verdict.factor_sharp, verdict.factor_printed, verdict.coalition) == (None, None, None)
            continue
        assert verdict.factor_sharp is not None
        if verdict.factor_printed is not None:
            assert verdict.factor_sharp <= verdict.factor_printed * (1 + 1e-12)
        changes = shifts(view, verdict)
        lengths = np.square(changes - np.eye(view.honest.size)).sum(axis=1)
        assert lengths.max() <= verdict.factor_sharp * (1 + 1e-9)
        assert solvable(view, changes.T)


@given(views(all_at_end=True))
def test_factors_are_the_limit_of_much_cancelling_noise(view: View) -> None:
    """Where all stay and sigma_independent is 1, the squared shift of i tends to e_i's distance from the span."""
    covariance = view.value @ view.value.T + 1e8 * view.noise @ view.noise.T
    losses = np.einsum("ri,rs,si->i", view.value, np.linalg.pinv(covariance, rcond=1e-14), view.value)
    vectors = edge_vectors(view).matrix.toarray().T
    limits = 1 - np.diag(vectors @ np.linalg.pinv(vectors))
    assert losses == pytest.approx(limits, abs=1e-2)
    verdict, rank = theorem3(view), hidden_rank(view)
    assert limits.sum() == pytest.approx(view.honest.size - rank.hidden)
    if verdict.holds:
        assert limits.max() == pytest.approx(verdict.factor_sharp)


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=30), st.booleans())
def test_closed_form_is_an_upper_bound(given_weights: list[float], full: bool) -> None:
    """Also where a party outside the coalition has the largest weight, 1."""
    weights = np.array(given_weights)
    assume(weights.sum() > 1.0 + 1e-6)
    largest = 1.0 if full else weights.max()
    assert largest**2 / (weights @ weights) <= (weights.size - 1) / (weights.sum() - 1) ** 2 * (1 + 1e-12)


def valid_coalitions(view: View) -> list[set[int]]:
    """All J of Theorem 4, by trying every one."""
    messages = plain_messages(view)
    staying = view.execution.presence.row(view.execution.rounds)
    must = {int(i) for i in view.honest if staying[i]}
    found = []
    for size in range(1, view.honest.size + 1):
        for chosen in combinations(view.honest.tolist(), size):
            members = set(chosen)
            inside = [c for c in messages.values() if {int(view.honest[j]) for j in np.flatnonzero(c)} <= members]
            if must <= members and (np.linalg.matrix_rank(np.stack(inside)) if inside else 0) == size - 1:
                found.append(members)
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
def test_coalition_is_the_largest_there_is(k: int) -> None:
    found = dropped = 0
    for seed in range(60):
        view = drawn(8, 1 + seed % 4, k, seed, colluding=0.2, leaving=0.5)
        valid, verdict = valid_coalitions(view), theorem4(view)
        assert verdict.holds == bool(valid)
        if verdict.coalition is None:
            continue
        coalition, weights = set(verdict.coalition), view.execution.total_weights
        assert coalition in valid
        if view.execution.presence.row(view.execution.rounds)[view.honest].any():
            assert all(other <= coalition for other in valid)
        square = np.square(weights[list(coalition)]).sum()
        assert verdict.factor_sharp == pytest.approx(min(1.0, weights[view.honest].max() ** 2 / square))
        found, dropped = found + 1, dropped + (len(coalition) < view.honest.size)
    assert found > 20
    assert dropped > 3


@given(views())
def test_coalition_under_any_absence_is_the_largest_there_is(view: View) -> None:
    assume(view.honest.size <= 6)
    valid, verdict = valid_coalitions(view), theorem4(view)
    assert verdict.holds == bool(valid)
    if verdict.coalition is not None and view.execution.presence.row(view.execution.rounds)[view.honest].any():
        assert all(other <= set(verdict.coalition) for other in valid)


def test_nobody_stays() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [0, 0, 0]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0], [-1]]] * 2), inca.incremental(2), presence)
    verdict = theorem4(View(execution))
    assert verdict.coalition == (0, 1)
    assert verdict.factor_sharp == pytest.approx(0.5)


def test_leavers_that_spoil_the_rank_are_left_out() -> None:
    """Parties 2 and 3 are two sinks, which one message to both cannot tie to the others; party 3 leaves."""

    def verdict(first: list[list[int]], second: list[list[int]], last: list[int]) -> Verdict:
        presence = inca.Presence.explicit([[1, 1, 1, 1], [1, 1, 1, 1], last])
        return theorem4(View(inca.Execution(inca.ExplicitSchedule([first, second]), inca.incremental(2), presence)))

    nothing = [-1, -1]
    both, silence = [[2, 3], [0, -1], nothing, nothing], [nothing] * 4
    assert verdict(both, [[2, -1], *[nothing] * 3], [1, 1, 1, 0]).coalition == (0, 1, 2, 3)
    why = verdict(both, silence, [1, 1, 1, 0]).why
    assert why.startswith("there is no coalition, as no hidden messages can move value between parties 0 and 2")
    assert verdict([[2, -1], [0, 3], nothing, nothing], silence, [1, 0, 1, 0]).coalition == (0, 2)


def test_static_exchanges_with_two_open_parties() -> None:
    short = 0
    for seed in range(30):
        graph = nx.gnp_random_graph(9, 0.4, seed=seed)
        static = inca.StaticGraph.from_networkx(graph, 4, "metropolis")
        presence = inca.Presence.leaving(9, 4, 0.2 * (seed % 2), generator(seed))
        view = View(inca.Execution(static, inca.incremental(4), presence), Adversary([seed % 9]))
        verdict = theorem6(view)
        if not verdict.holds:
            short += 1
            assert "exchanges never change and parties" in verdict.why
            assert not hidden_rank(view).met
    assert short > 5
    changing = inca.Execution(inca.RandomReceivers(9, 2, seed=1), inca.incremental(2))
    open_parties = Adversary(eavesdropped=[(0, 3), (1, 3), (0, 4), (1, 4)])
    assert (
        theorem6(View(changing, open_parties)).why
        == "no objection, as the exchanges of round 2 differ from those of round 1"
    )


def test_absence_invalid_injections_and_short_ranks_are_explained() -> None:
    swap = inca.ExplicitSchedule([[[1], [0], [0]]] * 2)
    absent = View(inca.Execution(swap, inca.incremental(2), inca.Presence.explicit([[1, 1, 1], [1, 0, 1], [1, 1, 1]])))
    assert theorem2(absent).why == "party 1 is absent in round 1, but nobody ever may be"
    unsafe = inca.Injection([1.0, 0.0, 0.0], [[1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]], unsafe=True)
    for check in (theorem2, theorem3, theorem4, theorem5, one_sink):
        assert (
            "the injection is not valid: validity conditions (ii) and (iii) fail"
            in check(View(inca.Execution(swap, unsafe))).why
        )
    tapped = View(inca.Execution(swap, inca.incremental(2)), Adversary(eavesdropped=[(0, 2), (1, 2)]))
    assert theorem3(tapped).why == "the hidden messages have rank 1 of 2 needed (union-find, 2 components)"
    assert theorem4(tapped).why.endswith("can move value between parties 0 and 2, who are present at the end")


# --- edge cases and refusals


def test_one_honest_party_needs_all_the_noise() -> None:
    view = drawn(6, 3, 2, 1, colluding=5 / 6)
    verdict = theorem3(view)
    assert hidden_rank(view).met
    assert (first_round_met(view), rank_curve(view).tolist()) == (0, [0, 0, 0, 0])
    assert (verdict.factor_sharp, verdict.factor_printed) == (1.0, None)  # the printed form would be 0 / 0
    assert theorem2(view).least_sigma_independent(mu=0.5, sensitivity=2.0) == 4.0
    assert first_round_met(drawn(6, 3, 1, 1, colluding=5 / 6)) == 0
    left = inca.Execution(
        view.execution.schedule, inca.incremental(3), inca.Presence.explicit([[1] * 6] * 3 + [[0] * 6])
    )
    assert theorem3(View(left, view.adversary)).factor_printed is None  # where the printed form would be 0


def test_two_honest_parties() -> None:
    execution = inca.Execution(inca.RandomReceivers(5, 60, seed=1), inca.incremental(60))
    view = View(execution, Adversary([0, 2, 4]))
    met = first_round_met(view)
    assert met is not None
    sends = [execution.sends(t).receivers[:, 0] for t in range(1, 61)]
    assert met == next(t for t, to in enumerate(sends, start=1) if to[1] == 3 or to[3] == 1)
    assert theorem2(view).factor_sharp == 0.5


def test_everyone_honest_and_everything_tapped() -> None:
    view = drawn(6, 1, 1, 3, colluding=0.0)
    assert hidden_rank(View(view.execution)).needed == 5
    tapped = View(view.execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    assert (hidden_rank(tapped).hidden, first_round_met(tapped)) == (0, None)
    assert edge_vectors(tapped).matrix.shape == (0, 6)
    assert [verdict.holds for verdict in conditions(tapped)] == [False] * 6
    everything = View(drawn(6, 1, 2, 3).execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    assert first_round_met(everything) is None


def test_refusals() -> None:
    view = View(drawn(6, 1, 1, 3).execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    with pytest.raises(inca.InputError, match="the coalition is None, but a verdict that names one, which Theorem 3"):
        shifts(view, theorem3(view))
    with pytest.raises(inca.InputError, match="the factor is None, but a verdict that bounds the noise, which Theorem"):
        theorem3(view).least_sigma_independent(1.0)
    with pytest.raises(inca.InputError, match="honest parties of this view"):
        shifts(view, Verdict("x", True, "", 1.0, None, (0, 17)))
    good = Verdict("x", True, "", 1.0, None, (0, 1))
    for mu in (0.0, -1.0, float("nan")):
        with pytest.raises(inca.InputError, match="mu is"):
            good.least_sigma_independent(mu)
    with pytest.raises(inca.InputError, match="sensitivity is -1"):
        good.least_sigma_independent(1.0, -1.0)


def test_facts_share_work() -> None:
    view = drawn(20, 6, 2, 1)
    facts = Facts(view)
    conditions(facts)
    assert facts.hidden.rank == Hidden.of(view).rank == hidden_rank(view)


@given(interrupted(), st.integers(0, 2**32))
def test_messages_of_late_or_lost_shares_hide_nothing(execution: inca.Execution, seed: int) -> None:
    rng = generator(seed)
    view = View(execution, Adversary(rng.choice(execution.parties, 1).tolist() if rng.random() < 0.7 else ()))
    hidden = Hidden.of(view)
    messages = {(int(t), int(view.honest[i])) for t, i in zip(hidden.round, hidden.sender, strict=True)}
    assert not messages & {(entry.round - 1, entry.sender) for entry in execution.late}
    ranks = [hidden.until(r).rank.hidden for r in range(execution.rounds + 1)]
    assert rank_curve(view).tolist() == ranks
    needed = view.honest.size - 1
    assert first_round_met(view) == (ranks.index(needed) if needed in ranks else None)
