"""Figure 4: the error when parties drop out, of inca's designs and of baselines; plans stand beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from inca._base.palette import BASELINE, INK, SOFT, shades
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
from inca.planning.sampled import PAPER_FACTOR
from inca.reproduction.figure4_claims import (
    CORDP,
    GOPA,
    OWN,
    Figure4Claims,
    counting_on_leavers,
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
)
from inca.reproduction.figure4_plans import (
    CAPTION_OF_C,
    CAPTION_OF_D,
    PlansBeside,
    draw_over_messages,
    draw_over_rates,
)
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

DESIGNS = tuple(Figure4Design(k, rounds) for rounds in (10, 20) for k in (1, 3, 5))


class Figure4(FigureReproduction):
    """Panels (a) and (b) in the paper's mode and in ours; beside them (c) and (d), plans of inca against all."""

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
    def _beside(self) -> PlansBeside:
        if self.quick:
            return PlansBeside((8, 12), (0.1,), 12, (0.0, 0.1), 20, 200, self.seed)
        return PlansBeside((10, 20, 40), DROPOUTS, EXCHANGES, (0.0, *DROPOUTS, 0.3), 200, self._runs, self.seed)

    @property
    def parameters(self) -> Row:
        """Those of the paper."""
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
        }

    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Calibrate and run everything."""
        rows, steps = Figure4Data(self._designs, self._dropouts, self._runs, self.seed).rows(perform)
        shown = ("mode", "mechanism", "dropout", "messages", "mse", "standard_error", "expected", "relative")
        return [
            DataTable("errors", f"Mean squared error over {self._runs:,} runs; relative: to Central DP", rows, shown),
            DataTable("steps", "What turns the paper's mode into ours, one change at a time (expected error)", steps),
        ]

    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Hold the data against the paper's sentences, in both modes."""
        errors, steps = (table.rows for table in tables)
        claims = [
            claim for mode in (PAPER, OURS) for claim in Figure4Claims(mode, pick(errors, mode=mode), steps).claims()
        ]
        claims += [simulations(errors), counting_on_leavers(steps)]
        notes = [
            f"Independent noise is {PAPER_FACTOR:g} times c^2 / (n (1 - dropout - colluding) epsilon^2) for inca, GOPA "
            "and CorDP-DME alike, in both modes; the paper says so for inca only. In (c) each mechanism balances its "
            "noise for the dropout rate, which helps GOPA and CorDP-DME most.",
            "The paper's mode counts on noise that leavers leave behind (erratum E11). GOPA and CorDP-DME, whose loss "
            "is exact, are then not private if nobody drops out; inca is, as Theorem 4 is not tight. In our mode the "
            "noise is the larger of what full attendance and the dropout rate need, for all.",
            "The noise is the worst of the runs, as in the paper: it depends on how many there are, and other runs "
            "would have given another. Panels (c) and (d) are for a failure probability of 1e-6, so the figures of "
            "GOPA are larger there; the paper's recipe samples views as here.",
            "Claims compare expected errors, which are exact for each run; the simulated ones are beside them in the "
            "data, and drawn. Errors differ if they are three standard errors apart, that of the noise included.",
            "CorDP-DME is drawn with its lower bound, the noise alone, as in the paper.",
            f"Of {DROPOUTS[0]:.0%} leavers a quarter is 2 of 10 parties (2.5 rounded to the even number).",
        ]
        return FigureResults(tables, claims, [Picture("fig4", _CAPTION, lambda: _draw(errors))], notes)

    @property
    def supplement_parameters(self) -> Row:
        """Those of panels (c) and (d)."""
        shared = {"parties": PARTIES, "epsilon": EPSILON, "delta": DELTA, "colluding": COLLUDING}
        own = {
            name: list(value) if isinstance(value, tuple) else value for name, value in self._beside._asdict().items()
        }
        return {**shared, **own, "failure_probability": 1e-6}

    def compute_supplement(self, perform: PerformJobs) -> list[DataTable]:
        """Compute panels (c) and (d): plans beside others."""
        return self._beside.tables(perform)

    def supplement_pictures(self, supplement: Sequence[DataTable]) -> list[Picture]:
        """Draw panels (c) and (d)."""
        planned, settled = (table.rows for table in supplement)
        return [
            Picture("fig4-planned", CAPTION_OF_C, lambda: draw_over_messages(planned)),
            Picture("fig4-settled", CAPTION_OF_D, lambda: draw_over_rates(settled)),
        ]


_CAPTION = (
    "With noise that also holds if nobody leaves, inca is far below GOPA and CorDP-DME unless a single leaver is late. "
    "Error over the dropout rate for 200 parties, epsilon 0.2, a tenth corrupted: (a) designs of inca, (b) inca and "
    "baselines, with the paper's noise (above) and with ours (below). Lines are expected errors, points means of "
    "simulated runs, bars three standard errors to either side."
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
