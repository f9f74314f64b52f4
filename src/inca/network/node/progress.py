"""How far a session is with what takes long: shares of a round, final messages, keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_LARGE = 2**20  # bytes: less arrives before anyone could read how much of it there is


def here_of(have: int, of: int, arriving: Sequence[int], size: int) -> float:
    """Return how many of some messages of a size are here, with the parts of those that are arriving.

    Nobody makes it more than there will be by what it sends instead.

    >>> here_of(3, 12, [500, 250], 1000), here_of(11, 12, [500, 10**9], 1000)
    (3.75, 12.0)
    """
    return min(float(of), have + sum(min(part, size) for part in arriving) / size)


class TimeLeft:
    """Estimates how long the rest of some arrivals takes from those that there were; silence makes it longer.

    Example:
        >>> deposits = TimeLeft()
        >>> [deposits.look(now, have, 12) for now, have in ((10.0, 1), (12.0, 3), (16.0, 3), (17.0, 12))]
        [None, 9, 27, None]
    """

    def __init__(self) -> None:
        self._of, self._first, self._began = 0, 0.0, 0.0

    def look(self, now: float, have: float, of: int) -> int | None:
        """Return how many seconds are left, now that so many have arrived; None if that is unknown, or none are.

        Of one that is arriving, the part that is here counts.
        """
        if of != self._of or have < self._first:
            self._of, self._first, self._began = of, have, now
        if not self._first < have < of:
            return None
        left = (now - self._began) / (have - self._first) * (of - have)
        return math.ceil(left)


def progress_in_words(status: Mapping[str, Any]) -> str:
    """Return what a session does at the moment, if that may take long, by the fields of its status; else nothing.

    >>> fields = {"stage": "agreeing", "deposits": 3, "expected": 12, "percent": 41, "seconds_left": 20}
    >>> progress_in_words(fields | {"bytes_received": 48e6, "bytes_expected": 112e6})
    'final messages: 3 of 12, 41 %, about 20 s left; 48 of about 112 MB received'
    """
    stage, expected, text = status["stage"], status.get("expected", 0), ""
    if status.get("bytes_expected", 0) < _LARGE:
        return ""
    if stage == "drawing":
        return "drawing the noise of all rounds"
    if stage == "rounds":
        text = f"shares of round {status['round']} of {status['rounds']} are under way"
        text += f", {status['open_offers']} of ours not confirmed yet" if status["open_offers"] else ""
    elif stage in ("agreeing", "assessing") and status["deposits"] < expected:
        text = f"final messages: {status['deposits']} of {expected}, {status['percent']} %"
        if (left := status["seconds_left"]) is not None:
            text += f", about {left} s left"
    elif stage == "opening":
        text = f"{status['keys']} of {status['keys_needed']} keys are here that open {expected} final messages"
    if not text:
        return ""
    return f"{text}; {status['bytes_received'] / 1e6:.0f} of about {status['bytes_expected'] / 1e6:.0f} MB received"
