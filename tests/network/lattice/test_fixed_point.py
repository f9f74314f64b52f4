from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import examples
from inca.network.lattice.fixed_point import Lattice, granularity_for, portion
from inca.network.node.session_setup import added_mu

LARGE = 2**62 - 1
UNFIT = "numbers of 64 bits do not suffice: with"
integers = st.lists(st.one_of(st.integers(-LARGE, LARGE), st.integers(-20, 20)), min_size=1, max_size=5)


@given(integers, st.one_of(st.integers(1, 12), st.just(2**31)))
def test_portions_sum_to_the_whole(values: list[int], pieces: int) -> None:
    value = np.array(values, np.int64)
    some = [r for r in (0, 1, 2, 11, pieces - 1, pieces, pieces + 1) if r >= 0]
    for r in some:
        part = portion(value, r, pieces)
        assert part.dtype == np.int64
        exact = [v * (r + 1) // pieces - v * r // pieces if r < pieces else 0 for v in values]
        assert part.tolist() == exact
    if pieces <= 12:
        assert np.sum([portion(value, r, pieces) for r in range(pieces + 2)], axis=0).tolist() == values


@given(st.integers(-60, 60), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_encoding_rounds_to_the_nearest_and_decoding_returns(exponent: int, values: list[float]) -> None:
    grid = Lattice(2.0**exponent)
    kept = [value for value in values if abs(value) < 2.0**62 * grid.granularity]
    if kept:
        numbers = grid.encode(kept)
        assert numbers.dtype == np.int64
        assert numbers.tolist() == [round(value / grid.granularity) for value in kept]
        assert grid.encode(grid.decode(numbers)).tolist() == numbers.tolist()
        assert (np.abs(grid.decode(numbers) - kept) <= grid.granularity / 2).all()


def test_encoding_at_the_edges() -> None:
    assert Lattice(1.0).encode([0.5, 1.5, 2.5, -0.5]).tolist() == [0, 2, 2, 0]
    assert Lattice(2.0).encode([[3.0], [-5.0]]).tolist() == [[2], [-2]]
    below = math.nextafter(2.0**62, 0)
    assert Lattice(1.0).encode([below, -below]).tolist() == [int(below), -int(below)]
    assert Lattice(0.5).encode([5e-324]).tolist() == [0]
    assert Lattice(0.5).decode(np.array([[2**53 + 1]])).tolist() == [[2.0**52]]
    assert Lattice(0.5).encode(np.empty(0)).size == Lattice(0.5).decode(np.empty(0, np.int64)).size == 0


@given(st.floats(1e-9, 1e9), st.integers(-40, 10))
def test_levels_are_rounded_up(sigma: float, exponent: int) -> None:
    step = 2.0**exponent
    if sigma / step <= 2**50:
        level = Lattice(step).level(sigma)
        assert (level - 1) * step < sigma <= level * step


sigmas = st.floats(1e-12, 1e12)


def certain_to_be_below(noise: inca.NoiseLevels, max_norm: float, parties: int, rounds: int) -> Any:
    """What a balance is below, in fractions: all there is in one place, or what can come there in so many rounds."""
    own, mask, widest = (Fraction(x) for x in (noise.independent, noise.cancelling, max_norm))
    everything = parties * (widest + 16 * own + 32 * (rounds + 1) * mask)
    held, mask = widest + 32 * own, 32 * mask
    for _ in range(rounds):  # one that gets all of its own back, and a share of the one that sends to it
        held = max(held, (held + mask) / 2) + (held + mask) / 2
        if held > everything:
            break
    return min(everything, 2 * (held + mask))


@examples(100, 1000)
@given(
    sigmas,
    sigmas,
    st.one_of(st.just(0.0), sigmas),
    st.floats(0, 1e15),
    st.integers(1, 10**6),
    st.integers(1, 60),
)
def test_granularity_is_the_first_that_fits(
    independent: float, cancelling: float, topup: float, max_norm: float, parties: int, rounds: int
) -> None:
    above = [independent, cancelling]
    noise = inca.NoiseLevels(independent=independent, cancelling=cancelling, topup=topup)
    balance = certain_to_be_below(noise, max_norm, parties, rounds)
    total = parties * (Fraction(max_norm) + 32 * (Fraction(independent) + Fraction(topup)))
    widest = Fraction(max(*above, topup)) * Fraction(17, 16)

    def fits(step: Fraction, slack: Fraction) -> bool:
        return max(balance, total) * slack < 2**62 * step and widest * slack <= 2**50 * step

    finest = Fraction(2.0 ** math.floor(math.log2(min(above) / 2**30)))
    tries = [finest * 2**more for more in range(11)]
    rounding = Fraction(1, 10**12)  # of what is worked out in doubles
    surely, perhaps = ([step for step in tries if fits(step, 1 + sign * rounding)] for sign in (1, -1))
    try:
        step = granularity_for(noise, max_norm, parties, rounds)
    except inca.InvalidInput as problem:
        assert not surely and re.match(UNFIT, str(problem)) and " and balances up to " in str(problem)
        return
    assert step in {*surely[:1], *perhaps[:1]} and min(above) / step >= 2**20
    assert Lattice(step).level(max(above)) <= 2**50


# Settled plans in the proven style: a tenth colluding, a tenth leaving, and the rounds that these take.
PROVEN = [(4, 3), (10, 2), (50, 6), (70, 8), (200, 6), (1_000, 7), (10_000, 7), (100_000, 8), (1_000_000, 8)]
PROVEN_BITS = dict.fromkeys((4, 10, 50, 70, 200, 1_000, 10_000), 30) | {100_000: 26, 1_000_000: 24}


def proven_levels(n: int, rounds: int) -> inca.NoiseLevels:
    """sigma_Delta / sigma_* = (n - c) sqrt(200 (T + 6)), and top-up for the leavers."""
    known = -(-n // 10)
    leavers = min(known, n - known - 2)
    own = 1.0 / np.sqrt(n - known - leavers)
    cancelling = own * (n - known) * np.sqrt(200.0 * (rounds + 6))
    return inca.NoiseLevels(
        independent=own, cancelling=cancelling, topup=own * np.sqrt(leavers / (n - known - leavers))
    )


@pytest.mark.parametrize(("n", "rounds"), PROVEN)
def test_proven_plans_have_a_fine_lattice_at_every_n(n: int, rounds: int) -> None:
    noise = proven_levels(n, rounds)
    step = granularity_for(noise, 1.0, n, rounds)
    assert math.floor(math.log2(noise.independent / step)) == PROVEN_BITS[n]


def test_no_plan_for_up_to_ten_million_parties_is_refused_and_what_is_says_by_how_much() -> None:
    for n in np.unique(np.geomspace(3, 1e7, 300).astype(int)).tolist():
        noise = proven_levels(n, 9) if n > 3 else inca.NoiseLevels(independent=1.0, cancelling=150.0)
        assert noise.independent / granularity_for(noise, 1.0, n, 9) >= 2**20
    with pytest.raises(inca.InvalidInput) as caught:
        granularity_for(proven_levels(100_000_000, 9), 1.0, 100_000_000, 9)
    assert str(caught.value) == (
        "numbers of 64 bits do not suffice: with 0.000111803 for the smaller noise the other may be up to 6.17e+04 "
        "and balances up to 2.68e+08, got 5.51e+05 and 1.81e+09"
    )


@pytest.mark.parametrize(("dimension", "most"), [(1, 1e-6), (1_000_000, 1e-3)])
def test_rounding_adds_next_to_nothing_to_what_proven_plans_lose(dimension: int, most: float) -> None:
    for n, rounds in ((1_000, 7), (10_000, 7)):
        noise = proven_levels(n, rounds)
        step = granularity_for(noise, 1.0, n, rounds)
        in_steps = inca.NoiseLevels(
            independent=noise.independent / step, cancelling=noise.cancelling / step, topup=noise.topup / step
        )
        assert added_mu(in_steps, rounds=rounds, dimension=dimension, weights=np.ones(n)) < most  # of a mu of 1


def granularity(independent: float, cancelling: float, *sizes: Any) -> float:
    return granularity_for(inca.NoiseLevels(independent=independent, cancelling=cancelling), *sizes)


def test_granularity_in_examples() -> None:
    assert granularity(1.0, 1.0, 1.0, 10, 5) == granularity(3.0, 1.99, 1.0, 10, 5) == 2.0**-30
    assert granularity(4.0, 1e5, 1.0, 10, 5) == 2.0**-28
    # 2^12 parties with 2^24 and some each have more than 2^36 in all, which is 2^62 steps of 2^-26.
    assert granularity(1.0, 1.0, 2.0**24, 2**12, 5) == 2.0**-25
    # And as many with a top-up of 2^16 may have 2^12 times 32 of these, and some.
    noise = inca.NoiseLevels(independent=1.0, cancelling=1.0, topup=2.0**16)
    assert granularity_for(noise, 1.0, 2**12, 5) == 2.0**-28


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (
        granularity,
        (1.0, 1.0, 1e300, 2, 1),
        f"{UNFIT} 1 for the smaller noise the other may be up to 1.01e+09 and balances up to 4.4e+12, got 1 and 2e+300",
    ),
    (granularity, (1e-310, 1.0, 0.0, 2, 1), f"{UNFIT} 1e-310 for the smaller noise"),
    (
        granularity,
        (1.0, 2.0**31, 0.0, 2, 1),
        f"{UNFIT} 1 for the smaller noise the other may be up to 1.01e+09 and balances up to 4.4e+12, got 2.15e+09 and",
    ),
    (
        granularity,
        (1.0, 1e308, 1e308, 2, 1),
        f"{UNFIT} 1 for the smaller noise the other may be up to 1.01e+09 and balances up to 4.4e+12, got 1e+308 and",
    ),
    (Lattice(0.5).level, (2.0**50,), "sigma must be from 0 to 5.6295e+14, got 1125899906842624.0"),
    (Lattice(2.0**-1000).level, (1e300,), "sigma must be from 0 to 1.05076e-286, got 1e+300"),
]


@pytest.mark.parametrize(("call", "arguments", "sentence"), REFUSED)
def test_refusals(call: Callable[..., Any], arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call(*arguments)
    assert str(caught.value).startswith(sentence)
