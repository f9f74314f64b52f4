"""What a party must not forget, on its own disk: an append-only list of records in SQLite.

A transaction is durable when `append` returns (write-ahead log with synchronous=FULL: it survives a power cut). The
file is private to its owner and locked while a party runs, so that no second process can go on with it. Each record
that may exist only once has a unique key: the database would refuse a second decision about a transfer even if the
program did not.

Payloads, which may be megabytes each, lie beside it, in plain files (`journal.db-payload-N`) that records name: a
database would write them twice, and slowly. They are durable before the transaction that names them, and whole then;
one that no record names is left of a process that died, and means nothing.

The secrets of cohorts lie beside it, in a file of their own for each (`journal.db-secret-N`), since a row that is
deleted stays in the database's write-ahead log. The file of a later cohort is durable before the transaction that the
smaller cohort belongs to; those of earlier cohorts are overwritten and removed right after it, and before anything is
sent. Should the process die in between, the earliest one that is there counts, and is erased when the party is back.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec

from inca.errors import InvalidInput, JournalUnusable
from inca.network.lattice.discrete_gaussian import Keystream
from inca.network.node.session_cost import session_bytes
from inca.network.protocol.records import Answered, Began, Credited, Erased, Opened, Record, Secret, Signed, Tombstoned
from inca.network.protocol.session import SessionConfig

FORMAT = "inca-journal/6"
_SETTINGS = (
    "locking_mode = EXCLUSIVE",  # and no shared memory: one process only
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",
)
_LEAST_PAYLOAD = 2**16  # bytes that lie in a file of their own
_PAYLOAD = 1  # the code of the extension of msgpack by which a record names its file
_SHRED_BYTES = 2**20  # overwritten at a time

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class Journal:
    """The journal of one party in one session; begun if it is not there."""

    def __init__(self, path: Path, *, session: bytes, party: int) -> None:
        self.path = path
        self.commits = 0
        self._files: dict[int, Path] = {}  # with the payloads just written or read, by the identity of the bytes
        self._payloads = 1 + max((number for number, _ in payload_files(path)), default=-1)  # the next one
        try:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                _sync_folder(path.parent)
            mode = path.stat().st_mode & 0o777
        except OSError as error:
            raise JournalUnusable(f"the journal {path} cannot be used: {error.strerror or error}") from None
        if mode & 0o077:
            raise InvalidInput(f"the mode of the journal {path} must be 0600, for its owner alone, got {mode:04o}")
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=0.0)
            for setting in _SETTINGS:
                self._database.execute(f"PRAGMA {setting}")
            self._identify(session, party)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)  # the primary code is in its lowest byte
            if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise InvalidInput(f"the journal {path} is in use by another process") from None
            raise JournalUnusable(f"the journal {path} cannot be used: {error}") from None

    def _identify(self, session: bytes, party: int) -> None:
        owner = f"{FORMAT} {session.hex()} {party}"
        with _transaction(self._database):
            self._database.execute("CREATE TABLE IF NOT EXISTS about (mark TEXT)")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS records (place INTEGER PRIMARY KEY, once TEXT UNIQUE, body BLOB NOT NULL)"
            )
            row = self._database.execute("SELECT mark FROM about").fetchone()
            if row is None:
                self._database.execute("INSERT INTO about VALUES (?)", (owner,))
        if row is not None and row[0] != owner:
            self._database.close()
            if not row[0].startswith(FORMAT):
                raise InvalidInput(f"the journal {self.path} was begun by another version, which must end the session")
            raise InvalidInput(f"the journal {self.path} belongs to another session or party")

    def append(self, records: Sequence[Record]) -> None:
        """Write records in one transaction; when this returns they are durable, and what they erase is erased."""
        if not records:
            return
        self._files.clear()
        named = False
        about_secrets = [record for record in records if isinstance(record, Secret | Erased)]
        kept = [record for record in about_secrets[-1:] if isinstance(record, Secret)]
        try:
            for secret in kept:
                path = self.path.with_name(f"{self.path.name}-secret-{secret.cohort}")
                _write_durably(path, _encoder.encode(secret))
            rows = [(_unique_key(r), self._encoded(r)) for r in records if not isinstance(r, Secret)]
            if self._files:
                _sync_folder(self.path.parent)
            with _transaction(self._database):
                self._database.executemany("INSERT INTO records (once, body) VALUES (?, ?)", rows)
                named = True  # for all that is known, even if committing fails
            if about_secrets:
                last = kept[0].cohort if kept else None
                shred_all(path for cohort, path in secret_files(self.path) if cohort != last)
        except (sqlite3.Error, OSError) as error:
            if not named:  # such files are in the way, most of all on a full disk
                with suppress(OSError):
                    shred_all(self._files.values())
            raise JournalUnusable(f"the journal {self.path} cannot be written: {error}") from None
        self.commits += 1

    def in_files(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield those of the records just written or read whose share lies in a file, with the file for the bytes.

        What is in a file is read when it is looked at, so nobody need hold the bytes.
        """
        for record in records:
            if isinstance(record, Began) and (path := self._files.get(id(record.share))):
                yield msgspec.structs.replace(record, share=_as_file(path))
            elif isinstance(record, Credited) and (path := self._files.get(id(record.payload))):
                yield msgspec.structs.replace(record, payload=_as_file(path))

    def _encoded(self, record: Record) -> bytes:
        """Return the bytes of a record, with payloads in files, which are durable but for their names."""

        def without_payloads(part: Any) -> Any:
            if isinstance(part, list | tuple):
                return [without_payloads(entry) for entry in part]
            if not isinstance(part, bytes) or len(part) < _LEAST_PAYLOAD:
                return part
            number, self._payloads = self._payloads, self._payloads + 1
            path = self.path.with_name(f"{self.path.name}-payload-{number}")
            self._files[id(part)] = path
            _write(path, part)
            return msgspec.msgpack.Ext(_PAYLOAD, b"%d %d" % (number, len(part)))

        return _encoder.encode(without_payloads(msgspec.to_builtins(record, builtin_types=(bytes,))))

    def _decoded(self, body: bytes) -> Record:
        def payload(code: int, name: memoryview) -> bytes:
            number, size = map(int, bytes(name).split())
            path = self.path.with_name(f"{self.path.name}-payload-{number}")
            content = path.read_bytes()
            self._files[id(content)] = path
            if code != _PAYLOAD or len(content) != size:
                raise JournalUnusable(f"the journal {self.path} lacks a part of the file {number} beside it")
            return content

        record: Record = msgspec.convert(msgspec.msgpack.decode(body, ext_hook=payload), Record, builtin_types=(bytes,))
        return record

    def read(self) -> list[Record]:
        """Return all records in order, and then the secrets, unless they are erased."""
        try:
            rows = self._database.execute("SELECT body FROM records ORDER BY place").fetchall()
            records = [self._decoded(body) for (body,) in rows]
            if any(isinstance(record, Erased) for record in records):
                shred_all(path for _, path in secret_files(self.path))
                return records
            begun = any(isinstance(record, Opened) for record in records)
            return [*records, self._earliest_secret()] if begun else records
        except (sqlite3.Error, OSError, msgspec.MsgspecError) as error:
            raise JournalUnusable(f"the journal {self.path} cannot be read: {error}") from None

    def _earliest_secret(self) -> Record:
        """Return the secrets that count, and remove all others.

        An earlier file that cannot be read was being overwritten when the process died, and a later one was written for
        a transaction that never was.
        """
        there = secret_files(self.path)
        for _, path in there:
            with suppress(msgspec.MsgspecError):
                secret = _decoder.decode(path.read_bytes())
                shred_all(other for _, other in there if other != path)
                return secret
        raise JournalUnusable(f"the journal {self.path} lacks the file with its secrets beside it")

    def close(self) -> None:
        """Close the file; it can be opened again.

        The database removes its write-ahead log, whose bytes would stay on the disk: they are overwritten before, once
        everything is in the file itself.
        """
        with suppress(sqlite3.Error):
            _, left, moved = self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
            log = self.path.with_name(self.path.name + "-wal")
            if left == moved and log.exists():
                _overwrite(log)
        self._database.close()

    def shred(self) -> None:
        """Overwrite the journal with random bytes and remove it.

        On disks that write elsewhere (flash, copy-on-write file systems, snapshots) older copies may remain.
        """
        self.close()
        shred_files(self.path)


