"""The same training task with every averager: accuracy against epsilon and dropouts, at equal privacy.

All of them are trained on the same divisions of the records, so their accuracies can be compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from inca._base.types import Array, Progress
from inca._base.validation import finite_float, integer, positive, refuse
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.learn.averagers.simulated import KINDS
from inca.learn.comparison.datasets import CLASSIFIED
from inca.learn.comparison.trials import DEFAULT_CLIP, ComparisonTask, trained_accuracies, untrained_and_unprotected

_SEEDS_PER_JOB = 5  # few enough to lose little with a worker, and enough to be worth its calibration


@dataclass(frozen=True)
class ComparisonScore:
    """The accuracy of one averager on records that were not trained on.

    Attributes:
        averager: Its kind, or what stands in its place.
        epsilon: The epsilon of the whole training; None without privacy.
        dropout: The fraction of the parties that leaves in every step.
        accuracies: One for each seed; none if the averager could not be calibrated.
        why_not: Why it could not be calibrated.
    """

    averager: str
    epsilon: float | None
    dropout: float
    accuracies: tuple[float, ...]
    why_not: str = ""

    @property
    def accuracy(self) -> float | None:
        """The mean over seeds."""
        return float(np.mean(self.accuracies)) if self.accuracies else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of that mean."""
        return _standard_error(np.asarray(self.accuracies)) if self.accuracies else None


def paired_difference(one: ComparisonScore, other: ComparisonScore) -> tuple[float, float]:
    """Return how much more accurate `one` is than `other`, seed by seed.

    What a division makes harder or easier for both is not in it, so the error is mostly smaller than that of either.

    Args:
        one: A score over at least two seeds.
        other: A score over the same seeds.

    Returns:
        The mean difference and its standard error.

    Example:
        >>> one, other = ComparisonScore("inca", 1.0, 0.0, (0.9, 0.7)), ComparisonScore("local", 1.0, 0.0, (0.8, 0.6))
        >>> [round(number, 12) + 0.0 for number in paired_difference(one, other)]
        [0.1, 0.0]
    """
    if len(one.accuracies) != len(other.accuracies) or len(one.accuracies) < 2:
        counts = (len(one.accuracies), len(other.accuracies))
        refuse("the numbers of seeds of both scores", counts, "the same, at least 2")
    differences = np.subtract(one.accuracies, other.accuracies)
    return float(differences.mean()), _standard_error(differences)


def compare_averagers(
    task: ComparisonTask,
    epsilons: Sequence[float],
    dropouts: Sequence[float],
    *,
    seeds: int = 5,
    kinds: Sequence[str] = KINDS,
    progress: Progress | None = None,
    engine: Engine | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[ComparisonScore]:
    """Train with every averager at every epsilon and dropout rate, over the same divisions and seeds.

    Args:
        task: The data, its division among parties and the training.
        epsilons: Each for the whole training.
        dropouts: Fractions of the parties that leave in every step.
        seeds: How many divisions and noises to repeat it with, at least 2.
        kinds: Which averagers, of "inca", "central", "gopa", "cordp" and "local".
        progress: Called with how many parts of the work are done, and how many there are.
        engine: Where the work is done, one that was started (`inca.jobs.engine`); by default this process. No engine
            changes a result.
        checkpoint: Where finished parts are kept (`inca.jobs.checkpoint`): called again after an interruption, only
            the rest is done. By default nothing is kept.

    Returns:
        One score per averager, dropout rate and epsilon. Two without an epsilon come first: always the most frequent
        class, and training without privacy.

    Raises:
        InvalidInput: If an argument makes no sense.
        WorkerLost: If the workers of an engine died.

    Example:
        >>> task = ComparisonTask(parties=10, steps=3)
        >>> scores = compare_averagers(task, [3.0], [0.0], seeds=2, kinds=["central", "local"])
        >>> [score.averager for score in scores]
        ['most frequent class', 'not private', 'central', 'local']
    """
    _check(task, epsilons, dropouts, kinds)
    count = integer("seeds", seeds, min=2)
    settings = list(product(kinds, map(float, dropouts)))
    blocks = [(first, min(_SEEDS_PER_JOB, count - first)) for first in range(0, count, _SEEDS_PER_JOB)]
    shared = {"task": _fields(task), "epsilons": [float(epsilon) for epsilon in epsilons]}
    plain = [
        Job(untrained_and_unprotected, {"task": shared["task"], "first": first, "seeds": number})
        for first, number in blocks
    ]
    trained = [
        Job(trained_accuracies, {**shared, "kind": kind, "dropout": dropout, "first": first, "seeds": number})
        for kind, dropout in settings
        for first, number in blocks
    ]
    with nullcontext(engine) if engine is not None else Engine("serial") as started:
        results = complete_jobs([*plain, *trained], started, checkpoint, progress or (lambda done, total: None))
    scores = [
        ComparisonScore(name, None, 0.0, _joined(result[field] for result in results[: len(blocks)]))
        for name, field in (("most frequent class", "guesses"), ("not private", "accuracies"))
    ]
    for at, (kind, dropout) in enumerate(settings, start=1):
        of_setting = results[at * len(blocks) : (at + 1) * len(blocks)]
        scores += [
            ComparisonScore(
                kind,
                epsilon,
                dropout,
                _joined(result["accuracies"][place] for result in of_setting),
                of_setting[0]["why_not"],
            )
            for place, epsilon in enumerate(epsilons)
        ]
    return scores


def _joined(blocks: Iterable[Sequence[float]]) -> tuple[float, ...]:
    return tuple(accuracy for block in blocks for accuracy in block)


def _check(task: ComparisonTask, epsilons: Sequence[float], dropouts: Sequence[float], kinds: Sequence[str]) -> None:
    for name, entries in (("epsilons", epsilons), ("dropouts", dropouts), ("kinds", kinds)):
        if not entries:
            refuse(f"the number of {name}", 0, "at least 1")
    for name, word, known in (
        ("data", task.data, CLASSIFIED),
        ("level", task.level, tuple(DEFAULT_CLIP)),
        *(("kind", kind, KINDS) for kind in kinds),
    ):
        if word not in known:
            refuse(name, word, f"one of {', '.join(known)}")
    for dropout in dropouts:
        finite_float("dropout", dropout, 0.0, 1.0)
    for epsilon in epsilons:
        positive("epsilon", epsilon)


def _fields(task: ComparisonTask) -> dict[str, Any]:
    """Return the fields of a task as plain numbers and texts, also if they were NumPy's."""
    return {name: entry.item() if isinstance(entry, np.generic) else entry for name, entry in asdict(task).items()}


def _standard_error(numbers: Array) -> float:
    return float(np.std(numbers, ddof=1) / math.sqrt(len(numbers)))
