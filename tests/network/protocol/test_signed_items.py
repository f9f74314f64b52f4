"""What comes from peers passes one door: its size first, then whether it matters now, its signature, what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import get_args

import msgspec
import pytest

from helpers.endings import N, answer, dealing, deposit, digest, in_cohort, item, key, refusal
from helpers.ledgers import SESSION, fresh
from helpers.parties import foreign
from helpers.signatures import sign, verify
from helpers.trustee_keys import keys_of, secrets_of
from inca.errors import CannotJoin, InvalidPeerMessage
from inca.network.protocol.agreement.public_randomness import commitment
from inca.network.protocol.messages import ACKED, Account, Item, Proposal, Want, bits, members
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.opening.trustees import trustees_of
from inca.network.protocol.records import Signed
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import KINDS, Digest, Key, Kind, Refusal, SignedItems, read

COHORT = Proposal("cohort", [(party, digest(party).hash) for party in range(N)])
SECRET = b"s" * 32


class Door:
    """The items of party 0, and how often it has looked at a signature."""

    def __init__(self, session: SessionConfig = SESSION) -> None:
        self.looked_at = 0
        self.ledger = fresh(session)
        self.items = SignedItems(session, 0, self.ledger, sign(0), self.verify)

    def verify(self, party: int, text: bytes, signature: bytes) -> bool:
        self.looked_at += 1
        return verify(party, text, signature)

    def in_cohort(self, number: int = 0, parties: Iterable[int] = range(N)) -> Door:
        self.items.expect_words(number, COHORT.hash, len(list(parties)))
        return self

    def committed(self, number: int = 0) -> Door:
        self.in_cohort(number).items.expect_keys({party: keys_of(party)[number] for party in range(N)})
        return self

    def ready_for(self, kind: Kind, party: int = 1) -> Door:
        """Have what an item of that kind rests on: a secret that is revealed, on what was committed to."""
        if kind == "reveal":
            assert self.items.take(honest("commit", party))
            self.looked_at = 0
        return self

    def held(self, kind: Kind) -> dict[int, Item]:
        return self.items.by_kind[kind]


def honest(kind: Kind, party: int = 1) -> Item:
    match kind:
        case "digest":
            return digest(party)
        case "deposit":
            return deposit(COHORT, party)
        case "refusal":
            return refusal(COHORT, party)
        case "key":
            return key(party)
        case "commit":
            return item(party, kind, commitment(SESSION.id, party, SECRET))
        case _:
            return item(party, kind, b"" if kind == "done" else SECRET)


KIND_NAMES: tuple[Kind, ...] = get_args(Kind)


def test_the_table_has_a_row_for_every_kind() -> None:
    assert tuple(KINDS) == KIND_NAMES
    assert [kind for kind, rule in KINDS.items() if rule.sealed] == ["deposit"]
    assert [kind for kind, rule in KINDS.items() if rule.once] == ["digest", "deposit", "refusal"]


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_an_honest_item_is_taken_once_and_passed_on(kind: Kind) -> None:
    door, sent = Door().committed().ready_for(kind), honest(kind)
    assert door.items.take(sent) and door.looked_at == 1
    assert door.held(kind) == {1: sent}
    assert not door.items.take(sent) and door.looked_at == 1  # known: nothing to look at
    assert members(door.items.have().held[kind], N) == {1}
    assert door.items.wanted(Want({kind: bits({0, 1}, N)}, 0)) == [sent]


# --- first its size ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_an_item_that_is_too_large_is_refused_before_anything_else(kind: Kind) -> None:
    """Before its signature, which takes time, and before it is read, which takes memory."""
    door = Door().committed()
    largest, sealed = KINDS[kind].largest(SESSION), door.items.sealed_bytes if KINDS[kind].sealed else 0
    for body, seal in ((b"\xc1" * (largest + 1), bytes(sealed)), (b"", bytes(sealed + 1))):
        with pytest.raises(InvalidPeerMessage, match=f"a {kind} must have at most {largest} bytes and {sealed} sealed"):
            door.items.take(item(1, kind, body, seal))
    assert door.looked_at == 0 and not door.held(kind)


def test_a_sealed_message_has_exactly_the_size_of_every_other() -> None:
    door = Door().in_cohort()
    whole = deposit(COHORT, 1)
    assert door.items.sealed_bytes == len(whole.sealed) == 8 * (SESSION.dimension + 1) + 32
    for sealed in (b"", whole.sealed[:-1], whole.sealed + b"\0"):
        with pytest.raises(InvalidPeerMessage, match="sealed, got"):
            door.items.take(msgspec.structs.replace(whole, sealed=sealed))
    assert door.looked_at == 0


def test_the_largest_honest_items_fit() -> None:
    session = replace(SESSION, parties=250, rounds=9, colluders=30)
    door = Door(session)
    everyone = list(range(1, session.rounds + 1))
    for party in (1, 249):
        account = Account(everyone, [ACKED] * session.rounds, everyone)
        assert door.items.take(foreign(session, party).sign("digest", Digest(account, bytes(32), keys_of(party))))
    cohort = Proposal("cohort", [(party, bytes(32)) for party in range(250)])
    trustees = len(trustees_of(session, cohort.parties).members)
    assert trustees == 30 + 6 + 6
    door.items.expect_words(2**32 - 1, cohort.hash, trustees)
    assert door.items.take(deposit(cohort, 249, number=0, session=session)) is False  # of another cohort
    few = Proposal("cohort", [(party, bytes(32)) for party in range(48)])
    door.items.expect_words(7, few.hash, 48)
    assert door.items.take(deposit(few, 47, number=7, session=session))
    widest = "\U0001f600" * 200
    assert door.items.take(foreign(session, 46).sign("refusal", Refusal(7, few.hash, widest)))


@pytest.mark.parametrize("named", [(), ("Ann", "Bob", "Cy", "Di")])
@pytest.mark.parametrize("unknown", [Item("digest", 99, b"", b""), Item("gift", 1, b"", b"")], ids=repr)
def test_an_item_of_nobody_is_refused_whatever_people_call_the_parties(unknown: Item, named: tuple[str, ...]) -> None:
    door = Door(replace(SESSION, names=named))
    with pytest.raises(InvalidPeerMessage, match="unknown kind"):
        door.items.take(unknown)
    assert door.looked_at == 0


# --- then whether it matters now --------------------------------------------------------------------------------------


def about(kind: str, number: int, hash_: bytes = COHORT.hash) -> Item:
    """Something of a kind about any cohort, however late."""
    match kind:
        case "deposit":
            whole = deposit(COHORT, 1)
            body = msgspec.structs.replace(read(whole, Deposit), cohort=number, hash=hash_)
            return item(1, "deposit", body, whole.sealed)
        case "refusal":
            return item(1, "refusal", Refusal(number, hash_, ""))
        case _:
            return item(1, "key", Key(number, secrets_of(1).private_key))


@pytest.mark.parametrize("kind", ["deposit", "refusal", "key"])
def test_what_is_about_another_cohort_is_not_looked_at(kind: Kind) -> None:
    door = Door().committed(2)
    for number in (0, 1, 4, 2**32 - 1):
        assert not door.items.take(about(kind, number))
    if kind != "key":
        assert not door.items.take(about(kind, 2, bytes(32)))
    assert door.looked_at == 0 and not door.held(kind)


def test_words_of_the_next_cohort_are_kept_until_it_is_known_here_and_not_passed_on() -> None:
    door = Door().in_cohort()
    words = [deposit(COHORT, 1, number=1), refusal(COHORT, 2, number=1), deposit(COHORT, 3, number=1)]
    assert [door.items.take(word) for word in words] == [False] * 3
    assert [door.items.take(word) for word in words] == [False] * 3
    assert door.looked_at == 3  # once each
    assert not door.held("deposit") and not any(members(field, N) for field in door.items.have().held.values())
    assert not list(door.items.wanted(Want({kind: bits(set(range(N)), N) for kind in KINDS}, 0)))
    door.in_cohort(1)
    assert door.held("deposit") == {1: words[0], 3: words[2]} and door.held("refusal") == {2: words[1]}


def test_a_word_of_the_next_cohort_that_turns_out_to_be_of_another_or_invalid_is_as_if_it_had_never_come() -> None:
    door = Door().in_cohort()
    other = Proposal("cohort", COHORT.contents[1:])
    good = deposit(COHORT, 3, number=1)
    body = read(good, Deposit)
    cut = item(2, "deposit", msgspec.structs.replace(body, shares=body.shares[1:]), good.sealed)
    for word in (deposit(other, 1, number=1), cut, good):
        assert not door.items.take(word)
    door.in_cohort(1)
    assert door.held("deposit") == {3: good}
    assert door.items.take(deposit(COHORT, 1, number=1))  # and can still say something else


def test_a_word_of_the_next_cohort_must_be_signed_and_the_last_one_counts() -> None:
    """Else anyone could keep a party's word away by sending another in its name, or its own with other bytes."""
    door = Door().in_cohort()
    earlier, genuine = deposit(COHORT, 1, [5, 0, 0], number=1), deposit(COHORT, 1, number=1)
    assert not door.items.take(earlier) and not door.items.take(genuine)
    with pytest.raises(InvalidPeerMessage, match="a deposit that party 1 has not signed"):
        door.items.take(msgspec.structs.replace(earlier, signature=b"forged"))
    with pytest.raises(InvalidPeerMessage, match="other sealed bytes than its hash says"):
        door.items.take(msgspec.structs.replace(earlier, sealed=bytes(len(earlier.sealed))))
    door.in_cohort(1)
    assert door.held("deposit") == {1: genuine}


