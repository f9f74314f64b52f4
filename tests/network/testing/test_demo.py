"""The demonstration's noise suffices for any number of parties that may be asked for."""

from __future__ import annotations

import numpy as np
import pytest

import inca
from inca.network.testing.demo import planned

# The smallest, some between, and the largest.
QUICK, FEW = 12, 2
SLOW, MORE = (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 24), 5


@pytest.mark.parametrize(
    ("parties", "schedules"), [(QUICK, FEW), *(pytest.param(count, MORE, marks=pytest.mark.slow) for count in SLOW)]
)
def test_its_noise_keeps_the_agreed_loss_against_every_single_party_and_leavers(parties: int, schedules: int) -> None:
    rng, plan = np.random.default_rng(parties), planned(parties)
    mus = []
    for seed in range(schedules):
        for leavers in range(int(0.25 * parties) + 1):
            presence = inca.Presence.leaving(parties, plan.design.rounds, leavers / parties, rng)
            execution = plan.execution(seed, presence)
            noise = plan.noise_levels_of(execution)
            for colluder in range(min(parties, 6)):
                view = inca.View(execution, inca.Adversary([colluder])).of_cohort()
                mus.append(inca.account(view, noise, sensitivity=240.0 / 60).mu.max())
    assert inca.epsilon_for(max(mus), 1e-5) <= 1.0  # the largest mu has the largest epsilon
