"""The end of a session: who deposits, who refuses, what is opened when, and that there always is an end."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from helpers.ledgers import with_topup
from helpers.parties import COIN_FLIP, PACED, START, N, Room, foreign
from inca.network.protocol.messages import Accept, Account, Item, Items, Message, Prepare, Vote, Yes, encode
from inca.network.protocol.opening.opening import Opening
from inca.network.protocol.records import Began
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.signed_items import Digest, Refusal, read

# --- deposits and refusals ----------------------------------------------------------------------------------------


def said(room: Room, kind: str) -> set[int]:
    """Whose item of a kind has left its owner's machine, whoever has it."""
    items = [item for _, message in room.said if isinstance(message, Items) for item in message.items]
    return {item.party for item in items if item.kind == kind}


def steps(room: Room, i: int) -> list[str]:
    return [decision.proposal.step for decision in room.parties[i].ledger.decided]


def test_a_party_whose_loss_is_too_large_refuses_and_the_others_go_on() -> None:
    room = Room(with_topup(PACED))
    room.refusals[2] = "its loss would be 7.1, above 5"
    result = room.open().run().check()
    assert result.realized.cohort == said(room, "key") == {0, 1, 3, 4} and said(room, "refusal") == {2}
    assert room.parties[2].reason == "its loss would be 7.1, above 5" and not room.parties[0].reason
    assert result.realized.execution.published.tolist() == [True, True, False, True, True]
    assert result.weight == 4 * WEIGHT and steps(room, 0) == ["cohort", "cohort", "commit"]
    assert {kind for kind, _ in room.ledgers()[2].own_items} == {"digest", "refusal"}


def test_a_loss_that_was_worked_out_for_another_cohort_is_no_answer() -> None:
    """While a party works out its loss, the others may decide on a smaller cohort, and it is asked again."""
    room = Room(PACED)
    room.perform_assessments = False
    party = room.open().at_stage(2, "assessing").parties[2]
    asked_for = party.finalization.realized
    other = replace(asked_for)  # an execution of its own, though an equal one
    assert not party.assessed(room.now, "", of=other).records
    assert party.stage == "assessing" and len(party.ledger.own_items) == 1
    answered = party.assessed(room.now, "too much", of=asked_for)
    assert read(party.ledger.own_items["refusal", 0], Refusal).reason == "too much" and answered.records


@pytest.mark.parametrize("stage", ["agreeing", "opening", "serving", "over"])
def test_a_loss_that_nobody_waits_for_is_no_answer(stage: str) -> None:
    room = Room(PACED).open()
    party = room.parties[2]
    finalization = party.finalization
    for _ in room.steps(until=100.0):
        if party.stage == stage and finalization.cohort is not None:
            break
    asked_for = finalization.realized
    before = dict(party.ledger.own_items)
    party.assessed(room.now, "too much", of=asked_for)
    assert party.stage == stage and party.ledger.own_items == before and ("deposit", 0) in before


def test_all_who_refuse_are_settled_out_one_after_the_other() -> None:
    room = Room(replace(PACED, parties=7, min_participants=3))
    room.refusals = {1: "too much"}
    room.perform_assessments = False
    room.open()

    def answer(i: int) -> None:
        party = room.parties[i]
        realized = party.finalization.realized
        size = len(realized.cohort)
        refuses = (size == 7 and i == 1) or (size == 6 and i in (2, 3))
        room.perform(
            i, party.assessed(room.now, f"too much among {size}" if refuses else "", party.finalization.realized)
        )

    for _ in room.steps(until=START + 60.0):
        for i, party in list(room.parties.items()):
            if party.stage == "assessing":
                answer(i)
    result = room.check()
    cohorts = [len(d.proposal.contents) for d in room.parties[0].ledger.decided if d.proposal.step == "cohort"]
    assert cohorts == [7, 6, 4] and result.realized.cohort == {0, 4, 5, 6} == said(room, "key")
    assert room.parties[1].reason == "too much among 7" and room.parties[3].reason == "too much among 6"


