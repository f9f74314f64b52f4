"""Sessions of this machine's nodes, as far as they are public: where they are, what came of them, what they revealed.

Only `status.json`, `result.json`, `certificate.json` and the log are read: no journal, no value, no noise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from inca._base.validation import refuse
from inca.documents.certificate import CertificateDocument
from inca.documents.result import ResultDocument
from inca.reporting.parts import Content
from inca.reporting.session import session_content

_SHOWN: tuple[str, ...] = ("session", "party", "stage", "round", "rounds", "attended", "open_offers", "connected")
_SHOWN += ("reason", "updated", "running", "ended")
_TOLD = ("comes back", "down", "goodbye", "left", "stage", "decided")
_EVENT_FIELDS = ("time", "event", "peer", "stage", "what", "parties", "reason")
_MAX_EVENTS = 30


def all_sessions(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the status of every session in these folders, however deep, the latest first."""
    from inca.network.node.event_log import statuses  # the network's libraries are an extra
    from inca.network.node.progress import progress_in_words

    sessions = []
    for state in dict.fromkeys(state for folder in folders for state in _state_folders(folder)):
        for status in statuses(state):
            identity = f"{status['session'][:16]}.{status['party']}"  # two parties of a session may be on this machine
            shown = {name: value for name, value in status.items() if name in _SHOWN}
            events = _events(state / status["session"][:16] / "log.jsonl")
            progress = progress_in_words(status) if status["running"] else ""
            sessions.append(shown | {"folder": str(state), "id": identity, "progress": progress, "events": events})
    return sorted(sessions, key=lambda session: -session["updated"])


def _events(log: Path) -> list[dict[str, Any]]:
    """Return what happened to the session lately, as far as its log tells; a line that is being written is left out."""
    events = []
    with suppress(OSError):
        for line in log.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                fields = json.loads(line)
                if fields.get("event") in _TOLD:
                    events.append({name: fields[name] for name in _EVENT_FIELDS if name in fields})
    return events[-_MAX_EVENTS:]


def _state_folders(folder: Path) -> list[Path]:
    """Return all folders that hold sessions, this one or those in it."""
    return sorted({place.parent.parent for place in folder.rglob("status.json")})


def one_session(folders: Sequence[Path], identity: str) -> dict[str, Any]:
    """Return the status of one session, and what is to be said of it once it has ended."""
    for status in all_sessions(folders):
        if status["id"] == identity:
            return {"status": status, "content": _content(Path(status["folder"]) / status["session"][:16])}
    refuse("session", identity, "one in the folders that are watched")


def _content(place: Path) -> Content | None:
    result, certificate = place / "result.json", place / "certificate.json"
    if not result.exists():  # it is written last
        return None
    return session_content(
        ResultDocument.read(result), CertificateDocument.read(certificate) if certificate.exists() else None
    )
