"""`inca dashboard`: the protocol to look at, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inca.cli.printing import print_text


def dashboard(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Executions, certificates, plans or results to open."),
    ] = None,
    sessions: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Follow the sessions of nodes on this machine: a --state folder, or one above; may be repeated.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any other than 127.0.0.1 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.")] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in this machine's browser.")] = True,
) -> None:
    """Plan, watch a run, see it from an adversary's view, and follow sessions, in a browser on this machine.

    Nothing leaves the machine and nothing is fetched from elsewhere. Values are made up, or stay hidden: a real party's
    value is never shown. Ctrl-C stops it.

    Example:  inca dashboard execution.json --sessions anna-state
    """
    from inca.dashboard.serve import serve

    serve(files or [], sessions or [], host, port, echo=print_text, browser=browser)