def test_a_key_before_the_decision_must_be_signed_or_it_is_no_reason_to_ask() -> None:
    door = Door().in_cohort()
    with pytest.raises(InvalidPeerMessage, match="a key that party 1 has not signed"):
        door.items.take(msgspec.structs.replace(key(1), signature=b"forged"))
    assert not door.items.key_came_early


def test_a_smaller_cohort_forgets_what_was_about_the_one_before_and_nothing_else() -> None:
    door = Door().committed()
    for kind in KIND_NAMES:
        assert door.items.take(honest(kind))
    door.in_cohort(1)
    assert {kind for kind in KIND_NAMES if door.held(kind)} == {"commit", "confirm", "reveal", "digest", "done"}
    assert not door.items.public_keys and not door.items.take(key(2)) and not door.items.take(deposit(COHORT, 2))
    assert door.items.take(deposit(COHORT, 1, number=1))


# --- keys before the decision -----------------------------------------------------------------------------------------


def test_a_key_that_comes_before_the_decision_is_kept_not_passed_on_and_has_it_asked_for() -> None:
    door = Door().in_cohort()
    shown = [key(1), key(2)]
    assert not door.items.key_came_early
    assert not any(door.items.take(one) for one in shown) and door.items.key_came_early
    assert not door.held("key") and not members(door.items.have().held["key"], N)
    assert not list(door.items.wanted(Want({"key": bits({1, 2}, N)}, 0)))
    door.items.expect_keys({party: keys_of(party)[0] for party in range(N)})
    assert door.held("key") == {1: shown[0], 2: shown[1]}


