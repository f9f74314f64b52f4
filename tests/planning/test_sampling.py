"""What sampled runs of a design show: needs are held against the accountant, errors against a simulation's formula."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import inca
from inca.planning.designs import ProtocolDesign
from inca.planning.sampling import (
    CancellingNoiseSample,
    ErrorSample,
    candidate_factors,
    paper_factor,
    sample_cancelling_noise,
    sample_error,
    sample_view,
    sampled_parties,
)
from inca.privacy.tail_quantile import tail_level

SMALL = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5, colluding=0.12, dropout=0.2, messages=8)
DESIGN = ProtocolDesign("permutation", 8, quiet=2)


def test_factors_reach_from_just_above_the_least_to_local_dp() -> None:
    for parties in (3, 20, 1000):
        requirements = replace(SMALL, parties=parties)
        factors = candidate_factors(requirements, parties)
        assert factors.size == 40 and (np.diff(factors) > 0).all()
        assert factors[0] == pytest.approx(1.01)
        assert factors[-1] == pytest.approx(requirements.honest, rel=1e-12)  # Local DP
        steps = np.diff(np.log(factors - 1.0))
        assert steps == pytest.approx(np.full(39, steps[0]))  # the same ratio from each to the next


def test_in_a_sub_population_large_factors_are_not_tried_but_local_dps_is() -> None:
    requirements = replace(SMALL, parties=10_000)
    for parties, honest in ((240, 211), (1000, 880)):  # 12 % rounded up collude
        factors = candidate_factors(requirements, parties)
        assert factors.size == 40 and (np.diff(factors) > 0).all()
        assert (factors[0], factors[-1]) == (pytest.approx(1.01), 8800.0)
        assert factors[-2] == pytest.approx(0.1 * honest)
    assert candidate_factors(requirements, 5)[-2] == pytest.approx(1.1)  # even where a tenth is less than that
    assert candidate_factors(replace(SMALL, parties=2, colluding=0.5, dropout=0.0), 2).tolist() == [1.0]


def test_the_papers_factor_counts_honest_parties_that_stay() -> None:
    # 3 of 20 collude, 4 leave: 1.3 * 17 / 13.
    assert paper_factor(SMALL) == pytest.approx(1.3 * 17 / 13)
    two = inca.Requirements(parties=4, epsilon=1.0, delta=1e-5, colluding=0.5, dropout=0.25)
    assert paper_factor(two) == pytest.approx(1.3 * 2 / 1)  # one honest party stays, which is enough
    with pytest.raises(inca.InvalidInput, match="leave an honest party present"):
        paper_factor(replace(two, dropout=0.5))


@pytest.mark.parametrize(
    ("parties", "design", "expected"),
    [
        (100, ProtocolDesign("random", 20), 100),
        (239, ProtocolDesign("random", 20), 239),
        (10_000, ProtocolDesign("random", 20), 240),
        (10_000, ProtocolDesign("random", 60, 1), 240),
        (10_000, ProtocolDesign("random", 61, 1), 244),
        (10_000, ProtocolDesign("random", 50, 2), 400),
        (300, ProtocolDesign("random", 50, 2), 300),
    ],
)
def test_views_have_all_parties_or_four_for_each_message(parties: int, design: ProtocolDesign, expected: int) -> None:
    assert sampled_parties(replace(SMALL, parties=parties), design) == expected


def test_a_sampled_view_has_the_required_adversary_and_absences() -> None:
    requirements = replace(SMALL, eavesdropped=0.11)
    view = sample_view(requirements, DESIGN, 20, 0.2, 7)
    execution = view.execution
    assert (execution.parties, execution.rounds) == (20, 8)
    assert int(execution.presence.row(8).sum()) == 16  # four have left
    assert len(view.honest) == 17  # three collude
    adversary = inca.Adversary.random(20, 8, np.random.default_rng(0), colluding=0.12, eavesdropped=0.11)
    assert len(view.adversary.eavesdropped) == len(adversary.eavesdropped) == 24
    np.testing.assert_array_equal(execution.injection.value, inca.incremental_injection(8, quiet=2).value)
    assert sample_view(requirements, DESIGN, 20, 0.0, 7).execution.presence.all_present  # nobody is away unasked
    away = sample_view(requirements, DESIGN, 20, 0.0, 7, away=0.5).execution.presence
    assert int(away.row(8).sum()) == 20 and 20 < sum(int(away.row(t).sum()) for t in range(1, 8)) < 120


def test_a_seed_gives_one_view_and_another_seed_another() -> None:
    first, again, other = (sample_view(SMALL, DESIGN, 20, 0.2, seed) for seed in (3, 3, 4))

    def drawn(view: inca.View) -> tuple[object, ...]:
        execution = view.execution
        receivers = tuple(execution.schedule.round(t).receivers.tobytes() for t in range(1, 9))
        flags = tuple(execution.presence.row(t).tobytes() for t in range(9))
        return receivers, flags, view.adversary.colluding

    assert drawn(first) == drawn(again)
    assert all(one != two for one, two in zip(drawn(first), drawn(other), strict=True))


@pytest.mark.parametrize("parties", [20, 15])
def test_with_exactly_what_it_needs_a_party_loses_exactly_what_it_may(parties: int) -> None:
    """As the accountant has it; among 15, a sub-population, needs are larger by the party's own share of the noise."""
    factors = np.array([1.5, 3.0, 17.0])
    seeds, tried = [11, 12], 0
    sample = sample_cancelling_noise(SMALL, DESIGN, parties, (0.2, 0.1), seeds, factors)
    honest = 17 if parties == 20 else 13
    assert sample.factors is factors and sample.size == 2 * honest
    for seed, needs in zip(seeds, sample.views, strict=True):
        view = sample_view(SMALL, DESIGN, parties, 0.2, seed, away=0.1)
        for factor, row in zip(factors, needs, strict=True):
            share = min(factor / honest, 1.0)
            own = math.sqrt(share)
            for place, need in enumerate(row):
                if share == 1.0:
                    assert need == 0.0  # Local DP
                elif 1e-3 < need < 1e4:
                    exact = need if parties == 20 else need / (1.0 + share)
                    levels = inca.NoiseLevels(independent=own, cancelling=math.sqrt(exact))
                    mu = inca.account(view, levels, sensitivity=1.0).mu[place]
                    assert mu == pytest.approx(1.0, rel=2e-3)  # the ratios are interpolated
                    tried += 1
    assert tried > 40


