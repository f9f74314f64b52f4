"""Sessions on a simulated network, with all faults at once and a seed that decides everything.

The parties are the real state machines. The world around them loses, duplicates, delays and reorders messages, cuts
the network in two, gives false hints that a peer is down, shifts clocks, and kills parties at journal writes: before
the write, after it, or between messages. Dead parties come back, some of them with their journal lost. After every
step the ledgers are added up: `balances + open and uncredited shares - injected` must be exactly 0.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Result
from inca.network.protocol.fixed_point import Keystream, discrete_gaussian
from inca.network.protocol.ledger import Credited, Ledger, Record
from inca.network.protocol.messages import OPEN, Message, Numbers, decode, encode, pack
from inca.network.protocol.party import Party
from inca.network.protocol.session import Session
from inca.network.protocol.signed_items import Gossip, Sign, Verify
from inca.network.testing.faults import PERIOD, Faults, random_session
from inca.network.testing.replay import replay
from inca.protocol.transcript import Transcript, digest


class Violation(AssertionError):
    """Something that must never happen has happened; the seed replays it."""


@dataclass
class _Machine:
    """A party's computer: its disk outlives its process."""

    noisy: Numbers
    skew: float
    journal: list[Record] = field(default_factory=list)
    party: Party | None = None
    life: int = 0
    born: int = 0  # how often it was started, for its randomness
    known: dict[int, int] = field(default_factory=dict)  # the latest life of each peer that this life has heard
    book: Ledger | None = None  # what the journal says while nobody runs
    ghosts: list[Ledger] = field(default_factory=list)  # books that were lost with their disk
    next_tick: float = float("inf")


MakeParty = Callable[[Session, int, Sign, Verify, random.Random], Party]


