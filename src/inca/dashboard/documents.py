"""Files that were opened: executions to look at, and certificates, plans and results to read."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inca._base.validation import InputError, refuse
from inca.dashboard.scene import MOST_MESSAGES, Scene
from inca.protocol.adversary import Adversary
from inca.protocol.transcript import read_execution

MOST_BYTES = 1 << 26
_KEPT = 16
_KINDS = {
    "inca-certificate/1": "certificate",
    "inca-plan/1": "plan",
    "inca-result/1": "result",
    "inca-execution/1": "execution",
}


@dataclass(frozen=True)
class Document:
    """A file: its kind, its fields as they are, and what it shows if it is an execution."""

    id: str
    name: str
    kind: str
    fields: dict[str, Any]
    scene: Scene | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it for the page."""
        fields = {} if self.kind == "execution" else self.fields
        return {"id": self.id, "name": self.name, "kind": self.kind, "fields": fields}


@dataclass
class Documents:
    """The last files that were opened, by a digest of their name and content; they stay in memory."""

    _kept: OrderedDict[str, Document] = field(default_factory=OrderedDict)

    def open(self, name: str, content: bytes) -> Document:
        """Read a file of any kind; refuse what is none of ours."""
        if len(content) > MOST_BYTES:
            raise refuse("the size of the file", len(content), f"at most {MOST_BYTES} bytes")
        short = Path(name).name or "file"
        made = _read(hashlib.sha256(short.encode() + b"\0" + content).hexdigest()[:16], short, content)
        self._kept[made.id] = made
        self._kept.move_to_end(made.id)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return made

    def __getitem__(self, digest: str) -> Document:
        """Return an opened file."""
        if digest not in self._kept:
            raise InputError(f"file is {digest!r}, but no such file is open here: open it again")
        return self._kept[digest]


def _read(digest: str, name: str, content: bytes) -> Document:
    if name.endswith(".npz"):
        return Document(digest, name, "execution", {}, _scene(name, content))
    try:
        fields = json.loads(content)
        kind = _KINDS[fields["format"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        wanted = ", ".join(_KINDS)
        raise InputError(f"{name} is no file of inca's, but one of {wanted} was expected") from None
    scene = _scene(name, content) if kind == "execution" else None
    return Document(digest, name, kind, fields, scene)


def _scene(name: str, content: bytes) -> Scene:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        place.write_bytes(content)
        try:
            transcript = read_execution(place)
        except InputError as error:
            raise InputError(str(error).replace(f"{folder}/", "")) from None
    execution = transcript.execution
    if (size := execution.parties * execution.rounds * execution.schedule.slots) > MOST_MESSAGES:
        raise refuse("the number of messages in the file", size, f"at most {MOST_MESSAGES:,} to look at")
    adversary = Adversary(transcript.colluding, transcript.eavesdropped)
    return Scene(execution, transcript.sigma_independent, transcript.sigma_cancelling, None, adversary)