def test_too_many_who_refuse_leave_no_result_and_nothing_is_opened() -> None:
    room = Room(replace(PACED, min_participants=4))
    room.refusals = {1: "too much", 2: "too much"}
    room.open().run()
    assert not room.results and not said(room, "key")
    for i in (0, 3, 4):
        assert room.parties[i].reason == "no agreement on the result: at least 4 parties must hand over their values"
    assert room.parties[1].reason == "too much"


def test_a_cohort_below_the_minimum_releases_nothing() -> None:
    room = Room(replace(PACED, min_participants=5)).open()
    room.at(START + 1.0, room.kill, 1)
    room.run()
    assert not said(room, "key") and not room.results
    for i in (0, 2, 3, 4):
        assert room.parties[i].stage == "over" and not room.parties[i].ledger.decided
        assert room.parties[i].reason == "no agreement on the result: at least 5 parties must hand over their values"


def test_half_of_the_parties_agree_on_nothing() -> None:
    room = Room(replace(PACED, parties=4)).open()
    for i in (1, 2):
        room.at(START + 1.5, room.kill, i)
    room.run()
    assert not room.results and not said(room, "key")
    reason = (
        "no agreement on the result: at least 3 of 4 parties must be there at the end, got 2 without party 1, party 2"
    )
    assert all(party.reason == reason for party in room.parties.values())


@pytest.mark.parametrize("stage", ["agreeing", "serving"])
def test_the_reason_for_refusing_outlives_a_restart(stage: str) -> None:
    room = Room(PACED)
    room.refusals[2] = "its loss is too large"
    room.open()
    for _ in room.steps(until=100.0):
        if room.parties[2].reason and room.parties[2].stage == stage:
            break
    assert room.parties[2].reason == "its loss is too large"
    room.kill(2)
    room.recover(2)
    assert room.run().parties[2].reason == "its loss is too large"


# --- nothing before commit, and one cohort ------------------------------------------------------------------------


@pytest.mark.parametrize("refusing", [(), (2,)], ids=["all deposit", "one refuses"])
def test_nobody_shows_its_key_before_commit_to_the_deposits_of_the_whole_cohort(refusing: tuple[int, ...]) -> None:
    room = Room(PACED)
    room.refusals = dict.fromkeys(refusing, "too much")
    room.open()
    for _ in room.steps(until=START + 60.0):
        for i in said(room, "key"):
            *_, cohort, commit = [decision.proposal for decision in room.parties[i].ledger.decided]
            assert commit.step == "commit" and commit.parties == cohort.parties and i in commit.parties
    assert said(room, "key") == set(range(N)) - set(refusing)


