"""What to set clip, rate and steps to: accuracy of models of PyTorch trained by private averages, over many settings.

    python benchmarks/learning_rules.py settings [--plot FILE]   a small convolutional network, every setting
    python benchmarks/learning_rules.py rules                    the rules of thumb, on three data sets and two models

Both take --seeds (3), --epsilon (3) and --averager (central). They need PyTorch: pip install 'inca[learn,torch]'.

Records of scikit-learn are divided among 50 parties, of whom a tenth leave in every step. Each record is protected
unless a row says otherwise. The noise is Central DP's, which is fast to simulate; inca's has 1.15 times its variance
with a tenth of the parties colluding, which `--averager inca` plans for. A cell is the mean over seeds and the standard
deviation among them; a seed decides which records are kept for testing, the division, the first parameters and the
noise. Settings are compared by accuracy on unseen records without counting that as a loss, so the best of a table is
what is possible and not what a first try gives.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_wine

from inca import Conditions, Interval, mu_for
from inca._base.palette import BASELINE, COLLUDER, SOFT, shades
from inca._base.plotting import LineEnd, canvas, caption, headline, label_ends, look, save
from inca._base.types import Array
from inca.learn import (
    AveragingLoop,
    Budget,
    Clipping,
    Dataset,
    Records,
    SimulatedAverager,
    TorchModel,
    divide_records,
    load_dataset,
    quantile,
)
from inca.learn.budget import ProtectionLevel
from inca.learn.comparison.datasets import ClassMix

PARTIES, DELTA = 50, 1e-5
COLLUDING, DROPOUT = 0.1, 0.1
STEPS, TRAVEL = 20, 100.0  # of the rules, where nothing else is said
MEDIAN_SHARE = 0.05  # of the budget, for the private median of the gradients' lengths
NORMS = Interval(-3.0, 3.0)  # of log10 of a gradient's length, public and wide


@dataclass(frozen=True)
class Setting:
    """One way to train: on what, how private, and with which clip, rate and steps.

    `clip` None is the private median of the gradients' lengths before the first step; `relative` says that `clip` is in
    units of the exact one. `travel` is rate times clip times steps, how far the parameters can get.
    """

    data: str
    model: str
    epsilon: float = 3.0
    clip: float | None = 1.0
    relative: bool = True
    travel: float = TRAVEL
    steps: int = STEPS
    level: ProtectionLevel = "record"
    mix: ClassMix = "similar"
    averager: str = "central"


# --- data and models --------------------------------------------------------------------------------------------------


@cache
def dataset(name: str) -> Dataset:
    """Return a data set, scaled by public bounds."""
    if name != "wine":
        return load_dataset(name)
    bunch = load_wine()
    low, high = bunch.data.min(axis=0), bunch.data.max(axis=0)  # as the description of the data set publishes them
    return Dataset("wine", 2.0 * (bunch.data - low) / (high - low) - 1.0, bunch.target, 3)


def module(kind: str, features: int, classes: int, seed: int) -> Any:
    """Return a module with its first parameters, which are public."""
    nn = torch.nn
    torch.manual_seed(seed)
    if kind == "logistic":
        return nn.Linear(features, classes)
    if kind == "network":
        return nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, classes))
    layers = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, classes)
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), *layers)


def share_right(network: Any, test: Dataset) -> float:
    with torch.no_grad():
        guess = network(torch.as_tensor(test.features, dtype=torch.float32)).argmax(1).numpy()
    return float(np.mean(guess == test.target))


@cache
def not_private(data: str, kind: str, seed: int) -> float:
    """Return the accuracy of the same module trained as usual: records in one place, Adam, neither clip nor noise."""
    known, test = dataset(data).split(np.random.default_rng(seed))
    network = module(kind, known.features.shape[1], known.classes, seed)
    features = torch.as_tensor(known.features, dtype=torch.float32)
    target = torch.as_tensor(known.target)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(features), target).backward()
        optimizer.step()
    return share_right(network, test)


# --- training ---------------------------------------------------------------------------------------------------------


@cache
def averager(kind: str, steps: int) -> SimulatedAverager:
    return SimulatedAverager.of(kind, PARTIES, Conditions(colluding=COLLUDING, dropout=DROPOUT), releases=steps + 1)


def accuracy(setting: Setting, seed: int) -> float:
    """Return the accuracy of one training on unseen records."""
    rng = np.random.default_rng(seed)
    known, test = dataset(setting.data).split(rng)
    groups = divide_records(known.target, PARTIES, rng, mix=setting.mix)
    order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups, minlength=PARTIES)
    features, target = known.features[order], known.target[order]
    network = module(setting.model, features.shape[1], known.classes, seed)
    model = TorchModel(network, torch.nn.functional.cross_entropy)
    whom, budget = averager(setting.averager, setting.steps), Budget(setting.epsilon, DELTA)
    cuts = np.cumsum(sizes)[:-1]

    def updates() -> list[Array]:
        """Return each party's update: a gradient per record, or their mean if parties are protected."""
        tables = np.split(model.record_gradients(model.parameters, features, target), cuts)
        return tables if setting.level == "record" else [table.mean(axis=0) for table in tables]

    clip = clip_of(setting, updates(), whom, budget, rng)
    clipping = Clipping(clip, setting.level)
    loop = AveragingLoop(whom, budget, steps=setting.steps, clipping=clipping, sizes=sizes.tolist(), rng=rng)
    rate = setting.travel / (clip * setting.steps)
    for _ in loop:
        mean = loop.average(updates())
        if mean.estimate is not None:
            model.load(model.parameters - rate * mean.estimate)
    assert budget.epsilon_spent <= setting.epsilon * (1.0 + 1e-6)
    return share_right(network, test)


