"""`inca audit`: the exact loss of every honest party of an execution, and what the theorems say of it."""

from __future__ import annotations

from dataclasses import dataclass
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
    device_named,
    domain_of,
    known_sensitivity,
    override_execution,
    refuse_combination,
    rule_named,
)
from inca.cli.printing import OutputFiles, print_json, print_next, print_text, terminal_width
from inca.cli.progress import progress_bar
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca import Certificate
    from inca.privacy.theorems.preconditions import TheoremCheck
    from inca.protocol.transcript import AgreedGuarantee


def audit(
    context: typer.Context,
    execution: ExecutionFile,
    epsilon: RequiredEpsilon = None,
    delta: ReportedDelta = None,
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
    leavers_collude: Annotated[
        bool,
        typer.Option(
            "--leavers-collude",
            help="Count parties that did not settle as colluders: a bound for those who did, whatever the others did.",
            rich_help_panel=ADVERSARY,
        ),
    ] = False,
    sigma_independent: SigmaIndependent = None,
    sigma_cancelling: SigmaCancelling = None,
    sensitivity: Annotated[
        float | None,
        typer.Option(
            help="Largest distance between two values that a party may hold; where the file does not say it.",
            rich_help_panel=NOISE,
        ),
    ] = None,
    domain: Bounds = None,
    ball: Annotated[
        float | None,
        typer.Option(help="RADIUS: instead, every value has at most this Euclidean norm.", rich_help_panel=NOISE),
    ] = None,
    dimensions: Annotated[int, typer.Option(help="Coordinates of a value, with --domain.", rich_help_panel=NOISE)] = 1,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, or cuda: account on a GPU, which needs PyTorch. Default: a GPU if it is there and pays."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the certificate (JSON) here.", rich_help_panel=OUTPUT)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot all losses: .png or .svg.", rich_help_panel=OUTPUT)] = None,
    as_json: AsJson = False,
) -> None:
    """Tell exactly what an adversary learns of each honest party from an execution.

    The adversary knows who sent to whom and who was present, sees the messages that its colluders receive, those it
    eavesdrops on and all final messages, and combines them in the best way. The loss is exact, not a bound, unless
    --leavers-collude asks for one. If someone was absent or a share did not arrive, the loss at full attendance is
    reported as well, and a required guarantee must hold there, too. What was agreed, in a plan or in the file, is
    checked unless --epsilon asks for something else.

    Example:  seq 21 220 > values.csv, then
    inca average values.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200 --transcript run.json, then
    inca audit run.json --colluding 0.1 --domain 0 240
    """
    import inca
    from inca._base.validation import integer, positive
    from inca.privacy.theorems.preconditions import conditions

    refuse_combination(context, "plan", "epsilon", "delta", "rule", "sensitivity", "domain", "ball", "dimensions")
    refuse_combination(context, "ball", "domain")
    refuse_combination(context, "sensitivity", "domain", "ball", "dimensions")
    if epsilon is not None:
        positive("--epsilon", epsilon)
    files = OutputFiles(certificate=certificate, plot=plot)
    bounds = None if domain is None and ball is None else domain_of(domain, ball)
    if integer("--dimensions", dimensions, min=1) > 1 and bounds is None:
        raise InvalidInput("--dimensions must be combined with --domain or --ball")
    transcript = inca.read_execution(execution)
    if leavers_collude and transcript.execution.cohort is None:
        raise InvalidInput("--leavers-collude must be combined with an execution in which a cohort settles")
    agreed = transcript.agreed
    if plan is not None:
        followed = inca.read_plan(plan)
        followed.check(transcript)
        agreed = followed.requirements.agreed
        sensitivity, delta, rule = followed.requirements.sensitivity, agreed.delta, followed.requirements.rule
    elif sensitivity is None:
        sensitivity = known_sensitivity(transcript, bounds, dimensions)
    if seed is not None and transcript.adversary is not None and colluding is None and eavesdropped is None:
        raise InvalidInput("--seed must be combined with --colluding or --eavesdropped, which draw an adversary")
    transcript = override_execution(
        transcript, colluding, eavesdropped, seed, sigma_independent, sigma_cancelling, agreed
    )
    with progress_bar("round") as progress:
        result = inca.certify(
            transcript,
            sensitivity=sensitivity,
            delta=delta,
            rule=rule_named(rule),
            basis="leavers counted as colluders" if leavers_collude else "exact",
            device=device_named(device),
            progress=progress,
        )
        checks = conditions(result.theorem_inputs)
    required = GuaranteeCheck.of(result, epsilon, agreed)
    files.write("certificate", result.write)
    files.write("plot", lambda path: _plot(result, path, required))
    if as_json:
        print_json(_report(result, checks, required))
    else:
        _show(result, checks, required)
    files.finish(announce=not as_json)
    if not as_json:
        print_next(f"inca attack {execution}, to see how far the best attack gets")
    if required is not None and required.met is False:
        raise typer.Exit(1)


def _plot(result: Certificate, path: Path, required: GuaranteeCheck | None) -> None:
    from inca.cli.plots import plot_losses

    plot_losses(result, path, None if required is None else required.epsilon)


@dataclass(frozen=True)
class GuaranteeCheck:
    """Whether a guarantee holds: the one that was asked for, or the one that was agreed.

    Args:
        epsilon: Its epsilon.
        delta: Its delta.
        met: Whether it holds; None if the adversary is smaller than agreed, so that nothing is known.
        whose: For whom that is known.
    """

    epsilon: float
    delta: float
    met: bool | None
    whose: str = "every honest party"

    @classmethod
    def of(cls, result: Certificate, epsilon: float | None, agreed: AgreedGuarantee | None) -> GuaranteeCheck | None:
        """Return the check that is due, if any is."""
        whose = cls.whose if result.basis == "exact" else "every honest party that settled"
        if epsilon is not None:
            return cls(epsilon, result.delta, result.worst_epsilon <= epsilon, whose)
        if agreed is None or result.delta > agreed.delta:
            return None
        execution, adversary = result.transcript.execution, result.transcript.known_adversary
        enough = adversary.at_least(agreed.adversary, execution.parties, execution.rounds)
        holds = result.worst_epsilon <= agreed.epsilon
        return cls(agreed.epsilon, agreed.delta, holds if enough or not holds else None, whose)

    def __str__(self) -> str:
        guarantee = f"({self.epsilon:g}, {self.delta:g})-DP"
        if self.met is None:
            return (
                f"Whether the agreed guarantee {guarantee} holds is not known: this adversary is smaller than agreed."
            )
        holds = "holds" if self.met else "does NOT hold"
        return f"The required guarantee {guarantee} {holds} for {self.whose}, against this adversary."


def _report(result: Certificate, checks: list[TheoremCheck], required: GuaranteeCheck | None) -> dict[str, Any]:
    report = {"settlement": "none", "basis": result.basis} | result.as_dict()
    report["conditions"] = [{"name": check.name, "holds": check.holds, "why": check.why} for check in checks]
    if required is not None:
        report["wanted"] = {"epsilon": required.epsilon, "met": required.met}
    return report


def _show(result: Certificate, checks: list[TheoremCheck], required: GuaranteeCheck | None) -> None:
    print_text(result.text(terminal_width() or 100))
    print_text("  conditions")
    for check in checks:
        print_text(f"    {'holds' if check.holds else 'fails'}  {check.name}: {check.why}")
    if required is not None:
        print_text(str(required))
