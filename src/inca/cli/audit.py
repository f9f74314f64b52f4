"""`inca audit`: the exact loss of every honest party of an execution, and what the theorems say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app
from inca.cli.executions import (
    ADVERSARY,
    NOISE,
    Bounds,
    Colluding,
    Delta,
    Eavesdropped,
    File,
    Level,
    Wanted,
    chosen,
)
from inca.cli.progress import progress_bar
from inca.cli.wishes import known_rule

if TYPE_CHECKING:
    from inca import Certificate
    from inca.privacy.theorems.preconditions import Verdict

_OUTPUT = "Output"


@app.command()
def audit(
    execution: File,
    epsilon: Wanted = None,
    delta: Delta = 1e-5,
    rule: Annotated[str, typer.Option(help="exact, or classic: the paper's constant, for epsilon below 1.")] = "exact",
    colluding: Colluding = None,
    eavesdropped: Eavesdropped = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the same random adversary.", rich_help_panel=ADVERSARY)
    ] = None,
    sigma_independent: Level = None,
    sigma_cancelling: Level = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Hold the execution against this plan: guarantee, design, noise, and its adversary's size."),
    ] = None,
    domain: Bounds = (0.0, 1.0),
    ball: Annotated[
        float | None, typer.Option(help="RADIUS: every value has at most this length.", rich_help_panel=NOISE)
    ] = None,
    dimensions: Annotated[int, typer.Option(help="Coordinates of a value.", rich_help_panel=NOISE)] = 1,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the certificate (JSON) here.", rich_help_panel=_OUTPUT)
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw all losses: .png or .svg.", rich_help_panel=_OUTPUT)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Tell exactly what an adversary learns of each honest party from an execution.

    The adversary knows who sent to whom and who was present, sees what its colluders and taps see and all final
    messages, and combines it all in the best way. The loss is exact, not a bound. If someone was absent or a share did
    not arrive, the loss at full attendance is reported, too, and a wanted guarantee must hold there as well.

    Example:  inca average examples/waiting-times.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200
    --transcript run.json, then  inca audit run.json --colluding 0.1 --domain 0 240
    """
    import inca
    from inca._base.validation import real, whole
    from inca.privacy.theorems.preconditions import conditions

    if epsilon is not None:
        real("--epsilon", epsilon, least=0.0)
    bounds = inca.Interval(*domain) if ball is None else inca.Ball(ball)
    sensitivity = bounds.sensitivity(whole("--dimensions", dimensions, least=1))
    found = inca.read_execution(execution)
    if plan is not None:
        made_for = inca.read_plan(plan)
        made_for.check(found)
        wish = made_for.wish
        epsilon, delta, rule, sensitivity = wish.epsilon, wish.delta, wish.rule, wish.sensitivity
        if not found.colluding and not found.eavesdropped:
            colluding = wish.colluding if colluding is None else colluding
            eavesdropped = wish.eavesdropped if eavesdropped is None else eavesdropped
    given = chosen(found, colluding, eavesdropped, seed, sigma_independent, sigma_cancelling)
    with progress_bar("round", given.execution.parties > 2000) as progress:
        made = inca.certify(given, sensitivity=sensitivity, delta=delta, rule=known_rule(rule), progress=progress)
    verdicts = conditions(made.facts)
    met = None if epsilon is None else made.worst_epsilon <= epsilon
    if certificate is not None:
        made.write(certificate)
    if picture is not None:
        from inca.cli.pictures import draw_losses

        draw_losses(made, picture)
    if as_json:
        typer.echo(json.dumps(_report(made, verdicts, epsilon, met), allow_nan=False))
    else:
        _show(made, verdicts, epsilon, met)
        for name, place in (("certificate", certificate), ("picture", picture)):
            if place is not None:
                typer.echo(f"The {name} is in {place}.")
    if met is False:
        raise typer.Exit(1)


def _report(made: Certificate, verdicts: list[Verdict], epsilon: float | None, met: bool | None) -> dict[str, Any]:
    report = made.as_dict()
    report["conditions"] = [{"name": each.name, "holds": each.holds, "why": each.why} for each in verdicts]
    if epsilon is not None:
        report["wanted"] = {"epsilon": epsilon, "met": met}
    return report


def _show(made: Certificate, verdicts: list[Verdict], epsilon: float | None, met: bool | None) -> None:
    typer.echo(str(made))
    typer.echo("  conditions")
    for each in verdicts:
        typer.echo(f"    {'holds' if each.holds else 'fails'}  {each.name}: {each.why}")
    if met is not None:
        verdict = "holds" if met else "does NOT hold"
        typer.echo(f"The wanted guarantee ({epsilon:g}, {made.delta:g})-DP {verdict} for every honest party.")
