"""Options that the verbs of `inca stats` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inca.cli.options import CONDITIONS, OUTPUT, REQUIREMENTS

RECORDS = "Records"

# --- records --------------------------------------------------------------------------------------------------------

RecordsFile = Annotated[
    Path,
    typer.Argument(metavar="RECORDS", help="One row per record: CSV, with the names of its columns in the first line."),
]
PartyColumn = Annotated[
    str,
    typer.Option(
        "--party",
        metavar="COLUMN",
        help="The column that names the party that holds the record. Who takes part, and with how many records, is "
        "public.",
        rich_help_panel=RECORDS,
    ),
]
NumberColumn = Annotated[
    str, typer.Option("--column", metavar="COLUMN", help="The column of numbers.", rich_help_panel=RECORDS)
]
ColumnDomain = Annotated[
    tuple[float, float],
    typer.Option(
        "--domain",
        metavar="LOW HIGH",
        help="The public bounds of the column, never read off the records. Numbers outside count as the nearer bound.",
        rich_help_panel=RECORDS,
    ),
]

# --- privacy --------------------------------------------------------------------------------------------------------

WantedEpsilon = Annotated[
    float, typer.Option("--epsilon", help="Epsilon of the one release.", rich_help_panel=REQUIREMENTS)
]
WantedDelta = Annotated[
    float,
    typer.Option(
        "--delta",
        help="Delta of the release. That the plan fails, with a probability of at most 1e-6, adds to it.",
        rich_help_panel=REQUIREMENTS,
    ),
]
Level = Annotated[
    str,
    typer.Option(
        "--level",
        help="Whose privacy: record (one row of the file; who has several rows is protected less) or party (all rows "
        "of a party together, with more noise).",
        rich_help_panel=REQUIREMENTS,
    ),
]
Leaving = Annotated[
    float,
    typer.Option(
        "--dropout",
        help="Fraction of the parties that leaves during the release; planned for and simulated.",
        rich_help_panel=CONDITIONS,
    ),
]

# --- output ---------------------------------------------------------------------------------------------------------

Confidence = Annotated[
    float,
    typer.Option(
        "--confidence",
        help="The probability with which an interval holds its number, one by one.",
        rich_help_panel=OUTPUT,
    ),
]
Picture = Annotated[
    Path | None, typer.Option("--picture", help="Draw the estimates: .png or .svg.", rich_help_panel=OUTPUT)
]
RandomSeed = Annotated[
    int | None,
    typer.Option("--seed", help="Repeatable run, for research: NOT private. Default: the system's randomness."),
]
