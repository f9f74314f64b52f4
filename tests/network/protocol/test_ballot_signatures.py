"""What is signed in a consensus proves exactly one thing, and quorums are as many different parties as agreed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from helpers.ledgers import SESSION
from helpers.signatures import sign, verify
from inca.errors import InvalidPeerMessage
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.messages import Decision, Lock, Promise, Proposal, Propose

FIVE = replace(SESSION, parties=5)
PROPOSAL, OTHER = Proposal("cohort", [(0, bytes(32)), (1, bytes(32))]), Proposal("cohort", [(0, bytes(32))])


def of(party: int, **changes: Any) -> BallotSignatures:
    return BallotSignatures(replace(FIVE, **changes), party, sign(party), verify)


def votes(*parties: int, instance: int = 0, ballot: int = 7, proposal: Proposal = PROPOSAL) -> list[tuple[int, bytes]]:
    return [(party, of(party).sign("vote", instance, ballot, proposal.hash)) for party in parties]


def acceptances(*parties: int) -> list[tuple[int, bytes]]:
    return [(party, of(party).sign("accept", 0, 7, PROPOSAL.hash)) for party in parties]


def promises(*parties: int, ballot: int = 9, locked: int = 0) -> list[tuple[int, int, bytes]]:
    return [(party, locked, of(party).sign("promise", 0, ballot, locked)) for party in parties]


def test_the_text_is_that_of_the_docs() -> None:
    """A label, the session, the number of the decision in 4 bytes, the ballot in 8, and what it is about."""
    texts: list[bytes] = []

    def keep(text: bytes) -> bytes:
        texts.append(text)
        return b""

    signatures = BallotSignatures(FIVE, 1, keep, verify)
    signatures.sign("promise", 2, 7, 5)
    signatures.sign("vote", 2, 7, PROPOSAL.hash)
    signatures.sign("accept", 2, 7, PROPOSAL.hash)
    where = FIVE.id + bytes([2, 0, 0, 0]) + bytes([7, 0, 0, 0, 0, 0, 0, 0])
    about = [bytes([5, 0, 0, 0, 0, 0, 0, 0]), PROPOSAL.hash, PROPOSAL.hash]
    labels = [b"inca-promise/2", b"inca-vote/2", b"inca-accept/2"]
    assert texts == [label + where + rest for label, rest in zip(labels, about, strict=True)]


def test_a_word_is_about_one_party_session_decision_ballot_and_proposal() -> None:
    vote = of(1).sign("vote", 2, 7, PROPOSAL.hash)
    assert of(0).signed(1, vote, "vote", 2, 7, PROPOSAL.hash)
    assert not of(0).signed(2, vote, "vote", 2, 7, PROPOSAL.hash) and not of(0).signed(
        1, vote, "vote", 3, 7, PROPOSAL.hash
    )
    assert not of(0).signed(1, vote, "vote", 2, 8, PROPOSAL.hash) and not of(0).signed(
        1, vote, "vote", 2, 7, OTHER.hash
    )
    assert not of(0).signed(1, vote, "accept", 2, 7, PROPOSAL.hash)
    assert not of(0, id=b"2" * 32).signed(1, vote, "vote", 2, 7, PROPOSAL.hash)
    for stranger in (-1, 5):
        assert not of(0).signed(stranger, sign(255)(b""), "vote", 2, 7, PROPOSAL.hash)


def refused(parties: tuple[int, ...]) -> bool:
    """Return whether a lock with the votes of these parties is refused; a decision is the same as to that."""
    refusals = set()
    lock, decision = Lock(7, PROPOSAL, votes(*parties)), Decision(7, PROPOSAL, acceptances(*parties))
    for check in (partial(of(0).check_lock, 0, lock), partial(of(0).check_decision, 0, decision)):
        try:
            check()
            refusals.add(False)
        except InvalidPeerMessage as error:
            assert "of at least 4 parties" in str(error)
            refusals.add(True)
    (same,) = refusals
    return same


@pytest.mark.parametrize(
    ("parties", "enough"),
    [
        ((0, 1, 2, 3), True),
        ((0, 1, 2, 3, 4), True),
        ((0, 1, 2), False),
        ((0, 1, 2, 2), False),
        ((0, 1, 2, 3, 3), False),
    ],
)
def test_a_quorum_is_as_many_different_parties_as_agreed_or_more(parties: tuple[int, ...], enough: bool) -> None:
    assert FIVE.quorum == 4 and refused(parties) is not enough


@pytest.mark.parametrize("place", range(4))
def test_every_signature_of_a_quorum_counts(place: int) -> None:
    forged = votes(0, 1, 2, 3)
    forged[place] = (place, bytes(9))
    with pytest.raises(InvalidPeerMessage, match="a lock must have the votes of at least 4 parties"):
        of(0).check_lock(0, Lock(7, PROPOSAL, forged))
    signed = acceptances(0, 1, 2, 3)
    signed[place] = votes(place)[0]  # a vote is no acceptance
    with pytest.raises(InvalidPeerMessage, match="a decision must have the signatures of at least 4 parties"):
        of(0).check_decision(0, Decision(7, PROPOSAL, signed))
    shown = promises(0, 1, 2, 3)
    shown[place] = (place, 0, bytes(9))
    with pytest.raises(InvalidPeerMessage, match="a proposal must show the promises of at least 4 parties"):
        of(0).check_justified(Propose(0, 9, PROPOSAL, shown, []))


def test_a_promise_shows_an_earlier_lock_that_is_one() -> None:
    def promise(lock: Lock | None, locked: int) -> Promise:
        return Promise(0, 9, lock, of(1).sign("promise", 0, 9, locked))

    of(0).check_promise(1, promise(None, 0))
    of(0).check_promise(1, promise(Lock(7, PROPOSAL, votes(0, 1, 2, 3)), 7))
    with pytest.raises(InvalidPeerMessage, match="that its party has not signed"):
        of(0).check_promise(2, promise(None, 0))
    with pytest.raises(InvalidPeerMessage, match="that its party has not signed"):  # it signed that it had none
        of(0).check_promise(1, promise(Lock(7, PROPOSAL, votes(0, 1, 2, 3)), 0))
    with pytest.raises(InvalidPeerMessage, match="a lock must be of an earlier ballot than 9, got 9"):
        of(0).check_promise(1, promise(Lock(9, PROPOSAL, votes(0, 1, 2, 3, ballot=9)), 9))
    with pytest.raises(InvalidPeerMessage, match="a lock must have the votes"):
        of(0).check_promise(1, promise(Lock(7, PROPOSAL, votes(0, 1, 2)), 7))


def test_a_proposal_is_that_of_the_latest_lock_shown() -> None:
    free = Propose(0, 9, PROPOSAL, promises(0, 1, 2, 3), [])
    assert of(0).check_justified(free) is False
    early = votes(0, 1, 2, 3, ballot=1)
    assert of(0).check_justified(Propose(0, 9, PROPOSAL, [*promises(0, 1, 2), *promises(3, locked=1)], early)) is True
    shown = [*promises(0, 1), *promises(2, locked=5), *promises(3, locked=7)]
    assert of(0).check_justified(Propose(0, 9, PROPOSAL, shown, votes(0, 1, 2, 3))) is True
    for proposal, lock in ((PROPOSAL, votes(0, 1, 2, 3, ballot=5)), (OTHER, votes(0, 1, 2, 3)), (PROPOSAL, [])):
        with pytest.raises(InvalidPeerMessage, match="a lock must have the votes"):
            of(0).check_justified(Propose(0, 9, proposal, shown, lock))
    for too_few in (promises(0, 1, 2), promises(0, 1, 2, 2), promises(0, 1, 2, 3, 3), promises(0, 1, 2, 3, ballot=8)):
        with pytest.raises(InvalidPeerMessage, match="must show the promises of at least 4"):
            of(0).check_justified(Propose(0, 9, PROPOSAL, too_few, []))


def test_a_signature_is_verified_once_but_never_taken_for_another() -> None:
    checked = Counter[tuple[int, bytes]]()

    def counted(party: int, text: bytes, signature: bytes) -> bool:
        checked[party, text] += 1
        return verify(party, text, signature)

    signatures = BallotSignatures(FIVE, 0, sign(0), counted)
    for _ in range(3):
        signatures.check_lock(0, Lock(7, PROPOSAL, votes(0, 1, 2, 3)))
    assert sorted(party for party, _ in checked) == [0, 1, 2, 3] and set(checked.values()) == {1}
    vote = of(1).sign("vote", 0, 7, PROPOSAL.hash)
    for _ in range(2):
        assert not signatures.signed(
            1, vote[:-1] + b"?", "vote", 0, 7, PROPOSAL.hash
        )  # nor is a refusal remembered as valid
        assert not signatures.signed(2, vote, "vote", 0, 7, PROPOSAL.hash)


def test_a_member_that_signs_without_end_does_not_fill_the_memory() -> None:
    signatures = of(0)
    for ballot in range(1000):
        assert signatures.signed(1, of(1).sign("vote", 0, ballot, PROPOSAL.hash), "vote", 0, ballot, PROPOSAL.hash)
        assert 1 <= len(signatures._valid) <= 8 * FIVE.parties
