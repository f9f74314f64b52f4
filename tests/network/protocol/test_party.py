"""Sessions in which at most messages are lost or come twice: everyone has the exact mean, as the simulator does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import inca
from helpers.parties import COIN_FLIP, PACED, START, N, Room, compare, final_of, noisy
from inca.network.protocol.messages import OPEN, Ack, Have, Message, Offer, Voided, encode
from inca.network.protocol.session import WEIGHT


@pytest.mark.parametrize("duration", [0.0, pytest.param(0.4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("schedule", "rounds", "dimension", "seed"),
    [
        ("circle", 4, 1, b"a" * 32),
        ("permutation", 3, 4, b"b" * 32),
        ("permutation", 5, 2, b"c" * 32),
        ("permutation", 2, 2, None),
        ("permutation", 1, 1, None),
    ],
)
def test_without_faults_everyone_has_the_exact_mean(
    schedule: str, rounds: int, dimension: int, seed: bytes | None, duration: float
) -> None:
    session = replace(
        PACED, schedule=schedule, rounds=rounds, dimension=dimension, seed=seed, min_round_duration=duration
    )
    room = Room(session).open().run()
    result = room.check()
    assert set(room.results) == result.realized.cohort == set(range(N))
    assert result.total.tolist() == np.sum([noisy(session, i) for i in range(N)], axis=0).tolist()
    assert result.weight == N * WEIGHT
    assert result.exact and not result.realized.contradictions
    execution = result.realized.execution
    assert not execution.undelivered and execution.presence.all_present
    topology = room.parties[0].context.topology
    assert topology.receivers[1:] == [
        execution.schedule.round(t).receivers[:, 0].tolist() for t in range(1, rounds + 1)
    ]
    assert all(party.stage == "over" and not party.reason for party in room.parties.values())
    assert room.busy < START + 10.0  # and is done soon


def test_messages_are_those_of_the_simulator() -> None:
    room = Room(PACED).open().run()
    assert PACED.seed is not None
    schedule = PACED.topology(PACED.seed).schedule
    compare(room, inca.Execution(schedule, inca.incremental_injection(PACED.rounds)).settled())


@pytest.mark.parametrize("last", [1, 2, 3])
def test_messages_are_those_of_the_simulator_when_a_party_leaves_for_good(last: int) -> None:
    session = replace(PACED, min_round_duration=PACED.period)
    room = Room(session).open()
    room.at(START + last * session.period - 0.1, room.kill, 2)
    result = room.run().check()
    flags = np.ones((session.rounds + 1, N), dtype=bool)
    flags[last + 1 :, 2] = False
    assert session.seed is not None
    schedule = session.topology(session.seed).schedule
    compare(
        room,
        inca.Execution(schedule, inca.incremental_injection(session.rounds), inca.Presence.explicit(flags)).settled(),
    )
    assert result.realized.cohort == {0, 1, 3, 4} and result.weight == 4 * WEIGHT


@pytest.mark.parametrize("away", [(1, 2), (1, 3), (2, 3), (3, 4)], ids=str)
def test_messages_are_those_of_the_simulator_when_a_party_is_absent_for_a_while(away: tuple[int, int]) -> None:
    """Parties 2 and 4 are there until round away[0], and come back in the middle of round away[1]."""
    session = replace(PACED, min_round_duration=PACED.period)
    room = Room(session).open()
    for party, delay in ((2, 0.0), (4, 0.1)):
        room.at(START + away[0] * session.period - 0.4 + delay, room.kill, party)
        room.at(START + away[1] * session.period - 0.4 + delay, room.recover, party)
    result = room.run().check()
    execution = result.realized.execution
    for party in (2, 4):
        expected = [not away[0] < t < away[1] for t in range(session.rounds + 1)]
        assert [bool(execution.presence.row(t)[party]) for t in range(session.rounds + 1)] == expected
    assert not [entry for entry in execution.late if entry.back] and result.exact
    assert result.realized.cohort == set(range(N))
    compare(room, execution)
    intended = room.parties[0].context.topology.receivers
    for t in range(1, session.rounds + 1):
        for i in range(N):
            j = intended[t][i]
            went = int(execution.schedule.round(t).receivers[i, 0])
            # Those who were away have missed what was offered before they were heard again.
            if not {i, j} & {2, 4}:
                assert went == j


def test_everything_can_come_twice() -> None:
    once, again = Room(PACED).open().run().check(), Room(PACED, copies=2).open().run().check()
    assert once.total.tolist() == again.total.tolist() and once.weight == again.weight
    room = Room(COIN_FLIP)
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

    room = Room(replace(PACED, min_round_duration=0.0))
    room.drops = first
    result = room.open().run().check()
    assert result.realized.cohort == set(range(N)) and result.weight == N * WEIGHT


def test_offers_that_nobody_gets_are_taken_back_at_settlement() -> None:
    room = Room(replace(PACED, min_round_duration=0.0))
    room.drops = lambda sender, receiver, message: isinstance(message, Offer)
    result = room.open().run().check()
    assert result.realized.cohort == set(range(N)) and result.weight == N * WEIGHT
    assert len(result.realized.execution.undelivered) == N * PACED.rounds
    ledgers = room.ledgers()
    assert all(final_of(room, ledger).tolist() == ledger.injected.tolist() for ledger in ledgers)
    assert all(final_of(room, ledger).tolist() != ledger.balance.tolist() for ledger in ledgers)


def test_lost_answers_do_not_count_a_share_twice() -> None:
    """Nobody hears what became of its offers, not even at the end: the digests tell."""
    room = Room(replace(PACED, min_round_duration=0.0))
    room.drops = lambda sender, receiver, message: isinstance(message, Ack | Voided)
    result = room.open().run().check()
    assert result.weight == N * WEIGHT
    assert {fate for ledger in room.ledgers() for fate in ledger.account.fates} == {OPEN}
