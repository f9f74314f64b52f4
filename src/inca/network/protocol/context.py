"""What the parts of a party share: its ledger, its items, who is down, and what the current event leads to."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from inca.network.protocol.ledger import Ledger, Record, Signed
from inca.network.protocol.messages import Message
from inca.network.protocol.realized_execution import Realised
from inca.network.protocol.session import Session, Topology
from inca.network.protocol.signed_items import Digest, Final, Gossip, Kind, Vote


@dataclass
class Effects:
    """What an event leads to: records to be made durable first, then messages, notes for the log, work to be done."""

    records: list[Record] = field(default_factory=list)
    sends: list[tuple[int, Message]] = field(default_factory=list)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    assess: Realised | None = None
    plan: bool = False
    """Whether the loss at full attendance is to be worked out, now that the schedule is known."""

    def extend(self, later: Effects) -> None:
        """Add what a later event leads to."""
        self.records += later.records
        self.sends += later.sends
        self.notes += later.notes
        self.assess = later.assess or self.assess
        self.plan = later.plan or self.plan


@dataclass
class Desk:
    """A party's things. Every change of the ledger goes through `record`."""

    session: Session
    me: int
    ledger: Ledger
    gossip: Gossip
    rng: random.Random
    down: set[int] = field(default_factory=set)
    out: Effects = field(default_factory=Effects)

    @property
    def topology(self) -> Topology:
        """Who sends to whom; the seed must be known."""
        if self.ledger.topology is None:
            raise RuntimeError("there is no schedule before the seed is known")
        return self.ledger.topology

    @cached_property
    def others(self) -> frozenset[int]:
        """Everyone else."""
        return frozenset(range(self.session.parties)) - {self.me}

    def record(self, record: Record) -> None:
        """Change the ledger, and have it written down before anything is sent."""
        self.ledger.apply(record)
        self.out.records.append(record)

    def send(self, peer: int, message: Message) -> None:
        """Have a message sent once all records are durable."""
        self.out.sends.append((peer, message))

    def note(self, event: str, **fields: Any) -> None:
        """Tell the log; nothing private."""
        self.out.notes.append((event, fields))

    def publish(self, kind: Kind, body: bytes | Digest | Final | Vote, *, once: bool = False) -> None:
        """Sign an own item. `once`: it is written down before anyone sees it, and is never said differently."""
        item = self.gossip.make(kind, body)
        if once:
            self.record(Signed(item))
        self.gossip.add(item)
