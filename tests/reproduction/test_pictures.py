"""The pictures of the stored figures: nothing overlaps at the ends of lines, and each says its message."""

from __future__ import annotations

from itertools import pairwise

import pytest

from helpers.paths import ROOT
from inca._base.plotting import look
from inca.reproduction.reproduce import read_reproduction

MESSAGES = {
    "fig1": "times Central DP's error",
    "fig2": "One receiver a round needs the fewest messages",
    "fig3": "a billion parties send",
    "fig4": "of the error of GOPA",
    "fig4-planned": "times Central DP's error",
    "fig4-settled": "Settled, inca has",
}


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", pytest.param("fig4", marks=pytest.mark.slow)])
def test_labels_do_not_overlap_and_say_the_message(name: str) -> None:
    _, results = read_reproduction(ROOT / "docs" / "reproduction" / name / f"{name}.json")
    for picture in results.pictures:
        with look():
            figure = picture.draw()
            figure.get_layout_engine().execute(figure)  # as it is before a picture is drawn
        assert MESSAGES[picture.name] in " ".join(figure.get_suptitle().split())
        for axes in figure.axes:
            assert axes.get_legend() is None
            beside = [text for text in axes.texts if text.get_text() and text.get_window_extent().x0 > axes.bbox.x1]
            boxes = sorted((text.get_window_extent() for text in beside), key=lambda box: box.y0)
            assert all(lower.y1 <= upper.y0 + 0.5 for lower, upper in pairwise(boxes)), picture.name
            assert all(box.x1 <= figure.bbox.width for box in boxes), picture.name
