"""Errors of all mechanisms: at once where there are formulas, soon an estimate of inca's, on request the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from inca._base.files import null_for_infinity
from inca._base.types import Progress
from inca.dashboard.questions import PlanQuestion
from inca.errors import IncaError
from inca.mechanisms.base import Mechanism
from inca.mechanisms.compare import baselines, evaluate, guess_mse
from inca.planning.plan import Plan
from inca.planning.requirements import Requirements
from inca.planning.search import plan
from inca.protocol.usefulness import remark_on_error

_QUICK_VIEWS = 4  # for an idea of what a plan that is not looked up will be
_MAX_QUICK_MUFFLIATO_PARTIES = 600  # up to which its graphs are computed while one waits


def quick_estimates(question: PlanQuestion) -> Iterator[dict[str, Any]]:
    """Yield one entry per mechanism: those with formulas first, then inca's plan, or a quick estimate of it.

    Args:
        question: What is required.

    Yields:
        First a `head` with the numbers of parties, the largest squared error of guessing the middle of the domain and
        the names of slow mechanisms, then entries. The `parts` of an entry are where its error comes from: independent
        noise, cancelling noise that is left, lost values. Its `remark` says if a guess would do as well.
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
    for name, make in mechanisms:
        if not _is_slow(name, requirements):
            yield _baseline(name, make, requirements)
    try:
        estimate = plan(requirements, views=_QUICK_VIEWS)
    except IncaError as refusal:
        yield {"entry": _entry("inca", why_not=str(refusal))}
        return
    yield {"entry": _own_entry("inca, quick estimate", estimate)}


def full_plan(question: PlanQuestion, progress: Progress) -> dict[str, Any]:
    """Make the plan, as `inca plan` does.

    Args:
        question: What is required.
        progress: Called with the steps done and their total.

    Returns:
        Its `entry` among the mechanisms, the `plan` as a file holds it, and its `text`.
    """
    best = plan(question.requirements, views=question.views, progress=progress)
    entry = _own_entry("inca, planned", best)
    return dict(null_for_infinity({"entry": entry, "plan": best.as_dict(), "text": str(best)}))


def slow_mechanisms(question: PlanQuestion) -> Iterator[dict[str, Any]]:
    """Yield an entry for each mechanism that takes long.

    Args:
        question: What is required.
    """
    for name, make in baselines(question.requirements):
        if _is_slow(name, question.requirements):
            yield _baseline(name, make, question.requirements)


def _is_slow(name: str, requirements: Requirements) -> bool:
    """Whether calibration takes seconds or minutes: GOPA samples graphs, Muffliato needs large matrices."""
    many = requirements.parties > _MAX_QUICK_MUFFLIATO_PARTIES
    return name.startswith("GOPA") or (name.startswith("Muffliato") and many)


def _entry(mechanism: str, **fields: Any) -> dict[str, Any]:
    """Return what the page shows of a mechanism; `mse` null: no finite error, or none at all and `why_not` says why."""
    empty = {"mse": None, "relative": None, "messages": None, "promise": "", "weaker": False, "why_not": ""}
    own = {"remark": "", "parts": None, "design": None, "sigma_independent": None, "sigma_cancelling": None}
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
