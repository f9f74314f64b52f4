"""Losses are never understated by rounding: held against exact fractions, and with errors that are made up."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import inca
from helpers import reference
from helpers.examples import cases
from helpers.executions import intended, present_flags
from inca.errors import SingularView
from inca.privacy import _conjugate_gradients, _dense, _state_space, accountant
from inca.privacy.accountant import Losses, information
from inca.protocol.rounding import Rounding

LEVELS = inca.NoiseLevels(independent=2.0, cancelling=30.0)


def a_view(seed: int = 3) -> inca.View:
    presence = inca.Presence.leaving(6, 4, 1 / 6, np.random.default_rng(seed))
    execution = inca.Execution(inca.RandomReceivers(6, 4, seed=seed), inca.incremental_injection(4), presence)
    return inca.View(execution, inca.Adversary([seed % 6]))


EARLY = inca.View(inca.Execution(inca.RandomReceivers(5, 3, seed=1), inca.early_injection(3)))


def exact(view: inca.View, levels: inca.NoiseLevels) -> list[Fraction]:
    execution = view.execution
    weights = [[[Fraction(x) for x in row] for row in matrix] for matrix in intended(execution)]
    c = [Fraction(x) for x in execution.injection.value.tolist()]
    z = [[Fraction(x) for x in row] for row in execution.injection.noise.tolist()]
    seen = [(int(t), int(i)) for t, i in view.rows]
    variances = Fraction(levels.independent) ** 2, Fraction(levels.cancelling) ** 2
    return reference.losses(weights, present_flags(execution), c, z, seen, view.honest.tolist(), *variances)


@pytest.mark.parametrize(
    ("method", "cancelling"),
    [
        ("dense", 3.0),
        ("dense", 3e4),
        ("state-space", 3.0),
        ("state-space", 3e4),
        ("conjugate-gradients", 3.0),
        ("conjugate-gradients", 3e4),
        ("conjugate-gradients", 2e7),  # where the filter no longer tells a loss
    ],
)
def test_a_loss_is_that_of_exact_fractions_or_a_trifle_more(method: Any, cancelling: float) -> None:
    levels = inca.NoiseLevels(independent=2.0, cancelling=cancelling)
    view = a_view()
    losses = inca.account(view, levels, sensitivity=7.0, method=method)
    assert losses.method == method
    for mu, square in zip(losses.mu.tolist(), exact(view, levels), strict=True):
        ratio = Fraction(mu) ** 2 / (49 * square)
        # A loss is a root: its own rounding, some 1e-16, is not what is rounded up.
        assert 1 - Fraction(1, 10**15) <= ratio <= 1 + Fraction(1, 10**6)


class Told:
    """Lets all methods return squares and errors that are made up; without an error a method gives up."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        fast: float | None,
        plain: float,
        fits: bool = True,
        products: float | None = None,
    ) -> None:
        self.asked: list[str] = []
        self.fast, self.plain, self.products = fast, plain, products
        monkeypatch.setattr(_conjugate_gradients, "information", self.conjugate_gradients)
        monkeypatch.setattr(_state_space, "information", self.state_space)
        monkeypatch.setattr(_dense, "information", self.dense)
        monkeypatch.setattr(_dense, "information_matrix", self.matrix)
        monkeypatch.setattr(type(a_view()), "fits", property(lambda view: fits))

    def state_space(self, view: Any, ratio: float, progress: Any, *, topup: float, matrix: bool) -> Any:
        self.asked.append("state-space")
        assert (ratio, topup) == (15.0, 0.0)
        if self.fast is None:
            raise SingularView("made up")
        return np.array([4.0, 16.0]), self.fast

    def conjugate_gradients(self, view: Any, ratio: float, places: Any, progress: Any, *, topup: float) -> Any:
        self.asked.append("conjugate-gradients")
        assert (ratio, topup) == (15.0, 0.0)
        if self.products is None:
            raise SingularView
        return np.array([36.0, 64.0]), self.products

    def dense(self, view: Any, levels: inca.NoiseLevels) -> Any:
        self.asked.append("dense")
        return np.array([9.0, 25.0]), self.plain

    def matrix(self, view: Any, levels: inca.NoiseLevels) -> Any:
        self.asked.append("matrix")
        return np.eye(2), self.plain


