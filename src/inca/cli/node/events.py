"""What `inca node run` says while it runs: who is there before the start, then rounds, stages, and what goes wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from inca.network.node.progress import progress_in_words

_MAX_NAMED = 4  # of the parties that are missing
_PROGRESS_AFTER_S = 1.0  # without another line; on a terminal, and elsewhere:
_PROGRESS_LINES_AFTER_S = 10.0
_UNINTERESTING = ("connected", "lost", "listens", "ended", "stopped", "proposes")
_STAGES = {
    "digests": "comparing what was sent",
    "agreeing": "agreeing",
    "assessing": "working out what was given away",
    "opening": "opening the sealed final messages",
    "serving": "waiting until all have the result",
}
_DECISIONS = {
    "cohort": "agreed on who settles",
    "commit": "agreed to open the sealed final messages",
}


class EventPrinter:
    """Prints the events of a node for people: before the start, in one line, who is there and who is missing.

    On a terminal that line is replaced as it changes; elsewhere a new one is printed, but only when somebody comes or
    goes. After the start a peer that cannot be reached is named once, until it is there again; and what takes long is
    told in such a line, too.
    """

    def __init__(
        self,
        names: Sequence[str],
        me: str,
        start: float,
        *,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._names, self._me, self._start = list(names), me, start
        self._file, self._clock = file or sys.stderr, clock
        self._here, self._down = {me}, set[str]()
        self._last = ""  # line about who is there
        self._width = 0  # of the line on the terminal that the next one replaces
        self._printed = 0.0  # when

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an event as it is logged."""
        name, peer = event["event"], event.get("peer")
        if name == "connected":
            self._here.add(str(peer))
            self._down.discard(str(peer))
        elif name in ("lost", "down"):
            self._here.discard(str(peer))
        if self._clock() < self._start and name in ("listens", "connected", "lost", "down"):
            self._print_who_is_here()
        elif name == "status":
            self._print_progress(event)
        elif name == "round":
            self._print(f"round {event['round']} of {event['of']}")
        elif name == "stage":
            self._print(_STAGES.get(event["stage"], event["stage"]))
        elif name == "decided":
            self._print(f"{_DECISIONS.get(event['what'], event['what'])}: {event['parties']} parties")
        elif name == "unfinished":
            self._print(f"unfinished: {event['reason']}; leave this party running, or start it again")
        elif name == "down":
            if peer not in self._down:
                self._down.add(str(peer))
                self._print(f"{peer} cannot be reached: {event['reason']}")
        elif name not in _UNINTERESTING:
            rest = ", ".join(f"{key} {_short(value)}" for key, value in event.items() if key not in ("time", "event"))
            self._print(f"{name}: {rest}" if rest else name)

    def _print_who_is_here(self) -> None:
        missing = [name for name in self._names if name not in self._here]
        named = ", ".join(missing[:_MAX_NAMED]) + (
            f" and {len(missing) - _MAX_NAMED} more" * (len(missing) > _MAX_NAMED)
        )
        who = f"{len(self._here)} of {len(self._names)} here" + (f", {named} missing" if missing else "")
        line = f"{who}, starts in {max(0.0, self._start - self._clock()):.0f} s"
        if self._file.isatty():
            self._replace(line)
        elif who != self._last:
            print(line, file=self._file, flush=True)
        self._last = who

    def _print_progress(self, status: dict[str, Any]) -> None:
        line, quiet = progress_in_words(status), self._clock() - self._printed
        if line and status["stage"] == "drawing":
            self._print(line)
        elif line and self._file.isatty():
            if quiet >= _PROGRESS_AFTER_S:
                self._replace(line)
        elif line and quiet >= _PROGRESS_LINES_AFTER_S:
            self._print(line)

    def _replace(self, line: str) -> None:
        """Print a line on a terminal that the next one replaces."""
        print("\r" + line.ljust(self._width), end="", file=self._file, flush=True)
        self._width = len(line)

    def _print(self, line: str) -> None:
        if self._width:  # the line about who is there stays as it is
            print(file=self._file)
            self._width = 0
        print(line, file=self._file, flush=True)
        self._printed = self._clock()


def _short(value: object) -> str:
    """Return a number as people say it; the log has all of its digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
