"""What a node tells: lines of JSON, and a status file for whoever observes it. Never a value, noise or payload."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from inca.errors import InvalidInput
from inca.network.addresses import Address

_NAMING_PARTIES = ("peer", "party")  # fields
# Events that one peer, or one relay, can cause often.
_REPEATABLE = frozenset(
    (
        "invalid message",
        "violation",
        "throttled",
        "down",
        "lost",
        "connected",
        "registered",
        "unregistered",
        "contested",
    )
)
_LOGGED_ALWAYS = 20  # times, before they are logged ever more rarely
_MIN_STATUS_INTERVAL_S = 0.2


class EventLog:
    """Writes events as JSON lines to a file, readable by its owner alone, and to whoever else wants them."""

    def __init__(
        self, path: Path, names: Sequence[str], on_event: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self._names, self._on_event = names, on_event
        self._counts: Counter[tuple[str, str]] = Counter()
        self._file: TextIO = os.fdopen(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a")

    def log_event(self, event: str, **fields: Any) -> None:
        """Write one event; a disk that takes no more loses the line, not the party.

        Of what one peer or relay causes over and over, only the first lines are written, and then ever fewer.
        """
        if event in _REPEATABLE:
            cause = event, str(fields.get("peer", fields.get("relay")))
            self._counts[cause] += 1
            count = self._counts[cause]
            if count > _LOGGED_ALWAYS and count & (count - 1):
                return
            fields["times"] = count
        entry: dict[str, Any] = {"time": round(time.time(), 3), "event": event}
        for name, value in fields.items():
            party = name in _NAMING_PARTIES and isinstance(value, int) and 0 <= value < len(self._names)
            entry[name] = self._names[value] if party else str(value) if isinstance(value, Address) else value
        with contextlib.suppress(OSError):
            self._file.write(json.dumps(entry, default=str) + "\n")
            self._file.flush()
        if self._on_event is not None:
            self._on_event(entry)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


class StatusFile:
    """A small file that always says where the party is; replaced whole, not more often than anyone could read."""

    def __init__(self, path: Path) -> None:
        self._path, self._last, self._next_write = path, {"stage": ""}, 0.0

    def write(self, fields: dict[str, Any], *, now: bool = False) -> bool:
        """Write the fields if they have changed and the last time is long enough ago, or `now`; return whether."""
        clock = time.monotonic()
        if fields == self._last or (not now and clock < self._next_write):
            return False
        self._last, self._next_write = dict(fields), clock + _MIN_STATUS_INTERVAL_S
        temporary = self._path.with_name(f".{self._path.name}.part")
        try:
            temporary.write_text(json.dumps(fields | {"updated": round(time.time(), 3), "process": os.getpid()}) + "\n")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
        return True


def statuses(state: Path) -> list[dict[str, Any]]:
    """Return where the sessions of a `--state` folder are; `running`: whether the process that wrote it is there."""
    return [_status(path) for path in sorted(state.glob("*/status.json"))]


def fields_of(path: Path) -> dict[str, Any]:
    """Return the fields of a file that a node writes; none if it is not there."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return fields


def _status(path: Path) -> dict[str, Any]:
    fields = fields_of(path)
    try:
        running = _is_running(int(fields["process"]))
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{path} cannot be read: it is not what a node writes") from None
    return fields | {"running": running, "ended": path.with_name("ended.json").exists()}


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True
