"""What all statistics of a file share: records, a planned averager and a budget before; a report after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from inca.cli.printing import OutputFiles, in_columns, print_json, print_text, wrapped

if TYPE_CHECKING:
    import numpy as np

    from inca.cli.options import ReleaseConditions, ReleaseLoss
    from inca.cli.stats.options import StatsOutput
    from inca.learn import Budget, Estimate, QuantileEstimate, Records, SimulatedAverager
    from inca.protocol.domain import Interval

_WIDTH, _LONGEST_NAME = 80, 26
_PROTECTS = {
    "record": "one record, that is one row: who has several rows is protected less",
    "party": "one party, with all its records",
}


@dataclass(frozen=True, eq=False, repr=False)
class PreparedRelease:
    """All that a statistic needs."""

    records: Records
    averager: SimulatedAverager
    budget: Budget
    rng: np.random.Generator
    confidence: float
    repeatable: bool
    files: OutputFiles

    @property
    def title(self) -> str:
        """What is promised, as a picture says it."""
        if self.repeatable:
            return "repeatable from its seed, not private"
        return f"epsilon {self.budget.epsilon:g} for one {self.records.level}"


@dataclass(frozen=True)
class StatisticRow:
    """One number of a statistic, as it is reported."""

    name: str
    estimate: float
    unconstrained: float
    standard_error: float
    interval: tuple[float, float]
    population_standard_error: float
    population_interval: tuple[float, float]
    says_nothing: bool = False


def prepare(
    path: Path,
    party: str,
    columns: Sequence[tuple[str, str, tuple[float, float]]],
    loss: ReleaseLoss,
    conditions: ReleaseConditions,
    output: StatsOutput,
) -> PreparedRelease:
    """Check all options, read the records and plan the release."""
    import numpy as np

    from inca._base.options import Conditions
    from inca._base.validation import between_0_and_1, integer
    from inca.cli.stats.records_file import read_parties
    from inca.learn.averagers.simulated import calibrated
    from inca.learn.budget import Budget
    from inca.learn.statistics.records import Records

    files, seed = OutputFiles(picture=output.picture), output.seed
    confidence = between_0_and_1("--confidence", output.confidence)
    delta = between_0_and_1("--delta", loss.delta)
    budget, box = Budget(loss.epsilon, delta), [_bounds(name, *bounds) for _, name, bounds in columns]
    rng = np.random.default_rng(None if seed is None else integer("--seed", seed))
    tables = read_parties(path, party, [(option, name) for option, name, _ in columns])
    data, domain = (tables, box) if len(box) > 1 else ([table[:, 0] for table in tables], box[0])
    records = Records.of(data, cast(Any, domain), level=loss.level)
    planned = Conditions(**vars(conditions), failure=min(Conditions.failure, delta))
    averager = calibrated("inca", len(tables), planned)
    return PreparedRelease(records, averager, budget, rng, confidence, seed is not None, files)


def _bounds(name: str, low: float, high: float) -> Interval:
    from inca._base.validation import finite_float, refuse
    from inca.protocol.domain import Interval

    lower, upper = f"the lower bound of column {name!r}", f"the upper bound of column {name!r}"
    if not finite_float(lower, low) < finite_float(upper, high):
        refuse(upper, high, f"above the lower one ({low:g})")
    return Interval(low, high)


def rows_of(
    names: Sequence[str], estimate: Estimate | QuantileEstimate, confidence: float, *, says_nothing: bool = False
) -> list[StatisticRow]:
    """Return one row for each number of an estimate."""
    import numpy as np

    lower, upper = estimate.interval(confidence)
    wide_lower, wide_upper = estimate.interval(confidence, "population")
    parts = (
        estimate.estimate,
        getattr(estimate, "unconstrained", estimate.estimate),  # a quantile is read off where it can be
        estimate.standard_error,
        estimate.population_standard_error,
        *(lower, upper, wide_lower, wide_upper),
    )
    table = np.column_stack([np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in parts]).tolist()
    return [
        StatisticRow(name, middle, free, error, (low, high), wide_error, (wide_low, wide_high), says_nothing)
        for name, (middle, free, error, wide_error, low, high, wide_low, wide_high) in zip(names, table, strict=True)
    ]


def tell(
    statistic: str,
    release: PreparedRelease,
    rows: Sequence[StatisticRow],
    remarks: Sequence[str],
    as_json: bool,
    **more: Any,
) -> None:
    """Print estimates, what must be said of them, what was promised to whom, and where the picture is."""
    budget, requirements = release.budget, release.averager.mechanism.requirements
    # Where it is not known how likely the plan fails, nothing is promised.
    failure = 1.0 if budget.failure_probability is None else budget.failure_probability
    level, against = release.records.level, _against(requirements.colluders)
    if as_json:
        report = {
            "statistic": statistic,
            **more,
            "estimates": [asdict(row) | {"interval": list(row.interval)} for row in rows],
            "confidence": release.confidence,
            "says_nothing": bool(rows) and all(row.says_nothing for row in rows),
            "remarks": list(remarks),
            "records": release.records.total,
            "parties": release.records.parties,
            "level": level,
            "protects": _PROTECTS[level],
            "against": against,
            "private": not release.repeatable,
            "epsilon": budget.epsilon,
            "epsilon_spent": budget.epsilon_spent,
            "delta": budget.delta,
            "failure_probability": failure,
            "colluders": requirements.colluders,
            "leavers": requirements.leavers,
            "picture": None if (picture := release.files.paths.get("picture")) is None else str(picture),
        }
        print_json(report)
        release.files.finish(announce=False)
        return
    for line in _table(rows, release.confidence):
        print_text(line)
    print_text("")
    leave = f", up to {requirements.leavers} leaving" if requirements.leavers else ""
    facts = [
        (
            "records",
            f"{release.records.total:,} of {release.records.parties:,} parties{leave}; intervals are for these records",
        ),
        ("protects", _PROTECTS[level]),
        ("privacy", f"epsilon {budget.epsilon_spent:.6g} at delta {budget.delta + failure:.6g}, planned, not audited"),
        ("against", against),
    ]
    for name, text in facts:
        print_text(wrapped(f"{name:10}{text}", _WIDTH))
    print_text("All parties are simulated here: whoever runs this has every record.")
    for sentence in remarks:
        print_text(wrapped(sentence, _WIDTH))
    if release.repeatable:
        print_text("This run is repeatable from its seed and therefore not private.")
    release.files.finish(announce=True)


def outside(name: str, row: StatisticRow) -> list[str]:
    """Return a sentence if noise took an estimate to where the statistic cannot be; else nothing."""
    if abs(row.unconstrained - row.estimate) <= 1e-9 * max(abs(row.estimate), row.standard_error):
        return []
    return [f"The noise took the {name} to {row.unconstrained:.6g}: {row.estimate:.6g} is the nearest that can be."]


def _against(colluders: int) -> str:
    """Say whom the plan protects from: a party that looks at what it receives is a colluder, too."""
    if colluders == 0:
        return "who reads what is published; not parties that look at what they receive (--colluding 0)"
    return f"who reads what is published, and parties that collude, {colluders} of them"


def _table(rows: Sequence[StatisticRow], confidence: float) -> list[str]:
    cells = [("", "estimate", "std. error", f"{confidence:.6g} interval")]
    for row in rows:
        name = row.name if len(row.name) <= _LONGEST_NAME else row.name[: _LONGEST_NAME - 3] + "..."
        ends = " to ".join(f"{end:.5g}" for end in row.interval)
        cells.append((name, f"{row.estimate:.5g}", f"{row.standard_error:.3g}", ends))
    return in_columns(cells)
