"""`inca dashboard`: the protocol to look at, in a browser."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from inca.cli.options import OPTIONS, Place, options
from inca.cli.printing import print_text


@options(OPTIONS)
class Page(Place):
    """Where the page is, and what it follows."""

    host: str = "127.0.0.1"
    port: int = 8765
    sessions: Annotated[list[Path], Parameter(metavar="FOLDER")] = field(default_factory=list)
    """Follow the sessions of nodes on this machine: a --state folder, or one above."""
    no_browser: bool = False
    """Do not open it in this machine's browser."""


def dashboard(
    files: Annotated[list[Path] | None, Parameter(help="Executions, certificates, plans or results to open.")] = None,
    /,
    *,
    page: Page = Page(),
) -> None:
    """Plan, watch a run, see it from an adversary's view, and follow sessions, in a browser on this machine.

    Nothing leaves the machine and nothing is fetched from elsewhere. Values are made up, or stay hidden: a real party's
    value is never shown. A --host other than 127.0.0.1 lets other machines in; --port 0 takes a free one. Ctrl-C stops
    it.

    Example:  inca dashboard execution.json --sessions anna-state
    """
    from inca.dashboard.serve import serve

    serve(files or [], page.sessions, page.host, page.port, echo=print_text, browser=not page.no_browser)
