"""Cancelling noise many times the independent one, as plans have it: losses of settled runs beside exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import inca
from helpers.exact_losses import exact_squares
from helpers.examples import cases
from helpers.strategies import generator
from inca._base.types import Array
from inca.privacy.accountant import Method

NEVER_BELOW = Fraction(1, 10**12)  # of mu^2
TEN_DIGITS, SIX_DIGITS = Fraction(1, 10**10), Fraction(1, 10**6)
RATIOS = (1e-7, 1e-3, 1.0, 1e2, 1e4, 1e6, 1e7, 1e8)
METHODS: tuple[Method, ...] = ("state-space", "dense", "conjugate-gradients", "auto")


def circle(n: int, rounds: int) -> Array:
    """In round r party i sends to i + r."""
    return np.array([[[(i + r) % n] for i in range(n)] for r in range(1, rounds + 1)])


def permutations(n: int, rounds: int, rng: np.random.Generator) -> Array:
    """In each round all parties send along a random cycle."""
    receivers = np.empty((rounds, n, 1), dtype=int)
    for t in range(rounds):
        order = rng.permutation(n)
        receivers[t, order, 0] = np.roll(order, 1)
    return receivers


def anyone(n: int, rounds: int, rng: np.random.Generator) -> Array:
    """All send to one of their own group, or to nobody: several components, and some of a single party."""
    group = rng.integers(0, 3, n)
    receivers = np.full((rounds, n, 1), -1)
    for t in range(rounds):
        for i in range(n):
            others = np.flatnonzero((group == group[i]) & (np.arange(n) != i))
            if others.size and rng.random() < 0.8:
                receivers[t, i, 0] = rng.choice(others)
    return receivers


def settled_view(seed: int, n: int | None = None) -> inca.View:
    """Leavers leave at any time, one honest party at least stays, and the adversary knows what leavers know."""
    rng = generator(seed)
    n = int(rng.integers(4, 11)) if n is None else n
    rounds = int(rng.integers(1, min(n, 6)))
    kind = rng.integers(3)
    receivers = circle(n, rounds) if kind == 0 else (permutations if kind == 1 else anyone)(n, rounds, rng)
    order, leavers = rng.permutation(n), int(rng.integers(0, n // 3 + 1))
    colluders = int(rng.integers(0, n // 3 + 1))
    left = np.full(n, rounds + 1)
    left[order[:leavers]] = rng.integers(1, rounds + 1, leavers)
    present = np.arange(rounds + 1)[:, np.newaxis] < left
    presence = inca.Presence.explicit(present)
    run = inca.Execution(inca.ExplicitSchedule(receivers), inca.incremental_injection(rounds), presence)
    colluding = order[leavers : leavers + colluders].tolist()
    return inca.View(run.settled(present[-1]), inca.Adversary(colluding)).of_cohort()


def off(mu: Array, squares: list[Fraction]) -> tuple[Fraction, Fraction]:
    """Return by which part of it mu^2 is off, the least and the most."""
    ratios = [Fraction(loss) ** 2 / square - 1 for loss, square in zip(mu.tolist(), squares, strict=True)]
    return min(ratios), max(ratios)


def hold_against_the_truth(view: inca.View, levels: inca.NoiseLevels) -> list[str]:
    """Compare all methods, and return which refuse."""
    truth = exact_squares(view, levels)
    refusing: list[str] = []
    for method in METHODS:
        if method == "dense" and levels.ratio > 1e8:
            continue
        try:
            mu = inca.account(view, levels, sensitivity=1.0, method=method).mu
        except inca.InvalidInput as problem:
            assert "double precision does not tell" in str(problem)
            refusing.append(method)
            continue
        least, most = off(mu, truth)
        few = method not in ("dense", "auto") and levels.ratio < 1.0
        assert least >= -NEVER_BELOW, (method, levels, float(least))
        assert most <= (SIX_DIGITS if few else TEN_DIGITS), (method, levels, float(most))
    return refusing


def hold_views_against_the_truth(seeds: range) -> None:
    """With little cancelling noise only the dense method tells ten digits; it is there up to a ratio of 1e8."""
    for seed in seeds:
        rng = generator(seed)
        for topup in (0.0, 10.0 ** rng.uniform(-3, 1)):
            for ratio in (*rng.choice(RATIOS, 3, replace=False), 10.0 ** rng.uniform(8, 12)):
                levels = inca.NoiseLevels(independent=0.37, cancelling=0.37 * ratio, topup=topup)
                refusing = hold_against_the_truth(settled_view(seed), levels)
                may = ["state-space", "conjugate-gradients"] if ratio < 1.0 else []
                assert set(refusing) <= set(may), (seed, levels)


def test_settled_runs() -> None:
    hold_views_against_the_truth(range(cases(4, 8)))


@pytest.mark.slow
def test_more_settled_runs() -> None:
    hold_views_against_the_truth(range(8, 150))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_fifty_parties(seed: int) -> None:
    view = settled_view(seed, n=50)
    for ratio in (1e2, 1e5, 1e8):
        assert hold_against_the_truth(view, inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=0.3)) == []


@pytest.mark.parametrize("topup", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_two_hundred_parties_lose_the_same_by_every_method(topup: float) -> None:
    """Four times what is proven to suffice, and 900 times that."""
    n, rounds, known = 200, 6, 20
    rng = generator(5)
    left = np.where(np.arange(n) < known, rng.integers(1, rounds + 1, n), rounds + 1)
    present = np.arange(rounds + 1)[:, np.newaxis] < left
    schedule = inca.ExplicitSchedule(permutations(n, rounds, rng))
    run = inca.Execution(schedule, inca.incremental_injection(rounds), inca.Presence.explicit(present))
    view = inca.View(run.settled(present[-1]), inca.Adversary(range(known, 2 * known))).of_cohort()
    needed = 4.0 * (n - known) * np.sqrt(200.0 * (rounds + 6))
    for ratio in (needed, 900.0 * needed):
        levels = inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=topup)
        plain = inca.account(view, levels, sensitivity=1.0, method="dense").mu
        for method in ("state-space", "conjugate-gradients"):
            np.testing.assert_allclose(inca.account(view, levels, sensitivity=1.0, method=method).mu, plain, rtol=1e-10)
        assert inca.account(view, levels, sensitivity=1.0).method == "state-space"
        stays = n - 2 * known  # all that is told is the sum of theirs
        assert plain.max() == pytest.approx(1.0 / np.sqrt(stays * (1.0 + topup**2)), rel=1e-2)
