from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from helpers.ledgers import SESSION, opening, possible, sessions
from inca.errors import InvalidPeerMessage
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Account
from inca.network.protocol.realized_execution import Contradiction, RealizedExecution, check_account, realize
from inca.network.protocol.records import Sealed, Seeded
from inca.network.protocol.session import WEIGHT, SessionConfig, Topology
from inca.protocol.undelivered import Undelivered

N, T = 4, 3
RING_SESSION = replace(SESSION, parties=N, rounds=T)
RING = Topology(inca.ExplicitSchedule([[[(i + 1) % N] for i in range(N)]] * T))


def account(fates: dict[int, int], credited: list[int]) -> Account:
    """The fate of a party's offer by round, and the rounds in which it has credited the other."""
    return Account(sorted(fates), [fates[t] for t in sorted(fates)], credited)


def full() -> dict[int, Account]:
    """Everyone there in all rounds, everything credited and acknowledged."""
    return {i: account(dict.fromkeys(range(1, T + 1), ACKED), list(range(1, T + 1))) for i in range(N)}


def put(accounts: dict[int, Account]) -> RealizedExecution:
    """Realize what the accounts of a cohort tell."""
    for party, told in accounts.items():
        check_account(RING_SESSION, party, told)
    return realize(RING_SESSION, RING, accounts)


def changed(party: int, **changes: object) -> dict[int, Account]:
    """The full accounts with one party's fates and credits replaced."""
    accounts = full()
    fates = changes.get("fates", dict.fromkeys(range(1, T + 1), ACKED))
    credited = changes.get("credited", list(range(1, T + 1)))
    assert isinstance(fates, dict) and isinstance(credited, list)
    accounts[party] = account(fates, credited)
    return accounts


def receivers(realized: RealizedExecution, sender: int) -> list[int]:
    """To whom the sender's shares went, by round."""
    return [int(realized.execution.schedule.round(t).receivers[sender, 0]) for t in range(1, T + 1)]


def test_everything_credited_is_the_intended_execution() -> None:
    realized = put(full())
    assert [receivers(realized, i) for i in range(N)] == [[(i + 1) % N] * T for i in range(N)]
    assert not realized.execution.undelivered and not realized.contradictions
    assert realized.cohort == frozenset(range(N))
    assert realized.execution.presence.all_present
    assert realized.execution.weight == N


def test_credited_without_an_answer_is_credited() -> None:
    """The ack was lost, even at the end: the receiver's account decides."""
    realized = put(changed(1, fates={1: OPEN, 2: ACKED, 3: OPEN}))
    assert receivers(realized, 1) == [2, 2, 2]
    assert not realized.execution.undelivered and not realized.contradictions


def fail(t: int, fate: int) -> RealizedExecution:
    """Party 1's offer of round t has this fate, and party 2 was not credited it."""
    accounts = changed(1, fates={r: fate if r == t else ACKED for r in range(1, T + 1)})
    accounts[2] = account(dict.fromkeys(range(1, T + 1), ACKED), [r for r in range(1, T + 1) if r != t])
    return put(accounts)


def test_an_offer_that_never_left_is_kept_and_seen_by_nobody() -> None:
    realized = fail(2, NOBODY)
    assert receivers(realized, 1) == [2, -1, 2]
    assert not realized.execution.undelivered and not realized.contradictions


def test_an_offer_voided_in_its_round_is_back_and_seen() -> None:
    realized = fail(2, BACK)
    assert receivers(realized, 1) == [2, -1, 2] and not realized.contradictions
    assert realized.execution.undelivered == (Undelivered(2, 1, 2, 2),) and not realized.execution.late


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_share_that_was_set_aside_is_seen_and_undone_at_settlement(t: int) -> None:
    realized = fail(t, OPEN)
    assert realized.execution.undelivered == (Undelivered(t, 1, 2, 0),) and not realized.contradictions
    assert realized.execution.weight == pytest.approx(N)  # it is back when party 1 settles


def test_an_offer_to_a_party_that_is_not_in_the_cohort_was_seen_and_is_undone_whatever_it_said() -> None:
    for fate in (OPEN, ACKED):
        accounts = changed(1, fates={1: BACK, 2: fate, 3: NOBODY})
        del accounts[2]
        accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [])
        realized = put(accounts)
        assert [entry.back for entry in realized.execution.undelivered if entry.sender == 1] == [1, 0]
        assert receivers(realized, 1) == [-1, -1, -1] and not realized.contradictions
        assert realized.cohort == {0, 1, 3} and realized.execution.weight == pytest.approx(3)


def test_what_was_credited_from_a_party_that_is_not_in_the_cohort_is_undone() -> None:
    accounts = full()
    del accounts[2]
    realized = put(accounts)
    assert receivers(realized, 2) == [-1, -1, -1] and not realized.contradictions
    assert realized.execution.weight == pytest.approx(3)
    # Party 2 acknowledged everything; nothing need be known of it, as it counts as a colluder.
    assert {(entry.sender, entry.receiver) for entry in realized.execution.undelivered} == {(1, 2)}


@pytest.mark.parametrize("t", [1, 2, 3])
def test_an_acknowledged_share_that_its_receiver_does_not_know_is_a_contradiction(t: int) -> None:
    realized = fail(t, ACKED)
    assert realized.contradictions == (Contradiction(t, 1, 2, "acknowledged"),)
    assert Undelivered(t, 1, 2, 0) in realized.execution.undelivered  # it was seen, whoever lies


