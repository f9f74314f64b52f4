"""`inca stats histogram`: shares of records in equal bins over the domain of a column."""

from __future__ import annotations

from pathlib import Path

from inca.cli.options import RECORDS, NumberColumn, ReleaseConditions, ReleaseLoss, options
from inca.cli.stats.options import RecordsFile, StatsOutput
from inca.cli.stats.release import prepare, rows_of, tell


@options(RECORDS)
class EqualBins(NumberColumn):
    """A column, and its bins."""

    bins: int = 10
    """Number of equal bins over the domain."""


def histogram(
    records: RecordsFile,
    /,
    *,
    data: EqualBins,
    loss: ReleaseLoss,
    conditions: ReleaseConditions = ReleaseConditions(),
    output: StatsOutput = StatsOutput(),
) -> None:
    """Estimate the share of records in each of several equal bins from one private average, with intervals.

    Every party is simulated on this machine. What is protected is one record (one row of the file), or with --level
    party one party with all its records; bounds, bins and numbers of records are public. A bin has its left edge, the
    last one both. A sentence says if equal shares would be as good a guess.

    Example:  inca stats histogram examples/patients.csv --party clinic --column pressure --domain 80 200 --epsilon 1
    """
    import math
    from itertools import pairwise

    import numpy as np

    from inca._base.validation import integer
    from inca.learn.statistics.moments import MAX_BINS, equal_bins
    from inca.learn.statistics.moments import histogram as shares_of
    from inca.protocol.usefulness import says_nothing

    count = integer("--bins", data.bins, 2, MAX_BINS)
    column, domain = data.column, data.domain
    release = prepare(records, data.party, [("--column", column, domain)], loss, conditions, output)
    edges = equal_bins("--bins", count, *domain)
    shares = shares_of(release.records, edges, release.averager, release.budget, release.rng)
    errors = np.asarray(shares.standard_error)
    # Shares are a point of a simplex, and equal ones its middle: the corners are the farthest from it.
    length, farthest = float(np.linalg.norm(errors)), math.sqrt(1.0 - 1.0 / count)
    nothing = says_nothing(length, farthest)
    names = [f"{low:.5g} to {high:.5g}" for low, high in pairwise(edges)]
    rows = rows_of(names, shares, release.confidence, says_nothing=nothing)
    largest = float(errors.max())
    remarks = []
    if nothing:
        remarks = [
            f"The standard error {largest:.3g} of {count} shares is as large as shares are: guessing 1/{count} for "
            "every bin would do as well."
        ]
    elif 2.0 * largest >= 1.0 / count:
        remarks = [
            f"A bin with less than {2.0 * largest:.2g} of the records cannot be told from an empty one: fewer bins, "
            "more records or a larger epsilon would show more."
        ]

    def draw(path: Path) -> None:
        from inca.cli.stats.pictures import draw_histogram

        draw_histogram(rows, edges, column, release.title, release.confidence, path)

    release.files.write("picture", draw)
    tell("histogram", release, rows, remarks, output.json, column=column, domain=list(domain), edges=edges.tolist())
