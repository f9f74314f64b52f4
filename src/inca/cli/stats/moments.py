"""`inca stats mean` and `inca stats variance`: moments of a column of a file of records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inca.cli.options import NumberColumn, ReleaseConditions, ReleaseLoss
from inca.cli.stats.options import RecordsFile, StatsOutput
from inca.cli.stats.release import PreparedRelease, StatisticRow, outside, prepare, rows_of, tell


def mean(
    records: RecordsFile,
    /,
    *,
    data: NumberColumn,
    loss: ReleaseLoss,
    conditions: ReleaseConditions = ReleaseConditions(),
    output: StatsOutput = StatsOutput(),
) -> None:
    """Estimate the mean of a column from one private average, with its interval.

    Every party is simulated on this machine. What is protected is one record (one row of the file), or with --level
    party one party with all its records; bounds and numbers of records are public. The mean is that of the records of
    the file; --json also has the interval for a population that they are drawn from. A sentence says if guessing the
    middle of the domain would do as well.

    Example:  inca stats mean examples/patients.csv --party clinic --column pressure --domain 80 200 --epsilon 1
    """
    release = prepare(records, data.party, [("--column", data.column, data.domain)], loss, conditions, output)
    _tell("mean", data.column, data.domain, release, output.json)


def variance(
    records: RecordsFile,
    /,
    *,
    data: NumberColumn,
    loss: ReleaseLoss,
    conditions: ReleaseConditions = ReleaseConditions(),
    output: StatsOutput = StatsOutput(),
) -> None:
    """Estimate the variance of a column, and its mean, from one private average, with intervals.

    Both together cost as much as the mean alone. Every party is simulated on this machine. What is protected is one
    record (one row of the file), or with --level party one party with all its records; bounds and numbers of records
    are public. The variance has the divisor N. A sentence says if a guess would do as well.

    Example:  inca stats variance examples/patients.csv --party clinic --column pressure --domain 80 200 --epsilon 1
    """
    release = prepare(records, data.party, [("--column", data.column, data.domain)], loss, conditions, output)
    _tell("variance", data.column, data.domain, release, output.json)


def _tell(statistic: str, column: str, domain: tuple[float, float], release: PreparedRelease, as_json: bool) -> None:
    """Release both moments and tell those that were asked for."""
    from inca.learn.statistics.moments import moments

    both = moments(release.records, release.averager, release.budget, release.rng)
    low, high = domain
    estimates = {"mean": (both.mean, (low, high)), "variance": (both.variance, (0.0, (high - low) ** 2 / 4.0))}
    rows: list[StatisticRow] = []
    remarks: list[str] = []
    for name in ("variance", "mean") if statistic == "variance" else ("mean",):
        estimate, possible = estimates[name]
        (row,) = rows_of([name], estimate, release.confidence)
        guess = _guess(name, row, possible)
        rows.append(replace(row, says_nothing=bool(guess)))
        remarks += outside(name, row) + guess

    def draw(path: Path) -> None:
        from inca.cli.stats.pictures import draw_intervals

        # A panel for each: a variance is in other units than a mean.
        possible = [estimates[row.name][1] for row in rows]
        draw_intervals(rows, possible, column, release.title, release.confidence, path)

    release.files.write("picture", draw)
    tell(statistic, release, rows, remarks, as_json, column=column, domain=list(domain))


def _guess(name: str, row: StatisticRow, possible: tuple[float, float]) -> list[str]:
    """Return a sentence if the middle of what is possible would be as good an estimate; else nothing."""
    from inca.protocol.domain import Interval
    from inca.protocol.usefulness import remark_on_noise

    sentence = remark_on_noise(Interval(*possible), row.standard_error)
    return [f"{name.capitalize()}: {sentence[0].lower()}{sentence[1:]}"] if sentence else []
