"""`inca attack`: the best an adversary can make of an execution, against what was promised."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app
from inca.cli.executions import Bounds, Colluding, Delta, Eavesdropped, File, Level, Wanted, chosen
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np

    from inca import Interval, View
    from inca._base.types import Array

_BAR_FROM = 20_000_000  # noise terms from which a progress bar is worth its place
_RUNS, _ENTRIES = 1000, 1 << 24  # runs to measure errors in, and the most noise terms that they may take
_TRIALS = "Attack"


@app.command()
def attack(
    execution: File,
    epsilon: Wanted = None,
    delta: Delta = 1e-5,
    colluding: Colluding = None,
    eavesdropped: Eavesdropped = None,
    sigma_independent: Level = None,
    sigma_cancelling: Level = None,
    domain: Bounds = (0.0, 1.0),
    party: Annotated[
        int | None,
        typer.Option(help="Whose value to guess. Default: who loses most.", rich_help_panel=_TRIALS),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="Runs to guess in, for the low and for the high value each.", rich_help_panel=_TRIALS)
    ] = 20_000,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeat the same random adversary, values and noise.", rich_help_panel=_TRIALS),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; null stands for infinity.")] = False,
) -> None:
    """Attack an execution as well as an adversary can, and set the outcome against the promise.

    Random values are run through the execution with fresh noise. From what it sees, the adversary makes the best
    linear estimate of every honest value: once knowing all other values, which is whom differential privacy is about,
    and once knowing the domain only. Then it guesses, in many runs, whether one party holds the lowest or the
    highest value, and its mistakes bound epsilon from below, but for a chance of one in a million.

    The bound shows what *is* lost; that no more is lost is for `inca audit` to say, whose exact loss is shown beside.

    Example:  inca average examples/waiting-times.csv --domain 0 240 --sigma-independent 30 --sigma-cancelling 200
    --transcript run.json, then  inca attack run.json --colluding 0.1 --domain 0 240
    """
    import numpy as np

    import inca
    from inca._base.files import null_for_infinity
    from inca._base.validation import real, whole

    if epsilon is not None:
        real("--epsilon", epsilon, least=0.0)
    real("--delta", delta, 0.0, 1.0)
    whole("--trials", trials, least=1)
    rng = np.random.default_rng(None if seed is None else (whole("--seed", seed), 1))
    drawn = seed if colluding is not None or eavesdropped is not None else None  # else the adversary is in the file
    bounds = inca.Interval(*domain)
    given = chosen(inca.read_execution(execution), colluding, eavesdropped, drawn, sigma_independent, sigma_cancelling)
    if given.sigma_independent is None or given.sigma_cancelling is None:
        missing = "sigma_independent" if given.sigma_independent is None else "sigma_cancelling"
        option = "--" + missing.replace("_", "-")
        raise inca.InputError(f"{execution} has no {missing}, but it or {option} was expected")
    view = inca.View(given.execution, inca.Adversary(given.colluding, given.eavesdropped))
    report = _attacked(view, (given.sigma_independent, given.sigma_cancelling), bounds, delta, party, trials, rng)
    if epsilon is not None:
        report["wanted"] = {
            "epsilon": epsilon,
            "met": max(report["worst"]["epsilon"], report["epsilon_lower"]) <= epsilon,
        }
    if as_json:
        typer.echo(json.dumps(null_for_infinity(report), allow_nan=False))
    else:
        _show(report, bounds)
    if epsilon is not None and not report["wanted"]["met"]:
        raise typer.Exit(1)


def _attacked(
    view: View,
    levels: tuple[float, float],
    bounds: Interval,
    delta: float,
    party: int | None,
    trials: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return what `--json` prints; infinities are still numbers."""
    from inca import account
    from inca._base.validation import refuse
    from inca.privacy.attack import distinguish, reconstruct, watch

    if party is not None and party not in view.honest:
        raise refuse("--party", party, f"the id of an honest party of {view.execution.parties}")
    losses = account(view, *levels, bounds.sensitivity())
    target = losses.worst[0] if party is None else party
    entries = view.execution.parties * (view.execution.rounds + 1)
    runs = min(trials, _RUNS, max(1, _ENTRIES // entries))
    values = rng.uniform(bounds.low, bounds.high, (view.execution.parties, runs))
    middle, variance = (bounds.low + bounds.high) / 2, bounds.sensitivity() ** 2 / 12
    seen = watch(view, values, *levels, rng)
    informed = reconstruct(view, seen, *levels, others=values)
    uninformed = reconstruct(view, seen, *levels, prior=(middle, variance))
    with progress_bar("trial", 2 * trials * entries > _BAR_FROM) as progress:
        found = distinguish(
            view,
            target,
            *levels,
            delta,
            rng,
            trials=trials,
            sensitivity=bounds.sensitivity(),
            progress=progress,
        )
    place = view.honest.tolist().index(target)
    epsilons = losses.epsilon(delta)
    return {
        "honest": view.honest.tolist(),
        "standard_error": [bounds.sensitivity() / mu if mu > 0 else math.inf for mu in losses.mu.tolist()],
        "rms_error": _rms(informed.estimate - values[view.honest]),
        "uninformed_error": uninformed.standard_error.tolist(),
        "uninformed_rms_error": _rms(uninformed.estimate - values[view.honest]),
        "prior_error": math.sqrt(variance),
        "runs": runs,
        "party": target,
        "mu": float(losses.mu[place]),
        "mu_measured": found.mu_measured,
        "epsilon": float(epsilons[place]),
        "epsilon_lower": found.epsilon_lower,
        "worst": {"party": losses.worst[0], "mu": losses.worst[1], "epsilon": float(epsilons.max())},
        "delta": delta,
        "trials": trials,
        "confidence": 1.0 - found.false_alarm,
    }


def _rms(errors: Array) -> list[float]:
    """Return every party's root mean square over runs; infinity where there was no estimate."""
    return [math.inf if math.isnan(square) else math.sqrt(square) for square in (errors**2).mean(axis=1).tolist()]


def _show(report: dict[str, Any], bounds: Interval) -> None:
    from rich.console import Console
    from rich.table import Table

    from inca.privacy.certificate import in_words

    party, place = report["party"], report["honest"].index(report["party"])
    promised, achieved = report["standard_error"][place], report["rms_error"][place]
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = [
        ("party", f"{party}   {'who loses most' if party == report['worst']['party'] else 'as asked'}"),
        ("promised error", f"{in_words(promised)}   of who knows all other values"),
        ("achieved error", f"{in_words(achieved)}   root mean square in {report['runs']} runs"),
        (
            "knowing no value",
            f"{in_words(report['uninformed_error'][place])}   (a blind guess {report['prior_error']:.6g})",
        ),
        ("exact epsilon", f"{in_words(report['epsilon'])}   at delta {report['delta']:g}"),
        ("attack shows", f"{in_words(report['epsilon_lower'])}   or more, in {report['trials']} runs of each kind"),
    ]
    for name, text in rows:
        table.add_row(f"[bold]{name}[/bold]", text)
    Console().print(table)
    typer.echo(_meaning(report, promised, achieved, bounds))
    if "wanted" in report:
        wanted = f"The wanted guarantee ({report['wanted']['epsilon']:g}, {report['delta']:g})-DP"
        if report["wanted"]["met"]:
            typer.echo(f"{wanted} holds for every honest party of this execution.")
        else:
            worst = report["worst"]
            typer.echo(f"{wanted} does NOT hold: party {worst['party']} has epsilon {in_words(worst['epsilon'])}.")


def _meaning(report: dict[str, Any], promised: float, achieved: float, bounds: Interval) -> str:
    party = report["party"]
    if report["epsilon_lower"] > report["epsilon"]:
        return "The attack beats the exact loss: a chance of one in a million has come true, or the loss is wrong."
    if promised == 0.0:
        return f"Who knows all other values recovers the value of party {party} exactly: it is not protected."
    if math.isinf(promised):
        return f"Nothing that the adversary sees depends on the value of party {party}."
    return (
        f"Even who knows all other values errs by {achieved:.3g} about the value of party {party} in {bounds}, "
        "and many guesses show no more loss than the exact one."
    )