def test_a_key_of_the_next_cohort_is_kept_as_well() -> None:
    """Two decisions may be missing here."""
    door = Door().in_cohort()
    shown = key(1, number=1)
    assert not door.items.take(shown) and door.items.key_came_early
    door.in_cohort(1)
    assert not door.held("key")
    door.items.expect_keys({party: keys_of(party)[1] for party in range(N)})
    assert door.held("key") == {1: shown}


@pytest.mark.parametrize("early", [True, False])
def test_a_key_that_is_not_behind_its_digest_is_no_key(early: bool) -> None:
    of_another = item(1, "key", Key(0, secrets_of(2).private_key))
    scalar = bytes([secrets_of(1).private_key[0] | 1]) + secrets_of(1).private_key[1:]
    unclamped, short = item(1, "key", Key(0, scalar)), item(1, "key", Key(0, b"short"))
    later, stranger = item(1, "key", Key(0, secrets_of(1, 1).private_key)), key(3)
    door = Door().in_cohort()
    for wrong in (of_another, unclamped, short, later, stranger):
        if early:
            assert not door.items.take(wrong)
        else:
            door.items.expect_keys({party: keys_of(party)[0] for party in (0, 1, 2)})
            with pytest.raises(InvalidPeerMessage, match="a key that is not the one behind its party's digest"):
                door.items.take(wrong)
    door.items.expect_keys({party: keys_of(party)[0] for party in (0, 1, 2)})
    assert not door.held("key") and door.items.take(key(1))


