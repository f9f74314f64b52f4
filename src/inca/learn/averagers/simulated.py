"""One way to average vectors privately, whatever the mechanism behind it.

All mechanisms add Gaussian noise in proportion to sensitivity / mu. So each is calibrated once, for vectors of
sensitivity 1 at some mu, and every release scales its vectors to the loss that it may have.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from inca._base.options import Conditions
from inca._base.safe_numbers import safe_length
from inca._base.validation import (
    between_0_and_1,
    finite_array,
    finite_float,
    generator,
    instance,
    integer,
    one_of,
    positive,
    refuse,
    whole_parties,
)
from inca.learn.averagers.base import VectorMean
from inca.learn.budget import Budget
from inca.mechanisms.base import Mechanism
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.planning.plan import plan
from inca.planning.requirements import Requirements

KINDS = ("inca", "central", "gopa", "cordp", "local")
_GOPA_GRAPHS = 100  # that GOPA's noise is calibrated on
_EPSILON, _DELTA = 1.0, 1e-5  # what mechanisms are calibrated for; releases are scaled from there
_ROUNDING = 1e-9  # relative, where noise is exactly what is needed


class SimulatedAverager:
    """A mechanism that averages vectors of n parties while a fraction of them leaves during every average.

    Args:
        mechanism: A calibrated mechanism whose requirements have sensitivity 1.
        dropout: The fraction of the parties that leaves during every average, at most what the mechanism is made for.
        releases: How many releases of one budget it may be used for, if it can fail; more are refused.
        failure: The probability that the guarantee fails in any of these releases; by default `releases` times
            the mechanism's `failure_probability`.

    Raises:
        InvalidInput: If the mechanism promises nothing, or nothing at this dropout rate.

    Example:
        >>> averager = SimulatedAverager.of("central", parties=50)
        >>> rng = np.random.default_rng(1)
        >>> average = averager.average(np.ones((50, 3)), sensitivity=2.0, mu=1.0, rng=rng)
        >>> average.estimate.shape, round(average.var_noise, 6)  # (2 / 50)^2
        ((3,), 0.0016)
    """

    def __init__(
        self, mechanism: Mechanism, dropout: float = 0.0, *, releases: int = 1, failure: float | None = None
    ) -> None:
        instance("mechanism", mechanism, Mechanism)
        if mechanism.requirements.sensitivity != 1.0:
            refuse("the sensitivity of the mechanism", mechanism.requirements.sensitivity, "1")
        _check_promise(mechanism)
        self.mechanism, self.dropout = mechanism, _planned_dropout(mechanism, dropout)
        self.name, self.parties = mechanism.name, mechanism.requirements.parties
        count = integer("releases", releases, min=1)
        if failure is None:
            failure = min(1.0, count * mechanism.failure_probability)
        self._failure = finite_float("failure", failure, 0.0, 1.0) / count
        self._releases = count if self._failure else None

    @property
    def failure_probability(self) -> float | None:
        """How likely the guarantee fails in one release, at most; it adds to delta."""
        return self._failure

    @property
    def releases(self) -> int | None:
        """How many releases of one budget it is made for; None: any number, as it cannot fail."""
        return self._releases

    def expect(self, budget: Budget | None, releases: int) -> None:
        """Do nothing: the budget sees to it that there are not more releases than this is made for."""

    @classmethod
    def of(
        cls, kind: str, parties: int, conditions: Conditions | None = None, *, releases: int = 1
    ) -> SimulatedAverager:
        """Calibrate a mechanism for a number of parties: inca by a plan, GOPA with half of its leavers late.

        Args:
            kind: "inca", "central", "gopa", "cordp" or "local".
            parties: The number of parties.
            conditions: Who colludes, who leaves and what is overheard in every average, how many messages a party may
                send in one, and the probability, over random schedules and adversaries, that the guarantee fails in any
                of the releases. By default a tenth may collude, and a tenth may leave. Nobody leaves in the simulation
                unless the conditions say how many. Only inca and GOPA may fail.
            releases: The number of averages that share the failure probability equally (union bound, so the
                adversary may be the same in all of them).

        Returns:
            The calibrated averager.

        Raises:
            InvalidInput: If an argument makes no sense.
            RequirementsNotMet: If no plan gives the guarantee, or the messages do not suffice.

        Example:
            >>> chosen = Conditions(colluding=0.1)
            >>> SimulatedAverager.of("inca", 20, chosen, releases=50).mechanism.requirements.failure
            2e-08
        """
        one_of("kind", kind, KINDS)
        chosen = conditions or Conditions()
        share = between_0_and_1("failure", chosen.failure) / integer("releases", releases, min=1)
        requirements = Requirements(parties, _EPSILON, _DELTA, **(vars(chosen) | {"failure": share}), variance=0.0)
        mechanism: Mechanism
        match kind:
            case "inca":
                mechanism = Inca(plan(requirements))
            case "central":
                mechanism = CentralDP(requirements)
            case "local":
                mechanism = LocalDP(requirements)
            case "gopa":
                mechanism = Gopa(requirements, late=0.5, views=_GOPA_GRAPHS)
            case _:
                mechanism = CorDP(requirements)
        return cls(mechanism, 0.0 if chosen.dropout is None else chosen.dropout, releases=releases)

    @cached_property
    def _var_calibrated(self) -> float:
        """The variance of the noise in the mean at the calibrated level, per coordinate."""
        noise = self.mechanism.expected_error(self.dropout).budget.noise
        if not noise >= self.mechanism.requirements.central_mse * (1.0 - _ROUNDING):
            # Nobody can promise as much with less: even a curator's one term of noise would not do.
            refuse("the noise of the mechanism", noise, f"at least {self.mechanism.requirements.central_mse:.4g}")
        return noise

    def var_noise(self, sensitivity: float, mu: float) -> float:
        """Return the variance of the noise in each coordinate of a mean.

        Args:
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.

        Returns:
            The expected variance over the mechanism's own randomness and the leavers.
        """
        ratio = safe_length("sensitivity / mu", safe_length("sensitivity", sensitivity) / positive("mu", mu))
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


def calibrated(kind: str, parties: int, conditions: Conditions, *, releases: int = 1) -> SimulatedAverager:
    """Return `SimulatedAverager.of` these, and keep the last few: GOPA takes seconds, and depends on no data.

    Example:
        >>> calibrated("local", 9, Conditions(), releases=5) is calibrated("local", 9, Conditions(), releases=5)
        True
    """
    settings = (kind, parties, conditions, releases)
    if settings not in _kept:
        averager = SimulatedAverager.of(kind, parties, conditions, releases=releases)
        if len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[settings] = averager
    return _kept[settings]


_kept: dict[tuple[object, ...], SimulatedAverager] = {}
_MOST_KEPT = 16


def _check_promise(mechanism: Mechanism) -> None:
    """Refuse a mechanism without a guarantee for every party against the adversary of its requirements."""
    must_be = "one that promises its epsilon to every party"
    if not mechanism.promised:
        refuse("the mechanism", f"{mechanism.name}, which does not", must_be)
    if isinstance(mechanism, CentralDP) and mechanism.requirements.eavesdropped > 0.0:
        refuse("the mechanism", mechanism.name, f"{must_be}, also if values are eavesdropped on their way")


def _planned_dropout(mechanism: Mechanism, dropout: float) -> float:
    """Return the dropout rate, or refuse one at which the mechanism's noise does not suffice."""
    rate, requirements = finite_float("dropout", dropout, 0.0, 1.0), mechanism.requirements
    if not mechanism.any_dropout and whole_parties("dropout", rate, requirements.parties) > requirements.leavers:
        refuse("dropout", dropout, f"at most {requirements.dropout:g}, which the mechanism's noise is planned for")
    return rate
