"""Figure 3: the rounds that never failed in 10^5 runs, over colluders and parties, and our closed form beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from inca._base.palette import OWN, SOFT, shades
from inca._base.plotting import LineEnd, canvas, headline, label_ends, mark_rates, percent
from inca._base.validation import whole_parties
from inca.jobs.job import Job
from inca.privacy.theorems.failure_bounds import failure_bound, least_rounds
from inca.reproduction.figure_reproduction import (
    Claim,
    DataTable,
    FigureReproduction,
    FigureResults,
    PerformJobs,
    Picture,
    Row,
    chunks,
    column,
    pick,
)
from inca.reproduction.rounds_to_connect import MAX_ROUNDS
from inca.reproduction.runs import first_rounds

_PARTIES_AND_RUNS = 12_500_000  # parties times runs of a job: about a second
_PARTIES = (100, 1000, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
_MIN_FAILING = 100  # failing runs from which a rate is compared with the bound
_FALSE_ALARM = 1e-6


class Figure3(FigureReproduction):
    """With never-repeated receivers, k = 1: the largest number of rounds that any run needed."""

    name = "fig3"
    title = "Figure 3: rounds that never failed"

    @property
    def _runs(self) -> int:
        return 2_000 if self.quick else 100_000

    @property
    def _parties(self) -> list[int]:
        return [100, 500, 1000] if self.quick else [100, 500, 1000, 5000]

    @property
    def _fractions(self) -> list[float]:
        return [0.05, 0.25, 0.5] if self.quick else [round(0.05 * step, 2) for step in range(1, 11)]

    @property
    def parameters(self) -> Row:
        """Those of the paper."""
        return {
            "parties": self._parties,
            "colluding": self._fractions,
            "receivers": 1,
            "schedule": "distinct",
            "runs": self._runs,
        }

    def compute_tables(self, perform: PerformJobs) -> list[DataTable]:
        """Count after how many rounds the honest parties are connected, and set the closed form beside it."""
        grid = [(n, colluding) for n in self._parties for colluding in self._fractions]
        pieces = {n: chunks(self._runs, max(1, _PARTIES_AND_RUNS // n)) for n in self._parties}
        jobs = [
            Job(
                first_rounds,
                {
                    "parties": n,
                    "colluding": whole_parties("colluding", colluding, n),
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for n, colluding in reversed(grid)  # the longest first, so that no core waits for one at the end
            for first, runs in pieces[n]
        ]
        results = iter(perform("runs", jobs))
        counts = {(n, f): np.sum([next(results) for _ in pieces[n]], axis=0) for n, f in reversed(grid)}
        least = [self._least(n, f, counts[n, f]) for n, f in grid]
        failing = [row for n, f in grid for row in self._failing(n, f, counts[n, f])]
        beyond = [
            {"parties": n, "colluding": f, "failure": failure, "rounds": _closed_form(n, f, failure)}
            for f in (0.05, 0.25, 0.5)
            for failure in (math.log(2.0) / 1e5, 1e-9)
            for n in _PARTIES
        ]
        return [
            DataTable("least", f"Least number of rounds with which none of {self._runs:,} runs failed", least),
            DataTable(
                "failing", "Runs that fail after so many rounds, and the proven bound on their probability", failing
            ),
            DataTable("beyond", "Rounds by the closed form, for numbers of parties that nobody can simulate", beyond),
        ]

    def _least(self, n: int, colluding: float, counts: Any) -> Row:
        met = counts[:-1].nonzero()[0]
        return {
            "parties": n,
            "colluding": colluding,
            "runs": int(counts.sum()),
            "rounds": None if counts[-1] else int(met[-1]),
            "median_rounds": int(np.searchsorted(np.cumsum(counts), counts.sum() / 2)),
            "closed_form": _closed_form(n, colluding, math.log(2.0) / self._runs),
            "closed_form_1e_9": _closed_form(n, colluding, 1e-9),
        }

    def _failing(self, n: int, colluding: float, counts: Any) -> list[Row]:
        left = counts.sum() - np.cumsum(counts)
        last = int(left.nonzero()[0][-1]) if left.any() else 0
        colluders = whole_parties("colluding", colluding, n)
        return [
            {
                "parties": n,
                "colluding": colluding,
                "rounds": t,
                "failed": int(left[t]),
                "rate": float(left[t] / counts.sum()),
                "bound": failure_bound(n, colluders, t, schedule="distinct"),
            }
            for t in range(1, last + 1)
        ]

    def evaluate(self, tables: Sequence[DataTable]) -> FigureResults:
        """Compare with the paper's sentence and our bound."""
        least, failing, beyond = (table.rows for table in tables)
        largest = pick(least, colluding=0.5)[-1]
        tails = [float(binom.sf(row["failed"] - 1, self._runs, row["bound"])) for row in failing]
        ratios = [row["bound"] / row["rate"] for row in failing if row["failed"] >= _MIN_FAILING and row["bound"] < 0.1]
        apart = [row["rounds"] - row["closed_form"] for row in least if row["rounds"] is not None]
        worst = pick(beyond, colluding=0.5, parties=10**9)
        needed = f"n = {largest['parties']:,} needed {largest['rounds']} rounds at 50 % in {self._runs:,} runs; "
        claims = [
            Claim(
                "Even with 5000 parties the amount of messages required is slightly higher than 15.",
                "Section 6.1, Larger Graphs and Safer Parameters",
                None if self.quick else largest["rounds"] is not None and 15 < largest["rounds"] <= 19,
                needed + f"the closed form says {largest['closed_form']}",
            ),
            Claim(
                "In all cases we obtain 100 % success.",
                "Section 6.1, Larger Graphs and Safer Parameters",
                all(row["rounds"] is not None for row in least),
                f"every setting has a number of rounds, at most {max(row['rounds'] or 0 for row in least)}, with which "
                f"no run failed, but it grows with the number of runs: for a failure probability of 1e-9 it is "
                f"{largest['closed_form_1e_9']} at n = {largest['parties']:,} and 50 %",
            ),
            Claim(
                "The closed form bounds the failure probability (ours).",
                "docs/failure-probability.md",
                min(tails) * len(tails) > _FALSE_ALARM,
                f"the least likely of {len(tails)} rates, were they those of the bounds, has probability "
                f"{min(tails):.2g}"
                + (
                    f"; where {_MIN_FAILING} runs or more failed, and the bound is below 0.1, it is "
                    f"{min(ratios):.3f} to {max(ratios):.3f} times the rate"
                    if ratios
                    else ""
                ),
            ),
            Claim(
                "The closed form tells the rounds that the figure shows (ours).",
                "docs/failure-probability.md",
                all(-2 <= difference <= 3 for difference in apart),
                f"the largest of {self._runs:,} runs is from {min(apart):+d} to {max(apart):+d} rounds off the closed "
                f"form for its median; at n = 10^9 and 50 % the closed form says {worst[0]['rounds']} rounds, and "
                f"{worst[1]['rounds']} for a failure probability of 1e-9",
            ),
        ]
        notes = [
            "A run is counted for all numbers of rounds at once: what matters is the first round after which the graph "
            "of hidden messages is connected. Every party sends to someone it has not sent to before.",
            "The largest of so many runs is itself random. Drawn beside it is the least T whose proven failure bound "
            "is at most ln 2 over the number of runs: then with probability one half or more no run fails.",
            f"Runs stop after {MAX_ROUNDS} rounds; a setting in which one got there has no number of rounds.",
        ]
        pictures = [Picture("fig3", _CAPTION, lambda: _draw(least, beyond, self._runs))]
        return FigureResults(tables, claims, pictures, notes)


