"""What failure a plan states: never less than the chance that a party is cut off, which no level of noise helps."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.plain_isolation import isolation
from inca.errors import RequirementsNotMet
from inca.planning.designs import ProtocolDesign


def statement(requirements: inca.Requirements, **options: Any) -> float:
    """Return what failure a plan states; where it is refused, what is wanted, which must be less than is true then."""
    try:
        return inca.plan(requirements, inca.PlanOptions(**options)).failure_probability
    except RequirementsNotMet:
        return math.inf


@pytest.mark.parametrize("failure", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("messages", [6, 8, 10, 20])
@pytest.mark.parametrize(
    ("parties", "colluding", "dropout"), [(1000, 0.2, 0.0), (1000, 0.1, 0.1), (10, 0.1, 0.1), (50, 0.3, 0.2)]
)
def test_no_plan_states_less_than_a_party_without_any_hidden_message_has(
    parties: int, colluding: float, dropout: float, messages: int, failure: float
) -> None:
    requirements = inca.Requirements(
        parties, 0.2, 1e-5, colluding=colluding, dropout=dropout, messages=messages, failure=failure
    )
    for proven in (False, True):
        with suppress(RequirementsNotMet):
            plan = inca.plan(requirements, inca.PlanOptions(proven=proven, views=4))
            rounds, known = plan.design.rounds, requirements.colluders + requirements.leavers
            alone, _ = isolation("permutation", parties, known, rounds)
            certain = proven and plan.design.schedule == "circle"  # nothing is drawn
            assert plan.failure_probability >= alone or (certain and plan.failure_probability == 0.0)


@pytest.mark.parametrize("failure", [1e-9, 1e-12])
def test_six_messages_are_too_few_for_a_failure_rarer_than_that_of_a_party_alone(failure: float) -> None:
    """With a fifth of 1,000 parties colluding, 4.1e-9 of the parties only meet colluders in six rounds."""
    requirements = inca.Requirements(1000, 0.2, 1e-5, colluding=0.2, messages=6, failure=failure, dropout=0.0)
    with pytest.raises(RequirementsNotMet, match=r"messages is 6, .* allow at least"):
        inca.plan(requirements)
    assert inca.plan(replace(requirements, failure=1e-6)).design.rounds == 6
    assert inca.plan(replace(requirements, messages=11)).failure_probability == failure


def test_a_plan_file_that_states_less_than_is_true_is_not_believed(tmp_path: Path) -> None:
    plan = inca.plan(inca.Requirements(1000, 0.2, 1e-5, colluding=0.2, messages=6, dropout=0.0))
    fields = plan.document().as_fields()
    fields["wish"]["failure"] = 1e-12
    (tmp_path / "plan.json").write_text(json.dumps(fields))
    again = inca.read_plan(tmp_path / "plan.json")
    assert again.failure_probability == again.agreed.failure == pytest.approx(4.14e-9, rel=0.01)


def test_where_one_lost_party_takes_too_much_noise_along_its_chance_is_everyones() -> None:
    """Of 10 parties one colludes and one leaves. If one of eight is cut off, seven have less than a factor of 1."""
    requirements = inca.Requirements(10, 1.0, 1e-5, colluding=0.1, dropout=0.1, messages=20)
    design, (alone, _) = ProtocolDesign("permutation", 6, quiet=1), isolation("permutation", 10, 2, 6)
    assert 8 * alone <= math.exp(design.log_cut_off(requirements, 1.1)) < 1.1 * 8 * alone  # and pairs
    assert alone <= math.exp(design.log_cut_off(requirements, 1.2)) < 1.6 * alone
    twice = ProtocolDesign("random", 6, 2, quiet=1)
    isolated, _ = isolation("random", 10, 2, 6, 2)
    assert math.exp(twice.log_cut_off(requirements, 1.1)) == pytest.approx(9 * isolated)
    assert math.exp(twice.log_cut_off(requirements, 1.2)) == pytest.approx(isolated)


@pytest.mark.parametrize("factor", [1.1, 1.2])
def test_who_is_cut_off_loses_more_than_is_allowed_and_so_do_those_who_lack_its_noise(factor: float) -> None:
    """Party 1 of 10 only ever meets the colluder, party 0; exactly, with as much cancelling noise as there can be."""
    rng, rounds = np.random.default_rng(3), 8
    rows = np.empty((rounds, 10, 1), dtype=np.int64)
    for t in range(rounds):
        rest = rng.permutation(np.arange(2, 10))
        rows[t, [0, 1], 0], rows[t, rest, 0] = (1, 0), np.roll(rest, 1)
    execution = inca.Execution(inca.ExplicitSchedule(rows), inca.incremental_injection(rounds, quiet=1)).settled()
    levels = inca.NoiseLevels(independent=math.sqrt(factor / 9), cancelling=1e3)
    losses = inca.account(inca.View(execution, inca.Adversary([0])), levels, sensitivity=1.0)
    assert losses.mu[0] > 2.0
    assert (losses.mu[1:] > 1.0).all() if factor < 9 / 8 else (losses.mu[1:] < 1.0).all()
    local = inca.account(inca.View(execution, inca.Adversary([0])), replace(levels, independent=1.0), sensitivity=1.0)
    assert local.max_mu <= 1.0 + 1e-7  # but for rounding: Local DP's noise needs no hidden message


def test_a_plan_holds_if_fewer_leave_than_are_planned_for() -> None:
    """Three of six collude and two may leave: then one honest party is left, but if one leaves two must be joined."""
    requirements = inca.Requirements(6, 1.0, 1e-5, colluding=0.5, dropout=1 / 3, messages=20)
    stated = statement(requirements, rounds=1, views=4)
    assert stated >= isolation("permutation", 6, 4, 20)[0] > 1e-5  # it was 0, for one round
    with pytest.raises(RequirementsNotMet, match="fewer than two honest ones may be left: at least 7 parties"):
        inca.plan(requirements, inca.PlanOptions(proven=True))