def test_views_are_in_the_order_of_their_seeds_and_each_is_told() -> None:
    calls: list[int] = []
    seeds = [5, 6, 7]
    factors = np.array([2.0])
    together = sample_cancelling_noise(SMALL, DESIGN, 20, (0.0, 0.0), seeds, factors, lambda: calls.append(1))
    assert len(calls) == 3
    for seed, view in zip(seeds, together.views, strict=True):
        np.testing.assert_array_equal(
            view, sample_cancelling_noise(SMALL, DESIGN, 20, (0.0, 0.0), [seed], factors).views[0]
        )


def test_levels_are_those_of_the_tail_factor_by_factor() -> None:
    rng = np.random.default_rng(2)
    views = tuple(rng.exponential(size=(3, 50)) * [[1.0], [2.0], [5.0]] for _ in range(30))
    sample = CancellingNoiseSample(np.array([1.0, 2.0, 3.0]), views)
    assert sample.size == 1500
    plain = sample.levels(1e-6)
    cautious = sample.levels(1e-6, np.random.default_rng(1), 0.9)
    resampling = np.random.default_rng(1)
    for row in range(3):
        rows = [view[row] for view in views]
        assert plain[row] == tail_level(rows, 1e-6)
        assert cautious[row] == tail_level(rows, 1e-6, resampling, confidence=0.9)
        assert cautious[row] > plain[row]


def test_by_default_levels_have_a_confidence_of_95_percent() -> None:
    rng = np.random.default_rng(2)
    sample = CancellingNoiseSample(np.ones(1), tuple(rng.exponential(size=(1, 50)) for _ in range(30)))
    levels = [sample.levels(1e-6, np.random.default_rng(1), *given)[0] for given in ((), (0.95,), (0.99,))]
    assert levels[0] == levels[1] < levels[2]


