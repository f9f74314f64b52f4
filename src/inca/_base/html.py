"""Pages that are one file: no scripts, nothing asked of the network, light and dark, on paper as on a screen.

Elements take HTML as their content: whoever puts text into one escapes it first. A policy in the page's head makes sure
that a browser would load nothing even if something had slipped through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from inca._base.palette import DARK, GROUND, LIGHT

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_page(title: str, body: Iterable[str], style: str = "") -> str:
    """Return a page."""
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        element("title", escape(title)),
        element("style", _STYLE + style),
    ]
    return f'<!DOCTYPE html>\n<html lang="en">\n{element("head", *head)}{element("body", *body)}</html>\n'


def element(name: str, *content: str, **attributes: str) -> str:
    """Return an element. Attributes are escaped, the content is HTML already; class_ and aria_label lose their bars."""
    written = [f' {key.strip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()]
    return f"<{name}{''.join(written)}>{''.join(content)}</{name}>\n"


def section(heading: str, kind: str, content: Sequence[str], **attributes: str) -> str:
    """Return a section with one element of a kind, and of these attributes, in it; nothing if that would be empty."""
    return element("section", element("h2", heading), element(kind, *content, **attributes)) if content else ""


def table(caption: str, headings: Iterable[tuple[str, str]], rows: Iterable[Iterable[str]], kind: str) -> str:
    """Return a table in its own box. Headings are texts with the kind of their column, rows are lists of cells."""
    names = [element("th", escape(text), scope="col", class_=column) for text, column in headings]
    parts = [
        # The inner span stays in sight while a wide table is scrolled sideways.
        element("caption", element("span", escape(caption))),
        element("thead", element("tr", *names)) if names else "",
        element("tbody", *(element("tr", *cells) for cells in rows)),
    ]
    return scrolling(caption, element("table", *parts), kind)


def scrolling(label: str, content: str, kind: str = "") -> str:
    """Put what may be too wide in a box that scrolls, also by keyboard, so that the page itself never does."""
    return element("div", content, class_=f"scroll {kind}".strip(), tabindex="0", role="region", aria_label=label)


def pair(term: str, value: str) -> str:
    """Return an entry of a list of terms; the term is text, with spaces for underscores, the value HTML."""
    return element("dt", escape(term.replace("_", " "))) + element("dd", value)


_PURPOSES = {"paper": "card", "ink": "ink", "soft": "soft", "line": "line", "band": "paper", "good": "good",
             "on-good": "card", "bad": "bad", "on-bad": "card", "open": "soft", "on-open": "card"}  # fmt: skip
"""What is named on a page, and the purpose in the palette whose colour it has."""


def named_colours(palette: Mapping[str, str], purposes: Mapping[str, str] = _PURPOSES) -> str:
    """Return colours of a palette as a style sheet names them.

    Example:
        >>> named_colours({"own": "teal"}, {"mean": "own"})
        '--mean: teal;'
    """
    return " ".join(f"--{name}: {palette[purpose]};" for name, purpose in purposes.items())


_STYLE = (
    """
:root { color-scheme: light dark; --ground: GROUND; LIGHT }
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
""".replace("GROUND", GROUND)
    .replace("LIGHT", named_colours(LIGHT))
    .replace("DARK", named_colours(DARK))
)
