"""Reading the parties' values from a file: one row per party."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import InputError


def load_values(path: Path, columns: Sequence[str] = ()) -> Array:
    """Read one row per party from CSV, Parquet (.parquet) or NumPy (.npy); (n,) for one column, else (n, d).

    `columns` picks columns by name, which NumPy files do not have. A CSV file may have a header or not.
    """
    if not path.is_file():
        raise InputError(f"VALUES is {str(path)!r}, but there is no such file")
    try:
        if path.suffix == ".npy":
            return _numpy(path, columns)
        return _parquet(path, columns) if path.suffix == ".parquet" else _csv(path, columns)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _numpy(path: Path, columns: Sequence[str]) -> Array:
    if columns:
        raise InputError(f"--column is {columns[0]!r}, but a NumPy file has no column names")
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a NumPy file of numbers: {error}") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        raise InputError(f"{path} is not a NumPy file of numbers, as was expected")
    return np.asarray(values, dtype=np.float64)


def _parquet(path: Path, columns: Sequence[str]) -> Array:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(f"{path} is a Parquet file, which needs pyarrow: pip install 'inca[parquet]'") from None
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from None
    chosen = _chosen(path, table.column_names, columns)
    picked = [_parquet_column(path, table, name) for name in chosen]
    return _shaped(np.column_stack(picked) if picked else np.empty((0, 0)))


def _parquet_column(path: Path, table: Any, name: str) -> Array:
    column = table.column(name)
    if column.null_count:
        raise InputError(f"column {name!r} of {path} has {column.null_count} empty cells, but numbers were expected")
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column {name!r} of {path} has type {column.type}, but numbers were expected") from None


def _csv(path: Path, columns: Sequence[str]) -> Array:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [(line, row) for line, row in enumerate(csv.reader(file), start=1) if row]
    if not rows:
        raise InputError(f"{path} is empty, but one row per party was expected")
    names: list[str] = []
    if columns or any(_number(cell) is None for cell in rows[0][1]):
        names = [cell.strip() for cell in rows.pop(0)[1]]
    width = len(names) if names else len(rows[0][1])
    places = [names.index(name) for name in _chosen(path, names, columns)] if names else list(range(width))
    table = np.empty((len(rows), len(places)))
    for party, (line, row) in enumerate(rows):
        if len(row) != width:
            raise InputError(f"line {line} of {path} has {len(row)} cells, but {width} were expected")
        for place, column in enumerate(places):
            value = _number(row[column])
            if value is None:
                raise InputError(
                    f"line {line} of {path} has {row[column]!r} in cell {column + 1}, but a number was expected"
                )
            table[party, place] = value
    return _shaped(table)


def _chosen(path: Path, names: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
    for name in columns:
        if name not in names:
            raise InputError(f"--column is {name!r}, but {path} has the columns {', '.join(names)}")
    return columns or names


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _shaped(table: Array) -> Array:
    return table[:, 0] if table.shape[1] == 1 else table
