"""How a party comes into a session: the toss of the public seed, and the way back after an absence.

After a restart, or a late start, a party must not say anything twice: fresh noise for the same value would be a second
release of it, and the same noise with another inflow would reveal differences exactly. So it asks those who would have
heard it in the rounds that its journal does not know. If any of them has, the journal is lost or behind: it leaves. A
party without a journal must hear all of them; one with a journal waits a period for those who are not known to be down.
"""

from __future__ import annotations

from inca.network.protocol.context import Desk
from inca.network.protocol.ledger import Joined, Seeded
from inca.network.protocol.messages import Nonsense, Seen
from inca.network.protocol.signed_items import Kind, commitment, tossed

_LEAST_ASKED = 3  # whom a party that was away asks at least, if there are as many


class Refused(Exception):
    """The party cannot take part; the text says why."""


class Arrival:
    """What a party does before its first round in this life."""

    def __init__(self, desk: Desk) -> None:
        """Begin with nobody asked."""
        self._desk = desk
        self.away = False
        """Not there from the beginning on: others must be asked first."""
        self.fresh = False
        """And without a journal."""
        self._asked: set[int] = set()
        self._answers: dict[int, int] = {}  # peer -> the round it is in

    def commit(self) -> None:
        """Begin the toss, unless the seed is given; whoever knows it already still owes its part to the others."""
        session, ledger = self._desk.session, self._desk.ledger
        if session.seed is not None:
            if ledger.topology is None:
                self._desk.record(Seeded(session.seed))
        elif ledger.opened is not None:
            self._desk.publish("commit", commitment(session.id, self._desk.me, ledger.opened.secret))
            if ledger.topology is not None:
                self._desk.publish("reveal", ledger.opened.secret)

    def toss(self) -> None:
        """Reveal once everyone has committed; all secrets together are the seed."""
        gossip, session, opened = self._desk.gossip, self._desk.session, self._desk.ledger.opened
        if opened is None or gossip.without("commit"):
            return
        if self._desk.me not in gossip.items["reveal"]:
            self._desk.publish("reveal", opened.secret)
        if gossip.without("reveal"):
            return
        secrets = [gossip.items["reveal"][party].body for party in range(session.parties)]
        marks = [gossip.items["commit"][party].body for party in range(session.parties)]
        if all(commitment(session.id, party, secret) == marks[party] for party, secret in enumerate(secrets)):
            self._desk.record(Seeded(tossed(session.id, secrets)))

    def why_no_seed(self) -> str:
        """Say who has kept the toss from its end."""
        gossip, session = self._desk.gossip, self._desk.session
        kinds: tuple[tuple[Kind, str], ...] = (("commit", "committed to"), ("reveal", "revealed"))
        for kind, word in kinds:
            if silent := sorted(gossip.without(kind)):
                return f"the public seed could not be tossed: nothing was {word} by parties {silent}"
        false = [
            party
            for party in range(session.parties)
            if commitment(session.id, party, gossip.items["reveal"][party].body) != gossip.items["commit"][party].body
        ]
        return f"the public seed could not be tossed: parties {false} revealed another secret than they committed to"

    def ask(self) -> None:
        """Choose the witnesses: who would have seen a round that the journal does not know, and at least a few."""
        ledger, topology = self._desk.ledger, self._desk.topology
        later = range(ledger.round + 1, self._desk.session.rounds + 1)
        found = {receiver for t in later for receiver in topology.receivers[t][self._desk.me]}
        others = sorted(self._desk.others - found)
        more = min(len(others), max(0, _LEAST_ASKED - len(found)))
        self._asked = found | set(self._desk.rng.sample(others, more))

    @property
    def unanswered(self) -> set[int]:
        """The witnesses that have not answered yet."""
        return self._asked - set(self._answers)

    def hear(self, peer: int, message: Seen) -> None:
        """Take a witness's answer; raise `Refused` if it has seen what the journal does not know."""
        topology, me = self._desk.topology, self._desk.me
        if any(topology.receiver(t, me, slot) != peer for t, slot in message.offers):
            raise Nonsense("an answer about offers that the schedule does not have")
        forgotten = [t for t, slot in message.offers if (t, slot) not in self._desk.ledger.outbox]
        if forgotten:
            raise Refused(
                f"the journal is lost or behind: party {peer} has seen an offer of round {forgotten[0]} that it lacks"
            )
        later = range(self._desk.ledger.round + 1, message.since)
        if self.fresh and any(peer in topology.receivers[t][me] for t in later if t <= self._desk.session.rounds):
            return  # it came late itself and cannot tell
        self._answers[peer] = min(message.round, self._desk.session.rounds + 1)

    def entry(self, clock_round: int, *, late: bool) -> int | None:
        """Return the round to begin with, None while answers are missing; raise `Refused` if they never came."""
        silent = self.unanswered - (set() if self.fresh else self._desk.down)
        if silent and not late:
            return None
        if silent and self.fresh:
            raise Refused(f"came late, and parties {sorted(silent)} did not tell whether it had been there before")
        ledger, last = self._desk.ledger, self._desk.session.rounds
        where = sorted(self._answers.values())
        if not where and not late:
            return None  # nobody to exchange anything with
        # The middle one: a single peer that says it is far ahead or behind changes nothing.
        middle = where[len(where) // 2] if where else last + 1
        t = last + 1 if ledger.sealed else max(ledger.round + 1, middle, clock_round)
        if self.fresh:
            self._desk.record(Joined(min(t, last + 1)))
        return t
