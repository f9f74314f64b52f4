"""Figure 2: how often hidden messages suffice for Theorem 2, over rounds and messages, for k = 1..5."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import binomtest

from inca._base.palette import INK, OWN, SOFT, shades
from inca._base.plotting import LineEnd, canvas, headline, label_ends
from inca.jobs.job import Job
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
    pick,
)
from inca.reproduction.runs import rounds_met

PARTIES, RECEIVERS, ROUNDS = 100, (1, 2, 3, 4, 5), 10
PAPER_ROUNDS, PAPER_RUNS = (2, 4, 6, 8, 10), 100
OBSERVED, CORRUPTED = "50 % of messages observed", "30 % of parties corrupted"
_ADVERSARIES = {OBSERVED: (0.0, 0.5), CORRUPTED: (0.3, 0.0)}  # colluding, eavesdropped
_SUCCESS_RATE = 0.95  # the rate at which needs are compared: 100 % of some runs depends on how many there are
_CONFIDENCE = 0.95
_MARKERS = {1: "o", 2: "s", 3: "^", 4: "D", 5: "v"}  # of the numbers of receivers


class Figure2(FigureReproduction):
    """The paper's 100 runs with confidence intervals, and many more runs as lines."""

    name = "fig2"
    title = "Figure 2: how often hidden messages suffice"

    @property
    def _runs(self) -> int:
        return 200 if self.quick else 10_000

    @property
    def parameters(self) -> Row:
        """Those of the paper, and how many runs are behind the lines."""
        return {
            "parties": PARTIES,
            "receivers": list(RECEIVERS),
            "rounds": list(PAPER_ROUNDS),
            "adversaries": list(_ADVERSARIES),
            "runs": PAPER_RUNS,
            "runs_of_the_lines": self._runs,
            "confidence_of_intervals": _CONFIDENCE,
        }

    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Find in every run the first round after which the rank is n_H - 1."""
        settings = [(adversary, k) for adversary in _ADVERSARIES for k in RECEIVERS]
        pieces = chunks(self._runs, PAPER_RUNS)
        jobs = [
            Job(
                rounds_met,
                {
                    "parties": PARTIES,
                    "receivers": k,
                    "rounds": ROUNDS,
                    "colluding": _ADVERSARIES[adversary][0],
                    "eavesdropped": _ADVERSARIES[adversary][1],
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for adversary, k in settings
            for first, runs in pieces
        ]
        results = iter(perform("ranks", jobs))
        rows: list[Row] = []
        for adversary, k in settings:
            by_piece = np.array([next(results) for _ in pieces])
            for runs, counts in ((PAPER_RUNS, by_piece[0]), (self._runs, by_piece.sum(axis=0))):
                met = np.cumsum(counts)[: ROUNDS + 1]
                rows += [_row(adversary, k, t, int(met[t]), runs) for t in range(1, ROUNDS + 1)]
        shown = ("adversary", "receivers", "rounds", "messages", "runs", "rate", "low", "high")
        return [DataTable("success", "How many runs meet the precondition of Theorem 2", rows, shown)]

    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Compare what different k need."""
        rows = pick(tables[0].rows, runs=self._runs)
        need = {k: _needed(rows, OBSERVED, k) for k in RECEIVERS}
        messages = {k: k * need[k] for k in RECEIVERS}
        pairs = list(pairwise(RECEIVERS))
        turned = ", ".join(
            f"k = {high} does better than k = {low} after {t} rounds"
            for low, high in pairs
            for t in range(1, ROUNDS + 1)
            if _better(rows, CORRUPTED, high, low, t) is True
        )
        told = ", ".join(f"k = {k}: {need[k]:.1f} rounds, {messages[k]:.1f} messages" for k in RECEIVERS)
        rates = {k: pick(rows, adversary=CORRUPTED, receivers=k, rounds=6)[0]["rate"] for k in RECEIVERS}
        told_rates = ", ".join(f"{rate:.1%} (k = {k})" for k, rate in rates.items())
        claims = [
            Claim(
                "The higher k is, the fewer iterations are required (2a).",
                "Section 6.1, Communication Cost",
                all_of(need[high] < need[low] for low, high in pairs),
                f"for {_SUCCESS_RATE:.0%} success, interpolated: {told}",
            ),
            Claim(
                "Lower k requires fewer messages in total (2b).",
                "Section 6.1, Communication Cost",
                all_of(messages[low] < messages[high] for low, high in pairs),
                f"the messages of the line above; k = 1 needs the fewest: {messages[1]:.1f}",
            ),
            Claim(
                "Under corruption it is easier to achieve a higher success rate when k is lower (2c).",
                "Section 6.1, Communication Cost",
                not turned,
                f"after 6 rounds {told_rates} of the runs succeed; {turned or 'in no round does a larger k do better'}",
                "after few rounds more receivers bring more hidden exchanges than colluders catch",
            ),
        ]
        notes = [
            "With everyone present the hidden messages of the first T rounds of a run are those of a run of T rounds, "
            "so each run gives its whole curve; the points of one curve are therefore dependent.",
            "The rate of the paper's 100 runs has an exact interval (Clopper, Pearson) of 95 %; lines are "
            f"{self._runs:,} runs. Ranks are exact: components for k = 1, else one sink component, or a rank modulo "
            "primes.",
            "Of the messages computed in each round, half are drawn at random and observed, whoever receives them.",
        ]
        return FigureResults(
            tables, claims, [Picture("fig2", _CAPTION, lambda: _draw(tables[0].rows, self._runs))], notes
        )


