"""Payloads of a journal that lie in files of their own: durable before they are named, and whole or not believed."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from inca.errors import JournalUnusable
from inca.network.node import journal as journals
from inca.network.node.journal import Journal
from inca.network.node.payload_files import payload_files
from inca.network.protocol.messages import Item, Lock, OfferProof, Proposal
from inca.network.protocol.records import (
    Accepted,
    Began,
    Credited,
    Kept,
    Opened,
    Record,
    Sealed,
    Secret,
    Seeded,
    Signed,
    Tombstoned,
    payload_fields,
)

SESSION = bytes(range(32))


def payload() -> bytes:
    return secrets.token_bytes(70_001)


def deposit(party: int) -> Item:
    return Item("deposit", party, b"body %d" % party, b"signature", payload())


def records_with_payloads() -> list[Record]:
    proof = OfferProof(1, bytes(8), bytes(32), b"signature")
    lock = Lock(3, Proposal("commit", [(1, bytes(32))]), [(1, b"vote")])
    return [
        Opened(payload(), bytes(32), bytes(32)),
        Seeded(bytes(32)),
        Began(1, payload()),
        Credited(1, payload(), proof),
        Tombstoned(2, proof, payload()),
        Signed(deposit(3), 0),
        Accepted(1, lock, [deposit(1), Item("digest", 2, b"small", b"s"), deposit(2)]),
        Kept([deposit(4)]),
        Secret(0, bytes(32)),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@contextmanager
def opened(path: Path) -> Iterator[Journal]:
    journal = Journal(path, session=SESSION, party=3)
    try:
        yield journal
    finally:
        journal.close()


@pytest.fixture
def written(path: Path) -> list[Record]:
    records = records_with_payloads()
    with opened(path) as journal:
        journal.append(records)
    return records


def test_records_come_back_from_their_files(path: Path, written: list[Record]) -> None:
    assert len(payload_files(path)) == 8 and path.stat().st_size < 70_000
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in path.parent.iterdir())
    with opened(path) as journal:
        journal.append([again := Credited(3, payload())])  # it takes a name that is free
        assert journal.read() == [*written[:-1], again, written[-1]]  # the secrets come last


def test_records_hold_the_files_and_no_longer_the_bytes(path: Path) -> None:
    """Both those that were written and those that were read; looking at one twice reads it once."""
    records, kept = records_with_payloads(), records_with_payloads()
    for record, copy in zip(records, kept, strict=True):
        for (holder, field), (other, _) in zip(payload_fields(record), payload_fields(copy), strict=True):
            msgspec.structs.force_setattr(other, field, getattr(holder, field))
    with opened(path) as journal:
        journal.append(records)
        for held in (records, journal.read()):
            payloads = [getattr(*place) for record in held for place in payload_fields(record)]
            stored = [payload for payload in payloads if not isinstance(payload, bytes)]
            assert len(stored) == 8 and all(len(payload) == 70_001 for payload in stored)
            assert repr(stored[0]) == "<70001 bytes>" and stored[0].read().obj is stored[0].read().obj
            assert held == kept


@pytest.mark.parametrize("harm", ["gone", "short", "long"])
def test_a_file_that_is_not_whole_is_not_believed(path: Path, written: list[Record], harm: str) -> None:
    _, file = payload_files(path)[4]
    content = file.read_bytes()
    file.unlink()
    if harm != "gone":
        file.write_bytes(content[:-1] if harm == "short" else content + b"x")
    with opened(path) as journal, pytest.raises(JournalUnusable, match=f"the journal {path} "):
        journal.read()


def test_files_are_durable_with_their_names_before_a_record_names_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable, fsync = list[str](), os.fsync

    def synced(descriptor: int) -> None:
        durable.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    @contextmanager
    def power_cut(database: sqlite3.Connection) -> Iterator[None]:
        assert durable == ["journal.db-payload-0", "journal.db-payload-1", path.parent.name]
        raise sqlite3.OperationalError("the power is cut")
        yield

    with opened(path) as journal:
        journal.append([Sealed()])
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", synced)
            patched.setattr(journals, "_transaction", power_cut)
            with pytest.raises(JournalUnusable, match="the power is cut"):
                journal.append([Began(1, payload()), Credited(1, payload())])
        assert journal.read() == [Sealed()] and not payload_files(path)


def test_what_a_durable_record_names_stays_though_something_fails_after_it(path: Path) -> None:
    records: list[Record] = [Opened(payload(), bytes(32), bytes(32)), Secret(1, bytes(32))]
    (earlier := path.with_name("journal.db-secret-0")).mkdir()  # it cannot be overwritten
    with opened(path) as journal, pytest.raises(JournalUnusable, match="Is a directory"):
        journal.append(records)
    earlier.rmdir()
    with opened(path) as journal:
        assert journal.read() == records


def test_what_no_record_names_means_nothing(path: Path) -> None:
    """A process died after it wrote a file, and before the transaction that was to name it."""
    with opened(path) as journal:
        journal.append([Sealed()])
    path.with_name("journal.db-payload-7").write_bytes(payload())
    with opened(path) as journal:
        journal.append([Began(1, share := payload())])
        assert journal.read() == [Sealed(), Began(1, share)]
        journal.shred()
    assert not list(path.parent.iterdir())


def test_the_database_has_none_of_their_bytes(path: Path, written: list[Record]) -> None:
    with closing(sqlite3.connect(path)) as database:
        bodies = [body for (body,) in database.execute("SELECT body FROM records")]
    assert max(map(len, bodies)) < 400 and len(bodies) == len(written) - 1  # the secrets have a file, too
