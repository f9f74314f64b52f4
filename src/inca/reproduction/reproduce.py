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

from inca._base.files import null_for_infinity, write_json, write_whole
from inca._base.plotting import check_matplotlib
from inca._base.types import Progress
from inca._base.validation import InputError, refuse, whole
from inca._base.version import __version__
from inca.reproduction.engine import Engine, Notebook, do, source_digest
from inca.reproduction.figure1 import Figure1
from inca.reproduction.figure2 import Figure2
from inca.reproduction.figure3 import Figure3
from inca.reproduction.figure4 import Figure4
from inca.reproduction.figure_reproduction import Claim, Findings, Job, Row, Study, Table
from inca.reproduction.report import Stamp, page

FORMAT = "inca-reproduction/1"
STUDIES: dict[str, type[Study]] = {each.name: each for each in (Figure1, Figure2, Figure3, Figure4)}

Report = Callable[[str], AbstractContextManager[Progress]]
"""Takes a heading and returns a context that yields a progress callback."""


@dataclass(frozen=True)
class Reproduction:
    """A figure that was reproduced: where it is, and what it says."""

    name: str
    folder: Path
    findings: Findings
    stamp: Stamp

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
    engine: Engine | None = None,
    report: Report | None = None,
) -> Reproduction:
    """Reproduce figure `name` (fig1 to fig4) into a folder of that name, or fig1-quick, below `folder`.

    There will be a page (.html), the data (.json, and .csv for each table), the pictures (.png and .svg), and
    `work.jsonl`, the notebook of finished work: called again after an interruption, only the rest is done. `engine` is
    one that was started, by default processes on this machine; `report` shows progress.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = reproduce("fig3", place, quick=True, engine=Engine("serial"))
    ...     sorted(path.name for path in made.folder.iterdir())
    ['beyond.csv', 'failing.csv', 'fig3.html', 'fig3.json', 'fig3.png', 'fig3.svg', 'least.csv', 'work.jsonl']
    """
    study = study_named(name, whole("seed", seed, most=2**63 - 1), quick)
    check_matplotlib("a reproduction")
    home = Path(folder) / (f"{name}-quick" if quick else name)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{home} cannot be made a folder: {error.strerror or error}") from None
    notebook = Notebook(home / "work.jsonl", purpose=f"seed {seed}")
    progress = report or (lambda heading: nullcontext(lambda done, total: None))

    with nullcontext(engine) if engine is not None else Engine() as started:

        def perform(heading: str, jobs: Sequence[Job]) -> list[Any]:
            began = time.monotonic()
            try:
                with progress(f"{name}, {heading}:") as told:
                    return do(jobs, started, notebook, told)
            finally:
                notebook.spend(time.monotonic() - began)

        tables = study.work(perform)
    findings = study.findings(tables)
    command = f"inca reproduce {name} --seed {seed}{' --quick' if quick else ''}"
    stamp = Stamp(command, __version__, seed, quick, source_digest()[:16], notebook.spent)
    made = Reproduction(name, home, findings, stamp)
    _write(made, study)
    return made


def study_named(name: str, seed: int = 0, quick: bool = False) -> Study:
    """Return the study of that name."""
    if name not in STUDIES:
        raise refuse("figure", name, "one of " + ", ".join([*STUDIES, "all"]))
    return STUDIES[name](seed, quick)


def study_names(figure: str) -> list[str]:
    """Return the figures meant by a name: itself, or all of them.

    >>> study_names("all")
    ['fig1', 'fig2', 'fig3', 'fig4']
    """
    return list(STUDIES) if figure == "all" else [study_named(figure).name]


def read_reproduction(path: str | Path) -> tuple[Study, Findings]:
    """Read the data of a reproduction (.json) and judge it anew; pictures can be drawn from it without any run."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise refuse("format", document["format"], FORMAT)
        study = study_named(document["name"], document["stamp"]["seed"], document["stamp"]["quick"])
        tables = [Table(**{**each, "shown": tuple(each["shown"])}) for each in document["tables"]]
        return study, study.findings(tables)
    except (OSError, ValueError, KeyError, TypeError, InputError) as error:
        raise InputError(f"{path} cannot be read as a reproduction: {error}") from None


def _write(made: Reproduction, study: Study) -> None:
    """Write all files, each whole or not at all, the page last."""
    home, findings = made.folder, made.findings
    drawn: dict[str, bytes] = {}
    for picture in findings.pictures:
        files = picture.files()
        for kind, content in files.items():
            _put(home / f"{picture.name}.{kind}", content)
        drawn[picture.name] = files["svg"]
    for table in findings.tables:
        _put(home / f"{table.name}.csv", _csv(table, study, made.stamp).encode())
    document = {
        "format": FORMAT,
        "name": made.name,
        "title": study.title,
        "stamp": asdict(made.stamp),
        "parameters": study.parameters,
        "claims": [claim_row(claim) for claim in findings.claims],
        "notes": list(findings.notes),
        "tables": [asdict(table) for table in findings.tables],
    }
    write_json(home / f"{made.name}.json", null_for_infinity(document), indent=1)
    text = page(made.name, study.title, study.parameters, findings, made.stamp, drawn)
    _put(made.page, text.encode())


def claim_row(claim: Claim) -> Row:
    """Return a claim for JSON."""
    return {"verdict": claim.verdict, **asdict(claim)}


def _put(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def _csv(table: Table, study: Study, stamp: Stamp) -> str:
    """Return a table with what is the same in all its rows, too: single parameters, seed and version."""
    single = {key: value for key, value in study.parameters.items() if not isinstance(value, list)}
    rows = [{**single, **row, "quick": stamp.quick, "seed": stamp.seed, "inca": stamp.version} for row in table.rows]
    out = io.StringIO()
    names = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(out, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
