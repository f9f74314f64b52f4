"""Losses of some parties by products with Sigma: beside the dense method, and in hard cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator, interrupted, seeds, settled
from helpers.views import adversary_of, incremental_ones
from inca._base.types import Array
from inca.privacy import _conjugate_gradients, _dense, _state_space, accountant

LEVELS = inca.NoiseLevels(independent=1.0, cancelling=8.0)


def drawn(n: int = 40, rounds: int = 8, k: int = 1, seed: int = 1, colluding: float = 0.1) -> inca.View:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, k, seed=seed), inca.incremental_injection(rounds))
    return inca.View(execution, inca.Adversary.random(n, rounds, generator(seed), colluding=colluding))


def compare(view: inca.View, ratio: float, topup: float = 0.0) -> None:
    """The losses are those of the dense method, and what is stated is no less than them."""
    places = np.arange(view.honest.size)
    squares, error = _conjugate_gradients.information(view, ratio, places, topup=topup)
    levels = inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=topup)
    expected, its_error = _dense.information(view, levels)
    np.testing.assert_allclose(squares, expected, rtol=1e-9, atol=1e-15)
    assert np.max(error) < 1e-6
    assert (squares * (1.0 + error) >= expected * (1.0 - 10.0 * its_error) - 1e-18).all()


@given(executions(), seeds, st.floats(0.1, 1e4))
def test_any_schedule_presence_and_adversary(execution: inca.Execution, seed: int, ratio: float) -> None:
    execution = incremental_ones(execution)
    compare(inca.View(execution, adversary_of(execution, seed)), ratio)


@given(settled(all_publish=False), seeds, st.floats(0.5, 1e3), st.sampled_from([0.0, 0.7]))
def test_settled_messages(execution: inca.Execution, seed: int, ratio: float, topup: float) -> None:
    if execution.injection.mask_scales is not None:
        compare(inca.View(execution, adversary_of(execution, seed)), ratio, topup)


@given(interrupted(), seeds, st.floats(0.5, 1e3))
def test_late_and_lost_shares(execution: inca.Execution, seed: int, ratio: float) -> None:
    if execution.injection.mask_scales is not None:
        compare(inca.View(execution, adversary_of(execution, seed)), ratio)


@pytest.mark.parametrize(
    ("k", "colluding"), [(1, 0.0), pytest.param(1, 0.1, marks=pytest.mark.slow), (1, 0.6), (1, 0.95), (3, 0.2)]
)
def test_larger_views(k: int, colluding: float) -> None:
    view = drawn(80, 10, k, colluding=colluding)
    for ratio in (0.1, 1.0, 30.0, 1e3):
        compare(view, ratio)


def groups(count: int, size: int, rounds: int) -> inca.View:
    """Groups that only talk within themselves: the sum of every group's final messages has no masks."""
    rng = generator(6)
    table = []
    for _ in range(rounds):
        receivers: list[list[int]] = []
        for group in range(count):
            shift = int(rng.integers(1, size))
            receivers += [[group * size + (i + shift) % size] for i in range(size)]
        table.append(receivers)
    execution = inca.Execution(inca.ExplicitSchedule(table), inca.incremental_injection(rounds))
    return inca.View(execution, inca.Adversary(colluding=[0]))


@pytest.mark.parametrize("ratio", [1e2, 1e4])
def test_no_combination_of_messages_that_is_hardly_masked_is_missed(ratio: float) -> None:
    """Steps that gain little are no reason to stop: the sums of groups hide in tiny parts of the right-hand sides.

    Those sums are nearly all that is told of a value, for every group but one a separate one.
    """
    view = groups(6, 20, 12)
    compare(view, ratio)
    sums = 1.0 / 20.0
    squares, _ = _conjugate_gradients.information(view, ratio, np.arange(view.honest.size))
    assert (squares[25:] >= sums * (1.0 - 1e-9)).all()


