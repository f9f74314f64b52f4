"""A study that parties agree on in a file: what is to be learned from their records, and with which loss in all.

Together with a roster it says everything that a party needs to know beside its own records, and all of it is public.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from inca._base.types import Array
from inca._base.validation import InputError, positive, real, refuse, whole
from inca.learn.averagers.network import Sessions
from inca.learn.budget import Budget
from inca.learn.statistics.estimates import Answer
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression
from inca.learn.training.models import LogisticModel
from inca.learn.training.train import Clipping, Descent, train
from inca.network.membership.roster import Roster

FORMAT, ANSWER = "inca-study/1", "inca-answer/1"
Task = Literal["moments", "regression", "logistic"]
Answers = dict[str, Any]


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be learned, from what, and how private.

    `columns` are the numbers of a record with their bounds; `records` says how many records each party of the roster
    holds. (`epsilon`, `delta`) is for all sessions together and protects a record, or a party with all its records
    (`level`). Tasks: "moments" of all columns; "regression", a line for the column `target` with a `ridge`; "logistic",
    where `target` is a further column with one of `classes` (text), in `steps` sessions at a `rate` with gradients cut
    to `clip`. `interval` and `gathering` are seconds, as in `inca.network.sequence.session_sequence`.
    """

    name: str
    task: Task
    columns: dict[str, tuple[float, float]]
    records: dict[str, int]
    epsilon: float
    delta: float
    level: Literal["record", "party"] = "record"
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

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.format != FORMAT:
            raise refuse("format", self.format, FORMAT)
        if not self.columns:
            raise InputError("columns is empty, but at least one column with its bounds was expected")
        for name, (low, high) in self.columns.items():
            if not real(f"the lower bound of {name}", low) < real(f"the upper bound of {name}", high):
                raise refuse(f"the upper bound of {name}", high, f"a number above {low:g}")
        for name, count in self.records.items():
            whole(f"the records of {name}", count, least=1 if self.task == "logistic" else 0)
        Budget(self.epsilon, self.delta)
        whole("steps", self.steps, least=1)
        for name in ("rate", "clip"):
            positive(name, getattr(self, name))
        real("momentum", self.momentum, 0.0, 1.0)
        real("ridge", self.ridge, least=0.0)
        self._check_target()

    def _check_target(self) -> None:
        if self.task == "moments" and self.target is not None:
            raise refuse("target", self.target, "none for the task moments,")
        if self.task == "regression" and (self.target not in self.columns or len(self.columns) < 2):
            raise refuse("target", self.target, "one of at least two columns")
        if self.task == "logistic":
            if self.target is None or self.target in self.columns:
                raise refuse("target", self.target, "a column with classes, beside the others")
            if len(set(self.classes)) < max(2, len(self.classes)):
                raise refuse("classes", self.classes, "at least two, all different")

    @property
    def sessions(self) -> int:
        """How many averages it takes."""
        return self.steps if self.task == "logistic" else 1

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
        """Return how many records the roster's parties hold, in its order."""
        if set(self.records) != set(roster.names):
            odd = sorted(set(self.records) ^ set(roster.names))[0]
            where = "the study" if odd in self.records else "the roster"
            raise refuse(f"a party of {where}", odd, "the same names in study and roster")
        return [self.records[name] for name in roster.names]

    def agreement(self, roster: Roster) -> Roster:
        """Return the roster under a name that tells the study, so that parties with different ones never meet."""
        text = json.dumps(msgspec.to_builtins(self), separators=(",", ":"), allow_nan=False)
        name = hashlib.sha256(roster.session + text.encode()).hexdigest()[:48]
        return Roster(name, roster.terms, roster.parties)


