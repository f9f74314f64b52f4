"""`inca average`: a private mean of a file of values, all parties simulated on this machine."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np

    from inca import Domain, ErrorBudget, Execution, Injection, Outcome, Presence
    from inca.randomness import Normals
    from inca.validation import Array

_BAR_FROM = 20_000_000  # party-rounds times coordinates from which a progress bar is worth its place
_INPUT, _PROTOCOL, _ABSENCE, _OUTPUT = "Values", "Protocol", "Absence", "Output"


@app.command()
def average(
    values: Annotated[Path, typer.Argument(help="One row per party: CSV, Parquet (.parquet) or NumPy (.npy).")],
    sigma_independent: Annotated[
        float,
        typer.Option(help="Standard deviation of the noise that stays, per party.", rich_help_panel=_PROTOCOL),
    ],
    sigma_cancelling: Annotated[
        float,
        typer.Option(help="Standard deviation of the noise that is cancelled.", rich_help_panel=_PROTOCOL),
    ],
    domain: Annotated[
        tuple[float, float] | None,
        typer.Option(help="LOW HIGH: every coordinate lies between.", rich_help_panel=_INPUT),
    ] = None,
    ball: Annotated[
        float | None, typer.Option(help="RADIUS: every row has at most this length.", rich_help_panel=_INPUT)
    ] = None,
    clip: Annotated[
        bool,
        typer.Option("--clip", help="Move values outside the domain in; else refuse.", rich_help_panel=_INPUT),
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(help="Take this column; may be repeated.", rich_help_panel=_INPUT)
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of gossip.", rich_help_panel=_PROTOCOL)] = 20,
    receivers: Annotated[int, typer.Option(help="Receivers per party and round.", rich_help_panel=_PROTOCOL)] = 1,
    schedule: Annotated[
        str, typer.Option(help="random, distinct (nobody twice) or permutation.", rich_help_panel=_PROTOCOL)
    ] = "random",
    injection: Annotated[str, typer.Option(help="incremental or early.", rich_help_panel=_PROTOCOL)] = "incremental",
    quiet_rounds: Annotated[
        int, typer.Option(help="Last rounds without a share of the value.", rich_help_panel=_PROTOCOL)
    ] = 0,
    dropout: Annotated[
        float, typer.Option(help="Fraction of parties that leaves for good.", rich_help_panel=_ABSENCE)
    ] = 0.0,
    absence: Annotated[
        tuple[float, float] | None,
        typer.Option(help="LEAVE REJOIN: chances per round of going and of coming back.", rich_help_panel=_ABSENCE),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="CSV of absences: party,leaves,returns.", rich_help_panel=_ABSENCE)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable run, for research: NOT private. Default: the system's randomness."),
    ] = None,
    transcript: Annotated[
        Path | None, typer.Option(help="Write the execution: .json or .npz.", rich_help_panel=_OUTPUT)
    ] = None,
    show_truth: Annotated[
        bool, typer.Option("--show-truth", help="Print the exact mean beside.", rich_help_panel=_OUTPUT)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Average a file of per-party values by Algorithm 2, with noise of given levels.

    Every party of the file is simulated on this machine: each injects its value bit by bit, hidden in noise that
    it cancels later, while messages mix by gossip. What is left in the result is the independent noise, and what
    parties that left could not cancel.

    Example:  inca average examples/waiting-times.csv --domain 0 240 --sigma-independent 60 --sigma-cancelling 600
    """
    import numpy as np

    import inca
    from inca.cli.values import load_values
    from inca.validation import whole

    bounds = _domain(domain, ball)
    table = bounds.admit(load_values(values, column or ()), clip)
    if seed is not None:
        whole("--seed", seed)
    rng = np.random.default_rng(seed)
    execution = inca.Execution(
        inca.random_schedule(
            schedule,
            len(table),
            rounds,
            receivers,
            seed=secrets.randbits(63) if seed is None else int(rng.integers(2**63)),
        ),
        _injection(injection, rounds, quiet_rounds),
        _presence(len(table), rounds, dropout, absence, trace, rng),
    )
    noise_source = inca.SystemNormals() if seed is None else rng
    outcome = _simulate(execution, table, sigma_independent, sigma_cancelling, noise_source)
    budget = inca.expected_error(
        execution, sigma_independent, sigma_cancelling, dimensions=table[:1].size, domain=bounds
    )
    if transcript is not None:
        inca.write_execution(transcript, inca.Transcript(execution, sigma_independent, sigma_cancelling))
    report = _report(outcome, budget, table, show_truth)
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _show(report, seed is not None, transcript)
    if outcome.estimate is None:
        raise typer.Exit(1)


