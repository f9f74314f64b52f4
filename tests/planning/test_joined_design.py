"""Which rounds join the honest parties of a settled run: on a circle for certain, else by permutations."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.joined_design import LOST_MESSAGES, MOST_CIRCLE_ROUNDS, joined_design
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.party_cut_off import log_cut_off_for_party


def required(parties: int, colluders: int = 0, leavers: int = 0, eavesdropped: float = 0.0) -> inca.Requirements:
    return inca.Requirements(
        parties,
        1.0,
        1e-5,
        colluding=colluders / parties,
        dropout=leavers / parties,
        eavesdropped=eavesdropped,
        messages=60,
    )


@pytest.mark.parametrize(
    ("parties", "colluders", "leavers", "rounds"),
    [
        (4, 1, 1, 3),
        (5, 1, 2, 4),
        (6, 2, 2, 5),
        (10, 1, 1, 2),
        (12, 2, 2, 3),
        (20, 2, 2, 3),
        (50, 5, 5, 6),
        (70, 7, 7, 8),
    ],
)
def test_few_parties_are_joined_for_certain(parties: int, colluders: int, leavers: int, rounds: int) -> None:
    joined = joined_design(required(parties, colluders, leavers))
    assert (joined.design.schedule, joined.design.rounds) == ("circle", rounds)
    assert (joined.failure, joined.spare) == (0.0, 0)


@pytest.mark.parametrize(
    ("parties", "part", "rounds"),
    [(71, 0.1, 7), (80, 0.1, 6), (200, 0.1, 6), (1000, 0.1, 5), (10**5, 0.1, 5), (10**9, 0.1, 6)],
)
def test_six_rounds_join_any_number_of_parties_and_seven_if_a_tenth_is_rounded_up_by_much(
    parties: int, part: float, rounds: int
) -> None:
    """With a tenth colluding and a tenth leaving, but for a probability of 1e-6 for a party."""
    joined = joined_design(inca.Requirements(parties, 1.0, 1e-5, colluding=part, dropout=part))
    assert (joined.design.schedule, joined.design.rounds) == ("permutation", rounds)
    assert 0.0 < joined.failure <= 1e-6


@given(st.integers(3, 300), st.data())
@examples(40, 300)
def test_the_rounds_are_the_fewest_that_do(parties: int, data: st.DataObject) -> None:
    colluders = data.draw(st.integers(0, parties - 2))
    leavers = data.draw(st.integers(0, parties - 2 - colluders))
    requirements = required(parties, colluders, leavers)
    circle = circle_rounds(parties, colluders + leavers, LOST_MESSAGES)
    try:
        joined = joined_design(requirements)
    except RequirementsNotMet as refusal:
        assert "messages" in str(refusal) and (circle is None or circle > MOST_CIRCLE_ROUNDS)
        return
    if joined.design.schedule == "circle":
        assert circle is not None and joined.design.rounds == circle <= MOST_CIRCLE_ROUNDS
        return
    assert circle is None or circle > MOST_CIRCLE_ROUNDS
    for rounds, suffices in ((joined.design.rounds, True), (joined.design.rounds - 1, False)):
        if rounds:
            bound = log_cut_off_for_party(parties, colluders + leavers, rounds, spare=joined.spare)
            assert (bound <= math.log(requirements.failure)) is suffices


def test_where_messages_are_eavesdropped_or_rounds_missed_rounds_are_drawn() -> None:
    usual = required(10, 1, 1)
    assert joined_design(usual).design.schedule == "circle"
    for changed in (replace(usual, eavesdropped=0.05), replace(usual, away=0.05)):
        drawn = joined_design(changed)
        assert drawn.design.schedule == "permutation" and drawn.design.rounds > 6


def test_more_rounds_than_needed_may_be_asked_for() -> None:
    assert joined_design(required(10, 1, 1), rounds=5).design == joined_design(required(10, 3, 3), rounds=5).design
    assert joined_design(required(10, 1, 1), rounds=12).design.schedule == "permutation"  # a circle has 9 at most
    fewer, more = (joined_design(required(200, 20, 20), rounds=rounds) for rounds in (6, 9))
    assert more.design.rounds == 9 and more.failure < fewer.failure


def test_too_few_messages_or_parties_are_refused_with_how_many_would_do() -> None:
    with pytest.raises(RequirementsNotMet, match=r"messages is 2, .* allow at least 3 messages, or use Local DP"):
        joined_design(replace(required(10, 1, 1), messages=2))
    with pytest.raises(RequirementsNotMet, match=r"messages is 6, .* allow at least 7 messages"):
        joined_design(replace(required(200, 20, 20), messages=6))
    with pytest.raises(RequirementsNotMet, match=r"of 3 parties 1 may collude and 1 leave, .* at least 4 parties"):
        joined_design(required(3, 1, 1))
    with pytest.raises(RequirementsNotMet, match="no number of rounds hides enough"):
        joined_design(required(10, 1, 1, eavesdropped=0.99))
    with pytest.raises(RequirementsNotMet, match="rounds is 60, and with the final message that makes 61"):
        joined_design(required(10, 1, 1), rounds=60)
    with pytest.raises(InvalidInput, match="rounds must be at least 1"):
        joined_design(required(10, 1, 1), rounds=0)
