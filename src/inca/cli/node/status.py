"""`inca node status`: where the sessions of this machine's nodes are."""

from __future__ import annotations

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
        peers = f", {session['connected']} peers connected" if session["running"] else ""
        print_text(
            f"  round {session['round']} of {session['rounds']}, {session['attended']} attended, "
            f"{session['open_offers']} offers open{peers}"
        )
        if session["running"] and (progress := progress_in_words(session)):
            print_text(f"  {progress}")
        if session["reason"]:
            print_text(f"  {session['reason']}")
