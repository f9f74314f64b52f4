"""Every aggregator on the same training task, and one of your own beside them.

    python examples/learning_researcher.py

Digits of scikit-learn, divided among 50 parties with unequal numbers of records and skewed mixtures of classes; in
every step a tenth of the parties leaves. An aggregator is any mechanism that averages: here Central DP with twice the
noise that it needs, which is no better than Central DP and shows all that has to be written.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

import inca
from inca._base.types import Array
from inca.learn import Aggregator
from inca.learn.comparison.datasets import divide, load
from inca.learn.training.logistic import PrivateLogisticRegression
from inca.mechanisms.base import Estimate, Mechanism, Prediction
from inca.protocol.expected_error import ErrorBudget

PARTIES, DROPOUT, STEPS, EPSILON, SEEDS = 50, 0.1, 10, 8.0, 3


class Cautious(Mechanism):
    """Whoever is there is averaged by a curator, who adds twice the standard deviation that privacy needs."""

    name = "Central DP, twice the noise"
    promise = "whoever sees the result"
    weaker = True

    @property
    def messages(self) -> float:
        """One: the value, to the curator."""
        return 1.0

    def expected_error(self, dropout: float) -> Prediction:
        """Return the variance of the noise and what the missing values cost: the first is used in training."""
        leavers = self._leavers(dropout)
        noise = 4.0 * self.wish.var_local / (self.wish.parties - leavers) ** 2
        return Prediction(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> Estimate:
        """Average the vectors of those who stay, one row each, and add the noise."""
        table, leavers = self._admit(values, rng, dropout)
        present = rng.permutation(table)[leavers:]
        noise = 2.0 * math.sqrt(self.wish.var_local) / len(present)
        return np.asarray(present.mean(axis=0) + noise * rng.standard_normal(table.shape[1]))


def accuracies(aggregator: Aggregator) -> Array:
    """Train on the same divisions for every aggregator and return the accuracy on unseen records, one per seed."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        train, test = load("digits").split(rng)
        groups = divide(train.target, PARTIES, rng, sizes="unequal", mix="skewed")
        model = PrivateLogisticRegression(EPSILON, aggregator=aggregator, steps=STEPS, radius=4.0, random_state=seed)
        found.append(model.fit(train.features, train.target, groups).score(test.features, test.target))
    return np.array(found)


def main() -> None:
    """Train with all of them and print one line for each."""
    # Everything is calibrated once, for values of sensitivity 1; every step scales its vectors to the loss it may have.
    wish = inca.Wish(PARTIES, epsilon=1.0, delta=1e-5, dropout=DROPOUT)
    made = {kind: Aggregator.of(kind, PARTIES, dropout=DROPOUT, views=10, releases=STEPS) for kind in ("inca", "gopa")}
    made |= {kind: Aggregator.of(kind, PARTIES, dropout=DROPOUT) for kind in ("cordp", "local", "central")}
    made["own"] = Aggregator(Cautious(wish), DROPOUT)

    print(f"digits, {PARTIES} parties of unequal sizes and skewed classes, epsilon {EPSILON:g} for {STEPS} steps,")
    print(f"a tenth of the parties leaves in every step; mean over {SEEDS} seeds, and inca minus it seed by seed")
    print(f"{'':28s} noise / Central DP   accuracy   inca minus it")
    found = {kind: accuracies(aggregator) for kind, aggregator in made.items()}
    for kind, aggregator in made.items():
        noise = aggregator.noise(1.0, 1.0) / made["central"].noise(1.0, 1.0)
        apart = found["inca"] - found[kind]
        error = apart.std(ddof=1) / math.sqrt(SEEDS)
        print(f"{aggregator.name:28s} {noise:18.1f} {found[kind].mean():10.3f}   {apart.mean():+.3f} +- {error:.3f}")


if __name__ == "__main__":
    main()
