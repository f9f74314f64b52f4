"""A party that is asked to leave: it finishes its round, tells the others, and nobody waits for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.network_faults import Faults
from helpers.parties import PACED, START, N, Room, reasons
from helpers.simulated_network import SimulatedNetwork
from inca.errors import LocalProtocolError
from inca.network.protocol.messages import Ack, Goodbye, Offer
from inca.network.protocol.records import Erased, Left

SLOW = replace(PACED, rounds=6, period=100.0, min_round_duration=0.4)  # whoever is waited for is waited for long


def asked_to_leave(room: Room, i: int, when: float) -> Room:
    """Ask a party to leave at some time."""
    room.at(when, lambda: room.perform(i, room.parties[i].depart(room.now)))
    return room


def test_it_finishes_its_round_and_the_others_settle_without_waiting_for_it() -> None:
    room = asked_to_leave(Room(SLOW).open(), 2, START + 0.1).run(until=START + 20.0)
    assert reasons(room) == {2: "it was asked to leave, and left after round 1"}
    account = room.ledgers()[2].account
    assert account.present == [1] and not room.ledgers()[2].open  # its round is complete
    result = room.check()
    assert result.realized.cohort == {0, 1, 3, 4} and result.exact
    goodbyes = [(sender, message) for sender, message in room.said if isinstance(message, Goodbye)]
    assert len(goodbyes) == N - 1 and {sender for sender, _ in goodbyes} == {2}
    logged = [(i, fields["peer"]) for i, event, fields in room.log_events if event == "goodbye"]
    assert sorted(logged) == [(i, 2) for i in (0, 1, 3, 4)]


def test_without_a_word_the_others_would_wait_for_a_period() -> None:
    room = Room(SLOW).open()
    room.at(START + 0.5, room.kill, 2)
    room.run(until=START + 20.0)
    assert not room.results


@pytest.mark.parametrize("stage", ["digests", "agreeing", "assessing", "opening", "serving"])
def test_when_the_rounds_are_over_it_stays_to_the_end(stage: str) -> None:
    """Its balance is sealed: were it to leave now, the others would have to begin anew, or would lack its key."""
    room = Room(PACED)
    if stage == "assessing":
        room.perform_assessments = False
    if stage in ("opening", "digests"):
        room.drops = lambda sender, receiver, message: room.now > START + 1.0 and 0 in (sender, receiver)
    room.open().at_stage(2, stage)
    room.perform(2, room.parties[2].depart(room.now))
    assert room.parties[2].stage == stage and not any(isinstance(message, Goodbye) for _, message in room.said)
    if stage != "assessing":
        room.run()
        assert room.parties[2].stage == "over" and 2 in room.check(but={0}).realized.cohort


def test_it_does_not_come_back() -> None:
    room = asked_to_leave(Room(PACED).open(), 2, START + 0.5).run(until=START + 1.0)
    assert [type(record) for record in room.journals[2][-2:]] == [Left, Erased]
    room.kill(2)
    room.recover(2)
    room.run()
    assert room.parties[2].stage == "left" and "left after round" in room.parties[2].reason
    assert room.check().realized.cohort == {0, 1, 3, 4}


def test_asked_twice_or_after_the_end_it_says_goodbye_once_or_never() -> None:
    room = Room(PACED).open()
    asked_to_leave(asked_to_leave(room, 2, START + 0.1), 2, START + 0.2).run()
    assert sum(isinstance(message, Goodbye) for _, message in room.said) == N - 1
    over = room.parties[0]
    assert over.stage == "over" and not over.depart(room.now).sends and over.stage == "over"
    with pytest.raises(LocalProtocolError):
        Room(PACED).make(0).depart(0.0)


def test_whoever_speaks_again_after_a_goodbye_is_there_again() -> None:
    room = Room(PACED).open().run(until=START + 0.2)
    party = room.parties[0]
    room.hand(2, 0, Goodbye())
    assert party.context.gone == {2}
    room.hand(2, 0, Ack(1))
    assert not party.context.gone


def test_an_offer_that_follows_a_goodbye_harms_nobody() -> None:
    room = Room(PACED).open().run(until=START + 0.2)
    room.hand(2, 0, Goodbye())
    assert room.run().check().realized.cohort == set(range(N))
    assert any(isinstance(message, Offer) for _, message in room.said)


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 44), marks=pytest.mark.slow)])
def test_simulated_sessions_survive_parties_that_are_asked_to_leave(seeds: range) -> None:
    """Among losses and crashes, in whatever stage they are; there is a result if a quorum is left."""
    faults = Faults(loss=0.1, delay=0.02, duplication=0.1, crash=0.002, comeback=1.0, leaves=0.2)
    ended, said = 0, 0
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=faults)
        network.run()
        network.check_end()
        left = [m.party for m in network.machines if m.party and "asked to leave" in m.party.reason]
        said += len(left)
        ended += bool(network.results)
    assert said > 2 and ended > len(seeds) / 2
