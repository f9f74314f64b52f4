"""`inca plan`: parameters for a required guarantee, the error to expect, and what it costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from inca.cli.options import OUTPUT, JsonOut, PlanConditions, Planning, PlanRequirements, options, part_of
from inca.cli.printing import OutputFiles, print_content, print_json, print_lines, print_text
from inca.cli.progress import phase_bar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inca import Plan, Requirements


@options(OUTPUT)
class PlanOutput(JsonOut):
    """What is printed of a plan, and where it goes."""

    compare: bool = False
    """Print the error of other mechanisms at the same guarantee as well, each as it comes."""


def plan(
    *,
    required: PlanRequirements,
    conditions: PlanConditions = PlanConditions(),
    planning: Planning = Planning(),
    output: PlanOutput = PlanOutput(),
) -> None:
    """Find the parameters of least error for a guarantee that holds if up to --dropout of the parties leave.

    The noise is proven to suffice, by formulas, in a moment. Up to some 70 parties the plan is certain: it holds
    against every coalition of the size. With more, who sends to whom is drawn, and --failure bounds the probability
    that a party is not protected, which adds to delta. --recipe paper calibrates Algorithm 2 on sampled views, as the
    paper does, which takes a minute. The file drives `inca average --plan`, `inca audit --plan` and `inca node roster
    init --plan`. Status 1 if no plan meets the requirements.

    Example:  inca plan --parties 200 --epsilon 0.2 --colluding 0.1 --dropout 0.1 --out plan.json
    """
    import inca

    files = OutputFiles(plan=output.out)
    requirements = part_of(inca.Requirements, required, conditions)
    with phase_bar({"plan": "view"}) as progress:
        best = inca.plan(requirements, planning, progress=lambda done, total: progress("plan", done, total))
    files.write("plan", best.write)
    if output.json:
        others = list(_baselines(requirements)) if output.compare else []
        print_json(best.document().as_fields() | {"baselines": others, "session": _session(best)})
    else:
        print_content(inca.content(best), details=output.details, titled=False)
        _print_next(best, output)
        if output.details and (session := _session(best)) is not None:
            print_text(f"In a session, {session['sentence']}.")
        if output.compare:
            _print_baselines(best)
    files.finish(announce=not output.json)


def _print_next(best: Plan, output: PlanOutput) -> None:
    file = output.out or "plan.json"
    first = "" if output.out else f"--out {file}, then "
    more = [option for option, given in (("--details", output.details), ("--compare", output.compare)) if not given]
    lines = [("Next", f"{first}inca average VALUES --plan {file}")]
    print_lines([*lines, *([("More", ", ".join(more))] if more else [])])


def _session(best: Plan) -> dict[str, Any] | None:
    """Return how many parties of a session may be missing, before commit and after it; None if it does not settle."""
    from inca.network.protocol.opening.trustees import tolerance_of

    if not best.settles:
        return None
    required = best.requirements
    tolerance = tolerance_of(required.parties, required.colluders, required.leavers)
    return asdict(tolerance) | {"sentence": tolerance.sentence}


def _baselines(requirements: Requirements) -> Iterator[dict[str, Any]]:
    from inca.mechanisms.compare import baselines, evaluate

    for name, make in baselines(requirements):
        entry = evaluate(name, make, requirements)
        yield {
            "mechanism": entry.mechanism,
            "expected_mse": entry.mse,
            "messages": entry.messages,
            "promise": entry.promise,
            "weaker": entry.weaker,
            "why_not": entry.why_not,
        }


def _print_baselines(best: Plan) -> None:
    """Print one line per mechanism, as soon as it is known."""
    widths = (42, 12, 12, 10)

    def line(*cells: str) -> None:
        first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=False))
        print_text("  ".join([cells[0].ljust(widths[0]), *rest]).rstrip() if first else "")

    print_text("")
    dropout = f"with {best.requirements.leavers:,} leaving"
    line(f"Squared error, {dropout}", "", "x this plan", "messages")
    line("this plan", f"{best.expected_mse:.4g}", "1", f"{best.design.messages:,}")
    weaker, notes = False, []
    for other in _baselines(best.requirements):
        name, error = other["mechanism"] + " *" * other["weaker"], other["expected_mse"]
        if error is None:
            notes.append(f"{name}: {other['why_not']}")
            continue
        line(name, f"{error:.4g}", f"{error / best.expected_mse:.3g}", f"{other['messages']:,.0f}")
        weaker |= other["weaker"]
    for note in ["* a weaker promise than inca's"] * weaker + notes:
        print_text(note)
