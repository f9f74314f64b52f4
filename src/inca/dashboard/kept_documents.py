"""What was opened or planned lately, so that a page that is loaded again shows it without computing again.

It is all in memory: nothing is written to disk, and it ends with the program. How much there can be is bounded by
number and by size, and what was not looked at for longest goes first. What may be kept is decided where it is read
(`documents`): files of inca's own formats, none of which holds a party's value, and no field beyond these formats.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from inca._base.validation import refuse
from inca.dashboard.documents import MAX_BYTES, REQUIRED, OpenedFile, opened, read_file
from inca.dashboard.questions import PlanQuestion
from inca.documents.plan import PlanDocument
from inca.errors import InvalidInput

MAX_KEPT = 16
MAX_KEPT_BYTES = MAX_BYTES
"""What all of them may have together; the largest file that can be opened alone may have as much."""

_ID = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, repr=False)
class KeptDocument:
    """A file and how many bytes it has; of a plan that was made here, what was required and what a page is told."""

    file: OpenedFile
    size: int
    requirements: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None

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

    def keep_plan(self, question: PlanQuestion, answer: dict[str, Any]) -> None:
        """Keep a plan that was made."""
        asked = {name: getattr(question.requirements, name) for name in REQUIRED}
        name = f"Plan for {asked['parties']:,} parties, epsilon {asked['epsilon']:g}"
        file = opened(_plan_id(question), name, PlanDocument.of_fields(answer["plan"]))
        size = len(msgspec.json.encode(answer))
        self._keep(KeptDocument(file, size, asked, answer))

    def plan(self, question: PlanQuestion) -> dict[str, Any] | None:
        """Return what the page was told of the plan for these requirements, if it was made and is still here."""
        with self._lock:
            kept = self._kept.get(_plan_id(question))
        return None if kept is None else kept.answer

    def plans(self) -> list[dict[str, Any]]:
        """Return all plans that were made here, the last one first, each with its id and what was required of it."""
        with self._lock:
            kept = list(reversed(self._kept.values()))
        return [
            one.answer | {"id": one.file.id, "requirements": one.requirements} for one in kept if one.answer is not None
        ]

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


def _plan_id(question: PlanQuestion) -> str:
    asked = asdict(question.requirements) | {"views": question.views}
    return hashlib.sha256(b"plan\0" + msgspec.json.encode(asked)).hexdigest()[:16]
