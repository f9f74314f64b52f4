"""No loss that a session states is below that of all that was really delivered, worked out from journals alone."""

from __future__ import annotations

import pytest

from helpers.delivered_loss import worst_ratio
from helpers.network_faults import without_faults
from helpers.simulated_network import SimulatedNetwork


def ended(seed: int, *, faults: bool) -> SimulatedNetwork:
    network = SimulatedNetwork(seed, faults=None if faults else without_faults())
    network.run()
    network.check_end()
    return network


@pytest.mark.parametrize("seeds", [range(3, 6), pytest.param(range(30), marks=pytest.mark.slow)])
def test_stated_losses_cover_everything_that_was_delivered(seeds: range) -> None:
    counts, ratios = zip(*(worst_ratio(ended(seed, faults=True)) for seed in seeds), strict=True)
    assert sum(counts) > 10 and max(ratios) <= 1 + 1e-6


def test_without_faults_stated_losses_are_exactly_those_of_what_was_delivered() -> None:
    """Two computations that share nothing: so neither the one nor the other leaves anything out."""
    for seed in range(5):
        count, ratio = worst_ratio(ended(seed, faults=False))
        assert count > 0 and ratio == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_stated_losses_of_many_sessions() -> None:
    assert max(worst_ratio(ended(seed, faults=True))[1] for seed in range(1000, 1300)) <= 1 + 1e-6
