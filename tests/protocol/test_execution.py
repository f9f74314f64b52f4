from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import inca
from helpers import reference
from helpers.executions import fates, intended, offers, present_flags
from helpers.strategies import executions, generator, interrupted, seeds
from inca.protocol.schedules import Round
from inca.protocol.undelivered import Undelivered


@given(executions())
def test_effective_weights_are_those_of_algorithm_2(execution: inca.Execution) -> None:
    for t, matrix in enumerate(intended(execution), start=1):
        expected = reference.effective_weights(matrix, execution.presence.row(t).tolist())
        assert np.allclose(execution.weights(t).toarray(), np.array(expected, dtype=float), rtol=0, atol=1e-15)


@given(executions())
def test_columns_sum_to_one(execution: inca.Execution) -> None:
    for t in range(1, execution.rounds + 1):
        weights = execution.weights(t).toarray()
        assert np.allclose(weights.sum(axis=0), 1.0, rtol=0, atol=1e-12)
        assert (weights >= -1e-15).all()


@given(executions(), seeds)
def test_mix_and_its_adjoint_are_the_matrix_and_its_transpose(execution: inca.Execution, seed: int) -> None:
    y = generator(seed).normal(size=(execution.parties, 3))
    for t in range(1, execution.rounds + 1):
        weights = execution.weights(t).toarray()
        assert np.allclose(execution.mix(t, y), weights @ y, rtol=0, atol=1e-12)
        assert np.allclose(execution.mix_adjoint(t, y), weights.T @ y, rtol=0, atol=1e-12)
        assert np.allclose(execution.mix(t, y[:, 0]), weights @ y[:, 0], rtol=0, atol=1e-12)
        assert np.allclose(execution.mix_adjoint(t, y[:, 0]), weights.T @ y[:, 0], rtol=0, atol=1e-12)


@given(executions(), seeds)
def test_mixing_conserves_mass(execution: inca.Execution, seed: int) -> None:
    y = generator(seed).normal(size=execution.parties) * 1000
    for t in range(1, execution.rounds + 1):
        assert abs(execution.mix(t, y).sum() - y.sum()) <= 1e-12 * np.abs(y).sum()


@given(executions())
def test_coefficients_are_those_of_erratum_2(execution: inca.Execution) -> None:
    for party in range(execution.parties):
        present = [bool(execution.presence.row(t)[party]) for t in range(execution.rounds + 1)]
        injection = execution.injection
        c, z = reference.adapted(injection.value.tolist(), injection.noise.tolist(), present)
        own_c, own_z = execution.coefficients(party)
        assert np.array_equal(own_c, np.array(c, dtype=float))
        assert np.allclose(own_z, np.array(z, dtype=float), rtol=0, atol=1e-12)
        if present[-1]:
            assert np.allclose(own_z.sum(axis=0), 0.0, atol=1e-9)
        assert execution.total_weights[party] == pytest.approx(own_c.sum(), abs=1e-12)


@given(executions())
def test_weight_is_conserved_in_every_round(execution: inca.Execution) -> None:
    injected = 0.0
    coefficients = [execution.coefficients(i)[0] for i in range(execution.parties)]
    for t, weights in enumerate(execution.weight_history()):
        injected += sum(c[t] for c in coefficients)
        assert weights.sum() == pytest.approx(injected, abs=1e-12)
    assert np.array_equal(weights, execution.message_weights)
    assert execution.weight == pytest.approx(weights[execution.published].sum(), abs=1e-12)


