"""`inca plan`: parameters for a required guarantee, the error to expect, and what the alternatives would give."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from inca.cli.options import OUTPUT, JsonOut, PlanConditions, Planning, PlanRequirements, options, part_of
from inca.cli.printing import OutputFiles, print_content, print_json, print_next, print_table, print_text
from inca.cli.progress import phase_bar

if TYPE_CHECKING:
    from inca import Plan, Requirements
    from inca._base.types import Progress


@options(OUTPUT)
class PlanOutput(JsonOut):
    """What is printed of a plan, and where it goes."""

    no_baselines: bool = False
    """Do without the comparison with other mechanisms at the same guarantee."""


def plan(
    *,
    required: PlanRequirements,
    conditions: PlanConditions = PlanConditions(),
    planning: Planning = Planning(),
    output: PlanOutput = PlanOutput(),
) -> None:
    """Find the parameters of least error for a guarantee that holds at every dropout rate up to --dropout.

    What is promised is epsilon at delta + the probability that the plan fails for a party (--failure). Settled runs,
    in which those who stay undo what they exchanged with leavers, are looked up in a moment; --settlement none plans
    Algorithm 2 as it is, which takes a minute. The file drives `inca average --plan`, `inca audit --plan` and, if the
    run settles, `inca node roster init --plan`. Status 1 if no plan meets the requirements.

    Example:  inca plan --parties 200 --epsilon 0.2 --colluding 0.1 --dropout 0.1 --out plan.json
    """
    import inca
    from inca._base.validation import whole_parties
    from inca.network.protocol.opening.trustees import tolerance_of

    files = OutputFiles(plan=output.out)
    requirements = part_of(inca.Requirements, required, conditions)
    with phase_bar({"plan": "view", "baselines": "baseline"}) as progress:
        best = inca.plan(
            requirements,
            planning,
            progress=partial(progress, "plan"),
        )
        others = _baselines(requirements, partial(progress, "baselines")) if not output.no_baselines else []
    files.write("plan", best.write)
    tolerance = None
    if best.settlement == "settled":
        colluders = whole_parties("colluding", requirements.colluding, requirements.parties)
        tolerance = tolerance_of(requirements.parties, colluders, requirements.leavers)
    if output.json:
        fields = best.document().as_fields() | {"settlement": best.settlement, "baselines": others}
        print_json(fields | {"session": None if tolerance is None else asdict(tolerance)})
    else:
        print_content(inca.content(best), details=output.details)
        if tolerance is not None:
            print_text(f"In a session, {tolerance.sentence}.")
        if others:
            _show_baselines(best, others)
    files.finish(announce=not output.json)
    if not output.json:
        file = output.out or "PLAN, after --out PLAN here"
        print_next(f"inca average VALUES --domain LOW HIGH --plan {file}")
        if tolerance is not None:
            print_next(f"inca node roster init NAME --domain LOW HIGH --start TIME --out ROSTER --plan {file}")


def _baselines(requirements: Requirements, progress: Progress) -> list[dict[str, Any]]:
    from inca.mechanisms.compare import baselines, evaluate

    entries, others = [], list(baselines(requirements))
    for done, (name, make) in enumerate(others):
        progress(done, len(others))
        entries.append(evaluate(name, make, requirements))
    return [
        {
            "mechanism": entry.mechanism,
            "expected_mse": entry.mse,
            "messages": entry.messages,
            "promise": entry.promise,
            "weaker": entry.weaker,
            "why_not": entry.why_not,
        }
        for entry in entries
    ]


def _show_baselines(best: Plan, others: list[dict[str, Any]]) -> None:
    rows, notes = [], []
    for other in others:
        name, error = other["mechanism"] + " *" * other["weaker"], other["expected_mse"]
        if error is None:
            notes.append(f"{name}: {other['why_not']}")
            continue
        rows.append((name, [f"{error:.4g}", f"{error / best.expected_mse:.3g}", f"{other['messages']:,.0f}"]))
    print_text("")
    heading = f"Beside it, at dropout {best.requirements.dropout:g}"
    print_table(heading, ["mean squared error", "x this plan", "messages"], rows)
    if any(other["weaker"] for other in others):
        print_text("* a weaker promise than inca's")
    for note in notes:
        print_text(note)
