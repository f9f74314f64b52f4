"""What stands beside Figure 4: plans of inca, and others, over the messages of a party (c) and over dropout rates (d).

The setting is that of the other panels, with a failure probability of 1e-6 but for the paper's recipe, which is
sampled. Nothing here is in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from inca._base.palette import BASELINE, COLLUDER, GROUND, INK, OWN, SOFT
from inca._base.plotting import (
    OTHER_WIDTH,
    OWN_WIDTH,
    LineEnd,
    canvas,
    headline,
    label_ends,
    mark_rates,
    percent,
    plain_log_scale,
)
from inca.jobs.job import Job
from inca.mechanisms.compare import guess_mse
from inca.reproduction.figure4_data import OURS, requirements_of
from inca.reproduction.figure_reproduction import DataTable, PerformJobs, Row, chunks, column, mean_and_error, pick
from inca.reproduction.runs import planned_errors, predicted

PLANNED, RECIPE = "inca", "inca, the paper's recipe"
NONE_LATE, ONE_LATE = "GOPA, no leaver late", "GOPA, one leaver late"
"""Leavers of GOPA who are gone in its round of rollback and publication are too late for a rollback."""
_SERVER, _NO_SERVER = "secure aggregation", "secure aggregation, no server"
OVER_MESSAGES = (RECIPE, "GOPA, half of the leavers late", "GOPA, a quarter late", ONE_LATE)
"""Mechanisms whose number of messages is chosen, and who gain by more."""
FIXED = (PLANNED, "CorDP-DME", _SERVER, "Central DP", "Local DP")
OVER_RATES = (PLANNED, RECIPE, NONE_LATE, ONE_LATE, _SERVER, _NO_SERVER, "Central DP", "Local DP")

CAPTION_OF_C = (
    "(c) Apart from the reproduction: a plan sends few messages, and more would bring nothing. Expected error over "
    "messages per party, as multiples of Central DP's with everyone present, at a failure probability of 1e-6 (the "
    "paper's recipe: what sampled views need); above the dotted line a result says nothing."
)
CAPTION_OF_D = (
    "(d) Apart from the reproduction: settlement. Expected error over the dropout rate as multiples of Central DP's "
    "with everyone present, for 200 parties, epsilon 0.2, a tenth corrupted. As planned, inca has nearly the error of "
    "an ideal secure aggregation, as GOPA has if no leaver is too late for its rollback; a single one that is takes "
    "most of that away from GOPA. The right half magnifies the lowest curves. Circles are means of simulated runs, "
    "bars three standard errors to either side; above the dotted line a result says nothing."
)


class _Setting(NamedTuple):
    """A mechanism, how many leave, and how many messages a party may send if it can choose."""

    name: str
    rate: float
    messages: int


class PlansBeside(NamedTuple):
    """Panels (c) and (d): over so many messages at some dropout rates, and over rates at a number of messages."""

    messages: Sequence[int]
    rates: Sequence[float]
    usual_messages: int
    over_rates: Sequence[float]
    views: int
    runs: int
    seed: int

    def tables(self, perform: PerformJobs) -> list[DataTable]:
        """Return the expected errors of both panels, and simulated ones of plans in (d)."""
        of_c = [
            *(_Setting(name, rate, sent) for name in OVER_MESSAGES for rate in self.rates for sent in self.messages),
            *(_Setting(name, rate, self.usual_messages) for name in FIXED for rate in self.rates),
        ]
        of_d = [
            _Setting(name, rate, self.usual_messages)
            for name in OVER_RATES
            for rate in self.over_rates
            if rate > 0.0 or name != ONE_LATE
        ]
        settings = list(dict.fromkeys(sorted([*of_c, *of_d], key=lambda setting: -setting.messages)))  # longest first
        jobs = [
            Job(predicted, {"name": setting.name, "views": self.views} | _required(setting)) for setting in settings
        ]
        rows = {
            setting: _row(setting, prediction)
            for setting, prediction in zip(settings, perform("plans and others", jobs), strict=True)
        }
        simulated = self._simulated(perform, [setting for setting in of_d if setting.name == PLANNED])
        return [
            DataTable("planned", "Expected error over messages per party", [rows[setting] for setting in of_c]),
            DataTable(
                "settled",
                f"Expected error over dropout rates, and simulated over {self.runs:,} runs",
                [rows[setting] | simulated.get(setting, _NOT_SIMULATED) for setting in of_d],
            ),
        ]

    def _simulated(self, perform: PerformJobs, settings: Sequence[_Setting]) -> dict[_Setting, Row]:
        """Return the mean squared errors of runs of plans."""
        pieces = chunks(self.runs, 100)
        jobs = [
            Job(planned_errors, {"first": first, "runs": runs, "seed": self.seed} | _required(setting))
            for setting in settings
            for first, runs in pieces
        ]
        results = iter(perform("plans, simulated", jobs))
        simulated = {}
        for setting in settings:
            mse, error = mean_and_error(np.array([square for _ in pieces for square in next(results)]))
            simulated[setting] = {"mse": mse, "standard_error": error, "runs": self.runs}
        return simulated


_NOT_SIMULATED: Row = {"mse": None, "standard_error": None, "runs": None}


def _required(setting: _Setting) -> Row:
    return {"requirements": asdict(requirements_of(OURS, setting.rate, setting.messages))}


def _row(setting: _Setting, prediction: dict[str, float] | None) -> Row:
    name, rate, messages = setting
    central = requirements_of(OURS, rate).central_mse
    return {
        "mechanism": name,
        "dropout": rate,
        "messages": messages if name in OVER_MESSAGES else prediction and int(prediction["messages"]),
        "expected": prediction and prediction["mse"],
        "relative": prediction and prediction["mse"] / central,
        "relative_error": prediction and prediction["standard_error"] / central,
    }


class _LineLook(NamedTuple):
    """How a line is drawn, and what is written at its end."""

    label: str
    colour: str = BASELINE
    style: str = "-"
    marker: str = "s"
    width: float = OTHER_WIDTH

    def end(self, x: float, y: float) -> LineEnd:
        colour = SOFT if self.colour == BASELINE else self.colour
        return LineEnd(self.label, x, y, colour, self.width == OWN_WIDTH)


_OWN_LOOKS = {
    PLANNED: _LineLook("inca", OWN, "-", "o", OWN_WIDTH),
    RECIPE: _LineLook("inca, the paper's recipe", OWN, ":", "o", 0.7 * OWN_WIDTH),
}
_LOOKS_OF_C = {
    **_OWN_LOOKS,
    **{name: _LineLook(name, marker=marker) for name, marker in zip(OVER_MESSAGES[1:], "s^D", strict=True)},
    "Local DP": _LineLook("Local DP", style="--"),
    "CorDP-DME": _LineLook("CorDP-DME", style="-."),
    _SERVER: _LineLook(_SERVER, style=":"),
    "Central DP": _LineLook("Central DP", INK),
}
_LOOKS_OF_D = {
    **_OWN_LOOKS,
    "Local DP": _LineLook("Local DP", marker="v"),
    ONE_LATE: _LineLook(ONE_LATE, style="--"),
    NONE_LATE: _LineLook(NONE_LATE),
    _SERVER: _LineLook("secure aggregation,\nwith or without a server", marker="^"),
    "Central DP": _LineLook("Central DP\n(trusted curator)", INK, marker="D"),
}
_LOWEST = (PLANNED, NONE_LATE, _SERVER, "Central DP")


def _guess() -> float:
    """Return the largest error of guessing the middle of the domain, over Central DP's."""
    requirements = requirements_of(OURS, 0.0)
    return guess_mse(requirements) / requirements.central_mse


