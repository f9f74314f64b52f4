from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca._base.palette import INK
from inca._base.plotting import LineEnd, canvas, caption, headline, label_ends, mark_rates, plain_log_scale, spread


@given(
    st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(1.0, 9.0)), min_size=1, max_size=10),
)
def test_things_are_spread_without_overlap_and_inside(things: list[tuple[float, float]]) -> None:
    wanted, heights = zip(*sorted(things), strict=True)
    places = spread(wanted, heights, 0.0, 100.0)
    edges = [(place - height / 2, place + height / 2) for place, height in zip(places, heights, strict=True)]
    assert all(upper <= lower + 1e-9 for (_, upper), (lower, _) in pairwise(edges))
    assert edges[0][0] >= -1e-9 and edges[-1][1] <= 100.0 + 1e-9


def test_what_has_room_stays_where_it_is() -> None:
    assert spread([2.0, 8.0], [2.0, 2.0], 0.0, 10.0) == [2.0, 8.0]


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    figure, axes = canvas(5, 4)
    axes.plot([0, 1], [1, 2])
    ends = [LineEnd(f"line {number}\nof two" if number % 2 else f"line {number}", 1, 1.5, INK) for number in range(9)]
    label_ends({axes: ends})
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axes.texts if text.get_text()), key=lambda box: box.y0)
    assert len(boxes) == 9
    assert all(lower.y1 <= upper.y0 + 0.5 for lower, upper in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.width for box in boxes), "the layout makes room for them"


def test_ticks_are_where_the_points_are_and_numbers_are_plain() -> None:
    figure, axes = canvas(5, 4)
    axes.plot([0.05, 0.2], [1.0, 250.0])
    plain_log_scale(axes.yaxis)
    mark_rates(axes, [0.05, 0.1, 0.2])
    figure.draw_without_rendering()
    assert list(axes.get_xticks()) == [0.05, 0.1, 0.2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["5 %", "10 %", "20 %"]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert {"1", "2", "5", "10", "100"} <= set(labels) and not any("$" in label for label in labels)


@pytest.mark.parametrize("write", [headline, caption])
def test_texts_are_no_wider_than_the_figure(write: object) -> None:
    figure, _ = canvas(5, 4)
    assert callable(write)
    write(figure, "10 % of all parties and their averages " * 6)
    figure.draw_without_rendering()
    (text,) = [text for text in figure.texts if text.get_text()]
    assert text.get_window_extent().x1 <= figure.bbox.width and "10\n" not in text.get_text()
