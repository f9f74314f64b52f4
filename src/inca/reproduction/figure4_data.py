"""The data of Figure 4: how much noise is needed, and the error it leaves when parties drop out.

Two modes. The *paper's* calibrates at the dropout rate in question by Theorem 4 and the classic constant. *Ours* takes
the exact loss and the analytic rule, and the noise suffices at full attendance, too (erratum E11). Both take the worst
of as many runs, and the same independent noise in units of s^2 / mu^2: 1.3 / (n (1 - dropout - colluding)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from inca._base.options import Rule
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.jobs.job import Job
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.pairwise import complete_loss, complete_ratio
from inca.planning.requirements import Requirements
from inca.planning.sampled import paper_factor
from inca.protocol.noise_levels import NoiseLevels
from inca.reproduction.figure_reproduction import PerformJobs, Row, chunks, mean_and_error
from inca.reproduction.runs import errors, gopa_errors, gopa_needed, noise_needed

PARTIES, EPSILON, DELTA, COLLUDING, EXCHANGES = 200, 0.2, 1e-5, 0.1, 20
DROPOUTS = (0.05, 0.1, 0.2)
LATE = {"half": 2, "a quarter": 4, "one": None}
"""Which leavers leave GOPA in its rollback round: a share 1/2 or 1/4 of them, or a single party."""
PAPER, OURS = "paper's mode", "our mode"
THEOREM, EXACT = 0, 1  # columns of `runs.noise_needed`
_HIGH = 0.95  # the quantile above which needs count as tail

_RULES: dict[str, Rule] = {PAPER: "classic", OURS: "analytic"}
_STEPS = (
    ("Theorem 4, classic constant, at the dropout rate (the paper's mode)", THEOREM, PAPER, False),
    ("exact loss instead of Theorem 4", EXACT, PAPER, False),
    ("and private at full attendance, too", EXACT, PAPER, True),
    ("and the analytic rule (our mode)", EXACT, OURS, True),
)


NoiseNeeds = dict[Any, Array]
"""The least cancelling noise of every run, by design or leavers, and dropout rate."""


class LargestNeed(NamedTuple):
    """The largest squared noise level that one of many runs needed, and its standard error, about.

    If needs have an exponential tail of scale b, their largest has a Gumbel distribution of that scale, of standard
    deviation pi b / sqrt(6); b is the mean excess over a high quantile. For a heavier tail it is too small.
    """

    value: float
    error: float


class Figure4Design(NamedTuple):
    """Receivers and rounds of inca."""

    receivers: int
    rounds: int


def requirements_of(mode: str, dropout: float, messages: int = EXCHANGES) -> Requirements:
    """Return the requirements of Figure 4 under a mode's rule."""
    rule = _RULES[mode]
    return Requirements(PARTIES, EPSILON, DELTA, colluding=COLLUDING, dropout=dropout, messages=messages, rule=rule)


def own_noise(dropout: float) -> float:
    """Return the independent noise: 1.3 times its least value with n (1 - dropout - colluding) honest parties."""
    requirements = requirements_of(PAPER, dropout)
    return paper_factor(requirements) / requirements.honest


def late_leavers(kind: str, dropout: float) -> int:
    """Return how many leave GOPA in its rollback round: halves to the even number, as everywhere."""
    share = LATE[kind]
    return 1 if share is None else round(requirements_of(PAPER, dropout).leavers / share)


