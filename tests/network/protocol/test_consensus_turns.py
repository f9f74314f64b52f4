"""The turns of the consensus: whose it is, who is asked again, and a member that does not stop proposing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

from helpers.consensus_nodes import (
    EVERYONE,
    FIRST,
    ORDER,
    SESSION,
    N,
    ballot_of,
    cohort,
    lock,
    node,
    preparing,
    promise,
    propose,
    vote,
    yes,
)
from helpers.parties import foreign
from helpers.trustee_keys import keys_of
from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import (
    Accept,
    Account,
    Items,
    Message,
    Prepare,
    Proposal,
    Propose,
)
from inca.network.protocol.records import Promised
from inca.network.protocol.signed_items import Digest

ME, SECOND, LAST = 0, 2, 1  # party 3 is the first in order
OLD, NEW = ballot_of(SECOND), ballot_of(LAST)


def proposed(sends: list[tuple[int, Message]]) -> list[Propose]:
    return [message for _, message in sends if isinstance(message, Propose)]


# --- one member that does not stop ----------------------------------------------------------------------------------


def variants() -> Iterator[tuple[Proposal, Items]]:
    """Different digests of party 1, each with a cohort that names it."""
    signs = foreign(SESSION, 1)
    for number in range(1, 200):
        fates = [number >> (2 * t) & 3 for t in range(SESSION.rounds)]
        item = signs.sign(
            "digest", Digest(Account(list(range(1, SESSION.rounds + 1)), fates, []), bytes(32), keys_of(1))
        )
        contents = [(p, (item if p == 1 else EVERYONE[p]).hash) for p in range(N)]
        yield Proposal("cohort", contents), Items([item])


@pytest.mark.parametrize("preparing_only", [True, False])
def test_whoever_begins_ballot_after_ballot_is_followed_less_and_less_often(preparing_only: bool) -> None:
    """Else nobody else could finish one; nor does it fill the journal. It has a turn a period, and comes early."""
    party = node()
    followed = []
    for number in range(1, 1800):
        now = number / 200
        ballot = latest(LAST, now + 1 / 2)
        if party.handle(now, LAST, Prepare(0, ballot) if preparing_only else propose(ballot, cohort())).records:
            followed.append(now)
    pauses = [later - earlier for earlier, later in pairwise(followed)]
    assert pauses == pytest.approx([1 / 4, 1, 1, 2, 2, 2], abs=0.01)
    honest = party.handle(9.0, SECOND, Prepare(0, latest(SECOND, 9.5)))
    assert honest.records == [Promised(0, latest(SECOND, 9.5))]  # others are followed all the same


def latest(party: int, now: float) -> int:
    """The ballot of a party's last turn."""
    turn = N + int((now - SESSION.start) * 4)
    return turn - (turn - ORDER.index(party)) % N


def test_no_ballot_is_followed_long_before_its_turn() -> None:
    """Else it would be above those of all others for as long; clocks differ by less than half a period."""
    ballot = latest(LAST, 7.0)
    turn = SESSION.start + (ballot - N) / 4
    for now in (0.0, turn - 0.6, turn - 0.51):
        party = node()
        for message in (Prepare(0, ballot), propose(ballot, cohort()), Accept(0, lock(ballot, cohort()))):
            effects = party.handle(now, LAST, message)
            assert not effects.records and not effects.sends
    assert node().handle(turn - 0.49, LAST, Prepare(0, ballot)).sends == [(LAST, promise(ME, ballot))]


def test_items_that_one_member_proposes_without_end_are_not_kept() -> None:
    party = node()
    assert party.handle(0.0, LAST, Prepare(0, NEW)).records
    for proposal, items in variants():
        with suppress(InvalidPeerMessage):  # it votes for the first, and all others are second ones
            party.handle(0.0, LAST, propose(NEW, proposal))
        party.context.out.sends.clear()
        held = party.context.signed_items
        party.handle(0.0, LAST, items)
        assert len(held._variants["digest", 1]) <= 5
        assert sum(len(named) for named in held._named.values()) <= 2 * N * N and len(held._kept) <= N * N


# --- whose turn it is, and who is asked again (a turn is a quarter of a period) ---------------------------------------


def test_turns_follow_from_the_clock_and_the_session_and_the_first_needs_none() -> None:
    for place, me in enumerate(ORDER):
        party = node(me)
        party.consensus.enter(100.0)
        later = 1.0 if place == 1 else 0.0  # all but the first give that one two turns
        assert party.consensus.wakeup == pytest.approx(100.0 + place / 4 + later)
        within = 100.1 + place / 4  # its own turn: it waits all the same, unless the first is down
        party.consensus.enter(within)
        assert party.consensus.wakeup == pytest.approx(101.0 + place / 4 if place else within)
        party.context.mark_down(FIRST, 90.0)
        party.consensus.enter(within)
        assert party.consensus.wakeup == pytest.approx(within)


def test_whoever_has_followed_another_lets_it_finish_its_first_ballot() -> None:
    party = node()
    party.context.mark_down(FIRST, 90.0)  # else it would wait for that one
    party.consensus.enter(100.0)
    assert party.consensus.wakeup == pytest.approx(100.25)
    party.handle(100.0, SECOND, Prepare(0, latest(SECOND, 100.0)))
    assert party.consensus.wakeup == pytest.approx(101.25)  # its first turn half a period later
    party.handle(100.9, LAST, propose(latest(LAST, 100.9), cohort()))
    assert party.consensus.wakeup == pytest.approx(101.4)
    party.handle(101.3, LAST, Prepare(0, latest(LAST, 101.8)))
    assert party.consensus.wakeup == pytest.approx(101.4)  # once


