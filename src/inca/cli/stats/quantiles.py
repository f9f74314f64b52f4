"""`inca stats quantiles`: several quantiles of a column from one release."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

from inca.cli.options import RECORDS, NumberColumn, ReleaseConditions, ReleaseLoss, options
from inca.cli.stats.options import RecordsFile, StatsOutput
from inca.cli.stats.release import prepare, rows_of, tell


@options(RECORDS)
class QuantileColumn(NumberColumn):
    """A column, and which of its quantiles."""

    quantile: list[float] = field(default_factory=lambda: [0.25, 0.5, 0.75])
    """The share of the records up to the quantile, between 0 and 1."""
    points: int = 127
    """Number of points over the domain between which quantiles are told apart; it hardly matters for the noise."""


def quantiles(
    records: RecordsFile,
    /,
    *,
    data: QuantileColumn,
    loss: ReleaseLoss,
    conditions: ReleaseConditions = ReleaseConditions(),
    output: StatsOutput = StatsOutput(),
) -> None:
    """Estimate any number of quantiles from one private average, with intervals; they cost as much as one.

    What is averaged is the distribution function of the column, and all quantiles are read off it. Every party is
    simulated on this machine. What is protected is one record (one row of the file), or with --level party one party
    with all its records; bounds and numbers of records are public. Standard errors are half of the 0.683 interval.
    A sentence says if guessing the middle of the domain would do as well.

    Example:  inca stats quantiles examples/patients.csv --party clinic --column pressure --domain 80 200 --epsilon 1
    """
    from inca._base.validation import between_0_and_1, integer
    from inca.learn.statistics.distribution import quantiles as quantiles_of
    from inca.protocol.domain import Interval
    from inca.protocol.usefulness import remark_on_noise

    shares = sorted({between_0_and_1("--quantile", share) for share in data.quantile})
    count = integer("--points", data.points, 1, 2000)
    column, domain = data.column, data.domain
    release = prepare(records, data.party, [("--column", column, domain)], loss, conditions, output)
    estimates = quantiles_of(release.records, shares, release.averager, release.budget, release.rng, points=count)
    rows, remarks = [], []
    for share, estimate in zip(shares, estimates, strict=True):
        (row,) = rows_of([f"quantile {share:g}"], estimate, release.confidence)
        sentence = remark_on_noise(Interval(*domain), row.standard_error)
        rows.append(replace(row, says_nothing=bool(sentence)))
        if sentence:
            remarks.append(f"Quantile {share:g}: {sentence[0].lower()}{sentence[1:]}")

    def draw(path: Path) -> None:
        from inca.cli.stats.pictures import draw_distribution

        draw_distribution(rows, shares, estimates[0].distribution, release.confidence, column, release.title, path)

    release.files.write("picture", draw)
    tell("quantiles", release, rows, remarks, output.json, column=column, domain=list(domain), quantiles=shares)
