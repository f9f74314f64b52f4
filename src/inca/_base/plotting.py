"""What all pictures share: a canvas, one look, and files that are written whole. They need matplotlib."""

from __future__ import annotations

from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import Any

from inca._base.extras import importing
from inca._base.files import write_whole

INK, LIGHT, ACCENT, WARM = "#1f2a44", "#9aa5b8", "#1667c2", "#c2541b"
SERIES = (WARM, "#2c8a5b", "#8b4fa8", "#b8860b", "#4a5a7a")
"""Colours of the lines beside our own."""


_LOOK: Any = {"font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False}


def canvas(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """Return a figure of that many inches and its axes: one, or an array of them."""
    with importing("a picture", extra="plots"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def look() -> AbstractContextManager[Any]:
    """Return a context in which pictures of several panels are drawn, and written."""
    with importing("a picture", extra="plots"):
        import matplotlib as mpl

    context: AbstractContextManager[Any] = mpl.rc_context(_LOOK)
    return context


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
