"""Anti-entropy: when and with whom a party exchanges signed items, so that in the end everyone holds them all.

A party has neighbours: those at distance 1, 2, 4, ... in either direction, so that connections are few and used again.
It talks to those ahead one after the other, which reaches everyone soonest if all are there; then to random neighbours.
It talks often at first, and less and less often as long as there is no news.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from inca.network.protocol.agreement.agenda import kind_of
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import Decisions, Fetch, Have, ItemMessage, Items, Want
from inca.network.protocol.signed_items import in_batches

_FIRST_TALKS_PER_PERIOD = 200
_MIN_TALKS_PER_PERIOD = 25  # if there is no news
_REREQUEST_AFTER_PERIODS = 1 / 4  # something that was asked of somebody else
_MAX_REQUEST_BYTES = 2**21  # to ask of one peer at once
_MIN_NEIGHBOURS = 3  # that are up; with fewer, anyone will do


class AntiEntropy:
    """A party's side of the exchange of items."""

    def __init__(self, context: PartyContext, finalization: Finalization, consensus: Consensus) -> None:
        self._context, self._finalization, self._consensus = context, finalization, consensus
        self.due = 0.0
        """When it is time to talk again."""
        self._pause = 0.0
        self._known = 0  # items at the last talk
        self._distance = 0  # of the next partner, as a power of two
        self._asked: dict[tuple[str, int], float] = {}  # (kind, bit of the party) -> until when to wait for it

    def start(self, now: float) -> None:
        """Talk often again, as there will be news."""
        self.due, self._distance = now, 0
        self._pause = self._context.session.period / _FIRST_TALKS_PER_PERIOD

    def tick(self, now: float, missed: AbstractSet[int]) -> None:
        """Talk if it is time to; `missed` are the parties whose items are waited for."""
        if now < self.due:
            return
        context, count = self._context, self._context.signed_items.count
        if count == self._known:
            self._pause = min(2 * self._pause, context.session.period / _MIN_TALKS_PER_PERIOD)
        self._known, self.due = count, now + self._pause
        up = context.others - set(context.down)
        asked, reachable = {self._partner(up)}, missed & up
        # When only a few are missing, all of them are asked: whoever is gone is then known to be gone.
        few = 2 * len(neighbour_distances(context.session.parties))
        if len(reachable) <= few:
            asked |= reachable
        doubtful = sorted((missed & set(context.down)) - context.gone)  # they may be back, all of them at once
        asked |= set(context.rng.sample(doubtful, min(few, len(doubtful))))
        for peer in sorted(asked):
            context.send(peer, context.have())

    def handle(self, now: float, peer: int, message: ItemMessage) -> None:
        """Take a message about items."""
        match message:
            case Have():
                self.handle_have(now, peer, message)
            case Want():
                self.handle_want(peer, message)
            case Fetch():
                for batch in in_batches(self._context.signed_items.with_contents(message.kind, message.contents)):
                    self._context.send(peer, Items(batch))
            case Items():
                self.handle_items(peer, message)
            case Decisions():
                self._consensus.adopt(message)

    def handle_have(self, now: float, peer: int, message: Have) -> None:
        """Ask for what is lacking here, and tell the peer if there is something that it lacks."""
        context, n = self._context, self._context.session.parties
        lacking, decided = context.signed_items.lacking(message), len(context.ledger.decided)
        if not message.reply and (decided > message.decided or context.signed_items.has_more_than(message)):
            context.send(peer, context.have(reply=True))
        wanted = {kind: self._unasked(now, kind, number) for kind, number in lacking.items()}
        if any(wanted.values()) or message.decided > decided:
            bits = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in wanted.items() if number}
            context.send(peer, Want(bits, decided))
        if message.decided >= decided and (named := self._finalization.named) is not None:
            kind = kind_of(named.step)
            contents = [e for e in self._finalization.lacking if self._unasked(now, f"named {kind}", 1 << e[0])]
            if contents:
                context.send(peer, Fetch(kind, contents))

    def _unasked(self, now: float, kind: str, number: int) -> int:
        """Leave out what was asked of somebody else a short while ago, and what would be too much at once."""
        session, asked = self._context.session, 0
        room = max(1, _MAX_REQUEST_BYTES // (8 * session.dimension)) if kind == "final" else session.parties
        while number and room:
            lowest = number & -number
            number ^= lowest
            if self._asked.get((kind, lowest), 0.0) <= now:
                self._asked[kind, lowest] = now + _REREQUEST_AFTER_PERIODS * session.period
                asked |= lowest
                room -= 1
        return asked

    def handle_want(self, peer: int, message: Want) -> None:
        """Send what the peer wants and is there."""
        if message.decided < len(self._context.ledger.decided):
            self._context.send(peer, self._consensus.decisions(message.decided))
        for batch in list(self._context.signed_items.batches(message)):
            self._context.send(peer, Items(batch))

    def handle_items(self, peer: int, message: Items) -> None:
        """Keep what is new and can be understood already."""
        for item in message.items:
            if item.kind in ("commit", "reveal") or self._context.ledger.topology is not None:
                self._finalization.check(peer, item)
                self._context.signed_items.add(item)

    def announce_all_done(self) -> None:
        """Let the neighbours know that everyone is done, before there is nobody left whom they could ask."""
        for peer in sorted(self._neighbours() - set(self._context.down)):
            self._context.send(peer, Items(list(self._context.signed_items.by_kind["done"].values())))

    def _neighbours(self) -> set[int]:
        n, me = self._context.session.parties, self._context.me
        both_ways = {(me + sign * distance) % n for distance in neighbour_distances(n) for sign in (1, -1)}
        return both_ways & self._context.others

    def _partner(self, up: frozenset[int]) -> int:
        n, me = self._context.session.parties, self._context.me
        while 1 << self._distance < n:
            partner = (me + (1 << self._distance)) % n
            self._distance += 1
            if partner in up:
                return partner
        neighbours = self._neighbours() & up
        candidates = neighbours if len(neighbours) >= _MIN_NEIGHBOURS else up or self._context.others
        return self._context.rng.choice(sorted(candidates))


def neighbour_distances(parties: int) -> list[int]:
    """Return the distances of neighbours: 1, 2, 4, ...

    >>> neighbour_distances(12)
    [1, 2, 4, 8]
    """
    return [1 << power for power in range((parties - 1).bit_length())]
