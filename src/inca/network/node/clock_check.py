"""Are the clocks good enough? Asked of some peers before the start; whoever's clock is wrong is named.

A party whose clock disagrees with most of those it asked refuses to start: then it is its own that is wrong. One that
disagrees with a few names them in its log, and goes on: they will have refused themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from inca._base.validation import InputError
from inca.network.node.session_setup import Setting
from inca.network.protocol.anti_entropy import steps
from inca.network.transport.events import Unreachable
from inca.network.transport.transport import Measured, Transport

_LATE = 1.0  # seconds that a party which comes late spends on it at most
_ENOUGH = 3  # peers whose clocks suffice for it
_PAUSE = 0.2  # seconds before a peer that is not there yet is asked again


async def check_clocks(
    transport: Transport, setting: Setting, me: int, write: Callable[..., None]
) -> dict[int, Measured]:
    """Compare clocks with some peers until shortly before the start; refuse to go on if ours is wrong."""
    terms, n = setting.roster.terms, len(setting.roster.parties)
    peers = [(me + step) % n for step in steps(n)]  # the connections will be used again
    until = max(terms.start - 2 * terms.clock_bound, time.time() + _LATE)
    enough = len(peers) if time.time() < terms.start else min(_ENOUGH, len(peers))
    tasks = {asyncio.create_task(_measure(transport, peer, until)): peer for peer in peers}
    found: dict[int, Measured] = {}
    waiting = set(tasks)
    while waiting and len(found) < enough:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        found |= {tasks[task]: measured for task in done if (measured := task.result()) is not None}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    if not found:
        write("clocks not compared", reason="no peer could be reached")
    wrong = {peer: each for peer, each in found.items() if uncertainty(each) > terms.clock_bound}
    for peer, each in wrong.items():
        write("clock", peer=peer, offset=each.offset, round_trip=each.round_trip, allowed=terms.clock_bound)
    if len(wrong) > len(found) / 2:
        names = ", ".join(setting.roster.names[peer] for peer in wrong)
        middle = sorted(each.offset for each in wrong.values())[len(wrong) // 2]
        raise InputError(
            f"this machine's clock cannot be trusted: it is {-middle:+.3f} s off those of {names}, but at most "
            f"{terms.clock_bound:g} s was agreed"
        )
    return found


def uncertainty(measured: Measured) -> float:
    """Return how far the two clocks may be apart: the offset, and half of the round trip.

    >>> uncertainty(Measured(-0.25, 0.5))
    0.5
    """
    return abs(measured.offset) + measured.round_trip / 2.0


async def _measure(transport: Transport, peer: int, until: float) -> Measured | None:
    while True:
        try:
            return await asyncio.wait_for(transport.measure(peer), max(0.05, until - time.time()))
        except (Unreachable, TimeoutError):
            if time.time() + _PAUSE >= until:
                return None
            await asyncio.sleep(_PAUSE)
