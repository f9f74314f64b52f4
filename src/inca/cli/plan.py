"""`inca plan`: parameters for a required guarantee, the error to expect, and what the alternatives would give."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.options import (
    CONDITIONS,
    OUTPUT,
    AsJson,
    Away,
    Colluding,
    Delta,
    Dropout,
    Eavesdropped,
    Epsilon,
    Failure,
    Late,
    Messages,
    Parties,
    Rule,
    Sensitivity,
    Settlement,
    Views,
    rule_named,
)
from inca.cli.printing import OutputFiles, print_json, print_next, print_table, print_text
from inca.cli.progress import phase_bar

if TYPE_CHECKING:
    from inca import Plan, Requirements
    from inca._base.types import Progress


def plan(
    parties: Parties,
    epsilon: Epsilon,
    delta: Delta = 1e-5,
    colluding: Colluding = 0.0,
    eavesdropped: Eavesdropped = 0.0,
    dropout: Dropout = 0.0,
    away: Away = 0.0,
    messages: Messages = 20,
    rounds: Annotated[
        int | None, typer.Option(help="Fix the number of rounds instead of choosing it.", rich_help_panel=CONDITIONS)
    ] = None,
    receivers: Annotated[
        int | None,
        typer.Option(help="Fix the receivers per party and round instead of choosing.", rich_help_panel=CONDITIONS),
    ] = None,
    settlement: Settlement = "settled",
    late: Late = 0,
    proven: Annotated[
        bool,
        typer.Option(
            "--proven",
            help="Take cancelling noise that is proven to suffice, not drawn; one late leaver ruins the result.",
            rich_help_panel=CONDITIONS,
        ),
    ] = False,
    failure: Failure = 1e-6,
    rule: Rule = "analytic",
    sensitivity: Sensitivity = 1.0,
    recipe: Annotated[
        str,
        typer.Option(help="best, or paper: equal shares, random receivers, 1.3 times the least independent noise."),
    ] = "best",
    views: Views = 300,
    baselines: Annotated[
        bool, typer.Option(help="Compare with other mechanisms at the same guarantee.", rich_help_panel=OUTPUT)
    ] = True,
    out: Annotated[Path | None, typer.Option(help="Write the plan (JSON) here.", rich_help_panel=OUTPUT)] = None,
    as_json: AsJson = False,
) -> None:
    """Find the parameters of least error for a guarantee that holds at every dropout rate up to --dropout.

    What is promised is epsilon at delta + the probability that the plan fails for a party (--failure). Settled runs,
    in which those who stay undo what they exchanged with leavers, are looked up in a moment; --settlement none plans
    Algorithm 2 as it is, which takes a minute. The file drives `inca average --plan`, `inca audit --plan` and, if the
    run settles, `inca node roster init --plan`. Status 1 if no plan meets the requirements.

    Example:  inca plan --parties 200 --epsilon 0.2 --colluding 0.1 --dropout 0.1 --out plan.json
    """
    import inca

    files = OutputFiles(plan=out)
    requirements = inca.Requirements(
        parties=parties,
        epsilon=epsilon,
        delta=delta,
        colluding=colluding,
        eavesdropped=eavesdropped,
        dropout=dropout,
        away=away,
        messages=messages,
        rule=rule_named(rule),
        sensitivity=sensitivity,
        failure=failure,
    )
    with phase_bar({"plan": "view", "baselines": "baseline"}) as progress:
        best = inca.plan(
            requirements,
            rounds=rounds,
            receivers=receivers,
            settlement=settlement,
            late=late,
            proven=proven,
            recipe=recipe,
            views=views,
            progress=partial(progress, "plan"),
        )
        others = _baselines(requirements, partial(progress, "baselines")) if baselines else []
    files.write("plan", best.write)
    if as_json:
        print_json(
            {
                **best.as_dict(),
                "settlement": best.settlement,
                "rivals": others,
                "remarks": [best.remark] if best.remark else [],
            }
        )
    else:
        print_text(str(best))
        if others:
            _show_baselines(best, others)
    files.finish(announce=not as_json)
    if not as_json:
        file = out or "PLAN, after --out PLAN here"
        print_next(f"inca average VALUES --domain LOW HIGH --plan {file}")
        if best.settlement == "settled":
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
    heading = f"Beside it, at dropout {best.requirements.dropout:g}"
    print_table(heading, ["mean squared error", "x this plan", "messages"], rows)
    if any(other["weaker"] for other in others):
        print_text("* a weaker promise than inca's")
    for note in notes:
        print_text(note)
