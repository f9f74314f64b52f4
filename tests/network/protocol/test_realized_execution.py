from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inca
from helpers.ledgers import SESSION, opening, possible, sessions
from inca.network.protocol.ledger import Began, Ledger, Sealed, Seeded
from inca.network.protocol.messages import ACKED, BACK, NOBODY, OPEN, Account, Nonsense
from inca.network.protocol.realized_execution import Realised, check_account, realise
from inca.network.protocol.session import WEIGHT, Session, Topology
from inca.network.protocol.signed_items import Digest
from inca.protocol.execution import Undelivered

N, T = 4, 3
RING_SESSION = replace(SESSION, parties=N, rounds=T, quiet=0)
RING = Topology(inca.ExplicitSchedule([[[(i + 1) % N] for i in range(N)]] * T))


def account(fates: dict[int, int], credited: list[int], me: int) -> Account:
    """Party `me` of the ring: the fate of its offer by round, and the rounds in which it was credited."""
    return Account(sorted(fates), [[fates[t]] for t in sorted(fates)], [(t, (me - 1) % N, 0) for t in credited])


def full() -> dict[int, Account]:
    """Everyone there in all rounds, everything credited and acknowledged."""
    return {i: account(dict.fromkeys(range(1, T + 1), ACKED), list(range(1, T + 1)), i) for i in range(N)}


def put(accounts: dict[int, Account], heard: dict[int, Account] | None = None, **others: set[int]) -> Realised:
    """Realise what accounts tell; party `heard` of each is told by the first who has a digest."""
    for party, each in {**accounts, **(heard or {})}.items():
        check_account(RING_SESSION, RING, party, each)
    digests = {party: Digest(each, []) for party, each in accounts.items()}
    first = min(digests)
    digests[first] = Digest(accounts[first], sorted((heard or {}).items()))
    return realise(RING_SESSION, RING, digests, **others)


def changed(party: int, **changes: object) -> dict[int, Account]:
    """The full accounts with one party's fates and credits replaced."""
    accounts = full()
    fates = changes.get("fates", dict.fromkeys(range(1, T + 1), ACKED))
    credited = changes.get("credited", list(range(1, T + 1)))
    assert isinstance(fates, dict) and isinstance(credited, list)
    accounts[party] = account(fates, credited, party)
    return accounts


def receivers(realised: Realised, sender: int) -> list[int]:
    """To whom the sender's shares went, by round."""
    return [int(realised.execution.schedule.round(t).receivers[sender, 0]) for t in range(1, T + 1)]


def test_everything_credited_is_the_intended_execution() -> None:
    realised = put(full())
    assert [receivers(realised, i) for i in range(N)] == [[(i + 1) % N] * T for i in range(N)]
    assert not realised.execution.undelivered and not realised.doubts and realised.exact
    assert realised.told == frozenset(range(N)) and realised.heard == {}
    assert realised.execution.presence.nobody_absent and realised.execution.published.all()
    assert realised.execution.weight == N and realised.doubtful_weight == 0.0


def test_credited_without_an_answer_is_credited() -> None:
    """The ack was lost, even at the end: the receiver's account decides."""
    realised = put(changed(1, fates={1: OPEN, 2: ACKED, 3: OPEN}))
    assert receivers(realised, 1) == [2, 2, 2]
    assert not realised.execution.undelivered and not realised.doubts and realised.exact


def fail(t: int, fate: int) -> Realised:
    """Party 1's offer of round t has this fate, and party 2 was not credited it."""
    accounts = changed(1, fates={r: fate if r == t else ACKED for r in range(1, T + 1)})
    accounts[2] = account(dict.fromkeys(range(1, T + 1), ACKED), [r for r in range(1, T + 1) if r != t], 2)
    return put(accounts)


def test_an_offer_that_never_left_is_kept_and_seen_by_nobody() -> None:
    realised = fail(2, NOBODY)
    assert receivers(realised, 1) == [2, -1, 2]
    assert not realised.execution.undelivered and not realised.doubts


def test_an_offer_voided_in_its_round_is_back_and_seen() -> None:
    realised = fail(2, BACK + 2)
    assert receivers(realised, 1) == [2, -1, 2]
    assert realised.execution.undelivered == (Undelivered(2, 1, 2, 2),) and not realised.execution.late


def test_a_share_that_is_back_later() -> None:
    realised = fail(1, BACK + 3)
    assert realised.execution.undelivered == realised.execution.late == (Undelivered(1, 1, 2, 3),)
    assert realised.execution.weight == pytest.approx(N)  # it is back before the end


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_share_is_lost_for_certain_if_the_receiver_tells_that_it_was_not_credited(t: int) -> None:
    realised = fail(t, OPEN)
    assert realised.execution.undelivered == (Undelivered(t, 1, 2, 0),) and not realised.doubts and realised.exact
    assert realised.execution.weight < N and realised.doubtful_weight == 0.0


