"""The end of one party's session, step by step: what is written before it is said, and what makes up a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from helpers.endings import DIGESTS, LAST, N, committed, decide, digest, ending, final, in_cohort, item
from helpers.ledgers import SESSION
from inca.errors import CannotJoin, InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization, injected_weight
from inca.network.protocol.messages import ACKED, BACK, NOBODY, Decision, Item, Proposal, unpack
from inca.network.protocol.realized_execution import Contradiction
from inca.network.protocol.records import Decided, Kept, Sealed, Signed
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.signed_items import Digest, Final, Ready, printable, read

# --- the digest -----------------------------------------------------------------------------------------------------


def test_a_balance_is_sealed_and_its_digest_signed_before_anyone_sees_it_and_both_once() -> None:
    finalization, context = ending()
    finalization.seal()
    sealed, signed = context.out.records
    assert sealed == Sealed() and isinstance(signed, Signed) and context.ledger.sealed
    assert read(signed.item, Digest).account == context.ledger.account
    assert context.signed_items.by_kind["digest"] == {0: signed.item}
    finalization.seal()
    assert len(context.out.records) == 2  # nothing is said twice


@pytest.mark.parametrize(
    ("late", "rounds", "told"), [(False, [], True), (True, [], False), (True, [1], True), (True, [3, 4], True)]
)
def test_only_whoever_came_late_and_was_there_in_no_round_makes_no_digest(
    late: bool, rounds: list[int], told: bool
) -> None:
    finalization, context = ending(late=late, rounds=rounds)
    finalization.seal()
    assert context.ledger.sealed and ("digest" in context.ledger.signed) is told


def test_a_digest_that_cannot_be_is_refused() -> None:
    finalization, _ = ending()
    with pytest.raises(InvalidPeerMessage, match="in increasing order"):
        finalization.check(2, digest(1, [2, 1]))
    finalization.check(2, digest(1))
    finalization.check(2, final(1, [1, 2, 3]))  # no digest


@pytest.mark.parametrize("named", [(), ("Ann", "Bob", "Cy", "Di")])
@pytest.mark.parametrize("unknown", [Item("digest", 99, b"", b""), Item("gift", 1, b"", b"")], ids=repr)
def test_an_item_of_nobody_is_refused_whatever_people_call_the_parties(unknown: Item, named: tuple[str, ...]) -> None:
    finalization, _ = ending(replace(SESSION, names=named))
    empty = Item(unknown.kind, unknown.party, digest(1).body, b"")
    with pytest.raises(InvalidPeerMessage, match="unknown kind"):
        finalization.check(2, empty)


def test_an_own_item_that_the_journal_lacks_means_that_it_is_behind() -> None:
    finalization, context = ending(replace(SESSION, names=("Ann", "Bob", "Cy", "Di")))
    finalization.seal()
    finalization.check(2, context.ledger.signed["digest"])
    for other in (digest(0), final(0, [1, 2, 3])):
        with pytest.raises(
            CannotJoin, match=f"the journal is behind: Cy has a {other.kind} of this party that it lacks"
        ):
            finalization.check(2, other)
        with pytest.raises(InvalidPeerMessage, match=f"a {other.kind} of this party that it has not signed"):
            finalization.check(2, Item(other.kind, 0, other.body, b"forged"))


# --- ready, or not --------------------------------------------------------------------------------------------------


def test_the_loss_is_asked_for_on_the_execution_of_the_cohort_with_all_else_undone() -> None:
    finalization, context, _ = in_cohort(others=DIGESTS[:2])
    assert finalization.must_answer
    finalization.request_assessment()
    assert context.out.assess is not None and context.out.assess.cohort == {0, 1, 2}
    assert context.out.assess.execution.presence.row(LAST).tolist() == [True, True, True, False]
    assert context.out.assess is finalization.realized  # worked out once


@pytest.mark.parametrize("refusal", ["", "its loss is too large"])
def test_a_word_on_a_cohort_is_written_before_it_is_said_and_once(refusal: str) -> None:
    finalization, context, cohort = in_cohort()
    finalization.answer(refusal)
    (signed,) = context.out.records
    assert isinstance(signed, Signed) and read(signed.item, Ready) == Ready(1, cohort.hash, refusal)
    assert context.signed_items.by_kind["ready"] == {0: signed.item}
    assert not finalization.must_answer and finalization.reason == refusal


def test_whoever_is_not_in_the_cohort_says_nothing_and_publishes_nothing() -> None:
    finalization, context = ending()
    finalization.seal()
    for entry in DIGESTS:
        context.signed_items.add(entry)
    decide(context, "cohort", DIGESTS)
    decide(context, "commit", DIGESTS)
    assert finalization.apply_decisions() and not finalization.must_answer
    finalization.publish()
    assert "final" not in context.ledger.signed
    assert finalization.reason == "the others go on without this party: it was not there in time"


def test_long_or_ugly_reasons_are_shortened_before_others_see_them() -> None:
    finalization, context, _ = in_cohort()
    finalization.answer("too much\n\x1b[2J" + 300 * "x")
    told = read(context.ledger.signed["ready"], Ready).refusal
    assert told == "too much??[2J" + 187 * "x" and len(told) == 200 and told == printable(told)


@pytest.mark.parametrize("refusal", [201 * "x", "\x1b[2J", "two\nlines", "\x00", "\u202e"], ids=ascii)
def test_reasons_that_are_too_long_or_not_printable_are_refused(refusal: str) -> None:
    _, context, cohort = in_cohort()
    with pytest.raises(InvalidPeerMessage, match="at most 200 printable characters"):
        context.signed_items.add(item(1, "ready", Ready(1, cohort.hash, refusal)))
    assert context.signed_items.add(item(1, "ready", Ready(1, cohort.hash, 200 * "x")))


def test_what_was_said_before_a_restart_is_taken_up() -> None:
    before, context, cohort = in_cohort()
    before.answer("its loss is too large")
    again, fresh_context = ending()
    fresh_context.ledger = context.ledger
    again.recover()
    assert again.reason == "its loss is too large"
    # Its own, and those that were decided on, though it had not accepted them.
    assert fresh_context.signed_items.by_kind["digest"] == {
        0: context.ledger.signed["digest"],
        **{entry.party: entry for entry in context.ledger.kept},
    }
    assert {entry.party for entry in context.ledger.kept} == cohort.parties - {0}
    assert again.apply_decisions() and again.cohort == cohort and not again.must_answer
    assert fresh_context.signed_items.by_kind["ready"] == {0: context.ledger.signed["ready"]}
    assert not fresh_context.out.records


# --- the settled final message --------------------------------------------------------------------------------------


def test_what_is_published_is_settled_topped_up_written_before_it_is_said_and_once() -> None:
    session = replace(SESSION, sigma_topup=(2**10, 2**20))
    finalization, context, _ = committed(session, DIGESTS[:2])
    finalization.publish()
    (signed,) = context.out.records
    assert isinstance(signed, Signed)
    message = unpack(read(signed.item, Final).payload, 3)
    settled = context.ledger.settled(frozenset({0, 1, 2}), set())
    assert message.tolist() == (settled + np.append(context.ledger.topup(2**20), 0)).tolist()
    assert settled.tolist() == context.ledger.injected.tolist()  # nobody has credited anything
    assert context.signed_items.by_kind["final"] == {0: signed.item}
    finalization.publish()
    assert len(context.out.records) == 1


def test_nothing_is_published_before_commit_or_after_a_refusal() -> None:
    finalization, context, _ = in_cohort()
    finalization.publish()
    finalization.answer("")
    finalization.publish()
    assert "final" not in context.ledger.signed
    refusing, context, _ = committed(refusal="too much")
    refusing.publish()
    assert "final" not in context.ledger.signed and refusing.reason == "too much"


# --- the result -----------------------------------------------------------------------------------------------------


def decided(finals: dict[int, Item], digests: Iterable[Item] = DIGESTS) -> tuple[Finalization, PartyContext]:
    """Hold these final messages, and let them be decided on."""
    finalization, context, _ = committed(others=digests)
    for message in finals.values():
        context.signed_items.add(message)
    decide(context, "result", finals.values())
    return finalization, context


FINALS = {party: final(party, [10 * party, -party, WEIGHT]) for party in range(N)}


def test_a_result_is_the_sum_of_the_decided_final_messages() -> None:
    finalization, _ = decided(FINALS)
    assert finalization.apply_decisions()
    result = finalization.result
    assert result is not None and result.published == set(range(N)) and not result.late and result.exact
    assert result.total.tolist() == [60, -6] and result.weight == N * WEIGHT
    assert finalization.reason == "" and finalization.last_step == "result"
    assert not finalization.apply_decisions()  # once


def test_whoever_has_not_published_is_late() -> None:
    finalization, _ = decided({party: FINALS[party] for party in (0, 1, 3)})
    finalization.apply_decisions()
    result = finalization.result
    assert result is not None and result.late == {2} and result.published == {0, 1, 3} and result.exact
    assert result.total.tolist() == [40, -4] and result.realized.execution.published.tolist() == [1, 1, 0, 1]
    assert result.realized.cohort == set(range(N))


@pytest.mark.parametrize(("published", "reason"), [((0, 1, 3), ""), ((1, 2, 3), "its loss was too large")])
def test_a_reason_is_forgotten_only_if_this_party_is_in_the_result(published: tuple[int, ...], reason: str) -> None:
    finalization, _ = decided({party: FINALS[party] for party in published})
    finalization.reason = "its loss was too large"
    finalization.apply_decisions()
    assert finalization.result is not None and finalization.reason == reason


def test_commit_names_nothing_that_must_be_kept_or_waited_for() -> None:
    finalization, context, cohort = in_cohort()
    finalization.answer("")
    context.record(Decided(Decision(9, Proposal("commit", cohort.contents), [])))
    assert finalization.lacking == [] and finalization.apply_decisions()
    assert not any(isinstance(record, Kept) for record in context.flush().records)


def test_a_decision_waits_for_all_that_it_names() -> None:
    finalization, context, _ = committed()
    for party in (0, 1):
        context.signed_items.add(FINALS[party])
    decide(context, "result", [FINALS[party] for party in (0, 1, 3)])
    assert not finalization.apply_decisions() and finalization.result is None
    assert finalization.lacking == [(3, FINALS[3].hash)]
    context.signed_items.add(final(3, [1, 1, 1]))  # another one of the same party, and yet another
    context.signed_items.add(final(3, [2, 2, 2]))
    assert not finalization.apply_decisions()
    context.signed_items.add(FINALS[3])
    assert finalization.apply_decisions() and finalization.result is not None
    assert finalization.result.total.tolist() == [40, -4]
    assert context.signed_items.by_kind["final"][3] == FINALS[3]  # that one is passed on from now on


@pytest.mark.parametrize("weight", [N * WEIGHT + 1, -N * WEIGHT - 1, 2**62 - 1, -(2**62) + 1])
def test_a_weight_that_no_party_can_have_is_refused(weight: int) -> None:
    _, context, _ = committed()
    with pytest.raises(InvalidPeerMessage, match="the weight of a message must be"):
        context.signed_items.add(final(1, [0, 0, weight]))


@pytest.mark.parametrize(
    "lie",
    [
        [0, 0, -3 * WEIGHT],  # together 0
        [0, 0, -4 * WEIGHT],
        [0, 0, 2 * WEIGHT],  # more than all together can have
        [2**62 - 1, 0, WEIGHT],
        [0, -(2**62) + 1, WEIGHT],
    ],
    ids=str,
)
def test_final_messages_that_do_not_add_up_give_a_reason_and_no_crash(lie: list[int]) -> None:
    finals = {**{party: final(party, [2**40, -(2**40), WEIGHT]) for party in (1, 2, 3)}, 0: final(0, lie)}
    finalization, _ = decided(finals)
    assert finalization.apply_decisions() and finalization.result is None
    told = "the final messages do not add up to what honest parties can hold: someone has lied, most likely party 0"
    assert finalization.reason == told


def test_a_weight_that_is_not_what_the_cohort_injected_is_not_exact() -> None:
    finalization, _ = decided({**FINALS, 2: final(2, [20, -2, WEIGHT - 1])})
    finalization.apply_decisions()
    result = finalization.result
    assert result is not None and not result.exact and result.weight == N * WEIGHT - 1
    assert not result.realized.contradictions


def test_what_a_cohort_injects_follows_from_the_rounds_it_was_there() -> None:
    absent = [digest(1), digest(2, [1, 4]), digest(3)]
    injected = injected_weight(2, SESSION.pieces)
    assert 0 < injected < WEIGHT
    for weight, exact in ((injected, True), (WEIGHT, False)):
        finalization, _ = decided({**FINALS, 2: final(2, [20, -2, weight])}, absent)
        finalization.apply_decisions()
        assert finalization.result is not None and finalization.result.exact is exact


def transfer(sender: int) -> tuple[int, int]:
    """A round and a receiver that the schedule has for a sender, neither of them party 0."""
    topology = SESSION.topology(bytes(32))
    return next((t, j) for t in range(1, LAST + 1) for j in topology.receivers[t][sender] if j not in (0, sender))


@pytest.mark.parametrize(
    ("fate", "credited", "claim"),
    [(ACKED, False, "acknowledged"), (BACK, True, "voided"), (NOBODY, True, "voided"), (ACKED, True, None)],
)
def test_accounts_that_contradict_each_other_are_named_and_the_result_is_not_exact(
    fate: int, credited: bool, claim: str | None
) -> None:
    t, receiver = transfer(1)
    digests = {party: digest(party) for party in (1, 2, 3)}
    digests[1] = digest(1, fates={t: fate})
    digests[receiver] = digest(receiver, credited=[(t, 1, 0)] if credited else [])
    finalization, _ = decided(FINALS, digests.values())
    assert finalization.apply_decisions() and finalization.result is not None
    named = () if claim is None else (Contradiction(t, 1, receiver, claim),)
    assert finalization.result.realized.contradictions == named
    assert finalization.result.exact is (claim is None)


@pytest.mark.parametrize(
    "balance", [[2**62, 0, 0], [0, -(2**62), 0], [0, 0, 99 * WEIGHT], [0, 0, -99 * WEIGHT]], ids=str
)
def test_an_own_part_that_no_honest_party_can_have_is_not_published(balance: list[int]) -> None:
    """A peer has sent what no honest party can hold, and this party was credited it: no crash, and a reason."""
    finalization, context, _ = committed()
    context.ledger.balance = np.array(balance, dtype=np.int64)
    context.ledger.outbox.clear()
    finalization.publish()
    assert "final" not in context.ledger.signed and "a peer has lied" in finalization.reason


def test_an_own_refusal_stays_the_reason_even_if_there_is_a_result() -> None:
    finalization, context, cohort = in_cohort()
    finalization.answer("my own loss")
    others = [entry for entry in cohort.contents if entry[0] != 0]
    context.record(Decided(Decision(9, Proposal("cohort", others), [])))
    context.record(Decided(Decision(9, Proposal("commit", others), [])))
    for party in (1, 2, 3):
        context.signed_items.add(FINALS[party])
    decide(context, "result", [FINALS[party] for party in (1, 2, 3)])
    assert finalization.apply_decisions() and finalization.result is not None
    assert finalization.reason == "my own loss" and finalization.result.published == {1, 2, 3}
