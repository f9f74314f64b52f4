"""`inca node status`: where the sessions of this machine's nodes are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inca.cli.options import AsJson
from inca.cli.printing import print_json, print_text


def status(
    state: Annotated[Path, typer.Argument(metavar="FOLDER", help="The --state folder of a node on this machine.")],
    as_json: AsJson = False,
) -> None:
    """Say how far the sessions of this machine's nodes are; reads a small file and disturbs nobody.

    Example:  inca node status sessions
    """
    from inca._base.validation import refuse
    from inca.network.node.event_log import statuses

    sessions = statuses(state)
    if not sessions:
        refuse("FOLDER", str(state), "a --state folder with a session in it")
    if as_json:
        print_json(sessions)
        return
    for session in sessions:
        running = "running" if session["running"] else "not running"
        print_text(f"{session['session'][:16]}  {session['party']}: {session['stage']}, {running}")
        # Peers are those of when it was written down last, which means nothing once the party does not run.
        peers = f", {session['connected']} peers connected" if session["running"] else ""
        print_text(
            f"  round {session['round']} of {session['rounds']}, {session['attended']} attended, "
            f"{session['open_offers']} offers open{peers}"
        )
        if session["reason"]:
            print_text(f"  {session['reason']}")
