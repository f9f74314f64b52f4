"""The consensus step by step: what is written before it is said, and what is refused."""

from __future__ import annotations

import random
from typing import get_args

import msgspec
import pytest

from helpers.consensus_nodes import (
    EVERYONE,
    FIRST,
    ORDER,
    N,
    Node,
    ballot_of,
    cohort,
    decision,
    lock,
    node,
    preparing,
    promise,
    propose,
    signer,
    vote,
    yes,
)
from helpers.endings import deposit, proposal
from helpers.ledgers import SESSION, opening
from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import (
    Accept,
    ConsensusMessage,
    Decisions,
    Fetch,
    Item,
    Items,
    Lock,
    Message,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Vote,
    Want,
    Yes,
)
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.records import Accepted, Decided, Promised, Record, Voted
from inca.network.protocol.signed_items import read

ME, SECOND, LAST = 0, 2, 1  # party 3 is the first in order
OLD, NEW = ballot_of(SECOND), ballot_of(LAST)


def test_these_are_the_places() -> None:
    assert [FIRST, ME, SECOND, LAST] == ORDER and SESSION.quorum == 3 and OLD < NEW


# --- as an acceptor ---------------------------------------------------------------------------------------------------


def test_a_promise_is_written_before_it_is_given_and_kept() -> None:
    party = node()
    effects = party.handle(0.0, LAST, Prepare(0, NEW))
    assert effects.records == [Promised(0, NEW)] and effects.sends == [(LAST, promise(ME, NEW))]
    assert not party.handle(0.02, LAST, Prepare(0, NEW)).sends  # not again and again: it may be large
    again = party.handle(0.04, LAST, Prepare(0, NEW))
    assert not again.records and again.sends == effects.sends
    party.consensus.connected(LAST)  # what was said before may be lost
    assert party.handle(0.05, LAST, Prepare(0, NEW)).sends == effects.sends
    stale: list[Message] = [Prepare(0, OLD), propose(OLD, cohort()), Accept(0, lock(OLD, cohort()))]
    for message in stale:
        effects = party.handle(0.0, SECOND, message)
        assert not effects.records and not effects.sends


def test_a_vote_is_written_before_it_is_given_and_there_is_one_in_a_ballot() -> None:
    party = node()
    effects = party.handle(0.0, LAST, propose(NEW, cohort()))
    assert effects.records == [Voted(0, NEW, cohort().hash)] and effects.sends == [(LAST, vote(ME, NEW, cohort()))]
    again = party.handle(0.0, LAST, propose(NEW, cohort()))
    assert not again.records and again.sends == effects.sends
    restarted = node(records=[Voted(0, NEW, cohort().hash)])
    for each in (party, restarted):
        with pytest.raises(InvalidPeerMessage, match="a ballot must have one proposal, got a second"):
            each.handle(0.0, LAST, propose(NEW, cohort(0, 1, 2)))
        assert not each.handle(0.0, SECOND, propose(OLD, cohort())).sends  # it has promised, by its vote


def test_an_acceptance_is_written_with_its_items_before_it_is_said_and_told_to_later_proposers() -> None:
    party, held = node(), lock(OLD, cohort())
    effects = party.handle(0.0, SECOND, Accept(0, held))
    accepted = Accepted(0, held, EVERYONE[1:])
    assert effects.records == [accepted] and effects.sends == [(SECOND, yes(ME, OLD, cohort()))]
    assert not party.handle(0.0, SECOND, Accept(0, held)).records
    restarted = node(records=[accepted], held=EVERYONE[:1])
    assert restarted.handle(0.0, LAST, Prepare(0, NEW)).sends == [(LAST, promise(ME, NEW, held))]
    assert set(restarted.context.signed_items.by_kind["digest"]) == set(range(N))
    later = restarted.handle(0.0, LAST, Accept(0, lock(NEW, cohort())))
    assert later.records == [Accepted(0, lock(NEW, cohort()), [])]  # each item is kept once


def test_nobody_votes_for_or_accepts_what_it_does_not_hold() -> None:
    for message, answer in (
        (propose(NEW, cohort()), vote(ME, NEW, cohort())),
        (Accept(0, lock(NEW, cohort())), yes(ME, NEW, cohort())),
    ):
        party = node(held=EVERYONE[:1])
        effects = party.handle(0.0, LAST, message)
        assert not effects.records and effects.sends == [(LAST, Fetch("digest", cohort().contents[1:]))]
        party.handle(0.0, LAST, Items(EVERYONE))
        assert party.handle(0.0, LAST, message).sends == [(LAST, answer)]


