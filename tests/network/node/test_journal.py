from __future__ import annotations

import gc
import os
import secrets
import signal
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.forked_processes import SESSION, all_said, append_for_ever, forked
from helpers.ledgers import SESSION as CONFIG
from inca.errors import InvalidInput, JournalUnusable
from inca.network.node.journal import Journal, check_disk_space
from inca.network.node.payload_files import payload_files
from inca.network.protocol.messages import Decision, Item, Lock, Proposal
from inca.network.protocol.records import (
    Accepted,
    Answered,
    Began,
    Credited,
    Decided,
    Joined,
    Left,
    Opened,
    Promised,
    Record,
    Sealed,
    Secret,
    Seeded,
    Signed,
    Tombstoned,
    Voted,
)

COHORT = Proposal("cohort", [(3, bytes(32)), (4, b"\xff" * 32)])


def opened(path: Path, session: bytes = SESSION, party: int = 3) -> Journal:
    return Journal(path, session=session, party=party)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_a_journal_of_another_version_is_refused_and_left_alone(path: Path) -> None:
    opened(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE about SET mark = ?", (f"inca-journal/2 {SESSION.hex()} 3",))
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"was begun by another version, which must end the session$"):
        opened(path)
    assert path.read_bytes() == before


def test_every_kind_of_record_comes_back_as_it_was_in_order(path: Path) -> None:
    records: list[Record] = [
        Opened(b"noisy", bytes(32), secrets.token_bytes(32)),
        Seeded(b"seed" * 4),
        Joined(2),
        Began(3, b"share"),
        Credited(3, b"payload"),
        Tombstoned(4),
        Answered(3, "acked"),
        Promised(0, 7),
        Voted(0, 7, COHORT.hash),
        Accepted(0, Lock(7, COHORT, [(1, b"vote")]), [Item("digest", 4, b"account", b"signature")]),
        Decided(Decision(7, COHORT, [(0, b"signature"), (3, b"another")])),
        Sealed(),
        Signed(Item("deposit", 3, b"body", b"signature", b"sealed"), 0),
        Left("the journal is lost"),
    ]
    journal = opened(path)
    assert journal.read() == []
    secret = Secret(0, secrets.token_bytes(32))
    journal.append([secret, *records[:5]])
    journal.append([])
    for record in records[5:]:
        journal.append([record])
    records.append(secret)  # it comes last
    assert journal.read() == records and journal.commits == 10
    journal.close()
    again = opened(path)
    assert again.read() == records and again.commits == 0
    again.close()


@pytest.mark.parametrize(("count", "payload_bytes"), [(1, 800), (60, 800), (20, 100_000)])
def test_what_was_acknowledged_survives_a_kill(path: Path, count: int, payload_bytes: int) -> None:
    with forked(append_for_ever, path, None, payload_bytes) as (process, heard):
        while heard.recv() < count:
            pass
        process.kill()
        last = max([count, *all_said(process, heard)])
        assert process.exitcode == -signal.SIGKILL
    journal = opened(path)
    rounds = [record.round for record in journal.read() if isinstance(record, Credited)]
    journal.close()
    # All that was acknowledged, perhaps one more; transactions are there whole or not at all.
    assert len(rounds) in (2 * (last + 1), 2 * (last + 2))
    assert rounds == list(range(len(rounds)))


def test_durable_settings(path: Path) -> None:
    """A commit waits for the disk (2 is FULL), and deleted pages are overwritten."""
    journal = opened(path)
    asked = {
        name: journal._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
    }
    assert asked == {"synchronous": 2, "journal_mode": "wal"}
    assert journal._database.execute("PRAGMA secure_delete").fetchone()[0] == 1
    journal.close()


