"""Noise that is topped up: enough for those who stayed, whoever they are, and the error that it leaves."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import inca
from inca.errors import InvalidInput
from inca.planning.designs import ProtocolDesign
from inca.planning.settled_noise import SettledNoise, price

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([1.02, 1.1, 1.5, 2.0]))
def test_topped_up_noise_protects_whom_noise_from_the_start_protects(seed: int, factor: float) -> None:
    """Take the least level at which noise from the start keeps every survivor's loss; leavers count as colluders."""
    rng = np.random.default_rng(seed)
    parties = int(rng.integers(8, 24))
    requirements = inca.Requirements(parties, 1.0, 1e-5, colluding=0.15, dropout=0.25)
    leavers = int(rng.integers(1, requirements.leavers + 1))
    design = ProtocolDesign("permutation", int(rng.integers(5, 9)), quiet=1)
    presence = inca.Presence.leaving(parties, design.rounds, leavers / parties, rng)
    execution = inca.Execution(design.draw_schedule(parties, seed), design.injection(), presence).settled()
    adversary = inca.Adversary.random(parties, design.rounds, rng, colluding=requirements.colluding)
    view = inca.View(execution, adversary).of_cohort()
    least = factor / max(1, requirements.honest - leavers)

    def protects(level: float) -> bool:
        start = inca.NoiseLevels(independent=math.sqrt(least), cancelling=math.sqrt(level))
        return inca.account(view, start, sensitivity=1.0).max_mu <= 1.0

    levels_tried = np.geomspace(0.1, 200.0, 40).tolist()
    place = bisect_left(levels_tried, True, key=protects)
    assume(place < len(levels_tried))
    level = levels_tried[place]
    noise = SettledNoise.enough(requirements, design.injection(), factor, level)
    levels = inca.NoiseLevels(
        independent=math.sqrt(noise.start),
        cancelling=math.sqrt(noise.level),
        topup=math.sqrt(noise.topup(leavers)),
    )
    assert inca.account(view, levels, sensitivity=1.0).max_mu <= 1.0 + 1e-9


def example(**changes: float) -> inca.Plan:
    fields = {"parties": 60, "epsilon": 1.0, "delta": 1e-5, "colluding": 0.1, "dropout": 0.2} | changes
    return inca.plan(inca.Requirements(**fields))  # type: ignore[arg-type]


def test_nobody_tops_up_if_nobody_left_and_more_do_if_more_left() -> None:
    noise = example().settled_noise
    topups = [noise.topup(leavers) for leavers in range(60)]
    assert topups[0] == 0.0 and topups[:13] == sorted(topups[:13])  # 12 leavers are planned for
    assert all(0.0 <= topup < math.inf for topup in topups)
    assert topups[40] == noise.total(40) - noise.start > noise.start


def test_all_survivors_together_have_the_factor_at_least() -> None:
    plan = example()
    for leavers in range(13):
        assert plan.settled_noise.total(leavers) * (54 - leavers) >= plan.factor * (1 - 1e-8)


OVERRUN = [
    {"parties": 60, "colluding": 0.1, "dropout": 0.0, "messages": 8},
    {"parties": 60, "colluding": 0.2, "dropout": 0.0, "messages": 10},
    {"parties": 60, "colluding": 0.3, "dropout": 0.05, "messages": 20},
]


@pytest.mark.parametrize("changes", OVERRUN, ids=["8 rounds", "10 rounds", "20 rounds"])
@pytest.mark.parametrize("leaving", [0.5, 0.6])
def test_more_leavers_than_planned_leave_all_others_protected(changes: dict[str, float], leaving: float) -> None:
    """Against coalitions of the full size among those who stay, exactly; losses were up to 4.1 times too large."""
    plan = example(**changes)
    for seed in range(6):
        rng = np.random.default_rng((seed, 60))
        presence = inca.Presence.leaving(60, plan.design.rounds, leaving, rng)
        execution = plan.execution(seed, presence)
        stay = np.flatnonzero(presence.row(plan.design.rounds))
        colluding = rng.choice(stay, plan.requirements.colluders, replace=False).tolist()
        view = inca.View(execution, inca.Adversary(colluding))
        for seen in (view, view.of_cohort()):  # with the losses of those who left, and without
            assert inca.account(seen, plan.noise_levels_of(execution), sensitivity=1.0).max_mu <= plan.requirements.mu


@given(seeds, st.floats(0.02, 0.9), st.floats(0.2, 40.0))
def test_a_party_on_its_own_is_protected_by_what_it_tops_up(seed: int, start: float, level: float) -> None:
    """It meets colluders alone, and loses what is allowed: the bound is exact there."""
    rounds = int(np.random.default_rng(seed).integers(2, 12))
    requirements, injection = (
        inca.Requirements(4, 1.0, 1e-5, colluding=0.5, dropout=0.0),
        inca.incremental_injection(rounds),
    )
    noise = SettledNoise(requirements, injection, 1.1, level, start)
    assume(noise.covers(1))
    schedule, cohort = inca.PermutationReceivers(4, rounds, seed=seed), np.arange(4) < 3
    execution = inca.Execution(schedule, injection, cohort=cohort)
    view = inca.View(execution, inca.Adversary([1, 2])).of_cohort()
    levels = inca.NoiseLevels(
        independent=math.sqrt(start), cancelling=math.sqrt(level), topup=math.sqrt(noise.topup(1))
    )
    assert inca.account(view, levels, sensitivity=1.0).max_mu == pytest.approx(1.0, abs=1e-6)


