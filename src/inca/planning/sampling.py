"""What sampled runs of a design show: how much cancelling noise parties need, and how much error is left.

All is in units of s^2 / mu^2, the variance that Local DP needs, so it depends neither on epsilon and delta nor on the
sensitivity. The independent noise of a party is factor / n_H of it: factor 1 is what the sum of all honest parties'
noise needs at least (Theorem 2), factor n_H is Local DP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.threads import available_cores, one_blas_thread
from inca._base.types import Array
from inca._base.validation import refuse, whole_parties
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.privacy.calibration import Tradeoff
from inca.privacy.tail_quantile import tail_level
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget, expected_error, sum_coefficients
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence

MIN_SAMPLED_PARTIES = 240
"""Up to this many parties views are sampled as they are; larger ones by sub-populations of at least this size."""
PAPER_FACTOR = 1.3
"""What the paper multiplies the least independent variance with, "providing a good balance" (section on dropouts)."""
_PARTIES_PER_MESSAGE = 4  # in a sub-population, so that a party seldom meets another one twice
_MIN_PARTIES_FOR_THREADS = 200  # with fewer, threads wait for the interpreter longer than they work without it
_MAX_PARTIES_OF_A_RUN = 100_000  # in an execution that is sampled for its error
_MAX_SENDERS = 400_000  # parties in all executions that are sampled for the error of one design
_FACTORS = 40
_SMALL_SHARE = 0.1  # of Local DP's noise, in a sub-population
_UNIT_NOISE = NoiseLevels(independent=1.0, cancelling=1.0)

OnViewSampled = Callable[[], None]
"""Called after each sampled view."""


def candidate_factors(requirements: Requirements, parties: int) -> Array:
    """Return the factors that are tried on views of so many parties: from just above Theorem 2's least to Local DP.

    In a sub-population the same factor means more independent noise for each party, which then protects it more than
    it would among all. So factors that are not small against its size are not tried there, but for Local DP's.

    Example:
        >>> requirements = Requirements(1000, 0.2, 1e-5, colluding=0.1)
        >>> candidate_factors(requirements, 1000)[[0, -2, -1]].round(1).tolist()
        [1.0, 672.0, 900.0]
        >>> candidate_factors(requirements, 200)[[0, -2, -1]].round(1).tolist()
        [1.0, 18.0, 900.0]
    """
    if requirements.honest == 1:
        return np.ones(1)
    if parties == requirements.parties:
        return 1.0 + np.geomspace(0.01, requirements.honest - 1.0, _FACTORS)
    largest = max(_SMALL_SHARE * _honest_of(requirements, parties), 1.1)
    return np.append(1.0 + np.geomspace(0.01, largest - 1.0, _FACTORS - 1), float(requirements.honest))


def paper_factor(requirements: Requirements) -> float:
    """Return the factor of the paper's recipe: independent variance 1.3 s^2 / (mu^2 n (1 - dropout - colluding)).

    Example:
        >>> round(paper_factor(Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.2)), 4)
        1.6714
    """
    staying = requirements.honest - requirements.leavers
    if staying < 1:
        fractions = "fractions that leave an honest party present (the paper's factor counts these)"
        refuse("colluding + dropout", requirements.colluding + requirements.dropout, fractions)
    return PAPER_FACTOR * requirements.honest / staying


def _honest_of(requirements: Requirements, parties: int) -> int:
    """Return how many of so many parties are honest, if the fraction that is required colludes."""
    return parties - whole_parties("colluding", requirements.colluding, parties)


def sampled_parties(requirements: Requirements, design: ProtocolDesign) -> int:
    """Return how many parties a sampled view has: all, or a sub-population with the same fractions.

    What one party needs depends on whom it meets and on whom these meet, hardly on how many others there are: with
    T = 20, k = 1 the needs of 200 and of 400 parties have the same quantiles to 1 % (docs/planner.md).
    """
    return min(requirements.parties, max(MIN_SAMPLED_PARTIES, _PARTIES_PER_MESSAGE * design.messages))


def sample_view(
    requirements: Requirements,
    design: ProtocolDesign,
    parties: int,
    dropout: float,
    seed: int,
    *,
    away: float = 0.0,
    settled: bool = False,
) -> View:
    """Draw a schedule, who leaves or is away, and an adversary of the required size; it knows leavers if settled."""
    rng = np.random.default_rng((seed, 1))
    presence = Presence.leaving(parties, design.rounds, dropout, rng, away=away)
    adversary = Adversary.random(
        parties, design.rounds, rng, colluding=requirements.colluding, eavesdropped=requirements.eavesdropped
    )
    execution = Execution(design.draw_schedule(parties, seed), design.injection(), presence)
    return View(execution.settled(), adversary).of_cohort() if settled else View(execution, adversary)


@dataclass(frozen=True, eq=False)
class CancellingNoiseSample:
    """The variance of cancelling noise that each honest party of each sampled view needs, one row per factor."""

    factors: Array
    views: tuple[Array, ...]

    @property
    def size(self) -> int:
        """How many parties were sampled in all."""
        return sum(view.shape[1] for view in self.views)

    def levels(self, probability: float, rng: np.random.Generator | None = None, confidence: float = 0.95) -> Array:
        """Return, for every factor, the variance that one party's need exceeds with the given probability.

        With a generator they are upper confidence limits, else plain estimates.
        """
        rows = range(self.factors.size)
        return np.array(
            [tail_level([view[row] for view in self.views], probability, rng, confidence=confidence) for row in rows]
        )


def sample_cancelling_noise(
    requirements: Requirements,
    design: ProtocolDesign,
    parties: int,
    attendance: tuple[float, float],
    seeds: Iterable[int],
    factors: Array,
    on_view_sampled: OnViewSampled | None = None,
    *,
    settled: bool = False,
) -> CancellingNoiseSample:
    """Sample views of so many parties at (dropout, away), and work out how much cancelling noise their parties need.

    In settled runs leavers count as colluders, and the others have topped up their noise.
    """
    honest, (dropout, away) = _honest_of(requirements, parties), attendance
    targets = np.minimum(
        factors / (max(1, honest - whole_parties("dropout", dropout, parties)) if settled else honest), 1.0
    )
    # In a sub-population its own noise protects a party more; see `candidate_factors`.
    units = targets if parties == requirements.parties else targets * (1.0 + targets)

    def needed_in_view(seed: int) -> Array:
        view = sample_view(requirements, design, parties, dropout, seed, away=away, settled=settled)
        ratios = Tradeoff(view).least_ratios(targets)
        return np.asarray(ratios * units[:, np.newaxis])

    views = []
    with one_blas_thread(), ThreadPoolExecutor(available_cores()) as pool:
        in_threads = parties >= _MIN_PARTIES_FOR_THREADS
        for needed in pool.map(needed_in_view, seeds) if in_threads else map(needed_in_view, seeds):
            views.append(needed)
            if on_view_sampled is not None:
                on_view_sampled()  # here and not in a thread, so that progress is reported in order
    return CancellingNoiseSample(factors, tuple(views))


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """n E|error|^2 of sampled executions, per unit of independent noise, of cancelling noise and of value variance.

    `runs` has one row per execution and these three columns.
    """

    runs: Array

    @cached_property
    def mean(self) -> Array:
        """The three averages."""
        return np.asarray(self.runs.mean(axis=0))

    def expected_error(
        self, requirements: Requirements, *, var_independent: float, var_cancelling: float
    ) -> tuple[ErrorBudget, float]:
        """Return the expected error per coordinate with this noise, and its standard error (0 where one run is all)."""
        parts = np.array([var_independent, var_cancelling, requirements.value_variance]) / requirements.parties
        budget = ErrorBudget(*(float(part) for part in self.mean * parts))
        if len(self.runs) == 1:
            return budget, 0.0
        return budget, float((self.runs @ parts).std(ddof=1) / math.sqrt(len(self.runs)))


def sample_error(
    requirements: Requirements,
    design: ProtocolDesign,
    dropout: float,
    runs: int,
    seed: int = 0,
    *,
    settled: bool = False,
) -> ErrorSample:
    """Sample executions at a dropout rate, with as many away as is required, and compute their error exactly."""
    n, away = min(requirements.parties, _MAX_PARTIES_OF_A_RUN), requirements.away
    # If nobody is absent, all runs are the same.
    count = 1 if dropout == 0.0 and away == 0.0 else max(4, min(runs, _MAX_SENDERS // n))
    injection = design.injection()

    def error_of_run(number: int) -> tuple[float, float, float]:
        rng = np.random.default_rng((seed, 2, number))
        presence = Presence.leaving(n, design.rounds, dropout, rng, away=away)
        execution = Execution(design.draw_schedule(n, number), injection, presence)
        budget = expected_error(execution.settled() if settled else execution, _UNIT_NOISE, variance=1.0)
        return n * budget.independent, n * budget.cancelling, n * budget.data

    return ErrorSample(np.array([error_of_run(number) for number in range(count)]))


def sample_residue(design: ProtocolDesign, parties: int, leaving: float, *, runs: int, seed: int = 0) -> float:
    """Return the variance in the settled sum without one final message, per unit of cancelling variance, on average.

    It hardly depends on the number of parties.

    Example:
        >>> design = ProtocolDesign("permutation", rounds=10, quiet=1)
        >>> nobody, some = (sample_residue(design, 30, leaving, runs=20) for leaving in (0.0, 0.2))
        >>> round(nobody, 1), some > nobody
        (1.0, True)
    """
    residues = []
    for number in range(runs):
        rng = np.random.default_rng((seed, 3, number))
        presence = Presence.leaving(parties, design.rounds, leaving, rng)
        settled = Execution(design.draw_schedule(parties, number), design.injection(), presence).settled()
        missing = np.zeros(parties, dtype=bool)
        missing[rng.choice(np.flatnonzero(settled.published))] = True
        residues.append(sum_coefficients(settled.without_finals(missing)).noise_squared.sum())
    return float(np.mean(residues))