def shred_files(path: Path) -> None:
    """Overwrite a journal that no process uses, and what lies beside it, and remove them."""
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    numbered = [file for _, file in [*secret_files(path), *payload_files(path)]]
    shred_all([path, *beside, *numbered])


def secret_files(path: Path) -> list[tuple[int, Path]]:
    """Return the files with the secrets of cohorts beside a journal, by the number of the cohort."""
    return _numbered(path, "secret")


def payload_files(path: Path) -> list[tuple[int, Path]]:
    """Return the files with payloads beside a journal, by their numbers."""
    return _numbered(path, "payload")


def _numbered(path: Path, what: str) -> list[tuple[int, Path]]:
    files = path.parent.glob(f"{path.name}-{what}-*")
    return sorted((int(match[1]), file) for file in files if (match := re.fullmatch(rf".*-{what}-(\d+)", file.name)))


def shred_all(paths: Iterable[Path]) -> None:
    """Overwrite files with random bytes and remove them, durably."""
    for file in [path for path in paths if path.exists()]:
        _overwrite(file)
        file.unlink()
        _sync_folder(file.parent)


def _write_durably(path: Path, content: bytes) -> None:
    """Write a file for its owner alone; when this returns it is durable, and whole."""
    _write(path, content)
    _sync_folder(path.parent)


def _write(path: Path, content: bytes) -> None:
    """Write a file for its owner alone; its content is durable, but its name is not."""
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _as_file(path: Path) -> mmap:
    """Return the bytes of a file, which are read when they are looked at."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _overwrite(path: Path) -> None:
    """Replace the bytes of a file by random ones, durably."""
    stream = Keystream(os.urandom(32), b"overwriting")
    with path.open("r+b", buffering=0) as file:
        left = path.stat().st_size
        while left > 0:
            random = stream.words(_SHRED_BYTES // 8).tobytes()
            left -= file.write(random[: min(left, _SHRED_BYTES)])
        os.fsync(file.fileno())


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE ... COMMIT, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    with database:
        yield


def _unique_key(record: Record) -> str | None:
    """Return the key under which only one such record may exist; None if there may be many."""
    match record:
        case Opened():
            return "opened"
        case Began():
            return f"round {record.round}"
        case Credited() | Tombstoned():
            return f"decision {record.round}"
        case Answered():
            return f"fate {record.round}"
        case Signed():  # of a cohort, a deposit or a refusal
            return f"signed {record.item.kind}" if record.cohort is None else f"word {record.cohort}"
        case _:
            return None


def check_disk_space(folder: Path, session: SessionConfig) -> None:
    """Refuse to begin on a disk that will be full before the end of the session."""
    needed = session_bytes(session).disk
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < needed:
        must_be = f"at least {needed / 2**20:.1f} MiB free for the session"
        raise InvalidInput(f"{folder} must have {must_be}, got {free / 2**20:.1f} MiB")


def _sync_folder(folder: Path) -> None:
    """Make a new or removed name durable, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
