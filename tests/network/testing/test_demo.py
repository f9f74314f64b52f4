"""The demonstration's noise suffices for any number of parties that may be asked for, however many are killed."""

from __future__ import annotations

import numpy as np
import pytest

import inca
from inca.network.protocol.session import quorum_of
from inca.network.testing.demo import kill_rounds, planned

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


@pytest.mark.parametrize("parties", [4, 5, 12, 30, 60])
def test_a_plan_is_made_for_all_that_are_to_be_killed(parties: int) -> None:
    """One more or less than a quarter makes no difference; all that may be killed do, up to those who must agree."""
    usual, most = planned(parties), parties - quorum_of(parties)
    assert planned(parties, parties // 4).requirements == usual.requirements
    assert planned(parties, most).requirements.leavers == max(most, usual.requirements.leavers)
    assert planned(parties, most).requirements.survivors >= 3


def test_twelve_parties_have_three_rounds_and_need_no_seed() -> None:
    design = planned(12, 3).design
    assert (design.rounds, design.schedule) == (3, "circle") and planned(12).failure_probability == 0.0


@pytest.mark.parametrize("rounds", range(2, 9))
def test_kills_are_spread_over_all_rounds(rounds: int) -> None:
    for victims in range(1, 30):
        at = kill_rounds(victims, rounds)
        assert len(at) == victims and at[0] == 1 and at == sorted(at) and at[-1] <= rounds
        assert max(map(at.count, at)) <= -(-victims // rounds), "no round has more than its part"
