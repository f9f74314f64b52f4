"""Whole parties, wired in memory: messages arrive at once, time is an argument, and every write can be the last one."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

import inca
from helpers.ledgers import SESSION, missing, state
from helpers.signatures import sign, verify
from helpers.simulated_network import on_disk
from helpers.trustee_keys import sealing
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Result
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Message, Offer, decode, encode, pack
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.party import Party
from inca.network.protocol.records import Record
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.signed_items import Digest, SignedItems, read
from inca.network.testing.expected_sum import expected_sum

N, START = 5, 10.0
BROKEN_S = 0.02  # after which both ends know that a connection has ended
PACED = replace(SESSION, parties=N, rounds=4, period=1.0, min_round_duration=0.4, start=START, seed=b"p" * 32)
COIN_FLIP = replace(PACED, seed=None)


def noisy(session: SessionConfig, me: int) -> Numbers:
    """A value with independent noise, in steps of the lattice."""
    return value_of(session, me) + independent(session, me)


def value_of(session: SessionConfig, me: int) -> Numbers:
    return np.arange(session.dimension, dtype=np.int64) * 10**9 - 7 * 10**8 * me


def independent(session: SessionConfig, me: int) -> Numbers:
    return discrete_gaussian(session.sigma_independent, session.dimension, Keystream(bytes([me]) * 32, b"independent"))


def masks(me: int) -> bytes:
    return bytes([me, 1]) * 16


def secret(me: int) -> bytes:
    return bytes([me, 2]) * 16


class Room:
    """Parties around a table. `drops` says which messages are lost; a write can be the last of an incarnation."""

    def __init__(self, session: SessionConfig, *, seed: int = 1, copies: int = 1) -> None:
        self.session, self.copies = session, copies
        self.rng = random.Random(seed)
        self.now = self.busy = 0.0
        self.serve_s = 0.0
        self.killed: set[int] = set()
        self.parties: dict[int, Party] = {}
        self.journals: dict[int, list[Record]] = {i: [] for i in range(session.parties)}
        self.incarnations = dict.fromkeys(range(session.parties), 0)
        self.queue: deque[tuple[int, int, int, bytes]] = deque()
        self.plans: list[tuple[float, Callable[[], object]]] = []
        self.drops: Callable[[int, int, Message], bool] = lambda sender, receiver, message: False
        self.offered: dict[tuple[int, int], list[Offer]] = {}  # by sender and receiver, on the connection that stands
        self.breaking: set[frozenset[int]] = set()  # the ends of connections that will turn out to have ended
        self.refusals: dict[int, str] = {}
        self.plans_refused: dict[int, str] = {}
        self.perform_plans = self.perform_assessments = True
        self.fatal: tuple[int, bool] | None = None  # the last write of an incarnation, and whether it is carried out
        self.writes = 0
        self.said: list[tuple[int, Message]] = []
        self.log_events: list[tuple[int, str, dict[str, Any]]] = []
        self.twice = False  # deliver everything again, to see that it changes nothing

    # --- incarnations -------------------------------------------------------------------------------------------

    def make(self, i: int) -> Party:
        generator = random.Random(self.rng.random())
        self.incarnations[i] += 1
        self.offered = {ends: offers for ends, offers in self.offered.items() if ends[0] != i}
        self.parties[i] = Party(self.session, i, sign=sign(i), verify=verify, rng=generator, serve_s=self.serve_s)
        return self.parties[i]

    def open(self, *members: int, first_start: bool = False) -> Self:
        """Let parties begin, by default all."""
        for i in members or range(self.session.parties):
            secrets = noisy(self.session, i), masks(i), secret(i), sealing(i)
            self.perform(i, self.make(i).open(self.now, *secrets, first_start=first_start))
        return self

    def recover(self, i: int, *, first_start: bool = False) -> None:
        """Let a party come back with its journal; without one, it begins anew."""
        if self.journals[i]:
            self.perform(i, self.make(i).recover(self.now, list(self.journals[i]), first_start=first_start))
        else:
            self.open(i, first_start=first_start)

    def kill(self, i: int) -> None:
        self.parties.pop(i, None)
        self.killed.add(i)

    def at(self, when: float, action: Callable[..., object], *arguments: Any) -> None:
        self.plans.append((when, lambda: action(*arguments)))
        self.plans.sort(key=lambda plan: plan[0])

    # --- time ---------------------------------------------------------------------------------------------------

    def run(self, until: float = 60.0) -> Self:
        """Let time pass."""
        for _ in self.steps(until):
            pass
        self.now = max(self.now, until)
        return self

    def at_stage(self, i: int, stage: str) -> Self:
        """Run until party i has just come to a stage."""
        for _ in self.steps(until=100.0):
            if i in self.parties and self.parties[i].stage == stage:
                return self
        raise AssertionError(f"party {i} never comes to {stage}")

    def steps(self, until: float) -> Iterator[None]:
        """Do one thing after the other; whoever wants to be called is called, and must want something later then."""
        yield
        while True:
            while self.queue:
                self.deliver(*self.queue.popleft())
                yield
            if (when := self.next_time()) > until:
                return
            self.now = self.busy = max(self.now, when)
            while self.plans and self.plans[0][0] <= self.now:
                self.plans.pop(0)[1]()
                yield
            for i, party in list(self.parties.items()):
                if party.wakeup <= self.now and self.parties.get(i) is party:
                    self.perform(i, party.tick(self.now))
                    assert party.wakeup > self.now, f"party {i} would be called forever in stage {party.stage}"
                    yield

    def next_time(self) -> float:
        times = [party.wakeup for party in self.parties.values()]
        return min([*times, *(when for when, _ in self.plans)], default=float("inf"))

    def perform(self, i: int, effects: Effects) -> None:
        party, sends = self.parties[i], effects.sends
        self.log_events += [(i, event, fields) for event, fields in effects.log_events]
        doomed = False
        if effects.records:
            doomed = self.fatal is not None and self.fatal[0] == self.writes
            self.writes += 1
            if not doomed or (self.fatal and self.fatal[1]):
                self.journals[i] = on_disk([*self.journals[i], *effects.records])
        if doomed:
            self.kill(i)
            self.at(self.now + 0.15, self.recover, i)
            return
        for peer, message in sends:
            self.said.append((i, message))
            if peer not in self.parties or self.parties[peer].finished:
                if self.parties.get(i) is party:
                    self.perform(i, party.unsent(self.now, message))
                if self.parties.get(i) is party:
                    self.perform(i, party.down(self.now, peer))
            else:
                self.send(i, peer, message)
        if effects.plan and self.perform_plans and self.parties.get(i) is party:
            self.perform(i, party.planned(self.now, self.plans_refused.get(i, "")))
        if effects.assess is not None and self.perform_assessments and self.parties.get(i) is party:
            self.perform(i, party.assessed(self.now, self.refusals.get(i, ""), effects.assess))

    def send(self, i: int, peer: int, message: Message) -> None:
        """Have a message delivered, unless it is lost with its connection."""
        if isinstance(message, Offer):
            self.offered.setdefault((i, peer), []).append(message)
        if not self.drops(i, peer, message):
            for _ in range(self.copies):
                self.queue.append((i, peer, self.incarnations[peer], encode(message)))
        elif (ends := frozenset((i, peer))) not in self.breaking:
            self.breaking.add(ends)
            self.at(self.now + BROKEN_S, self.broken, i, peer)

    def broken(self, i: int, j: int) -> None:
        """Tell both ends that the connection has ended on which a message was lost, and that there is a new one."""
        self.breaking.discard(frozenset((i, j)))
        for end, other in ((i, j), (j, i)):
            for offer in self.offered.pop((end, other), []):
                if end in self.parties:
                    self.perform(end, self.parties[end].in_doubt(self.now, offer))
            if end in self.parties:
                self.perform(end, self.parties[end].up(self.now, other))

    def deliver(self, i: int, j: int, incarnation: int, frame: bytes) -> None:
        if j in self.parties and self.incarnations[j] == incarnation:
            party = self.parties[j]
            self.perform(j, party.receive(self.now, i, decode(frame)))
            if self.twice and self.parties.get(j) is party and self.incarnations[j] == incarnation:
                self.deliver_again(i, j, decode(frame))

    def deliver_again(self, i: int, j: int, message: Message) -> None:
        party = self.parties[j]
        before = snapshot(party)
        effects = party.receive(self.now, i, message)
        assert not effects.records, f"{message} changes something when it comes again"
        assert snapshot(party) == before, f"{message} changes something when it comes again"

    def hand(self, i: int, j: int, message: Message) -> Effects:
        """Give party j a message of party i, and do what it leads to."""
        effects = self.parties[j].receive(self.now, i, message)
        self.perform(j, effects)
        return effects

    def leave(self, i: int, reason: str) -> None:
        """Let a party leave at once, in whatever stage it is."""
        self.parties[i]._leave(self.now, reason)
        self.perform(i, self.parties[i].context.flush())

    # --- what came of it ----------------------------------------------------------------------------------------

    @property
    def results(self) -> dict[int, Result]:
        return {i: party.result for i, party in self.parties.items() if party.result is not None}

    def ledgers(self) -> list[Ledger]:
        """What the journals say."""
        ledgers = []
        for i, journal in self.journals.items():
            ledgers.append(Ledger(self.session, i))
            for record in journal:
                ledgers[-1].apply(record)
        return ledgers

    def check(self, but: set[int] | None = None) -> Result:
        """Everyone who is there has the same result, what the cohort injected and topped up, exactly; nothing is lost.

        Those in `but` may lack it.
        """
        ledgers = self.ledgers()
        assert not any(missing(ledgers))
        results = self.results
        there = {i for i, party in self.parties.items() if party.stage != "left"}
        assert there - (but or set()) <= set(results) <= there
        result = next(iter(results.values()))
        for other in results.values():
            assert other.total.tolist() == result.total.tolist() and other.weight == result.weight
            assert other.realized.cohort == result.realized.cohort and other.exact == result.exact
        cohort = [ledgers[i] for i in sorted(result.realized.cohort)]
        assert [*result.total.tolist(), result.weight] == expected_sum(self.session, cohort).tolist() and result.exact
        return result


def final_of(room: Room, ledger: Ledger) -> Numbers:
    """The settled final message that a party has deposited, recovered from its journal."""
    cohort = ledger.cohort
    assert cohort is not None
    room_party = next(iter(room.parties.values()))
    digests = {item.party: read(item, Digest) for item in room_party.signed_items.by_kind["digest"].values()}
    assert ledger.topology is not None
    credited = {
        t
        for member in cohort.parties
        for t in digests[member].account.credited
        if ledger.topology.senders[t][member] == ledger.me
    }
    message = ledger.settled(cohort.parties, credited)
    message[:-1] += ledger.topup(room.session.sigma_topup(room_party.finalization.realized.execution.cohort_weights))
    return message


def snapshot(party: Party) -> dict[str, Any]:
    """What a message might have changed, times aside."""
    components = party
    transfers, joining, consensus = components.transfers, components.joining, components.consensus
    return {
        "stage": party.stage,
        "ledger": state(party.ledger),
        "items": {kind: dict(items) for kind, items in party.signed_items.by_kind.items()},
        "asked": dict(components.anti_entropy._asked),
        "early": dict(transfers._early),
        "skipped": set(transfers._skipped),
        "joining": (dict(joining._answers), joining.away, joining.may_begin, joining.entry),
        "consensus": (
            consensus._ballot,
            dict(consensus._promises),
            consensus._proposal,
            dict(consensus._votes),
            dict(consensus._yes),
        ),
        "end": (party.result, party.reason, components.finalization._applied, components.finalization.last_step),
        "variants": {key: set(variants) for key, variants in party.signed_items._variants.items()},
    }


def simulated(session: SessionConfig, execution: inca.Execution) -> inca.Outcome:
    """Run the library's simulator on the values and the noise that the parties of the room have."""
    terms = [
        [discrete_gaussian(session.sigma_cancelling, session.dimension, Keystream(masks(i), b"mask %d" % r))]
        for i in range(session.parties)
        for r in range(session.rounds)
    ]
    cancelling = np.array(terms, dtype=float).reshape(session.parties, session.rounds, session.dimension)
    own = np.array([independent(session, i) for i in range(session.parties)], dtype=float)
    values = np.array([value_of(session, i) for i in range(session.parties)], dtype=float)
    return inca.simulate(execution, values, noise=inca.Noise(own, cancelling))


