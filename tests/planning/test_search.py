"""How a plan is found: with sampling that is made up, so that what must come out can be worked out again by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import inca
from helpers.made_up_sampling import MadeUpSampling
from inca.planning import extrapolation, search
from inca.planning.designs import ProtocolDesign, candidate_designs, with_quiet_rounds
from inca.planning.sampling import ErrorSample, sample_cancelling_noise, sample_view
from inca.privacy.tail_quantile import tail_level

REQUIREMENTS = inca.Requirements(
    parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.2, messages=24, sensitivity=3.0, failure=1e-4
)
ERRORS = ErrorSample(np.array([[1.1, 0.4, 0.2], [1.3, 0.6, 0.4]]))
VIEWS = 12
FACTORS = np.array([1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 36.0])  # a few of those that are tried


class Sampled(MadeUpSampling):
    """The sampling of a plan, which has no more parties in a view than a hand can work with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scales: dict[float, float]) -> None:
        super().__init__(monkeypatch, search, scales, parties=6, errors=ERRORS, needs_in=extrapolation)

    @property
    def attendances(self) -> list[tuple[float, float]]:
        return [call["attendance"] for call in self.calls]

    @property
    def seeds(self) -> list[list[int]]:
        return [call["seeds"] for call in self.calls]

    def levels(self, confidence: float = 0.95) -> list[float]:
        """The largest levels over all attendances, at half of the failure probability shared by 36 honest parties."""
        by_attendance = []
        for sample in self.samples:
            rng = np.random.default_rng(1)
            rows = [[view[row] for view in sample.views] for row in range(sample.factors.size)]
            by_attendance.append([tail_level(row, 1e-4 / 72, rng, confidence=confidence) for row in rows])
        return np.max(by_attendance, axis=0).tolist()  # type: ignore[no-any-return]


class Scored:
    """Stands for the scorer: the error of a design is what a function says of it."""

    def __init__(self, error: Any) -> None:
        self.error = error
        self.made: list[tuple[int, int | None]] = []
        self.scored: list[tuple[int, ProtocolDesign]] = []

    def __call__(
        self,
        requirements: inca.Requirements,
        views: int,
        parties_of_a_view: int | None = None,
        on_view_sampled: Any = None,
    ) -> Any:
        self.made.append((views, parties_of_a_view))

        def score(design: ProtocolDesign) -> Any:
            self.scored.append((views, design))
            for _ in range(2 * views):
                on_view_sampled()
            return SimpleNamespace(error=self.error(design))

        return SimpleNamespace(score=score)