@given(interrupted())
def test_weights_are_those_of_accounts_with_pending_shares(execution: inca.Execution) -> None:
    own = [execution.coefficients(i)[0].tolist() for i in range(execution.parties)]
    share = execution.schedule.round(1).share
    expected = reference.balances(
        offers(execution), share, present_flags(execution), fates(execution), (), lambda i, t: own[i][t]
    )
    np.testing.assert_allclose(list(execution.weight_history()), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(execution.message_weights, expected[-1], rtol=0, atol=1e-12)
    lose = np.arange(execution.parties) == 0
    for run in (execution, execution.without_finals(lose)):
        assert run.undelivered == execution.undelivered
        assert run.weight == pytest.approx(np.array(expected[-1])[run.published].sum(), abs=1e-12)
    everyone = inca.Execution(execution.schedule, execution.injection, undelivered=execution.undelivered)
    assert everyone.weight == pytest.approx(everyone.message_weights.sum(), abs=1e-12)
    missing = execution.parties - everyone.weight
    assert missing >= -1e-12 and (missing < 1e-12 or any(entry.back == 0 for entry in execution.late))


@given(interrupted())
def test_undelivered_offers_are_kept_in_the_weights_of_a_round(execution: inca.Execution) -> None:
    silent = inca.Execution(execution.schedule, execution.injection, execution.presence)
    for t in range(1, execution.rounds + 1):
        assert np.array_equal(execution.weights(t).toarray(), silent.weights(t).toarray())
    assert list(execution.undelivered) == sorted(execution.undelivered)
    assert execution.late == tuple(entry for entry in execution.undelivered if entry.back != entry.round)
    meant = [[sorted(row)[-execution.schedule.slots :] for row in step] for step in offers(execution)]
    whole = execution.offered()
    steps = [whole.round(t) for t in range(1, execution.rounds + 1)]
    assert [[sorted(row) for row in step.receivers.tolist()] for step in steps] == meant
    assert {step.share for step in steps} == {execution.schedule.round(1).share}
    assert silent.offered() is silent.schedule


def test_lost_shares_are_not_in_the_weight_though_everyone_publishes() -> None:
    schedule = inca.ExplicitSchedule([[[-1], [0]], [[1], [0]]])
    lost, late = (inca.Execution(schedule, inca.early_injection(2), undelivered=[(1, 0, 1, back)]) for back in (0, 2))
    assert (lost.weight, late.weight) == (1.5, 2.0)
    assert lost.undelivered == (Undelivered(round=1, sender=0, receiver=1, back=0),)


def small() -> inca.Execution:
    return inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(3))


def torn(*undelivered: Any, weights: bool = False, present: Any = None) -> inca.Execution:
    """Three parties, two rounds; in round 1 party 0 sends to nobody, party 1 to one of two, party 2 to two."""
    receivers = np.array([[[-1, -1], [2, -1], [0, 1]], [[1, 2], [2, 0], [0, 1]]])
    fractions = np.where(receivers >= 0, 0.25, 0.0) if weights else None
    schedule = inca.ExplicitSchedule(receivers, weights=fractions)
    presence = None if present is None else inca.Presence.explicit(present)
    return inca.Execution(schedule, inca.incremental_injection(2), presence, undelivered=undelivered)


class Fading(inca.Schedule):
    """Shares that change from round to round, so that their sizes are not in the files."""

    parties, rounds, slots = 2, 2, 1

    def round(self, t: int) -> Round:
        return Round(np.array([[-1], [0]], dtype=np.int32), 0.5**t)