def test_an_offer_to_a_receiver_that_vanished_without_a_word_is_in_doubt() -> None:
    accounts = changed(1, fates={1: BACK + 2, 2: OPEN, 3: OPEN})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realised = put(accounts)
    assert realised.doubts == ((2, 1, 0, 2), (3, 1, 0, 2)) and realised.exact
    assert [entry.back for entry in realised.execution.undelivered if entry.sender == 1] == [2, 0, 0]
    # y_1 is 1/4 at first; in round 1 half of it leaves, half of party 0's 1/4 and a quarter of the value enter.
    history = list(realised.execution.weight_history())
    assert realised.doubtful_weight == pytest.approx((history[1][1] + history[2][1]) / 2)
    assert not realised.execution.published[2] and not realised.execution.presence.row(1)[2]


def test_an_offer_acknowledged_by_a_receiver_that_vanished_was_credited() -> None:
    accounts = changed(1, fates={1: ACKED, 2: NOBODY, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realised = put(accounts, heard={2: account({1: OPEN}, [], 2)})
    assert receivers(realised, 1) == [2, -1, -1] and not realised.doubts
    assert realised.heard == {2: 1} and realised.told == {0, 1, 3}


@pytest.mark.parametrize("heard", [{}, {2: account({1: OPEN}, [], 2)}], ids=["never heard of", "heard of before"])
def test_what_a_vanished_receiver_acknowledged_is_not_with_its_sender(heard: dict[int, Account]) -> None:
    accounts = changed(1, fates={1: NOBODY, 2: ACKED, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [], 3)
    realised = put(accounts, heard=heard)
    before, after = list(realised.execution.weight_history())[1:3]
    # Half of what party 1 held went to party 2; half of what party 0 held came in, and a quarter of its own value.
    assert after[1] == pytest.approx(before[1] / 2 + before[0] / 2 + 1 / 4)


@pytest.mark.parametrize(("last", "doubt"), [(1, True), (2, True), (3, False)])
def test_the_last_account_of_a_vanished_receiver_tells_about_rounds_before_it(last: int, doubt: bool) -> None:
    """An account was made when its last round began: later credits of that round are not in it."""
    accounts = changed(1, fates={1: ACKED, 2: OPEN, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2, 3][:last], 3)
    vanished = account(dict.fromkeys(range(1, last + 1), OPEN), [1] if last > 1 else [], 2)
    realised = put(accounts, heard={2: vanished})
    assert (realised.doubts == ((2, 1, 0, 2),)) == doubt and realised.exact
    assert Undelivered(2, 1, 2, 0) in realised.execution.undelivered


def test_what_a_vanished_receiver_was_credited_counts() -> None:
    accounts = changed(1, fates={1: OPEN, 2: OPEN, 3: NOBODY})
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2, 3], 3)
    realised = put(accounts, heard={2: account({1: ACKED, 2: ACKED, 3: OPEN}, [1, 2], 2)})
    assert receivers(realised, 1) == [2, 2, -1] and not realised.doubts
    assert receivers(realised, 2) == [3, 3, 3] and realised.exact
    assert not realised.execution.published[2] and realised.execution.presence.row(T)[2]


def test_a_vanished_sender_with_its_last_account() -> None:
    accounts = full()
    del accounts[2]
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1], 3)  # round 2's offer was lost on the way
    accounts[1] = account({1: ACKED, 2: ACKED, 3: NOBODY}, [1, 2, 3], 1)
    realised = put(accounts, heard={2: account({1: ACKED, 2: OPEN}, [1], 2)})
    assert receivers(realised, 2) == [3, -1, -1] and realised.exact and not realised.doubts
    assert Undelivered(2, 2, 3, 0) in realised.execution.undelivered  # party 3 has seen it, or may have
    assert [bool(realised.execution.presence.row(t)[2]) for t in range(T + 1)] == [True, True, True, False]


