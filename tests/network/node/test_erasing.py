"""Secrets of a cohort that were erased are nowhere in the state folder: its raw bytes are searched.

The write-ahead file is among them, and so are the bytes that removed files have left on the disk.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.ledgers import with_topup
from helpers.parties import PACED
from helpers.rooms_on_disk import RoomOnDisk
from helpers.state_folders import cohorts_in, secrets_in
from helpers.trustee_keys import secrets_of
from inca.network.node import durable_files
from inca.network.node import journal as journal_module
from inca.network.node.journal import Journal, secret_files
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.records import Erased, Opened, Record, Sealed, Secret

N, REFUSING = 5, 4
SMALL = with_topup(replace(PACED, parties=N, rounds=2, min_participants=3))
SESSION = bytes(range(32))


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    for place, name in enumerate(("state", "dealing", "topup", "private_key")):
        (tmp_path / "file").write_bytes(bytes(99) + getattr(secrets_of(3, place), name) + bytes(99))
        assert cohorts_in(tmp_path, 3) == [place]


# --- whole sessions -------------------------------------------------------------------------------------------------


@pytest.fixture
def room(tmp_path: Path) -> Iterator[RoomOnDisk]:
    room = RoomOnDisk(SMALL, tmp_path / "room")
    yield room
    room.close()


def test_after_shrinking_nothing_of_the_first_cohort_is_left(room: RoomOnDisk) -> None:
    """Checked as soon as the smaller cohort is decided, and at the end; also with whoever is left out."""
    room.refusals[REFUSING] = "its loss must be smaller"
    room.open()
    searched: set[int] = set()
    for _ in room.steps(until=60.0):
        for i, ledger in room.durable.items():
            if ledger.cohorts == 1 and ledger.decided and i not in searched:
                assert cohorts_in(room.home(i), i) == [0]
            if ledger.cohorts == 2 and i not in searched:
                searched.add(i)
                assert (room.home(i) / "journal.db-wal").exists()
                assert cohorts_in(room.home(i), i) == [1]
    assert searched == set(range(N)) and room.check().realized.cohort == set(range(N)) - {REFUSING}
    for i in range(N):
        assert not secrets_in(room.home(i), i, 0)


def test_a_session_that_ends_without_commit_leaves_nothing_of_any_cohort(room: RoomOnDisk) -> None:
    room.refusals = dict.fromkeys(range(2, N), "its loss must be smaller")  # too few are left for a smaller cohort
    room.open().run()
    assert not room.results
    for i, party in room.parties.items():
        assert party.stage == "over" and not party.finalization.unfinished
        assert (room.home(i) / "journal.db-wal").exists() and cohorts_in(room.home(i), i) == []


def test_whoever_leaves_before_commit_erases_its_secrets(room: RoomOnDisk) -> None:
    room.open().at_stage(1, "agreeing")
    assert cohorts_in(room.home(1), 1) == [0]
    room.leave(1, "its operator has other plans")
    assert cohorts_in(room.home(1), 1) == []


def test_whoever_has_accepted_commit_and_leaves_keeps_its_key(room: RoomOnDisk) -> None:
    room.open().at_stage(1, "opening")
    room.leave(1, "its operator has other plans")
    assert cohorts_in(room.home(1), 1) == [0]


# --- each step of a write -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


class Steps:
    """Kills a journal before a step of what it does to files, and keeps its folder as the kernel has it then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder, self.left = folder, folder.with_name("left")
        self.count, self.last, self.names = 0, -1, list[str]()
        monkeypatch.setattr(journal_module, "write_durably", self._counted("write", durable_files.write_durably))
        monkeypatch.setattr(durable_files, "overwrite", self._counted("overwrite", durable_files.overwrite))
        monkeypatch.setattr(Path, "unlink", self._counted("remove", Path.unlink))
        transaction = journal_module._transaction

        @contextmanager
        def counted(database: sqlite3.Connection) -> Iterator[None]:
            with transaction(database):
                yield
                self.before("commit")

        monkeypatch.setattr(journal_module, "_transaction", counted)

    def _counted(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.before(name)
            return step(*arguments)

        return counted

    def before(self, name: str) -> None:
        if self.count == self.last:
            shutil.copytree(self.folder, self.left)
            self.last = -1
            raise Killed
        self.count += 1
        self.names.append(name)


OPENING: list[Record] = [Opened(b"noisy", bytes(32), bytes(32)), Secret(0, secrets_of(3).state)]
CHANGES: dict[str, list[Record]] = {
    "shrinking": [Sealed(), Secret(1, secrets_of(3, 1).state)],
    "shrinking twice": [Sealed(), Secret(1, secrets_of(3, 1).state), Secret(2, secrets_of(3, 2).state)],
    "ending": [Sealed(), Erased()],
    "shrinking and ending": [Sealed(), Secret(1, secrets_of(3, 1).state), Erased()],
}
STEPS = {
    "shrinking": ["write", "commit", "overwrite", "remove"],
    "shrinking twice": ["write", "commit", "overwrite", "remove"],
    "ending": ["commit", "overwrite", "remove"],
    "shrinking and ending": ["commit", "overwrite", "remove"],
}


def opened(folder: Path) -> Journal:
    return Journal(folder / "journal.db", session=SESSION, party=3)


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("change", CHANGES)
def test_a_kill_at_any_step_leaves_the_old_secrets_or_the_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, step: int
) -> None:
    """As soon as it is replayed; and until the transaction is there, the old secrets are."""
    folder, kept = tmp_path / "state", tmp_path / "kept"
    folder.mkdir(mode=0o700)
    journal = opened(folder)
    journal.append(OPENING)
    with monkeypatch.context() as patches:
        steps = Steps(patches, folder)
        steps.last = step
        try:
            journal.append(CHANGES[change])
        except Killed:
            assert steps.names == STEPS[change][:step]
        else:
            assert steps.names == STEPS[change] and step >= len(steps.names)
            shutil.copytree(folder, steps.left)
    journal.close()
    kept.mkdir()
    for _, path in secret_files(steps.left / "journal.db"):
        os.link(path, kept / path.name)  # the bytes on the disk, whatever becomes of the name
    again = opened(steps.left)
    records = again.read()
    happened = Sealed() in records
    assert happened == ("commit" in STEPS[change][:step])
    if not happened:
        assert records == [*OPENING] and secret_files(steps.left / "journal.db")[-1][0] == 0
        assert cohorts_in(steps.left, 3) == [0]
    again.append(CHANGES[change] if not happened else erasing_again(change, records))
    expected = {"shrinking": [1], "shrinking twice": [2]}.get(change, [])
    assert cohorts_in(steps.left, 3) == expected
    assert all(not secrets_in(kept, 3, cohort) for cohort in range(COHORTS) if cohort not in expected)
    assert [secret for secret in again.read() if isinstance(secret, Secret)] == CHANGES[change][-1:] * len(expected)
    again.close()
    assert cohorts_in(steps.left, 3) == expected


def erasing_again(change: str, records: Sequence[Record]) -> list[Record]:
    """What a party that is back does at once (`PartyContext.erase_earlier`), if the secrets are still the old ones."""
    secrets = [record for record in records if isinstance(record, Secret)]
    return CHANGES[change][1:] if secrets[:1] == OPENING[1:] else []


def test_a_stored_secret_that_was_never_committed_to_is_overwritten(tmp_path: Path) -> None:
    """Else its bytes would stay on the disk when it is erased later."""
    journal = opened(tmp_path)
    journal.append(OPENING)
    stale = tmp_path / "journal.db-secret-1"
    stale.write_bytes(secrets_of(3, 1).state)
    os.link(stale, tmp_path.with_name("stale"))
    journal.read()
    assert not stale.exists() and secrets_of(3, 1).state not in tmp_path.with_name("stale").read_bytes()
    journal.close()