def _domain(interval: tuple[float, float] | None, radius: float | None) -> Domain:
    import inca

    if interval is not None and radius is None:
        return inca.Interval(*interval)
    if radius is not None and interval is None:
        return inca.Ball(radius)
    raise inca.InputError("--domain LOW HIGH or --ball RADIUS is needed to say where values may lie, and only one")


def _injection(kind: str, rounds: int, quiet: int) -> Injection:
    import inca

    if kind == "incremental":
        return inca.incremental(rounds, quiet)
    if kind == "early" and quiet == 0:
        return inca.early(rounds)
    if kind == "early":
        raise inca.InputError(f"--quiet-rounds is {quiet}, but 0 was expected with --injection early")
    raise inca.InputError(f"--injection is {kind!r}, but incremental or early was expected")


def _presence(
    parties: int,
    rounds: int,
    dropout: float,
    absence: tuple[float, float] | None,
    trace: Path | None,
    rng: np.random.Generator,
) -> Presence:
    import inca

    if (dropout != 0.0) + (absence is not None) + (trace is not None) > 1:
        raise inca.InputError("--dropout, --absence and --trace are alternatives, but more than one was given")
    if trace is not None:
        return inca.Presence.trace(trace, parties, rounds)
    if absence is not None:
        return inca.Presence.markov(parties, rounds, *absence, rng)
    return inca.Presence.leaving(parties, rounds, dropout, rng)


def _simulate(
    execution: Execution, values: Array, sigma_independent: float, sigma_cancelling: float, noise: Normals
) -> Outcome:
    import inca

    with progress_bar("round", execution.rounds * values.size >= _BAR_FROM) as progress:
        return inca.simulate(execution, values, sigma_independent, sigma_cancelling, noise, progress=progress)


def _report(outcome: Outcome, budget: ErrorBudget, values: Array, show_truth: bool) -> dict[str, Any]:
    """Collect what `--json` prints; epsilon and delta are null: given noise levels promise nothing by themselves."""
    estimate, none = outcome.estimate, outcome.estimate is None
    dimensions = values[:1].size
    report: dict[str, Any] = {
        "estimate": estimate if estimate is None or isinstance(estimate, float) else estimate.tolist(),
        "parties": outcome.execution.parties,
        "present": outcome.present,
        "weight": outcome.weight,
        "epsilon": None,
        "delta": None,
        "standard_error": None if none else (budget.noise / dimensions) ** 0.5,
        "worst_case_error": None if none else budget.total**0.5,
        "variance": None if none else {"independent": budget.independent, "cancelling": budget.cancelling},
    }
    if show_truth:
        report["mean"] = values.mean(axis=0).tolist()
    return report


def _show(report: dict[str, Any], seeded: bool, transcript: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    if report["estimate"] is None:
        typer.echo("no estimate: none of the parties was present at the end")
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = [
        ("estimate of the mean", _numbers(report["estimate"])),
        ("standard error", f"{report['standard_error']:.6g}   of the noise, exact"),
        ("worst-case error", f"{report['worst_case_error']:.6g}   with the values lost to dropouts"),
        ("parties", f"{report['present']} of {report['parties']} present at the end"),
        ("weight", f"{report['weight']:.6g}   values' worth in the result"),
    ]
    if "mean" in report:
        rows.insert(1, ("exact mean", f"{_numbers(report['mean'])}   shown on request; not private"))
    for name, text in rows:
        table.add_row(f"[bold]{name}[/bold]", text)
    Console().print(table)
    if seeded:
        typer.echo("This run is repeatable from its seed and therefore not private.")
    if transcript is not None:
        typer.echo(f"The execution is in {transcript}.")


def _numbers(value: float | list[float]) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = ", ".join(f"{entry:.6g}" for entry in value[:6])
    return shown if len(value) <= 6 else f"{shown}, ... ({len(value)} coordinates)"