class Figure4Data:
    """Calibrates and runs inca's designs and the baselines of Figure 4b."""

    def __init__(self, designs: Sequence[Figure4Design], dropouts: Sequence[float], runs: int, seed: int) -> None:
        self.designs, self.dropouts, self.runs, self.seed = designs, dropouts, runs, seed

    def rows(self, perform: PerformJobs) -> tuple[list[Row], list[Row]]:
        """Return the errors of everything in both modes, and what each difference between the modes changes."""
        needs, pairs = self._needs(perform)
        inca = [(design, rate) for design in self.designs for rate in self.dropouts]
        gopa = [(kind, rate) for kind in LATE for rate in self.dropouts]
        own = {place: [_inca_level(needs, place, mode) for mode in _RULES] for place in inca}
        theirs = {place: [_gopa_level(pairs, place, mode) for mode in _RULES] for place in gopa}
        pieces = chunks(self.runs, 50)
        jobs = [self._inca_job(place, _for_jobs(place[1], own[place]), *piece) for place in inca for piece in pieces]
        jobs += [
            self._gopa_job(place, _for_jobs(place[1], theirs[place]), *piece) for place in gopa for piece in pieces
        ]
        results = iter(perform("errors", jobs))
        rows, steps = [], []
        for place in inca:
            runs = np.array([row for _ in pieces for row in next(results)])
            for number, mode in enumerate(_RULES):
                rows.append(_inca_row(place, mode, own[place][number], runs[:, 3 + number], runs[:, :3]))
            steps += _steps(needs, place, runs[:, :3].mean(axis=0))
        for other in gopa:
            runs = np.array([row for _ in pieces for row in next(results)])
            rows += [_gopa_row(other, mode, theirs[other][i], runs[:, i]) for i, mode in enumerate(_RULES)]
        rows += [row for rate in self.dropouts for mode in _RULES for row in _closed_forms(mode, rate)]
        return rows, steps

    def _needs(self, perform: PerformJobs) -> tuple[NoiseNeeds, NoiseNeeds]:
        """Return the least cancelling noise of all runs, of inca and of GOPA, at the dropout rates and at none."""
        pieces = chunks(self.runs, 25)
        rates = [(rate, [own_noise(rate)]) for rate in self.dropouts] + [(0.0, [own_noise(r) for r in self.dropouts])]
        inca = [(design, rate, own) for design in self.designs for rate, own in rates]
        jobs = [
            Job(
                noise_needed,
                {
                    "requirements": {"parties": PARTIES, "colluding": COLLUDING, "dropout": rate},
                    "receivers": design.receivers,
                    "rounds": design.rounds,
                    "own": own,
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for design, rate, own in inca
            for first, runs in pieces
        ]
        gopa = list(self._gopa_settings())
        jobs += [
            Job(
                gopa_needed,
                {
                    "requirements": {"parties": PARTIES, "colluding": COLLUDING, "dropout": 0.0},
                    "exchanges": EXCHANGES,
                    "early": early,
                    "late": late,
                    "own": own_noise(rate),
                    "first": first,
                    "runs": runs,
                    "seed": self.seed,
                },
            )
            for rate, early, late in gopa
            for first, runs in pieces
        ]
        results = iter(perform("noise levels", jobs))
        needs: NoiseNeeds = {}
        for design, rate, own in inca:
            views = np.array([view for _ in pieces for view in next(results)])  # views x own levels x (theorem, exact)
            for place in range(len(own)):
                needs[design, self.dropouts[place] if rate == 0.0 else rate, rate] = views[:, place]
        pairs: NoiseNeeds = {place: np.array([level for _ in pieces for level in next(results)]) for place in gopa}
        return needs, pairs

    def _gopa_settings(self) -> Iterator[tuple[float, int, int]]:
        """Yield (rate, early, late): the leavers of the figure, the early ones alone, and nobody."""
        for rate in self.dropouts:
            leavers = requirements_of(PAPER, rate).leavers
            places = {(leavers - late_leavers(kind, rate), late_leavers(kind, rate)) for kind in LATE}
            for early, late in sorted(places | {(early, 0) for early, _ in places} | {(0, 0)}):
                yield rate, early, late

    def _inca_job(self, place: tuple[Figure4Design, float], levels: list[list[float]], first: int, runs: int) -> Job:
        design, rate = place
        settings = {"parties": PARTIES, "receivers": design.receivers, "rounds": design.rounds, "dropout": rate}
        return Job(errors, {**settings, "levels": levels, "first": first, "runs": runs, "seed": self.seed})

    def _gopa_job(self, place: tuple[str, float], levels: list[list[float]], first: int, runs: int) -> Job:
        kind, rate = place
        settings = {
            "requirements": asdict(requirements_of(OURS, rate)),
            "exchanges": EXCHANGES,
            "late": late_leavers(kind, rate),
        }
        return Job(gopa_errors, {**settings, "levels": levels, "first": first, "runs": runs, "seed": self.seed})


def _inca_row(place: tuple[Figure4Design, float], mode: str, level: LargestNeed, squares: Array, errors: Array) -> Row:
    (k, rounds), rate = place
    noise_levels = _noise_levels(mode, rate, level)
    variances = [noise_levels.independent**2, noise_levels.cancelling**2, requirements_of(mode, rate).value_variance]
    expected, error = mean_and_error(errors @ variances)
    error = math.hypot(error, float(errors[:, 1].mean()) * variances[1] * level.error / level.value)
    sizes = {"receivers": k, "rounds": rounds, "messages": k * rounds}
    simulated = _simulated(squares, expected, error)
    return _row(mode, f"inca, k = {k}, T = {rounds}", rate, noise_levels, simulated, **sizes)


def _gopa_row(place: tuple[str, float], mode: str, level: LargestNeed, squares: Array) -> Row:
    kind, rate = place
    noise_levels, late = _noise_levels(mode, rate, level), late_leavers(kind, rate)
    gopa = Gopa(requirements_of(mode, rate), EXCHANGES, late_leavers=late, noise_levels=noise_levels)
    budget = gopa.expected_error(rate).budget
    simulated = _simulated(squares, budget.total, budget.cancelling * level.error / level.value)
    return _row(mode, f"GOPA, {kind} late", rate, noise_levels, simulated, messages=EXCHANGES)


def _steps(needs: NoiseNeeds, place: tuple[Figure4Design, float], mean_errors: Array) -> list[Row]:
    """Return the expected error as the paper's mode turns into ours, one change at a time."""
    design, rate = place
    rows = []
    for number, (name, column, mode, always) in enumerate(_STEPS):
        requirements = requirements_of(mode, rate)
        level = _worst(needs, place, column, always).value
        unit = requirements.var_local_dp
        parts = mean_errors * [unit * own_noise(rate), unit * level, requirements.value_variance]
        rows.append(
            {
                "receivers": design.receivers,
                "rounds": design.rounds,
                "dropout": rate,
                "step": number,
                "calibration": name,
                "var_cancelling": unit * level,
                "expected": float(parts.sum()),
                "relative": float(parts.sum()) / requirements.central_mse,
            }
        )
    return rows


def _worst(needs: NoiseNeeds, place: tuple[Figure4Design, float], column: int, always: bool) -> LargestNeed:
    """Return the largest level that a run needed, at the dropout rate, and at full attendance if `always`."""
    design, rate = place
    attendances = (rate, 0.0) if always else (rate,)
    return max(_largest(needs[design, rate, attendance][:, column]) for attendance in attendances)


def _largest(levels: Array) -> LargestNeed:
    """Return the largest level; refuse if a run has none, which no setting of the figure makes likely."""
    if not np.isfinite(levels).all():
        raise InvalidInput(
            f"every run must be private with some cancelling noise, got {np.isinf(levels).sum()} of {levels.size} that "
            "are not; try another seed"
        )
    threshold = float(np.quantile(levels, _HIGH))
    scale = float((levels[levels >= threshold] - threshold).mean())
    return LargestNeed(float(levels.max()), math.pi / math.sqrt(6.0) * scale)


def _inca_level(needs: NoiseNeeds, place: tuple[Figure4Design, float], mode: str) -> LargestNeed:
    return _worst(needs, place, THEOREM if mode == PAPER else EXACT, always=mode == OURS)


def _gopa_level(pairs: NoiseNeeds, place: tuple[str, float], mode: str) -> LargestNeed:
    """As for inca. For GOPA to be private whoever leaves is worst with the early leavers gone and none late."""
    kind, rate = place
    late = late_leavers(kind, rate)
    early = requirements_of(mode, rate).leavers - late
    cases = [(rate, early, late)] if mode == PAPER else [(rate, early, 0), (rate, 0, 0)]
    return max(_largest(pairs[case]) for case in cases)


def _for_jobs(rate: float, levels: Sequence[LargestNeed]) -> list[list[float]]:
    """Return the levels of independent and cancelling noise in both modes, as plain numbers."""
    both = [_noise_levels(mode, rate, level) for mode, level in zip(_RULES, levels, strict=True)]
    return [[noise_levels.independent, noise_levels.cancelling] for noise_levels in both]


def _noise_levels(mode: str, rate: float, level: LargestNeed) -> NoiseLevels:
    unit = requirements_of(mode, rate).var_local_dp
    return NoiseLevels(independent=math.sqrt(unit * own_noise(rate)), cancelling=math.sqrt(unit * level.value))


def _simulated(squares: Array, expected: float, expected_error: float) -> Row:
    """Return the mean of squared errors beside the one expected with this noise.

    The standard error of the latter is that of the noise, had other runs calibrated it, and of the sampled executions.
    """
    mse, error = mean_and_error(squares)
    return {
        "mse": mse,
        "standard_error": error,
        "expected": expected,
        "expected_standard_error": expected_error,
        "runs": int(squares.size),
    }


def _exact(mse: float) -> Row:
    return {"mse": mse, "standard_error": 0.0, "expected": mse, "expected_standard_error": 0.0, "runs": None}


def _row(mode: str, name: str, rate: float, noise_levels: NoiseLevels | None, errors: Row, **sizes: int) -> Row:
    scale = requirements_of(mode, rate).central_mse
    return {
        "mode": mode,
        "mechanism": name,
        "receivers": None,
        "rounds": None,
        "messages": None,
        **sizes,
        "dropout": rate,
        "var_independent": None if noise_levels is None else noise_levels.independent**2,
        "var_cancelling": None if noise_levels is None else noise_levels.cancelling**2,
        **errors,
        "relative": errors["expected"] / scale,
        "relative_error": errors["expected_standard_error"] / scale,
    }


def _closed_forms(mode: str, rate: float) -> Iterator[Row]:
    """Yield those whose error needs no simulation: CorDP-DME's lower bound, and the two ends of the scale."""
    requirements = requirements_of(mode, rate)
    own = own_noise(rate)
    level = _complete_level(own, requirements.honest, round(rate * requirements.honest) if mode == PAPER else 0)
    noise_levels = _noise_levels(mode, rate, LargestNeed(level, 0.0))
    cordp = CorDP(requirements, noise_levels=noise_levels)
    yield _row(mode, "CorDP-DME", rate, noise_levels, _exact(cordp.lower_bound(rate)), messages=PARTIES - 1)
    yield _row(mode, "Central DP", rate, None, _exact(CentralDP(requirements).expected_error(0.0).mse), messages=1)
    yield _row(mode, "Local DP", rate, None, _exact(LocalDP(requirements).expected_error(0.0).mse), messages=0)


def _complete_level(own: float, honest: int, late: int) -> float:
    """Return the least pairwise noise if all honest pairs share a term, and `late` of the honest leave late."""
    if late == 0:
        return complete_ratio(own * honest, honest, honest) * own

    def excess(log_level: float) -> float:
        noise_levels = NoiseLevels(independent=math.sqrt(own), cancelling=math.exp(log_level))
        return complete_loss(honest, noise_levels, late=late) - 1.0

    return math.exp(2.0 * float(brentq(excess, -20.0, 5.0)))
