"""What a report says, whatever it is about, and the page that says it: one file that asks nothing of the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Literal

from inca._base import palette
from inca._base.html import element, html_page, named_colours, pair, section, table
from inca._base.version import __version__

Standing = Literal["good", "bad", "unknown", "plain"]

MAX_OPEN_ROWS = 14  # longer lists of parameters are folded, so that the page can be overlooked
_SYMBOLS: dict[Standing, str] = {"good": "\N{CHECK MARK}", "bad": "\N{BALLOT X}", "unknown": "?", "plain": ""}
_CLASSES: dict[Standing, str] = {"good": "agrees", "bad": "differs", "unknown": "open", "plain": "plain"}


@dataclass(frozen=True)
class VerdictSentence:
    """One sentence of the verdict.

    Args:
        standing: Whether it is good news, bad news, something that is not known, or none of these.
        badge: A word or two for it.
        text: The sentence.
    """

    standing: Standing
    badge: str
    text: str


@dataclass(frozen=True)
class TitledPicture:
    """A picture with what is needed to read it.

    Args:
        title: What it shows.
        svg: The picture, as SVG.
        legend: The class of a colour in the style sheet, and what has it.
        caption: The parameters behind it.
    """

    title: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    caption: str


@dataclass(frozen=True)
class ParameterList:
    """Parameters under a heading: names, and what they are."""

    heading: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RowList:
    """Rows of cells under a heading, with names of the columns."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SourceFile:
    """A file that a report is about.

    Args:
        name: Its name, without folders.
        sha256: Of its content, in hexadecimal.
    """

    name: str
    sha256: str


@dataclass(frozen=True)
class ReportContent:
    """All that a report says, as text; the page escapes it.

    Args:
        title: What it is about.
        about: A line below the title.
        verdict: What came out, first.
        caveats: What keeps it from being better than it is.
        pictures: Pictures.
        parameters: All else that the file says.
        assumptions: What all of it rests on.
    """

    title: str
    about: str
    verdict: tuple[VerdictSentence, ...]
    caveats: tuple[str, ...] = ()
    pictures: tuple[TitledPicture, ...] = ()
    parameters: tuple[ParameterList | RowList, ...] = ()
    assumptions: tuple[str, ...] = ()
    sources: tuple[SourceFile, ...] = field(default=())


def counted(number: int, one: str, many: str) -> str:
    """Return a number of things.

    >>> counted(1, "message is", "messages are"), counted(2000, "message is", "messages are")
    ('1 message is', '2,000 messages are')
    """
    return f"{number:,} {one if number == 1 else many}"


def page(content: ReportContent) -> str:
    """Return the page of a report."""
    main = [
        element("header", element("h1", escape(content.title)), element("p", escape(content.about), class_="summary")),
        section("Verdict", "ul", [_verdict(sentence) for sentence in content.verdict], class_="verdict"),
        section("What to keep in mind", "ul", _items(content.caveats)),
        section("Pictures", "div", [_picture(picture) for picture in content.pictures], class_="pictures"),
        section("Parameters", "div", [_parameters(part) for part in content.parameters], class_="parameters"),
        section("Assumptions", "ul", _items(content.assumptions)),
    ]
    footer = section("Where this comes from", "dl", _origin(content.sources))
    note = "This page is one file. It loads nothing, runs nothing, and holds nothing but what the files say."
    body = [element("main", *main), element("footer", footer, element("p", note))]
    return html_page(content.title, body, _STYLE)


def _verdict(sentence: VerdictSentence) -> str:
    mark = _SYMBOLS[sentence.standing]
    symbol = element("span", mark, aria_hidden="true") if mark else ""
    badge = element("span", symbol, escape(sentence.badge), class_=f"badge {_CLASSES[sentence.standing]}")
    return element("li", badge, element("span", escape(sentence.text)))


def _items(sentences: tuple[str, ...]) -> list[str]:
    return [element("li", escape(sentence)) for sentence in sentences]


