"""What a party must not forget, on its own disk: an append-only list of records in SQLite.

A transaction is durable when `append` returns (write-ahead log with synchronous=FULL: it survives a power cut). The
file is private to its owner and locked while a party runs, so that no second process can go on with it. Each record
that may exist only once has a unique key: the database would refuse a second decision about a transfer even if the
program did not.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from inca._base.validation import InputError
from inca.network.protocol.ledger import Began, Credited, Opened, Record, Settled, Signed, Tombstoned

FORMAT = "inca-journal/1"
_PIECE = 2**20

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class JournalError(Exception):
    """The disk does not take or give back what it should; the party must stop."""


class Journal:
    """The journal of one party in one session.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "journal.db", session=bytes(32), party=3)
    ...     journal.append([Tombstoned(1, 0, 0)])
    ...     journal.close()
    ...     Journal(Path(folder) / "journal.db", session=bytes(32), party=3).read()
    [Tombstoned(round=1, sender=0, slot=0)]
    """

    def __init__(self, path: Path, *, session: bytes, party: int) -> None:
        """Open the journal, or begin one; refuse that of another session or party, or one that others can read."""
        self.path = path
        self.commits = 0
        try:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                _sync_folder(path.parent)
            mode = path.stat().st_mode & 0o777
        except OSError as error:
            raise JournalError(f"the journal {path} cannot be used: {error.strerror or error}") from None
        if mode & 0o077:
            raise InputError(f"the mode of the journal {path} is {mode:04o}, but 0600 (only its owner) was expected")
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=0.0)
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")  # and no shared memory: one process only
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA secure_delete = ON")
            self._identify(session, party)
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise InputError(f"the journal {path} is in use by another process") from None
            raise JournalError(f"the journal {path} cannot be used: {error}") from None

    def _identify(self, session: bytes, party: int) -> None:
        mark = f"{FORMAT} {session.hex()} {party}"
        with _Transaction(self._database):
            self._database.execute("CREATE TABLE IF NOT EXISTS about (mark TEXT)")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS records (place INTEGER PRIMARY KEY, once TEXT UNIQUE, body BLOB NOT NULL)"
            )
            found = self._database.execute("SELECT mark FROM about").fetchone()
            if found is None:
                self._database.execute("INSERT INTO about VALUES (?)", (mark,))
        if found is not None and found[0] != mark:
            self._database.close()
            raise InputError(f"the journal {self.path} belongs to another session or party")

    def append(self, records: Sequence[Record]) -> None:
        """Write records in one transaction; when this returns they are durable."""
        if not records:
            return
        try:
            with _Transaction(self._database):
                self._database.executemany(
                    "INSERT INTO records (once, body) VALUES (?, ?)",
                    [(_once(record), _encoder.encode(record)) for record in records],
                )
        except sqlite3.Error as error:
            raise JournalError(f"the journal {self.path} cannot be written: {error}") from None
        self.commits += 1

    def read(self) -> list[Record]:
        """Return all records in order."""
        try:
            rows = self._database.execute("SELECT body FROM records ORDER BY place").fetchall()
            return [_decoder.decode(body) for (body,) in rows]
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise JournalError(f"the journal {self.path} cannot be read: {error}") from None

    def close(self) -> None:
        """Close the file; it can be opened again."""
        self._database.close()

    def shred(self) -> None:
        """Overwrite the journal with random bytes and remove it.

        On disks that write elsewhere (flash, copy-on-write file systems, snapshots) older copies may remain.
        """
        self.close()
        for path in (self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))):
            if not path.exists():
                continue
            with path.open("r+b", buffering=0) as file:
                left = path.stat().st_size
                while left > 0:
                    left -= file.write(secrets.token_bytes(min(left, _PIECE)))
                os.fsync(file.fileno())
            path.unlink()
        _sync_folder(self.path.parent)


class _Transaction:
    """BEGIN IMMEDIATE ... COMMIT, or nothing."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._database.execute("COMMIT")
        elif self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _once(record: Record) -> str | None:
    """Return the key under which only one record may exist."""
    match record:
        case Opened():
            return "opened"
        case Began():
            return f"round {record.round}"
        case Credited() | Tombstoned():
            return f"decision {record.round} {record.sender} {record.slot}"
        case Settled():
            return f"fate {record.round} {record.slot}"
        case Signed():
            return f"signed {record.item.kind}"
        case _:
            return None


def _sync_folder(folder: Path) -> None:
    """Make a new or removed name durable, too."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