def rounding(session: SessionConfig) -> float:
    """Each share is rounded down by less than a step, here and there; each portion, too; floats are finer."""
    return session.parties * (3 * session.rounds + 1)


def compare(room: Room, execution: inca.Execution) -> None:
    """All settled final messages and the estimate are the simulator's; the execution must have a cohort."""
    session, outcome, ledgers = room.session, simulated(room.session, execution), room.ledgers()
    assert execution.cohort is not None and not session.topup.together
    for i in np.flatnonzero(execution.cohort).tolist():
        message = final_of(room, ledgers[i])
        assert np.abs(message[:-1] - outcome.messages[i]).max() <= rounding(session), f"party {i}"
        assert abs(int(message[-1]) / WEIGHT - outcome.weights[i]) <= rounding(session) / WEIGHT
    result = room.check()
    assert result.realized.cohort == set(np.flatnonzero(execution.cohort).tolist())
    estimate = result.total / (result.weight / WEIGHT)
    # The sums differ by the rounding of the messages; the weights' rounding shifts the quotient by its relative size.
    allowed = rounding(session) * (1 + np.abs(estimate).max() / WEIGHT) / (result.weight / WEIGHT)
    assert outcome.estimate is not None
    assert np.abs(estimate - outcome.estimate).max() <= allowed


def reasons(room: Room) -> dict[int, str]:
    return {i: party.reason for i, party in room.parties.items() if party.stage == "left"}


def offer_of(room: Room, t: int, i: int, to: int, numbers: Sequence[int] = ()) -> Offer:
    """An offer as party i could have made it in round t, or one of these numbers."""
    share = np.array(numbers or range(room.session.dimension + 1), dtype=np.int64)
    return OfferSignatures(room.session, i, sign(i), verify).offer(t, to, pack(share))


def foreign(session: SessionConfig, party: int) -> SignedItems:
    """Something that signs as another party does."""
    return SignedItems(session, party, Ledger(session, party), sign(party), verify)
