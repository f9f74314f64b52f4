"""A first idea of a plan in a fraction of a second, for those who move sliders."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca.planning.designs import ProtocolDesign, candidate_designs
from inca.planning.requirements import Requirements
from inca.planning.scoring import DesignScorer
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels

_VIEWS, _PARTIES_OF_A_VIEW, _PARTIES_OF_A_RUN = 4, 60, 2000


@dataclass(frozen=True)
class QuickEstimate:
    """A design, its noise and its expected error, from a handful of sampled views: an idea, not a promise."""

    design: ProtocolDesign
    noise_levels: NoiseLevels
    budget: ErrorBudget


def quick_estimate(requirements: Requirements) -> QuickEstimate:
    """Return about what `plan` will find, from so few views that nobody waits; refuse what `plan` refuses.

    Noise that suffices in a handful of views is less than what all but a tiny fraction of them need, and the design is
    not searched for: one receiver by permutation if that hides enough. So the plan's error is usually larger, by
    half or more where many leave.

    Args:
        requirements: What is required.

    Returns:
        A design with its noise levels and its expected error.

    Raises:
        RequirementsNotMet: If no design hides enough.

    Example:
        >>> estimate = quick_estimate(Requirements(parties=60, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1))
        >>> estimate.design.schedule, estimate.budget.total < 60 * estimate.budget.independent
        ('permutation', True)
    """
    designs = [design for design in candidate_designs(requirements) if design.kind == "incremental"]
    design = next((design for design in designs if design.schedule == "permutation"), designs[0])
    scorer = DesignScorer(requirements, _VIEWS, _PARTIES_OF_A_VIEW, parties_of_a_run=_PARTIES_OF_A_RUN)
    score = scorer.score(design)
    budget, _ = score.errors.expected_error(
        requirements, var_independent=score.var_independent, var_cancelling=score.var_cancelling
    )
    noise_levels = NoiseLevels(independent=math.sqrt(score.var_independent), cancelling=math.sqrt(score.var_cancelling))
    return QuickEstimate(design, noise_levels, budget)