def clip_of(
    setting: Setting, updates: Sequence[Array], whom: SimulatedAverager, budget: Budget, rng: np.random.Generator
) -> float:
    """Return the length to clip to, for which a private median is taken off the budget."""
    norms = [np.linalg.norm(np.atleast_2d(table), axis=1) for table in updates]
    if setting.clip is None:
        records = Records.of([np.log10(norm) for norm in norms], NORMS, level=setting.level)
        return float(10.0 ** quantile(records, 0.5, whom, budget, rng, fraction=MEDIAN_SHARE).estimate)
    return setting.clip * (float(np.median(np.concatenate(norms))) if setting.relative else 1.0)


def parameters(setting: Setting) -> int:
    data = dataset(setting.data)
    layers = module(setting.model, data.features.shape[1], data.classes, 0)
    return sum(parameter.numel() for parameter in layers.parameters())


def room(setting: Setting) -> float:
    """Return how far the parameters can be led in all, over how far the noise leads them astray.

    Steps of length rate clip lead at most `travel` away. The noise of a step is 2 clip / (N mu_step) in each of d
    coordinates, N the records (or parties), and over all steps sqrt(steps d) rate times that: with mu_step = mu /
    sqrt(steps) the ratio is N mu / (2 sqrt d), whatever clip, rate and steps are.
    """
    count = PARTIES if setting.level == "party" else round(0.75 * len(dataset(setting.data).target))
    return count * mu_for(setting.epsilon, DELTA) / (2.0 * math.sqrt(parameters(setting)))


# --- tables -----------------------------------------------------------------------------------------------------------


@cache  # tables share their middle columns
def scores(setting: Setting, seeds: int) -> Array:
    return np.array([accuracy(setting, seed) for seed in range(seeds)])


def cell(numbers: Iterable[float]) -> str:
    listed = list(numbers)
    return f"{np.mean(listed):.3f} ({np.std(listed, ddof=1):.3f})"


def heading(first: str, columns: Sequence[str]) -> None:
    print(f"\n{first:34}" + "".join(f"{name:>15}" for name in columns), flush=True)


def row(name: str, cells: Iterable[str]) -> None:
    print(f"{name:34}", end="", flush=True)
    for text in cells:
        print(f"{text:>15}", end="", flush=True)
    print(flush=True)


def name_of(setting: Setting) -> str:
    extra = [word for word in (setting.level, setting.mix) if word not in ("record", "similar")]
    return ", ".join([setting.data, setting.model, *extra])


RATES, CLIPS, COUNTS = (1.0, 2.0, 4.0, 8.0), (1.0, 4.0, 8.0), (10, 40)


def settings(epsilon: float, seeds: int, kind: str, plot: Path | None) -> None:
    """Print the accuracy of the convolutional network over clip, rate and steps, and of what stands beside it."""
    base = Setting("digits", "convolutional", epsilon, relative=False, averager=kind)
    print(
        f"digits, convolutional network of {parameters(base)} parameters, epsilon {epsilon:g} at delta {DELTA:g} in all"
    )
    print(f"not private, as usual: {cell(not_private('digits', 'convolutional', seed) for seed in range(seeds))}")
    means: dict[tuple[int, float, float], float] = {}
    for steps in COUNTS:
        heading(f"{steps} steps", [f"rate {rate:g}" for rate in RATES])
        for clip in CLIPS:
            values = []
            for rate in RATES:
                values.append(scores(replace(base, clip=clip, steps=steps, travel=rate * clip * steps), seeds))
                means[steps, clip, rate] = float(values[-1].mean())
            row(f"clip {clip:g}", (cell(value) for value in values))
    if plot is not None:
        usual = float(np.mean([not_private("digits", "convolutional", seed) for seed in range(seeds)]))
        draw(means, usual, epsilon, plot)


