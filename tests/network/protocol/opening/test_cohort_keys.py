"""Keys of cohorts: those of RFC 7748, no others, and a chain of secrets that does not go back."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.plain_primitives import FIELD, plain_hkdf, plain_x25519
from inca.errors import InvalidPeerMessage
from inca.network.protocol.opening.cohort_keys import (
    COHORTS,
    CohortSecrets,
    check_public,
    clamped,
    derived,
    proves,
    public_of,
    shared_secrets,
)

ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")  # RFC 7748, section 6.1
ALICES = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOBS = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
COMMON = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
BASE = bytes([9]) + bytes(31)

secrets = st.binary(min_size=32, max_size=32)


def encoded(number: int) -> bytes:
    return number.to_bytes(32, "little")


# --- public keys ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("private", "public"), [(ALICE, ALICES), (BOB, BOBS)])
def test_public_keys_are_those_of_the_standard(private: bytes, public: bytes) -> None:
    assert public_of(private) == public_of(clamped(private)) == public == plain_x25519(private, BASE)
    check_public(public)


def test_two_parties_have_in_common_what_the_standard_says() -> None:
    assert shared_secrets(ALICE, [BOBS, BASE]) == [COMMON, ALICES] and shared_secrets(BOB, [ALICES]) == [COMMON]
    assert plain_x25519(ALICE, BOBS) == COMMON


@given(secrets, secrets)
@examples(20, 100)
def test_exchanges_are_those_of_the_ladder(one: bytes, other: bytes) -> None:
    assert public_of(one) == plain_x25519(one, BASE)
    assert shared_secrets(one, [public_of(other)]) == [plain_x25519(one, public_of(other))]


LOW = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    FIELD - 1,
]


@pytest.mark.parametrize("number", [*LOW, FIELD, FIELD + 1, *(low + 2**255 for low in LOW)])
def test_a_key_of_low_order_is_refused_in_every_encoding(number: int) -> None:
    """All give the same secret to everyone: 0, which `cryptography` does not return but raises."""
    assert plain_x25519(ALICE, encoded(number)) == bytes(32)
    with pytest.raises(ValueError):
        X25519PrivateKey.from_private_bytes(BOB).exchange(X25519PublicKey.from_public_bytes(encoded(number)))
    with pytest.raises(InvalidPeerMessage, match="low order"):
        check_public(encoded(number))


def times(one: list[int], other: list[int], modulus: list[int]) -> list[int]:
    """The product of two polynomials modulo a third of degree 4 whose highest coefficient is 1; lowest powers first."""
    product = [0] * 7
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] = (product[i + j] + a * b) % FIELD
    for degree in (6, 5, 4):
        for power, coefficient in enumerate(modulus[:4]):
            product[degree - 4 + power] = (product[degree - 4 + power] - product[degree] * coefficient) % FIELD
    return product[:4]


def roots(polynomial: list[int], known: list[int]) -> int:
    """How many different roots a polynomial of degree 4 has beside those that are known: x^p - x vanishes at each."""
    power, square, exponent = [1, 0, 0, 0], [0, 1, 0, 0], FIELD
    while exponent:
        if exponent & 1:
            power = times(power, square, polynomial)
        square, exponent = times(square, square, polynomial), exponent >> 1
    rest = [power[0], (power[1] - 1) % FIELD, *power[2:]]
    one, other = polynomial, rest
    while any(other):  # Euclid
        while other[-1] == 0:
            other = other[:-1]
        while len(one) >= len(other):
            factor = one[-1] * pow(other[-1], -1, FIELD) % FIELD
            shift = len(one) - len(other)
            one = [(a - factor * (other[i - shift] if i >= shift else 0)) % FIELD for i, a in enumerate(one)][:-1]
        one, other = other, one or [0]
    while one[-1] == 0:
        one = one[:-1]
    for root in known:
        assert sum(c * pow(root, k, FIELD) for k, c in enumerate(one)) % FIELD == 0
    return len(one) - 1 - len(known)


def test_there_are_no_other_points_whose_order_divides_8() -> None:
    """By the doubling formula u' = (u^2 - 1)^2 / 4u(u^2 + Au + 1), backwards from the point at infinity."""
    A = 486662
    # Order 2: u = 0, or u^2 + Au + 1 = 0, whose discriminant is no square.
    assert pow(A * A - 4, (FIELD - 1) // 2, FIELD) == FIELD - 1
    # Order 4: u' = 0, so u^2 = 1. Order 8: u' = 1, or u' = -1.
    quartics = [[1, -4 * s, -2 - 4 * s * A, -4 * s, 1] for s in (1, -1)]
    found = 0
    for quartic in quartics:
        reduced = [coefficient % FIELD for coefficient in quartic]
        mine = [u for u in LOW if sum(c * pow(u, k, FIELD) for k, c in enumerate(reduced)) % FIELD == 0]
        assert roots(reduced, mine) == 0
        found += len(mine)
    assert found == 2 and len(LOW) == 3 + found


@given(st.integers(FIELD, 2**256 - 1))
@examples(30, 200)
def test_a_key_that_is_not_written_in_the_usual_way_is_refused(number: int) -> None:
    """The same key in two encodings would give two digests for one secret."""
    with pytest.raises(InvalidPeerMessage, match=r"must be one of Curve25519"):
        check_public(encoded(number))


@given(st.binary(max_size=64).filter(lambda key: len(key) != 32))
def test_a_key_of_another_size_is_refused(key: bytes) -> None:
    with pytest.raises(InvalidPeerMessage):
        check_public(key)


@given(st.integers(0, FIELD - 1).filter(lambda number: number not in LOW))
def test_every_other_key_gives_a_secret_and_raises_nothing(number: int) -> None:
    """Also one on the twist, of which there are as many."""
    check_public(encoded(number))
    assert shared_secrets(ALICE, [encoded(number)]) != [bytes(32)]


# --- private keys -----------------------------------------------------------------------------------------------------


@given(secrets)
@examples(10, 50)
def test_of_the_32_encodings_of_a_private_key_only_the_clamped_one_proves_it(scalar: bytes) -> None:
    public, encodings = public_of(scalar), set[bytes]()
    for low in range(8):
        for high in range(4):
            number = int.from_bytes(scalar, "little") & (2**254 - 8)
            encodings.add(encoded(number | low | high << 254))
    assert len(encodings) == 32 and {public_of(one) for one in encodings} == {public}
    assert [one for one in encodings if proves(one, public)] == [clamped(scalar)]
    assert clamped(clamped(scalar)) == clamped(scalar)


@given(secrets, secrets)
@examples(10, 50)
def test_another_key_proves_nothing(one: bytes, other: bytes) -> None:
    assert proves(clamped(one), public_of(other)) is (clamped(one) == clamped(other))


@pytest.mark.parametrize("key", [b"", clamped(ALICE)[:-1], clamped(ALICE) + b"\0", ALICE])
def test_a_key_of_another_size_or_form_proves_nothing_and_raises_nothing(key: bytes) -> None:
    assert not proves(key, ALICES) and proves(clamped(ALICE), ALICES)
    assert not proves(clamped(ALICE), ALICES[:-1])


# --- what follows from a state ----------------------------------------------------------------------------------------


@given(st.binary(min_size=1, max_size=64), st.binary(max_size=100), st.integers(1, 200))
def test_secrets_are_derived_as_the_standard_says(secret: bytes, purpose: bytes, count: int) -> None:
    assert derived(secret, purpose, count) == plain_hkdf(secret, purpose, count)


def test_derived_bytes_are_those_of_the_standard_s_test_case_without_salt() -> None:
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"  # RFC 5869, A.3
    assert derived(b"\x0b" * 22, b"", 42).hex() == expected


@given(secrets)
@examples(10, 50)
def test_everything_that_follows_from_a_state_is_different(state: bytes) -> None:
    chain = [CohortSecrets(state, 0).advanced(cohort) for cohort in range(COHORTS)]
    parts = [part for own in chain for part in (own.state, own.private_key, own.dealing, own.topup)]
    assert len(set(parts)) == 4 * COHORTS and all(len(part) == 32 for part in parts)
    assert all(clamped(own.private_key) == own.private_key for own in chain)


@given(secrets, st.integers(0, COHORTS - 1), st.integers(0, COHORTS - 1))
@examples(20, 100)
def test_the_chain_goes_forward_in_any_steps(state: bytes, first: int, further: int) -> None:
    start = CohortSecrets(state, 0)
    stepwise = start.advanced(first).advanced(first + further)
    assert stepwise == start.advanced(first + further) and stepwise.cohort == first + further
    assert start.advanced(0) == start
    by_hand = state
    for _ in range(first):
        by_hand = plain_hkdf(by_hand, b"inca-next-cohort/1", 32)
    assert start.advanced(first).state == by_hand


@pytest.mark.parametrize(("now", "earlier"), [(1, 0), (3, 2), (7, 0)])
def test_the_chain_does_not_go_back(now: int, earlier: int) -> None:
    later = CohortSecrets(bytes(32), 0).advanced(now)
    with pytest.raises(ValueError, match=f"the secrets of cohort {earlier} are erased, got those of cohort {now}"):
        later.advanced(earlier)


def test_public_keys_are_those_of_this_cohort_and_of_those_that_follow() -> None:
    start = CohortSecrets(b"s" * 32, 0)
    publics = start.public_keys(COHORTS)
    assert publics == [public_of(start.advanced(cohort).private_key) for cohort in range(COHORTS)]
    assert start.advanced(3).public_keys(2) == publics[3:5]
    for public in publics:
        check_public(public)
