"""Processes of their own for what kills them or cannot be undone, forked from one that has loaded the program."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from inca import InvalidInput
from inca.errors import JournalUnusable
from inca.network.node.journal import Journal
from inca.network.node.runner import allow_connections, refuse_core_dumps
from inca.network.protocol.records import Credited, Opened, Secret, Seeded
from inca.network.testing.fork_server import FORK_SERVER

SESSION, PARTY = bytes(range(32)), 3
"""Whose journal the functions below write."""
PATIENCE_S = 240.0  # a busy machine takes longer, a process that hangs for ever


@contextmanager
def forked(work: Callable[..., None], *arguments: Any) -> Iterator[tuple[ForkServerProcess, Connection]]:
    """Run `work(said, *arguments)` in a process, with the end of a pipe to speak into; it is killed at the end."""
    heard, said = FORK_SERVER.Pipe(duplex=False)
    process = FORK_SERVER.Process(target=work, args=(said, *arguments), daemon=True)
    process.start()
    said.close()  # or nobody would notice that the process has ended
    try:
        yield process, heard
    finally:
        process.kill()
        process.join()
        heard.close()


def all_said(process: ForkServerProcess, heard: Connection) -> list[Any]:
    """Return what a process says until it ends."""
    words = []
    while heard.poll(PATIENCE_S):
        try:
            words.append(heard.recv())
        except EOFError:
            process.join()
            return words
    raise TimeoutError(f"the process must end or say something within {PATIENCE_S:g} s, got nothing")


def append_for_ever(said: Connection, path: Path, max_file_bytes: int | None = None, payload_bytes: int = 800) -> None:
    """Append one transaction after the other, and say after each that it is durable."""
    if max_file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    journal = Journal(path, session=SESSION, party=PARTY)
    for t in range(10**9):
        try:
            journal.append([Credited(2 * t + half, bytes(payload_bytes)) for half in range(2)])
        except JournalUnusable as error:
            said.send(str(error))
            return
        said.send(t)


def open_and_wait(said: Connection, path: Path, seed: bytes) -> None:
    """Write an opening with a seed, say so, and wait to be killed."""
    journal = Journal(path, session=SESSION, party=PARTY)
    if not journal.read():
        journal.append([Opened(bytes(100), seed, bytes(32)), Secret(0, seed)])
    journal.append([Seeded(bytes(32))])
    said.send("written")
    time.sleep(1000)


def say_core_limits(said: Connection) -> None:
    """Refuse core dumps, and say how large one may be."""
    refuse_core_dumps()
    said.send(resource.getrlimit(resource.RLIMIT_CORE))


def say_open_file_limits(said: Connection, limits: tuple[int, int], parties: int) -> None:
    """Allow connections to all parties, and say how many files may be open then, or why it is refused."""
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    try:
        allow_connections(parties)
    except InvalidInput as error:
        said.send(str(error))
    else:
        said.send(str(resource.getrlimit(resource.RLIMIT_NOFILE)))
