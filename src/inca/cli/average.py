"""`inca average`: a private mean of a file of values, all parties simulated on this machine."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.options import (
    CONDITIONS,
    OUTPUT,
    REQUIREMENTS,
    VALUES,
    AsJson,
    BallRadius,
    Colluding,
    Delta,
    DomainBounds,
    Eavesdropped,
    Late,
    Messages,
    Rule,
    Views,
    domain_of,
    refuse_combination,
    rule_named,
)
from inca.cli.printing import OutputFiles, intervals, numbers, print_json, print_next, print_rows, print_text
from inca.cli.progress import phase_bar
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from inca import Certificate, Plan, Presence, PrivateMean, Transcript
    from inca._base.types import Array
    from inca.planning.designs import ProtocolDesign

PROTOCOL = "Noise and protocol by hand, without a guarantee"
PHASES = {"plan": "planning: view", "run": "running: round", "audit": "auditing: round"}
BY_HAND = ("sigma_independent", "sigma_cancelling", "schedule", "injection", "quiet_rounds")
FIXABLE = ("rounds", "receivers", "settlement")  # by hand, or for a plan to be made
REQUIRED = ("delta", "colluding", "eavesdropped", "messages", "rule", "views", "late")


def average(
    context: typer.Context,
    values: Annotated[
        Path, typer.Argument(metavar="VALUES", help="One row per party: CSV, Parquet (.parquet) or NumPy (.npy).")
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(help="Required epsilon, for every honest party; plans the run.", rich_help_panel=REQUIREMENTS),
    ] = None,
    delta: Delta = 1e-5,
    rule: Rule = "analytic",
    plan: Annotated[
        Path | None,
        typer.Option(help="Instead of --epsilon: a plan that `inca plan --out` wrote.", rich_help_panel=REQUIREMENTS),
    ] = None,
    colluding: Colluding = 0.0,
    eavesdropped: Eavesdropped = 0.0,
    dropout: Annotated[
        float,
        typer.Option(
            help="Fraction of the parties that leaves for good, at random times; planned for and simulated.",
            rich_help_panel=CONDITIONS,
        ),
    ] = 0.0,
    absence: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="LEAVE REJOIN: instead, probabilities of leaving and of coming back, per party and round.",
            rich_help_panel=CONDITIONS,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Instead, a CSV file of absences: party,leaves,returns.", rich_help_panel=CONDITIONS),
    ] = None,
    messages: Messages = 20,
    settlement: Annotated[
        str | None,
        typer.Option(
            help="settled: those who stay undo what they exchanged with leavers; none: Algorithm 2 as it is. Default: "
            "settled with --epsilon, none by hand.",
            rich_help_panel=CONDITIONS,
        ),
    ] = None,
    late: Late = 0,
    views: Views = 300,
    domain: DomainBounds = None,
    ball: BallRadius = None,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Move values outside the domain to its border instead of refusing them.",
            rich_help_panel=VALUES,
        ),
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Take the column of this name; may be repeated for vectors.", rich_help_panel=VALUES),
    ] = None,
    sigma_independent: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of each party's independent noise, which stays in the result.",
            rich_help_panel=PROTOCOL,
        ),
    ] = None,
    sigma_cancelling: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of each party's cancelling noise, which it takes back.", rich_help_panel=PROTOCOL
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Rounds of gossip. Default: 20, or what a plan finds best.", rich_help_panel=PROTOCOL),
    ] = None,
    receivers: Annotated[
        int | None,
        typer.Option(
            help="Receivers per party and round. Default: 1, or what a plan finds best.", rich_help_panel=PROTOCOL
        ),
    ] = None,
    schedule: Annotated[
        str,
        typer.Option(
            help="Who sends to whom: random, distinct (to nobody twice) or permutation (everyone receives from one).",
            rich_help_panel=PROTOCOL,
        ),
    ] = "random",
    injection: Annotated[
        str,
        typer.Option(
            help="How a value enters: incremental (a share per round) or early (at once).", rich_help_panel=PROTOCOL
        ),
    ] = "incremental",
    quiet_rounds: Annotated[
        int, typer.Option(help="Last rounds in which no share of the value enters.", rich_help_panel=PROTOCOL)
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable run, for research: NOT private. Default: the system's randomness."),
    ] = None,
    transcript: Annotated[
        Path | None, typer.Option(help="Write the execution: .json or .npz.", rich_help_panel=OUTPUT)
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate (JSON) of a run with a guarantee.", rich_help_panel=OUTPUT),
    ] = None,
    show_truth: Annotated[
        bool, typer.Option("--show-truth", help="Print the exact mean beside the estimate.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Average a file of per-party values by Algorithm 2, for a required guarantee or with noise levels by hand.

    Every party of the file is simulated on this machine: each injects its value bit by bit, hidden in noise that
    it cancels later, while messages mix by gossip. Those who stay settle: they undo what they exchanged with parties
    that left, and add the noise that is missing. What is left in the result is the independent noise.

    With --epsilon the run is planned for the least error, and with --plan it follows a plan. Then the realized
    execution is audited against a random adversary of the planned size: should the guarantee not hold there, the
    estimate is withheld (status 1). An estimate outside the domain is moved in, and a sentence says so; another says
    if guessing the middle of the domain would do as well.

    Example:  seq 21 220 > values.csv, then
    inca average values.csv --domain 0 240 --epsilon 0.5 --colluding 0.1 --dropout 0.1
    """
    import numpy as np

    import inca
    from inca._base.validation import integer
    from inca.cli.input_files import read_values
    from inca.private_mean import AUDIT_UP_TO

    _check_combinations(context, epsilon, plan, sigma_independent, sigma_cancelling)
    files = OutputFiles(execution=transcript, certificate=certificate)
    bounds, read = domain_of(domain, ball), read_values(values, column or ())
    table = read.values
    if certificate is not None and len(table) > AUDIT_UP_TO:
        raise InvalidInput(f"--certificate needs a run of at most {AUDIT_UP_TO} parties, got {len(table)}")
    rng = None if seed is None else np.random.default_rng(integer("--seed", seed))
    noise: dict[str, Any]
    if plan is not None:
        noise = {"plan": inca.read_plan(plan)}
    elif epsilon is not None:
        adversary = inca.RandomAdversary(colluding=colluding, eavesdropped=eavesdropped)
        noise = {"epsilon": epsilon, "delta": delta, "rule": rule_named(rule), "adversary": adversary}
        noise |= {"messages": messages, "views": views, "rounds": rounds, "receivers": receivers}
        noise |= {"settlement": settlement, "late": late}
    else:
        design = _design(schedule, rounds, receivers, injection, quiet_rounds)
        levels = inca.NoiseLevels(independent=sigma_independent or 0.0, cancelling=sigma_cancelling or 0.0)
        noise = {"noise_levels": levels, "design": design, "settlement": settlement}
    with phase_bar(PHASES) as progress:
        mean = inca.average(
            table,
            bounds,
            **noise,
            dropout=dropout,
            presence=_presence(absence, trace, rng),
            clip=clip,
            rng=rng,
            progress=progress,
        )
    files.write("execution", lambda path: inca.write_execution(path, mean.transcript))
    if mean.certificate is not None:
        files.write("certificate", mean.certificate.write)
    truth = bounds.validate(table, clip=clip).mean(axis=0) if show_truth else None
    if as_json:
        print_json(_report(mean, truth, read.names))
    else:
        _show(mean, truth, read.names if column or len(read.names) > 1 else ())
        if mean.estimate is not None and seed is not None:
            print_text("This run is repeatable from its seed and therefore not private.")
    files.finish(announce=not as_json)
    if not as_json and mean.estimate is not None:
        print_next(f"inca audit {transcript}" if transcript else "add --transcript run.json, then inca audit run.json")
    if mean.estimate is None:
        raise typer.Exit(1)