def draw(means: dict[tuple[int, float, float], float], usual: float, epsilon: float, path: Path) -> None:
    """Plot all settings over the length of a step: darker for a smaller clip, dashed for fewer steps."""
    labels = dataset("digits").target
    chance = float(np.bincount(labels).max() / len(labels))
    (steps, clip, rate), best = max(means.items(), key=lambda item: item[1])
    with look():
        figure, axes = canvas(8.4, 4.6)
        colours = dict(zip(reversed(CLIPS), shades(len(CLIPS)), strict=True))
        markers = dict(zip(CLIPS, "os^", strict=True))
        for one_clip in CLIPS:
            for count, style in zip(COUNTS, ("--", "-"), strict=True):
                heights = [means[count, one_clip, one_rate] for one_rate in RATES]
                look_of_clip = {"color": colours[one_clip], "marker": markers[one_clip], "ms": 5, "lw": 1.6}
                name = f"clip {one_clip:g}, {count} steps"
                axes.plot([one_rate * one_clip for one_rate in RATES], heights, style, label=name, **look_of_clip)
        axes.axhline(usual, color=BASELINE, lw=1.2, ls="--", zorder=1)
        axes.axhline(chance, color=COLLUDER, lw=1.3, ls=":", zorder=1)
        lengths = sorted({one_rate * one_clip for one_rate in RATES for one_clip in CLIPS})
        axes.set_xscale("log", base=2)
        axes.set_xticks(lengths, [f"{length:g}" for length in lengths])
        axes.set(xlabel="rate times clip: the length of a step", ylabel="accuracy on unseen records", ylim=(0.0, 1.03))
        headline(figure, f"Short steps learn: {100 * best:.0f} % at a length of {rate * clip:g}, in {steps} steps")
        caption(
            figure,
            f"Handwritten digits, a small convolutional network, 50 parties, epsilon {epsilon:g} for each record "
            "in all of the training. Points are means over seeds.",
        )
        ends = [
            LineEnd("not private", lengths[-1], usual, SOFT),
            LineEnd("most frequent class", lengths[-1], chance, COLLUDER),
        ]
        axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 0.12))  # lines begin too close
        label_ends({axes: ends})
        save(figure, path)
    print(f"wrote {path}")


TASKS = tuple((data, model) for data in ("digits", "breast_cancer", "wine") for model in ("logistic", "network"))
MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0)
TRAVELS = (10.0, 30.0, 100.0, 300.0)
STEP_COUNTS = (5, 10, 20, 40)
EPSILONS = (0.3, 1.0, 3.0, 10.0)


def rules(epsilon: float, seeds: int, kind: str) -> None:
    """Print one table for each rule."""
    tasks = [Setting(data, model, epsilon, averager=kind) for data, model in TASKS]
    print(f"epsilon {epsilon:g} at delta {DELTA:g}; {STEPS} steps and a travel of {TRAVEL:g} unless said otherwise")
    heading("", ["parameters", "records", "room", "not private"])
    for task in tasks:
        usual = cell(not_private(task.data, task.model, seed) for seed in range(seeds))
        count = round(0.75 * len(dataset(task.data).target))
        row(name_of(task), (str(parameters(task)), str(count), f"{room(task):.1f}", usual))

    heading("clip, in medians of the norm", [*(f"{multiple:g}" for multiple in MULTIPLES), "private median"])
    for task in [*tasks, replace(tasks[0], level="party", mix="skewed", epsilon=30.0)]:
        clipped = [replace(task, clip=multiple) for multiple in (*MULTIPLES, None)]
        row(name_of(task), (cell(scores(setting, seeds)) for setting in clipped))
    heading("travel = rate x clip x steps", [f"{travel:g}" for travel in TRAVELS])
    for task in tasks:
        row(name_of(task), (cell(scores(replace(task, travel=travel), seeds)) for travel in TRAVELS))
    heading("steps", [str(steps) for steps in STEP_COUNTS])
    for task in tasks:
        row(name_of(task), (cell(scores(replace(task, steps=steps), seeds)) for steps in STEP_COUNTS))
    heading("room: accuracy, at epsilon", [f"{wanted:g}" for wanted in EPSILONS])
    for task in [*tasks, *(replace(task, level="party") for task in tasks[:4:2])]:
        varied = [replace(task, epsilon=wanted) for wanted in EPSILONS]
        row(name_of(task), (f"{room(setting):.2f}: {scores(setting, seeds).mean():.3f}" for setting in varied))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["settings", "rules"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--averager", default="central")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    if options.what == "settings":
        settings(options.epsilon, options.seeds, options.averager, options.plot)
    else:
        rules(options.epsilon, options.seeds, options.averager)
    print(f"{(time.perf_counter() - started) / 60:.0f} minutes")
