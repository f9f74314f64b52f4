"""The rule of top-up: whichever parties collude, the others have noise enough together."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from inca.protocol.topup import TopUp

WEIGHTS = st.lists(st.integers(1, 12).map(lambda pieces: pieces / 12), min_size=1, max_size=7)


@st.composite
def rules(draw: st.DrawFn) -> tuple[TopUp, list[float]]:
    """Draw a rule, as large as what all or some have at times, and the weights of a cohort with two honest parties."""
    weights, own = draw(WEIGHTS.filter(lambda some: len(some) >= 2)), draw(st.sampled_from([1.0, 0.3, 7e9]))
    share = draw(st.floats(0.0, 3.0) | st.integers(0, 9).map(math.sqrt))
    return TopUp(own * share, own, draw(st.integers(0, len(weights) - 2))), weights


def variance(topup: TopUp, honest: tuple[float, ...], added: float) -> Fraction:
    """Return the variance of the noise of some parties, exactly."""
    own, squares = Fraction(topup.independent) ** 2, sum(Fraction(weight) ** 2 for weight in honest)
    return squares * own + len(honest) * Fraction(added) ** 2


@examples(50, 2000)
@given(rules())
def test_whoever_colludes_the_others_have_enough_for_the_heaviest(drawn: tuple[TopUp, list[float]]) -> None:
    topup, weights = drawn
    added, wanted = topup.sigma(weights), (Fraction(topup.together) * Fraction(max(weights))) ** 2
    for honest in combinations(weights, len(weights) - topup.colluders):
        assert variance(topup, honest, added) >= wanted
    lightest = tuple(sorted(weights)[: len(weights) - topup.colluders])
    if added == 0.0:
        assert variance(topup, lightest, 0.0) >= wanted
    elif added > topup.least:  # and hardly more than enough
        assert variance(topup, lightest, added) <= wanted * (1 + Fraction(1, 10**12))
    else:
        assert variance(topup, lightest, 0.0) < wanted * (1 + Fraction(1, 10**12))


@examples(50, 2000)
@given(rules())
def test_fewer_or_lighter_parties_never_add_less_if_the_heaviest_stays(drawn: tuple[TopUp, list[float]]) -> None:
    topup, weights = drawn
    heaviest, *others = sorted(weights, reverse=True)
    added = topup.sigma(weights)
    assert added <= topup.most(len(weights)) and topup.most(len(weights)) <= topup.most(len(weights) - 1)
    for place in range(len(others)):
        rest = others[:place] + others[place + 1 :]
        lighter = topup.sigma([heaviest, *rest, others[place] / 2])
        assert lighter >= added
        if len(rest) + 1 - topup.colluders >= 1:
            assert topup.sigma([*rest, heaviest]) >= added


@examples(50, 2000)
@given(rules(), st.floats(1e-9, 1e15))
def test_it_is_the_same_in_all_units(drawn: tuple[TopUp, list[float]], factor: float) -> None:
    topup, weights = drawn
    here, there = topup.sigma(weights), topup.scaled(factor).sigma(weights) / factor
    if min(here, there) == 0.0:  # rounding decides whether there is enough
        assert max(here, there) <= topup.least * (1 + 1e-12)
    else:
        assert there == pytest.approx(here, rel=1e-9)


def test_the_least_and_the_most_of_it() -> None:
    assert TopUp(6.0, 1e-9, colluders=1).sigma([1.0] * 10) == pytest.approx(2.0) == TopUp(6.0, 1e-9, 1).most(10)
    enough, few = (TopUp(together, 2.0, colluders=1) for together in (6.0 - 1e-9, 6.0 + 1e-9))  # 9 * 4 = 36
    assert enough.sigma([1.0] * 10) == 0.0 and few.sigma([1.0] * 10) == few.least == 2.0 / 32.0


def test_without_a_need_there_is_never_any() -> None:
    none = TopUp(0.0, 2.0, colluders=3)
    assert none.sigma([0.5]) == none.most(4) == none.least == 0.0 and TopUp(2.0, 1.0, 0).sigma([]) == 0.0