def test_those_who_have_not_answered_are_asked_again_after_pauses_that_double_up_to_a_turn() -> None:
    party = node()
    ballot = preparing(party)
    began = now = party.consensus.wakeup - 1 / 16
    pauses = []
    for _ in range(4):
        pauses.append(party.consensus.wakeup - now)
        now = party.consensus.wakeup
        assert party.tick(now).sends == [(peer, Prepare(0, ballot)) for peer in (1, 2, 3)]
    assert pauses == pytest.approx([1 / 16, 1 / 8, 1 / 4, 1 / 4]) and now < began + 1.0
    party.handle(now, 1, promise(1, ballot))
    assert party.tick(party.consensus.wakeup).sends == [(peer, Prepare(0, ballot)) for peer in (2, 3)]
    party.handle(now, 3, promise(3, ballot))
    proposal = propose(ballot, cohort(), parties=(0, 1, 3))
    party.handle(now, 2, vote(2, ballot, cohort()))
    asked = party.tick(party.consensus.wakeup).sends
    assert asked == [(peer, proposal) for peer in (1, 3)]  # it has voted itself
    party.handle(now, 3, vote(3, ballot, cohort()))
    asked = party.tick(party.consensus.wakeup).sends
    assert asked == [(peer, Accept(0, lock(ballot, cohort(), (0, 2, 3)))) for peer in (1, 2, 3)]
    party.handle(now, 3, yes(3, ballot, cohort()))
    party.handle(now, 1, yes(1, ballot, cohort()))
    assert party.decided and party.consensus.wakeup == float("inf")


def test_the_first_waits_with_its_ballot_until_it_can_propose() -> None:
    party = node(FIRST, held=[EVERYONE[FIRST]])
    party.consensus.enter(0.0)
    assert not party.tick(0.0).sends  # one digest is not enough for a cohort
    assert party.consensus.wakeup == 1 / 4  # when it looks again
    party.handle(0.0, 0, Items(EVERYONE))
    assert party.consensus.wakeup == 0.0
    assert [p.ballot for p in proposed(party.tick(0.0).sends)] == 3 * [N]  # at once
    party.handle(0.0, 0, Items(EVERYONE))
    assert not proposed(party.tick(0.0).sends)  # and once
    idle = node(FIRST, held=[EVERYONE[FIRST]])
    idle.handle(0.0, 0, Items(EVERYONE))
    assert not idle.tick(0.0).sends  # it has not come to that yet


def test_nobody_begins_a_ballot_while_there_is_nothing_to_propose() -> None:
    """Whoever has nothing to propose waits for two periods; and once it has, for its turn."""
    party = node(ME, held=[EVERYONE[ME]])
    party.consensus.enter(0.0)
    rank = round(4 * (party.consensus._next_turn - 2.0))
    assert rank > 0
    for turn in (1, 2, 3):
        assert party.consensus.wakeup == turn / 4 and not party.tick(turn / 4).sends
    party.handle(0.8, 0, Items(EVERYONE))
    assert rank == 1 and not party.tick(0.8).sends
    assert party.consensus.wakeup == pytest.approx(0.8 + 1 / 2)  # the first has two turns, and then it is its own
    assert party.tick(party.consensus.wakeup).sends
    alone = node(ME, held=[EVERYONE[ME]])
    alone.consensus.enter(0.0)
    for turn in range(1, 8 + rank):
        assert not alone.tick(turn / 4).sends
    assert alone.tick(2.0 + rank / 4).sends == [
        (peer, Prepare(0, latest(ME, 2.0 + rank / 4))) for peer in range(N) if peer != ME
    ]


def test_whoever_lacks_an_item_votes_or_accepts_as_soon_as_it_comes() -> None:
    for message, answer in (
        (propose(NEW, cohort()), vote(ME, NEW, cohort())),
        (Accept(0, lock(NEW, cohort())), yes(ME, NEW, cohort())),
    ):
        party = node(held=EVERYONE[:1])
        party.handle(0.0, LAST, message)
        assert not party.handle(0.0, LAST, Items(EVERYONE[:3])).sends  # one is still missing, and was asked for
        assert party.handle(0.0, LAST, Items(EVERYONE)).sends == [(LAST, answer)]
        assert not party.handle(0.0, LAST, Items(EVERYONE)).sends  # once


def test_who_proposes_in_vain_proposes_less_and_less_often() -> None:
    party = node()
    party.consensus.enter(0.0)
    began: list[float] = []
    while len(began) < 6:
        now = party.consensus.wakeup
        if any(isinstance(record, Promised) for record in party.tick(now).records):
            began.append(now)
    assert [later - earlier for earlier, later in pairwise(began)] == pytest.approx([1.0, 2.0, 2.0, 2.0, 2.0])


def test_a_lie_that_shows_when_items_come_is_laid_to_its_own_peer() -> None:
    """Two proposals of one ballot: the first could not be answered yet when the second was."""
    party = node(held=[item for item in EVERYONE if item.party != 3])
    party.handle(0.0, LAST, propose(NEW, cohort()))
    assert party.handle(0.0, LAST, propose(NEW, cohort(0, 1, 2))).sends == [(LAST, vote(ME, NEW, cohort(0, 1, 2)))]
    effects = party.handle(0.0, SECOND, Items(EVERYONE))
    assert not effects.sends
    what = "a ballot must have one proposal, got a second"
    assert effects.log_events == [("invalid message", {"peer": LAST, "what": what})]
