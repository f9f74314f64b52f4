"""The consensus step by step: what is written before it is said, what is refused, and whose turn it is."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from helpers.consensus_nodes import EVERYONE, N, Node, cohort, node, proposing, yes
from helpers.ledgers import SESSION, opening
from helpers.signatures import sign, verify
from inca.errors import InvalidPeerMessage
from inca.network.protocol.ledger import Accepted, Decided, Promised, Record
from inca.network.protocol.messages import (
    Accept,
    Account,
    Decision,
    Decisions,
    Fetch,
    Items,
    Message,
    Prepare,
    Promise,
    Proposal,
    Want,
    Yes,
)
from inca.network.protocol.signed_items import Digest, SignedItems, content_hash


def test_a_promise_is_written_before_it_is_given_and_kept() -> None:
    party = node()
    effects = party.handle(0.0, 1, Prepare(0, 9))
    assert effects.records == [Promised(0, 9)] and effects.sends == [(1, Promise(0, 9, 0, None))]
    again = party.handle(0.0, 1, Prepare(0, 9))
    assert not again.records and again.sends == effects.sends
    old = party.handle(0.0, 2, Prepare(0, 6))
    assert not old.records and not old.sends
    stale = party.handle(0.0, 2, Accept(0, 6, cohort()))
    assert not stale.records and not stale.sends


def test_an_acceptance_is_written_with_its_items_before_it_is_said_and_told_to_later_proposers() -> None:
    party = node()
    effects = party.handle(0.0, 1, Accept(0, 9, cohort()))
    accepted = Accepted(0, 9, cohort(), EVERYONE[1:])
    assert effects.records == [accepted] and effects.sends == [(1, yes(0, 9, cohort()))]
    assert not party.handle(0.0, 1, Accept(0, 9, cohort())).records
    restarted = node(records=[accepted], held=EVERYONE[:1])
    assert restarted.handle(0.0, 2, Prepare(0, 10)).sends == [(2, Promise(0, 10, 9, cohort()))]
    assert set(restarted.context.signed_items.by_kind["digest"]) == set(range(N))
    later = restarted.handle(0.0, 2, Accept(0, 10, cohort()))
    assert later.records == [Accepted(0, 10, cohort(), [])]  # each item is kept once


def test_nobody_accepts_what_it_does_not_hold() -> None:
    party = node(held=EVERYONE[:1])
    effects = party.handle(0.0, 1, Accept(0, 9, cohort()))
    assert not effects.records and effects.sends == [(1, Fetch("digest", cohort().contents[1:]))]
    party.handle(0.0, 1, Items(EVERYONE))
    assert party.handle(0.0, 1, Accept(0, 9, cohort())).sends == [(1, yes(0, 9, cohort()))]


def test_a_proposer_follows_the_latest_acceptance_it_hears_of() -> None:
    party = node()
    ballot = proposing(party)
    older, newer = cohort(0, 1, 2), cohort(0, 2, 3)
    party.handle(0.0, 1, Promise(0, ballot, 1, older))
    effects = party.handle(0.0, 2, Promise(0, ballot, 2, newer))
    assert [message for _, message in effects.sends] == 3 * [Accept(0, ballot, newer)]
    late = party.handle(0.0, 3, Promise(0, ballot, 3, older))
    assert not late.sends and not late.records  # it has proposed already


def test_a_proposer_without_earlier_acceptances_proposes_what_it_holds() -> None:
    party = node(held=[EVERYONE[0], EVERYONE[1], EVERYONE[3]])
    ballot = proposing(party)
    assert not party.handle(0.0, 3, Promise(0, ballot - 1, 0, None)).sends  # an old ballot
    assert not party.handle(0.0, 3, Promise(0, ballot, 0, None)).sends  # two of four are not more than half
    effects = party.handle(0.0, 1, Promise(0, ballot, 0, None))
    assert [message for _, message in effects.sends] == 3 * [Accept(0, ballot, cohort(0, 1, 3))]


def test_a_decision_has_the_signatures_of_more_than_half_and_everyone_is_told() -> None:
    party = node()
    ballot = proposing(party)
    for peer in (1, 2):
        party.handle(0.0, peer, Promise(0, ballot, 0, None))
    assert not party.handle(0.0, 1, yes(1, ballot, cohort())).records
    assert not party.handle(0.0, 1, yes(1, ballot, cohort())).records  # it counts once
    with pytest.raises(InvalidPeerMessage, match="an acceptance that its party has not signed"):
        party.handle(0.0, 2, yes(1, ballot, cohort()))
    for wrong in (yes(2, ballot + N, cohort()), yes(2, ballot, cohort(), instance=1)):
        with pytest.raises(InvalidPeerMessage):
            party.handle(0.0, 2, Yes(0, ballot, wrong.signature))
    effects = party.handle(0.0, 2, yes(2, ballot, cohort()))
    signatures = [(i, yes(i, ballot, cohort()).signature) for i in (0, 1, 2)]
    decision = Decision(ballot, cohort(), signatures)
    assert effects.records == [Decided(decision)]
    assert effects.sends == [(peer, Decisions(0, [decision])) for peer in (1, 2, 3)]
    other = node(3)
    assert other.handle(0.0, 0, Decisions(0, [decision])).records == [Decided(decision)]
    assert not other.handle(0.0, 0, Decisions(0, [decision])).records  # once


def test_whoever_asks_about_an_old_decision_is_told_it_and_whoever_is_behind_asks() -> None:
    decision = Decision(9, cohort(), [(i, yes(i, 9, cohort()).signature) for i in (0, 1, 2)])
    party, behind = node(records=[Decided(decision)]), node(1)
    for message in (Prepare(0, 10), Accept(0, 10, cohort(0, 1, 2))):
        effects = party.handle(0.0, 2, message)
        assert not effects.records and effects.sends == [(2, Decisions(0, [decision]))]
    assert behind.handle(0.0, 0, Prepare(1, 12)).sends == [(0, Want({}, 0))]
    assert not behind.context.ledger.promised


NOBODYS: dict[str, tuple[int, Message]] = {
    "a prepare in the ballot of another party": (2, Prepare(0, 9)),
    "a proposal in the ballot of another party": (2, Accept(0, 9, cohort())),
    "a ballot far ahead": (1, Prepare(0, 4 * 2000 + 1)),
    "a proposal far ahead": (1, Accept(0, 2**62 - 3, cohort())),
    "a proposal of too few": (1, Accept(0, 9, cohort(0))),
    "a commit before there is a cohort": (1, Accept(0, 9, Proposal("commit", cohort().contents))),
    "a result before there is a cohort": (1, Accept(0, 9, Proposal("result", cohort().contents))),
    "a promise without what was accepted": (1, Promise(0, 4, 3, None)),
    "a promise with what was not accepted": (1, Promise(0, 4, 0, cohort())),
    "a promise with something accepted in that ballot": (1, Promise(0, 4, 4, cohort())),
    "a promise with something accepted later": (1, Promise(0, 4, 2**61, cohort())),
    "a promise with something of too few": (1, Promise(0, 4, 3, cohort(1))),
}


@pytest.mark.parametrize("name", NOBODYS)
def test_what_no_party_would_say_is_nonsense(name: str) -> None:
    party = node()
    if isinstance(NOBODYS[name][1], Promise):
        assert proposing(party) == 4
    promised = dict(party.context.ledger.promised)
    with pytest.raises(InvalidPeerMessage):
        party.handle(0.0, *NOBODYS[name])
    effects = party.effects()
    assert not effects.records and not effects.sends
    assert not party.context.ledger.accepted and party.context.ledger.promised == promised
    assert set(party.consensus._promises) <= {0}


def test_ballots_are_never_used_twice_and_no_other_partys() -> None:
    seen: set[int] = set()
    for me in range(N):
        records: list[Record] = []
        for _ in range(3):  # each time in a new incarnation
            party = node(me, records)
            ballot = proposing(party)
            records.append(Promised(0, ballot))
            assert ballot not in seen and ballot % N == me
            seen.add(ballot)


def test_a_second_proposal_in_a_ballot_is_refused() -> None:
    party = node()
    party.handle(0.0, 1, Accept(0, 9, cohort()))
    with pytest.raises(InvalidPeerMessage, match="a ballot must have one proposal, got a second"):
        party.handle(0.0, 1, Accept(0, 9, cohort(0, 1, 2)))


@pytest.mark.parametrize("records", [[], [opening(SESSION, 0, late=True)]], ids=["without a book", "with a late book"])
def test_whoever_may_have_voted_before_has_no_vote(records: list[Record]) -> None:
    """A book begun after the start may be in the place of a lost one, with promises in it."""
    party = Node(SESSION, 0, records, EVERYONE, random.Random(1))
    party.consensus.enter(0.0)
    assert party.consensus.wakeup == float("inf")  # it proposes nothing
    for message in (Prepare(0, 9), Accept(0, 9, cohort()), Promise(0, 4, 0, None), Yes(0, 4, b"")):
        effects = party.handle(0.0, 1, message)
        assert not effects.records and not effects.sends
    assert not party.context.ledger.promised and not party.context.ledger.accepted and not party.decided


def test_what_a_promiser_claims_and_does_not_show_stalls_nobody() -> None:
    """With the promises of enough others, which suffice; what they have accepted is still followed."""
    claim = Proposal("cohort", [(party, bytes([party]) * 32) for party in range(N)])
    for other, follows in ((Promise(0, 4, 0, None), cohort()), (Promise(0, 4, 2, cohort(0, 2, 3)), cohort(0, 2, 3))):
        party = node()
        assert proposing(party) == 4
        assert not party.handle(0.0, 1, Promise(0, 4, 3, claim)).sends
        effects = party.handle(0.0, 2, other)
        assert effects.sends == [(1, Fetch("digest", claim.contents))]  # two of four have shown what they told of
        sends = party.handle(0.0, 3, Promise(0, 4, 0, None)).sends
        assert [message for _, message in sends if isinstance(message, Accept)] == 3 * [Accept(0, 4, follows)]


def test_what_a_promiser_shows_is_followed() -> None:
    party = node(held=EVERYONE[:3])
    ballot = proposing(party)
    for peer in (2, 3):
        party.handle(0.0, peer, Promise(0, ballot, 3 if peer == 3 else 0, cohort() if peer == 3 else None))
    assert party.consensus._proposed is None
    party.handle(0.0, 3, Items(EVERYONE))
    sends = party.tick(party.consensus.wakeup).sends
    assert [message for _, message in sends if isinstance(message, Accept)] == 3 * [Accept(0, ballot, cohort())]


def test_nobody_accepts_something_else_right_after_it_has_accepted_something() -> None:
    """A proposer that asks nobody what was accepted would have both decided; the first decision is heard of soon."""
    party, other = node(), cohort(0, 1, 2)
    assert party.handle(0.0, 1, Accept(0, 9, cohort())).records
    for when, accepts in ((0.1, False), (0.99, False), (1.0, True)):
        effects = party.handle(when, 2, Accept(0, 14, other))
        assert bool(effects.records) is accepts and (effects.sends == [(2, yes(0, 14, other))]) is accepts
    assert party.handle(1.1, 3, Accept(0, 19, other)).records  # the same again, at once


# --- one member that does not stop ----------------------------------------------------------------------------------


def variants() -> Iterator[tuple[Proposal, Items]]:
    """Different digests of party 1, each with a cohort that names it."""
    signer = SignedItems(SESSION, 1, sign(1), verify)
    for number in range(1, 200):
        fates = [[number >> (2 * t) & 3] for t in range(SESSION.rounds)]
        item = signer.sign("digest", Digest(Account(list(range(1, SESSION.rounds + 1)), fates, [])))
        contents = [(p, content_hash(item if p == 1 else EVERYONE[p])) for p in range(N)]
        yield Proposal("cohort", contents), Items([item])


@pytest.mark.parametrize("preparing", [True, False])
def test_whoever_begins_ballot_after_ballot_is_followed_less_and_less_often(preparing: bool) -> None:
    """Else nobody else could finish one; nor does it fill the journal."""
    party = node()
    followed = []
    for number in range(1, 801):
        now = number / 200
        message: Message = Prepare(0, number * N + 1) if preparing else Accept(0, number * N + 1, cohort())
        if party.handle(now, 1, message).records:
            followed.append(now)
    pauses = [later - earlier for earlier, later in pairwise(followed)]
    assert pauses == pytest.approx([1 / 8, 1 / 4, 1 / 2, 1, 2], abs=0.01)
    honest = party.handle(4.0, 2, Prepare(0, 900 * N + 2))
    assert honest.records == [Promised(0, 900 * N + 2)]  # others are followed all the same


def test_items_that_one_member_proposes_without_end_are_not_kept() -> None:
    party = node()
    assert party.handle(0.0, 1, Prepare(0, 9)).records
    for proposed, items in variants():
        party.handle(0.0, 1, Accept(0, 9, proposed))
        party.context.out.sends.clear()
        held = party.context.signed_items
        party.handle(0.0, 1, items)
        assert len(held._variants["digest", 1]) <= 5
        assert sum(len(named) for named in held._named.values()) <= 2 * N * N and len(held._kept) <= N * N


# --- whose turn it is, and who is asked again (a turn is an eighth of a period) ---------------------------------------


def test_turns_follow_from_the_session_and_those_who_are_down_have_none() -> None:
    keys = [hashlib.sha256(SESSION.id + b"turn" + i.to_bytes(4, "little")).digest() for i in range(N)]
    order = sorted(range(N), key=lambda i: keys[i])
    for place, me in enumerate(order):
        party = node(me)
        party.consensus.enter(100.0)
        assert party.consensus.wakeup == pytest.approx(100.0 + place / 8)
        party.context.mark_down(order[0], 90.0)
        party.consensus.enter(100.0)
        assert party.consensus.wakeup == pytest.approx(100.0 + max(0, place - 1) / 8)


def test_whoever_has_promised_something_to_another_lets_it_finish() -> None:
    party = node()
    party.consensus.enter(100.0)
    party.handle(100.0, 1, Prepare(0, 9))
    assert party.consensus.wakeup == pytest.approx(100.5)
    party.handle(100.25, 2, Prepare(0, 14))
    assert party.consensus.wakeup == pytest.approx(100.75)


def test_those_who_have_not_answered_are_asked_again_after_pauses_that_double_up_to_a_turn() -> None:
    party = node()
    ballot = proposing(party)
    began = now = party.consensus.wakeup - 1 / 128
    pauses = []
    for _ in range(5):
        pauses.append(party.consensus.wakeup - now)
        now = party.consensus.wakeup
        assert party.tick(now).sends == [(peer, Prepare(0, ballot)) for peer in (1, 2, 3)]
    assert pauses == pytest.approx([1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8]) and now < began + 0.5
    party.handle(now, 1, Promise(0, ballot, 0, None))
    assert party.tick(party.consensus.wakeup).sends == [(peer, Prepare(0, ballot)) for peer in (2, 3)]
    party.handle(now, 3, Promise(0, ballot, 0, None))
    party.handle(now, 2, yes(2, ballot, cohort()))
    asked = party.tick(party.consensus.wakeup).sends
    assert asked == [(peer, Accept(0, ballot, cohort())) for peer in (1, 3)]  # it has said yes itself
    party.handle(now, 3, yes(3, ballot, cohort()))
    assert party.decided and party.consensus.wakeup == float("inf")