def test_the_expected_error_is_the_weighted_mean_over_runs_with_its_standard_error() -> None:
    requirements = replace(SMALL, variance=3.0)
    sample = ErrorSample(np.array([[1.0, 0.5, 0.1], [1.2, 0.7, 0.2], [1.4, 0.3, 0.6]]))
    assert sample.mean == pytest.approx([1.2, 0.5, 0.3])
    budget, standard_error = sample.expected_error(requirements, var_independent=2.0, var_cancelling=10.0)
    assert (budget.independent, budget.cancelling, budget.data) == pytest.approx((0.12, 0.25, 0.045))
    errors = [(2.0 * a + 10.0 * b + 3.0 * c) / 20 for a, b, c in sample.runs]
    mean = sum(errors) / 3
    assert budget.total == pytest.approx(mean)
    spread = math.sqrt(sum((error - mean) ** 2 for error in errors) / 2)
    assert standard_error == pytest.approx(spread / math.sqrt(3))
    once = ErrorSample(np.array([[1.0, 0.0, 0.0]]))
    assert once.expected_error(requirements, var_independent=2.0, var_cancelling=10.0)[1] == 0.0


def test_where_nobody_is_absent_one_run_tells_all_and_only_independent_noise_is_left() -> None:
    present = replace(SMALL, dropout=0.0)
    assert sample_error(present, DESIGN, 0.0, 50).runs == pytest.approx(np.array([[1.0, 0.0, 0.0]]), abs=1e-12)


@pytest.mark.parametrize(("dropout", "away"), [(0.2, 0.0), (0.0, 0.2), (0.2, 0.2)])
def test_the_error_of_runs_with_absences_is_that_of_the_executions(dropout: float, away: float) -> None:
    """By the formula, from each party's share in the result: n sum g^2 / w^2, and n sum (g / w - 1 / n)^2."""
    requirements = replace(SMALL, away=away)
    sample = sample_error(requirements, DESIGN, dropout, 6, seed=4)
    assert sample.runs.shape == (6, 3) and len(np.unique(sample.runs[:, 0])) > 1
    for number, (independent, cancelling, data) in enumerate(sample.runs):
        presence = inca.Presence.leaving(20, 8, dropout, np.random.default_rng((4, 2, number)), away=away)
        execution = inca.Execution(DESIGN.draw_schedule(20, number), DESIGN.injection(), presence)
        unit = inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=0.0)).total
        assert independent == pytest.approx(20 * unit)
        unit = inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=1.0)).total
        assert cancelling == pytest.approx(20 * unit)
        rng = np.random.default_rng(number)
        values = rng.normal(size=(20, 4000))
        none = inca.NoiseLevels(independent=0.0, cancelling=0.0)
        seen = inca.expected_error(execution, none, values=values).total / 4000
        # A mean of 4000 squares of unit variance: 15 % are more than 6 standard deviations (sqrt(2 / 4000) each).
        assert data == pytest.approx(20 * seen, rel=0.15, abs=1e-12)


def test_few_runs_are_never_fewer_than_four_and_large_ones_are_few() -> None:
    assert len(sample_error(SMALL, DESIGN, 0.2, 1).runs) == 4
    np.testing.assert_array_equal(sample_error(SMALL, DESIGN, 0.2, 1).runs, sample_error(SMALL, DESIGN, 0.2, 1, 0).runs)
    assert len(sample_error(SMALL, DESIGN, 0.2, 9).runs) == 9
    many = replace(SMALL, parties=80_000)
    assert len(sample_error(many, ProtocolDesign("random", 2, quiet=1), 0.2, 9).runs) == 5


def test_in_settled_runs_leavers_count_as_colluders_and_the_others_have_topped_up() -> None:
    """Recomputed: at what each survivor needs, its exact loss against colluders and leavers together is the allowed."""
    requirements = inca.Requirements(24, 1.0, 1e-5, colluding=0.125, dropout=0.25, messages=6)
    design, factor = ProtocolDesign("permutation", 6, quiet=1), 1.6
    sample = sample_cancelling_noise(requirements, design, 24, (0.25, 0.0), [5], np.array([factor]), settled=True)
    (needs,) = sample.views[0]
    rng = np.random.default_rng((5, 1))
    presence = inca.Presence.leaving(24, 6, 0.25, rng)
    colluding = inca.Adversary.random(24, 6, rng, colluding=0.125).colluding
    known = sorted({*colluding, *np.flatnonzero(~presence.row(6)).tolist()})
    run = inca.Execution(design.draw_schedule(24, 5), design.injection(), presence).settled()
    view = inca.View(run, inca.Adversary(known))
    assert needs.size == view.honest.size == 24 - len(known)
    for place in np.flatnonzero(np.isfinite(needs)):
        levels = inca.NoiseLevels(independent=math.sqrt(factor / (21 - 6)), cancelling=math.sqrt(needs[place]))
        assert 0.999 < inca.account(view, levels, sensitivity=1.0).mu[place] <= 1.0 + 1e-9
