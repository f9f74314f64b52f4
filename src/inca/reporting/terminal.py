"""A content as text: the verdict, what every reader needs, and on request all details."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import groupby

from inca.reporting.parts import Content, Row, Table, capital

_LABEL = 18


def text(content: Content, width: int = 100, *, details: bool = False, titled: bool = True) -> str:
    """Return a content as lines of text, with no character that could direct a terminal."""
    title = f"{content.title}   {content.about}" if content.about else content.title
    lines = [_wrapped(title, 2, width)] if titled else []
    lines += [entry(capital(part.badge), part.text, width) for part in content.verdict]
    lines += [entry(row.name, row.value, width) for row in content.rows if not row.detail]
    if details:
        for group, rows in groupby((row for row in content.rows if row.detail), key=lambda row: row.group):
            lines += ["", group, *_rows(rows, width)]
        for table in content.tables:
            lines += ["", *_table(table, width)]
        for heading, sentences in (("To keep in mind", content.caveats), ("Assumptions", content.assumptions)):
            lines += ["", heading, *(_wrapped(f"  - {sentence}", 4, width) for sentence in sentences)] * bool(sentences)
    return "\n".join(_printable(line) for line in "\n".join(lines).split("\n"))


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _rows(rows: Iterable[Row], width: int) -> list[str]:
    return [entry(row.name, row.value, width) for row in rows]


def entry(name: str, value: str, width: int) -> str:
    """Return a name and what belongs to it, as one line or wrapped."""
    line = f"  {name.ljust(_LABEL)} {value}"
    return _wrapped(line, _LABEL + 3, width) if " " in value else line  # a hash stays beside its name


def _wrapped(line: str, indent: int, width: int) -> str:
    return textwrap.fill(
        line, max(width, indent + 20), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _table(table: Table, width: int) -> list[str]:
    """Return aligned columns; the last one is wrapped."""
    rows = (table.columns, *table.rows)
    widths = [2 + max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    lines = ["".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)) for row in rows]
    return [table.heading, *(_wrapped(f"  {line}", 2 + sum(widths), width) for line in lines)]
