"""What the reproductions of all figures have in common: jobs, tables, claims and pictures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from inca._base.plotting import look, rendered
from inca._base.types import Array
from inca.jobs.job import Job

Row = dict[str, Any]
"""One observation: parameters and results. Numbers, texts, and None where there is nothing."""


PerformJobs = Callable[[str, Sequence[Job]], list[Any]]
"""Performs jobs, under a heading for the progress bar, and returns their results in order."""


@dataclass(frozen=True)
class DataTable:
    """Tidy data: one row per observation. `shown` are the columns that a page shows, all if it is empty."""

    name: str
    caption: str
    rows: Sequence[Row]
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or a statement of ours, held against the data.

    `agrees` is None where so few runs leave it open; `evidence` is what the data show; `why` says why they differ from
    the sentence, and is dropped unless that is the verdict.

    Example:
        >>> Claim("One is less than two.", "Section 1", True, "it is", why="arithmetic").why
        ''
    """

    text: str
    source: str
    agrees: bool | None
    evidence: str
    why: str = ""

    def __post_init__(self) -> None:
        if self.agrees is not False:
            object.__setattr__(self, "why", "")

    @property
    def verdict(self) -> str:
        """The answer in a word."""
        return {True: "agrees", False: "differs", None: "open"}[self.agrees]


@dataclass(frozen=True)
class Picture:
    """A picture under a name, with a caption that says what is to be seen; `draw` returns a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any]

    def files(self) -> dict[str, bytes]:
        """Return the picture as the contents of a png and an svg file."""
        with look():
            figure = self.draw()
            return {kind: rendered(figure, kind) for kind in ("png", "svg")}


@dataclass(frozen=True)
class FigureResults:
    """Everything that the reproduction of a figure shows."""

    tables: Sequence[DataTable]
    claims: Sequence[Claim]
    pictures: Sequence[Picture]
    notes: Sequence[str] = ()
    """How what was done differs from the paper's description, and what that description leaves open."""
    supplement: Sequence[DataTable] = ()
    """Data that stand beside the figure, apart from its reproduction: no claim rests on them."""


class FigureReproduction(ABC):
    """A figure of the paper."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, seed: int = 0, quick: bool = False) -> None:
        self.seed, self.quick = seed, quick

    @property
    @abstractmethod
    def parameters(self) -> Row:
        """What is varied and how often it is run."""

    @abstractmethod
    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Do the work and return the data."""

    @abstractmethod
    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Return pictures of the data, and what they say about the paper's claims."""

    @property
    def supplement_parameters(self) -> Row:
        """What is varied in the supplement; nothing where there is none."""
        return {}

    def compute_supplement(self, perform: PerformJobs) -> list[DataTable]:
        """Return data of ours that stand beside the figure, apart from its reproduction; none by default."""
        return []

    def supplement_pictures(self, supplement: Sequence[DataTable]) -> list[Picture]:
        """Return pictures of these data."""
        return []

    def results(self, tables: Sequence[DataTable], supplement: Sequence[DataTable]) -> FigureResults:
        """Return everything that is shown: the figure evaluated, and its supplement, if there is one."""
        evaluated = self.evaluate(tables)
        if not supplement:
            return evaluated
        pictures = [*evaluated.pictures, *self.supplement_pictures(supplement)]
        return replace(evaluated, pictures=pictures, supplement=supplement)


def chunks(total: int, size: int) -> list[tuple[int, int]]:
    """Cut runs 0..total-1 into pieces (first, number). Pieces do not depend on who does them.

    Example:
        >>> chunks(5, 2)
        [(0, 2), (2, 2), (4, 1)]
    """
    return [(first, min(size, total - first)) for first in range(0, total, size)]


def pick(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that have these values.

    Example:
        >>> pick([{"k": 1, "x": 5}, {"k": 2, "x": 6}], k=2)
        [{'k': 2, 'x': 6}]
    """
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def column(rows: Iterable[Row], name: str) -> list[Any]:
    """Return one column of rows."""
    return [row[name] for row in rows]


def mean_and_error(samples: Array) -> tuple[float, float]:
    """Return the mean of samples and its standard error.

    Example:
        >>> import numpy as np
        >>> mean_and_error(np.array([1.0, 3.0]))
        (2.0, 1.0)
    """
    return float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(samples.size))


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: False if one does not, else None if one is open.

    Example:
        >>> all_of([True, None]), all_of([True, None, False])
        (None, False)
    """
    listed = list(answers)
    return False if False in listed else None if None in listed else True


def is_less(one: float, other: float, error: float = 0.0, sure: float = 3.0) -> bool | None:
    """Return whether one is less than the other, open if their distance is within so many standard errors.

    Example:
        >>> is_less(1.0, 2.0), is_less(1.0, 1.1, error=0.2), is_less(2.0, 1.0, error=0.1)
        (True, None, False)
    """
    if abs(one - other) <= sure * error:
        return None
    return one < other
