"""What was opened lately, so that a page that is loaded again shows it again.

It is all in memory: nothing is written to disk, and it ends with the program. How much there can be is bounded by
number and by size, and what was not looked at for longest goes first. What may be kept is decided where it is read
(`documents`): files of inca's own formats, none of which holds a party's value, and no field beyond these formats.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from inca._base.validation import refuse
from inca.dashboard.documents import MAX_BYTES, OpenedFile, read_file
from inca.errors import InvalidInput

MAX_KEPT = 16
MAX_KEPT_BYTES = MAX_BYTES
"""What all of them may have together; the largest file that can be opened alone may have as much."""

_ID = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, repr=False)
class KeptDocument:
    """A file and how many bytes it has."""

    file: OpenedFile
    size: int

    def __repr__(self) -> str:
        return f"KeptDocument({self.file!r}, {self.size} bytes)"


class KeptDocuments:
    """The last documents, by their ids."""

    def __init__(self, most: int = MAX_KEPT, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, KeptDocument] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"KeptDocuments({list(self._kept.values())!r})"

    def open(self, name: str, data: bytes) -> OpenedFile:
        """Read a file of any kind, and keep it."""
        file = read_file(name, data)
        self._keep(KeptDocument(file, len(data)))
        return file

    def __getitem__(self, identity: str) -> OpenedFile:
        if not _ID.fullmatch(identity):
            refuse("file", identity, "the id of a file that is open here, 16 hexadecimal digits")
        with self._lock:
            if identity not in self._kept:
                raise InvalidInput(
                    f"this file is not kept any more: only the last {self._most} are, with at most "
                    f"{self._most_bytes >> 20} MiB together, until the program ends"
                )
            self._kept.move_to_end(identity)
            return self._kept[identity].file

    def summary(self) -> dict[str, Any]:
        """Return what a list shows, the last one first, and how much is kept at most."""
        with self._lock:
            listed = [kept.file.summary() for kept in reversed(self._kept.values())]
        return {"files": listed, "most": self._most, "most_bytes": self._most_bytes}

    def _keep(self, kept: KeptDocument) -> None:
        with self._lock:
            self._kept[kept.file.id] = kept
            self._kept.move_to_end(kept.file.id)
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes() > self._most_bytes):
                self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(kept.size for kept in self._kept.values())
