"""Figure 4: the error when parties drop out, of inca's designs, of baselines, and of planned designs over messages.

Panel (d), on settlement, stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from inca._base.palette import BASELINE, COLLUDER, INK, SOFT, shades
from inca._base.palette import OWN as OWN_COLOUR
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
from inca.planning.paper_recipe import PAPER_FACTOR
from inca.reproduction.figure4_claims import (
    CORDP,
    GOPA,
    OVER_MESSAGES,
    OWN,
    PLANNED,
    Figure4Claims,
    counting_on_leavers,
    planning,
    simulations,
)
from inca.reproduction.figure4_data import (
    COLLUDING,
    DELTA,
    DROPOUTS,
    EPSILON,
    EXCHANGES,
    OURS,
    PAPER,
    PARTIES,
    Figure4Data,
    Figure4Design,
    requirements_of,
)
from inca.reproduction.figure4_settled import CAPTION, SettledErrors, draw
from inca.reproduction.figure_reproduction import (
    DataTable,
    FigureReproduction,
    FigureResults,
    PerformJobs,
    Picture,
    Row,
    column,
    pick,
)
from inca.reproduction.runs import predicted

DESIGNS = tuple(Figure4Design(k, rounds) for rounds in (10, 20) for k in (1, 3, 5))
_FIXED = (CORDP, "secure aggregation", "Central DP", "Local DP")


class Figure4(FigureReproduction):
    """Panels (a) and (b) in the paper's mode and in ours, and (c): planned designs against all, over messages."""

    name = "fig4"
    title = "Figure 4: error when parties drop out"

    @property
    def _runs(self) -> int:
        return 25 if self.quick else 1000

    @property
    def _designs(self) -> Sequence[Figure4Design]:
        return [Figure4Design(1, 10), Figure4Design(1, 20), Figure4Design(5, 20)] if self.quick else DESIGNS

    @property
    def _dropouts(self) -> Sequence[float]:
        return (0.1, 0.2) if self.quick else DROPOUTS

    @property
    def _messages(self) -> Sequence[int]:
        return (8, 12) if self.quick else (10, 20, 40)

    @property
    def _planned_dropouts(self) -> Sequence[float]:
        return (0.1,) if self.quick else DROPOUTS

    @property
    def _views(self) -> int:
        return 20 if self.quick else 200

    @property
    def parameters(self) -> Row:
        """Those of the paper, and those of panel (c)."""
        return {
            "parties": PARTIES,
            "epsilon": EPSILON,
            "delta": DELTA,
            "colluding": COLLUDING,
            "dropouts": list(self._dropouts),
            "designs": [f"k = {k}, T = {rounds}" for k, rounds in self._designs],
            "independent_noise_factor": PAPER_FACTOR,
            "gopa_exchanges": EXCHANGES,
            "runs_for_the_noise": self._runs,
            "runs_for_the_error": self._runs,
            "messages_of_c": list(self._messages),
            "views_of_c": self._views,
            "failure_probability_of_c": 1e-6,
        }

    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Calibrate and run (a) and (b), then plan (c)."""
        rows, steps = Figure4Data(self._designs, self._dropouts, self._runs, self.seed).rows(perform)
        shown = ("mode", "mechanism", "dropout", "messages", "mse", "standard_error", "expected", "relative")
        return [
            DataTable("errors", f"Mean squared error over {self._runs:,} runs; relative: to Central DP", rows, shown),
            DataTable("steps", "What turns the paper's mode into ours, one change at a time (expected error)", steps),
            DataTable("planned", _PLANNED, self._plans(perform)),
        ]

    def _plans(self, perform: PerformJobs) -> list[Row]:
        settings = [
            (name, rate, messages)
            for messages in reversed(self._messages)  # the longest first
            for name in (*OVER_MESSAGES, *(_FIXED if messages == self._messages[0] else ()))
            for rate in self._planned_dropouts
        ]
        jobs = [
            Job(
                predicted,
                {"name": name, "requirements": asdict(requirements_of(OURS, rate, messages)), "views": self._views},
            )
            for name, rate, messages in settings
        ]
        rows = []
        for (name, rate, messages), prediction in zip(settings, perform("plans", jobs), strict=True):
            central = requirements_of(OURS, rate).central_mse
            rows.append(
                {
                    "mechanism": name,
                    "dropout": rate,
                    "messages": messages if name in OVER_MESSAGES else int(prediction["messages"]),
                    "expected": prediction and prediction["mse"],
                    "relative": prediction and prediction["mse"] / central,
                    "relative_error": prediction and prediction["standard_error"] / central,
                }
            )
        order = [*OVER_MESSAGES, *_FIXED]
        return sorted(rows, key=lambda row: (order.index(row["mechanism"]), row["dropout"], row["messages"]))

    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Hold the data against the paper's sentences, in both modes."""
        errors, steps, planned = (table.rows for table in tables)
        claims = [
            claim for mode in (PAPER, OURS) for claim in Figure4Claims(mode, pick(errors, mode=mode), steps).claims()
        ]
        claims += [simulations(errors), counting_on_leavers(steps), *planning(planned, self.quick)]
        notes = [
            f"Independent noise is {PAPER_FACTOR:g} times c^2 / (n (1 - dropout - colluding) epsilon^2) for inca, GOPA "
            "and CorDP-DME alike, in both modes; the paper says so for inca only. In (c) each mechanism balances its "
            "noise for the dropout rate, which helps GOPA and CorDP-DME most.",
            "The paper's mode counts on noise that leavers leave behind (erratum E11). GOPA and CorDP-DME, whose loss "
            "is exact, are then not private if nobody drops out; inca is, as Theorem 4 is not tight. In our mode the "
            "noise is the larger of what full attendance and the dropout rate need, for all.",
            "The noise is the worst of the runs, as in the paper: it depends on how many there are, and other runs "
            "would have given another. Panel (c) plans for a failure probability of 1e-6, for all mechanisms, so its "
            "figures are larger than those of (a) and (b). It samples fewer views than `inca compare` does, and is a "
            "little more cautious.",
            "Claims compare expected errors, which are exact for each run; the simulated ones are beside them in the "
            "data, and drawn. Errors differ if they are three standard errors apart, that of the noise included.",
            "CorDP-DME is drawn with its lower bound, the noise alone, as in the paper.",
            f"Of {DROPOUTS[0]:.0%} leavers a quarter is 2 of 10 parties (2.5 rounded to the even number).",
        ]
        pictures = [
            Picture("fig4", _CAPTION, lambda: _draw(errors)),
            Picture("fig4-planned", _PLANNED_CAPTION, lambda: _draw_planned(planned)),
        ]
        return FigureResults(tables, claims, pictures, notes)

    @property
    def _settled(self) -> SettledErrors:
        if self.quick:
            return SettledErrors((0.0, 0.1), self._messages[-1], self._views, 200, self.seed)
        return SettledErrors((0.0, 0.05, 0.1, 0.2, 0.3), EXCHANGES, self._views, self._runs, self.seed)

    @property
    def supplement_parameters(self) -> Row:
        """Those of panel (d)."""
        settled = self._settled
        shared = {"parties": PARTIES, "epsilon": EPSILON, "delta": DELTA, "colluding": COLLUDING}
        own = {"dropouts": list(settled.dropouts), "messages": settled.messages, "views": settled.views}
        return {**shared, **own, "runs": settled.runs, "failure_probability": 1e-6}

    def compute_supplement(self, perform: PerformJobs, tables: Sequence[DataTable]) -> list[DataTable]:
        """Compute panel (d): settled averages beside others."""
        return [self._settled.table(perform, tables[-1].rows)]

    def supplement_pictures(self, supplement: Sequence[DataTable]) -> list[Picture]:
        """Draw panel (d)."""
        (settled,) = supplement
        return [Picture("fig4-settled", CAPTION, lambda: draw(settled.rows))]


