"""Connections before the start, to those with whom there will be something to exchange: a few at a time.

All parties connect at about the same time. If each began all its connections at once, and many parties share a machine
or a slow link, no handshake would be over in its time, and all of them would begin again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inca.network.protocol.anti_entropy import neighbour_distances
from inca.network.protocol.session import SessionConfig

AT_ONCE = 8  # handshakes that one party begins before any of them is over
_ALL_UP_TO = 128  # parties: as many as a consortium has
_PROPOSERS = 2  # whose proposals are to be expected


def connected_ahead(session: SessionConfig) -> int:
    """Return to how many peers a party connects before the start: all, or in large sessions those it surely needs."""
    if session.parties <= _ALL_UP_TO:
        return session.parties - 1
    neighbours = neighbour_distances(session.parties)
    return min(session.parties - 1, _PROPOSERS + 2 * len(neighbours) + 2 * session.rounds)


class ConnectAhead:
    """Begins connections one after the other, as earlier ones stand or have failed."""

    def __init__(self, connect: Callable[[int], None]) -> None:
        self._connect = connect
        self._waiting: dict[int, None] = {}  # in order
        self._under_way: set[int] = set()

    def begin(self, peers: Iterable[int]) -> None:
        """Connect to these peers, the first ones first."""
        self._waiting |= dict.fromkeys(peers)
        self._go_on()

    def settled(self, peer: int) -> None:
        """Learn that there is a connection to a peer, whoever began it, or that it cannot be reached."""
        self._waiting.pop(peer, None)
        if peer in self._under_way:
            self._under_way.discard(peer)
            self._go_on()

    def _go_on(self) -> None:
        while self._waiting and len(self._under_way) < AT_ONCE:
            peer = next(iter(self._waiting))
            del self._waiting[peer]
            self._under_way.add(peer)
            self._connect(peer)
