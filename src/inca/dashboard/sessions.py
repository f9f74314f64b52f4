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
from inca.errors import InvalidInput

_SHOWN: tuple[str, ...] = ("session", "party", "stage", "round", "rounds", "attended", "open_offers", "connected")
_SHOWN += ("reason", "updated", "running", "ended")
_TOLD = ("comes back", "down", "goodbye", "left", "stage", "decided")
_EVENT_FIELDS = ("time", "event", "peer", "stage", "what", "parties", "reason")
_MAX_EVENTS = 30


def all_sessions(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the status of every session in these folders, however deep, the latest first.

    Args:
        folders: `--state` folders, or folders that hold some.
    """
    from inca.network.node.event_log import statuses  # the network's libraries are an extra

    sessions = []
    for state in dict.fromkeys(state for folder in folders for state in _state_folders(folder)):
        for status in statuses(state):
            identity = f"{status['session'][:16]}.{status['party']}"  # two parties of a session may be on this machine
            shown = {name: value for name, value in status.items() if name in _SHOWN}
            events = _events(state / status["session"][:16] / "log.jsonl")
            sessions.append(shown | {"folder": str(state), "id": identity, "events": events})
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
    """Return the status of one session, and its result and certificate once they are there.

    Args:
        folders: `--state` folders, or folders that hold some.
        identity: Its `id` among all sessions.

    Raises:
        InvalidInput: If there is no such session.
    """
    for status in all_sessions(folders):
        if status["id"] == identity:
            place = Path(status["folder"]) / status["session"][:16]
            return {"status": status} | {name: _public(place / f"{name}.json") for name in ("result", "certificate")}
    refuse("session", identity, "one in the folders that are watched")


def _public(place: Path) -> dict[str, Any] | None:
    try:
        fields: dict[str, Any] = json.loads(place.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise InvalidInput(f"{place} cannot be read: it must be what a node writes") from None
    return fields
