"""What the parties hold: records from a public box, and what it means that two holdings differ in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca._base.validation import InputError, finite_array, positive, refuse, whole
from inca.learn.averagers.base import Elsewhere
from inca.protocol.domain import Interval

Level = Literal["record", "party"]
Box = Interval | Sequence[Interval] | tuple[ArrayLike, ArrayLike]
"""One interval for all columns, one for each column, or arrays of lower and upper ends."""

_ROWS = 2**16  # features of so many records are in memory at a time


@dataclass(frozen=True, eq=False)
class Records:
    """The records of n parties: one (m_i, p) table each, all rows in the box between `lower` and `upper`.

    How many records each party holds is public, as is the box. `level` says who is protected: at "record", two
    holdings are neighbours if one record of one party is replaced; at "party", if all records of one party are.
    A party may be empty. Of parties whose records are `Elsewhere` only the number of records is known.

    >>> records = Records.of([[1.0, 2.0], [4.0], []], Interval(0, 4))
    >>> records.parties, records.total, records.sizes.tolist(), records.columns
    (3, 3, [2, 1, 0], 1)
    >>> records.sensitivity(diameter=1.0)
    1.0
    >>> Records.of([[1.0, 2.0], [4.0], []], Interval(0, 4), level="party").sensitivity(diameter=1.0)
    2.0
    """

    tables: tuple[Array | Elsewhere, ...]
    lower: Array
    upper: Array
    level: Level = "record"
    scalar: bool = False
    """Whether records came as plain numbers, so that statistics of them are plain numbers, too."""

    @classmethod
    def of(
        cls,
        data: Sequence[ArrayLike | Elsewhere],
        domain: Box,
        *,
        level: Level = "record",
        cap: int | None = None,
        clip: bool = False,
    ) -> Records:
        """Check one array per party, (m_i,) or (m_i, p); records outside the box are refused, or moved in if `clip`.

        With a `cap`, only the first so many records of each party count. This bounds what a party with many records
        can change, and so the noise that protection of parties needs.

        >>> Records.of([[[1.0, 9.0]], [[2.0, 3.0], [0.0, 0.0]]], (([0, 0], [4, 5])), cap=1, clip=True).tables
        (array([[1., 5.]]), array([[2., 3.]]))
        """
        if level not in get_args(Level):
            raise refuse("level", level, f"one of {', '.join(get_args(Level))}")
        if len(data) == 0:
            raise InputError("data is empty, but one array of records per party was expected")
        most = None if cap is None else whole("cap", cap, least=1)
        checked = [_table(f"data[{party}]", held, most) for party, held in enumerate(data)]
        if not any(len(table) for table in checked):
            raise InputError("no party holds a record, but at least one record was expected")
        shapes = {table.shape[1:] for table in checked if not isinstance(table, Elsewhere) and len(table)}
        shapes = shapes or {_shape(domain)}  # this party has none, the others have
        if len(shapes) > 1:
            raise refuse("the shapes of records", sorted(shapes), "the same shape for all records")
        shape = shapes.pop()
        columns = shape[0] if shape else 1
        if columns == 0:
            raise InputError("records have no columns, but at least one was expected")
        lower, upper = _box(domain, columns)
        tables = tuple(
            table
            if isinstance(table, Elsewhere)
            else _inside(f"data[{party}]", table.reshape(len(table), columns), lower, upper, clip)
            for party, table in enumerate(checked)
        )
        return cls(tables, lower, upper, level, scalar=not shape)

    @property
    def parties(self) -> int:
        """The number of parties, empty ones included."""
        return len(self.tables)

    @property
    def columns(self) -> int:
        """The number p of columns."""
        return self.lower.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many records each party holds, (n,)."""
        return np.array([len(table) for table in self.tables], dtype=np.int64)

    @property
    def total(self) -> int:
        """How many records there are."""
        return sum(len(table) for table in self.tables)

    def everything(self) -> Array:
        """Return all records in one (N, p) table; it is what nobody in a protocol ever sees, and for checks only."""
        if len(self.held) < self.parties:
            raise InputError(f"the records of {self.parties - len(self.held)} parties are elsewhere")
        return np.concatenate([table for table in self.tables if not isinstance(table, Elsewhere)])

    @property
    def held(self) -> list[int]:
        """The parties whose records are here: all in a simulation, one on a network."""
        return [party for party, table in enumerate(self.tables) if not isinstance(table, Elsewhere)]

    def column(self, index: int) -> Records:
        """Return one column as plain numbers.

        >>> Records.of([[[1.0, 2.0]], [[0.0, 3.0]]], Interval(0, 4)).column(1).everything().ravel()
        array([2., 3.])
        """
        at = whole("index", index, 0, self.columns - 1)
        tables = tuple(
            table if isinstance(table, Elsewhere) else np.ascontiguousarray(table[:, at : at + 1])
            for table in self.tables
        )
        return Records(tables, self.lower[[at]], self.upper[[at]], self.level, scalar=True)

    def sums(self, features: Callable[[Array], Array], size: int) -> Array:
        """Return the sum of `size` features over the records of each party that is here; empty ones have zeros."""
        held = [table for table in self.tables if not isinstance(table, Elsewhere)]
        sums = np.zeros((len(held), size))
        table, owner = np.concatenate(held), np.repeat(np.arange(len(held)), [len(each) for each in held])
        for begin in range(0, len(table), _ROWS):
            owners = owner[begin : begin + _ROWS]  # sorted, so each owner's rows are together
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            sums[owners[starts]] += np.add.reduceat(features(table[begin : begin + _ROWS]), starts, axis=0)
        return sums

    def sensitivity(self, diameter: float) -> float:
        """Return how far a party's sum can move if any two records' features are at most `diameter` apart.

        One record moves it by the diameter; all m_i records of a party move it by m_i diameters at most.
        """
        moved = 1.0 if self.level == "record" else float(self.sizes.max())
        return moved * positive("diameter", diameter)


