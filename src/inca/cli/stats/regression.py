"""`inca stats regression`: a line for one column as a function of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from inca.cli.options import RECORDS, RecordColumns, ReleaseConditions, ReleaseLoss, options
from inca.cli.stats.options import RecordsFile, StatsOutput
from inca.cli.stats.release import StatisticRow, prepare, rows_of, tell

if TYPE_CHECKING:
    from inca.learn import LinearFit

_CLOSE_TO_NOISE = 3.0  # an eigenvalue below so many times the noise: intervals, first-order in noise, may be too narrow

Bounded = tuple[str, float, float]


@options(RECORDS)
class FittedLine(RecordColumns):
    """What a line is fitted to."""

    feature: Annotated[list[str], Parameter(metavar="NAME:LOW:HIGH")]
    """A column that explains, with its public bounds."""
    target: Annotated[str, Parameter(metavar="NAME:LOW:HIGH")]
    """The column to be explained, with its public bounds."""
    ridge: float = 0.0
    """Pull coefficients towards 0 by this much, with columns scaled to [-1, 1]."""


def regression(
    records: RecordsFile,
    /,
    *,
    data: FittedLine,
    loss: ReleaseLoss,
    conditions: ReleaseConditions = ReleaseConditions(),
    output: StatsOutput = StatsOutput(),
) -> None:
    """Fit a line to a column as a function of others from one private average, with intervals.

    Every party is simulated on this machine. What is protected is one record (one row of the file), or with --level
    party one party with all its records; bounds and numbers of records are public, and numbers outside their bounds
    count as the nearer bound. Sentences say where intervals cannot be relied on, and if guessing the middle of the
    target's bounds would do as well.

    Example:  inca stats regression examples/patients.csv --party clinic --feature age:18:100
    --target pressure:80:200 --epsilon 4
    """
    from inca._base.validation import finite_float
    from inca.learn.statistics.regression import linear_regression

    penalty = finite_float("--ridge", data.ridge, min=0.0)
    features, explained = [_bounded("--feature", text) for text in data.feature], _bounded("--target", data.target)
    columns = [("--feature", name, (low, high)) for name, low, high in features]
    columns.append(("--target", explained[0], explained[1:]))
    release = prepare(records, data.party, columns, loss, conditions, output)
    fit = linear_regression(release.records, release.averager, release.budget, release.rng, ridge=penalty)
    nothing, remarks = _remarks(fit, features, explained)
    rows = rows_of(["intercept"], fit.intercept, release.confidence, says_nothing=nothing)
    rows += rows_of([name for name, _, _ in features], fit.coefficients, release.confidence, says_nothing=nothing)
    remarks += _without_sign(rows[1:], explained[0])

    def draw(path: Path) -> None:
        from inca.cli.stats.pictures import draw_effects

        widths = [high - low for _, low, high in features]
        draw_effects(rows[1:], widths, explained[0], release.title, release.confidence, path)

    release.files.write("picture", draw)
    tell(
        "regression",
        release,
        rows,
        remarks,
        output.json,
        features=[{"name": name, "domain": [low, high]} for name, low, high in features],
        target={"name": explained[0], "domain": list(explained[1:])},
        ridge=penalty,
        residual_variance=fit.residual_variance,
        eigenvalues_raised=fit.eigenvalues_raised,
        smallest_eigenvalue=fit.smallest_eigenvalue,
    )


def _bounded(option: str, text: str) -> Bounded:
    """Return the name and the bounds of a column; the name may have colons itself."""
    from inca._base.validation import refuse

    name, *bounds = text.rsplit(":", 2)
    try:
        low, high = map(float, bounds)
    except ValueError:
        refuse(option, text, "a column and its bounds, as in age:18:100")
    return name, low, high


def _remarks(fit: LinearFit, features: Sequence[Bounded], target: Bounded) -> tuple[bool, list[str]]:
    """Return whether the line says nothing anywhere it was looked at, and what must be said of it.

    It is looked at in the middle of the features' bounds and, one feature at a time, at both of them: there, a guess of
    the middle of the target's bounds is off by at most half of their width.
    """
    import numpy as np

    from inca.protocol.usefulness import says_nothing

    lower, upper = np.array([(low, high) for _, low, high in features], dtype=np.float64).T
    middle = (lower + upper) / 2.0
    ends = middle + np.concatenate([np.diag(lower - middle), np.diag(upper - middle)])
    errors = np.asarray(fit.predict(np.vstack([middle, ends])).standard_error)
    name, low, high = target
    vague = [says_nothing(float(error), (high - low) / 2.0) for error in errors]
    remarks = []
    if fit.eigenvalues_raised:
        remarks.append(
            f"The noise hides how the features vary in {fit.eigenvalues_raised} of {len(features)} directions: there "
            "the line is pulled towards level, and intervals are too narrow to rely on."
        )
    elif fit.smallest_eigenvalue < _CLOSE_TO_NOISE:
        remarks.append("How the features vary is hardly above the noise: intervals may be too narrow.")
    guess = f"guessing {(low + high) / 2.0:.6g}, the middle of the bounds of {name}, would do as well"
    if all(vague):
        remarks.append(f"The line is known to {float(errors.min()):.3g} at best: {guess}.")
    elif any(vague):
        remarks.append(f"Near the ends of some feature's bounds the line is known so badly that {guess}.")
    return all(vague), remarks


def _without_sign(rows: Sequence[StatisticRow], target: str) -> list[str]:
    names = [row.name for row in rows if row.interval[0] <= 0.0 <= row.interval[1]]
    if not names:
        return []
    return [f"Whether {target} rises or falls is not known, as intervals hold 0, with: {', '.join(names)}."]
