"""Lengths of time and moments, as options spell them."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime

from inca._base.validation import refuse

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(option: str, text: str) -> float:
    """Return a length of time in seconds.

    >>> duration("--period", "500ms"), duration("--period", "2m"), duration("--period", "3")
    (0.5, 120.0, 3.0)
    """
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(ms|s|m|h|d|)", text.strip())
    if match is None:
        refuse(option, text, "a length of time such as 10s, 500ms, 2m, 1h or 1d")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def future_time(option: str, text: str) -> float:
    """Return the Unix time of a moment to come: in ISO 8601 with an offset, or from now, as in +10m."""
    now, must_be = time.time(), "a time to come such as 2030-01-15T08:00:00Z, or +10m"
    if text.startswith("+"):
        return float(math.ceil(now + duration(option, text[1:])))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        refuse(option, text, must_be)
    if moment.tzinfo is None:
        refuse(option, text, f"{must_be} (with a Z for UTC)")
    if moment.timestamp() <= now:
        refuse(option, text, must_be)
    return moment.timestamp()
