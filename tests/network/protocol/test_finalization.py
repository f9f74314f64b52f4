"""The end of one party's session, step by step: what is written before it is said, and what makes up a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from helpers.endings import (
    DIGESTS,
    LAST,
    N,
    all_deposited,
    answer,
    committed,
    dealing,
    decide,
    deposit,
    digest,
    ending,
    in_cohort,
    item,
    key,
    opened,
    proposal,
    refusal,
)
from helpers.ledgers import SESSION, fresh
from helpers.trustee_keys import in_common, secrets_of
from inca.network.protocol.agreement.public_randomness import SECRET_BYTES, beacon_commitment
from inca.network.protocol.context import PartyContext
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import ACKED, BACK, NOBODY, Item, Lock, Proposal, pack, unpack
from inca.network.protocol.opening.cohort_keys import COHORTS, proves
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.realized_execution import Contradiction
from inca.network.protocol.records import Accepted, Decided, Erased, Kept, Sealed, Secret, Signed
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.signed_items import Digest, Key, Refusal, printable, read
from inca.protocol.topup import TopUp

# --- the digest -----------------------------------------------------------------------------------------------------


def test_a_balance_is_sealed_and_its_digest_signed_before_anyone_sees_it_and_both_once() -> None:
    finalization, context = ending()
    finalization.seal()
    sealed, signed = context.out.records
    assert sealed == Sealed() and isinstance(signed, Signed) and context.ledger.sealed
    told = read(signed.item, Digest)
    assert told.account == context.ledger.account
    assert told.commitment == beacon_commitment(SESSION.id, 0, context.ledger.beacon_secret)
    assert context.signed_items.by_kind["digest"] == {0: signed.item}
    finalization.seal()
    assert len(context.out.records) == 2  # nothing is said twice


def test_a_digest_has_the_keys_of_all_cohorts_of_secrets_that_are_durable_already() -> None:
    finalization, context = ending()
    durable = context.ledger.secrets
    assert durable is not None
    finalization.seal()
    keys = read(context.ledger.own_items["digest", None], Digest).keys
    assert len(set(keys)) == len(keys) == COHORTS
    assert all(proves(durable.advanced(number).private_key, public) for number, public in enumerate(keys))


@pytest.mark.parametrize(
    ("late", "rounds", "told"), [(False, [], True), (True, [], False), (True, [1], True), (True, [3, 4], True)]
)
def test_only_whoever_came_late_and_was_there_in_no_round_makes_no_digest(
    late: bool, rounds: list[int], told: bool
) -> None:
    finalization, context = ending(late=late, rounds=rounds)
    finalization.seal()
    assert context.ledger.sealed and (("digest", None) in context.ledger.own_items) is told


# --- deposit, or refuse ---------------------------------------------------------------------------------------------


def test_the_loss_is_asked_for_on_the_execution_of_the_cohort_with_all_else_undone() -> None:
    finalization, context, _ = in_cohort(others=DIGESTS[:2])
    assert finalization.must_answer
    finalization.request_assessment()
    assert context.out.assess is not None and context.out.assess.cohort == {0, 1, 2}
    assert context.out.assess.execution.presence.row(LAST).tolist() == [True, True, True, False]
    assert context.out.assess is finalization.realized  # worked out once


def opened_by(cohort: Proposal, sealed: Item, trustees: Iterable[int], number: int = 0) -> bytes | None:
    """What some trustees find in a deposit."""
    of, body = dealing(cohort, sealed.party, number), read(sealed, Deposit)
    common = {party: in_common(body, secrets_of(party, number).private_key) for party in trustees}
    return of.opened(body, sealed.sealed, common)


def test_what_is_deposited_is_settled_topped_up_sealed_written_before_it_is_said_and_once() -> None:
    session = replace(SESSION, topup=TopUp(1.9 * 2.0**20, 2.0**20, colluders=1))
    finalization, context, cohort = in_cohort(session, DIGESTS[:2])
    answer(finalization)
    (signed,) = context.out.records
    assert isinstance(signed, Signed) and signed.cohort == 0 and signed.item.kind == "deposit"
    assert context.signed_items.by_kind["deposit"] == {0: signed.item} and not finalization.must_answer
    message = opened_by(cohort, signed.item, (0, 1))
    assert message is not None and message == opened_by(cohort, signed.item, (1, 2))
    settled = context.ledger.settled(frozenset({0, 1, 2}), set())
    numbers, weights = unpack(message[:-SECRET_BYTES], 3).tolist(), finalization.realized.execution.cohort_weights
    lacking = (1.9 * max(weights)) ** 2 - sum(weight**2 for weight in sorted(weights)[:2])
    sigma = math.ceil(2**20 * math.sqrt(lacking / 2))
    assert numbers == (settled + np.append(context.ledger.topup(sigma), 0)).tolist()
    assert settled.tolist() == context.ledger.injected.tolist()  # nobody has credited anything
    assert message[-SECRET_BYTES:] == context.ledger.beacon_secret
    for part in (message[:8], message[-SECRET_BYTES:]):
        assert part not in signed.item.sealed + signed.item.body  # before commit nobody sees it
    answer(finalization)
    answer(finalization, "too late to refuse")
    assert len(context.out.records) == 1 and not finalization.reason


def test_a_deposit_takes_back_what_nobody_of_the_cohort_has_credited_and_nothing_else() -> None:
    session = replace(SESSION, schedule="permutation")
    receiver = session.topology(bytes(32)).receivers[1][0]
    others = [digest(party, credited=[1] if party == receiver else []) for party in range(1, N)]
    finalization, context, cohort = in_cohort(session, others)
    answer(finalization)
    message = opened_by(cohort, context.ledger.own_items["deposit", 0], (1, 2, 3))
    assert message is not None
    left = unpack(message[:-SECRET_BYTES], 3)
    assert left.tolist() == (context.ledger.injected - context.ledger.share(1)).tolist()


def test_a_refusal_is_written_before_it_is_said_and_once() -> None:
    finalization, context, cohort = in_cohort()
    answer(finalization, "its loss is too large")
    (signed,) = context.out.records
    assert isinstance(signed, Signed) and signed.cohort == 0
    assert read(signed.item, Refusal) == Refusal(0, cohort.hash, "its loss is too large")
    assert context.signed_items.by_kind["refusal"] == {0: signed.item}
    assert not finalization.must_answer and finalization.reason == "its loss is too large"
    answer(finalization)
    assert len(context.out.records) == 1 and ("deposit", 0) not in context.ledger.own_items


def test_a_loss_on_a_cohort_that_is_looked_ahead_to_is_an_answer_once_it_is_decided() -> None:
    finalization, context = ending()
    finalization.seal()
    for entry in DIGESTS:
        context.signed_items.take(entry)
    cohort = proposal("cohort", [context.ledger.own_items["digest", None], *DIGESTS])
    finalization.look_ahead(cohort)
    asked_for = context.out.assess
    assert asked_for is not None
    finalization.assessed("", asked_for)
    assert not context.signed_items.by_kind["deposit"]  # nothing is said before it is decided
    decide(context, "cohort", [context.ledger.own_items["digest", None], *DIGESTS])
    finalization.apply_decisions()
    finalization.request_assessment()
    assert context.signed_items.by_kind["deposit"].keys() == {0}


def test_whoever_is_not_in_the_cohort_says_nothing_and_shows_no_key() -> None:
    finalization, context = ending()
    finalization.seal()
    for entry in DIGESTS:
        context.signed_items.take(entry)
    cohort = decide(context, "cohort", DIGESTS)
    assert finalization.apply_decisions() and not finalization.must_answer
    assert finalization.reason == "the others go on without this party: it was not there in time"
    deposits = [deposit(cohort, party) for party in (1, 2, 3)]
    for entry in deposits:
        context.signed_items.take(entry)
    decide(context, "commit", deposits)
    assert finalization.apply_decisions() and finalization.last_step == "commit"
    assert not context.signed_items.by_kind["key"] and not finalization.open()
    for party in (1, 2):
        context.signed_items.take(key(party))
    assert finalization.open() and finalization.result is not None  # and yet it has the result
    assert finalization.reason == "the others go on without this party: it was not there in time"


def test_whoever_has_erased_its_secrets_refuses() -> None:
    finalization, context, _ = in_cohort()
    context.record(Erased())
    answer(finalization)
    assert read(context.ledger.own_items["refusal", 0], Refusal).reason == "its secrets for this cohort are erased"


def test_long_or_ugly_reasons_are_shortened_before_others_see_them() -> None:
    finalization, context, _ = in_cohort()
    answer(finalization, "too much\n\x1b[2J" + 300 * "x")
    told = read(context.ledger.own_items["refusal", 0], Refusal).reason
    assert told == "too much??[2J" + 187 * "x" and len(told) == 200 and told == printable(told)


# --- a smaller cohort -----------------------------------------------------------------------------------------------


def smaller(context: PartyContext, cohort: Proposal, parties: Iterable[int]) -> Proposal:
    """Let a smaller cohort be decided."""
    digests = context.signed_items.with_contents("digest", cohort.contents)
    return decide(context, "cohort", [entry for entry in digests if entry.party in set(parties)])


@pytest.mark.parametrize("parties", [(0, 1, 2), (1, 2, 3)], ids=["in it", "not in it"])
def test_a_smaller_cohort_erases_the_secrets_of_the_one_before_in_the_same_transaction(
    parties: tuple[int, ...],
) -> None:
    """Whoever is in it or not: else its key and its secret could be stolen, and another cohort opened beside it."""
    finalization, context, cohort = in_cohort()
    answer(finalization)
    before = context.ledger.secrets
    assert before is not None
    context.flush()
    smaller(context, cohort, parties)
    decided, secret = context.out.records
    assert isinstance(decided, Decided) and secret == Secret(1, before.advanced(1).state)
    assert not context.out.sends and context.ledger.secrets == before.advanced(1)
    assert finalization.apply_decisions()
    assert not any(isinstance(record, Secret) for record in context.out.records[2:])  # once


def test_for_a_smaller_cohort_everything_is_drawn_anew() -> None:
    """Were both opened, the same top-up would lay the party that was left out barer."""
    session = replace(SESSION, topup=TopUp(2.0**22, 2.0**20, colluders=1))
    finalization, context, cohort = in_cohort(session)
    answer(finalization)
    first = context.ledger.own_items["deposit", 0]
    message = opened_by(cohort, first, (0, 1, 2))
    later = smaller(context, cohort, (0, 1, 2))
    assert finalization.apply_decisions() and finalization.must_answer
    answer(finalization)
    second = context.ledger.own_items["deposit", 1]
    again = opened_by(later, second, (0, 1), number=1)
    assert message is not None and again is not None
    assert message[:16] != again[:16]  # nobody has credited anything, so that the top-up alone is different
    one, other = read(first, Deposit), read(second, Deposit)
    assert one.ephemeral != other.ephemeral and first.sealed != second.sealed and other.cohort == 1
    assert opened_by(cohort, first, (0, 1, 2), number=1) is None  # no later key opens it


def test_words_and_keys_of_an_earlier_cohort_are_forgotten() -> None:
    finalization, context, cohort, _ = all_deposited()
    smaller(context, cohort, (0, 1, 2))
    assert finalization.apply_decisions()
    items = context.signed_items
    assert not any(items.by_kind[kind] for kind in ("deposit", "refusal", "key"))
    assert not items.take(deposit(cohort, 1)) and not items.take(refusal(cohort, 3))
    assert not items.by_kind["deposit"] and not items.by_kind["refusal"]


def test_a_restart_erases_what_a_decision_that_was_written_alone_should_have_erased() -> None:
    finalization, context, cohort = in_cohort()
    answer(finalization)
    smaller(context, cohort, (0, 1, 2))
    held = context.ledger.secrets
    context.ledger.secrets = fresh(SESSION).secrets  # as if the second record had been lost
    again, later = ending()
    later.ledger = later.signed_items.ledger = context.ledger
    again.recover()
    assert later.ledger.secrets == held and [type(record) for record in later.out.records] == [Secret]


# --- what was said before a restart ---------------------------------------------------------------------------------


def restarted(context: PartyContext) -> tuple[Finalization, PartyContext]:
    """The next life of a party with the ledger of this one."""
    again, later = ending()
    later.ledger = later.signed_items.ledger = context.ledger
    again.recover()
    return again, later


def test_what_was_said_before_a_restart_is_taken_up() -> None:
    before, context, cohort = in_cohort()
    answer(before, "its loss is too large")
    again, later = restarted(context)
    assert again.reason == "its loss is too large"
    # Its own, and those that were decided on, though it had not accepted them.
    assert later.signed_items.by_kind["digest"] == {
        0: context.ledger.own_items["digest", None],
        **{entry.party: entry for entry in context.ledger.kept},
    }
    assert {entry.party for entry in context.ledger.kept} == cohort.parties - {0}
    assert again.apply_decisions() and again.cohort == cohort and not again.must_answer
    assert later.signed_items.by_kind["refusal"] == {0: context.ledger.own_items["refusal", 0]}
    assert not later.out.records


def test_a_deposit_is_the_same_after_a_restart_and_shows_what_is_committed_to() -> None:
    before, context, _, deposits = all_deposited()
    decide(context, "commit", deposits)
    assert before.apply_decisions()
    again, later = restarted(context)
    assert again.apply_decisions() and again.last_step == "commit"
    assert sorted(later.signed_items.by_kind["deposit"].values(), key=lambda held: held.party) == deposits
    shown = later.signed_items.by_kind["key"]
    assert shown == context.signed_items.by_kind["key"] and shown.keys() == {0}


def test_keys_that_were_used_are_durable_so_that_a_restart_has_the_same_end() -> None:
    before, context, _ = opened({1: (5, 7, WEIGHT)})
    kept = [one for record in context.flush().records if isinstance(record, Kept) for one in record.items]
    assert {one.kind for one in kept} == {"key"} and len(kept) >= 2  # its own is derived
    again, later = restarted(context)
    assert again.apply_decisions() and again.open()
    assert before.result is not None and again.result is not None
    assert again.result.total.tolist() == before.result.total.tolist() and not later.out.records


@pytest.mark.parametrize("erased", [False, True])
def test_a_replay_bears_the_absence_of_erased_secrets(erased: bool) -> None:
    """It is then no trustee any more, and deposits nothing; what it has deposited stands."""
    _, context, _, deposits = all_deposited()
    context.record(Accepted(1, Lock(9, proposal("commit", deposits), []), deposits[1:]))
    if erased:
        context.ledger.apply(Erased())
    decide(context, "commit", deposits)
    again, later = restarted(context)
    assert again.apply_decisions() and again.last_step == "commit"
    assert (0 in later.signed_items.by_kind["key"]) is not erased
    for party in (1, 2, 3):
        later.signed_items.take(key(party))
    assert again.open() and again.result is not None and again.result.realized.cohort == set(range(N))


# --- commit, and keys -----------------------------------------------------------------------------------------------


def test_no_key_is_shown_before_commit_is_decided_and_all_that_it_names_is_held() -> None:
    finalization, context, cohort, deposits = all_deposited()
    items = context.signed_items
    assert not items.by_kind["key"]
    other = deposit(cohort, 3, [1, 2, WEIGHT])
    decide(context, "commit", [*deposits[:3], other])
    assert not finalization.apply_decisions() and finalization.lacking == [(3, other.hash)]
    assert not items.by_kind["key"] and finalization.unfinished
    assert items.take(other) and finalization.apply_decisions()
    assert items.by_kind["key"].keys() == {0} and items.by_kind["deposit"][3] == other  # that one counts from now on
    shown = read(items.by_kind["key"][0], Key)
    assert shown == Key(0, secrets_of(0).private_key)


def test_what_commit_names_is_durable_before_the_key_is_shown() -> None:
    finalization, context, _, deposits = all_deposited()
    context.flush()
    decide(context, "commit", deposits)
    finalization.apply_decisions()
    kept = [one for record in context.out.records if isinstance(record, Kept) for one in record.items]
    assert kept == deposits[1:] and all(one.sealed for one in kept)


def test_whoever_has_accepted_the_deposits_does_not_write_them_again() -> None:
    finalization, context, _, deposits = all_deposited()
    commit = proposal("commit", deposits)
    context.record(Accepted(1, Lock(9, commit, []), deposits[1:]))
    decide(context, "commit", deposits)
    context.flush()
    assert finalization.apply_decisions() and not context.out.records


@pytest.mark.parametrize("keys", range(N))
def test_deposits_are_opened_by_as_many_keys_as_the_threshold_and_by_no_fewer(keys: int) -> None:
    finalization, context, _ = committed()
    for party in range(1, keys + 1):
        context.signed_items.take(key(party))
    threshold = 3
    assert context.trustees(range(N)).threshold == threshold
    assert finalization.keys == (1 + keys, threshold)
    assert finalization.missing_keys == (set(range(keys + 1, N)) if 1 + keys < threshold else set())
    assert finalization.open() is (1 + keys >= threshold)
    assert (finalization.result is not None) is finalization.opened is not finalization.unfinished
    assert not finalization.open()  # once


# --- unfinished -----------------------------------------------------------------------------------------------------


def test_whoever_has_accepted_commit_keeps_its_secrets_until_it_knows_the_outcome() -> None:
    finalization, context, cohort, deposits = all_deposited()
    held = context.ledger.secrets
    context.record(Accepted(1, Lock(9, proposal("commit", deposits), []), deposits[1:]))
    assert finalization.unfinished
    context.flush()
    finalization.forget()
    assert not context.out.records and context.ledger.secrets == held
    smaller(context, cohort, (0, 1, 2))  # that was decided after all
    assert not finalization.unfinished and context.ledger.secrets == secrets_of(0, 1)
    finalization.forget()
    assert context.ledger.secrets is None


def test_whoever_knows_of_commit_keeps_its_secrets_before_and_after_the_result() -> None:
    """Others may still need its key."""
    finalization, context, _ = committed()
    assert finalization.unfinished
    finalization.forget()
    assert context.ledger.secrets is not None
    for party in (1, 2, 3):
        context.signed_items.take(key(party))
    assert finalization.open() and not finalization.unfinished
    finalization.forget()
    assert context.ledger.secrets is not None


@pytest.mark.parametrize("deposited", [True, False])
def test_an_end_without_commit_erases_all_secrets(deposited: bool) -> None:
    finalization, context, _ = in_cohort()
    answer(finalization, "" if deposited else "too much")
    assert not finalization.unfinished
    context.flush()
    finalization.forget()
    assert context.out.records == [Erased()] and context.ledger.secrets is None
    finalization.forget()
    assert len(context.out.records) == 1


# --- the result -----------------------------------------------------------------------------------------------------


def with_own(own: Iterable[int], others: Mapping[int, Iterable[int]]) -> Finalization:
    """Let party 0 deposit these numbers, too."""
    finalization, context, cohort = in_cohort()
    assert context.ledger.secrets is not None
    message = pack(np.array(list(own), dtype=np.int64)) + context.ledger.beacon_secret
    body, sealed = dealing(cohort, 0).deal(context.ledger.secrets.dealing, message)
    context.publish_once("deposit", body, sealed=sealed, cohort=0)
    for party, numbers in others.items():
        context.signed_items.take(deposit(cohort, party, numbers))
    decide(context, "commit", context.signed_items.by_kind["deposit"].values())
    finalization.apply_decisions()
    for party in (1, 2, 3):
        context.signed_items.take(key(party))
    assert finalization.open()
    return finalization


def test_a_result_is_the_sum_of_what_was_deposited() -> None:
    finalization = with_own((0, 0, WEIGHT), {party: (10 * party, -party, WEIGHT) for party in (1, 2, 3)})
    result = finalization.result
    assert result is not None and result.realized.cohort == set(range(N)) and result.exact
    assert result.total.tolist() == [60, -6] and result.weight == N * WEIGHT
    assert finalization.reason == "" and finalization.lie is None and finalization.opened


def test_shares_of_any_size_cancel_modulo_2_to_the_64() -> None:
    """A liar's large offer makes honest messages large: they are sealed, opened and added up all the same."""
    large = {1: (2**63 - 1, -(2**63), WEIGHT), 2: (-(2**63), 2**63 - 1, WEIGHT), 3: (6, -4, WEIGHT)}
    result = with_own((0, 0, WEIGHT), large).result
    assert result is not None and result.total.tolist() == [5, -5] and result.weight == N * WEIGHT


