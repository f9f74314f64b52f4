from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inca
from helpers.ledgers import SESSION, opening, possible, sessions
from inca.errors import InvalidPeerMessage
from inca.network.protocol.ledger import Began, Ledger, Sealed, Seeded
from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Account
from inca.network.protocol.realized_execution import RealizedExecution, check_account, realize
from inca.network.protocol.session import WEIGHT, SessionConfig, Topology
from inca.network.protocol.signed_items import Digest
from inca.protocol.undelivered import Undelivered

N, T = 4, 3
RING_SESSION = replace(SESSION, parties=N, rounds=T, quiet=0)
RING = Topology(inca.ExplicitSchedule([[[(i + 1) % N] for i in range(N)]] * T))


def account(fates: dict[int, int], credited: list[int], me: int) -> Account:
    """Party `me` of the ring: the fate of its offer by round, and the rounds in which it was credited."""
    return Account(sorted(fates), [[fates[t]] for t in sorted(fates)], [(t, (me - 1) % N, 0) for t in credited])


def full() -> dict[int, Account]:
    """Everyone there in all rounds, everything credited and acknowledged."""
    return {i: account(dict.fromkeys(range(1, T + 1), ACKED), list(range(1, T + 1)), i) for i in range(N)}


def put(
    accounts: dict[int, Account], last_known: dict[int, Account] | None = None, **others: set[int]
) -> RealizedExecution:
    """Realize what accounts tell; the last known accounts are in the digest of the first who has one."""
    for party, told in {**accounts, **(last_known or {})}.items():
        check_account(RING_SESSION, RING, party, told)
    digests = {party: Digest(told, []) for party, told in accounts.items()}
    first = min(digests)
    digests[first] = Digest(accounts[first], sorted((last_known or {}).items()))
    return realize(RING_SESSION, RING, digests, **others)


def changed(party: int, **changes: object) -> dict[int, Account]:
    """The full accounts with one party's fates and credits replaced."""
    accounts = full()
    fates = changes.get("fates", dict.fromkeys(range(1, T + 1), ACKED))
    credited = changes.get("credited", list(range(1, T + 1)))
    assert isinstance(fates, dict) and isinstance(credited, list)
    accounts[party] = account(fates, credited, party)
    return accounts


def receivers(realized: RealizedExecution, sender: int) -> list[int]:
    """To whom the sender's shares went, by round."""
    return [int(realized.execution.schedule.round(t).receivers[sender, 0]) for t in range(1, T + 1)]


def test_everything_credited_is_the_intended_execution() -> None:
    realized = put(full())
    assert [receivers(realized, i) for i in range(N)] == [[(i + 1) % N] * T for i in range(N)]
    assert not realized.execution.undelivered and not realized.unresolved and realized.exact
    assert realized.reported == frozenset(range(N)) and realized.last_known_rounds == {}
    assert realized.execution.presence.all_present and realized.execution.published.all()
    assert realized.execution.weight == N and realized.unresolved_weight == 0.0


def test_credited_without_an_answer_is_credited() -> None:
    """The ack was lost, even at the end: the receiver's account decides."""
    realized = put(changed(1, fates={1: OPEN, 2: ACKED, 3: OPEN}))
    assert receivers(realized, 1) == [2, 2, 2]
    assert not realized.execution.undelivered and not realized.unresolved and realized.exact


def fail(t: int, fate: int) -> RealizedExecution:
    """Party 1's offer of round t has this fate, and party 2 was not credited it."""
    accounts = changed(1, fates={r: fate if r == t else ACKED for r in range(1, T + 1)})
    accounts[2] = account(dict.fromkeys(range(1, T + 1), ACKED), [r for r in range(1, T + 1) if r != t], 2)
    return put(accounts)


def test_an_offer_that_never_left_is_kept_and_seen_by_nobody() -> None:
    realized = fail(2, NOBODY)
    assert receivers(realized, 1) == [2, -1, 2]
    assert not realized.execution.undelivered and not realized.unresolved


def test_an_offer_voided_in_its_round_is_back_and_seen() -> None:
    realized = fail(2, BACK + 2)
    assert receivers(realized, 1) == [2, -1, 2]
    assert realized.execution.undelivered == (Undelivered(2, 1, 2, 2),) and not realized.execution.late


def test_a_share_that_is_back_later() -> None:
    realized = fail(1, BACK + 3)
    assert realized.execution.undelivered == realized.execution.late == (Undelivered(1, 1, 2, 3),)
    assert realized.execution.weight == pytest.approx(N)  # it is back before the end


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_share_is_lost_for_certain_if_the_receiver_tells_that_it_was_not_credited(t: int) -> None:
    realized = fail(t, OPEN)
    assert realized.execution.undelivered == (Undelivered(t, 1, 2, 0),) and not realized.unresolved and realized.exact
    assert realized.execution.weight < N and realized.unresolved_weight == 0.0


