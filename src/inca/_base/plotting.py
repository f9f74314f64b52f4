"""What all pictures share: a canvas, one look, names at the ends of lines, and files that are written whole.

Colours are in `inca._base.palette`. Pictures need matplotlib.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from inca._base.extras import importing
from inca._base.files import write_whole
from inca._base.palette import INK, LINE, SOFT

OWN_WIDTH, OTHER_WIDTH = 2.6, 1.2
"""How thick lines are, in points: ours, so that it is found without its colour, and all others."""
_LOOK: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
}
_CHARACTERS_PER_INCH, _HEADLINE_CHARACTERS_PER_INCH = 15.5, 10.6
_DECADES_WITH_2_AND_5 = 3.0  # longer scales have ticks at powers of ten only
_LABEL_GAP_POINTS = 1.5


def canvas(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """Return a figure of that many inches and its axes: one, or an array of them."""
    with importing("a picture", extra="plots"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def look() -> AbstractContextManager[Any]:
    """Return a context in which pictures are drawn, and written."""
    with importing("a picture", extra="plots"):
        import matplotlib as mpl

    context: AbstractContextManager[Any] = mpl.rc_context(_LOOK)
    return context


def headline(figure: Any, message: str) -> None:
    """Write above all panels what the picture says, in lines as wide as the figure."""
    wrapped = _wrapped(figure, message, _HEADLINE_CHARACTERS_PER_INCH)
    figure.suptitle(wrapped, x=0.01, ha="left", fontsize=11, fontweight="bold")


def caption(figure: Any, text: str) -> None:
    """Write below all panels what is drawn, in lines as wide as the figure."""
    wrapped = _wrapped(figure, text, _CHARACTERS_PER_INCH)
    figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=8, color=SOFT)


def _wrapped(figure: Any, text: str, per_inch: float) -> str:
    """Break a text into lines, but no number from its percent sign."""
    kept = textwrap.fill(text.replace(" %", "\N{NO-BREAK SPACE}%"), int(figure.get_size_inches()[0] * per_inch))
    return kept.replace("\N{NO-BREAK SPACE}", " ")


def percent(share: float) -> str:
    """Return a share as people write it.

    Example:
        >>> percent(0.1), percent(0.025)
        ('10 %', '2.5 %')
    """
    return f"{100 * share:.6g} %"


def mark_rates(axes: Any, rates: Sequence[float]) -> None:
    """Let the x axis have ticks where the points are, and nowhere else."""
    axes.set_xticks(list(rates), [percent(rate) for rate in rates], minor=False)
    axes.set_xticks([], minor=True)


def plain_log_scale(axis: Any) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks; what it shows must be there already."""
    import math

    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if math.log10(high / low) <= _DECADES_WITH_2_AND_5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


class LineEnd(NamedTuple):
    """What is written at the end of a line, and where the line ends, in the units of its axes."""

    text: str
    x: float
    y: float
    colour: str
    bold: bool = False


def label_ends(ends: Mapping[Any, Sequence[LineEnd]]) -> None:
    """Write names beside the right ends of lines, moved apart where they would overlap; call it when all is drawn.

    Thin lines lead to names that had to be moved. `ends` has those of all axes of a figure that have such names: to
    know how high they are takes longer than all the rest.
    """
    for figure in {axes.figure for axes in ends}:
        figure.get_layout_engine().execute(figure)  # so that heights are known; nothing need be drawn for it
    for axes, its_ends in ends.items():
        _label_ends(axes, its_ends)


def _label_ends(axes: Any, ends: Sequence[LineEnd]) -> None:
    points_per_dot = 72.0 / axes.figure.dpi
    ordered = sorted(ends, key=lambda end: end.y)
    wanted = [float(axes.transData.transform((end.x, end.y))[1]) * points_per_dot for end in ordered]
    right = axes.get_xlim()[1]
    texts = [
        axes.annotate(
            end.text,
            (right, end.y),
            xytext=(12, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            fontweight="bold" if end.bold else "normal",
            color=end.colour,
            annotation_clip=False,
        )
        for end in ordered
    ]
    heights = [text.get_window_extent().height * points_per_dot + _LABEL_GAP_POINTS for text in texts]
    box = axes.get_window_extent()
    places = spread(wanted, heights, box.y0 * points_per_dot, box.y1 * points_per_dot)
    for text, end, from_y, to_y in zip(texts, ordered, wanted, places, strict=True):
        text.set_position((12, to_y - from_y))
        if abs(to_y - from_y) > 1.0:
            leader = {"arrowstyle": "-", "color": LINE, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
            axes.annotate(
                "",
                (right, end.y),
                xytext=(10, to_y - from_y),
                textcoords="offset points",
                arrowprops=leader,
                annotation_clip=False,
            )


def spread(wanted: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Return where things of these heights are, in order, near the places wanted, and none over another.

    They stay between `low` and `high` if there is room.

    Example:
        >>> spread([1.0, 1.0, 9.0], [2.0, 2.0, 2.0], 0.0, 10.0)
        [1.0, 3.0, 9.0]
    """
    groups: list[tuple[float, list[int]]] = []  # where a group of touching things begins, and which they are
    for number, height in enumerate(heights):
        group = [number]
        begin = _begin([wanted[number]], [height], low, high)
        while groups and groups[-1][0] + sum(heights[one] for one in groups[-1][1]) > begin:
            group = groups.pop()[1] + group
            begin = _begin([wanted[one] for one in group], [heights[one] for one in group], low, high)
        groups.append((begin, group))
    places = []
    for begin, group in groups:
        bounds = accumulate((heights[number] for number in group), initial=begin)
        places += [(lower + upper) / 2.0 for lower, upper in pairwise(bounds)]
    return places


def _begin(wanted: Sequence[float], heights: Sequence[float], low: float, high: float) -> float:
    """Return where touching things begin, so that on average they are where they are wanted."""
    offset, begins = 0.0, []
    for place, height in zip(wanted, heights, strict=True):
        begins.append(place - offset - height / 2.0)
        offset += height
    return max(low, min(sum(begins) / len(begins), high - offset))


def save(figure: Any, path: Path) -> None:
    """Write a figure as .png or .svg, whole or not at all; the same picture from the same input."""
    write_whole(path, lambda file: file.write(rendered(figure, path.suffix[1:])))


def rendered(figure: Any, kind: str) -> bytes:
    """Return a figure as the bytes of a png or svg file."""
    import matplotlib as mpl

    undated = {"Date": None} if kind == "svg" else None
    out = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "inca"}):
        figure.savefig(out, format=kind, dpi=120, metadata=undated)
    return out.getvalue()
