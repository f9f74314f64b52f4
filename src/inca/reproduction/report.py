"""The page of a reproduction: pictures, the paper's claims, the data, and where all of it comes from.

A page is one file. It has no scripts and asks nothing of the network, so it looks the same wherever it is opened.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import Any

from inca._base.html import element, html_page, pair, scrolling, section, table
from inca.reproduction.figure_reproduction import Claim, DataTable, FigureResults, Picture, Row

MAX_OPEN_ROWS = 30  # tables with more rows than this are folded

_DASH = "\N{EN DASH}"
_SYMBOLS = {"agrees": "\N{CHECK MARK}", "differs": "\N{BALLOT X}", "open": "?"}
_QUICK = "This is a quick version with few runs. Its figures differ from those of the full one."


@dataclass(frozen=True)
class Provenance:
    """Where results come from."""

    command: str
    version: str
    seed: int
    quick: bool
    source: str
    """A digest of the source code."""
    seconds: float | None
    """How long the work took; None if all of it was taken from finished work."""


def page(
    name: str,
    title: str,
    parameters: Row,
    results: FigureResults,
    provenance: Provenance,
    pictures: Mapping[str, bytes],
) -> str:
    """Return the page; `pictures` are SVG files by the names of results.pictures."""
    top = [
        element("h1", escape(title)),
        element("p", escape(summary(results.claims)), class_="summary"),
        element("p", element("strong", "Quick version."), f" {_QUICK}", class_="note") if provenance.quick else "",
    ]
    main = [
        element("header", *top),
        section("Pictures", "div", [_picture(picture, pictures[picture.name]) for picture in results.pictures]),
        section("Claims", "div", [_claims(results.claims)] if results.claims else []),
        section("Data", "div", [_data(data) for data in results.tables]),
        section("Beside the figure", "div", [_data(data) for data in results.supplement]),
        section("Notes", "ul", [element("li", escape(note)) for note in results.notes]),
        section("Parameters", "dl", [pair(name, escape(shown(name, value))) for name, value in parameters.items()]),
    ]
    body = [element("main", *main), element("footer", section("Where this comes from", "dl", _origin(provenance)))]
    return html_page(f"{title} ({name})", body)


def summary(claims: Sequence[Claim]) -> str:
    """Count the verdicts in a line.

    Example:
        >>> summary([Claim("x", "Section 1", True, "x"), Claim("y", "Section 2", False, "z")])
        '1 claim agrees, 1 differs, 0 are open'
    """
    if not claims:
        return "No claims are checked against the data"
    agree, differ, left = (sum(claim.agrees is verdict for claim in claims) for verdict in (True, False, None))
    return (
        f"{agree} {'claim agrees' if agree == 1 else 'claims agree'}, "
        f"{differ} {'differs' if differ == 1 else 'differ'}, {left} {'is' if left == 1 else 'are'} open"
    )


def shown(name: str, value: Any) -> str:
    """Write a value for people; `name` is that of its column or parameter.

    Example:
        >>> [shown("mse", value) for value in (0.123456, 25000, float("inf"), True, [1, 0.5])]
        ['0.1235', '25,000', 'none', 'yes', '1, 0.5']
    """
    if value is None:
        return _DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}" if abs(int(value)) > 9_999 and name != "seed" else str(int(value))
    if isinstance(value, Real):
        return _real(float(value))
    if isinstance(value, list | tuple):
        return ", ".join(shown(name, item) for item in value)
    return str(value)


def duration(seconds: float | None) -> str:
    """Write how long something took.

    Example:
        >>> duration(252.3), duration(7200.0), duration(0.2), duration(None)
        ('4 min 12 s', '2 h', 'less than a second', 'nothing to do: all results were taken from finished work')
    """
    if seconds is None:
        return "nothing to do: all results were taken from finished work"
    minutes, rest = divmod(round(seconds), 60)
    parts = [(minutes // 60, "h"), (minutes % 60, "min"), (rest, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "less than a second"


def _real(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    # Adding zero turns -0.0 into 0.0, whose sign would only puzzle.
    return "none" if value == math.inf else f"{value + 0.0:.4g}"


def _picture(picture: Picture, svg: bytes) -> str:
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    image = f'<img src="{source}" alt="{escape(picture.caption)}">'
    return element("figure", scrolling(picture.name, image), element("figcaption", escape(picture.caption)))


def _claims(claims: Sequence[Claim]) -> str:
    columns = ["Verdict", "Claim", "Source", "Found"] + ["Why it differs"] * any(claim.why for claim in claims)
    texts = [
        [_badge(claim.verdict), *map(escape, (claim.text, claim.source, claim.evidence, claim.why))] for claim in claims
    ]
    rows = [[element("td", text) for text in row[: len(columns)]] for row in texts]
    return table("What is claimed, and what was found", [(name, "text") for name in columns], rows, "claims")


def _badge(verdict: str) -> str:
    return element("span", f'<span aria-hidden="true">{_SYMBOLS[verdict]}</span> {verdict}', class_=f"badge {verdict}")


def _data(data: DataTable) -> str:
    columns = list(data.shown or dict.fromkeys(key for row in data.rows for key in row))
    kinds = {name: _kind([row.get(name) for row in data.rows]) for name in columns}
    rows = [
        [element("td", escape(shown(name, row.get(name))), class_=kinds[name]) for name in columns] for row in data.rows
    ]
    headings = [(name.replace("_", " "), kinds[name]) for name in columns]
    if len(rows) <= MAX_OPEN_ROWS:
        return table(data.caption, headings, rows or [["<td>No rows</td>"]], "data")
    heading = element("summary", f"{escape(data.caption)} ({len(rows):,} rows)")
    return element("details", heading, table(data.caption, headings, rows, "data long"))


def _kind(values: Iterable[Any]) -> str:
    known = [value for value in values if value is not None]
    numbers = [isinstance(value, Real) and not isinstance(value, bool) for value in known]
    return "number" if known and all(numbers) else "text"


def _origin(provenance: Provenance) -> list[str]:
    return [
        pair("command", element("code", escape(provenance.command))),
        pair("inca", escape(provenance.version)),
        pair("seed", str(provenance.seed)),
        pair("source code", element("code", escape(provenance.source))),
        pair("time taken", escape(duration(provenance.seconds))),
    ]
