"""A convolutional network of PyTorch, trained in a loop of your own by 20 parties who show nobody a record.

    python examples/learning_pytorch.py [--seeds 5]

Digits of scikit-learn, epsilon 3 at delta 1e-5 for each record, 40 steps. The network, the loop and the optimizer are
PyTorch's; what inca adds is one line in the loop, the average. Beside it stand Central DP, Local DP, the same training
without noise, and training as usual. It needs PyTorch: pip install 'inca[learn,torch]'.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from inca import Conditions
from inca.learn import (
    AveragingLoop,
    Budget,
    Clipping,
    Dataset,
    SimulatedAverager,
    TorchModel,
    divide_records,
    load_dataset,
)

PARTIES, COLLUDING, DROPOUT = 20, 0.1, 0.1
EPSILON, DELTA = 3.0, 1e-5
STEPS, CLIP, RATE = 40, 1.0, 2.5
PartyRecords = tuple[NDArray[Any], NDArray[Any]]
NO_NOISE = 1e9  # an epsilon with hardly any


def network(seed: int) -> Any:
    """Return 810 parameters for images of 8 by 8 pixels; the first ones are public."""
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), *layers)


def accuracy(module: Any, test: Dataset) -> float:
    """Return the share of unseen records that are recognized."""
    with torch.no_grad():
        guess = module(torch.as_tensor(test.features, dtype=torch.float32)).argmax(1).numpy()
    return float(np.mean(guess == test.target))


def train_together(
    module: Any, datasets: list[PartyRecords], averager: SimulatedAverager, budget: Budget, rng: np.random.Generator
) -> None:
    """Train a module where it stands, by private averages of the gradients of all parties' records."""
    model = TorchModel(module, nn.functional.cross_entropy)
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    sizes = [len(targets) for _, targets in datasets]  # public
    loop = AveragingLoop(averager, budget, STEPS, clipping=Clipping(CLIP, "record"), sizes=sizes, rng=rng)
    for _ in loop:
        updates = [model.record_gradients(model.parameters, x, y) for x, y in datasets]  # each party its own
        mean = loop.average(updates)
        if mean.estimate is not None:  # None: nobody was left in this step
            model.load_gradient(mean.estimate)
            optimizer.step()


def train_as_usual(module: Any, known: Dataset) -> None:
    """Train a module on all records in one place, without clipping and noise."""
    features, targets = torch.as_tensor(known.features, dtype=torch.float32), torch.as_tensor(known.target)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(features), targets).backward()
        optimizer.step()


def main(seeds: int) -> None:
    """Train with all averagers and print a table."""
    torch.set_num_threads(1)  # a network this small is slower with more
    rows = {
        "as usual, not private": None,
        "the same steps without noise": ("central", NO_NOISE),
        "Central DP": ("central", EPSILON),
        "inca": ("inca", EPSILON),
        "Local DP": ("local", EPSILON),
    }
    averagers = {
        kind: SimulatedAverager.of(kind, PARTIES, Conditions(colluding=COLLUDING, dropout=DROPOUT), releases=STEPS)
        for kind in ("central", "inca", "local")
    }
    scores: dict[str, list[float]] = {name: [] for name in rows}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        known, test = load_dataset("digits").split(rng)
        groups = divide_records(known.target, PARTIES, rng)
        datasets = [(known.features[groups == party], known.target[groups == party]) for party in range(PARTIES)]
        for name, how in rows.items():
            module = network(seed)
            if how is None:
                train_as_usual(module, known)
            else:
                kind, epsilon = how
                budget = Budget(epsilon, DELTA)
                train_together(module, datasets, averagers[kind], budget, np.random.default_rng(seed))
                assert budget.epsilon_spent <= epsilon * (1 + 1e-6)
            scores[name].append(accuracy(module, test))
    print(f"digits, {PARTIES} parties, {STEPS} steps, epsilon {EPSILON:g} at delta {DELTA:g} per record; {seeds} seeds")
    print(f"a tenth of the parties collude, a tenth leave in every step{'accuracy':>17}   least to most")
    for name, values in scores.items():
        print(f"{name:68} {np.mean(values):.3f}   {min(values):.3f} to {max(values):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    main(parser.parse_args().seeds)