def test_the_lowest_ballot_needs_no_promises_and_every_other_one_does() -> None:
    lowest = Propose(0, N, cohort(), [], [])
    assert node().handle(0.0, FIRST, lowest).sends == [(FIRST, vote(ME, N, cohort()))]
    for later in (Propose(0, 2 * N, cohort(), [], []), propose(2 * N, cohort(), parties=(0, 1))):
        with pytest.raises(InvalidPeerMessage, match="a proposal must show the promises of at least 3 parties"):
            node().handle(0.0, FIRST, later)


def test_a_proposal_must_be_the_one_of_the_latest_lock() -> None:
    """Whatever else its proposer would like."""
    one, two = cohort(0, 1, 2), cohort(0, 2, 3)
    earlier, later = lock(N, one), lock(N + 1, two)
    follows = propose(NEW, two, {0: earlier, 2: later})
    assert node().handle(0.0, LAST, follows).sends == [(LAST, vote(ME, NEW, two))]
    for liar in (
        propose(NEW, one, {0: earlier, 2: later}),  # the votes for another proposal
        msgspec.structs.replace(follows, proposal=cohort()),
        msgspec.structs.replace(follows, votes=[]),
        msgspec.structs.replace(follows, votes=earlier.votes),
        msgspec.structs.replace(follows, votes=later.votes[:2]),
    ):
        with pytest.raises(InvalidPeerMessage, match="a lock must have the votes of at least 3 parties"):
            node().handle(0.0, LAST, liar)
    hidden = [(party, 0, signature) for party, _, signature in follows.promises]
    repeated = [*follows.promises[:2], follows.promises[0]]
    foreign = [*follows.promises[:2], (N, 0, b"")]
    others = [(party, locked, signer(party).sign("promise", 0, OLD, locked)) for party, locked, _ in follows.promises]
    for promises in (hidden, repeated, foreign, others, follows.promises[:2], []):
        with pytest.raises(InvalidPeerMessage, match="a proposal must show the promises of at least 3 parties"):
            node().handle(0.0, LAST, msgspec.structs.replace(follows, promises=promises))


def test_a_lock_needs_a_quorum_of_votes() -> None:
    genuine, elsewhere = lock(NEW, cohort()), lock(OLD, cohort())
    for votes in ([], genuine.votes[:2], [*genuine.votes[:2], genuine.votes[0]], elsewhere.votes):
        with pytest.raises(InvalidPeerMessage, match="a lock must have the votes of at least 3 parties"):
            node().handle(0.0, LAST, Accept(0, Lock(NEW, cohort(), votes)))
    acceptances = decision(NEW, cohort()).signatures
    with pytest.raises(InvalidPeerMessage):  # another word of the same parties
        node().handle(0.0, LAST, Accept(0, Lock(NEW, cohort(), acceptances)))
    with pytest.raises(InvalidPeerMessage):
        node().handle(
            0.0, LAST, Decisions(0, [msgspec.structs.replace(decision(NEW, cohort()), signatures=genuine.votes)])
        )


def test_votes_that_are_no_lock_do_not_excuse_a_proposal_that_leaves_parties_out() -> None:
    party, few = node(), cohort(0, 1, 2)
    party.consensus._agenda.patient_until = 10.0
    for message in (propose(NEW, few), msgspec.structs.replace(propose(NEW, few), votes=lock(OLD, few).votes)):
        assert not party.handle(0.0, LAST, message).sends
    locked = propose(NEW, few, {0: lock(OLD, few)})
    assert party.handle(0.0, LAST, locked).sends == [(LAST, vote(ME, NEW, few))]


# --- as a proposer ----------------------------------------------------------------------------------------------------


def proposed(sends: list[tuple[int, Message]]) -> list[Propose]:
    return [message for _, message in sends if isinstance(message, Propose)]


def test_the_first_in_order_proposes_at_once_and_once() -> None:
    party = node(FIRST)
    party.consensus.enter(0.0)
    effects = party.tick(party.consensus.wakeup)
    assert effects.sends == [(peer, Propose(0, N, cohort(), [], [])) for peer in (0, 1, 2)]
    assert effects.records == [Promised(0, N), Voted(0, N, cohort().hash)]
    for records in (effects.records, effects.records[:1]):
        assert preparing(node(FIRST, records)) == ballot_of(FIRST, 3)  # in its next life it asks, in a turn of its own