def test_too_little_cancelling_noise_covers_no_more_leavers_than_planned() -> None:
    requirements, injection = (
        inca.Requirements(20, 1.0, 1e-5, dropout=0.2, colluding=0.0),
        inca.incremental_injection(20, quiet=1),
    )
    little, much = (SettledNoise.enough(requirements, injection, 1.1, level) for level in (6.0, 8.0))
    assert little.covers(4) and not little.covers(5) and much.covers(5) and much.covers(20)
    with pytest.raises(InvalidInput, match="leavers must be few enough"):
        little.topup(5)
    with pytest.raises(InvalidInput, match="leavers must be few enough"):
        little.error(5)


def test_one_honest_survivor_counts_on_itself_alone() -> None:
    requirements = inca.Requirements(10, 1.0, 1e-5, colluding=0.5, dropout=0.4)
    noise = SettledNoise.enough(requirements, inca.incremental_injection(10, quiet=1), 1.05, 5.0)
    assert noise.staying(4) == noise.staying(9) == 1
    assert noise.start == 1.0 and noise.topup(4) == 0.0


@pytest.mark.parametrize("leavers", [0, 6, 12])
def test_the_error_in_closed_form_is_that_of_the_execution(leavers: int) -> None:
    plan = example()
    rng = np.random.default_rng(leavers)
    presence = inca.Presence.leaving(60, plan.design.rounds, leavers / 60, rng)
    execution = plan.execution(3, presence)
    exact = inca.expected_error(execution, plan.noise_levels_of(execution), variance=1 / 12)
    closed = plan.settled_noise.error(leavers)
    assert exact.independent == pytest.approx(closed.independent, rel=1e-8)
    assert exact.cancelling == pytest.approx(0.0, abs=1e-20)
    assert exact.data == pytest.approx(closed.data, rel=1e-8)


def test_the_error_without_anyone_left_is_infinite() -> None:
    assert example().settled_noise.error(60).total == math.inf > example().settled_noise.error(59).total
    assert example().settled_noise.error_without_one(59, 1.0).total == math.inf


def test_a_missing_final_message_leaves_its_part_of_the_level() -> None:
    noise, unit = example().settled_noise, example().requirements.var_local_dp
    assert noise.error_without_one(6, 2.0).cancelling == pytest.approx(2.0 * unit * noise.level / 53**2)
    assert noise.error_without_one(6, 2.0).data == noise.error(7).data


def test_more_cancelling_noise_has_its_price() -> None:
    noise = example().settled_noise
    more = replace(noise, level=2.0 * noise.level)
    of_less, of_more = (price(each.error(6), each.error_without_one(6, 1.0)) for each in (noise, more))
    assert noise.error(6).total < of_less < of_more


@pytest.mark.parametrize("leavers", [1, 5, 12])
def test_the_total_makes_up_for_what_is_topped_up_and_for_no_more(leavers: int) -> None:
    """The equation of docs/settlement.md, with 54 honest parties, at the total that solves it."""
    plan = example()
    noise, rounds = plan.settled_noise, plan.design.rounds
    injected = [min(1.0, (t + 1) / rounds) for t in range(rounds)]  # one quiet round: T equal shares, 0 to T - 1
    total, least = noise.total(leavers), noise.factor / (54 - leavers)
    phi = 1.0 - noise.start / total
    a = phi * math.sqrt(total / noise.level) * math.sqrt(sum(part**2 for part in injected))
    b = min(0.5, 1.0 - (54 - leavers) / (noise.factor * 54))
    assert total / least == pytest.approx(1.0 + 2.0 * a * math.sqrt(b * (1.0 - b)) + a * a, rel=1e-9)
    assert noise.start == pytest.approx(noise.factor / 54)


def test_without_cancelling_noise_no_top_up_is_known_to_suffice() -> None:
    requirements = inca.Requirements(20, 1.0, 1e-5, dropout=0.2, colluding=0.0)
    noise = SettledNoise(requirements, inca.incremental_injection(6), factor=1.5, level=0.0, start=1.5 / 20)
    assert noise.total(0) == 1.5 / 20 and not noise.covers(4) and not noise.covers(5)
    with pytest.raises(InvalidInput, match=r"leavers must be few enough .* \(planned for: 4\), got 5"):
        noise.total(5)
    enough = SettledNoise.enough(requirements, inca.incremental_injection(6), 1.5, 0.0)
    assert enough.start == pytest.approx(1.5 / 16) and enough.topup(4) == 0.0


def test_where_topping_up_takes_a_tenth_more_all_noise_is_there_from_the_start() -> None:
    requirements = inca.Requirements(20, 1.0, 1e-5, dropout=0.2, colluding=0.0)
    injection = inca.incremental_injection(10, quiet=1)
    little, much = (SettledNoise.enough(requirements, injection, 1.1, level) for level in (0.05, 5.0))
    assert little.start == pytest.approx(1.1 / 16) and little.level == 0.05
    assert much.start == pytest.approx(1.1 / 20) and 5.0 < much.level < 5.5
    assert much.level == pytest.approx(
        5.0 * SettledNoise(requirements, injection, 1.1, 5.0, 1.1 / 20).total(4) * 16 / 1.1
    )