@pytest.mark.parametrize(
    "lie",
    [
        [0, 0, -3 * WEIGHT],  # together 0
        [0, 0, -4 * WEIGHT],
        [0, 0, 2 * WEIGHT],  # more than all together can have
        [2**62 - 1, 0, WEIGHT],
        [0, -(2**62) + 1, WEIGHT],
        [-(2**63), 0, WEIGHT],
    ],
    ids=str,
)
def test_a_total_that_no_honest_parties_can_hold_gives_a_reason_and_names_nobody(lie: list[int]) -> None:
    finalization = with_own(lie, dict.fromkeys((1, 2, 3), (0, 0, WEIGHT)))
    assert finalization.result is None and finalization.lie is None and finalization.opened
    told = "the final messages do not add up to what honest parties can hold: someone has lied, and nobody can tell who"
    assert finalization.reason == told


def test_a_weight_that_is_not_what_the_cohort_injected_is_not_exact() -> None:
    result = with_own((0, 0, WEIGHT), {1: (0, 0, WEIGHT), 2: (0, 0, WEIGHT - 1), 3: (0, 0, WEIGHT)}).result
    assert result is not None and not result.exact and result.weight == N * WEIGHT - 1
    assert not result.realized.contradictions


def test_what_a_cohort_injects_follows_from_the_rounds_it_was_there() -> None:
    absent = [digest(1), digest(2, [1, 4]), digest(3)]
    injected = 3 * WEIGHT // SESSION.pieces  # in round 0, and in two more
    assert 0 < injected < WEIGHT
    for weight, exact in ((injected, True), (WEIGHT, False)):
        finalization, *_ = opened({2: (20, -2, weight)}, absent)
        assert finalization.result is not None and finalization.result.exact is exact


