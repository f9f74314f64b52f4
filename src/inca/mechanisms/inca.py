"""inca behind the interface of all mechanisms, so that it is compared like any other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import finite_float
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism
from inca.planning.plan import Plan
from inca.planning.sampling import sample_error
from inca.protocol.presence import Presence
from inca.protocol.simulation import simulate

_RUNS = 500


class Inca(Mechanism):
    """A plan as a mechanism: values and noise enter bit by bit, and parties gossip (Algorithm 2).

    Args:
        plan: The parameters; its requirements are those of the mechanism.

    Example:
        >>> import inca
        >>> requirements = inca.Requirements(parties=50, epsilon=1.0, delta=1e-5, dropout=0.1, messages=8)
        >>> own = Inca(inca.plan(requirements, recipe="paper", views=20))
        >>> own.name, own.messages
        ("inca, the paper's recipe", 8.0)
        >>> bool(own.expected_error(0.0).mse < own.expected_error(0.1).mse < own.expected_error(0.2).mse)
        True
    """

    promise = "colluders and eavesdroppers who see the topology, their messages and all final ones"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.requirements)
        self.plan = plan
        self.name = "inca, the paper's recipe" if plan.recipe == "paper" else "inca, planned"

    @property
    def messages(self) -> float:
        """Receivers times rounds."""
        return float(self.plan.design.messages)

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the expected error at a dropout rate: exact for each of many sampled executions."""
        plan = self.plan
        if finite_float("dropout", dropout, 0.0, 1.0) == self.requirements.dropout:
            return ExpectedError(plan.budget, plan.standard_error)
        var_independent, var_cancelling = plan.noise_levels.independent**2, plan.noise_levels.cancelling**2
        errors = sample_error(self.requirements, plan.design, dropout, _RUNS)
        return ExpectedError(
            *errors.expected_error(self.requirements, var_independent=var_independent, var_cancelling=var_cancelling)
        )

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run Algorithm 2 once, with a fresh schedule."""
        self._validate(values, rng, dropout)
        presence = Presence.leaving(self.requirements.parties, self.plan.design.rounds, dropout, rng)
        execution = self.plan.execution(int(rng.integers(2**63)), presence)
        return simulate(execution, values, self.plan.noise_levels, rng).estimate
