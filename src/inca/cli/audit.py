"""`inca audit`: the exact loss of every honest party of an execution, and what the theorems say of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.options import (
    ADVERSARY,
    NOISE,
    OUTPUT,
    AsJson,
    Bounds,
    ExecutionFile,
    RandomColluding,
    RandomEavesdropped,
    ReportedDelta,
    RequiredEpsilon,
    SigmaCancelling,
    SigmaIndependent,
    override_execution,
    refuse_combination,
    rule_named,
)
from inca.cli.printing import print_files, print_json
from inca.cli.progress import progress_bar
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca import Certificate
    from inca.privacy.theorems.preconditions import TheoremCheck


def audit(
    context: typer.Context,
    execution: ExecutionFile,
    epsilon: RequiredEpsilon = None,
    delta: ReportedDelta = 1e-5,
    rule: Annotated[
        str,
        typer.Option(help="analytic (exact), or classic: the paper's constant, for epsilon below 1."),
    ] = "analytic",
    plan: Annotated[
        Path | None,
        typer.Option(
            help="Check the execution against this plan: its design, noise, guarantee and the size of its adversary."
        ),
    ] = None,
    colluding: RandomColluding = None,
    eavesdropped: RandomEavesdropped = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw the same random adversary again.", rich_help_panel=ADVERSARY)
    ] = None,
    sigma_independent: SigmaIndependent = None,
    sigma_cancelling: SigmaCancelling = None,
    domain: Bounds = (0.0, 1.0),
    ball: Annotated[
        float | None,
        typer.Option(help="RADIUS: instead, every value has at most this Euclidean norm.", rich_help_panel=NOISE),
    ] = None,
    dimensions: Annotated[int, typer.Option(help="Coordinates of a value.", rich_help_panel=NOISE)] = 1,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the certificate (JSON) here.", rich_help_panel=OUTPUT)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot all losses: .png or .svg.", rich_help_panel=OUTPUT)] = None,
    as_json: AsJson = False,
) -> None:
    """Tell exactly what an adversary learns of each honest party from an execution.

    The adversary knows who sent to whom and who was present, sees the messages that its colluders receive, those it
    eavesdrops on and all final messages, and combines them in the best way. The loss is exact, not a bound. If someone
    was absent or a share did not arrive, the loss at full attendance is reported as well, and a required guarantee must
    hold there, too.

    Example:  inca average examples/waiting-times.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200
    --transcript run.json, then  inca audit run.json --colluding 0.1 --domain 0 240
    """
    import inca
    from inca._base.files import check_writable
    from inca._base.validation import finite_float, integer
    from inca.privacy.theorems.preconditions import conditions

    refuse_combination(context, "plan", "epsilon", "delta", "rule", "domain", "ball", "dimensions")
    refuse_combination(context, "ball", "domain")
    if epsilon is not None:
        finite_float("--epsilon", epsilon, min=0.0)
    check_writable(certificate)
    if plot is not None:
        from inca.cli.plots import check_plot

        check_plot(plot)
    bounds = inca.Interval(*domain) if ball is None else inca.Ball(ball)
    sensitivity = bounds.sensitivity(integer("--dimensions", dimensions, min=1))
    transcript = inca.read_execution(execution)
    if plan is not None:
        agreed = inca.read_plan(plan)
        agreed.check(transcript)
        required = agreed.requirements
        epsilon, delta, rule, sensitivity = required.epsilon, required.delta, required.rule, required.sensitivity
        if transcript.adversary == inca.Adversary():
            colluding = required.colluding if colluding is None else colluding
            eavesdropped = required.eavesdropped if eavesdropped is None else eavesdropped
    if seed is not None and colluding is None and eavesdropped is None:
        raise InvalidInput("--seed must be combined with --colluding or --eavesdropped, which draw an adversary")
    transcript = override_execution(transcript, colluding, eavesdropped, seed, sigma_independent, sigma_cancelling)
    with progress_bar("round") as progress:
        result = inca.certify(
            transcript, sensitivity=sensitivity, delta=delta, rule=rule_named(rule), progress=progress
        )
    checks = conditions(result.theorem_inputs)
    met = None if epsilon is None else result.worst_epsilon <= epsilon
    if certificate is not None:
        result.write(certificate)
    if plot is not None:
        from inca.cli.plots import plot_losses

        plot_losses(result, plot)
    if as_json:
        print_json(_report(result, checks, epsilon, met))
    else:
        _show(result, checks, epsilon, met)
        print_files(certificate=certificate, plot=plot)
    if met is False:
        raise typer.Exit(1)


def _report(result: Certificate, checks: list[TheoremCheck], epsilon: float | None, met: bool | None) -> dict[str, Any]:
    report = result.as_dict()
    report["conditions"] = [{"name": check.name, "holds": check.holds, "why": check.why} for check in checks]
    if epsilon is not None:
        report["wanted"] = {"epsilon": epsilon, "met": met}
    return report


def _show(result: Certificate, checks: list[TheoremCheck], epsilon: float | None, met: bool | None) -> None:
    typer.echo(str(result))
    typer.echo("  conditions")
    for check in checks:
        typer.echo(f"    {'holds' if check.holds else 'fails'}  {check.name}: {check.why}")
    if met is not None:
        holds = "holds" if met else "does NOT hold"
        typer.echo(f"The required guarantee ({epsilon:g}, {result.delta:g})-DP {holds} for every honest party.")
