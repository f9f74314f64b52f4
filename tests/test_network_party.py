"""Whole parties, wired in memory: messages arrive at once, time is an argument, and every write can be the last one."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

import inca
from inca.network.desk import Effects
from inca.network.ending import Result
from inca.network.gossip import Digest, Final, Gossip, Vote
from inca.network.lattice import Keystream, discrete_gaussian
from inca.network.ledger import Began, Joined, Ledger, Left, Opened, Record, Seeded, Signed
from inca.network.party import Party
from inca.network.session import WEIGHT, Session
from inca.network.wire import (
    ACKED,
    OPEN,
    Accept,
    Account,
    Ack,
    Ask,
    Have,
    Item,
    Items,
    Message,
    Nudge,
    Numbers,
    Offer,
    Prepare,
    Promise,
    Resolve,
    Seen,
    Skipped,
    Voided,
    Want,
    Yes,
    bits,
    decode,
    encode,
    pack,
)
from inca.transcript import digest
from test_network_agreement import sign, verify
from test_network_ledger import SESSION, missing, state

N, START = 5, 10.0
PACED = replace(SESSION, parties=N, rounds=4, quiet=0, period=1.0, pace=0.4, start=START, seed=b"p" * 32)
TOSSED = replace(PACED, seed=None)


def noisy(session: Session, me: int) -> Numbers:
    """A value with independent noise, in steps of the lattice."""
    return value_of(session, me) + independent(session, me)


def value_of(session: Session, me: int) -> Numbers:
    return np.arange(session.dimension, dtype=np.int64) * 10**9 - 7 * 10**8 * me


def independent(session: Session, me: int) -> Numbers:
    return discrete_gaussian(session.sigma_independent, session.dimension, Keystream(bytes([me]) * 32, b"independent"))


def masks(me: int) -> bytes:
    return bytes([me, 1]) * 16


def secret(me: int) -> bytes:
    return bytes([me, 2]) * 16


class Room:
    """Parties around a table. `drops` says which messages are lost; a write can be made the last of a life."""

    def __init__(self, session: Session, *, seed: int = 1, copies: int = 1) -> None:
        self.session, self.copies = session, copies
        self.rng = random.Random(seed)
        self.now = self.busy = 0.0
        self.killed: set[int] = set()
        self.parties: dict[int, Party] = {}
        self.journals: dict[int, list[Record]] = {i: [] for i in range(session.parties)}
        self.lives = dict.fromkeys(range(session.parties), 0)
        self.queue: deque[tuple[int, int, int, bytes]] = deque()
        self.plans: list[tuple[float, Callable[[], object]]] = []
        self.drops: Callable[[int, int, Message], bool] = lambda sender, receiver, message: False
        self.refusals: dict[int, str] = {}
        self.plans_refused: dict[int, str] = {}
        self.perform_plans = True
        self.fatal: tuple[int, bool] | None = None  # which write is the last of its life, and whether it is made
        self.writes = 0
        self.said: list[tuple[int, Message]] = []
        self.notes: list[tuple[int, str, dict[str, Any]]] = []
        self.twice = False  # hear everything again, to see that it changes nothing

    # --- lives --------------------------------------------------------------------------------------------------

    def make(self, i: int) -> Party:
        generator = random.Random(self.rng.random())
        self.lives[i] += 1
        self.parties[i] = Party(self.session, i, sign=sign(i), verify=verify, rng=generator)
        return self.parties[i]

    def open(self, *members: int) -> Room:
        """Let parties begin, by default all."""
        for i in members or range(self.session.parties):
            self.perform(i, self.make(i).open(self.now, noisy(self.session, i), masks(i), secret(i)))
        return self

    def recover(self, i: int) -> None:
        """Let a party come back with its journal; without one, it begins anew."""
        if self.journals[i]:
            self.perform(i, self.make(i).recover(self.now, list(self.journals[i])))
        else:
            self.open(i)

    def kill(self, i: int) -> None:
        self.parties.pop(i, None)
        self.killed.add(i)

    def at(self, when: float, action: Callable[..., object], *arguments: Any) -> None:
        self.plans.append((when, lambda: action(*arguments)))
        self.plans.sort(key=lambda plan: plan[0])

    # --- time ---------------------------------------------------------------------------------------------------

    def run(self, until: float = 60.0) -> Room:
        """Let time pass."""
        for _ in self.steps(until):
            pass
        self.now = max(self.now, until)
        return self

    def at_stage(self, i: int, stage: str) -> Room:
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
        self.notes += [(i, event, fields) for event, fields in effects.notes]
        doomed = False
        if effects.records:
            doomed = self.fatal is not None and self.fatal[0] == self.writes
            self.writes += 1
            if not doomed or (self.fatal and self.fatal[1]):
                self.journals[i] += effects.records
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
            elif not self.drops(i, peer, message):
                for _ in range(self.copies):
                    self.queue.append((i, peer, self.lives[peer], encode(message)))
        if effects.plan and self.perform_plans and self.parties.get(i) is party:
            self.perform(i, party.planned(self.now, self.plans_refused.get(i, "")))
        if effects.assess is not None and self.parties.get(i) is party:
            self.perform(i, party.assessed(self.now, self.refusals.get(i, "")))

    def deliver(self, i: int, j: int, life: int, frame: bytes) -> None:
        if j in self.parties and self.lives[j] == life:
            party = self.parties[j]
            self.perform(j, party.receive(self.now, i, decode(frame)))
            if self.twice and self.parties.get(j) is party and self.lives[j] == life:
                self.hear_again(i, j, decode(frame))

    def hear_again(self, i: int, j: int, message: Message) -> None:
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

    # --- what came of it ----------------------------------------------------------------------------------------

    @property
    def results(self) -> dict[int, Result]:
        return {i: party.result for i, party in self.parties.items() if party.result is not None}

    def books(self) -> list[Ledger]:
        """What the journals say."""
        books = []
        for i, journal in self.journals.items():
            books.append(Ledger(self.session, i))
            for record in journal:
                books[-1].apply(record)
        return books

    def check(self, but: set[int] | None = None) -> Result:
        """Everyone who is there has the same result, which is the sum of what its parties held; nothing is lost.

        Those in `but` may lack it.
        """
        books = self.books()
        assert not any(missing(books))
        results = self.results
        there = {i for i, party in self.parties.items() if party.stage != "left"}
        assert there - (but or set()) <= set(results) <= there
        result = next(iter(results.values()))
        for other in results.values():
            assert other.total.tolist() == result.total.tolist() and other.weight == result.weight
            assert other.finals == result.finals and other.realised.doubts == result.realised.doubts
        held = np.sum([books[i].balance for i in sorted(result.finals)], axis=0)
        assert held.tolist() == [*result.total.tolist(), result.weight]
        return result


def snapshot(party: Party) -> dict[str, Any]:
    """What a message might have changed, times aside."""
    transfers, arrival, agreement = party._transfers, party._arrival, party._agreement
    return {
        "stage": party.stage,
        "ledger": state(party.ledger),
        "items": {kind: dict(items) for kind, items in party.gossip.items.items()},
        "asked": dict(party._talk._asked),
        "heard": dict(transfers.heard),
        "early": dict(transfers._early),
        "skipped": set(transfers._skipped),
        "answers": dict(arrival._answers),
        "agreement": (agreement._ballot, dict(agreement._promises), agreement._proposed, set(agreement._yes)),
        "ending": (party.result, party.reason),
    }


# --- without faults -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [0.0, 0.4])
@pytest.mark.parametrize(
    ("schedule", "rounds", "receivers", "quiet", "dimension", "seed"),
    [
        ("random", 4, 1, 0, 1, b"a" * 32),
        ("random", 3, 3, 2, 4, b"b" * 32),
        ("permutation", 5, 2, 5, 2, b"c" * 32),
        ("distinct", 4, 1, 1, 1, b"d" * 32),
        ("random", 2, 2, 0, 2, None),
        ("distinct", 1, 1, 0, 1, None),
    ],
)
def test_without_faults_everyone_has_the_exact_mean(
    schedule: str, rounds: int, receivers: int, quiet: int, dimension: int, seed: bytes | None, pace: float
) -> None:
    session = replace(
        PACED,
        schedule=schedule,
        rounds=rounds,
        receivers=receivers,
        quiet=quiet,
        dimension=dimension,
        seed=seed,
        pace=pace,
    )
    room = Room(session).open().run()
    result = room.check()
    assert set(room.results) == result.finals == set(range(N))
    assert result.total.tolist() == np.sum([noisy(session, i) for i in range(N)], axis=0).tolist()
    assert result.weight == N * WEIGHT
    assert result.realised.exact and not result.realised.doubts
    execution = result.realised.execution
    assert not execution.undelivered and execution.presence.nobody_absent and execution.published.all()
    assert result.realised.intended.receivers[1:] == [
        execution.schedule.round(t).receivers.tolist() for t in range(1, rounds + 1)
    ]
    assert all(party.stage == "over" and not party.reason for party in room.parties.values())
    assert room.busy < START + 10.0  # and is done soon


def simulated(session: Session, execution: inca.Execution) -> inca.Outcome:
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


def rounding(session: Session) -> float:
    """Each of k shares is rounded down by less than a step, here and there; each portion, too; floats are finer."""
    return session.parties * (2 * session.rounds * session.receivers + session.rounds + 1)


def compare(room: Room, execution: inca.Execution, members: set[int]) -> None:
    """All final messages and the estimate are the simulator's."""
    session, outcome, books = room.session, simulated(room.session, execution), room.books()
    for i in members:
        assert np.abs(books[i].balance[:-1] - outcome.messages[i]).max() <= rounding(session), f"party {i}"
        assert abs(int(books[i].balance[-1]) / WEIGHT - outcome.weights[i]) <= rounding(session) / WEIGHT
    result = room.check()
    assert result.finals == set(np.flatnonzero(execution.published).tolist())
    estimate = result.total / (result.weight / WEIGHT)
    # The sums differ by the rounding of the messages; the weights' rounding shifts the quotient by its relative size.
    allowed = rounding(session) * (1 + np.abs(estimate).max() / WEIGHT) / (result.weight / WEIGHT)
    assert outcome.estimate is not None
    assert np.abs(estimate - outcome.estimate).max() <= allowed