def _picture(picture: TitledPicture) -> str:
    legend = [
        element("li", element("span", class_=f"swatch {colour}"), escape(name)) for colour, name in picture.legend
    ]
    parts = [
        element("h3", escape(picture.title)),
        element("ul", *legend, class_="legend") if legend else "",
        picture.svg,
        element("figcaption", escape(picture.caption)),
    ]
    return element("figure", *parts)


def _parameters(part: ParameterList | RowList) -> str:
    if isinstance(part, ParameterList):
        content = element("dl", *(pair(name, escape(text)) for name, text in part.rows))
    else:
        headings = [(name, "text") for name in part.columns]
        cells = [[element("td", escape(cell)) for cell in row] for row in part.rows]
        content = table(part.heading, headings, cells, "rows")
    if len(part.rows) <= MAX_OPEN_ROWS:
        return element("div", element("h3", escape(part.heading)), content)
    return element("details", element("summary", escape(part.heading)), content, open="")


def _origin(sources: tuple[SourceFile, ...]) -> list[str]:
    files = [pair(source.name, element("code", f"sha256:{source.sha256}")) for source in sources]
    return [*files, pair("this page", f"inca {escape(__version__)}")]


_PURPOSES = {"a": "own", "b": "cancelling", "c": "data", "d": "low", "warn": "bad", "gone": "line", "domain": "paper"}
"""What is named in pictures, and the purpose in the palette whose colour it has."""

_STYLE = """
:root { LIGHT }
h3 { margin: 0 0 .5rem; font-size: 1.0625rem; }
.verdict { list-style: none; padding: 0; font-size: 1.125rem; max-width: 64rem; }
.verdict li { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: .25rem 1rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
.verdict .badge { justify-self: start; align-self: start; white-space: normal; font-size: 1rem; }
.verdict .badge span { margin-right: .375rem; }
.pictures, .parameters { columns: 26rem 2; column-gap: 2.5rem; }
.pictures > *, .parameters > * { break-inside: avoid; margin: 0 0 1.75rem; max-width: 40rem; }
.parameters dl { grid-template-columns: 11rem minmax(0, 1fr); }
summary { font-size: 1.0625rem; font-weight: bold; }
.rows caption { position: absolute; clip-path: inset(50%); }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; paint-order: stroke; stroke: var(--paper);
  stroke-width: 3px; stroke-linejoin: round; } svg text.small { fill: var(--soft); font-size: 11px; }
.a { fill: var(--a); background: var(--a); } .b { fill: var(--b); background: var(--b); }
.c { fill: var(--c); background: var(--c); } .d { fill: var(--d); background: var(--d); }
.warn { fill: var(--warn); background: var(--warn); } .gone { fill: var(--gone); background: var(--gone); }
.domain { fill: var(--domain); background: var(--domain); }
.line { fill: none; stroke: var(--a); stroke-width: 2; } .grid { stroke: var(--line); stroke-width: 1; }
.level { stroke: var(--b); stroke-width: 2; stroke-dasharray: 6 4; fill: none; } .level1 { stroke: var(--d); }
.legend { display: flex; flex-wrap: wrap; gap: .125rem 1rem; margin: 0 0 .5rem; padding: 0; list-style: none;
  font-size: .9375rem; }
.swatch { display: inline-block; width: 1rem; height: .75rem; margin-right: .375rem; border-radius: .125rem; }
.swatch.line { height: 0; border-top: .1875rem solid var(--a); vertical-align: middle; }
.swatch.level { height: 0; border-top: .1875rem dashed var(--b); vertical-align: middle; }
.swatch.silent { background: none; height: auto; } .swatch.silent::before { content: "\\00d7"; }
.plain { border-color: var(--line); color: var(--soft); }
.swatch.level1 { border-color: var(--d); } .swatch.domain, .swatch.gone { border: 1px solid var(--soft); }
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
_STYLE = _STYLE.replace("PAGE", named_colours(palette.LIGHT))
_STYLE = _STYLE.replace("LIGHT", named_colours(palette.LIGHT, _PURPOSES))
_STYLE = _STYLE.replace("DARK", named_colours(palette.DARK, _PURPOSES))
