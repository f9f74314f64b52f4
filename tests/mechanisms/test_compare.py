from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import inca
from inca.mechanisms.base import measure
from inca.mechanisms.central_local import CentralDP
from inca.mechanisms.compare import baselines, compare, evaluate, guess_mse
from inca.mechanisms.inca import Inca

REQUIREMENTS = inca.Requirements(parties=16, epsilon=1.0, delta=1e-5, colluding=0.1, messages=8, dropout=0.0)


def test_all_mechanisms_are_compared_at_all_rates_and_weaker_promises_are_labelled() -> None:
    entries = compare(REQUIREMENTS, [0.0, 0.1], views=4)
    names = {entry.mechanism for entry in entries}
    assert len(entries) == 2 * len(names) == 28
    without = {entry.mechanism for entry in compare(REQUIREMENTS, [0.1], paper=False)}
    assert names - without == {"inca, the paper's recipe"} and without < names
    by_name = {(entry.mechanism, entry.dropout): entry for entry in entries}
    for entry in entries:
        assert entry.why_not == "" and entry.mse is not None and entry.relative is not None
        assert entry.relative == pytest.approx(entry.mse / REQUIREMENTS.central_mse)
        assert entry.weaker == (entry.mechanism.startswith(("Central", "Muffliato")))
        if not entry.weaker:  # nothing with our promise is below Central DP
            assert entry.relative >= 1.0
    least = min(entry.mse or 0 for entry in entries)
    assert least == by_name["Central DP", 0.0].mse
    no_leavers = by_name["inca", 0.0].relative
    assert no_leavers is not None and no_leavers < 1.0051 * 16 / 14


def test_what_cannot_be_calibrated_says_why_and_the_others_go_on() -> None:
    eavesdropped = replace(REQUIREMENTS, eavesdropped=0.2, parties=10, messages=20)
    entries = {entry.mechanism: entry for entry in compare(eavesdropped, [0.1], views=4, paper=False)}
    gopa = entries["GOPA, half of the leavers late"]
    assert gopa.mse is None and "private channels" in gopa.why_not
    assert entries["inca"].mse is not None and entries["Local DP"].mse is not None
    assert "Muffliato, regular" in entries  # 10 is no power of 2


def test_runs_are_measured_on_request() -> None:
    name, make = next(iter(baselines(REQUIREMENTS)))
    entry = evaluate(name, make, REQUIREMENTS, runs=400, rng=np.random.default_rng(1))
    assert entry.measured is not None and entry.mse is not None
    # 6 standard errors: a false alarm has a probability below 1e-6.
    assert abs(entry.measured.mse - entry.mse) < 6 * entry.measured.standard_error


def test_rows_that_a_reader_needs_to_judge_ours_are_there() -> None:
    requirements = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
    rows = dict(baselines(requirements))
    late = (
        "no leaver late",
        "one leaver late",
        "a quarter late",
        "half of the leavers late",
        "leavers at random times",
    )
    assert {f"GOPA, {kind}" for kind in late} <= set(rows)
    all_keys, sparse, serverless = (rows[f"secure aggregation{kind}"]() for kind in ("", ", k-regular", ", no server"))
    assert (all_keys.messages, sparse.messages, serverless.messages) == (400.0, 58.0, 57.0)
    errors = {mechanism.expected_error(0.1).mse for mechanism in (all_keys, sparse, serverless)}
    assert len(errors) == 1  # all three are the floor
    assert "no server" not in all_keys.promise and "server" not in serverless.promise


def test_guessing_the_middle_needs_no_data() -> None:
    requirements = replace(REQUIREMENTS, sensitivity=4.0)
    assert guess_mse(requirements) == 4.0
    values = np.random.default_rng(1).uniform(3.0, 7.0, (1000, 16))  # an interval of width 4
    assert ((values.mean(axis=1) - 5.0) ** 2).max() <= guess_mse(requirements)
    assert (np.full(16, 7.0).mean() - 5.0) ** 2 == guess_mse(requirements)  # and no less will do


def test_bad_input_is_refused() -> None:
    with pytest.raises(inca.InvalidInput, match=r"dropouts must be at least one rate, got \[\]"):
        compare(REQUIREMENTS, [])
    with pytest.raises(inca.InvalidInput, match=r"a dropout rate must be from 0 to 1, got 1\.5"):
        compare(REQUIREMENTS, [1.5])
    with pytest.raises(inca.InvalidInput, match="runs must be at least 0, got -1"):
        compare(REQUIREMENTS, [0.1], runs=-1)
    with pytest.raises(inca.InvalidInput, match="runs must be at least 2, got 1"):
        measure(CentralDP(REQUIREMENTS), np.random.default_rng(1), runs=1)


def test_inca_is_a_mechanism_like_any_other_for_vectors_too() -> None:
    own = Inca(inca.plan(replace(REQUIREMENTS, dropout=0.1), inca.PlanOptions(recipe="paper", views=10)))
    estimate = own.run(np.ones((16, 3)), np.random.default_rng(1), dropout=0.1)
    assert isinstance(estimate, np.ndarray) and estimate.shape == (3,)
    assert own.run(np.ones(16), np.random.default_rng(1), dropout=1.0) is None
    with pytest.raises(inca.InvalidInput, match="rows of values"):
        own.run(np.ones(5), np.random.default_rng(1))
