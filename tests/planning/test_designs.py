"""The designs that plans without settlement choose among."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import inca
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.designs import ProtocolDesign, candidate_designs, with_quiet_rounds

REQUIREMENTS = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, messages=12, colluding=0.0, dropout=0.0)


def test_a_value_in_shares_is_tried_with_one_to_four_quiet_rounds_and_one_at_once_as_it_is() -> None:
    shares, early = ProtocolDesign("permutation", 12, quiet=2), ProtocolDesign("permutation", 12, kind="early")
    assert [design.quiet for design in with_quiet_rounds(shares)] == [1, 2, 3, 4]
    assert with_quiet_rounds(early) == [early]
    assert [design.quiet for design in with_quiet_rounds(ProtocolDesign("permutation", 3, quiet=2))] == [1, 2]


@pytest.mark.parametrize(("messages", "quiet"), [(1, 0), (2, 1), (3, 2), (8, 2)])
def test_of_few_rounds_one_at_least_is_not_quiet(messages: int, quiet: int) -> None:
    lenient = replace(REQUIREMENTS, parties=3, messages=messages, failure=0.9)
    designs = candidate_designs(lenient, receivers=1)
    assert {design.rounds for design in designs} == {messages}
    assert {design.quiet for design in designs if design.kind == "incremental"} == {quiet}


@pytest.mark.parametrize("eavesdropped", [0.0, 0.2])
def test_the_messages_that_a_refusal_names_suffice_and_one_less_does_not(eavesdropped: float) -> None:
    few = replace(REQUIREMENTS, colluding=0.2, eavesdropped=eavesdropped, messages=3)
    with pytest.raises(RequirementsNotMet, match="allow at least") as refusal:
        candidate_designs(few, receivers=1)
    (number,) = re.findall(r"allow at least (\d+) messages", str(refusal.value))
    assert any(design.schedule == "permutation" for design in candidate_designs(replace(few, messages=int(number))))
    with pytest.raises(RequirementsNotMet):
        candidate_designs(replace(few, messages=int(number) - 1), receivers=1)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_circle_is_drawn_without_a_seed_and_says_so_in_words(seed: int) -> None:
    design = ProtocolDesign("circle", 3)
    circle = design.draw_schedule(12, seed)
    assert isinstance(circle, inca.CircleSchedule)
    assert [circle.round(r).receivers[11, 0] for r in (1, 2, 3)] == [0, 1, 2]
    assert str(design) == "circle, 3 rounds, 1 receiver, value in shares" and design.messages == 3
    assert str(ProtocolDesign("circle", 1, quiet=1)) == "circle, 1 round, 1 receiver, value in shares, last 1 quiet"
    with pytest.raises(InvalidInput, match=r"rounds must be below the number of parties \(3\) on a circle"):
        design.draw_schedule(3, seed)
    with pytest.raises(InvalidInput, match="receivers must be 1 on a circle, got 2"):
        ProtocolDesign("circle", 3, receivers=2).draw_schedule(12, seed)
