from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from helpers.ledgers import (
    PROPOSAL,
    SESSION,
    SHARE,
    decided,
    fresh,
    in_round,
    late,
    missing,
    opening,
    possible,
    receiver_of,
    sessions,
    state,
)
from inca.errors import CorruptJournal
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.lattice.fixed_point import portion
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Decision, Item, Lock, OfferProof, Proposal, pack
from inca.network.protocol.records import (
    Accepted,
    Answered,
    Began,
    Credited,
    Decided,
    Erased,
    Joined,
    Kept,
    Left,
    Opened,
    Promised,
    Record,
    Sealed,
    Secret,
    Seeded,
    Signed,
    Tombstoned,
    Voted,
    Vouched,
)
from inca.network.protocol.session import WEIGHT, SessionConfig


@given(sessions(), st.randoms(use_true_random=False), st.integers(5, 80))
@examples(30, 80)
def test_mass_is_conserved_after_every_record_and_records_give_the_same_book(
    session: SessionConfig, rng: random.Random, length: int
) -> None:
    ledgers = [Ledger(session, i) for i in range(session.parties)]
    journals: list[list[Record]] = [[] for _ in ledgers]

    def happen(i: int, record: Record) -> None:
        ledgers[i].apply(record)
        journals[i].append(record)
        assert not any(missing(ledgers)), f"after {record} of party {i}"

    assert session.seed is not None
    for i in range(session.parties):
        happen(i, opening(session, i))
        happen(i, Seeded(session.seed))
    for _ in range(length):
        happen(*rng.choice(possible(ledgers, rng.randrange(session.parties))))
    for i, (ledger, journal) in enumerate(zip(ledgers, journals, strict=True)):
        again = Ledger(session, i)
        for record in journal:  # as the journal keeps it
            again.apply(msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=Record))
        assert state(again) == state(ledger)
        assert again.account == ledger.account and again.next_share() == ledger.next_share()


@given(sessions(), st.randoms(use_true_random=False))
@examples(20, 40)
def test_masks_vanish_exactly_and_weights_are_whole_when_everyone_is_there(
    session: SessionConfig, rng: random.Random
) -> None:
    ledgers = [fresh(session, i) for i in range(session.parties)]
    for t in range(1, session.rounds + 1):
        for ledger in rng.sample(ledgers, len(ledgers)):
            ledger.apply(Began(t, ledger.next_share()))
        for ledger in rng.sample(ledgers, len(ledgers)):
            ledgers[receiver_of(ledger, t)].apply(Credited(t, pack(ledger.share(t))))
            ledger.apply(Answered(t, "acked"))
    values = [np.frombuffer(opening(session, i).noisy, dtype=np.int64) for i in range(session.parties)]
    for ledger, value in zip(ledgers, values, strict=True):
        assert ledger.injected.tolist() == [*value.tolist(), WEIGHT]
        assert ledger.settled(frozenset(range(session.parties)), set(ledger.fates)).tolist() == ledger.balance.tolist()
    total = np.sum([ledger.balance for ledger in ledgers], axis=0)
    assert total.tolist() == [*np.sum(values, axis=0).tolist(), session.parties * WEIGHT]


@given(sessions(), st.data())
@examples(40, 100)
def test_what_is_injected_under_absence_is_what_the_library_says(session: SessionConfig, data: st.DataObject) -> None:
    there = data.draw(st.lists(st.booleans(), min_size=session.rounds, max_size=session.rounds))
    ledger = fresh(session)
    for t, present in enumerate(there, start=1):
        if present:
            ledger.apply(Began(t, ledger.next_share()))
    attended = 1 + sum(there)
    assert ledger.account.present == [t for t, here in enumerate(there, 1) if here]
    value = np.append(np.frombuffer(opening(session, 0).noisy, dtype=np.int64), WEIGHT)
    expected = np.sum([portion(value, r, session.pieces) for r in range(attended)], axis=0)
    if not there[-1]:  # whoever leaves takes its live mask along: the one of the last round it was there
        live = Keystream(bytes(32), b"mask %d" % (attended - 1))
        expected[:-1] += discrete_gaussian(session.sigma_cancelling, session.dimension, live)
    assert ledger.injected.tolist() == expected.tolist()
    flags = np.ones((session.rounds + 1, session.parties), dtype=bool)
    flags[1:, 0] = there
    assert ledger.topology is not None
    execution = inca.Execution(
        ledger.topology.schedule, inca.incremental_injection(session.rounds), inca.Presence.explicit(flags)
    )
    assert int(ledger.injected[-1]) / WEIGHT == pytest.approx(execution.total_weights[0], abs=2.0**-30)


