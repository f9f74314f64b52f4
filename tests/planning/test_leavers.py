"""The bound on what leavers lose, against the exact accountant on random settled executions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from inca.planning.designs import ProtocolDesign
from inca.planning.leavers import leaver_bounds, level_that_protects_leavers
from level_tables import draw_leaver_bounds

seeds = st.integers(0, 2**32 - 1)


def random_settled_run(seed: int) -> tuple[inca.Execution, inca.Adversary]:
    """Return a settled run in which about a third leaves, at any time, and about a fifth colludes."""
    rng = np.random.default_rng(seed)
    parties, rounds = int(rng.integers(4, 12)), int(rng.integers(2, 8))
    present = np.ones((rounds + 1, parties), dtype=bool)
    for party in np.flatnonzero(rng.random(parties) < 0.35)[: parties - 1]:
        present[rng.integers(1, rounds + 1) :, party] = False
    design = ProtocolDesign("permutation", rounds, quiet=int(rng.integers(0, 2)))
    schedule, presence = design.draw_schedule(parties, seed), inca.Presence.explicit(present)
    colluding = np.flatnonzero(rng.random(parties) < 0.2)[: parties - 1].tolist()
    return inca.Execution(schedule, design.injection(), presence).settled(), inca.Adversary(colluding)


@given(seeds, st.floats(0.3, 5), st.floats(0, 2))
def test_no_leaver_loses_more_than_its_bound(seed: int, independent: float, topup: float) -> None:
    execution, adversary = random_settled_run(seed)
    levels = inca.NoiseLevels(independent=independent, cancelling=1.5, topup=topup)
    losses = inca.account(inca.View(execution, adversary), levels, sensitivity=1.0)
    receivers = np.array([execution.schedule.round(t + 1).receivers[:, 0] for t in range(execution.rounds)]).T
    assert execution.cohort is not None
    hidden = execution.cohort.copy()
    hidden[list(adversary.colluding)] = False
    bounds = leaver_bounds(receivers, hidden[receivers], execution.injection)
    for party, mu in zip(losses.honest, losses.mu, strict=True):
        if not execution.cohort[party]:
            assert (1.5 * mu) ** 2 <= bounds[party] * (1 + 1e-9)


def test_if_nothing_is_hidden_the_masks_make_up_for_all_that_was_injected() -> None:
    injection = inca.incremental_injection(6, quiet=1)
    everything = sum((t / 6) ** 2 for t in range(1, 7))
    assert level_that_protects_leavers(injection) == pytest.approx(everything)
    receivers = np.tile(np.arange(6), (2, 1))
    hidden = np.zeros((2, 6), dtype=bool)
    assert leaver_bounds(receivers, hidden, injection) == pytest.approx([everything] * 2)


@given(seeds)
def test_whoever_leaves_earlier_loses_no_more(seed: int) -> None:
    """Recomputed term by term: the leaver's own masks, and those of whoever holds a part of its change."""
    rng = np.random.default_rng(seed)
    rounds, others = int(rng.integers(2, 10)), int(rng.integers(1, 6))
    shares = rng.random(rounds + 1)
    injection = inca.Injection(shares / shares.sum(), inca.incremental_injection(rounds).noise)
    receivers = rng.integers(others, size=(1, rounds))
    hidden = rng.random((1, rounds)) < 0.7
    bounds = []
    for last in range(1, rounds + 1):
        held, parts, masks = 0.0, np.zeros(others), 0.0
        for t in range(rounds):
            masks += float((parts**2).sum())
            held += injection.value[t]
            if t < last and hidden[0, t]:
                parts[receivers[0, t]] += held / 2
                held /= 2
            elif t < last:
                masks += held**2
        bounds.append(masks)
    assert bounds == sorted(bounds)
    assert leaver_bounds(receivers, hidden, injection)[0] == pytest.approx(
        min(bounds[-1], level_that_protects_leavers(injection))
    )


def test_the_more_are_known_the_more_a_leaver_can_lose() -> None:
    injection, rng = inca.incremental_injection(10, quiet=1), np.random.default_rng(1)
    medians = [float(np.median(draw_leaver_bounds(40, known, injection, 4000, rng))) for known in (0.1, 0.3, 0.6, 1.0)]
    assert medians == sorted(medians) and medians[-1] == pytest.approx(level_that_protects_leavers(injection))


@pytest.mark.parametrize(("parties", "known", "unknown"), [(4, 0.5, 2), (25, 0.28, 18), (3, 0.5, 1)])
def test_a_drawn_leaver_sends_to_any_other_party_alike(parties: int, known: float, unknown: int) -> None:
    """In one round a hidden message costs nothing; how many are hidden is within six standard errors.

    In doubles 0.28 of 25 is a little more than 7, and yet 7 parties are known and 18 are not.
    """
    drawn = draw_leaver_bounds(parties, known, inca.incremental_injection(1), 8000, np.random.default_rng(3))
    hidden, expected = float((drawn == 0.0).mean()), unknown / (parties - 1)
    assert abs(hidden - expected) <= 6 * np.sqrt(expected * (1 - expected) / 8000)
    assert set(drawn.tolist()) <= {0.0, 0.25}
