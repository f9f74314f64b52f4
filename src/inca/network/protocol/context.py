"""What the components of a party share: its ledger, its signed items, who is down, and the effects of an event."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from inca.errors import LocalProtocolError
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Decision, Message
from inca.network.protocol.opening.trustees import Trustees, trustees_of
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.records import Decided, Record, Secret, Signed
from inca.network.protocol.session import SessionConfig, Topology
from inca.network.protocol.signed_items import Body, Kind, SignedItems


@dataclass
class Effects:
    """What an event leads to: records to be made durable first, then messages; events for the log; work to be done."""

    records: list[Record] = field(default_factory=list)  # to be written in one transaction before anything is sent
    sends: list[tuple[int, Message]] = field(default_factory=list)  # to whom, in order
    log_events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # nothing private
    violations: list[int] = field(default_factory=list)  # who sent what no honest peer would, once for each message
    assess: RealizedExecution | None = None  # on it the party's own loss is to be worked out (`Party.assessed`)
    plan: bool = False  # the loss at full attendance is to be worked out, as the schedule is known (`Party.planned`)

    def extend(self, later: Effects) -> None:
        """Add the effects of a later event."""
        self.records += later.records
        self.sends += later.sends
        self.log_events += later.log_events
        self.violations += later.violations
        self.assess = later.assess or self.assess
        self.plan = later.plan or self.plan


@dataclass
class PartyContext:
    """What the components of a party share. Every change of the ledger goes through `record`."""

    session: SessionConfig
    me: int
    ledger: Ledger
    signed_items: SignedItems
    rng: random.Random  # chooses whom to talk to, nothing else
    down: dict[int, float] = field(default_factory=dict)  # since when a peer is known to be down
    tried: dict[int, float] = field(default_factory=dict)  # when it was last tried in vain
    out: Effects = field(default_factory=Effects)  # of the current event so far

    @property
    def topology(self) -> Topology:
        """Who sends to whom; the seed must be known."""
        if self.ledger.topology is None:
            raise LocalProtocolError("the public seed must be known before the schedule is used")
        return self.ledger.topology

    @cached_property
    def others(self) -> frozenset[int]:
        """Everyone else."""
        return frozenset(range(self.session.parties)) - {self.me}

    @property
    def gone(self) -> set[int]:
        """The peers that were down and, tried again after a period, still are: a short cut of all links is no reason.

        A mark alone may be out of date, as not every peer is spoken to in every period.
        """
        period = self.session.period
        return {peer for peer, since in self.down.items() if self.tried.get(peer, since) >= since + period}

    def mark_down(self, peer: int, now: float) -> None:
        """Learn that a peer was tried in vain."""
        self.down.setdefault(peer, now)
        self.tried[peer] = now

    def mark_gone(self, peer: int, now: float) -> None:
        """Learn from a peer that it leaves: it need not be tried for a period first."""
        self.down[peer], self.tried[peer] = now - 2.0 * self.session.period, now

    def mark_up(self, peer: int) -> None:
        """Learn that a peer is there."""
        self.down.pop(peer, None)
        self.tried.pop(peer, None)

    def name(self, party: int) -> str:
        """Return what people call a party."""
        return self.session.name(party)

    def listed(self, parties: Iterable[int]) -> str:
        """Return what people call some parties, in order."""
        return ", ".join(self.name(party) for party in sorted(parties))

    def record(self, record: Record) -> None:
        """Change the ledger, and have the record written before anything is sent."""
        self.ledger.apply(record)
        self.out.records.append(record)

    def send(self, peer: int, message: Message) -> None:
        """Have a message sent once all records are durable."""
        self.out.sends.append((peer, message))

    def send_all(self, message: Message, *, but: Collection[int] = ()) -> None:
        """Have the same message, which is encoded once, sent to everyone else but some."""
        for peer in sorted(self.others - set(but)):
            self.send(peer, message)

    def log_event(self, event: str, **fields: Any) -> None:
        """Log an event; its fields must hold nothing private."""
        self.out.log_events.append((event, fields))

    def publish(self, kind: Kind, body: bytes | Body) -> None:
        """Sign an own item, which always says the same."""
        self.signed_items.hold_own(self.signed_items.sign(kind, body))

    def publish_once(self, kind: Kind, body: Body, *, sealed: bytes = b"", cohort: int | None = None) -> None:
        """Sign an own item that is written before anyone sees it, and can never be signed differently."""
        item = self.signed_items.sign(kind, body, sealed)
        self.record(Signed(item, cohort))
        self.signed_items.hold_own(item)

    def decide(self, decision: Decision) -> None:
        """Write down a decision; one for a cohort erases the secrets of all earlier ones, in the same transaction."""
        self.record(Decided(decision))
        self.erase_earlier()

    def erase_earlier(self) -> None:
        """Erase the secrets of all cohorts but the last one."""
        ledger = self.ledger
        if ledger.secrets is not None and ledger.secrets.cohort < ledger.cohorts - 1:
            later = ledger.secrets.advanced(ledger.cohorts - 1)
            self.record(Secret(later.cohort, later.state))

    def trustees(self, cohort: Collection[int]) -> Trustees:
        """Return the trustees of a cohort."""
        return trustees_of(self.session, cohort, self.ledger.seed or b"")

    def flush(self) -> Effects:
        """Return the effects of the current event, and begin with those of the next."""
        effects, self.out = self.out, Effects()
        return effects
