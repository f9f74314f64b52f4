"""Training by private averages: time per step and the noise's share of it, memory, and accuracy.

    python benchmarks/learning.py [--parties 100] [--parameters 100000] [--steps 100] [--seeds 20] [--quick]

Speed and memory: softmax regression whose every step is averaged by inca. The noise alone is drawn in the same run,
between steps, with the same generator and threads as the simulator. Accuracy: breast cancer data of scikit-learn, with
scikit-learn's regression beside it. Settings and scaling were chosen among a few hundred by accuracy on other splits of
the same records, without counting that as a loss, so the figures say what is possible and not what a first try gives.
"""

from __future__ import annotations

import argparse
import re
import time
import tracemalloc
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from inca import Conditions
from inca._base.randomness import fill, split
from inca._base.threads import Crew, available_cores
from inca._base.types import Array
from inca.learn import (
    Budget,
    Clipping,
    LogisticModel,
    PrivateLogisticRegression,
    SimulatedAverager,
    TrainingRules,
    train,
)
from inca.learn.budget import ProtectionLevel
from inca.learn.training.contributions import PartyData
from inca.mechanisms.inca import Inca
from inca.protocol.noise import BLOCK_ENTRIES

_CLASSES, _RECORDS = 10, 4
SETTINGS: dict[ProtectionLevel, dict[str, Any]] = {
    "party": {"steps": 5, "rate": 3.0, "clip": 0.1, "momentum": 0.5, "local_steps": 3},
    "record": {"steps": 40, "rate": 2.0, "clip": 0.5, "momentum": 0.5},
}


class Timed(LogisticModel):
    """Adds up the seconds that gradients take."""

    seconds = 0.0

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        start = time.perf_counter()
        gradient = super().gradient(parameters, features, targets)
        self.seconds += time.perf_counter() - start
        return gradient


def made_up(parties: int, features: int) -> list[PartyData]:
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((_RECORDS, features)), rng.integers(0, _CLASSES, _RECORDS)) for _ in range(parties)]


def rounds_of(averager: SimulatedAverager) -> int:
    assert isinstance(averager.mechanism, Inca)
    return averager.mechanism.plan.design.rounds


