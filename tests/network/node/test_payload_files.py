"""Sealed messages that are written before a record names them: what is on the disk, whatever ends the party when."""

from __future__ import annotations

import errno
import gc
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from helpers.ledgers import with_topup
from helpers.parties import PACED
from helpers.rooms_on_disk import Killed, RoomOnDisk
from inca.errors import JournalUnusable
from inca.network.node import durable_files
from inca.network.node import payload_files as module
from inca.network.node.journal import Journal
from inca.network.node.payload_files import PayloadFile, payload_files
from inca.network.payloads import LARGE_BYTES, contents
from inca.network.protocol.messages import Item, Lock, Proposal
from inca.network.protocol.records import Accepted, Began, Kept, Sealed, payload_fields

SESSION = bytes(range(32))
LOCK = Lock(3, Proposal("commit", [(1, bytes(32))]), [(1, b"vote")])
PATIENCE_S = 60.0


def deposit(party: int, size: int = LARGE_BYTES) -> Item:
    return Item("deposit", party, b"body %d" % party, b"signature", secrets.token_bytes(size))


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


def settle(journal: Journal) -> None:
    """Wait until everything is done that was to be done in the background."""
    journal._payloads._background.submit(lambda: None).result(PATIENCE_S)


def names(path: Path) -> list[int]:
    return [number for number, _ in payload_files(path)]


# --- one journal ----------------------------------------------------------------------------------------------------


