"""One training of a comparison: the records divided among parties, an averager calibrated, a model fitted and tested.

Trainings are cut into jobs by averager, dropout rate and seeds, in the same way wherever they are done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from inca._base.options import Conditions
from inca._base.validation import between_0_and_1
from inca.errors import IncaError
from inca.learn.averagers.simulated import SimulatedAverager, calibrated
from inca.learn.budget import ProtectionLevel
from inca.learn.comparison.datasets import ClassMix, Dataset, Labels, PartySizes, divide_records, load_dataset
from inca.learn.training.logistic import PrivateLogisticRegression

DEFAULT_CLIP: dict[ProtectionLevel, float] = {"party": 0.25, "record": 1.0}
_FAILURE = 1e-6  # of a plan in all steps together
_EPSILON_WITHOUT_PRIVACY = 1e6  # means next to no noise


@dataclass(frozen=True)
class ComparisonTask:
    """A data set divided among parties, and how the model is trained on it.

    What is required is the same for all: (epsilon, delta) for the whole training, against colluding parties, while in
    every step a fraction of the parties leaves and is back in the next. It fails in any of the steps with a probability
    of at most one in a million, or delta if that is less, which adds to delta.

    Args:
        data: "breast_cancer" or "digits".
        parties: The number of parties.
        sizes: "equal" or "unequal" numbers of records.
        mix: "similar" or "skewed" mixtures of classes.
        level: What is protected: "party" or "record".
        colluding: The fraction of the parties that pools what it sees.
        delta: The delta of the whole training.
        messages: How many messages a party may send in a step; by default as many as a plan needs, and 20 with GOPA.
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
    colluding: float = Conditions.colluding
    delta: float = 1e-5
    messages: int | None = None
    steps: int = 10
    rate: float = 1.0
    radius: float | None = None
    clip: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class _DividedData:
    """Records to train on, whose they are, and records to test with."""

    train: Dataset
    test: Dataset
    groups: Labels


def untrained_and_unprotected(task: dict[str, Any], first: int, seeds: int) -> dict[str, list[float]]:
    """Return what private training is compared with: always the most frequent class, and training without privacy."""
    setting = ComparisonTask(**task)
    averager = SimulatedAverager.of("central", setting.parties)
    guesses, accuracies = [], []
    for seed in range(first, first + seeds):
        divided = _divide(setting, seed)
        guesses.append(float(np.mean(divided.test.target == np.bincount(divided.train.target).argmax())))
        accuracies.append(_accuracy(divided, setting, seed, averager, _EPSILON_WITHOUT_PRIVACY))
    return {"guesses": guesses, "accuracies": accuracies}


def trained_accuracies(
    task: dict[str, Any], kind: str, dropout: float, epsilons: list[float], first: int, seeds: int
) -> dict[str, Any]:
    """Return the accuracies with one averager at one dropout rate, or why it cannot be calibrated.

    The calibration depends on no seed, and a worker keeps it for the jobs that follow.
    """
    setting = ComparisonTask(**task)
    averager, why_not = _calibrated(setting, kind, dropout)
    if averager is None:
        return {"accuracies": [[] for _ in epsilons], "why_not": why_not}
    divisions = {seed: _divide(setting, seed) for seed in range(first, first + seeds)}
    return {
        "accuracies": [
            [_accuracy(divided, setting, seed, averager, epsilon) for seed, divided in divisions.items()]
            for epsilon in epsilons
        ],
        "why_not": "",
    }


@lru_cache(maxsize=16)  # refusals, too: they may take as long as a calibration
def _calibrated(task: ComparisonTask, kind: str, dropout: float) -> tuple[SimulatedAverager | None, str]:
    try:
        failure = min(_FAILURE, between_0_and_1("delta", task.delta))
        averager = calibrated(
            kind,
            task.parties,
            Conditions(colluding=task.colluding, dropout=dropout, messages=task.messages, failure=failure),
            releases=task.steps,
        )
    except IncaError as refusal:
        return None, str(refusal)
    return averager, ""


_records = lru_cache(maxsize=1)(load_dataset)  # reading takes longer than dividing


def _divide(task: ComparisonTask, seed: int) -> _DividedData:
    rng = np.random.default_rng((seed, 1))
    train, test = _records(task.data).split(rng)
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
        clip=DEFAULT_CLIP[task.level] if task.clip is None else task.clip,
        classes=range(train.classes),
        random_state=np.random.default_rng((seed, 2)),
    )
    model.fit(train.features, train.target, divided.groups)
    return float(np.mean(model.predict(test.features) == test.target))