def test_a_vanished_sender_without_any_account_makes_the_execution_inexact() -> None:
    accounts = full()
    del accounts[2]
    accounts[1] = account({1: NOBODY, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [2], 3)  # whoever heard of party 2 has forgotten it
    realised = put(accounts)
    assert not realised.exact and realised.heard == {}
    assert Undelivered(2, 2, 3, 0) in realised.execution.undelivered and realised.execution.presence.row(2)[2]
    assert receivers(realised, 2) == [-1, -1, -1] and not realised.doubts


def after_the_last_account(later: int, answer: int) -> Realised:
    """Party 2 vanished; its last account is of round 1, and party 3 was credited a share of a later round.

    Party 1 offered it a share in round 1, and had this answer.
    """
    accounts = full()
    del accounts[2]
    accounts[1] = account({1: answer, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, later], 3)
    return put(accounts, heard={2: account({1: OPEN}, [], 2)})


def test_a_share_two_rounds_after_the_last_account_of_its_sender_makes_the_execution_inexact() -> None:
    realised = after_the_last_account(3, ACKED)
    assert not realised.exact and realised.heard == {2: 1}
    assert Undelivered(3, 2, 3, 0) in realised.execution.undelivered and realised.execution.presence.row(3)[2]


def test_a_doubt_that_went_into_a_later_share_makes_the_execution_inexact() -> None:
    """Whether party 2 was credited party 1's share decides how large its own was a round later."""
    realised = after_the_last_account(2, OPEN)
    assert realised.doubts == ((1, 1, 0, 2),) and not realised.exact


def test_a_share_after_an_offer_of_which_there_is_no_account_makes_the_execution_inexact() -> None:
    """Parties 1 and 2 vanished without a word; whether 1 sent something to 2 in round 1 nobody knows."""
    accounts = full()
    del accounts[1], accounts[2]
    accounts[0] = account({1: NOBODY, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 0)
    accounts[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2], 3)
    assert not put(accounts).exact


def test_a_share_right_after_the_last_account_of_its_sender_is_known_or_inexact() -> None:
    realised = after_the_last_account(2, ACKED)
    known = full()
    del known[2]
    known[1] = account({1: ACKED, 2: NOBODY, 3: NOBODY}, [1, 2, 3], 1)
    known[3] = account(dict.fromkeys(range(1, T + 1), ACKED), [1, 2], 3)
    told = put(known, heard={2: account({1: ACKED, 2: OPEN}, [1], 2)})
    if realised.exact:
        assert np.allclose(realised.execution.message_weights[3], told.execution.message_weights[3])
    assert told.exact and not told.doubts


def test_the_latest_account_of_a_vanished_party_counts_whoever_has_it() -> None:
    early, late = account({1: OPEN}, [], 2), account({1: ACKED, 2: OPEN}, [1], 2)
    accounts = full()
    del accounts[2]
    for order in ((early, late), (late, early)):
        digests = {i: Digest(accounts[i], [(2, each)]) for i, each in zip((0, 1), order, strict=True)}
        digests[3] = Digest(accounts[3], [])
        assert realise(RING_SESSION, RING, digests).heard == {2: 2}


def test_a_digest_outweighs_what_others_heard() -> None:
    digests = {i: Digest(each, [((i + 1) % N, account({1: OPEN}, [], (i + 1) % N))]) for i, each in full().items()}
    realised = realise(RING_SESSION, RING, digests)
    assert realised.heard == {} and not realised.execution.undelivered


def test_only_final_messages_that_count_are_published() -> None:
    realised = put(full(), published={0, 3})
    assert realised.execution.published.tolist() == [True, False, False, True]
    gone = changed(3, fates={1: ACKED, 2: NOBODY})
    gone[0] = account(dict.fromkeys(range(1, T + 1), ACKED), [1], 0)
    gone[2] = account({1: ACKED, 2: ACKED, 3: NOBODY}, [1, 2, 3], 2)
    gone[3] = account({1: ACKED, 2: NOBODY}, [1, 2], 3)
    assert put(gone, published={0, 1, 2}).execution.published.tolist() == [True, True, True, False]


# --- against the library's weights --------------------------------------------------------------------------------


def lived(session: Session, rng: random.Random, length: int) -> tuple[list[Ledger], list[dict[int, Account]]]:
    """Let books live through a random session; return them with the accounts that their offers carried."""
    books = [Ledger(session, i) for i in range(session.parties)]
    said: list[dict[int, Account]] = [{} for _ in books]
    assert session.seed is not None
    for i, book in enumerate(books):
        book.apply(opening(session, i))
        book.apply(Seeded(session.seed))
    for _ in range(length):
        i, record = rng.choice(possible(books, rng.randrange(session.parties)))
        books[i].apply(record)
        if isinstance(record, Began):
            said[i][record.round] = books[i].accounts[record.round]
    for book in books:
        if not book.sealed:
            book.apply(Sealed())
    return books, said


def rounding(session: Session) -> float:
    """Each share and each portion is rounded down by less than a unit, and mixing does not enlarge the sum."""
    return session.parties * (session.rounds + 1) * (session.receivers + 1) / WEIGHT


@given(sessions(), st.randoms(use_true_random=False), st.integers(5, 120))
@settings(max_examples=80)
def test_weights_are_those_of_the_execution(session: Session, rng: random.Random, length: int) -> None:
    books, _ = lived(session, rng, length)
    topology = books[0].topology
    assert topology is not None
    for i, book in enumerate(books):
        check_account(session, topology, i, book.account)
    realised = realise(session, topology, {i: Digest(book.account, []) for i, book in enumerate(books)})
    assert realised.exact and not realised.doubts  # everyone told
    held = [int(book.balance[-1]) / WEIGHT for book in books]
    assert np.allclose(realised.execution.message_weights, held, rtol=0, atol=rounding(session))
    entered = [int(book.injected[-1]) / WEIGHT for book in books]
    assert np.allclose(realised.execution.total_weights, entered, rtol=0, atol=rounding(session))


@given(sessions(), st.randoms(use_true_random=False), st.integers(20, 160))
@settings(max_examples=150)
def test_weights_and_doubts_are_right_when_parties_vanish(session: Session, rng: random.Random, length: int) -> None:
    books, said = lived(session, rng, length)
    told = set(rng.sample(range(session.parties), rng.randint(2, session.parties)))
    digests = {}
    for j in told:
        heard: dict[int, Account] = {}
        if rng.random() < 0.8:  # whoever was restarted has forgotten what it heard
            for t, i, _ in sorted(books[j].account.credited):
                heard[i] = said[i][t]
        digests[j] = Digest(books[j].account, sorted(heard.items()))
    topology = books[0].topology
    assert topology is not None
    realised = realise(session, topology, digests)
    for i in told:
        for t, slot in books[i].open:
            j = books[i].outbox[t, slot].receiver
            credited = books[j].decisions.get((t, i, slot), False)
            listed = (t, i, slot, j) in realised.doubts
            known = int(realised.execution.schedule.round(t).receivers[i, slot]) == j
            assert not known or credited
            assert known or listed or not credited, "credited, and yet reported as lost for certain"
            assert not (listed and j in told), "in doubt, although its receiver told"
    if realised.exact:
        for i in told:
            weight = realised.execution.message_weights[i]
            assert weight == pytest.approx(int(books[i].balance[-1]) / WEIGHT, abs=rounding(session))


# --- accounts that cannot be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        (Account([2, 1], [[ACKED], [ACKED]], []), "rounds that there are not"),
        (Account([1, 1], [[ACKED], [ACKED]], []), "rounds that there are not"),
        (Account([0], [[ACKED]], []), "rounds that there are not"),
        (Account([T + 1], [[ACKED]], []), "rounds that there are not"),
        (Account([1], [], []), "more or fewer offers"),
        (Account([], [[ACKED]], []), "more or fewer offers"),
        (Account([1], [[]], []), "more or fewer offers"),
        (Account([1], [[ACKED, ACKED]], []), "more or fewer offers"),
        (Account([2], [[BACK + 1]], []), "back before it was sent, or too late"),
        (Account([2], [[BACK + T + 1]], []), "back before it was sent, or too late"),
        (Account([2], [[2**32 - 1]], []), "back before it was sent, or too late"),
        (Account([1], [[ACKED]], [(1, 1, 0)]), "credited what nobody was to send"),
        (Account([1], [[ACKED]], [(1, 0, 0)]), "credited what nobody was to send"),
        (Account([1], [[ACKED]], [(1, 3, 1)]), "credited what nobody was to send"),
        (Account([1], [[ACKED]], [(0, 3, 0)]), "in a round that it missed"),
        (Account([1], [[ACKED]], [(2, 3, 0)]), "in a round that it missed"),
        (Account([1], [[ACKED]], [(T + 1, 3, 0)]), "in a round that it missed"),
        (Account([1], [[ACKED]], [(1, 3, 0), (1, 3, 0)]), "credited twice"),
        (Account([1], [[BACK + 2]], []), "back before it was sent, or too late"),
        (Account([1], [[ACKED]], [(1, 99, 0)]), "credited what nobody was to send"),
    ],
)
def test_accounts_that_cannot_be_are_refused(nonsense: Account, words: str) -> None:
    with pytest.raises(Nonsense, match=words):
        check_account(RING_SESSION, RING, 0, nonsense)


def test_an_account_of_nobody_is_refused() -> None:
    with pytest.raises(Nonsense, match=f"of party {N}, whom there is not"):
        check_account(RING_SESSION, RING, N, Account([1], [[OPEN]], []))


def test_honest_accounts_are_taken() -> None:
    for party, each in full().items():
        check_account(RING_SESSION, RING, party, each)
    check_account(RING_SESSION, RING, 0, Account([], [], []))
    check_account(RING_SESSION, RING, 0, Account([1, 3], [[BACK + 1], [OPEN]], [(3, 3, 0)]))
