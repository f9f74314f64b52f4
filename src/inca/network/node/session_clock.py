"""The time of a session: Unix time that passes evenly, whatever is done to the machine's clock in the meantime."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]


def session_clock(steady: Clock | None = None) -> Clock:
    """Return a clock that reads the wall clock once, here, and then counts seconds.

    A wall clock that is set back by an hour would otherwise keep its party in a round for an hour. Whether the wall
    clock was right when it was read, the clock check before the start says (`clock_check`). `steady` returns seconds
    since any moment; by default those of the system, with the time that it was suspended where the system counts it.
    """
    steady = steady or _seconds_passed
    anchor = time.time() - steady()
    return lambda: anchor + steady()


def _seconds_passed() -> float:
    """Return seconds since the machine was started."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # Linux: the monotonic clock stands still in a suspended machine
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)
