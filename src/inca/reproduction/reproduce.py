"""Reproduce a figure: do its work on an engine, and write data, pictures, verdicts and a page to read."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inca._base.extras import require_extra
from inca._base.files import null_for_infinity, write_json, write_whole
from inca._base.types import Progress
from inca._base.validation import integer, refuse
from inca._base.version import __version__
from inca.errors import InvalidInput
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job, source_digest
from inca.reproduction.figure1 import Figure1
from inca.reproduction.figure2 import Figure2
from inca.reproduction.figure3 import Figure3
from inca.reproduction.figure4 import Figure4
from inca.reproduction.figure_reproduction import (
    Claim,
    DataTable,
    FigureReproduction,
    FigureResults,
    PerformJobs,
    Row,
)
from inca.reproduction.report import Provenance, page

FORMAT = "inca-reproduction/1"
FIGURES: dict[str, type[FigureReproduction]] = {figure.name: figure for figure in (Figure1, Figure2, Figure3, Figure4)}

ProgressReporter = Callable[[str], AbstractContextManager[Progress]]
"""Takes a heading and returns a context that yields a progress callback."""


@dataclass(frozen=True)
class Reproduction:
    """A figure that was reproduced: where it is, and what it says."""

    name: str
    folder: Path
    results: FigureResults
    provenance: Provenance
    supplement_provenance: Provenance
    """Where the data come from that stand beside the figure."""

    @property
    def page(self) -> Path:
        """The page to read."""
        return self.folder / f"{self.name}.html"


def reproduce(
    name: str,
    folder: str | Path,
    *,
    quick: bool = False,
    seed: int = 0,
    keep: bool = False,
    engine: Engine | None = None,
    report: ProgressReporter | None = None,
) -> Reproduction:
    """Reproduce a figure of the paper: data, pictures, verdicts and a page.

    There will be a page (.html), the data (.json, and .csv for each table), the pictures (.png and .svg), and the
    finished jobs (work.jsonl): called again after an interruption, only the rest is done.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     reproduction = reproduce("fig3", folder, quick=True, engine=Engine("serial"))
        ...     sorted(path.name for path in reproduction.folder.iterdir())
        ['beyond.csv', 'failing.csv', 'fig3.html', 'fig3.json', 'fig3.png', 'fig3.svg', 'least.csv', 'work.jsonl']
    """
    figure = figure_named(name, integer("seed", seed, max=2**63 - 1), quick)
    require_extra("reproduce", "reproduce")
    home = Path(folder) / (f"{name}-quick" if quick else name)
    kept = _kept(home / f"{name}.json", seed) if keep else None
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{home} cannot be made a folder: {error.strerror or error}") from None
    command = f"inca reproduce {name} --seed {seed}{' --quick' if quick else ''}{' --keep' if keep else ''}"
    reporter = report or (lambda heading: nullcontext(lambda done, total: None))

    with nullcontext(engine) if engine is not None else Engine() as started:

        def work(purpose: str, compute: Callable[[PerformJobs], list[DataTable]]) -> tuple[list[DataTable], Provenance]:
            checkpoint = Checkpoint(home / "work.jsonl", "reproduction", purpose)

            def perform(heading: str, jobs: Sequence[Job]) -> list[Any]:
                began = time.monotonic()
                try:
                    with reporter(f"{name}, {heading}:") as progress:
                        return complete_jobs(jobs, started, checkpoint, progress)
                finally:
                    checkpoint.spend(time.monotonic() - began)

            tables = compute(perform)
            return tables, Provenance(
                command, __version__, seed, quick, source_digest("reproduction")[:16], checkpoint.spent
            )

        tables, provenance = work(f"seed {seed}", figure.compute_tables) if kept is None else kept
        supplement, beside = work(f"seed {seed}, supplement", figure.compute_supplement)
    reproduction = Reproduction(name, home, figure.results(tables, supplement), provenance, beside)
    _write(reproduction, figure)
    return reproduction


def _kept(path: Path, seed: int) -> tuple[list[DataTable], Provenance]:
    """Return the reproduced data of a file, and where they come from."""
    document = _document(path)
    try:
        provenance = Provenance(**document["stamp"])
        tables = _tables(document)
    except (KeyError, TypeError) as error:
        raise _unreadable(path, error) from None
    if provenance.seed != seed:
        refuse("seed", seed, f"{provenance.seed}, that of the data in {path}")
    return tables, provenance


def figure_named(name: str, seed: int = 0, quick: bool = False) -> FigureReproduction:
    """Return the reproduction of that name."""
    if name not in FIGURES:
        refuse("figure", name, "one of " + ", ".join([*FIGURES, "all"]))
    return FIGURES[name](seed, quick)


def figure_names(figure: str) -> list[str]:
    """Return the figures meant by a name: itself, or all of them.

    Example:
        >>> figure_names("all")
        ['fig1', 'fig2', 'fig3', 'fig4']
    """
    return list(FIGURES) if figure == "all" else [figure_named(figure).name]


def read_reproduction(path: str | Path) -> tuple[FigureReproduction, FigureResults]:
    """Read the data of a reproduction and evaluate it anew; pictures can be drawn from it without any run."""
    document = _document(path)
    try:
        figure = figure_named(document["name"], document["stamp"]["seed"], document["stamp"]["quick"])
        # Files of figures without a supplement, and those of earlier versions, have none.
        return figure, figure.results(_tables(document), _tables(document.get("supplement", {"tables": []})))
    except (ValueError, KeyError, TypeError, InvalidInput) as error:
        raise _unreadable(path, error) from None


def _document(path: str | Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            refuse("format", document["format"], FORMAT)
        return document
    except (OSError, ValueError, KeyError, TypeError, InvalidInput) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read as a reproduction: {error}")


def _tables(part: dict[str, Any]) -> list[DataTable]:
    return [DataTable(**{**table, "shown": tuple(table["shown"])}) for table in part["tables"]]


def _write(reproduction: Reproduction, figure: FigureReproduction) -> None:
    """Write all files, each whole or not at all, the page last."""
    home, results, provenance = reproduction.folder, reproduction.results, reproduction.provenance
    drawn: dict[str, bytes] = {}
    for picture in results.pictures:
        files = picture.files()
        for kind, content in files.items():
            _put(home / f"{picture.name}.{kind}", content)
        drawn[picture.name] = files["svg"]
    for table in results.tables:
        _put(home / f"{table.name}.csv", _csv(table, figure.parameters, provenance).encode())
    beside = reproduction.supplement_provenance
    for table in results.supplement:
        _put(home / f"{table.name}.csv", _csv(table, figure.supplement_parameters, beside).encode())
    document = {
        "format": FORMAT,
        "name": reproduction.name,
        "title": figure.title,
        "stamp": asdict(provenance),
        "parameters": figure.parameters,
        "claims": [claim_row(claim) for claim in results.claims],
        "notes": list(results.notes),
        "tables": [asdict(table) for table in results.tables],
    }
    if results.supplement:
        document["supplement"] = {
            "stamp": asdict(beside),
            "parameters": figure.supplement_parameters,
            "tables": [asdict(table) for table in results.supplement],
        }
    write_json(home / f"{reproduction.name}.json", null_for_infinity(document), indent=1)
    text = page(reproduction.name, figure.title, figure.parameters, results, provenance, drawn)
    _put(reproduction.page, text.encode())


def claim_row(claim: Claim) -> Row:
    """Return a claim for JSON, under the names of the file format."""
    return {
        "verdict": claim.verdict,
        "text": claim.text,
        "source": claim.source,
        "agrees": claim.agrees,
        "found": claim.evidence,
        "why": claim.why,
    }


def _put(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def _csv(table: DataTable, parameters: Row, provenance: Provenance) -> str:
    """Return a table with what is the same in all its rows, too: single parameters, seed and version."""
    single = {key: value for key, value in parameters.items() if not isinstance(value, list)}
    origin = {"quick": provenance.quick, "seed": provenance.seed, "inca": provenance.version}
    rows = [{**single, **row, **origin} for row in table.rows]
    out = io.StringIO()
    names = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(out, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