@pytest.mark.parametrize("worst", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_the_level_is_the_largest_over_full_attendance_and_two_dropout_rates(
    monkeypatch: pytest.MonkeyPatch, worst: float, confidence: float
) -> None:
    sampled = Sampled(monkeypatch, {0.0: 0.02, 0.1: 0.02, 0.2: 0.02} | {worst: 0.1})
    plan = inca.plan(REQUIREMENTS, inca.PlanOptions(recipe="paper", views=VIEWS), confidence=confidence)
    assert sampled.attendances == [(0.0, 0.0), (0.1, 0.0), (0.2, 0.0)]
    assert plan.factor == pytest.approx(1.3 * 36 / 28)
    expected = REQUIREMENTS.var_local_dp * sampled.levels(confidence)[0]
    assert plan.noise_levels.cancelling**2 == pytest.approx(expected, rel=2e-9)
    assert plan.sampling.dropouts == (0.0, 0.1, 0.2) and plan.sampling.confidence == confidence
    assert (plan.sampling.views, plan.sampling.parties, plan.sampling.checked) == (VIEWS, 40, 0)


@pytest.mark.parametrize("settled", [False, True])
def test_settled_plans_are_calibrated_on_settled_views(settled: bool) -> None:
    """The same views, in which leavers count as colluders once the others settle: other needs."""
    design, factors = ProtocolDesign("permutation", 12, quiet=1), np.array([1.3])
    level, details = extrapolation.extrapolated_levels(
        REQUIREMENTS, design, factors, 4, 0.95, lambda: None, settled=settled
    )
    dropouts = extrapolation.attendances(REQUIREMENTS)
    needs = [
        sample_cancelling_noise(
            REQUIREMENTS,
            design,
            40,
            (dropout, 0.0),
            range(10**6 + 4 * number, 10**6 + 4 * number + 4),
            factors,
            lambda: None,
            settled=settled,
        )
        for number, (dropout, _) in enumerate(dropouts)
    ]
    largest = max(float(view.max()) for need in needs for view in need.views)
    assert largest <= level[0] and details.checked == 0
    other = extrapolation.extrapolated_levels(
        REQUIREMENTS, design, factors, 4, 0.95, lambda: None, settled=not settled
    )[0]
    assert level[0] != other[0]


def test_every_attendance_is_sampled_as_often_as_asked_for_from_seeds_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A view that chose a design, or calibrated another attendance, calibrates nothing."""
    sampled = Sampled(monkeypatch, {0.0: 0.1, 0.1: 0.1, 0.2: 0.1})
    inca.plan(REQUIREMENTS, inca.PlanOptions(recipe="paper", views=VIEWS))
    assert [len(seeds) for seeds in sampled.seeds] == [VIEWS] * 3
    used = [seed for seeds in sampled.seeds for seed in seeds]
    assert len(set(used)) == 3 * VIEWS and min(used) >= 10**5 and max(used) < 10**9
    assert sampled.error_calls == [(40, 0.2, 18)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"dropout": 0.0}, [(0.0, 0.0)]),
        ({"dropout": 0.0, "away": 0.1}, [(0.0, 0.0), (0.0, 0.1)]),
        ({"dropout": 0.2, "away": 0.1}, [(0.0, 0.0), (0.1, 0.1), (0.2, 0.1)]),
        ({"dropout": 0.01}, [(0.0, 0.0), (0.005, 0.0), (0.01, 0.0)]),  # one of forty, rounded up
        ({"dropout": 0.025}, [(0.0, 0.0), (0.0125, 0.0), (0.025, 0.0)]),
    ],
)
def test_attendances_are_full_and_as_bad_as_may_be(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float], expected: list[tuple[float, float]]
) -> None:
    rates = {rate: 0.1 for rate, _ in expected}
    sampled = Sampled(monkeypatch, rates)
    inca.plan(replace(REQUIREMENTS, messages=40, **changes), inca.PlanOptions(recipe="paper", views=4))  # type: ignore[arg-type]
    assert sampled.attendances == expected


def test_noise_is_rounded_up_by_a_billionth() -> None:
    """A loss of exactly what is allowed is not exceeded by rounding, and hardly any noise is added for it."""
    alone = inca.Requirements(parties=10, epsilon=1.0, delta=1e-5, colluding=0.9, messages=4, dropout=0.0)
    plan = inca.plan(alone, inca.PlanOptions(settlement="none", views=4))
    ratio = plan.noise_levels.independent**2 / alone.var_local_dp
    assert 1.0 < ratio <= 1.0 + 1e-8
    view = sample_view(alone, plan.design, 10, 0.0, 1)
    assert inca.account(view, plan.noise_levels, sensitivity=1.0).max_mu <= alone.mu


def test_the_balance_is_that_of_least_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = Sampled(monkeypatch, {0.0: 0.004, 0.1: 0.012, 0.2: 0.008})
    monkeypatch.setattr(search, "candidate_factors", lambda requirements, parties: FACTORS)
    monkeypatch.setattr(search, "DesignScorer", Scored(lambda design: 1.0))
    plan = inca.plan(REQUIREMENTS, inca.PlanOptions(settlement="none", views=VIEWS))
    factors = FACTORS
    value = REQUIREMENTS.value_variance / REQUIREMENTS.var_local_dp
    levels = sampled.levels()
    errors = [1.2 * f / 36 + 0.5 * level + 0.3 * value for f, level in zip(factors, levels, strict=True)]
    best = int(np.argmin(errors))
    assert 0 < best < factors.size - 1
    assert plan.factor == factors[best]
    assert plan.noise_levels.independent**2 == pytest.approx(REQUIREMENTS.var_local_dp * factors[best] / 36, rel=2e-9)
    assert plan.noise_levels.cancelling**2 == pytest.approx(REQUIREMENTS.var_local_dp * levels[best], rel=2e-9)
    # n times the error in units of s^2 / mu^2, made an error again.
    assert plan.expected_mse == pytest.approx(errors[best] * REQUIREMENTS.var_local_dp / 40, rel=1e-8)
    assert plan.standard_error > 0.0
    assert plan.structure_bound == pytest.approx(math.exp(plan.design.log_failure(REQUIREMENTS)))


def test_a_need_that_no_noise_meets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Sampled(monkeypatch, {0.0: 0.1, 0.1: math.inf, 0.2: 0.1})
    with pytest.raises(inca.RequirementsNotMet, match="recipe paper does not meet the requirements"):
        inca.plan(REQUIREMENTS, inca.PlanOptions(recipe="paper", views=4))


@pytest.mark.parametrize("seed", range(3))
def test_the_design_of_least_error_is_chosen_and_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    errors: dict[ProtocolDesign, float] = {}
    scored = Scored(lambda design: errors.setdefault(design, float(rng.uniform(1.0, 2.0))))
    monkeypatch.setattr(search, "candidate_factors", lambda requirements, parties: FACTORS)
    Sampled(monkeypatch, {0.0: 0.1, 0.1: 0.1, 0.2: 0.1})
    monkeypatch.setattr(search, "DesignScorer", scored)
    steps: list[tuple[int, int]] = []
    requirements = replace(REQUIREMENTS, messages=18)
    plan = inca.plan(
        requirements,
        inca.PlanOptions(settlement="none", views=100),
        progress=lambda done, total: steps.append((done, total)),
    )

    kinds = candidate_designs(requirements)
    kind = min(kinds, key=lambda design: errors[design])
    variants = with_quiet_rounds(kind)
    assert plan.design == min(variants, key=lambda design: errors[design])
    assert len(plan.considered) == len(kinds) - 1 + len(variants) - 1
    told = sorted((other.design, other.relative_mse) for other in plan.considered)
    others = [(str(other), errors[other] / errors[kind]) for other in kinds if other != kind]
    others += [(str(other), errors[other] / errors[plan.design]) for other in variants if other != plan.design]
    assert [name for name, _ in told] == [name for name, _ in sorted(others)]
    assert [relative for _, relative in told] == pytest.approx([relative for _, relative in sorted(others)])
    assert all(other.messages <= 18 for other in plan.considered)

    # A 20th and an 8th of the views compare kinds and quiet rounds, the former on views of a hundred parties.
    assert scored.made == [(5, 100), (12, None)]
    assert [views for views, _ in scored.scored] == [5] * len(kinds) + [12] * (len(variants) + 2)
    rounds = [plan.design.rounds + 1, 2 * plan.design.rounds]
    assert [design.rounds for _, design in scored.scored[-2:]] == rounds
    assert [other.messages for other in plan.further] == [r * plan.design.receivers for r in rounds]
    assert [other.relative_mse for other in plan.further] == pytest.approx(
        [errors[design] / errors[plan.design] for _, design in scored.scored[-2:]]
    )
    # What was announced is what was sampled, where the kinds have as many quiet rounds to try.
    total = 2 * (5 * len(kinds) + 12 * (len(with_quiet_rounds(kinds[0])) + 2)) + 300
    assert steps[-1] == (total, total) and [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {all_of_them for _, all_of_them in steps} == {total}


def test_few_views_are_never_fewer_than_four(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = Scored(lambda design: 1.0)
    Sampled(monkeypatch, {0.0: 0.1})
    monkeypatch.setattr(search, "DesignScorer", scored)
    plan = inca.plan(replace(REQUIREMENTS, dropout=0.0), inca.PlanOptions(settlement="none", views=10))
    assert [views for views, _ in scored.made] == [4, 4]
    assert plan.further == ()  # where nobody leaves, more messages bring nothing
    with pytest.raises(inca.InvalidInput, match="views must be at least 2, got 1"):
        inca.plan(REQUIREMENTS, inca.PlanOptions(views=1))


def test_who_is_away_now_and_then_costs_error_so_more_messages_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = Scored(lambda design: 1.0)
    Sampled(monkeypatch, {0.0: 0.1})
    monkeypatch.setattr(search, "DesignScorer", scored)
    monkeypatch.setattr(search, "candidate_factors", lambda requirements, parties: FACTORS)
    steps: list[tuple[int, int]] = []
    requirements = replace(REQUIREMENTS, dropout=0.0, away=0.05, messages=18)
    plan = inca.plan(
        requirements,
        inca.PlanOptions(settlement="none", views=10),
        progress=lambda done, total: steps.append((done, total)),
    )
    assert len(plan.further) == 2
    kinds = candidate_designs(requirements)
    assert steps[-1][1] == 2 * 4 * (len(kinds) + len(with_quiet_rounds(kinds[0])) + 2) + 2 * 10
    assert [done for done, _ in steps[:20]] == list(range(1, 21))  # one by one


def test_longer_designs_are_told_only_if_they_are_possible_and_hide_enough() -> None:
    scorer: Any = SimpleNamespace(score=lambda design: SimpleNamespace(error=float(design.rounds)))

    def further(requirements: inca.Requirements, design: ProtocolDesign) -> list[tuple[int, float]]:
        found = search._with_more_messages(requirements, design, 2.0, scorer)
        return [(other.messages, other.relative_mse) for other in found]

    assert further(REQUIREMENTS, ProtocolDesign("random", 24, quiet=2)) == [(25, 12.5), (48, 24.0)]
    # Nobody can meet 40 others of 39, and a few rounds hide too little.
    assert further(REQUIREMENTS, ProtocolDesign("distinct", 38)) == [(39, 19.5)]
    assert further(REQUIREMENTS, ProtocolDesign("random", 2)) == []
    # As many quiet rounds as there are rounds leave none for the value.
    assert further(REQUIREMENTS, ProtocolDesign("random", 24, quiet=25)) == [(48, 24.0)]


@pytest.mark.parametrize(
    ("rounds", "receivers", "expected"), [(None, None, (60, 1)), (None, 2, (30, 2)), (25, 2, (25, 2)), (20, 1, (20, 1))]
)
def test_the_papers_design_uses_all_messages_unless_told_otherwise(
    rounds: int | None, receivers: int | None, expected: tuple[int, int]
) -> None:
    design = search._paper_design(replace(REQUIREMENTS, messages=60), rounds, receivers)
    assert design == ProtocolDesign("random", *expected)


@pytest.mark.parametrize(("rounds", "receivers", "least"), [(25, None, 25), (13, 2, 26), (None, 25, 25)])
def test_more_messages_than_allowed_are_refused(rounds: int | None, receivers: int | None, least: int) -> None:
    sentence = rf"messages must be at least receivers times rounds \({least}\), got 24"
    with pytest.raises(inca.InvalidInput, match=sentence):
        search._paper_design(REQUIREMENTS, rounds, receivers)


def test_no_rounds_are_no_design() -> None:
    with pytest.raises(inca.InvalidInput, match="rounds must be at least 1, got 0"):
        search._paper_design(REQUIREMENTS, 0, None)


def test_a_level_of_sub_populations_is_raised_until_views_of_all_parties_keep_the_promise() -> None:
    design, factor = ProtocolDesign("permutation", 24, quiet=2), 1.5
    level, checked = search._checked_on_whole_views(REQUIREMENTS, design, factor, 0.01, 20)
    assert checked == 3 and level > 0.01
    own = math.sqrt(factor / 36)
    views = [sample_view(REQUIREMENTS, design, 40, 0.0, 10**9 + number) for number in range(3)]

    def worst(variance: float) -> float:
        levels = inca.NoiseLevels(independent=own, cancelling=math.sqrt(variance))
        return max(inca.account(view, levels, sensitivity=1.0).max_mu for view in views)

    assert worst(level) <= 1.0 < worst(level / 1.1)
    steps = math.log(level / 0.01) / math.log(1.1)
    assert steps == pytest.approx(round(steps))
    assert search._checked_on_whole_views(REQUIREMENTS, design, factor, level, 20) == (level, 3)


def test_a_level_that_was_sampled_among_all_parties_or_is_0_needs_no_check() -> None:
    design = ProtocolDesign("permutation", 24, quiet=2)
    assert search._checked_on_whole_views(REQUIREMENTS, design, 1.5, 0.01, 40) == (0.01, 0)
    assert search._checked_on_whole_views(REQUIREMENTS, design, 36.0, 0.0, 20) == (0.0, 0)


@pytest.mark.parametrize(("parties", "expected"), [(1500, 3), (1501, 1), (5000, 1), (5001, 0)])
def test_larger_populations_are_checked_on_fewer_views(
    monkeypatch: pytest.MonkeyPatch, parties: int, expected: int
) -> None:
    seen: list[tuple[int, float, int]] = []

    def view(requirements: inca.Requirements, design: ProtocolDesign, n: int, dropout: float, seed: int) -> None:
        seen.append((n, dropout, seed))

    monkeypatch.setattr(search, "sample_view", view)
    monkeypatch.setattr(search, "account", lambda *given, **named: SimpleNamespace(max_mu=1.0))
    level = search._checked_on_whole_views(
        replace(REQUIREMENTS, parties=parties), ProtocolDesign("random", 24), 1.5, 2.0, 240
    )
    assert level == (2.0, expected)
    assert len(set(seen)) == expected and all(n == parties and dropout == 0.0 for n, dropout, _ in seen)
    assert not {seed for _, _, seed in seen} & set(range(10**6, 10**6 + 3 * 10**5))  # not those that calibrated


def test_a_refusal_of_the_papers_design_is_about_its_own_receivers() -> None:
    """With one receiver fewer messages would do, and the sentence must not say so of two."""
    with pytest.raises(inca.RequirementsNotMet, match=r"allow at least (\d+) messages") as refused:
        search._paper_design(REQUIREMENTS, None, 2)
    enough = int(str(refused.value).split("allow at least ")[1].split()[0])
    assert enough > 24
    search._paper_design(replace(REQUIREMENTS, messages=enough), None, 2)
