"""The sum over all ledgers, kept up to date party by party: always the one that all ledgers together give."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.ledger_sums import Violation
from helpers.simulated_network import SimulatedNetwork


class Compared(SimulatedNetwork):
    """Adds up all ledgers beside those that have changed."""

    checks = 0

    def check(self) -> None:
        super().check()
        self.checks += 1
        assert np.array_equal(self._sums.running_difference(), self.difference())


@pytest.mark.parametrize("first", [10, *(pytest.param(first, marks=pytest.mark.slow) for first in range(12, 50, 2))])
def test_the_running_sum_is_that_of_all_ledgers_under_all_faults(first: int) -> None:
    networks = [Compared(seed) for seed in range(first, first + 2)]
    for network in networks:
        network.run()
        network.check_end()
    assert sum(network.checks for network in networks) > 40
    assert any(network.crashes for network in networks)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_a_unit_too_much_is_seen_by_both_sums(seed: int) -> None:
    network = Compared(seed)
    network.run()
    i, ledger = network.ledgers()[-1]
    ledger.balance = ledger.balance + 1
    network._sums.changed(i)
    assert network.difference().tolist() == network._sums.running_difference().tolist()
    with pytest.raises(Violation, match="do not add up"):
        network.check()


def test_a_session_that_takes_more_steps_than_allowed_is_a_violation_that_says_so() -> None:
    with pytest.raises(Violation, match="after 51 steps"):
        SimulatedNetwork(1).run(max_steps=50)
