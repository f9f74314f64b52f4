"""Options that only the verbs of `inca stats` have, and all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from inca.cli.options import OUTPUT, Json, RunSeed, options

RecordsFile = Annotated[
    Path, Parameter(help="One row per record: CSV, with the names of its columns in the first line.")
]


@options(OUTPUT)
class StatsOutput(Json, RunSeed):
    """How estimates are shown, and where their noise comes from."""

    confidence: float = 0.95
    """The probability with which an interval holds its number, one by one."""
    picture: Path | None = None
    """Draw the estimates: .png or .svg."""
