"""Two ways to train without a server: an estimator with scikit-learn's conventions, and a model of your own.

    python examples/learning_engineer.py

Breast cancer and digits of scikit-learn, each divided among 50 parties, of whom a tenth leaves in every step. The
estimator is a logistic regression; the own model is a small network with one hidden layer, trained by Adam. Beside them
stands scikit-learn's logistic regression on all records in one place, without privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from inca import Conditions
from inca._base.types import Array
from inca.learn import (
    Adam,
    Budget,
    Clipping,
    PrivateLogisticRegression,
    SimulatedAverager,
    TrainingRules,
    divide_records,
    load_dataset,
    train,
)

PARTIES, DROPOUT, STEPS, DELTA = 50, 0.1, 15, 1e-5
HIDDEN = 8


class Network:
    """One hidden layer. All that `train` asks of a model: where it begins, and the gradient of its mean loss."""

    def __init__(self, features: int, classes: int) -> None:
        """Draw the first weights, which are public; the last layer begins at 0."""
        first = np.random.default_rng(1).standard_normal((features, HIDDEN)) / np.sqrt(features)
        self.shapes = first.shape, (HIDDEN, classes)
        self.parameters = np.concatenate([first.ravel(), np.zeros(HIDDEN * classes)])

    def layers(self, parameters: Array) -> tuple[Array, Array]:
        """Return the matrices of both layers."""
        first, second = np.split(parameters, [np.prod(self.shapes[0])])
        return first.reshape(self.shapes[0]), second.reshape(self.shapes[1])

    def predict(self, parameters: Array, features: Array) -> NDArray[np.intp]:
        """Return the most probable class of each record."""
        first, second = self.layers(parameters)
        return np.asarray(np.argmax(np.tanh(features @ first) @ second, axis=1))

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the mean cross entropy, by hand; see inca.learn.TorchModel for PyTorch."""
        first, second = self.layers(parameters)
        hidden = np.tanh(features @ first)
        residuals = softmax(hidden @ second, axis=1)
        residuals[np.arange(len(targets)), targets] -= 1.0
        back = (residuals @ second.T) * (1.0 - hidden**2)
        return np.concatenate([(features.T @ back).ravel(), (hidden.T @ residuals).ravel()]) / len(targets)


def main() -> None:
    """Train on both data sets and print a table."""
    # One plan serves all trainings here: it depends on the parties and not on their data.
    averager = SimulatedAverager.of("inca", PARTIES, Conditions(dropout=DROPOUT), releases=STEPS)
    print(
        f"{PARTIES} parties, a tenth of them leaves in every one of {STEPS} steps; each party's records are protected"
    )
    print(f"{'':14s} epsilon   logistic regression   own network, Adam   scikit-learn, not private")
    for name, epsilon in (("breast_cancer", 3.0), ("digits", 12.0)):
        rng = np.random.default_rng(7)
        known, unseen = load_dataset(name).split(rng)
        groups = divide_records(known.target, PARTIES, rng)

        radius = np.sqrt(known.features.shape[1]) / 2
        classes = range(known.classes)  # public
        estimator = PrivateLogisticRegression(
            epsilon, DELTA, averager=averager, classes=classes, steps=STEPS, radius=radius, random_state=rng
        )
        ours = estimator.fit(known.features, known.target, groups).score(unseen.features, unseen.target)
        assert estimator.epsilon_ <= epsilon * (1 + 1e-6)

        network, budget = Network(known.features.shape[1], known.classes), Budget(epsilon, DELTA)
        datasets = [(known.features[groups == party], known.target[groups == party]) for party in range(PARTIES)]
        clipping, optimizer = Clipping(max_norm=0.25), Adam(rate=0.1)
        result = train(network, datasets, averager, budget, STEPS, rng, TrainingRules(clipping, optimizer=optimizer))
        own = float(np.mean(network.predict(result.parameters, unseen.features) == unseen.target))
        assert budget.epsilon_spent <= epsilon * (1 + 1e-6)

        reference = LogisticRegression(max_iter=5000).fit(known.features, known.target)
        not_private = reference.score(unseen.features, unseen.target)
        print(f"{name:14s} {epsilon:7g} {ours:21.3f} {own:19.3f} {not_private:27.3f}")


if __name__ == "__main__":
    main()
