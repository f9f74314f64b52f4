"""Payloads of a journal in files of their own, `journal.db-payload-N`: each is durable before a record names it.

Sealed messages of others come some time before the record that may name them. They are written as they come, in the
background, so that little is left to write when time is short. A file that no record names is removed as soon as nobody
holds its payload; what a process that died has left is overwritten, as it may be private.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard

import msgspec
import numpy as np

from inca.errors import JournalUnusable
from inca.network.node.durable_files import shred_all, sync_folder, write
from inca.network.payloads import LARGE_BYTES, StoredBytes, contents
from inca.network.protocol.messages import Item


class PayloadFile(StoredBytes):
    """A payload that lies in a file, whole and durable."""

    def __init__(self, path: Path, number: int, size: int) -> None:
        self.path, self.number, self._size = path, number, size
        self._looked_at: weakref.ref[np.ndarray[tuple[int], np.dtype[np.uint8]]] | None = None

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{self._size} bytes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, bytes | PayloadFile):
            return NotImplemented
        return contents(self) == contents(other)

    __hash__ = None  # type: ignore[assignment]

    def read(self) -> memoryview:
        """Return the bytes, once more the same ones if somebody still looks at them."""
        array = None if self._looked_at is None else self._looked_at()
        if array is None:
            try:
                array = np.fromfile(self.path, dtype=np.uint8)
            except OSError as error:
                raise JournalUnusable(f"{self.path} cannot be read: {error.strerror or error}") from None
            if array.size != self._size:
                raise JournalUnusable(f"{self.path} must have {self._size} bytes, got {array.size}")
            self._looked_at = weakref.ref(array)
        return array.data


class PayloadFiles:
    """The files beside one journal."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self.next_number = self._first = 1 + max((number for number, _ in payload_files(journal)), default=-1)
        self._unnamed: dict[int, Path] = {}  # written here, and in no record yet
        self._ahead: dict[tuple[int, bytes], Future[None]] = {}  # by the party and the hash of the item
        self._background = ThreadPoolExecutor(1, "payloads")

    def put_away(self, holder: msgspec.Struct, field: str) -> bytes | None:
        """Write a payload that is large and not in a file yet, and hold the file in its place; return what it was.

        Its content is durable then, but its name is not.
        """
        if isinstance(holder, Item) and (begun := self._ahead.get((holder.party, holder.hash))) is not None:
            begun.result()
        content = getattr(holder, field)
        if not _is_large(content):
            return None
        msgspec.structs.force_setattr(holder, field, self._write(self._take_number(), content))
        return content

    def write_ahead(self, items: Iterable[Item]) -> None:
        """Put away the sealed messages of these items in the background."""
        for item in items:
            key = item.party, item.hash
            if key not in self._ahead and _is_large(item.sealed):
                self._ahead[key] = self._background.submit(self._write_ahead, item, self._take_number())

    def keep(self, numbers: Iterable[int]) -> None:
        """Learn that records name these files."""
        for number in numbers:
            self._unnamed.pop(number, None)

    def shred_from(self, number: int) -> None:
        """Overwrite and remove what was written from this number on and no record names."""
        with suppress(OSError):
            shred_all(self._unnamed.pop(later) for later in sorted(self._unnamed) if later >= number)

    def shred_leftovers(self, named: Collection[int]) -> None:
        """Overwrite and remove, in the background, what was there before and no record names."""
        left = [path for number, path in payload_files(self._journal) if number < self._first and number not in named]
        if left:
            self._background.submit(shred_all, left)

    def close(self) -> None:
        """Write nothing more, and remove what no record names."""
        self._background.shutdown(cancel_futures=True)
        for number in list(self._unnamed):
            self._remove(number)

    def _take_number(self) -> int:
        number, self.next_number = self.next_number, self.next_number + 1
        return number

    def _write(self, number: int, content: bytes) -> PayloadFile:
        path = self._unnamed[number] = payload_path(self._journal, number)
        write(path, content)
        payload = PayloadFile(path, number, len(content))
        weakref.finalize(payload, self._remove, number).atexit = False  # the exit of a fork, say, is not ours
        return payload

    def _write_ahead(self, item: Item, number: int) -> None:
        """Write a sealed message; if that fails it is tried again with the record that names it, and told then."""
        try:
            payload = self._write(number, item.sealed)
            sync_folder(self._journal.parent)
        except OSError:
            self._remove(number)
        else:
            msgspec.structs.force_setattr(item, "sealed", payload)

    def _remove(self, number: int) -> None:
        """Remove a file that no record names; it was sealed by its sender, so that it need not be overwritten."""
        if (path := self._unnamed.pop(number, None)) is not None:
            with suppress(OSError):
                path.unlink()


def _is_large(payload: bytes | StoredBytes) -> TypeGuard[bytes]:
    return isinstance(payload, bytes) and len(payload) >= LARGE_BYTES


def payload_path(journal: Path, number: int) -> Path:
    """Return the file with this number beside a journal."""
    return journal.with_name(f"{journal.name}-payload-{number}")


def payload_files(journal: Path) -> list[tuple[int, Path]]:
    """Return the files with payloads beside a journal, by their numbers."""
    return numbered(journal, "payload")


def numbered(journal: Path, what: str) -> list[tuple[int, Path]]:
    """Return the numbered files of a kind beside a journal."""
    files = journal.parent.glob(f"{journal.name}-{what}-*")
    return sorted((int(match[1]), file) for file in files if (match := re.fullmatch(rf".*-{what}-(\d+)", file.name)))