def test_without_a_decision_to_commit_no_key_is_ever_shown() -> None:
    """All have deposited, but the acceptances of commit are lost: all keep their secrets, and wait for each other."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Yes) and message.instance == 1
    room.open().run()
    assert all(steps(room, i) == ["cohort"] for i in room.parties)
    assert all(("deposit", 0) in party.ledger.own_items for party in room.parties.values())
    assert not said(room, "key") and not room.results
    for party in room.parties.values():
        assert party.finalization.unfinished and party.stage == "serving" and party.ledger.secrets is not None
        assert "does not know whether that was decided" in party.reason


def test_whoever_has_given_up_without_accepting_commit_keeps_no_secret() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Vote) and message.instance == 1
    room.open().run()
    assert not room.results and said(room, "deposit") == set(range(N))
    assert all(party.ledger.secrets is None and party.finished for party in room.parties.values())


def test_a_deposit_for_one_cohort_is_none_for_another() -> None:
    """Party 0 has deposited for everyone, and has not said a word on the smaller cohort."""
    room = Room(PACED)
    room.refusals[2] = "too much"
    party = room.open().parties[0]
    for _ in room.steps(until=100.0):
        if ("deposit", 0) in party.ledger.own_items:
            room.perform_assessments = False
        if party.ledger.cohorts == 2:
            break
    assert party.stage == "assessing" and ("deposit", 1) not in party.ledger.own_items
    assert not party.signed_items.by_kind["deposit"] and party.ledger.secrets is not None
    assert party.ledger.secrets.cohort == 1  # those of the first cohort are erased


def test_a_refusal_is_never_followed_by_a_deposit() -> None:
    room = Room(PACED)
    room.refusals[2] = "too much"
    party = room.open().parties[2]
    for _ in room.steps(until=100.0):
        if ("refusal", 0) in party.ledger.own_items:
            break
    effects = party.assessed(room.now, "", of=party.finalization.realized)
    assert not effects.records and ("deposit", 0) not in party.ledger.own_items


# --- gone after commit --------------------------------------------------------------------------------------------


def committed(room: Room, gone: int) -> tuple[Room, list[int]]:
    """Run until commit is decided somewhere, and so many others are killed before they show their keys."""
    for _ in room.steps(until=100.0):
        if any(party.ledger.committed for party in room.parties.values()):
            unknowing = [i for i, party in room.parties.items() if not party.ledger.committed]
            for i in unknowing[-gone:]:
                room.kill(i)
            return room, unknowing[-gone:]
    raise AssertionError("never committed")


def test_whoever_dies_after_commit_is_in_the_result_and_nobody_waits() -> None:
    room, _ = committed(Room(PACED).open(), 2)
    at = room.now
    room.at_stage(next(iter(room.parties)), "serving")
    assert room.now < at + 0.1 * PACED.period  # three of five keys are enough
    result = room.run().check()
    assert result.realized.cohort == set(range(N)) and result.weight == N * WEIGHT


def test_with_one_key_too_few_the_others_say_so_and_wait() -> None:
    room, gone = committed(Room(PACED).open(), 3)
    room.run(until=room.now + 20.0 * PACED.period)
    for party in room.parties.values():
        assert party.result is None and party.finalization.unfinished and party.outcome_known
        assert f"1 more of {', '.join(f'party {i}' for i in gone)} must come back" in party.reason
    room.recover(gone[1])
    result = room.run(until=room.now + 20.0 * PACED.period).check()
    assert result.realized.cohort == set(range(N)) and not any(party.reason for party in room.parties.values())


def back_after(room: Room, periods: float) -> int:
    """One is killed after commit, and comes back so many periods after the others have their result; return which."""
    room, (gone,) = committed(room.open(), 1)
    room.at_stage(next(i for i in room.parties if i != gone), "serving")
    room.at(room.now + periods * PACED.period, room.recover, gone)
    room.run()
    return gone


def test_whoever_comes_back_late_is_served_by_those_who_stay_for_it() -> None:
    late, patient = Room(PACED), Room(PACED)
    patient.serve_s = 20.0 * PACED.period
    assert back_after(late, 12.0) not in late.results
    assert back_after(patient, 12.0) in patient.results and patient.check().realized.cohort == set(range(N))
    assert patient.busy < START + 30.0 * PACED.period  # they go when it has told that it has all it needs


@pytest.mark.parametrize("accepted", [True, False])
def test_a_party_that_had_ended_serves_again_from_its_journal(accepted: bool) -> None:
    """Whether it had accepted the decisions, or only heard of them."""
    room = Room(replace(PACED, parties=6))
    if not accepted:
        room.drops = lambda sender, receiver, message: receiver == 0 and isinstance(message, Accept)
    gone = back_after(room, 12.0)
    ended = room.parties[0]
    kept = {item.kind for item in ended.ledger.kept}
    assert ended.stage == "over" and gone not in room.results and "key" in kept
    assert accepted or kept == {"digest", "deposit", "key"}
    room.drops = lambda sender, receiver, message: False
    room.serve_s = 20.0 * PACED.period
    for i in (0, gone):
        room.kill(i)
        room.recover(i)
    room.run(until=room.now + 40.0 * PACED.period)
    assert room.results[0].total.tolist() == room.results[gone].total.tolist()


# --- contradictory items of one member ----------------------------------------------------------------------------


def split(room: Room, one: Item, other: Item) -> None:
    """Party 4 is gone, and has left one item with parties 0 and 1, and another with 2 and 3."""
    for i in range(4):
        room.hand(4, i, Items([one if i < 2 else other]))


def variants(kind: str, room: Room) -> tuple[Item, Item]:
    signer, ledger = foreign(PACED, 4), room.ledgers()[4]
    if kind == "digest":
        honest = ledger.account
        assert ledger.secrets is not None
        keys = ledger.secrets.public_keys(8)
        return signer.sign("digest", Digest(honest, bytes(32), keys)), signer.sign(
            "digest", Digest(Account(honest.present, honest.fates, []), bytes(32), keys)
        )
    one, other = (ledger.own_items["deposit", 0], another_deposit(room))
    return one, other


def another_deposit(room: Room) -> Item:
    """A second, valid deposit of party 4 for the first cohort, from another secret."""
    party = room.parties[4]
    opening = party.finalization._opening
    assert isinstance(opening, Opening) and opening.word is not None
    deposit, sealed = opening._dealing(4).deal(b"x" * 32, bytes(party.signed_items.sealed_bytes))
    return foreign(PACED, 4).sign("deposit", deposit, sealed)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("late", [False, True], ids=["before any exchange", "in the consensus"])
def test_two_digests_of_one_member_split_nothing_and_stall_nobody(order: int, late: bool) -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: (
        sender == 4 and not isinstance(message, Yes) and room.now > START + 1.6
    )
    room.open().at_stage(0, "digests")
    one, other = variants("digest", room)[::order]
    room.kill(4)
    if late:
        room.at_stage(0, "agreeing")
    split(room, one, other)
    began = room.now
    result = room.run().check()
    assert set(room.results) == {0, 1, 2, 3} and room.busy < began + 9 * PACED.period
    assert {0, 1, 2, 3} <= result.realized.cohort


def with_two_deposits(order: int) -> Room:
    """Party 4 has deposited twice, differently, and is gone."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: (
        sender == 4 and isinstance(message, Items) and any(item.kind == "deposit" for item in message.items)
    )
    room.open()
    for _ in room.steps(until=100.0):
        if ("deposit", 0) in room.parties[4].ledger.own_items:
            break
    one, other = variants("deposit", room)[::order]
    room.kill(4)
    room.queue.clear()
    for _ in room.steps(until=100.0):
        if all(party.ledger.cohorts for party in room.parties.values()):
            break
    split(room, one, other)
    return room.run()


