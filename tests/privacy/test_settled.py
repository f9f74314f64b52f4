"""The loss of settled executions: exact rows, the bound that counts leavers as colluders, and the forbidden order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from helpers.documents import words
from helpers.settlement import booked, injected_by
from helpers.strategies import generator, schedules, seeds, settled
from inca._base.types import Array
from inca.privacy.attack import distinguish, observe, reconstruct
from inca.privacy.theorems.preconditions import conditions

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
    np.testing.assert_allclose(fast.mu, dense.mu, rtol=1e-9, atol=1e-12)  # a loss of 0 may be dust in one of them


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


def test_where_nobody_settles_there_is_no_cohort_to_look_at() -> None:
    view = inca.View(inca.Execution(inca.PermutationReceivers(4, 2, seed=1), inca.incremental_injection(2)))
    assert view.of_cohort() is view


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


# --- attack, certificate and theorems ---------------------------------------------------------------------------------


@given(incremental_views(), seeds)
def test_what_is_observed_is_what_the_rows_say(view: inca.View, seed: int) -> None:
    execution, rng = view.execution, generator(seed)
    values = rng.normal(size=execution.parties)
    noise = inca.draw_noise(execution, LEVELS, rng)
    outcome = inca.simulate(execution, values, noise=noise, record=True)
    assert noise.topup is not None
    u = (values + noise.independent[:, 0])[view.honest]
    expected = view.value @ u + view.noise @ noise.cancelling[view.honest, :, 0].reshape(-1)
    expected[view.settled] += noise.topup[view.rows[view.settled, 1], 0]
    np.testing.assert_allclose(observe(view, outcome, values, noise), expected, atol=1e-9)


@given(incremental_views())
def test_the_best_estimate_is_off_by_one_over_the_loss(view: inca.View) -> None:
    """So no linear attack beats the accountant, and one reaches it."""
    losses = inca.account(view, LEVELS, sensitivity=1.0)
    informed = reconstruct(view, np.zeros(len(view.rows)), LEVELS, others=np.zeros(view.execution.parties))
    seen = losses.mu > 1e-6
    np.testing.assert_allclose(informed.standard_error[seen], 1.0 / losses.mu[seen], rtol=1e-5)


def ten_of_whom_two_leave() -> inca.Execution:
    presence = inca.Presence.leaving(10, 6, 0.2, generator(3))
    return inca.Execution(inca.PermutationReceivers(10, 6, seed=4), inca.incremental_injection(6), presence).settled()


def test_the_best_test_of_settled_runs_is_within_the_loss() -> None:
    """False alarms have a probability of 1e-6; the seed is fixed."""
    execution, rng = ten_of_whom_two_leave(), generator(5)
    view = inca.View(execution, inca.Adversary([0]))
    levels = inca.NoiseLevels(independent=0.5, cancelling=2.0, topup=0.4)
    losses = inca.account(view, levels, sensitivity=1.0)
    test = distinguish(view, losses.worst_party, levels, 0.05, rng, sensitivity=1.0, trials=20_000)
    assert test.mu == pytest.approx(losses.max_mu, rel=1e-6)
    assert 0.5 * test.epsilon < test.epsilon_lower <= test.epsilon
    assert test.mu_measured == pytest.approx(test.mu, rel=0.05)


def transcript(**more: Any) -> inca.Transcript:
    stated: dict[str, Any] = {"sigma_independent": 1.0, "sigma_cancelling": 8.0, "sigma_topup": 0.5}
    stated |= {"adversary": inca.Adversary([0]), "sensitivity": 1.0}
    return inca.Transcript(ten_of_whom_two_leave(), **stated | more)


def test_a_certificate_says_that_final_messages_were_settled_and_on_what_it_rests() -> None:
    exact, bound = (inca.certify(transcript(), basis=b) for b in ("exact", "leavers counted as colluders"))
    cohort = transcript().execution.cohort
    assert cohort is not None
    everyone = set(range(10)) - {0}
    assert set(exact.losses.honest.tolist()) == everyone
    assert set(bound.losses.honest.tolist()) == everyone & set(np.flatnonzero(cohort).tolist())
    inside = np.isin(exact.losses.honest, bound.losses.honest)
    assert (exact.losses.mu[inside] <= bound.losses.mu * (1 + 1e-9)).all()
    for certificate, basis in ((exact, "exact"), (bound, "leavers counted as colluders")):
        fields, text = certificate.document().as_fields(), words(certificate)
        assert (fields["settlement"], fields["basis"], fields["sigma_topup"]) == ("settled", basis, 0.5)
        assert "8 of 10 parties settled\n" in text and f"  Basis of losses    {basis}\n" in text
        assert ("nothing is said of their own losses" in text) == (basis != "exact")
        assert any("agreed before any of them was" in sentence for sentence in fields["assumptions"])


def test_the_theorems_count_leavers_as_colluders() -> None:
    view = inca.View(ten_of_whom_two_leave(), inca.Adversary([0]))
    cohort = view.execution.cohort
    assert cohort is not None
    others = np.flatnonzero(~cohort).tolist()
    known = inca.View(view.execution, inca.Adversary([0, *others]))
    assert [check.holds for check in conditions(view)] == [check.holds for check in conditions(known)]
    assert inca.certify(transcript()).rank.needed == len(known.honest) - 1
    levels = inca.NoiseLevels(independent=1.0, cancelling=1e4)
    survivors = inca.account(known, levels, sensitivity=1.0)
    factors = [check.factor_sharp for check in conditions(view) if check.factor_sharp is not None]
    assert factors and survivors.max_mu**2 <= 1.01 * factors[0]


def test_a_cohort_of_colluders_alone_is_certified_for_those_who_left() -> None:
    presence = inca.Presence.explicit([[1] * 4, [1] * 4, [1, 1, 0, 0]])
    execution = inca.Execution(inca.PermutationReceivers(4, 2, seed=1), inca.incremental_injection(2), presence)
    run = inca.Transcript(
        execution.settled(),
        sigma_independent=1.0,
        sigma_cancelling=5.0,
        adversary=inca.Adversary([0, 1]),
        sensitivity=1.0,
    )
    assert inca.certify(run).losses.honest.tolist() == [2, 3]
    with pytest.raises(inca.InvalidInput, match="honest"):
        inca.certify(run, basis="leavers counted as colluders")


@pytest.mark.parametrize(
    ("basis", "words"), [("bound", "basis must be exact or leavers counted"), (None, "basis must")]
)
def test_another_basis_is_refused(basis: Any, words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        inca.certify(transcript(), basis=basis)
    unsettled = inca.Execution(inca.PermutationReceivers(4, 2, seed=1), inca.incremental_injection(2))
    plain = inca.Transcript(
        unsettled, sigma_independent=1.0, sigma_cancelling=5.0, adversary=inca.Adversary(), sensitivity=1.0
    )
    with pytest.raises(inca.InvalidInput, match="basis must be exact, as nobody settles"):
        inca.certify(plain, basis="leavers counted as colluders")


def test_of_a_settled_run_nothing_is_said_of_full_attendance() -> None:
    """The messages that an absent party never sent are not in the file: without them it would be all but cut off."""
    plan = inca.plan(inca.Requirements(5, 4.0))
    present = np.ones((plan.design.rounds + 1, 5), dtype=bool)
    present[1:, 4] = False
    execution = plan.execution(1, inca.Presence.explicit(present))
    levels = plan.noise_levels_of(execution)
    transcript = inca.Transcript(
        execution,
        sigma_independent=levels.independent,
        sigma_cancelling=levels.cancelling,
        sigma_topup=levels.topup,
        sensitivity=1.0,
        adversary=inca.Adversary([0]),
    )
    certificate = inca.certify(transcript)
    assert certificate.full_attendance is None and certificate.worst_epsilon <= 4.0