def _known(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["relative"] is not None]


def draw_over_messages(rows: Sequence[Row]) -> Any:
    """Draw panel (c), one half for each dropout rate: lines over messages, and levels of those who need no more."""
    rates = list(dict.fromkeys(column(rows, "dropout")))
    figure, panels = canvas(4.4 * len(rates) + 0.6, 4.8, len(rates))
    every = [panels] if len(rates) == 1 else list(panels)
    heights, guess = column(_known(rows), "relative"), _guess()
    own = pick(rows, mechanism=PLANNED)
    chosen = sorted({row["messages"] for row in rows if row["mechanism"] in OVER_MESSAGES})
    first, last = min([*chosen, *column(own, "messages")]), chosen[-1]
    ends: dict[Any, list[LineEnd]] = {}
    for axes, rate in zip(every, rates, strict=True):
        ends[axes] = [LineEnd("guessing the middle", last, guess, COLLUDER)]
        axes.axhline(guess, color=COLLUDER, ls=":", lw=1.3, zorder=1)
        for name, look in _LOOKS_OF_C.items():
            line = _known(pick(rows, mechanism=name, dropout=rate))
            if not line:
                continue
            x, y = column(line, "messages"), column(line, "relative")
            count, label = x[0], look.label
            if name in FIXED:
                x, y, label = [count if name == PLANNED else first, last], 2 * y, f"{label} ({_messages(count)})"
            marks = {"marker": look.marker, "ms": 4.5, "markevery": [0]} if name == PLANNED else {}
            marks = {"marker": look.marker, "ms": 4.5} if name in OVER_MESSAGES else marks
            axes.plot(x, y, ls=look.style, lw=look.width, color=look.colour, **marks)
            ends[axes].append(look._replace(label=label).end(last, y[-1]))
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.95 * first, 1.05 * last)
        axes.set_xticks(chosen, [f"{count}" for count in chosen])
        axes.set_xticks([], minor=True)
        axes.set_yscale("log")
        axes.set_ylim(0.85 * min(heights), 1.2 * max(heights))
        plain_log_scale(axes.yaxis)
        axes.set(title=f"(c) {percent(rate)} of the parties leave", xlabel="messages per party")
    every[0].set_ylabel("mean squared error / Central DP's")
    best = own[len(own) // 2]
    headline(
        figure,
        f"With {_messages(best['messages'])} each and {percent(best['dropout'])} leaving, inca has "
        f"{best['relative']:.3g} times Central DP's error, without a server",
    )
    label_ends(ends)
    return figure


def _messages(count: int) -> str:
    return f"{count} message{'s' * (count != 1)}"


def draw_over_rates(rows: Sequence[Row]) -> Any:
    """Draw panel (d): all curves on the left, and the lowest of them magnified on the right."""
    figure, (all_axes, low_axes) = canvas(11.5, 5.1, columns=2)
    rates = sorted(set(column(rows, "dropout")))
    for axes, names in ((all_axes, tuple(_LOOKS_OF_D)), (low_axes, _LOWEST)):
        for name in names:
            _curve(axes, _known(pick(rows, mechanism=name)), _LOOKS_OF_D[name])
        axes.set_yscale("log")
        mark_rates(axes, rates)
        axes.set_xlim(rates[0] - 0.02 * rates[-1], rates[-1] * 1.02)
        axes.set_xlabel("parties that leave")
        axes.grid(axis="y")
    guess = _guess()
    all_axes.axhline(guess, color=COLLUDER, ls=":", lw=1.3)
    all_axes.set(ylim=(0.85, 400), title="(d) settlement, apart from the reproduction")
    plain_log_scale(all_axes.yaxis)
    all_axes.set_ylabel("mean squared error / Central DP's")
    lowest = [row["relative"] for row in _known(rows) if row["mechanism"] in _LOWEST]
    low_axes.set(ylim=(0.95 * min(lowest), 1.18 * max(lowest)), title="(d) the lowest four, magnified")
    plain_log_scale(low_axes.yaxis)
    low_axes.set_yticks([tick for tick in (1, 1.25, 1.5, 2, 2.5, 3) if tick <= low_axes.get_ylim()[1]])
    worst = max(pick(rows, mechanism=PLANNED), key=lambda row: float(row["dropout"]))
    headline(
        figure,
        f"Settled, inca has {worst['relative']:.2g} times Central DP's error if {percent(worst['dropout'])} leave",
    )
    last = rates[-1]
    upper = [name for name in _LOOKS_OF_D if name not in _LOWEST]
    ends = dict(_ends(rows, _LOWEST))
    lowest_four = LineEnd("the lowest four: see right", last, math.sqrt(min(ends.values()) * max(ends.values())), INK)
    guessing = LineEnd("guessing the middle of the domain", last, guess, COLLUDER)
    all_ends = [*(_LOOKS_OF_D[name].end(last, y) for name, y in _ends(rows, upper)), guessing, lowest_four]
    label_ends({all_axes: all_ends, low_axes: [_LOOKS_OF_D[name].end(last, y) for name, y in ends.items()]})
    return figure


def _curve(axes: Any, rows: Sequence[Row], look: _LineLook) -> None:
    """Draw the expected error as a line, and the simulated one as circles with three standard errors."""
    rates, relative = column(rows, "dropout"), column(rows, "relative")
    axes.plot(rates, relative, ls=look.style, lw=look.width, color=look.colour)
    axes.plot(
        rates, relative, ls="", marker=look.marker, ms=3, color=look.colour, zorder=4
    )  # in the circle, if they agree
    for row in rows:
        if row["runs"]:
            scale = row["relative"] / row["expected"]
            bar = {"fmt": "o", "ms": 5.5, "mfc": GROUND, "lw": 1.0, "capsize": 2.5, "color": look.colour, "zorder": 3}
            axes.errorbar(row["dropout"], row["mse"] * scale, 3 * row["standard_error"] * scale, **bar)


def _ends(rows: Sequence[Row], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield where each line ends."""
    for name in names:
        if known := _known(pick(rows, mechanism=name)):
            yield name, max(known, key=lambda row: float(row["dropout"]))["relative"]