def told(room: Room) -> set[tuple[object, ...]]:
    """The different results that parties hold."""
    return {(tuple(r.total.tolist()), r.weight, r.realized.cohort) for r in room.results.values()}


@pytest.mark.parametrize("order", [1, -1])
def test_two_deposits_of_one_member_give_one_end(order: int) -> None:
    room = with_two_deposits(order)
    reasons = {party.reason for party in room.parties.values()}
    assert len(told(room)) <= 1 and len(reasons) == 1 and set(room.results) in (set(), {0, 1, 2, 3})
    assert all(party.finalization.lie is None for party in room.parties.values())  # both could have been dealt


# --- the result ---------------------------------------------------------------------------------------------------


def test_a_party_that_may_not_take_part_leaves_before_the_first_round() -> None:
    room = Room(PACED)
    room.plans_refused[2] = "its loss would be too large"
    result = room.open().run().check()
    assert room.parties[2].stage == "left" and room.parties[2].reason == "its loss would be too large"
    assert result.realized.cohort == {0, 1, 3, 4} and not any(isinstance(record, Began) for record in room.journals[2])
    assert not [message for i, message in room.said if i == 2]  # nothing is sent before it is known


def cut_off() -> Room:
    """Party 1 is cut off from the others for a bit longer than it waits for an agreement, which they reach later."""
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Prepare)
    room.open().at_stage(1, "agreeing")
    begun = room.now

    def drops(sender: int, receiver: int, message: Message) -> bool:
        cut = 1 in (sender, receiver) and room.now < begun + 4.3
        return cut or (isinstance(message, Prepare) and room.now < begun + 3.0)

    room.drops = drops
    room.run(until=begun + 4.2)
    assert room.parties[1].result is None and room.parties[1].stage == "serving"
    return room.run()


