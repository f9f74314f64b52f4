"""Who comes late, how long rounds last, and whom a party waits for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from helpers.parties import COIN_FLIP, PACED, START, N, Room, compare, masks, noisy, offer_of, secret
from inca.network.protocol.ledger import Began, Joined
from inca.network.protocol.messages import Ack, Have, Items, Message, Offer, Resolve, Want
from inca.network.protocol.session import SessionConfig

# --- late ---------------------------------------------------------------------------------------------------------


def test_a_late_party_joins_the_round_that_is_under_way() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    result = room.run().check()
    joined = [record.round for record in room.journals[3] if isinstance(record, Joined)]
    assert joined == [3] and room.ledgers()[3].account.present == [3, 4]
    assert result.finals == set(range(N)) and not result.realized.unresolved
    compare(room, result.realized.execution, set(range(N)))
    assert result.realized.execution.total_weights[3] == pytest.approx(3 / 5)


def test_a_late_party_decides_nothing_about_earlier_rounds() -> None:
    room = Room(PACED).open(0, 1, 2, 4)
    room.at(START + 0.9, room.open, 3)
    room.run(until=START + 1.0)
    ledger = room.parties[3].ledger
    early = [(t, i, slot) for t in (1, 2) for i, slot in room.parties[3]._context.topology.senders[t][3]]
    assert early and ledger.since == 3
    for t, i, slot in early:
        for message in (Resolve(t, slot), offer_of(room, t, i, slot)):
            effects = room.hand(i, 3, message)
            assert not effects.records and not effects.sends


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
    reason = f"came late, and parties [{witness}] did not say whether it had been there before"
    assert room.parties[3].reason == reason
    assert room.results[0].finals <= {0, 1, 2, 4} and not any(isinstance(r, Began) for r in room.journals[3])


def test_when_a_life_began_tells_whether_it_is_late() -> None:
    """It may have looked at clocks in the meantime."""
    for began, late in ((START - 0.1, False), (START, True), (None, True)):
        party = Room(PACED).make(1)
        party.open(START + 0.1, noisy(PACED, 1), masks(1), secret(1), began=began)
        assert party.ledger.opened is not None and party.ledger.opened.late == late


# --- durations, plans and patience --------------------------------------------------------------------------------


def beginnings(session: SessionConfig, gone: int | None = None) -> dict[int, list[float]]:
    """When each party begins its rounds; the one that is gone is silent, and not known to be down."""
    room, begun = Room(session), dict[int, list[float]]()
    room.drops = lambda sender, receiver, message: sender == gone
    room.open()
    for _ in room.steps(until=START + 20.0):
        for i, party in room.parties.items():
            times = begun.setdefault(i, [])
            if party.ledger.round > len(times):
                times.append(room.now - START)
    return begun


@pytest.mark.parametrize("duration", [0.0, 0.3, 1.0])
def test_rounds_last_as_long_as_agreed_if_everyone_is_there(duration: float) -> None:
    for times in beginnings(replace(PACED, min_round_duration=duration)).values():
        assert times == pytest.approx([t * duration for t in range(PACED.rounds)])


def test_rounds_last_until_their_deadline_if_someone_is_silent() -> None:
    session = replace(PACED, schedule="permutation", min_round_duration=0.2)
    assert session.seed is not None
    topology = session.topology(session.seed)
    times = beginnings(session, gone=2)
    for t in range(1, session.rounds):
        hearer = topology.receivers[t][2][0]
        latest = min(t * session.period, times[hearer][t - 1] + session.period)
        assert times[hearer][t] == pytest.approx(latest)
    durations = [later - earlier for begun in times.values() for earlier, later in pairwise(begun)]
    assert min(durations) >= session.min_round_duration - 1e-9


def test_nothing_begins_before_the_plan_is_known() -> None:
    for session in (PACED, COIN_FLIP):
        room = Room(session)
        room.perform_plans = False
        room.open().run(until=START + 1.5)
        assert {party.stage for party in room.parties.values()} == {"gathering"}
        assert not [message for _, message in room.said if not isinstance(message, Have | Want | Items)]
        for i, party in room.parties.items():
            room.perform(i, party.planned(room.now, "too much" if i == 3 else ""))
        assert {i: party.stage for i, party in room.parties.items() if party.stage != "rounds"} == {3: "left"}
        assert {party.ledger.round for i, party in room.parties.items() if i != 3} == {2}
        result = room.run().check()
        assert result.finals == {0, 1, 2, 4}
        assert not [message for i, message in room.said if i == 3 and isinstance(message, Offer)]


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
    assert receiver in room.parties[1]._context.down
    assert room.parties[1].ledger.open == [(PACED.rounds, 0)]
    for ledger in room.ledgers():  # whoever has nothing open waits for nobody
        assert ledger.sealed or ledger.me == receiver
    result = room.run().check(but={receiver})
    assert result.realized.unresolved == ((PACED.rounds, 1, 0, receiver),)


def test_whoever_settles_wants_to_be_called_when_the_quarter_is_over() -> None:
    room, _, begun = settling(back=None)
    room.run(until=begun + PACED.period / 4 - 0.01)
    assert room.parties[1].stage == "settling" and room.parties[1].wakeup <= begun + PACED.period / 4 + 1e-9


def test_whoever_is_back_in_that_time_settles_what_was_open() -> None:
    room, _, begun = settling(back=0.1)
    assert begun + 0.1 <= sealing(room) < begun + PACED.period / 4
    assert not room.parties[1].ledger.open
    assert not room.run().check().realized.unresolved
