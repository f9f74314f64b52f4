"""Error against messages against privacy, from the tables of drawn views: milliseconds, so it can follow a slider."""

from __future__ import annotations

from typing import Any

from inca._base.files import null_for_infinity
from inca.dashboard.estimates import looked_up_estimate
from inca.dashboard.questions import PlanQuestion
from inca.errors import IncaError
from inca.planning.level_tables import FEWEST_PARTIES
from inca.planning.requirements import Requirements
from inca.planning.settled_plan import looked_up_errors

FINAL_MESSAGES = 1
"""What a party publishes in the end, beside the messages of the rounds."""


def tradeoff(question: PlanQuestion) -> dict[str, Any]:
    """Return what more or fewer messages would do to the error, for any epsilon and delta.

    What noise leaves is in units of s^2 / mu^2: neither the best design nor these numbers depend on epsilon or delta
    (docs/planner.md), so that a page can move along them by itself.

    Args:
        question: What is required.

    Returns:
        `points`, by rising messages, with the variance that noise leaves, if all who settle publish (`noise`) and if
        one does not (`late`); the squared errors of lost values, the same for all points (`data`, `late_data`); why
        there are no points (`why_not`), and the `entry` of the plan where it is looked up.
    """
    requirements = question.requirements
    designs = list(looked_up_errors(requirements))
    points = [
        {
            "rounds": design.rounds,
            "receivers": design.receivers,
            "messages": design.messages + FINAL_MESSAGES,
            "noise": error.noise / requirements.var_local_dp,
            "late": late.noise / requirements.var_local_dp,
        }
        for design, error, late in designs
    ]
    data, late_data = (designs[0][1].data, designs[0][2].data) if designs else (None, None)
    try:
        entry = looked_up_estimate(requirements)
    except IncaError:  # said by the estimate, which is asked for besides
        entry = None
    why_not = "" if points else _why_not(requirements)
    lost = {"data": data, "late_data": late_data}
    return dict(null_for_infinity({"points": points, **lost, "why_not": why_not, "entry": entry}))


def _why_not(requirements: Requirements) -> str:
    if requirements.eavesdropped > 0.0:
        return "the tables of drawn views hold no eavesdroppers"
    if requirements.parties < FEWEST_PARTIES:
        return f"the tables of drawn views start at {FEWEST_PARTIES} parties"
    return "the tables of drawn views do not reach so many colluders and leavers together"
