"""What a report is about: a file of a kind that inca writes, or the folder of a session."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from inca._base.types import Progress
from inca.cli.report.certificate_report import certificate_content, read_certificate
from inca.cli.report.execution_report import execution_content
from inca.cli.report.page import ReportContent, SourceFile
from inca.cli.report.plan_report import plan_content
from inca.cli.report.result_report import ResultFields, read_result, result_content
from inca.cli.report.session_report import session_content, unfinished_content
from inca.dashboard.documents import KINDS
from inca.errors import InvalidInput
from inca.planning.plan import read_plan
from inca.protocol.execution_files import read_execution

MAX_BYTES = 1 << 28


class _Header(msgspec.Struct):
    format: str


def report_content(path: Path, roster: Path | None, progress: Progress | None = None) -> ReportContent:
    """Read what a report is about, and return what it says.

    Args:
        path: The file, or the folder of a session, or a `--state` folder with one session in it.
        roster: The roster of a result or a session, which says where values may lie.
        progress: Called with (rounds done, T+1) while losses of an execution are computed.

    Raises:
        InvalidInput: If there is nothing there that inca writes, or it contradicts itself or the roster.
    """
    try:
        folder = _session_folder(path) if path.is_dir() else None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    if folder is not None:
        return _session(folder, roster)
    content = _bytes(path)
    kind = _kind(path, content)
    if roster is not None and kind != "result":
        raise InvalidInput(f"--roster must be combined with a result or a session, got {path}, a file of another kind")
    if kind == "plan":
        report = plan_content(read_plan(path))
    elif kind == "certificate":
        report = certificate_content(read_certificate(path, content))
    elif kind == "result":
        fields = read_result(path, content)
        report = result_content(fields, _domain(roster, fields))
    else:
        report = execution_content(read_execution(path), progress)
    return replace(report, sources=(_source(path, content), *_roster_source(roster)))


def _kind(path: Path, content: bytes) -> str:
    if path.suffix == ".npz":
        return "execution"
    try:
        return KINDS[msgspec.json.decode(content, type=_Header).format]
    except (msgspec.DecodeError, KeyError, RecursionError):
        kinds = "a plan, a certificate, an execution or a result"
        raise InvalidInput(f"{path} must be {kinds} that inca wrote, or a session's folder, got another file") from None


def _bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{path} must be a file or a folder, got something else")
        if status.st_size > MAX_BYTES:
            raise InvalidInput(f"{path} must have at most {MAX_BYTES} bytes, got {status.st_size}")
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def _source(path: Path, content: bytes) -> SourceFile:
    return SourceFile(path.name, hashlib.sha256(content).hexdigest())


def _session_folder(folder: Path) -> Path:
    """Return the folder of a session: this one, or the only one in it."""
    if _holds_session(folder):
        return folder
    inner = sorted(entry for entry in folder.iterdir() if entry.is_dir() and _holds_session(entry))
    if len(inner) == 1:
        return inner[0]
    if inner:
        names = ", ".join(entry.name for entry in inner)
        raise InvalidInput(f"{folder} must have one session in it, got {len(inner)}: name one of {names}")
    raise InvalidInput(f"{folder} must be the folder of a session (result.json or status.json), got another folder")


def _holds_session(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("result.json", "status.json"))


def _session(folder: Path, roster: Path | None) -> ReportContent:
    files = {
        name: (folder / name, _bytes(folder / name))
        for name in ("result.json", "certificate.json", "execution.json", "log.jsonl", "status.json")
        if (folder / name).is_file()
    }
    if "result.json" not in files:
        if roster is not None:
            raise InvalidInput("--roster must be combined with a session that has ended, got one that has not")
        path, content = files["status.json"]
        return replace(unfinished_content(_status(path, content), folder), sources=(_source(path, content),))
    files.pop("status.json", None)  # says nothing more
    result = read_result(*files["result.json"])
    report = session_content(
        result,
        read_certificate(*files["certificate.json"]) if "certificate.json" in files else None,
        read_execution(files["execution.json"][0]) if "execution.json" in files else None,
        files["log.jsonl"][1] if "log.jsonl" in files else None,
        _domain(roster, result),
    )
    return replace(report, sources=(*(_source(*file) for file in files.values()), *_roster_source(roster)))


def _status(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidInput(f"{path} cannot be read: it is not what a node writes") from None


def _roster_source(roster: Path | None) -> tuple[SourceFile, ...]:
    return () if roster is None else (_source(roster, _bytes(roster)),)


def _domain(roster: Path | None, result: ResultFields) -> tuple[float, float] | None:
    """Return where coordinates of values may lie, as the roster of that very session says."""
    if roster is None:
        return None
    from inca._base.extras import require_extra

    require_extra("--roster", "network")
    from inca.network.membership.roster import read_roster

    read = read_roster(roster)
    if read.session.hex() != result.session:
        raise InvalidInput(f"{roster} must be the roster of session {result.session[:16]}, got that of another")
    terms = read.terms
    if terms.radius is not None:
        return -terms.radius, terms.radius
    assert terms.lower is not None and terms.upper is not None
    return terms.lower, terms.upper
