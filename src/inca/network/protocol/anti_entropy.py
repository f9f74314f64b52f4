"""When and with whom a party talks about items: what the others hold, and what they lack.

A party has neighbours: those at distance 1, 2, 4, ... in either direction, so that connections are few and used again.
It talks to those ahead one after the other, which reaches everyone soonest if all are there; then to random neighbours.
Often at first, and the more seldom the less news there is.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from inca.network.protocol.context import Desk
from inca.network.protocol.finalization import Ending
from inca.network.protocol.messages import Have, Items, Talking, Want

_SELDOM = 25  # times in a period, if there is no news
_OFTEN = 200  # times in a period, at first
_PATIENCE = 4  # parts of a period after which something that was asked for may be asked for again
_ASKED = 2**21  # bytes to ask of one peer at once
_FEW = 3  # neighbours: if there are not even so many, anyone will do


class Talk:
    """A party's side of the exchange of items."""

    def __init__(self, desk: Desk, ending: Ending) -> None:
        """Begin with nothing to say."""
        self._desk, self._ending = desk, ending
        self.next = 0.0
        """When it is time to talk again."""
        self._pause = 0.0
        self._known = 0  # items at the last talk
        self._distance = 0  # of the next partner, as a power of two
        self._asked: dict[tuple[str, int], float] = {}  # (kind, bit of the party) -> until when to wait for it

    def start(self, now: float) -> None:
        """Talk often again, as there will be news."""
        self.next, self._distance = now, 0
        self._pause = self._desk.session.period / _OFTEN

    def tick(self, now: float, wanted: AbstractSet[int]) -> None:
        """Talk if it is time to; `wanted` are the parties whose items are missed."""
        if now < self.next:
            return
        count = self._desk.gossip.count
        if count == self._known:
            self._pause = min(2 * self._pause, self._desk.session.period / _SELDOM)
        self._known, self.next = count, now + self._pause
        up = self._desk.others - self._desk.down
        missed, near = wanted & up, steps(self._desk.session.parties)
        # When only a few are missing, all of them are asked: whoever is gone is then known to be gone.
        asked = {self._partner(up)} | (missed if len(missed) <= 2 * len(near) else set())
        for peer in sorted(asked):
            self._desk.send(peer, self._desk.gossip.have())

    def hear(self, now: float, peer: int, message: Talking) -> None:
        """Take a message about items."""
        match message:
            case Have():
                self.hear_have(now, peer, message)
            case Want():
                self.hear_want(peer, message)
            case Items():
                self.hear_items(message)

    def hear_have(self, now: float, peer: int, message: Have) -> None:
        """Ask for what is lacking here, and tell the peer if there is something that it lacks."""
        desk, n = self._desk, self._desk.session.parties
        lacking = desk.gossip.lacking(message)
        if not message.reply and desk.gossip.superfluous(message):
            desk.send(peer, desk.gossip.have(reply=True))
        wanted = {kind: self._unasked(now, kind, number) for kind, number in lacking.items()}
        if any(wanted.values()):
            desk.send(peer, Want({kind: number.to_bytes(-(-n // 8), "little") for kind, number in wanted.items()}))

    def _unasked(self, now: float, kind: str, number: int) -> int:
        """Leave out what was asked of somebody else a short while ago, and what would be too much at once."""
        room = max(1, _ASKED // (8 * self._desk.session.dimension)) if kind == "final" else self._desk.session.parties
        asked = 0
        while number and room:
            lowest = number & -number
            number ^= lowest
            if self._asked.get((kind, lowest), 0.0) <= now:
                self._asked[kind, lowest] = now + self._desk.session.period / _PATIENCE
                asked |= lowest
                room -= 1
        return asked

    def hear_want(self, peer: int, message: Want) -> None:
        """Send what the peer wants and is there."""
        for batch in list(self._desk.gossip.batches(message)):
            self._desk.send(peer, Items(batch))

    def hear_items(self, message: Items) -> None:
        """Keep what is new and can be understood already."""
        for item in message.items:
            if item.kind in ("commit", "reveal") or self._desk.ledger.topology is not None:
                self._ending.check(item)
                self._desk.gossip.add(item)

    def farewell(self) -> None:
        """Let the neighbours know that everyone is done, before there is nobody left whom they could ask."""
        for peer in sorted(self._near() - self._desk.down):
            self._desk.send(peer, Items(list(self._desk.gossip.items["done"].values())))

    def _near(self) -> set[int]:
        n, me = self._desk.session.parties, self._desk.me
        return {(me + sign * step) % n for step in steps(n) for sign in (1, -1)} & self._desk.others

    def _partner(self, up: frozenset[int]) -> int:
        n, me = self._desk.session.parties, self._desk.me
        while 1 << self._distance < n:
            partner = (me + (1 << self._distance)) % n
            self._distance += 1
            if partner in up:
                return partner
        near = self._near() & up
        return self._desk.rng.choice(sorted(near if len(near) >= _FEW else up or self._desk.others))


def steps(parties: int) -> list[int]:
    """Return the distances of neighbours: 1, 2, 4, ...

    >>> steps(12)
    [1, 2, 4, 8]
    """
    return [1 << power for power in range((parties - 1).bit_length())]
