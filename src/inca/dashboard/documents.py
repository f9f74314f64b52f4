"""Files that were opened: executions to look at, and certificates, plans and results to read."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inca._base.validation import refuse
from inca.dashboard.shown_run import ShownRun
from inca.dashboard.simulated_run import MAX_MESSAGES
from inca.errors import InvalidInput
from inca.protocol.execution_files import read_execution
from inca.protocol.usefulness import remark_on_error

MAX_BYTES = 1 << 26
_MAX_NAME = 255
KINDS = {
    "inca-certificate/1": "certificate",
    "inca-plan/1": "plan",
    "inca-result/1": "result",
    "inca-result/2": "result",
    "inca-execution/1": "execution",
    "inca-execution/2": "execution",
}
"""What a file is, by its format."""


_REQUIRED = {
    "certificate": ("parties", "rounds", "honest", "epsilon", "delta", "worst", "adversary", "sensitivity"),
    "plan": ("wish", "rounds", "schedule", "expected_mse", "central_mse", "error", "sampling"),
    "result": ("session", "party", "parties", "estimate", "epsilon", "wanted", "delta"),
}
"""Without these there is nothing to show: an empty file must not look like a verdict."""

_SHOWN = {
    "certificate": (
        *(*_REQUIRED["certificate"], "full_attendance", "notion", "rank", "sigma_independent", "sigma_cancelling"),
        *("rule", "execution", "inca", "assumptions"),
    ),
    "plan": (
        *(*_REQUIRED["plan"], "receivers", "quiet_rounds", "injection", "sigma_independent", "sigma_cancelling"),
        *("standard_error", "local_mse", "failure_probability", "considered", "further"),
    ),
    "result": (
        *(*_REQUIRED["result"], "name", "constrained", "interval", "confidence", "remarks", "standard_error"),
        *("present", "coalition", "coalitions", "all_coalitions", "in_doubt", "weight_in_doubt", "cohort", "late"),
        *("contradictions", "weight", "reason", "execution"),
    ),
}
"""What a page shows of a file. Nothing else of it is kept: whatever somebody added to a file may be private."""


@dataclass(frozen=True, repr=False)
class Document:
    """A file: its kind, its fields as far as they are shown (none of an execution), its run if it is an execution."""

    id: str
    name: str
    kind: str
    fields: dict[str, Any]
    run: ShownRun | None = None

    def __repr__(self) -> str:
        return f"Document(id={self.id!r}, name={self.name!r}, kind={self.kind!r}, {len(self.fields)} fields)"

    @property
    def remarks(self) -> list[str]:
        """What must be said of a plan: if guessing the middle of the domain would do as well."""
        if self.kind != "plan":
            return []
        try:
            remark = remark_on_error(float(self.fields["expected_mse"]), float(self.fields["wish"]["sensitivity"]))
        except (KeyError, TypeError, ValueError):  # a file that is no plan but for its format
            return []
        return [remark] if remark else []

    def summary(self) -> dict[str, str]:
        """Return what a list of files shows."""
        return {"id": self.id, "name": self.name, "kind": self.kind}


def read_document(name: str, content: bytes) -> Document:
    """Read a file of any kind.

    Args:
        name: Its name; folders in it are left out.
        content: What is in it.

    Raises:
        InvalidInput: If its name or its size cannot be borne, or it is not a file of inca.

    Example:
        >>> read_document("x.json", b"{}")
        Traceback (most recent call last):
            ...
        inca.errors.InvalidInput: x.json must be a file that inca writes (inca-certificate/1, inca-plan/1, \
inca-result/1, inca-result/2, inca-execution/1, inca-execution/2), got something else
    """
    if len(content) > MAX_BYTES:
        refuse("the size of the file", len(content), f"at most {MAX_BYTES} bytes")
    short = _short_name(name)
    digest = hashlib.sha256(short.encode() + b"\0" + content).hexdigest()[:16]
    return _read(digest, short, content)


def _short_name(name: str) -> str:
    """Return the name without folders, which a page shows as it is: nothing in it may hide or reorder what is shown."""
    short = Path(name).name
    if len(short) > _MAX_NAME or not short.isprintable():
        refuse("the name of a file", f"{len(short)} characters", f"at most {_MAX_NAME} characters that can be printed")
    if short.strip(". ") == "":
        refuse("the name of a file", short, "more than dots and spaces")
    return short


def _read(digest: str, name: str, content: bytes) -> Document:
    if name.endswith(".npz"):
        return Document(digest, name, "execution", {}, _run(name, content))
    try:
        fields = json.loads(content)
        kind = KINDS[fields["format"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        formats = ", ".join(KINDS)
        raise InvalidInput(f"{name} must be a file that inca writes ({formats}), got something else") from None
    if kind == "execution":
        return Document(digest, name, kind, {}, _run(name, content))
    if missing := [required for required in _REQUIRED[kind] if required not in fields]:
        raise InvalidInput(f"{name} must have all that a {kind} has, got one without {', '.join(missing)}")
    return Document(digest, name, kind, {shown: fields[shown] for shown in _SHOWN[kind] if shown in fields})


def _run(name: str, content: bytes) -> ShownRun:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ("execution.npz" if name.endswith(".npz") else "execution.json")  # whatever it is called
        place.write_bytes(content)
        try:
            transcript = read_execution(place)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(place), name)) from None
    execution = transcript.execution
    if (messages := execution.parties * execution.rounds * execution.schedule.slots) > MAX_MESSAGES:
        refuse("the number of messages in the file", messages, f"at most {MAX_MESSAGES:,} to look at")
    return ShownRun(transcript)