def transfer(sender: int) -> tuple[int, int]:
    """A round and a receiver that the schedule has for a sender, neither of them party 0."""
    topology = SESSION.topology(bytes(32))
    return next((t, j) for t in range(1, LAST + 1) if (j := topology.receivers[t][sender]) != 0)


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
    digests[receiver] = digest(receiver, credited=[t] if credited else [])
    finalization, *_ = opened({}, digests.values())
    assert finalization.result is not None
    named = () if claim is None else (Contradiction(t, 1, receiver, claim),)
    assert finalization.result.realized.contradictions == named
    assert finalization.result.exact is (claim is None)


def test_an_own_refusal_stays_the_reason_even_if_there_is_a_result_and_after_a_restart() -> None:
    finalization, context, cohort = in_cohort()
    answer(finalization, "my own loss")
    later = smaller(context, cohort, (1, 2, 3))
    assert finalization.apply_decisions()
    deposits = [deposit(later, party, number=1) for party in (1, 2, 3)]
    for entry in [*deposits, key(1, 1), key(2, 1)]:
        context.signed_items.take(entry)
    decide(context, "commit", deposits)
    assert finalization.apply_decisions() and finalization.open() and finalization.result is not None
    assert finalization.reason == "my own loss" and finalization.result.realized.cohort == {1, 2, 3}
    again, _ = restarted(context)
    assert again.apply_decisions() and again.open() and again.reason == "my own loss"


