"""How signed items reach everyone: they are passed on; and, should that not be enough, by anti-entropy.

Few parties send what is theirs to everyone, at once. Among many, passing on is recursive doubling, as in collective
communication (Bruck et al. 1997). Parties stand in a circle; whoever holds the items of the 2^i parties up to itself
sends them to the party 2^i ahead, which then holds 2^(i+1) of them. If all are there, everyone holds everything after
log2(n) messages, and nothing comes twice. A deposit and a refusal are one word there, of which each party has one. Keys
go from their trustees to everyone, however many there are: any few of them are enough.

Anti-entropy mends the rest. When there has been no news for a while, a party tells another what it holds, and asks for
what it lacks; less and less often as long as there is no news. It has neighbours: those at distance 1, 2, 4, ... in
either direction, so that connections are few and used again. It talks to those ahead one after the other, then to
random neighbours.

One member cannot keep the others from items. What is lacking is asked of one peer at a time; whoever did not deliver it
in time gives way, for a while in which several talk, to those who have not been asked for it. Only for its own item it
is asked as ever: by withholding that, it leaves out nobody but itself. And nobody is sent the same item again and
again: large ones once on a connection, which loses nothing while it stands, small ones once in a while, as they may
have come before they could be understood.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from math import inf

from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import Decisions, Fetch, Have, Item, ItemMessage, Items, Want
from inca.network.protocol.signed_items import WORDS, in_batches
from inca.network.protocol.traffic import Traffic

_FIRST_TALKS_PER_PERIOD = 32
_MIN_TALKS_PER_PERIOD = 8  # if there is still no news
_MAX_PAUSES = 8  # for which news keeps a party from talking: somebody may let others have it in bits
_REREQUEST_AFTER_PERIODS = 1 / 4  # something that was asked of somebody else
_GIVES_WAY_PERIODS = 1 / 16  # for which whoever did not deliver it is not asked for it
_SMALL_AGAIN_PERIODS = 1 / 32  # after which a small item is sent to the same peer again
_LARGE_AGAIN_PERIODS = 1.0  # and a large one, on the same connection
_OF_COIN_FLIP = ("commit", "confirm", "reveal")
_BROADCAST_UP_TO = 24  # parties: each sends its own items to all others
_MIN_NEIGHBOURS = 3  # that are up; with fewer, anyone will do


class AntiEntropy:
    """A party's side of the exchange of items."""

    def __init__(self, context: PartyContext, finalization: Finalization, consensus: Consensus) -> None:
        self._context, self._finalization, self._consensus = context, finalization, consensus
        self._traffic = Traffic(context.session)
        self.due = 0.0
        """When it is time to talk again."""
        self._first_pause = context.session.period / _FIRST_TALKS_PER_PERIOD
        self._pause = self._latest = 0.0  # until then, and when it is due even if there is news
        self._news_until = -inf  # more is expected
        self._seen = (0, 0)  # changes of the items and of who is down, when they were last passed on
        self._passed_on: dict[tuple[str, int], int] = {}  # kind and cohort -> to how many parties
        self._distance = 0  # of the next partner, as a power of two
        self._claims: dict[int, Have] = {}  # what each peer has last said to hold
        self._asked: dict[tuple[str, int], tuple[int, float]] = {}  # (kind, bit of the party) -> of whom, until when
        self._in_vain: dict[tuple[str, int], set[int]] = {}  # who was asked for it and did not deliver it in time
        self._sent: dict[int, dict[bytes, float]] = {}  # to whom, what (by its signature) -> until when not again

    def start(self, now: float) -> None:
        """Expect news, and talk soon again if there is none."""
        self._distance, self._pause = 0, self._first_pause
        self._set_due(now)

    def _set_due(self, now: float) -> None:
        self.due, self._latest = now + self._pause, now + _MAX_PAUSES * self._pause

    def connected(self, now: float, peer: int) -> None:
        """Learn of a new connection: what was sent on an earlier one may be lost, and what was asked for on it.

        So it is time to talk, and soon; never later, or one peer that connects again and again could put it off. What
        was asked for may be asked of anyone now; the first time of this peer, too, and after that of others first.
        """
        self._sent.pop(peer, None)
        self._claims.pop(peer, None)
        self._consensus.connected(peer)
        self._pause = self._first_pause
        self.due = min(self.due, now + self._pause)
        for wanted, (asked, until) in list(self._asked.items()):
            if asked == peer and peer in (in_vain := self._in_vain.setdefault(wanted, set())):
                self._asked[wanted] = peer, min(now, until)
            elif asked == peer:
                in_vain.add(peer)
                del self._asked[wanted]

    def pass_on(self, now: float) -> None:
        """Send the items of the 2^i parties up to this one to the party 2^i ahead, as soon as they are here."""
        context = self._context
        seen = context.signed_items.changes, len(context.down)
        if seen == self._seen:
            return
        self._seen = seen
        self._news_until = min(now + self._pause, self._latest)
        self.due = max(self.due, self._news_until)
        by_kind = context.signed_items.by_kind
        for kind, held in by_kind.items():
            if context.session.parties <= _BROADCAST_UP_TO or kind == "key":
                self._broadcast(now, kind, held.get(context.me))
            elif kind not in WORDS:
                self._pass_on(now, kind, held)
        if context.session.parties > _BROADCAST_UP_TO:
            self._pass_on(now, "word", {**by_kind["refusal"], **by_kind["deposit"]})

    def _broadcast(self, now: float, kind: str, own: Item | None) -> None:
        """Send an own item to everyone who waits for it, once."""
        step = (kind, self._context.signed_items.cohort)
        if own is not None and step not in self._passed_on:
            self._passed_on[step] = self._context.session.parties
            for peer in sorted(self._audience(kind) - {self._context.me}):
                self._send_items(now, peer, [own])

    def _pass_on(self, now: float, kind: str, held: dict[int, Item]) -> None:
        step = (kind, self._context.signed_items.cohort)
        if self._context.me not in held or self._passed_on.get(step, 1) >= self._context.session.parties:
            return  # it has gone to everyone it is to be passed on to, however many are there
        circle = sorted(self._audience(kind))
        n, place = len(circle), circle.index(self._context.me)
        while (distance := self._passed_on.get(step, 1)) < n:
            block = [circle[place - back] for back in range(min(distance, n - distance))]
            if not held.keys() >= set(block):
                return
            self._passed_on[step] = 2 * distance
            self._send_items(now, circle[(place + distance) % n], (held[party] for party in block))

    def _audience(self, kind: str) -> set[int]:
        """Return among whom the items of a kind are passed on, this party included: those who wait for them.

        Words on a cohort are for its members; its keys for everyone, as the result is.
        """
        context, cohort = self._context, self._finalization.cohort
        up = {context.me, *context.others} - set(context.down)
        of_cohort = cohort is not None and kind in (*WORDS, "word")
        return {context.me, *cohort.parties} if cohort is not None and of_cohort else up

    def tick(self, now: float, missed: AbstractSet[int]) -> None:
        """Talk if it is time to; `missed` are the parties whose items are waited for."""
        if now < self.due:
            return
        context = self._context
        self._pause = min(2 * self._pause, context.session.period / _MIN_TALKS_PER_PERIOD)
        self._set_due(now)
        up = context.others - set(context.down)
        asked, reachable = {self._partner(up)}, missed & up
        # When only a few are missing, all of them are asked: whoever is gone is then known to be gone.
        few = 2 * len(neighbour_distances(context.session.parties))
        if len(reachable) <= few:
            asked |= reachable
        doubtful = sorted((missed & set(context.down)) - context.gone)  # they may be back, all of them at once
        asked |= set(context.rng.sample(doubtful, min(few, len(doubtful))))
        have = context.signed_items.have()
        for peer in sorted(asked):
            context.send(peer, have)

    def handle(self, now: float, peer: int, message: ItemMessage) -> None:
        """Take a message about items."""
        match message:
            case Have():
                self.handle_have(now, peer, message)
            case Want():
                self._consensus.tell(now, peer, message.decided)
                self._send_items(now, peer, self._context.signed_items.wanted(message), self._traffic.answer_bytes)
            case Fetch():
                named = self._context.signed_items.with_contents(message.kind, message.contents)
                self._send_items(now, peer, named, self._traffic.answer_bytes)
            case Items():
                self.handle_items(now, peer, message)
                self._consensus.reconsider(now)
            case Decisions():
                self._consensus.adopt(message)

    def handle_have(self, now: float, peer: int, message: Have) -> None:
        """Ask for what is lacking here, and tell the peer if there is something that it lacks.

        While there is news, what is lacking is on its way most likely, and is not asked for yet.
        """
        context, n = self._context, self._context.session.parties
        lacking, decided = context.signed_items.lacking(message), len(context.ledger.decided)
        self._claims[peer] = message
        if not message.reply and (decided > message.decided or context.signed_items.has_more_than(message)):
            context.send(peer, context.signed_items.have(reply=True))
        if not message.reply and now < self._news_until:
            lacking = {}
        elif context.ledger.topology is None:  # the rest could not be understood yet
            lacking = {kind: number for kind, number in lacking.items() if kind in _OF_COIN_FLIP}
        wanted = {kind: self._unasked(now, peer, kind, number) for kind, number in lacking.items()}
        if any(wanted.values()) or message.decided > decided:
            bits = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in wanted.items() if number}
            context.send(peer, Want(bits, decided))
        if message.decided >= decided and (named := self._finalization.named) is not None:
            what, absent = f"named {named.kind}", self._finalization.lacking
            if contents := [entry for entry in absent if self._unasked(now, peer, what, 1 << entry[0])]:
                context.send(peer, Fetch(named.kind, contents))

    def _unasked(self, now: float, peer: int, kind: str, number: int) -> int:
        """Leave out what was asked of somebody else a short while ago, and what would be too much at once."""
        session, asked, room = self._context.session, 0, self._context.session.parties
        if kind.endswith("deposit"):
            waiting = [until for (what, _), (of, until) in self._asked.items() if what == kind and of == peer]
            room = self._traffic.request_bytes // self._traffic.sealed_bytes - sum(now < until for until in waiting)
        while number and room > 0:
            lowest = number & -number
            number ^= lowest
            if self._may_ask(now, peer, (kind, lowest)):
                self._asked[kind, lowest] = peer, now + _REREQUEST_AFTER_PERIODS * session.period
                asked |= lowest
                room -= 1
        return asked

    def _may_ask(self, now: float, peer: int, wanted: tuple[str, int]) -> bool:
        """Return whether a peer may be asked for something now: after others, if it was asked in vain before."""
        if wanted not in self._asked:
            return True
        last, until = self._asked[wanted]
        if now < until:
            return False
        in_vain = self._in_vain.setdefault(wanted, set())
        in_vain.add(last)
        own = wanted[1] == 1 << peer and wanted[0] in self._context.signed_items.by_kind
        return own or peer not in in_vain or now >= until + _GIVES_WAY_PERIODS * self._context.session.period

    def _send_items(self, now: float, peer: int, items: Iterable[Item], room: float = inf) -> None:
        """Send the items that a peer may be sent now, while there is room."""
        sent, fresh = self._sent.setdefault(peer, {}), list[Item]()
        for item in items:
            if room > 0 and now >= sent.get(item.signature, -inf):
                pause = _LARGE_AGAIN_PERIODS if item.sealed else _SMALL_AGAIN_PERIODS
                sent[item.signature] = now + pause * self._context.session.period
                room -= item.size
                fresh.append(item)
        for batch in in_batches(fresh):
            self._context.send(peer, Items(batch))

    def handle_items(self, now: float, peer: int, message: Items) -> None:
        """Keep what is new and can be understood already; ask for more if the peer was asked for this."""
        items = self._context.signed_items
        for item in message.items:
            items.check_known(item)  # first of all: a number is not a party yet
        answers = any(self._asked.get((item.kind, 1 << item.party), (-1, 0.0))[0] == peer for item in message.items)
        for item in message.items:
            if (held := items.by_kind[item.kind].get(item.party)) is not None and held.proof == item.proof:
                continue  # it need not be checked again
            if (item.kind in _OF_COIN_FLIP or self._context.ledger.topology is not None) and items.take(item):
                self._asked.pop((item.kind, 1 << item.party), None)
                self._in_vain.pop((item.kind, 1 << item.party), None)
        if items.key_came_early and not self._context.ledger.committed:
            self._context.send(peer, Want({}, len(self._context.ledger.decided)))  # what was decided, then?
            items.key_came_early = False
        if answers and (claim := self._claims.get(peer)) is not None:
            self.handle_have(now, peer, Have(claim.held, claim.decided, reply=True))

    def announce_all_done(self) -> None:
        """Let the neighbours know that everyone is done, before there is nobody left whom they could ask."""
        for peer in sorted(self.neighbours - set(self._context.down)):
            self._context.send(peer, Items(list(self._context.signed_items.by_kind["done"].values())))

    @property
    def neighbours(self) -> set[int]:
        """The peers with whom it exchanges items, in either direction."""
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
        neighbours = self.neighbours & up
        candidates = neighbours if len(neighbours) >= _MIN_NEIGHBOURS else up or self._context.others
        return self._context.rng.choice(sorted(candidates))


def neighbour_distances(parties: int) -> list[int]:
    """Return the distances of neighbours: 1, 2, 4, ...

    >>> neighbour_distances(12)
    [1, 2, 4, 8]
    """
    return [1 << power for power in range((parties - 1).bit_length())]