def test_a_decision_that_comes_late_is_taken() -> None:
    assert set(cut_off().results) == set(range(N))


def test_whoever_has_the_result_late_knows_whether_it_is_in_it() -> None:
    for i, party in cut_off().parties.items():
        assert party.result is not None and (not party.reason) == (i in party.result.realized.cohort)


def test_whoever_was_not_there_in_time_is_told_the_result_and_that_it_is_not_in_it() -> None:
    room = Room(PACED)
    room.serve_s = 1.0
    room.open().run(until=START + 1.5)
    room.kill(3)
    room.at_stage(0, "serving")
    room.recover(3)
    result = room.run().check()
    assert result.realized.cohort == {0, 1, 2, 4} and 3 in room.results
    assert room.parties[3].reason == "the others go on without this party: it was not there in time"


def test_wakeups_move_on_while_nobody_answers() -> None:
    """Alone in the world, in every stage: no busy loop, and an end."""
    for session in (PACED, COIN_FLIP, replace(PACED, min_round_duration=0.0)):
        room = Room(session)
        room.drops = lambda sender, receiver, message: True
        room.open().run(until=START + 40.0)
        assert all(party.finished and party.wakeup == float("inf") for party in room.parties.values())


def test_times_far_off_are_no_trouble() -> None:
    """A clock that is ahead by hours: everything is late at once, and nothing is called forever."""
    room = Room(PACED)
    room.now = START + 10_000.0
    room.open().run(until=START + 10_100.0)
    assert all(party.finished for party in room.parties.values())


# --- the beacon -------------------------------------------------------------------------------------------------------


def beacon_by_hand(secrets: dict[int, bytes]) -> bytes:
    listed = b"".join(party.to_bytes(4, "little") + secret for party, secret in sorted(secrets.items()))
    return hashlib.sha256(b"inca-beacon/1" + PACED.id + listed).digest()


def test_the_beacon_is_the_hash_of_the_secrets_of_all_in_the_result() -> None:
    room = Room(PACED).open().run()
    secrets = {i: ledger.beacon_secret for i, ledger in enumerate(room.ledgers())}
    assert len(set(secrets.values())) == N and all(len(secret) == 32 for secret in secrets.values())
    assert room.check().beacon == beacon_by_hand(secrets)


def test_a_secret_that_was_not_committed_to_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a party would seal a secret that it has chosen when it knew more."""
    honest_deposit = Opening.deposit

    def lying(opening: Opening, message: bytes) -> None:
        mine = opening._context.me == 4
        honest_deposit(opening, message[:-32] + b"?" * 32 if mine else message)

    monkeypatch.setattr(Opening, "deposit", lying)
    room = Room(PACED).open().run()
    result = room.check()
    honest = {i: room.ledgers()[i].beacon_secret for i in range(4)}
    assert result.beacon == beacon_by_hand(honest) != beacon_by_hand(honest | {4: b"?" * 32})


def test_the_secret_is_the_same_in_every_life_and_leaves_its_machine_sealed_alone() -> None:
    room = Room(PACED).open().run(until=START + 1.0)
    before = room.ledgers()[2].beacon_secret
    room.kill(2)
    room.recover(2)
    assert room.parties[2].ledger.beacon_secret == before
    room.run()
    assert room.results and not [message for _, message in room.said if before in encode(message)]