# --- then its signature -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_what_its_owner_has_not_signed_is_refused_and_not_checked(kind: Kind) -> None:
    door, genuine = Door().committed(), honest(kind)
    for forged in (
        msgspec.structs.replace(genuine, signature=b"forged"),
        msgspec.structs.replace(genuine, party=2),
        msgspec.structs.replace(
            genuine, signature=foreign(replace(SESSION, id=b"x" * 32), 1).sign(kind, b"").signature
        ),
    ):
        with pytest.raises(InvalidPeerMessage, match=rf"a {kind} that party \d has not signed"):
            door.items.take(forged)
    assert not door.held(kind)


@pytest.mark.parametrize("kind", ["commit", "confirm", "reveal"])
def test_a_signature_is_about_one_kind(kind: Kind) -> None:
    door, other = Door(), "reveal" if kind == "commit" else "commit"
    with pytest.raises(InvalidPeerMessage, match="has not signed"):
        door.items.take(msgspec.structs.replace(honest(kind), kind=other))


# --- its owner says it once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["digest", "deposit", "refusal"])
def test_an_own_item_that_the_journal_lacks_means_that_it_is_behind(kind: Kind) -> None:
    door, own = Door(replace(SESSION, names=("Ann", "Bob", "Cy", "Di"))).in_cohort(), honest(kind, party=0)
    with pytest.raises(InvalidPeerMessage, match=f"a {kind} that Ann has not signed"):
        door.items.take(msgspec.structs.replace(own, signature=b"forged"))
    with pytest.raises(CannotJoin, match=f"the journal is behind: a peer has a {kind} of this party that it lacks"):
        door.items.take(own)
    assert not door.held(kind)
    door.ledger.apply(Signed(own, None if kind == "digest" else 0))
    assert door.items.take(own) and door.held(kind) == {0: own}


@pytest.mark.parametrize("kind", ["commit", "confirm", "reveal", "key", "done"])
def test_own_items_that_always_say_the_same_may_come_back(kind: Kind) -> None:
    assert Door().committed().ready_for(kind, party=0).items.take(honest(kind, party=0))


def test_only_the_secret_that_was_committed_to_is_held() -> None:
    """Else whoever holds another one, which a liar has signed for it alone, would never be sent the right one."""
    door, false = Door(), item(1, "reveal", b"x" * len(SECRET))
    assert not door.items.take(honest("reveal")) and not door.items.take(false)  # nothing was committed to yet
    door.items.take(honest("commit"))
    assert not door.items.take(false) and not door.held("reveal")
    assert door.items.take(honest("reveal")) and door.held("reveal") == {1: honest("reveal")}


def test_two_words_of_a_party_are_kept_and_a_third_only_if_something_rests_on_it() -> None:
    door = Door().in_cohort()
    words = [deposit(COHORT, 1, [number, 0, 0]) for number in range(5)]
    assert [door.items.take(word) for word in words[:3]] == [True, True, False]
    assert door.held("deposit") == {1: words[0]} and door.items.two_faced("deposit") == {1}
    assert not door.items.with_contents("deposit", [(1, words[2].hash)])
    assert door.items.lacking_contents("deposit", [(1, words[2].hash)], 2) == [(1, words[2].hash)]  # party 2 names it
    assert door.items.take(words[2]) and not door.items.take(words[3])
    assert door.items.lacking_contents("deposit", [(1, words[2].hash)], 2) == []
    door.items.keep("deposit", [(1, words[2].hash)])  # it was accepted
    door.items.lacking_contents("deposit", [(1, words[4].hash)], 2)
    assert door.items.take(words[4])
    assert door.items.with_contents("deposit", [(1, words[2].hash)]) == [words[2]]
    door.items.pin("deposit", [(1, words[2].hash)])
    assert door.held("deposit") == {1: words[2]}  # that one is passed on from now on


# --- then what it says ------------------------------------------------------------------------------------------------


def with_keys(keys: list[bytes]) -> Item:
    return digest(1, keys=keys)


