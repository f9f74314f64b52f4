"""Are the clocks good enough, and the rosters the same? Asked of some peers before the start; who differs is named.

A party whose clock disagrees with a majority of those it asked, which agree with each other, refuses to start: then it
is its own that is wrong. Before that it asks more of them. One that disagrees with a few, or with some that do not
agree either, names them in its log, and goes on: they will have refused themselves. A party with another roster than
most of those it asked before the start refuses as well: it would be alone. One other is not enough for that, unless
there are only two or three parties: it may lie. After the start they may have gone on to another session, of a sequence
for example.

A party that is there in time asks until shortly before the start. One that comes late, or whose clock says so, goes on
soon after a first peer has answered, however long that takes on a slow machine; alone, it gives up after a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median_high

from inca.errors import InvalidInput, OtherRoster, PeerUnreachable
from inca.network.node.session_clock import Clock
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.anti_entropy import neighbour_distances
from inca.network.transport.failures import FailureCause
from inca.network.transport.transport import ClockMeasurement, Transport

_LATE_TIMEOUT_S = 10.0  # for a first answer to a party that comes late ...
_LATE_MORE_S = 1.0  # ... and then for further ones
_LATE_PEERS = 3  # whose answers suffice for it
_MORE_PEERS, _MORE_S = 8, 3.0  # asked before a clock is said to be wrong, and for how long
_RETRY_S, _LONGEST_RETRY_S = 0.2, 2.0  # after which a peer that is not there yet is asked again, at first and later


async def check_clocks(
    transport: Transport, setup: SessionSetup, me: int, log_event: Callable[..., None], clock: Clock
) -> dict[int, ClockMeasurement]:
    """Compare clocks with some peers, and refuse to go on if ours is wrong."""
    terms, n = setup.roster.terms, len(setup.roster.parties)
    peers = [(me + distance) % n for distance in neighbour_distances(n)]  # the connections will be used again
    left_s = terms.start - 2 * terms.max_clock_skew - clock()
    measurements, other_rosters = await _measure_all(transport, peers, left_s)
    if clock() < terms.start:
        _refuse_other_roster(setup, measurements, other_rosters, log_event)
    if not measurements:
        log_event("clocks not compared", reason="no peer could be reached")
    allowed = terms.max_clock_skew
    if _disagreeing(measurements, allowed):
        others = [peer for peer in range(n) if peer != me and peer not in measurements][:_MORE_PEERS]
        more, _ = await _measure_all(transport, others, min(_MORE_S, max(left_s, _LATE_MORE_S)))
        measurements |= more
    for peer, clocks in measurements.items():
        if clocks.largest_skew > allowed:
            log_event("clock", peer=peer, offset=clocks.offset, round_trip=clocks.round_trip, allowed=allowed)
    if wrong := _disagreeing(measurements, allowed):
        names = ", ".join(setup.roster.names[peer] for peer in wrong)
        skew = -median_high(measurements[peer].offset for peer in wrong)
        raise InvalidInput(
            f"this machine's clock cannot be trusted: it must be at most {allowed:g} s off those of the others, as "
            f"agreed, got {skew:+.3f} s by those of {names}; set it (by NTP, for example) and start again"
        )
    return measurements


def _disagreeing(measurements: dict[int, ClockMeasurement], allowed: float) -> list[int]:
    """Return the peers by whose clocks ours is wrong, if they are most and agree with each other; else nobody."""
    wrong = sorted((clocks.offset, peer) for peer, clocks in measurements.items() if clocks.largest_skew > allowed)
    groups = [[peer for offset, peer in wrong[i:] if offset - wrong[i][0] <= 2 * allowed] for i in range(len(wrong))]
    largest = max(groups, key=len, default=[])
    return sorted(largest) if len(largest) > len(measurements) / 2 else []


def _refuse_other_roster(
    setup: SessionSetup, measurements: dict[int, ClockMeasurement], others: list[int], log_event: Callable[..., None]
) -> None:
    """Name those who have another roster; refuse to go on if they are more than those who have ours."""
    for peer in others:
        log_event("other roster", peer=peer)
    if len(others) > len(measurements) and len(others) >= min(2, len(setup.roster.parties) // 2):
        names = ", ".join(setup.roster.names[peer] for peer in others)
        raise OtherRoster(
            f"this party's roster must be that of the others, and differs from those of {names}: compare the session's "
            f"id, as `inca node roster show` prints it (here {setup.roster.session.hex()[:16]}...)"
        )


async def _measure_all(
    transport: Transport, peers: list[int], left_s: float
) -> tuple[dict[int, ClockMeasurement], list[int]]:
    """Ask all peers in the time that is left, or a few if we are late; return also who is in another session."""
    late = left_s < _LATE_MORE_S
    enough = min(_LATE_PEERS, len(peers)) if late else len(peers)
    deadline = time.monotonic() + (_LATE_TIMEOUT_S if late else left_s)
    failures: dict[int, FailureCause] = {}
    tasks = {asyncio.create_task(_measure(transport, peer, failures)): peer for peer in peers}
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
    others = [peer for peer, cause in failures.items() if cause is FailureCause.OTHER_SESSION]
    return dict(sorted(measurements.items())), sorted(set(others) - set(measurements))


async def _measure(transport: Transport, peer: int, failures: dict[int, FailureCause]) -> ClockMeasurement:
    pause = _RETRY_S
    while True:
        try:
            return await transport.measure(peer)
        except PeerUnreachable as error:
            failures[peer] = FailureCause(error.cause)
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_RETRY_S)  # hundreds that start together would do little else
