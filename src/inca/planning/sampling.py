"""What sampled runs of a design say: how much cancelling noise parties need, and how much error remains.

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
from inca._base.validation import refuse
from inca.planning.designs import Shape
from inca.planning.requirements import Wish
from inca.privacy.calibration import Tradeoff
from inca.privacy.tail_quantile import tail_level
from inca.privacy.view import View
from inca.protocol.adversary import Adversary, rounded_up
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.presence import Presence

WHOLE = 240
"""Up to this many parties views are sampled as they are; larger ones by sub-populations of at least this size."""
PAPER_FACTOR = 1.3
"""What the paper multiplies the least independent variance with, "providing a good balance" (section on dropouts)."""
_CONTACTS = 4  # a sub-population has this many parties per message, so that contacts are seldom met again
_LARGEST_RUN = 100_000  # parties in an execution that is sampled for its error
_FACTORS = 40
_SMALL_SHARE = 0.1  # of Local DP's noise, in a sub-population

Tick = Callable[[], None]
"""Called after each sampled view."""


def factors(wish: Wish, parties: int) -> Array:
    """Return the factors that are tried on views of so many parties: from just above Theorem 2's least to Local DP.

    In a sub-population the same factor means more independent noise for each party, which then protects it more than
    it would among all. So factors that are not small against its size are not tried there, but for Local DP's.

    >>> wish = Wish(1000, 0.2, 1e-5, colluding=0.1)
    >>> factors(wish, 1000)[[0, -2, -1]].round(1).tolist(), factors(wish, 200)[[0, -2, -1]].round(1).tolist()
    ([1.0, 672.0, 900.0], [1.0, 18.0, 900.0])
    """
    if wish.honest == 1:
        return np.ones(1)
    if parties == wish.parties:
        return 1.0 + np.geomspace(0.01, wish.honest - 1.0, _FACTORS)
    most = max(_SMALL_SHARE * _honest(wish, parties), 1.1)
    return np.append(1.0 + np.geomspace(0.01, most - 1.0, _FACTORS - 1), float(wish.honest))


def paper_factor(wish: Wish) -> float:
    """Return the factor of the paper's recipe: independent variance 1.3 s^2 / (mu^2 n (1 - dropout - colluding)).

    >>> round(paper_factor(Wish(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.2)), 4)
    1.6714
    """
    staying = wish.honest - wish.leavers
    if staying < 1:
        expected = "fractions that leave an honest party present, for the paper's factor,"
        raise refuse("colluding + dropout", wish.colluding + wish.dropout, expected)
    return PAPER_FACTOR * wish.honest / staying


def _honest(wish: Wish, parties: int) -> int:
    """Return how many of so many parties are honest, if a sub-population has the wish's fraction of colluders."""
    return parties - rounded_up("colluding", wish.colluding, parties)


def population(wish: Wish, shape: Shape) -> int:
    """Return how many parties a sampled view has: all, or a sub-population with the same fractions.

    What one party needs depends on whom it meets and on whom these meet, hardly on how many others there are: with
    T = 20, k = 1 the needs of 200 and of 400 parties have the same quantiles to 1 % (docs/planner.md).
    """
    return min(wish.parties, max(WHOLE, _CONTACTS * shape.messages))


def view(wish: Wish, shape: Shape, parties: int, dropout: float, seed: int) -> View:
    """Draw a schedule, who leaves, and an adversary of the wished size."""
    rng = np.random.default_rng((seed, 1))
    presence = Presence.leaving(parties, shape.rounds, dropout, rng)
    adversary = Adversary.random(parties, shape.rounds, rng, wish.colluding, wish.eavesdropped)
    return View(Execution(shape.draw(parties, seed), shape.injection(), presence), adversary)


@dataclass(frozen=True, eq=False)
class Needs:
    """For each sampled view, the variance of cancelling noise that each honest party needs, one row per factor."""

    factors: Array
    views: tuple[Array, ...]

    @property
    def size(self) -> int:
        """How many parties were sampled in all."""
        return sum(each.shape[1] for each in self.views)

    def levels(self, chance: float, rng: np.random.Generator | None = None, confidence: float = 0.95) -> Array:
        """Return, for every factor, what one party exceeds with the given chance.

        With a generator they are upper confidence limits, else plain estimates.
        """
        rows = range(self.factors.size)
        return np.array([tail_level([each[row] for each in self.views], chance, rng, confidence) for row in rows])


def sample_needs(
    wish: Wish,
    shape: Shape,
    parties: int,
    dropout: float,
    seeds: Iterable[int],
    tried: Array,
    tick: Tick | None = None,
) -> Needs:
    """Sample views of so many parties at a dropout rate."""
    targets = np.minimum(tried / _honest(wish, parties), 1.0)
    # In a sub-population its own noise protects a party more; see `factors`.
    units = targets if parties == wish.parties else targets * (1.0 + targets)

    def one(seed: int) -> Array:
        needed = Tradeoff(view(wish, shape, parties, dropout, seed)).least_ratios(targets)
        return np.asarray(needed * units[:, np.newaxis])

    found = []
    with one_blas_thread(), ThreadPoolExecutor(available_cores()) as pool:
        for needs in pool.map(one, seeds):
            found.append(needs)
            if tick is not None:
                tick()  # here and not in a thread, so that progress is told in order
    return Needs(tried, tuple(found))


@dataclass(frozen=True, eq=False)
class Remains:
    """What remains in sampled executions: n E|error|^2 per unit of independent noise, cancelling noise, value variance.

    `runs` has one row per execution and these three columns.
    """

    runs: Array

    @cached_property
    def mean(self) -> Array:
        """The three averages."""
        return np.asarray(self.runs.mean(axis=0))

    def error(self, wish: Wish, var_independent: float, var_cancelling: float) -> tuple[ErrorBudget, float]:
        """Return the expected error per coordinate with this noise, and its standard error (0 where one run is all)."""
        parts = np.array([var_independent, var_cancelling, wish.value_variance]) / wish.parties
        budget = ErrorBudget(*(float(part) for part in self.mean * parts))
        if len(self.runs) == 1:
            return budget, 0.0
        return budget, float((self.runs @ parts).std(ddof=1) / math.sqrt(len(self.runs)))


def sample_remains(wish: Wish, shape: Shape, dropout: float, runs: int, seed: int = 0) -> Remains:
    """Sample executions at a dropout rate and compute their error exactly."""
    n = min(wish.parties, _LARGEST_RUN)
    count = 1 if dropout == 0.0 else max(4, min(runs, 400_000 // n))  # if nobody leaves, all runs are the same
    injection = shape.injection()

    def one(index: int) -> tuple[float, float, float]:
        rng = np.random.default_rng((seed, 2, index))
        presence = Presence.leaving(n, shape.rounds, dropout, rng)
        found = expected_error(Execution(shape.draw(n, index), injection, presence), 1.0, 1.0, variance=1.0)
        return n * found.independent, n * found.cancelling, n * found.data

    return Remains(np.array([one(index) for index in range(count)]))