def read_study(path: str | Path) -> Study:
    """Read an `inca-study/1` file."""
    try:
        fields = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        if fields.get("format") != FORMAT:
            raise refuse("format", fields.get("format"), FORMAT)
        return msgspec.convert(fields, Study)
    except (msgspec.MsgspecError, InputError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a valid {FORMAT} file: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def read_records(path: str | Path, study: Study, *, clip: bool = False) -> tuple[Array, list[str]]:
    """Read a party's records from CSV with a header: the study's columns in its order, and the classes if it has any.

    Other columns are left alone. Numbers outside their bounds are refused, or moved to them if `clip`. What is refused
    is told by its line and column, never by what is in it: errors end up in the logs of machines.
    """
    wanted = study.inputs + ([study.target] if study.task == "logistic" and study.target else [])
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a CSV file in UTF-8"
        raise InputError(f"{path} cannot be read: {reason}") from None
    header = [name.strip() for name in rows[0]] if rows else []
    for name in wanted:
        if header.count(name) != 1:
            raise InputError(f"{path} has {header.count(name)} columns named {name!r}, but one was expected")
    lower, upper = study.bounds
    table: list[list[float]] = []
    labels: list[str] = []
    for number, row in enumerate(rows[1:], start=2):
        where = f"in line {number} of {path}"
        if not row:  # an empty line, as at the end of some files
            continue
        if len(row) != len(header):
            raise InputError(f"there are {len(row)} cells {where}, but {len(header)} were expected, as in its header")
        cells = [row[header.index(name)].strip() for name in wanted]
        numbers = [_number(cell) for cell in cells[: len(study.inputs)]]
        for name, found, low, high in zip(study.inputs, numbers, lower, upper, strict=True):
            if not (low <= found <= high or (clip and not math.isnan(found))):
                span = f"a number from {low:g} to {high:g}"
                raise InputError(f"{name} {where} is something else than {span}, which was expected")
        table.append(numbers)
        labels += cells[len(study.inputs) :]
        if labels and labels[-1] not in study.classes:
            raise InputError(f"{study.target} {where} is none of the study's classes, but one of them was expected")
    return np.clip(np.reshape(table, (-1, len(study.inputs))), lower, upper), labels


def carry_out(study: Study, sessions: Sessions, table: Array, labels: Sequence[str], *, clip: bool = False) -> Answers:
    """Take part in a study with one's own records and return its answer, the same for all parties.

    `labels` are the records' classes, for the task "logistic". Records outside the bounds are refused, or moved to
    them if `clip`.
    """
    roster, rng = sessions.course.roster, np.random.default_rng()  # rng is not used for noise on a network
    sizes = study.sizes(roster)
    if len(table) != sizes[sessions.me]:
        raise refuse("the number of records", len(table), f"{sizes[sessions.me]}, as the study says,")
    if study.task == "logistic" and len(labels) != len(table):
        raise refuse("the number of labels", len(labels), f"one for each of {len(table)} records")
    budget = Budget(study.epsilon, study.delta)
    held = Records.of(sessions.with_others(table, sizes), study.bounds, level=study.level, clip=clip)
    if study.task == "moments":
        found = moments(held, sessions, budget, rng)
        answer: Answers = {"mean": _named(found.mean, study.inputs), "variance": _named(found.variance, study.inputs)}
    elif study.task == "regression":
        line = linear_regression(held, sessions, budget, rng, ridge=study.ridge)
        answer = {"intercept": _named(line.intercept, ["intercept"])["intercept"]}
        answer |= {"coefficients": _named(line.coefficients, study.inputs[:-1]), "eigenvalues_raised": line.clipped}
    else:
        own = held.tables[sessions.me]
        classes = np.array([study.classes.index(label) for label in labels], dtype=np.int64)
        answer = _logistic(study, sessions, np.asarray(own), classes, budget, rng)
    about = {"format": ANSWER, "study": study.name, "task": study.task, "level": study.level}
    return about | {"epsilon": budget.epsilon_spent, "delta": study.delta} | answer


def _logistic(
    study: Study, sessions: Sessions, table: Array, classes: NDArray[np.int64], budget: Budget, rng: np.random.Generator
) -> Answers:
    """Train on columns scaled to [-1, 1] and one of ones; return weights for the columns as they are."""
    lower, upper = study.bounds
    centre, half = lower / 2.0 + upper / 2.0, upper / 2.0 - lower / 2.0
    scaled = np.column_stack([(table - centre) / half, np.ones(len(table))])
    model = LogisticModel(len(half) + 1, len(study.classes))
    found = train(
        model,
        sessions.with_others((scaled, classes), study.sizes(sessions.course.roster)),
        sessions,
        budget,
        study.steps,
        rng,
        clipping=Clipping(study.clip, study.level),
        optimiser=Descent(study.rate, study.momentum),
    )
    weights = found.parameters.reshape(model.rows, -1)
    slopes, heights = weights[:, :-1] / half, weights[:, -1] - (weights[:, :-1] * centre / half).sum(axis=1)
    rows = study.classes[1:] if model.rows == 1 else study.classes  # of two classes the second has the score
    return {
        "classes": study.classes,
        "intercept": dict(zip(rows, heights.tolist(), strict=True)),
        "coefficients": {
            row: dict(zip(study.inputs, each.tolist(), strict=True)) for row, each in zip(rows, slopes, strict=True)
        },
        "steps_without_result": sum(step.skipped for step in found.history),
    }


def _named(answer: Answer, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return value, standard error of privacy's noise, and the two 95 % intervals of each number."""
    parts = [answer.value, answer.standard_error, *answer.interval(0.95), *answer.interval(0.95, "population")]
    keys = ("value", "standard_error", "low", "high", "population_low", "population_high")
    columns = [np.atleast_1d(part).tolist() for part in parts]
    return {
        name: dict(zip(keys, row, strict=True)) for name, row in zip(names, zip(*columns, strict=True), strict=True)
    }


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