def _check_combinations(
    context: typer.Context,
    epsilon: float | None,
    plan: Path | None,
    sigma_independent: float | None,
    sigma_cancelling: float | None,
) -> None:
    """Refuse options that do not go together: noise is decided by --plan, by --epsilon, or by hand."""
    refuse_combination(context, "dropout", "absence", "trace")
    refuse_combination(context, "absence", "trace")
    refuse_combination(context, "plan", "epsilon", *REQUIRED, *FIXABLE, *BY_HAND)
    refuse_combination(context, "epsilon", *BY_HAND)
    if plan is None and epsilon is None:
        if sigma_independent is None or sigma_cancelling is None:
            raise InvalidInput(
                "--epsilon, --plan, or both --sigma-independent and --sigma-cancelling must say how much noise there is"
            )
        refuse_combination(context, "sigma_independent", *REQUIRED, "certificate")


def _design(
    schedule: str, rounds: int | None, receivers: int | None, injection: str, quiet_rounds: int
) -> ProtocolDesign:
    """Return the protocol that is named by hand."""
    from inca._base.validation import refuse
    from inca.planning.designs import ProtocolDesign

    if injection not in ("incremental", "early"):
        refuse("--injection", injection, "incremental or early")
    if injection == "early" and quiet_rounds != 0:
        raise InvalidInput("--quiet-rounds cannot be combined with --injection early")
    return ProtocolDesign(
        schedule,
        rounds=20 if rounds is None else rounds,
        receivers=1 if receivers is None else receivers,
        quiet=quiet_rounds,
        kind=injection,
    )


