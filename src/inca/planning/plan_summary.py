"""A plan in words, as `inca plan` prints it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inca.planning.requirements import Requirements
from inca.protocol.expected_error import ErrorBudget

if TYPE_CHECKING:
    from inca.planning.plan import Plan


def describe(plan: Plan) -> str:
    """Return the plan as lines of text: what for, how, with which error, and how sure."""
    requirements = plan.requirements
    lines = [
        f"Plan for {requirements.parties:,} parties: {plan.agreed} by the {requirements.rule} rule",
        f"  of values          that differ by at most {requirements.sensitivity:g}",
        f"  against            {adversary_in_words(requirements)}",
        f"  in spite of        {absences_in_words(requirements)}",
        f"  design             {plan.design}",
        f"  noise              sigma_independent {plan.noise_levels.independent:.6g} (factor {plan.factor:.3g}), "
        f"sigma_cancelling {plan.noise_levels.cancelling:.6g}",
        *(_settled_lines(plan) if plan.settlement == "settled" else _unsettled_lines(plan)),
        f"  may fail           for a party, with probability {plan.failure_probability:.2g}, which adds to delta: "
        f"{plan.failure_probability * requirements.honest:.2g} parties a run",
        f"  level              {level_in_words(plan)}",
    ]
    if plan.factor >= requirements.honest > 1:
        lines.append("  note               so few messages hide so little that this is Local DP: more would help")
    if plan.remark:
        lines.append(f"  note               {plan.remark}")
    lines += [f"  with {other.messages:>3} messages  {_change(other.relative_mse)}" for other in plan.further]
    return "\n".join(lines)


def _settled_lines(plan: Plan) -> list[str]:
    requirements, late, central = plan.requirements, plan.late_budget, plan.requirements.central_mse
    assert late is not None
    number = f"{max(1, plan.late)} late leaver{'s' * (plan.late > 1)}"
    they = "they settle and do" if plan.late > 1 else "it settles and does"
    return [
        f"  settled            who stays undoes what it exchanged with leavers{_topup(plan)}",
        f"  expected error     {plan.expected_mse:.4g} mean squared = {plan.expected_mse / central:.3g} x Central "
        f"DP ({central:.3g}); Local DP {requirements.local_mse:.3g}",
        f"  of which           {_percent(plan.budget.independent, plan.budget)} independent noise, "
        f"{_percent(plan.budget.data, plan.budget)} lost values",
        f"  {number:18} {late.total:.4g} mean squared = {late.total / central:.3g} x Central DP, if {they} not publish",
    ]


def _topup(plan: Plan) -> str:
    leavers = plan.requirements.leavers
    if leavers == 0:
        return ""
    return f"; {leavers:,} leaver{'s' * (leavers > 1)}: sigma_topup {plan.sigma_topup(leavers):.6g}"


def _unsettled_lines(plan: Plan) -> list[str]:
    requirements, budget, central = plan.requirements, plan.budget, plan.requirements.central_mse
    return [
        f"  expected error     {plan.expected_mse:.4g} mean squared = {plan.expected_mse / central:.3g} x Central "
        f"DP ({central:.3g}); Local DP {requirements.local_mse:.3g}",
        f"  of which           {_percent(budget.independent, budget)} independent noise, "
        f"{_percent(budget.cancelling, budget)} noise left by leavers, {_percent(budget.data, budget)} lost values",
    ]


def level_in_words(plan: Plan) -> str:
    """Return how the level of the cancelling noise is known."""
    sampling, requirements = plan.sampling, plan.requirements
    if sampling.kind == "proven":
        return "proven for any number of parties, whoever sends to whom; that messages hide too little: proven too"
    if sampling.known is not None:
        kind = "drawn with confidence" if sampling.kind == "drawn" else "extrapolated beyond what was drawn, confidence"
        return (
            f"{kind} {sampling.confidence:g}: {sampling.views:,} views of {sampling.parties} parties, "
            f"{sampling.known:.3g} of them known"
        )
    of = f"{sampling.parties} parties" + ("" if sampling.parties == requirements.parties else " (sub-populations)")
    rates = ", ".join(f"{rate:.3g}" for rate in sampling.dropouts)
    checked = f"; checked on {sampling.checked} whole view{'s' * (sampling.checked > 1)}" if sampling.checked else ""
    return (
        f"extrapolated, confidence {sampling.confidence:g}: {sampling.views} views of {of} each at dropout {rates}"
        f"{checked};\n                     that messages hide too little: {plan.structure_bound:.2g}, proven"
    )


def absences_in_words(requirements: Requirements) -> str:
    """Return who may be absent."""
    leaving = f"up to {requirements.dropout:.3g} of the parties leaving for good"
    return f"{leaving}, and each missing {requirements.away:.3g} of the rounds" if requirements.away else leaving


def adversary_in_words(requirements: Requirements) -> str:
    """Return whom the plan protects against."""
    parts = []
    if requirements.colluding > 0:
        number = requirements.colluders
        parts.append(f"{number:,} random colluding {'party' if number == 1 else 'parties'}")
    if requirements.eavesdropped > 0:
        parts.append(f"eavesdroppers on {requirements.eavesdropped:.3g} of all messages")
    return " and ".join(parts) if parts else "whoever knows who sent to whom and sees the final messages"


def _percent(part: float, budget: ErrorBudget) -> str:
    return f"{part / budget.total:.1%}" if 0 < budget.total < math.inf else "0 %"


def _change(relative: float) -> str:
    change = relative - 1.0
    return f"the error would be {abs(change):.1%} {'larger' if change > 0 else 'smaller'}"