_PLANNED = "Expected error over messages per party, for a failure probability of 1e-6"
_CAPTION = (
    "With noise that also holds if nobody leaves, inca is far below GOPA and CorDP-DME unless a single leaver is late. "
    "Error over the dropout rate for 200 parties, epsilon 0.2, a tenth corrupted: (a) designs of inca, (b) inca and "
    "baselines, with the paper's noise (above) and with ours (below). Lines are expected errors, points means of "
    "simulated runs, bars three standard errors to either side."
)
_PLANNED_CAPTION = (
    "Planned designs need fewer messages for the same error than the paper's recipe, and than GOPA with many late "
    "leavers. Expected error over messages per party, as multiples of Central DP's with everyone present, at a failure "
    "probability of 1e-6; above the dotted line a result says nothing."
)


class _Look(NamedTuple):
    """How a line is drawn, and what is written at its end."""

    label: str
    colour: str
    style: str = "-"
    marker: str = "o"
    width: float = OTHER_WIDTH

    def end(self, x: float, y: float) -> LineEnd:
        bold = self.width == OWN_WIDTH
        return LineEnd(self.label, x, y, self.colour if self.colour in (INK, OWN_COLOUR) else SOFT, bold)


_MODES = {PAPER: "the paper's noise, which counts on leavers", OURS: "noise that also holds if nobody leaves"}
_LINES = {
    OWN: _Look("inca: 1 receiver, 20 rounds", OWN_COLOUR, width=OWN_WIDTH),
    **{name: _Look(name, BASELINE, marker=marker) for name, marker in zip((*GOPA, CORDP), "s^Dv", strict=True)},
}
_K_COLOURS = dict(zip(("k = 5", "k = 3", "k = 1"), shades(3), strict=True))
_K_MARKERS = {"k = 1": "o", "k = 3": "s", "k = 5": "^"}


