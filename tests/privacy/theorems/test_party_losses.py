"""The loss of a party against many coalitions: never below an exact one, and too high only if an exact one is."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from operator import ge

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.exact_losses import exact_squares
from helpers.examples import examples
from helpers.joined import joined_levels, joined_view
from helpers.strategies import generator, seeds
from inca.privacy.theorems.party_losses import PartyLosses
from inca.protocol.rounding import Rounding

NONE = Rounding(0.0, 0.0)


def exact_mus(run: inca.Execution, levels: inca.NoiseLevels, party: int, size: int) -> dict[tuple[int, ...], float]:
    """Return the loss against each coalition, worked out in fractions until the root."""
    mus = {}
    for coalition in combinations([other for other in range(run.parties) if other != party], size):
        view = inca.View(run, inca.Adversary(coalition)).of_cohort()
        place = view.honest.tolist().index(party)
        try:
            mus[coalition] = math.sqrt(exact_squares(view, levels)[place])
        except ZeroDivisionError:  # with portions of 0 rows may depend on each other
            mus[coalition] = float(inca.account(view, levels, sensitivity=1.0).mu[place])
    return mus


@given(seeds, st.integers(0, 3))
@examples(quick=12, thorough=3000)
def test_no_loss_is_above_what_is_said_and_it_is_too_high_only_if_a_loss_is(seed: int, colluders: int) -> None:
    """Paths, stars, circles, trees, permutations, absences, leavers, shares that failed: against every coalition."""
    run, levels, rng = joined_view(seed, largest=6, most_rounds=4).execution, joined_levels(seed), generator(seed)
    assert run.cohort is not None
    party, size = int(rng.choice(np.flatnonzero(run.cohort))), min(colluders, run.parties - 1)
    mus = exact_mus(run, levels, party, size)
    largest, median = max(mus.values()), sorted(mus.values())[len(mus) // 2]
    losses = PartyLosses(run, levels, party=party, sensitivity=1.0, rounding=NONE)
    coalitions = np.array(list(mus), dtype=np.intp).reshape(len(mus), size)

    every = losses.against_every(size)
    assert every is None or every >= largest * (1 - 1e-9)
    bound = losses.worst(coalitions, lambda mu: True)
    assert bound.coalition is None and bound.coalitions == len(mus) and bound.mu >= largest * (1 - 1e-9)
    assert every is None or every >= bound.mu * (1 - 1e-9)

    exact = losses.worst(coalitions, lambda mu: False, accounts=len(mus))  # all are too high: the first decides
    assert exact.coalition is not None and exact.coalitions == 1
    assert exact.mu == pytest.approx(mus[exact.coalition], rel=1e-6, abs=1e-12)
    for allowed in (0.9 * largest, 1.0001 * largest, *([median] if median < 0.9999 * largest else [])):
        worst = losses.worst(coalitions, partial(ge, allowed), accounts=len(mus))
        assert (worst.mu <= allowed) is (largest <= allowed)
        if worst.mu <= allowed:
            assert worst.coalitions == len(mus) and worst.mu >= largest * (1 - 1e-9)
        if worst.coalition is not None:
            assert worst.mu == pytest.approx(mus[worst.coalition], rel=1e-6, abs=1e-12)


def path_of(n: int) -> inca.Execution:
    """Return a path 0, 1, ..., n - 1 in which only neighbours exchange messages, in one round each."""
    receivers = np.full((2, n, 1), -1)
    receivers[0, :-1, 0], receivers[1, 1:, 0] = np.arange(1, n), np.arange(n - 1)
    return inca.Execution(inca.ExplicitSchedule(receivers), inca.incremental_injection(2)).settled()


def losses_of(run: inca.Execution, party: int, cancelling: float = 1e4, **changes: float) -> PartyLosses:
    levels = inca.NoiseLevels(independent=1.0, cancelling=cancelling)
    rounding = Rounding(changes.get("excess", 0.0), changes.get("added", 0.0))
    return PartyLosses(run, levels, party=party, sensitivity=1.0, rounding=rounding)


def test_of_coalitions_those_come_first_that_leave_least() -> None:
    losses = losses_of(path_of(9), party=4)
    coalitions = np.array([[0, 8], [3, 5], [2, 6], [3, 7], [1, 7]])
    ordered = losses.worst_first(coalitions).tolist()
    assert ordered == [[3, 5], [3, 7], [2, 6], [1, 7], [0, 8]]  # 3 saw more than 2 and 6


def test_among_equal_ones_those_come_first_that_saw_more_of_the_party() -> None:
    circle = inca.Execution(inca.CircleSchedule(9, rounds=2), inca.incremental_injection(2)).settled()
    ordered = losses_of(circle, party=0).worst_first(np.array([[4, 5], [1, 4], [8, 7], [3, 2]]))
    assert ordered[0].tolist() == [8, 7] and ordered[-1].tolist() == [4, 5]


def test_after_so_many_accounts_these_decide() -> None:
    """With little cancelling noise no bound is of use, though no loss is above what is allowed."""
    circle = inca.Execution(inca.CircleSchedule(9, rounds=2), inca.incremental_injection(2)).settled()
    losses = losses_of(circle, party=0, cancelling=1.0)
    coalitions = np.array(list(combinations(range(1, 9), 2)))
    mus = [losses.exact(tuple(row)) for row in losses.worst_first(coalitions).tolist()]
    few = losses.worst(coalitions, lambda mu: mu < 1.0, accounts=5)
    assert (few.mu, few.coalitions) == (max(mus[:5]), 5) and few.coalition is not None
    every = losses.worst(coalitions, lambda mu: mu < 1.0, accounts=len(mus))
    assert (every.mu, every.coalitions) == (max(mus), 28)
    assert losses.worst(coalitions, lambda mu: mu < min(mus)).coalitions == 1  # the first refuses


def test_losses_are_in_whole_numbers() -> None:
    plain, whole = (losses_of(path_of(5), 2, excess=excess, added=added) for excess, added in ((0, 0), (0.25, 0.5)))
    assert whole.exact((1,)) == pytest.approx(plain.exact((1,)) / 1.25 + 0.5)
    every = plain.against_every(0), whole.against_every(0)
    assert every[0] is not None and every[1] == pytest.approx(every[0] / 1.25 + 0.5)
    assert whole.worst(np.array([[1]]), lambda mu: True).mu > 0.5


def test_whoever_has_no_noise_left_has_no_bound() -> None:
    run = path_of(4)
    levels = inca.NoiseLevels(independent=0.0, cancelling=5.0)
    losses = PartyLosses(run, levels, party=1, sensitivity=1.0, rounding=NONE)
    assert losses.against_every(0) == math.inf
