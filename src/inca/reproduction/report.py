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

from inca._base.palette import DARK, GROUND, LIGHT
from inca.reproduction.figure_reproduction import Claim, DataTable, FigureResults, Picture, Row

MAX_OPEN_ROWS = 30  # tables with more rows than this are folded

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
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
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        _element("title", escape(f"{title} ({name})")),
        _element("style", _STYLE),
    ]
    top = [
        _element("h1", escape(title)),
        _element("p", escape(summary(results.claims)), class_="summary"),
        _element("p", _element("strong", "Quick version."), f" {_QUICK}", class_="note") if provenance.quick else "",
    ]
    main = [
        _element("header", *top),
        _section("Pictures", "div", [_picture(picture, pictures[picture.name]) for picture in results.pictures]),
        _section("Claims", "div", [_claims(results.claims)] if results.claims else []),
        _section("Data", "div", [_data(table) for table in results.tables]),
        _section("Beside the figure", "div", [_data(table) for table in results.supplement]),
        _section("Notes", "ul", [_element("li", escape(note)) for note in results.notes]),
        _section("Parameters", "dl", [_pair(name, escape(shown(name, value))) for name, value in parameters.items()]),
    ]
    body = [_element("main", *main), _element("footer", _section("Where this comes from", "dl", _origin(provenance)))]
    return f'<!DOCTYPE html>\n<html lang="en">\n{_element("head", *head)}{_element("body", *body)}</html>\n'


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