def _design(name: str) -> _Look:
    """Return how a design of inca is drawn: darker for fewer receivers, dotted for fewer rounds."""
    k, rounds = name[6:11], name.split("T = ")[1]
    label = f"{k[4:]} receiver{'s' * (k != 'k = 1')}, {rounds} rounds"
    width = OWN_WIDTH if name == OWN else OTHER_WIDTH
    return _Look(label, _K_COLOURS[k], ":" if rounds == "10" else "-", _K_MARKERS[k], width)


def _draw(rows: Sequence[Row]) -> Any:
    figure, grid = canvas(11.5, 8, columns=2, rows=2)
    names = dict.fromkeys(column(rows, "mechanism"))
    designs = {name: _design(name) for name in names if name.startswith("inca")}
    rates = sorted(set(column(rows, "dropout")))
    ends: dict[Any, list[LineEnd]] = {}
    for line, mode in zip(grid, (PAPER, OURS), strict=True):
        for axes, lines, title in (
            (line[0], designs, f"(a) designs of inca: {_MODES[mode]}"),
            (line[1], _LINES, f"(b) inca and others: {_MODES[mode]}"),
        ):
            ends[axes] = []
            for number, (name, look) in enumerate(lines.items()):
                shift = 0.001 * (number - (len(lines) - 1) / 2)  # so that bars do not hide one another
                curve = pick(rows, mode=mode, mechanism=name)
                _curve(axes, curve, look, shift)
                ends[axes].append(look.end(rates[-1], curve[-1]["expected"]))
            for name, look in (
                ("Local DP", _Look("Local DP", BASELINE, "--")),
                ("Central DP", _Look("Central DP", INK)),
            ):
                level = pick(rows, mode=mode, mechanism=name)[0]["mse"]
                axes.axhline(level, color=look.colour, ls=look.style, lw=OTHER_WIDTH, zorder=1)
                ends[axes].append(look.end(rates[-1], level))
            mark_rates(axes, rates)
            axes.set(title=title, xlabel="parties that leave", ylabel="mean squared error")
        heights = [end.y for axes in line for end in ends[axes]]
        for axes in line:
            axes.set_yscale("log")
            axes.set_ylim(0.8 * min(heights), 1.6 * max(heights))
            plain_log_scale(axes.yaxis)
    worst = pick(rows, mode=OURS, mechanism=OWN)[-1]["expected"]
    most = pick(rows, mode=OURS, mechanism=GOPA[0])[-1]["expected"]
    headline(
        figure,
        f"Private whoever leaves, inca has {percent(round(worst / most, 2))} of the error of GOPA if "
        f"{percent(rates[-1])} leave, half of them late",
    )
    label_ends(ends)
    return figure


