"""CorDP-DME: who shares a term with whom, what it costs, and what is not attempted."""

from __future__ import annotations

import math
from itertools import combinations
from typing import cast

import numpy as np
import pytest

from helpers.strategies import generator
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.pairwise import complete_loss
from inca.planning.requirements import Requirements
from inca.protocol.noise_levels import NoiseLevels

REQUIREMENTS = Requirements(parties=5, epsilon=0.7, delta=1e-4, colluding=0.2, dropout=0.2)
LEVELS = NoiseLevels(independent=1.0, cancelling=3.0)


class OneTerm:
    """In place of a generator: numbers that are all 0, but for one of them, which is 1."""

    def __init__(self, place: int) -> None:
        self.place, self.drawn = place, 0

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        numbers = np.zeros(math.prod(shape))
        if 0 <= self.place - self.drawn < numbers.size:
            numbers[self.place - self.drawn] = 1.0
        self.drawn += numbers.size
        return numbers.reshape(shape)


def terms_of(numbers: OneTerm, dimension: int) -> Array:
    """Return what five parties add to their messages."""
    messages = np.zeros((5, dimension))
    CorDP(REQUIREMENTS, noise_levels=LEVELS)._add_terms(
        messages, np.ones(5, dtype=np.bool_), cast(np.random.Generator, numbers)
    )
    return messages


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_every_pair_shares_one_term_per_coordinate_that_one_adds_and_the_other_subtracts(
    dimension: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inca.mechanisms.cordp._BLOCK", rows * 5 * dimension)
    silent = OneTerm(-1)
    assert not terms_of(silent, dimension).any()
    shared = []
    for place in range(silent.drawn):
        messages = terms_of(OneTerm(place), dimension)
        if messages.any():
            (adds, first), (subtracts, second) = np.argwhere(messages == 3.0)[0], np.argwhere(messages == -3.0)[0]
            assert np.count_nonzero(messages) == 2 and first == second
            shared.append((min(adds, subtracts), max(adds, subtracts), first))
    assert sorted(shared) == [(i, j, c) for i, j in combinations(range(5), 2) for c in range(dimension)]


class Counting(OneTerm):
    """Numbers that are all 0, and how many were drawn at a time."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.sizes: list[int] = []

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        self.sizes.append(math.prod(shape))
        return super().standard_normal(shape)


@pytest.mark.parametrize(
    ("block", "expected"), [(1, [10, 8, 6, 4, 2]), (20, [20, 12, 2]), (49, [40, 2]), (50, [50]), (None, [50])]
)
def test_at_most_a_block_of_terms_is_in_memory_but_a_row_at_least(
    block: int | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if block is not None:
        monkeypatch.setattr("inca.mechanisms.cordp._BLOCK", block)
    numbers = Counting()
    terms_of(numbers, 2)
    assert numbers.sizes == expected


def test_two_thousand_parties_do_not_draw_all_their_terms_at_once() -> None:
    cordp, numbers = CorDP(Requirements(2000, 0.7, 1e-4, colluding=0.0, dropout=0.0), noise_levels=LEVELS), Counting()
    cordp._add_terms(np.zeros((2000, 1)), np.ones(2000, dtype=np.bool_), cast(np.random.Generator, numbers))
    assert max(numbers.sizes) <= 2**21 and len(numbers.sizes) == 2  # 16 MiB


def test_a_run_of_more_terms_than_can_be_drawn_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    cordp = CorDP(REQUIREMENTS, noise_levels=LEVELS)
    monkeypatch.setattr("inca.mechanisms.cordp._MAX_TERMS", 50.0)
    assert cordp.run(np.zeros((5, 2)), generator(1)) is not None
    with pytest.raises(InvalidInput, match=r"n\^2 d must be at most 50 \(all pairs share d numbers\), got 75"):
        cordp.run(np.zeros((5, 3)), generator(1))


def test_a_leaver_leaves_a_term_with_each_survivor() -> None:
    """The error by the definition: m own terms and m times l shared ones in a sum that is divided by m."""
    cordp = CorDP(
        Requirements(parties=20, epsilon=0.7, delta=1e-4, variance=0.0, colluding=0.0, dropout=0.0), noise_levels=LEVELS
    )
    for leavers in range(20):
        m = 20 - leavers
        expected = (m * 1.0**2 + m * leavers * 3.0**2) / m**2
        assert cordp.expected_error(leavers / 20).mse == pytest.approx(expected)
        assert cordp.lower_bound(leavers / 20) == pytest.approx(expected)


def test_the_guarantee_never_fails_and_holds_however_many_leave() -> None:
    requirements = Requirements(parties=20, epsilon=0.7, delta=1e-4, colluding=0.2, dropout=0.1, failure=1e-6)
    cordp = CorDP(requirements)
    assert cordp.any_dropout and cordp.failure_probability == 0.0 and cordp.promised
    losses = [complete_loss(16, cordp.noise_levels, late=late) for late in range(16)]
    assert losses[0] == pytest.approx(requirements.mu, rel=1e-9) and losses == sorted(losses, reverse=True)


def test_messages_go_to_everyone_else_and_noise_that_is_handed_in_promises_nothing() -> None:
    cordp = CorDP(REQUIREMENTS, noise_levels=LEVELS)
    assert cordp.messages == 4.0 and cordp.noise_levels == LEVELS and not cordp.promised


def test_no_factor_on_a_fine_grid_needs_less_noise_than_the_chosen_one() -> None:
    requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
    chosen = CorDP(requirements).lower_bound(0.1)
    others = [CorDP(requirements, factor).lower_bound(0.1) for factor in np.geomspace(1.01, 180.0, 400).tolist()]
    assert chosen <= 1.01 * min(others)