@pytest.mark.parametrize("receivers", [1, 2])
@pytest.mark.parametrize("quiet", [0, 2])
def test_messages_are_those_of_the_simulator(receivers: int, quiet: int) -> None:
    session = replace(PACED, receivers=receivers, quiet=quiet)
    room = Room(session).open().run()
    assert session.seed is not None
    schedule = session.topology(session.seed).schedule
    compare(room, inca.Execution(schedule, session.injection), set(range(N)))


@pytest.mark.parametrize("receivers", [1, 2])
@pytest.mark.parametrize("last", [1, 2, 3])
def test_messages_are_those_of_the_simulator_when_a_party_leaves_for_good(receivers: int, last: int) -> None:
    session = replace(PACED, receivers=receivers)
    room = Room(session).open()
    room.at(START + last * session.pace - 0.1, room.kill, 2)
    room.run()
    flags = np.ones((session.rounds + 1, N), dtype=bool)
    flags[last + 1 :, 2] = False
    assert session.seed is not None
    schedule = session.topology(session.seed).schedule
    compare(room, inca.Execution(schedule, session.injection, inca.Presence.explicit(flags)), set(range(N)))


@pytest.mark.parametrize("away", [(1, 2), (1, 3), (2, 3), (3, 4)], ids=str)
def test_messages_are_those_of_the_simulator_when_a_party_is_absent_for_a_while(away: tuple[int, int]) -> None:
    """Parties 2 and 4 are there until round away[0], and come back in the middle of round away[1]."""
    room = Room(PACED).open()
    for party, delay in ((2, 0.0), (4, 0.1)):
        room.at(START + away[0] * PACED.pace - 0.2 + delay, room.kill, party)
        room.at(START + away[1] * PACED.pace - 0.2 + delay, room.recover, party)
    result = room.run().check()
    execution = result.realised.execution
    for party in (2, 4):
        expected = [not away[0] < t < away[1] for t in range(PACED.rounds + 1)]
        assert [bool(execution.presence.row(t)[party]) for t in range(PACED.rounds + 1)] == expected
    assert not execution.late and not result.realised.doubts and result.realised.exact
    compare(room, execution, set(range(N)))
    intended = result.realised.intended.receivers
    for t in range(1, PACED.rounds + 1):
        for i in range(N):
            j = intended[t][i][0]
            went = int(execution.schedule.round(t).receivers[i, 0])
            # Those who were away have missed what was offered before they were heard again.
            if not {i, j} & {2, 4}:
                assert went == j


def test_everything_can_come_twice() -> None:
    once, again = Room(PACED).open().run().check(), Room(PACED, copies=2).open().run().check()
    assert once.total.tolist() == again.total.tolist() and once.weight == again.weight
    room = Room(TOSSED)
    room.twice = True
    room.open().run().check()


def test_lost_messages_are_made_up_for() -> None:
    """Every message is lost the first time, in both directions."""
    lost: set[bytes] = set()

    def first(sender: int, receiver: int, message: Message) -> bool:
        frame = bytes([sender, receiver]) + encode(message)
        new = frame not in lost and not isinstance(message, Have)
        lost.add(frame)
        return new

    room = Room(replace(PACED, pace=0.0))
    room.drops = first
    result = room.open().run().check()
    assert result.finals == set(range(N)) and result.weight == N * WEIGHT and not result.realised.doubts


def test_lost_answers_do_not_count_a_share_twice() -> None:
    """Nobody hears what became of its offers, not even at the end: the digests tell."""
    room = Room(replace(PACED, pace=0.0))
    room.drops = lambda sender, receiver, message: isinstance(message, Ack | Voided)
    result = room.open().run().check()
    assert result.weight == N * WEIGHT and not result.realised.doubts
    assert {fate for book in room.books() for fates in book.account.fates for fate in fates} == {OPEN}


