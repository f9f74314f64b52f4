"""What only an operator can decide: that a party gives up a session that is unfinished, and erases its secrets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from inca.documents.result import ResultDocument
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.node.journal import Journal, secret_files
from inca.network.node.node import SessionEnd
from inca.network.node.report import kept_result, mark_ended, report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.records import Erased, Left

_REASON = (
    "its operator has made this party forget an unfinished session: it had accepted to open the final messages and "
    "does not know the outcome; its value may be in a result that others have"
)


def forget_session(setup: SessionSetup, identity: Identity, folder: Path) -> ResultDocument:
    """Erase the secrets of a party that has accepted commit and lacks the outcome, and mark the session as ended.

    Args:
        setup: The session.
        identity: The party's keys.
        folder: The session's folder.

    Returns:
        The result, which is none.

    Raises:
        InvalidInput: There is nothing to forget: the session has not begun here, has ended, or comes to an end by
            itself; or the party is running.
        JournalUnusable: The disk fails.
    """
    me, path = setup.roster.index(identity.certificate), folder / "journal.db"
    if me is None:
        raise InvalidInput(f"the identity of {identity.name!r} is not in the roster {setup.roster.name!r}")
    if (folder / "ended.json").exists():
        raise InvalidInput(f"the session has ended here ({folder}): there is nothing to forget")
    if not path.exists():
        raise InvalidInput(f"the session has not begun here ({folder}): there is nothing to forget")
    with closing(Journal(path, session=setup.session.id, party=me)) as journal:
        ledger = Ledger(setup.session, me)
        for record in journal.read():
            ledger.apply(record)
        if any(item.kind == "key" for item in ledger.kept):
            raise InvalidInput(
                "this party has the keys that open the final messages: start it again, and it has the end"
            )
        if not (ledger.committed or ledger.in_doubt):
            raise InvalidInput(
                "this party has not accepted to open the final messages: start it again, and it ends by itself"
            )
        journal.append([Left(_REASON), Erased()])
    document = kept_result(folder) or report(setup, me, SessionEnd(None, ""))
    document = msgspec.structs.replace(document, reason=_REASON)
    document.write(folder / "result.json")
    mark_ended(folder, document)
    return document


def erase_left_over(setup: SessionSetup, me: int, folder: Path) -> None:
    """Erase the secrets of a party that was killed after it had given up, and before it had erased them itself."""
    path = folder / "journal.db"
    if path.exists() and secret_files(path):
        with closing(Journal(path, session=setup.session.id, party=me)) as journal:
            journal.append([Erased()])