class TestSomeParties:
    def test_they_lose_what_they_lose_among_all(self) -> None:
        view = drawn()
        of_all = inca.account(view, LEVELS, sensitivity=2.0)
        asked = [int(party) for party in view.honest[[20, 3, 11]]]
        for method in ("auto", "dense", "state-space", "conjugate-gradients"):
            some = inca.account(view, LEVELS, sensitivity=2.0, parties=asked, method=method)
            assert some.honest.tolist() == asked
            np.testing.assert_allclose(some.mu, of_all.mu[[20, 3, 11]], rtol=1e-9)

    def test_more_than_a_batch_and_several_threads(self) -> None:
        view = drawn(60)
        told: list[tuple[int, int]] = []
        losses = inca.account(
            view,
            LEVELS,
            sensitivity=1.0,
            method="conjugate-gradients",
            progress=lambda done, steps: told.append((done, steps)),
        )
        np.testing.assert_allclose(losses.mu, inca.account(view, LEVELS, sensitivity=1.0, method="dense").mu, rtol=1e-9)
        assert told == [(done, 7) for done in range(1, 8)]

    @pytest.mark.parametrize(
        ("parties", "message"),
        [
            ([], "the number of parties whose losses are wanted must be at least 1, got 0"),
            (5, "parties must be the ids of some honest parties, got 5"),
            ([3, 3], "parties must be different from each other, got"),
            ([-1], "party must be at least 0, got -1"),
            ([True], "party must be an integer, at least 0, got True"),
            ([1.5], "party must be an integer, at least 0, got 1.5"),
            ([40], "a party whose loss is wanted must be an honest one of parties 0..39, got 40"),
        ],
    )
    def test_whoever_cannot_be_meant_is_refused(self, parties: Any, message: str) -> None:
        with pytest.raises(inca.InvalidInput, match=message):
            inca.account(drawn(), LEVELS, sensitivity=1.0, parties=parties)

    def test_a_colluder_has_no_loss(self) -> None:
        view = inca.View(drawn().execution, inca.Adversary(colluding=[4]))
        with pytest.raises(inca.InvalidInput, match=r"must be an honest one of parties 0\.\.39, got 4"):
            inca.account(view, LEVELS, sensitivity=1.0, parties=[4])


class TestWhichMethod:
    def test_few_parties_of_a_large_view_and_all_of_a_small_one(self) -> None:
        large, small = drawn(1000, 10), drawn(60, 10)
        assert (
            inca.account(large, LEVELS, sensitivity=1.0, parties=[int(large.honest[5])]).method == "conjugate-gradients"
        )
        assert inca.account(large, LEVELS, sensitivity=1.0).method == "state-space"
        assert inca.account(small, LEVELS, sensitivity=1.0, parties=[int(small.honest[5])]).method == "state-space"

    def test_all_of_so_many_that_the_filter_would_take_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accountant, "_PAYS_BELOW", 1)
        view = drawn(60, 10)
        losses = inca.account(view, LEVELS, sensitivity=1.0)
        assert losses.method == "conjugate-gradients"
        np.testing.assert_allclose(losses.mu, inca.account(view, LEVELS, sensitivity=1.0, method="dense").mu, rtol=1e-9)

    def test_little_cancelling_noise_is_for_the_filter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accountant, "_PAYS_BELOW", 1)
        monkeypatch.setattr(accountant, "_QUICK_ROWS", 0)
        little = inca.NoiseLevels(independent=1.0, cancelling=0.9)
        assert inca.account(drawn(60, 10), little, sensitivity=1.0).method == "state-space"

    def test_what_takes_too_many_steps_is_handed_over_or_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accountant, "_PAYS_BELOW", 1)
        monkeypatch.setattr(_conjugate_gradients, "_MOST_STEPS", 3)
        view = drawn(60, 10)
        handed_over = inca.account(view, LEVELS, sensitivity=1.0)
        assert handed_over.method == "state-space"
        refused = "double precision does not tell the loss"
        with pytest.raises(inca.InvalidInput, match=refused):
            inca.account(view, LEVELS, sensitivity=1.0, method="conjugate-gradients")
        monkeypatch.setattr(accountant, "_MAX_FILTERED", 10)  # so many that the filter would take days
        assert inca.account(view, LEVELS, sensitivity=1.0).method == "dense"
        monkeypatch.setattr(type(view), "fits", property(lambda view: False))
        with pytest.raises(inca.InvalidInput, match=refused):
            inca.account(view, LEVELS, sensitivity=1.0)

    def test_it_needs_the_incremental_family_and_noise(self) -> None:
        view = drawn()
        early = inca.View(inca.Execution(view.execution.schedule, inca.early_injection(8)), view.adversary)
        with pytest.raises(inca.InvalidInput, match="dense, as conjugate-gradients needs the incremental family"):
            inca.account(early, LEVELS, sensitivity=1.0, method="conjugate-gradients")
        silent = inca.NoiseLevels(independent=0.0, cancelling=1.0)
        with pytest.raises(inca.InvalidInput, match="dense, as conjugate-gradients needs the incremental family"):
            inca.account(view, silent, sensitivity=1.0, method="conjugate-gradients")