def test_a_proposer_follows_the_latest_lock_it_hears_of() -> None:
    party = node()
    ballot = preparing(party)
    older, newer = lock(N, cohort(0, 1, 2)), lock(N + 1, cohort(0, 2, 3))
    again = node(records=[Promised(0, ballot)])
    ballot = preparing(again)
    again.handle(0.0, 1, promise(1, ballot, older))
    effects = again.handle(0.0, 2, promise(2, ballot, newer))
    assert effects.records == [Voted(0, ballot, newer.proposal.hash)]
    expected = Propose(
        0,
        ballot,
        newer.proposal,
        [
            (party, held, signer(party).sign("promise", 0, ballot, held))
            for party, held in ((0, 0), (1, older.ballot), (2, newer.ballot))
        ],
        newer.votes,
    )
    assert effects.sends == [(peer, expected) for peer in (1, 2, 3)]
    late = again.handle(0.0, 3, promise(3, ballot, older))
    assert not late.sends and not late.records  # it has proposed already
    assert node(3).handle(10.0, 0, expected).sends == [(0, vote(3, ballot, newer.proposal))]


def test_a_proposer_without_locks_proposes_what_it_holds() -> None:
    party = node(held=[EVERYONE[0], EVERYONE[1], EVERYONE[3]])
    ballot = preparing(party)
    assert not party.handle(0.0, 3, promise(3, ballot - 1)).sends  # an old ballot
    assert not party.handle(0.0, 3, promise(3, ballot)).sends  # two of four are no quorum
    effects = party.handle(0.0, 1, promise(1, ballot))
    assert [p.proposal for p in proposed(effects.sends)] == 3 * [cohort(0, 1, 3)]


def test_a_decision_has_the_signatures_of_a_quorum_and_everyone_is_told() -> None:
    party = node()
    ballot = preparing(party)
    for peer in (1, 2):
        party.handle(0.0, peer, promise(peer, ballot))
    assert not party.handle(0.0, 1, yes(1, ballot, cohort())).records  # nothing is locked yet
    party.handle(0.0, 1, vote(1, ballot, cohort()))
    assert not party.handle(0.0, 1, vote(1, ballot, cohort())).records  # it counts once
    with pytest.raises(InvalidPeerMessage, match="a vote that its party has not signed"):
        party.handle(0.0, 2, vote(1, ballot, cohort()))
    effects = party.handle(0.0, 2, vote(2, ballot, cohort()))
    held = lock(ballot, cohort())
    assert effects.records == [Accepted(0, held, EVERYONE[1:])]
    assert effects.sends == [(peer, Accept(0, held)) for peer in (1, 2, 3)]
    assert not party.handle(0.0, 3, vote(3, ballot, cohort())).sends
    assert not party.handle(0.0, 1, yes(1, ballot, cohort())).records
    assert not party.handle(0.0, 1, yes(1, ballot, cohort())).records
    with pytest.raises(InvalidPeerMessage, match="an acceptance that its party has not signed"):
        party.handle(0.0, 2, yes(1, ballot, cohort()))
    for wrong in (yes(2, ballot + N, cohort()), yes(2, ballot, cohort(), instance=1)):
        with pytest.raises(InvalidPeerMessage):
            party.handle(0.0, 2, Yes(0, ballot, wrong.signature))
    effects = party.handle(0.0, 2, yes(2, ballot, cohort()))
    decided = decision(ballot, cohort())
    assert effects.records == [Decided(decided)]
    assert effects.sends == [(peer, Decisions(0, [decided])) for peer in (1, 2, 3)]
    other = node(3)
    assert other.handle(0.0, 0, Decisions(0, [decided])).records == [Decided(decided)]
    assert not other.handle(0.0, 0, Decisions(0, [decided])).records  # once


def test_whoever_asks_about_an_old_decision_is_told_it_and_whoever_is_behind_asks() -> None:
    decided = decision(OLD, cohort())
    party, behind = node(records=[Decided(decided)]), node(1)
    old: list[Message] = [Prepare(0, NEW), propose(NEW, cohort(0, 1, 2)), Accept(0, lock(NEW, cohort(0, 1, 2)))]
    for later, message in enumerate(old):
        effects = party.handle(float(later), LAST, message)
        assert not effects.records and effects.sends == [(LAST, Decisions(0, [decided]))]
        assert not party.handle(float(later), LAST, message).sends  # not again and again
    assert behind.handle(0.0, 0, Prepare(1, 12)).sends == [(0, Want({}, 0))]
    assert not behind.context.ledger.promised