# --- the toss -----------------------------------------------------------------------------------------------------


def reasons(room: Room) -> dict[int, str]:
    return {i: party.reason for i, party in room.parties.items() if party.stage == "left"}


def test_all_know_the_same_seed_before_the_start() -> None:
    room = Room(TOSSED).open().run(until=START - 1.0)
    seeds = {party.ledger.seed for party in room.parties.values()}
    assert len(seeds) == 1 and seeds != {None}
    other = Room(replace(TOSSED, id=b"other session".ljust(32))).open().run(until=START - 1.0)
    assert {party.ledger.seed for party in other.parties.values()}.isdisjoint(seeds)


def test_nobody_reveals_before_all_have_committed() -> None:
    room = Room(TOSSED).open(0, 1, 2, 3).run(until=START - 5.0)
    assert not any(party.gossip.items["reveal"] for party in room.parties.values())
    room.open(4).run(until=START - 1.0)
    assert all(len(party.gossip.items["reveal"]) == N for party in room.parties.values())


def cheated() -> Room:
    """Party 3 reveals another secret than it has committed to."""
    room = Room(TOSSED).open()
    cheat = room.parties[3].ledger
    assert cheat.opened is not None
    cheat.opened = msgspec.structs.replace(cheat.opened, secret=b"x" * 32)
    return room.run()


def test_a_false_secret_ends_the_session_for_everyone() -> None:
    room = cheated()
    found = reasons(room)
    assert set(found) == set(range(N)) and not room.results
    words = "parties [3] revealed another secret than they committed to"
    assert set(found.values()) == {f"the public seed could not be tossed: {words}"}
    assert not any(isinstance(message, Offer) for _, message in room.said)


def test_everyone_names_who_revealed_a_false_secret() -> None:
    found = reasons(cheated())
    assert all("party 3" in found[i] or "parties [3]" in found[i] for i in (0, 1, 2, 4))


def test_whoever_does_not_reveal_is_named() -> None:
    room = Room(TOSSED)
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items) and any((item.kind, item.party) == ("reveal", 3) for item in message.items)
    )
    room.open().run()
    found = reasons(room)
    assert set(found) >= {0, 1, 2, 4}
    assert all(found[i].endswith("nothing was revealed by parties [3]") for i in (0, 1, 2, 4))


def test_whoever_does_not_commit_is_named() -> None:
    room = Room(TOSSED).open(0, 1, 2, 4).run()
    found = reasons(room)
    assert set(found) == {0, 1, 2, 4}
    assert all("3" in reason and "[0" not in reason for reason in found.values())


def test_a_silent_party_ends_the_toss_at_the_deadline() -> None:
    room = Room(TOSSED).open(0, 1, 2, 4).run(until=START + PACED.period - 0.1)
    assert not reasons(room)
    room.run(until=START + PACED.period + 0.1)
    assert set(reasons(room)) == {0, 1, 2, 4} and all("3" in reason for reason in reasons(room).values())


# --- restarts -----------------------------------------------------------------------------------------------------


def writes(session: Session) -> int:
    return Room(session).open().run().writes


SMALL = replace(PACED, parties=4, rounds=2, receivers=1)


@pytest.mark.parametrize("made", [True, False], ids=["after the write", "before the write"])
def test_a_crash_at_any_write_harms_nobody(made: bool) -> None:
    count = writes(SMALL)
    assert count > 30
    for number in range(count):
        room = Room(SMALL)
        room.fatal = (number, made)
        room.open().run()
        stages = {i: (party.stage, party.reason) for i, party in room.parties.items()}
        assert all(stage == "over" for stage, _ in stages.values()), f"write {number}: {stages}"
        result = room.check(but=room.killed)  # it may come back when all others are done and gone
        assert not any(isinstance(record, Left) for journal in room.journals.values() for record in journal)
        assert len(result.finals) >= 3, f"write {number}: {result.finals}"
        # Each party offers the same bytes whenever it offers, and says one final message.
        said: dict[tuple[int, str, int, int], set[bytes]] = {}
        for i, message in room.said:
            if isinstance(message, Offer):
                said.setdefault((i, "offer", message.round, message.slot), set()).add(encode(message))
            elif isinstance(message, Items):
                for item in message.items:
                    said.setdefault((item.party, item.kind, 0, 0), set()).add(item.body)
        assert all(len(versions) == 1 for versions in said.values()), f"write {number}"


def test_a_crash_at_any_write_of_a_session_with_a_toss() -> None:
    session = replace(SMALL, seed=None)
    failed = []
    for number in range(writes(session)):
        room = Room(session)
        room.fatal = (number, True)
        room.open().run()
        assert not any(missing(room.books()))
        if reasons(room):
            failed.append(number)
        else:
            room.check(but=room.killed)
    assert not failed


def test_whoever_comes_back_with_the_seed_still_reveals_its_secret() -> None:
    room = Room(TOSSED)
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items) and any((item.kind, item.party) == ("reveal", 2) for item in message.items)
    )
    room.open().run(until=START - 2.0)
    assert room.parties[2].ledger.seed is not None and room.parties[0].ledger.seed is None
    room.kill(2)
    room.drops = lambda sender, receiver, message: False
    room.recover(2)
    room.run()
    assert not reasons(room)


def test_a_lost_journal_is_noticed() -> None:
    room = Room(PACED).open().run(until=START + 1.0)
    assert room.parties[1].ledger.round == 3
    room.kill(1)
    room.journals[1] = []
    room.open(1)
    room.run()
    assert room.parties[1].stage == "left"
    assert "the journal is lost or behind: party" in room.parties[1].reason
    assert isinstance(room.journals[1][-1], Left) and not any(isinstance(r, Began) for r in room.journals[1])
    assert set(room.results) == {0, 2, 3, 4} and room.results[0].finals == {0, 2, 3, 4}


def test_a_journal_that_was_rolled_back_is_noticed() -> None:
    for dropped in range(1, 6):
        room = Room(PACED).open().run(until=START + 1.0)
        room.kill(1)
        whole = room.journals[1]
        room.journals[1] = whole[:-dropped]
        forgotten = [record.round for record in whole[-dropped:] if isinstance(record, Began)]
        room.recover(1)
        room.run()
        assert (room.parties[1].stage == "left") == bool(forgotten), f"{dropped} records dropped"
        if forgotten:
            assert f"has seen an offer of round {forgotten[0]} that it lacks" in room.parties[1].reason
            assert room.results[0].finals == {0, 2, 3, 4}
            # It has said nothing in this life that depends on its value.
            assert room.journals[1][len(whole) - dropped :] == [Left(room.parties[1].reason)]