def test_an_offer_to_a_receiver_that_vanished_without_a_word_is_unresolved() -> None:
    accounts = changed(1, fates={1: BACK + 2, 2: OPEN, 3: OPEN})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realized = put(accounts)
    assert realized.unresolved == ((2, 1, 0, 2), (3, 1, 0, 2)) and realized.exact
    assert [entry.back for entry in realized.execution.undelivered if entry.sender == 1] == [2, 0, 0]
    # y_1 is 1/4 at first; in round 1 half of it leaves, half of party 0's 1/4 and a quarter of the value enter.
    history = list(realized.execution.weight_history())
    assert realized.unresolved_weight == pytest.approx((history[1][1] + history[2][1]) / 2)
    assert not realized.execution.published[2] and not realized.execution.presence.row(1)[2]


def test_an_offer_acknowledged_by_a_receiver_that_vanished_was_credited() -> None:
    accounts = changed(1, fates={1: ACKED, 2: NOBODY, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realized = put(accounts, last_known={2: account({1: OPEN}, [], 2)})
    assert receivers(realized, 1) == [2, -1, -1] and not realized.unresolved
    assert realized.last_known_rounds == {2: 1} and realized.reported == {0, 1, 3}


@pytest.mark.parametrize("last_known", [{}, {2: account({1: OPEN}, [], 2)}], ids=["never heard of", "heard of before"])
def test_what_a_vanished_receiver_acknowledged_is_not_with_its_sender(last_known: dict[int, Account]) -> None:
    accounts = changed(1, fates={1: NOBODY, 2: ACKED, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realized = put(accounts, last_known=last_known)
    before, after = list(realized.execution.weight_history())[1:3]
    # Half of what party 1 held went to party 2; half of what party 0 held came in, and a quarter of its own value.
    assert after[1] == pytest.approx(before[1] / 2 + before[0] / 2 + 1 / 4)


@pytest.mark.parametrize(("last", "unresolved"), [(1, True), (2, True), (3, False)])
def test_the_last_account_of_a_vanished_receiver_tells_about_rounds_before_it(last: int, unresolved: bool) -> None:
    """An account was made when its last round began: later credits of that round are not in it."""
    accounts = changed(1, fates={1: ACKED, 2: OPEN, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2, 3][:last], 3)
    vanished = account(dict.fromkeys(range(1, last + 1), OPEN), [1] if last > 1 else [], 2)
    realized = put(accounts, last_known={2: vanished})
    assert (realized.unresolved == ((2, 1, 0, 2),)) == unresolved and realized.exact
    assert Undelivered(2, 1, 2, 0) in realized.execution.undelivered


def test_what_a_vanished_receiver_was_credited_counts() -> None:
    accounts = changed(1, fates={1: OPEN, 2: OPEN, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2, 3], 3)
    realized = put(accounts, last_known={2: account({1: ACKED, 2: ACKED, 3: OPEN}, [1, 2], 2)})
    assert receivers(realized, 1) == [2, 2, -1] and not realized.unresolved
    assert receivers(realized, 2) == [3, 3, 3] and realized.exact
    assert not realized.execution.published[2] and realized.execution.presence.row(T)[2]


def test_a_vanished_sender_with_its_last_account() -> None:
    accounts = full()
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1], 3)  # round 2's offer was lost on the way
    accounts[1] = account({1: ACKED, 2: ACKED, 3: NOBODY}, [1, 2, 3], 1)
    realized = put(accounts, last_known={2: account({1: ACKED, 2: OPEN}, [1], 2)})
    assert receivers(realized, 2) == [3, -1, -1] and realized.exact and not realized.unresolved
    assert Undelivered(2, 2, 3, 0) in realized.execution.undelivered  # party 3 has seen it, or may have
    assert [bool(realized.execution.presence.row(t)[2]) for t in range(T + 1)] == [True, True, True, False]


def test_a_vanished_sender_without_any_account_makes_the_execution_inexact() -> None:
    accounts = full()
    del accounts[2]
    accounts[1] = account({1: NOBODY, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [2], 3)  # whoever heard of party 2 has forgotten it
    realized = put(accounts)
    assert not realized.exact and realized.last_known_rounds == {}
    assert Undelivered(2, 2, 3, 0) in realized.execution.undelivered and realized.execution.presence.row(2)[2]
    assert receivers(realized, 2) == [-1, -1, -1] and not realized.unresolved


def after_the_last_account(later: int, answer: int) -> RealizedExecution:
    """Party 2 vanished; its last account is of round 1, and party 3 was credited a share of a later round.

    Party 1 offered it a share in round 1, and had this answer.
    """
    accounts = full()
    del accounts[2]
    accounts[1] = account({1: answer, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, later], 3)
    return put(accounts, last_known={2: account({1: OPEN}, [], 2)})


def test_a_share_two_rounds_after_the_last_account_of_its_sender_makes_the_execution_inexact() -> None:
    realized = after_the_last_account(3, ACKED)
    assert not realized.exact and realized.last_known_rounds == {2: 1}
    assert Undelivered(3, 2, 3, 0) in realized.execution.undelivered and realized.execution.presence.row(3)[2]


def test_an_unresolved_transfer_that_went_into_a_later_share_makes_the_execution_inexact() -> None:
    """Whether party 2 was credited party 1's share decides how large its own was a round later."""
    realized = after_the_last_account(2, OPEN)
    assert realized.unresolved == ((1, 1, 0, 2),) and not realized.exact


def test_a_share_after_an_offer_of_which_there_is_no_account_makes_the_execution_inexact() -> None:
    """Parties 1 and 2 vanished without a word; whether 1 sent something to 2 in round 1 nobody knows."""
    accounts = full()
    del accounts[1], accounts[2]
    accounts[0] = account({1: NOBODY, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 0)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2], 3)
    assert not put(accounts).exact


def test_a_share_right_after_the_last_account_of_its_sender_is_known_or_inexact() -> None:
    realized = after_the_last_account(2, ACKED)
    known = full()
    del known[2]
    known[1] = account({1: ACKED, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    known[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2], 3)
    told = put(known, last_known={2: account({1: ACKED, 2: OPEN}, [1], 2)})
    if realized.exact:
        assert np.allclose(realized.execution.message_weights[3], told.execution.message_weights[3])
    assert told.exact and not told.unresolved


def test_the_latest_account_of_a_vanished_party_counts_whoever_has_it() -> None:
    early, late = account({1: OPEN}, [], 2), account({1: ACKED, 2: OPEN}, [1], 2)
    accounts = full()
    del accounts[2]
    for order in ((early, late), (late, early)):
        digests = {i: Digest(accounts[i], [(2, known)]) for i, known in zip((0, 1), order, strict=True)}
        digests[3] = Digest(accounts[3], [])
        assert realize(RING_SESSION, RING, digests).last_known_rounds == {2: 2}


def test_a_digest_outweighs_what_others_heard() -> None:
    digests = {i: Digest(own, [((i + 1) % N, account({1: OPEN}, [], (i + 1) % N))]) for i, own in full().items()}
    realized = realize(RING_SESSION, RING, digests)
    assert realized.last_known_rounds == {} and not realized.execution.undelivered


def test_only_final_messages_that_count_are_published() -> None:
    realized = put(full(), published={0, 3})
    assert realized.execution.published.tolist() == [True, False, False, True]
    gone = changed(3, fates={1: ACKED, 2: NOBODY})
    gone[0] = account(dict.fromkeys(range(1, T + 1), ACKED), [1], 0)
    gone[2] = account({1: ACKED, 2: ACKED, 3: NOBODY}, [1, 2, 3], 2)
    gone[3] = account({1: ACKED, 2: NOBODY}, [1, 2], 3)
    assert put(gone, published={0, 1, 2}).execution.published.tolist() == [True, True, True, False]


# --- against the library's weights --------------------------------------------------------------------------------


def lived(session: SessionConfig, rng: random.Random, length: int) -> tuple[list[Ledger], list[dict[int, Account]]]:
    """Let ledgers live through a random session; return them with the accounts that their offers carried."""
    ledgers = [Ledger(session, i) for i in range(session.parties)]
    said: list[dict[int, Account]] = [{} for _ in ledgers]
    assert session.seed is not None
    for i, ledger in enumerate(ledgers):
        ledger.apply(opening(session, i))
        ledger.apply(Seeded(session.seed))
    for _ in range(length):
        i, record = rng.choice(possible(ledgers, rng.randrange(session.parties)))
        ledgers[i].apply(record)
        if isinstance(record, Began):
            said[i][record.round] = ledgers[i].accounts[record.round]
    for ledger in ledgers:
        if not ledger.sealed:
            ledger.apply(Sealed())
    return ledgers, said


def rounding(session: SessionConfig) -> float:
    """Each share and each portion is rounded down by less than a unit, and mixing does not enlarge the sum."""
    return session.parties * (session.rounds + 1) * (session.receivers + 1) / WEIGHT


@given(sessions(), st.randoms(use_true_random=False), st.integers(5, 120))
@settings(max_examples=80)
def test_weights_are_those_of_the_execution(session: SessionConfig, rng: random.Random, length: int) -> None:
    ledgers, _ = lived(session, rng, length)
    topology = ledgers[0].topology
    assert topology is not None
    for i, ledger in enumerate(ledgers):
        check_account(session, topology, i, ledger.account)
    realized = realize(session, topology, {i: Digest(ledger.account, []) for i, ledger in enumerate(ledgers)})
    assert realized.exact and not realized.unresolved  # everyone told
    held = [int(ledger.balance[-1]) / WEIGHT for ledger in ledgers]
    assert np.allclose(realized.execution.message_weights, held, rtol=0, atol=rounding(session))
    entered = [int(ledger.injected[-1]) / WEIGHT for ledger in ledgers]
    assert np.allclose(realized.execution.total_weights, entered, rtol=0, atol=rounding(session))


@given(sessions(), st.randoms(use_true_random=False), st.integers(20, 160))
@settings(max_examples=150)
def test_weights_and_unresolved_transfers_are_right_when_parties_vanish(
    session: SessionConfig, rng: random.Random, length: int
) -> None:
    ledgers, said = lived(session, rng, length)
    told = set(rng.sample(range(session.parties), rng.randint(2, session.parties)))
    digests = {}
    for j in told:
        last_known: dict[int, Account] = {}
        if rng.random() < 0.8:  # whoever was restarted has forgotten what it knew
            for t, i, _ in sorted(ledgers[j].account.credited):
                last_known[i] = said[i][t]
        digests[j] = Digest(ledgers[j].account, sorted(last_known.items()))
    topology = ledgers[0].topology
    assert topology is not None
    realized = realize(session, topology, digests)
    for i in told:
        for t, slot in ledgers[i].open:
            j = ledgers[i].outbox[t, slot].receiver
            credited = ledgers[j].decisions.get((t, i, slot), False)
            listed = (t, i, slot, j) in realized.unresolved
            known = int(realized.execution.schedule.round(t).receivers[i, slot]) == j
            assert not known or credited
            assert known or listed or not credited, "credited, and yet reported as lost for certain"
            assert not (listed and j in told), "unresolved, although its receiver reported"
    if realized.exact:
        for i in told:
            weight = realized.execution.message_weights[i]
            assert weight == pytest.approx(int(ledgers[i].balance[-1]) / WEIGHT, abs=rounding(session))


# --- accounts that cannot be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        (Account([2, 1], [[ACKED], [ACKED]], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([1, 1], [[ACKED], [ACKED]], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([0], [[ACKED]], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([T + 1], [[ACKED]], []), "must list rounds from 1 to 3 in increasing order"),
        (Account([1], [], []), "must have 1 offers in each of its rounds"),
        (Account([], [[ACKED]], []), "must have 1 offers in each of its rounds"),
        (Account([1], [[]], []), "must have 1 offers in each of its rounds"),
        (Account([1], [[ACKED, ACKED]], []), "must have 1 offers in each of its rounds"),
        (Account([2], [[BACK + 1]], []), "back before it was sent, or in a round it missed"),
        (Account([2], [[BACK + T + 1]], []), "back before it was sent, or in a round it missed"),
        (Account([2], [[2**32 - 1]], []), "back before it was sent, or in a round it missed"),
        (Account([1], [[ACKED]], [(1, 1, 0)]), "credited transfer that the schedule does not have"),
        (Account([1], [[ACKED]], [(1, 0, 0)]), "credited transfer that the schedule does not have"),
        (Account([1], [[ACKED]], [(1, 3, 1)]), "credited transfer that the schedule does not have"),
        (Account([1], [[ACKED]], [(0, 3, 0)]), "credited twice, or in a round it missed"),
        (Account([1], [[ACKED]], [(2, 3, 0)]), "credited twice, or in a round it missed"),
        (Account([1], [[ACKED]], [(T + 1, 3, 0)]), "credited twice, or in a round it missed"),
        (Account([1], [[ACKED]], [(1, 3, 0), (1, 3, 0)]), "credited twice, or in a round it missed"),
        (Account([1], [[BACK + 2]], []), "back before it was sent, or in a round it missed"),
        (Account([1], [[ACKED]], [(1, 99, 0)]), "credited transfer that the schedule does not have"),
    ],
)
def test_accounts_that_cannot_be_are_refused(nonsense: Account, words: str) -> None:
    with pytest.raises(InvalidPeerMessage, match=words):
        check_account(RING_SESSION, RING, 0, nonsense)


def test_an_account_of_an_unknown_party_is_refused() -> None:
    with pytest.raises(InvalidPeerMessage, match=f"an account must be of a party from 0 to {N - 1}, got {N}"):
        check_account(RING_SESSION, RING, N, Account([1], [[OPEN]], []))


def test_honest_accounts_are_taken() -> None:
    for party, honest in full().items():
        check_account(RING_SESSION, RING, party, honest)
    check_account(RING_SESSION, RING, 0, Account([], [], []))
    check_account(RING_SESSION, RING, 0, Account([1, 3], [[BACK + 1], [OPEN]], [(3, 3, 0)]))
