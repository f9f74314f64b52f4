"""From requirements to a plan: compare designs on a few sampled views, then calibrate the best one on many.

For every design the cancelling noise is what all but a tiny fraction of random schedules and adversaries need at full
attendance and at dropout rates up to the required one (erratum E11), and the two kinds of noise are balanced (see
`inca.planning.scoring`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from inca._base.options import PlanOptions
from inca._base.types import Array, Progress
from inca._base.validation import between_0_and_1, instance, integer, method_of, one_of, refuse
from inca.errors import RequirementsNotMet
from inca.planning.designs import ProtocolDesign, candidate_designs, designs_that_hide_enough, with_quiet_rounds
from inca.planning.extrapolation import attendances, extrapolated_levels
from inca.planning.plan import SETTLEMENTS, AlternativeDesign, Plan
from inca.planning.requirements import Requirements
from inca.planning.sampling import (
    OnViewSampled,
    candidate_factors,
    paper_factor,
    sample_error,
    sample_view,
    sampled_parties,
)
from inca.planning.scoring import DesignScorer, scaled_errors
from inca.planning.settled_plan import settled_plan
from inca.privacy.accountant import account
from inca.protocol.noise_levels import NoiseLevels

_KINDS_SHARE, _QUIET_SHARE = 20, 8  # a 20th of the views compares kinds of design, an 8th numbers of quiet rounds
_RUNS_PER_VIEW = 1.5  # executions sampled for the error of a plan, per view that calibrates it
_ROUND_UP = 1.0 + 1e-9
_PARTIES_OF_FIRST_VIEWS = 100  # that compare kinds of design
_WHOLE_VIEWS = ((1500, 3), (5000, 1))  # up to so many parties, so many views of all of them are checked in the end
_CHECK_SEED = 10**9  # the first one: what a design was chosen or calibrated on does not check it


def plan(
    requirements: Requirements,
    options: PlanOptions | None = None,
    *,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Plan:
    """Find the parameters of least expected error that meet the requirements.

    Settled runs with one receiver are looked up in tables of drawn views (`inca.planning.level_tables`), in
    milliseconds at any number of parties from 10; everything else is sampled. The result does not depend on chance:
    what is sampled is sampled from fixed seeds.

    Args:
        requirements: The guarantee, the adversary, the dropouts and the message budget.
        options: What is fixed, and how the plan is found; by default nothing is fixed.
        confidence: The confidence of the cancelling noise that is extrapolated from them.
        progress: Called with the views done and their total.

    Returns:
        A plan: the design, the noise levels, the expected error, and how likely the guarantee fails.

    Raises:
        RequirementsNotMet: If no design meets the requirements; the sentence says why, and what could be done.
        InvalidInput: If an argument is out of its range.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> best = plan(requirements)
        >>> print(best.design)
        permutation, 20 rounds, 1 receiver, value in shares, last 1 quiet
        >>> best.expected_mse < 1.5 * requirements.central_mse  # a trusted curator's error, with everybody present
        True
    """
    instance("requirements", requirements, Requirements)
    options = instance("options", PlanOptions() if options is None else options, PlanOptions)
    if progress is not None:
        method_of("progress", progress, "__call__", "a function")
    rounds, receivers, proven = options.rounds, options.receivers, options.proven
    settlement, recipe, views = options.settlement or "settled", options.recipe, options.views
    integer("views", views, min=2)
    one_of("recipe", recipe, ("best", "paper"))
    one_of("settlement", settlement, SETTLEMENTS)
    instance("proven", proven, bool)
    between_0_and_1("confidence", confidence)
    if recipe == "best" and settlement == "settled":
        counter = _ViewCounter(progress, _calibration_views(requirements, views))
        settled = settled_plan(
            requirements,
            rounds=rounds,
            receivers=receivers,
            proven=proven,
            views=views,
            confidence=confidence,
            on_view_sampled=counter,
        )
        counter.finish()
        return settled
    if proven:
        refuse("proven", proven, "used with settled runs: for others no level is proven")
    if recipe == "paper":
        design = _paper_design(requirements, rounds, receivers)
        counter = _ViewCounter(progress, _calibration_views(requirements, views))
        factors = np.array([paper_factor(requirements)])
        return _calibrate(requirements, design, factors, views, confidence, counter, recipe)
    kinds = candidate_designs(requirements, rounds, receivers)
    few, some = max(4, views // _KINDS_SHARE), max(4, views // _QUIET_SHARE)
    compared = few * len(kinds) + some * (len(with_quiet_rounds(kinds[0])) + 2)
    rates = 2 if requirements.dropout > 0 or requirements.away > 0 else 1
    counter = _ViewCounter(progress, compared * rates + _calibration_views(requirements, views))
    first_scorer = DesignScorer(requirements, few, _PARTIES_OF_FIRST_VIEWS, counter)
    scorer = DesignScorer(requirements, some, on_view_sampled=counter)
    (best_kind, kind), *other_kinds = _by_error(first_scorer, kinds)
    (best, design), *other_designs = _by_error(scorer, with_quiet_rounds(kind))
    considered = [
        *(AlternativeDesign(str(other), other.messages, error / best_kind) for error, other in other_kinds),
        *(AlternativeDesign(str(other), other.messages, error / best) for error, other in other_designs),
    ]
    factors = candidate_factors(requirements, sampled_parties(requirements, design))
    calibrated = _calibrate(requirements, design, factors, views, confidence, counter, recipe)
    further = _with_more_messages(requirements, design, best, scorer) if rates > 1 else []
    counter.finish()
    return replace(calibrated, considered=tuple(considered), further=tuple(further))


def _by_error(scorer: DesignScorer, designs: list[ProtocolDesign]) -> list[tuple[float, ProtocolDesign]]:
    """Return the designs with their scaled errors, the best one first."""
    return sorted(((scorer.score(design).error, design) for design in designs), key=lambda pair: pair[0])


def _calibration_views(requirements: Requirements, views: int) -> int:
    return views * len(attendances(requirements))


def _calibrate(
    requirements: Requirements,
    design: ProtocolDesign,
    factors: Array,
    views: int,
    confidence: float,
    on_view_sampled: OnViewSampled,
    recipe: str,
) -> Plan:
    """Calibrate a design on many views and predict its error."""
    levels, sampling = extrapolated_levels(requirements, design, factors, views, confidence, on_view_sampled)
    errors = sample_error(requirements, design, requirements.dropout, int(_RUNS_PER_VIEW * views))
    best = int(np.argmin(scaled_errors(requirements, factors, levels, errors)))
    factor, level = float(factors[best]), float(levels[best])
    if math.isinf(level):
        # Only with a given factor: among those tried is Local DP's, which needs no cancelling noise.
        raise RequirementsNotMet(
            f"recipe {recipe} does not meet the requirements: with {design}, no cancelling noise protects every party "
            "of the sampled runs; allow more messages, or use recipe best"
        )
    level, checked = _checked_on_whole_views(requirements, design, factor, level, sampling.parties)
    # Rounded up, so that a loss of exactly what is allowed, as in Local DP, is not exceeded by rounding.
    var_independent = requirements.var_local_dp * factor / requirements.honest * _ROUND_UP
    var_cancelling = requirements.var_local_dp * level * _ROUND_UP
    budget, standard_error = errors.expected_error(
        requirements, var_independent=var_independent, var_cancelling=var_cancelling
    )
    return Plan(
        requirements=requirements,
        design=design,
        recipe=recipe,
        factor=factor,
        noise_levels=NoiseLevels(independent=math.sqrt(var_independent), cancelling=math.sqrt(var_cancelling)),
        budget=budget,
        standard_error=standard_error,
        structure_bound=math.exp(design.log_failure(requirements)),
        sampling=replace(sampling, checked=checked),
    )


def _checked_on_whole_views(
    requirements: Requirements, design: ProtocolDesign, factor: float, level: float, sampled: int
) -> tuple[float, int]:
    """Hold a level from sub-populations against views of all parties, and raise it should it not suffice."""
    if sampled == requirements.parties or level == 0.0:
        return level, 0
    views = next((count for most, count in _WHOLE_VIEWS if requirements.parties <= most), 0)
    own = math.sqrt(factor / requirements.honest)
    for seed in range(_CHECK_SEED, _CHECK_SEED + views):
        view = sample_view(requirements, design, requirements.parties, 0.0, seed)
        while account(view, NoiseLevels(independent=own, cancelling=math.sqrt(level)), sensitivity=1.0).max_mu > 1.0:
            level *= 1.1
    return level, views


def _with_more_messages(
    requirements: Requirements, design: ProtocolDesign, error: float, scorer: DesignScorer
) -> list[AlternativeDesign]:
    """Return what one more round, or twice as many, would bring."""
    alternatives = []
    for rounds in (1, design.rounds):
        longer = design.with_more_rounds(rounds)
        possible = longer.rounds > longer.quiet
        possible &= longer.schedule != "distinct" or longer.messages < requirements.parties
        if possible and longer.hides_enough(requirements):
            relative = scorer.score(longer).error / error
            alternatives.append(AlternativeDesign(str(longer), longer.messages, relative))
    return alternatives


def _paper_design(requirements: Requirements, rounds: int | None, receivers: int | None) -> ProtocolDesign:
    k = 1 if receivers is None else integer("receivers", receivers, 1, requirements.parties - 1)
    longest = requirements.messages // k if rounds is None else integer("rounds", rounds, min=1)
    if longest < 1 or longest * k > requirements.messages:
        refuse("messages", requirements.messages, f"at least receivers times rounds ({max(longest, 1) * k})")
    return designs_that_hide_enough(requirements, [ProtocolDesign("random", longest, k)], rounds, k)[0]


class _ViewCounter:
    """Counts sampled views for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def finish(self) -> None:
        """Report that all is done, also where some steps were not needed."""
        if self._progress is not None:
            self._progress(self._total, self._total)