def test_whoever_left_stays_away() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.perform(1, room.parties[1].leave("enough"))
    room.kill(1)
    room.recover(1)
    assert room.parties[1].stage == "left" and room.parties[1].reason == "enough" and room.parties[1].finished
    before = snapshot(room.parties[1])
    assert not room.hand(0, 1, Ask()).sends
    assert snapshot(room.parties[1]) == before
    assert room.run().results[0].finals == {0, 2, 3, 4}


def test_a_restart_in_the_end_says_the_same_things() -> None:
    for stage in ("digests", "finals", "agreeing", "serving"):
        room = Room(PACED).open().at_stage(1, stage)
        signed = dict(room.parties[1].ledger.signed)
        room.kill(1)
        room.recover(1)
        assert room.run().parties[1].stage == "over"
        for kind, item in signed.items():
            assert room.parties[1].ledger.signed[kind] == item
        kinds = [record.item.kind for record in room.journals[1] if isinstance(record, Signed)]
        assert len(kinds) == len(set(kinds))


# --- late ---------------------------------------------------------------------------------------------------------


def test_a_late_party_joins_the_round_that_is_under_way() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    result = room.run().check()
    joined = [record.round for record in room.journals[3] if isinstance(record, Joined)]
    assert joined == [3] and room.books()[3].account.present == [3, 4]
    assert result.finals == set(range(N)) and not result.realised.doubts
    compare(room, result.realised.execution, set(range(N)))
    assert result.realised.execution.total_weights[3] == pytest.approx(3 / 5)


def test_a_late_party_decides_nothing_about_earlier_rounds() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.run(until=START + 1.0)
    book = room.parties[3].ledger
    early = [(t, i, slot) for t in (1, 2) for i, slot in room.parties[3]._desk.topology.senders[t][3]]
    assert early and book.since == 3
    for t, i, slot in early:
        for message in (Resolve(t, slot), offer_of(room, t, i, slot)):
            effects = room.hand(i, 3, message)
            assert not effects.records and not effects.sends


def offer_of(room: Room, t: int, i: int, slot: int) -> Offer:
    """An offer as party i could have made it in round t."""
    k = room.session.receivers
    account = Account(list(range(1, t + 1)), [[OPEN] * k for _ in range(t)], [])
    return Offer(t, slot, pack(np.arange(room.session.dimension + 1, dtype=np.int64)), account)


def test_a_party_that_comes_after_the_last_round_has_the_result_all_the_same() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at_stage(0, "serving")
    room.open(3)
    result = room.run().results[0]
    assert result.finals == {0, 1, 2, 4}
    assert room.parties[3].result is not None and room.parties[3].result.total.tolist() == result.total.tolist()
    assert not any(isinstance(record, Began) for record in room.journals[3])


def test_a_late_party_must_hear_all_witnesses() -> None:
    witness = PACED.topology(b"p" * 32).receivers[2][3][0]
    room = Room(PACED).open(0, 1, 2, 4)
    room.drops = lambda sender, receiver, message: sender == witness and receiver == 3
    room.at(START + 0.5, room.open, 3)
    room.run()
    assert room.parties[3].stage == "left"
    reason = f"came late, and parties [{witness}] did not tell whether it had been there before"
    assert room.parties[3].reason == reason
    assert room.results[0].finals <= {0, 1, 2, 4} and not any(isinstance(r, Began) for r in room.journals[3])


def test_when_a_life_began_tells_whether_it_is_late() -> None:
    """It may have looked at clocks in the meantime."""
    for began, late in ((START - 0.1, False), (START, True), (None, True)):
        party = Room(PACED).make(1)
        party.open(START + 0.1, noisy(PACED, 1), masks(1), secret(1), began=began)
        assert party.ledger.opened is not None and party.ledger.opened.late == late


# --- pace, plans and patience -------------------------------------------------------------------------------------


def beginnings(session: Session, gone: int | None = None) -> dict[int, list[float]]:
    """When each party begins its rounds; the one that is gone is silent, and not known to be down."""
    room, found = Room(session), dict[int, list[float]]()
    room.drops = lambda sender, receiver, message: sender == gone
    room.open()
    for _ in room.steps(until=START + 20.0):
        for i, party in room.parties.items():
            times = found.setdefault(i, [])
            if party.ledger.round > len(times):
                times.append(room.now - START)
    return found


@pytest.mark.parametrize("pace", [0.0, 0.3, 1.0])
def test_rounds_last_as_long_as_agreed_if_everyone_is_there(pace: float) -> None:
    for times in beginnings(replace(PACED, pace=pace)).values():
        assert times == pytest.approx([t * pace for t in range(PACED.rounds)])


def test_rounds_last_until_their_deadline_if_someone_is_silent() -> None:
    session = replace(PACED, schedule="permutation", pace=0.2)
    assert session.seed is not None
    topology = session.topology(session.seed)
    times = beginnings(session, gone=2)
    for t in range(1, session.rounds):
        hearer = topology.receivers[t][2][0]
        latest = min(t * session.period, times[hearer][t - 1] + session.period)
        assert times[hearer][t] == pytest.approx(latest)
    assert all(later - earlier >= session.pace - 1e-9 for each in times.values() for earlier, later in pairwise(each))


def test_nothing_begins_before_the_plan_is_known() -> None:
    for session in (PACED, TOSSED):
        room = Room(session)
        room.perform_plans = False
        room.open().run(until=START + 1.5)
        assert {party.stage for party in room.parties.values()} == {"gathering"}
        assert not [each for _, each in room.said if not isinstance(each, Have | Want | Items)]
        for i, party in room.parties.items():
            room.perform(i, party.planned(room.now, "too much" if i == 3 else ""))
        assert {i: party.stage for i, party in room.parties.items() if party.stage != "rounds"} == {3: "left"}
        assert {party.ledger.round for i, party in room.parties.items() if i != 3} == {2}
        result = room.run().check()
        assert result.finals == {0, 1, 2, 4}
        assert not [each for i, each in room.said if i == 3 and isinstance(each, Offer)]


def settling(back: float | None) -> tuple[Room, int, float]:
    """A room in which party 1's last offer is open when it settles and its receiver dies; the time is that of it."""
    room = Room(PACED)
    assert PACED.seed is not None
    receiver = PACED.topology(PACED.seed).receivers[PACED.rounds][1][0]

    def drops(sender: int, to: int, message: Message) -> bool:
        answer = to == 1 and isinstance(message, Ack) and message.round == PACED.rounds
        return sender == receiver and (answer or isinstance(message, Have | Items))

    room.drops = drops
    room.open().at_stage(1, "settling")
    room.kill(receiver)
    if back is not None:
        room.drops = lambda sender, to, message: False
        room.at(room.now + back, room.recover, receiver)
    return room, receiver, room.now


def sealing(room: Room) -> float:
    """Run until party 1 has sealed its balance."""
    for _ in room.steps(until=100.0):
        if room.parties[1].ledger.sealed:
            return room.now
    raise AssertionError("never sealed")


