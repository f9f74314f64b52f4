"""What the parties hold: records from a public box, and what it means that two holdings differ in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.safe_numbers import safe_width
from inca._base.types import Array
from inca._base.validation import finite_array, instance, integer, listed, one_of, positive, refuse
from inca.errors import InvalidInput
from inca.learn.averagers.base import RemoteRecords
from inca.learn.budget import ProtectionLevel
from inca.protocol.domain import Interval

Box = Interval | Sequence[Interval] | tuple[ArrayLike, ArrayLike]
"""One interval for all columns, one for each column, or arrays of lower and upper ends."""

_BLOCK_ROWS = 2**16  # features of so many records are in memory at a time


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """The records of n parties: one (m_i, p) table each, all rows in the box between `lower` and `upper`.

    How many records each party holds is public, as is the box. A party may be empty. `Records.of` makes them from
    plain arrays.

    Attributes:
        tables: One table per party, or `RemoteRecords` where only the number of records is known.
        lower: The lower end of each column, (p,).
        upper: The upper end of each column, (p,).
        level: Who is protected: at "record", two holdings are neighbours if one record of one party is replaced; at
            "party", if all records of one party are.
        scalar: Whether records came as plain numbers, so that statistics of them are plain numbers, too.

    Example:
        >>> records = Records.of([[1.0, 2.0], [4.0], []], Interval(0, 4))
        >>> records
        Records(parties=3, records=3, columns=1, level='record')
        >>> records.sensitivity(diameter=1.0)
        1.0
        >>> Records.of([[1.0, 2.0], [4.0], []], Interval(0, 4), level="party").sensitivity(diameter=1.0)
        2.0
    """

    tables: tuple[Array | RemoteRecords, ...]
    lower: Array
    upper: Array
    level: ProtectionLevel = "record"
    scalar: bool = False

    @classmethod
    def of(
        cls,
        data: Sequence[ArrayLike | RemoteRecords],
        domain: Box,
        *,
        level: ProtectionLevel = "record",
        cap: int | None = None,
        clip: bool = True,
    ) -> Records:
        """Check one array of records per party.

        Whether there is a release should not depend on private records. So numbers outside the box are moved to its
        border, and this is neither told nor counted. Missing and infinite ones are refused: whatever stood for them
        would bias the statistic, so fill or drop them first.

        Args:
            data: One array per party, (m_i,) or (m_i, p), or `RemoteRecords`.
            domain: An interval for all columns, one for each, or a pair of lower and upper ends.
            level: Who is protected: "record" or "party".
            cap: Count only the first so many records of each party. This bounds what a party with many records can
                change, and so the noise that protection of parties needs.
            clip: Whether records outside the box are moved into it. Without, they are refused by row and column, which
                is for a party that looks through its own records before it takes part.

        Returns:
            The records.

        Raises:
            InvalidInput: If the arrays do not fit together, hold anything but finite numbers, or, without `clip`, a
                record is outside the box.

        Example:
            >>> Records.of([[[1.0, 9.0]], [[2.0, 3.0], [0.0, 0.0]]], (([0, 0], [4, 5])), cap=1).tables
            (array([[1., 5.]]), array([[2., 3.]]))
        """
        one_of("level", level, get_args(ProtectionLevel))
        instance("clip", clip, bool)
        held = listed("data", data, "one array of records per party")
        if not held:
            refuse("data", [], "one array of records per party, at least one")
        max_records = None if cap is None else integer("cap", cap, min=1)
        checked = [_table(f"data[{party}]", entry, max_records) for party, entry in enumerate(held)]
        _check_box(domain)
        if not any(len(table) for table in checked):
            refuse("the number of records of all parties", 0, "at least 1")
        shapes = {table.shape[1:] for table in checked if not isinstance(table, RemoteRecords) and len(table)}
        shapes = shapes or {_shape(domain)}  # this party has none, the others have
        if len(shapes) > 1:
            refuse("the shapes of records", sorted(shapes), "the same for all")
        shape = shapes.pop()
        columns = shape[0] if shape else 1
        if columns == 0:
            refuse("the number of columns", columns, "at least 1")
        lower, upper = _box(domain, columns)
        tables = tuple(
            table
            if isinstance(table, RemoteRecords)
            else _inside(f"data[{party}]", table.reshape(len(table), columns), lower, upper, clip)
            for party, table in enumerate(checked)
        )
        return cls(tables, lower, upper, level, scalar=not shape)

    def __repr__(self) -> str:
        return (
            f"Records(parties={self.parties}, records={self.total}, columns={self.columns}, level={str(self.level)!r})"
        )

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
        """The number of records of all parties."""
        return sum(len(table) for table in self.tables)

    def everything(self) -> Array:
        """Return all records in one (N, p) table; it is what nobody in a protocol ever sees, and for checks only."""
        if len(self.held) < self.parties:
            raise InvalidInput(
                f"the records of all {self.parties} parties must be here, got those of {len(self.held)} only"
            )
        return np.concatenate(self._local_tables())

    @property
    def held(self) -> list[int]:
        """The parties whose records are here: all in a simulation, one on a network."""
        return [party for party, table in enumerate(self.tables) if not isinstance(table, RemoteRecords)]

    def column(self, index: int) -> Records:
        """Return one column as plain numbers.

        Args:
            index: Which column, from 0.

        Returns:
            The same parties with this column only.

        Example:
            >>> Records.of([[[1.0, 2.0]], [[0.0, 3.0]]], Interval(0, 4)).column(1).everything().ravel()
            array([2., 3.])
        """
        at = integer("index", index, 0, self.columns - 1)
        tables = tuple(
            table if isinstance(table, RemoteRecords) else np.ascontiguousarray(table[:, at : at + 1])
            for table in self.tables
        )
        return Records(tables, self.lower[[at]], self.upper[[at]], self.level, scalar=True)

    def sums(self, features: Callable[[Array], Array], size: int) -> Array:
        """Return the sum of `size` features over the records of each party that is here; empty ones have zeros."""
        tables = self._local_tables()
        sums = np.zeros((len(tables), size))
        rows, owner = np.concatenate(tables), np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        for begin in range(0, len(rows), _BLOCK_ROWS):
            owners = owner[begin : begin + _BLOCK_ROWS]  # sorted, so each owner's rows are together
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            sums[owners[starts]] += np.add.reduceat(features(rows[begin : begin + _BLOCK_ROWS]), starts, axis=0)
        return sums

    def sensitivity(self, diameter: float) -> float:
        """Return how far a party's sum can move if any two records' features are at most `diameter` apart.

        One record moves it by the diameter; all m_i records of a party move it by m_i diameters at most.
        """
        changed = 1.0 if self.level == "record" else float(self.sizes.max())
        return changed * positive("diameter", diameter)

    def _local_tables(self) -> list[Array]:
        return [table for table in self.tables if not isinstance(table, RemoteRecords)]


def _table(name: str, entry: ArrayLike | RemoteRecords, max_records: int | None) -> Array | RemoteRecords:
    if isinstance(entry, RemoteRecords):
        return entry if max_records is None else RemoteRecords(min(entry.count, max_records))
    table = finite_array(name, entry, (1, 2), "one number or one row of numbers per record")
    return table[:max_records]


def _shape(domain: Box) -> tuple[int, ...]:
    """Return the shape of a record as far as the box tells it."""
    if isinstance(domain, Interval):
        return ()
    return (len(domain),) if isinstance(domain[0], Interval) else np.shape(domain[0])


def _check_box(domain: Box) -> None:
    """Refuse what is no box at all."""
    if not isinstance(domain, Interval) and not listed("domain", domain, "intervals, or of lower and upper ends"):
        refuse("domain", domain, "an interval, one for each column, or a pair of lower and upper ends")


def _box(domain: Box, columns: int) -> tuple[Array, Array]:
    lower, upper = _ends(domain, columns)
    for name, end in (("lower", lower), ("upper", upper)):
        if end.shape != (columns,):
            refuse(f"the number of {name} ends of the domain", end.size, f"{columns}, one for each column")
    if not (lower < upper).all():
        column = int(np.flatnonzero(lower >= upper)[0])
        refuse(f"upper[{column}]", float(upper[column]), f"above lower[{column}] ({lower[column]:g})")
    for column, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
        safe_width(f"the width of column {column} of the domain", low, high)
    return lower, upper


def _ends(domain: Box, columns: int) -> tuple[Array, Array]:
    """Return both ends of each column as the domain has them."""
    if isinstance(domain, Interval):
        return np.full(columns, domain.low), np.full(columns, domain.high)
    intervals = [column for column in domain if isinstance(column, Interval)]
    ends = [column for column in domain if not isinstance(column, Interval)]
    if intervals and not ends:
        lower = np.array([interval.low for interval in intervals])
        upper = np.array([interval.high for interval in intervals])
    elif len(ends) == 2 and not intervals:
        lower, upper = (_end(name, end, columns) for name, end in zip(("lower", "upper"), ends, strict=True))
    else:
        refuse("domain", domain, "an interval, one for each column, or a pair of lower and upper ends")
    return lower, upper


def _end(name: str, end: ArrayLike, columns: int) -> Array:
    array = finite_array(name, end, (0, 1), "a number or one for each column")
    return np.full(columns, array.item()) if array.size == 1 else array


def _inside(name: str, table: Array, lower: Array, upper: Array, clip: bool) -> Array:
    if clip:
        return np.clip(table, lower, upper)
    outside = ~((table >= lower) & (table <= upper))
    if outside.any():
        row, column = (int(index) for index in np.argwhere(outside)[0])
        span = f"from {lower[column]:g} to {upper[column]:g}"
        raise InvalidInput(f"column {column} of {name}[{row}] must be {span}, got something else")
    return table
