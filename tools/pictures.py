"""Draw the pictures of the README and the docs.

python tools/pictures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import inca
from inca._base.palette import BASELINE, CANCELLING, DATA, INDEPENDENT, INK, LINE, OWN
from inca._base.plotting import LineEnd, canvas, label_ends, look, save

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def execution(dropout: float, injection: inca.Injection, kind: str, seed: int, n: int = 1000) -> inca.Execution:
    """Return a run of 20 rounds in which a fraction of the parties leaves for good."""
    rng = np.random.default_rng(seed)
    schedule = inca.random_schedule(kind, n, injection.rounds, seed=seed)
    return inca.Execution(schedule, injection, inca.Presence.leaving(n, injection.rounds, dropout, rng))


def draw_run(axes: Any) -> None:
    """Show messages hidden in noise, and their weighted mean, round by round."""
    rng = np.random.default_rng(3)
    run = execution(0.1, inca.incremental_injection(20, quiet=3), "permutation", seed=3)
    values = np.clip(rng.normal(0.62, 0.1, run.parties), 0, 1)
    outcome = inca.simulate(run, values, inca.NoiseLevels(independent=0.12, cancelling=0.8), rng, record=True)
    assert outcome.history is not None
    weights = np.array(list(run.weight_history()))
    rounds = np.arange(21)
    for party in range(40):
        there = np.array([run.presence.row(t)[party] for t in range(21)])
        axes.plot(rounds[there], outcome.history[there, party], color=LINE, lw=0.5)
    present = np.array([run.presence.row(t) for t in range(21)])
    mean = (outcome.history * present).sum(axis=1) / (weights * present).sum(axis=1)
    axes.plot(rounds, mean, color=OWN, lw=2.4, marker="o", ms=3.5)
    axes.axhline(values.mean(), color=INK, lw=1.2, ls="--")
    axes.set(
        xlabel="round",
        ylabel="message",
        ylim=(-2.6, 2.9),
        xlim=(-0.5, 20.8),
        title="Every message is hidden in noise; their mean is not",
    )
    axes.set_xticks(range(0, 21, 5))
    estimate = float(np.asarray(outcome.estimate))
    label_ends(
        {
            axes: [
                LineEnd(f"their sum over\ntheir weight: {estimate:.3f}", 20, estimate, OWN, bold=True),
                LineEnd(f"exact mean {values.mean():.3f}", 20, float(values.mean()), INK),
                LineEnd("messages of 40\nof 1,000 parties;\n100 leave", 20, -1.2, BASELINE),
            ]
        }
    )


def draw_error(axes: Any) -> None:
    """Show the parts of the exact expected error against dropout, the mean over ten executions."""
    rates = np.linspace(0.0, 0.3, 13)
    runs = [[execution(rate, inca.incremental_injection(20), "random", seed) for seed in range(10)] for rate in rates]
    levels = inca.NoiseLevels(independent=0.12, cancelling=0.8)
    budgets = [[inca.expected_error(run, levels, variance=1 / 12) for run in row] for row in runs]
    parts = {
        "independent noise,\nwhich stays": ([[b.independent for b in row] for row in budgets], INDEPENDENT),
        "noise that leavers\ndid not cancel": ([[b.cancelling for b in row] for row in budgets], CANCELLING),
        "values lost\nwith leavers": ([[b.data for b in row] for row in budgets], DATA),
    }
    heights = [1e4 * np.mean(part, axis=1) for part, _ in parts.values()]
    axes.stackplot(100 * rates, heights, colors=[colour for _, colour in parts.values()], lw=0)
    axes.set(
        xlabel="parties that leave for good, %",
        ylabel="mean squared error, 1e-4",
        title="Without settlement, leavers cause nearly all of the error",
        xlim=(0, 30),
    )
    last = np.cumsum([0.0, *(height[-1] for height in heights)])
    middles = (last[1:] + last[:-1]) / 2
    named = zip(parts.items(), middles, strict=True)
    label_ends({axes: [LineEnd(name, 30, middle, colour) for (name, (_, colour)), middle in named]})


def main() -> None:
    """Draw and save."""
    with look():
        figure, (left, right) = canvas(11.5, 4.0, columns=2)
        draw_run(left)
        draw_error(right)
        for ending in ("png", "svg"):
            save(figure, FOLDER / f"run.{ending}")
    print(f"wrote {FOLDER.name}/run.png and {FOLDER.name}/run.svg")


if __name__ == "__main__":
    main()
