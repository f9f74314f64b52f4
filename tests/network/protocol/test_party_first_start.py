"""Late parties for which their operators vouch: they need not hear everyone, and nobody's word makes them say more."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from helpers.ledgers import SESSION, fresh
from helpers.network_faults import Faults
from helpers.parties import COIN_FLIP, PACED, START, N, Room
from helpers.simulated_network import SimulatedNetwork
from inca.errors import CorruptJournal
from inca.network.protocol.messages import Ask, Offer, Promise, Seen, Yes, encode
from inca.network.protocol.records import Began, Erased, Joined, Left, Opened, Sealed, Vouched

# Each of the last two sends to the other in some round, and would have to be told by it that nothing was seen.
SLOW = replace(PACED, rounds=8, min_round_duration=PACED.period, names=("anna", "bert", "cleo", "dora", "emil"))


def begun(room: Room, i: int) -> list[int]:
    return [record.round for record in room.journals[i] if isinstance(record, Began)]


def came_late(room: Room, i: int) -> list[str]:
    return [fields["reason"] for who, event, fields in room.log_events if (who, event) == (i, "came late")]


@pytest.mark.parametrize("delays", [(0.5, 0.6), (0.5, 1.4), (1.5, 1.5)])
def test_two_late_parties_join_by_their_operators_word(delays: tuple[float, float]) -> None:
    room = Room(SLOW).open(0, 1, 2)
    for i, delay in zip((3, 4), delays, strict=True):
        room.at(START + delay, partial(room.open, i, first_start=True))
    result = room.run().check()
    assert result.realized.cohort == set(range(N)) and result.exact
    for i in (3, 4):
        assert begun(room, i)[-1] == SLOW.rounds and not came_late(room, i)
        assert not any(isinstance(record, Joined) for record in room.journals[i])


def test_without_their_word_they_are_told_whom_they_wait_for_and_what_to_do() -> None:
    room = Room(SLOW).open(0, 1, 2)
    room.at(START + 0.5, room.open, 3, 4)
    room.run()
    assert not room.results and room.parties[0].reason == (
        "no agreement on the result: at least 4 of 5 parties must be there at the end, got 3 without dora, emil"
    )
    for i, other in ((3, "emil"), (4, "dora")):
        assert came_late(room, i) == [
            f"{other} did not say whether they had seen this party before; if it never took part in this session "
            "before, on any machine, stop it and start it again with --first-start"
        ]
        assert not begun(room, i) and room.parties[i].reason == (
            f"came late without a journal, and {other} did not say whether it had been there before: next time start "
            "it before the session begins, or with --first-start if it never took part in the session before"
        )


def test_who_stops_as_told_and_vouches_joins_and_votes() -> None:
    room = Room(SLOW).open(0, 1, 2)
    room.at(START + 0.5, room.open, 3, 4)
    for i in (3, 4):
        room.at(START + 2.5, room.kill, i)
        room.at(START + 2.6, partial(room.recover, i, first_start=True))
    result = room.run().check()
    assert result.realized.cohort == set(range(N))
    for i in (3, 4):
        assert came_late(room, i)  # before it was stopped
        assert (
            sum(isinstance(record, Vouched) for record in room.journals[i]) == 1 and begun(room, i)[-1] == SLOW.rounds
        )
        opened = room.ledgers()[i].opened
        assert opened is not None and not opened.late
    assert [1 for i, message in room.said if i in (3, 4) and isinstance(message, Promise | Yes)]


def test_one_late_party_and_one_that_is_absent_do_not_cost_the_result() -> None:
    room = Room(SLOW).open(0, 1, 2)
    room.at(START + 0.7, partial(room.open, 3, first_start=True))
    result = room.run().check()
    assert result.realized.cohort == {0, 1, 2, 3} and begun(room, 3)[-1] == SLOW.rounds
    alone = Room(SLOW).open(0, 1, 2)
    alone.at(START + 0.7, alone.open, 3)
    assert not alone.run().results and "emil did not say" in alone.parties[3].reason


def test_with_their_votes_a_majority_of_late_parties_agrees() -> None:
    room = Room(SLOW).open(0, 1)
    room.at(START + 0.9, partial(room.open, 2, 3, 4, first_start=True))
    assert room.run().check().realized.cohort == set(range(N))


def test_a_coin_flip_waits_a_period_for_late_parties() -> None:
    room = Room(replace(COIN_FLIP, min_round_duration=0.5, rounds=6)).open(0, 1, 2)
    room.at(START + 0.6, partial(room.open, 3, 4, first_start=True))
    assert room.run().check().realized.cohort == set(range(N))


def test_a_false_word_is_refused_by_whoever_has_seen_the_party() -> None:
    room = Room(SLOW).open().run(until=START + 1.5)
    before = len([message for i, message in room.said if i == 3 and isinstance(message, Offer)])
    room.kill(3)
    room.journals[3] = []
    room.open(3, first_start=True)
    room.run()
    party, witness = room.parties[3], SLOW.topology(b"p" * 32).receivers[1][3]
    assert party.stage == "left" and not begun(room, 3)
    assert [type(record) for record in room.journals[3][-2:]] == [Left, Erased]
    assert party.reason.startswith("this is not its first start in this session, and its journal is lost: ")
    assert any(f"{SLOW.name(peer)} has seen an offer of round" in party.reason for peer in range(N)) and witness != 3
    assert len([message for i, message in room.said if i == 3 and isinstance(message, Offer)]) == before
    assert room.results[0].realized.cohort == {0, 1, 2, 4}


def test_a_word_for_a_party_that_is_in_time_or_has_its_journal_changes_nothing() -> None:
    def hold(*, first_start: bool) -> Room:
        room = Room(SLOW).open(first_start=first_start)
        room.at(START + 1.5, room.kill, 1)
        room.at(START + 1.6, partial(room.recover, 1, first_start=first_start))
        return room.run()

    with_word, without = hold(first_start=True), hold(first_start=False)
    assert with_word.journals == without.journals and not with_word.parties[1].joining.vouched
    assert [(i, encode(message)) for i, message in with_word.said] == [(i, encode(m)) for i, m in without.said]


def test_a_word_is_no_use_to_who_has_joined_without_it_or_has_left() -> None:
    room = Room(SLOW).open(0, 1, 2, 4)
    room.at(START + 0.5, room.open, 3)
    room.at(START + 2.5, room.kill, 3)
    room.at(START + 2.6, partial(room.recover, 3, first_start=True))
    assert 3 in room.run().check().realized.cohort
    kinds = [type(record) for record in room.journals[3]]
    begun = room.ledgers()[3].opened
    assert Joined in kinds and Vouched not in kinds and begun is not None and begun.late
    gone = Room(SLOW).open(0, 1, 2)
    gone.at(START + 0.5, gone.open, 3, 4)
    gone.run().recover(3, first_start=True)
    assert gone.parties[3].stage == "left" and Vouched not in [type(record) for record in gone.journals[3]]


def test_whoever_is_vouched_for_answers_others_while_it_asks_itself() -> None:
    room = Room(SLOW).open(0, 1, 2)
    room.drops = lambda sender, receiver, message: 3 in (sender, receiver)
    room.run(until=START + 0.5)
    room.open(3, first_start=True)
    party = room.parties[3]
    assert party.stage == "asking" and isinstance(room.journals[3][0], Opened)
    answers = [message for _, message in room.hand(4, 3, Ask()).sends if isinstance(message, Seen)]
    assert answers == [Seen([], 1, 0, [])]


@pytest.mark.parametrize("seeds", [range(3, 9), pytest.param(range(12), marks=pytest.mark.slow)])
def test_a_word_brings_late_parties_in(seeds: range) -> None:
    held = dict.fromkeys((False, True), 0)
    for vouched in held:
        for seed in seeds:
            network = SimulatedNetwork(seed, faults=Faults(late=0.4, vouched=vouched, delay=0.001))
            network.run()
            network.check()
            network.check_end()
            held[vouched] += bool(network.results)
    assert held[True] > held[False] + 1


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 16), marks=pytest.mark.slow)])
def test_a_word_for_late_parties_harms_nobody_whatever_else_goes_wrong(seeds: range) -> None:
    """With lost disks and crashes, too, everything adds up, and nobody has two words on a cohort."""
    bad = Faults(late=0.4, vouched=True, delay=0.02, loss=0.05, crash=0.03, comeback=0.8, disk_loss=0.3, skew=0.1)
    for seed in seeds:
        network = SimulatedNetwork(seed, faults=bad)
        network.run()
        network.check()
        network.check_end()


def test_a_word_for_a_late_party_makes_it_one_that_came_in_time_until_its_balance_is_final() -> None:
    ledger = fresh(SESSION, late=True)
    ledger.apply(Vouched())
    assert ledger.opened is not None and not ledger.opened.late
    ledger.apply(Began(1, ledger.next_share()))
    assert ledger.round == 1
    sealed = fresh(SESSION, late=True)
    sealed.apply(Sealed())
    with pytest.raises(CorruptJournal, match="a party that joins late and has joined"):
        sealed.apply(Vouched())
