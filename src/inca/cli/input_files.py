"""Reading numbers from files: the parties' values, one row per party, and one party's own value.

What is in a file is private, so a refusal says where in it something is wrong, and never what it is.
"""

from __future__ import annotations

import csv
import re
import shlex
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.extras import importing
from inca._base.types import Array
from inca._base.validation import refuse
from inca.errors import InvalidInput

MOST_BYTES = 1 << 30
"""The largest file of values that is read: 1 GiB, as all parties are simulated in the memory of one machine."""

FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive, as Excel workbooks (.xlsx) are"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, as Excel workbooks (.xls) are"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xff\xfe", "a file that is not text in UTF-8 but in UTF-16"),
    (b"\xfe\xff", "a file that is not text in UTF-8 but in UTF-16"),
)
"""First bytes of files that are often at hand instead of a table, and what such a file is."""

_SUFFIXES = {".parquet": (b"PAR1", "Parquet (.parquet)"), ".npy": (b"\x93NUMPY", "NumPy (.npy)")}
_COUNTED_FROM = 3  # two rows count up by chance
_ID_NAME = re.compile(r"|id|.*[ _-]id|index|row|nr|no|#", re.IGNORECASE)
_COMMA_DECIMAL = re.compile(r"\s*[+-]?\d+,\d+\s*")


@dataclass(frozen=True)
class ValueTable:
    """The parties' values, one row per party."""

    values: Array
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ValueTable(shape={self.values.shape}, names={self.names})"


def read_values(path: Path, columns: Sequence[str] = ()) -> ValueTable:
    """Read one row per party from CSV, Parquet (.parquet) or NumPy (.npy).

    A column that numbers the rows is refused unless it is asked for by name: its mean says nothing, and costs privacy.
    """
    check_table_file("VALUES", path, *_SUFFIXES)
    try:
        if path.suffix == ".npy":
            if columns:
                raise InvalidInput(f"--column cannot be combined with {path}: a NumPy file has no column names")
            values = read_numpy(path)
            _refuse_ids(path, (), values[:, np.newaxis] if values.ndim == 1 else values)
            return ValueTable(values)
        names, table = _read_parquet(path, columns) if path.suffix == ".parquet" else _read_csv(path, columns)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} cannot be read: it is not text in UTF-8") from None
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not columns:
        _refuse_ids(path, names, table)
    return ValueTable(table[:, 0] if table.shape[1] == 1 else table, tuple(names))


def read_numpy(path: Path) -> Array:
    """Read an array of numbers from a .npy file."""
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"{path} is not a NumPy file of numbers: {error}") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        kind = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else "an archive"
        raise InvalidInput(f"{path} is not a NumPy file of numbers: it holds {kind}")
    return np.asarray(values, dtype=np.float64)


def check_table_file(argument: str, path: Path, *suffixes: str) -> None:
    """Refuse what is no file, too large, or known by its first bytes to be no table."""
    if path.is_dir():
        raise InvalidInput(f"{argument} must be a file, got the folder {path}")
    if not path.is_file():
        refuse(argument, str(path), "an existing file")
    if (size := path.stat().st_size) > MOST_BYTES:
        raise InvalidInput(f"{path} must have at most {MOST_BYTES >> 30} GiB, got {size / 2**30:.1f} GiB")
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    others = [(first, kind) for suffix, (first, kind) in _SUFFIXES.items() if suffix not in suffixes]
    for first, kind in [*FOREIGN, *others]:
        if start.startswith(first):
            taken = ", ".join(["CSV", *(_SUFFIXES[suffix][1] for suffix in suffixes)])
            raise InvalidInput(f"{path} must be {' or '.join(taken.rsplit(', ', 1))}, got {kind}")
    for suffix in suffixes:
        if start.startswith(_SUFFIXES[suffix][0]) and path.suffix != suffix:
            raise InvalidInput(f"{path} must have a name that ends in {suffix}, as its contents do not look like CSV")


def _refuse_ids(path: Path, names: Sequence[str], table: Array) -> None:
    """Refuse a column that is called an id, or that numbers the rows."""
    if table.ndim != 2:
        return  # no table, which is refused elsewhere
    for place in range(table.shape[1]):
        column = table[:, place]
        counts = len(column) >= _COUNTED_FROM and column[0] in (0.0, 1.0) and bool((np.diff(column) == 1.0).all())
        if names and (counts or _ID_NAME.fullmatch(names[place])):
            way_out = (
                f"name the columns to take with --column, of {', '.join(names)}"
                if len(names) > 1
                else f"if it is what you mean, say --column {shlex.quote(names[place])}"
            )
            raise InvalidInput(f"column {names[place]!r} of {path} looks like ids, which are not averaged: {way_out}")
        if counts:
            raise InvalidInput(
                f"column {place + 1} of {path} numbers the rows, and ids are not averaged: remove it, or, if it is "
                "what you mean, give names in the first line of a CSV file and say with --column which to take"
            )


