"""The pictures of reports: XML that holds what was drawn, in its place, however much there is."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from inca.reporting.svg import MAX_POINTS, ReferenceLevel, Scale, bars, interval, losses, presence, shares, ticks

SVG = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> list[str]:
    return [str(part.text) for part in ElementTree.fromstring(svg).iter(f"{SVG}title")]


def test_losses_are_sorted_and_infinite_ones_stand_out() -> None:
    svg = losses([3, 5, 9], [0.5, None, 0.25], [ReferenceLevel("agreed", 1.0)], 1e-5)
    assert titles(svg) == [
        "party 9: epsilon 0.25",
        "party 3: epsilon 0.5",
        "party 5: epsilon infinite",
        "agreed: 1",
    ]
    heights = [float(part.attrib["height"]) for part in ElementTree.fromstring(svg).iter(f"{SVG}rect")]
    assert heights[1] == pytest.approx(2 * heights[0], rel=0.01)


@pytest.mark.parametrize("epsilon", [0.0, None])
def test_losses_that_are_all_alike_can_be_drawn(epsilon: float | None) -> None:
    assert len(titles(losses([0, 1], [epsilon, epsilon], [], 0.0))) == 2


def test_of_many_losses_some_are_drawn_with_both_ends() -> None:
    drawn = titles(losses(range(100_000), np.linspace(0.1, 0.9, 100_000).tolist(), [], 1e-5))
    assert len(drawn) == MAX_POINTS and drawn[0] == "party 0: epsilon 0.1" and drawn[-1] == "party 99999: epsilon 0.9"


def test_shares_fill_the_bar() -> None:
    svg = shares([("this plan", [("noise", 3.0), ("values", 1.0)])])
    widths = [float(part.attrib["width"]) for part in ElementTree.fromstring(svg).iter(f"{SVG}rect")]
    assert widths == [330.0, 110.0] and titles(svg) == ["this plan: noise 75.0%", "this plan: values 25.0%"]


def test_bars_may_be_infinite_or_nothing() -> None:
    assert titles(bars([("a", math.inf, "a"), ("b", 0.0, "b")], [], "error")) == ["a: infinite", "b: 0"]


def test_presence_is_drawn_in_runs_of_rounds() -> None:
    rows = np.array([[1, 1], [1, 0], [1, 0], [1, 1]], dtype=bool)
    svg = presence(list(rows), colluding=[0], silent=[1])
    assert titles(svg) == [
        "party 0 (colludes), rounds 0 to 3: present",
        "party 1, round 0: present",
        "party 1, rounds 1 to 2: absent",
        "party 1, round 3: present",
    ]
    assert svg.count("\N{MULTIPLICATION SIGN}") == 1


def test_many_parties_are_counted() -> None:
    rows = np.ones((4, 1000), dtype=bool)
    rows[2:, :100] = False
    assert titles(presence(list(rows))) == ["between 900 and 1,000 of 1,000 parties were present"]


def test_an_interval_is_in_its_domain() -> None:
    svg = interval([("mean", 60.0, 40.0, 80.0)], (0.0, 240.0), "minutes")
    assert titles(svg) == ["the domain, 0 to 240", "mean: interval 40 to 80", "mean: 60"]
    assert titles(interval([("mean", 60.0, None, None)], None, "minutes")) == ["mean: 60"]


def test_scales_and_ticks() -> None:
    scale = Scale(0.0, 2.0, 10.0, 20.0)
    assert [scale(number) for number in (-1.0, 0.0, 1.0, 2.0, 9.0)] == [10.0, 10.0, 15.0, 20.0, 20.0]
    assert ticks(1.0, 1.0) == [1.0]
    for low, high in ((0.0, 1e-9), (-5.0, 5.0), (0.0, 1e12), (97.0, 97.5)):
        numbers = ticks(low, high)
        assert 2 <= len(numbers) <= 7 and low <= numbers[0] + 1e-12 and numbers[-1] <= high * (1 + 1e-9)