@pytest.mark.parametrize(
    ("fast", "fits", "method", "expected"),
    [
        (1e-10, True, "auto", "state-space"),
        (5e-8, True, "auto", "dense"),  # not told well enough, and the other method can be had
        (2e-10, True, "auto", "dense"),  # ten digits are, where the other method takes no time
        (1e-9, False, "auto", "state-space"),
        (1e-9, True, "state-space", "state-space"),
        (1e-7, False, "auto", "state-space"),
        (None, True, "auto", "dense"),
    ],
)
def test_the_error_that_is_told_is_added_and_a_large_one_handed_over(
    monkeypatch: pytest.MonkeyPatch, fast: float | None, fits: bool, method: Any, expected: str
) -> None:
    Told(monkeypatch, fast=fast, plain=1e-11, fits=fits)
    squares, taken = information(a_view(), LEVELS, method=method)
    assert taken == expected
    if expected == "dense":
        assert squares == pytest.approx(np.array([9.0, 25.0]) * (1 + 1e-11), rel=1e-14)
    else:
        assert fast is not None  # and in units of 1 over the variance of the independent noise
        assert squares == pytest.approx(np.array([1.0, 4.0]) * (1 + fast), rel=1e-14)


def test_of_two_methods_that_both_tell_too_little_the_better_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch, fast=5e-8, plain=1e-7)
    assert information(a_view(), LEVELS)[1] == "state-space" and told.asked == ["state-space", "dense"]


def test_a_large_view_is_handed_over_for_more_than_its_tenth_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accountant, "_QUICK_ROWS", 1)
    for fast, expected in ((1.6e-8, ["state-space"]), (1.7e-8, ["state-space", "dense"])):
        told = Told(monkeypatch, fast=fast, plain=1e-11)
        information(a_view(), LEVELS)
        assert told.asked == expected


def test_a_view_too_large_for_the_dense_method_is_handed_over_to_conjugate_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for fast in (None, 2e-6):
        told = Told(monkeypatch, fast=fast, plain=1e-7, fits=False, products=1e-8)
        squares, taken = information(a_view(), LEVELS)
        assert told.asked == ["state-space", "conjugate-gradients"] and taken == "conjugate-gradients"
        assert squares == pytest.approx(np.array([9.0, 16.0]) * (1 + 1e-8), rel=1e-14)


@pytest.mark.parametrize(
    ("fast", "plain", "fits", "method"),
    [
        (2e-6, 1e-7, False, "auto"),
        (2e-6, 1e-7, True, "state-space"),
        (None, 1e-7, True, "state-space"),
        (None, 1e-7, False, "auto"),
        (2e-6, 2e-6, True, "auto"),
        (1e-12, 2e-6, True, "dense"),
    ],
)
def test_what_double_precision_does_not_tell_is_refused_rather_than_named(
    monkeypatch: pytest.MonkeyPatch, fast: float | None, plain: float, fits: bool, method: Any
) -> None:
    Told(monkeypatch, fast=fast, plain=plain, fits=fits)
    with pytest.raises(inca.InvalidInput, match="double precision does not tell the loss"):
        information(a_view(), LEVELS, method=method)


def test_the_plain_method_is_taken_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch, fast=1e-12, plain=1e-7)
    information(a_view(), LEVELS, method="dense")
    assert told.asked == ["dense"]


@pytest.mark.parametrize(("ratio", "fine"), [(1e12, True), (1.001e12, False), (1e-8, True), (0.999e-8, False)])
def test_how_large_one_noise_may_be_beside_the_other(ratio: float, fine: bool) -> None:
    levels = inca.NoiseLevels(independent=1.0, cancelling=ratio)
    if fine:
        assert accountant._suits(a_view(), levels, "auto")
    else:
        with pytest.raises(
            inca.InvalidInput, match=r"sigma_cancelling / sigma_independent must be from 1e-08 to 1e\+12"
        ):
            accountant._suits(a_view(), levels, "auto")


@pytest.mark.parametrize(("view", "method"), [(EARLY, "auto"), (EARLY, "dense"), (None, "dense")])
def test_the_dense_method_takes_eight_decades(view: inca.View | None, method: Any) -> None:
    for ratio in (1e8, 1.001e8):
        levels = inca.NoiseLevels(independent=1.0, cancelling=ratio)
        if ratio == 1e8:
            accountant._suits(view or a_view(), levels, method)
            continue
        with pytest.raises(inca.InvalidInput, match=r"must be from 1e-08 to 1e\+08, "):
            accountant._suits(view or a_view(), levels, method)


