"""`inca plan`: parameters for a wanted guarantee, the error to expect, and what else one could do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app
from inca.cli.progress import progress_bar
from inca.cli.wishes import (
    LIMITS,
    Colluding,
    Delta,
    Dropout,
    Eavesdropped,
    Epsilon,
    Failure,
    Messages,
    Parties,
    Rule,
    Sensitivity,
    Views,
    known_rule,
)

if TYPE_CHECKING:
    from inca import Plan, Wish

_OUTPUT = "Output"


@app.command()
def plan(
    parties: Parties,
    epsilon: Epsilon,
    delta: Delta = 1e-5,
    colluding: Colluding = 0.0,
    eavesdropped: Eavesdropped = 0.0,
    dropout: Dropout = 0.0,
    messages: Messages = 20,
    rounds: Annotated[int | None, typer.Option(help="Fix the number of rounds.", rich_help_panel=LIMITS)] = None,
    receivers: Annotated[int | None, typer.Option(help="Fix receivers per round.", rich_help_panel=LIMITS)] = None,
    failure: Failure = 1e-6,
    rule: Rule = "exact",
    sensitivity: Sensitivity = 1.0,
    recipe: Annotated[str, typer.Option(help="best, or paper: equal shares, random receivers, factor 1.3.")] = "best",
    views: Views = 300,
    rivals: Annotated[bool, typer.Option(help="Compare with the other mechanisms.", rich_help_panel=_OUTPUT)] = True,
    out: Annotated[Path | None, typer.Option(help="Write the plan (JSON) here.", rich_help_panel=_OUTPUT)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Find the parameters of least error for a guarantee, at full attendance and at dropouts up to the given fraction.

    The file drives `inca average --plan` and `inca audit --plan`. Status 1 if the wish cannot be met.

    Example:  inca plan --parties 200 --epsilon 0.2 --colluding 0.1 --dropout 0.1 --out plan.json
    """
    import inca

    wish = inca.Wish(
        parties=parties,
        epsilon=epsilon,
        delta=delta,
        colluding=colluding,
        eavesdropped=eavesdropped,
        dropout=dropout,
        messages=messages,
        rule=known_rule(rule),
        sensitivity=sensitivity,
        failure=failure,
    )
    with progress_bar("view", wanted=True) as progress:
        made = inca.plan(wish, rounds=rounds, receivers=receivers, recipe=recipe, views=views, progress=progress)
    others = _rivals(wish) if rivals else []
    if out is not None:
        made.write(out)
    if as_json:
        typer.echo(json.dumps({**made.as_dict(), "rivals": others}, allow_nan=False))
        return
    typer.echo(str(made))
    if others:
        _show(made, others)
    if out is not None:
        typer.echo(f"The plan is in {out}.")


def _rivals(wish: Wish) -> list[dict[str, Any]]:
    from inca.mechanisms.compare import predicted, rivals

    found = [predicted(name, make, wish) for name, make in rivals(wish)]
    return [
        {
            "mechanism": each.mechanism,
            "expected_mse": each.mse,
            "messages": each.messages,
            "promise": each.promise,
            "weaker": each.weaker,
            "why_not": each.why_not,
        }
        for each in found
    ]


def _show(made: Plan, others: list[dict[str, Any]]) -> None:
    typer.echo(f"Beside it, at dropout {made.wish.dropout:g} and the same guarantee:")
    for other in others:
        if other["expected_mse"] is None:
            typer.echo(f"  {other['mechanism']:32} {other['why_not']}")
            continue
        relative = other["expected_mse"] / made.expected_mse
        note = "   weaker promise" if other["weaker"] else ""
        typer.echo(
            f"  {other['mechanism']:32} {other['expected_mse']:<10.4g} {relative:>8.3g} x this plan"
            f" {other['messages']:>9,.0f} messages{note}"
        )
