"""Plots that verbs make on request; they need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inca._base.extras import require_extra
from inca._base.files import check_writable
from inca._base.palette import ABSENT, BASELINE, COLLUDER, INK, OWN, SOFT
from inca._base.plotting import (
    OTHER_WIDTH,
    OWN_WIDTH,
    LineEnd,
    canvas,
    caption,
    headline,
    label_ends,
    look,
    mark_rates,
    percent,
    plain_log_scale,
    save,
)
from inca._base.validation import refuse

if TYPE_CHECKING:
    from inca import Requirements
    from inca.learn.comparison.compare import ComparisonScore
    from inca.learn.comparison.trials import ComparisonTask
    from inca.mechanisms.compare import ComparisonEntry

_OWN_PLAN, _LOCAL = "inca", "Local DP"
_SAME = 2e-3  # errors of variants of a mechanism that differ by less, relatively, are one line
_OWN_STYLES, _MARKERS = ("-", "--", ":", "-."), "s^DvPXo"
AVERAGER_NAMES = {
    "inca": "inca",
    "central": "Central DP",
    "gopa": "GOPA",
    "cordp": "CorDP-DME",
    "local": "Local DP",
}
"""What people call the kinds of averagers."""
_DATA_NAMES = {"breast_cancer": "Breast cancer, benign or malignant", "digits": "Handwritten digits"}


def check_plot(path: Path, option: str = "--plot") -> None:
    """Refuse a file name that no plot can have, before the work is done that it would show."""
    if path.suffix not in (".png", ".svg"):
        refuse(option, str(path), "a file name that ends in .png or .svg")
    require_extra(option, "plots")
    check_writable(path)


def plot_mechanisms(requirements: Requirements, entries: Sequence[ComparisonEntry], path: Path) -> None:
    """Plot every mechanism's error over dropout rates, as multiples of Central DP's with everyone present."""
    with look():
        save(draw_mechanisms(requirements, entries), path)


def draw_mechanisms(requirements: Requirements, entries: Sequence[ComparisonEntry]) -> Any:
    """Return the figure: inca in colour and thick, all others in grey, names where lines end.

    A dotted line is at the error of guessing the middle of the domain: what is above it says nothing. Variants of one
    mechanism whose errors are the same are one line.
    """
    from inca.mechanisms.compare import guess_mse

    figure, axes = canvas(9, 6)
    rates = sorted({entry.dropout for entry in entries})
    families: list[str] = []
    ends: list[LineEnd] = []
    for names, row in _lines(entries):
        family = names[0].split(",")[0]
        own = family == "inca"
        if own:
            style, colour, marker = _OWN_STYLES[sum(end.colour == OWN for end in ends) % 4], OWN, "o"
        else:
            families += [family] if family not in families else []
            style, colour = "--" if row[0].weaker else "-", INK if family == "Central DP" else BASELINE
            marker = _MARKERS[families.index(family) % len(_MARKERS)]
        width = OWN_WIDTH if names[0] == _OWN_PLAN else 0.7 * OWN_WIDTH if own else OTHER_WIDTH
        x, y = [entry.dropout for entry in row], [entry.relative for entry in row]
        axes.plot(x, y, color=colour, ls=style, lw=width, marker=marker, ms=6 if own else 4.5, zorder=3 if own else 2)
        for entry in row:
            if entry.measured is not None and entry.mse and entry.relative:
                scale = entry.relative / entry.mse
                bar = 3 * entry.measured.standard_error * scale
                axes.errorbar(entry.dropout, entry.measured.mse * scale, bar, color=INK, capsize=3, lw=1.0, zorder=4)
        text = _joined(names) + (" (weaker promise)" if row[0].weaker else "")
        last = row[-1].relative or 1.0
        ends.append(LineEnd(text, x[-1], last, colour if colour != BASELINE else SOFT, bold=names[0] == _OWN_PLAN))
    guess = guess_mse(requirements) / requirements.central_mse
    axes.axhline(guess, ls=":", color=COLLUDER, lw=1.5)
    ends.append(LineEnd("guessing the middle of the domain", rates[-1], guess, COLLUDER))
    plain_log_scale(axes.yaxis)
    mark_rates(axes, rates)
    margin = 0.03 * (rates[-1] - rates[0]) or 0.01
    axes.set_xlim(rates[0] - margin, rates[-1] + margin)
    axes.set(xlabel="parties that leave", ylabel="mean squared error / Central DP's")
    headline(figure, mechanisms_message(entries))
    caption(figure, _mechanisms_caption(requirements, entries))
    label_ends({axes: ends})
    return figure


def mechanisms_message(entries: Sequence[ComparisonEntry]) -> str:
    """Return what the comparison says, at the middle of its dropout rates.

    Example:
        >>> from inca.mechanisms.compare import ComparisonEntry
        >>> named = [("inca", 1.4), ("Local DP", 222.3)]
        >>> mechanisms_message([ComparisonEntry(name, 0.1, 1.0, ratio, 20, "", False) for name, ratio in named])
        "inca: 1.4 times Central DP's error at 10 % dropout; Local DP: 222 times"
    """
    rates = sorted({entry.dropout for entry in entries})
    rate = rates[len(rates) // 2]
    at_rate = {entry.mechanism: entry.relative for entry in entries if entry.dropout == rate}
    if at_rate.get(_OWN_PLAN) is None:
        return f"inca has no plan in this setting at {percent(rate)} dropout"
    message = f"{_OWN_PLAN}: {at_rate[_OWN_PLAN]:.3g} times Central DP's error at {percent(rate)} dropout"
    return message + (f"; {_LOCAL}: {local:.3g} times" if (local := at_rate.get(_LOCAL)) is not None else "")


def _mechanisms_caption(requirements: Requirements, entries: Sequence[ComparisonEntry]) -> str:
    failure = f" (fails with probability {_small(requirements.failure)} at most)" if requirements.failure else ""
    sentences = [
        f"n = {requirements.parties:,} parties, epsilon {requirements.epsilon:g} at delta {_small(requirements.delta)}"
        f"{failure}, {percent(requirements.colluding)} colluding"
        + (f", {percent(requirements.eavesdropped)} of messages observed" if requirements.eavesdropped else "")
        + f", up to {requirements.usual_messages} messages of each party where more of them help.",
        "Expected errors, over that of Central DP with everyone present; above the dotted line a result says nothing.",
    ]
    if any(entry.weaker for entry in entries):
        sentences.append("Dashed in grey or black: a weaker promise than inca's.")
    if any(entry.measured for entry in entries):
        sentences.append("Bars: the mean of simulated runs, three standard errors to either side.")
    missing = list(dict.fromkeys(entry.mechanism for entry in entries if entry.relative is None))
    if missing:
        sentences.append(f"Not possible in this setting at some or all rates: {'; '.join(missing)}.")
    return " ".join(sentences)


def _lines(entries: Sequence[ComparisonEntry]) -> list[tuple[list[str], list[ComparisonEntry]]]:
    """Return what is drawn as one line each: the names of a mechanism's variants with these errors, and the points."""
    lines: list[tuple[list[str], list[ComparisonEntry]]] = []
    for name in dict.fromkeys(entry.mechanism for entry in entries):
        known = (entry for entry in entries if entry.mechanism == name and entry.relative is not None)
        row = sorted(known, key=lambda entry: entry.dropout)
        for names, other in lines:
            if names[0].split(",")[0] == name.split(",")[0] and _equal(row, other):
                names.append(name)
                break
        else:
            if row:
                lines.append(([name], row))
    return lines


