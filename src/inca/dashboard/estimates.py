"""Errors of all mechanisms: at once where there are formulas, soon a range for inca's, on request the plan.

And what more or fewer messages would do to inca's, from the tables of drawn views: milliseconds, so it can follow a
slider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from inca._base.files import null_for_infinity
from inca._base.options import PlanOptions
from inca._base.types import Progress
from inca.dashboard.questions import PlanQuestion
from inca.errors import IncaError
from inca.mechanisms.base import Mechanism
from inca.mechanisms.compare import baselines, evaluate, guess_mse
from inca.planning.level_tables import DRAWN_PARTIES, FEWEST_PARTIES
from inca.planning.plan import Plan
from inca.planning.requirements import Requirements
from inca.planning.sampled_range import ErrorRange, error_ranges
from inca.planning.sampling import OnViewSampled
from inca.planning.search import plan
from inca.planning.settled_plan import is_looked_up, looked_up_errors
from inca.protocol.usefulness import remark_on_error
from inca.reporting.plan import plan_content

QUICK_ESTIMATE = "inca, quick estimate"
FINAL_MESSAGES = 1
"""What a party publishes in the end, beside the messages of the rounds."""
_RANGES_AT_ONCE = 2  # before other mechanisms that take a while: the one that needs no view, and the first that does
_MAX_QUICK_MUFFLIATO_PARTIES = 600  # up to which its graphs are computed while one waits


def quick_estimates(question: PlanQuestion, on_views_sampled: OnViewSampled | None = None) -> Iterator[dict[str, Any]]:
    """Yield one entry per mechanism: those with formulas first, then what inca's plan will be.

    Where plans are looked up that is the plan's own error. Elsewhere it is a range that the plan's error lies in,
    several times, from more sampled views each time; the error of such an entry is the upper end of its range.
    """
    requirements = question.requirements
    mechanisms = list(baselines(requirements))
    yield {
        "head": {
            "parties": requirements.parties,
            "colluders": requirements.colluders,
            "leavers": requirements.leavers,
            "guess_mse": guess_mse(requirements),
            "slow": [name for name, _ in mechanisms if _is_slow(name, requirements)],
        }
    }
    quick = [pair for pair in mechanisms if not _is_slow(pair[0], requirements)]
    own = _own_estimates(question, on_views_sampled)
    yield from (_baseline(*pair, requirements) for pair in quick if not _takes_a_while(pair[0]))
    yield from islice(own, _RANGES_AT_ONCE)
    yield from (_baseline(*pair, requirements) for pair in quick if _takes_a_while(pair[0]))
    yield from own


def looked_up_estimate(requirements: Requirements) -> dict[str, Any] | None:
    """Return the entry of the plan where it is looked up, which takes milliseconds; None where views are sampled."""
    return _own_entry(QUICK_ESTIMATE, plan(requirements)) if is_looked_up(requirements) else None


def full_plan(question: PlanQuestion, progress: Progress) -> dict[str, Any]:
    """Make the plan, as `inca plan` does."""
    best = plan(question.requirements, PlanOptions(views=question.views), progress=progress)
    document = best.document()
    return {
        "entry": _own_entry("inca, planned", best),
        "plan": document.as_fields(),
        "content": plan_content(document),
    }


def slow_mechanisms(question: PlanQuestion) -> Iterator[dict[str, Any]]:
    """Yield an entry for each mechanism that takes long."""
    for name, make in baselines(question.requirements):
        if _is_slow(name, question.requirements):
            yield _baseline(name, make, question.requirements)


def _own_estimates(question: PlanQuestion, on_views_sampled: OnViewSampled | None) -> Iterator[dict[str, Any]]:
    requirements = question.requirements
    try:
        if (entry := looked_up_estimate(requirements)) is not None:
            yield {"entry": entry}
            return
        for errors in error_ranges(requirements, views=question.views, on_views_sampled=on_views_sampled):
            yield {"entry": _range_entry(errors, requirements)}
    except IncaError as refusal:
        yield {"entry": _entry("inca", why_not=str(refusal))}


def _takes_a_while(name: str) -> bool:
    return name.startswith("Muffliato")


def _is_slow(name: str, requirements: Requirements) -> bool:
    """Whether calibration takes seconds or minutes: GOPA samples graphs, Muffliato needs large matrices."""
    many = requirements.parties > _MAX_QUICK_MUFFLIATO_PARTIES
    return name.startswith("GOPA") or (name.startswith("Muffliato") and many)


def _entry(mechanism: str, **fields: Any) -> dict[str, Any]:
    """Return what the page shows of a mechanism; `mse` null: no finite error, or none at all and `why_not` says why."""
    empty = {"mse": None, "relative": None, "messages": None, "promise": "", "weaker": False, "why_not": ""}
    own = {"remark": "", "parts": None, "design": None, "sigma_independent": None, "sigma_cancelling": None}
    own |= {"low": None, "views": None, "planned_views": None}
    return dict(null_for_infinity({"mechanism": mechanism} | empty | own | fields))


def _baseline(name: str, make: Callable[[], Mechanism], requirements: Requirements) -> dict[str, Any]:
    entry = evaluate(name, make, requirements)
    shown = ("mse", "relative", "messages", "promise", "weaker", "why_not")
    remark = "" if entry.mse is None else remark_on_error(entry.mse, requirements.sensitivity)
    return {"entry": _entry(name, remark=remark, **{field: getattr(entry, field) for field in shown})}


def _own_entry(name: str, own: Plan) -> dict[str, Any]:
    requirements, design, budget = own.requirements, own.design, own.budget
    return _entry(
        name,
        mse=budget.total,
        relative=budget.total / requirements.central_mse,
        messages=design.messages,
        remark=remark_on_error(budget.total, requirements.sensitivity),
        parts={"independent": budget.independent, "cancelling": budget.cancelling, "data": budget.data},
        design=asdict(design) | {"text": str(design)},
        sigma_independent=own.noise_levels.independent,
        sigma_cancelling=own.noise_levels.cancelling,
    )


def _range_entry(errors: ErrorRange, requirements: Requirements) -> dict[str, Any]:
    """Return the entry of a range: its figures are those of the upper end, so that none is too good."""
    unit = requirements.var_local_dp
    return _entry(
        QUICK_ESTIMATE,
        mse=errors.high,
        low=errors.low,
        views=errors.rates * errors.views,
        planned_views=errors.rates * errors.planned_views,
        relative=errors.high / requirements.central_mse,
        messages=errors.design.messages,
        remark=remark_on_error(errors.high, requirements.sensitivity),
        parts={"independent": errors.high - errors.data, "cancelling": 0.0, "data": errors.data},
        design=asdict(errors.design) | {"text": str(errors.design)},
        sigma_independent=math.sqrt(unit * errors.noise.start),
        sigma_cancelling=math.sqrt(unit * errors.noise.level),
    )


def tradeoff(question: PlanQuestion) -> dict[str, Any]:
    """Return what more or fewer messages would do to the error, for any epsilon and delta.

    What noise leaves is in units of s^2 / mu^2: neither the best design nor these numbers depend on epsilon or delta
    (docs/planner.md), so that a page can move along them by itself.
    """
    requirements = question.requirements
    designs = list(looked_up_errors(requirements))
    points = [
        {
            "rounds": design.rounds,
            "receivers": design.receivers,
            "messages": design.messages + FINAL_MESSAGES,
            "noise": error.noise / requirements.var_local_dp,
        }
        for design, error in designs
    ]
    data = designs[0][1].data if designs else None
    try:
        entry = looked_up_estimate(requirements)
    except IncaError:  # said by the estimate, which is asked for besides
        entry = None
    why_not = "" if points else _why_not(requirements)
    return dict(null_for_infinity({"points": points, "data": data, "why_not": why_not, "entry": entry}))


def _why_not(requirements: Requirements) -> str:
    if requirements.eavesdropped > 0.0:
        return (
            f"with eavesdroppers the tables of drawn views start at {DRAWN_PARTIES} parties, and end at 30 % of all "
            "messages, or fewer where many collude or leave"
        )
    if requirements.parties < FEWEST_PARTIES:
        return f"the tables of drawn views start at {FEWEST_PARTIES} parties"
    return "the tables of drawn views do not reach so many colluders and leavers together"