# --- a lie ----------------------------------------------------------------------------------------------------------


def garbage(cohort: Proposal, party: int) -> Item:
    """A deposit whose shares are those of no secret."""
    honest = deposit(cohort, party)
    body = read(honest, Deposit)
    damaged = Deposit(body.cohort, body.hash, body.sealed, body.ephemeral, bytes(len(body.shares)))
    return item(party, "deposit", damaged, honest.sealed)


def lied(liars: Iterable[int], keys: Iterable[int]) -> tuple[Finalization, PartyContext]:
    finalization, context, cohort = in_cohort()
    answer(finalization)
    for party in (1, 2, 3):
        context.signed_items.take(garbage(cohort, party) if party in set(liars) else deposit(cohort, party))
    decide(context, "commit", context.signed_items.by_kind["deposit"].values())
    assert finalization.apply_decisions()
    for party in keys:
        context.signed_items.take(key(party))
    assert finalization.open()
    return finalization, context


@pytest.mark.parametrize("keys", [(1, 2), (1, 3), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize(("liars", "named"), [((2,), 2), ((3,), 3), ((1, 3), 1), ((3, 2), 2), ((1, 2, 3), 1)])
def test_the_lowest_liar_is_named_whoever_has_shown_its_key(
    liars: tuple[int, ...], named: int, keys: tuple[int, ...]
) -> None:
    finalization, _ = lied(liars, keys)
    assert finalization.result is None and finalization.lie is not None and finalization.lie.party == named
    assert f"party {named} has lied, which is proven" in finalization.reason and "anew" in finalization.reason
    assert finalization.opened and not finalization.unfinished


def test_the_proof_of_a_lie_convinces_whoever_checks_it_and_names_nobody_else() -> None:
    finalization, context = lied((2,), (1, 3))
    assert finalization.lie is not None and finalization.cohort is not None
    by_kind = {kind: [i for i in finalization.lie.evidence if i.kind == kind] for kind in ("deposit", "key", "digest")}
    assert sum(map(len, by_kind.values())) == len(finalization.lie.evidence)
    (convicting,), keys = by_kind["deposit"], {shown.party: read(shown, Key).private for shown in by_kind["key"]}
    assert convicting.party == 2 and keys.keys() == {0, 1, 3}
    assert all(context.signed_items.proves(one.party, one.proof) for one in finalization.lie.evidence)
    named = proposal("cohort", by_kind["digest"])
    assert read(convicting, Deposit).hash == named.hash and named.parties == set(range(N))
    for told in by_kind["digest"]:
        if told.party in keys:
            assert proves(keys[told.party], read(told, Digest).keys[0])
    of = dealing(finalization.cohort, 2)
    assert of.proves_lie(read(convicting, Deposit), convicting.sealed, keys)
    honest = context.signed_items.by_kind["deposit"][1]
    assert not dealing(finalization.cohort, 1).proves_lie(read(honest, Deposit), honest.sealed, keys)
