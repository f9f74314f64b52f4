"""The loss of settled executions: exact rows, the bound that counts leavers as colluders, and the forbidden order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.settlement import booked, injected_by
from helpers.strategies import generator, schedules, seeds, settled
from inca._base.types import Array

LEVELS = inca.NoiseLevels(independent=1.0, cancelling=5.0, topup=0.5)


@st.composite
def settled_views(draw: st.DrawFn) -> inca.View:
    """Views of settled executions; some tapped messages, and colluders in the cohort and outside."""
    execution = draw(settled(all_publish=False))
    rng = generator(draw(seeds))
    colluding = np.flatnonzero(rng.random(execution.parties) < draw(st.sampled_from([0.0, 0.3])))[
        : execution.parties - 1
    ]
    tapped = np.argwhere(rng.random((execution.rounds, execution.parties)) < draw(st.sampled_from([0.0, 0.2])))
    return inca.View(execution, inca.Adversary(colluding.tolist(), [(int(t), int(i)) for t, i in tapped]))


@st.composite
def incremental_views(draw: st.DrawFn) -> inca.View:
    """The same for the incremental family, which both methods take, with parties that leave for good."""
    n, rounds = draw(st.integers(3, 9)), draw(st.integers(1, 6))
    rng = generator(draw(seeds))
    presence = inca.Presence.leaving(
        n, rounds, draw(st.sampled_from([0.2, 0.5])), rng, away=draw(st.sampled_from([0.0, 0.2]))
    )
    injection = inca.incremental_injection(rounds, quiet=draw(st.integers(0, rounds - 1)))
    cohort = presence.row(rounds) & (rng.random(n) < 0.9)
    execution = inca.Execution(draw(schedules(n, rounds)), injection, presence).settled(cohort)
    colluding = np.flatnonzero(rng.random(n) < draw(st.sampled_from([0.0, 0.3])))[: n - 1]
    tapped = np.argwhere(rng.random((rounds, n)) < draw(st.sampled_from([0.0, 0.2])))
    return inca.View(execution, inca.Adversary(colluding.tolist(), [(int(t), int(i)) for t, i in tapped]))


def real_rows(view: inca.View) -> tuple[Array, Array]:
    """Return B and A of everything that is seen, from the books: messages as they were, lost shares missing."""
    execution, honest = view.execution, view.honest
    n, rounds = execution.parties, execution.rounds
    units = np.eye(n * (rounds + 1))
    injected = injected_by(execution, units[:n].reshape(n, -1), units[n:].reshape(n, rounds, -1))
    final = booked(execution, injected)
    rows, y = [], injected[0]
    for t in range(rounds + 1):
        if t > 0:
            before, y = y, injected[t] + execution.mix(t, y)
            for entry in execution.late:
                if entry.round == t:
                    y[entry.sender] -= execution.schedule.round(t).share * before[entry.sender]
        seen = view.seen[t, honest]
        whole = final if t == rounds and execution.cohort is not None else y
        rows.append(whole[honest[seen]])
    whole = np.concatenate(rows)
    terms = whole[:, n:].reshape(len(whole), n, rounds)[:, honest].reshape(len(whole), honest.size * rounds)
    return whole[:, honest], terms


def plain_squares(b: Array, a: Array, topup: Array, levels: inca.NoiseLevels) -> Array:
    """Theorem 1 as it stands, on rows that may depend on each other."""
    covariance = levels.independent**2 * b @ b.T + levels.cancelling**2 * a @ a.T + np.diag(topup * levels.topup**2)
    squares: Array = np.einsum("ij,ij->j", b, np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ b)
    return squares


@given(settled_views())
def test_losses_are_those_of_everything_seen(view: inca.View) -> None:
    execution = view.execution
    assert execution.cohort is not None
    b, a = real_rows(view)
    t, party = np.nonzero(view.seen[:, view.honest])
    settled_rows = (t == execution.rounds) & execution.cohort[view.honest[party]]
    expected = plain_squares(b, a, settled_rows, LEVELS)
    losses = inca.account(view, LEVELS, sensitivity=1.0)
    np.testing.assert_allclose(losses.mu**2, expected, rtol=1e-6, atol=1e-9)


@given(incremental_views())
def test_both_methods_agree(view: inca.View) -> None:
    dense, fast = (inca.account(view, LEVELS, sensitivity=1.0, method=m) for m in ("dense", "state-space"))
    np.testing.assert_allclose(fast.mu, dense.mu, rtol=1e-9)


@given(incremental_views())
def test_who_stays_loses_at_most_what_it_would_if_all_others_had_colluded(view: inca.View) -> None:
    execution = view.execution
    assert execution.cohort is not None
    others = np.flatnonzero(~execution.cohort).tolist()
    assume(len({*others, *view.adversary.colluding}) < execution.parties)
    exact = inca.account(view, LEVELS, sensitivity=1.0)
    known = inca.View(execution, inca.Adversary({*others, *view.adversary.colluding}, view.adversary.eavesdropped))
    bound = inca.account(known, LEVELS, sensitivity=1.0)
    for party, mu in zip(bound.honest, bound.mu, strict=True):
        assert exact.mu[np.searchsorted(exact.honest, party)] <= mu * (1 + 1e-9)


def test_settling_out_a_party_whose_message_was_seen_leaves_it_local_dp_with_too_little_noise() -> None:
    """Why the cohort is agreed before anything is published: two sums differ by one party's noisy value alone."""
    execution = inca.Execution(inca.PermutationReceivers(12, rounds=8, seed=3), inca.incremental_injection(8))
    levels = inca.NoiseLevels(independent=1.0, cancelling=30.0)
    everyone, smaller = np.ones(12, dtype=bool), np.ones(12, dtype=bool)
    smaller[5] = False
    first = inca.View(execution.settled(everyone))
    again = inca.View(execution.settled(smaller))
    apart = [inca.account(view, levels, sensitivity=1.0) for view in (first, again)]
    assert max(losses.max_mu for losses in apart) < 0.5
    b, a = (np.vstack([getattr(view, name) for view in (first, again)]) for name in ("value", "noise"))
    both = np.sqrt(plain_squares(b, a, np.zeros(len(b)), levels))
    assert both[5] == pytest.approx(1.0 / levels.independent, rel=1e-6)


def test_nobody_but_the_cohort_publishes() -> None:
    execution = inca.Execution(inca.PermutationReceivers(6, rounds=3, seed=1), inca.incremental_injection(3))
    cohort = np.array([True, True, True, True, False, False])
    view = inca.View(execution.settled(cohort))
    assert view.seen[-1].tolist() == cohort.tolist() and view.settled.all()
    assert view.explain(0).endswith("seen: settled and final, hence public")
