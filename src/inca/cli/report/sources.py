"""What a report is about: a file of a kind that inca writes, or the folder of a session."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from inca._base.types import Array, Progress
from inca.documents.certificate import CertificateDocument
from inca.documents.document import file_content
from inca.documents.execution import ExecutionDocument
from inca.documents.formats import FORMATS, format_of
from inca.documents.result import ResultDocument
from inca.errors import InvalidInput
from inca.privacy.certificate import certify
from inca.protocol.execution_files import digest, transcript_of
from inca.protocol.transcript import Transcript
from inca.reporting.content import content
from inca.reporting.execution import execution_content
from inca.reporting.parts import Content, Source
from inca.reporting.result import result_content
from inca.reporting.session import session_content, unfinished_content


def report_content(path: Path, roster: Path | None, progress: Progress | None = None) -> Content:
    """Return what a report says of a file or of a session."""
    try:
        folder = _session_folder(path) if path.is_dir() else None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    if folder is not None:
        return _session(folder, roster)
    text = file_content(path, "a file that inca writes")
    kind = ExecutionDocument if path.suffix == ".npz" else FORMATS[format_of(text, path)]
    if roster is not None and kind is not ResultDocument:
        raise InvalidInput(f"--roster goes with a result or a session, got {path}, which is {kind.kind}")
    document = kind.read(path)
    match document:
        case ExecutionDocument():
            report = certified_content(transcript_of(document), progress)
        case ResultDocument():
            estimate, archive = _archive(path.parent, document)
            report = result_content(document, _domain(roster, document), estimate)
            report = replace(report, sources=archive)
        case _:
            report = content(document)
    return replace(report, sources=(_source(path, text), *report.sources, *_roster_source(roster)))


def certified_content(transcript: Transcript, progress: Progress | None = None) -> Content:
    """Work the losses of an execution out, if all that they depend on is known, and return what is to be said of it."""
    accounted, drawn = _with_adversary(transcript)
    try:
        certificate = certify(accounted, progress=progress).document(conditions=True)
        bound = None
        if transcript.execution.cohort is not None and not transcript.execution.cohort.all():
            bound = certify(accounted, basis="leavers counted as colluders", progress=progress).document()
    except InvalidInput as error:
        return execution_content(transcript, unknown=str(error))
    return execution_content(transcript, certificate, bound=bound, drawn=drawn)


def _with_adversary(transcript: Transcript) -> tuple[Transcript, bool]:
    """Return the transcript with an adversary, and whether it was drawn; one execution always has the same drawn."""
    if transcript.adversary is not None or transcript.agreed is None:
        return transcript, False
    seed = hashlib.sha256(f"inca-report/1 {digest(transcript)}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    execution = transcript.execution
    adversary = transcript.agreed.adversary.draw(execution.parties, execution.rounds, rng)
    return replace(transcript, adversary=adversary), True


def _source(path: Path, text: bytes) -> Source:
    return Source(path.name, hashlib.sha256(text).hexdigest())


def _session_folder(folder: Path) -> Path:
    """Return the folder of a session: this one, or the only one in it."""
    if _holds_session(folder):
        return folder
    inner = sorted(entry for entry in folder.iterdir() if entry.is_dir() and _holds_session(entry))
    if len(inner) == 1:
        return inner[0]
    if inner:
        names = ", ".join(entry.name for entry in inner)
        raise InvalidInput(f"{folder} has {len(inner)} sessions in it: name one of {names}")
    raise InvalidInput(f"{folder} is not the folder of a session: it has no result.json or status.json")


def _holds_session(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("result.json", "status.json"))


def _session(folder: Path, roster: Path | None) -> Content:
    names = ("result.json", "certificate.json", "execution.json", "log.jsonl", "status.json")
    files = {name: file_content(folder / name, "a file of a session") for name in names if (folder / name).is_file()}
    status = files.pop("status.json", b"")
    if "result.json" not in files:
        if roster is not None:
            raise InvalidInput("--roster goes with a session that has ended, got one that has not")
        report, files = unfinished_content(_status(folder, status), folder.name), {"status.json": status}
        return replace(report, sources=tuple(_source(folder / name, text) for name, text in files.items()))
    result = ResultDocument.read(folder / "result.json")
    estimate, archive = _archive(folder, result)
    report = session_content(
        result,
        CertificateDocument.read(folder / "certificate.json") if "certificate.json" in files else None,
        transcript_of(ExecutionDocument.read(folder / "execution.json")) if "execution.json" in files else None,
        files.get("log.jsonl", b""),
        _domain(roster, result),
        estimate,
    )
    sources = tuple(_source(folder / name, text) for name, text in files.items())
    return replace(report, sources=(*sources, *archive, *_roster_source(roster)))


def _archive(folder: Path, result: ResultDocument) -> tuple[Array | None, tuple[Source, ...]]:
    """Return the estimate in the archive of a long result, and the archive as a source; it must be as written."""
    if result.arrays is None:
        return None, ()
    source = Source(result.arrays.file, result.arrays.sha256)
    return result.vector(folder, "estimate"), (source,)


def _status(folder: Path, text: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError:
        raise InvalidInput(f"{folder / 'status.json'} cannot be read: it is not what a node writes") from None


def _roster_source(roster: Path | None) -> tuple[Source, ...]:
    return () if roster is None else (_source(roster, file_content(roster, "a roster")),)


def _domain(roster: Path | None, result: ResultDocument) -> tuple[float, float] | None:
    """Return where coordinates of values may lie, as the roster of that very session says."""
    if roster is None:
        return None
    from inca._base.extras import require_extra

    require_extra("--roster", "network")
    from inca.network.membership.roster import read_roster

    read = read_roster(roster)
    if read.session.hex() != result.session:
        raise InvalidInput(f"{roster} is the roster of another session than {result.session[:16]}")
    terms = read.terms
    if terms.radius is not None:
        return -terms.radius, terms.radius
    assert terms.lower is not None and terms.upper is not None
    return terms.lower, terms.upper
