"""Messages and calls that no honest party would make change nothing and harm nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import inca
from helpers.parties import PACED, START, N, Room, foreign, snapshot
from inca.network.protocol.messages import (
    OPEN,
    Accept,
    Account,
    Ack,
    Ask,
    Have,
    Item,
    Items,
    Message,
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
from inca.network.protocol.session import Session
from inca.network.protocol.signed_items import Digest, Final, Gossip, Vote
from inca.protocol.transcript import digest


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