def test_settling_gives_a_quarter_of_a_period_to_those_who_are_down() -> None:
    room, receiver, begun = settling(back=None)
    assert sealing(room) == pytest.approx(begun + PACED.period / 4)
    assert receiver in room.parties[1]._desk.down
    assert room.parties[1].ledger.open == [(PACED.rounds, 0)]
    for book in room.books():  # whoever has nothing open waits for nobody
        assert book.sealed or book.me == receiver
    result = room.run().check(but={receiver})
    assert result.realised.doubts == ((PACED.rounds, 1, 0, receiver),)


def test_whoever_settles_wants_to_be_called_when_the_quarter_is_over() -> None:
    room, _, begun = settling(back=None)
    room.run(until=begun + PACED.period / 4 - 0.01)
    assert room.parties[1].stage == "settling" and room.parties[1].wakeup <= begun + PACED.period / 4 + 1e-9


def test_whoever_is_back_in_that_time_settles_what_was_open() -> None:
    room, _, begun = settling(back=0.1)
    assert begun + 0.1 <= sealing(room) < begun + PACED.period / 4
    assert not room.parties[1].ledger.open
    assert not room.run().check().realised.doubts


# --- withholding --------------------------------------------------------------------------------------------------


def published(room: Room) -> set[int]:
    """Whose final message left its owner's machine, whoever has it."""
    found = set()
    for _, message in room.said:
        for item in message.items if isinstance(message, Items) else ():
            if item.kind == "final" and msgspec.msgpack.decode(item.body, type=Final).payload:
                found.add(item.party)
    return found


def test_a_party_whose_loss_is_too_large_withholds_and_the_others_go_on() -> None:
    room = Room(PACED)
    room.refusals[2] = "its loss would be 7.1, above 5"
    result = room.open().run().check()
    assert result.finals == published(room) == {0, 1, 3, 4}
    assert room.parties[2].reason == "its loss would be 7.1, above 5" and not room.parties[0].reason
    assert result.realised.execution.published.tolist() == [True, True, False, True, True]
    assert result.realised.execution.presence.row(PACED.rounds).all()


def test_too_many_who_withhold_leave_no_result() -> None:
    room = Room(replace(PACED, least_cohort=4))
    room.refusals = {1: "too much", 2: "too much"}
    room.open().run()
    assert not room.results
    for i in (0, 3, 4):
        assert room.parties[i].reason == "only 3 final messages, but at least 4 were agreed; too much"
    assert room.parties[1].reason == "too much"


def test_a_cohort_below_the_minimum_releases_nothing() -> None:
    room = Room(replace(PACED, least_cohort=4)).open()
    for i in (1, 2):
        room.at(START + 1.0, room.kill, i)
    room.run()
    assert not published(room) and not room.results
    for i in (0, 3, 4):
        assert room.parties[i].stage == "over"
        assert room.parties[i].reason == "only 3 parties are there at the end, but at least 4 were agreed"


def test_half_of_the_parties_agree_on_nothing() -> None:
    room = Room(replace(PACED, parties=4)).open()
    for i in (1, 2):
        room.at(START + 1.5, room.kill, i)
    room.run()
    assert not room.results
    assert all(party.reason.startswith("no agreement") for party in room.parties.values())


def test_the_reason_for_withholding_outlives_a_restart() -> None:
    room = Room(PACED)
    room.refusals[2] = "its loss is too large"
    room.open().at_stage(2, "serving")
    assert room.parties[2].reason == "its loss is too large"
    room.kill(2)
    room.recover(2)
    assert room.run().parties[2].reason == "its loss is too large"


# --- nonsense -----------------------------------------------------------------------------------------------------


def foreign(session: Session, party: int) -> Gossip:
    """Something that signs as another party does."""
    return Gossip(session, party, sign(party), verify)


def nonsense(session: Session, me: int) -> Iterator[tuple[str, Message]]:
    """Messages that no honest party would send to `me`."""
    assert session.seed is not None
    topology, T, d = session.topology(session.seed), session.rounds, session.dimension
    good = Account([1], [[OPEN] * session.receivers], [])
    payload = bytes(8 * (d + 1))
    to_me = [(t, i, s) for t in range(1, T + 1) for i, s in topology.senders[t][me] if i == 0]
    to_others = [t for t in range(1, T + 1) if me not in topology.receivers[t][0]]
    assert to_me and to_others
    t, _, slot = to_me[0]
    yield "an offer to another party", Offer(to_others[0], 0, payload, good)
    yield "an offer of no slot", Offer(t, session.receivers, payload, good)
    yield "an offer of round 0", Offer(0, 0, payload, good)
    yield "an offer after the last round", Offer(T + 1, 0, payload, good)
    yield "an offer of another width", Offer(t, slot, payload[:-1], good)
    yield "an offer without numbers", Offer(t, slot, b"", good)
    yield "an offer beyond all balances", Offer(t, slot, pack(np.full(d + 1, 2**62, dtype=np.int64)), good)
    yield "an offer with the account of nobody", Offer(t, slot, payload, Account([T + 1], [[OPEN]], []))
    yield "an offer with too many fates", Offer(t, slot, payload, Account([1], [[OPEN] * 9], []))
    yield "a resolve of another transfer", Resolve(to_others[0], 0)
    yield "a resolve of no round", Resolve(T + 1, 0)
    yield "an ack of what was never offered", Ack(T + 7, 0)
    yield "a void of what was never offered", Voided(1, 9)
    yield "an ack of what was offered to others", Ack(*next(t_s for t_s in not_to(topology.receivers, me, 0)))
    yield "bits that do not fit", Have({"digest": bytes(9)}, False)
    yield "bits that do not fit, in an answer", Have({"done": bytes(9)}, True)
    yield "a wish that does not fit", Want({"digest": bytes(9)})
    yield "a wish for nothing that there is", Want({"gift": bits({0}, session.parties)})
    yield "an item of no kind", Items([Item("gift", 0, b"", b"")])
    yield "an item of nobody", Items([Item("digest", 99, b"", b"")])
    yield "an item that was not signed", Items([Item("final", 0, bytes(8 * (d + 1)), b"forged")])
    yield "an item that was signed by another", Items([replace_party(foreign(session, 0), session, 3)])
    other = foreign(session, 0)
    yield "a digest that cannot be read", Items([other.make("digest", b"\xff\xff")])
    yield "a digest that cannot be", Items([other.make("digest", Digest(Account([2, 1], [[2], [2]], []), []))])
    yield "a final message of another width", Items([other.make("final", Final(b"short"))])
    yield "a final message that cannot be read", Items([other.make("final", b"\x00")])
    yield "a decision that does not fit", Items([other.make("decision", Vote(bytes(9), bytes(9)))])
    yield "a commitment of another width", Items([other.make("commit", b"short")])
    yield "a party that is done and says more", Items([other.make("done", b"and yet")])
    everyone = bits(set(range(session.parties)), session.parties)
    yield "an acceptance that does not fit", Accept(session.parties, bytes(9), bytes(9))
    yield "a proposal in the ballot of another party", Accept(session.parties + 1, everyone, everyone)
    yield "a ballot of another party", Prepare(session.parties + 1)
    yield "a ballot far ahead", Prepare(2000 * session.parties)
    yield "a proposal for a few", Accept(session.parties, bits({0, 1}, session.parties), bits({0, 1}, session.parties))
    yield "a promise that was not asked for", Promise(9, 0, b"", b"")
    yield "a yes to nothing", Yes(9)
    yield "an answer to nothing", Seen([(1, 0)], 3, 0)