@pytest.mark.parametrize("there", [[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], ids=str)
def test_noise_enters_as_the_injection_says(there: list[int]) -> None:
    """Z^(i) of the library against what enters a ledger without a value."""
    session = replace(SESSION, dimension=1)
    ledger = Ledger(session, 0)
    ledger.apply(Opened(pack(np.array([0], dtype=np.int64)), bytes(32), bytes(32)))
    ledger.apply(Seeded(bytes(32)))
    seen = [int(ledger.injected[0])]
    for t in range(1, session.rounds + 1):
        before = int(ledger.injected[0])
        if there[t - 1]:
            ledger.apply(Began(t, ledger.next_share()))
        seen.append(int(ledger.injected[0]) - before)
    terms = [discrete_gaussian(session.sigma_cancelling, 1, Keystream(bytes(32), b"mask %d" % r)) for r in range(T)]
    _, z = inca.incremental_injection(session.rounds).adapted([1, *there])
    assert seen == (np.rint(z).astype(np.int64) @ np.concatenate(terms)).tolist()


# --- one record after the other -----------------------------------------------------------------------------------


def test_a_round_debits_a_share() -> None:
    ledger = fresh(SESSION)
    before, part = ledger.balance.copy(), ledger.balance // 2
    ledger.apply(Began(1, ledger.next_share()))
    entered = ledger.injected - before  # of round 1
    assert ledger.balance.tolist() == (before - part + entered).tolist()
    assert ledger.open == [1] and ledger.share(1).tolist() == part.tolist()
    assert ledger.account.present == [1] and ledger.account.fates == [OPEN]


@pytest.mark.parametrize(
    ("fate", "later", "told"), [("acked", 0, ACKED), ("acked", 2, ACKED), ("voided", 0, BACK), ("unsent", 0, NOBODY)]
)
def test_an_answer_settles_an_offer(fate: str, later: int, told: int) -> None:
    ledger = in_round(1 + later)
    before, part = ledger.balance.copy(), ledger.share(1).copy()
    ledger.apply(Answered(1, fate))
    assert ledger.account.fates[0] == told
    assert (ledger.balance - before).tolist() == (part * (fate != "acked")).tolist()
    assert 1 not in ledger.open


def test_credits_and_tombstones() -> None:
    ledger = in_round(2)
    before = ledger.balance.copy()
    ledger.apply(Credited(2, SHARE))
    assert (ledger.balance - before).tolist() == [5, -6, 7]
    assert ledger.account.credited == [2] and ledger.decisions == {2: True}
    ledger.apply(Tombstoned(4))  # before its round: the sender asked early
    assert ledger.decisions == {2: True, 4: False} and ledger.account.credited == [2]


def test_a_sealed_book_still_takes_tombstones_promises_and_signatures() -> None:
    ledger = in_round(SESSION.rounds)
    ledger.apply(Sealed())
    balance = ledger.balance.tolist()
    item = Item("digest", 0, b"", b"")
    for record in (
        Tombstoned(2),
        Signed(item),
        Promised(0, 5),
        Accepted(0, Lock(5, PROPOSAL, []), []),
        Left(""),
    ):
        ledger.apply(record)
    assert ledger.own_items == {("digest", None): item} and ledger.promised == {0: 5} and ledger.left == ""
    assert ledger.balance.tolist() == balance


def test_an_acceptance_is_a_promise_for_its_decision_and_no_other() -> None:
    ledger = fresh(SESSION)
    ledger.apply(Promised(1, 3))
    accepted = Accepted(1, Lock(8, PROPOSAL, []), [])
    ledger.apply(accepted)
    assert ledger.promised == {1: 8} and ledger.accepted == {1: accepted}
    ledger.apply(Promised(2, 4))
    assert ledger.promised == {1: 8, 2: 4}


def test_decisions_are_kept_in_order() -> None:
    ledger = fresh(SESSION)
    first, second = Decision(4, PROPOSAL, []), Decision(9, PROPOSAL, [(1, b"signature")])
    ledger.apply(Decided(first))
    ledger.apply(Decided(second))
    assert ledger.decided == [first, second]


@pytest.mark.parametrize("word", ["deposit", "refusal"])
def test_a_word_on_each_cohort_and_one_digest(word: str) -> None:
    """Nobody that has made a deposit refuses the same cohort, nor the other way round."""
    ledger = fresh(SESSION)
    ledger.apply(Signed(Item("digest", 0, b"one", b"")))
    refuse(ledger, Signed(Item("digest", 0, b"two", b"")))
    for cohort in (0, 1):
        ledger.apply(Signed(Item(word, 0, b"%d" % cohort, b""), cohort))
        for another in ("deposit", "refusal"):
            refuse(ledger, Signed(Item(another, 0, b"two", b""), cohort))
    assert [ledger.own_items[word, cohort].body for cohort in (0, 1)] == [b"0", b"1"]
    assert {(item.kind, item.body) for item in ledger.durable_items} == {("digest", b"one"), (word, b"0"), (word, b"1")}


# --- the secrets of cohorts -----------------------------------------------------------------------------------------


def cohort_of(*parties: int) -> Proposal:
    return Proposal("cohort", [(party, bytes([party]) * 32) for party in parties])


def test_secrets_move_on_to_later_cohorts_and_never_back() -> None:
    ledger = fresh(SESSION)
    first = ledger.secrets
    assert first is not None and first.cohort == 0
    later = first.advanced(2)
    ledger.apply(Secret(2, later.state))
    assert ledger.secrets == later
    for cohort in (0, 1, 2):
        refuse(ledger, Secret(cohort, first.advanced(cohort).state))
    ledger.apply(Erased())
    assert ledger.secrets is None


@pytest.mark.parametrize("erased", [1, 2, None])
def test_a_journal_from_which_secrets_are_erased_is_read_as_any_other(erased: int | None) -> None:
    """What was before is gone from the disk: the records of it are absent, and nothing else is different."""
    first = fresh(SESSION).secrets
    assert first is not None
    kept: list[Record] = [Erased()] if erased is None else [Secret(erased, first.advanced(erased).state)]
    ledger = Ledger(SESSION, 0)
    decisions = [Decided(Decision(number, cohort_of(*range(4 - number)), [])) for number in (0, 1)]
    for record in (opening(SESSION, 0), Seeded(bytes(32)), *decisions, *kept):
        ledger.apply(record)
    assert ledger.cohorts == 2 and ledger.cohort == cohort_of(0, 1, 2)
    assert ledger.secrets == (None if erased is None else first.advanced(erased))
    assert ledger.topup(0).tolist() == [0, 0]  # which needs none


def test_what_was_decided_tells_cohort_and_commit() -> None:
    ledger = fresh(SESSION)
    assert (ledger.cohort, ledger.cohorts, ledger.committed, ledger.in_doubt) == (None, 0, False, False)
    for number, members in enumerate(((0, 1, 2, 3), (0, 1, 2)), 1):
        ledger.apply(Decided(Decision(7, cohort_of(*members), [])))
        assert ledger.cohort == cohort_of(*members) and ledger.cohorts == number and not ledger.committed
    commit = Proposal("commit", cohort_of(0, 1, 2).contents)
    ledger.apply(Accepted(2, Lock(8, commit, []), []))
    assert ledger.in_doubt and not ledger.committed
    ledger.apply(Decided(Decision(8, commit, [])))
    assert ledger.committed and not ledger.in_doubt and ledger.cohort == cohort_of(0, 1, 2)


def test_whoever_has_accepted_a_smaller_cohort_after_all_is_in_no_doubt() -> None:
    ledger = fresh(SESSION)
    ledger.apply(Decided(Decision(7, cohort_of(0, 1, 2, 3), [])))
    ledger.apply(Accepted(1, Lock(8, Proposal("commit", cohort_of(0, 1, 2, 3).contents), []), []))
    assert ledger.in_doubt
    ledger.apply(Accepted(1, Lock(9, cohort_of(0, 1, 2), []), []))
    assert not ledger.in_doubt


@given(sessions(), st.randoms(use_true_random=False), st.integers(5, 120))
@examples(30, 80)
def test_settled_balances_of_any_cohort_add_up_to_what_it_injected(
    session: SessionConfig, rng: random.Random, length: int
) -> None:
    """Whatever was lost, whoever is not in it, and wherever everyone stopped."""
    ledgers = [fresh(session, i) for i in range(session.parties)]
    for _ in range(length):
        i, record = rng.choice(possible(ledgers, rng.randrange(session.parties)))
        ledgers[i].apply(record)
    cohort = frozenset(rng.sample(range(session.parties), rng.randint(1, session.parties)))
    credited = {
        i: {t for t in ledgers[i].fates if (j := receiver_of(ledgers[i], t)) in cohort and t in ledgers[j].received}
        for i in cohort
    }
    settled = np.sum([ledgers[i].settled(cohort, credited[i]) for i in sorted(cohort)], axis=0)
    assert settled.tolist() == np.sum([ledgers[i].injected for i in sorted(cohort)], axis=0).tolist()


def test_top_up_noise_is_drawn_once_and_of_the_size_that_is_asked_for() -> None:
    ledger, other = fresh(SESSION, 0), fresh(SESSION, 1)
    assert ledger.topup(0).tolist() == [0, 0]
    assert ledger.topup(2**20).tolist() == ledger.topup(2**20).tolist() != other.topup(2**20).tolist()
    assert ledger.topup(2**20).dtype == np.int64 and ledger.topup(2**20).any()
    earlier = ledger.topup(2**20).tolist()
    assert ledger.secrets is not None
    ledger.apply(Secret(1, ledger.secrets.advanced(1).state))
    assert ledger.topup(2**20).tolist() != earlier  # of each cohort its own
    masks = [drawn.tolist() for drawn in ledger._drawn]
    assert ledger.topup(SESSION.sigma_cancelling).tolist() not in masks  # no noise serves twice


def test_whoever_joins_late_decides_nothing_earlier() -> None:
    ledger = fresh(SESSION, late=True)
    ledger.apply(Joined(3))
    assert ledger.since == 3


def buried() -> Ledger:
    ledger = in_round(2)
    ledger.apply(Tombstoned(2))
    return ledger


def sealed() -> Ledger:
    ledger = in_round(SESSION.rounds)
    ledger.apply(Sealed())
    return ledger


def answered() -> Ledger:
    ledger = in_round(2)
    ledger.apply(Answered(2, "voided"))
    return ledger


def bound() -> Ledger:
    ledger = in_round(1)
    ledger.apply(Signed(Item("deposit", 0, b"one", b""), 0))
    ledger.apply(Promised(0, 8))
    ledger.apply(Voted(0, 8, b"hash"))
    ledger.apply(Accepted(0, Lock(8, PROPOSAL, []), []))
    return ledger


def unseeded() -> Ledger:
    ledger = Ledger(SESSION, 0)
    ledger.apply(opening(SESSION, 0))
    return ledger


def unopened() -> Ledger:
    ledger = Ledger(SESSION, 0)
    ledger.apply(Seeded(bytes(32)))
    return ledger


def joined() -> Ledger:
    ledger = late()
    ledger.apply(Began(2, ledger.next_share()))
    return ledger


T = SESSION.rounds
ILLEGAL: dict[str, tuple[Ledger, Record]] = {
    "a second opening": (in_round(), opening(SESSION, 0)),
    "a second seed": (in_round(), Seeded(bytes(32))),
    "another seed": (in_round(), Seeded(b"1" * 32)),
    "a round before the opening": (unopened(), Began(1, unopened().next_share())),
    "a round before the seed": (unseeded(), Began(1, unseeded().next_share())),
    "the same round again": (in_round(2), Began(2, in_round(2).next_share())),
    "an earlier round": (in_round(2), Began(1, in_round(2).next_share())),
    "round 0": (fresh(SESSION), Began(0, fresh(SESSION).next_share())),
    "a negative round": (fresh(SESSION), Began(-1, fresh(SESSION).next_share())),
    "a round after the last": (in_round(T), Began(T + 1, in_round(T).next_share())),
    "another share": (in_round(1), Began(2, SHARE)),
    "a share of another width": (in_round(1), Began(2, in_round(1).next_share()[:-8])),
    "a round after the seal": (sealed(), Began(T, sealed().next_share())),
    "a second credit": (decided(), Credited(2, SHARE)),
    "a tombstone after a credit": (decided(), Tombstoned(2)),
    "a credit after a tombstone": (buried(), Credited(2, SHARE)),
    "a second tombstone": (buried(), Tombstoned(2)),
    "a credit after its round": (in_round(3), Credited(2, SHARE)),
    "a credit before its round": (in_round(1), Credited(2, SHARE)),
    "a credit after the seal": (sealed(), Credited(T, SHARE)),
    "an answer about no offer": (in_round(2), Answered(3, "acked")),
    "a second answer": (answered(), Answered(2, "voided")),
    "another answer": (answered(), Answered(2, "acked")),
    "a share that is back after its round": (in_round(2), Answered(1, "voided")),
    "a share that never left, after its round": (in_round(2), Answered(1, "unsent")),
    "an unknown fate": (in_round(2), Answered(2, "lost")),
    "an answer after the seal": (sealed(), Answered(T, "voided")),
    "an ack after the seal": (sealed(), Answered(T, "acked")),
    "a second seal": (sealed(), Sealed()),
    "a second deposit": (bound(), Signed(Item("deposit", 0, b"two", b""), 0)),
    "a refusal after a deposit": (bound(), Signed(Item("refusal", 0, b"two", b""), 0)),
    "the secrets of a cohort again": (in_round(), Secret(0, bytes(32))),
    "a promise again": (bound(), Promised(0, 8)),
    "a promise that breaks another": (bound(), Promised(0, 7)),
    "a vote that breaks a promise": (bound(), Voted(0, 7, b"")),
    "another vote in the same ballot": (bound(), Voted(0, 8, b"")),
    "an acceptance that breaks a promise": (bound(), Accepted(0, Lock(7, PROPOSAL, []), [])),
    "a value of another width": (Ledger(SESSION, 0), Opened(b"short", bytes(32), bytes(32))),
    "a value beyond all balances": (Ledger(SESSION, 0), Opened(pack(np.array([2**62, 0])), bytes(32), bytes(32))),
    "a seed of masks of another length": (Ledger(SESSION, 0), Opened(bytes(16), b"short", bytes(32))),
    "a credit of another width": (in_round(2), Credited(2, SHARE[:-8])),
    "a credit beyond all balances": (in_round(2), Credited(2, pack(np.array([2**62, 0, 0])))),
    "a credit in round 0": (fresh(SESSION), Credited(0, SHARE)),
    "a credit before the opening": (Ledger(SESSION, 0), Credited(0, SHARE)),
    "a tombstone before the seed": (unseeded(), Tombstoned(1)),
    "a tombstone in round 0": (in_round(1), Tombstoned(0)),
    "a tombstone after the last round": (in_round(1), Tombstoned(T + 1)),
    "another acceptance in the same ballot": (bound(), Accepted(0, Lock(8, PROPOSAL, []), [])),
    "joining after a round": (joined(), Joined(1)),
    "joining twice": (late(), Joined(3)),
    "joining without having come late": (fresh(SESSION), Joined(1)),
    "joining before the opening": (unopened(), Joined(1)),
    "a word for a party that came in time": (fresh(SESSION), Vouched()),
    "a word for a party that has joined": (late(), Vouched()),
    "a word before the opening": (unopened(), Vouched()),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_record_is_refused_and_changes_nothing(name: str) -> None:
    refuse(*ILLEGAL[name])


def refuse(ledger: Ledger, record: Record) -> None:
    before = state(ledger)
    with pytest.raises(CorruptJournal):
        ledger.apply(record)
    assert state(ledger) == before


AS_SAID: list[object] = ["cohort", [[0, bytes(32)], [2, b"h" * 32]]]
PROOF = OfferProof(2, b"weight", b"hash", b"signature")
AS_WRITTEN: list[tuple[Record, list[object]]] = [
    (Opened(b"noisy", b"masks", b"secret"), ["opened", b"noisy", b"masks", b"secret", False]),
    (Opened(b"noisy", b"masks", b"secret", late=True), ["opened", b"noisy", b"masks", b"secret", True]),
    (Seeded(b"seed"), ["seeded", b"seed"]),
    (Began(2, b"share"), ["began", 2, b"share"]),
    (Credited(2, b"payload"), ["credited", 2, b"payload", None]),
    (Credited(2, b"payload", PROOF), ["credited", 2, b"payload", [2, b"weight", b"hash", b"signature"]]),
    (Tombstoned(2), ["tombstoned", 2, None, b""]),
    (Tombstoned(2, PROOF, b"payload"), ["tombstoned", 2, [2, b"weight", b"hash", b"signature"], b"payload"]),
    (Answered(2, "acked"), ["answered", 2, "acked"]),
    (Sealed(), ["sealed"]),
    (Joined(3), ["joined", 3]),
    (Vouched(), ["vouched"]),
    (Promised(1, 7), ["promised", 1, 7]),
    (Voted(1, 7, b"hash"), ["voted", 1, 7, b"hash"]),
    (
        Accepted(1, Lock(7, PROPOSAL, []), [Item("deposit", 2, b"body", b"signature", b"sealed")]),
        ["accepted", 1, [7, AS_SAID, []], [["deposit", 2, b"body", b"signature", b"sealed"]]],
    ),
    (Decided(Decision(7, PROPOSAL, [(3, b"signature")])), ["decided", [7, AS_SAID, [[3, b"signature"]]]]),
    (Signed(Item("digest", 2, b"body", b"signature")), ["signed", ["digest", 2, b"body", b"signature", b""], None]),
    (
        Signed(Item("deposit", 2, b"body", b"signature", b"sealed"), 3),
        ["signed", ["deposit", 2, b"body", b"signature", b"sealed"], 3],
    ),
    (Secret(3, b"state"), ["secret", 3, b"state"]),
    (Erased(), ["erased"]),
    (Kept([Item("digest", 2, b"body", b"signature")]), ["kept", [["digest", 2, b"body", b"signature", b""]]]),
    (Left("reason"), ["left", "reason"]),
]


@pytest.mark.parametrize(("record", "fields"), AS_WRITTEN, ids=lambda value: type(value).__name__)
def test_records_are_written_as_ever_and_cannot_be_changed(record: Record, fields: list[object]) -> None:
    """A list of the name and the fields: journals of this format are read by all later versions."""
    written = msgspec.msgpack.encode(record)
    assert msgspec.msgpack.decode(written) == fields
    assert msgspec.msgpack.decode(written, type=Record) == record
    for name in record.__struct_fields__:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(record, name, b"other")


def test_a_fresh_ledger_has_promised_nothing_and_holds_nothing() -> None:
    ledger = Ledger(SESSION, 1)
    assert (ledger.round, ledger.fates, ledger.since) == (0, {}, 0)
    assert not ledger.promised and not ledger.accepted and not ledger.decided
    assert not ledger.balance.any() and not ledger.injected.any() and ledger.balance.size == SESSION.dimension + 1
    assert [ledger.left, ledger.opened, ledger.seed] == [None] * 3 and not ledger.sealed
    ledger.apply(Promised(0, 1))
    ledger.apply(Accepted(0, Lock(1, PROPOSAL, []), []))  # what was promised may be accepted
    with pytest.raises(CorruptJournal, match="a second acceptance in a ballot"):
        ledger.apply(Accepted(0, Lock(1, PROPOSAL, []), []))
    with pytest.raises(CorruptJournal, match="a promise that breaks an earlier one"):
        ledger.apply(Promised(0, 1))
    ledger.apply(Promised(0, 5))
    with pytest.raises(CorruptJournal, match="an acceptance that breaks a promise"):
        ledger.apply(Accepted(0, Lock(4, PROPOSAL, []), []))


def test_a_party_was_certainly_absent_where_it_began_a_later_round_or_is_sealed() -> None:
    """Else it may still come: whoever says too much has a share taken back that it then credits."""
    ledger = fresh(SESSION)
    for t in (1, 3):
        ledger.apply(Began(t, ledger.next_share()))
    assert [ledger.skipped(t) for t in range(5)] == [False, False, True, False, False]
    ledger.apply(Sealed())
    assert [ledger.skipped(t) for t in range(5)] == [False, False, True, False, True]