def test_what_was_written_ahead_is_named_and_not_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is durable with its name before the item holds it; and it is written once, however often it is asked for."""
    durable, fsync, item = list[str](), os.fsync, deposit(1)
    sealed = item.sealed

    def synced(descriptor: int) -> None:
        durable.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        assert item.sealed is sealed
        fsync(descriptor)

    with opened(path) as journal:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", synced)
            for _ in range(3):
                journal.write_ahead([item, deposit(2, LARGE_BYTES - 1)])
                settle(journal)
        assert durable == ["journal.db-payload-0", path.parent.name]
        assert isinstance(item.sealed, PayloadFile) and contents(item.sealed) == sealed
        monkeypatch.setattr(module, "write", None)
        journal.append([Accepted(1, LOCK, [item])])
        assert names(path) == [0]
    with opened(path) as journal:
        (read,) = journal.read()
        assert isinstance(read, Accepted) and contents(read.items[0].sealed) == sealed and names(path) == [0]


def test_a_record_waits_for_what_is_being_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, write, item = threading.Event(), threading.Event(), durable_files.write, deposit(1)

    def slowly(path: Path, content: bytes) -> None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        write(path, content)

    monkeypatch.setattr(module, "write", slowly)
    with opened(path) as journal:
        journal.write_ahead([item])
        assert begun.wait(PATIENCE_S) and isinstance(item.sealed, bytes)
        timer = threading.Timer(0.2, go_on.set)
        timer.start()
        journal.append([Kept([item])])
        assert go_on.is_set() and names(path) == [0]
        timer.join()


@pytest.mark.parametrize("end", ["the item goes", "the journal closes"])
def test_a_file_that_no_record_names_goes_with_its_item_or_with_the_journal(path: Path, end: str) -> None:
    items = [deposit(1), deposit(2)]
    with opened(path) as journal:
        journal.write_ahead(items)
        settle(journal)
        journal.append([Kept(items[:1])])
        assert names(path) == [0, 1]
        if end == "the item goes":
            items.clear()
            gc.collect()
            assert names(path) == [0]
    assert names(path) == [0]


def test_what_a_process_that_died_has_left_is_overwritten_and_removed(path: Path) -> None:
    with opened(path) as journal:
        journal.append([Began(1, kept := secrets.token_bytes(LARGE_BYTES))])
    left = path.with_name("journal.db-payload-7")
    left.write_bytes(private := secrets.token_bytes(LARGE_BYTES))
    os.link(left, path.with_name("the bytes on the disk"))
    with opened(path) as journal:
        journal.write_ahead([item := deposit(1)])
        assert journal.read() == [Began(1, kept)]
        settle(journal)
        assert names(path) == [0, 8] and contents(item.sealed)
    assert path.with_name("the bytes on the disk").read_bytes() not in (private, b"")


@pytest.mark.parametrize("room_again", [False, True])
def test_a_disk_that_is_full_is_told_when_a_record_needs_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, room_again: bool
) -> None:
    """What was begun is gone, so that it takes no room; and the record and its item are as before."""
    item = deposit(1)
    sealed = item.sealed

    def full(path: Path, content: bytes) -> None:
        durable_files.write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(path) as journal:
        with monkeypatch.context() as patched:
            patched.setattr(module, "write", full)
            journal.write_ahead([item])
            settle(journal)
            assert item.sealed is sealed and names(path) == []
            if not room_again:
                with pytest.raises(JournalUnusable, match=r"cannot be written: .*No space left on device"):
                    journal.append([Kept([item])])
                assert item.sealed is sealed and names(path) == [] and journal.read() == []
        journal.append([Sealed(), Kept([item])])
        assert len(journal.read()) == 2 and len(names(path)) == 1


@pytest.mark.parametrize("harm", ["gone", "short"])
def test_a_file_that_is_harmed_while_the_party_runs_ends_it_in_a_sentence(path: Path, harm: str) -> None:
    with opened(path) as journal:
        journal.append([Kept([item := deposit(1)])])
        ((_, file),) = payload_files(path)
        if harm == "gone":
            file.unlink()
        else:
            os.truncate(file, 100)
        with pytest.raises(
            JournalUnusable, match=r"journal\.db-payload-0 (cannot be read: No such file|must have 655)"
        ):
            contents(item.sealed)


# --- whole sessions -------------------------------------------------------------------------------------------------

N, KILLED, REFUSING = 4, 1, 3
SMALL = with_topup(replace(PACED, parties=N, rounds=1, min_participants=3, schedule="permutation"))
How = Literal["before", "after", "full"]


class AtOnce:
    """In place of the thread in the background: what is to be done is done when it is asked for."""

    def __init__(self, *_: Any) -> None:
        pass

    def submit(self, work: Callable[..., None], *arguments: Any) -> Future[None]:
        work(*arguments)
        done = Future[None]()
        done.set_result(None)
        return done

    def shutdown(self, **_: Any) -> None:
        pass


class Writes:
    """Ends party 1 at one of its writes of a payload: right before it, right after it, or since the disk is full."""

    def __init__(self, last: int, how: How) -> None:
        self.last, self.how, self.count = last, how, 0
        self.ends: list[BaseException] = []  # of the room

    def __call__(self, path: Path, content: bytes) -> None:
        number, self.count = self.count, self.count + (path.parent.parent.name == str(KILLED))
        if number < self.count and not self.ends:
            if self.how == "full" and number >= self.last:  # until the party has noticed
                durable_files.write(path, content[: len(content) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if number == self.last:
                if self.how == "after":
                    durable_files.write(path, content)
                raise Killed
        durable_files.write(path, content)


def hold(folder: Path, patched: pytest.MonkeyPatch, writes: Writes, *, refusing: bool, all_die: bool) -> RoomOnDisk:
    """Hold a session whose payloads are all in files, and check that those of each party are the ones it names."""
    patched.setattr(module, "LARGE_BYTES", 16)
    patched.setattr(module, "ThreadPoolExecutor", AtOnce)
    patched.setattr(module, "write", writes)
    room = RoomOnDisk(SMALL, folder, all_die=all_die)
    writes.ends = room.ends
    if refusing:
        room.refusals[REFUSING] = "its loss must be smaller"
    room.open().run()
    room.close()
    cohort = room.check().realized.cohort
    assert cohort == set(range(N)) - ({REFUSING} if refusing else set())
    for i in range(N):
        there = names(room.home(i) / "journal.db")
        with closing(Journal(room.home(i) / "journal.db", session=SMALL.id, party=i)) as journal:
            payloads = [getattr(*place) for record in journal.read() for place in payload_fields(record)]
        assert there == sorted(payload.number for payload in payloads if isinstance(payload, PayloadFile))
        assert len(there) >= 1 + SMALL.rounds + len(cohort)
    return room


def test_sealed_messages_are_written_when_they_come_and_those_of_a_cohort_that_shrinks_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to write when commit is accepted; of the first cohort no party keeps what others sealed."""
    room, later = RoomOnDisk(SMALL, tmp_path), list[str]()
    monkeypatch.setattr(module, "LARGE_BYTES", 16)
    monkeypatch.setattr(module, "ThreadPoolExecutor", AtOnce)
    put_away = module.PayloadFiles.put_away

    def noted(files: Any, holder: Any, field: str) -> bytes | None:
        before = put_away(files, holder, field)
        if before is not None and isinstance(holder, Item) and f"/{holder.party}/" not in str(files._journal):
            later.append(holder.kind)
        return before

    monkeypatch.setattr(module.PayloadFiles, "put_away", noted)
    room.refusals[REFUSING] = "its loss must be smaller"
    most = 0
    for _ in room.open().steps(until=60.0):
        room.said.clear()  # or items that one party has sent to another would stay
        most = max(most, *(len(names(disk.path)) for disk in room.disks.values()))
    assert later == [] and room.check().realized.cohort == {0, 1, 2}
    own = 1 + 2 * SMALL.rounds + 2  # the value, shares out and in, deposits for two cohorts
    assert most <= own + 2
    assert {len(names(room.disks[i].path)) for i in range(3)} <= {own + 2, own + 1}
    room.close()


@pytest.mark.parametrize(
    ("how", "all_die", "refusing"),
    [
        ("after", False, True),
        ("full", False, True),
        *(
            pytest.param(how, all_die, refusing, marks=pytest.mark.slow)
            for how in ("before", "after", "full")
            for all_die in (False, True)
            for refusing in (False, True)
            if (how, all_die, refusing) not in [("after", False, True), ("full", False, True)]
        ),
    ],
)
def test_a_party_that_ends_at_any_payload_that_it_writes_takes_nothing_from_anybody(
    tmp_path: Path, how: How, all_die: bool, refusing: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        undisturbed = Writes(-1, "before")
        hold(tmp_path / "undisturbed", patched, undisturbed, refusing=refusing, all_die=False)
    for number in range(undisturbed.count):
        with pytest.MonkeyPatch.context() as patched:
            room = hold(tmp_path / f"{number}", patched, Writes(number, how), refusing=refusing, all_die=all_die)
        assert room.kills == 1 and [type(end) for end in room.ends] == [JournalUnusable if how == "full" else Killed]
