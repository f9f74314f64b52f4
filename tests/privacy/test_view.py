from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator, interrupted, seeds
from helpers.views import adversary_of, plain_system
from inca._base.types import Array


@given(executions(), seeds)
def test_the_view_holds_exactly_the_messages_that_the_paper_says(execution: inca.Execution, seed: int) -> None:
    """The set V, message by message: errata E4 (sent a round later) and E7 (final messages of those present)."""
    adversary = adversary_of(execution, seed)
    seen = inca.View(execution, adversary).seen
    theirs, rounds = set(adversary.colluding), execution.rounds
    for t in range(rounds + 1):
        for i in range(execution.parties):
            expected = i in theirs or (t, i) in adversary.eavesdropped
            if t == rounds:
                expected |= bool(execution.presence.row(t)[i])
            elif execution.presence.row(t + 1)[i]:
                there = execution.presence.row(t + 1)
                sent = execution.schedule.round(t + 1).receivers[i]
                expected |= any(j >= 0 and there[j] and int(j) in theirs for j in sent)
            assert seen[t, i] == expected


@given(interrupted(), seeds)
def test_offers_count_as_seen_by_colluders_and_late_shares_by_all(execution: inca.Execution, seed: int) -> None:
    adversary = adversary_of(execution, seed)
    view = inca.View(execution, adversary)
    silent = inca.View(inca.Execution(execution.schedule, execution.injection, execution.presence), adversary)
    expected = silent.seen.copy()
    for t, sender, receiver, back in execution.undelivered:
        if receiver in adversary.colluding or back != t:
            expected[t - 1, sender] = True
    assert np.array_equal(view.seen, expected)
    for row in range(len(view.rows)):
        assert not view.explain(row).endswith("seen: ")  # there is a reason for every row


def test_reasons_for_offers_that_were_not_credited() -> None:
    schedule = inca.ExplicitSchedule([[[-1, -1], [0, -1], [0, 1], [0, 1]]] * 2)
    undelivered = [(1, 0, 3, 1), (1, 0, 1, 1), (1, 1, 2, 2), (2, 0, 3, 0), (2, 1, 2, 2)]
    execution = inca.Execution(schedule, inca.incremental_injection(2), undelivered=undelivered)
    view = inca.View(execution, inca.Adversary([3]))
    reasons = {(int(t), int(i)): view.explain(row).split("seen: ")[1] for row, (t, i) in enumerate(view.rows)}
    assert reasons == {
        (0, 0): "offered to colluder 3 in round 1, not credited",
        (0, 1): "offered to party 2 in round 1, and the share was late or lost, so counted as known",
        (1, 0): "offered to colluder 3 in round 2, not credited",
        **{(2, i): "final, hence public" for i in range(3)},
    }
    assert len(inca.View(execution).rows) == 2 + 4


@given(executions(largest=6), seeds)
def test_the_coefficients_are_those_of_the_plain_protocol(execution: inca.Execution, seed: int) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    b, a = plain_system(view)
    np.testing.assert_allclose(view.value, b, atol=1e-12)
    np.testing.assert_allclose(view.noise, a, atol=1e-12)
    assert view.shape == (len(b), b.shape[1], a.shape[1])


@given(executions(), seeds)
def test_rows_are_independent_and_account_for_every_observation(execution: inca.Execution, seed: int) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    honest = set(view.honest.tolist())
    observed = {(int(t), int(i)) for t, i in np.argwhere(view.seen) if int(i) in honest}
    rows = [(int(t), int(i)) for t, i in view.rows]
    held = {(int(view.computed[t, i]), i) for t, i in observed}
    assert sorted(held) == rows
    assert len(observed) == len(rows) + len(view.repeats)
    for t, i, first in view.repeats.tolist():
        assert (first, i) in held
        assert view.index(t, i) == rows.index((first, i))
    if (execution.total_weights[view.honest] != 0).all():  # then rows are provably independent
        assert np.linalg.matrix_rank(np.hstack([view.value, view.noise])) == len(rows)


