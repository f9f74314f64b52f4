"""One way to average vectors privately, whatever the mechanism behind it.

All mechanisms add Gaussian noise in proportion to sensitivity / mu. So each is calibrated once, for vectors of
sensitivity 1 at some mu, and every release scales its vectors to the loss that it may have.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import between_0_and_1, finite_array, finite_float, generator, integer, positive, refuse
from inca.learn.averagers.base import VectorMean
from inca.mechanisms.base import Mechanism
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.planning.requirements import Requirements
from inca.planning.search import plan

KINDS = ("inca", "central", "gopa", "cordp", "local")
_MIN_GOPA_GRAPHS = 100  # that GOPA's noise is calibrated on
_EPSILON, _DELTA = 1.0, 1e-5  # what mechanisms are calibrated for; releases are scaled from there


class SimulatedAverager:
    """A mechanism that averages vectors of n parties while a fraction of them leaves during every average.

    Args:
        mechanism: A calibrated mechanism whose requirements have sensitivity 1.
        dropout: The fraction of the parties that leaves during every average.

    Example:
        >>> averager = SimulatedAverager.of("central", parties=50)
        >>> rng = np.random.default_rng(1)
        >>> average = averager.average(np.ones((50, 3)), sensitivity=2.0, mu=1.0, rng=rng)
        >>> average.estimate.shape, round(average.var_noise, 6)  # (2 / 50)^2
        ((3,), 0.0016)
    """

    def __init__(self, mechanism: Mechanism, dropout: float = 0.0) -> None:
        if mechanism.requirements.sensitivity != 1.0:
            refuse("the sensitivity of the mechanism", mechanism.requirements.sensitivity, "1")
        self.mechanism, self.dropout = mechanism, finite_float("dropout", dropout, 0.0, 1.0)
        self.name, self.parties = mechanism.name, mechanism.requirements.parties

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
    ) -> SimulatedAverager:
        """Calibrate a mechanism for a number of parties: inca by a plan, GOPA with half of its leavers late.

        What of the failure probability is proven and what is extrapolated is in docs/planner.md.

        Args:
            kind: "inca", "central", "gopa", "cordp" or "local".
            parties: The number of parties.
            colluding: The fraction of the parties that pools what it sees.
            dropout: The fraction of the parties that leaves during every average.
            messages: How many messages a party may send in an average.
            views: How many adversary's views are sampled to calibrate inca, or graphs for GOPA (at least 100).
            releases: The number of averages that share the failure probability equally (union bound, so the
                adversary may be the same in all of them).
            failure: The probability, over random schedules and adversaries, that the guarantee fails in any of the
                releases. Only inca and GOPA have one.

        Returns:
            The calibrated averager.

        Raises:
            InvalidInput: If an argument makes no sense, or the messages do not suffice.
            RequirementsNotMet: If no plan gives the guarantee.

        Example:
            >>> SimulatedAverager.of("inca", 20, messages=8, views=10, releases=50).mechanism.requirements.failure
            2e-08
        """
        requirements = Requirements(
            parties,
            _EPSILON,
            _DELTA,
            colluding=colluding,
            dropout=dropout,
            messages=messages,
            failure=between_0_and_1("failure", failure) / integer("releases", releases, min=1),
            variance=0.0,
        )
        match kind:
            case "inca":
                return cls(Inca(plan(requirements, views=views)), dropout)
            case "central":
                return cls(CentralDP(requirements), dropout)
            case "local":
                return cls(LocalDP(requirements), dropout)
            case "gopa":
                return cls(Gopa(requirements, late=0.5, views=max(views, _MIN_GOPA_GRAPHS)), dropout)
            case "cordp":
                return cls(CorDP(requirements), dropout)
        refuse("kind", kind, f"one of {', '.join(KINDS)}")

    @cached_property
    def _var_calibrated(self) -> float:
        """The variance of the noise in the mean at the calibrated level, per coordinate."""
        return self.mechanism.expected_error(self.dropout).budget.noise

    def var_noise(self, sensitivity: float, mu: float) -> float:
        """Return the variance of the noise in each coordinate of a mean.

        Args:
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.

        Returns:
            The expected variance over the mechanism's own randomness and the leavers.
        """
        ratio = positive("sensitivity", sensitivity) / positive("mu", mu)
        return self._var_calibrated * (ratio * self.mechanism.requirements.mu) ** 2

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        max_norm: float | None = None,
    ) -> VectorMean:
        """Average one vector per party.

        The release has loss mu against the mechanism's adversary; it is for the caller to take it off a budget.

        Args:
            vectors: One row per party, (n, d).
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.
            rng: The source of all randomness.
            max_norm: Not needed in a simulation.

        Returns:
            The estimated mean; without an estimate if everybody left.
        """
        del max_norm
        table = finite_array("vectors", vectors, (2,), "one row of numbers per party")
        if len(table) != self.parties:
            refuse("the number of vectors", len(table), f"{self.parties}, one for each party")
        var_noise = self.var_noise(sensitivity, mu)
        scale = mu / (self.mechanism.requirements.mu * sensitivity)
        estimate = self.mechanism.run(scale * table, generator(rng), self.dropout)
        if estimate is None:
            return VectorMean(None, math.inf, mu)
        return VectorMean(np.asarray(estimate) / scale, var_noise, mu)


@lru_cache(maxsize=16)
def calibrated(
    kind: str, parties: int, colluding: float, dropout: float, messages: int, views: int, releases: int
) -> SimulatedAverager:
    """Return `SimulatedAverager.of` these, and keep the last few: a plan takes seconds, and depends on no data.

    Example:
        >>> calibrated("local", 9, 0.0, 0.0, 20, 100, 5) is calibrated("local", 9, 0.0, 0.0, 20, 100, 5)
        True
    """
    return SimulatedAverager.of(
        kind, parties, colluding=colluding, dropout=dropout, messages=messages, views=views, releases=releases
    )
