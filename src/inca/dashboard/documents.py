"""Files that were opened: what `inca.reporting` says of them, and where a page leads to from them.

Files are read strictly. A field that no format knows is refused rather than kept, as it may be private.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from inca._base.validation import refuse
from inca.dashboard.shown_run import DOMAIN, ShownRun
from inca.dashboard.simulated_run import MAX_MESSAGES, MAX_PARTIES, SimulatedRun
from inca.documents.execution import ExecutionDocument
from inca.documents.formats import FORMATS, format_of
from inca.documents.plan import PlanDocument
from inca.errors import InvalidInput
from inca.protocol.execution_files import read_execution
from inca.reporting.content import content
from inca.reporting.execution import execution_content
from inca.reporting.parts import Content
from inca.reporting.verdict import Worded

MAX_BYTES = 1 << 26
_MAX_NAME = 255
_REQUIRED = ("parties", "epsilon", "delta", "colluding", "eavesdropped", "dropout", "messages")
"""What the Plan view can set of a plan's requirements."""

PageLink = tuple[str, str]
"""The words of a link, and where it leads to."""


@dataclass(frozen=True, repr=False)
class OpenedFile:
    """A file: its kind, what is to be said of it, links to other views of it, and its run if it is an execution."""

    id: str
    name: str
    kind: str
    content: Content
    links: tuple[PageLink, ...] = ()
    run: ShownRun | None = None

    def __repr__(self) -> str:
        return f"OpenedFile(id={self.id!r}, name={self.name!r}, kind={self.kind!r})"

    def summary(self) -> dict[str, str]:
        """Return what a list of files shows."""
        return {"id": self.id, "name": self.name, "kind": self.kind}

    def answer(self) -> dict[str, Any]:
        """Return what a page shows."""
        return self.summary() | {"content": self.content, "links": self.links}


def read_file(name: str, data: bytes) -> OpenedFile:
    """Read a file of any kind.

    Example:
        >>> read_file("x.json", b"{}")
        Traceback (most recent call last):
            ...
        inca.errors.InvalidInput: x.json: must be a file that this version of inca writes (inca-certificate/2, \
inca-plan/2, inca-result/2, inca-result/3, inca-average/1, inca-execution/1, inca-execution/2), got 'something else'
    """
    if len(data) > MAX_BYTES:
        refuse("the size of the file", len(data), f"at most {MAX_BYTES} bytes")
    short = _short_name(name)
    identity = hashlib.sha256(short.encode() + b"\0" + data).hexdigest()[:16]
    kind = ExecutionDocument if short.endswith(".npz") else FORMATS[format_of(data, short)]
    if kind is ExecutionDocument:
        run = _run(short, data)
        links = _execution_links(identity)
        return OpenedFile(identity, short, kind.kind, execution_content(run.transcript), links, run)
    document = kind.decode(data, short)
    assert isinstance(document, Worded)
    try:
        links = (_open_in_plan(document), *plan_links(document)) if isinstance(document, PlanDocument) else ()
        return OpenedFile(identity, short, document.kind, content(document), links)
    except InvalidInput as error:  # its numbers contradict each other
        raise InvalidInput(f"{short} cannot be read as {kind.kind}: {error}") from None


def _short_name(name: str) -> str:
    """Return the name without folders, which a page shows as it is: nothing in it may hide or reorder what is shown."""
    short = Path(name).name
    if len(short) > _MAX_NAME or not short.isprintable():
        refuse("the name of a file", f"{len(short)} characters", f"at most {_MAX_NAME} characters that can be printed")
    if short.strip(". ") == "":
        refuse("the name of a file", short, "more than dots and spaces")
    return short


def _run(name: str, data: bytes) -> ShownRun:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / ("execution.npz" if name.endswith(".npz") else "execution.json")  # whatever it is called
        place.write_bytes(data)
        try:
            transcript = read_execution(place)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(place), name)) from None
    execution = transcript.execution
    if (messages := execution.parties * execution.rounds * execution.schedule.slots) > MAX_MESSAGES:
        refuse("the number of messages in the file", messages, f"at most {MAX_MESSAGES:,} to look at")
    return ShownRun(transcript)


def _execution_links(identity: str) -> tuple[PageLink, ...]:
    views = (("Watch the run", "/run"), ("See the adversary's view", "/adversary"), ("Download it", "/api/execution"))
    return tuple((words, f"{place}?file={identity}") for words, place in views)


def plan_links(document: PlanDocument) -> tuple[PageLink, ...]:
    """Return links to a simulated run with the noise of the plan in units of its values."""
    required = document.requirements
    unit = DOMAIN.sensitivity() / SimulatedRun().records / (required.sensitivity or 1.0)
    parties = min(required.parties, MAX_PARTIES, MAX_MESSAGES // max(1, document.rounds * document.receivers))
    some = "" if parties == required.parties else f" with {parties:,} parties"
    run = urlencode(
        {
            "parties": parties,
            "rounds": document.rounds,
            "receivers": document.receivers,
            "schedule": document.schedule,
            "injection": document.injection.kind or "incremental",
            "quiet": 0,
            "sigma_independent": f"{unit * document.sigma_independent:.6g}",
            "sigma_cancelling": f"{unit * document.sigma_cancelling:.6g}",
        }
    )
    return (
        (f"Watch a run of it{some}", f"/run?{run}"),
        (f"See the adversary's view of it{some}", f"/adversary?{run}"),
    )


def _open_in_plan(document: PlanDocument) -> PageLink:
    required = {name: getattr(document.requirements, name) for name in _REQUIRED}
    return "Open in Plan", f"/plan?{urlencode({name: entry for name, entry in required.items() if entry is not None})}"
