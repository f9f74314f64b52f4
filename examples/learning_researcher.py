"""Every averager on the same training task, and one of your own beside them.

    python examples/learning_researcher.py

Digits of scikit-learn, divided among 50 parties with unequal numbers of records and skewed mixtures of classes; in
every step a tenth of the parties leaves. An averager is any mechanism that averages vectors: here Central DP with twice
the noise that it needs, which is no better than Central DP and shows all that has to be written.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

import inca
from inca._base.types import Array
from inca.learn import PrivateLogisticRegression, SimulatedAverager, divide_records, load_dataset
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism
from inca.protocol.expected_error import ErrorBudget

PARTIES, DROPOUT, STEPS, EPSILON, SEEDS = 50, 0.1, 10, 8.0, 3


class Cautious(Mechanism):
    """Whoever is there is averaged by a curator, who adds twice the standard deviation that privacy needs."""

    name = "Central DP, twice the noise"
    promise = "whoever sees the result"
    weaker = True
    any_dropout = True  # the noise is chosen for those who are there
    failure_probability = 0.0  # a curator's noise cannot fail

    @property
    def messages(self) -> float:
        """One: the value, to the curator."""
        return 1.0

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the variance of the noise and what the missing values cost: the first is used in training."""
        leavers = self._leavers(dropout)
        noise = 4.0 * self.requirements.var_local_dp / (self.requirements.parties - leavers) ** 2
        return ExpectedError(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Average the vectors of those who stay, one row each, and add the noise."""
        table, leavers = self._validate(values, rng, dropout)
        present = rng.permutation(table)[leavers:]
        noise = 2.0 * math.sqrt(self.requirements.var_local_dp) / len(present)
        return np.asarray(present.mean(axis=0) + noise * rng.standard_normal(table.shape[1]))


def accuracies(averager: SimulatedAverager) -> Array:
    """Train on the same divisions for every averager and return the accuracy on unseen records, one per seed."""
    scores = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        train, test = load_dataset("digits").split(rng)
        groups = divide_records(train.target, PARTIES, rng, sizes="unequal", mix="skewed")
        model = PrivateLogisticRegression(
            EPSILON, averager=averager, classes=range(10), steps=STEPS, radius=4.0, random_state=seed
        )
        scores.append(model.fit(train.features, train.target, groups).score(test.features, test.target))
    return np.array(scores)


def main() -> None:
    """Train with all of them and print one line for each."""
    # Everything is calibrated once, for values of sensitivity 1; every step scales its vectors to the loss it may have.
    requirements = inca.Requirements(PARTIES, epsilon=1.0, delta=1e-5, dropout=DROPOUT)
    averagers = {
        kind: SimulatedAverager.of(kind, PARTIES, inca.Conditions(dropout=DROPOUT), releases=STEPS)
        for kind in ("inca", "gopa")
    }
    averagers |= {
        kind: SimulatedAverager.of(kind, PARTIES, inca.Conditions(dropout=DROPOUT))
        for kind in ("cordp", "local", "central")
    }
    averagers["own"] = SimulatedAverager(Cautious(requirements), DROPOUT)

    print(f"digits, {PARTIES} parties of unequal sizes and skewed classes, epsilon {EPSILON:g} for {STEPS} steps,")
    print(f"a tenth of the parties leaves in every step; mean over {SEEDS} seeds, and inca minus it seed by seed")
    print(f"{'':28s} noise / Central DP   accuracy   inca minus it")
    scores = {kind: accuracies(averager) for kind, averager in averagers.items()}
    for kind, averager in averagers.items():
        noise = averager.var_noise(1.0, 1.0) / averagers["central"].var_noise(1.0, 1.0)
        difference = scores["inca"] - scores[kind]
        mean, error = difference.mean(), difference.std(ddof=1) / math.sqrt(SEEDS)
        print(f"{averager.name:28s} {noise:18.1f} {scores[kind].mean():10.3f}   {mean:+.3f} +- {error:.3f}")


if __name__ == "__main__":
    main()
