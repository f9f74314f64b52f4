"""Printing results, for people and for programs."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inca._base.files import check_writable, null_for_infinity
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca.reporting.parts import Content


def print_json(document: Any) -> None:
    """Print a document as one line of JSON, with null for numbers that JSON does not know."""
    print(json.dumps(null_for_infinity(document), allow_nan=False), flush=True)


def print_content(content: Content, *, details: bool = False, titled: bool = True) -> None:
    """Print what is to be said of a document, in lines as long as the terminal is wide."""
    from inca.reporting.terminal import text

    print(text(content, terminal_width() or 100, details=details, titled=titled))


def print_lines(lines: Sequence[tuple[str, str]]) -> None:
    """Print names and what belongs to them, aligned with the lines of a content."""
    from inca.reporting.terminal import entry

    for name, value in lines:
        print(entry(name, value, terminal_width() or 100))


def print_text(text: str) -> None:
    """Print lines of text, wrapped between words to the width of the terminal; elsewhere they stay as they are."""
    if (width := terminal_width()) is not None:
        text = wrapped(text, width)
    print(text, flush=True)


def terminal_width() -> int | None:
    """Return how many columns the terminal has that the output goes to; None if it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_error(sentence: str) -> None:
    """Print a sentence on stderr: on a terminal wrapped between words, elsewhere on one line."""
    if sys.stderr.isatty():
        sentence = wrapped(sentence, shutil.get_terminal_size().columns)
    print(sentence, file=sys.stderr)


def print_next(command: str) -> None:
    """Say on a terminal what to do next; programs and files that read the output do without."""
    if sys.stdout.isatty():
        print_text(f"Next: {command}")


def wrapped(text: str, width: int) -> str:
    """Return lines of text wrapped between words; what goes on stands under what it belongs to.

    >>> print(wrapped("  noise      sigma_independent 1.5, sigma_cancelling 20", 40))
      noise      sigma_independent 1.5,
                 sigma_cancelling 20
    """
    lines = []
    for line in text.splitlines():
        name = re.match(r" *(?:\S+(?: \S+)* {2,})?", line)
        indent = len(name[0]) if name is not None and len(name[0]) < width // 2 else 0
        wrapper = textwrap.TextWrapper(width, subsequent_indent=" " * (indent or 4), break_long_words=False)
        wrapper.break_on_hyphens = False
        lines.append(wrapper.fill(line))
    return "\n".join(lines)


class OutputFiles:
    """The files that a verb writes beside what it prints: checked before the work, and written after it.

    Should writing fail after all, the result is printed all the same, and the refusal comes last.
    """

    def __init__(self, **paths: Path | None) -> None:
        self.paths = {name: path for name, path in paths.items() if path is not None}
        """Those that were asked for."""
        self._failure: InvalidInput | None = None
        self._written: dict[str, Path] = {}
        places: dict[Path, str] = {}
        for name, path in self.paths.items():
            if (other := places.setdefault(path.resolve(), name)) != name:
                raise InvalidInput(f"the {other} and the {name} must be two files, got {path} for both")
        for name in {"plot", "picture"} & self.paths.keys():
            from inca.cli.plots import check_plot

            check_plot(self.paths[name], f"--{name}")
        check_writable(*self.paths.values())

    def write(self, name: str, produce: Callable[[Path], object]) -> None:
        """Write a file if it was asked for; a failure is kept until `finish`."""
        if name not in self.paths:
            return
        try:
            produce(self.paths[name])
        except InvalidInput as error:
            self._failure = self._failure or error
        else:
            self._written[name] = self.paths[name]

    def finish(self, *, announce: bool) -> None:
        """After the result was printed: say where the files are, and refuse what could not be written."""
        if announce:
            for name, path in self._written.items():
                print_text(f"The {name} is in {path}.")
        if self._failure is not None:
            raise self._failure


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns.

    >>> in_columns([("id", "party"), ("10", "anna")])
    ['id  party', '10  anna']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_table(heading: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print names and, right-aligned, their cells; columns that do not fit on a line go into a table below."""
    for line in tables(heading, columns, rows, shutil.get_terminal_size().columns):
        print(line, flush=True)


def tables(heading: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int) -> list[str]:
    """Return the lines of `print_table`.

    >>> tables("at dropout", ["0.1", "0.2"], [("inca", ["1.5", "2.25"])], 22)
    ['at dropout  0.1   0.2', 'inca        1.5  2.25']
    >>> tables("at dropout", ["0.1", "0.2"], [("inca", ["1.5", "2.25"])], 20)
    ['at dropout  0.1', 'inca        1.5', '', 'at dropout   0.2', 'inca        2.25']
    """
    names = [heading, *(name for name, _ in rows)]
    cells = [[column, *texts] for column, *texts in zip(columns, *(row for _, row in rows), strict=True)]
    widest = max(map(len, names))
    groups: list[list[list[str]]] = []
    left = -1
    for column in cells:
        needed = 2 + max(map(len, column))
        if needed > left:  # a table has one column at least, however long its cells are
            groups.append([])
            left = width - widest
        groups[-1].append(column)
        left -= needed
    lines: list[str] = []
    for group in groups:
        lines += [""] * bool(lines)
        aligned = [[text.rjust(max(map(len, column))) for text in column] for column in group]
        lines += [
            "  ".join([name.ljust(widest), *texts]).rstrip() for name, *texts in zip(names, *aligned, strict=True)
        ]
    return lines
