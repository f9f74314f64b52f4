"""The same training task with every aggregator: accuracy against epsilon and dropouts, at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inca.learn.aggregator import KINDS, Aggregator
from inca.learn.data import Dataset, Labels, Mix, Sizes, divide, load
from inca.learn.logistic import PrivateLogisticRegression
from inca.learn.training import Level
from inca.simulation import Progress
from inca.validation import InputError, positive, real, refuse, whole

_CLIPS: dict[Level, float] = {"party": 0.25, "record": 1.0}
_UNBOUNDED = 1e6  # an epsilon that means next to no noise


@dataclass(frozen=True)
class Task:
    """A data set divided among parties, and how the model is trained on it.

    The wish is the same for all: (epsilon, delta) for the whole training, against `colluding` of the parties, while in
    every step a fraction of them leaves for good and is back in the next.
    """

    data: str = "breast_cancer"
    parties: int = 50
    sizes: Sizes = "equal"
    mix: Mix = "similar"
    level: Level = "party"
    colluding: float = 0.0
    delta: float = 1e-5
    messages: int = 20
    steps: int = 20
    rate: float = 0.5
    radius: float = 2.0
    clip: float | None = None
    """The length that gradients are cut to; by default 0.25 for parties' means, 1 for single records'."""


@dataclass(frozen=True)
class Score:
    """The accuracy on records that were not trained on: its mean over seeds, and the standard error of that mean."""

    aggregator: str
    epsilon: float | None
    dropout: float
    accuracy: float | None
    standard_error: float
    seeds: int
    why_not: str = ""


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
    count, data = whole("seeds", seeds, least=2), load(task.data)
    if not data.classes:
        raise refuse("data", task.data, "a data set with classes")
    for rate in dropouts:
        real("a dropout rate", rate, 0.0, 1.0)
    for epsilon in epsilons:
        positive("epsilon", epsilon)
    total, done = 1 + len(kinds) * len(dropouts) * len(epsilons), 0
    tell = progress or (lambda done, total: None)
    plain, every = Aggregator.of("central", task.parties), range(count)
    scores = [
        _score("most frequent class", None, 0.0, [_most_frequent(data, task, seed) for seed in every]),
        _score("not private", None, 0.0, [_accuracy(data, task, seed, plain, _UNBOUNDED) for seed in every]),
    ]
    tell(done := 1, total)
    for kind in kinds:
        for rate in dropouts:
            wish = {"colluding": task.colluding, "dropout": rate}
            try:
                aggregator = Aggregator.of(kind, task.parties, **wish, messages=task.messages, views=views)
            except InputError as refusal:
                scores += [Score(kind, each, rate, None, math.inf, count, str(refusal)) for each in epsilons]
                tell(done := done + len(epsilons), total)
                continue
            for epsilon in epsilons:
                found = [_accuracy(data, task, seed, aggregator, epsilon) for seed in every]
                scores.append(_score(kind, epsilon, rate, found))
                tell(done := done + 1, total)
    return scores


def _divided(data: Dataset, task: Task, seed: int) -> tuple[Dataset, Dataset, Labels]:
    rng = np.random.default_rng((seed, 1))
    train, test = data.split(rng)
    return train, test, divide(train.target, task.parties, rng, task.sizes, task.mix)


def _accuracy(data: Dataset, task: Task, seed: int, aggregator: Aggregator, epsilon: float) -> float:
    train, test, groups = _divided(data, task, seed)
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=task.delta,
        aggregator=aggregator,
        level=task.level,
        steps=task.steps,
        rate=task.rate,
        radius=task.radius,
        clip=_CLIPS[task.level] if task.clip is None else task.clip,
        classes=range(data.classes),
        random_state=np.random.default_rng((seed, 2)),
    )
    model.fit(train.features, train.target, groups)
    return float(np.mean(model.predict(test.features) == test.target))


def _most_frequent(data: Dataset, task: Task, seed: int) -> float:
    train, test, _ = _divided(data, task, seed)
    return float(np.mean(test.target == np.bincount(train.target).argmax()))


def _score(name: str, epsilon: float | None, dropout: float, found: list[float]) -> Score:
    error = float(np.std(found, ddof=1) / math.sqrt(len(found)))
    return Score(name, epsilon, dropout, float(np.mean(found)), error, len(found))
