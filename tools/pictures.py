"""Draw the pictures of the README and the docs.

python tools/pictures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import inca
from inca._base.plotting import ACCENT, LIGHT, WARM

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
        axes.plot(rounds[there], outcome.history[there, party], color=LIGHT, lw=0.5, alpha=0.6)
    present = np.array([run.presence.row(t) for t in range(21)])
    mean = (outcome.history * present).sum(axis=1) / (weights * present).sum(axis=1)
    axes.plot(rounds, mean, color=ACCENT, lw=2, marker="o", ms=3.5, label="their sum over their weight")
    axes.axhline(values.mean(), color=WARM, lw=1.2, ls="--", label=f"exact mean {values.mean():.3f}")
    axes.plot([], [], color=LIGHT, label="messages of 40 parties")
    axes.annotate(f"{outcome.estimate:.3f}", (20, outcome.estimate), (17.2, 1.35), color=ACCENT,
                  arrowprops={"arrowstyle": "-", "color": ACCENT, "lw": 0.8})  # fmt: skip
    axes.set(
        xlabel="round", ylabel="message", ylim=(-2.6, 2.9), xlim=(-0.5, 20.8), title="One run: 1,000 parties, 100 leave"
    )
    axes.set_xticks(range(0, 21, 5))
    axes.legend(frameon=False, loc="lower left", fontsize=8)


def draw_error(axes: Any) -> None:
    """Show the parts of the exact expected error against dropout, the mean over ten executions."""
    rates = np.linspace(0.0, 0.3, 13)
    runs = [[execution(rate, inca.incremental_injection(20), "random", seed) for seed in range(10)] for rate in rates]
    levels = inca.NoiseLevels(independent=0.12, cancelling=0.8)
    budgets = [[inca.expected_error(run, levels, variance=1 / 12) for run in row] for row in runs]
    parts = {
        "independent noise, which stays": ([[b.independent for b in row] for row in budgets], ACCENT),
        "noise that leavers did not cancel": ([[b.cancelling for b in row] for row in budgets], LIGHT),
        "values lost with leavers": ([[b.data for b in row] for row in budgets], WARM),
    }
    heights = [1e4 * np.mean(part, axis=1) for part, _ in parts.values()]
    axes.stackplot(100 * rates, heights, labels=list(parts), colors=[colour for _, colour in parts.values()], lw=0)
    axes.set(
        xlabel="parties that leave for good, %",
        ylabel="mean squared error, 1e-4",
        title="Where the error comes from (exact)",
        xlim=(0, 30),
    )
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], frameon=False, fontsize=8, loc="upper left")


def main() -> None:
    """Draw and save."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "inca"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    draw_run(left)
    draw_error(right)
    for ending in ("png", "svg"):
        figure.savefig(FOLDER / f"run.{ending}", dpi=150, metadata={"Date": None} if ending == "svg" else None)
    print(f"wrote {FOLDER.name}/run.png and {FOLDER.name}/run.svg")


if __name__ == "__main__":
    main()
