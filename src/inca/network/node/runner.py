"""Attending a session as a process does: from the first event to the files that remain. Signals stop it cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from inca._base.types import Array
from inca._base.validation import InputError
from inca.network.membership.identity import Identity
from inca.network.node.journal import JournalError
from inca.network.node.node import Ended, Node
from inca.network.node.report import write_report
from inca.network.node.session_setup import Setting

_PATIENCE = 2.0  # seconds for a clean stop


def attend(
    setting: Setting,
    identity: Identity,
    folder: Path,
    value: Callable[[], Array],
    *,
    clip: bool = False,
    listen: tuple[str, int] | None = None,
    shred: bool = False,
    echo: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any] | None:
    """Take part in a session to its end and write its report, which is returned; None if a signal stopped it.

    The report is there as soon as it can be; after that others are served for a while. SIGTERM and SIGINT stop it so
    that it can go on later. With `shred` nothing private remains of a session that has ended.
    """
    written: list[dict[str, Any]] = []

    def conclude(ended: Ended) -> None:
        written.append(write_report(folder, setting, node.me, ended))

    node = Node(setting, identity, folder, value, clip=clip, listen=listen, echo=echo, conclude=conclude)

    async def work() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.create_task(node.run())

        def stop() -> None:
            node.stop()
            loop.call_later(_PATIENCE, task.cancel)  # should it be waiting for something else

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        with suppress(asyncio.CancelledError):
            await task

    try:
        asyncio.run(work())
    except JournalError as error:
        failure = InputError(f"{error}; the party has stopped and can go on once that is mended")
        failure.status = 1
        raise failure from None
    if not written:
        return None
    if shred:
        node.journal.shred()
    return written[0]
