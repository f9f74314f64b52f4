"""The computers of simulated parties, and the sum over all their ledgers, which must be zero in every state.

After a write only the ledgers of its party have changed, and what senders still count as open if the write credits it.
So the sum is kept up to date party by party: to add up all ledgers after every write would take longer than the
session, from some hundred parties on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from inca.network.lattice import Numbers
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Offer, pack
from inca.network.protocol.party import Party
from inca.network.protocol.records import Credited, Record
from inca.network.protocol.session import SessionConfig


class Violation(AssertionError):
    """Something that must never happen has happened; the seed replays it."""


@dataclass
class Machine:
    """A party's computer: its disk outlives its process."""

    noisy: Numbers = field(repr=False)
    skew: float
    journal: list[Record] = field(default_factory=list)
    party: Party | None = None
    incarnation: int = 0  # 0 while nobody runs
    boots: int = 0
    known: dict[int, int] = field(default_factory=dict)  # the latest incarnation of each peer that was heard
    ledger: Ledger | None = None  # what the journal says while nobody runs
    lost_ledgers: list[Ledger] = field(default_factory=list)  # with their disk
    sealings: list[bytes] = field(default_factory=list)  # by ledger: what it would still know, had it erased nothing
    booted_at: float = -inf  # the last time
    crashed_at: float = -inf
    next_tick: float = inf
    sent: dict[int, list[Offer]] = field(default_factory=dict)  # offers by peer, on the connection that stands
    breaking: set[int] = field(default_factory=set)  # to whom it has ended, as will be noticed

    @property
    def ledgers(self) -> list[Ledger]:
        """All ledgers that this party ever had: those that were lost, and that of the process or the disk."""
        current = self.party.ledger if self.party is not None else self.ledger
        return [*self.lost_ledgers, *([current] if current is not None else [])]


class LedgerSums:
    """Balances + open and uncredited shares - injected, over all ledgers of all machines.

    Args:
        session: The terms of the session.
        machines: The computers of the parties, in order.
    """

    def __init__(self, session: SessionConfig, machines: Sequence[Machine]) -> None:
        self._session, self._machines = session, machines
        self._credited: dict[tuple[int, int], list[bytes]] = {}  # payloads by round and receiver
        self._parts = [self._zero for _ in machines]
        self._total = self._zero
        self._changed: set[int] = set()

    @property
    def _zero(self) -> Numbers:
        return np.zeros(self._session.dimension + 1, dtype=np.int64)

    def written(self, i: int, records: Iterable[Record]) -> None:
        """Learn what party i has made durable: what it credits is no longer on its way."""
        for record in records:
            if isinstance(record, Credited):
                self._credited.setdefault((record.round, i), []).append(record.payload)
                topology = self._machines[i].ledgers[-1].topology
                assert topology is not None
                self._changed.add(topology.senders[record.round][i])

    def changed(self, i: int) -> None:
        """Learn that the ledgers of party i may have changed."""
        self._changed.add(i)

    def running_difference(self) -> Numbers:
        """Return the sum, of which only the parts of parties that have changed are worked out."""
        for i in self._changed:
            part = self._part(i)
            self._total = self._total + part - self._parts[i]
            self._parts[i] = part
        self._changed.clear()
        return self._total

    def difference(self) -> Numbers:
        """Return the sum, worked out from all ledgers."""
        return np.asarray(np.sum([self._part(i) for i in range(len(self._machines))], axis=0, dtype=np.int64))

    def _part(self, i: int) -> Numbers:
        part = self._zero
        for ledger in self._machines[i].ledgers:
            part += ledger.balance - ledger.injected
            for t in ledger.open:
                assert ledger.topology is not None
                payloads = self._credited.get((t, ledger.topology.receivers[t][i]), ())
                if pack(ledger.share(t)) not in payloads:
                    part += ledger.share(t)
        return part