def _element(name: str, *content: str, **attributes: str) -> str:
    """Return an element. Attributes are escaped, the content is HTML already; class_ and aria_label lose their bars."""
    written = [f' {key.strip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()]
    return f"<{name}{''.join(written)}>{''.join(content)}</{name}>\n"


def _section(heading: str, kind: str, content: Sequence[str]) -> str:
    return _element("section", _element("h2", heading), _element(kind, *content)) if content else ""


def _picture(picture: Picture, svg: bytes) -> str:
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    image = f'<img src="{source}" alt="{escape(picture.caption)}">'
    return _element("figure", _scrolling(picture.name, image), _element("figcaption", escape(picture.caption)))


def _claims(claims: Sequence[Claim]) -> str:
    columns = ["Verdict", "Claim", "Source", "Found"] + ["Why it differs"] * any(claim.why for claim in claims)
    texts = [
        [_badge(claim.verdict), *map(escape, (claim.text, claim.source, claim.evidence, claim.why))] for claim in claims
    ]
    rows = [[_element("td", text) for text in row[: len(columns)]] for row in texts]
    return _table("What is claimed, and what was found", [(name, "text") for name in columns], rows, "claims")


def _badge(verdict: str) -> str:
    return _element("span", f'<span aria-hidden="true">{_SYMBOLS[verdict]}</span> {verdict}', class_=f"badge {verdict}")


def _data(table: DataTable) -> str:
    columns = list(table.shown or dict.fromkeys(key for row in table.rows for key in row))
    kinds = {name: _kind([row.get(name) for row in table.rows]) for name in columns}
    rows = [
        [_element("td", escape(shown(name, row.get(name))), class_=kinds[name]) for name in columns]
        for row in table.rows
    ]
    headings = [(name.replace("_", " "), kinds[name]) for name in columns]
    if len(rows) <= MAX_OPEN_ROWS:
        return _table(table.caption, headings, rows or [["<td>No rows</td>"]], "data")
    heading = _element("summary", f"{escape(table.caption)} ({len(rows):,} rows)")
    return _element("details", heading, _table(table.caption, headings, rows, "data long"))


def _kind(values: Iterable[Any]) -> str:
    known = [value for value in values if value is not None]
    numbers = [isinstance(value, Real) and not isinstance(value, bool) for value in known]
    return "number" if known and all(numbers) else "text"


def _table(caption: str, headings: Iterable[tuple[str, str]], rows: Iterable[Iterable[str]], kind: str) -> str:
    """Return a table in its own box. Headings are texts with the kind of their column, rows are lists of cells."""
    names = [_element("th", escape(text), scope="col", class_=column) for text, column in headings]
    parts = [
        # The inner span stays in sight while a wide table is scrolled sideways.
        _element("caption", _element("span", escape(caption))),
        _element("thead", _element("tr", *names)) if names else "",
        _element("tbody", *(_element("tr", *cells) for cells in rows)),
    ]
    return _scrolling(caption, _element("table", *parts), kind)


def _scrolling(label: str, content: str, kind: str = "") -> str:
    """Put what may be too wide in a box that scrolls, also by keyboard, so that the page itself never does."""
    return _element("div", content, class_=f"scroll {kind}".strip(), tabindex="0", role="region", aria_label=label)


def _pair(term: str, value: str) -> str:
    return _element("dt", escape(term.replace("_", " "))) + _element("dd", value)


def _origin(provenance: Provenance) -> list[str]:
    return [
        _pair("command", _element("code", escape(provenance.command))),
        _pair("inca", escape(provenance.version)),
        _pair("seed", str(provenance.seed)),
        _pair("source code", _element("code", escape(provenance.source))),
        _pair("time taken", escape(duration(provenance.seconds))),
    ]


_PURPOSES = {"paper": "card", "ink": "ink", "soft": "soft", "line": "line", "band": "paper", "good": "good",
             "on-good": "card", "bad": "bad", "on-bad": "card", "open": "soft", "on-open": "card"}  # fmt: skip
"""What is named on the page, and the purpose in the palette whose colour it has."""


def _named_colours(palette: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {palette[purpose]};" for name, purpose in _PURPOSES.items())


_STYLE = (
    f":root {{ color-scheme: light dark; --ground: {GROUND}; {_named_colours(LIGHT)} }}"
    + """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main, footer { max-width: 72rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); font-size: .9375rem; }
h1 { margin: 1rem 0 .25rem; font-size: 1.75rem; line-height: 1.2; } h2 { margin: 1.5rem 0 .75rem; font-size: 1.25rem; }
.summary { margin: 0; color: var(--soft); font-size: 1.125rem; }
.note { padding: .5rem .75rem; border-left: .25rem solid var(--bad); background: var(--on-bad); color: var(--bad); }
figure, .data, details { margin: 0 0 1.5rem; }
figure img { display: block; max-width: 100%; height: auto; background: var(--ground); }
figcaption { margin-top: .5rem; max-width: 60rem; } figcaption, caption, dt { color: var(--soft); }
.scroll { overflow: auto; container-type: inline-size; }
.scroll:focus-visible { outline: .125rem solid currentColor; outline-offset: -.125rem; }
table { border-spacing: 0; font-size: .9375rem; overflow-wrap: break-word; }
caption { padding-bottom: .5rem; text-align: left; }
caption span { display: inline-block; position: sticky; left: 0; width: max-content; max-width: min(100cqi, 40rem); }
th, td { padding: .375rem .75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: var(--band); vertical-align: bottom; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
.data td { white-space: nowrap; } .claims table { width: 100%; min-width: 56rem; }
.long { max-height: 70vh; margin: 0; } .long caption { position: absolute; clip-path: inset(50%); }
summary { padding: .375rem 0; cursor: pointer; }
.badge { display: inline-block; padding: 0 .5rem; border: 1px solid; border-radius: 1rem; white-space: nowrap; }
.agrees { background: var(--on-good); color: var(--good); } .differs { background: var(--on-bad); color: var(--bad); }
.open { background: var(--on-open); color: var(--open); }
ul { margin: 0; padding-left: 1.25rem; max-width: 60rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.5rem; margin: 0; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
@media (prefers-color-scheme: dark) {
  :root { DARK }
  figure img { padding: .75rem; border-radius: .5rem; }
}
@media (max-width: 40rem) {
  figure img { max-width: 42rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .5rem; }
}
@media print {
  .scroll { overflow: visible; max-height: none; } .claims table { min-width: 0; }
  tr, figure { break-inside: avoid; } h2 { break-after: avoid; }
}
""".replace("DARK", _named_colours(DARK))
)
