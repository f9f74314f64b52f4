"""Pictures of `inca stats`: estimates and their intervals, and never a record.

Each says its main number above, and below what its bars are and what is protected.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inca._base.palette import ABSENT, BASELINE, COLLUDER, GROUND, OWN
from inca._base.plotting import canvas, caption, headline, look, percent, save

if TYPE_CHECKING:
    from inca._base.types import Array
    from inca.cli.stats.release import StatisticRow
    from inca.learn import DistributionEstimate


def draw_intervals(
    rows: Sequence[StatisticRow],
    possible: Sequence[tuple[float, float]],
    column: str,
    promise: str,
    confidence: float,
    path: Path,
) -> None:
    """Draw each estimate with its interval, in a panel that is as wide as what is possible."""
    with look():
        figure, panels = canvas(7, 1.4 + 1.0 * len(rows), rows=len(rows))
        for axes, row, (low, high) in zip(np.atleast_1d(panels), rows, possible, strict=True):
            axes.axvline((low + high) / 2.0, color=COLLUDER, ls=":", lw=1.3)
            axes.errorbar([row.estimate], [0.0], xerr=_reach([row]), fmt="o", color=OWN, capsize=5, lw=2.0)
            axes.set(xlim=(low, high), ylim=(-1.0, 1.0), yticks=[])
            axes.set_ylabel(row.name, rotation=0, ha="right", va="center")
            axes.spines["left"].set_visible(False)
        headline(figure, f"{column}: " + "; ".join(f"{row.name} {_told(row)}" for row in rows))
        caption(figure, f"{_bars(confidence, promise)} Axes: all that is possible; dotted: a guess without data.")
        save(figure, path)


def draw_histogram(
    rows: Sequence[StatisticRow], edges: Array, column: str, promise: str, confidence: float, path: Path
) -> None:
    """Draw the share of each bin with its interval, and the share that each had if all were alike."""
    with look():
        figure, axes = canvas(7, 4)
        shares = [row.estimate for row in rows]
        axes.bar(edges[:-1], shares, np.diff(edges), align="edge", color=ABSENT, edgecolor=GROUND)
        middles = (edges[:-1] + edges[1:]) / 2.0
        axes.errorbar(middles, shares, _reach(rows), fmt="o", ms=3, color=OWN, capsize=2, linewidth=1.2)
        axes.hlines(np.diff(edges) / (edges[-1] - edges[0]), edges[:-1], edges[1:], color=COLLUDER, ls=":", lw=1.3)
        axes.set_xticks(edges if len(edges) <= _MOST_TICKS else edges[:: -(-len(edges) // _MOST_TICKS)])
        axes.set(xlabel=column, ylabel="share of records", xlim=(edges[0], edges[-1]))
        axes.set_ylim(bottom=0.0)
        largest = int(np.argmax(shares))
        headline(
            figure,
            f"{column} is from {edges[largest]:g} to {edges[largest + 1]:g} in {_told_share(rows[largest])}, "
            "more than in any other bin",
        )
        caption(figure, f"{_bars(confidence, promise)} Dotted: a guess without data, all values as frequent.")
        save(figure, path)


def draw_distribution(
    rows: Sequence[StatisticRow],
    shares: Sequence[float],
    distribution: DistributionEstimate,
    confidence: float,
    column: str,
    promise: str,
    path: Path,
) -> None:
    """Draw the distribution function with its band, and the quantiles that are read off it."""
    with look():
        figure, axes = canvas(7, 4)
        low, high = distribution.domain
        lower, upper = distribution.interval(confidence)
        axes.plot([low, high], [0.0, 1.0], color=COLLUDER, ls=":", lw=1.3)
        axes.fill_between(distribution.grid, lower, upper, color=BASELINE, alpha=0.25, linewidth=0.0)
        points = np.concatenate([[low], distribution.grid, [high]])
        axes.plot(points, np.concatenate([[0.0], np.asarray(distribution.estimate), [1.0]]), color=BASELINE)
        axes.errorbar([row.estimate for row in rows], shares, xerr=_reach(rows), fmt="o", color=OWN, capsize=4, lw=2.0)
        axes.set_yticks(sorted({0.0, *shares, 1.0}), [percent(share) for share in sorted({0.0, *shares, 1.0})])
        axes.set(xlabel=column, ylabel="records up to this value", xlim=(low, high), ylim=(0.0, 1.0))
        middle = min(range(len(rows)), key=lambda number: abs(shares[number] - 0.5))
        headline(figure, f"{percent(shares[middle])} of the records have a {column} of at most {_told(rows[middle])}")
        caption(
            figure,
            f"{_bars(confidence, promise)} The band is the same for shares of records. "
            "Dotted: a guess without data, all values as frequent.",
        )
        save(figure, path)


def draw_effects(
    rows: Sequence[StatisticRow], widths: Sequence[float], explained: str, promise: str, confidence: float, path: Path
) -> None:
    """Draw by how much the line rises from the lower to the upper bound of each feature."""
    with look():
        figure, axes = canvas(7, 1.9 + 0.4 * len(rows))
        places, scale = np.arange(len(rows)), np.asarray(widths)
        rises = scale * [row.estimate for row in rows]
        axes.axvline(0.0, color=COLLUDER, ls=":", lw=1.3)
        axes.errorbar(rises, places, xerr=scale * _reach(rows), fmt="o", color=OWN, capsize=4, lw=2.0)
        axes.set_yticks(places, [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.set(xlabel=f"change of {explained} from the lower to the upper bound of the feature")
        apart = [f"rises with {row.name}" for row in rows if row.interval[0] > 0.0]
        apart += [f"falls with {row.name}" for row in rows if row.interval[1] < 0.0]
        told = ", ".join(apart) or "changes with no feature beyond the noise"
        headline(figure, f"{explained} {told}")
        caption(figure, f"{_bars(confidence, promise)} Dotted: no effect.")
        save(figure, path)


_MOST_TICKS = 12


def _told(row: StatisticRow) -> str:
    low, high = row.interval
    return f"{row.estimate:.3g} ({low:.3g} to {high:.3g})"


def _told_share(row: StatisticRow) -> str:
    low, high = (percent(round(max(0.0, bound), 3)) for bound in row.interval)
    return f"{percent(round(row.estimate, 3))} of the records ({low} to {high})"


def _bars(confidence: float, promise: str) -> str:
    """Say what bars are, and what is promised."""
    return f"Bars: intervals that hold the number of these records with probability {percent(confidence)}; {promise}."


def _reach(rows: Sequence[StatisticRow]) -> Any:
    """Return how far intervals reach below and above their estimates, (2, k)."""
    middle = np.array([row.estimate for row in rows])
    lower, upper = np.array([row.interval for row in rows]).T
    return np.vstack([middle - lower, upper - middle])