def not_to(receivers: list[list[list[int]]], me: int, peer: int) -> Iterator[tuple[int, int]]:
    """Own transfers that do not go to a peer, as (round, slot)."""
    for t, step in enumerate(receivers[1:], start=1):
        for slot, receiver in enumerate(step[me]):
            if receiver != peer:
                yield t, slot


def replace_party(gossip: Gossip, session: Session, party: int) -> Item:
    item = gossip.make("digest", Digest(Account([], [], []), []))
    return Item(item.kind, party, item.body, item.signature)


NONSENSE = replace(PACED, rounds=6, seed=b"n" * 32)


@pytest.mark.parametrize("stage", ["gathering", "asking", "rounds", "digests", "finals", "agreeing", "serving"])
def test_nonsense_changes_nothing(stage: str) -> None:
    room = Room(NONSENSE)
    if stage == "asking":
        room.at(START + 0.5, room.kill, 2)
        room.at(START + 0.5, room.recover, 2)
    elif stage != "gathering":  # some are missing, and nobody proposes, so that the others wait in every stage
        waits = stage in ("digests", "finals", "agreeing")

        def drops(sender: int, receiver: int, message: Message) -> bool:
            return (room.now > START + 1.0 and bool({0, 1} & {sender, receiver})) or (
                waits and isinstance(message, Prepare)
            )

        room.drops = drops
    room.open().at_stage(2, stage)
    party = room.parties[2]
    if stage == "rounds":
        room.run(until=START + 0.5)
    for name, message in nonsense(NONSENSE, 2):
        if stage == "asking" and isinstance(message, Seen):
            continue  # which is what it waits for
        before = snapshot(party)
        effects = party.receive(room.now, 0, decode(encode(message)))
        assert not effects.records, name
        assert snapshot(party) == before, name
        answers = [each for _, each in effects.sends if not isinstance(each, Have | Prepare | Accept)]
        assert not [each for each in answers if not isinstance(each, Offer | Resolve)], name


def test_calls_at_the_wrong_time_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    acked = next(key for key, sent in party.ledger.outbox.items() if sent.fate != OPEN)
    for effects in (
        party.assessed(room.now, ""),
        party.planned(room.now, "too late for that"),
        party.unsent(room.now, Offer(*acked, b"", Account([], [], []))),
        party.unsent(room.now, Offer(99, 0, b"", Account([], [], []))),
        party.unsent(room.now, Ask()),
        party.down(room.now, 0),
        party.up(room.now, 0),
        party.tick(room.now),
    ):
        assert not effects.records and snapshot(party) == before


def test_messages_of_nobody_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    for peer in (2, N, -1):
        for message in (Ask(), Prepare(9), party.gossip.have(), Resolve(1, 0)):
            before = snapshot(party)
            effects = party.receive(room.now, peer, message)
            assert not effects.records and snapshot(party) == before
            assert not [each for to, each in effects.sends if to == peer]


def poisoned(item: Callable[[Session], Item]) -> Room:
    """A session in which everyone is given a signed item of party 0, which is not there, before its own digest."""
    room = Room(PACED).open(1, 2, 3, 4).run(until=START + 1.0)
    for i in (1, 2, 3, 4):
        room.hand(0, i, Items([item(PACED)]))
    return room.run()


def test_a_digest_that_heard_of_nobody_harms_nobody() -> None:
    heard = [(99, Account([1], [[OPEN]], []))]
    room = poisoned(lambda session: foreign(session, 0).make("digest", Digest(Account([], [], []), heard)))
    assert set(room.results) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    "heard",
    [
        (1, Account([0], [[OPEN]], [])),
        (1, Account([2, 1], [[OPEN], [OPEN]], [])),
        (3, Account([1], [[OPEN] * 9], [])),
        (4, Account([1], [[OPEN]], [(1, 4, 0)])),
        (99, Account([1], [[OPEN]], [])),
    ],
    ids=str,
)
def test_what_a_digest_heard_and_cannot_be_is_left_out(heard: tuple[int, Account]) -> None:
    room, clean = Room(PACED), Room(PACED)
    for each, lies in ((room, [heard]), (clean, [])):
        each.open(1, 2, 3, 4).run(until=START + 1.0)
        each.kill(heard[0])  # nobody has its digest
        for i in each.parties:
            each.hand(0, i, Items([foreign(PACED, 0).make("digest", Digest(Account([], [], []), lies))]))
        each.run()
    assert set(room.results) == set(clean.results) == {1, 2, 3, 4} - {heard[0]}
    for i, result in room.results.items():
        other = clean.results[i]
        assert result.total.tolist() == other.total.tolist() and result.finals == other.finals
        assert result.realised.heard == other.realised.heard and result.realised.doubts == other.realised.doubts
        assert digest(inca.Transcript(result.realised.execution)) == digest(inca.Transcript(other.realised.execution))


def test_a_final_message_beyond_all_balances_harms_nobody() -> None:
    huge = Final(pack(np.full(PACED.dimension + 1, 2**62, dtype=np.int64)))
    room = poisoned(lambda session: foreign(session, 0).make("final", huge))
    assert set(room.results) == {1, 2, 3, 4}


def test_bits_that_do_not_fit_take_nothing_else_along() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    effects = party.receive(room.now, 0, Have({"digest": bits({0, 1}, N), "final": bytes(9)}, False))
    assert snapshot(party) == before and not [each for _, each in effects.sends if isinstance(each, Have | Want)]


def test_skipping_rounds_that_there_are_not_changes_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    before = set(room.parties[2]._transfers._skipped)
    for t in (0, PACED.rounds + 1, 2**32 - 1):
        room.hand(0, 2, Skipped(t))
    assert room.parties[2]._transfers._skipped == before


def test_a_witness_of_offers_that_there_cannot_be_drives_nobody_out() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.kill(2)
    room.drops = lambda sender, receiver, message: sender == 0
    room.recover(2)
    room.hand(0, 2, Seen([(PACED.rounds + 5, 0)], 2, 0))
    assert room.parties[2].stage == "asking"


# --- nudges -------------------------------------------------------------------------------------------------------


def offers_in(effects: Effects, peer: int) -> list[Offer]:
    return [message for to, message in effects.sends if to == peer and isinstance(message, Offer)]


def skips_in(effects: Effects, peer: int) -> list[Skipped]:
    return [message for to, message in effects.sends if to == peer and isinstance(message, Skipped)]


