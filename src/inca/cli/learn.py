"""`inca learn`: models made of private averages, with every aggregator on the same task."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inca.cli import app
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.learn.compare import Score

_learn_app = typer.Typer(help="Models made of private averages.", no_args_is_help=True)
app.add_typer(_learn_app, name="learn")
_TASK, _PRIVACY, _OUTPUT = "Task", "Privacy", "Output"


@_learn_app.command()
def compare(
    data: Annotated[str, typer.Option(help="breast_cancer or digits.", rich_help_panel=_TASK)] = "breast_cancer",
    parties: Annotated[int, typer.Option(help="Among how many the records are divided.", rich_help_panel=_TASK)] = 50,
    sizes: Annotated[str, typer.Option(help="equal or unequal numbers of records.", rich_help_panel=_TASK)] = "equal",
    mix: Annotated[str, typer.Option(help="similar or skewed mixtures of classes.", rich_help_panel=_TASK)] = "similar",
    steps: Annotated[int, typer.Option(help="Steps of training, each a private average.", rich_help_panel=_TASK)] = 20,
    seeds: Annotated[int, typer.Option(help="Divisions and noises to repeat it with.", rich_help_panel=_TASK)] = 5,
    level: Annotated[
        str,
        typer.Option(
            help="What is protected: each party with all its records, or each record.", rich_help_panel=_PRIVACY
        ),
    ] = "party",
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="For the whole training; may be repeated. Default: 1, 3.", rich_help_panel=_PRIVACY),
    ] = None,
    dropout: Annotated[
        list[float] | None,
        typer.Option(help="Who leaves in every step; may be repeated. Default: 0, 0.1, 0.2.", rich_help_panel=_PRIVACY),
    ] = None,
    colluding: Annotated[float, typer.Option(help="Fraction of the parties.", rich_help_panel=_PRIVACY)] = 0.0,
    views: Annotated[int, typer.Option(help="Sampled to calibrate inca and GOPA.", rich_help_panel=_PRIVACY)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Train the same model with every aggregator, at equal privacy, and compare the accuracy on unseen records.

    Logistic regression on data that ships with scikit-learn, divided among parties who average their gradients. In
    every step a fraction of the parties leaves, and is back in the next. A cell is the mean over the seeds and its
    standard error.

    Example:  inca learn compare --data digits --epsilon 3 --seeds 3
    """
    from inca.learn.compare import Task
    from inca.learn.compare import compare as compared
    from inca.validation import refuse

    if level not in ("party", "record"):
        raise refuse("--level", level, "party or record")
    task = Task(data, parties, cast(Any, sizes), cast(Any, mix), cast(Any, level), colluding=colluding, steps=steps)
    with progress_bar("setting", wanted=True) as progress:
        scores = compared(
            task, epsilon or [1.0, 3.0], dropout or [0.0, 0.1, 0.2], seeds=seeds, views=views, progress=progress
        )
    if as_json:
        typer.echo(json.dumps({"task": asdict(task), "scores": [_plain(each) for each in scores]}))
    else:
        _show(scores)


def _plain(score: Score) -> dict[str, Any]:
    fields = asdict(score)
    return fields | {"standard_error": None if score.accuracy is None else score.standard_error}


def _show(scores: list[Score]) -> None:
    from rich.console import Console
    from rich.table import Table

    for score in scores[:2]:
        typer.echo(f"{score.aggregator:24s} {_cell(score)}")
    private = scores[2:]
    rates = sorted({each.dropout for each in private})
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("accuracy at dropout")
    for rate in rates:
        table.add_column(f"{rate:g}", justify="right")
    for epsilon in sorted({each.epsilon for each in private if each.epsilon is not None}):
        for name in dict.fromkeys(each.aggregator for each in private):
            row = [each for each in private if (each.aggregator, each.epsilon) == (name, epsilon)]
            table.add_row(f"{name}, epsilon {epsilon:g}", *(_cell(each) for each in row))
    Console().print(table)
    for why in dict.fromkeys(f"{each.aggregator}: {each.why_not}" for each in private if each.why_not):
        typer.echo(why)


def _cell(score: Score) -> str:
    return "cannot" if score.accuracy is None else f"{score.accuracy:.3f} +- {score.standard_error:.3f}"