def _read_parquet(path: Path, columns: Sequence[str]) -> tuple[Sequence[str], Array]:
    with importing(f"{path} is a Parquet file, which", extra="parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InvalidInput(f"{path} is not a Parquet file: {error}") from None
    names = _names_to_read(table.column_names, columns)
    arrays = [_parquet_column(path, table, name) for name in names]
    return names, np.column_stack(arrays) if arrays else np.empty((0, 0))


def _parquet_column(path: Path, table: Any, name: str) -> Array:
    column = table.column(name)
    where = f"column {name!r} of {path} must hold numbers"
    if column.null_count:
        raise InvalidInput(f"{where}, got {column.null_count} empty cells{_advice(table.column_names)}")
    try:
        numbers = column.to_numpy()
        if numbers.dtype.kind in "bmM":  # NumPy would count booleans and dates
            raise TypeError
        return np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}, got the type {column.type}{_advice(table.column_names)}") from None


def _read_csv(path: Path, columns: Sequence[str]) -> tuple[Sequence[str], Array]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = ((line, row) for line, row in enumerate(csv.reader(file), start=1) if row)
        first = next(rows, None)
        if first is None:
            raise InvalidInput(f"{path} must have one row per party, got an empty file")
        refuse_other_separators(path, first[1])
        header = _header(path, first[1], columns)
        width = len(first[1])
        places = [header.index(name) for name in _names_to_read(header, columns)] if header else list(range(width))
        cells = array("d")  # numbers only: text of a large file would need many times its size
        if not header:
            _append_row(path, cells, first, width, places, header)
        for numbered in rows:
            _append_row(path, cells, numbered, width, places, header)
    names = [header[place] for place in places] if header else []
    return names, np.array(cells, dtype=np.float64).reshape(-1, len(places))


def refuse_other_separators(path: Path, row: Sequence[str]) -> None:
    """Refuse a file whose first line has no commas between cells but semicolons or tabs."""
    for separator, plural in ((";", "semicolons"), ("\t", "tabs")):
        if any(separator in cell for cell in row):
            raise InvalidInput(
                f"{path} must have commas between cells and points in decimals, as in 3.14, got {plural} between cells"
            )


def _header(path: Path, row: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the names in the first line, if it has some."""
    texts = sum(_number(cell) is None for cell in row)
    names = [cell.strip() for cell in row]
    if set(columns) <= set(names) and (columns or texts == len(row)):
        return names
    if columns and texts == 0:  # numbers: they are names only if they are asked for
        raise InvalidInput(f"--column must be a name in the first line of {path}, which has only numbers")
    if 0 < texts < len(row):  # it may be a party's, so nothing of it is shown
        raise InvalidInput(
            f"the first line of {path} must be names or numbers, got both: add a line of names, and say with --column "
            "which to take"
        )
    return names if texts else []


def _append_row(
    path: Path,
    cells: array[float],
    numbered: tuple[int, Sequence[str]],
    width: int,
    places: Sequence[int],
    header: Sequence[str],
) -> None:
    line, row = numbered
    if len(row) != width:
        raise width_refusal(path, line, len(row), width)
    for place in places:
        cells.append(number_in(row[place], f"cell {place + 1} in line {line} of {path}", _advice(header)))


def number_in(cell: str, where: str, advice: str = "") -> float:
    """Return the number in a cell."""
    if (value := _number(cell)) is not None:
        return value
    if not cell.strip():
        raise InvalidInput(f"{where} must be a number, got an empty cell{advice}")
    if _COMMA_DECIMAL.fullmatch(cell):
        raise InvalidInput(f"{where} must be a number with a point, as in 3.14, got one with a comma")
    raise InvalidInput(f"{where} must be a number, got something that is not one{advice}")


def width_refusal(path: Path, line: int, got: int, width: int) -> InvalidInput:
    """Return the refusal of a line with another number of cells than the first."""
    advice = "; decimals have a point, as in 3.14" if got > width else ""
    return InvalidInput(f"line {line} of {path} must have {width} cells, got {got}{advice}")


def _advice(names: Sequence[str]) -> str:
    """Return how to leave out a column, where there are several."""
    return f"; --column takes some columns only, of {', '.join(names)}" if len(names) > 1 else ""


def _names_to_read(names: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
    for column in columns:
        if column not in names:
            refuse("--column", column, f"one of {', '.join(names)}")
    return columns or names


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
