"""Secret sharing against other algorithms: fractions, Newton's interpolation, Gaussian elimination."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from inca.network.protocol.opening.shamir import PRIME, SHARE_BYTES, recovered, share

elements = st.integers(0, PRIME - 1)


def by_newton(shares: dict[int, int], at: int = 0) -> int:
    """The value of the polynomial of lowest degree through these points, by divided differences."""
    places = list(shares)
    differences = list(shares.values())
    for order in range(1, len(places)):
        for place in reversed(range(order, len(places))):
            step = (places[place] - places[place - order]) % PRIME
            differences[place] = (differences[place] - differences[place - 1]) * pow(step, PRIME - 2, PRIME) % PRIME
    value = 0
    for place, difference in zip(reversed(places), reversed(differences), strict=True):
        value = (value * (at - place) + difference) % PRIME
    return value


def by_elimination(shares: dict[int, int]) -> list[int]:
    """All coefficients of that polynomial, from the equations that the shares are."""
    rows = [[pow(place, power, PRIME) for power in range(len(shares))] + [value] for place, value in shares.items()]
    for column in range(len(rows)):
        pivot = next(row for row in rows[column:] if row[column])
        rows.remove(pivot)
        inverse = pow(pivot[column], -1, PRIME)
        pivot = [entry * inverse % PRIME for entry in pivot]
        rows = [[(a - row[column] * b) % PRIME for a, b in zip(row, pivot, strict=True)] for row in rows]
        rows.insert(column, pivot)
    return [row[-1] for row in rows]


def by_fractions(shares: dict[int, int]) -> Fraction:
    """Lagrange's formula over the rational numbers."""
    total = Fraction(0)
    for place, value in shares.items():
        term = Fraction(value)
        for other in shares:
            term *= Fraction(other, other - place) if other != place else 1
        total += term
    return total


def is_probably_prime(number: int, base: int) -> bool:
    """Miller and Rabin's test: a number that is not prime passes it for at most a quarter of all bases."""
    power, odd = 0, number - 1
    while odd % 2 == 0:
        power, odd = power + 1, odd // 2
    value = pow(base, odd, number)
    if value in (1, number - 1):
        return True
    return any((value := value * value % number) == number - 1 for _ in range(power - 1))


# --- the field --------------------------------------------------------------------------------------------------------


def test_its_order_is_the_least_prime_above_2_to_the_256() -> None:
    bases = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, *(random.Random(k).randrange(2, PRIME - 1) for k in range(28))]
    assert PRIME == 2**256 + 297 and all(is_probably_prime(PRIME, base) for base in bases)  # wrong with 4^-40
    assert not any(all(is_probably_prime(number, base) for base in bases) for number in range(2**256 + 1, PRIME, 2))
    assert not is_probably_prime(PRIME * (PRIME + 2), 2)  # and the test can fail


@given(st.integers(2, PRIME - 2))
def test_its_order_passes_for_every_base(base: int) -> None:
    assert is_probably_prime(PRIME, base) and pow(base, PRIME - 1, PRIME) == 1


def test_it_holds_every_secret_of_32_bytes_and_its_elements_fit_in_a_share() -> None:
    assert 2**256 <= PRIME <= 2 ** (8 * SHARE_BYTES) and PRIME > 2 ** (8 * (SHARE_BYTES - 1))
    most = int.from_bytes(b"\xff" * 32, "little")
    assert recovered({place: share(most, [5, 6], place) for place in (2, 3, 7)}) == most


# --- shares -----------------------------------------------------------------------------------------------------------


@given(elements, st.lists(elements, max_size=6), st.integers(1, 10**6))
def test_a_share_is_the_value_of_the_polynomial(secret: int, coefficients: list[int], place: int) -> None:
    powers = [coefficient * pow(place, power, PRIME) for power, coefficient in enumerate([secret, *coefficients])]
    assert share(secret, coefficients, place) == sum(powers) % PRIME


@st.composite
def dealt(draw: st.DrawFn) -> tuple[list[int], dict[int, int]]:
    """The coefficients of a polynomial, and as many shares as determine it, at places of any kind and order."""
    coefficients = draw(st.lists(elements, min_size=1, max_size=7))
    count = len(coefficients)
    places = draw(st.lists(st.integers(1, 2000), min_size=count, max_size=count, unique=True))
    return coefficients, {place: share(coefficients[0], coefficients[1:], place) for place in places}


@given(dealt())
@examples(40, 200)
def test_enough_shares_give_the_secret_as_newton_and_elimination_do(
    polynomial: tuple[list[int], dict[int, int]],
) -> None:
    coefficients, shares = polynomial
    assert recovered(shares) == by_newton(shares) == coefficients[0]
    assert by_elimination(shares) == coefficients


@given(st.dictionaries(st.integers(1, 2000), elements, min_size=1, max_size=7))
@examples(40, 200)
def test_whatever_the_shares_are_they_give_what_newton_gives(shares: dict[int, int]) -> None:
    """Shares that nobody has dealt: still a number, always the same."""
    assert recovered(shares) == by_newton(shares) == recovered(dict(reversed(shares.items())))
    assert 0 <= recovered(shares) < PRIME


@given(st.integers(0, 2**32), st.lists(st.integers(0, 2**32), max_size=4), st.data())
@examples(40, 100)
def test_small_numbers_give_what_fractions_give(secret: int, coefficients: list[int], data: st.DataObject) -> None:
    count = len(coefficients) + 1
    places = data.draw(st.lists(st.integers(1, 60), min_size=count, max_size=count, unique=True))
    shares = {p: sum(c * p**k for k, c in enumerate([secret, *coefficients])) for p in places}
    assert shares == {place: share(secret, coefficients, place) for place in places}  # nothing is reduced yet
    assert by_fractions(shares) == secret == recovered(shares)


@given(dealt(), elements, st.data())
@examples(40, 200)
def test_fewer_shares_fit_every_secret_alike(
    polynomial: tuple[list[int], dict[int, int]], other: int, data: st.DataObject
) -> None:
    """There is exactly one polynomial of that degree for each secret, so they tell nothing of it."""
    coefficients, shares = polynomial
    missing = data.draw(st.sampled_from(sorted(shares)))
    fewer = {place: value for place, value in shares.items() if place != missing}
    invented = by_newton({0: other, **fewer}, at=missing)
    assert recovered({**fewer, missing: invented}) == other
    assert (invented == shares[missing]) is (other == coefficients[0])


@given(dealt(), st.integers(1, PRIME - 1), st.data())
@examples(40, 200)
def test_one_wrong_share_gives_another_secret(
    polynomial: tuple[list[int], dict[int, int]], error: int, data: st.DataObject
) -> None:
    coefficients, shares = polynomial
    wrong = data.draw(st.sampled_from(sorted(shares)))
    shares[wrong] = (shares[wrong] + error) % PRIME
    assert recovered(shares) != coefficients[0]


@pytest.mark.parametrize("threshold", [1, 2, 25, 32])
def test_vectors(threshold: int) -> None:
    """Numbers that are followed by hand: the polynomial sum of (k + 1) x^k at x = 1 and 2."""
    coefficients = list(range(2, threshold + 1))
    assert share(1, coefficients, 1) == threshold * (threshold + 1) // 2
    assert share(1, coefficients, 2) == (threshold - 1) * 2**threshold + 1
