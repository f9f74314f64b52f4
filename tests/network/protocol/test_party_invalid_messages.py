"""Messages and calls that no honest party would make change nothing and harm nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers.parties import PACED, START, N, Room, foreign, masks, noisy, offer_of, secret, snapshot
from helpers.signatures import sign, verify
from helpers.trustee_keys import keys_of, sealing, secrets_of
from inca.errors import CorruptJournal, LocalProtocolError
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.messages import (
    OPEN,
    Accept,
    Account,
    Ack,
    Ask,
    Decision,
    Decisions,
    Fetch,
    Have,
    Item,
    Items,
    Lock,
    Message,
    Nudge,
    Offer,
    OfferProof,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Seen,
    Skipped,
    Voided,
    Vote,
    Want,
    Yes,
    bits,
    decode,
    encode,
)
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.opening.shamir import SHARE_BYTES
from inca.network.protocol.party import Party
from inca.network.protocol.records import Tombstoned
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.network.protocol.signed_items import Digest, Key, Refusal, SignedItems


def nonsense(session: SessionConfig, me: int) -> Iterator[tuple[str, Message]]:
    """Messages that no honest party would send to `me`."""
    assert session.seed is not None
    topology, n, T = session.topology(session.seed), session.parties, session.rounds
    to_me = [t for t in range(1, T + 1) if topology.has(t, 0, me)]
    to_others = [t for t in range(1, T + 1) if not topology.has(t, 0, me)]
    yield from nonsense_about_offers(session, me, to_me[0], to_others[0])
    yield "an ack of what was never offered", Ack(T + 7)
    yield "a void of what was never offered", Voided(0)
    yield "an ack of what was offered to others", Ack(next(t for t in range(1, T + 1) if not topology.has(t, me, 0)))
    yield "bits that do not fit", Have({"digest": bytes(9)}, 0, False)
    yield "bits that do not fit, in an answer", Have({"done": bytes(9)}, 0, True)
    yield "a request that does not fit", Want({"digest": bytes(9)}, 2**32 - 1)
    yield "a request for an unknown kind", Want({"gift": bits({0}, n)}, 2**32 - 1)
    yield "a request for unknown contents", Fetch("gift", [(0, bytes(32)), (99, b"")])
    yield "a request for contents of another kind", Fetch("digest", [(me, bytes(32))])
    yield "an item of no kind", Items([Item("gift", 0, b"", b"")])
    yield "an item of nobody", Items([Item("digest", 99, b"", b"")])
    yield "an item that was not signed", Items([Item("digest", 0, foreign(session, 0).sign("digest", EMPTY).body, b"")])
    yield "an item that was signed by another", Items([replace_party(foreign(session, 0), session, 3)])
    other = foreign(session, 0)
    yield "a digest that cannot be read", Items([other.sign("digest", b"\xff\xff")])
    yield "a digest that is padded", Items([other.sign("digest", b"\xdc\x00\x01\x93\x90\x90\x90")])
    for name, digest in bad_digests().items():
        yield f"a digest {name}", Items([other.sign("digest", digest)])
    yield "a digest with sealed bytes", Items([other.sign("digest", EMPTY, bytes(other.sealed_bytes))])
    yield "a commitment of another width", Items([other.sign("commit", b"short")])
    yield "a party that is done and says more", Items([other.sign("done", b"and yet")])
    yield from nonsense_about_decisions(session)
    yield "an answer to nothing", Seen([OfferProof(1, bytes(8), bytes(32), b"")], 3, 0, [])


EMPTY = Digest(Account([], [], []), bytes(32), keys_of(0))


def bad_digests() -> dict[str, Digest]:
    keys, one = keys_of(0), (1).to_bytes(32, "little")
    other_writing = (2**255 - 19 + 9).to_bytes(32, "little")  # of the base point, which has 9
    return {
        "that cannot be": msgspec.structs.replace(EMPTY, account=Account([2, 1], [2, 2], [])),
        "with a short commitment": msgspec.structs.replace(EMPTY, commitment=b"short"),
        "without keys": msgspec.structs.replace(EMPTY, keys=[]),
        "with a key too few": msgspec.structs.replace(EMPTY, keys=keys[:-1]),
        "with a key too many": msgspec.structs.replace(EMPTY, keys=[*keys, keys[0]]),
        "with a short key": msgspec.structs.replace(EMPTY, keys=[*keys[:-1], keys[0][:-1]]),
        "with a key of low order": msgspec.structs.replace(EMPTY, keys=[*keys[:-1], one]),
        "with a key that is written in another way": msgspec.structs.replace(EMPTY, keys=[*keys[:-1], other_writing]),
    }


def dealt(party: Party) -> tuple[Deposit, bytes]:
    """A deposit of party 0 as far as others can see, for the cohort that `party` knows, or for none."""
    ledger, size = party.ledger, foreign(party.session, 0).sealed_bytes
    number, hash_ = max(0, ledger.cohorts - 1), bytes(32) if ledger.cohort is None else ledger.cohort.hash
    trustees = {trustee: keys_of(trustee)[number] for trustee in range(party.session.parties)}
    return Dealing(party.session.id, number, hash_, 0, trustees, threshold=3).deal(b"k" * 32, bytes(size))


def nonsense_about_cohorts(party: Party) -> Iterator[tuple[str, Message]]:
    """Deposits, refusals and keys of party 0 that no honest one makes, of the cohort that `party` knows, or of none."""
    items, ledger = foreign(party.session, 0), party.ledger
    good, sealed = dealt(party)
    number, hash_ = good.cohort, good.hash
    one = (1).to_bytes(32, "little")
    bad: dict[str, dict[str, Any]] = {
        "of no cohort": {"cohort": 99},
        "of another cohort": {"hash": b"another".ljust(32)},
        "of a cohort by a short hash": {"hash": b"short"},
        "of other bytes": {"sealed": bytes(32)},
        "with a short hash": {"sealed": b"short"},
        "with a share too few": {"shares": good.shares[:-SHARE_BYTES]},
        "with a byte too many": {"shares": good.shares + b"x"},
        "with a key of low order": {"ephemeral": one},
        "with a short key": {"ephemeral": b"short"},
    }
    for name, changes in bad.items():
        deposit = msgspec.structs.replace(good, **changes)
        yield f"a deposit {name}", Items([items.sign("deposit", deposit, sealed)])
    yield "a deposit without its bytes", Items([items.sign("deposit", good)])
    yield "a deposit with a byte more", Items([items.sign("deposit", good, sealed + b"x")])
    yield "a deposit that cannot be read", Items([items.sign("deposit", b"\x00", sealed)])
    unsigned = msgspec.structs.replace(items.sign("deposit", good, sealed), signature=b"forged")
    yield "a deposit that was not signed", Items([unsigned])
    for name, refusal in {
        "with a long text": Refusal(number, hash_, 201 * "x"),
        "with an escape": Refusal(number, hash_, "\x1b[2J"),
        "of no cohort": Refusal(99, hash_, "no"),
        "of another cohort": Refusal(number, b"another".ljust(32), "no"),
    }.items():
        yield f"a refusal {name}", Items([items.sign("refusal", refusal)])
    yield "a refusal that cannot be read", Items([items.sign("refusal", b"\x01")])
    private = secrets_of(0, number).private_key
    for name, key in {
        "of no cohort": Key(99, private),
        "of another cohort": Key(number + 2, private),
        "that is another's": Key(number, secrets_of(3, number).private_key),
        "that is another one of it": Key(number, secrets_of(0, number + 1).private_key),
        "that is short": Key(number, private[:-1]),
        "that is written in another way": Key(number, bytes([private[0] | 1]) + private[1:]),
    }.items():
        if ledger.committed or key.cohort != number:  # before commit it is kept, and the decision asked for
            yield f"a key {name}", Items([items.sign("key", key)])
    yield "a key that cannot be read", Items([items.sign("key", b"\x01")])


def nonsense_about_offers(session: SessionConfig, me: int, t: int, to_others: int) -> Iterator[tuple[str, Message]]:
    """Offers of party 0, which makes one to `me` in round t and none in round `to_others`."""
    T, d = session.rounds, session.dimension
    signer, nothing = OfferSignatures(session, 0, sign(0), verify), bytes(8 * d + 8)
    yield "an offer to another party", signer.offer(to_others, me, nothing)
    yield "an offer of round 0", signer.offer(0, me, nothing)
    yield "an offer after the last round", signer.offer(T + 1, me, nothing)
    yield "an offer of another width", signer.offer(t, me, nothing[:-8])
    yield "an offer without numbers", signer.offer(t, me, b"")
    yield "an offer that is not signed", Offer(t, nothing)
    yield "an offer that another party has signed", offer_of(Room(session), t, 3, me)


def nonsense_about_decisions(session: SessionConfig) -> Iterator[tuple[str, Message]]:
    n = session.parties
    contents = [(party, bytes([party]) * 32) for party in range(n)]
    cohort = Proposal("cohort", contents)
    # Ballots that are party 0's, and not.
    own = n + Room(session).make(0).consensus.order.index(0)
    for name, proposal in bad_proposals(n, session.min_participants).items():
        yield f"a proposal {name}", Propose(0, own, proposal, [], [])
        yield f"a lock on a proposal {name}", Accept(0, Lock(own, proposal, []))
    yield "a proposal in the ballot of another party", Propose(0, own + 1, cohort, [], [])
    yield "a proposal far ahead", Propose(0, 2000 * n + own, cohort, [], [])
    yield "a lock without votes", Accept(0, Lock(own, cohort, []))
    yield "a ballot of another party", Prepare(0, own + 1)
    yield "a ballot far ahead", Prepare(0, 2000 * n + own)
    yield "a promise that was not asked for", Promise(0, 9, None, b"")
    yield "a vote for nothing", Vote(0, 9, b"")
    yield "a yes to nothing", Yes(0, 9, b"")
    yield "no decisions", Decisions(2**32 - 1, [])
    for name, signatures in forged_signatures(session, cohort).items():
        yield f"a decision {name}", Decisions(0, [Decision(9, cohort, signatures)])
    everyone = range(session.quorum)
    for name, proposal in bad_proposals(n, session.min_participants).items():
        yield f"a signed decision {name}", Decisions(0, [Decision(9, proposal, signed(session, proposal, everyone))])
    yield (
        "decisions from the future",
        Decisions(7, [Decision(9, cohort, signed(session, cohort, everyone, instance=7))]),
    )


def bad_proposals(n: int, least: int) -> dict[str, Proposal]:
    contents = [(party, bytes([party]) * 32) for party in range(n)]
    return {
        "for a few": Proposal("cohort", contents[: least - 1]),
        "for nobody": Proposal("cohort", []),
        "for strangers": Proposal("cohort", [*contents, (n, bytes(32))]),
        "with a party twice": Proposal("cohort", [*contents[:-1], contents[0]]),
        "with a party twice in a row": Proposal("cohort", [contents[0], *contents]),
        "out of order": Proposal("cohort", contents[::-1]),
        "with short hashes": Proposal("cohort", [(party, b"short") for party in range(n)]),
        "with long hashes": Proposal("cohort", [(party, bytes(33)) for party in range(n)]),
        "to commit to no cohort": Proposal("commit", contents),
    }


def signed(
    session: SessionConfig, proposal: Proposal, parties: Iterable[int], *, instance: int = 0, ballot: int = 9
) -> list[tuple[int, bytes]]:
    """Acceptances as their parties sign them."""
    signers = {party: BallotSignatures(session, party, sign(party), verify) for party in parties}
    return [(party, signer.sign("accept", instance, ballot, proposal.hash)) for party, signer in signers.items()]


def forged_signatures(session: SessionConfig, cohort: Proposal) -> dict[str, list[tuple[int, bytes]]]:
    """Lists of acceptances that do not show that a quorum has accepted a proposal in ballot 9."""
    q, n = session.quorum, session.parties
    enough = signed(session, cohort, range(q))
    other = Proposal("cohort", cohort.contents[:-1])
    return {
        "without signatures": [],
        "with too few signatures": enough[:-1],
        "with one signature again and again": q * enough[:1],
        "with a signature twice in place of another": [*enough[:-1], enough[0]],
        "with false signatures": [(party, b"forged") for party in range(q)],
        "with a false signature": [*enough[:-1], (q - 1, b"forged")],
        "with a false signature more": [*enough, (q, b"forged")],
        "with the signature of another": [*enough[:-1], (q - 1, enough[0][1])],
        "signed in another ballot": signed(session, cohort, range(q), ballot=10),
        "signed for another number": signed(session, cohort, range(q), instance=1),
        "signed for another proposal": signed(session, other, range(q)),
        "signed by strangers": [(n + party, signature) for party, signature in enough],
        "with more signatures than parties": 2 * n * enough,
    }


def replace_party(owner: SignedItems, session: SessionConfig, party: int) -> Item:
    item = owner.sign("digest", EMPTY)
    return Item(item.kind, party, item.body, item.signature)


NONSENSE = replace(PACED, rounds=6, seed=b"n" * 32)


def waiting(stage: str) -> Room:
    """All wait for deposits, or for the keys of others."""
    room = Room(NONSENSE)
    room.perform_assessments = stage != "assessing"
    room.drops = lambda sender, receiver, message: (
        isinstance(message, Items) and any(item.kind == "key" for item in message.items)
    )
    return room.open().at_stage(2, stage)


@pytest.mark.parametrize(
    "stage", ["gathering", "asking", "rounds", "digests", "agreeing", "assessing", "opening", "serving"]
)
def test_nonsense_changes_nothing(stage: str) -> None:
    room = Room(NONSENSE)
    if stage == "asking":
        room.at(START + 0.5, room.kill, 2)
        room.at(START + 0.5, room.recover, 2)
    elif stage in ("assessing", "opening"):
        room = waiting(stage)
    elif stage != "gathering":  # some are missing, and nobody proposes, so that the others wait in every stage
        waits = stage in ("digests", "agreeing")

        def drops(sender: int, receiver: int, message: Message) -> bool:
            return (room.now > START + 1.0 and bool({0, 1} & {sender, receiver})) or (
                waits and isinstance(message, Prepare | Propose)
            )

        room.drops = drops
    if not room.parties:
        room.open().at_stage(2, stage)
    party = room.parties[2]
    if stage == "rounds":
        room.run(until=START + 0.5)
    for name, message in [*nonsense(NONSENSE, 2), *nonsense_about_cohorts(party)]:
        if stage == "asking" and isinstance(message, Seen | Ack):
            continue  # which is what it waits for
        before = snapshot(party)
        effects = party.receive(room.now, 0, decode(encode(message)))
        assert not effects.records, name
        assert snapshot(party) == before, name
        answers = [answer for _, answer in effects.sends if not isinstance(answer, Have | Prepare | Accept)]
        told = (Offer, Decisions) if stage in ("assessing", "opening", "serving") else (Offer,)  # what was decided
        assert not [answer for answer in answers if not isinstance(answer, told)], name


def test_what_is_not_nonsense_is_taken() -> None:
    """From which the deposits, refusals and keys above differ in one thing each."""
    room = waiting("assessing")
    party, items = room.parties[2], foreign(NONSENSE, 0)
    deposit, sealed = dealt(party)
    refusal = Refusal(deposit.cohort, deposit.hash, "no")
    for item in (items.sign("deposit", deposit, sealed), items.sign("refusal", refusal), items.sign("digest", EMPTY)):
        before = snapshot(party)
        assert not room.hand(0, 2, Items([item])).violations and snapshot(party) != before, item.kind
    opening = waiting("opening").parties[2]
    before = snapshot(opening)
    key = items.sign("key", Key(0, secrets_of(0, 0).private_key))
    assert not opening.receive(room.now, 0, Items([key])).violations and snapshot(opening) != before


def test_calls_that_tell_nothing_new_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    acked = next(t for t, fate in party.ledger.fates.items() if fate != OPEN)
    for effects in (
        party.unsent(room.now, Offer(acked, b"")),
        party.unsent(room.now, Ask()),
        party.in_doubt(room.now, Offer(acked, b"")),
        party.in_doubt(room.now, Ask()),
        party.down(room.now, 0),
        party.up(room.now, 0),
        party.tick(room.now),
    ):
        assert not effects.records and snapshot(party) == before


def test_illegal_calls_are_refused_and_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party, now = room.parties[2], room.now
    before = snapshot(party)
    calls: dict[str, Callable[[], object]] = {
        "only once": lambda: party.open(now, noisy(PACED, 2), masks(2), secret(2), sealing(2)),
        "recovered only once": lambda: party.recover(now, list(room.journals[2])),
        "planned can only be called when it was asked for, got it in 'rounds'": lambda: party.planned(
            now, "too late for that"
        ),
    }
    for sentence, call in calls.items():
        with pytest.raises(LocalProtocolError, match=re.escape(sentence)):
            call()
        assert snapshot(party) == before, sentence


def test_nothing_can_be_done_before_a_party_is_opened() -> None:
    party = Room(PACED).make(2)
    before = snapshot(party)
    calls: tuple[Callable[[], object], ...] = (
        lambda: party.tick(0.0),
        lambda: party.receive(0.0, 1, Ask()),
        lambda: party.unsent(0.0, Ask()),
        lambda: party.in_doubt(0.0, Ask()),
        lambda: party.down(0.0, 1),
        lambda: party.up(0.0, 1),
        lambda: party.planned(0.0, ""),
    )
    for call in calls:
        with pytest.raises(LocalProtocolError, match="must be opened or recovered before anything else"):
            call()
        assert snapshot(party) == before


@pytest.mark.parametrize("short", ["value", "masks", "secret", "sealing"])
def test_a_party_is_opened_with_a_value_and_secrets_of_the_right_size(short: str) -> None:
    whole: dict[str, Any] = {"value": noisy(PACED, 2), "masks": masks(2), "secret": secret(2), "sealing": sealing(2)}
    opening = whole | {short: whole[short][:-1]}
    with pytest.raises(CorruptJournal):
        Room(PACED).make(2).open(0.0, *opening.values())
    assert Room(PACED).make(2).open(0.0, *whole.values()).records


def test_a_journal_without_an_opening_is_refused() -> None:
    with pytest.raises(CorruptJournal, match="the journal must have an opening, got none"):
        Room(PACED).make(2).recover(0.0, [])


def test_messages_of_unknown_parties_are_refused_and_change_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    for peer in (2, N, -1):
        calls: list[Callable[[], object]] = [partial(party.down, room.now, peer), partial(party.up, room.now, peer)]
        for message in (Ask(), Prepare(0, 9), party.signed_items.have(), Nudge(1)):
            calls.append(partial(party.receive, room.now, peer, message))
        for call in calls:
            with pytest.raises(LocalProtocolError, match=f"a peer must be another of the {N} parties, got {peer}"):
                call()
            assert snapshot(party) == before


def test_bits_that_do_not_fit_take_nothing_else_along() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    party = room.parties[2]
    before = snapshot(party)
    effects = party.receive(room.now, 0, Have({"digest": bits({0, 1}, N), "deposit": bytes(9)}, 0, False))
    assert snapshot(party) == before and not [answer for _, answer in effects.sends if isinstance(answer, Have | Want)]


def test_skipping_rounds_that_there_are_not_changes_nothing() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    before = set(room.parties[2].transfers._skipped)
    for t in (0, PACED.rounds + 1, 2**32 - 1):
        room.hand(0, 2, Skipped(t))
    assert room.parties[2].transfers._skipped == before


def test_a_witness_of_offers_that_there_cannot_be_drives_nobody_out() -> None:
    room = Room(PACED).open().run(until=START + 0.5)
    room.kill(2)
    room.drops = lambda sender, receiver, message: sender == 0
    room.recover(2)
    room.hand(0, 2, Seen([OfferProof(PACED.rounds + 5, bytes(8), bytes(32), b"")], 2, 0, []))
    assert room.parties[2].stage == "asking"


@pytest.mark.parametrize("numbers", [[5, 0, 0], [-5, 0, 0], [0, 0, 5]], ids=str)
def test_an_offer_that_makes_a_balance_larger_than_any_honest_one_is_void_and_crashes_nobody(
    numbers: list[int],
) -> None:
    """Its sender need not have lied: others may have made the balance that large."""
    session, last = PACED, PACED.rounds
    room, sender = Room(session), session.topology(b"p" * 32).senders[last][2]
    room.drops = lambda other, receiver, message: (
        isinstance(message, Offer) and message.round == last and other == sender
    )
    room.open().run(until=START + 3 * session.min_round_duration + 0.1)
    party = room.parties[2]
    largest = np.array([np.sign(numbers[0]) * (2**62 - 4), 0, N * WEIGHT - 4])  # so that the sum is beyond
    party.ledger.balance[:] = largest
    assert party.ledger.round == last
    huge = offer_of(room, last, sender, 2, numbers)
    effects = party.receive(room.now, sender, huge)
    assert effects.records == [Tombstoned(last, huge.proof)]
    assert (sender, Voided(last)) in effects.sends
    again = party.receive(room.now, sender, offer_of(room, last, sender, 2))  # written once
    assert not again.records and (sender, Voided(last)) in again.sends


def test_an_offer_of_the_largest_number_crashes_nobody_up_to_the_result() -> None:
    session, room = PACED, Room(PACED)
    lies: set[tuple[int, int]] = set()

    def drops(sender: int, receiver: int, message: Message) -> bool:
        if isinstance(message, Offer) and message.round == session.rounds and sender == 0:
            lies.add((sender, receiver))
            lie = offer_of(room, message.round, sender, receiver, [2**62 - 1, 2**62 - 1, 0])
            room.queue.append((sender, receiver, room.incarnations[receiver], encode(lie)))
            return True
        return False

    room.drops = drops
    room.open().run()
    assert lies and all(party.stage == "over" for party in room.parties.values())
    honest = [party for i, party in room.parties.items() if i != 0]
    assert len({None if p.result is None else tuple(p.result.total.tolist()) for p in honest}) == 1


# --- forged decisions ---------------------------------------------------------------------------------------------


def digests_agreed(room: Room) -> Proposal:
    digests = room.parties[2].signed_items.by_kind["digest"]
    return Proposal("cohort", [(i, digests[i].hash) for i in sorted(digests)])


def test_a_decision_is_taken_if_a_quorum_has_signed_it_and_not_otherwise() -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Prepare | Propose)
    room.open().at_stage(2, "agreeing")
    party, cohort = room.parties[2], digests_agreed(room)
    for name, signatures in forged_signatures(PACED, cohort).items():
        room.hand(0, 2, Decisions(0, [Decision(9, cohort, signatures)]))
        assert not party.ledger.decided and party.stage == "agreeing", name
    invalid = [fields["what"] for i, event, fields in room.log_events if (i, event) == (2, "invalid message")]
    assert invalid == len(invalid) * ["a decision must have the signatures of at least 4 parties"] and invalid
    room.hand(0, 2, Decisions(0, [Decision(9, cohort, signed(PACED, cohort, (0, 1, 3, 4)))]))
    assert [decision.proposal for decision in party.ledger.decided] == [cohort]


@pytest.mark.parametrize("step", ["cohort", "commit"])
def test_a_signed_decision_that_does_not_follow_is_refused(step: str) -> None:
    room = Room(PACED)
    room.drops = lambda sender, receiver, message: isinstance(message, Prepare | Propose)
    room.open().at_stage(2, "agreeing")
    party, cohort = room.parties[2], digests_agreed(room)
    room.hand(0, 2, Decisions(0, [Decision(9, cohort, signed(PACED, cohort, (0, 1, 3, 4)))]))
    wrong = {
        "cohort": [cohort, Proposal("cohort", [(i, bytes(32)) for i in range(3)])],
        "commit": [Proposal("commit", cohort.contents[:-1])],
    }
    for proposal in wrong[step]:
        signatures = signed(PACED, proposal, (0, 1, 3, 4), instance=1)
        room.hand(0, 2, Decisions(1, [Decision(9, proposal, signatures)]))
        assert len(party.ledger.decided) == 1
    smaller = Proposal("cohort", cohort.contents[:-1])
    room.hand(0, 2, Decisions(1, [Decision(9, smaller, signed(PACED, smaller, (0, 1, 3, 4), instance=1))]))
    assert [decision.proposal for decision in party.ledger.decided] == [cohort, smaller]
