from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.hidden_messages import drawn, plain_messages, solvable, views
from helpers.strategies import generator
from inca.privacy.theorems.hidden_messages import HiddenMessages, edge_vectors, hidden_rank
from inca.privacy.theorems.preconditions import (
    TheoremCheck,
    TheoremInputs,
    conditions,
    one_sink,
    shifts,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    theorem6,
)
from inca.privacy.theorems.rank_by_round import first_round_met, rank_curve
from inca.privacy.view import View
from inca.protocol.adversary import Adversary


def test_parties_that_inject_nothing_are_refused_and_named() -> None:
    late = inca.Injection([0.0, 0.0, 1.0], inca.incremental_injection(2).noise)
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 1]])
    swap = inca.ExplicitSchedule([[[1], [2], [0]], [[1], [2], [0]]])
    view = View(inca.Execution(swap, late, presence))
    with pytest.raises(inca.InvalidInput, match=r"the total weight of party 2 must be other than 0, .* got 0\.0"):
        edge_vectors(view)
    for check in (theorem3, theorem4, theorem5, one_sink):
        assert check(view).why == "party 2 injects nothing of its value"
    gone = View(inca.Execution(swap, late, inca.Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 0]])))
    assert not theorem3(gone).holds
    assert theorem4(gone).coalition == (0, 1)
    nobody = View(inca.Execution(swap, late, inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [0, 0, 0]])))
    assert theorem4(nobody).why == "no honest party injects anything of its value"


@given(views())
def test_verdicts_are_consistent_and_their_changes_cannot_be_seen(view: View) -> None:
    verdicts = {verdict.name: verdict for verdict in conditions(view)}
    rank = hidden_rank(view)
    assert verdicts["Theorem 5"].holds <= verdicts["One sink"].holds <= rank.met
    assert verdicts["Theorem 3"].holds == rank.met <= verdicts["Theorem 4"].holds
    assert verdicts["Theorem 2"].holds == (rank.met and view.execution.presence.all_present)
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


@pytest.mark.parametrize("k", [1, pytest.param(2, marks=pytest.mark.slow), 3])
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
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0], [-1]]] * 2), inca.incremental_injection(2), presence)
    verdict = theorem4(View(execution))
    assert verdict.coalition == (0, 1)
    assert verdict.factor_sharp == pytest.approx(0.5)


def test_leavers_that_spoil_the_rank_are_left_out() -> None:
    """Parties 2 and 3 are two sinks, which one message to both cannot tie to the others; party 3 leaves."""

    def verdict(first: list[list[int]], second: list[list[int]], last: list[int]) -> TheoremCheck:
        presence = inca.Presence.explicit([[1, 1, 1, 1], [1, 1, 1, 1], last])
        return theorem4(
            View(inca.Execution(inca.ExplicitSchedule([first, second]), inca.incremental_injection(2), presence))
        )

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
        static = inca.StaticGraph.from_networkx(graph, 4, weights="metropolis", disconnected=True)
        presence = inca.Presence.leaving(9, 4, 0.2 * (seed % 2), generator(seed))
        view = View(inca.Execution(static, inca.incremental_injection(4), presence), Adversary([seed % 9]))
        verdict = theorem6(view)
        if not verdict.holds:
            short += 1
            assert "exchanges never change and parties" in verdict.why
            assert not hidden_rank(view).met
    assert short > 5
    changing = inca.Execution(inca.RandomReceivers(9, 2, seed=1), inca.incremental_injection(2))
    open_parties = Adversary(eavesdropped=[(0, 3), (1, 3), (0, 4), (1, 4)])
    assert (
        theorem6(View(changing, open_parties)).why
        == "no objection, as the exchanges of round 2 differ from those of round 1"
    )


def test_absence_invalid_injections_and_short_ranks_are_explained() -> None:
    swap = inca.ExplicitSchedule([[[1], [0], [0]]] * 2)
    absent = View(
        inca.Execution(swap, inca.incremental_injection(2), inca.Presence.explicit([[1, 1, 1], [1, 0, 1], [1, 1, 1]]))
    )
    assert theorem2(absent).why == "party 1 is absent in round 1, and nobody may ever be"
    unsafe = inca.Injection([1.0, 0.0, 0.0], [[1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]], unsafe=True)
    for check in (theorem2, theorem3, theorem4, theorem5, one_sink):
        assert (
            "the injection is not valid: validity conditions (ii) and (iii) fail"
            in check(View(inca.Execution(swap, unsafe))).why
        )
    eavesdropped = View(inca.Execution(swap, inca.incremental_injection(2)), Adversary(eavesdropped=[(0, 2), (1, 2)]))
    assert theorem3(eavesdropped).why == "the hidden messages have rank 1 of 2 needed (union-find, 2 components)"
    assert theorem4(eavesdropped).why.endswith("can move value between parties 0 and 2, who are present at the end")