ASKED = preparing(node(ME))  # the first ballot of party 0
HIDDEN = Proposal("cohort", [(party, bytes([party]) * 32) for party in range(N)])
NOBODYS: dict[str, tuple[int, Message]] = {
    "a prepare in the ballot of another party": (SECOND, Prepare(0, NEW)),
    "a proposal in the ballot of another party": (SECOND, propose(NEW, cohort())),
    "a lock in the ballot of another party": (SECOND, Accept(0, lock(NEW, cohort()))),
    "a ballot below the lowest": (LAST, Prepare(0, ORDER.index(LAST))),
    "a proposal below the lowest ballot": (FIRST, propose(0, cohort())),
    "a ballot far ahead": (LAST, Prepare(0, ballot_of(LAST, 2000))),
    "a proposal far ahead": (LAST, propose(ballot_of(LAST, 2**59), cohort())),
    "a proposal of too few": (LAST, propose(NEW, cohort(0, 1))),
    "a lock on too few": (LAST, Accept(0, lock(NEW, cohort(0, 1)))),
    "a commit before there is a cohort": (LAST, propose(NEW, Proposal("commit", cohort().contents))),
    "a promise of another": (LAST, promise(SECOND, ASKED)),
    "a promise of another ballot": (LAST, Promise(0, ASKED, None, promise(LAST, ASKED + N).signature)),
    "a promise that hides its lock": (LAST, Promise(0, ASKED, None, promise(LAST, ASKED, lock(N, cohort())).signature)),
    "a promise with a lock of that ballot": (LAST, promise(LAST, ASKED, lock(ASKED, cohort()))),
    "a promise with a lock of a later ballot": (LAST, promise(LAST, ASKED, lock(2**61, cohort()))),
    "a promise with a lock that is none": (LAST, promise(LAST, ASKED, lock(N, cohort(), (0, 1)))),
    "a promise with a lock on too few": (LAST, promise(LAST, ASKED, lock(N, cohort(1, 2)))),
}


@pytest.mark.parametrize("name", NOBODYS)
def test_what_no_party_would_say_is_nonsense(name: str) -> None:
    party = node()
    if isinstance(NOBODYS[name][1], Promise):
        assert preparing(party) == ASKED
    promised = dict(party.context.ledger.promised)
    with pytest.raises(InvalidPeerMessage):
        party.handle(0.0, *NOBODYS[name])
    effects = party.effects()
    assert not effects.records and not effects.sends
    assert not party.context.ledger.accepted and party.context.ledger.promised == promised
    assert set(party.consensus._promises) <= {ME}


def test_ballots_are_never_used_twice_and_no_other_partys() -> None:
    seen: set[int] = set()
    for me in range(N):
        records: list[Record] = []
        for _ in range(3):  # each time in a new incarnation
            party = node(me, records)
            party.consensus.enter(0.0)
            ballots = [r.ballot for r in party.tick(party.consensus.wakeup).records if isinstance(r, Promised)]
            records += [Promised(0, ballots[0])]
            assert len(ballots) == 1 and ballots[0] not in seen and ORDER[ballots[0] % N] == me
            seen.add(ballots[0])


@pytest.mark.parametrize("records", [[], [opening(SESSION, 0, late=True)]], ids=["without a book", "with a late book"])
def test_whoever_may_have_voted_before_has_no_vote(records: list[Record]) -> None:
    """A book begun after the start may be in the place of a lost one, with promises in it."""
    party = Node(SESSION, 0, records, EVERYONE, random.Random(1))
    party.consensus.enter(0.0)
    assert party.consensus.wakeup == float("inf")  # it proposes nothing
    messages: list[Message] = [
        Prepare(0, NEW),
        propose(NEW, cohort()),
        Accept(0, lock(NEW, cohort())),
        promise(LAST, ASKED),
        Vote(0, ASKED, b""),
        Yes(0, ASKED, b""),
    ]
    assert {type(message) for message in messages} == set(get_args(ConsensusMessage))
    for message in messages:
        effects = party.handle(0.0, LAST, message)
        assert not effects.records and not effects.sends
    assert not party.context.ledger.promised and not party.context.ledger.accepted and not party.decided


