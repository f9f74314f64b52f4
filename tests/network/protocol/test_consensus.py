"""The consensus alone: any number of proposers on a network that loses, duplicates and reorders, and among crashes."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from helpers.ledgers import SESSION, opening
from helpers.signatures import sign, verify
from inca.errors import InvalidPeerMessage
from inca.network.protocol.consensus import Consensus
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.ledger import Accepted, Ledger, Promised, Record
from inca.network.protocol.messages import (
    Accept,
    Account,
    Have,
    Item,
    Items,
    Message,
    Prepare,
    Promise,
    Want,
    Yes,
    bits,
    decode,
    encode,
)
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Final, SignedItems, Vote

SEEDS, CHUNK = 80, 40
MORE = 1120


def items_of(session: SessionConfig, party: int) -> list[Item]:
    gossip = SignedItems(session, party, sign(party), verify)
    return [gossip.sign("digest", Digest(Account([], [], []), [])), gossip.sign("final", Final(bytes(24)))]


class Node:
    """One incarnation of a party that has come to the end of its session."""

    def __init__(
        self, session: SessionConfig, me: int, records: list[Record], held: list[Item], rng: random.Random
    ) -> None:
        self.context = PartyContext(
            session, me, Ledger(session, me), SignedItems(session, me, sign(me), verify), random.Random(rng.random())
        )
        for record in records:
            self.context.ledger.apply(record)
        for item in held:
            self.context.signed_items.add(item)
        self.consensus = Consensus(self.context)

    @property
    def decided(self) -> bool:
        return bool(self.context.signed_items.by_kind["decision"])

    def handle(self, now: float, peer: int, message: Message) -> Effects:
        match message:
            case Prepare() | Promise() | Accept() | Yes():
                self.consensus.handle(now, peer, message)
            case Have():
                n = self.context.session.parties
                lacking = {kind: number.to_bytes(-(-n // 8), "little") for kind, number in self.lacking(message)}
                if lacking:
                    self.context.send(peer, Want(lacking))
                if self.context.signed_items.has_more_than(message) and not message.reply:
                    self.context.send(peer, self.context.signed_items.have(reply=True))
            case Want():
                for batch in self.context.signed_items.batches(message):
                    self.context.send(peer, Items(batch))
            case Items():
                for item in message.items:
                    self.context.signed_items.add(item)
        return self.effects()

    def lacking(self, message: Have) -> list[tuple[str, int]]:
        return [(kind, number) for kind, number in self.context.signed_items.lacking(message).items() if number]

    def tick(self, now: float) -> Effects:
        if not self.decided and now >= self.consensus.wakeup:
            self.consensus.tick(now)
        return self.effects()

    def effects(self) -> Effects:
        out, self.context.out = self.context.out, Effects()
        return out


class Trial:
    """A seeded run; from `healed` on nothing is lost, and nobody dies any more."""

    def __init__(self, seed: int, *, healed: float = 10.0, forgetful: bool = False) -> None:
        self.rng = random.Random(seed)
        self.session = replace(SESSION, parties=self.rng.randint(3, 6), id=self.rng.randbytes(32))
        self.healed, self.forgetful = healed, forgetful
        self.loss, self.crash = 0.6 * self.rng.random(), 0.4 * self.rng.random()
        self.delay = self.rng.choice([0.002, 0.02, 0.1])
        self.now, self.count = 0.0, 0
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        n = self.session.parties
        everything = {i: items_of(self.session, i) for i in range(n)}
        # Everyone lacks something else, so that proposals differ.
        self.held = [
            [item for j in range(n) if j == i or self.rng.random() < 0.5 for item in everything[j]] for i in range(n)
        ]
        self.journals: list[list[Record]] = [[opening(self.session, i)] for i in range(n)]
        self.nodes: list[Node | None] = [None] * n
        self.incarnations = [0] * n
        self.accepted: dict[int, tuple[tuple[bytes, bytes], set[int]]] = {}
        self.chosen: set[tuple[bytes, bytes]] = set()
        self.decisions: set[tuple[bytes, bytes]] = set()
        self.gone = set(self.rng.sample(range(n), self.rng.randint(0, (n - 1) // 2)))
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
            records = [record for record in records if not isinstance(record, Promised | Accepted)]
        self.incarnations[i] += 1
        node = self.nodes[i] = Node(self.session, i, records, self.held[i], self.rng)
        node.consensus.enter(self.now)
        self.perform(i, node.effects())
        self.at(self.now, self.tick, i, self.incarnations[i])

    def die(self, i: int, forever: bool = False) -> None:
        node = self.nodes[i]
        if node is not None:
            self.nodes[i] = None
            # Items outlive a crash here, as what was accepted is out of reach if all who held it have forgotten it.
            items = node.context.signed_items.by_kind
            self.held[i] = [*items["digest"].values(), *items["final"].values()]
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
            node = self.nodes[i]
            if node is not None and i in node.context.signed_items.by_kind["decision"]:
                vote = node.context.signed_items.bodies("decision", Vote)[i]
                self.decisions.add((vote.digests, vote.finals))
            for peer, message in effects.sends if moment < 0 else effects.sends[: moment - 1]:
                self.post(i, peer, message)
        if doomed:
            self.die(i)

    def accept(self, i: int, record: Accepted) -> None:
        value = (record.digests, record.finals)
        first, who = self.accepted.setdefault(record.ballot, (value, set()))
        assert first == value, f"two proposals in ballot {record.ballot}"
        who.add(i)
        if len(who) >= self.session.quorum:
            self.chosen.add(value)

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
    "first",
    [
        *range(0, SEEDS, CHUNK),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(SEEDS, SEEDS + MORE, CHUNK)),
    ],
)
def test_there_is_one_decision_and_it_comes_when_the_network_heals(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            trial = Trial(seed).run(until=30.0)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert trial.decisions, f"seed {seed}: no decision, although {trial.session.quorum} parties or more live"
        assert trial.decisions == trial.chosen, f"seed {seed}: a decision that was not chosen"
        living = [node for node in trial.nodes if node is not None]
        assert any(node.decided for node in living), f"seed {seed}"


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
            caught.append(str(error))
    assert sum("different decisions" in violation for violation in caught) >= 10


# --- one step after the other -------------------------------------------------------------------------------------

N = SESSION.parties
EVERYONE = [item for party in range(N) for item in items_of(SESSION, party)]
ALL = bits(set(range(N)), N)


def node(me: int = 0, records: list[Record] | None = None, held: list[Item] | None = None) -> Node:
    return Node(
        SESSION, me, [opening(SESSION, me), *(records or [])], EVERYONE if held is None else held, random.Random(1)
    )


def test_a_promise_is_written_before_it_is_given_and_kept() -> None:
    party = node()
    effects = party.handle(0.0, 1, Prepare(9))
    assert effects.records == [Promised(9)] and effects.sends == [(1, Promise(9, 0, b"", b""))]
    again = party.handle(0.0, 1, Prepare(9))
    assert not again.records and again.sends == effects.sends
    old = party.handle(0.0, 2, Prepare(6))
    assert not old.records and not old.sends
    stale = party.handle(0.0, 2, Accept(6, ALL, ALL))
    assert not stale.records and not stale.sends


def test_an_acceptance_is_written_before_it_is_said_and_told_to_later_proposers() -> None:
    party = node()
    effects = party.handle(0.0, 1, Accept(9, ALL, ALL))
    assert effects.records == [Accepted(9, ALL, ALL)] and effects.sends == [(1, Yes(9))]
    assert not party.handle(0.0, 1, Accept(9, ALL, ALL)).records
    restarted = node(records=[Accepted(9, ALL, ALL)])
    assert restarted.handle(0.0, 2, Prepare(10)).sends == [(2, Promise(10, 9, ALL, ALL))]


def test_nobody_accepts_what_it_does_not_hold() -> None:
    party = node(held=items_of(SESSION, 0))
    effects = party.handle(0.0, 1, Accept(9, ALL, ALL))
    assert not effects.records and effects.sends == [
        (1, party.context.signed_items.have())
    ]  # it asks for what it lacks
    party.handle(0.0, 1, Items(EVERYONE))
    assert party.handle(0.0, 1, Accept(9, ALL, ALL)).sends == [(1, Yes(9))]


def proposing(party: Node) -> int:
    """Let a party propose; return its ballot."""
    party.consensus.enter(0.0)
    effects = party.tick(party.consensus.wakeup)
    prepared = [message.ballot for _, message in effects.sends if isinstance(message, Prepare)]
    assert len(prepared) == N - 1 and len(set(prepared)) == 1
    assert effects.records == [Promised(prepared[0])]
    return prepared[0]


def test_a_proposer_follows_the_latest_acceptance_it_hears_of() -> None:
    party = node()
    ballot = proposing(party)
    older, newer = bits({0, 1, 2}, N), bits({0, 2, 3}, N)
    party.handle(0.0, 1, Promise(ballot, 1, older, older))
    effects = party.handle(0.0, 2, Promise(ballot, 2, newer, newer))
    assert {message for _, message in effects.sends} == {Accept(ballot, newer, newer)}
    late = party.handle(0.0, 3, Promise(ballot, 3, older, older))
    assert not late.sends and not late.records  # it has proposed already


def test_a_proposer_without_acceptances_proposes_what_it_holds() -> None:
    party = node(held=[*items_of(SESSION, 0), *items_of(SESSION, 1), *items_of(SESSION, 3)])
    ballot = proposing(party)
    party.handle(0.0, 1, Promise(ballot, 0, b"", b""))
    effects = party.handle(0.0, 2, Promise(ballot, 0, b"", b""))
    mine = bits({0, 1, 3}, N)
    assert {message for _, message in effects.sends} == {Accept(ballot, mine, mine)}
    party.handle(0.0, 1, Yes(ballot))
    assert not party.decided  # two of four
    party.handle(0.0, 1, Yes(ballot))
    assert not party.decided  # the same party twice
    party.handle(0.0, 2, Yes(ballot))
    assert party.decided


def test_a_proposer_proposes_nothing_before_it_holds_the_digests_of_more_than_half() -> None:
    party = node(held=[*items_of(SESSION, 0), *items_of(SESSION, 3)])
    ballot = proposing(party)
    for peer in (1, 2, 3):
        assert not party.handle(0.0, peer, Promise(ballot, 0, b"", b"")).sends
    party.handle(0.0, 1, Items(items_of(SESSION, 1)))
    mine = bits({0, 1, 3}, N)
    effects = party.handle(0.0, 1, Promise(ballot, 0, b"", b""))
    assert {message for _, message in effects.sends} == {Accept(ballot, mine, mine)}


NOBODYS: dict[str, tuple[int, Message]] = {
    "a prepare in the ballot of another party": (2, Prepare(9)),
    "a proposal in the ballot of another party": (2, Accept(9, ALL, ALL)),
    "a ballot far ahead": (1, Prepare(4 * 2000 + 1)),
    "a proposal far ahead": (1, Accept(2**62 - 3, ALL, ALL)),
    "a proposal without the digests of more than half": (1, Accept(9, bits({0, 1}, N), bits({0, 1}, N))),
    "a proposal with a final message without its digest": (1, Accept(9, bits({0, 1, 2}, N), ALL)),
    "an acceptance of half": (1, Promise(4, 3, bits({0, 1}, N), bits(set(), N))),
}


@pytest.mark.parametrize("name", NOBODYS)
def test_what_no_proposer_would_say_is_nonsense(name: str) -> None:
    party = node()
    with pytest.raises(InvalidPeerMessage):
        party.handle(0.0, *NOBODYS[name])
    effects = party.effects()
    assert not effects.records and not effects.sends
    assert party.context.ledger.accepted is None and party.context.ledger.promised == 0


def test_ballots_are_never_used_twice_and_no_other_partys() -> None:
    seen: set[int] = set()
    for me in range(N):
        records: list[Record] = []
        for _ in range(3):  # each time in a new incarnation
            party = node(me, records)
            ballot = proposing(party)
            records.append(Promised(ballot))
            assert ballot not in seen and ballot % N == me
            seen.add(ballot)


@pytest.mark.parametrize("field", [b"", bytes(2), b"\xff"], ids=repr)
def test_bits_of_nobody_are_nonsense(field: bytes) -> None:
    party = node()
    for message in (Accept(9, field, ALL), Accept(9, ALL, field)):
        with pytest.raises(InvalidPeerMessage):
            party.handle(0.0, 1, message)
    assert party.context.ledger.accepted is None and party.context.ledger.promised == 0


def test_a_promise_with_bits_of_nobody_changes_nothing() -> None:
    party = node()
    ballot = proposing(party)
    party.handle(0.0, 1, Promise(ballot, 0, b"", b""))
    with pytest.raises(InvalidPeerMessage):
        party.handle(0.0, 2, Promise(ballot, 1, b"nonsense", b"nonsense"))
    party.effects()
    effects = party.handle(0.0, 3, Promise(ballot, 0, b"", b""))
    assert {message for _, message in effects.sends} == {Accept(ballot, ALL, ALL)}


@pytest.mark.parametrize("records", [[], [opening(SESSION, 0, late=True)]], ids=["without a book", "with a late book"])
def test_whoever_may_have_voted_before_has_no_vote(records: list[Record]) -> None:
    """A book begun after the start may be in the place of a lost one, with promises in it."""
    party = Node(SESSION, 0, records, EVERYONE, random.Random(1))
    party.consensus.enter(0.0)
    assert party.consensus.wakeup == float("inf")  # it proposes nothing
    for message in (Prepare(9), Accept(9, ALL, ALL), Promise(4, 0, b"", b""), Yes(4)):
        effects = party.handle(0.0, 1, message)
        assert not effects.records and not effects.sends
    assert party.context.ledger.promised == 0 and party.context.ledger.accepted is None and not party.decided


# --- whose turn it is, and who is asked again (a turn is an eighth of a period) ---


def test_turns_follow_from_the_session_and_those_who_are_down_have_none() -> None:
    keys = [hashlib.sha256(SESSION.id + b"turn" + i.to_bytes(4, "little")).digest() for i in range(N)]
    order = sorted(range(N), key=lambda i: keys[i])
    for place, me in enumerate(order):
        party = node(me)
        party.consensus.enter(100.0)
        assert party.consensus.wakeup == pytest.approx(100.0 + place / 8)
        party.context.down.update(order[:1])
        party.consensus.enter(100.0)
        assert party.consensus.wakeup == pytest.approx(100.0 + max(0, place - 1) / 8)


def test_whoever_has_promised_something_to_another_lets_it_finish() -> None:
    party = node()
    party.consensus.enter(100.0)
    party.handle(100.0, 1, Prepare(9))
    assert party.consensus.wakeup == pytest.approx(100.5)
    party.handle(100.25, 2, Prepare(14))
    assert party.consensus.wakeup == pytest.approx(100.75)


def test_those_who_have_not_answered_are_asked_again_after_pauses_that_double_up_to_a_turn() -> None:
    party = node()
    ballot = proposing(party)
    began = now = party.consensus.wakeup - 1 / 128
    pauses = []
    for _ in range(5):
        pauses.append(party.consensus.wakeup - now)
        now = party.consensus.wakeup
        assert party.tick(now).sends == [(peer, Prepare(ballot)) for peer in (1, 2, 3)]
    assert pauses == pytest.approx([1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8]) and now < began + 0.5
    party.handle(now, 1, Promise(ballot, 0, b"", b""))
    assert party.tick(party.consensus.wakeup).sends == [(peer, Prepare(ballot)) for peer in (2, 3)]
    party.handle(now, 3, Promise(ballot, 0, b"", b""))
    party.handle(now, 2, Yes(ballot))
    asked = party.tick(party.consensus.wakeup).sends
    assert asked == [(peer, Accept(ballot, ALL, ALL)) for peer in (1, 3)]  # it has said yes itself
    party.handle(now, 3, Yes(ballot))
    assert party.decided and party.consensus.wakeup == float("inf")
