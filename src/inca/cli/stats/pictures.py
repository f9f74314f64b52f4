"""Pictures of `inca stats`: estimates and their intervals, and never a record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inca._base.plotting import ACCENT, INK, LIGHT, WARM, canvas, look, save

if TYPE_CHECKING:
    from inca._base.types import Array
    from inca.cli.stats.release import StatisticRow
    from inca.learn import DistributionEstimate


def draw_intervals(
    rows: Sequence[StatisticRow], possible: Sequence[tuple[float, float]], title: str, path: Path
) -> None:
    """Draw each estimate with its interval, in a panel that is as wide as what is possible."""
    with look():
        figure, panels = canvas(7, 0.6 + 1.1 * len(rows), rows=len(rows))
        for axes, row, (low, high) in zip(np.atleast_1d(panels), rows, possible, strict=True):
            axes.errorbar([row.estimate], [0.0], xerr=_reach([row]), fmt="o", color=ACCENT, capsize=5)
            axes.axvline((low + high) / 2.0, color=LIGHT, linestyle="--", linewidth=1.0)
            axes.set(xlim=(low, high), ylim=(-1.0, 1.0), yticks=[], ylabel=row.name, xlabel="")
        np.atleast_1d(panels)[0].set_title(f"{title} (dashed: a guess without data)")
        save(figure, path)


def draw_histogram(rows: Sequence[StatisticRow], edges: Array, column: str, title: str, path: Path) -> None:
    """Draw the share of each bin with its interval."""
    with look():
        figure, axes = canvas(7, 4)
        shares = [row.estimate for row in rows]
        axes.bar(edges[:-1], shares, np.diff(edges), align="edge", color=LIGHT, edgecolor="white")
        middles = (edges[:-1] + edges[1:]) / 2.0
        axes.errorbar(middles, shares, _reach(rows), fmt="none", color=INK, capsize=2, linewidth=1.0)
        axes.set(xlabel=column, ylabel="share of records", title=title, xlim=(edges[0], edges[-1]))
        axes.set_ylim(bottom=0.0)
        save(figure, path)


def draw_distribution(
    rows: Sequence[StatisticRow],
    shares: Sequence[float],
    distribution: DistributionEstimate,
    confidence: float,
    column: str,
    title: str,
    path: Path,
) -> None:
    """Draw the distribution function with its band, and the quantiles that are read off it."""
    with look():
        figure, axes = canvas(7, 4)
        low, high = distribution.domain
        lower, upper = distribution.interval(confidence)
        axes.fill_between(distribution.grid, lower, upper, color=ACCENT, alpha=0.15, linewidth=0.0)
        points = np.concatenate([[low], distribution.grid, [high]])
        axes.plot(points, np.concatenate([[0.0], np.asarray(distribution.estimate), [1.0]]), color=ACCENT)
        axes.errorbar([row.estimate for row in rows], shares, xerr=_reach(rows), fmt="o", color=WARM, capsize=4)
        axes.set(xlabel=column, ylabel="share of records up to it", title=title, xlim=(low, high), ylim=(0.0, 1.0))
        save(figure, path)


def draw_effects(rows: Sequence[StatisticRow], widths: Sequence[float], title: str, path: Path) -> None:
    """Draw by how much the line rises from the lower to the upper bound of each feature."""
    with look():
        figure, axes = canvas(7, 1.4 + 0.4 * len(rows))
        places, scale = np.arange(len(rows)), np.asarray(widths)
        rises = scale * [row.estimate for row in rows]
        axes.errorbar(rises, places, xerr=scale * _reach(rows), fmt="o", color=ACCENT, capsize=4)
        axes.axvline(0.0, color=LIGHT, linestyle="--", linewidth=1.0)
        axes.set_yticks(places, [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.set(xlabel="rise of the line over the bounds of the feature", title=title)
        save(figure, path)


def _reach(rows: Sequence[StatisticRow]) -> Any:
    """Return how far intervals reach below and above their estimates, (2, k)."""
    middle = np.array([row.estimate for row in rows])
    lower, upper = np.array([row.interval for row in rows]).T
    return np.vstack([middle - lower, upper - middle])
