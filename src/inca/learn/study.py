"""A study that parties agree on in a file: what is to be learned from their records, and with which loss in all.

Together with a roster it says everything that a party needs to know beside its own records, and all of it is public.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from inca._base.safe_numbers import safe_length, safe_width
from inca._base.types import Array
from inca._base.validation import between_0_and_1, file_path, finite_float, instance, integer, one_of, positive, refuse
from inca.errors import InvalidInput
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.distribution import QUANTILE_POINTS, even_grid
from inca.learn.statistics.moments import MAX_BINS, equal_bins, increasing
from inca.network.membership.roster import Roster

FORMAT = "inca-study/1"
StudyTask = Literal["moments", "histogram", "quantiles", "regression", "logistic"]
_ROUNDING_SLACK = 1e-9  # relative; 6 times 1e-5 / 6 may be above 1e-5


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be learned, from what, and how private.

    Attributes:
        name: What people call it.
        task: "moments" of all columns; "histogram" or "quantiles" of a single one; "regression", a line for one of
            several; "logistic", a classifier.
        columns: The numbers of a record, with their lower and upper bounds.
        records: How many records each party of the roster holds.
        epsilon: The epsilon of all sessions together.
        delta: The delta of all sessions together, the same as the roster's.
        level: What is protected: a record, or a party with all its records.
        target: For "regression" one of the columns, for "logistic" a further one with classes.
        classes: The classes of the target, for "logistic".
        steps: The number of sessions of "logistic".
        rate: The learning rate of "logistic".
        momentum: How much of the last step is kept by "logistic".
        clip: The length that gradients are scaled down to by "logistic".
        ridge: The ridge of "regression".
        interval: Seconds between the starts of two sessions, see `inca.network.sequence.session_sequence`.
        gathering: Seconds for catching up before a session, and again for gathering.
        bins: The bins of "histogram", over the bounds of its column: how many equal ones, or the edges of all.
        quantiles: The shares of the records up to each quantile, for "quantiles"; all are read off one average.
        points: Between how many points "quantiles" are told apart, 127 if it is left out.
        format: "inca-study/1".

    Raises:
        InvalidInput: If the fields do not fit together.
    """

    name: str
    task: StudyTask
    columns: dict[str, tuple[float, float]]
    records: dict[str, int]
    epsilon: float
    delta: float
    level: ProtectionLevel = "record"
    target: str | None = None
    classes: list[str] = []
    steps: int = 10
    rate: float = 1.0
    momentum: float = 0.5
    clip: float = 1.0
    ridge: float = 0.0
    interval: float | None = None
    gathering: float | None = None
    format: str = FORMAT
    # Left out of files where they are not set, as tasks that do not have them refuse them.
    bins: int | list[float] | UnsetType = UNSET
    quantiles: list[float] | UnsetType = UNSET
    points: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        one_of("task", self.task, get_args(StudyTask))
        for name, field in (("columns", self.columns), ("records", self.records)):
            instance(name, field, dict, "a mapping by name")
        if self.format != FORMAT:
            refuse("format", self.format, FORMAT)
        if not self.columns:
            refuse("the number of columns", 0, "at least 1")
        for name, (low, high) in self.columns.items():
            if not finite_float(f"the lower bound of {name}", low) < finite_float(f"the upper bound of {name}", high):
                refuse(f"the upper bound of {name}", high, f"above {low:g}")
            safe_width(f"the width of {name}", low, high)
        for name, count in self.records.items():
            integer(f"the number of records of {name}", count, min=1 if self.task == "logistic" else 0)
        Budget(self.epsilon, self.delta)
        integer("steps", self.steps, min=1)
        positive("rate", self.rate)
        safe_length("clip", self.clip)
        finite_float("momentum", self.momentum, 0.0, 1.0)
        finite_float("ridge", self.ridge, min=0.0)
        self._check_target()
        self._check_distribution()

    def _check_target(self) -> None:
        if self.task in ("moments", "histogram", "quantiles") and self.target is not None:
            refuse("target", self.target, f"None for the task {self.task}")
        if self.task == "regression" and (self.target not in self.columns or len(self.columns) < 2):
            refuse("target", self.target, "one of at least two columns")
        if self.task == "logistic":
            if self.target is None or self.target in self.columns:
                refuse("target", self.target, "a column with classes, beside the columns of numbers")
            if len(set(self.classes)) < max(2, len(self.classes)):
                refuse("classes", self.classes, "at least two different ones")

    def _check_distribution(self) -> None:
        """Check what only a histogram or quantiles have, which anything else must leave out."""
        for name, task in (("bins", "histogram"), ("quantiles", "quantiles"), ("points", "quantiles")):
            if self.task != task and getattr(self, name) is not UNSET:
                refuse(name, getattr(self, name), f"left out for the task {self.task}")
        if self.task not in ("histogram", "quantiles"):
            return
        if len(self.columns) != 1:
            refuse("the number of columns", len(self.columns), f"1 for the task {self.task}")
        if self.task == "histogram":
            self.histogram_edges()
        else:
            self.quantile_shares()
            even_grid(*self._only_bounds, self.grid_points)

    @property
    def _only_bounds(self) -> tuple[float, float]:
        """The bounds of a single column."""
        ((low, high),) = self.columns.values()
        return low, high

    def histogram_edges(self) -> Array:
        """Return the edges of a histogram's bins.

        Raises:
            InvalidInput: If there are none, or no histogram can be made with them.
        """
        if self.bins is UNSET:
            raise InvalidInput("bins must be said for the task histogram, how many or their edges, got nothing")
        low, high = self._only_bounds
        if isinstance(self.bins, int):
            return equal_bins("bins", self.bins, low, high)
        edges = increasing("edges in bins", self.bins, min_size=3)
        if edges.size - 1 > MAX_BINS:
            refuse("the number of edges in bins", edges.size, f"at most {MAX_BINS + 1}")
        for edge in (float(edges[0]), float(edges[-1])):
            finite_float("an edge in bins", edge, low, high)
        return edges

    def quantile_shares(self) -> list[float]:
        """Return the shares of the records up to each quantile.

        Raises:
            InvalidInput: If there are none, or no quantile has such a share.
        """
        if self.quantiles is UNSET or not self.quantiles:
            raise InvalidInput("quantiles must be said for the task quantiles, at least one, got nothing")
        shares = [between_0_and_1("a quantile", share) for share in self.quantiles]
        if len(set(shares)) < len(shares):
            refuse("quantiles", self.quantiles, "different ones")
        return shares

    @property
    def grid_points(self) -> int:
        """Between how many points quantiles are told apart."""
        return QUANTILE_POINTS if self.points is UNSET else self.points

    @property
    def sessions(self) -> int:
        """The number of averages that it takes."""
        return self.steps if self.task == "logistic" else 1

    def failure_probability(self, roster: Roster) -> float | None:
        """Return how likely the roster's plan fails in any session; it adds to delta. None: the roster does not say.

        Args:
            roster: Who takes part, and on which terms.

        Raises:
            InvalidInput: If it is more than delta.
        """
        if (failure := roster.terms.failure) is None:
            return None
        if self.sessions * failure > self.delta * (1.0 + _ROUNDING_SLACK):
            most = f"at most {self.delta / self.sessions:g}, delta over {self.sessions} sessions"
            refuse("the roster's probability of failure", failure, most)
        return self.sessions * failure

    @property
    def inputs(self) -> list[str]:
        """The columns of numbers, a regression's target last."""
        return sorted(self.columns, key=lambda name: name == self.target)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The lower and upper bounds of these columns."""
        lower, upper = np.array([self.columns[name] for name in self.inputs], dtype=np.float64).T
        return lower, upper

    def sizes(self, roster: Roster) -> list[int]:
        """Return how many records the roster's parties hold, in its order; refuse a roster that does not belong to it.

        Args:
            roster: Who takes part.

        Returns:
            One number for each party.

        Raises:
            InvalidInput: If the roster names other parties, or has another delta or rule: what a party has lost is
                told at the roster's, and would stand beside the study's.
        """
        if (roster.terms.delta, roster.terms.rule) != (self.delta, "analytic"):
            theirs = f"{roster.terms.delta:g} by the {roster.terms.rule} rule"
            refuse("the roster's delta", theirs, f"{self.delta:g} by the analytic rule, as in the study")
        self.failure_probability(roster)
        if set(self.records) != set(roster.names):
            name = min(set(self.records) ^ set(roster.names))
            where = "study" if name in self.records else "roster"
            raise InvalidInput(f"study and roster must name the same parties, got {name!r} in the {where} only")
        return [self.records[name] for name in roster.names]

    def agreement(self, roster: Roster) -> Roster:
        """Return the roster under a name that tells the study, so that parties with different ones never meet."""
        text = json.dumps(msgspec.to_builtins(self), separators=(",", ":"), allow_nan=False)
        name = hashlib.sha256(roster.session + text.encode()).hexdigest()[:48]
        return replace(roster, name=name)


def read_study(path: str | Path) -> Study:
    """Read an `inca-study/1` file.

    Args:
        path: Where it is.

    Returns:
        The study.

    Raises:
        InvalidInput: If the file cannot be read, or is not a study that makes sense.
    """
    file_path("path", path)
    try:
        fields = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        if fields.get("format") != FORMAT:
            refuse("format", fields.get("format"), FORMAT)
        return msgspec.convert(fields, Study)
    except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a valid {FORMAT} file: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def read_records(path: str | Path, study: Study, *, clip: bool = False) -> tuple[Array, list[str]]:
    """Read a party's records from CSV with a header; columns that the study does not name are left alone.

    What is refused is told by its line and column, never by what is in it: errors end up in the logs of machines.

    Args:
        path: Where the file is.
        study: What it is read for.
        clip: Move numbers outside their bounds to them, instead of refusing them.

    Returns:
        The study's columns in its order, and the classes if it has any.

    Raises:
        InvalidInput: If the file cannot be read, or is not as the study says.
    """
    names = study.inputs + ([study.target] if study.task == "logistic" and study.target else [])
    try:
        with file_path("path", path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a CSV file in UTF-8"
        raise InvalidInput(f"{path} cannot be read: {reason}") from None
    header = [name.strip() for name in rows[0]] if rows else []
    for name in names:
        if header.count(name) != 1:
            raise InvalidInput(f"{path} must have one column named {name!r}, got {header.count(name)}")
    lower, upper = study.bounds
    table: list[list[float]] = []
    labels: list[str] = []
    for line, row in enumerate(rows[1:], start=2):
        where = f"line {line} of {path}"
        if not row:  # an empty line, as at the end of some files
            continue
        if len(row) != len(header):
            raise InvalidInput(f"{where} must have {len(header)} cells, as its header, got {len(row)}")
        cells = [row[header.index(name)].strip() for name in names]
        numbers = [_number(cell) for cell in cells[: len(study.inputs)]]
        for name, number, low, high in zip(study.inputs, numbers, lower, upper, strict=True):
            if not (low <= number <= high or (clip and not math.isnan(number))):
                raise InvalidInput(f"{name} in {where} must be from {low:g} to {high:g}, got something else")
        table.append(numbers)
        labels += cells[len(study.inputs) :]
        if labels and labels[-1] not in study.classes:
            raise InvalidInput(f"{study.target} in {where} must be one of the study's classes, got something else")
    return np.clip(np.reshape(table, (-1, len(study.inputs))), lower, upper), labels


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
