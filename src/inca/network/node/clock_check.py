"""Are the clocks good enough? Asked of some peers before the start; whoever's clock is wrong is named.

A party whose clock disagrees with most of those it asked refuses to start: then it is its own that is wrong. One that
disagrees with a few names them in its log, and goes on: they will have refused themselves.

A party that is there in time asks until shortly before the start. One that comes late, or whose clock says so, goes on
soon after a first peer has answered, however long that takes on a slow machine; alone, it gives up after a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median_high

from inca.errors import InvalidInput, PeerUnreachable
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.anti_entropy import neighbour_distances
from inca.network.transport.transport import ClockMeasurement, Transport

_LATE_TIMEOUT_S = 10.0  # for a first answer to a party that comes late ...
_LATE_MORE_S = 1.0  # ... and then for further ones
_LATE_PEERS = 3  # whose answers suffice for it
_RETRY_S = 0.2  # after which a peer that is not there yet is asked again


async def check_clocks(
    transport: Transport,
    setup: SessionSetup,
    me: int,
    log_event: Callable[..., None],
    clock: Callable[[], float] = time.time,
) -> dict[int, ClockMeasurement]:
    """Compare clocks with some peers, and refuse to go on if ours is wrong.

    Args:
        transport: Knows the peers.
        setup: The session, with the agreed start and the largest clock skew.
        me: Our own party.
        log_event: Logs whose clock is wrong.
        clock: Our own clock.

    Returns:
        What was measured, by peer.

    Raises:
        InvalidInput: Our clock disagrees with those of most peers that answered.
    """
    terms, n = setup.roster.terms, len(setup.roster.parties)
    peers = [(me + distance) % n for distance in neighbour_distances(n)]  # the connections will be used again
    measurements = await _measure_all(transport, peers, terms.start - 2 * terms.max_clock_skew - clock())
    if not measurements:
        log_event("clocks not compared", reason="no peer could be reached")
    allowed = terms.max_clock_skew
    wrong = {peer: clocks for peer, clocks in measurements.items() if clocks.largest_skew > allowed}
    for peer, clocks in wrong.items():
        log_event("clock", peer=peer, offset=clocks.offset, round_trip=clocks.round_trip, allowed=allowed)
    if len(wrong) > len(measurements) / 2:
        names = ", ".join(setup.roster.names[peer] for peer in wrong)
        skew = -median_high(clocks.offset for clocks in wrong.values())
        raise InvalidInput(
            f"this machine's clock cannot be trusted: it must be at most {allowed:g} s off those of the others, as "
            f"agreed, got {skew:+.3f} s by those of {names}"
        )
    return measurements


async def _measure_all(transport: Transport, peers: list[int], left_s: float) -> dict[int, ClockMeasurement]:
    """Ask all peers in the time that is left, or a few if we are late."""
    late = left_s < _LATE_MORE_S
    enough = min(_LATE_PEERS, len(peers)) if late else len(peers)
    deadline = time.monotonic() + (_LATE_TIMEOUT_S if late else left_s)
    tasks = {asyncio.create_task(_measure(transport, peer)): peer for peer in peers}
    measurements: dict[int, ClockMeasurement] = {}
    waiting = set(tasks)
    while waiting and len(measurements) < enough and (left_s := deadline - time.monotonic()) > 0:
        done, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        measurements |= {tasks[task]: task.result() for task in done}
        if late and measurements:
            deadline = min(deadline, time.monotonic() + _LATE_MORE_S)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return dict(sorted(measurements.items()))


async def _measure(transport: Transport, peer: int) -> ClockMeasurement:
    while True:
        try:
            return await transport.measure(peer)
        except PeerUnreachable:
            await asyncio.sleep(_RETRY_S)
