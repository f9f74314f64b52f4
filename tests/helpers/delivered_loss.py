"""What an adversary could have learned from all that was really sent in a simulated session: dense, from journals.

This is independent of executions, views and accountants: the state of every party is followed record by record, as a
linear function of all values and noise, and the loss is worked out from the messages that colluders were sent and all
final messages that were opened, whatever the parties agreed on. No loss that a session states may be below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from helpers.simulated_network import SimulatedNetwork
from inca._base.types import Array
from inca.network.protocol.records import Answered, Began, Credited, Opened, Record
from inca.network.protocol.session import SessionConfig, Topology
from inca.network.protocol.signed_items import Digest, read
from inca.privacy.accountant import account
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.noise_levels import NoiseLevels

LEVELS = NoiseLevels(independent=1.0, cancelling=8.0)
"""Such as the sessions of `faults` have, in units of the independent noise."""


class DeliveredMessages:
    """All messages of a session as rows over x_0, eta*_0, masks of 0, top-up of 0, x_1, ...

    Args:
        session: The terms of the session.
        topology: Who sends to whom.
        journals: All records of each party, in order.
        cohorts: For each party whose deposit was opened, the cohort that it settled for, and the rounds in which
            parties of it have credited its offer.
    """

    def __init__(
        self,
        session: SessionConfig,
        topology: Topology,
        journals: Mapping[int, Iterable[Record]],
        cohorts: Mapping[int, tuple[frozenset[int], set[int]]],
    ) -> None:
        self.session, self.topology = session, topology
        self.terms = session.rounds + 3  # the value, eta*, T masks, the top-up
        self.offers: dict[tuple[int, int], Array] = {}  # (round, sender) -> the share
        self._finals: dict[int, Array] = {}
        self._follow({party: list(records) for party, records in journals.items()}, cohorts)

    def unit(self, party: int, term: int) -> Array:
        """Return one term of a party: 0 its value, 1 its independent noise, then its masks, last its top-up."""
        row = np.zeros(self.session.parties * self.terms)
        row[party * self.terms + term] = 1.0
        return row

    def _follow(
        self, journals: Mapping[int, list[Record]], cohorts: Mapping[int, tuple[frozenset[int], set[int]]]
    ) -> None:
        """Go through all journals round by round: a credit adds a share that its sender has debited before."""
        states = {party: _State(self, party) for party in journals}
        for t in range(self.session.rounds + 1):
            parts = {party: _of_round(records, t) for party, records in journals.items()}
            for party, records in parts.items():
                for record in records:
                    if isinstance(record, Opened | Began):
                        states[party].begin(t)
            for party, records in parts.items():
                for record in records:
                    states[party].take(record)
        for party, (cohort, credited) in cohorts.items():
            self._finals[party] = states[party].settled(cohort, credited)

    def loss(self, party: int, colluding: frozenset[int], levels: NoiseLevels, sensitivity: float) -> float:
        """Return the loss mu of one party against colluders, from all that they saw."""
        honest = [other for other in range(self.session.parties) if other not in colluding]
        seen = [row for (t, sender), row in self.offers.items() if self.topology.receivers[t][sender] in colluding]
        seen += list(self._finals.values())
        if not seen:
            return 0.0
        matrix = np.stack(seen).reshape(len(seen), self.session.parties, self.terms)
        sigmas = [levels.independent, *[levels.cancelling] * self.session.rounds, levels.topup]
        noise = (matrix[:, honest, 1:] * np.array(sigmas)).reshape(len(seen), -1)
        change = matrix[:, party, 0] * sensitivity
        solution, *_ = np.linalg.lstsq(noise, change, rcond=1e-12)
        hidden = np.allclose(noise @ solution, change, atol=1e-7 * max(1.0, float(np.abs(change).max())))
        return float(np.linalg.norm(solution)) if hidden else math.inf


class _State:
    """What a party holds, as a row."""

    def __init__(self, messages: DeliveredMessages, party: int) -> None:
        self._of, self._party = messages, party
        self._row = messages.unit(party, 0) * 0.0
        self._mask = self._row
        self._attended = 0
        self._shares: dict[int, Array] = {}
        self._fates: dict[int, str] = {}
        self._received: list[tuple[int, Array]] = []

    def begin(self, t: int) -> None:
        """Debit the shares of round t, and inject."""
        session, me = self._of.session, self._party
        if t > 0:
            self._shares[t] = self._of.offers[t, me] = self._row / 2.0
            self._row = self._row - self._shares[t]
        r, last = self._attended, t == session.rounds
        fresh = self._row * 0.0 if last else self._of.unit(me, 2 + r)
        portion = 1.0 / session.pieces if r < session.pieces else 0.0
        value = self._of.unit(me, 0) + self._of.unit(me, 1)
        self._row = self._row + portion * value + fresh - self._mask
        self._mask, self._attended = fresh, r + 1

    def take(self, record: Record) -> None:
        """Take a credit, or an answer to an offer."""
        if isinstance(record, Credited):
            sender = self._of.topology.senders[record.round][self._party]
            share = self._of.offers[record.round, sender]
            self._row = self._row + share
            self._received.append((sender, share))
        elif isinstance(record, Answered):
            self._fates[record.round] = record.fate
            if record.fate != "acked":
                self._row = self._row + self._shares[record.round]
                if record.fate == "unsent":
                    self._of.offers.pop((record.round, self._party), None)

    def settled(self, cohort: frozenset[int], credited: set[int]) -> Array:
        """Return the settled final message, with its top-up."""
        row = self._row + self._of.unit(self._party, self._of.terms - 1)
        for t, share in self._shares.items():
            if self._fates.get(t, "open") in ("open", "acked") and t not in credited:
                row = row + share
        for sender, share in self._received:
            if sender not in cohort:
                row = row - share
        return row


def _of_round(records: list[Record], t: int) -> list[Record]:
    """Return the records that a party wrote in round t, in order."""
    current, chosen = 0, list[Record]()
    for record in records:
        if isinstance(record, Began):
            current = record.round
        if current == t and isinstance(record, Opened | Began | Credited | Answered):
            chosen.append(record)
    return chosen


def worst_ratio(network: SimulatedNetwork, levels: NoiseLevels = LEVELS) -> tuple[int, float]:
    """Compare the losses that a session states with those of all that was delivered, against every single colluder.

    Args:
        network: A session that has ended; one with lost disks is left out, as they have taken records with them.
        levels: The noise, without its top-up.

    Returns:
        How many losses were compared, and the largest delivered one as a fraction of the stated one: at most 1.
    """
    if not network.results or any(machine.lost_ledgers for machine in network.machines):
        return 0, 0.0
    holder, result = next(iter(network.results.items()))
    party, session, cohort = network.survivors[holder], network.session, result.realized.cohort
    digests = {item.party: read(item, Digest) for item in party.signed_items.by_kind["digest"].values()}
    topology = party.ledger.topology
    assert topology is not None
    credited: dict[int, set[int]] = {member: set() for member in range(session.parties)}
    for member in cohort:
        for t in digests[member].account.credited:
            credited[topology.senders[t][member]].add(t)
    journals = {i: machine.journal for i, machine in enumerate(network.machines) if machine.journal}
    delivered = DeliveredMessages(session, topology, journals, {i: (cohort, credited[i]) for i in cohort})
    topped_up = replace(
        levels,
        topup=levels.independent
        * session.sigma_topup(result.realized.execution.cohort_weights)
        / session.sigma_independent,
    )
    count, worst = 0, 0.0
    for colluder in range(session.parties):
        honest = cohort - {colluder}
        view = View(result.realized.execution, Adversary((colluder,))).of_cohort()
        losses = account(view, topped_up, sensitivity=1.0)
        for member, stated in zip(losses.honest.tolist(), losses.mu.tolist(), strict=True):
            if member in honest:
                loss = delivered.loss(member, frozenset({colluder}), topped_up, 1.0)
                count, worst = count + 1, max(worst, loss / stated)
    return count, worst
