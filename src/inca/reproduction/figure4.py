"""Figure 4: the error when parties drop out, of inca's designs, of baselines, and of planned designs over messages.

Panel (d), on settlement, stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from inca._base.plotting import ACCENT, INK, LIGHT, SERIES, canvas
from inca.planning.sampling import PAPER_FACTOR
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
    Job,
    PerformJobs,
    Picture,
    Row,
    column,
    pick,
)

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
                "predicted",
                {"name": name, "requirements": asdict(requirements_of(OURS, rate, messages)), "views": self._views},
            )
            for name, rate, messages in settings
        ]
        rows = []
        for (name, rate, messages), predicted in zip(settings, perform("plans", jobs), strict=True):
            central = requirements_of(OURS, rate).central_mse
            rows.append(
                {
                    "mechanism": name,
                    "dropout": rate,
                    "messages": messages if name in OVER_MESSAGES else int(predicted["messages"]),
                    "expected": predicted and predicted["mse"],
                    "relative": predicted and predicted["mse"] / central,
                    "relative_error": predicted and predicted["standard_error"] / central,
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
    "Error over the dropout rate for 200 parties, epsilon 0.2, a tenth corrupted: (a) designs of inca, (b) inca and "
    "baselines, in the paper's mode (above) and in ours (below). Lines are expected, points simulated with three "
    "standard errors."
)
_PLANNED_CAPTION = (
    "Expected error over messages per party, as multiples of Central DP with everyone present, at a failure "
    "probability of 1e-6: planned designs against the paper's recipe and the baselines."
)


_LINES = {OWN: (ACCENT, "-"), **{name: (colour, "-") for name, colour in zip((*GOPA, CORDP), SERIES, strict=False)}}
_COLOURS = {"k = 1": ACCENT, "k = 3": SERIES[0], "k = 5": SERIES[1]}


def _draw(rows: Sequence[Row]) -> Any:
    figure, grid = canvas(10.5, 7, columns=2, rows=2)
    designs = [name for name in dict.fromkeys(column(rows, "mechanism")) if name.startswith("inca")]
    styles = {name: (_COLOURS[name[6:11]], ":" if "T = 10" in name else "-") for name in designs}
    for line, mode in zip(grid, (PAPER, OURS), strict=True):
        for axes, lines, title in (
            (line[0], styles, f"(a) designs of inca, {mode}"),
            (line[1], _LINES, f"(b) inca and others, {mode}"),
        ):
            for number, (name, look) in enumerate(lines.items()):
                shift = 0.001 * (number - (len(lines) - 1) / 2)  # so that bars do not hide one another
                _curve(axes, pick(rows, mode=mode, mechanism=name), name, look, shift)
            for name, style in (("Local DP", "--"), ("Central DP", "-")):
                level = pick(rows, mode=mode, mechanism=name)[0]["mse"]
                axes.axhline(level, color=LIGHT, ls=style, lw=1.2, label=name)
            axes.set_yscale("log")
            axes.set_xticks(sorted(set(column(rows, "dropout"))))
            axes.set(title=title, xlabel="fraction of parties that leave", ylabel="mean squared error")
            axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        low, high = min(axes.get_ylim()[0] for axes in line), max(axes.get_ylim()[1] for axes in line)
        for axes in line:
            axes.set_ylim(low, high)
    return figure


def _curve(axes: Any, rows: Sequence[Row], name: str, look: tuple[str, str], shift: float) -> None:
    """Draw the expected error as a line, and the simulated one as points with three standard errors."""
    colour, style = look
    rates = [rate + shift for rate in column(rows, "dropout")]
    axes.plot(rates, column(rows, "expected"), ls=style, lw=2.2 if name == OWN else 1.2, color=colour, label=name)
    errors = [3 * error for error in column(rows, "standard_error")]
    axes.errorbar(rates, column(rows, "mse"), errors, fmt="o", ms=3.5, lw=0.8, capsize=2, color=colour)


def _draw_planned(rows: Sequence[Row]) -> Any:
    rates = list(dict.fromkeys(column(rows, "dropout")))
    figure, panels = canvas(3.4 * len(rates) + 2.6, 4.2, len(rates))
    every = [panels] if len(rates) == 1 else list(panels)
    levels = (
        ("Local DP", "--", LIGHT),
        (CORDP, "-.", LIGHT),
        ("secure aggregation", ":", INK),
        ("Central DP", "-", INK),
    )
    for axes, rate in zip(every, rates, strict=True):
        here = pick(rows, dropout=rate)
        for name, colour in zip(OVER_MESSAGES, (ACCENT, SERIES[4], *SERIES), strict=False):
            line = [row for row in pick(here, mechanism=name) if row["relative"] is not None]
            x, y = column(line, "messages"), column(line, "relative")
            axes.plot(x, y, marker="o", ms=4, lw=2.4 if name == PLANNED else 1.2, color=colour, label=name)
        for name, style, colour in levels:
            (row,) = pick(here, mechanism=name)
            label = f"{name} ({row['messages']} message{'s' * (row['messages'] != 1)})"
            axes.axhline(row["relative"], color=colour, ls=style, lw=1.2, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sorted(set(column(pick(here, mechanism=PLANNED), "messages"))))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(title=f"(c) {rate:.0%} of the parties leave", xlabel="messages per party")
    every[0].set_ylabel("mean squared error / Central DP, everyone present")
    every[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