def test_a_nudge_has_the_same_offer_made_again() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.01)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    first = [message for i, message in room.said if i == 1 and isinstance(message, Offer)]
    effects = room.parties[1].receive(room.now, receiver, Nudge(1))
    assert offers_in(effects, receiver) == first[:1] and not skips_in(effects, receiver) and not effects.records
    assert {to for to, message in effects.sends if isinstance(message, Offer)} == {receiver}
    others = set(range(N)) - {1, receiver}
    assert not any(offers_in(room.parties[1].receive(room.now, peer, Nudge(1)), peer) for peer in others)


def test_whoever_waits_for_an_offer_nudges_its_sender() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.3)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    assert (receiver, Nudge(1)) in room.said and room.parties[receiver]._transfers.awaited()
    assert all(i == receiver for i, message in room.said if isinstance(message, Nudge))


def test_a_nudge_about_a_round_that_was_missed_is_answered() -> None:
    """Party 3 was away in round 2: nobody who is still there has to wait for it."""
    room = Room(PACED).open()
    room.at(START + 0.3, room.kill, 3)
    room.at(START + 0.9, room.recover, 3)
    room.run(until=START + 1.0)
    assert room.parties[3].ledger.account.present == [1, 3]
    asker = (set(range(N)) - {3}).pop()
    assert skips_in(room.parties[3].receive(room.now, asker, Nudge(2)), asker) == [Skipped(2)]
    for t in (0, 1, 4, PACED.rounds + 1):  # never, attended, not yet, never
        assert not skips_in(room.parties[3].receive(room.now, asker, Nudge(t)), asker) or t == 1


def test_a_share_that_was_taken_back_is_not_offered_again() -> None:
    room = Room(PACED)
    room.open().run(until=START + 0.01)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    assert room.parties[1].ledger.outbox[1, 0].fate == ACKED
    effects = room.parties[1].receive(room.now, receiver, Nudge(1))
    assert not offers_in(effects, receiver) and skips_in(effects, receiver) == [Skipped(1)]


def test_whoever_is_still_asking_is_not_waited_for() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.kill(1)
    room.drops = lambda sender, receiver, message: 1 in (sender, receiver)
    room.recover(1)
    assert room.parties[1].stage == "asking" and room.parties[1].ledger.round == 2
    effects = room.parties[1].receive(room.now, 0, Nudge(3))
    assert skips_in(effects, 0) == [Skipped(3)] and not effects.records


def test_nobody_waits_for_an_offer_that_was_skipped_and_yet_takes_it() -> None:
    session = replace(PACED, pace=0.0, schedule="permutation")
    room = Room(session)
    room.drops = lambda sender, receiver, message: sender == 1 and isinstance(message, Offer)
    room.open().run(until=START + 0.01)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    waiting = room.parties[receiver]
    assert waiting.ledger.round == 1 and waiting._transfers.awaited()
    for other in set(range(N)) - {receiver, 1}:
        room.hand(other, receiver, Skipped(1))  # it does not speak for party 1
    assert waiting._transfers.awaited()
    room.hand(1, receiver, Skipped(2))  # another round
    assert waiting._transfers.awaited() and waiting.ledger.round == 1
    sent = next(message for i, message in room.said if i == 1 and isinstance(message, Offer))
    again = Room(replace(session, pace=0.4))
    again.drops = room.drops
    again.open().run(until=START + 0.01)
    effects = again.hand(1, receiver, Skipped(1))
    assert not effects.records and not again.parties[receiver]._transfers._owing()
    assert (1, Ack(1, 0)) in again.hand(1, receiver, sent).sends  # a hint: the offer came all the same
    room.hand(1, receiver, Skipped(1))
    assert waiting.ledger.round == 2


def test_whoever_is_on_time_does_not_say_that_it_is_not_there() -> None:
    """The peer's clock is ahead: it has begun round 1 already, and would go on without this party's offer."""
    room = Room(PACED).open().run(until=START - 0.1)
    assert not skips_in(room.parties[1].receive(room.now, 0, Nudge(1)), 0)


# --- items --------------------------------------------------------------------------------------------------------


def test_an_item_is_asked_of_one_peer_at_a_time() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: True
    room.open().at_stage(1, "digests")
    party, now = room.parties[1], room.now
    have = Have({"digest": bits({0, 2}, N), "final": bits({0}, N)}, True)

    def wanted(peer: int, when: float) -> list[Message]:
        return [message for _, message in party.receive(when, peer, have).sends if isinstance(message, Want)]

    assert wanted(0, now) == [Want({"digest": bits({0, 2}, N), "final": bits({0}, N)})]
    assert not wanted(2, now) and not wanted(0, now + PACED.period / 4 - 0.01)
    assert wanted(2, now + PACED.period / 4 + 0.01) == [Want({"digest": bits({0, 2}, N), "final": bits({0}, N)})]


def test_wanted_items_are_sent_and_nothing_else() -> None:
    room = Room(PACED).open().at_stage(1, "serving")
    party = room.parties[1]
    sends = party.receive(room.now, 0, Want({"final": bits({0, 3}, N), "digest": bits({2}, N)})).sends
    sent = [item for _, message in sends if isinstance(message, Items) for item in message.items]
    assert {(item.kind, item.party) for item in sent} == {("final", 0), ("final", 3), ("digest", 2)}
    assert all(item == party.gossip.items[item.kind][item.party] for item in sent)


# --- without a journal --------------------------------------------------------------------------------------------


def reborn(room: Room, i: int) -> Party:
    """Party i loses its disk, and comes back; whoever might tell it so is out of reach."""
    room.kill(i)
    room.journals[i] = []
    room.drops = lambda sender, receiver, message: i in (sender, receiver)
    room.open(i)
    assert room.parties[i].stage == "asking"
    return room.parties[i]


def test_a_party_without_a_journal_takes_no_part_in_the_agreement() -> None:
    """Three of five accepted; one of them forgets it, and makes a second majority with the other two."""
    room = Room(PACED)
    room.open().at_stage(1, "agreeing")
    everyone = bits(set(range(N)), N)
    accepted = room.parties[1].receive(room.now, 0, Accept(10, everyone, everyone))
    assert (0, Yes(10)) in accepted.sends
    party = reborn(room, 1)
    effects = party.receive(room.now, 4, Prepare(14))
    assert not [each for _, each in effects.sends if isinstance(each, Promise)]


def witnessed(room: Room, answers: set[int]) -> None:
    """Let some witnesses say that they have seen nothing, and let a period pass."""
    for peer in answers:
        room.hand(peer, 1, Seen([], 2, 0))
    room.run(until=room.now + room.session.period + 0.1)


def test_a_party_without_a_journal_waits_for_all_witnesses() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    witnessed(room, set(sorted(party._arrival.unanswered)[:1]))
    assert party.stage == "asking" and not any(isinstance(record, Began) for record in room.journals[1])


