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
    goes. After the start a peer that cannot be reached is named once, until it is there again, and so is one that is
    reached in another way; what takes long is told in such a line, too. A relay at which this party is not registered
    is named once, until it is.
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
        self._through: dict[str, str] = {}  # the relay through which a peer was reached last; empty: directly
        self._lost_relays: set[str] = set()
        self._last = ""  # line about who is there
        self._width = 0  # of the line on the terminal that the next one replaces
        self._printed = 0.0  # when

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an event as it is logged."""
        name = event["event"]
        if name in ("connected", "lost", "down"):
            self._note(name, str(event["peer"]), event.get("relay", ""))
        handlers = {"status": self._print_progress, "down": self._print_down}
        handlers |= dict.fromkeys(("registered", "unregistered", "contested"), self._print_registration)
        if self._clock() < self._start and name in ("listens", "connected", "lost", "down"):
            self._print_who_is_here()
        elif name in handlers:
            handlers[name](event)
        elif name not in _UNINTERESTING:
            self._print(_sentence(event))

    def _note(self, event: str, peer: str, relay: str) -> None:
        """Remember who is there and by which way; say so if the way has changed since the start."""
        if event != "connected":
            self._here.discard(peer)
            return
        self._here.add(peer)
        self._down.discard(peer)
        before, self._through[peer] = self._through.get(peer, relay), relay
        if self._clock() >= self._start and before != relay:
            self._print(f"{peer} is reached {f'through {relay}' if relay else 'directly'} now")

    def _print_down(self, event: dict[str, Any]) -> None:
        if (peer := str(event["peer"])) not in self._down:
            self._down.add(peer)
            self._print(f"{peer} cannot be reached: {event['reason']}")

    def _print_registration(self, event: dict[str, Any]) -> None:
        """Say once that the others cannot reach us at a relay, until they can."""
        relay = str(event["relay"])
        if event["event"] == "contested":
            self._print(
                f"{relay} refused a second process with our key; does one run elsewhere, or was the key copied?"
            )
        elif event["event"] == "unregistered" and relay not in self._lost_relays:
            self._lost_relays.add(relay)
            self._print(f"not registered at {relay}: {event['reason']}")
        elif event["event"] == "registered" and relay in self._lost_relays:
            self._lost_relays.discard(relay)
            self._print(f"registered at {relay} again")

    def _print_who_is_here(self) -> None:
        missing = [name for name in self._names if name not in self._here]
        named = ", ".join(missing[:_MAX_NAMED]) + (
            f" and {len(missing) - _MAX_NAMED} more" * (len(missing) > _MAX_NAMED)
        )
        relayed = sum(bool(self._through.get(name)) for name in self._here)
        who = f"{len(self._here)} of {len(self._names)} here" + (f" ({relayed} through a relay)" if relayed else "")
        who += f", {named} missing" if missing else ""
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


def _sentence(event: dict[str, Any]) -> str:
    """Return what to print of an event that needs no memory."""
    match event["event"]:
        case "round":
            return f"round {event['round']} of {event['of']}"
        case "stage":
            return _STAGES.get(event["stage"], str(event["stage"]))
        case "decided":
            return f"{_DECISIONS.get(event['what'], event['what'])}: {event['parties']} parties"
        case "unfinished":
            return f"unfinished: {event['reason']}; leave this party running, or start it again"
        case name:
            rest = ", ".join(f"{key} {_short(value)}" for key, value in event.items() if key not in ("time", "event"))
            return f"{name}: {rest}" if rest else str(name)


def _short(value: object) -> str:
    """Return a number as people say it; the log has all of its digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
