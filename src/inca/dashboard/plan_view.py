"""The plan that the Plan view shows, and on request the mechanisms beside it that take long.

The page works out the plan itself on every move of a slider, by the formulas of `inca.planning.settled`. The file, and
what is said of it in detail, come from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inca._base.files import null_for_infinity
from inca.dashboard.documents import plan_links
from inca.dashboard.questions import PlanQuestion
from inca.mechanisms.compare import baselines, evaluate
from inca.planning.plan import plan
from inca.reporting.plan import plan_content

SLOW = ("GOPA", "Muffliato")
"""Mechanisms whose calibration takes from seconds to minutes: one samples graphs, the other needs large matrices."""


def plan_view(question: PlanQuestion) -> dict[str, Any]:
    """Return the plan as a file, what is to be said of it, and links to runs of it."""
    document = plan(question.requirements).document()
    return {"plan": document.as_fields(), "content": plan_content(document), "links": plan_links(document)}


def slow_mechanisms(question: PlanQuestion) -> Iterator[dict[str, Any]]:
    """Yield an entry for each mechanism that takes long; `mse` null: no finite error, or none, as `why_not` says."""
    requirements = question.requirements
    for name, make in baselines(requirements):
        if name.startswith(SLOW):
            entry = evaluate(name, make, requirements)
            shown = ("mechanism", "mse", "messages", "promise", "weaker", "why_not")
            yield {"entry": null_for_infinity({field: getattr(entry, field) for field in shown})}
