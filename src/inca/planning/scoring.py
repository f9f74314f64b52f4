"""How good a design is, from a few sampled views: its least error over the balance of both kinds of noise.

More independent noise always costs error, but then less cancelling noise is needed, which costs error where parties
leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inca._base.types import Array
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.planning.sampling import (
    ErrorSample,
    OnViewSampled,
    candidate_factors,
    sample_cancelling_noise,
    sample_error,
    sampled_parties,
)

_LEAST_COST = 1e-9  # of cancelling noise
_RUNS_PER_VIEW = 2


@dataclass(frozen=True)
class DesignScore:
    """The best balance of a design's noise: n times the expected error, in units of s^2 / mu^2, and what gives it."""

    error: float
    var_independent: float
    var_cancelling: float
    errors: ErrorSample


@dataclass(frozen=True)
class DesignScorer:
    """Scores designs on the same few views."""

    requirements: Requirements
    views: int
    parties_of_a_view: int | None = None
    on_view_sampled: OnViewSampled | None = None
    parties_of_a_run: int | None = None

    def score(self, design: ProtocolDesign) -> DesignScore:
        """Return the least expected error of a design over the balance of both kinds of noise."""
        requirements = self.requirements
        parties = sampled_parties(requirements, design)
        if self.parties_of_a_view is not None:
            parties = min(parties, max(self.parties_of_a_view, 3 * design.messages))
        factors = candidate_factors(requirements, parties)
        # Early injection has no fast route, and is so far behind that a few views show it.
        seeds = range(self.views if design.kind == "incremental" else max(4, self.views // 4))
        samples = [
            sample_cancelling_noise(requirements, design, parties, attendance, seeds, factors, self.on_view_sampled)
            for attendance in sorted({(0.0, 0.0), (requirements.dropout, requirements.away)})
        ]
        errors = sample_error(self._for_runs(), design, requirements.dropout, _RUNS_PER_VIEW * self.views)
        # Few samples say little about a probability of 1e-6: to compare designs, one that they do show is better.
        probability = max(exceedance_probability(requirements), 2.0 / sum(sample.size for sample in samples))
        levels = np.max([sample.levels(probability) for sample in samples], axis=0)
        by_factor = scaled_errors(requirements, factors, levels, errors)
        best = int(np.argmin(by_factor))
        var_local_dp = requirements.var_local_dp
        return DesignScore(
            error=float(by_factor[best]),
            var_independent=var_local_dp * float(factors[best]) / requirements.honest,
            var_cancelling=var_local_dp * float(levels[best]),
            errors=errors,
        )

    def _for_runs(self) -> Requirements:
        if self.parties_of_a_run is None:
            return self.requirements
        return replace(self.requirements, parties=min(self.parties_of_a_run, self.requirements.parties))


def scaled_errors(requirements: Requirements, factors: Array, levels: Array, errors: ErrorSample) -> Array:
    """Return n times the expected error for every factor, in units of s^2 / mu^2."""
    independent, cancelling, data = errors.mean
    # Where nobody leaves, cancelling noise costs nothing: then the design that needs less of it wins.
    cost = max(cancelling, _LEAST_COST)
    missing_values = data * requirements.value_variance / requirements.var_local_dp
    with np.errstate(invalid="ignore"):
        return np.asarray(independent * factors / requirements.honest + cost * levels + missing_values)


def exceedance_probability(requirements: Requirements) -> float:
    """Return how likely one party's need may exceed the level: half of what may fail, shared by all n_H (union bound).

    The other half is for messages that hide too little.
    """
    return requirements.failure / 2.0 / requirements.honest
