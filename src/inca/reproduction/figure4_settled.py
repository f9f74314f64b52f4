"""Panel (d) of Figure 4, apart from the reproduction: what settlement makes of the error when parties drop out.

The setting is that of the other panels, with the failure probability of (c). Nothing here is in the paper.
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
from inca.reproduction.figure4_claims import PLANNED
from inca.reproduction.figure4_data import OURS, requirements_of
from inca.reproduction.figure_reproduction import DataTable, PerformJobs, Row, chunks, column, mean_and_error, pick
from inca.reproduction.runs import predicted, settled_errors

SETTLED, NOT_SETTLED = "inca, settled", "inca, not settled"
LATE = {"GOPA, no leaver late": 0, "GOPA, one leaver late": 1}
"""How many of GOPA's leavers are gone in its round of rollback and publication, too late for a rollback."""
_SERVER, _NO_SERVER = "secure aggregation", "secure aggregation, no server"
MECHANISMS = (SETTLED, NOT_SETTLED, *LATE, _SERVER, _NO_SERVER, "Central DP", "Local DP")

CAPTION = (
    "(d) Apart from the reproduction: settlement. Expected error over the dropout rate as multiples of Central DP's "
    "with everyone present, for 200 parties, epsilon 0.2, a tenth corrupted. Settled, inca has nearly the error of an "
    "ideal secure aggregation, as GOPA has if no leaver is too late for its rollback; a single one that is takes most "
    "of that away from GOPA. The right half magnifies the lowest curves. Circles are means of simulated runs, bars "
    "three standard errors to either side; above the dotted line a result says nothing."
)


class SettledErrors(NamedTuple):
    """The errors of panel (d)."""

    dropouts: Sequence[float]
    messages: int
    views: int
    runs: int
    seed: int

    def table(self, perform: PerformJobs, planned: Sequence[Row]) -> DataTable:
        """Return expected errors of all mechanisms, and simulated ones of inca settled."""
        settings = [(name, rate) for name in MECHANISMS for rate in self.dropouts if _has_leavers(name, rate)]
        rows = {setting: self._known(*setting, planned) for setting in settings}
        missing = [setting for setting, row in rows.items() if row is None]
        jobs = [Job(predicted, self._arguments(*setting)) for setting in missing]
        for (name, rate), error in zip(missing, perform("settled, expected", jobs), strict=True):
            rows[name, rate] = self._expected(name, rate, error)
        ran = [setting for setting in settings if setting[0] == SETTLED]
        pieces = chunks(self.runs, 100)
        jobs = [
            Job(
                settled_errors,
                {**self._arguments(*setting), "first": first, "runs": runs, "seed": self.seed},
            )
            for setting in ran
            for first, runs in pieces
        ]
        results = iter(perform("settled, simulated", jobs))
        simulated = {
            setting: mean_and_error(np.array([square for _ in pieces for square in next(results)])) for setting in ran
        }
        caption = f"Expected error of settled averages and others, and simulated over {self.runs:,} runs"
        return DataTable("settled", caption, [self._row(rows[at], simulated.get(at)) for at in settings])

    def _arguments(self, name: str, rate: float) -> Row:
        requirements = asdict(requirements_of(OURS, rate, self.messages))
        return {"name": PLANNED if name == NOT_SETTLED else name, "requirements": requirements, "views": self.views}

    def _known(self, name: str, rate: float, planned: Sequence[Row]) -> Row | None:
        """Return the row from panel (c) if it has that many messages there; all others take little time."""
        of_c = PLANNED if name == NOT_SETTLED else name
        for row in pick(planned, mechanism=of_c, dropout=rate, messages=self.messages):
            return {**row, "mechanism": name}
        return None

    def _expected(self, name: str, rate: float, error: dict[str, float] | None) -> Row:
        """As a row of panel (c)."""
        central = requirements_of(OURS, rate).central_mse
        return {
            "mechanism": name,
            "dropout": rate,
            "messages": error and int(error["messages"]),
            "expected": error and error["mse"],
            "relative": error and error["mse"] / central,
            "relative_error": error and error["standard_error"] / central,
        }

    def _row(self, expected: Row | None, simulated: tuple[float, float] | None) -> Row:
        assert expected is not None
        mse, error = simulated or (None, None)
        runs = None if simulated is None else self.runs
        return {**expected, "late": LATE.get(expected["mechanism"]), "mse": mse, "standard_error": error, "runs": runs}


def _has_leavers(name: str, rate: float) -> bool:
    """Whether as many leave as are to be late."""
    return requirements_of(OURS, rate).leavers >= LATE.get(name, 0)