def test_files_are_private_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        journal = opened(path)
        journal.append([Sealed()])
    finally:
        os.umask(before)
    files = list(path.parent.iterdir())
    assert len(files) == 2 and {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    journal.close()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_journal_that_others_can_read_or_write_is_refused(path: Path, mode: int) -> None:
    opened(path).close()
    path.chmod(mode)
    with pytest.raises(InvalidInput, match=rf"journal\.db must be 0600, for its owner alone, got {mode:04o}"):
        opened(path)


def test_one_process_at_a_time(path: Path) -> None:
    with forked(append_for_ever, path) as (_, heard):
        assert heard.recv() == 0
        with pytest.raises(InvalidInput, match="is in use by another process"):
            opened(path)
    opened(path).close()


@pytest.mark.parametrize(("session", "party"), [(bytes(32), 3), (b"\xff" * 32, 3), (SESSION, 2), (SESSION, 4)])
def test_the_journal_of_another_session_or_party_is_refused(path: Path, session: bytes, party: int) -> None:
    opened(path).close()
    with pytest.raises(InvalidInput, match="belongs to another session or party"):
        opened(path, session, party)
    opened(path).close()  # and is not harmed


TWICE: dict[str, tuple[Record, Record]] = {
    "opened": (Opened(b"a", b"b", b"c"), Opened(b"d", b"e", b"f")),
    "round": (Began(2, b"a"), Began(2, b"b")),
    "credited": (Credited(1, b"a"), Credited(1, b"b")),
    "credited and voided": (Credited(1, b"a"), Tombstoned(1)),
    "voided and credited": (Tombstoned(1), Credited(1, b"a")),
    "fate": (Answered(1, "acked"), Answered(1, "voided")),
    "digest": (Signed(Item("digest", 3, b"a", b"b")), Signed(Item("digest", 3, b"c", b"d"))),
    "deposit": (Signed(Item("deposit", 3, b"a", b"b"), 1), Signed(Item("deposit", 3, b"c", b"d"), 1)),
    "deposit and refusal": (Signed(Item("deposit", 3, b"a", b"b"), 1), Signed(Item("refusal", 3, b"c", b"d"), 1)),
}


@pytest.mark.parametrize("case", TWICE)
def test_the_database_refuses_a_second_decision_and_the_rest_of_its_transaction(case: str, path: Path) -> None:
    first, second = TWICE[case]
    journal, secret = opened(path), Secret(0, bytes(32))
    journal.append([first, secret])
    there = [secret] if isinstance(first, Opened) else []
    with pytest.raises(JournalUnusable, match="cannot be written: UNIQUE constraint failed"):
        journal.append([Sealed(), second])
    assert journal.read() == [first, *there]
    journal.append([Sealed()])  # and can be used again
    assert journal.read() == [first, Sealed(), *there]
    journal.close()


DAMAGE = {
    "not a database": b"nonsense " * 1000,
    "cut": b"SQLite format 3\0" + bytes(50),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_file_is_told(case: str, path: Path) -> None:
    path.write_bytes(DAMAGE[case])
    path.chmod(0o600)
    with pytest.raises(JournalUnusable, match="cannot be used"):
        opened(path)


def test_a_damaged_page_is_told(path: Path) -> None:
    journal = opened(path)
    journal.append([Credited(t, secrets.token_bytes(400)) for t in range(200)])
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + bytes(16384) + whole[24576:])
    with pytest.raises(JournalUnusable):
        opened(path).read()


def test_a_damaged_record_is_told(path: Path) -> None:
    journal = opened(path)
    journal.append([Sealed(), Tombstoned(1)])
    journal.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE records SET body = x'ff00' WHERE place = 2")
        database.commit()
    damaged = opened(path)
    with pytest.raises(JournalUnusable, match="cannot be read"):
        damaged.read()
    damaged.close()


@pytest.mark.parametrize(("payload_bytes", "least"), [(800, 6), (400_000, 0)])
def test_a_full_disk_is_told_and_loses_nothing(path: Path, payload_bytes: int, least: int) -> None:
    with forked(append_for_ever, path, 300_000, payload_bytes) as (process, heard):
        *numbers, error = all_said(process, heard)
        assert process.exitcode == 0 and numbers == list(range(len(numbers))) and len(numbers) >= least
    assert error.startswith(f"the journal {path} cannot be written: ")
    assert not payload_files(path)
    journal = opened(path)
    assert len(journal.read()) == 2 * len(numbers)
    journal.append([Sealed()])  # there is room again
    journal.close()


def test_a_journal_in_a_folder_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(JournalUnusable, match="cannot be used: No such file or directory"):
        opened(path.parent / "nowhere" / "journal.db")


def test_a_failure_in_a_transaction_leaves_nothing_begun(path: Path) -> None:
    journal = opened(path)
    journal.append([Began(1, b"a")])
    for _ in range(2):
        with pytest.raises(JournalUnusable):
            journal.append([Sealed(), Began(1, b"b")])
        assert not journal._database.in_transaction
    assert journal.commits == 1
    journal.close()


@pytest.mark.parametrize("enough", [True, False])
@pytest.mark.parametrize("written", [0, 2**20])
def test_a_session_begins_only_where_its_journal_fits_and_half_as_much(
    enough: bool, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 8 bytes for each number and the weight: shares in and out, final ones, value, result and its sum.

    A party that comes back has written some of it.
    """
    (tmp_path / "journal.db-payload-0").write_bytes(bytes(written))
    session = replace(CONFIG, rounds=3, dimension=100_000)
    needed = 12 * 100_001 * (4 + 2 * 3 + session.parties) + 2**20 - written
    assert needed % 4 == 0
    blocks = needed // 4 if enough else needed // 4 - 1
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=blocks, f_frsize=4, f_bfree=2**40))
    size = r"16\.0 " if written else r"17\.0 "
    if enough:
        check_disk_space(tmp_path, session)
    else:
        with pytest.raises(InvalidInput, match=rf"must have at least {size}MiB free for the session, got {size}MiB"):
            check_disk_space(tmp_path, session)


def test_no_file_stays_open(path: Path) -> None:
    gc.collect()  # what other tests have left is not closed in between
    before = len(list(Path("/proc/self/fd").iterdir()))
    opened(path).shred()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
