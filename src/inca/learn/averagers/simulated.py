"""One way to average vectors privately, whatever the mechanism behind it.

All mechanisms add Gaussian noise in proportion to sensitivity / mu. So each is calibrated once, for vectors of
sensitivity 1 at some mu, and every release scales its vectors to the loss that it may have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import finite_array, generator, positive, real, refuse, whole
from inca.mechanisms.base import Mechanism
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.planning.requirements import Wish
from inca.planning.search import plan

KINDS = ("inca", "central", "gopa", "cordp", "local")
_GRAPHS = 100  # fewest that GOPA's noise is calibrated on
_EPSILON, _DELTA = 1.0, 1e-5  # what mechanisms are calibrated for; releases are scaled from there


@dataclass(frozen=True, eq=False)
class Average:
    """An estimated mean of vectors: `noise` is the variance of what privacy added to each coordinate.

    `vector` is None if nobody was left to publish a result.
    """

    vector: Array | None
    noise: float
    mu: float


class Aggregator:
    """A mechanism that averages vectors of n parties while a fraction `dropout` leaves during every average.

    >>> aggregator = Aggregator.of("central", parties=50)
    >>> rng = np.random.default_rng(1)
    >>> average = aggregator.average(np.ones((50, 3)), sensitivity=2.0, mu=1.0, rng=rng)
    >>> average.vector.shape, round(average.noise, 6)  # (2 / 50)^2
    ((3,), 0.0016)
    """

    def __init__(self, mechanism: Mechanism, dropout: float = 0.0) -> None:
        """Take a calibrated mechanism; its wish has sensitivity 1."""
        if mechanism.wish.sensitivity != 1.0:
            raise refuse("the sensitivity of the mechanism", mechanism.wish.sensitivity, "1")
        self.mechanism, self.dropout = mechanism, real("dropout", dropout, 0.0, 1.0)
        self.name, self.parties = mechanism.name, mechanism.wish.parties

    @classmethod
    def of(
        cls,
        kind: str,
        parties: int,
        *,
        colluding: float = 0.0,
        dropout: float = 0.0,
        messages: int = 20,
        views: int = 100,
        releases: int = 1,
        failure: float = 1e-6,
    ) -> Aggregator:
        """Calibrate one of `KINDS` for so many parties: inca by a plan, GOPA with half of its leavers late.

        `failure` is the chance, over random schedules and adversaries, that the promise fails in any of `releases`
        averages. Each of them gets an equal part (union bound, so the adversary may be the same in all of them). Only
        inca and GOPA have such a chance; what of it is proven and what extrapolated is in docs/planner.md.

        >>> Aggregator.of("inca", 20, messages=8, views=10, releases=50).mechanism.wish.failure
        2e-08
        """
        if not 0.0 < real("failure", failure, 0.0, 1.0) < 1.0:
            raise refuse("failure", failure, "a number between 0 and 1")
        wish = Wish(
            parties,
            _EPSILON,
            _DELTA,
            colluding=colluding,
            dropout=dropout,
            messages=messages,
            failure=failure / whole("releases", releases, least=1),
            variance=0.0,
        )
        match kind:
            case "inca":
                return cls(Inca(plan(wish, views=views)), dropout)
            case "central":
                return cls(CentralDP(wish), dropout)
            case "local":
                return cls(LocalDP(wish), dropout)
            case "gopa":
                return cls(Gopa(wish, late=0.5, views=max(views, _GRAPHS)), dropout)
            case "cordp":
                return cls(CorDP(wish), dropout)
        raise refuse("kind", kind, f"one of {', '.join(KINDS)}")

    @cached_property
    def _noise(self) -> float:
        """The variance of the noise in the mean at the calibrated level, per coordinate."""
        return self.mechanism.expected_error(self.dropout).budget.noise

    def noise(self, sensitivity: float, mu: float) -> float:
        """Return the variance of the noise in each coordinate of a mean released with this loss."""
        return self._noise * (positive("sensitivity", sensitivity) * self.mechanism.wish.mu / positive("mu", mu)) ** 2

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        reach: float | None = None,
    ) -> Average:
        """Average one vector per party, (n, d), of which any two differ by at most `sensitivity` in Euclidean norm.

        The release has loss mu against the mechanism's adversary: that is for the caller's budget. A `reach`, which
        networks need, means nothing here.
        """
        del reach
        table = finite_array("vectors", vectors, (2,), "one row of numbers per party")
        if len(table) != self.parties:
            raise refuse("the number of vectors", len(table), f"one for each of {self.parties} parties")
        noise = self.noise(sensitivity, mu)
        scale = mu / (self.mechanism.wish.mu * sensitivity)
        found = self.mechanism.run(scale * table, generator(rng), self.dropout)
        vector = None if found is None else np.asarray(found) / scale
        return Average(vector, noise if vector is not None else math.inf, mu)


@lru_cache(maxsize=16)
def calibrated(
    kind: str, parties: int, colluding: float, dropout: float, messages: int, views: int, releases: int
) -> Aggregator:
    """Return `Aggregator.of` these, and keep the last few: a plan takes seconds, and depends on no data.

    >>> calibrated("local", 9, 0.0, 0.0, 20, 100, 5) is calibrated("local", 9, 0.0, 0.0, 20, 100, 5)
    True
    """
    return Aggregator.of(
        kind, parties, colluding=colluding, dropout=dropout, messages=messages, views=views, releases=releases
    )