_CAPTION = (
    "More receivers need fewer rounds but more messages; under corruption they only harm. Success rate of Theorem 2's "
    "precondition for 100 parties that send to 1 to 5 receivers in a round: lines are many runs, points the paper's "
    "100 runs, bars exact intervals of 95 %. Dotted: 95 % success, at which needs are compared."
)


def _row(adversary: str, k: int, t: int, met: int, runs: int) -> Row:
    interval = binomtest(met, runs).proportion_ci(_CONFIDENCE, method="exact")  # Clopper, Pearson 1934
    return {
        "adversary": adversary,
        "receivers": k,
        "rounds": t,
        "messages": k * t,
        "runs": runs,
        "met": met,
        "rate": met / runs,
        "low": float(interval.low),
        "high": float(interval.high),
    }


def _needed(rows: Sequence[Row], adversary: str, k: int) -> float:
    """Return the number of rounds with the rate that is compared, interpolated; infinite if there is none."""
    rates = [0.0, *column(pick(rows, adversary=adversary, receivers=k), "rate")]
    for t, rate in enumerate(rates):
        if rate >= _SUCCESS_RATE:
            return float(t - (rate - _SUCCESS_RATE) / (rate - rates[t - 1]))
    return float("inf")


def _better(rows: Sequence[Row], adversary: str, one: int, other: int, t: int) -> bool | None:
    """Return whether `one` receivers have a higher rate than `other`, open if that may be random."""
    first, second = (pick(rows, adversary=adversary, receivers=k, rounds=t)[0] for k in (one, other))
    pooled = (first["met"] + second["met"]) / (first["runs"] + second["runs"])
    error = (pooled * (1.0 - pooled) * (1.0 / first["runs"] + 1.0 / second["runs"])) ** 0.5
    return is_less(second["rate"], first["rate"], error)


def _draw(rows: Sequence[Row], runs: int) -> Any:
    figure, panels = canvas(11.5, 4.0, 3)
    colours = dict(zip(reversed(RECEIVERS), shades(len(RECEIVERS)), strict=True))
    for axes, adversary, x, title in (
        (panels[0], OBSERVED, "rounds", "(a) 50 % of messages observed"),
        (panels[1], OBSERVED, "messages", "(b) the same, over messages"),
        (panels[2], CORRUPTED, "rounds", "(c) 30 % of parties corrupted"),
    ):
        for k in RECEIVERS:
            line = pick(rows, adversary=adversary, receivers=k, runs=runs)
            axes.plot(
                column(line, x),
                [100 * rate for rate in column(line, "rate")],
                color=colours[k],
                lw=2.4 if k == 1 else 1.5,
                zorder=3 if k == 1 else 2,
            )
            points = [
                row
                for row in pick(rows, adversary=adversary, receivers=k, runs=PAPER_RUNS)
                if row["rounds"] in PAPER_ROUNDS
            ]
            rates = np.array(column(points, "rate"))
            bars = [rates - column(points, "low"), np.array(column(points, "high")) - rates]
            shift = 0.06 * (k - 3)  # so that bars do not hide one another
            axes.errorbar(
                np.array(column(points, x)) + shift,
                100 * rates,
                100 * np.array(bars),
                fmt=_MARKERS[k],
                ms=3.5,
                lw=0.8,
                color=colours[k],
            )
        axes.axhline(100 * _SUCCESS_RATE, color=INK, ls=":", lw=0.8, zorder=1)
        axes.set(xlabel=f"{x} per party" if x == "messages" else x, ylim=(-3, 103), title=title)
        axes.set_xticks(PAPER_ROUNDS if x == "rounds" else range(0, ROUNDS * RECEIVERS[-1] + 1, ROUNDS))
    panels[0].set_ylabel("runs that meet the precondition, %")
    needed = {k: k * _needed(pick(rows, runs=runs), OBSERVED, k) for k in (RECEIVERS[0], RECEIVERS[-1])}
    headline(
        figure,
        f"One receiver a round needs the fewest messages: {needed[1]:.0f} for {_SUCCESS_RATE:.0%} success, "
        f"against {needed[5]:.0f} with five".replace("%", " %"),
    )
    right = panels[-1]
    heights = {k: 8.0 + 11.0 * (RECEIVERS[-1] - k) for k in RECEIVERS}  # all lines end at the top, so beside the panel
    ends = [
        LineEnd(
            f"{k} receiver{'s' * (k > 1)}", ROUNDS, heights[k], OWN if k == RECEIVERS[0] else SOFT, k == RECEIVERS[0]
        )
        for k in RECEIVERS
    ]
    label_ends({right: ends})
    for k in RECEIVERS:
        right.plot([1.015], [heights[k]], _MARKERS[k], ms=4, color=colours[k], clip_on=False,
                   transform=right.get_yaxis_transform())  # fmt: skip
    return figure
