"""Signed items reach everyone: at once, or by recursive doubling if parties are many; by anti-entropy in any case."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.parties import PACED, START, Room
from inca.network.protocol import traffic
from inca.network.protocol.messages import Fetch, Items, Message, Want
from inca.network.protocol.session import SessionConfig


def of(session: SessionConfig, parties: int) -> SessionConfig:
    return replace(session, parties=parties, min_participants=3)


@pytest.mark.parametrize("parties", [3, 4, 5, 8, 25, *(pytest.param(n, marks=pytest.mark.slow) for n in (24, 32))])
def test_every_item_is_passed_on_to_everyone_once_in_a_logarithm_of_messages_if_they_are_many(
    parties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is not counted: a proposal may come before the items that it names.

    Limits on answers are no limits on what is passed on, however large deposits are.
    """
    monkeypatch.setattr(traffic, "_REQUEST_BYTES", 1)
    room, came, messages = Room(of(PACED, parties)), Counter[tuple[str, int, int]](), Counter[tuple[str, int]]()
    asked = set[tuple[int, int]]()

    def watch(sender: int, receiver: int, message: Message) -> bool:
        if isinstance(message, Fetch | Want):
            asked.add((receiver, sender))
        if isinstance(message, Items) and (sender, receiver) not in asked and room.parties[sender].stage != "over":
            kind = message.items[0].kind
            came.update((kind, receiver, item.party) for item in message.items)
            messages[kind, receiver] += 1
        return (sender, receiver) in asked and isinstance(message, Items)  # and it is not waited for

    room.drops = watch
    room.open().run().check()
    assert set(came.values()) == {1}
    for kind in ("digest", "deposit", "key"):
        assert {entry for entry in came if entry[0] == kind} == {
            (kind, me, other) for me in range(parties) for other in range(parties) if me != other
        }
        at_once = parties <= 24 or kind == "key"
        assert max(messages[kind, me] for me in range(parties)) == (parties - 1 if at_once else ceil(log2(parties)))


@examples(5, 60)
@given(st.integers(3, 12), st.sets(st.integers(0, 11), max_size=4), st.integers(0, 2**16))
def test_what_is_not_passed_on_is_asked_for(parties: int, silent: set[int], seed: int) -> None:
    """Some pass nothing on unless they are asked: the others have the same result, and soon."""
    room = Room(of(PACED, parties), seed=seed)
    asked = set[tuple[int, int]]()

    def withhold(sender: int, receiver: int, message: Message) -> bool:
        if isinstance(message, Want):
            asked.add((receiver, sender))
        return isinstance(message, Items) and sender in silent and (sender, receiver) not in asked

    room.drops = withhold
    room.open().run(until=START + 30.0).check()


def test_one_peer_is_asked_for_two_large_deposits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "_REQUEST_BYTES", 1)
    room = Room(of(PACED, 8)).open().at_stage(0, "digests")
    anti_entropy, now = room.parties[0].anti_entropy, room.now
    assert anti_entropy._unasked(now, 1, "deposit", 0b11111110) == 0b00000110
    assert anti_entropy._unasked(now, 1, "deposit", 0b11111110) == 0  # two are on their way
    assert anti_entropy._unasked(now, 2, "deposit", 0b11111110) == 0b00011000
    assert anti_entropy._unasked(now, 1, "digest", 0b11111110) == 0b11111110  # those are small
    del anti_entropy._asked["deposit", 0b00000010]  # it came
    assert anti_entropy._unasked(now, 1, "deposit", 0b11111100) == 0b00100000
    later = now + PACED.period / 4
    assert anti_entropy._unasked(later, 3, "deposit", 0b11111100) == 0b00001100  # the others did not come in time


def test_news_puts_off_talking_only_for_a_while() -> None:
    """Somebody might let others have what it holds in bits, and keep them from asking anyone else."""
    room = Room(of(PACED, 17)).open().at_stage(0, "digests")
    party = room.parties[0]
    anti_entropy, items = party.anti_entropy, party.signed_items
    began, pause = room.now, PACED.period / 32
    anti_entropy.start(began)
    for number in range(1, 40):
        items.changes += 1
        anti_entropy.pass_on(began + number * pause / 2)
        assert anti_entropy.due <= began + 8 * pause
    assert anti_entropy.due == pytest.approx(began + 8 * pause)


def test_a_peer_that_connects_again_and_again_does_not_put_off_talking() -> None:
    room = Room(of(PACED, 17)).open().at_stage(0, "digests")
    anti_entropy = room.parties[0].anti_entropy
    pause = PACED.period / 32
    anti_entropy.start(room.now)
    dues = []
    for number in range(1, 20):
        anti_entropy.connected(room.now + number * pause / 2, 3)
        dues.append(anti_entropy.due)
    assert set(dues) == {room.now + pause}  # when it was due before
    anti_entropy.due = room.now + 10.0  # after a long time without news
    anti_entropy.connected(room.now + 1.0, 3)
    assert anti_entropy.due == pytest.approx(room.now + 1.0 + pause)


def test_partners_are_all_peers_and_those_of_the_first_rounds_come_early() -> None:
    room = Room(of(replace(PACED, rounds=3), 40)).open()
    for me, party in room.parties.items():
        partners = party.partners
        assert sorted(partners) == [peer for peer in range(40) if peer != me]
        topology = party.context.topology
        first = {topology.receivers[1][me], topology.senders[1][me]}
        assert first <= set(partners[: 2 + 12 + len(first)])
