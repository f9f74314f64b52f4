"""Figure 1: the error without dropouts of Local DP, Central DP, Muffliato and inca, the latter over the colluders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from inca._base.options import Rule
from inca._base.palette import BASELINE, INK, OWN, SOFT
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
from inca.mechanisms.muffliato import Muffliato, Stopping
from inca.planning.requirements import Requirements
from inca.reproduction.figure_reproduction import (
    Claim,
    DataTable,
    FigureReproduction,
    FigureResults,
    PerformJobs,
    Picture,
    Row,
    all_of,
    chunks,
    column,
    is_less,
    mean_and_error,
    pick,
)
from inca.reproduction.runs import mechanism_errors, own_errors

PARTIES, EPSILON, DELTA = 1024, 0.1, 1e-5
ROUNDS = (
    40  # enough for 70 % colluding (docs/failure-probability.md), so that a factor near 1 needs little cancelling noise
)
FACTOR = 1.01  # independent noise over its infimum, which no finite cancelling noise reaches (Theorem 2)
STANDARD_ERRORS = 5.0  # all points are within so many but for a probability below 1e-5
INCA, CENTRAL, LOCAL = "inca", "Central DP", "Local DP"
PRINTED, CORRECTED = "Muffliato, printed", "Muffliato, corrected"


def _requirements(colluding: float = 0.0, rule: Rule = "classic") -> Requirements:
    return Requirements(PARTIES, EPSILON, DELTA, colluding=colluding, rule=rule, messages=ROUNDS, dropout=0.0)


class Figure1(FigureReproduction):
    """Theory and simulation side by side, by the paper's classic constant; the analytic rule's errors in the table."""

    name = "fig1"
    title = "Figure 1: error without dropouts"

    @property
    def _fractions(self) -> list[float]:
        return [0.0, 0.3, 0.7] if self.quick else [round(0.1 * step, 1) for step in range(8)]

    @property
    def _runs(self) -> int:
        return 100 if self.quick else 2000

    @property
    def parameters(self) -> Row:
        """n, epsilon and delta of the paper; T, factor and runs are ours."""
        return {
            "parties": PARTIES,
            "epsilon": EPSILON,
            "delta": DELTA,
            "colluding": self._fractions,
            "rounds": ROUNDS,
            "receivers": 1,
            "factor": FACTOR,
            "runs_per_point": self._runs,
        }

    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Simulate inca on fresh schedules, calibrated exactly one by one, and the others."""
        pieces = chunks(self._runs, 100)
        own = [
            Job(
                own_errors,
                {
                    "requirements": asdict(_requirements(colluding)),
                    "rounds": ROUNDS,
                    "factor": FACTOR,
                    "drawn": number,
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for colluding in self._fractions
            for number, (first, runs) in enumerate(pieces)
        ]
        others = [
            Job(
                mechanism_errors,
                {
                    "name": name,
                    "requirements": asdict(_requirements()),
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for name in (CENTRAL, LOCAL, PRINTED, CORRECTED)
            for first, runs in pieces
        ]
        results = iter(perform("simulations", [*own, *others]))
        rows: list[Row] = []
        for colluding in self._fractions:
            schedules = [next(results) for _ in pieces]
            squares = [square for schedule in schedules for square in schedule["squares"]]
            extra = {
                "sigma_cancelling": max(schedule["sigma_cancelling"] for schedule in schedules),
                "worst_epsilon": max(schedule["epsilon"] for schedule in schedules),
            }
            rows.append(_row(INCA, colluding, squares, **extra))
        for name in (CENTRAL, LOCAL, PRINTED, CORRECTED):
            rows.append(_row(name, None, [square for _ in pieces for square in next(results)]))
        shown = ("mechanism", "colluding", "theory", "exact_rule", "simulated", "standard_error", "worst_epsilon")
        caption = "Mean squared error by the classic rule, in theory and simulated; theory by the analytic rule beside"
        return [DataTable("errors", caption, rows, shown)]

    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Hold the errors against the curves and the sentences about them."""
        rows = tables[0].rows
        own = pick(rows, mechanism=INCA)
        by_name = {row["mechanism"]: row for row in rows if row["mechanism"] != INCA}
        central, local = by_name[CENTRAL]["theory"], by_name[LOCAL]["theory"]
        printed, corrected = by_name[PRINTED], by_name[CORRECTED]
        last = own[-1]
        distance = max(abs(row["simulated"] - row["expected"]) / row["standard_error"] for row in rows)
        claims = [
            Claim(
                "The error of inca is c^2 / (n_H n epsilon^2).",
                "Section 6.1, Mean Squared Error",
                distance <= STANDARD_ERRORS,
                f"all simulated points are within {distance:.1f} standard errors of theory (times {FACTOR:g} for inca)"
                f", and no exact loss is above epsilon = {max(column(own, 'worst_epsilon')):.6g}",
            ),
            Claim(
                "The error of inca is much closer to Central DP than to Local DP even when 70 % of the parties are "
                "corrupted.",
                "Section 6.1, Mean Squared Error",
                last["simulated"] / central < local / last["simulated"] / 10,
                f"at {last['colluding']:.0%} it is {last['simulated'] / central:.2f} times that of Central DP, and "
                f"Local DP's is {local / last['simulated']:.0f} times larger",
            ),
            Claim(
                "The error of Muffliato is significantly higher than that of inca, even with a weaker adversary.",
                "Section 6.1, Mean Squared Error",
                all_of(
                    is_less(
                        row["simulated"],
                        other["simulated"],
                        math.hypot(row["standard_error"], other["standard_error"]),
                    )
                    for row in own
                    for other in (printed, corrected)
                ),
                f"{printed['theory']:.4f} as printed and {corrected['theory']:.4f} corrected, against "
                f"{own[0]['theory']:.4f} to {last['theory']:.4f}",
            ),
            Claim(
                "On the hypercube T = 8 rounds suffice, and the error of Muffliato is 0.1764.",
                "Appendix on Muffliato",
                printed["simulated"] - printed["theory"] < 3 * printed["standard_error"],
                f"with T = 8 the simulated error is {printed['simulated']:.3f} +- {printed['standard_error']:.3f}; "
                f"with T = {corrected['rounds']} the noise alone gives {corrected['theory']:.4f}, simulated "
                f"{corrected['simulated']:.3f}",
                "T was computed from the second largest eigenvalue instead of the spectral gap (erratum E10), so "
                "after 8 rounds parties still disagree, and more rounds need more noise",
            ),
            Claim(
                "Under Eavesdrop or Collusion DP, Muffliato matches the error of Local DP.",
                "Section 6.1, Mean Squared Error",
                corrected["local_epsilon"] > EPSILON,
                f"with its noise (corrected) a party whose first message is seen has epsilon "
                f"{corrected['local_epsilon']:.3g}, not {EPSILON:g}: it would need the noise of Local DP",
            ),
        ]
        notes = [
            f"The theorem's bound is an infimum: inca is run with {FACTOR:g} times that independent noise, and for "
            "each schedule the least cancelling noise that makes the exact loss at most epsilon against its colluders.",
            "Muffliato is drawn with the error of the noise after perfect averaging (lines), as the paper does; points "
            "are simulated and include what gossip has not averaged yet. Its conversion from Renyi DP has no rule.",
            "The analytic rule lowers the error of all other mechanisms alike.",
        ]
        return FigureResults(tables, claims, [Picture("fig1", _CAPTION, lambda: _draw(rows))], notes)


_CAPTION = (
    "inca stays near Central DP however many collude. Mean squared error for 1,024 parties at epsilon 0.1, delta 1e-5, "
    "nobody leaving: lines are theory, points are means of simulated runs, bars three standard errors to either side. "
    "The error of the others does not depend on colluders, so each has one point; Muffliato's promise is weaker."
)


def _row(name: str, colluding: float | None, squares: list[float], **extra: Any) -> Row:
    """Return theory and simulation of one point."""
    requirements, analytic = _requirements(colluding or 0.0), _requirements(colluding or 0.0, "analytic")
    row: Row = {"mechanism": name, "colluding": colluding, "honest": requirements.honest, "rounds": None, **extra}
    if name.startswith("Muffliato"):
        stopping: Stopping = "printed" if name == PRINTED else "corrected"
        mechanism = Muffliato(requirements, stopping=stopping, conversion="renyi")
        row |= {"theory": mechanism.ideal_mse, "exact_rule": None, "expected": mechanism.expected_error(0.0).mse}
        row |= {"rounds": mechanism.rounds, "local_epsilon": mechanism.local_epsilon}
    else:
        least = {INCA: 1.0 / (requirements.honest * PARTIES), CENTRAL: 1.0 / PARTIES**2, LOCAL: 1.0 / PARTIES}[name]
        row |= {"theory": requirements.var_local_dp * least, "exact_rule": analytic.var_local_dp * least}
        row |= {"expected": row["theory"] * (FACTOR if name == INCA else 1.0)}
    simulated, error = mean_and_error(np.array(squares))
    return row | {"simulated": simulated, "runs": len(squares), "standard_error": error}


def _draw(rows: Sequence[Row]) -> Any:
    figure, axes = canvas(8, 4.4)
    own = pick(rows, mechanism=INCA)
    x = column(own, "colluding")
    axes.set_xlim(-0.02, x[-1] + 0.02)
    ends = []
    for name, text, line, marker in (
        (LOCAL, "Local DP", "-", "v"),
        (CORRECTED, "Muffliato with as many rounds\nas it needs (weaker promise)", "--", "D"),
        (PRINTED, "Muffliato with the rounds printed\n(weaker promise)", ":", "s"),
        (CENTRAL, "Central DP", "-", "^"),
    ):
        (row,) = pick(rows, mechanism=name)
        colour = INK if name == CENTRAL else BASELINE
        axes.axhline(row["theory"], color=colour, ls=line, lw=OTHER_WIDTH)
        axes.errorbar(
            x[-1] / 2, row["simulated"], 3 * row["standard_error"], color=colour, marker=marker, ms=4.5, capsize=2
        )
        ends.append(LineEnd(f"{text}: {row['theory']:.3g}", x[-1], row["theory"], INK if name == CENTRAL else SOFT))
    axes.plot(x, column(own, "theory"), color=OWN, lw=OWN_WIDTH)
    axes.errorbar(
        x,
        column(own, "simulated"),
        3 * np.array(column(own, "standard_error")),
        fmt="o",
        ms=4.5,
        capsize=2,
        color=OWN,
    )
    last = own[-1]
    ends.append(LineEnd(f"inca: {last['theory']:.3g}", x[-1], last["theory"], OWN, bold=True))
    plain_log_scale(axes.yaxis)
    mark_rates(axes, x)
    axes.set(xlabel="parties that collude", ylabel="mean squared error")
    (central,), (local,) = pick(rows, mechanism=CENTRAL), pick(rows, mechanism=LOCAL)
    headline(
        figure,
        f"If {percent(last['colluding'])} collude, inca has {last['theory'] / central['theory']:.2g} times "
        f"Central DP's error, and Local DP {local['theory'] / central['theory']:,.0f} times",
    )
    label_ends({axes: ends})
    return figure
