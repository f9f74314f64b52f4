"""What may be decided when: a cohort, then commit or a smaller cohort, then the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.endings import LAST, N, committed, digest, ending, in_cohort, item, proposal
from helpers.ledgers import SESSION
from inca.errors import InvalidPeerMessage
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.messages import ACKED, Proposal, Step, pack
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.signed_items import Final, Ready


@pytest.mark.parametrize("present", [[], [1, 2], [LAST], list(range(1, LAST + 1))])
def test_a_cohort_are_those_whose_digests_say_that_they_were_there_in_the_last_round(present: list[int]) -> None:
    _, context = ending()
    agenda = Agenda(context)
    assert agenda.propose(0.0) is None
    digests = [digest(1, present), digest(2), digest(3)]
    for entry in digests:
        context.signed_items.add(entry)
    assert agenda.propose(0.0) == proposal("cohort", digests if LAST in present else digests[1:])


def test_a_two_faced_party_is_not_proposed_and_fewer_than_agreed_never_are() -> None:
    _, context = ending(replace(SESSION, min_participants=3))
    agenda, digests = Agenda(context), [digest(party) for party in range(N)]
    for entry in digests:
        context.signed_items.add(entry)
    assert agenda.propose(0.0) == proposal("cohort", digests)
    context.signed_items.add(digest(3, fates={1: ACKED}))
    assert context.signed_items.two_faced("digest") == {3}
    assert agenda.propose(0.0) == proposal("cohort", digests[:3])
    context.signed_items.add(digest(2, fates={1: ACKED}))
    assert agenda.propose(0.0) is None


def test_words_on_other_cohorts_mean_nothing() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    finalization.answer("")
    for party, word in ((1, Ready(2, cohort.hash)), (2, Ready(0, cohort.hash)), (3, Ready(1, bytes(32)))):
        context.signed_items.add(item(party, "ready", word))
    assert set(context.signed_items.by_kind["ready"]) == {0, 3} and agenda.propose(10.0) is None
    assert agenda.propose(50.0) is None  # only this party is ready for this cohort
    assert agenda.lacks(Proposal("commit", cohort.contents), 1) == [e for e in cohort.contents if e[0] != 0]


def test_commit_once_all_are_ready_and_a_smaller_cohort_once_someone_refuses_or_is_gone() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    finalization.answer("")
    context.signed_items.add(item(1, "ready", Ready(1, cohort.hash)))
    context.signed_items.add(item(2, "ready", Ready(1, cohort.hash, "too much")))
    assert agenda.propose(49.9) is None  # party 3 may still say something
    smaller = Proposal("cohort", [entry for entry in cohort.contents if entry[0] < 2])
    assert agenda.propose(50.0) == smaller
    context.mark_down(3, 40.0)
    context.mark_down(3, 40.9)
    assert agenda.propose(49.9) is None
    context.mark_down(3, 41.0)
    assert agenda.propose(49.9) == smaller
    ready, context, cohort = in_cohort()
    ready.answer("")
    for party in (1, 2, 3):
        context.signed_items.add(item(party, "ready", Ready(1, cohort.hash)))
    assert Agenda(context).propose(0.0) == Proposal("commit", cohort.contents)


@pytest.mark.parametrize(
    ("step", "parties", "follows"),
    [
        ("commit", (0, 1, 2, 3), True),
        ("commit", (0, 1, 2), False),
        ("cohort", (0, 1, 2), True),
        ("cohort", (1, 2), True),
        ("cohort", (0, 1, 2, 3), False),
        ("cohort", (1,), False),
        ("result", (0, 1, 2, 3), False),
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


def test_a_result_waits_for_all_final_messages_but_not_for_those_who_are_gone_nor_for_ever() -> None:
    _, context, _ = committed()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    finals = [item(party, "final", Final(pack(np.array([party, 0, WEIGHT])), bytes(32))) for party in range(N)]
    for entry in finals[:3]:
        context.signed_items.add(entry)
    assert agenda.propose(49.9) is None
    assert agenda.propose(50.0) == proposal("result", finals[:3])
    for when in (5.0, 6.0):
        context.mark_down(3, when)
    assert agenda.propose(10.0) == proposal("result", finals[:3])
    context.mark_up(3)
    assert agenda.propose(10.0) is None
    context.signed_items.add(finals[3])
    assert agenda.propose(10.0) == proposal("result", finals)


def test_after_commit_no_other_cohort_and_no_other_commit_but_a_result_follows() -> None:
    """Else one party would publish for a cohort from which others settle it out."""
    _, context, cohort = committed()
    agenda = Agenda(context)
    for refused in (Proposal("cohort", cohort.contents[1:]), Proposal("commit", cohort.contents)):
        with pytest.raises(InvalidPeerMessage, match="does not follow what was decided"):
            agenda.check(refused)
    agenda.check(Proposal("result", cohort.contents[1:]))


def test_a_smaller_cohort_rests_on_digests_and_commit_on_the_words_of_all() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    finalization.answer("")
    smaller, commit = Proposal("cohort", cohort.contents[:3]), Proposal("commit", cohort.contents)
    assert agenda.lacks(smaller, 1) == []  # digests are here, whoever is ready
    assert agenda.lacks(commit, 1) == cohort.contents[1:]
    words = [item(party, "ready", Ready(1, cohort.hash)) for party in range(1, N)]
    for word in words:
        context.signed_items.add(word)
    assert agenda.lacks(commit, 1) == []
    assert agenda.behind(commit) == words  # whoever proposes it again must show them
    assert agenda.behind(smaller) == []  # what was decided is durable already


@pytest.mark.parametrize("parties", [(1, 0, 2), (0, 1, 1, 2), (0, 1, 2, N), (0,)])
def test_a_proposal_names_enough_parties_of_the_session_once_and_in_order(parties: tuple[int, ...]) -> None:
    _, context = ending()
    Agenda(context).check(cohort_of(*range(N)))
    with pytest.raises(InvalidPeerMessage, match="a proposal must"):
        Agenda(context).check(cohort_of(*parties))
    with pytest.raises(InvalidPeerMessage, match="by hashes of 32 bytes"):
        Agenda(context).check(Proposal("cohort", [(0, bytes(32)), (1, bytes(31)), (2, bytes(32))]))


# --- what others leave out ----------------------------------------------------------------------------------------


def test_a_first_cohort_may_leave_out_one_party_and_those_who_are_gone_absent_or_two_faced() -> None:
    """Until digests have been waited for: else one proposer might choose a handful while all others are there."""
    _, context = ending(replace(SESSION, parties=6))
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    few, some = cohort_of(0, 1, 2), cohort_of(0, 1, 2, 3, 4)
    assert agenda.slights(49.9, few) and not agenda.slights(50.0, few) and not agenda.slights(49.9, some)
    context.mark_down(3, 40.0)
    assert agenda.slights(49.9, few)
    context.mark_down(3, 41.0)
    assert agenda.slights(49.9, few)  # two are left out, and not known to be gone
    context.signed_items.add(digest(4, [1, 2]))
    assert not agenda.slights(49.9, few)


def cohort_of(*parties: int) -> Proposal:
    return Proposal("cohort", [(party, bytes(32)) for party in parties])


def test_a_smaller_cohort_may_leave_out_one_party_and_those_who_refuse_or_are_gone() -> None:
    finalization, context, cohort = in_cohort()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    finalization.answer("")
    smaller = Proposal("cohort", cohort.contents[:2])
    assert agenda.slights(10.0, smaller) and not agenda.slights(10.0, Proposal("cohort", cohort.contents[:3]))
    assert not agenda.slights(50.0, smaller)
    context.signed_items.add(item(2, "ready", Ready(1, cohort.hash)))
    assert agenda.slights(10.0, smaller)
    context.signed_items.add(item(3, "ready", Ready(1, cohort.hash, "too much")))
    assert not agenda.slights(10.0, smaller)


def test_a_result_may_leave_out_one_party_of_the_cohort_and_those_who_are_gone() -> None:
    _, context, cohort = committed()
    agenda = Agenda(context)
    agenda.patient_until = 50.0
    two = Proposal("result", cohort.contents[:2])
    assert agenda.slights(10.0, two) and not agenda.slights(50.0, two)
    assert not agenda.slights(10.0, Proposal("result", cohort.contents[1:]))
    for when in (5.0, 6.0):
        context.mark_down(3, when)
    assert not agenda.slights(10.0, two)
