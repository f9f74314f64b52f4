"""The same training task with every averager: accuracy against epsilon and dropouts, at equal privacy.

All of them are trained on the same divisions of the records, so their accuracies can be compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from inca._base.types import Array, Progress
from inca._base.validation import between_0_and_1, finite_float, integer, positive, refuse
from inca.errors import IncaError
from inca.learn.averagers.simulated import KINDS, SimulatedAverager, calibrated
from inca.learn.budget import ProtectionLevel
from inca.learn.comparison.datasets import (
    CLASSIFIED,
    ClassMix,
    Dataset,
    Labels,
    PartySizes,
    divide_records,
    load_dataset,
)
from inca.learn.training.logistic import PrivateLogisticRegression

_DEFAULT_CLIP: dict[ProtectionLevel, float] = {"party": 0.25, "record": 1.0}
_FAILURE = 1e-6  # of a plan in all steps together
_EPSILON_WITHOUT_PRIVACY = 1e6  # means next to no noise


@dataclass(frozen=True)
class ComparisonTask:
    """A data set divided among parties, and how the model is trained on it.

    What is required is the same for all: (epsilon, delta) for the whole training, against colluding parties, while in
    every step a fraction of the parties leaves and is back in the next. It fails in any of the steps with a probability
    of at most one in a million, or delta if that is less, which adds to delta. 20 messages of each party in a step
    suffice for one in a million from 6 to a million parties, if up to four in ten collude, in up to 100 steps; where
    they do not, the refusal says how many would.

    Args:
        data: "breast_cancer" or "digits".
        parties: The number of parties.
        sizes: "equal" or "unequal" numbers of records.
        mix: "similar" or "skewed" mixtures of classes.
        level: What is protected: "party" or "record".
        colluding: The fraction of the parties that pools what it sees.
        delta: The delta of the whole training.
        messages: How many messages a party may send in a step.
        steps: The number of private averages.
        rate: The learning rate.
        radius: The length that records are scaled down to; by default sqrt(p) / 2 for p features between -1 and 1.
        clip: The length that gradients are scaled down to; by default 0.25 for parties' means, 1 for single records'.
    """

    data: str = "breast_cancer"
    parties: int = 100
    sizes: PartySizes = "equal"
    mix: ClassMix = "similar"
    level: ProtectionLevel = "party"
    colluding: float = 0.0
    delta: float = 1e-5
    messages: int = 20
    steps: int = 10
    rate: float = 1.0
    radius: float | None = None
    clip: float | None = None


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
    views: int = 100,
    progress: Progress | None = None,
) -> list[ComparisonScore]:
    """Train with every averager at every epsilon and dropout rate, over the same divisions and seeds.

    Args:
        task: The data, its division among parties and the training.
        epsilons: Each for the whole training.
        dropouts: Fractions of the parties that leave in every step.
        seeds: How many divisions and noises to repeat it with, at least 2.
        kinds: Which averagers, of "inca", "central", "gopa", "cordp" and "local".
        views: How many adversary's views are sampled to calibrate inca and GOPA.
        progress: Called with how many parts of the work are done, and how many there are.

    Returns:
        One score per averager, dropout rate and epsilon. Two without an epsilon come first: always the most frequent
        class, and training without privacy.

    Example:
        >>> task = ComparisonTask(parties=10, steps=3)
        >>> scores = compare_averagers(task, [3.0], [0.0], seeds=2, kinds=["central", "local"])
        >>> [score.averager for score in scores]
        ['most frequent class', 'not private', 'central', 'local']
    """
    _check(task, epsilons, dropouts, kinds)
    count, data = integer("seeds", seeds, min=2), load_dataset(task.data)
    report = progress or (lambda done, total: None)
    calibrations = len(kinds) * len(dropouts)
    total = calibrations + count * (1 + calibrations * len(epsilons))
    rows = [_Row("not private", None, 0.0, SimulatedAverager.of("central", task.parties))]
    for done, (kind, dropout) in enumerate(product(kinds, dropouts), start=1):
        rows += _rows(task, kind, dropout, epsilons, views)
        report(done, total)
    guesses, accuracies = [], [list[float]() for _ in rows]
    for seed in range(count):
        divided = _divide(data, task, seed)
        guesses.append(float(np.mean(divided.test.target == np.bincount(divided.train.target).argmax())))
        for number, row in enumerate(rows):
            if row.averager is not None:
                epsilon = row.epsilon or _EPSILON_WITHOUT_PRIVACY
                accuracies[number].append(_accuracy(divided, task, seed, row.averager, epsilon))
            report(calibrations + seed * len(rows) + number + 1, total)
    return [
        ComparisonScore("most frequent class", None, 0.0, tuple(guesses)),
        *(
            ComparisonScore(row.name, row.epsilon, row.dropout, tuple(row_accuracies), row.why_not)
            for row, row_accuracies in zip(rows, accuracies, strict=True)
        ),
    ]


@dataclass(frozen=True)
class _Row:
    """A score to be: an averager, or why there is none."""

    name: str
    epsilon: float | None
    dropout: float
    averager: SimulatedAverager | None
    why_not: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class _DividedData:
    """Records to train on, whose they are, and records to test with."""

    train: Dataset
    test: Dataset
    groups: Labels


def _check(task: ComparisonTask, epsilons: Sequence[float], dropouts: Sequence[float], kinds: Sequence[str]) -> None:
    for name, entries in (("epsilons", epsilons), ("dropouts", dropouts), ("kinds", kinds)):
        if not entries:
            refuse(f"the number of {name}", 0, "at least 1")
    for name, word, known in (
        ("data", task.data, CLASSIFIED),
        ("level", task.level, tuple(_DEFAULT_CLIP)),
        *(("kind", kind, KINDS) for kind in kinds),
    ):
        if word not in known:
            refuse(name, word, f"one of {', '.join(known)}")
    for dropout in dropouts:
        finite_float("dropout", dropout, 0.0, 1.0)
    for epsilon in epsilons:
        positive("epsilon", epsilon)


def _rows(task: ComparisonTask, kind: str, dropout: float, epsilons: Sequence[float], views: int) -> list[_Row]:
    averager, why_not = None, ""
    try:
        failure = min(_FAILURE, between_0_and_1("delta", task.delta))
        averager = calibrated(kind, task.parties, task.colluding, dropout, task.messages, views, task.steps, failure)
    except IncaError as refusal:
        why_not = str(refusal)
    return [_Row(kind, epsilon, dropout, averager, why_not) for epsilon in epsilons]


def _divide(data: Dataset, task: ComparisonTask, seed: int) -> _DividedData:
    rng = np.random.default_rng((seed, 1))
    train, test = data.split(rng)
    return _DividedData(train, test, divide_records(train.target, task.parties, rng, sizes=task.sizes, mix=task.mix))


def _accuracy(
    divided: _DividedData, task: ComparisonTask, seed: int, averager: SimulatedAverager, epsilon: float
) -> float:
    train, test = divided.train, divided.test
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=task.delta,
        averager=averager,
        level=task.level,
        steps=task.steps,
        rate=task.rate,
        radius=math.sqrt(train.features.shape[1]) / 2.0 if task.radius is None else task.radius,
        clip=_DEFAULT_CLIP[task.level] if task.clip is None else task.clip,
        classes=range(train.classes),
        random_state=np.random.default_rng((seed, 2)),
    )
    model.fit(train.features, train.target, divided.groups)
    return float(np.mean(model.predict(test.features) == test.target))


def _standard_error(numbers: Array) -> float:
    return float(np.std(numbers, ddof=1) / math.sqrt(len(numbers)))
