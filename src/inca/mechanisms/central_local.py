"""The two ends of the scale: one noise term, by a curator whom all trust, and noise by each party that trusts nobody.

Both are plain Gaussian mechanisms, so their errors are exact: with m parties present, sensitivity s and allowed shift
mu, s^2 / (m^2 mu^2) and s^2 / (m mu^2), plus what the absent parties' values are missed by.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism, match_shape
from inca.protocol.expected_error import ErrorBudget


class CentralDP(Mechanism):
    """A trusted curator publishes the mean of the values present, plus one Gaussian term.

    How many are present is public, as it is for all mechanisms here, and each value moves the mean by s/m at most.

    Args:
        requirements: The guarantee; colluders and eavesdroppers are ignored.

    Example:
        >>> from inca.planning.requirements import Requirements
        >>> central = CentralDP(Requirements(parties=200, epsilon=0.2, delta=1e-5))
        >>> round(central.expected_error(0.0).mse, 6), central.messages
        (0.006646, 1.0)
    """

    name = "Central DP"
    promise = "whoever sees the result; the curator sees all values and must be trusted"
    weaker = True
    any_dropout = True

    @property
    def messages(self) -> float:
        """One: the value, to the curator."""
        return 1.0

    @property
    def failure_probability(self) -> float:
        """0: the guarantee holds always."""
        return 0.0

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the exact expected error: s^2 / (m^2 mu^2) with m parties present, and the missing values."""
        leavers = self._leavers(dropout)
        present = self.requirements.parties - leavers
        noise = self.requirements.var_local_dp / present**2 if present else math.inf
        return ExpectedError(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once; None if everyone leaves."""
        table, leavers = self._validate(values, rng, dropout)
        present = rng.permutation(len(table))[leavers:]
        if present.size == 0:
            return None
        noise = math.sqrt(self.requirements.var_local_dp) / present.size * rng.standard_normal(table.shape[1])
        return match_shape(table[present].mean(axis=0) + noise, values)


class LocalDP(Mechanism):
    """Each party publishes its value with enough noise to protect it alone, of variance s^2 / mu^2.

    Args:
        requirements: The guarantee; it holds against any number of colluders and eavesdroppers.

    Example:
        >>> from inca.planning.requirements import Requirements
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5)
        >>> round(LocalDP(requirements).expected_error(0.0).mse / CentralDP(requirements).expected_error(0.0).mse)
        200
    """

    name = "Local DP"
    promise = "everyone else together: all other parties may collude and every message may be seen"
    any_dropout = True

    @property
    def messages(self) -> float:
        """None: what a party publishes is all it sends."""
        return 0.0

    @property
    def failure_probability(self) -> float:
        """0: the guarantee holds always."""
        return 0.0

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the exact expected error: s^2 / (m mu^2) with m parties present, and the missing values."""
        leavers = self._leavers(dropout)
        present = self.requirements.parties - leavers
        noise = self.requirements.var_local_dp / present if present else math.inf
        return ExpectedError(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once; None if everyone leaves."""
        table, leavers = self._validate(values, rng, dropout)
        published = table + math.sqrt(self.requirements.var_local_dp) * rng.standard_normal(table.shape)
        present = rng.permutation(len(table))[leavers:]
        return match_shape(published[present].mean(axis=0), values) if present.size else None