@given(executions(largest=6), seeds)
def test_colluders_messages_follow_from_the_rows(execution: inca.Execution, seed: int) -> None:
    """What colluders hold adds nothing: its coefficients are combinations of the rows."""
    adversary = adversary_of(execution, seed, colluding=0.5)
    view = inca.View(execution, adversary)
    everything = inca.View(execution, inca.Adversary((), adversary.eavesdropped))
    b, a = everything.value, everything.noise  # nobody colludes, so all parties are unknowns
    system = np.hstack([view.value, view.noise])
    columns = np.concatenate([view.honest, execution.parties + term_columns(view)])
    messages = [(t, i) for t in range(execution.rounds + 1) for i in adversary.colluding]
    theirs = inca.View(execution, inca.Adversary((), messages))
    mine = [q for q, (_, i) in enumerate(theirs.rows.tolist()) if i in adversary.colluding]
    extra = np.hstack([theirs.value, theirs.noise])[mine][:, columns]
    assert np.linalg.matrix_rank(np.vstack([system, extra]), tol=1e-9) == np.linalg.matrix_rank(system, tol=1e-9)
    assert b.shape[1] == execution.parties and a.shape[1] == execution.parties * execution.rounds


def term_columns(view: inca.View) -> Array:
    """Where the noise terms of the honest parties are in the system in which everyone is honest."""
    rounds = view.execution.rounds
    return np.asarray((view.honest[:, np.newaxis] * rounds + np.arange(rounds)).reshape(-1))


@given(executions(), seeds)
def test_every_row_is_where_its_index_says(execution: inca.Execution, seed: int) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    assert [view.index(int(t), int(i)) for t, i in view.rows] == list(range(len(view.rows)))


def test_a_message_held_during_absence_is_one_row() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [0, 1, 1], [0, 1, 1], [1, 1, 1]])
    ring = inca.ExplicitSchedule([[[1], [2], [0]]] * 3)
    execution = inca.Execution(ring, inca.incremental_injection(3), presence)
    view = inca.View(execution, inca.Adversary(eavesdropped=[(1, 0), (2, 0)]))
    assert view.rows.tolist() == [[0, 0], [3, 0], [3, 1], [3, 2]]
    assert view.repeats.tolist() == [[2, 0, 0]]
    assert view.index(2, 0) == view.index(0, 0) == 0
    assert view.explain(0) == (
        "y_0^(0), computed by party 0 in round 0; seen: eavesdropped in round 1, when the party was absent; "
        "eavesdropped in round 2, when the party was absent"
    )
    assert view.explain(1).endswith("seen: final, hence public")


def test_final_messages_of_leavers_are_not_seen() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 0]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]]), inca.incremental_injection(1), presence)
    assert inca.View(execution).rows.tolist() == [[1, 0], [1, 1]]


def test_everyone_absent_at_the_end_and_nobody_looking_leaves_no_row() -> None:
    presence = inca.Presence.explicit([[1, 1], [0, 0]])
    view = inca.View(inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.incremental_injection(1), presence))
    assert view.shape == (0, 2, 2)
    assert view.value.shape == (0, 2)


@given(st.integers(2, 60), st.integers(1, 5), st.floats(0, 1), st.floats(0, 1), seeds)
def test_random_adversaries_have_the_fractions_asked_for(
    n: int, rounds: int, colluding: float, eavesdropped: float, seed: int
) -> None:
    drawn = inca.Adversary.random(n, rounds, generator(seed), colluding=colluding, eavesdropped=eavesdropped)
    assert colluding * n - 1e-6 <= len(drawn.colluding) < colluding * n + 1
    for t in range(rounds):
        count = sum(1 for s, _ in drawn.eavesdropped if s == t)
        assert eavesdropped * n - 1e-6 <= count < eavesdropped * n + 1
    assert all(t < rounds for t, _ in drawn.eavesdropped)


def test_notions_are_those_of_the_paper() -> None:
    assert inca.Adversary().notion == inca.Adversary(eavesdropped=[(0, 1)]).notion == "Eavesdrop DP"
    assert inca.Adversary([1]).notion == "Collusion DP"
    assert inca.Adversary([1], [(0, 0)]).notion == "Eavesdrop and Collusion DP"


