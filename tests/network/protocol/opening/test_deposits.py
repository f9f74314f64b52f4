"""Deposits: whichever trustees open one, the end is the same, whatever its dealer has made of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.plain_primitives import FIELD, plain_chacha20, plain_hkdf, plain_x25519
from helpers.trustee_keys import in_common, keys_of, secrets_of
from inca.errors import InvalidPeerMessage
from inca.network.protocol.opening import shamir
from inca.network.protocol.opening.cohort_keys import clamped, public_of
from inca.network.protocol.opening.deposits import Dealing, Deposit, check_deposit

SECRET, MESSAGE = bytes(range(32)), b"a final message of some length" * 5
BASE = bytes([9]) + bytes(31)


def dealing(trustees: int = 5, threshold: int = 3, dealer: int = 1) -> Dealing:
    publics = {10 + place: keys_of(10 + place)[0] for place in range(trustees)}
    return Dealing(b"session".ljust(32), 2, b"cohort".ljust(32), dealer, publics, threshold)


def private(trustee: int) -> bytes:
    return secrets_of(trustee).private_key


def end(of: Dealing, deposit: Deposit, sealed: bytes, trustees: Collection[int]) -> bytes | None:
    """What these trustees come to."""
    return of.opened(deposit, sealed, {one: in_common(deposit, private(one)) for one in trustees})


def ends(of: Dealing, deposit: Deposit, sealed: bytes) -> set[bytes | None]:
    """What all sets of trustees come to that may open."""
    return {end(of, deposit, sealed, some) for some in combinations(of.trustees, of.threshold)}


# --- by hand ----------------------------------------------------------------------------------------------------------


@dataclass
class ByHand:
    """A deposit as its format says, written down with other code; a dealer may change any part on the way."""

    of: Dealing
    secret: int
    higher: list[int]  # coefficients beyond the degree that is agreed on
    ephemeral: bytes | None = None
    own_key: bytes = b""  # from which pad, polynomial and ephemeral key follow

    def deal(self) -> tuple[Deposit, bytes]:
        of = self.of
        numbers = of.cohort.to_bytes(4, "little") + of.dealer.to_bytes(4, "little")
        bound = b"inca-deposit/1" + of.session + numbers + of.hash
        seed = self.own_key or self.secret.to_bytes(32, "little")
        key = self.ephemeral or plain_hkdf(seed, b"ephemeral" + bound, 32)
        wide = plain_chacha20(plain_hkdf(seed, b"polynomial" + bound, 32), bytes(64 * (of.threshold - 1)))
        parts = [wide[at : at + 64] for at in range(0, len(wide), 64)]
        polynomial = [self.secret, *(int.from_bytes(part, "little") for part in parts), *self.higher]
        shares = b""
        for place, (trustee, public) in enumerate(of.trustees.items(), start=1):
            value = sum(c * pow(place, power, shamir.PRIME) for power, c in enumerate(polynomial)) % shamir.PRIME
            common = plain_hkdf(plain_x25519(key, public), b"share" + bound + trustee.to_bytes(4, "little"), 33)
            shares += bytes(a ^ b for a, b in zip(common, value.to_bytes(33, "little"), strict=True))
        sealed = plain_chacha20(plain_hkdf(seed, b"pad" + bound, 32), MESSAGE)
        hash_ = hashlib.blake2b(sealed, digest_size=32).digest()
        return Deposit(of.cohort, of.hash, hash_, plain_x25519(key, BASE), shares), sealed


@pytest.mark.parametrize(("trustees", "threshold"), [(3, 2), (5, 3), (4, 1), (2, 2)])
def test_a_deposit_is_what_its_format_says(trustees: int, threshold: int) -> None:
    of = dealing(trustees, threshold)
    by_hand = ByHand(of, int.from_bytes(SECRET, "little"), [])
    assert of.deal(SECRET, MESSAGE) == by_hand.deal()


# --- a valid one ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.data())
@examples(15, 80)
def test_any_trustees_open_a_valid_deposit_and_no_fewer_than_agreed(trustees: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, trustees))
    of = dealing(trustees, threshold)
    secret = data.draw(st.binary(min_size=32, max_size=32))
    message = data.draw(st.binary(max_size=200))
    deposit, sealed = of.deal(secret, message)
    assert ends(of, deposit, sealed) == {message} and len(sealed) == len(message)
    assert of.deal(secret, message) == (deposit, sealed)  # always the same, so that a restart says the same
    check_deposit(deposit, trustees)
    for wrong in {threshold - 1, threshold + 1} & set(range(trustees + 1)):
        with pytest.raises(ValueError, match=f"is opened by {threshold} trustees, got {wrong}"):
            end(of, deposit, sealed, list(of.trustees)[:wrong])


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32])
def test_the_smallest_and_the_largest_secret_are_opened(secret: bytes) -> None:
    of = dealing()
    deposit, sealed = of.deal(secret, MESSAGE)
    assert ends(of, deposit, sealed) == {MESSAGE}


OTHERS: dict[str, Callable[[Dealing], Dealing]] = {
    "another session": lambda of: replace(of, session=bytes(32)),
    "another cohort": lambda of: replace(of, cohort=of.cohort + 1),
    "another decision": lambda of: replace(of, hash=bytes(32)),
    "another dealer": lambda of: replace(of, dealer=of.dealer + 1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_everything_is_bound_to_session_cohort_decision_and_dealer(name: str) -> None:
    """So that nobody can hand in another's deposit as its own, or open one of another cohort."""
    of, other = dealing(), OTHERS[name](dealing())
    deposit, sealed = of.deal(SECRET, MESSAGE)
    again, sealed_again = other.deal(SECRET, MESSAGE)
    assert sealed != sealed_again and deposit.ephemeral != again.ephemeral
    parts = [body.shares[place : place + 33] for body in (deposit, again) for place in range(0, 165, 33)]
    assert len(set(parts)) == len(parts)
    moved = msgspec.structs.replace(deposit, cohort=other.cohort, hash=other.hash)
    assert ends(other, moved, sealed) == {None}