def _table(name: str, held: ArrayLike | Elsewhere, most: int | None) -> Array | Elsewhere:
    if isinstance(held, Elsewhere):
        return held if most is None else Elsewhere(min(held.count, most))
    return finite_array(name, held, (1, 2), "one number or one row of numbers per record")[:most]


def _shape(domain: Box) -> tuple[int, ...]:
    """Return the shape of a record as far as the box tells it."""
    if isinstance(domain, Interval):
        return ()
    return (len(domain),) if isinstance(domain[0], Interval) else np.shape(domain[0])


def _box(domain: Box, columns: int) -> tuple[Array, Array]:
    if isinstance(domain, Interval):
        return np.full(columns, domain.low), np.full(columns, domain.high)
    intervals = [column for column in domain if isinstance(column, Interval)]
    ends = [column for column in domain if not isinstance(column, Interval)]
    if intervals and not ends:
        lower, upper = np.array([each.low for each in intervals]), np.array([each.high for each in intervals])
    elif len(ends) == 2 and not intervals:
        lower, upper = (_end(name, end, columns) for name, end in zip(("lower", "upper"), ends, strict=True))
    else:
        raise refuse("domain", domain, "an interval, one for each column, or a pair of lower and upper ends")
    for name, end in (("lower", lower), ("upper", upper)):
        if end.shape != (columns,):
            raise refuse(f"the number of {name} ends of the domain", end.size, f"one for each of {columns} columns")
    if not (lower < upper).all():
        column = int(np.flatnonzero(lower >= upper)[0])
        raise refuse(f"upper[{column}]", float(upper[column]), f"a number above lower[{column}] ({lower[column]:g})")
    return lower, upper


def _end(name: str, end: ArrayLike, columns: int) -> Array:
    array = finite_array(name, end, (0, 1), "a number or one for each column")
    return np.full(columns, array.item()) if array.size == 1 else array


def _inside(name: str, table: Array, lower: Array, upper: Array, clip: bool) -> Array:
    if clip:
        return np.clip(table, lower, upper)
    outside = (table < lower) | (table > upper)
    if outside.any():
        row, column = (int(index) for index in np.argwhere(outside)[0])
        span = f"[{lower[column]:g}, {upper[column]:g}]"
        raise refuse(f"column {column} of {name}[{row}]", float(table[row, column]), f"a number in {span}")
    return table
