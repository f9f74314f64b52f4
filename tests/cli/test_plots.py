"""What pictures of verbs say: names at the ends of lines, ticks at the rates, and the message of the numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import inca
from inca._base.palette import BASELINE, COLLUDER, INK, OWN
from inca._base.plotting import look
from inca.cli.plots import accuracies_message, draw_accuracies, draw_mechanisms, mechanisms_message
from inca.learn.comparison.compare import ComparisonScore
from inca.learn.comparison.trials import ComparisonTask
from inca.mechanisms.base import MeasuredError
from inca.mechanisms.compare import ComparisonEntry

RATES = (0.05, 0.1, 0.2)
ERRORS = {
    "inca": (1.25, 1.4, 1.81),
    "inca, the paper's recipe": (7.4, 14.8, 26.0),
    "Central DP": (1.11, 1.24, 1.58),
    "secure aggregation": (1.24, 1.4, 1.8),
    "secure aggregation, no server": (1.24, 1.4, 1.8),
    "GOPA, no leaver late": (1.26, 1.44, 1.87),
    "GOPA, one leaver late": (8.36, 10.0, 14.7),
    "Local DP": (211.0, 222.0, 250.0),
}
REQUIREMENTS = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, messages=20, dropout=0.0)


def entries(**changes: Any) -> list[ComparisonEntry]:
    return [
        ComparisonEntry(name, rate, 1e-2 * ratio, ratio, 20, "", name == "Central DP", **changes)
        for name, ratios in ERRORS.items()
        for rate, ratio in zip(RATES, ratios, strict=True)
    ]


def words(figure: Any) -> str:
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    return " | ".join(" ".join(text.get_text().split()) for text in texts)


def boxes(axes: Any) -> list[Any]:
    """Return where the texts are, once all is drawn."""
    return sorted((text.get_window_extent() for text in axes.texts if text.get_text()), key=lambda box: box.y0)


def test_mechanisms_have_their_names_at_their_ends() -> None:
    with look():
        figure = draw_mechanisms(REQUIREMENTS, entries())
        figure.draw_without_rendering()
        said = words(figure)
    (axes,) = figure.axes
    assert axes.get_legend() is None
    for name in ERRORS:
        assert name in said or name == "secure aggregation, no server"
    assert "secure aggregation (also no server)" in said and "Central DP (weaker promise)" in said
    assert "guessing the middle of the domain" in said
    labels = boxes(axes)
    assert len(labels) == len(ERRORS)  # two are one line, and there is the guess
    assert all(lower.y1 <= upper.y0 + 0.5 for lower, upper in pairwise(labels))
    assert all(box.x1 <= figure.bbox.width and box.y0 >= 0 for box in labels)


def test_mechanisms_are_in_colour_if_ours_and_the_ticks_are_the_rates() -> None:
    (axes,) = draw_mechanisms(REQUIREMENTS, entries()).axes
    colours = [line.get_color() for line in axes.lines]
    assert colours.count(OWN) == 2 and set(colours) == {OWN, BASELINE, INK, COLLUDER}
    widths = {line.get_color(): line.get_linewidth() for line in axes.lines}
    assert widths[OWN] > widths[BASELINE]
    assert list(axes.get_xticks()) == list(RATES) and axes.get_yscale() == "log"
    assert axes.get_ylabel() == "mean squared error / Central DP's"


def test_the_title_has_the_ratio_and_the_caption_the_setting() -> None:
    measured = MeasuredError(mse=0.0143, standard_error=1e-4, failed=0)
    said = words(draw_mechanisms(REQUIREMENTS, entries(measured=measured)))
    assert "inca: 1.4 times Central DP's error at 10 % dropout; Local DP: 222 times" in said
    for part in (
        "n = 200 parties",
        "epsilon 0.2",
        "delta 1e-5",
        "10 % colluding",
        "20 messages",
        "three standard errors",
    ):
        assert part in said
    impossible = [ComparisonEntry("inca", 0.1, None, None, None, "", False, "too few messages")]
    assert mechanisms_message(impossible) == "inca has no plan in this setting at 10 % dropout"
    assert "Not possible" in words(draw_mechanisms(REQUIREMENTS, impossible + entries()[-3:]))


def scores() -> list[ComparisonScore]:
    return [
        ComparisonScore("most frequent class", None, 0.0, (0.1, 0.12)),
        ComparisonScore("not private", None, 0.0, (0.9, 0.9)),
        *(
            ComparisonScore(name, epsilon, rate, (accuracy, accuracy + 0.02))
            for name, accuracy in (("inca", 0.7), ("central", 0.71), ("gopa", 0.3))
            for epsilon in (1.0, 3.0)
            for rate in (0.0, 0.2)
        ),
    ]


def test_accuracies_have_names_chance_and_bars_in_words() -> None:
    with look():
        figure = draw_accuracies(ComparisonTask("digits", parties=50), scores())
        figure.draw_without_rendering()
        said = words(figure)
    for part in (
        "Central DP",
        "GOPA",
        "most frequent class",
        "not private",
        "two standard errors",
        "Handwritten digits",
    ):
        assert part in said
    assert "gopa" not in said and "central" not in said
    assert "At epsilon 1 with 20 % leaving, inca is right in 71 %; Central DP 72 %, GOPA 31 %" in said
    for axes in figure.axes:
        assert list(axes.get_xticks()) == [0.0, 0.2]
        labels = boxes(axes)
        assert all(lower.y1 <= upper.y0 + 0.5 for lower, upper in pairwise(labels))
    assert accuracies_message([]) == "Accuracy at equal privacy"
