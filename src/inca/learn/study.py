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

from inca._base.safe_numbers import safe_length, safe_width
from inca._base.types import Array
from inca._base.validation import finite_float, integer, positive, refuse
from inca.errors import InvalidInput
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.features import ScaledColumns
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import LogisticModel
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import train
from inca.network.membership.roster import Roster

FORMAT, ANSWER_FORMAT = "inca-study/1", "inca-answer/1"
StudyTask = Literal["moments", "regression", "logistic"]
_ROUNDING_SLACK = 1e-9  # relative; 6 times 1e-5 / 6 may be above 1e-5


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be learned, from what, and how private.

    Attributes:
        name: What people call it.
        task: "moments" of all columns; "regression", a line for one of them; "logistic", a classifier.
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

    def __post_init__(self) -> None:
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

    def _check_target(self) -> None:
        if self.task == "moments" and self.target is not None:
            refuse("target", self.target, "None for the task moments")
        if self.task == "regression" and (self.target not in self.columns or len(self.columns) < 2):
            refuse("target", self.target, "one of at least two columns")
        if self.task == "logistic":
            if self.target is None or self.target in self.columns:
                refuse("target", self.target, "a column with classes, beside the columns of numbers")
            if len(set(self.classes)) < max(2, len(self.classes)):
                refuse("classes", self.classes, "at least two different ones")

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
        return Roster(name, roster.terms, roster.parties)


def read_study(path: str | Path) -> Study:
    """Read an `inca-study/1` file.

    Args:
        path: Where it is.

    Returns:
        The study.

    Raises:
        InvalidInput: If the file cannot be read, or is not a study that makes sense.
    """
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
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
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


def run_study(
    study: Study, averager: NetworkAverager, table: Array, labels: Sequence[str], *, clip: bool = True
) -> dict[str, Any]:
    """Take part in a study with this party's own records.

    What is refused is told by shapes, rows and columns, never by what is in them.

    Args:
        study: What is to be learned.
        averager: This party's side of the sessions.
        table: This party's records, one row each, with the study's columns in its order.
        labels: The classes of the records, for the task "logistic".
        clip: Whether numbers outside their bounds are silently moved to them (NaN to the middle). Without, they are
            refused before the first session.

    Returns:
        The answer (`inca-answer/1`), the same for all parties. What is promised is its `epsilon` at `delta` plus
        `failure_probability`, which is null if the roster does not say what its plan was made for.

    Raises:
        InvalidInput: If the records are not as the study says, or study and roster do not belong together.
        NoResult: If nobody was left to publish a result.
        SequencePaused: If the sessions cannot go on now.
    """
    roster, rng = averager.sequence.roster, np.random.default_rng()  # rng is not used for noise on a network
    sizes = study.sizes(roster)
    if len(table) != sizes[averager.me]:
        refuse("the number of records", len(table), f"{sizes[averager.me]}, as the study says")
    if study.task == "logistic" and len(labels) != len(table):
        refuse("the number of labels", len(labels), f"{len(table)}, one for each record")
    budget = Budget(study.epsilon, study.delta)
    records = Records.of(averager.with_others(table, sizes), study.bounds, level=study.level, clip=clip)
    answer: dict[str, Any]
    if study.task == "moments":
        both = moments(records, averager, budget, rng)
        answer = {"mean": _named(both.mean, study.inputs), "variance": _named(both.variance, study.inputs)}
    elif study.task == "regression":
        line = linear_regression(records, averager, budget, rng, ridge=study.ridge)
        answer = {"intercept": _named(line.intercept, ["intercept"])["intercept"]}
        answer["coefficients"] = _named(line.coefficients, study.inputs[:-1])
        answer["eigenvalues_raised"] = line.eigenvalues_raised
    else:
        own = np.asarray(records.tables[averager.me])
        classes = _class_numbers(study, labels)
        answer = _logistic(study, averager, own, classes, budget, rng)
    about = {"format": ANSWER_FORMAT, "study": study.name, "task": study.task, "level": study.level}
    guarantee = {
        "epsilon": budget.epsilon_spent,
        "delta": study.delta,
        "failure_probability": budget.failure_probability,
    }
    return about | guarantee | answer


def _class_numbers(study: Study, labels: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each label's class."""
    for row, label in enumerate(labels):
        if label not in study.classes:
            raise InvalidInput(f"labels[{row}] must be one of the study's classes, got something else")
    return np.array([study.classes.index(label) for label in labels], dtype=np.int64)


def _logistic(
    study: Study,
    averager: NetworkAverager,
    table: Array,
    classes: NDArray[np.int64],
    budget: Budget,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Train on columns scaled to [-1, 1] and one of ones; return weights for the columns as they are."""
    columns = ScaledColumns(*study.bounds)
    centre, half = columns.centre, columns.half
    scaled = np.column_stack([(table - centre) / half, np.ones(len(table))])
    model = LogisticModel(len(half) + 1, len(study.classes))
    result = train(
        model,
        averager.with_others((scaled, classes), study.sizes(averager.sequence.roster)),
        averager,
        budget,
        study.steps,
        rng,
        clipping=Clipping(study.clip, study.level),
        optimizer=SGD(study.rate, study.momentum),
    )
    weights = result.parameters.reshape(model.rows, -1)
    slopes, heights = weights[:, :-1] / half, weights[:, -1] - (weights[:, :-1] * centre / half).sum(axis=1)
    scored = study.classes[1:] if model.rows == 1 else study.classes  # of two classes the second has the score
    return {
        "classes": study.classes,
        "intercept": dict(zip(scored, heights.tolist(), strict=True)),
        "coefficients": {
            name: dict(zip(study.inputs, row.tolist(), strict=True)) for name, row in zip(scored, slopes, strict=True)
        },
        "steps_without_result": sum(step.skipped for step in result.history),
    }


def _named(estimate: Estimate, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return estimate, standard error of privacy's noise, and the two 95 % intervals of each number."""
    sample, population = estimate.interval(0.95), estimate.interval(0.95, "population")
    keys = ("value", "standard_error", "low", "high", "population_low", "population_high")
    columns = [
        np.atleast_1d(part).tolist() for part in (estimate.estimate, estimate.standard_error, *sample, *population)
    ]
    return {
        name: dict(zip(keys, row, strict=True)) for name, row in zip(names, zip(*columns, strict=True), strict=True)
    }


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
