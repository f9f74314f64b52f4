"""A party's part in a study: the sessions that its task takes, and the answer that all parties get."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.files import null_for_infinity
from inca._base.types import Array
from inca._base.validation import refuse
from inca.errors import InvalidInput
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget
from inca.learn.statistics.distribution import QuantileEstimate, quantiles
from inca.learn.statistics.estimates import Estimate
from inca.learn.statistics.features import ScaledColumns
from inca.learn.statistics.moments import histogram, moments
from inca.learn.statistics.records import Records
from inca.learn.statistics.regression import linear_regression
from inca.learn.study import Study
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import LogisticModel
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import TrainingRules, train

ANSWER_FORMAT = "inca-answer/1"


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
        clip: Whether numbers outside their bounds are silently moved to them. Without, they are refused before the
            first session, as missing ones always are.

    Returns:
        The answer (`inca-answer/1`), the same for all parties; an end of an interval without a bound is null. What is
        promised is its `epsilon` at `delta` plus `failure_probability`, which is null if the roster does not say what
        its plan was made for.

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
    if study.task == "logistic":
        own = np.asarray(records.tables[averager.me])
        answer = _logistic(study, averager, own, _class_numbers(study, labels), budget, rng)
    else:
        answer = _statistic(study, records, averager, budget, rng)
    about = {"format": ANSWER_FORMAT, "study": study.name, "task": study.task, "level": study.level}
    guarantee = {
        "epsilon": budget.epsilon_spent,
        "delta": study.delta,
        "failure_probability": budget.failure_probability,
    }
    return dict(null_for_infinity(about | guarantee | answer))


def _statistic(
    study: Study, records: Records, averager: NetworkAverager, budget: Budget, rng: np.random.Generator
) -> dict[str, Any]:
    """Return a statistic from one average, which takes the whole budget."""
    if study.task == "moments":
        both = moments(records, averager, budget, rng)
        return {"mean": _named(both.mean, study.inputs), "variance": _named(both.variance, study.inputs)}
    if study.task == "regression":
        line = linear_regression(records, averager, budget, rng, ridge=study.ridge)
        return {
            "intercept": _rows(line.intercept)[0],
            "coefficients": _named(line.coefficients, study.inputs[:-1]),
            "eigenvalues_raised": line.eigenvalues_raised,
        }
    (column,) = study.inputs
    if study.task == "histogram":
        edges = study.histogram_edges()
        shares = histogram(records, edges, averager, budget, rng)
        bins = [{"from": low, "to": high} for low, high in pairwise(edges.tolist())]
        return {"column": column, "bins": [ends | row for ends, row in zip(bins, _rows(shares), strict=True)]}
    estimates = quantiles(records, study.quantile_shares(), averager, budget, rng, points=study.grid_points)
    rows = [{"share": estimate.share} | _rows(estimate)[0] for estimate in estimates]
    return {"column": column, "quantiles": rows}


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
        TrainingRules(Clipping(study.clip, study.level), optimizer=SGD(study.rate, study.momentum)),
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
    """Return what is known of each number by the name of its column."""
    return dict(zip(names, _rows(estimate), strict=True))


def _rows(estimate: Estimate | QuantileEstimate) -> list[dict[str, float]]:
    """Return estimate, standard error of privacy's noise, and the two 95 % intervals of each number."""
    sample, population = estimate.interval(0.95), estimate.interval(0.95, "population")
    keys = ("value", "standard_error", "low", "high", "population_low", "population_high")
    columns = [
        np.atleast_1d(part).tolist() for part in (estimate.estimate, estimate.standard_error, *sample, *population)
    ]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]