def noise_alone(entries: int, rounds: int) -> float:
    """Return the seconds it takes to draw the noise of one average and do nothing with it."""
    parts = np.array_split(np.empty(entries), -(-entries // BLOCK_ENTRIES))
    streams = split(np.random.default_rng(1), len(parts))
    jobs = [partial(fill, stream, part) for stream, part in zip(streams, parts, strict=True)]
    start = time.perf_counter()
    with Crew(available_cores()) as crew:
        for _ in range(rounds + 1):
            crew.work(jobs)
    return time.perf_counter() - start


def speed(averager: SimulatedAverager, parameters: int, steps: int) -> None:
    n, rounds = averager.parties, rounds_of(averager)
    model = Timed(parameters // _CLASSES, _CLASSES)
    seconds: list[float] = []
    alone: list[float] = []
    clock = time.perf_counter()

    def on_step(step: int, theta: Array) -> None:
        nonlocal clock
        seconds.append(time.perf_counter() - clock)
        if step % max(1, steps // 10) == 0:
            alone.append(noise_alone(n * theta.size, rounds))
        clock = time.perf_counter()

    datasets = made_up(n, model.features)
    budget, rng = Budget(8.0, 1e-5), np.random.default_rng(1)
    clock = time.perf_counter()
    train(model, datasets, averager, budget, steps, rng, TrainingRules(Clipping(1.0)), on_step=on_step)
    usual, noise, gradients = float(np.median(seconds)), float(np.median(alone)), model.seconds / steps
    terms = n * parameters * (rounds + 1)
    print(f"{steps} steps of {n} parties, {parameters:,} parameters, {rounds} rounds of gossip each; medians")
    print(f"  one step                       {usual:8.2f} s   of which gradients {gradients:.3f} s")
    print(f"  its noise alone                {noise:8.2f} s   {terms:,} normals, {terms / noise / 1e6:.0f} million/s")
    print(f"  step / noise alone             {usual / noise:8.2f}     noise is {noise / usual:.0%} of a step")
    print(f"  slowest / median step          {max(seconds) / usual:8.2f}")


def memory(averager: SimulatedAverager, parameters: int) -> None:
    """Print the peak of what training allocates, in tables of one double per party and parameter."""
    print("\npeak memory of training, beside the parties' data (tracemalloc)")
    base = max(parameters // 10, 10 * _CLASSES)
    for size, steps in ((base, 2), (base, 4), (base, 8), (base, 16), (2 * base, 2), (4 * base, 2), (8 * base, 2)):
        model = LogisticModel(size // _CLASSES, _CLASSES)
        datasets = made_up(averager.parties, model.features)
        tracemalloc.start()
        train(
            model, datasets, averager, Budget(8.0, 1e-5), steps, np.random.default_rng(1), TrainingRules(Clipping(1.0))
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        table = 8 * averager.parties * model.parameters.size
        print(f"  d = {size:>8,}, {steps:3} steps: {peak / 2**20:8.1f} MiB = {peak / table:5.2f} tables of n d doubles")


def publicly_scaled() -> tuple[Array, NDArray[Any]]:
    """Return the breast cancer data, scaled by what the data set's description publishes of it.

    The description lists the least and largest value of every feature. Features are measured from the one to the other
    and, being skewed, their root is taken: 2 sqrt((x - least) / (largest - least)) - 1.
    """
    data = load_breast_cancer()
    listed = re.findall(r"^[a-z ]+\((?:mean|standard error|worst)\):\s+([\d.]+)\s+([\d.]+)$", data.DESCR, re.MULTILINE)
    least, largest = np.array(listed, dtype=float).T
    return 2.0 * np.sqrt(np.clip((data.data - least) / (largest - least), 0.0, 1.0)) - 1.0, data.target


def shares(scores: list[float]) -> str:
    return f"{np.mean(scores):.4f} +- {np.std(scores, ddof=1) / len(scores) ** 0.5:.4f}"


def accuracy(seeds: int) -> None:
    """Print the accuracy on held-out records: mean and standard error over splits, each with its own noise."""
    features, target = publicly_scaled()
    halves = [
        train_test_split(features, target, test_size=0.3, stratify=target, random_state=100 + seed)
        for seed in range(seeds)
    ]
    print(
        f"\naccuracy on breast cancer data, 20 parties of 19 or 20 records, delta 1e-5; {seeds} splits, standard errors"
    )
    known = [float(LogisticRegression(max_iter=5000).fit(x, y).score(x_, y_)) for x, x_, y, y_ in halves]
    guess = [float(max(y_.mean(), 1 - y_.mean())) for _, _, _, y_ in halves]
    print(f"  scikit-learn, not private            {shares(known)}")
    print(f"  always the frequent class            {shares(guess)}")
    for level, settings in SETTINGS.items():
        for kind, epsilon, dropout in (
            ("central", 1e12, 0.0),
            ("central", 3.0, 0.0),
            ("inca", 3.0, 0.0),
            ("inca", 3.0, 0.2),
            ("local", 3.0, 0.0),
        ):
            scores = []
            for seed, (x, x_, y, y_) in enumerate(halves):
                estimator = PrivateLogisticRegression(
                    epsilon,
                    1e-5,
                    classes=[0, 1],
                    level=level,
                    averager=kind,
                    dropout=dropout,
                    random_state=seed,
                    **settings,
                )
                scores.append(float(estimator.fit(x, y).score(x_, y_)))
            words = "hardly any noise" if epsilon > 1e6 else f"epsilon {epsilon:g}, dropout {dropout:g}"
            print(f"  {level:6}  {kind:7}  {words:22} {shares(scores)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=100)
    parser.add_argument("--parameters", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="5,000 parameters, 10 steps, 5 seeds")
    options = parser.parse_args()
    size, steps, seeds = (5000, 10, 5) if options.quick else (options.parameters, options.steps, options.seeds)
    started = time.perf_counter()
    planned = SimulatedAverager.of("inca", options.parties, Conditions(colluding=0.1, dropout=0.1), releases=steps)
    print(f"plan made in {time.perf_counter() - started:.1f} s (a tenth colluding, a tenth leaving in every step)")
    speed(planned, size, steps)
    memory(planned, size)
    accuracy(seeds)