@pytest.mark.parametrize("fate", [NOBODY, BACK])
def test_a_share_that_is_with_both_its_sender_and_its_receiver_is_a_contradiction(fate: int) -> None:
    realized = put(changed(1, fates={1: ACKED, 2: fate, 3: ACKED}))
    assert realized.contradictions == (Contradiction(2, 1, 2, "voided"),)
    assert receivers(realized, 1) == [2, 2, 2]


def test_a_share_of_a_round_that_its_sender_missed_is_a_contradiction() -> None:
    realized = put(
        changed(1, fates={1: ACKED, 3: ACKED}, credited=[1, 3]) | {0: account({1: ACKED, 2: OPEN, 3: ACKED}, [1, 2, 3])}
    )
    assert realized.contradictions == (Contradiction(2, 1, 2, "voided"),)


# --- against the library's weights --------------------------------------------------------------------------------


def lived(session: SessionConfig, rng: random.Random, length: int) -> list[Ledger]:
    """Let ledgers live through a random session."""
    ledgers = [Ledger(session, i) for i in range(session.parties)]
    assert session.seed is not None
    for i, ledger in enumerate(ledgers):
        ledger.apply(opening(session, i))
        ledger.apply(Seeded(session.seed))
    for _ in range(length):
        i, record = rng.choice(possible(ledgers, rng.randrange(session.parties)))
        ledgers[i].apply(record)
    for ledger in ledgers:
        if not ledger.sealed:
            ledger.apply(Sealed())
    return ledgers


def rounding(session: SessionConfig) -> float:
    """Each share and each portion is rounded down by less than a unit, and mixing does not enlarge the sum."""
    return 2 * session.parties * (session.rounds + 1) / WEIGHT


@given(sessions(), st.randoms(use_true_random=False), st.integers(20, 160))
@examples(25, 150)
def test_settled_weights_are_those_of_the_execution(session: SessionConfig, rng: random.Random, length: int) -> None:
    """Any cohort of parties that were there in the last round, whatever happened before and whoever is not in it."""
    ledgers = lived(session, rng, length)
    there = [i for i, ledger in enumerate(ledgers) if ledger.round == session.rounds]
    cohort = frozenset(rng.sample(there, rng.randint(1, len(there)))) if there else frozenset[int]()
    topology = ledgers[0].topology
    assert topology is not None
    for i, ledger in enumerate(ledgers):
        check_account(session, i, ledger.account)
    if not cohort:
        return
    realized = realize(session, topology, {i: ledgers[i].account for i in cohort})
    assert not realized.contradictions and realized.cohort == cohort
    credited = {(t, topology.senders[t][j]) for j in cohort for t in ledgers[j].received}
    settled = [int(ledgers[i].settled(cohort, {t for t, sender in credited if sender == i})[-1]) for i in cohort]
    entered = [int(ledgers[i].injected[-1]) for i in cohort]
    assert sum(settled) == sum(entered)
    assert realized.execution.weight == pytest.approx(sum(settled) / WEIGHT, abs=rounding(session))
    for i in cohort:
        known = [int(ledgers[i].injected[-1]) / WEIGHT, realized.execution.total_weights[i]]
        assert known[0] == pytest.approx(known[1], abs=rounding(session))
    if len(cohort) == session.parties:  # nothing is hidden from the execution then: each single weight is right
        for i, weight in zip(cohort, settled, strict=True):
            assert realized.execution.message_weights[i] == pytest.approx(weight / WEIGHT, abs=rounding(session))


# --- accounts that cannot be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        (Account([2, 1], [ACKED, ACKED], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([1, 1], [ACKED, ACKED], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([0], [ACKED], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([T + 1], [ACKED], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([1], [], []), "must have an offer of a known fate in each of its rounds"),
        (Account([], [ACKED], []), "must have an offer of a known fate in each of its rounds"),
        (Account([1], [ACKED, ACKED], []), "must have an offer of a known fate in each of its rounds"),
        (Account([2], [BACK + 1], []), "must have an offer of a known fate in each of its rounds"),
        (Account([2], [2**32 - 1], []), "must have an offer of a known fate in each of its rounds"),
        (Account([1], [ACKED], [0]), "must list credits of its rounds in increasing order"),
        (Account([1], [ACKED], [2]), "must list credits of its rounds in increasing order"),
        (Account([1], [ACKED], [T + 1]), "must list credits of its rounds in increasing order"),
        (Account([1], [ACKED], [1, 1]), "must list credits of its rounds in increasing order"),
        (Account([1, 2], [ACKED, ACKED], [2, 1]), "must list credits of its rounds in increasing order"),
    ],
)
def test_accounts_that_cannot_be_are_refused(nonsense: Account, words: str) -> None:
    with pytest.raises(InvalidPeerMessage, match=words):
        check_account(RING_SESSION, 0, nonsense)


def test_honest_accounts_are_taken() -> None:
    for party, honest in full().items():
        check_account(RING_SESSION, party, honest)
    check_account(RING_SESSION, 0, Account([], [], []))
    check_account(RING_SESSION, 0, Account([1, 3], [BACK, OPEN], [3]))
