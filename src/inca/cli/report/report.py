"""`inca report`: one page of a plan, a certificate, an execution, a result or a session, to be sent to people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from inca.cli.options import OPTIONS, OUTPUT, Out, default, options
from inca.cli.printing import OutputFiles, print_content, print_next
from inca.cli.progress import progress_bar
from inca.errors import InvalidInput


@options(OPTIONS)
class RosterOption:
    """The roster of what is reported."""

    roster: Path | None = None
    """The roster of a result or a session: it says where values may lie, which results do not."""


@options(OUTPUT)
class PageFile(Out):
    """Where the page goes."""

    out: Annotated[Path | None, default("beside FILE, as NAME-report.html")] = None


def report(
    file: Annotated[
        Path,
        Parameter(
            help="A plan, a certificate, an execution or a result; or a session's folder, within --state of a node."
        ),
    ],
    /,
    *,
    agreed: RosterOption = RosterOption(),
    output: PageFile = PageFile(),
) -> None:
    """Make one page to share of a plan, a certificate, an execution, a result or a session.

    The page says the verdict first, in words, then shows pictures, all parameters and all assumptions. It is one file
    that loads and runs nothing, for any browser and for paper, and holds nothing but what FILE says, with its SHA-256.
    The losses of an execution are worked out as `inca audit` does.

    Example:  inca report examples/consortium.json --out report.html
    """
    out = _beside(file) if output.out is None else output.out
    if out.resolve() == file.resolve():
        raise InvalidInput(f"--out must be another file than FILE, got {out} for both")
    files = OutputFiles(report=out)
    from inca._base.files import write_whole
    from inca.cli.report.sources import report_content
    from inca.reporting.html import page

    with progress_bar("round") as progress:
        content = report_content(file, agreed.roster, progress)
    text = page(content).encode()
    files.write("report", lambda path: write_whole(path, lambda stream: stream.write(text)))
    print_content(content)
    files.finish(announce=True)
    print_next(f"open {out} in a browser, print it, or send it")


def _beside(file: Path) -> Path:
    """Return where the page is to be if nothing else is said: beside the file, and of its name.

    >>> _beside(Path("plans/plan.json")).as_posix()
    'plans/plan-report.html'
    """
    if file.is_dir():
        file = file.resolve()
        return file.with_name(f"{file.name}-report.html")
    return file.with_name(f"{file.stem}-report.html")
