"""inca behind the shape of all mechanisms, so that it is compared like any other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import real
from inca.mechanisms.base import Estimate, Mechanism, Prediction
from inca.planning.plan import Plan
from inca.planning.sampling import sample_remains
from inca.protocol.presence import Presence
from inca.protocol.simulation import simulate

_RUNS = 500


class Inca(Mechanism):
    """A plan as a mechanism.

    >>> import inca
    >>> wish = inca.Wish(parties=50, epsilon=1.0, delta=1e-5, dropout=0.1, messages=8)
    >>> own = Inca(inca.plan(wish, recipe="paper", views=20))
    >>> own.name, own.messages
    ("inca, the paper's recipe", 8.0)
    >>> bool(own.expected_error(0.0).mse < own.expected_error(0.1).mse < own.expected_error(0.2).mse)
    True
    """

    promise = "colluders and eavesdroppers who see the topology, their messages and all final ones"

    def __init__(self, plan: Plan) -> None:
        """Keep the plan."""
        super().__init__(plan.wish)
        self.plan = plan
        self.name = "inca, the paper's recipe" if plan.recipe == "paper" else "inca, planned"

    @property
    def messages(self) -> float:
        """Receivers times rounds."""
        return float(self.plan.shape.messages)

    def expected_error(self, dropout: float) -> Prediction:
        """Return the expected error at a dropout rate: exact for each of many sampled executions."""
        if real("dropout", dropout, 0.0, 1.0) == self.wish.dropout:
            return Prediction(self.plan.budget, self.plan.standard_error)
        remains = sample_remains(self.wish, self.plan.shape, dropout, _RUNS)
        return Prediction(*remains.error(self.wish, self.plan.sigma_independent**2, self.plan.sigma_cancelling**2))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> Estimate:
        """Run Algorithm 2 once, with a fresh schedule."""
        self._admit(values, rng, dropout)
        plan = self.plan
        presence = Presence.leaving(self.wish.parties, plan.shape.rounds, dropout, rng)
        execution = plan.execution(int(rng.integers(2**63)), presence)
        return simulate(execution, values, plan.sigma_independent, plan.sigma_cancelling, rng).estimate
