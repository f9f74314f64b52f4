"""Sessions on a simulated network, with all faults at once and a seed that decides everything.

The parties are the real state machines. The network around them loses, duplicates, delays and reorders messages, cuts
the network in two, gives false hints that a peer is down, shifts clocks, and kills parties at journal writes: before
the write, after it, or between messages. Dead parties come back, some of them with their journal lost. A connection
loses nothing while it stands, so with every message that is lost it breaks: both ends learn of that in a while, and do
not know which of the others they sent on it have arrived. After every
step the ledgers are added up: `balances + open and uncredited shares - injected` must be exactly 0.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable
from itertools import zip_longest
from math import inf
from typing import Any

import numpy as np

from helpers.ledger_sums import LedgerSums, Machine, Violation
from helpers.lying_dealer import LyingDealer
from helpers.network_faults import PERIOD, Faults, random_session
from helpers.shared_frames import Frame, SharedFrames
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Result
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Items, Message, Offer
from inca.network.protocol.opening.cohort_keys import CohortSecrets
from inca.network.protocol.opening.trustees import trustees_of
from inca.network.protocol.party import Party
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.records import Decided, Erased, Record, Secret
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Key, Sign, SignedItems, Verify, read
from inca.network.protocol.stages import USUAL_DECISIONS, periods_after_rounds
from inca.network.testing.expected_sum import expected_sum
from inca.protocol.adversary import smallest_cohort
from inca.protocol.execution_files import digest
from inca.protocol.transcript import Transcript

_BEARABLE_LOSS = 0.3  # of messages, each with its connection
_NOTICED_LATE = 0.1  # probability that neither end notices at once that their connection has ended
_NOTICED_AFTER_PERIODS = 2.0  # at most, that they do then
_MAX_STEPS, _MAX_STEPS_PER_PARTY = 200_000, 5_000  # the larger one; sessions of a thousand parties take some 250 each


MakeParty = Callable[[SessionConfig, int, Sign, Verify, random.Random], Party]


def plain_party(session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
    """Make a party that keeps the rules."""
    return Party(session, me, sign=sign, verify=verify, rng=rng)


def lying_dealer(session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
    """Make a party that deals garbage."""
    return LyingDealer(session, me, sign=sign, verify=verify, rng=rng)


class SimulatedNetwork:
    """One session on a simulated network. `run` returns when nobody has anything left to do.

    Args:
        seed: Decides everything.
        faults: How bad the network and the machines are; by default drawn from the seed.
        session: The terms of the session; by default drawn from the seed.
        make: Makes a party; tests make some that break the rules.
        answers_before_writing: Whether the driver sends before it has written, which breaks it; for tests.
    """

    def __init__(
        self,
        seed: int,
        *,
        faults: Faults | None = None,
        session: SessionConfig | None = None,
        make: MakeParty = plain_party,
        answers_before_writing: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.session = session or random_session(self.rng)
        self.faults = faults or Faults.random(self.rng)
        self.steps = self.crashes = 0
        self.keys_shown: set[int] = set()  # the numbers of the cohorts that they are for
        self.cuts: list[tuple[float, float]] = []  # when the network was cut in two
        self._make, self._answers_before_writing = make, answers_before_writing
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.now = self._booted = 0.0
        self._sides: list[int] | None = None
        self._frames = SharedFrames()
        n = self.session.parties
        self.liar = self.rng.randrange(n) if self.rng.random() < self.faults.lies else None
        self.machines = [self._machine(i) for i in range(n)]
        self._sums = LedgerSums(self.session, self.machines)
        for i in range(n):
            late = self.rng.random() < self.faults.late
            self._at(self.session.start + 2 * PERIOD if late else self.rng.random() * 5.0, self._boot, i)
            if self.rng.random() < self.faults.leaves:
                self._at(self.session.start + self.rng.uniform(-1.0, self.session.rounds + 2) * PERIOD, self._depart, i)
        for _ in range(self.faults.partitions):
            begin = self.session.start + self.rng.random() * (self.session.rounds + 2) * PERIOD
            end = begin + self.rng.random() * 2 * PERIOD
            self.cuts.append((begin, end))
            self._at(begin, self._cut)
            self._at(end, self._heal)

    # --- time and events --------------------------------------------------------------------------------------------

    def run(self, max_steps: int | None = None) -> None:
        """Process all events; a session that does not end within its deadlines, or so many steps, is a violation.

        Args:
            max_steps: After how many events it counts as hanging; by default far more than a session has.
        """
        most = max(_MAX_STEPS, _MAX_STEPS_PER_PARTY * self.session.parties) if max_steps is None else max_steps
        while self.goes_on(most):
            self.step()

    def goes_on(self, max_steps: int = _MAX_STEPS) -> bool:
        """Return whether anything is to happen that matters; a session that hangs is a violation."""
        if not self._queue:
            return False
        if not self._is_overdue and self.steps <= max_steps:
            return True
        running = [(i, m.party) for i, m in enumerate(self.machines) if m.party and not m.party.finished]
        stages = [(i, party.stage) for i, party in running if not party.finalization.unfinished]
        if stages or self.steps > max_steps:  # the end of a connection may be noticed after all that
            raise Violation(f"the session hangs at {self.now:.1f} s, after {self.steps} steps: {stages}")
        return not running  # the unfinished wait for others, who do not come back

    @property
    def _is_overdue(self) -> bool:
        """Whether the session should be over, with as many decisions as there were, and one more."""
        if self.now <= self._latest_end(0):  # mostly so: then nobody need be asked
            return False
        return self.now > self._latest_end(
            max((len(m.party.ledger.decided) for m in self.machines if m.party), default=0)
        )

    def _latest_end(self, decisions: int) -> float:
        rounds_end = max(self.session.deadline(self.session.rounds), self._booted)
        return rounds_end + periods_after_rounds(decisions + 1 - USUAL_DECISIONS) * PERIOD

    def step(self) -> None:
        """Process the next event."""
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

    def _machine(self, i: int) -> Machine:
        value = np.array([self.rng.randint(-(2**32), 2**32) for _ in range(self.session.dimension)], dtype=np.int64)
        stream = Keystream(self.rng.randbytes(32), b"independent")
        noise = discrete_gaussian(self.session.sigma_independent, self.session.dimension, stream)
        return Machine(value + noise, (2 * self.rng.random() - 1) * self.faults.skew)

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
        machine.boots += 1
        self._booted = machine.booted_at = self.now
        machine.incarnation = machine.boots
        machine.known, machine.sent, machine.breaking, machine.next_tick = {}, {}, set(), inf
        key = i.to_bytes(4, "little")
        make = lying_dealer if i == self.liar else self._make
        party = make(
            self.session, i, lambda text: _signature(key + text), _verify, random.Random(self.rng.getrandbits(64))
        )
        machine.party, machine.ledger = party, None
        first_start = self.faults.vouched and not machine.lost_ledgers  # no word is ever false
        if machine.journal:
            effects = party.recover(self._clock(i), list(machine.journal), first_start=first_start)
        else:
            secrets = self.rng.randbytes(32), self.rng.randbytes(32), self.rng.randbytes(32)
            machine.sealings.append(secrets[-1])
            effects = party.open(self._clock(i), machine.noisy, *secrets, first_start=first_start)
        self._perform(i, effects)

    def _crash(self, i: int, *, for_good: bool = False) -> None:
        machine = self.machines[i]
        machine.crashed_at = self.now
        self.crashes += 1
        self._sums.changed(i)
        machine.party, machine.incarnation = None, 0
        machine.ledger = self._ledger(i, machine.journal)
        if not for_good and self.rng.random() < self.faults.comeback:
            if self.rng.random() < self.faults.disk_loss:
                machine.lost_ledgers.append(machine.ledger)
                machine.journal, machine.ledger = [], None
                machine.noisy = machine.noisy + 1  # its independent noise is drawn anew
            self._at(self.now + self.rng.random() * 3 * PERIOD, self._boot, i)

    def _ledger(self, i: int, records: list[Record]) -> Ledger:
        ledger = Ledger(self.session, i)
        for record in records:
            ledger.apply(record)
        return ledger

    def _clock(self, i: int) -> float:
        return self.now + self.machines[i].skew

    def _perform(self, i: int, effects: Effects) -> None:
        """Write, then send; the machine may die anywhere in between."""
        machine = self.machines[i]
        if self.liar is None and self._make is plain_party and effects.violations:
            raise Violation(f"party {i} counts it against {effects.violations} that they have kept the rules")
        self._sums.changed(i)
        doomed = bool(effects.records) and self.rng.random() < self.faults.crash
        moment = self.rng.randint(0, len(effects.sends) + 1) if doomed else -1  # 0: before the write
        sends = effects.sends
        if self._answers_before_writing and moment == 0:
            self._post_all(i, sends)
        if moment != 0:
            if effects.records:
                machine.journal = on_disk([*machine.journal, *effects.records])
            self._sums.written(i, effects.records)
            self._post_all(i, sends if moment < 0 else sends[: moment - 1])
        committed = any(event == "decided" and of["what"] == "commit" for event, of in effects.log_events)
        if committed and self.rng.random() < self.faults.dies_committed:
            self._crash(i, for_good=True)
        elif doomed:
            self._crash(i)
        elif machine.party is not None:
            if effects.plan:
                refusal = "its loss would be too large" if self.rng.random() < self.faults.refusal else ""
                self._at(self.now + self.rng.random() * 0.1, self._planned, i, machine.incarnation, refusal)
            if (realized := effects.assess) is not None:
                refusal = "its loss is too large" if self.rng.random() < self.faults.refusal else ""
                self._at(self.now + self.rng.random() * 0.1, self._assessed, i, machine.incarnation, realized, refusal)
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
        if when < machine.next_tick and when != inf:
            machine.next_tick = when
            self._at(when, self._tick, i, machine.incarnation, when)

    def _alive(self, i: int, incarnation: int) -> Party | None:
        machine = self.machines[i]
        return machine.party if machine.incarnation == incarnation else None

    def _tick(self, i: int, incarnation: int, when: float) -> None:
        if (party := self._alive(i, incarnation)) is not None:
            if self.machines[i].next_tick == when:
                self.machines[i].next_tick = inf
            self._perform(i, party.tick(self._clock(i) + 1e-9))

    def _planned(self, i: int, incarnation: int, refusal: str) -> None:
        if (party := self._alive(i, incarnation)) is not None:
            self._perform(i, party.planned(self._clock(i), refusal))

    def _assessed(self, i: int, incarnation: int, realized: RealizedExecution, refusal: str) -> None:
        if (party := self._alive(i, incarnation)) is not None:
            self._perform(i, party.assessed(self._clock(i), refusal, realized))

    def _depart(self, i: int) -> None:
        if (party := self.machines[i].party) is not None:
            self._perform(i, party.depart(self._clock(i)))

    # --- the network --------------------------------------------------------------------------------------------

    def _post(self, i: int, j: int, message: Message) -> None:
        rng, faults, here, there = self.rng, self.faults, self.machines[i], self.machines[j]
        self._check_key(i, message)
        cut, gone = self._is_cut(i, j), there.party is None or there.party.finished
        if rng.random() < faults.false_hints:
            self._at(self.now + self._lag(), self._down, i, here.incarnation, j)
        if gone:
            # A refused connection is noticed; a machine that just died swallows what was sent.
            if rng.random() < 0.8:
                self._at(self.now + self._lag(), self._unsent, i, here.incarnation, message)
                self._at(self.now + self._lag(), self._down, i, here.incarnation, j)
                return
        elif cut and rng.random() < 0.3:
            self._at(self.now + self._lag(), self._unsent, i, here.incarnation, message)
            return
        if isinstance(message, Offer):
            here.sent.setdefault(j, []).append(message)
        copies = 2 if rng.random() < faults.duplication else 1
        arriving = 0 if cut or gone else sum(rng.random() >= faults.loss for _ in range(copies))
        for _ in range(arriving):
            frame = self._frames.frame(message)
            self._at(self.now + self._lag(), self._deliver, i, here.incarnation, j, there.incarnation, frame)
        if not arriving:
            self._break(i, j)

    def _check_key(self, i: int, message: Message) -> None:
        """No honest party sends a key that is not behind a commit decision in its journal."""
        if isinstance(message, Items) and any(item.kind == "key" for item in message.items):
            records = self.machines[i].journal
            if not any(isinstance(r, Decided) and r.decision.proposal.step == "commit" for r in records):
                raise Violation(f"party {i} shows a key before anything was committed to")
            self.keys_shown |= {read(item, Key).cohort for item in message.items if item.kind == "key"}
            if len(self.keys_shown) > 1:
                raise Violation(f"keys of cohorts {sorted(self.keys_shown)} are shown, not of one")

    def _is_cut(self, i: int, j: int) -> bool:
        return self._sides is not None and self._sides[i] != self._sides[j]

    def _break(self, i: int, j: int) -> None:
        """Have both ends learn that their connection has broken, each in its own time: at once, or both late."""
        late = self.rng.random() < _NOTICED_LATE
        noticed = self.now + (self.rng.random() * _NOTICED_AFTER_PERIODS * PERIOD if late else 0.0)
        for end, other in ((i, j), (j, i)):
            if other in self.machines[end].breaking:
                continue
            self.machines[end].breaking.add(other)
            self._at(noticed + self._lag(), self._broken, end, self.machines[end].incarnation, other)

    def _broken(self, i: int, incarnation: int, j: int) -> None:
        """Have party i learn that its connection to j has ended, and that there is a new one if j is there."""
        if self._is_cut(i, j):
            self._at(self.now + self.rng.random() * _NOTICED_AFTER_PERIODS * PERIOD, self._broken, i, incarnation, j)
            return
        if self._alive(i, incarnation) is None:
            return
        self.machines[i].breaking.discard(j)
        for offer in self.machines[i].sent.pop(j, []):
            if (party := self._alive(i, incarnation)) is not None:
                self._perform(i, party.in_doubt(self._clock(i), offer))
        there = self.machines[j].party
        if (party := self._alive(i, incarnation)) is not None and there is not None and not there.finished:
            self._perform(i, party.up(self._clock(i), j))

    def _lag(self) -> float:
        return self.rng.expovariate(1.0) * self.faults.delay

    def _deliver(self, i: int, sender_incarnation: int, j: int, receiver_incarnation: int, frame: Frame) -> None:
        machine = self.machines[j]
        if self._alive(j, receiver_incarnation) is None:
            self._break(i, j)
            return
        if sender_incarnation < machine.known.get(i, 0):
            return
        if sender_incarnation > machine.known.get(i, 0):
            machine.known[i] = sender_incarnation
            self._broken(j, receiver_incarnation, i)
        if (party := self._alive(j, receiver_incarnation)) is not None:
            self._perform(j, party.receive(self._clock(j), i, self._frames.message(frame)))

    def _unsent(self, i: int, incarnation: int, message: Message) -> None:
        if (party := self._alive(i, incarnation)) is not None:
            self._perform(i, party.unsent(self._clock(i), message))

    def _down(self, i: int, incarnation: int, j: int) -> None:
        if (party := self._alive(i, incarnation)) is not None:
            self._perform(i, party.down(self._clock(i), j))

    # --- the ledgers --------------------------------------------------------------------------------------------

    def ledgers(self) -> list[tuple[int, Ledger]]:
        """Return all ledgers: of those who run, of the dead, and those that were lost."""
        return [(i, ledger) for i, machine in enumerate(self.machines) for ledger in machine.ledgers]

    def difference(self) -> Numbers:
        """Return balances + open and uncredited shares - injected, over all ledgers: zero in every state."""
        return self._sums.difference()

    @property
    def enough_committed(self) -> bool:
        """Whether one party that runs has recorded commit, and as many trustees run as open everything."""
        knowing = [party for party in self.survivors.values() if party.ledger.committed]
        if not knowing:
            return False
        cohort = knowing[0].ledger.cohort
        assert cohort is not None
        trustees = trustees_of(self.session, cohort.parties, knowing[0].ledger.seed or b"")
        able = {i for i, party in self.survivors.items() if party.ledger.secrets is not None}
        return len(able.intersection(trustees.members)) >= trustees.threshold

    @property
    def enough_before_commit(self) -> bool:
        """Whether so many parties as may decide, and be a cohort, were there from the last round on.

        Sessions with refusals, or cuts of the network at the end, are left out: there is a reason to leave others out.
        So are those in which half of all messages break their connection: a decision then takes longer than there is.
        """
        session, faults = self.session, self.faults
        last = session.deadline(session.rounds - 1)
        if faults.refusal or faults.loss > _BEARABLE_LOSS or any(end > last for _, end in self.cuts):
            return False
        there = [
            i
            for i, party in self.survivors.items()
            if max(self.machines[i].crashed_at, self.machines[i].booted_at) < last - PERIOD
            and session.rounds in party.ledger.account.present
            and party.ledger.opened is not None
            and not party.ledger.opened.late
        ]
        least = max(session.quorum, session.min_participants, smallest_cohort(session.colluders))
        return len(there) >= least

    def check_end(self) -> None:
        """Check what must hold at the end: one chain of decisions, one outcome, the exact one, if enough have stayed.

        Whoever has dealt honestly is never named.
        """
        self._check_decisions()
        liars = {
            party.finalization.lie.party for party in self.survivors.values() if party.finalization.lie is not None
        }
        if liars - {self.liar} or (liars and self.results):
            raise Violation(f"parties {sorted(liars)} are named, and {len(self.results)} have a result")
        if self.enough_before_commit and not any(party.ledger.committed for party in self.survivors.values()):
            raise Violation("a quorum was there all the time, and nothing was committed to")
        if self.enough_committed and not any(
            p.ledger.committed and not p.finalization.unfinished for p in self.survivors.values()
        ):
            raise Violation("enough have stayed after commit, and nobody knows the outcome")
        results = self.results
        different = {
            (result.total.tobytes(), result.weight, result.beacon, digest(Transcript(result.realized.execution)))
            for result in results.values()
        }
        if len(different) > 1:
            raise Violation(f"{len(different)} different results")
        if not results:
            return
        holder, result = next(iter(results.items()))
        ledgers = self._ledgers_behind(result, self.survivors[holder].signed_items)
        if not result.exact:
            raise Violation(f"accounts of honest parties contradict each other: {result.realized.contradictions}")
        if [*result.total.tolist(), result.weight] != expected_sum(self.session, ledgers.values()).tolist():
            raise Violation("the result is not the sum of what the cohort injected and topped up")

    def _check_decisions(self) -> None:
        """No two parties know different decisions; nobody has two words on a cohort, or shows a key before commit."""
        chains = [[decision.proposal for decision in ledger.decided] for _, ledger in self.ledgers()]
        for steps in zip_longest(*chains):
            if len({proposal.hash for proposal in steps if proposal is not None}) > 1:
                raise Violation("two different decisions of one number")
        words: dict[tuple[int, int | None], set[bytes]] = {}
        for i, ledger in self.ledgers():
            for (_, cohort), item in ledger.own_items.items():
                words.setdefault((i, cohort), set()).add(item.body)
        if any(len(bodies) > 1 for bodies in words.values()):
            raise Violation("a party has said two things of one cohort")

    def _ledgers_behind(self, result: Result, signed_items: SignedItems) -> dict[int, Ledger]:
        """Return the ledgers behind the deposits of a result, whichever of their disks they were on.

        A disk may be lost after the digest was published, and its owner may then seal another ledger.
        """
        items, cohort = signed_items.by_kind, result.realized.cohort
        ledgers = {
            i: ledger
            for i, ledger in self.ledgers()
            if i in cohort
            and ledger.own_items.get(("digest", None)) == items["digest"][i]
            and ledger.own_items.get(("deposit", signed_items.cohort)) == items["deposit"][i]
        }
        for i, ledger in ledgers.items():
            if ledger.secrets is None:  # it had given up when it learned that others had committed
                sealing = self.machines[i].sealings[self.machines[i].ledgers.index(ledger)]
                ledger.secrets = CohortSecrets(sealing, 0).advanced(signed_items.cohort)
        if unknown := sorted(cohort - set(ledgers)):
            raise Violation(f"parties {unknown} have no ledger with the digest and the deposit that count")
        return ledgers

    def check(self) -> None:
        """Add the ledgers up, of which those of a few parties have changed since the last time."""
        if (difference := self._sums.running_difference()).any():
            raise Violation(f"the ledgers do not add up at {self.now:.3f} s: {difference.tolist()}")


def on_disk(records: list[Record]) -> list[Record]:
    """Return the records that can be read again: of secrets only the last, and none that are erased."""
    last = max((place for place, record in enumerate(records) if isinstance(record, Secret | Erased)), default=0)
    return [r for place, r in enumerate(records) if not isinstance(r, Secret) or place == last]


def _signature(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def _verify(party: int, text: bytes, signature: bytes) -> bool:
    return signature == _signature(party.to_bytes(4, "little") + text)
