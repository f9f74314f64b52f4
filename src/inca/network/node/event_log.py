"""What a node tells: lines of JSON, and a status file for whoever looks on. Never a value, noise or payload."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from inca._base.validation import InputError

_PEERS = ("peer", "party")
_REPEATED, _FIRST = ("nonsense", "fault", "throttled", "down", "lost", "connected"), 20
_OFTEN = 0.2  # seconds between two writings of the status


class Log:
    """Writes events as JSON lines to a file, readable by its owner alone, and to whoever else listens."""

    def __init__(self, path: Path, names: Sequence[str], echo: Callable[[dict[str, Any]], None] | None = None) -> None:
        """Append to the file; peers are named as the roster names them."""
        self._names, self._echo = names, echo
        self._counts: Counter[tuple[str, str]] = Counter()
        self._file: TextIO = os.fdopen(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a")

    def write(self, event: str, **fields: Any) -> None:
        """Write one event; a disk that takes no more loses the line, not the party.

        Of what one peer causes over and over, only the first lines are written, and then ever fewer.
        """
        if event in _REPEATED:
            self._counts[event, str(fields.get("peer"))] += 1
            count = self._counts[event, str(fields.get("peer"))]
            if count > _FIRST and count & (count - 1):
                return
            fields["times"] = count
        entry: dict[str, Any] = {"time": round(time.time(), 3), "event": event}
        for name, value in fields.items():
            if name in _PEERS and isinstance(value, int) and 0 <= value < len(self._names):
                entry[name] = self._names[value]
            else:
                entry[name] = value
        with contextlib.suppress(OSError):
            self._file.write(json.dumps(entry, default=str) + "\n")
            self._file.flush()
        if self._echo is not None:
            self._echo(entry)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


class Status:
    """A small file that always says where the party is; replaced whole, not more often than anyone could read."""

    def __init__(self, path: Path) -> None:
        """Say nothing yet."""
        self._path, self._last, self._next = path, {"stage": ""}, 0.0

    def show(self, fields: dict[str, Any], *, now: bool = False) -> None:
        """Write the fields if they have changed and the last time is long enough ago, or `now`."""
        clock = time.monotonic()
        if fields == self._last or (not now and clock < self._next):
            return
        self._last, self._next = dict(fields), clock + _OFTEN
        temporary = self._path.with_name(f".{self._path.name}.part")
        try:
            temporary.write_text(json.dumps(fields | {"updated": round(time.time(), 3), "process": os.getpid()}) + "\n")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)


def statuses(state: Path) -> list[dict[str, Any]]:
    """Return where the sessions of a `--state` folder are; `running`: whether the process that wrote it is there."""
    return [_status(place) for place in sorted(state.glob("*/status.json"))]


def fields_of(path: Path) -> dict[str, Any]:
    """Return the fields of a file that a node writes; none if it is not there."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return fields


def _status(place: Path) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(place.read_text())
        running = _runs(int(fields["process"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{place} cannot be read: it is not what a node writes") from None
    return fields | {"running": running, "ended": place.with_name("ended.json").exists()}


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
