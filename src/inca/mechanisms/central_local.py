"""The two ends of the scale: noise once, by a curator whom all trust, and noise by each party that trusts nobody.

Both are plain Gaussian mechanisms, so their errors are exact: with m parties present, sensitivity s and allowed shift
mu, s^2 / (m^2 mu^2) and s^2 / (m mu^2), plus what the absent parties' values are missed by.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from inca.mechanisms.base import Estimate, Mechanism, Prediction, shaped
from inca.protocol.expected_error import ErrorBudget


class CentralDP(Mechanism):
    """A trusted curator publishes the mean of the values present, plus one Gaussian term.

    How many are present is public, as it is for all mechanisms here, and each value moves the mean by s/m at most.

    >>> from inca.planning.requirements import Wish
    >>> central = CentralDP(Wish(parties=200, epsilon=0.2, delta=1e-5))
    >>> round(central.expected_error(0.0).mse, 6), central.messages
    (0.006646, 1.0)
    """

    name = "Central DP"
    promise = "whoever sees the result; the curator sees all values and must be trusted"
    weaker = True

    @property
    def messages(self) -> float:
        """One: the value, to the curator."""
        return 1.0

    def expected_error(self, dropout: float) -> Prediction:
        """Return the exact expected error: s^2 / (m^2 mu^2) with m parties present, and the missing values."""
        leavers = self._leavers(dropout)
        present = self.wish.parties - leavers
        noise = self.wish.var_local / present**2 if present else math.inf
        return Prediction(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> Estimate:
        """Run once; None if everyone leaves."""
        table, leavers = self._admit(values, rng, dropout)
        present = rng.permutation(len(table))[leavers:]
        if present.size == 0:
            return None
        noise = math.sqrt(self.wish.var_local) / present.size * rng.standard_normal(table.shape[1])
        return shaped(table[present].mean(axis=0) + noise, values)


class LocalDP(Mechanism):
    """Each party publishes its value with noise enough to protect it alone.

    >>> from inca.planning.requirements import Wish
    >>> wish = Wish(parties=200, epsilon=0.2, delta=1e-5)
    >>> round(LocalDP(wish).expected_error(0.0).mse / CentralDP(wish).expected_error(0.0).mse)
    200
    """

    name = "Local DP"
    promise = "everyone else together: all other parties may collude and every message may be seen"

    @property
    def messages(self) -> float:
        """None: what a party publishes is all it sends."""
        return 0.0

    def expected_error(self, dropout: float) -> Prediction:
        """Return the exact expected error: s^2 / (m mu^2) with m parties present, and the missing values."""
        leavers = self._leavers(dropout)
        present = self.wish.parties - leavers
        noise = self.wish.var_local / present if present else math.inf
        return Prediction(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> Estimate:
        """Run once; None if everyone leaves."""
        table, leavers = self._admit(values, rng, dropout)
        published = table + math.sqrt(self.wish.var_local) * rng.standard_normal(table.shape)
        present = rng.permutation(len(table))[leavers:]
        return shaped(published[present].mean(axis=0), values) if present.size else None
