"""Who comes late, how long rounds last, and whom a party waits for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from helpers.parties import COIN_FLIP, PACED, START, N, Room, compare, masks, noisy, offer_of, reasons, secret
from helpers.trustee_keys import sealing
from inca.network.protocol.messages import Ask, Have, Items, Message, Offer, Seen, Want
from inca.network.protocol.records import Began, Joined
from inca.network.protocol.session import WEIGHT, SessionConfig

# --- late ---------------------------------------------------------------------------------------------------------


SLOW = replace(PACED, min_round_duration=PACED.period)


def test_a_late_party_joins_the_round_that_is_under_way() -> None:
    room = Room(SLOW).open(0, 1, 2, 4)
    room.at(START + 2.4, room.open, 3)
    result = room.run().check()
    joined = [record.round for record in room.journals[3] if isinstance(record, Joined)]
    assert joined == [3] and room.ledgers()[3].account.present == [3, 4]
    assert result.realized.cohort == set(range(N))
    compare(room, result.realized.execution)
    assert result.realized.execution.total_weights[3] == pytest.approx(3 / 5)


def test_a_late_party_decides_nothing_about_earlier_rounds() -> None:
    room = Room(SLOW).open(0, 1, 2, 4)
    room.at(START + 2.4, room.open, 3)
    room.run(until=START + 2.5)
    ledger = room.parties[3].ledger
    early = [(t, room.parties[3].context.topology.senders[t][3]) for t in (1, 2)]
    assert early and ledger.since == 3
    for t, i in early:
        effects = room.hand(i, 3, offer_of(room, t, i, to=3))
        assert not effects.records and not effects.sends


def test_a_party_that_comes_after_the_last_round_has_the_result_all_the_same() -> None:
    room = Room(PACED)
    room.serve_s = 1.0
    room.open(0, 1, 2, 4).at_stage(0, "serving")
    room.open(3)
    result = room.run().results[0]
    assert result.realized.cohort == {0, 1, 2, 4}
    assert room.parties[3].result is not None and room.parties[3].result.total.tolist() == result.total.tolist()
    assert not any(isinstance(record, Began) for record in room.journals[3])


def test_a_late_party_must_hear_all_witnesses() -> None:
    witness = PACED.topology(b"p" * 32).receivers[2][3]
    room = Room(PACED).open(0, 1, 2, 4)
    room.drops = lambda sender, receiver, message: sender == witness and receiver == 3
    room.at(START + 0.5, room.open, 3)
    room.run()
    assert room.parties[3].stage == "left"
    reason = f"came late without a journal, and party {witness} did not say whether it had been there before: next time"
    assert room.parties[3].reason.startswith(reason) and "--first-start" in room.parties[3].reason
    assert room.results[0].realized.cohort <= {0, 1, 2, 4} and not any(isinstance(r, Began) for r in room.journals[3])


def test_a_witness_that_claims_to_have_missed_billions_of_rounds_keeps_nobody_busy() -> None:
    """Only the rounds that there are can have been missed; without that it would take minutes."""
    room = Room(PACED).open(0, 1, 2, 4)
    room.drops = lambda sender, receiver, message: receiver == 3
    room.at(START + 0.5, room.open, 3)
    room.run(until=START + 0.6)
    liar = 1
    assert not any(PACED.topology(b"p" * 32).has(t, 3, liar) for t in range(1, PACED.rounds + 1))
    room.hand(liar, 3, Seen([], 2, 2**32 - 1, []))
    assert room.parties[3].stage == "asking"


def test_when_a_life_began_tells_whether_it_is_late() -> None:
    """It may have looked at clocks in the meantime."""
    for began, late in ((START - 0.1, False), (START, True), (None, True)):
        party = Room(PACED).make(1)
        party.open(START + 0.1, noisy(PACED, 1), masks(1), secret(1), sealing(1), began=began)
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
        hearer = topology.receivers[t][2]
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
        assert result.realized.cohort == {0, 1, 2, 4}
        assert not [message for i, message in room.said if i == 3 and isinstance(message, Offer)]


# --- who is gone ----------------------------------------------------------------------------------------------------


def test_a_peer_is_gone_only_after_it_was_down_for_a_period_without_a_break() -> None:
    party = Room(PACED).open().run(until=START + 0.1).parties[2]
    context, hour = party.context, 1000.0
    for when, gone in ((0.0, set[int]()), (0.5, set()), (0.99, set()), (1.0, {0}), (1.7, {0})):
        party.down(hour + when, 0)
        assert context.gone == gone, when
    party.receive(hour + 1.8, 0, Have({}, 0, True))
    assert not context.gone and not context.down
    party.down(hour + 1.9, 0)
    party.receive(hour + 2.0, 1, Have({}, 0, True))  # another one
    party.tick(hour + 3.5)
    assert not context.gone  # nobody has tried to reach it
    party.receive(hour + 3.6, 0, Ask())
    assert context.gone == {0}  # on its way back: it is waited for when it says something else


def cut(room: Room, begin: float, end: float) -> None:
    """All links are cut for a while, which is noticed at once; in the end, everyone can be reached again."""

    def drops(sender: int, receiver: int, message: Message) -> bool:
        if not begin <= room.now < end:
            return False
        room.at(room.now, lambda: room.perform(sender, room.parties[sender].down(room.now, receiver)))
        return True

    room.drops = drops


AT_THE_END = [3.9 + 0.02 * step for step in range(12)]  # where most is said, and quickly at every third of them


@pytest.mark.parametrize(
    "into",
    [
        *(0.3, 1.1, 2.0, 2.7, *AT_THE_END[::3]),
        *(pytest.param(into, marks=pytest.mark.slow) for into in (*AT_THE_END[1::3], *AT_THE_END[2::3])),
    ],
)
def test_a_cut_of_all_links_for_less_than_a_period_costs_nobody_the_session(into: float) -> None:
    """In rounds, when digests or deposits are exchanged, in the consensus, or when keys are shown."""
    room = Room(SLOW)
    cut(room, START + into, START + into + 0.95 * SLOW.period)
    result = room.open().run().check()
    assert result.realized.cohort == set(range(N)) and result.weight == N * WEIGHT, into
    assert not reasons(room)


def test_whoever_is_gone_is_not_waited_for_and_whoever_is_not_yet_is() -> None:
    """Party 2 dies after the last round began: the others wait a period for its digest, and not for the deadline."""
    room = Room(SLOW).open()
    room.run(until=START + 3.5)
    room.kill(2)
    died = room.now
    room.at_stage(0, "agreeing")
    assert died + 0.9 * PACED.period < room.now < died + 2.2 * PACED.period
    result = room.run().check()
    assert result.realized.cohort == {0, 1, 3, 4} and result.weight == 4 * WEIGHT
