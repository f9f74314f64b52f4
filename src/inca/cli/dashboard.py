"""`inca dashboard`: the protocol to look at, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inca.cli import app

Files = Annotated[
    list[Path] | None, typer.Argument(metavar="[FILE]...", help="Executions, certificates, plans or results to open.")
]
Sessions = Annotated[
    list[Path] | None,
    typer.Option(metavar="FOLDER", help="Show the sessions of a node on this machine: its --state folder. Repeatable."),
]
Host = Annotated[str, typer.Option(help="The address to listen on. Others than 127.0.0.1 can be reached by others.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.")]
OpenBrowser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in this machine's browser.")]


@app.command()
def dashboard(
    files: Files = None,
    sessions: Sessions = None,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    browser: OpenBrowser = True,
) -> None:
    """Plan, watch a run, look through an adversary's eyes, and follow sessions, in a browser on this machine.

    Nothing leaves the machine and nothing is fetched from elsewhere. Values are made up, or stay hidden: a real party's
    value is never shown. Ctrl-C stops it.

    Example:  inca dashboard execution.json --sessions anna-state
    """
    from importlib import util

    from inca._base.validation import InputError

    if util.find_spec("starlette") is None or util.find_spec("uvicorn") is None:
        raise InputError("inca dashboard needs starlette and uvicorn: pip install 'inca[dashboard]'")
    from inca.dashboard.serve import serve

    serve(files or [], sessions or [], host, port, tell=typer.echo, browser=browser)