def plain_party(session: Session, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
    """Make the party as it is."""
    return Party(session, me, sign=sign, verify=verify, rng=rng)


class World:
    """One session on a simulated network. `run` returns when nobody has anything left to do."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Faults | None = None,
        session: Session | None = None,
        make: MakeParty = plain_party,
        answers_before_writing: bool = False,
    ) -> None:
        """Draw everything from the seed unless it is given. The last argument breaks the driver, for tests."""
        self.rng = random.Random(seed)
        self.session = session or random_session(self.rng)
        self.faults = faults or Faults.random(self.rng)
        self.steps = self.crashes = 0
        self._make, self._hasty = make, answers_before_writing
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.now = self._booted = 0.0
        self._sides: list[int] | None = None
        self.paid: dict[tuple[int, int, int, int], list[bytes]] = {}
        n = self.session.parties
        self.machines = [self._machine(i) for i in range(n)]
        for i in range(n):
            late = self.rng.random() < self.faults.late
            self._at(self.session.start + 2 * PERIOD if late else self.rng.random() * 5.0, self._boot, i)
        for _ in range(self.faults.partitions):
            begin = self.session.start + self.rng.random() * (self.session.rounds + 2) * PERIOD
            self._at(begin, self._cut)
            self._at(begin + self.rng.random() * 2 * PERIOD, self._heal)

    # --- the world ----------------------------------------------------------------------------------------------

    def run(self, most: int = 200_000) -> None:
        """Let everything happen; a session that does not end within its deadlines is a violation."""
        while self._queue:
            end = max(self.session.deadline(self.session.rounds), self._booted) + 14 * PERIOD
            self.step()
            if self.now > end or self.steps > most:
                stages = [(i, m.party.stage) for i, m in enumerate(self.machines) if m.party and not m.party.finished]
                raise Violation(f"the session hangs at {self.now:.1f} s: {stages}")

    def step(self) -> None:
        """Let the next thing happen."""
        self.now, _, action = heapq.heappop(self._queue)
        action()
        self.steps += 1

    @property
    def survivors(self) -> dict[int, Party]:
        """The parties that run at the end and have not left."""
        return {i: m.party for i, m in enumerate(self.machines) if m.party and m.party.stage != "left"}

    @property
    def results(self) -> dict[int, Result]:
        """The results that survivors hold."""
        return {i: party.result for i, party in self.survivors.items() if party.result is not None}

    def _machine(self, i: int) -> _Machine:
        value = np.array([self.rng.randint(-(2**32), 2**32) for _ in range(self.session.dimension)], dtype=np.int64)
        stream = Keystream(self.rng.randbytes(32), b"independent")
        noise = discrete_gaussian(self.session.sigma_independent, self.session.dimension, stream)
        return _Machine(value + noise, (2 * self.rng.random() - 1) * self.faults.skew)

    def _at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._queue, (max(when, self.now), self._count, lambda: action(*arguments)))

    def _cut(self) -> None:
        self._sides = [self.rng.randint(0, 1) for _ in range(self.session.parties)]

    def _heal(self) -> None:
        self._sides = None

    # --- machines -----------------------------------------------------------------------------------------------

    def _boot(self, i: int) -> None:
        machine = self.machines[i]
        machine.born += 1
        self._booted = self.now
        machine.life = machine.born
        machine.known, machine.next_tick = {}, float("inf")
        key = i.to_bytes(4, "little")
        party = self._make(
            self.session, i, lambda text: _mark(key + text), _verify, random.Random(self.rng.getrandbits(64))
        )
        machine.party, machine.book = party, None
        if machine.journal:
            effects = party.recover(self._clock(i), list(machine.journal))
        else:
            effects = party.open(self._clock(i), machine.noisy, self.rng.randbytes(32), self.rng.randbytes(32))
        self._perform(i, effects)

    def _crash(self, i: int) -> None:
        machine = self.machines[i]
        self.crashes += 1
        machine.party, machine.life = None, 0
        machine.book = self._book(i, machine.journal)
        if self.rng.random() < self.faults.comeback:
            if self.rng.random() < self.faults.disk_loss:
                machine.ghosts.append(machine.book)
                machine.journal, machine.book = [], None
                machine.noisy = machine.noisy + 1  # its independent noise is drawn anew
            self._at(self.now + self.rng.random() * 3 * PERIOD, self._boot, i)

    def _book(self, i: int, records: list[Record]) -> Ledger:
        ledger = Ledger(self.session, i)
        for record in records:
            ledger.apply(record)
        return ledger

    def _clock(self, i: int) -> float:
        return self.now + self.machines[i].skew

    def _perform(self, i: int, effects: Effects) -> None:
        """Write, then send; the machine may die anywhere in between."""
        machine = self.machines[i]
        doomed = bool(effects.records) and self.rng.random() < self.faults.crash
        moment = self.rng.randint(0, len(effects.sends) + 1) if doomed else -1  # 0: before the write
        sends = effects.sends
        if self._hasty and moment == 0:
            self._post_all(i, sends)
        if moment != 0:
            machine.journal += effects.records
            for record in effects.records:
                if isinstance(record, Credited):
                    self.paid.setdefault((record.round, record.sender, record.slot, i), []).append(record.payload)
            self._post_all(i, sends if moment < 0 else sends[: moment - 1])
        if doomed:
            self._crash(i)
        elif machine.party is not None:
            if effects.plan:
                refusal = "its loss would be too large" if self.rng.random() < self.faults.refusal else ""
                self._at(self.now + self.rng.random() * 0.1, self._planned, i, machine.life, refusal)
            if effects.assess is not None:
                refusal = "its loss is too large" if self.rng.random() < self.faults.refusal else ""
                self._at(self.now + self.rng.random() * 0.1, self._assessed, i, machine.life, refusal)
            self._plan_tick(i)
        if effects.records:
            self.check()

    def _post_all(self, i: int, sends: list[tuple[int, Message]]) -> None:
        for peer, message in sends:
            self._post(i, peer, message)

    def _plan_tick(self, i: int) -> None:
        machine = self.machines[i]
        if machine.party is None or machine.party.finished:
            return
        when = machine.party.wakeup - machine.skew
        if when < machine.next_tick and when != float("inf"):
            machine.next_tick = when
            self._at(when, self._tick, i, machine.life, when)

    def _alive(self, i: int, life: int) -> Party | None:
        machine = self.machines[i]
        return machine.party if machine.life == life else None

    def _tick(self, i: int, life: int, when: float) -> None:
        if (party := self._alive(i, life)) is not None:
            if self.machines[i].next_tick == when:
                self.machines[i].next_tick = float("inf")
            self._perform(i, party.tick(self._clock(i) + 1e-9))

    def _planned(self, i: int, life: int, refusal: str) -> None:
        if (party := self._alive(i, life)) is not None:
            self._perform(i, party.planned(self._clock(i), refusal))

    def _assessed(self, i: int, life: int, refusal: str) -> None:
        if (party := self._alive(i, life)) is not None:
            self._perform(i, party.assessed(self._clock(i), refusal))

    # --- the network --------------------------------------------------------------------------------------------

    def _post(self, i: int, j: int, message: Message) -> None:
        rng, faults, here, there = self.rng, self.faults, self.machines[i], self.machines[j]
        cut = self._sides is not None and self._sides[i] != self._sides[j]
        if rng.random() < faults.false_hints:
            self._at(self.now + self._lag(), self._down, i, here.life, j)
        if there.party is None or there.party.finished:
            # A refused connection is noticed; a machine that just died swallows what was sent.
            if rng.random() < 0.8:
                self._at(self.now + self._lag(), self._unsent, i, here.life, message)
                self._at(self.now + self._lag(), self._down, i, here.life, j)
            return
        if cut and rng.random() < 0.3:
            self._at(self.now + self._lag(), self._unsent, i, here.life, message)
            return
        copies = 2 if rng.random() < faults.duplication else 1
        for _ in range(copies):
            if not cut and rng.random() >= faults.loss:
                frame = encode(message)
                self._at(self.now + self._lag(), self._deliver, i, here.life, j, there.life, frame)

    def _lag(self) -> float:
        return self.rng.expovariate(1.0) * self.faults.delay

    def _deliver(self, i: int, sender_life: int, j: int, receiver_life: int, frame: bytes) -> None:
        party, machine = self._alive(j, receiver_life), self.machines[j]
        if party is None or sender_life < machine.known.get(i, 0):
            return
        machine.known[i] = sender_life
        self._perform(j, party.receive(self._clock(j), i, decode(frame)))

    def _unsent(self, i: int, life: int, message: Message) -> None:
        if (party := self._alive(i, life)) is not None:
            self._perform(i, party.unsent(self._clock(i), message))

    def _down(self, i: int, life: int, j: int) -> None:
        if (party := self._alive(i, life)) is not None:
            self._perform(i, party.down(self._clock(i), j))

    # --- the ledgers --------------------------------------------------------------------------------------------

    def books(self) -> list[tuple[int, Ledger]]:
        """All books: of those who run, of the dead, and those that were lost."""
        found: list[tuple[int, Ledger]] = []
        for i, machine in enumerate(self.machines):
            current = machine.party.ledger if machine.party is not None else machine.book
            found += [(i, book) for book in [*machine.ghosts, *([current] if current is not None else [])]]
        return found

    def difference(self) -> Numbers:
        """Return balances + open and uncredited shares - injected, over all books: zero in every state."""
        total = np.zeros(self.session.dimension + 1, dtype=np.int64)
        for i, book in self.books():
            total += book.balance - book.injected
            for (t, slot), sent in book.outbox.items():
                if sent.fate == OPEN and pack(book.shares[t]) not in self.paid.get((t, i, slot, sent.receiver), ()):
                    total += book.shares[t]
        return total

    def check_end(self) -> None:
        """Check what must hold when the session is over: one result, which is the exact one, and honest doubts."""
        results = self.results
        kinds = {
            (result.total.tobytes(), result.weight, result.finals, digest(Transcript(result.realised.execution)))
            for result in results.values()
        }
        if len(kinds) > 1:
            raise Violation(f"{len(kinds)} different results")
        if not results:
            return
        holder, result = next(iter(results.items()))
        books = self._books_behind(result, self.survivors[holder].gossip)
        total = np.sum([books[i].balance for i in sorted(result.finals)], axis=0)
        if total.tolist() != [*result.total.tolist(), result.weight]:
            raise Violation("the result is not the sum of what the parties of the result held")
        self._check_doubts(result, books)
        if result.realised.exact and not any(machine.ghosts for machine in self.machines):
            openings = {i: book.opened for i, book in self.books() if book.opened is not None}
            again = replay(self.session, result.realised.execution, openings)
            if np.sum([again[i] for i in result.finals], axis=0).tolist() != total.tolist():
                raise Violation("the result is not that of the realised execution")

    def _books_behind(self, result: Result, gossip: Gossip) -> dict[int, Ledger]:
        """Return the books that the parties of a result have published, whichever of their disks they were on.

        A disk may be lost after the digest was published, and its owner may then seal another book.
        """
        told, digests, finals = result.realised.told, gossip.items["digest"], gossip.items["final"]
        found = {
            i: book
            for i, book in self.books()
            if i in told
            and book.signed.get("digest") == digests[i]
            and (i not in result.finals or book.signed.get("final") == finals[i])
        }
        if unknown := sorted(told - set(found)):
            raise Violation(f"parties {unknown} have no book with the digest and the final message that count")
        return found

    def _check_doubts(self, result: Result, books: Mapping[int, Ledger]) -> None:
        """What is reported as in doubt was open when its sender sealed; what was open and unknown is reported."""
        reported = {(t, i, slot) for t, i, slot, _ in result.realised.doubts}
        decided = result.realised.told
        for i in decided:
            book = books[i]
            really = {(t, i, slot): sent for (t, slot), sent in book.outbox.items() if sent.fate == OPEN}
            silent = {key for key, sent in really.items() if sent.receiver not in decided}
            named = {key for key in reported if key[1] == i}
            if not named <= silent:
                raise Violation(f"party {i} reports {sorted(named - silent)} in doubt, which was known")
            for t, _, slot in silent - named:
                heard = result.realised.heard.get(book.outbox[t, slot].receiver)
                if heard is None or heard < t:
                    raise Violation(f"party {i} does not report {(t, slot)} in doubt")

    def check(self) -> None:
        """Add the ledgers up."""
        if (difference := self.difference()).any():
            raise Violation(f"the ledgers do not add up at {self.now:.3f} s: {difference.tolist()}")


def _mark(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def _verify(party: int, text: bytes, signature: bytes) -> bool:
    return signature == _mark(party.to_bytes(4, "little") + text)