def _presence(
    absence: tuple[float, float] | None, trace: Path | None, rng: np.random.Generator | None
) -> Callable[[int, int], Presence] | None:
    """Return who is there, as a function of (parties, rounds), if options say more than --dropout."""
    import numpy as np

    import inca

    if trace is not None:
        return lambda parties, rounds: inca.Presence.from_csv(trace, parties, rounds)
    if absence is not None:
        generator = np.random.default_rng() if rng is None else rng
        return lambda parties, rounds: inca.Presence.markov(parties, rounds, *absence, generator)
    return None


def _report(mean: PrivateMean, truth: Array | None, names: Sequence[str]) -> dict[str, Any]:
    """Return what `--json` prints; epsilon is null where no guarantee was required, or none was audited."""
    execution, error = mean.transcript.execution, mean.expected_error
    nobody = execution.weight == 0.0
    report: dict[str, Any] = {
        "columns": list(names) or None,
        "estimate": _plain(mean.estimate),
        "unconstrained": _plain(mean.unconstrained),
        "interval": None if mean.interval is None else [_plain(end) for end in mean.interval],
        "confidence": mean.confidence,
        "says_nothing": mean.says_nothing,
        "remarks": list(mean.remarks),
        "parties": execution.parties,
        "present": mean.present,
        "weight": execution.weight,
        "epsilon": None if mean.certificate is None else mean.certificate.worst_epsilon,
        "delta": None if mean.plan is None else mean.plan.requirements.delta,
        "standard_error": None if nobody else mean.standard_error,
        "worst_case_error": None if nobody else error.total**0.5,
        "variance": None if nobody else {"independent": error.independent, "cancelling": error.cancelling},
    }
    if mean.plan is not None:
        report["wanted"] = mean.plan.requirements.epsilon
        report["met"] = mean.guarantee_holds
        report["plan"] = mean.plan.as_dict()
    if truth is not None:
        report["mean"] = truth.tolist()
    return report


def _show(mean: PrivateMean, truth: Array | None, names: Sequence[str]) -> None:
    if mean.estimate is None or mean.interval is None:
        audited = f" ({_privacy(mean.plan, mean.certificate)})" if mean.plan and mean.guarantee_holds is False else ""
        print_text(f"no estimate: {mean.withheld}{audited}")
        return
    execution = mean.transcript.execution
    rows = [("estimate of the mean", numbers(_plain(mean.estimate), names))]
    if truth is not None:
        rows.append(("exact mean", f"{numbers(truth.tolist(), names)}   shown on request; not private"))
    low, high = (_plain(end) for end in mean.interval)
    ends = intervals(low, high, names)
    rows += [
        (f"{mean.confidence:.0%} interval", f"{ends}   of the exact mean"),
        ("standard error", f"{mean.standard_error:.6g}   of the noise, exact"),
        ("worst-case error", f"{mean.expected_error.total**0.5:.6g}   with the values lost to dropouts"),
        ("parties", f"{mean.present} of {execution.parties} present at the end"),
        ("weight", f"{execution.weight:.6g}   values' worth in the result"),
    ]
    if mean.plan is not None:
        rows += [("privacy", _privacy(mean.plan, mean.certificate)), ("adversary", _adversary(mean.transcript))]
    print_rows(rows)
    for sentence in mean.remarks:
        print_text(sentence)


def _privacy(plan: Plan, certificate: Certificate | None) -> str:
    from inca.private_mean import AUDIT_UP_TO

    required = f"planned {plan.agreed}"
    if certificate is None:
        return f"not audited (more than {AUDIT_UP_TO} parties)   {required}"
    if math.isinf(certificate.worst_epsilon):
        return f"NO guarantee   {required}"
    return f"epsilon {certificate.worst_epsilon:.6g} by audit   {required}"


def _adversary(transcript: Transcript) -> str:
    adversary, execution = transcript.known_adversary, transcript.execution
    eavesdropped = len(adversary.eavesdropped) / (execution.parties * execution.rounds)
    tail = f", {eavesdropped:.3g} of messages eavesdropped on" if eavesdropped else ""
    return f"{len(adversary.colluding)} of {execution.parties} parties collude, at random{tail}"


def _plain(value: float | Array | None) -> Any:
    return value if value is None or isinstance(value, float) else value.tolist()
