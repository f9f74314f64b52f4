"""The bound by a flow along hidden messages, against the exact accountant party by party."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from inca.errors import InvalidInput
from inca.privacy.theorems.explicit_bound import explicit_bound

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.floats(0.2, 5), st.floats(0.2, 20), st.booleans())
def test_no_party_loses_more_than_the_bound(seed: int, independent: float, cancelling: float, settled: bool) -> None:
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(3, 14)), int(rng.integers(1, 12))
    variances = rng.uniform(0.3, 3.0, rounds) if rng.random() < 0.5 else None
    injection = inca.incremental_injection(rounds, quiet=int(rng.integers(0, rounds)), variances=variances)
    kind = [inca.PermutationReceivers, inca.RandomReceivers][int(rng.integers(2))]
    presence = inca.Presence.leaving(n, rounds, 0.3 if settled else 0.0, rng)
    execution = inca.Execution(kind(n, rounds, seed=seed), injection, presence)
    adversary = inca.Adversary.random(n, rounds, rng, colluding=0.2, eavesdropped=0.1 * float(rng.integers(2)))
    view = inca.View(execution, adversary)
    if settled:
        cohort = np.flatnonzero(presence.row(rounds))
        assume(len(set(cohort.tolist()) - set(adversary.colluding)) > 0)
        view = inca.View(execution.settled(), adversary).of_cohort()
    levels = inca.NoiseLevels(independent=independent, cancelling=cancelling)
    exact = inca.account(view, levels, sensitivity=2.0).mu
    assert (exact <= explicit_bound(view).mu(levels, sensitivity=2.0) * (1 + 1e-9)).all()


def test_if_nothing_is_hidden_every_party_is_on_its_own() -> None:
    """Nothing moves: Z_t = C_t f, r = f, and known messages need no masks: Local DP."""
    run = inca.Execution(inca.PermutationReceivers(6, 5, seed=1), inca.incremental_injection(5))
    everything = inca.Adversary(eavesdropped=[(t, party) for t in range(5) for party in range(6)])
    bound = explicit_bound(inca.View(run, everything))
    assert bound.independent == pytest.approx(np.ones((6, 2, 2)))
    assert bound.cancelling == pytest.approx(np.zeros((6, 2, 2)))
    assert np.isinf(bound.least_levels(1.1)).all() and (bound.least_levels(6.1) < 1e-6).all()


def test_a_party_of_its_own_needs_no_masks() -> None:
    run = inca.Execution(inca.PermutationReceivers(3, 4, seed=1), inca.incremental_injection(4))
    bound = explicit_bound(inca.View(run, inca.Adversary([0, 1])))
    assert (bound.independent == 1.0).all() and (bound.cancelling == 0.0).all()
    noise = inca.NoiseLevels(independent=0.5, cancelling=0.0)
    assert bound.mu(noise, sensitivity=1.0).tolist() == [2.0]


def test_the_least_level_is_where_the_bound_meets_the_allowed_loss() -> None:
    run = inca.Execution(inca.PermutationReceivers(40, 24, seed=1), inca.incremental_injection(24, quiet=12))
    bound = explicit_bound(inca.View(run, inca.Adversary(range(4))))
    levels = bound.least_levels(1.1)
    for party in (0, 17, 35):
        noise = inca.NoiseLevels(independent=math.sqrt(1.1 / 36), cancelling=math.sqrt(levels[party]))
        assert bound.mu(noise, sensitivity=1.0)[party] == pytest.approx(1.0)
    assert np.isinf(bound.least_levels(1.0)).all()


def test_what_it_does_not_cover_is_refused() -> None:
    two = inca.Execution(inca.RandomReceivers(5, 3, 2, seed=1), inca.incremental_injection(3))
    with pytest.raises(InvalidInput, match="receivers per round must be 1"):
        explicit_bound(inca.View(two))
    gone = inca.Presence.explicit([[1, 1, 1], [1, 1, 0], [1, 1, 0]])
    left = inca.Execution(inca.PermutationReceivers(3, 2, seed=1), inca.incremental_injection(2), gone)
    with pytest.raises(InvalidInput, match="present in all rounds"):
        explicit_bound(inca.View(left))
    early = inca.Execution(inca.PermutationReceivers(3, 2, seed=1), inca.early_injection(2))
    with pytest.raises(InvalidInput, match="incremental, with one mask a round"):
        explicit_bound(inca.View(early))
    fine = inca.Execution(inca.PermutationReceivers(3, 2, seed=1), inca.incremental_injection(2))
    with pytest.raises(InvalidInput, match="sigma_topup must be 0"):
        explicit_bound(inca.View(fine)).mu(inca.NoiseLevels(independent=1, cancelling=1, topup=1), sensitivity=1.0)


def test_in_one_round_of_three_it_is_what_the_formula_says() -> None:
    """Each sends half to the next, party 2 to party 0; masks of twice the variance cost half."""
    injection = inca.incremental_injection(1, variances=[2.0])
    run = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]]), injection)
    bound = explicit_bound(inca.View(run))
    f = np.array([2 / 3, -1 / 3, -1 / 3])
    residue = f / 4 + np.roll(f, 1) / 4 + f / 2
    assert bound.independent[0] == pytest.approx(np.full((2, 2), 1 / 3 + float(residue @ residue)))
    assert bound.cancelling[0] == pytest.approx(np.full((2, 2), float(residue @ residue) / 4 / 2.0))


def test_the_second_flow_passes_on_more_before_known_messages() -> None:
    """Two parties, the second and third message of party 0 are known: R = 2, so b = 2/3 in its first round."""
    run = inca.Execution(inca.ExplicitSchedule([[[1], [0]]] * 3), inca.incremental_injection(3, quiet=2))
    bound = explicit_bound(inca.View(run, inca.Adversary(eavesdropped=[(1, 0), (2, 0)])))
    f, c = np.array([0.5, -0.5]), [0.5, 0.5, 0.0, 0.0]
    states = [c[0] * f]
    for t, sent in enumerate(([5 / 6, 1 / 2], [0, 1 / 2], [0, 1 / 2])):
        moved = np.array(sent) * states[-1]
        states.append(states[-1] - moved + moved[::-1] + c[t + 1] * f)
    residue = states[-1]
    masks = np.array([np.array([2 / 3, 0]) * states[0], [-states[1][0], 0], [-states[2][0], 0]])
    masks += np.cumsum(c)[:3, np.newaxis] * residue
    assert bound.independent[0, 1, 1] == pytest.approx(1 / 2 + float(residue @ residue))
    assert bound.cancelling[0, 1, 1] == pytest.approx(float(np.sum(masks**2)))


def test_the_mixture_is_no_worse_than_either_flow() -> None:
    run = inca.Execution(inca.PermutationReceivers(40, 24, seed=1), inca.incremental_injection(24, quiet=12))
    bound = explicit_bound(inca.View(run, inca.Adversary(range(12))))
    levels = bound.least_levels(1.5)
    for flow in (0, 1):
        left = 1 - bound.independent[:, flow, flow] * 28 / 1.5
        alone = np.where(left > 0, bound.cancelling[:, flow, flow] / np.where(left > 0, left, 1), np.inf)
        assert (levels <= alone * (1 + 1e-9)).all() and (levels < 0.99 * alone).any()


def test_no_other_mixture_is_better() -> None:
    run = inca.Execution(inca.PermutationReceivers(40, 24, seed=1), inca.incremental_injection(24, quiet=12))
    bound = explicit_bound(inca.View(run, inca.Adversary(range(12))))
    best = bound.least_levels(1.5)
    for second in np.linspace(-2, 3, 201):
        mixture = np.array([1 - second, second])
        independent, cancelling = bound.independent @ mixture @ mixture, bound.cancelling @ mixture @ mixture
        left = 1 - independent * 28 / 1.5
        levels = np.where(left > 0, cancelling / np.where(left > 0, left, 1), np.inf)
        assert (best <= levels * (1 + 1e-6)).all()
