"""`inca learn`: models made of private averages, with every aggregator on the same task."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inca.cli import app
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.learn.comparison.compare import Score, Task

_learn_app = typer.Typer(help="Models made of private averages.", no_args_is_help=True)
app.add_typer(_learn_app, name="learn")
_TASK, _PRIVACY, _OUTPUT = "Task", "Privacy", "Output"
_OWN = "inca"


@_learn_app.command()
def compare(
    data: Annotated[str, typer.Option(help="breast_cancer or digits.", rich_help_panel=_TASK)] = "breast_cancer",
    parties: Annotated[int, typer.Option(help="Among how many the records are divided.", rich_help_panel=_TASK)] = 100,
    sizes: Annotated[str, typer.Option(help="equal or unequal numbers of records.", rich_help_panel=_TASK)] = "equal",
    mix: Annotated[str, typer.Option(help="similar or skewed mixtures of classes.", rich_help_panel=_TASK)] = "similar",
    steps: Annotated[int, typer.Option(help="Steps of training, each a private average.", rich_help_panel=_TASK)] = 10,
    seeds: Annotated[int, typer.Option(help="Divisions and noises to repeat it with.", rich_help_panel=_TASK)] = 5,
    clip: Annotated[
        float | None,
        typer.Option(
            help="Length that gradients are cut to. Default: 0.25 for a party's, 1 for a record's.",
            rich_help_panel=_TASK,
        ),
    ] = None,
    aggregator: Annotated[
        list[str] | None,
        typer.Option(help="inca, central, gopa, cordp or local; may be repeated. Default: all.", rich_help_panel=_TASK),
    ] = None,
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
    picture: Annotated[
        Path | None, typer.Option(help="Draw the accuracies: .png or .svg.", rich_help_panel=_OUTPUT)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Train the same model with every aggregator, at equal privacy, and compare the accuracy on unseen records.

    Logistic regression on data that ships with scikit-learn, divided among parties who average their gradients. In
    every step a fraction of the parties leaves, and is back in the next. A cell is the mean over the seeds and its
    standard error; below are differences, seed by seed, between inca and the others.

    Example:  inca learn compare --data digits --epsilon 3 --seeds 3
    """
    from inca._base.validation import refuse
    from inca.cli.pictures import check_picture
    from inca.learn.averagers.simulated import KINDS
    from inca.learn.comparison.compare import Task
    from inca.learn.comparison.compare import compare as compared
    from inca.learn.comparison.datasets import CLASSIFIED

    chosen = list(dict.fromkeys(aggregator or KINDS))
    for option, words, known in (
        ("--data", [data], CLASSIFIED),
        ("--sizes", [sizes], ("equal", "unequal")),
        ("--mix", [mix], ("similar", "skewed")),
        ("--level", [level], ("party", "record")),
        ("--aggregator", chosen, KINDS),
    ):
        for word in words:
            if word not in known:
                raise refuse(option, word, f"one of {', '.join(known)}")
    if picture is not None:
        check_picture(picture)
    task = Task(
        data,
        parties,
        cast(Any, sizes),
        cast(Any, mix),
        cast(Any, level),
        colluding=colluding,
        steps=steps,
        clip=clip,
    )
    epsilons, dropouts = list(dict.fromkeys(epsilon or [1.0, 3.0])), list(dict.fromkeys(dropout or [0.0, 0.1, 0.2]))
    with progress_bar("part", wanted=True) as progress:
        scores = compared(task, epsilons, dropouts, seeds=seeds, kinds=chosen, views=views, progress=progress)
    if picture is not None:
        _draw(task, scores[2:], picture)
    if as_json:
        rows = [asdict(each) | {"accuracy": each.accuracy, "standard_error": each.standard_error} for each in scores]
        typer.echo(json.dumps({"task": asdict(task), "scores": rows}))
        return
    _show(scores)
    if picture is not None:
        typer.echo(f"The picture is in {picture}.")


def _show(scores: list[Score]) -> None:
    from inca.learn.comparison.compare import difference

    for score in scores[:2]:
        typer.echo(f"{score.aggregator:24s} {_cell(score)}")
    private = scores[2:]
    _table("accuracy at dropout", private, _cell)
    own = {(each.epsilon, each.dropout): each for each in private if each.aggregator == _OWN}
    others = [each for each in private if each.aggregator != _OWN]

    def apart(other: Score) -> str:
        mine = own[other.epsilon, other.dropout]
        if mine.accuracy is None or other.accuracy is None:
            return "-"
        mean, error = difference(mine, other)
        return f"{mean:+.3f} +- {error:.3f}"

    if own and others:
        _table(f"{_OWN} minus, at dropout", others, apart)
    for why in dict.fromkeys(f"{each.aggregator}: {each.why_not}" for each in private if each.why_not):
        typer.echo(why)


def _table(title: str, scores: list[Score], cell: Callable[[Score], str]) -> None:
    """Print one row for each aggregator and epsilon, one column for each dropout rate."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(title)
    for rate in dict.fromkeys(each.dropout for each in scores):
        table.add_column(f"{rate:g}", justify="right")
    for epsilon in dict.fromkeys(each.epsilon for each in scores):
        for name in dict.fromkeys(each.aggregator for each in scores):
            row = [each for each in scores if (each.aggregator, each.epsilon) == (name, epsilon)]
            table.add_row(f"{name}, epsilon {epsilon:g}", *(cell(each) for each in row))
    Console().print(table)


def _cell(score: Score) -> str:
    return "cannot" if score.accuracy is None else f"{score.accuracy:.3f} +- {score.standard_error:.3f}"


def _draw(task: Task, scores: list[Score], path: Path) -> None:
    """Draw accuracy over dropout rates, one panel for each epsilon; bars are two standard errors to either side."""
    from inca._base.plotting import ACCENT, SERIES, canvas, save

    epsilons = list(dict.fromkeys(each.epsilon for each in scores))
    names = list(dict.fromkeys(each.aggregator for each in scores))
    colours = {_OWN: ACCENT} | dict(zip((name for name in names if name != _OWN), SERIES, strict=False))
    figure, panels = canvas(3.2 * len(epsilons) + 1.5, 3.6, columns=len(epsilons))
    panels = [panels] if len(epsilons) == 1 else list(panels)
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for name in names:
            row = [each for each in scores if (each.aggregator, each.epsilon) == (name, epsilon) and each.accuracies]
            axes.errorbar(
                [each.dropout for each in row],
                [each.accuracy for each in row],
                [2.0 * (each.standard_error or 0.0) for each in row],
                color=colours[name],
                linewidth=2.5 if name == _OWN else 1.2,
                capsize=3,
                label=name,
            )
        axes.set(title=f"epsilon {epsilon:g}", xlabel="fraction that leaves in every step", ylim=(0.0, 1.0))
    panels[0].set_ylabel(f"accuracy on {task.data}, {task.parties} parties")
    panels[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)
