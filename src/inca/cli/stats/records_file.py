"""Reading records of several parties from one file, with a column that names the party.

What is in a file is private, so a refusal says where in it something is wrong, and never what it is.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inca._base.validation import refuse
from inca.cli.input_files import check_table_file, number_in, refuse_other_separators, width_refusal
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca._base.types import Array

_MIN_PARTIES = 2


def read_parties(path: Path, party: str, columns: Sequence[tuple[str, str]]) -> list[Array]:
    """Read the records of all parties."""
    check_table_file("RECORDS", path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} cannot be read: it is not text in UTF-8") from None
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not rows:
        raise InvalidInput(f"{path} must have the names of its columns in the first line, got an empty file")
    refuse_other_separators(path, rows[0][1])
    header = [cell.strip() for cell in rows.pop(0)[1]]
    if not rows:
        raise InvalidInput(f"{path} must have one row per record, got no row below the names of its columns")
    _check_columns(path, header, party, columns)
    return _tables(path, header, rows, party, [name for _, name in columns])


def _check_columns(path: Path, header: Sequence[str], party: str, columns: Sequence[tuple[str, str]]) -> None:
    for option, name in (("--party", party), *columns):
        # Names that would do are not listed: the first line of a file without names is a record.
        if name not in header:
            refuse(option, name, f"a name in the first line of {path}")
        if (count := header.count(name)) > 1:
            raise InvalidInput(f"column {name!r} must be in the first line of {path} once, got it {count} times")
    names = [name for _, name in columns]
    if party in names:
        refuse("--party", party, "another column than those of numbers")
    for name in names:
        if (count := names.count(name)) > 1:
            raise InvalidInput(f"column {name!r} must be asked for once, got it {count} times")


def _tables(
    path: Path, header: Sequence[str], rows: Sequence[tuple[int, list[str]]], party: str, columns: Sequence[str]
) -> list[Array]:
    import numpy as np

    holder, places = header.index(party), [header.index(name) for name in columns]
    tables: dict[str, list[list[float]]] = {}
    for line, row in rows:
        if len(row) != len(header):
            raise width_refusal(path, line, len(row), len(header))
        if not (name := row[holder].strip()):
            raise InvalidInput(f"column {party!r} in line {line} of {path} must name a party, got an empty cell")
        numbers = [_number(path, line, column, row[place]) for column, place in zip(columns, places, strict=True)]
        tables.setdefault(name, []).append(numbers)
    if len(tables) < _MIN_PARTIES:
        refuse(f"the number of parties in column {party!r} of {path}", len(tables), f"at least {_MIN_PARTIES}")
    return [np.array(table) for table in tables.values()]


def _number(path: Path, line: int, column: str, cell: str) -> float:
    where = f"column {column!r} in line {line} of {path}"
    number = number_in(cell, where)
    if not math.isfinite(number):
        raise InvalidInput(f"{where} must be a finite number, got one that is not")
    return number
