"""Taking part in a session as a process: from the first event to the files that remain. Signals stop it cleanly."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from inca._base.types import Array
from inca.documents.result import ResultDocument
from inca.errors import InvalidInput, JournalUnusable
from inca.network.membership.identity import Identity
from inca.network.node.journal import Journal, secret_files
from inca.network.node.node import Node, NodeOptions, SessionEnd
from inca.network.node.report import kept_result, mark_ended, report, write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.records import Erased, Left

_STOP_TIMEOUT_S = 2.0
_OTHER_FILES = 64  # open beside connections: the journal, the log, libraries
_FORGOTTEN = (
    "its operator has made this party forget an unfinished session: it had accepted to open the final messages and "
    "does not know the outcome; its value may be in a result that others have"
)


def run_party(
    setup: SessionSetup,
    identity: Identity,
    folder: Path,
    read_value: Callable[[], Array],
    options: NodeOptions | None = None,
    *,
    shred: bool = False,
    leave_on_sigterm: bool = False,
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> ResultDocument | None:
    """Take part in a session to its end and write its report; SIGINT stops it so that it can go on later.

    SIGTERM lets it leave for good, once it has begun: it finishes its round and tells the others, who need not wait for
    it; if the rounds are over, it stays to the end. The second time, and before the first round, it stops as by SIGINT.

    The report is there as soon as it can be; after that others are served for a while. A session is never held twice:
    if it has ended here before, its report is returned again.

    Args:
        setup: The session.
        identity: This party's keys; they must be in the roster.
        folder: Holds what must outlive the process: the journal, the log, and the report.
        read_value: Returns this party's value; called once, and not when the party comes back.
        options: What the operator chooses. Others are served at the end for at least three periods, unless all say that
            they have the result; if the session has ended here before and its journal is there, for `serve_s` again.
        shred: Leave nothing private of a session that has ended.
        leave_on_sigterm: Whether SIGTERM does so; otherwise it stops the party like SIGINT.
        on_event: Called with every event that is logged, and with an event "status" when `status.json` is written.

    Returns:
        The report, whose `has_result` says whether there is a result; None if a signal stopped the party.

    Raises:
        InvalidInput: The identity, the value, the clock or the folder cannot be used.
        JournalUnusable: The disk fails; the party can go on once that is mended.
    """
    refuse_core_dumps()
    allow_connections(len(setup.roster.parties))
    gc.collect()  # an earlier session in this process leaves cycles of few objects, but of many megabytes
    reports: list[ResultDocument] = []

    def on_ended(end: SessionEnd) -> None:
        if before is None or (not before.has_result and end.result is not None):
            reports.append(write_report(folder, setup, node.me, end))

    options = options or NodeOptions()
    node = Node(setup, identity, folder, read_value, options, on_event=on_event, on_ended=on_ended)
    before = kept_result(folder) if (folder / "ended.json").exists() else None
    if before is not None and not (options.serve_s and (folder / "journal.db").exists()):
        # The party may have been killed after its report, before it had removed its journal, or erased its secrets.
        if (path := folder / "journal.db").exists() and (shred or (not before.has_result and secret_files(path))):
            with closing(Journal(path, session=setup.session.id, party=node.me)) as journal:
                journal.shred() if shred else journal.append([Erased()])
        return before

    async def run() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.create_task(node.run())

        def stop() -> None:
            node.stop()
            loop.call_later(_STOP_TIMEOUT_S, task.cancel)  # should it be waiting for something else

        def leave() -> None:
            loop.add_signal_handler(signal.SIGTERM, stop)  # the next time
            if not node.depart():
                stop()

        loop.add_signal_handler(signal.SIGINT, stop)
        loop.add_signal_handler(signal.SIGTERM, leave if leave_on_sigterm else stop)
        with suppress(asyncio.CancelledError):
            await task

    try:
        asyncio.run(run())
    except JournalUnusable as error:
        raise JournalUnusable(f"{error}; the party has stopped and can go on once that is mended") from None
    if not reports and before is None:
        return None
    if shred and (folder / "ended.json").exists():  # else its secrets are still needed
        node.journal.shred()
    return reports[-1] if reports else before  # a result may have come after the party had given up


def forget_session(setup: SessionSetup, identity: Identity, folder: Path) -> ResultDocument:
    """Erase the secrets of a party that has accepted commit and lacks the outcome, and mark the session as ended.

    Only an operator can decide that. It is refused where there is nothing to forget, as the session has not begun here,
    has ended, or comes to an end by itself, and while the party runs.
    """
    me, path = setup.roster.party_of(identity), folder / "journal.db"
    if (ended := (folder / "ended.json").exists()) or not path.exists():
        state = "ended" if ended else "not begun"
        raise InvalidInput(f"the session has {state} here ({folder}): there is nothing to forget")
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
        journal.append([Left(_FORGOTTEN), Erased()])
    document = kept_result(folder) or report(setup, me, SessionEnd(None, ""), folder)
    document = msgspec.structs.replace(document, reason=_FORGOTTEN)
    document.write(folder / "result.json")
    mark_ended(folder, document)
    return document


def refuse_core_dumps() -> None:
    """See that a crash of this process writes no copy of its memory, which holds values and seeds, to the disk."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def allow_connections(parties: int) -> None:
    """See that this process may connect to every peer, and for a while twice; 1,024 open files are usual."""
    try:
        import resource
    except ImportError:  # there is no such limit here
        return
    needed = parties + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = inf if hard == resource.RLIM_INFINITY else hard
    if limit < needed:
        raise InvalidInput(
            f"a session of {parties} parties needs about {needed} open files, and only {hard} are allowed here: "
            "ask for more (ulimit -n, or LimitNOFILE of a service)"
        )
    if soft != resource.RLIM_INFINITY and soft < needed + parties:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(min(limit, needed + parties)), hard))
