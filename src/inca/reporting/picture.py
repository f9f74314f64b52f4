"""A figure as a picture of its own: an SVG file with title, legend and caption that needs no page around it."""

from __future__ import annotations

import re
import textwrap
from html import escape

from inca._base.palette import LIGHT
from inca.reporting.parts import Figure
from inca.reporting.svg import FIGURE_STYLE, WIDTH

_MARGIN, _LINE, _LETTERS = 16, 17, 76  # the last is how many letters of the caption fit on a line
_COLOURS = LIGHT | {"domain": LIGHT["paper"]}
_STYLE = re.sub(r"var\(--(\w+)(?:, var\(--\w+\))?\)", lambda match: _COLOURS[match[1]], FIGURE_STYLE)


def picture(figure: Figure) -> str:
    """Return a figure as an SVG file, in light colours on white.

    Example:
        >>> drawn = '<svg viewBox="0 0 440 9"></svg>'
        >>> picture(Figure("Losses", drawn, (), "Epsilon at delta 1e-05.")).splitlines()[-2]
        '<text x="16" y="75">Epsilon at delta 1e-05.</text>'
    """
    box = re.match(r'<svg [^>]*viewBox="0 0 \S+ (\S+)"[^>]*>', figure.svg)
    assert box is not None  # all drawings of `inca.reporting.svg` begin so
    drawing = figure.svg[box.end() : -len("</svg>")]
    height, top = float(box[1]), 2 * _MARGIN + _LINE * (1 + len(figure.legend))
    legend = [_entry(_MARGIN + _LINE * (2 + i), *entry) for i, entry in enumerate(figure.legend)]
    below = top + height + _LINE
    caption = [
        _words(_MARGIN, below + _LINE * i, line) for i, line in enumerate(textwrap.wrap(figure.caption, _LETTERS))
    ]
    width, tall = WIDTH + 2 * _MARGIN, below + _LINE * len(caption)
    size = f'width="{WIDTH:g}" height="{height:g}"'
    rules = f"text {{ font: 12px system-ui, sans-serif; fill: {LIGHT['ink']}; }}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{tall:g}" viewBox="0 0 {width:g} '
            f'{tall:g}" role="img" aria-label="{escape(figure.title)}">',
            f"<style>{rules}{_STYLE}.figure svg {{ width: {WIDTH:g}px; height: {height:g}px; }}</style>",
            f'<rect width="100%" height="100%" fill="{LIGHT["card"]}"/>',
            _words(_MARGIN, _MARGIN + _LINE, figure.title, ' style="font-weight: bold; font-size: 15px"'),
            '<g class="figure">',
            *legend,
            f'<svg x="{_MARGIN}" y="{top}" {size} viewBox="0 0 {WIDTH:g} {height:g}">{drawing}</svg>',
            "</g>",
            *caption,
            "</svg>\n",
        ]
    )


def _entry(y: float, kind: str, name: str) -> str:
    """Return a line of the legend: a swatch, and what it means."""
    if kind == "silent":
        swatch = _words(_MARGIN + 4, y, "\N{MULTIPLICATION SIGN}")
    elif kind.split(maxsplit=1)[0] in ("line", "level"):
        swatch = f'<path class="{kind}" d="M{_MARGIN} {y - 4:g}h18"/>'
    else:
        swatch = f'<rect class="{kind}" x="{_MARGIN}" y="{y - 10:g}" width="16" height="12"/>'
    return swatch + _words(_MARGIN + 24, y, name)


def _words(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(words)}</text>'
