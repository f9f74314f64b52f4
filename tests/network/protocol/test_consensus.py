"""The consensus alone: any number of proposers on a network that loses, duplicates and reorders, and among crashes."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from helpers.consensus_nodes import Lenient, Node, digest_of
from helpers.ledgers import SESSION, opening
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Message, decode, encode
from inca.network.protocol.records import Accepted, Decided, Promised, Record, Voted

FIRST, CHUNK, SEEDS = 20, 40, 1200


class Trial:
    """A seeded run; from `healed` on nothing is lost, and nobody dies any more. Only journals outlive a crash."""

    def __init__(self, seed: int, *, healed: float = 10.0, forgetful: bool = False) -> None:
        self.rng = random.Random(seed)
        n = self.rng.randint(3, 6)
        self.session = replace(
            SESSION, parties=n, id=self.rng.randbytes(32), colluders=0, min_participants=2, start=0.0
        )
        self.healed, self.forgetful = healed, forgetful
        self.loss, self.crash = 0.6 * self.rng.random(), 0.4 * self.rng.random()
        self.delay = self.rng.choice([0.002, 0.02, 0.1])
        self.now, self.count = 0.0, 0
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        everything = [digest_of(self.session, i) for i in range(n)]
        # Everyone lacks something else, so that proposals differ.
        self.held = [[everything[j] for j in range(n) if j == i or self.rng.random() < 0.5] for i in range(n)]
        self.journals: list[list[Record]] = [[opening(self.session, i)] for i in range(n)]
        self.nodes: list[Node | None] = [None] * n
        self.incarnations = [0] * n
        self.accepted: dict[int, tuple[bytes, set[int]]] = {}
        self.chosen: set[bytes] = set()
        self.decisions: set[bytes] = set()
        self.gone = set(self.rng.sample(range(n), self.rng.randint(0, n - self.session.quorum)))
        for i in range(n):
            self.at(self.rng.random(), self.boot, i)
        for i in self.gone:
            self.at(self.healed * self.rng.random(), self.die, i, True)
        for _ in range(3 * n):  # some die between two writes, too, whatever they have decided
            self.at(self.healed * self.rng.random(), self.die, self.rng.randrange(n))

    def run(self, until: float) -> Trial:
        while self.queue and self.queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self.queue)
            action()
            assert len(self.chosen | self.decisions) <= 1, f"{len(self.chosen | self.decisions)} different decisions"
        return self

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        self.count += 1
        entry: tuple[float, int, Callable[[], None]] = (when, self.count, partial(action, *arguments))
        heapq.heappush(self.queue, entry)

    def boot(self, i: int) -> None:
        records = self.journals[i]
        if self.forgetful and self.incarnations[i]:
            records = [record for record in records if not isinstance(record, Promised | Voted | Accepted | Decided)]
        self.incarnations[i] += 1
        node = self.nodes[i] = Node(self.session, i, records, self.held[i], self.rng, Lenient)
        node.consensus.enter(self.now)
        self.perform(i, node.effects())
        self.at(self.now, self.tick, i, self.incarnations[i])

    def die(self, i: int, forever: bool = False) -> None:
        if self.nodes[i] is not None:
            self.nodes[i] = None
            if not forever:
                self.at(self.now + 2.0 * self.rng.random(), self.boot, i)
        if forever:
            self.incarnations[i] += 1000  # whatever was planned for it is void

    def tick(self, i: int, incarnation: int) -> None:
        node = self.nodes[i]
        if node is None or incarnation != self.incarnations[i]:
            return
        self.perform(i, node.tick(self.now))
        if not node.decided and self.nodes[i] is node:
            # It talks about items, too: whom it waits for may have what it lacks.
            if self.now > self.healed or self.rng.random() < 0.1:
                self.post(i, self.rng.choice(sorted(node.context.others)), node.context.signed_items.have())
            later = max(self.now + 0.01, min(node.consensus.wakeup, self.now + 0.1))
            self.at(later, self.tick, i, incarnation)

    def perform(self, i: int, effects: Effects) -> None:
        doomed = bool(effects.records) and self.now < self.healed and self.rng.random() < self.crash
        moment = self.rng.randint(0, len(effects.sends) + 1) if doomed else -1
        if moment != 0:
            self.journals[i] += effects.records
            for record in effects.records:
                if isinstance(record, Accepted):
                    self.accept(i, record)
                elif isinstance(record, Decided):
                    self.decisions.add(record.decision.proposal.hash)
            for peer, message in effects.sends if moment < 0 else effects.sends[: moment - 1]:
                self.post(i, peer, message)
        if doomed:
            self.die(i)

    def accept(self, i: int, record: Accepted) -> None:
        hash_ = record.lock.proposal.hash
        first, who = self.accepted.setdefault(record.lock.ballot, (hash_, set()))
        assert first == hash_, f"two proposals in ballot {record.lock.ballot}"
        who.add(i)
        if len(who) >= self.session.quorum:
            self.chosen.add(first)

    def post(self, i: int, j: int, message: Message) -> None:
        frame, lossy = encode(message), self.now < self.healed
        for _ in range(2 if self.rng.random() < 0.2 else 1):
            if not (lossy and self.rng.random() < self.loss):
                lag = self.rng.expovariate(1.0) * self.delay
                self.at(self.now + lag, self.deliver, i, j, self.incarnations[j], frame)

    def deliver(self, i: int, j: int, incarnation: int, frame: bytes) -> None:
        node = self.nodes[j]
        if node is not None and incarnation == self.incarnations[j]:
            self.perform(j, node.handle(self.now, i, decode(frame)))


@pytest.mark.parametrize(
    "seeds",
    [
        range(FIRST),
        pytest.param(range(FIRST, CHUNK), marks=pytest.mark.slow),
        *(pytest.param(range(first, first + CHUNK), marks=pytest.mark.slow) for first in range(CHUNK, SEEDS, CHUNK)),
    ],
)
def test_there_is_one_decision_and_it_comes_when_the_network_heals(seeds: range) -> None:
    for seed in seeds:
        try:
            trial = Trial(seed).run(until=30.0)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        living = [node for node in trial.nodes if node is not None]
        could = {item.party for node in living for item in node.context.signed_items.by_kind["digest"].values()}
        assert trial.decisions or len(could) < trial.session.min_participants, f"seed {seed}: no decision"
        assert trial.decisions <= trial.chosen, f"seed {seed}: a decision that was not chosen"
        assert all(node.decided for node in living) == bool(trial.decisions), f"seed {seed}"


def test_a_trial_can_be_replayed() -> None:
    one, two = (Trial(3).run(until=6.0) for _ in range(2))
    assert one.journals == two.journals and one.decisions == two.decisions and one.count == two.count


def test_acceptors_that_forget_are_caught() -> None:
    """A restart that forgets promises and acceptances gives different decisions in many trials, the first included."""
    caught: list[str] = []
    for seed in range(60):
        try:
            Trial(seed, forgetful=True).run(until=30.0)
        except AssertionError as error:
            if "different decisions" in str(error):
                caught.append(str(error))
        if len(caught) == 3:
            return
    raise AssertionError(f"only {len(caught)} of 60 trials had different decisions")
