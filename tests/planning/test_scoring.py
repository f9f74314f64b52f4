"""How designs are compared: on needs and errors that are made up, so that what must come out can be seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import inca
from helpers.made_up_sampling import MadeUpSampling
from inca.planning import scoring
from inca.planning.designs import ProtocolDesign
from inca.planning.sampling import ErrorSample, candidate_factors
from inca.planning.scoring import DesignScorer, exceedance_probability, scaled_errors
from inca.privacy.tail_quantile import tail_level

REQUIREMENTS = inca.Requirements(
    parties=400, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.2, away=0.05, messages=8, failure=0.9
)
DESIGN = ProtocolDesign("permutation", 8, quiet=2)
ERRORS = ErrorSample(np.array([[1.1, 0.4, 0.2], [1.3, 0.6, 0.4]]))


def sampled_with(monkeypatch: pytest.MonkeyPatch, scales: dict[float, float]) -> MadeUpSampling:
    return MadeUpSampling(monkeypatch, scoring, scales, parties=20, errors=ERRORS)


def test_half_of_what_may_fail_is_shared_by_all_honest_parties() -> None:
    assert exceedance_probability(REQUIREMENTS) == pytest.approx(0.9 / 2 / 360, rel=1e-12)


@pytest.mark.parametrize("worse", [0.0, 0.2])
@pytest.mark.parametrize("views", [6, 100])
def test_a_design_is_scored_by_the_larger_need_of_full_attendance_and_the_required_one(
    monkeypatch: pytest.MonkeyPatch, worse: float, views: int
) -> None:
    sampled = sampled_with(monkeypatch, {0.0: 0.005, 0.2: 0.005} | {worse: 0.02})
    told: list[int] = []
    score = DesignScorer(REQUIREMENTS, views, on_view_sampled=lambda: told.append(1)).score(DESIGN)
    assert sorted(call["attendance"] for call in sampled.calls) == [(0.0, 0.0), (0.2, 0.05)]
    assert all(call["seeds"] == list(range(views)) and call["parties"] == 240 for call in sampled.calls)
    assert len(told) == 2 * views
    assert sampled.error_calls == [(400, 0.2, 2 * views)]

    # Worked out again: with few samples the probability is one that they show.
    probability = max(0.9 / 2 / 360, 2.0 / (2 * views * 20))
    factors = candidate_factors(REQUIREMENTS, 240)
    levels = [
        max(tail_level([view[row] for view in sample.views], probability) for sample in sampled.samples)
        for row in range(factors.size)
    ]
    value = REQUIREMENTS.value_variance / REQUIREMENTS.var_local_dp
    errors = [1.2 * f / 360 + 0.5 * level + 0.3 * value for f, level in zip(factors, levels, strict=True)]
    best = int(np.argmin(errors))
    assert 0 < best < factors.size - 1  # a balance, not an end
    assert score.error == pytest.approx(min(errors))
    assert score.var_independent == pytest.approx(REQUIREMENTS.var_local_dp * factors[best] / 360)
    assert score.var_cancelling == pytest.approx(REQUIREMENTS.var_local_dp * levels[best])
    assert score.errors is ERRORS


def test_where_nobody_is_ever_absent_full_attendance_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = sampled_with(monkeypatch, {0.0: 1.0})
    DesignScorer(replace(REQUIREMENTS, dropout=0.0, away=0.0), 6).score(DESIGN)
    assert [call["attendance"] for call in sampled.calls] == [(0.0, 0.0)]


@pytest.mark.parametrize(("views", "expected"), [(6, 4), (16, 4), (40, 10)])
def test_early_injection_is_shown_by_a_quarter_of_the_views(
    monkeypatch: pytest.MonkeyPatch, views: int, expected: int
) -> None:
    sampled = sampled_with(monkeypatch, {0.0: 1.0, 0.2: 1.0})
    DesignScorer(REQUIREMENTS, views).score(replace(DESIGN, kind="early", quiet=0))
    assert [len(call["seeds"]) for call in sampled.calls] == [expected] * 2


@pytest.mark.parametrize(("limit", "rounds", "expected"), [(100, 8, 100), (100, 50, 150), (900, 8, 240), (20, 8, 24)])
def test_first_views_may_be_smaller_but_have_three_parties_for_each_message(
    monkeypatch: pytest.MonkeyPatch, limit: int, rounds: int, expected: int
) -> None:
    sampled = sampled_with(monkeypatch, {0.0: 1.0, 0.2: 1.0})
    DesignScorer(REQUIREMENTS, 4, parties_of_a_view=limit).score(replace(DESIGN, rounds=rounds))
    assert {call["parties"] for call in sampled.calls} == {expected}


@pytest.mark.parametrize(("limit", "expected"), [(50, 50), (1000, 400), (None, 400)])
def test_runs_have_at_most_so_many_parties(monkeypatch: pytest.MonkeyPatch, limit: int | None, expected: int) -> None:
    sampled = sampled_with(monkeypatch, {0.0: 1.0, 0.2: 1.0})
    DesignScorer(REQUIREMENTS, 4, parties_of_a_run=limit).score(DESIGN)
    assert sampled.error_calls == [(expected, 0.2, 8)]


def test_cancelling_noise_that_costs_nothing_still_counts_a_little() -> None:
    """So that, where nobody leaves, the design that needs less of it wins; an infinite need never does."""
    free = ErrorSample(np.array([[1.0, 0.0, 0.0]]))
    errors = scaled_errors(REQUIREMENTS, np.array([36.0, 36.0, 1.0]), np.array([1.0, 5.0, np.inf]), free)
    assert errors[:2] == pytest.approx([0.1, 0.1])
    assert errors[1] - errors[0] == pytest.approx(4e-9, rel=1e-3)
    assert errors[2] == np.inf
