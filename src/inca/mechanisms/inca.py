"""inca behind the interface of all mechanisms, so that it is compared like any other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import finite_float
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism
from inca.planning.plan import Plan
from inca.planning.sampled import sampled_error
from inca.planning.settled import settled_error
from inca.protocol.presence import Presence
from inca.protocol.simulation import simulated_estimate

_RUNS = 500


class Inca(Mechanism):
    """A plan as a mechanism: values and noise enter bit by bit, parties gossip (Algorithm 2), who stays settles.

    Args:
        plan: The parameters; its requirements are those of the mechanism.

    Example:
        >>> import inca
        >>> requirements = inca.Requirements(parties=50, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> own = Inca(inca.plan(requirements))
        >>> own.name, own.messages
        ('inca', 7.0)
        >>> bool(own.expected_error(0.0).mse < own.expected_error(0.1).mse < own.expected_error(0.2).mse)
        True
    """

    promise = "colluders and eavesdroppers who see the topology, their messages and all final ones"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.requirements)
        plan.noise_levels.refuse_uncancelled()
        self.plan = plan
        self.name = "inca" if plan.settles else "inca, the paper's recipe"

    @property
    def failure_probability(self) -> float:
        """How likely the guarantee fails for a party, at most, as the plan states it; it adds to delta."""
        return self.plan.failure_probability

    @property
    def messages(self) -> float:
        """Receivers times rounds, and the final one."""
        return float(self.plan.design.messages)

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the expected error: in closed form if settled and nobody is away, else exact for sampled runs."""
        plan = self.plan
        if finite_float("dropout", dropout, 0.0, 1.0) == self.requirements.dropout:
            return ExpectedError(plan.budget, plan.standard_error)
        if plan.settles and self.requirements.away == 0.0:
            return ExpectedError(settled_error(self.requirements, plan.noise, self._leavers(dropout)))
        return ExpectedError(
            *sampled_error(self.requirements, plan.design, plan.noise_levels_of, dropout, _RUNS, settled=plan.settles)
        )

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run Algorithm 2 once, with a fresh schedule, and settle if planned."""
        _, leavers = self._validate(values, rng, dropout)
        n = self.requirements.parties
        presence = Presence.leaving(n, self.plan.design.rounds, leavers / n, rng)
        execution = self.plan.execution(int(rng.integers(2**63)), presence)
        levels = self.plan.noise_levels_of(execution)
        return simulated_estimate(execution, values, levels, rng)
