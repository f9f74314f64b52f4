"""Levels of cancelling noise extrapolated from sampled views, at every attendance that a plan is for."""

from __future__ import annotations

import numpy as np

from inca._base.types import Array
from inca.planning.designs import ProtocolDesign
from inca.planning.plan import SamplingDetails
from inca.planning.requirements import Requirements
from inca.planning.sampling import OnViewSampled, sample_cancelling_noise, sampled_parties
from inca.planning.scoring import exceedance_probability

FIRST_SEED = 10**6
"""Of the views that calibrate a design: what it was chosen on does not calibrate it."""


def attendances(requirements: Requirements) -> list[tuple[float, float]]:
    """Return the dropout rates, and how often parties are away, at which the guarantee is sampled.

    Everyone is there; then as many are away as may be, at two dropout rates up to the required one.
    """
    rates = (requirements.dropout / 2, requirements.dropout) if requirements.leavers > 0 else (0.0,)
    return list(dict.fromkeys([(0.0, 0.0), *((rate, requirements.away) for rate in rates)]))


def extrapolated_levels(
    requirements: Requirements,
    design: ProtocolDesign,
    factors: Array,
    views: int,
    confidence: float,
    on_view_sampled: OnViewSampled,
    *,
    settled: bool = False,
) -> tuple[Array, SamplingDetails]:
    """Return the level that suffices at all attendances, for every factor, and how it is known."""
    parties, probability = sampled_parties(requirements, design), exceedance_probability(requirements)
    samples = [
        sample_cancelling_noise(
            requirements,
            design,
            parties,
            (dropout, away),
            range(FIRST_SEED + number * views, FIRST_SEED + (number + 1) * views),
            factors,
            on_view_sampled,
            settled=settled,
        )
        for number, (dropout, away) in enumerate(attendances(requirements))
    ]
    levels = np.max([sample.levels(probability, np.random.default_rng(1), confidence) for sample in samples], axis=0)
    rates = tuple(dropout for dropout, _ in attendances(requirements))
    return levels, SamplingDetails(views, parties, rates, confidence, checked=0)
