"""Sessions of this machine's nodes, as far as they are public: where they are, what came of them, what leaked.

Only `status.json`, `result.json` and `certificate.json` are read: no journal, no value, no noise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inca._base.validation import InputError

_PUBLIC = ("result", "certificate")


def all_sessions(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the status of every session in the folders, the latest news first."""
    from inca.network.node.event_log import statuses  # the network's libraries are an extra

    found = []
    for folder in folders:
        for each in statuses(folder):  # two parties of one session may be on this machine
            found.append(each | {"folder": str(folder), "id": f"{each['session'][:16]}.{each['party']}"})
    return sorted(found, key=lambda each: -each["updated"])


def one_session(folders: Sequence[Path], number: str) -> dict[str, Any]:
    """Return the status of one session, and its result and certificate once they are there."""
    for status in all_sessions(folders):
        if status["id"] == number:
            place = Path(status["folder"]) / status["session"][:16]
            return {"status": status} | {name: _public(place / f"{name}.json") for name in _PUBLIC}
    raise InputError(f"session is {number!r}, but there is none of this name in the folders that are watched")


def _public(place: Path) -> dict[str, Any] | None:
    try:
        fields: dict[str, Any] = json.loads(place.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise InputError(f"{place} cannot be read: it is not what a node writes") from None
    return fields
