"""Losses as events of dp_accounting: its accountants say the same as ours."""

from __future__ import annotations

import math
import sys
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.training.averaging_loop import AveragingLoop
from inca.learn.training.train import TrainingResult, TrainingStep
from inca.privacy.dp_event import gaussian_dp_event

NUMERICAL = 1e-6  # relative, of what an accountant with a grid may be below an exact one


def certificate(seed: int = 4, *, absent: bool = False, **levels: float) -> inca.Certificate:
    presence = inca.Presence.leaving(40, 12, 0.2, np.random.default_rng(1)) if absent else None
    execution = inca.Execution(inca.RandomReceivers(40, 12, seed=seed), inca.incremental_injection(12), presence)
    noise: dict[str, Any] = {"sigma_independent": 2.0, "sigma_cancelling": 15.0} | levels
    transcript = inca.Transcript(execution, **noise, adversary=inca.Adversary((3, 8, 21)), sensitivity=1.0)
    return inca.certify(transcript)


def pld(*events: Any) -> PLDAccountant:
    accountant = PLDAccountant()
    for event in events:
        accountant.compose(event)
    return accountant


def assert_same(theirs: float, ours: float) -> None:
    assert ours * (1 - NUMERICAL) <= theirs <= ours * (1 + 1e-3)


@given(st.floats(0.1, 4.0), st.floats(1e-9, 1e-2))
@examples(2, 12)
def test_epsilon_is_that_of_both_accountants(mu: float, delta: float) -> None:
    ours = float(inca.epsilon_for(mu, delta))
    event = gaussian_dp_event(mu)
    if ours > 0.05:  # below, the grid of their distributions is what is seen
        assert_same(pld(event).get_epsilon(delta), ours)
    rdp = RdpAccountant().compose(event).get_epsilon(delta)
    assert rdp >= ours * (1 - NUMERICAL), "Rényi accounting is an upper bound"


@pytest.mark.parametrize("absent", [False, True])
def test_a_certificate_is_the_gaussian_event_of_its_worst_loss(absent: bool) -> None:
    one = certificate(absent=absent)
    mus = [one.losses.max_mu] + ([one.full_attendance.max_mu] if one.full_attendance else [])
    assert (len(mus) == 2) == absent and one.worst_mu == max(mus)
    assert one.dp_event() == dp_accounting.GaussianDpEvent(1.0 / max(mus))
    assert_same(pld(one.dp_event()).get_epsilon(one.delta), one.worst_epsilon)


def test_two_certificates_compose_as_with_ours() -> None:
    one, two = certificate(4), certificate(9, sigma_independent=1.0)
    parties = inca.compose(one.losses, two.losses).epsilon(1e-5)
    together = pld(one.dp_event(), two.dp_event()).get_epsilon(1e-5)
    assert_same(together, float(inca.epsilon_for(math.hypot(one.worst_mu, two.worst_mu), 1e-5)))
    assert together >= parties.max() * (1 - NUMERICAL), "the worst party of one need not be that of the other"
    assert_same(
        pld(one.dp_event(), one.dp_event()).get_epsilon(1e-5), inca.compose(one.losses, one.losses).epsilon(1e-5).max()
    )
    rdp = RdpAccountant().compose(one.dp_event()).compose(two.dp_event())
    assert rdp.get_epsilon(1e-5) >= parties.max() * (1 - NUMERICAL)


def test_it_composes_with_other_mechanisms() -> None:
    mine, other = certificate().dp_event(), dp_accounting.GaussianDpEvent(3.0)
    expected = float(inca.epsilon_for(math.hypot(1 / mine.noise_multiplier, 1 / 3.0), 1e-5))
    assert_same(pld(mine, other).get_epsilon(1e-5), expected)


def test_an_accountant_of_replaced_records_counts_no_less() -> None:
    one, relation = certificate(), dp_accounting.NeighboringRelation.REPLACE_ONE
    for accountant in (PLDAccountant(relation), RdpAccountant(neighboring_relation=relation)):
        assert accountant.compose(one.dp_event()).get_epsilon(one.delta) >= one.worst_epsilon * (1 - NUMERICAL)


def test_no_guarantee_and_no_loss_have_events_of_their_own() -> None:
    naked = certificate(sigma_independent=0.0)
    assert math.isinf(naked.worst_mu) and naked.dp_event() == dp_accounting.NonPrivateDpEvent()
    assert math.isinf(pld(naked.dp_event()).get_epsilon(1e-5))
    assert gaussian_dp_event(0.0) == dp_accounting.NoOpDpEvent()
    for mu in (-1.0, math.nan):
        with pytest.raises(inca.InvalidInput, match="mu must be at least 0"):
            gaussian_dp_event(mu)


def test_budgets_and_trained_models_are_events_too() -> None:
    loop = AveragingLoop(SimulatedAverager.of("central", 5), (2.0, 1e-5), 9, clipping=1.0)
    assert loop.budget.dp_event() == dp_accounting.NoOpDpEvent()
    for _ in loop:
        loop.average(np.zeros((5, 2)))
    assert_same(pld(loop.budget.dp_event()).get_epsilon(1e-5), 2.0)
    result = TrainingResult(np.zeros(1), 2.0, (TrainingStep(0.3, 1.0, 1.0), TrainingStep(0.4, 1.0, None)))
    assert result.dp_event().noise_multiplier == pytest.approx(2.0)


def test_without_dp_accounting_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(inca.InvalidInput, match="dp_event needs dp_accounting: pip install dp-accounting"):
        certificate().dp_event()
