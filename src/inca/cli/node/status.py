"""`inca node status`: where the sessions of this machine's nodes are."""

from __future__ import annotations

from typing import Any

from inca.cli.options import Json, StateFolder
from inca.cli.printing import print_json, print_text


def status(folder: StateFolder, /, *, output: Json = Json()) -> None:
    """Say how far the sessions of this machine's nodes are; reads a small file and disturbs nobody.

    Status 0, however the sessions are; 2 if the folder has none.

    Example:  inca node status sessions
    """
    from inca._base.validation import refuse
    from inca.network.node.event_log import statuses
    from inca.network.node.progress import progress_in_words

    sessions = statuses(folder)
    if not sessions:
        refuse("FOLDER", str(folder), "a --state folder with a session in it")
    if output.json:
        print_json(sessions)
        return
    for session in sessions:
        running = "running" if session["running"] else "not running"
        print_text(f"{session['session'][:16]}  {session['party']}: {session['stage']}, {running}")
        # Peers are those of when it was written down last, which means nothing once the party does not run.
        peers = f", {_peers(session)}" if session["running"] else ""
        print_text(
            f"  round {session['round']} of {session['rounds']}, {session['attended']} attended, "
            f"{session['open_offers']} offers open{peers}"
        )
        if session["running"]:
            if progress := progress_in_words(session):
                print_text(f"  {progress}")
            for relay, reason in session.get("relays", {}).items():
                print_text(f"  {f'not registered at {relay}: {reason}' if reason else f'registered at {relay}'}")
        if session["reason"]:
            print_text(f"  {session['reason']}")


def _peers(session: dict[str, Any]) -> str:
    """Say how many peers are connected, and how many of them through relays.

    >>> _peers({"connected": 4, "through_relays": 3})
    '4 peers connected, 3 of them through a relay'
    """
    through = session.get("through_relays", 0)
    return f"{session['connected']} peers connected" + (f", {through} of them through a relay" if through else "")
