"""What `inca average` reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from inca import Certificate, ErrorBudget, Outcome, Plan
    from inca._base.types import Array

AUDIT_UP_TO = 5000
"""Parties up to which a run is audited at once; more take minutes and gigabytes, which `inca audit` is for."""


def collect(
    outcome: Outcome,
    budget: ErrorBudget,
    values: Array,
    show_truth: bool,
    made: Plan | None,
    audited: Certificate | None,
) -> dict[str, Any]:
    """Collect what `--json` prints; epsilon and delta are null where no guarantee was wanted, or none was audited."""
    estimate, none = outcome.estimate, outcome.estimate is None
    dimensions = values[:1].size
    report: dict[str, Any] = {
        "estimate": estimate if estimate is None or isinstance(estimate, float) else estimate.tolist(),
        "parties": outcome.execution.parties,
        "present": outcome.present,
        "weight": outcome.weight,
        "epsilon": None,
        "delta": None if made is None else made.wish.delta,
        "standard_error": None if none else (budget.noise / dimensions) ** 0.5,
        "worst_case_error": None if none else budget.total**0.5,
        "variance": None if none else {"independent": budget.independent, "cancelling": budget.cancelling},
    }
    if made is not None:
        report["wanted"] = made.wish.epsilon
        report["met"] = None if audited is None else audited.worst_epsilon <= made.wish.epsilon
        report["plan"] = made.as_dict()
        if audited is not None and math.isfinite(audited.worst_epsilon):
            report["epsilon"] = audited.worst_epsilon
        if report["met"] is False:
            report["estimate"] = None  # what breaks the promise is not released
    if show_truth:
        report["mean"] = values.mean(axis=0).tolist()
    return report


def show(report: dict[str, Any], seeded: bool) -> None:
    """Print the same for people."""
    from rich.console import Console
    from rich.table import Table

    if report.get("met") is False:
        typer.echo(f"no estimate: the guarantee does not hold for this execution ({_privacy(report)})")
        return
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
    if "wanted" in report:
        rows += [("privacy", _privacy(report)), ("adversary", _adversary(report))]
    for name, text in rows:
        table.add_row(f"[bold]{name}[/bold]", text)
    Console().print(table)
    if seeded:
        typer.echo("This run is repeatable from its seed and therefore not private.")


def _privacy(report: dict[str, Any]) -> str:
    wanted = f"wanted {report['wanted']:g} at delta {report['delta']:g}"
    if report["met"] is None:
        return f"planned, not audited (more than {AUDIT_UP_TO} parties)   {wanted}"
    if report["epsilon"] is None:
        return f"NO guarantee   {wanted}"
    return f"epsilon {report['epsilon']:.6g} by audit   {wanted}"


def _adversary(report: dict[str, Any]) -> str:
    from inca.protocol.adversary import rounded_up

    wish, parties = report["plan"]["wish"], report["parties"]
    tapped = f", {wish['eavesdropped']:.3g} of messages tapped" if wish["eavesdropped"] else ""
    return f"{rounded_up('colluding', wish['colluding'], parties)} of {parties} parties collude, at random{tapped}"


def _numbers(value: float | list[float]) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = ", ".join(f"{entry:.6g}" for entry in value[:6])
    return shown if len(value) <= 6 else f"{shown}, ... ({len(value)} coordinates)"