KEYS = keys_of(1)
SAYINGS: dict[str, tuple[Callable[[], Item], str]] = {
    "a digest that cannot be": (lambda: digest(1, [2, 1]), "in increasing order"),
    "a digest that cannot be read": (lambda: item(1, "digest", b"\xff\xff"), "a digest that cannot be read"),
    "a digest that is padded": (
        lambda: item(1, "digest", b"\xdc\x00\x03" + digest(1).body[1:]),
        "must be written in the shortest way",
    ),
    "a digest with a short commitment": (
        lambda: item(1, "digest", msgspec.structs.replace(read(digest(1), Digest), commitment=b"short")),
        "the commitment in a digest must have 32 bytes, got 5",
    ),
    "a digest with a key too few": (lambda: with_keys(KEYS[1:]), f"must have {COHORTS} keys, got {COHORTS - 1}"),
    "a digest with a key too many": (lambda: with_keys([*KEYS, KEYS[0]]), f"must have {COHORTS} keys, got"),
    "a digest with a key of low order": (lambda: with_keys([*KEYS[1:], bytes(32)]), "low order"),
    "a digest with a short key": (lambda: with_keys([*KEYS[1:], KEYS[0][:-1]]), "one of Curve25519"),
    "a digest with a key in another encoding": (lambda: with_keys([*KEYS[1:], b"\xff" * 32]), "one of Curve25519"),
    "a commitment of another width": (lambda: item(1, "commit", b"short"), "a commit must have 32 bytes, got 5"),
    "a deposit that cannot be read": (
        lambda: item(1, "deposit", b"\x93", deposit(COHORT, 1).sealed),
        "a deposit that cannot be read",
    ),
    "a deposit with other sealed bytes": (
        lambda: msgspec.structs.replace(deposit(COHORT, 1), sealed=bytes(len(deposit(COHORT, 1).sealed))),
        "other sealed bytes than its hash says",
    ),
    "a deposit with a share too few": (
        lambda: changed(shares=read(deposit(COHORT, 1), Deposit).shares[33:]),
        "parts of",
    ),
    "a deposit with a short hash": (lambda: changed(sealed=b"short"), "parts of a deposit"),
    "a deposit with an ephemeral key of low order": (lambda: changed(ephemeral=bytes(32)), "low order"),
    "a refusal with a long text": (lambda: refusal(COHORT, 1, 201 * "x"), "at most 200 printable characters"),
    "a refusal with an escape": (lambda: refusal(COHORT, 1, "\x1b[2J"), "printable characters"),
    "a refusal of two lines": (lambda: refusal(COHORT, 1, "two\nlines"), "printable characters"),
    "a refusal that turns around": (lambda: refusal(COHORT, 1, "\u202e"), "printable characters"),
    "a key that cannot be read": (lambda: item(1, "key", b"\x92\x00"), "a key that cannot be read"),
}


def changed(**parts: bytes) -> Item:
    whole = deposit(COHORT, 1)
    return item(1, "deposit", msgspec.structs.replace(read(whole, Deposit), **parts), whole.sealed)


@pytest.mark.parametrize("name", SAYINGS)
def test_what_is_signed_and_yet_invalid_is_refused(name: str) -> None:
    door, (make, sentence) = Door().committed(), SAYINGS[name]
    with pytest.raises(InvalidPeerMessage, match=sentence):
        door.items.take(make())
    assert not any(door.items.by_kind.values())


def test_no_deposit_is_refused_for_its_numbers() -> None:
    """They are sealed; and a liar's large offer can make every honest party's large."""
    door = Door().in_cohort()
    for party, number in ((1, 2**63 - 1), (2, -(2**63)), (3, 2**62)):
        assert door.items.take(deposit(COHORT, party, [number, number, number]))


def test_own_words_are_taken_up_from_the_journal() -> None:
    finalization, context, cohort = in_cohort()
    answer(finalization)
    again = SignedItems(SESSION, 0, context.ledger, sign(0), verify)
    again.expect_words(0, cohort.hash, len(cohort.parties))
    own = context.ledger.own_items["deposit", 0]
    assert again.take(own) and again.by_kind["deposit"] == {0: own}
    of = dealing(cohort, 0)
    assert context.ledger.secrets is not None
    assert read(own, Deposit).ephemeral == of.deal(context.ledger.secrets.dealing, b"")[0].ephemeral
