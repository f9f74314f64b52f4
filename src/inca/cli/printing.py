"""Printing results, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from inca._base.files import null_for_infinity

NUMBERS_SHOWN, INTERVALS_SHOWN = 6, 3


def print_json(document: Any) -> None:
    """Print a document as one line of JSON, with null for numbers that JSON does not know."""
    typer.echo(json.dumps(null_for_infinity(document), allow_nan=False))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names in bold beside what they are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in rows:  # never as markup: names of columns come from files
        table.add_row(Text(name, style="bold"), Text(text))
    Console().print(table)


def print_files(**paths: Path | None) -> None:
    """Say where the files are that were asked for."""
    for name, path in paths.items():
        if path is not None:
            typer.echo(f"The {name} is in {path}.")


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns.

    >>> in_columns([("id", "party"), ("10", "anna")])
    ['id  party', '10  anna']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def numbers(value: float | Sequence[float], names: Sequence[str] = ()) -> str:
    """Return a number, or the first few of several, behind what they are called if they have names.

    >>> numbers(0.25), numbers([0.5] * 9), numbers([0.5, 2.0], ["age", "size"])
    ('0.25', '0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ... (9 numbers)', 'age 0.5, size 2')
    """
    values = [value] if isinstance(value, (int, float)) else value
    return _first_few([f"{number:.6g}" for number in values[:NUMBERS_SHOWN]], len(values), names, "numbers")


def intervals(low: float | Sequence[float], high: float | Sequence[float], names: Sequence[str] = ()) -> str:
    """Return an interval, or the first few of several, behind what they are called if they have names.

    >>> intervals(0.25, 0.5), intervals([0.0] * 9, [0.5] * 9)
    ('0.25 to 0.5', '0 to 0.5, 0 to 0.5, 0 to 0.5, ... (9 intervals)')
    """
    if isinstance(low, (int, float)) or isinstance(high, (int, float)):
        return _first_few([f"{low:.6g} to {high:.6g}"], 1, names, "intervals")
    ends = list(zip(low, high, strict=True))
    shown = [f"{lower:.6g} to {upper:.6g}" for lower, upper in ends[:INTERVALS_SHOWN]]
    return _first_few(shown, len(ends), names, "intervals")


def _first_few(shown: Sequence[str], count: int, names: Sequence[str], kind: str) -> str:
    texts = [f"{name} {text}" for name, text in zip(names, shown, strict=False)] if names else shown
    return ", ".join(texts) if len(shown) == count else f"{', '.join(texts)}, ... ({count:,} {kind})"