def _equal(row: Sequence[ComparisonEntry], other: Sequence[ComparisonEntry]) -> bool:
    one, two = ([(entry.dropout, entry.relative or 0.0) for entry in entries] for entries in (row, other))
    return len(one) == len(two) > 0 and bool(np.allclose(one, two, rtol=_SAME, atol=0.0))


def _joined(names: Sequence[str]) -> str:
    """Return the name of a mechanism with its variants.

    Example:
        >>> _joined(["secure aggregation", "secure aggregation, k-regular", "secure aggregation, no server"])
        'secure aggregation (also k-regular, no server)'
    """
    also = ", ".join(name.split(", ", 1)[-1] for name in names[1:])
    return names[0] + (f" (also {also})" if also else "")


def _small(number: float) -> str:
    """Return a small number as people write it: 1e-5."""
    return f"{number:g}".replace("e-0", "e-")


def plot_accuracies(task: ComparisonTask, scores: Sequence[ComparisonScore], path: Path) -> None:
    """Plot accuracy over dropout rates, one panel per epsilon; `scores` begin with the two that are not private."""
    with look():
        save(draw_accuracies(task, scores), path)


def draw_accuracies(task: ComparisonTask, scores: Sequence[ComparisonScore]) -> Any:
    """Return the figure: bars are two standard errors to either side, dotted is what a guess would have."""
    chance, usual, private = scores[0].accuracy or 0.0, scores[1].accuracy or 0.0, scores[2:]
    epsilons = list(dict.fromkeys(score.epsilon for score in private))
    names = list(dict.fromkeys(score.averager for score in private))
    rates = sorted({score.dropout for score in private})
    figure, panels = canvas(4.0 * len(epsilons) + 1.0, 4.2, columns=len(epsilons))
    panels = [panels] if len(epsilons) == 1 else list(panels)
    markers = dict(zip((name for name in names if name != "inca"), _MARKERS, strict=False))
    margin = 0.04 * (rates[-1] - rates[0]) or 0.01
    ends: dict[Any, list[LineEnd]] = {}
    for axes, epsilon in zip(panels, epsilons, strict=True):
        ends[axes] = []
        for name in names:
            row = [
                score for score in private if (score.averager, score.epsilon) == (name, epsilon) and score.accuracies
            ]
            own, central = name == "inca", name == "central"
            colour = OWN if own else INK if central else BASELINE
            axes.errorbar(
                [score.dropout for score in row],
                [score.accuracy for score in row],
                [2.0 * (score.standard_error or 0.0) for score in row],
                color=colour,
                lw=OWN_WIDTH if own else OTHER_WIDTH,
                marker="o" if own else markers[name],
                ms=5 if own else 4,
                elinewidth=1.0,
                capsize=3,
                zorder=3 if own else 2,
            )
            if row:
                text_colour = SOFT if colour == BASELINE else colour
                end = LineEnd(AVERAGER_NAMES.get(name, name), rates[-1], row[-1].accuracy or 0.0, text_colour, own)
                ends[axes].append(end)
        for level, text, colour, style in (
            (chance, "most frequent class", COLLUDER, ":"),
            (usual, "not private", ABSENT, "--"),
        ):
            axes.axhline(level, color=colour, ls=style, lw=1.3, zorder=1)
            ends[axes].append(LineEnd(text, rates[-1], level, SOFT if colour == ABSENT else colour))
        mark_rates(axes, rates)
        axes.set(title=f"epsilon {epsilon:g}", xlabel="parties that leave in every step", ylim=(0.0, 1.0))
        axes.set_xlim(rates[0] - margin, rates[-1] + margin)
    panels[0].set_ylabel("accuracy on unseen records")
    headline(figure, accuracies_message(private))
    seeds = max(len(score.accuracies) for score in scores)
    caption(
        figure,
        f"{_DATA_NAMES.get(task.data, task.data)}, {task.parties:,} parties, {percent(task.colluding)} colluding, "
        f"{task.steps} steps; epsilon and delta {_small(task.delta)} are for the whole training and protect one "
        f"{task.level}. Means of {seeds} divisions of the records; bars are two standard errors to either side.",
    )
    label_ends(ends)
    return figure


def accuracies_message(private: Sequence[ComparisonScore]) -> str:
    """Return what the accuracies say at the least epsilon and the largest dropout rate where inca has one."""
    own = [score for score in private if score.averager == "inca" and score.accuracies]
    if not own:
        return "Accuracy at equal privacy"
    shown = min(own, key=lambda score: (score.epsilon or 0.0, -score.dropout))
    others = [
        f"{AVERAGER_NAMES.get(score.averager, score.averager)} {percent(round(score.accuracy or 0.0, 2))}"
        for score in private
        if (score.epsilon, score.dropout) == (shown.epsilon, shown.dropout) and score.averager != "inca"
        if score.accuracies
    ]
    message = (
        f"At epsilon {shown.epsilon:g} with {percent(shown.dropout)} leaving, inca is right in "
        f"{percent(round(shown.accuracy or 0.0, 2))}"
    )
    return f"{message}; {', '.join(others)}" if others else message
