"""What a journal leaves on the disk: durable when it says so, and nothing when it is shredded."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from helpers.forked_processes import forked, open_and_wait
from inca.network.node.journal import Journal
from inca.network.protocol.records import Credited, Opened, Record, Sealed, Secret, Seeded


def opened(path: Path) -> Journal:
    return Journal(path, session=bytes(range(32)), party=3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_shredding_leaves_nothing(path: Path) -> None:
    journal = opened(path)
    journal.append([Opened(b"x" * 100, secrets.token_bytes(32), secrets.token_bytes(32))])
    journal.shred()
    assert list(path.parent.iterdir()) == []
    fresh = opened(path)
    assert fresh.read() == []
    fresh.close()


def test_shredding_overwrites_before_it_removes(path: Path) -> None:
    secret = secrets.token_bytes(64)
    journal = opened(path)
    journal.append([Opened(secret, secret, secret)])
    journal.close()
    os.link(path, path.with_name("kept"))  # the same bytes on disk under another name
    before = path.read_bytes()
    assert secret in before
    opened(path).shred()
    after = path.with_name("kept").read_bytes()
    assert not path.exists() and secret not in after and len(after) == len(before)


class Disk:
    """Keeps the order in which files are made durable and names vanish."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        fsync, unlink = os.fsync, Path.unlink

        def synced(descriptor: int) -> None:
            self.events.append(("durable", Path(f"/proc/self/fd/{descriptor}").readlink().name))
            fsync(descriptor)

        def unlinked(path: Path, missing_ok: bool = False) -> None:
            self.events.append(("removed", path.name))
            unlink(path, missing_ok)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(Path, "unlink", unlinked)


def test_the_name_of_a_new_journal_is_durable_before_it_is_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut could lose the whole file, with all that was acknowledged in it."""
    disk = Disk(monkeypatch)
    opened(path).close()
    assert disk.events[0] == ("durable", path.parent.name)
    opened(path).close()
    assert disk.events.count(("durable", path.parent.name)) == 1  # a name that is there already


def test_shredded_bytes_reach_the_disk_before_their_name_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(path)
    journal.append([Sealed()])
    disk = Disk(monkeypatch)
    journal.shred()
    log, *files, folder = disk.events
    assert log == ("durable", path.name + "-wal")  # the database itself removes it
    assert folder == ("durable", path.parent.name)  # and that it is gone is durable, too
    assert files and len(files) % 2 == 0
    for written, removed in zip(files[::2], files[1::2], strict=True):
        assert (written[0], removed[0]) == ("durable", "removed") and written[1] == removed[1]
    assert ("removed", path.name) in files


def test_shredding_overwrites_every_byte_of_large_files_too(path: Path) -> None:
    journal = opened(path)
    journal.append([Credited(1, bytes(2_500_000))])  # which lies in a file of its own
    journal.append([Credited(t, bytes(50_000)) for t in range(2, 52)])
    journal.close()
    sizes = {file.name: file.stat().st_size for file in path.parent.iterdir()}
    assert sizes.keys() == {"journal.db", "journal.db-payload-0"} and min(sizes.values()) > 2 * 2**20
    for name in sizes:
        os.link(path.with_name(name), path.with_name(f"kept {name}"))
    opened(path).shred()
    assert all(file.name.startswith("kept") for file in path.parent.iterdir())
    for name, size in sizes.items():
        kept = path.with_name(f"kept {name}").read_bytes()
        assert len(kept) == size and bytes(64) not in kept


class Traces:
    """Other names for all files of a folder, so that their bytes stay on disk when they are removed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder.parent / f"{folder.name}-kept"
        self.kept.mkdir()
        self._known: set[int] = set()

    def keep(self) -> None:
        for file in self.folder.iterdir():
            if (number := file.stat().st_ino) not in self._known:
                self._known.add(number)
                os.link(file, self.kept / f"{file.name} {number}")

    def copies(self, secret: bytes) -> dict[str, int]:
        """Return in which files, there or removed, the secret is, and how often."""
        files = [*self.kept.iterdir(), *self.folder.iterdir()]
        return {file.name: count for file in files if (count := file.read_bytes().count(secret))}


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    (tmp_path / "session").mkdir()
    return Traces(tmp_path / "session")


def test_shredding_leaves_no_copy_of_the_seed_in_any_file_there_was(traces: Traces) -> None:
    """The database removes its write-ahead log when it closes: what was in it would stay on the disk."""
    seed = secrets.token_bytes(32)
    journal = opened(traces.folder / "journal.db")
    traces.keep()
    journal.append([Opened(b"x" * 100, seed, secrets.token_bytes(32))])
    traces.keep()
    assert any(name.startswith("journal.db-wal") for name in traces.copies(seed))
    journal.append([Credited(t, secrets.token_bytes(4000)) for t in range(1500)])  # beyond a checkpoint
    journal.append([Sealed()])
    traces.keep()
    assert traces.copies(seed)
    journal.shred()
    assert traces.copies(seed) == {} and list(traces.folder.iterdir()) == []
    assert len(list(traces.kept.iterdir())) >= 2


def test_closing_leaves_the_seed_in_the_journal_alone(traces: Traces) -> None:
    """A party that stops and goes on later leaves a write-ahead log each time."""
    seed, path = secrets.token_bytes(32), traces.folder / "journal.db"
    secret = Secret(0, secrets.token_bytes(32))
    first: list[Record] = [Opened(b"x" * 100, seed, secrets.token_bytes(32)), Seeded(b"seed" * 8)]
    for records in ([*first, secret], [Sealed()]):
        journal = opened(path)
        journal.append(records)
        traces.keep()
        journal.close()
        assert all(not name.startswith("journal.db-wal") for name in traces.copies(seed))
    journal = opened(path)
    assert journal.read() == [*first, Sealed(), secret]
    journal.shred()
    assert traces.copies(seed) == {}


@pytest.mark.parametrize("kills", [1, 2])
def test_shredding_leaves_no_copy_after_a_kill_either(traces: Traces, kills: int) -> None:
    seed, path = secrets.token_bytes(32), traces.folder / "journal.db"
    for _ in range(kills):
        with forked(open_and_wait, path, seed) as (process, heard):
            assert heard.recv() == "written"
            traces.keep()
            process.kill()
    assert traces.copies(seed)
    journal = opened(path)
    traces.keep()
    assert len(journal.read()) == 2 + kills
    journal.append([Sealed()])
    journal.shred()
    assert traces.copies(seed) == {} and list(traces.folder.iterdir()) == []
