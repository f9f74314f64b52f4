"""The end of one party's session, step by step: what is written before it is said, and what makes up a result."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from helpers.ledgers import SESSION, fresh
from helpers.signatures import sign, verify
from inca.errors import InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.ledger import Began, Sealed, Signed
from inca.network.protocol.messages import NOBODY, Account, Item, bits, pack
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Final, SignedItems, Vote, read

N, LAST = SESSION.parties, SESSION.rounds


def ending(
    session: SessionConfig = SESSION, *, rounds: Iterable[int] = range(1, LAST + 1), late: bool = False
) -> tuple[Finalization, PartyContext]:
    """Party 0 after its rounds, with all offers open."""
    ledger = fresh(session, 0, late=late)
    for t in rounds:
        ledger.apply(Began(t, ledger.next_share()))
    context = PartyContext(session, 0, ledger, SignedItems(session, 0, sign(0), verify), random.Random(1))
    return Finalization(context), context


def item(party: int, kind: str, body: Digest | Final | Vote, session: SessionConfig = SESSION) -> Item:
    return SignedItems(session, party, sign(party), verify).sign(kind, body)  # type: ignore[arg-type]


def digest(party: int, present: list[int] | None = None) -> Item:
    """The digest of a party whose offers nobody was there for."""
    rounds = list(range(1, LAST + 1)) if present is None else present
    return item(party, "digest", Digest(Account(rounds, [[NOBODY]] * len(rounds), []), []))


def final(party: int, numbers: list[int] | None = None, withheld: str = "") -> Item:
    payload = b"" if numbers is None else pack(np.array(numbers, dtype=np.int64))
    return item(party, "final", Final(payload, withheld))


# --- the digest -----------------------------------------------------------------------------------------------------


def test_a_balance_is_sealed_and_its_digest_signed_before_anyone_sees_it_and_both_once() -> None:
    finalization, context = ending()
    known = {2: Account([1], [[NOBODY]], []), 1: Account([], [], [])}
    finalization.seal(known)
    sealed, signed = context.out.records
    assert sealed == Sealed() and isinstance(signed, Signed) and context.ledger.sealed
    body = read(signed.item, Digest)
    assert body.account == context.ledger.account
    assert body.last_known_accounts == [(1, known[1]), (2, known[2])]
    assert context.signed_items.by_kind["digest"] == {0: signed.item}
    finalization.seal(known)
    assert len(context.out.records) == 2  # nothing is said twice


@pytest.mark.parametrize(
    ("late", "rounds", "told"), [(False, [], True), (True, [], False), (True, [1], True), (True, [3, 4], True)]
)
def test_only_whoever_came_late_and_was_there_in_no_round_makes_no_digest(
    late: bool, rounds: list[int], told: bool
) -> None:
    finalization, context = ending(late=late, rounds=rounds)
    finalization.seal({})
    assert context.ledger.sealed and ("digest" in context.ledger.signed) is told


@pytest.mark.parametrize("present", [[], [1, 2], [LAST], list(range(1, LAST + 1))])
def test_the_cohort_are_those_whose_digests_say_that_they_were_there_in_the_last_round(present: list[int]) -> None:
    finalization, context = ending()
    assert finalization.cohort == set()
    context.signed_items.add(digest(1, present))
    assert finalization.cohort == ({1} if LAST in present else set())
    context.signed_items.add(digest(3))
    assert finalization.cohort == ({1, 3} if LAST in present else {3})


def test_a_digest_that_cannot_be_is_refused_unless_one_of_the_party_is_held() -> None:
    finalization, context = ending()
    impossible = digest(1, [2, 1])
    with pytest.raises(InvalidPeerMessage, match="in increasing order"):
        finalization.check(impossible)
    finalization.check(digest(1))
    finalization.check(final(1, [1, 2, 3]))  # no digest
    context.signed_items.add(digest(1))
    finalization.check(impossible)  # it will not be taken


# --- the final message ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "has"), [([1, 2, 3, 4], True), ([4], True), ([1, 2, 3], False), ([], False)])
def test_whoever_was_there_in_the_last_round_has_a_final_message_until_it_is_said(rounds: list[int], has: bool) -> None:
    finalization, context = ending(rounds=rounds)
    assert finalization.has_final_message is has
    for party in range(N):
        context.signed_items.add(digest(party))
    finalization.publish_or_withhold("")
    assert not finalization.has_final_message


def test_the_loss_is_asked_for_on_the_execution_that_the_digests_tell() -> None:
    finalization, context = ending()
    finalization.seal({})
    context.signed_items.add(digest(2, [1, 2]))
    finalization.request_assessment()
    assert context.out.assess is not None and context.out.assess.reported == {0, 2}
    assert context.out.assess.execution.presence.row(LAST).tolist() == [True, False, False, False]


def test_what_is_published_is_the_balance_and_written_before_it_is_said() -> None:
    finalization, context = ending()
    finalization.seal({})
    for party in (1, 2):
        context.signed_items.add(digest(party))
    context.flush()
    finalization.publish_or_withhold("")
    (signed,) = context.out.records
    assert isinstance(signed, Signed)
    assert read(signed.item, Final) == Final(pack(context.ledger.balance), "")
    assert finalization.assessed and finalization.reason == "" and not context.out.log_events
    assert context.signed_items.by_kind["final"] == {0: signed.item}


@pytest.mark.parametrize(("others", "refusal"), [(2, "its loss is too large"), (0, ""), (1, "")])
def test_a_message_is_withheld_if_the_loss_is_too_large_or_too_few_are_there(others: int, refusal: str) -> None:
    session = replace(SESSION, min_participants=3)
    finalization, context = ending(session)
    finalization.seal({})
    for party in range(1, others + 1):
        context.signed_items.add(digest(party))
    finalization.publish_or_withhold(refusal)
    expected = refusal or f"at least 3 parties must be there at the end, got {others + 1}"
    body = read(context.ledger.signed["final"], Final)
    assert (body.payload, body.withheld) == (b"", expected)
    assert finalization.reason == expected and finalization.assessed
    assert context.out.log_events == [("withheld", {"reason": expected})]


def test_exactly_as_many_as_agreed_are_enough() -> None:
    finalization, context = ending(replace(SESSION, min_participants=3))
    finalization.seal({})
    for party in (1, 2):
        context.signed_items.add(digest(party))
    finalization.publish_or_withhold("")
    assert read(context.ledger.signed["final"], Final).payload


def test_what_was_said_before_a_restart_is_taken_up() -> None:
    before, context = ending()
    before.seal({})
    before.publish_or_withhold("its loss is too large")
    again, fresh_context = ending()
    fresh_context.ledger = context.ledger
    again.recover()
    assert again.reason == "its loss is too large" and not again.has_final_message
    held = fresh_context.signed_items.by_kind
    assert set(held["digest"]) == set(held["final"]) == {0} and not fresh_context.out.records


# --- the result -----------------------------------------------------------------------------------------------------


def decided(
    finals: dict[int, Item], counted: set[int], digests: set[int] | None = None, *, least: int = 2
) -> tuple[Finalization, PartyContext]:
    """Hold digests of all and these final messages, and a decision for some of them."""
    finalization, context = ending(replace(SESSION, min_participants=least))
    for party in range(N):
        context.signed_items.add(digest(party))
    for message in finals.values():
        context.signed_items.add(message)
    vote = Vote(bits(set(range(N)) if digests is None else digests, N), bits(counted, N))
    context.signed_items.add(item(1, "decision", vote))
    return finalization, context


FINALS = {party: final(party, [10 * party, -party, 2**40]) for party in range(N)}


def test_a_result_is_the_sum_of_the_decided_final_messages() -> None:
    finalization, _ = decided(FINALS, {0, 1, 3})
    assert finalization.apply_decision() and finalization.decided
    result = finalization.result
    assert result is not None and result.finals == {0, 1, 3}
    assert result.total.tolist() == [40, -4] and result.weight == 3 * 2**40
    assert result.realized.execution.published.tolist() == [True, True, False, True]
    assert finalization.reason == ""
    assert not finalization.apply_decision()  # once


def test_withheld_messages_and_those_without_a_digest_do_not_count() -> None:
    finals = FINALS | {1: final(1, withheld="too much")}
    finalization, _ = decided(finals, {0, 1, 2, 3}, {0, 1, 2})
    assert finalization.apply_decision() and finalization.result is not None
    assert finalization.result.finals == {0, 2} and finalization.result.total.tolist() == [20, -2]
    assert finalization.result.realized.reported == {0, 1, 2}


def test_nothing_is_decided_before_there_is_a_decision_and_all_that_it_counts() -> None:
    finalization, context = ending()
    for party in range(N):
        context.signed_items.add(digest(party))
    assert not finalization.apply_decision() and not finalization.decided
    waiting, context = decided({0: FINALS[0], 1: FINALS[1]}, {0, 1, 3})
    assert not waiting.apply_decision() and not waiting.decided
    context.signed_items.add(FINALS[3])
    assert waiting.apply_decision() and waiting.result is not None
    without, context = ending()
    for message in (*FINALS.values(), item(1, "decision", Vote(bits({0, 1, 2}, N), bits({0}, N)))):
        context.signed_items.add(message)
    assert not without.apply_decision()  # no digest is here


@pytest.mark.parametrize(("least", "there"), [(2, True), (3, False)])
def test_with_fewer_messages_than_agreed_there_is_no_result_and_it_says_why(least: int, there: bool) -> None:
    finals = FINALS | {2: final(2, withheld="too much"), 3: final(3, withheld="another reason")}
    finalization, _ = decided(finals, {0, 1, 2, 3}, least=least)
    assert finalization.apply_decision() and finalization.decided and (finalization.result is not None) is there
    told = "" if there else "a result needs at least 3 final messages, got 2; another reason"
    assert finalization.reason == told


def test_an_own_reason_stays_whether_there_is_a_result_or_not() -> None:
    for least in (2, 4):
        finalization, context = ending(replace(SESSION, min_participants=least))
        finalization.seal({})
        for party in range(1, N):
            context.signed_items.add(digest(party))
        finalization.publish_or_withhold("my own loss")
        for party in (1, 2, 3):
            context.signed_items.add(FINALS[party])
        context.signed_items.add(item(1, "decision", Vote(bits(set(range(N)), N), bits(set(range(N)), N))))
        assert finalization.apply_decision() and finalization.reason == "my own loss"