def test_a_share_is_encrypted_for_its_trustee_alone() -> None:
    of = dealing()
    deposit, sealed = of.deal(SECRET, MESSAGE)
    common = {one: in_common(deposit, private(one)) for one in (10, 11)}
    assert end(of, deposit, sealed, (10, 11, 12)) == MESSAGE
    wrong = in_common(deposit, private(13))
    assert of.opened(deposit, sealed, {**common, 12: wrong}) is None


def test_what_is_sealed_shows_nothing_of_the_message() -> None:
    of = dealing()
    (one, sealed), (other, resealed) = of.deal(SECRET, bytes(1000)), of.deal(b"s" * 32, bytes(1000))
    assert one.sealed != other.sealed
    assert len(set(sealed)) > 200 and sum(a == b for a, b in zip(sealed, resealed, strict=True)) < 20


# --- malformed ones ---------------------------------------------------------------------------------------------------


def honest(of: Dealing) -> tuple[Deposit, bytes]:
    return of.deal(SECRET, MESSAGE)


def reordered(of: Dealing) -> tuple[Deposit, bytes]:
    deposit, sealed = honest(of)
    return msgspec.structs.replace(deposit, shares=deposit.shares[33:] + deposit.shares[:33]), sealed


def garbage(of: Dealing) -> tuple[Deposit, bytes]:
    deposit, sealed = honest(of)
    return msgspec.structs.replace(deposit, shares=bytes(len(deposit.shares))), sealed


def with_shares(of: Dealing, change: Callable[[int, bytes], bytes]) -> tuple[Deposit, bytes]:
    """A deposit whose encrypted shares are changed, place by place."""
    deposit, sealed = honest(of)
    parts = [deposit.shares[place : place + 33] for place in range(0, len(deposit.shares), 33)]
    return msgspec.structs.replace(deposit, shares=b"".join(map(change, range(len(parts)), parts))), sealed


def flipped(part: bytes, bit: int = 0) -> bytes:
    return (int.from_bytes(part, "little") ^ 1 << bit).to_bytes(33, "little")


