"""Messages and calls that no honest party would make change nothing and harm nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
import pytest

import inca
from helpers.parties import PACED, START, N, Room, foreign, masks, noisy, secret, snapshot
from inca.errors import CorruptJournal, LocalProtocolError
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
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Final, SignedItems, Vote
from inca.protocol.execution_files import digest


def nonsense(session: SessionConfig, me: int) -> Iterator[tuple[str, Message]]:
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
    yield "a request that does not fit", Want({"digest": bytes(9)})
    yield "a request for an unknown kind", Want({"gift": bits({0}, session.parties)})
    yield "an item of no kind", Items([Item("gift", 0, b"", b"")])
    yield "an item of nobody", Items([Item("digest", 99, b"", b"")])
    yield "an item that was not signed", Items([Item("final", 0, bytes(8 * (d + 1)), b"forged")])
    yield "an item that was signed by another", Items([replace_party(foreign(session, 0), session, 3)])
    other = foreign(session, 0)
    yield "a digest that cannot be read", Items([other.sign("digest", b"\xff\xff")])
    yield "a digest that cannot be", Items([other.sign("digest", Digest(Account([2, 1], [[2], [2]], []), []))])
    yield "a final message of another width", Items([other.sign("final", Final(b"short"))])
    yield "a final message that cannot be read", Items([other.sign("final", b"\x00")])
    yield "a decision that does not fit", Items([other.sign("decision", Vote(bytes(9), bytes(9)))])
    yield "a commitment of another width", Items([other.sign("commit", b"short")])
    yield "a party that is done and says more", Items([other.sign("done", b"and yet")])
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


def replace_party(owner: SignedItems, session: SessionConfig, party: int) -> Item:
    item = owner.sign("digest", Digest(Account([], [], []), []))
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
        answers = [answer for _, answer in effects.sends if not isinstance(answer, Have | Prepare | Accept)]
        assert not [answer for answer in answers if not isinstance(answer, Offer | Resolve)], name


def test_calls_that_tell_nothing_new_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    acked = next(key for key, sent in party.ledger.outbox.items() if sent.fate != OPEN)
    for effects in (
        party.unsent(room.now, Offer(*acked, b"", Account([], [], []))),
        party.unsent(room.now, Ask()),
        party.down(room.now, 0),
        party.up(room.now, 0),
        party.tick(room.now),
    ):
        assert not effects.records and snapshot(party) == before


def test_illegal_calls_are_refused_and_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party, now = room.parties[2], room.now
    before = snapshot(party)
    calls: dict[str, Callable[[], object]] = {
        "only once": lambda: party.open(now, noisy(PACED, 2), masks(2), secret(2)),
        "recovered only once": lambda: party.recover(now, list(room.journals[2])),
        "assessed can only be called when it was asked for, got it in stage 'rounds'": lambda: party.assessed(now, ""),
        "planned can only be called when it was asked for": lambda: party.planned(now, "too late for that"),
        "only an offer that was made can be unsent, got (99, 0)": lambda: party.unsent(
            now, Offer(99, 0, b"", Account([], [], []))
        ),
        "a message must be one of the protocol, got a str": lambda: party.receive(now, 0, cast("Message", "hello")),
    }
    for sentence, call in calls.items():
        with pytest.raises(LocalProtocolError, match=re.escape(sentence)):
            call()
        assert snapshot(party) == before, sentence


def test_nothing_can_be_done_before_a_party_is_opened() -> None:
    party = Room(PACED).make(2)
    before = snapshot(party)
    calls: tuple[Callable[[], object], ...] = (
        lambda: party.tick(0.0),
        lambda: party.receive(0.0, 1, Ask()),
        lambda: party.unsent(0.0, Ask()),
        lambda: party.down(0.0, 1),
        lambda: party.up(0.0, 1),
        lambda: party.planned(0.0, ""),
        lambda: party.assessed(0.0, ""),
        lambda: party.leave(0.0, "enough"),
    )
    for call in calls:
        with pytest.raises(LocalProtocolError, match="must be opened or recovered before anything else"):
            call()
        assert snapshot(party) == before


def test_a_party_is_opened_with_a_value_and_secrets_of_the_right_size() -> None:
    party = Room(PACED).make(2)
    before, value = snapshot(party), noisy(PACED, 2)
    for arguments, sentence in (
        ((value[:1], masks(2), secret(2)), "noisy must be int64 numbers of shape (2,), got 'int64 of shape (1,)'"),
        ((value * 0.5, masks(2), secret(2)), "noisy must be int64 numbers of shape (2,), got 'float64 of shape (2,)'"),
        ((value, b"short", secret(2)), "the length of masks must be 32 bytes, got 5"),
        ((value, masks(2), b"short"), "the length of secret must be 32 bytes, got 5"),
    ):
        with pytest.raises(inca.InvalidInput) as caught:
            party.open(0.0, *arguments)
        assert str(caught.value) == sentence and snapshot(party) == before
    assert party.open(0.0, value, masks(2), secret(2)).records


def test_a_journal_without_an_opening_is_refused() -> None:
    with pytest.raises(CorruptJournal, match="the journal must have an opening, got none"):
        Room(PACED).make(2).recover(0.0, [])


def test_messages_of_unknown_parties_are_refused_and_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    for peer in (2, N, -1):
        calls: list[Callable[[], object]] = [partial(party.down, room.now, peer), partial(party.up, room.now, peer)]
        for message in (Ask(), Prepare(9), party.signed_items.have(), Resolve(1, 0)):
            calls.append(partial(party.receive, room.now, peer, message))
        for call in calls:
            with pytest.raises(LocalProtocolError, match=f"a peer must be another of the {N} parties, got {peer}"):
                call()
            assert snapshot(party) == before


def poisoned(item: Callable[[SessionConfig], Item]) -> Room:
    """A session in which everyone is given a signed item of party 0, which is not there, before its own digest."""
    room = Room(PACED).open(1, 2, 3, 4).run(until=START + 1.0)
    for i in (1, 2, 3, 4):
        room.hand(0, i, Items([item(PACED)]))
    return room.run()


def test_a_digest_that_heard_of_nobody_harms_nobody() -> None:
    heard = [(99, Account([1], [[OPEN]], []))]
    room = poisoned(lambda session: foreign(session, 0).sign("digest", Digest(Account([], [], []), heard)))
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
    for either, lies in ((room, [heard]), (clean, [])):
        either.open(1, 2, 3, 4).run(until=START + 1.0)
        either.kill(heard[0])  # nobody has its digest
        for i in either.parties:
            either.hand(0, i, Items([foreign(PACED, 0).sign("digest", Digest(Account([], [], []), lies))]))
        either.run()
    assert set(room.results) == set(clean.results) == {1, 2, 3, 4} - {heard[0]}
    for i, result in room.results.items():
        other = clean.results[i]
        assert result.total.tolist() == other.total.tolist() and result.finals == other.finals
        assert (
            result.realized.last_known_rounds == other.realized.last_known_rounds
            and result.realized.unresolved == other.realized.unresolved
        )
        assert digest(inca.Transcript(result.realized.execution)) == digest(inca.Transcript(other.realized.execution))


def test_a_final_message_beyond_all_balances_harms_nobody() -> None:
    huge = Final(pack(np.full(PACED.dimension + 1, 2**62, dtype=np.int64)))
    room = poisoned(lambda session: foreign(session, 0).sign("final", huge))
    assert set(room.results) == {1, 2, 3, 4}


def test_bits_that_do_not_fit_take_nothing_else_along() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    effects = party.receive(room.now, 0, Have({"digest": bits({0, 1}, N), "final": bytes(9)}, False))
    assert snapshot(party) == before and not [answer for _, answer in effects.sends if isinstance(answer, Have | Want)]


def test_skipping_rounds_that_there_are_not_changes_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    before = set(room.parties[2]._components.transfers._skipped)
    for t in (0, PACED.rounds + 1, 2**32 - 1):
        room.hand(0, 2, Skipped(t))
    assert room.parties[2]._components.transfers._skipped == before


def test_a_witness_of_offers_that_there_cannot_be_drives_nobody_out() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.kill(2)
    room.drops = lambda sender, receiver, message: sender == 0
    room.recover(2)
    room.hand(0, 2, Seen([(PACED.rounds + 5, 0)], 2, 0))
    assert room.parties[2].stage == "asking"
