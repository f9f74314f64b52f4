"""Draw the other picture of docs/settlement.md: who holds what when, from the digest until the deposits are open.

python tools/pictures_sealing.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.patches import FancyBboxPatch

from inca._base.palette import BASELINE, CANCELLING, GROUND, HONEST, INK, LINE, SOFT
from inca._base.plotting import canvas, look, save

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
STEPS = ("1 digest", "2 cohort", "3 deposit", "4 commit", "5 open")
OPENING, END = 4.0, 5.0
HEIGHT = 0.62


class Span(NamedTuple):
    """From one step to another, who holds a thing, and a word for it."""

    begin: float
    end: float
    colour: str
    text: str


PRIVATE, SEALED, READABLE = HONEST, CANCELLING, BASELINE
THINGS = {
    "accounts, public keys": [Span(0, END, READABLE, "read by all: who sent what to whom, and eight keys a party")],
    "settled message $y'_j$": [
        Span(0, 2, PRIVATE, "the party's own: its balance"),
        Span(2, OPENING, SEALED, "with everyone, sealed"),
        Span(OPENING, END, READABLE, "read by all"),
    ],
    "secret $k_j$ of the seal": [
        Span(0, 2, PRIVATE, "the party's own"),
        Span(2, OPENING, SEALED, "with everyone, as encrypted shares"),
        Span(OPENING, END, READABLE, "from any t shares"),
    ],
    "trustee's key": [
        Span(0, OPENING, PRIVATE, "the trustee's own; erased if there is a smaller cohort"),
        Span(OPENING, END, READABLE, "shown, 32 bytes"),
    ],
    "which deposits count": [Span(OPENING, END, READABLE, "their hashes, signed")],
    "result": [Span(OPENING, END, READABLE, "the same for all")],
}
KEY = {"private to one party": PRIVATE, "with everyone, unreadable": SEALED, "readable by all": READABLE}


def draw_span(axes: Any, row: float, span: Span) -> None:
    """Draw a bar with its text inside."""
    corner, width = (span.begin + 0.02, row - HEIGHT / 2), span.end - span.begin - 0.04
    axes.add_patch(
        FancyBboxPatch(corner, width, HEIGHT, boxstyle="round,pad=0,rounding_size=0.06", facecolor=span.colour, lw=0)
    )
    middle = (span.begin + span.end) / 2
    axes.text(middle, row, span.text, color=GROUND, ha="center", va="center", fontsize=8)


def draw_steps(axes: Any, rows: int) -> None:
    """Write the steps above their columns, and say what commit divides."""
    for place, step in enumerate(STEPS):
        axes.axvline(place, color=LINE, lw=0.8, zorder=0, ymin=0.2)
        axes.text(place + 0.5, rows - 0.3, step, ha="center", va="bottom", fontsize=10, fontweight="bold")
    axes.plot([OPENING, OPENING], [-0.95, rows - 0.35], color=INK, lw=1.4, ls="--", zorder=0)
    below = {"ha": "right", "va": "top", "color": SOFT, "fontsize": 8.5}
    axes.text(OPENING - 0.05, -0.55, "until here a smaller cohort is possible, and no message can be read", **below)
    axes.text(OPENING + 0.05, -0.55, "from here on leavers count", **(below | {"ha": "left"}))


def draw_key(axes: Any) -> None:
    """Say below what the colours mean."""
    for place, (text, colour) in enumerate(KEY.items()):
        axes.text(0.1 + 1.75 * place, -1.35, "■", color=colour, fontsize=12, va="center")
        axes.text(0.24 + 1.75 * place, -1.35, text, fontsize=9, va="center")


def main() -> None:
    with look():
        figure, axes = canvas(9.6, 4.0)
        draw_steps(axes, len(THINGS))
        for place, (name, spans) in enumerate(THINGS.items()):
            row = len(THINGS) - 1 - place
            axes.text(-0.06, row, name, ha="right", va="center")
            for span in spans:
                draw_span(axes, row, span)
        draw_key(axes)
        axes.set(xlim=(-1.25, END), ylim=(-1.6, len(THINGS) + 0.1))
        axes.axis("off")
        save(figure, FOLDER / "sealing.png")


if __name__ == "__main__":
    main()
