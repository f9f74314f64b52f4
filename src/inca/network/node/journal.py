"""What a party must not forget, on its own disk: an append-only list of records in SQLite.

A transaction is durable when `append` returns (write-ahead log with synchronous=FULL: it survives a power cut). The
file is private to its owner and locked while a party runs, so that no second process can go on with it. Each record
that may exist only once has a unique key: the database would refuse a second decision about a transfer even if the
program did not.

Payloads, which may be megabytes each, lie beside it, in plain files that records name (`payload_files`): a database
would write them twice, and slowly.

The secrets of cohorts lie beside it, in a file of their own for each (`journal.db-secret-N`), since a row that is
deleted stays in the database's write-ahead log. The file of a later cohort is durable before the transaction that the
smaller cohort belongs to; those of earlier cohorts are overwritten and removed right after it, and before anything is
sent. Should the process die in between, the earliest one that is there counts, and is erased when the party is back.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from inca.errors import InvalidInput, JournalUnusable
from inca.network.node.durable_files import overwrite, shred_all, sync_folder, write_durably
from inca.network.node.payload_files import PayloadFile, PayloadFiles, numbered, payload_files, payload_path
from inca.network.node.session_cost import session_bytes
from inca.network.protocol.messages import Item
from inca.network.protocol.records import (
    Answered,
    Began,
    Credited,
    Erased,
    Opened,
    Record,
    Secret,
    Signed,
    Tombstoned,
    payload_fields,
)
from inca.network.protocol.session import SessionConfig

FORMAT = "inca-journal/6"
_SETTINGS = (
    "locking_mode = EXCLUSIVE",  # and no shared memory: one process only
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",
)
_PAYLOAD = 1  # the code of the extension of msgpack by which a record names its file


def _name(payload: PayloadFile) -> msgspec.msgpack.Ext:
    """Return how a record names the file of a payload."""
    return msgspec.msgpack.Ext(_PAYLOAD, b"%d %d" % (payload.number, len(payload)))


_encoder = msgspec.msgpack.Encoder(enc_hook=_name)
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class Journal:
    """The journal of one party in one session; begun if it is not there."""

    def __init__(self, path: Path, *, session: bytes, party: int) -> None:
        self.path = path
        self.commits = 0
        self._payloads = PayloadFiles(path)
        try:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                sync_folder(path.parent)
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
        """Write records in one transaction; when this returns they are durable, and what they erase is erased.

        Their large payloads are in files then, and the records hold these in place of the bytes.
        """
        if not records:
            return
        named, first, before = False, self._payloads.next_number, list[tuple[msgspec.Struct, str, bytes]]()
        about_secrets = [record for record in records if isinstance(record, Secret | Erased)]
        kept = [record for record in about_secrets[-1:] if isinstance(record, Secret)]
        fields = [place for record in records for place in payload_fields(record)]
        try:
            for secret in kept:
                write_durably(secret_path(self.path, secret.cohort), _encoder.encode(secret))
            for holder, field in fields:
                if (content := self._payloads.put_away(holder, field)) is not None:
                    before.append((holder, field, content))
            if before:
                sync_folder(self.path.parent)
            rows = [(_unique_key(r), _encoder.encode(r)) for r in records if not isinstance(r, Secret)]
            with _transaction(self._database):
                self._database.executemany("INSERT INTO records (once, body) VALUES (?, ?)", rows)
                named = True  # for all that is known, even if committing fails
                self._payloads.keep(payload.number for payload in _in_files(fields))
            if about_secrets:
                last = kept[0].cohort if kept else None
                shred_all(path for cohort, path in secret_files(self.path) if cohort != last)
        except (sqlite3.Error, OSError) as error:
            if not named:  # such files are in the way, most of all on a full disk
                self._payloads.shred_from(first)
                for holder, field, content in before:
                    msgspec.structs.force_setattr(holder, field, content)
            raise JournalUnusable(f"the journal {self.path} cannot be written: {error}") from None
        self.commits += 1

    def write_ahead(self, items: Iterable[Item]) -> None:
        """Write large sealed messages in the background: a record that names them later need not write them."""
        self._payloads.write_ahead(items)

    def _decoded(self, body: bytes) -> Record:
        marks = dict[int, tuple[bytes, PayloadFile]]()

        def mark(code: int, name: memoryview) -> bytes:
            number, size = map(int, bytes(name).split())
            path = payload_path(self.path, number)
            if code != _PAYLOAD or path.stat().st_size != size:
                raise JournalUnusable(f"the journal {self.path} lacks a part of the file {number} beside it")
            place = bytes(name)
            marks[id(place)] = place, PayloadFile(path, number, size)
            return place

        builtins = msgspec.msgpack.decode(body, ext_hook=mark)
        record: Record = msgspec.convert(builtins, Record, builtin_types=(bytes,))
        for holder, field in payload_fields(record):
            if (place := marks.get(id(getattr(holder, field)))) is not None:
                msgspec.structs.force_setattr(holder, field, place[1])
        return record

    def read(self) -> list[Record]:
        """Return all records in order, and then the secrets, unless they are erased.

        Payloads that lie in files are read when they are looked at.
        """
        try:
            rows = self._database.execute("SELECT body FROM records ORDER BY place").fetchall()
            records = [self._decoded(body) for (body,) in rows]
            named = _in_files(place for record in records for place in payload_fields(record))
            self._payloads.shred_leftovers({payload.number for payload in named})
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
        self._payloads.close()
        with suppress(sqlite3.Error):
            _, left, moved = self._database.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
            log = self.path.with_name(self.path.name + "-wal")
            if left == moved and log.exists():
                overwrite(log)
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
    return numbered(path, "secret")


def secret_path(path: Path, cohort: int) -> Path:
    """Return the file with the secrets of a cohort beside a journal."""
    return path.with_name(f"{path.name}-secret-{cohort}")


def _in_files(places: Iterable[tuple[msgspec.Struct, str]]) -> list[PayloadFile]:
    """Return the payloads in these places that lie in files."""
    payloads = (getattr(holder, field) for holder, field in places)
    return [payload for payload in payloads if isinstance(payload, PayloadFile)]


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
    """Refuse to go on with a disk that will be full before the end of the session; what is written counts."""
    needed = session_bytes(session).disk - sum(file.stat().st_size for file in folder.glob("journal.db*"))
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < needed:
        must_be = f"at least {needed / 2**20:.1f} MiB free for the session"
        raise InvalidInput(f"{folder} must have {must_be}, got {free / 2**20:.1f} MiB")