def test_shares_of_unknown_size_may_be_undelivered_if_they_are_back_in_time() -> None:
    assert torn((1, 0, 1, 1), weights=True).offered().round(1).receivers[0].tolist() == [-1, -1]
    faded = inca.Execution(Fading(), inca.incremental_injection(2), undelivered=[(2, 0, 1, 2)])
    assert faded.offered() is faded.schedule and faded.late == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torn(5), r"an entry of undelivered must be \(round, sender, receiver, back\), got 5"),
        (
            lambda: torn((1, 0, 1)),
            r"an entry of undelivered must be \(round, sender, receiver, back\), got \(1, 0, 1\)",
        ),
        (lambda: torn((0, 0, 1, 0)), "a round in undelivered must be from 1 to 2, got 0"),
        (lambda: torn((3, 0, 1, 0)), "a round in undelivered must be from 1 to 2, got 3"),
        (lambda: torn((1.5, 0, 1, 0)), r"a round in undelivered must be an integer, from 1 to 2, got 1\.5"),
        (lambda: torn((1, 3, 1, 0)), "a sender in undelivered must be from 0 to 2, got 3"),
        (lambda: torn((1, 0, -1, 0)), "a receiver in undelivered must be from 0 to 2, got -1"),
        (lambda: torn((1, 0, 1, 3)), "a round of return in undelivered must be from 0 to 2, got 3"),
        (
            lambda: torn((2, 0, 1, 1)),
            r"an entry of undelivered must be back in the round of the offer, in a later one, or 0 for "
            r"never, got \(2, 0, 1, 1\)",
        ),
        (
            lambda: torn((1, 0, 0, 1)),
            r"an entry of undelivered must be an offer to another party than the sender, got \(1, 0, 0, 1\)",
        ),
        (
            lambda: torn((1, 0, 1, 1), present=[[1, 1, 1], [0, 1, 1], [1, 1, 1]]),
            r"an entry of undelivered must be an offer of a party present in that round, got \(1, 0, 1, 1\)",
        ),
        (
            lambda: torn((2, 0, 1, 2)),
            "the number of undelivered offers of party 0 in round 2 must be at most 0, the number of its "
            "slots with -1, got 1",
        ),
        (
            lambda: torn((1, 1, 0, 1), (1, 1, 2, 1)),
            "the number of undelivered offers of party 1 in round 1 must be at most 1, the number of its "
            "slots with -1, got 2",
        ),
        (
            lambda: torn((1, 0, 1, 1), (1, 0, 1, 0)),
            r"the receivers of party 0 in round 1, undelivered ones included, must be different from each "
            r"other, got \[1, 1\]",
        ),
        (
            lambda: torn((1, 1, 2, 1)),
            r"the receivers of party 1 in round 1, undelivered ones included, must be different from each "
            r"other, got \[2, 2\]",
        ),
        (
            lambda: torn((1, 0, 1, 2), weights=True),
            r"an entry of undelivered must be back in its own round, as shares of different sizes do not "
            r"tell what was missing, got \(1, 0, 1, 2\)",
        ),
        (
            lambda: inca.Execution(Fading(), inca.incremental_injection(2), undelivered=[(2, 0, 1, 0)]),
            r"an entry of undelivered must be back in its own round, as shares of different sizes do not "
            r"tell what was missing, got \(2, 0, 1, 0\)",
        ),
    ],
)
def test_bad_undelivered_offers_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_lost_final_message_is_not_counted_but_its_mixing_happened() -> None:
    whole = small()
    execution = whole.without_finals([False, True, False, False])
    assert execution.published.tolist() == [True, False, True, True]
    assert execution.weight == pytest.approx(whole.message_weights[[0, 2, 3]].sum())
    assert np.array_equal(execution.weights(3).toarray(), whole.weights(3).toarray())
    assert whole.without_finals([0, 1, 0, 0]).published.tolist() == [True, False, True, True]  # flags of any kind


def test_who_published_and_who_settles_stays_as_it_was_checked() -> None:
    flags = np.array([True, True, False, True])
    whole = small()
    one = inca.Execution(whole.schedule, whole.injection, published=flags)
    other = inca.Execution(whole.schedule, whole.injection, cohort=flags)
    flags[:] = False
    for execution in (one, other):
        assert execution.published.tolist() == [True, True, False, True]
        with pytest.raises(ValueError, match="read-only"):
            execution.published[2] = True
    assert other.cohort is not None and other.cohort.tolist() == [True, True, False, True]
    with pytest.raises(ValueError, match="read-only"):
        other.cohort[2] = True


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(4)),
            r"the number of rounds of the injection must be that of the schedule \(3\), got 4",
        ),
        (
            lambda: inca.Execution(
                inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(3), inca.Presence.everyone(5, 3)
            ),
            r"the \(parties, rounds\) of the presence must be those of the schedule, \(4, 3\), got \(5, 3\)",
        ),
        (
            lambda: inca.Execution(
                inca.RandomReceivers(2, 1, seed=1),
                inca.incremental_injection(1),
                inca.Presence.explicit([[1, 1], [1, 0]]),
                published=np.array([True, True]),
            ),
            "a published party must be present in round T, got 1",
        ),
        (lambda: small().without_finals([True]), r"the shape of lost must be \(4,\), got \(1,\)"),
        (lambda: small().mix(0, np.ones(4)), "t must be from 1 to 3, got 0"),
        (lambda: small().mix(1, np.ones(5)), "the number of rows of values must be 4, one per party, got 5"),
        (lambda: small().mix(1, [1, 2, np.nan, 3]), r"values\[2\] must be a finite number, got nan"),
        (lambda: small().coefficients(4), "party must be from 0 to 3, got 4"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        make()
