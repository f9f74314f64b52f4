"""Reading numbers from files: the parties' values, one row per party, and one party's own value.

What is in a file is private, so a refusal says where in it something is wrong, and never what it is.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import refuse
from inca.errors import InvalidInput


def read_values(path: Path, columns: Sequence[str] = ()) -> Array:
    """Read one row per party from CSV, Parquet (.parquet) or NumPy (.npy).

    Args:
        path: The file. A CSV file may have a header or not.
        columns: Names of the columns to take, of a file that has names; all of them if there are none.

    Returns:
        An (n,) array for one column, else (n, d).
    """
    if not path.is_file():
        refuse("VALUES", str(path), "an existing file")
    try:
        if path.suffix == ".npy":
            if columns:
                raise InvalidInput(f"--column cannot be combined with {path}: a NumPy file has no column names")
            return read_numpy(path)
        return _read_parquet(path, columns) if path.suffix == ".parquet" else _read_csv(path, columns)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} cannot be read: it is not text") from None
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None


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


def _read_parquet(path: Path, columns: Sequence[str]) -> Array:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InvalidInput(f"{path} is a Parquet file, which needs pyarrow: pip install 'inca[parquet]'") from None
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InvalidInput(f"{path} is not a Parquet file: {error}") from None
    names = _names_to_read(table.column_names, columns)
    arrays = [_parquet_column(path, table, name) for name in names]
    return _flat_if_one_column(np.column_stack(arrays) if arrays else np.empty((0, 0)))


def _parquet_column(path: Path, table: Any, name: str) -> Array:
    column = table.column(name)
    if column.null_count:
        raise InvalidInput(f"column {name!r} of {path} must hold numbers, got {column.null_count} empty cells")
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"column {name!r} of {path} must hold numbers, got the type {column.type}") from None


def _read_csv(path: Path, columns: Sequence[str]) -> Array:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [(line, row) for line, row in enumerate(csv.reader(file), start=1) if row]
    if not rows:
        raise InvalidInput(f"{path} must have one row per party, got an empty file")
    header: list[str] = []
    named = any(_number(cell) is None for cell in rows[0][1])
    if columns or named:
        header = [cell.strip() for cell in rows.pop(0)[1]]
    if not named and not set(columns) <= set(header):  # numbers: they are names only if they are asked for
        raise InvalidInput(f"--column must be a name in the first line of {path}, which has only numbers")
    width = len(header) if header else len(rows[0][1])
    places = [header.index(name) for name in _names_to_read(header, columns)] if header else list(range(width))
    table = np.empty((len(rows), len(places)))
    for party, (line, row) in enumerate(rows):
        if len(row) != width:
            raise InvalidInput(f"line {line} of {path} must have {width} cells, got {len(row)}")
        for column, place in enumerate(places):
            value = _number(row[place])
            if value is None:
                where = f"cell {place + 1} in line {line} of {path}"
                raise InvalidInput(f"{where} must be a number, got something that is not one")
            table[party, column] = value
    return _flat_if_one_column(table)


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


def _flat_if_one_column(table: Array) -> Array:
    return table[:, 0] if table.shape[1] == 1 else table
