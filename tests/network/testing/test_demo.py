"""The demonstration's noise suffices for any number of parties that may be asked for."""

from __future__ import annotations

import numpy as np
import pytest

import inca
from inca.network.testing.demo import noise_levels

# The smallest, one between, the last with more noise than planned, and the first and the last with the plan's.
QUICK = (4, 7, 11, 12, 24)
SLOW = (5, 6, 8, 9, 10, 13)


@pytest.mark.parametrize("parties", [*QUICK, *(pytest.param(count, marks=pytest.mark.slow) for count in SLOW)])
def test_its_noise_keeps_the_agreed_loss_against_every_single_party(parties: int) -> None:
    rng = np.random.default_rng(parties)
    noise = noise_levels(parties)
    for seed in range(5):
        schedule = inca.PermutationReceivers(parties, rounds=20, seed=seed)
        for rate in (0.0, 0.2, 0.4):
            presence = inca.Presence.leaving(parties, 20, rate, rng)
            execution = inca.Execution(schedule, inca.incremental_injection(20, quiet=4), presence)
            for colluder in range(min(parties, 6)):
                losses = inca.account(inca.View(execution, inca.Adversary([colluder])), noise, sensitivity=240.0)
                assert losses.epsilon(1e-5).max() < 8.0
