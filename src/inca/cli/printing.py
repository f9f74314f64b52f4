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

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in rows:
        table.add_row(f"[bold]{name}[/bold]", text)
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


def numbers(value: float | Sequence[float]) -> str:
    """Return a number, or the first few of several.

    >>> numbers(0.25), numbers([0.5] * 9)
    ('0.25', '0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ... (9 numbers)')
    """
    if isinstance(value, (int, float)):
        return f"{value:.6g}"
    shown = ", ".join(f"{number:.6g}" for number in value[:NUMBERS_SHOWN])
    return shown if len(value) <= NUMBERS_SHOWN else f"{shown}, ... ({len(value):,} numbers)"


def intervals(low: float | Sequence[float], high: float | Sequence[float]) -> str:
    """Return an interval, or the first few of several.

    >>> intervals(0.25, 0.5), intervals([0.0] * 9, [0.5] * 9)
    ('0.25 to 0.5', '0 to 0.5, 0 to 0.5, 0 to 0.5, ... (9 intervals)')
    """
    if isinstance(low, (int, float)) or isinstance(high, (int, float)):
        return f"{low:.6g} to {high:.6g}"
    ends = list(zip(low, high, strict=True))
    shown = ", ".join(f"{lower:.6g} to {upper:.6g}" for lower, upper in ends[:INTERVALS_SHOWN])
    return shown if len(ends) <= INTERVALS_SHOWN else f"{shown}, ... ({len(ends):,} intervals)"
