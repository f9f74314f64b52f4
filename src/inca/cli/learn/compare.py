"""`inca learn compare`: the same model trained with every averager, at equal privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Literal

from inca._base.options import Size
from inca.cli.options import TASK, JsonPlot, KeptWork, TrainingConditions, TrainingPrivacy, options
from inca.cli.printing import OutputFiles, print_json, print_table, print_text
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.learn.comparison.compare import ComparisonScore

OWN = "inca"


@options(TASK)
class Task(Size):
    """What is learned, by whom, and how often."""

    data: Literal["breast_cancer", "digits"] = "breast_cancer"
    """Data that ship with scikit-learn."""
    parties: int = 100
    sizes: Literal["equal", "unequal"] = "equal"
    """Numbers of records: equal or unequal."""
    mix: Literal["similar", "skewed"] = "similar"
    """Mixtures of classes: similar or skewed."""
    steps: int = 10
    """Steps of training, each a private average."""
    seeds: int = 5
    """Repetitions, each with its own division and noise."""
    clip_length: float | None = None
    """Length that gradients are clipped to. Default: 0.25 for a party's, 1 for a record's."""
    averager: list[Literal["inca", "central", "gopa", "cordp", "local"]] = field(default_factory=list)
    """An averager to compare. Default: all."""


def compare(
    *,
    task: Task = Task(),
    privacy: TrainingPrivacy = TrainingPrivacy(),
    conditions: TrainingConditions = TrainingConditions(),
    work: KeptWork = KeptWork(),
    output: JsonPlot = JsonPlot(),
) -> None:
    """Train the same model with every averager, at equal privacy, and compare the accuracy on unseen records.

    Logistic regression on data that ships with scikit-learn, divided among parties who average their gradients. In
    every step a fraction of the parties leaves, and is back in the next. A cell is the mean over the seeds and its
    standard error; below are differences, seed by seed, between inca and the others. Neither the engine nor the number
    of workers changes a result.

    Example:  inca learn compare --data digits --epsilon 3 --seeds 3
    """
    from inca.cli.plots import plot_accuracies
    from inca.jobs.checkpoint import Checkpoint
    from inca.jobs.engine import Engine
    from inca.learn.averagers.simulated import KINDS
    from inca.learn.comparison.compare import compare_averagers
    from inca.learn.comparison.trials import ComparisonTask

    averagers = list(dict.fromkeys(task.averager or KINDS))
    files = OutputFiles(plot=output.plot)
    trained = ComparisonTask(
        task.data,
        task.parties,
        task.sizes,
        task.mix,
        privacy.level,
        colluding=conditions.colluding,
        steps=task.steps,
        clip=task.clip_length,
    )
    epsilons, dropouts = list(dict.fromkeys(privacy.epsilon)), list(dict.fromkeys(conditions.dropout))
    kept = None if work.checkpoint is None else Checkpoint(work.checkpoint, "learn")
    with Engine(work.engine, work.workers, work.address) as started, progress_bar("part") as progress:
        scores = compare_averagers(
            trained,
            epsilons,
            dropouts,
            seeds=task.seeds,
            kinds=averagers,
            progress=progress,
            engine=started,
            checkpoint=kept,
        )
    files.write("plot", lambda path: plot_accuracies(trained, scores, path))
    if output.json:
        print_json({"task": asdict(trained), "scores": [_document(score) for score in scores]})
    else:
        _show(scores)
    files.finish(announce=not output.json)


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