@pytest.mark.parametrize(("ratio", "asked"), [(1e8, "dense"), (1.001e8, "conjugate-gradients")])
def test_beyond_eight_decades_products_follow_the_filter(
    monkeypatch: pytest.MonkeyPatch, ratio: float, asked: str
) -> None:
    order, _ = accountant._order(
        a_view(), inca.NoiseLevels(independent=1.0, cancelling=ratio), False, None, "auto", "cpu"
    )
    assert order == ("state-space", asked)
    monkeypatch.setattr(accountant, "_PAYS_BELOW", 0)
    order, _ = accountant._order(
        a_view(), inca.NoiseLevels(independent=1.0, cancelling=ratio), False, None, "auto", "cpu"
    )
    assert order == ("conjugate-gradients", "state-space", *(["dense"] if ratio == 1e8 else []))


def test_without_one_kind_of_noise_the_plain_method_is_taken() -> None:
    for levels in (
        inca.NoiseLevels(independent=0.0, cancelling=1.0),
        inca.NoiseLevels(independent=1.0, cancelling=0.0),
    ):
        assert not accountant._suits(a_view(), levels, "auto")


def test_the_worst_party_is_the_one_that_loses_most() -> None:
    losses = Losses(np.array([1, 4, 5]), np.array([0.2, 0.9, 0.3]), "dense")
    assert (losses.worst_party, losses.max_mu) == (4, 0.9)
    assert losses.epsilon(1e-5, "classic")[0] == pytest.approx(0.2 * math.sqrt(2 * math.log(1.25e5)))
    assert losses.delta(0.5, "classic")[0] == pytest.approx(1.25 * math.exp(-((0.5 / 0.2) ** 2) / 2))
    assert losses.delta(0.5)[0] < losses.delta(0.5, "classic")[0]


def test_a_loss_is_in_proportion_to_the_sensitivity_and_infinite_ones_stay_so() -> None:
    view = inca.View(a_view().execution, inca.Adversary(eavesdropped=[(0, 1)]))
    none = inca.NoiseLevels(independent=0.0, cancelling=0.0)
    assert math.isinf(inca.account(view, none, sensitivity=1e-9).max_mu)
    assert inca.account(view, none, sensitivity=0.0).max_mu == 0.0
    once, thrice = (inca.account(view, LEVELS, sensitivity=s).mu for s in (1.0, 3.0))
    np.testing.assert_allclose(thrice, 3.0 * once)


def test_what_whole_numbers_add_is_added_to_every_loss() -> None:
    losses = Losses(np.array([1, 4]), np.array([0.5, math.inf]), "dense")
    assert losses.in_whole_numbers(None) is losses
    whole = losses.in_whole_numbers(Rounding(excess=0.25, mu_added=0.125))
    assert whole.mu.tolist() == [0.525, math.inf] and (whole.honest is losses.honest, whole.method) == (True, "dense")


@pytest.mark.parametrize("ratio", [30.0, 300.0, 3e3, 3e4])
@pytest.mark.parametrize(("n", "rounds", "k", "colluding"), [(24, 5, 2, 0.1), (60, 8, 1, 0.2), (200, 10, 2, 0.3)])
def test_the_filter_says_no_less_than_its_rounding(ratio: float, n: int, rounds: int, k: int, colluding: float) -> None:
    """Beside conjugate gradients, which keep all digits at any ratio of the levels."""
    for seed in range(cases(1, 2)):
        execution = inca.Execution(inca.RandomReceivers(n, rounds, k, seed=seed), inca.incremental_injection(rounds))
        adversary = inca.Adversary.random(n, rounds, np.random.default_rng(seed), colluding=colluding)
        view = inca.View(execution, adversary)
        squares, error = _state_space.information(view, ratio)
        upper, gap = _conjugate_gradients.information(view, ratio, np.arange(view.honest.size))
        assert (squares * (1.0 + error) >= upper * (1.0 - gap - 1e-12)).all()
        assert (upper >= squares * (1.0 - error)).all() and np.max(error) < 1e-8 and np.max(gap) < 1e-9