def test_what_a_promiser_is_locked_on_and_does_not_show_stalls_nobody() -> None:
    """With the promises of enough others, which suffice; what they are locked on is still followed."""
    other = lock(N, cohort(0, 2, 3))
    for held, follows in ((None, cohort()), (other, other.proposal)):
        party = node(records=[Promised(0, N + 1)])
        ballot = preparing(party)
        assert not party.handle(0.0, 1, promise(1, ballot, lock(N + 1, HIDDEN))).sends
        effects = party.handle(0.0, 2, promise(2, ballot, held))
        assert effects.sends == [(1, Fetch("digest", HIDDEN.contents))]  # two of four have shown what they told of
        sends = party.handle(0.0, 3, promise(3, ballot)).sends
        assert [p.proposal for p in proposed(sends)] == 3 * [follows]


def test_what_a_promiser_shows_is_followed() -> None:
    party = node(held=EVERYONE[:3])
    ballot, held = preparing(party), lock(N, cohort())
    for peer in (2, 3):
        party.handle(0.0, peer, promise(peer, ballot, held if peer == 3 else None))
    assert party.consensus._proposal is None
    sends = party.handle(0.0, 3, Items(EVERYONE)).sends
    assert [p.proposal for p in proposed(sends)] == 3 * [cohort()]


def test_a_decision_must_be_one_that_can_be_decided_whoever_has_signed_it() -> None:
    for impossible in (Proposal("commit", cohort().contents), Proposal("cohort", cohort().contents[::-1])):
        with pytest.raises(InvalidPeerMessage, match=r"proposal must|does not follow"):
            node().handle(0.0, LAST, Decisions(0, [decision(NEW, impossible)]))


def deciding_commit() -> tuple[Node, list[Item], Proposal]:
    """A party that has made its deposit for a cohort of all; the deposits of all, and the commit that names them."""
    party = node(records=[Decided(decision(NEW, cohort()))])
    deposits = [deposit(cohort(), member) for member in range(N)]
    party.context.signed_items.expect_words(0, cohort().hash, N)
    own = read(deposits[ME], Deposit)
    party.context.publish_once("deposit", own, sealed=deposits[ME].sealed, cohort=0)
    party.effects()
    return party, deposits, proposal("commit", deposits)


def test_whoever_lacks_deposits_that_a_commit_names_asks_its_proposer_for_them() -> None:
    """And neither votes nor accepts before it holds them, with the sealed bytes."""
    votes = [(one, signer(one).sign("vote", 1, N, deciding_commit()[2].hash)) for one in (0, 1, 2)]
    for is_lock in (False, True):
        party, deposits, commit = deciding_commit()
        message = Accept(1, Lock(N, commit, votes)) if is_lock else Propose(1, N, commit, [], [])
        lacking = [entry for entry in commit.contents if entry[0] != ME]
        effects = party.handle(0.0, FIRST, message)
        assert effects.sends == [(FIRST, Fetch("deposit", lacking))] and not effects.records
        assert not party.handle(0.0, FIRST, Items(deposits[:-1])).records
        bare = msgspec.structs.replace(deposits[-1], sealed=b"")
        with pytest.raises(InvalidPeerMessage, match="sealed, got"):
            party.handle(0.0, FIRST, Items([bare]))
        effects = party.handle(0.0, FIRST, Items(deposits[-1:]))
        if is_lock:
            assert effects.records == [Accepted(1, Lock(N, commit, votes), deposits[1:])]  # durable, bytes and all
            assert all(item.sealed for item in deposits)
        else:
            assert effects.records == [Voted(1, N, commit.hash)]


def test_another_deposit_of_the_same_party_is_not_the_one_that_a_commit_names() -> None:
    party, deposits, commit = deciding_commit()
    other = deposit(cohort(), 1, [5, 0, 0])
    for member in (2, 3):
        party.context.signed_items.take(deposits[member])
    party.context.signed_items.take(other)
    effects = party.handle(0.0, FIRST, Propose(1, N, commit, [], []))
    assert effects.sends == [(FIRST, Fetch("deposit", [(1, deposits[1].hash)]))] and not effects.records
    assert party.handle(0.0, FIRST, Items(deposits[1:2])).records == [Voted(1, N, commit.hash)]


def test_nothing_follows_commit() -> None:
    party, deposits, commit = deciding_commit()
    for item in deposits[1:]:
        party.context.signed_items.take(item)
    party.handle(0.0, FIRST, Decisions(1, [decision(NEW, commit, instance=1)]))
    assert party.context.ledger.committed
    for later in (commit, cohort(0, 1, 2)):
        with pytest.raises(InvalidPeerMessage, match="does not follow what was decided"):
            party.handle(0.0, FIRST, Decisions(2, [decision(NEW, later, instance=2)]))