LIES: dict[str, Callable[[Dealing], tuple[Deposit, bytes]]] = {
    "garbage in place of shares": garbage,
    "a wrong share for the first": lambda of: with_shares(of, lambda place, part: part if place else flipped(part)),
    "wrong shares for all but as many as open": lambda of: with_shares(
        of, lambda place, part: part if place < of.threshold else flipped(part)
    ),
    "wrong shares for all but one": lambda of: with_shares(of, lambda place, part: flipped(part) if place else part),
    "a share that is no element of the field": lambda of: with_shares(
        of, lambda place, part: flipped(part, 263) if place == 1 else part
    ),
    "shares that are no elements of the field": lambda of: with_shares(of, lambda place, part: flipped(part, 263)),
    "shares in another order": reordered,
    "the least secret of more than 32 bytes": lambda of: ByHand(of, 2**256, [], own_key=SECRET).deal(),
    "the largest secret of more than 32 bytes": lambda of: ByHand(of, shamir.PRIME - 1, [], own_key=SECRET).deal(),
    "a polynomial of a higher degree": lambda of: ByHand(of, int.from_bytes(SECRET, "little"), [1]).deal(),
    "a polynomial of a much higher degree": lambda of: ByHand(of, 5, [0, 0, 7]).deal(),
    "a polynomial that does not follow from its secret": lambda of: ByHand(
        of, int.from_bytes(SECRET, "little"), [], own_key=b"another".ljust(32)
    ).deal(),
    "another ephemeral key": lambda of: ByHand(of, int.from_bytes(SECRET, "little"), [], b"e" * 32).deal(),
    "another ephemeral key than the shares are encrypted with": lambda of: (
        msgspec.structs.replace(honest(of)[0], ephemeral=public_of(clamped(b"e" * 32))),
        honest(of)[1],
    ),
    "an ephemeral key on the twist": lambda of: (
        msgspec.structs.replace(honest(of)[0], ephemeral=(2).to_bytes(32, "little")),
        honest(of)[1],
    ),
    "another number of the cohort": lambda of: (msgspec.structs.replace(honest(of)[0], cohort=9), honest(of)[1]),
    "another decision": lambda of: (msgspec.structs.replace(honest(of)[0], hash=bytes(32)), honest(of)[1]),
    "too few shares": lambda of: cut(of, 33),
    "part of a share too few": lambda of: cut(of, 1),
}


def cut(of: Dealing, count: int) -> tuple[Deposit, bytes]:
    deposit, sealed = honest(of)
    return msgspec.structs.replace(deposit, shares=deposit.shares[:-count]), sealed


@pytest.mark.parametrize("beyond", [0, 1, 2**263])
def test_a_share_that_is_no_element_of_the_field_is_none(beyond: int) -> None:
    """An element has one encoding: its number plus the order of the field is another one, and no share."""
    of = dealing()
    deposit, _ = honest(of)
    first, second = in_common(deposit, private(10)), in_common(deposit, private(11))
    genuine = of.share_of(deposit, 10, first)
    assert genuine is not None
    change = genuine ^ (genuine + shamir.PRIME if beyond == 0 else shamir.PRIME - 1 + beyond)
    beyond_field = (int.from_bytes(deposit.shares[:33], "little") ^ change).to_bytes(33, "little")
    changed = msgspec.structs.replace(deposit, shares=beyond_field + deposit.shares[33:])
    assert of.share_of(changed, 10, first) is None and of.share_of(changed, 11, second) is not None


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize(("trustees", "threshold"), [(5, 3), (4, 3), (3, 2)])
def test_a_malformed_deposit_is_a_lie_to_any_trustees_that_open_it(name: str, trustees: int, threshold: int) -> None:
    of = dealing(trustees, threshold)
    deposit, sealed = LIES[name](of)
    assert deposit != honest(of)[0]
    assert ends(of, deposit, sealed) == {None}
    for some in combinations(of.trustees, threshold):
        assert of.proves_lie(deposit, sealed, {one: private(one) for one in some})