class _SettledLook(NamedTuple):
    """How a line is drawn, and what is written at its end."""

    label: str
    colour: str = BASELINE
    style: str = "-"
    marker: str = "s"
    width: float = OTHER_WIDTH

    def end(self, x: float, y: float) -> LineEnd:
        colour = SOFT if self.colour == BASELINE else self.colour
        return LineEnd(self.label, x, y, colour, self.width == OWN_WIDTH)


_LOOKS = {
    "Local DP": _SettledLook("Local DP", marker="v"),
    "GOPA, one leaver late": _SettledLook("GOPA, one leaver late", style="--"),
    NOT_SETTLED: _SettledLook("inca, not settled", OWN, ":", "o", 0.7 * OWN_WIDTH),
    SETTLED: _SettledLook("inca, settled", OWN, "-", "o", OWN_WIDTH),
    "GOPA, no leaver late": _SettledLook("GOPA, no leaver late"),
    _SERVER: _SettledLook("secure aggregation,\nwith or without a server", marker="^"),
    "Central DP": _SettledLook("Central DP\n(trusted curator)", INK, marker="D"),
}
_LOWEST = (SETTLED, "GOPA, no leaver late", _SERVER, "Central DP")


def draw(rows: Sequence[Row]) -> Any:
    """Draw all curves on the left, and the lowest of them magnified on the right."""
    figure, (all_axes, low_axes) = canvas(11.5, 5.1, columns=2)
    rates = sorted(set(column(rows, "dropout")))
    for axes, names in ((all_axes, tuple(_LOOKS)), (low_axes, _LOWEST)):
        for name in names:
            _curve(axes, pick(rows, mechanism=name), _LOOKS[name])
        axes.set_yscale("log")
        mark_rates(axes, rates)
        axes.set_xlim(rates[0] - 0.02 * rates[-1], rates[-1] * 1.02)
        axes.set_xlabel("parties that leave")
        axes.grid(axis="y")
    requirements = requirements_of(OURS, 0.0)
    guess = guess_mse(requirements) / requirements.central_mse
    all_axes.axhline(guess, color=COLLUDER, ls=":", lw=1.3)
    all_axes.set(ylim=(0.85, 400), title="(d) settlement, apart from the reproduction")
    plain_log_scale(all_axes.yaxis)
    all_axes.set_ylabel("mean squared error / Central DP's")
    lowest = [end for row in rows if row["mechanism"] in _LOWEST if (end := row["relative"]) is not None]
    low_axes.set(ylim=(0.95 * min(lowest), 1.18 * max(lowest)), title="(d) the lowest four, magnified")
    plain_log_scale(low_axes.yaxis)
    low_axes.set_yticks([tick for tick in (1, 1.25, 1.5, 2, 2.5, 3) if tick <= low_axes.get_ylim()[1]])
    worst = max(pick(rows, mechanism=SETTLED), key=lambda row: float(row["dropout"]))
    headline(
        figure,
        f"Settled, inca has {worst['relative']:.2g} times Central DP's error if {percent(worst['dropout'])} leave",
    )
    last = rates[-1]
    upper = [name for name in _LOOKS if name not in _LOWEST]
    ends = dict(_ends(rows, _LOWEST))
    lowest_four = LineEnd("the lowest four: see right", last, math.sqrt(min(ends.values()) * max(ends.values())), INK)
    guessing = LineEnd("guessing the middle of the domain", last, guess, COLLUDER)
    all_ends = [*(_LOOKS[name].end(last, y) for name, y in _ends(rows, upper)), guessing, lowest_four]
    label_ends({all_axes: all_ends, low_axes: [_LOOKS[name].end(last, y) for name, y in ends.items()]})
    return figure


def _curve(axes: Any, rows: Sequence[Row], look: _SettledLook) -> None:
    """Draw the expected error as a line, and the simulated one as circles with three standard errors."""
    known = [row for row in rows if row["relative"] is not None]
    rates, relative = column(known, "dropout"), column(known, "relative")
    axes.plot(rates, relative, ls=look.style, lw=look.width, color=look.colour)
    axes.plot(
        rates, relative, ls="", marker=look.marker, ms=3, color=look.colour, zorder=4
    )  # in the circle, if they agree
    for row in known:
        if row["runs"]:
            scale = row["relative"] / row["expected"]
            bar = {"fmt": "o", "ms": 5.5, "mfc": GROUND, "lw": 1.0, "capsize": 2.5, "color": look.colour, "zorder": 3}
            axes.errorbar(row["dropout"], row["mse"] * scale, 3 * row["standard_error"] * scale, **bar)


def _ends(rows: Sequence[Row], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield where each line ends."""
    for name in names:
        known = [row for row in pick(rows, mechanism=name) if row["relative"] is not None]
        if known:
            yield name, max(known, key=lambda row: float(row["dropout"]))["relative"]
