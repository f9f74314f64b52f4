"""What may be decided when: a cohort, then commit to its deposits or a smaller cohort; and whom nobody leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.endings import (
    LAST,
    N,
    all_deposited,
    answer,
    committed,
    decide,
    deposit,
    digest,
    ending,
    in_cohort,
    proposal,
    refusal,
)
from helpers.examples import examples
from helpers.ledgers import SESSION
from inca.errors import InvalidPeerMessage
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import ACKED, Item, Proposal, Step
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.session import SessionConfig

SIX = replace(SESSION, parties=6)


def without_seal(session: SessionConfig = SESSION) -> tuple[Agenda, PartyContext]:
    """Party 0 before it has made a digest."""
    _, context = ending(session)
    return Agenda(context), context


def take(context: PartyContext, items: Iterable[Item]) -> None:
    for item in items:
        context.signed_items.take(item)


def cohort_of(*parties: int) -> Proposal:
    return Proposal("cohort", [(party, bytes(32)) for party in parties])


# --- own proposals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("present", [[], [1, 2], [LAST], list(range(1, LAST + 1))])
def test_a_cohort_are_those_whose_digests_say_that_they_were_there_in_the_last_round(present: list[int]) -> None:
    agenda, context = without_seal(SIX)
    assert agenda.propose(0.0) is None
    digests = [digest(party, present if party == 1 else None) for party in (1, 2, 3, 4)]
    take(context, digests)
    assert agenda.propose(0.0) == proposal("cohort", digests if LAST in present else digests[1:])


def test_whoever_has_signed_two_digests_is_in_the_cohort_with_the_one_that_came_first() -> None:
    """It harms nobody but itself; and nobody could leave it out on purpose."""
    agenda, context = without_seal(SIX)
    digests = [digest(party) for party in (1, 2, 3)]
    take(context, [*digests, digest(3, fates={1: ACKED})])
    assert context.signed_items.two_faced("digest") == {3}
    assert agenda.propose(0.0) == proposal("cohort", digests)


@pytest.mark.parametrize(("least", "colluders", "needed"), [(3, 1, 3), (4, 1, 4), (2, 2, 4), (2, 1, 3)])
def test_a_cohort_has_as_many_parties_as_agreed_and_two_beside_those_who_may_collude(
    least: int, colluders: int, needed: int
) -> None:
    agenda, context = without_seal(replace(SIX, min_participants=least, colluders=colluders))
    digests = [digest(party) for party in range(1, 6)]
    take(context, digests[: needed - 1])
    assert agenda.propose(0.0) is None
    take(context, digests[needed - 1 : needed])
    assert agenda.propose(0.0) == proposal("cohort", digests[:needed])


def test_words_on_other_cohorts_mean_nothing() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    answer(finalization)
    other = cohort_of(0, 1, 2, 3)
    take(context, [deposit(cohort, 1, number=1), deposit(other, 2), deposit(cohort, 3)])
    assert set(context.signed_items.by_kind["deposit"]) == {0, 3} and agenda.propose(10.0) is None
    assert agenda.propose(50.0) is None  # two are no cohort


def test_commit_names_the_deposits_of_all_by_their_hashes() -> None:
    _, context, cohort, deposits = all_deposited()
    commit = Agenda(context).propose(0.0)
    assert commit == proposal("commit", deposits) and commit.parties == cohort.parties
    assert commit.contents != cohort.contents


def test_a_smaller_cohort_is_proposed_once_someone_refuses_or_is_gone() -> None:
    session = replace(SESSION, parties=5)
    finalization, context, cohort = in_cohort(session, [digest(party) for party in range(1, 5)])
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    answer(finalization)
    take(context, [deposit(cohort, party, session=session) for party in (1, 2)])
    take(context, [refusal(cohort, 3)])
    assert agenda.propose(49.9) is None  # party 4 may still say something
    smaller = Proposal("cohort", cohort.contents[:3])
    assert agenda.propose(50.0) == smaller
    context.mark_down(4, 40.0)
    context.mark_down(4, 40.9)
    assert agenda.propose(49.9) is None
    context.mark_down(4, 41.0)
    assert agenda.propose(49.9) == smaller


def test_nothing_is_proposed_after_commit() -> None:
    _, context, _ = committed()
    assert Agenda(context).propose(1e9) is None


# --- what may follow what ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "parties", "follows"),
    [
        ("commit", (0, 1, 2, 3), True),
        ("commit", (0, 1, 2), False),
        ("cohort", (0, 1, 2), True),
        ("cohort", (1, 2, 3), True),
        ("cohort", (1, 2), False),
        ("cohort", (0, 1, 2, 3), False),
    ],
)
def test_only_commit_or_a_smaller_cohort_follows_a_cohort(step: Step, parties: tuple[int, ...], follows: bool) -> None:
    _, context, cohort = in_cohort()
    proposed = Proposal(step, [entry for entry in cohort.contents if entry[0] in parties])
    if follows:
        Agenda(context).check(proposed)
    else:
        with pytest.raises(InvalidPeerMessage):
            Agenda(context).check(proposed)


def test_a_smaller_cohort_has_the_digests_of_the_one_before() -> None:
    _, context, cohort = in_cohort()
    other = [*cohort.contents[:2], (3, bytes(32))]
    with pytest.raises(InvalidPeerMessage, match="does not follow what was decided"):
        Agenda(context).check(Proposal("cohort", other))


def test_commit_needs_a_cohort() -> None:
    agenda, _ = without_seal()
    with pytest.raises(InvalidPeerMessage, match="a commit that does not follow"):
        agenda.check(Proposal("commit", cohort_of(0, 1, 2).contents))


def test_after_commit_nothing_follows() -> None:
    """Else messages for two cohorts might be opened."""
    _, context, cohort = committed()
    agenda = Agenda(context)
    for refused in (Proposal("cohort", cohort.contents[1:]), Proposal("commit", cohort.contents)):
        with pytest.raises(InvalidPeerMessage, match="does not follow what was decided"):
            agenda.check(refused)


def test_a_session_has_no_more_cohorts_than_a_digest_has_keys() -> None:
    parties = COHORTS + 4
    session = replace(SESSION, parties=parties)
    _, context = ending(session)
    digests = [digest(party) for party in range(parties)]
    for number in range(COHORTS):
        agenda = Agenda(context)
        agenda.check(proposal("cohort", digests[number:]))
        decide(context, "cohort", digests[number:])
    with pytest.raises(InvalidPeerMessage, match="does not follow what was decided"):
        Agenda(context).check(proposal("cohort", digests[COHORTS:]))
    Agenda(context).check(Proposal("commit", proposal("commit", digests[COHORTS - 1 :]).contents))


def test_a_cohort_must_have_as_many_trustees_as_open_its_deposits() -> None:
    """Above a thousand parties trustees are drawn among all, and may be missing."""
    session = replace(SESSION, parties=1001, colluders=100, leavers=100)
    agenda, context = without_seal(session)
    everyone = context.trustees(range(1001))
    others = sorted(set(range(1001)) - set(everyone.members))
    few, enough = everyone.members[: everyone.threshold - 1], everyone.members[: everyone.threshold]
    agenda.check(cohort_of(*sorted([*others, *enough])))
    with pytest.raises(InvalidPeerMessage, match="enough trustees"):
        agenda.check(cohort_of(*sorted([*others, *few])))


@pytest.mark.parametrize("parties", [(1, 0, 2), (0, 1, 1, 2), (0, 1, 2, N), (0, 1)])
def test_a_proposal_names_enough_parties_of_the_session_once_and_in_order(parties: tuple[int, ...]) -> None:
    _, context = ending()
    Agenda(context).check(cohort_of(*range(N)))
    with pytest.raises(InvalidPeerMessage, match="a proposal must"):
        Agenda(context).check(cohort_of(*parties))
    for size in (31, 33):
        with pytest.raises(InvalidPeerMessage, match="by hashes of 32 bytes"):
            Agenda(context).check(Proposal("cohort", [(0, bytes(32)), (1, bytes(size)), (2, bytes(32))]))


# --- what a proposal rests on -----------------------------------------------------------------------------------------


def test_a_smaller_cohort_rests_on_digests_and_commit_on_deposits() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    answer(finalization)
    deposits = [deposit(cohort, party) for party in range(1, N)]
    own = context.ledger.own_items["deposit", 0]
    smaller, commit = Proposal("cohort", cohort.contents[:3]), proposal("commit", [own, *deposits])
    assert agenda.lacks(smaller, 1) == []  # digests are here, whoever has made a deposit
    assert agenda.lacks(commit, 1) == commit.contents[1:]
    take(context, deposits)
    assert agenda.lacks(commit, 1) == []
    assert agenda.behind(commit) == deposits  # whoever proposes it again must show them
    assert agenda.behind(smaller) == []  # what was decided is durable already


def test_a_digest_of_a_party_that_was_not_there_in_the_last_round_does_not_fit() -> None:
    agenda, context = without_seal(SIX)
    digests = [digest(1, [1, 2]), *(digest(party) for party in (2, 3, 4))]
    take(context, digests)
    assert not agenda.fits(proposal("cohort", digests)) and agenda.fits(proposal("cohort", digests[1:]))


# --- what others leave out --------------------------------------------------------------------------------------------


def test_a_first_cohort_leaves_out_nobody_whose_digest_is_here() -> None:
    """However late it is, and whatever else its owner has signed: else a proposer might choose a handful."""
    agenda, context = without_seal(SIX)
    agenda.patient_until = 50.0
    five = cohort_of(0, 1, 2, 3, 4)
    assert agenda.slights(49.9, five) and not agenda.slights(50.0, five)  # party 5 is silent
    take(context, [digest(5), digest(5, fates={1: ACKED})])
    assert agenda.slights(49.9, five) and agenda.slights(1e9, five)
    for when in (1.0, 9.0):
        context.mark_down(5, when)  # it has said all that it is needed for
    assert agenda.slights(1e9, five)


def test_a_first_cohort_may_leave_out_those_who_are_gone_or_were_absent_in_the_last_round() -> None:
    agenda, context = without_seal(SIX)
    agenda.patient_until = 50.0
    few = cohort_of(0, 1, 2, 3)
    context.mark_down(4, 40.0)
    take(context, [digest(5, [1, 2])])
    assert agenda.slights(49.9, few)
    context.mark_down(4, 41.0)
    assert not agenda.slights(49.9, few)


def test_a_smaller_cohort_may_leave_out_only_those_who_refuse_are_gone_or_silent_for_long() -> None:
    finalization, context, cohort = in_cohort(SIX, [digest(party) for party in range(1, 6)])
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    answer(finalization)
    smaller = Proposal("cohort", cohort.contents[:4])
    assert agenda.slights(49.9, smaller) and not agenda.slights(50.0, smaller)
    take(context, [refusal(cohort, 4)])
    for when in (5.0, 6.0):
        context.mark_down(5, when)
    assert not agenda.slights(10.0, smaller)
    take(context, [deposit(cohort, 5, session=SIX)])
    assert agenda.slights(10.0, smaller) and agenda.slights(1e9, smaller)


def test_commit_slights_nobody() -> None:
    _, context, _, deposits = all_deposited()
    assert not Agenda(context).slights(0.0, proposal("commit", deposits))


@given(st.sets(st.integers(0, 5)), st.sets(st.integers(1, 5)), st.sets(st.integers(1, 5)), st.booleans())
@examples(40, 200)
def test_nobody_who_has_spoken_is_left_out_whoever_else_is(
    named: set[int], spoken: set[int], gone: set[int], late: bool
) -> None:
    agenda, context = without_seal(SIX)
    agenda.patient_until = 50.0
    take(context, [digest(party) for party in sorted(spoken)])
    for when in (1.0, 9.0):
        for party in gone:
            context.mark_down(party, when)
    left_out = set(range(6)) - named
    harmless = left_out <= gone - spoken if not late else not left_out & spoken
    assert agenda.slights(60.0 if late else 40.0, cohort_of(*sorted(named))) is not harmless
