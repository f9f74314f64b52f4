"""The same training task with every aggregator: accuracy against epsilon and dropouts, at equal privacy.

All of them are trained on the same divisions of the records, so their accuracies can be compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from inca._base.types import Array, Progress
from inca._base.validation import InputError, positive, real, refuse, whole
from inca.learn.averagers.simulated import KINDS, Aggregator, calibrated
from inca.learn.comparison.datasets import CLASSIFIED, Dataset, Labels, Mix, Sizes, divide, load
from inca.learn.training.logistic import PrivateLogisticRegression
from inca.learn.training.train import Level

_CLIPS: dict[Level, float] = {"party": 0.25, "record": 1.0}
_UNBOUNDED = 1e6  # an epsilon that means next to no noise


@dataclass(frozen=True)
class Task:
    """A data set divided among parties, and how the model is trained on it.

    The wish is the same for all: (epsilon, delta) for the whole training, against `colluding` of the parties, while in
    every step a fraction of them leaves for good and is back in the next. That it fails in any of the steps has a
    chance of at most one in a million. 20 `messages` of each party in a step suffice for that from 6 to a million
    parties, if up to four in ten collude, in up to 100 steps; where they do not, the refusal says how many would.
    """

    data: str = "breast_cancer"
    parties: int = 100
    sizes: Sizes = "equal"
    mix: Mix = "similar"
    level: Level = "party"
    colluding: float = 0.0
    delta: float = 1e-5
    messages: int = 20
    steps: int = 10
    rate: float = 1.0
    radius: float | None = None
    """The length that records are cut to; by default sqrt(p) / 2 for p features between -1 and 1."""
    clip: float | None = None
    """The length that gradients are cut to; by default 0.25 for parties' means, 1 for single records'."""


@dataclass(frozen=True)
class Score:
    """The accuracy on records that were not trained on, for each seed; none if the aggregator could not be made."""

    aggregator: str
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


def difference(one: Score, other: Score) -> tuple[float, float]:
    """Return how much more accurate `one` is than `other`, seed by seed: the mean and its standard error.

    What a division makes harder or easier for both is not in it, so the error is mostly smaller than that of either.

    >>> easy_and_hard = Score("inca", 1.0, 0.0, (0.9, 0.7)), Score("local", 1.0, 0.0, (0.8, 0.6))
    >>> [round(number, 12) + 0.0 for number in difference(*easy_and_hard)]
    [0.1, 0.0]
    """
    if len(one.accuracies) != len(other.accuracies) or len(one.accuracies) < 2:
        numbers = (len(one.accuracies), len(other.accuracies))
        raise refuse("the number of seeds of both scores", numbers, "twice the same, at least 2,")
    apart = np.subtract(one.accuracies, other.accuracies)
    return float(apart.mean()), _standard_error(apart)


def compare(
    task: Task,
    epsilons: Sequence[float],
    dropouts: Sequence[float],
    *,
    seeds: int = 5,
    kinds: Sequence[str] = KINDS,
    views: int = 100,
    progress: Progress | None = None,
) -> list[Score]:
    """Train with every aggregator at every epsilon and dropout rate, over the same divisions and seeds.

    Two rows without an epsilon come first: always the most frequent class, and training without privacy.

    >>> task = Task(parties=10, steps=3)
    >>> [score.aggregator for score in compare(task, [3.0], [0.0], seeds=2, kinds=["central", "local"])]
    ['most frequent class', 'not private', 'central', 'local']
    """
    for name, given in (("epsilons", epsilons), ("dropouts", dropouts), ("kinds", kinds)):
        if not given:
            raise refuse(name, list(given), "at least one")
    if task.data not in CLASSIFIED:
        raise refuse("data", task.data, f"one of {', '.join(CLASSIFIED)}")
    for kind in kinds:
        if kind not in KINDS:
            raise refuse("kind", kind, f"one of {', '.join(KINDS)}")
    if task.level not in _CLIPS:
        raise refuse("level", task.level, f"one of {', '.join(_CLIPS)}")
    for rate in dropouts:
        real("a dropout rate", rate, 0.0, 1.0)
    for epsilon in epsilons:
        positive("epsilon", epsilon)
    count, data = whole("seeds", seeds, least=2), load(task.data)
    tell = progress or (lambda done, total: None)
    made = len(kinds) * len(dropouts)
    total = made + count * (1 + made * len(epsilons))
    settings = [_Setting("not private", None, 0.0, Aggregator.of("central", task.parties))]
    for done, (kind, rate) in enumerate(product(kinds, dropouts), start=1):
        settings += _settings(task, kind, rate, epsilons, views)
        tell(done, total)
    guessed, found = [], [list[float]() for _ in settings]
    for seed in range(count):
        division = _divided(data, task, seed)
        guessed.append(_most_frequent(division))
        for number, (setting, accuracies) in enumerate(zip(settings, found, strict=True), start=1):
            if setting.aggregator is not None:
                accuracies.append(_accuracy(division, task, seed, setting.aggregator, setting.epsilon or _UNBOUNDED))
            tell(made + seed * len(settings) + number, total)
    return [
        Score("most frequent class", None, 0.0, tuple(guessed)),
        *(
            Score(setting.name, setting.epsilon, setting.dropout, tuple(accuracies), setting.why_not)
            for setting, accuracies in zip(settings, found, strict=True)
        ),
    ]


@dataclass(frozen=True)
class _Setting:
    """One row to be: an aggregator, or why there is none."""

    name: str
    epsilon: float | None
    dropout: float
    aggregator: Aggregator | None
    why_not: str = ""


@dataclass(frozen=True, eq=False)
class _Division:
    """Records to train on, whose they are, and records to test with."""

    train: Dataset
    test: Dataset
    groups: Labels


def _settings(task: Task, kind: str, dropout: float, epsilons: Sequence[float], views: int) -> list[_Setting]:
    aggregator, why_not = None, ""
    try:
        aggregator = calibrated(kind, task.parties, task.colluding, dropout, task.messages, views, task.steps)
    except InputError as refusal:
        why_not = str(refusal)
    return [_Setting(kind, epsilon, dropout, aggregator, why_not) for epsilon in epsilons]


def _divided(data: Dataset, task: Task, seed: int) -> _Division:
    rng = np.random.default_rng((seed, 1))
    train, test = data.split(rng)
    return _Division(train, test, divide(train.target, task.parties, rng, task.sizes, task.mix))


def _accuracy(division: _Division, task: Task, seed: int, aggregator: Aggregator, epsilon: float) -> float:
    train, test = division.train, division.test
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=task.delta,
        aggregator=aggregator,
        level=task.level,
        steps=task.steps,
        rate=task.rate,
        radius=math.sqrt(train.features.shape[1]) / 2.0 if task.radius is None else task.radius,
        clip=_CLIPS[task.level] if task.clip is None else task.clip,
        classes=range(train.classes),
        random_state=np.random.default_rng((seed, 2)),
    )
    model.fit(train.features, train.target, division.groups)
    return float(np.mean(model.predict(test.features) == test.target))


def _most_frequent(division: _Division) -> float:
    return float(np.mean(division.test.target == np.bincount(division.train.target).argmax()))


def _standard_error(numbers: Array) -> float:
    return float(np.std(numbers, ddof=1) / math.sqrt(len(numbers)))