def test_a_party_without_a_journal_waits_for_all_witnesses_after_another_crash_too() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    reborn(room, 1)
    assert [type(record) for record in room.journals[1]][:2] == [Opened, Seeded]
    room.kill(1)
    room.recover(1)
    party = room.parties[1]
    witnessed(room, set(sorted(party._arrival.unanswered)[:1]))
    assert not any(isinstance(record, Began) for record in room.journals[1])


def test_whoever_lost_its_journal_vouches_for_nobody_while_it_asks() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = reborn(room, 1)
    assert not [message for _, message in party.receive(room.now, 0, Ask()).sends if isinstance(message, Seen)]


def test_whoever_came_late_vouches_for_no_round_before_it_came() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.run(until=START + 1.0)
    answers = [message for _, message in room.hand(0, 3, Ask()).sends if isinstance(message, Seen)]
    assert [answer.since for answer in answers] == [3]
    fresh = reborn(room, 1)
    earlier = {peer for t in (1, 2) for peer in PACED.topology(b"p" * 32).receivers[t][1]}
    for peer in sorted(fresh._arrival.unanswered):
        room.hand(peer, 1, Seen([], 3, 3))
    assert earlier and fresh._arrival.unanswered == earlier  # those would have seen something


def test_whoever_came_late_has_no_vote_before_or_after_another_crash() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.at(START + 1.3, room.kill, 3)
    room.at(START + 1.3, room.recover, 3)
    result = room.run().check()
    assert 3 in result.finals and room.books()[3].account.present[-1] == PACED.rounds
    assert not [each for i, each in room.said if i == 3 and isinstance(each, Prepare | Promise | Accept | Yes)]
    assert room.books()[3].promised == 0 and room.books()[3].accepted is None


def test_a_majority_of_late_parties_agrees_on_nothing() -> None:
    room = Room(replace(PACED, rounds=6)).open(0, 1)
    room.at(START + 0.9, room.open, 2, 3, 4)
    room.run()
    assert not room.results and not any(missing(room.books()))
    assert all(book.promised == 0 for book in room.books()[2:])


def test_two_parties_without_journals_do_not_vouch_for_each_other() -> None:
    """Only the receiver of party 3's first offer has seen it, and loses its disk as well: no fresh noise may go out."""
    room = Room(PACED).open().run(until=START + 0.1)
    receiver = PACED.topology(b"p" * 32).receivers[1][3][0]
    assert (1, 3, 0) in room.parties[receiver].ledger.decisions
    for i in (3, receiver):
        room.kill(i)
        room.journals[i] = []
    room.open(receiver, 3).run()
    assert not any(isinstance(record, Began) for record in room.journals[3])


def test_a_witness_tells_of_offers_that_wait_for_their_round() -> None:
    """Its payload was seen, and will be credited in its round: whoever made it and has forgotten it must leave."""
    room = Room(PACED).open().run(until=START + 0.1)
    t, sender, slot = next(
        (t, sender, slot)
        for t in range(2, PACED.rounds + 1)
        for sender, slot in PACED.topology(b"p" * 32).senders[t][2]
    )
    room.hand(sender, 2, offer_of(room, t, sender, slot))  # the sender is ahead
    assert room.parties[2].ledger.round == 1
    answers = [message for _, message in room.hand(sender, 2, Ask()).sends if isinstance(message, Seen)]
    assert [(t, slot) in answer.offers for answer in answers] == [True]


def test_an_offer_of_an_earlier_life_is_never_taken_back_as_unsent() -> None:
    """The receiver nudged, then was given the offer of the sender's earlier life; the nudge comes to the new life."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: receiver == 1 and isinstance(message, Ack | Voided)
    room.open().run(until=START + 0.1)
    receiver = room.parties[1].ledger.outbox[1, 0].receiver
    room.kill(1)
    room.recover(1)
    room.run(until=START + 0.2)
    assert room.parties[1].stage == "rounds" and (1, 0) in room.parties[1].ledger.open
    assert not any(missing(room.books()))
    again = [
        each for to, each in room.parties[1].receive(room.now, receiver, Nudge(1)).sends if isinstance(each, Offer)
    ]
    for offer in again:
        room.perform(1, room.parties[1].unsent(room.now, offer))
    assert not any(missing(room.books()))


# --- the result ---------------------------------------------------------------------------------------------------


def test_a_party_that_may_not_take_part_leaves_before_the_first_round() -> None:
    room = Room(PACED)
    room.plans_refused[2] = "its loss would be too large"
    result = room.open().run().check()
    assert room.parties[2].stage == "left" and room.parties[2].reason == "its loss would be too large"
    assert result.finals == {0, 1, 3, 4} and not any(isinstance(record, Began) for record in room.journals[2])
    assert not [message for i, message in room.said if i == 2]  # nothing is sent before it is known


def cut_off() -> Room:
    """Party 1 is cut off from the others for a bit longer than it waits for an agreement, which they reach later."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Prepare)
    room.open().at_stage(1, "agreeing")
    begun = room.now

    def drops(sender: int, receiver: int, message: Message) -> bool:
        cut = 1 in (sender, receiver) and room.now < begun + 3.3
        return cut or (isinstance(message, Prepare) and room.now < begun + 0.6)

    room.drops = drops
    room.run(until=begun + 3.2)
    assert room.parties[1].result is None and room.parties[1].stage == "serving"
    return room.run()


def test_a_decision_that_comes_late_is_taken() -> None:
    assert set(cut_off().results) == set(range(N))


def test_whoever_has_the_result_late_gives_no_reason_for_having_none() -> None:
    assert not [party.reason for party in cut_off().parties.values() if party.reason]


def test_final_messages_count_only_with_their_digests() -> None:
    """A proposer may hold a final message and not the digest: large items travel in several messages."""
    party = Room(PACED).open().at_stage(1, "agreeing").parties[1]
    for i in range(N):
        party.gossip.items["final"].setdefault(i, foreign(PACED, i).make("final", Final(bytes(24))))
    hearer = PACED.topology(b"p" * 32).receivers[PACED.rounds][4][0]  # nobody else has heard of party 4 in round T
    without = Vote(bits(set(range(N)) - {4, hearer}, N), bits(set(range(N)), N))
    party.gossip.add(foreign(PACED, 0).make("decision", without))
    assert party._ending.decided() and party.result is not None
    counted = set(np.flatnonzero(party.result.realised.execution.published).tolist())
    assert party.result.finals == counted


def test_wakeups_move_on_while_nobody_answers() -> None:
    """Alone in the world, in every stage: no busy loop, and an end."""
    for session in (PACED, TOSSED, replace(PACED, pace=0.0)):
        room = Room(session)
        room.drops = lambda sender, receiver, message: True
        room.open().run(until=START + 40.0)
        assert all(party.finished and party.wakeup == float("inf") for party in room.parties.values())


def test_times_far_off_are_no_trouble() -> None:
    """A clock that is ahead by hours: everything is late at once, and nothing is called forever."""
    room = Room(PACED)
    room.now = START + 10_000.0
    room.open().run(until=START + 10_100.0)
    assert all(party.finished for party in room.parties.values())