def _curve(axes: Any, rows: Sequence[Row], look: _Look, shift: float) -> None:
    """Draw the expected error as a line, and the simulated one as points with three standard errors."""
    rates = [rate + shift for rate in column(rows, "dropout")]
    axes.plot(rates, column(rows, "expected"), ls=look.style, lw=look.width, color=look.colour)
    errors = [3 * error for error in column(rows, "standard_error")]
    axes.errorbar(rates, column(rows, "mse"), errors, fmt=look.marker, ms=4, lw=0.8, capsize=2, color=look.colour)


_OVER_MESSAGES = {
    PLANNED: _Look("inca, planned", OWN_COLOUR, width=OWN_WIDTH),
    OVER_MESSAGES[1]: _Look(OVER_MESSAGES[1], OWN_COLOUR, "--", width=0.7 * OWN_WIDTH),
    **{name: _Look(name, BASELINE, marker=marker) for name, marker in zip(OVER_MESSAGES[2:], "s^D", strict=True)},
}
_LEVELS = {
    "Local DP": _Look("Local DP", BASELINE, "--"),
    CORDP: _Look(CORDP, BASELINE, "-."),
    "secure aggregation": _Look("secure aggregation", BASELINE, ":"),
    "Central DP": _Look("Central DP", INK),
}


def _draw_planned(rows: Sequence[Row]) -> Any:
    rates = list(dict.fromkeys(column(rows, "dropout")))
    figure, panels = canvas(4.4 * len(rates) + 0.6, 4.8, len(rates))
    every = [panels] if len(rates) == 1 else list(panels)
    low = 0.85 * min(row["relative"] for row in rows if row["relative"] is not None)
    high = 1.2 * max(row["relative"] for row in rows if row["relative"] is not None)
    requirements = requirements_of(OURS, 0.0)
    guess = guess_mse(requirements) / requirements.central_mse
    ends: dict[Any, list[LineEnd]] = {}
    for axes, rate in zip(every, rates, strict=True):
        here = pick(rows, dropout=rate)
        messages = sorted(set(column(pick(here, mechanism=PLANNED), "messages")))
        ends[axes] = [LineEnd("guessing the middle", messages[-1], guess, COLLUDER)]
        axes.axhline(guess, color=COLLUDER, ls=":", lw=1.3, zorder=1)
        for name, look in _OVER_MESSAGES.items():
            line = [row for row in pick(here, mechanism=name) if row["relative"] is not None]
            x, y = column(line, "messages"), column(line, "relative")
            axes.plot(x, y, look.style, marker=look.marker, ms=4.5, lw=look.width, color=look.colour)
            ends[axes] += [look.end(x[-1], y[-1])] if line else []
        for name, look in _LEVELS.items():
            (row,) = pick(here, mechanism=name)
            axes.axhline(row["relative"], color=look.colour, ls=look.style, lw=OTHER_WIDTH, zorder=1)
            count = f" ({row['messages']} message{'s' * (row['messages'] != 1)})"
            ends[axes].append(look._replace(label=name + count).end(messages[-1], row["relative"]))
        axes.set_xscale("log", base=2)
        axes.set_xticks(messages, [f"{count}" for count in messages])
        axes.set_xticks([], minor=True)
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        plain_log_scale(axes.yaxis)
        axes.set(title=f"(c) {percent(rate)} of the parties leave", xlabel="messages per party")
    every[0].set_ylabel("mean squared error / Central DP's")
    planned = pick(rows, mechanism=PLANNED, dropout=rates[0])
    headline(
        figure,
        f"With {planned[-1]['messages']} messages each and {percent(rates[0])} leaving, a planned inca has "
        f"{planned[-1]['relative']:.2g} times Central DP's error, without a server",
    )
    label_ends(ends)
    return figure