@given(st.integers(2, 5), st.data())
@examples(30, 300)
def test_no_trustees_come_to_another_end_than_others_whatever_was_dealt(trustees: int, data: st.DataObject) -> None:
    """Any bytes in the place of any part; any polynomial; and changes that change nothing."""
    threshold = data.draw(st.integers(1, trustees))
    of = dealing(trustees, threshold)
    number = data.draw(st.integers(0, shamir.PRIME - 1) | st.just(int.from_bytes(SECRET, "little")))
    higher = data.draw(st.lists(st.integers(0, shamir.PRIME - 1), max_size=3))
    key = data.draw(st.binary(min_size=32, max_size=32) | st.just(b""))
    if not key and number >= 2**256:
        key = SECRET
    ephemeral = data.draw(st.none() | st.binary(min_size=32, max_size=32))
    deposit, sealed = ByHand(of, number, higher, ephemeral, key).deal()
    changed = data.draw(st.dictionaries(st.integers(0, len(deposit.shares) - 1), st.integers(0, 255), max_size=4))
    shares = bytes(changed.get(place, byte) for place, byte in enumerate(deposit.shares))
    deposit = msgspec.structs.replace(deposit, shares=shares)
    found = ends(of, deposit, sealed)
    valid = number < 2**256 and of.deal(number.to_bytes(32, "little"), MESSAGE) == (deposit, sealed)
    assert found == ({MESSAGE} if valid else {None})


# --- proofs of lies ---------------------------------------------------------------------------------------------------


def test_no_keys_prove_a_lie_of_an_honest_dealer() -> None:
    of = dealing()
    deposit, sealed = honest(of)
    for some in combinations(of.trustees, of.threshold):
        assert not of.proves_lie(deposit, sealed, {one: private(one) for one in some})


@pytest.mark.parametrize("name", ["an honest one", *LIES])
def test_keys_that_are_none_or_too_few_or_too_many_prove_nothing(name: str) -> None:
    """Else a party could be blamed by whoever makes up a key."""
    of = dealing()
    deposit, sealed = LIES.get(name, honest)(of)
    genuine = {one: private(one) for one in (10, 12, 14)}
    accused: list[dict[int, bytes]] = [
        {10: genuine[10], 12: genuine[12]},
        {**genuine, 11: private(11)},
        {},
        {**genuine, 14: clamped(b"made up".ljust(32))},
        {**genuine, 14: private(11)},
        {**genuine, 14: (int.from_bytes(genuine[14], "little") | 1).to_bytes(32, "little")},
        {**genuine, 14: genuine[14][:-1]},
        {10: genuine[10], 12: genuine[12], 99: private(99)},
    ]
    assert not any(of.proves_lie(deposit, sealed, keys) for keys in accused)
    assert of.proves_lie(deposit, sealed, genuine) is (name in LIES)


# --- at the door ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["hash", "sealed", "shares"])
@pytest.mark.parametrize("change", [-1, 1, -33, 33])
def test_a_deposit_of_another_size_is_refused(field: str, change: int) -> None:
    deposit, _ = honest(dealing())
    content: bytes = getattr(deposit, field)
    longer = content + bytes(change) if change > 0 else content[:change]
    if longer != content:
        with pytest.raises(InvalidPeerMessage, match="the parts of a deposit must have"):
            check_deposit(msgspec.structs.replace(deposit, **{field: longer}), 5)
    with pytest.raises(InvalidPeerMessage, match="the parts of a deposit must have"):
        check_deposit(deposit, 4)


@pytest.mark.parametrize(
    "key", [bytes(32), (1).to_bytes(32, "little"), FIELD.to_bytes(32, "little"), b"", b"\xff" * 32]
)
def test_a_deposit_with_an_ephemeral_key_that_is_none_is_refused(key: bytes) -> None:
    """An exchange with it would raise a ValueError, in everyone."""
    deposit, _ = honest(dealing())
    check_deposit(deposit, 5)
    with pytest.raises(InvalidPeerMessage, match="must be one of Curve25519"):
        check_deposit(msgspec.structs.replace(deposit, ephemeral=key), 5)