_CAPTION = (
    "The rounds grow with the logarithm of the number of parties. Left: rounds with which no run failed (points), and "
    "the closed form for the same (lines). Right: the closed form up to 10^9 parties, for two failure probabilities."
)


def _closed_form(n: int, colluding: float, failure: float) -> int:
    """Return the least T whose proven failure bound is at most `failure`."""
    return least_rounds(n, whole_parties("colluding", colluding, n), failure, schedule="distinct")


def _draw(least: Sequence[Row], beyond: Sequence[Row], runs: int) -> Any:
    figure, (left, right) = canvas(11.5, 4.6, 2)
    sizes = list(dict.fromkeys(column(least, "parties")))
    left_ends, right_ends = [], []
    for number, (n, colour) in enumerate(zip(sizes, shades(len(sizes)), strict=True)):
        rows = pick(least, parties=n)
        rates, rounds = column(rows, "colluding"), column(rows, "closed_form")
        left.plot(rates, rounds, lw=1.4, color=colour)
        shift = 0.004 * (number - (len(sizes) - 1) / 2)  # so that points do not hide one another
        left.plot([rate + shift for rate in rates], column(rows, "rounds"), "os^D"[number], ms=4.5, color=colour)
        left_ends.append(LineEnd(f"{n:,} parties", rates[-1], rounds[-1], OWN if colour == OWN else SOFT))
    mark_rates(left, rates)
    left.tick_params(axis="x", labelsize=7.5)
    left.set(
        xlabel="parties that collude",
        ylabel="rounds, and messages per party",
        title=f"No failure in {runs:,} runs",
        ylim=(0, None),
    )
    failures = list(dict.fromkeys(column(beyond, "failure")))
    fractions = list(dict.fromkeys(column(beyond, "colluding")))
    for number, (colluding, colour) in enumerate(zip(fractions, shades(len(fractions)), strict=True)):
        for failure, style in zip(failures, ("-", ":"), strict=True):
            rows = pick(beyond, colluding=colluding, failure=failure)
            right.plot(column(rows, "parties"), column(rows, "rounds"), style, color=colour, lw=1.6)
            text = f"{100 * colluding:g} % collude, failure {failure:.0e}".replace("e-0", "e-")
            right_ends.append(LineEnd(text, rows[-1]["parties"], rows[-1]["rounds"], OWN if colour == OWN else SOFT))
        simulated = [row for row in pick(least, colluding=colluding) if row["rounds"] is not None]
        right.plot(column(simulated, "parties"), column(simulated, "rounds"), "os^"[number], ms=4.5, color=colour)
    right.set_xscale("log")
    right.set_xticks(_PARTIES)
    right.set_xticks([], minor=True)
    right.set(xlabel="parties", title="Continued to a billion parties", ylim=(0, None))
    last = pick(beyond, colluding=fractions[-1], parties=_PARTIES[-1])
    headline(
        figure,
        f"If {percent(fractions[-1])} collude, a billion parties send {last[0]['rounds']} messages each, or "
        f"{last[-1]['rounds']} where only one session in a billion may fail",
    )
    left.text(0.02, 0.98, "points: simulated\nlines: closed form", va="top", color=SOFT, transform=left.transAxes)
    label_ends({left: left_ends, right: right_ends})
    return figure