def test_one_honest_party_needs_all_the_noise() -> None:
    view = drawn(6, 3, 2, 1, colluding=5 / 6)
    verdict = theorem3(view)
    assert hidden_rank(view).met
    assert (first_round_met(view), rank_curve(view).tolist()) == (0, [0, 0, 0, 0])
    assert (verdict.factor_sharp, verdict.factor_printed) == (1.0, None)  # the printed form would be 0 / 0
    assert theorem2(view).least_sigma_independent(mu=0.5, sensitivity=2.0) == 4.0
    assert first_round_met(drawn(6, 3, 1, 1, colluding=5 / 6)) == 0
    left = inca.Execution(
        view.execution.schedule, inca.incremental_injection(3), inca.Presence.explicit([[1] * 6] * 3 + [[0] * 6])
    )
    assert theorem3(View(left, view.adversary)).factor_printed is None  # where the printed form would be 0


def test_two_honest_parties() -> None:
    execution = inca.Execution(inca.RandomReceivers(5, 60, seed=1), inca.incremental_injection(60))
    view = View(execution, Adversary([0, 2, 4]))
    met = first_round_met(view)
    assert met is not None
    sends = [execution.sends(t).receivers[:, 0] for t in range(1, 61)]
    assert met == next(t for t, to in enumerate(sends, start=1) if to[1] == 3 or to[3] == 1)
    assert theorem2(view).factor_sharp == 0.5


def test_everyone_honest_and_everything_eavesdropped() -> None:
    view = drawn(6, 1, 1, 3, colluding=0.0)
    assert hidden_rank(View(view.execution)).needed == 5
    eavesdropped = View(view.execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    assert (hidden_rank(eavesdropped).hidden, first_round_met(eavesdropped)) == (0, None)
    assert edge_vectors(eavesdropped).matrix.shape == (0, 6)
    assert [verdict.holds for verdict in conditions(eavesdropped)] == [False] * 6
    everything = View(drawn(6, 1, 2, 3).execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    assert first_round_met(everything) is None


def test_refusals() -> None:
    view = View(drawn(6, 1, 1, 3).execution, Adversary(eavesdropped=[(0, i) for i in range(6)]))
    with pytest.raises(
        inca.InvalidInput, match=r"^Theorem 3 must name a coalition, but the hidden messages have rank 0"
    ):
        shifts(view, theorem3(view))
    with pytest.raises(
        inca.InvalidInput, match=r"^Theorem 3 must hold to bound the noise, but the hidden messages have"
    ):
        theorem3(view).least_sigma_independent(1.0)
    with pytest.raises(
        inca.InvalidInput, match=r"the coalition must be made of honest parties of the view, got \(0, 17\)"
    ):
        shifts(view, TheoremCheck("x", True, "", 1.0, None, (0, 17)))
    good = TheoremCheck("x", True, "", 1.0, None, (0, 1))
    for mu in (0.0, -1.0, float("nan")):
        with pytest.raises(inca.InvalidInput, match=r"mu must be (above 0|a finite number), got"):
            good.least_sigma_independent(mu)
    with pytest.raises(inca.InvalidInput, match="sensitivity must be at least 0, got -1"):
        good.least_sigma_independent(1.0, -1.0)


def test_inputs_share_work() -> None:
    view = drawn(20, 6, 2, 1)
    inputs = TheoremInputs(view)
    conditions(inputs)
    assert inputs.hidden.rank == HiddenMessages.of(view).rank == hidden_rank(view)


def test_a_factor_is_never_above_that_of_local_dp() -> None:
    """Party 0 was there twice, party 1 three times and not at the end: alone, party 0 hides less than its weight."""
    presence = inca.Presence.explicit([[1, 1], [0, 1], [0, 1], [1, 0]])
    silent = inca.ExplicitSchedule([[[-1], [-1]]] * 3)
    verdict = theorem4(View(inca.Execution(silent, inca.incremental_injection(3), presence)))
    assert (verdict.coalition, verdict.factor_sharp) == ((0,), 1.0)


def test_if_nobody_stays_the_coalition_is_where_most_weight_is() -> None:
    """Parties 0 and 1 exchange and inject half of their values, party 2 four fifths of its own: by squares, it wins."""
    present = np.zeros((10, 3), dtype=bool)
    present[:5, :2] = present[:8, 2] = True
    exchange = inca.ExplicitSchedule([[[1], [0], [-1]]] * 9)
    view = View(inca.Execution(exchange, inca.incremental_injection(9), inca.Presence.explicit(present)))
    assert view.execution.total_weights.tolist() == pytest.approx([0.5, 0.5, 0.8])
    verdict = theorem4(view)
    assert verdict.coalition == (2,)
    assert verdict.why == "1 of 3 honest parties hide one another, and the others left"
    everyone = View(inca.Execution(inca.RandomReceivers(6, 6, seed=1), inca.incremental_injection(6)))
    assert theorem4(everyone).why == "all 6 honest parties hide one another"
