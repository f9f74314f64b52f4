"""A content as one page: a file that loads nothing, runs nothing, and looks well on a screen and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from inca._base import palette
from inca._base.html import element, html_page, named_colours, pair, section, table
from inca._base.version import __version__
from inca.reporting.parts import Content, Figure, Row, Sentence, Source, Standing, Table
from inca.reporting.svg import FIGURE_STYLE

MAX_OPEN_ROWS = 14  # longer lists of parameters are folded, so that the page can be overlooked
_SYMBOLS: dict[Standing, str] = {"good": "\N{CHECK MARK}", "bad": "\N{BALLOT X}", "unknown": "?", "plain": ""}
_CLASSES: dict[Standing, str] = {"good": "agrees", "bad": "differs", "unknown": "open", "plain": "plain"}


def page(content: Content) -> str:
    """Return the page of a content."""
    shown = [row for row in content.rows if not row.detail]
    details = [row for row in content.rows if row.detail]
    grouped = [(group, [*rows]) for group, rows in groupby(details, key=lambda row: row.group)]
    groups = [_folded(group, _rows(rows), len(rows)) for group, rows in grouped]
    main = [
        element("header", element("h1", escape(content.title)), element("p", escape(content.about), class_="summary")),
        section("Verdict", "ul", [_verdict(sentence) for sentence in content.verdict], class_="verdict"),
        section("In short", "div", [_rows(shown)] if shown else [], class_="short"),
        section("To keep in mind", "ul", _items(content.caveats)),
        section("Figures", "div", [_figure(figure) for figure in content.figures], class_="pictures"),
        section("Details", "div", [*groups, *map(_table, content.tables)], class_="parameters"),
        section("Assumptions", "ul", _items(content.assumptions)),
    ]
    footer = section("Where this comes from", "dl", _origin(content.sources))
    note = "This page is one file. It loads nothing, runs nothing, and holds nothing but what the files say."
    body = [element("main", *main), element("footer", footer, element("p", note))]
    return html_page(content.title, body, STYLE)


def _verdict(sentence: Sentence) -> str:
    mark = _SYMBOLS[sentence.standing]
    symbol = element("span", mark, aria_hidden="true") if mark else ""
    badge = element("span", symbol, escape(sentence.badge), class_=f"badge {_CLASSES[sentence.standing]}")
    return element("li", badge, element("span", escape(sentence.text)))


def _items(sentences: tuple[str, ...]) -> list[str]:
    return [element("li", escape(sentence)) for sentence in sentences]


def _figure(picture: Figure) -> str:
    legend = [
        element("li", element("span", class_=f"swatch {colour}"), escape(name)) for colour, name in picture.legend
    ]
    parts = [
        element("h3", escape(picture.title)),
        element("ul", *legend, class_="legend") if legend else "",
        picture.svg,
        element("figcaption", escape(picture.caption)),
    ]
    return element("figure", *parts, class_="figure")


def _rows(rows: Sequence[Row]) -> str:
    return element("dl", *(_pair(row) for row in rows))


def _pair(row: Row) -> str:
    return element("dt", escape(row.name), title=row.hint) + element("dd", escape(row.value))


def _table(part: Table) -> str:
    cells = [[element("td", escape(cell)) for cell in row] for row in part.rows]
    headings = [(name, "text") for name in part.columns]
    return _folded(part.heading, table(part.heading, headings, cells, "rows"), len(cells))


def _folded(heading: str, drawn: str, count: int) -> str:
    if count <= MAX_OPEN_ROWS:
        return element("div", element("h3", escape(heading)), drawn)
    return element("details", element("summary", escape(heading)), drawn, open="")


def _origin(sources: tuple[Source, ...]) -> list[str]:
    files = [pair(source.name, element("code", f"sha256:{source.sha256}")) for source in sources]
    return [*files, pair("this page", f"inca {escape(__version__)}")]


_PURPOSES = {"card": "card", "own": "own", "cancelling": "cancelling", "data": "data", "low": "low", "domain": "paper"}
"""What is named in pictures only, and the purpose in the palette whose colour it has."""

STYLE = """
:root { LIGHT }
h3 { margin: 0 0 .5rem; font-size: 1.0625rem; }
.verdict { list-style: none; padding: 0; font-size: 1.125rem; max-width: 64rem; }
.verdict li { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: .25rem 1rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
.verdict .badge { justify-self: start; align-self: start; white-space: normal; font-size: 1rem; }
.verdict .badge span { margin-right: .375rem; }
.pictures, .parameters { columns: 26rem 2; column-gap: 2.5rem; }
.pictures > *, .parameters > * { break-inside: avoid; margin: 0 0 1.75rem; max-width: 40rem; }
.parameters dl, .short dl { grid-template-columns: 11rem minmax(0, 1fr); } .short dl { font-size: 1.0625rem; }
summary { font-size: 1.0625rem; font-weight: bold; }
.rows caption { position: absolute; clip-path: inset(50%); }
.legend { display: flex; flex-wrap: wrap; gap: .125rem 1rem; margin: 0 0 .5rem; padding: 0; list-style: none;
  font-size: .9375rem; }
.swatch { display: inline-block; width: 1rem; height: .75rem; margin-right: .375rem; border-radius: .125rem; }
.swatch.silent { height: auto; }
.plain { border-color: var(--line); color: var(--soft); }
@media (prefers-color-scheme: dark) {
  :root { DARK }
}
@media (max-width: 40rem) {
  .verdict li { grid-template-columns: minmax(0, 1fr); } .parameters dl { grid-template-columns: minmax(0, 1fr); }
}
@media print {
  :root { color-scheme: light; PAGE LIGHT }
  * { print-color-adjust: exact; } li, dl > * { break-inside: avoid; } h3 { break-after: avoid; }
}
"""
STYLE = FIGURE_STYLE + STYLE.replace("PAGE", named_colours(palette.LIGHT))
STYLE = STYLE.replace("LIGHT", named_colours(palette.LIGHT, _PURPOSES))
STYLE = STYLE.replace("DARK", named_colours(palette.DARK, _PURPOSES))
