"""`inca report`: one page of a plan, a certificate, an execution, a result or a session, to be sent to people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inca.cli.options import OUTPUT
from inca.cli.printing import OutputFiles, print_next, print_text
from inca.cli.progress import progress_bar
from inca.errors import InvalidInput


def report(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A plan, a certificate, an execution or a result; or a session's folder, within --state of a node.",
        ),
    ],
    roster: Annotated[
        Path | None,
        typer.Option(help="The roster of a result or a session: it says where values may lie, which results do not."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the page (HTML) here. Default: beside FILE, as NAME-report.html.", rich_help_panel=OUTPUT
        ),
    ] = None,
) -> None:
    """Make one page to share of a plan, a certificate, an execution, a result or a session.

    The page says the verdict first, in words, then shows pictures, all parameters and all assumptions. It is one file
    that loads and runs nothing, for any browser and for paper, and holds nothing but what FILE says, with its SHA-256.
    The losses of an execution are worked out as `inca audit` does.

    Example:  inca report examples/consortium.json --out report.html
    """
    out = _beside(file) if out is None else out
    if out.resolve() == file.resolve():
        raise InvalidInput(f"--out must be another file than FILE, got {out} for both")
    files = OutputFiles(report=out)
    from inca._base.files import write_whole
    from inca.cli.report.page import page
    from inca.cli.report.sources import report_content

    with progress_bar("round") as progress:
        content = report_content(file, roster, progress)
    text = page(content).encode()
    files.write("report", lambda path: write_whole(path, lambda stream: stream.write(text)))
    for sentence in content.verdict:
        print_text(f"{sentence.badge:18}  {_printable(sentence.text)}")
    files.finish(announce=True)
    print_next(f"open {out} in a browser, print it, or send it")


def _printable(text: str) -> str:
    """Return text of a file so that no character of it can direct the terminal.

    >>> _printable("anna\\x1b[2J")
    'anna?[2J'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def _beside(file: Path) -> Path:
    """Return where the page is to be if nothing else is said: beside the file, and of its name.

    >>> _beside(Path("plans/plan.json")).as_posix()
    'plans/plan-report.html'
    """
    if file.is_dir():
        file = file.resolve()
        return file.with_name(f"{file.name}-report.html")
    return file.with_name(f"{file.stem}-report.html")
