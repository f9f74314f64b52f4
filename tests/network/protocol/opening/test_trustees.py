"""Who the trustees are, how many of them open, and that both are as safe as they are said to be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.ledgers import SESSION
from inca.network.protocol.opening.trustees import Trustees, drawn_numbers, tolerance_of, trustees_of
from inca.network.protocol.session import SessionConfig

TAIL = Fraction(1, 10**14)


def of(parties: int, colluders: int, leavers: int, least: int | None = None) -> SessionConfig:
    smallest = max(colluders + 2, parties - leavers) if least is None else least
    return replace(SESSION, parties=parties, colluders=colluders, leavers=leavers, min_participants=smallest)


def opens(trustees: Trustees) -> bool:
    return len(trustees.members) >= trustees.threshold


def at_least(marked: int, count: int, parties: int, drawn: int) -> Fraction:
    """The probability that so many of those that are drawn are marked, as a fraction."""
    ways = sum(comb(marked, k) * comb(parties - marked, drawn - k) for k in range(count, min(marked, drawn) + 1))
    return Fraction(ways, comb(parties, drawn))


# --- up to 48 parties -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parties", "colluders", "threshold"),
    [(3, 1, 2), (4, 1, 3), (5, 1, 3), (5, 3, 4), (12, 2, 7), (48, 5, 25), (6, 4, 5)],
)
def test_among_few_all_are_trustees_and_a_majority_opens(parties: int, colluders: int, threshold: int) -> None:
    trustees = trustees_of(of(parties, colluders, 0), range(parties))
    assert trustees.members == tuple(range(parties)) and trustees.threshold == threshold


@given(st.integers(3, 48), st.data())
def test_among_few_no_colluders_open_alone_and_no_two_halves_do_each_on_its_own(
    parties: int, data: st.DataObject
) -> None:
    colluders = data.draw(st.integers(1, parties - 2))
    cohort = data.draw(st.sets(st.integers(0, parties - 1), min_size=colluders + 2))
    trustees = trustees_of(of(parties, colluders, 0), cohort)
    assert trustees.members == tuple(sorted(cohort))
    assert colluders < trustees.threshold <= len(cohort) and 2 * trustees.threshold > len(cohort)


# --- up to 1,000 ------------------------------------------------------------------------------------------------------


def test_among_a_hundred_the_first_32_are_trustees_and_16_open() -> None:
    trustees = trustees_of(of(100, 10, 10), range(100))
    assert trustees.members == tuple(range(32)) and trustees.threshold == 16
    later = trustees_of(of(100, 10, 10), range(5, 100))
    assert later.members == tuple(range(5, 37)) and later.threshold == 16


@given(st.integers(49, 1000), st.data())
@examples(40, 200)
def test_among_many_more_than_can_collude_open_and_leavers_and_more_may_be_missing(
    parties: int, data: st.DataObject
) -> None:
    colluders = data.draw(st.integers(0, parties // 4))
    leavers = data.draw(st.integers(0, parties // 4))
    session = of(parties, colluders, leavers)
    gone = data.draw(st.sets(st.integers(0, parties - 1), max_size=leavers))
    cohort = set(range(parties)) - gone
    trustees = trustees_of(session, cohort)
    if len(cohort) > 48:
        assert trustees.threshold == colluders + 6
        assert trustees.members == tuple(sorted(cohort)[: colluders + leavers + 12])
    assert trustees.threshold > colluders and opens(trustees)


def test_a_cohort_of_a_few_among_many_has_a_majority_of_its_own() -> None:
    """However large the session is: the rule is about the cohort."""
    assert trustees_of(of(200, 10, 10, 12), range(30)).threshold == 16
    assert trustees_of(of(5000, 10, 10, 12), range(30)).members == tuple(range(30))


def test_a_cohort_with_fewer_trustees_than_open_is_not_enough() -> None:
    session = of(100, 50, 10, 52)  # 56 open
    assert opens(trustees_of(session, range(56))) and not opens(trustees_of(session, range(55)))


# --- above 1,000 ------------------------------------------------------------------------------------------------------


def test_numbers_that_are_written_down() -> None:
    assert drawn_numbers(1000, 100, 100) == (53, 27)


@pytest.mark.parametrize(
    ("parties", "colluders", "leavers"), [(1000, 100, 100), (1001, 100, 100), (2000, 100, 400), (10_000, 1000, 1000)]
)
def test_both_tails_are_at_most_1e_14_and_fewer_trustees_would_not_do(
    parties: int, colluders: int, leavers: int
) -> None:
    """With fractions, exactly."""
    count, threshold = drawn_numbers(parties, colluders, leavers)

    def fits(drawn: int, opening: int) -> bool:
        stay = at_least(parties - leavers, opening, parties, drawn)
        return at_least(colluders, opening, parties, drawn) <= TAIL and 1 - stay <= TAIL

    assert fits(count, threshold)
    assert not any(fits(count - 1, opening) for opening in range(1, count))
    assert not fits(count, threshold - 1)  # the fewest that suffice


def test_the_first_of_whoever_is_left_would_be_colluders_far_more_often() -> None:
    """Why they are drawn from the roster and never replaced: if who cuts links removes 100 honest of 1,000."""
    count, threshold = drawn_numbers(1000, 100, 100)
    assert at_least(100, threshold, 900, count) > 10 * at_least(100, threshold, 1000, count)


MANY = of(1500, 150, 150)


def test_among_very_many_trustees_are_drawn_from_the_roster_and_never_replaced() -> None:
    count, threshold = drawn_numbers(1500, 150, 150)
    everyone = trustees_of(MANY, range(1500), b"seed")
    assert len(everyone.members) == count and everyone.threshold == threshold
    assert everyone.members == tuple(sorted(everyone.members))
    gone = {*everyone.members[:3], *range(0, 1500, 7)}
    left = trustees_of(MANY, set(range(1500)) - gone, b"seed")
    assert left.members == tuple(one for one in everyone.members if one not in gone)
    assert left.threshold == threshold


def test_the_draw_depends_on_the_seed_and_on_the_session_and_is_fair() -> None:
    draws = [set(trustees_of(MANY, range(1500), b"%d" % number).members) for number in range(40)]
    other = set(trustees_of(replace(MANY, id=b"other".ljust(32)), range(1500), b"0").members)
    assert len({frozenset(draw) for draw in [*draws, other]}) == 41
    how_often = [sum(party in draw for draw in draws) for party in range(1500)]
    # Each is drawn 40 * 56 / 1500 = 1.5 times on average: seven or more is a matter of 1e-3 for each.
    assert max(how_often) < 12 and sum(count == 0 for count in how_often) < 600


# --- how many may be missing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parties", "colluders", "leavers", "before", "after"),
    [
        (3, 1, 0, 0, 1),
        (4, 1, 1, 1, 1),
        (5, 1, 2, 1, 2),
        (7, 1, 3, 2, 3),
        (12, 2, 8, 5, 5),
        (12, 2, 3, 3, 5),
        (12, 2, 0, 0, 5),
        (100, 10, 10, 10, 16),
        (100, 10, 49, 49, 55),
        (100, 10, 80, 49, 55),  # no more count than may be missing before commit
    ],
)
def test_how_many_may_be_missing_before_commit_and_after_it(
    parties: int, colluders: int, leavers: int, before: int, after: int
) -> None:
    """Before it n less a quorum, or fewer if so many must take part; after it all but as many as open."""
    tolerance = tolerance_of(parties, colluders, leavers)
    trustees = trustees_of(of(parties, colluders, leavers), range(parties))
    assert (tolerance.before, tolerance.after) == (before, after)
    assert (tolerance.trustees, tolerance.threshold) == (len(trustees.members), trustees.threshold)
    assert tolerance.parties == parties and tolerance.trustees - tolerance.threshold == after
    shown = "no parties may" if before == 0 else "1 party may" if before == 1 else f"{before} parties may"
    assert tolerance.sentence.startswith(f"{shown} be missing until the final messages are committed to, and ")
    assert tolerance.sentence.endswith(f"{tolerance.threshold} of {tolerance.trustees} trustees open them")


def test_the_smallest_cohort_has_two_beside_the_colluders_however_many_may_leave() -> None:
    assert [tolerance_of(12, 3, leavers).smallest for leavers in (0, 5, 7, 11)] == [12, 7, 5, 5]
