"""`inca learn compare`: the same model trained with every averager, at equal privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from inca.cli.options import ENGINE, OUTPUT, Address, AsJson, EngineKind, Workers
from inca.cli.printing import OutputFiles, print_json, print_table, print_text
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.learn.comparison.compare import ComparisonScore

TASK, PRIVACY = "Task", "Privacy"
OWN = "inca"


def compare(
    data: Annotated[str, typer.Option(help="breast_cancer or digits.", rich_help_panel=TASK)] = "breast_cancer",
    parties: Annotated[
        int, typer.Option(help="Number of parties that the records are divided among.", rich_help_panel=TASK)
    ] = 100,
    sizes: Annotated[str, typer.Option(help="equal or unequal numbers of records.", rich_help_panel=TASK)] = "equal",
    mix: Annotated[str, typer.Option(help="similar or skewed mixtures of classes.", rich_help_panel=TASK)] = "similar",
    steps: Annotated[int, typer.Option(help="Steps of training, each a private average.", rich_help_panel=TASK)] = 10,
    seeds: Annotated[
        int, typer.Option(help="Number of repetitions, each with its own division and noise.", rich_help_panel=TASK)
    ] = 5,
    clip: Annotated[
        float | None,
        typer.Option(
            help="Length that gradients are clipped to. Default: 0.25 for a party's, 1 for a record's.",
            rich_help_panel=TASK,
        ),
    ] = None,
    averager: Annotated[
        list[str] | None,
        typer.Option(help="inca, central, gopa, cordp or local; may be repeated. Default: all.", rich_help_panel=TASK),
    ] = None,
    level: Annotated[
        str,
        typer.Option(help="What is protected: party (with all its records), or each record.", rich_help_panel=PRIVACY),
    ] = "party",
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="For the whole training; may be repeated. Default: 1, 3.", rich_help_panel=PRIVACY),
    ] = None,
    dropout: Annotated[
        list[float] | None,
        typer.Option(
            help="Fraction that leaves in every step; may be repeated. Default: 0, 0.1, 0.2.", rich_help_panel=PRIVACY
        ),
    ] = None,
    colluding: Annotated[
        float, typer.Option(help="Fraction of the parties that collude.", rich_help_panel=PRIVACY)
    ] = 0.0,
    views: Annotated[
        int, typer.Option(help="Random adversary's views sampled to calibrate inca and GOPA.", rich_help_panel=PRIVACY)
    ] = 100,
    engine: EngineKind = "serial",
    workers: Workers = None,
    address: Address = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File for finished work, which an interrupted run resumes from.", rich_help_panel=ENGINE),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the accuracies: .png or .svg.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train the same model with every averager, at equal privacy, and compare the accuracy on unseen records.

    Logistic regression on data that ships with scikit-learn, divided among parties who average their gradients. In
    every step a fraction of the parties leaves, and is back in the next. A cell is the mean over the seeds and its
    standard error; below are differences, seed by seed, between inca and the others. Neither the engine nor the number
    of workers changes a result.

    Example:  inca learn compare --data digits --epsilon 3 --seeds 3
    """
    from inca._base.validation import refuse
    from inca.cli.plots import plot_accuracies
    from inca.jobs.checkpoint import Checkpoint
    from inca.jobs.engine import Engine
    from inca.learn.averagers.simulated import KINDS
    from inca.learn.comparison.compare import compare_averagers
    from inca.learn.comparison.datasets import CLASSIFIED
    from inca.learn.comparison.trials import ComparisonTask

    averagers = list(dict.fromkeys(averager or KINDS))
    for option, words, known in (
        ("--data", [data], CLASSIFIED),
        ("--sizes", [sizes], ("equal", "unequal")),
        ("--mix", [mix], ("similar", "skewed")),
        ("--level", [level], ("party", "record")),
        ("--averager", averagers, KINDS),
    ):
        for word in words:
            if word not in known:
                refuse(option, word, f"one of {', '.join(known)}")
    files = OutputFiles(plot=plot)
    task = ComparisonTask(
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
    kept = None if checkpoint is None else Checkpoint(checkpoint, "learn")
    with Engine(engine, workers, address) as started, progress_bar("part") as progress:
        scores = compare_averagers(
            task,
            epsilons,
            dropouts,
            seeds=seeds,
            kinds=averagers,
            views=views,
            progress=progress,
            engine=started,
            checkpoint=kept,
        )
    files.write("plot", lambda path: plot_accuracies(task, scores, path))
    if as_json:
        print_json({"task": asdict(task), "scores": [_document(score) for score in scores]})
    else:
        _show(scores)
    files.finish(announce=not as_json)


def _document(score: ComparisonScore) -> dict[str, Any]:
    fields = asdict(score)
    document = {"aggregator": fields.pop("averager"), **fields}
    return document | {"accuracy": score.accuracy, "standard_error": score.standard_error}


def _show(scores: list[ComparisonScore]) -> None:
    from inca.learn.comparison.compare import paired_difference

    for score in scores[:2]:
        print_text(f"{score.averager:24s} {_cell(score)}")
    private = scores[2:]
    _show_table("accuracy at dropout", private, _cell)
    own = {(score.epsilon, score.dropout): score for score in private if score.averager == OWN}
    others = [score for score in private if score.averager != OWN]

    def difference(other: ComparisonScore) -> str:
        mine = own[other.epsilon, other.dropout]
        if mine.accuracy is None or other.accuracy is None:
            return "-"
        mean, error = paired_difference(mine, other)
        return f"{mean:+.3f} +- {error:.3f}"

    if own and others:
        _show_table(f"{OWN} minus, at dropout", others, difference)
    for why_not in dict.fromkeys(f"{score.averager}: {score.why_not}" for score in private if score.why_not):
        print_text(why_not)


def _show_table(title: str, scores: list[ComparisonScore], cell: Callable[[ComparisonScore], str]) -> None:
    """Print one row per averager and epsilon, one column per dropout rate."""
    rates = dict.fromkeys(score.dropout for score in scores)
    rows: list[tuple[str, list[str]]] = []
    for epsilon in dict.fromkeys(score.epsilon for score in scores):
        for name in dict.fromkeys(score.averager for score in scores):
            row = [score for score in scores if (score.averager, score.epsilon) == (name, epsilon)]
            rows.append((f"{name}, epsilon {epsilon:g}", [cell(score) for score in row]))
    print_table(title, [f"{rate:g}" for rate in rates], rows)


def _cell(score: ComparisonScore) -> str:
    return "cannot" if score.accuracy is None else f"{score.accuracy:.3f} +- {score.standard_error:.3f}"