def losses_of(view: inca.View, ratio: float = 5.0) -> Array:
    levels = inca.NoiseLevels(independent=1.0, cancelling=ratio)
    return inca.account(view, levels, sensitivity=1.0, method="conjugate-gradients").mu


class TestEnds:
    def test_one_honest_party_is_given_away_but_for_its_own_noise(self) -> None:
        execution = inca.Execution(inca.RandomReceivers(5, 4, seed=1), inca.incremental_injection(4))
        np.testing.assert_allclose(losses_of(inca.View(execution, inca.Adversary(colluding=range(4)))), [1.0])

    def test_whoever_left_before_the_first_round(self) -> None:
        n, rounds = 12, 5
        here = np.ones((rounds + 1, n), dtype=bool)
        here[1:, 3] = False
        execution = inca.Execution(
            inca.RandomReceivers(n, rounds, seed=2), inca.incremental_injection(rounds), inca.Presence.explicit(here)
        )
        compare(inca.View(execution, inca.Adversary(colluding=[0])), 5.0)

    def test_a_party_that_injects_nothing_in_total(self) -> None:
        """c = (1, -1, 1): absent in round 1, it injects 1 - 1 = 0, and its final message may depend on others."""
        injection = inca.Injection([1.0, -1.0, 1.0], [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
        presence = inca.Presence.explicit([[1, 1, 1], [0, 1, 1], [1, 1, 1]])
        execution = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]] * 2), injection, presence)
        with pytest.raises(inca.InvalidInput, match="so nearly dependent"):
            losses_of(inca.View(execution))
        settled = inca.View(execution.settled())
        compare(settled, 5.0, topup=0.4)

    def test_everyone_absent(self) -> None:
        execution = inca.Execution(
            inca.RandomReceivers(4, 3, seed=2),
            inca.incremental_injection(3),
            inca.Presence.explicit([[1] * 4, *[[0] * 4] * 3]),
        )
        compare(inca.View(execution), 5.0)


@pytest.mark.slow
def test_a_thousand_parties_as_by_the_filter() -> None:
    for settle in (False, True):
        n, rounds = 1500, 20
        presence = inca.Presence.leaving(n, rounds, 0.1, generator(2))
        execution = inca.Execution(
            inca.RandomReceivers(n, rounds, seed=1), inca.incremental_injection(rounds), presence
        )
        execution = execution.settled(presence.row(rounds)) if settle else execution
        view = inca.View(execution, inca.Adversary.random(n, rounds, generator(1), colluding=0.1))
        topup = 0.5 if settle else 0.0
        places = np.arange(0, view.honest.size, 20)
        some, error = _conjugate_gradients.information(view, 13.0, places, topup=topup)
        expected, _ = _state_space.information(view, 13.0, topup=topup)
        np.testing.assert_allclose(some, expected[places], rtol=1e-10)
        assert np.max(error) < 1e-10