def test_the_size_of_an_adversary_is_the_most_it_hears_of_any_round() -> None:
    size = inca.Adversary([4, 7, 9], eavesdropped=[(0, 1), (3, 0), (3, 1), (3, 2), (5, 2)]).fractions(20)
    assert (size.colluding, size.eavesdropped) == (3 / 20, 3 / 20)
    assert inca.Adversary().fractions(20) == inca.RandomAdversary() == inca.Adversary(()).fractions(3)
    assert (inca.RandomAdversary().colluding, inca.RandomAdversary().eavesdropped) == (0.0, 0.0)


@given(st.integers(2, 30), st.integers(1, 4), st.floats(0, 1), st.floats(0, 1), seeds)
def test_a_drawn_adversary_is_as_large_as_asked_for_and_one_message_or_party_fewer_is_not(
    n: int, rounds: int, colluding: float, eavesdropped: float, seed: int
) -> None:
    size = inca.RandomAdversary(colluding=colluding, eavesdropped=eavesdropped)
    drawn = size.draw(n, rounds, generator(seed))
    assert drawn.at_least(size, n, rounds)
    of_drawn = drawn.fractions(n)
    assert of_drawn.colluding >= colluding - 1e-9 and of_drawn.eavesdropped >= eavesdropped - 1e-9
    if drawn.colluding:
        assert not inca.Adversary(drawn.colluding[1:], drawn.eavesdropped).at_least(size, n, rounds)
    if drawn.eavesdropped:
        assert not inca.Adversary(drawn.colluding, drawn.eavesdropped[1:]).at_least(size, n, rounds)


def test_hundreds_of_colluders_are_no_repetition() -> None:
    assert len(inca.Adversary(range(300)).colluding) == 300


SMALL = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]]), inca.incremental_injection(1))
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: inca.View(SMALL, inca.Adversary([0, 1, 2])),
        "the number of colluding parties must be below 3, so that an honest party is left to protect, got 3",
    ),
    (lambda: inca.View(SMALL, inca.Adversary([3])), "an id in colluding must be a party id from 0 to 2, got 3"),
    (lambda: inca.Adversary([1, 1]), "colluding must be a list with every id at most once, got [1, 1]"),
    (lambda: inca.Adversary([-1]), "an id in colluding must be at least 0, got -1"),
    (
        lambda: inca.View(SMALL, inca.Adversary((), [(2, 0)])).seen,
        "a message in eavesdropped must be a message (t, i) with t from 0 to 1 and i from 0 to 2, got (2, 0)",
    ),
    (
        lambda: inca.View(SMALL, inca.Adversary((), [(0, 3)])).seen,
        "a message in eavesdropped must be a message (t, i) with t from 0 to 1 and i from 0 to 2, got (0, 3)",
    ),
    (
        lambda: inca.View(SMALL).index(0, 0),
        "message (t, i) must be an observed message of an honest party, got (0, 0)",
    ),
    (lambda: inca.View(SMALL).index(2, 0), "t must be from 0 to 1, got 2"),
    (lambda: inca.View(SMALL).index(-1, 0), "t must be from 0 to 1, got -1"),
    (lambda: inca.View(SMALL).index(1, 3), "party must be from 0 to 2, got 3"),
    (lambda: inca.View(SMALL).explain(3), "row must be from 0 to 2, got 3"),
    (lambda: inca.Adversary.random(5, 2, generator(1), colluding=1.5), "colluding must be from 0 to 1, got 1.5"),
    (lambda: inca.Adversary.random(1, 2, generator(1)), "parties must be at least 2, got 1"),
    (lambda: inca.Adversary.random(5, 0, generator(1)), "rounds must be at least 1, got 0"),
    (
        lambda: inca.View(inca.Execution(inca.RandomReceivers(10**5, 2, seed=1), inca.incremental_injection(2))).value,
        "the linear system (100000 rows, 300000 columns) must take at most 4 GiB, got 447 GiB",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)
