"""Work that grows with the number of parties is done once: reading an item, encoding a message to all, realizing."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest

from helpers.network_faults import Faults, random_session, without_faults
from helpers.simulated_network import SimulatedNetwork
from inca.errors import InvalidPeerMessage
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Accept, Decisions, Item, Prepare, Propose
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Key, Refusal, read

WORD = Refusal(0, bytes(32), "too much")


def session_of(parties: int, seed: int = 1) -> SessionConfig:
    rng = random.Random(seed)
    return replace(
        random_session(rng),
        parties=parties,
        rounds=4,
        schedule="permutation",
        min_participants=parties // 4,
        seed=rng.randbytes(32),
    )


def test_an_item_is_read_once() -> None:
    item = Item("refusal", 3, msgspec.msgpack.encode(WORD), b"")
    assert read(item, Refusal) == WORD and read(item, Refusal) is read(item, Refusal)
    assert item == Item("refusal", 3, item.body, b"") and "too much" not in repr(item)


def test_an_item_of_another_form_is_refused_every_time() -> None:
    item = Item("refusal", 3, msgspec.msgpack.encode(WORD), b"")
    assert read(item, Refusal) == WORD
    for _ in range(2):
        with pytest.raises(InvalidPeerMessage, match="cannot be read"):
            read(item, Key)


def test_all_who_ask_for_one_seed_have_the_same_schedule() -> None:
    session = session_of(5)
    first = session.topology(bytes(32))
    assert session.topology(bytes(32)) is first
    other = session.topology(bytes(31) + b"1")
    assert other is not first and other.receivers != first.receivers
    assert session.topology(bytes(32)).receivers == first.receivers


class Listening(SimulatedNetwork):
    """Notes how many different objects a large message to many is."""

    broadcasts = 0

    def _perform(self, i: int, effects: Effects) -> None:
        for kind in (Prepare, Propose, Accept, Decisions):
            sent = [message for _, message in effects.sends if isinstance(message, kind)]
            if len(sent) > 2:
                self.broadcasts += 1
                assert len({id(message) for message in sent}) == 1, f"{kind.__name__} is encoded for each of them"
        super()._perform(i, effects)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_what_is_sent_to_all_is_one_message(seed: int) -> None:
    faults = Faults(delay=0.03, loss=0.1)  # so that some of it is sent again
    network = Listening(seed, faults=faults, session=session_of(10, seed))
    network.run()
    network.check_end()
    assert network.broadcasts >= 6


def test_the_result_has_the_execution_that_was_assessed() -> None:
    network = SimulatedNetwork(2, faults=without_faults(), session=session_of(6))
    network.run()
    network.check_end()
    for party in network.survivors.values():
        assert party.result is not None and party.result.realized is party.finalization.realized


@pytest.mark.slow
def test_a_hundred_parties_agree_while_some_leave_and_messages_are_lost() -> None:
    faults = Faults(delay=0.02, loss=0.001, comeback=0.0)
    network = SimulatedNetwork(5, faults=faults, session=replace(session_of(100), min_round_duration=0.1))
    leavers = random.Random(5).sample(range(100), 6)
    for place, i in enumerate(leavers):
        network._at(network.session.start + 0.05 * place, network._crash if place % 2 else network._depart, i)
    network.run()
    network.check_end()
    assert not network.difference().any()
    assert set(network.results) == set(range(100)) - set(leavers)
    assert len({result.beacon for result in network.results.values()}) == 1
