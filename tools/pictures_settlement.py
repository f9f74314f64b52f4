"""Draw the first picture of docs/settlement.md: one leaver, and how those who stay undo it.

python tools/pictures_settlement.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.patches import Circle

from inca._base.palette import ABSENT, CANCELLING, GROUND, HONEST, INK
from inca._base.plotting import canvas, look, save

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
PLACES = {"a": (0.0, 0.0), "b": (2.0, 0.0), "c": (1.0, 1.25)}


def draw_title(axes: Any, text: str) -> None:
    """Write a title inside the axes, which are as large as what is drawn."""
    axes.text(1.0, 2.25, text, ha="center", va="top", fontsize=10.5)


def draw_party(axes: Any, name: str, note: str, *, left: bool = False) -> None:
    """Draw a party with a note below it, or above it if it is the one that left."""
    x, y = PLACES[name]
    colour, line = (ABSENT, "--") if left else (HONEST, "-")
    axes.add_patch(Circle((x, y), 0.2, facecolor=GROUND, edgecolor=colour, linestyle=line, linewidth=2, zorder=3))
    axes.text(x, y, name, ha="center", va="center", fontsize=13, color=colour, zorder=4)
    axes.text(x, y + (0.3 if left else -0.3), note, ha="center", va="bottom" if left else "top")


def draw_transfer(axes: Any, sender: str, receiver: str, text: str, *, undone: bool = False) -> None:
    """Draw an arrow from a party to another, dotted if it is undone, with a text beside it."""
    colour = CANCELLING if undone else INK
    style = {
        "arrowstyle": "-|>",
        "color": colour,
        "shrinkA": 19,
        "shrinkB": 19,
        "lw": 1.8,
        "ls": ":" if undone else "-",
    }
    axes.annotate("", PLACES[receiver], PLACES[sender], arrowprops=style)
    x, y = ((one + other) / 2 for one, other in zip(PLACES[sender], PLACES[receiver], strict=True))
    if sender == "b":
        axes.text(x, y + 0.06, text, color=colour, ha="center", va="bottom")
    else:
        to_the_left = sender == "a"
        axes.text(x + (-0.12 if to_the_left else 0.12), y, text, color=colour, ha="right" if to_the_left else "left")


def main() -> None:
    with look():
        figure, (before, after) = canvas(9.6, 3.7, columns=2)
        draw_title(before, "c leaves with a share of a's message,\nand has given b one of its own")
        draw_transfer(before, "a", "c", "share of a")
        draw_transfer(before, "c", "b", "share of c")
        draw_transfer(before, "b", "a", "share of b")
        draw_party(before, "a", "lacks the share that c has")
        draw_party(before, "b", "holds c's share, with its mask")
        draw_title(after, "a and b agree that they count, and settle:\ntheir sum is that of a and b alone")
        draw_transfer(after, "a", "c", "added back by a", undone=True)
        draw_transfer(after, "c", "b", "taken off by b", undone=True)
        draw_transfer(after, "b", "a", "cancels in the sum")
        draw_party(after, "a", "hands over $y'_a = y_a +$ its share")
        draw_party(after, "b", "hands over $y'_b = y_b -$ c's share")
        for axes in (before, after):
            draw_party(axes, "c", "gone", left=True)
            axes.set(xlim=(-0.9, 2.9), ylim=(-0.5, 2.25), aspect="equal")
            axes.axis("off")
        save(figure, FOLDER / "settlement.png")


if __name__ == "__main__":
    main()
