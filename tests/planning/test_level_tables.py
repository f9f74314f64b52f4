"""Levels that are looked up: on the safe side of what was drawn, the same at every number of parties."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import inca
from inca._base.kernels import Ids
from inca._base.types import Array
from inca.planning.designs import ProtocolDesign
from inca.planning.level_tables import (
    _Counts,
    _first_below,
    _rarest_level,
    _upper_limits,
    drawn_rounds,
    leavers_level,
    level_tables,
    needed_level,
    unfinished_residue,
)
from inca.planning.sampling import sample_residue

FAILURE, CONFIDENCE = 1e-6, 0.95


def level(rounds: int, known: float, factor: float, parties: int = 50, **changes: float) -> float:
    certainty: dict[str, Any] = {"failure": FAILURE, "confidence": CONFIDENCE} | changes
    needed = needed_level(rounds, known, factor, parties, **certainty)
    assert needed is not None
    return needed.level


def drawn(parties: int, rounds: int, known: float, told: str = "none") -> _Counts:
    """Return the entry of that name, without eavesdroppers and with one receiver."""
    name = parties, rounds, known, told, 1, 0.0
    return next(
        entry
        for entry in level_tables().tables
        if (entry.parties, entry.rounds, entry.known, entry.told, entry.receivers, entry.eavesdropped) == name
    )


def test_more_known_fewer_rounds_and_a_smaller_factor_need_more() -> None:
    assert level(20, 0.1, 1.05) < level(20, 0.2, 1.05) < level(20, 0.3, 1.05) < level(20, 0.5, 1.05)
    assert level(20, 0.3, 1.05) < level(14, 0.3, 1.05) < level(10, 0.3, 1.05) < level(8, 0.3, 1.05)
    for rounds in drawn_rounds():
        levels = [level(rounds, 0.1, factor) for factor in level_tables().factors]
        assert levels == sorted(levels, reverse=True)


def test_rarer_and_surer_never_needs_less() -> None:
    by_failure = [level(20, 0.3, 1.1, failure=failure) for failure in (1e-2, 1e-4, 1e-6, 1e-7, 1e-8, 1e-10)]
    assert by_failure == sorted(by_failure) and by_failure[-1] > by_failure[-3]
    by_confidence = [level(20, 0.3, 1.1, confidence=confidence) for confidence in (0.5, 0.9, 0.99, 0.999)]
    assert by_confidence == sorted(by_confidence)


def test_what_is_rarer_than_anything_drawn_is_called_extrapolated() -> None:
    """With 10^7 views and confidence 0.95, nothing is counted below 3.0e-7, and no product is below 1.36e-11."""
    counted, halves = 10_000_000, 2_000_000
    for failure, drawn, views in (
        (1e-6, True, counted),
        (3.1e-7, True, counted),
        (2.9e-7, True, halves),
        (1e-9, True, halves),
        (1.37e-11, True, halves),
        (1.35e-11, False, halves),
    ):
        needed = needed_level(20, 0.3, 1.1, 50, failure=failure, confidence=0.95)
        assert needed is not None and (needed.drawn, needed.views) == (drawn, views)


def test_the_drawn_level_leaves_so_few_that_more_would_be_likelier_than_not() -> None:
    """Recomputed: were the allowed fraction to need more, so few would do so with probability 0.05 at most."""
    tables = level_tables()
    counts = drawn(50, 10, 0.2)
    row = counts.views_exceeding[tables.factors.index(1.3)]
    place = round(4 * math.log2(level(10, 0.2, 1.3) / 1.3 / tables.levels_per_factor[0]))
    assert binom.cdf(row[place], counts.views, FAILURE) <= 0.05 < binom.cdf(row[place - 1], counts.views, FAILURE)


def test_the_limit_of_a_quantile_is_too_low_as_seldom_as_it_says() -> None:
    """Needs are exponential; false alarm below 1e-6: seven standard errors above 0.1 of 600 repetitions."""
    rng, levels = np.random.default_rng(1), np.geomspace(0.5, 50, 400)
    too_low = 0
    for _ in range(600):
        needs = np.sort(rng.exponential(size=500))
        exceeding = 500 - np.searchsorted(needs, levels, side="right")
        limit = _first_below(levels, _upper_limits(exceeding.astype(float), 500, 0.9), 0.02)
        too_low += limit is not None and math.exp(-limit) > 0.02
    assert too_low <= 60 + 7 * math.sqrt(600 * 0.1 * 0.9)


def test_a_product_is_too_low_as_seldom_as_it_says() -> None:
    """Two independent exponential needs of 500 views each; false alarm as above. It is hardly ever: both are limits."""
    rng, levels = np.random.default_rng(2), np.geomspace(0.5, 50, 400)
    entry, too_low = drawn(50, 20, 0.3, told="even"), 0
    for _ in range(600):
        halves = {}
        for told in ("even", "odd"):
            needs = np.sort(rng.exponential(size=500))
            exceeding = 500 - np.searchsorted(needs, levels, side="right")
            halves[told] = msgspec.structs.replace(entry, told=told, views=500, views_exceeding=[exceeding.tolist()])
        limit, was_drawn, views = _rarest_level(levels, halves, 0, 0.0004, 0.9)
        assert was_drawn and views == 1000
        too_low += limit is not None and math.exp(-2 * limit) > 0.0004
    assert 0 < too_low <= 60 + 7 * math.sqrt(600 * 0.1 * 0.9)


@given(st.integers(6, 12), st.integers(2, 7), st.integers(1, 2), st.integers(0, 3), st.randoms(use_true_random=False))
def test_told_half_of_the_rounds_an_adversary_loses_nothing_and_the_other_half_decides(
    parties: int, rounds: int, receivers: int, known: int, random: Random
) -> None:
    """What products rest on: a loss with the even rounds told is no smaller, and the same whoever meets in these."""
    rng = np.random.default_rng(random.getrandbits(32))
    kind = "permutation" if receivers == 1 else "random"
    schedules = [inca.random_schedule(kind, parties, rounds, receivers, seed=random.getrandbits(32)) for _ in range(2)]
    first, other = (np.stack([one.round(t).receivers for t in range(1, rounds + 1)]) for one in schedules)
    changed = first.copy()
    changed[::2] = other[::2]
    heard = list(inca.Adversary.random(parties, rounds, rng, eavesdropped=0.2).eavesdropped)
    even = [(t, i) for t in range(0, rounds, 2) for i in range(parties)]
    levels = inca.NoiseLevels(independent=0.4, cancelling=1.5)

    def losses(receivers: Ids, messages: list[tuple[int, int]]) -> Array:
        schedule = inca.ExplicitSchedule(receivers, share=1.0 / (receivers.shape[2] + 1))
        execution = inca.Execution(schedule, inca.incremental_injection(rounds, quiet=1))
        view = inca.View(execution, inca.Adversary(range(known), messages))
        return inca.account(view, levels, sensitivity=1.0).mu[known:]

    told = losses(first, [*heard, *even])
    assert (told >= losses(first, heard) * (1 - 1e-9)).all()
    np.testing.assert_allclose(told, losses(changed, [*heard, *even]), rtol=1e-7)


def test_a_product_never_allows_what_was_counted_to_be_rarer() -> None:
    """The level of a product for one in a million is at least that of ten million counted views but one step."""
    compared = 0
    for counts in level_tables().tables:
        if counts.parties == 50 and counts.told == "none" and counts.views == 10_000_000:
            halves = {told: drawn(50, counts.rounds, counts.known, told=told) for told in ("even", "odd")}
            levels = np.array(level_tables().levels_per_factor)
            for row in range(8):
                product, *_ = _rarest_level(levels, halves, row, FAILURE, CONFIDENCE)
                direct, *_ = _rarest_level(levels, {"none": counts}, row, FAILURE, CONFIDENCE)
                assert product is None or (direct is not None and product * 2**0.25 > direct)
                compared += product is not None
    assert compared > 100


@pytest.mark.parametrize("seen", [{"eavesdropped": 0.1}, {"receivers": 2}])
def test_eavesdroppers_and_second_receivers_have_tables_of_their_own(seen: dict[str, Any]) -> None:
    for failure in (1e-6, 1e-9):
        certainty: dict[str, Any] = {"failure": failure, "confidence": CONFIDENCE}
        plain, more = (needed_level(10, 0.1, 1.2, 50, **certainty, **extra) for extra in ({}, seen))
        assert plain is not None and more is not None and more.drawn and more.level > plain.level
    heard = [needed_level(20, 0.2, 1.1, 50, **certainty, eavesdropped=part) for part in (0.05, 0.1, 0.15, 0.3)]
    by_part = [needed.level for needed in heard if needed is not None]
    assert len(by_part) == 4 and by_part[0] == by_part[1] < by_part[2] < by_part[3]
    assert needed_level(20, 0.2, 1.1, 50, **certainty, eavesdropped=0.31) is None


def test_in_between_and_at_other_sizes_levels_are_rounded_up() -> None:
    assert level(20, 0.21, 1.05) == level(20, 0.3, 1.05) and level(20, 0.0, 1.05) == level(20, 0.1, 1.05)
    step = 2**0.25
    assert level(20, 0.2, 1.05, 51) == pytest.approx(step * level(20, 0.2, 1.05, 50))
    assert level(20, 0.2, 1.05, 10) == level(20, 0.2, 1.05, 10**9)


@pytest.mark.parametrize("seen", [{"receivers": 2}, {"eavesdropped": 0.1}])
def test_among_few_with_eavesdroppers_or_two_receivers_nothing_drawn_tells_it(seen: dict[str, Any]) -> None:
    """Views of 10 parties with two receivers show why: half of their rounds may hide nothing at all."""
    certainty: dict[str, Any] = {"failure": FAILURE, "confidence": CONFIDENCE}
    assert needed_level(10, 0.0, 1.5, 49, **certainty, **seen) is None
    assert needed_level(10, 0.0, 1.5, 50, **certainty, **seen) is not None


@pytest.mark.parametrize(("rounds", "known", "parties"), [(20, 0.51, 50), (19, 0.1, 50), (20, 0.1, 9), (10, 0.5, 50)])
def test_what_nothing_drawn_tells_is_none(rounds: int, known: float, parties: int) -> None:
    assert needed_level(rounds, known, 1.02, parties, failure=FAILURE, confidence=CONFIDENCE) is None


@pytest.mark.parametrize("failure", [1e-3, 1e-4, 1e-6])
def test_views_of_fewer_and_more_parties_need_no_more_than_a_step_above_those_of_50(failure: float) -> None:
    """Counted ones of 10 and 20, and products of 200, as far as these were drawn."""
    tables, compared = level_tables(), 0
    for parties, direct in ((10, True), (20, True), (200, False)):
        own, of_50 = (_by_setting(size, direct) for size in (parties, 50))
        for setting in own.keys() & of_50.keys():
            for row in range(8):
                levels = np.array(tables.levels_per_factor)
                needed, was_drawn, _ = _rarest_level(levels, own[setting], row, failure, CONFIDENCE)
                among_50, *_ = _rarest_level(levels, of_50[setting], row, failure, CONFIDENCE)
                if was_drawn and among_50 is not None and among_50 < levels[-2]:
                    assert needed is not None and needed <= among_50 * 2**0.25 * (1 + 1e-9), (parties, setting, row)
                    compared += 1
    assert compared > 100


def _by_setting(parties: int, direct: bool) -> dict[tuple[float, ...], dict[str, _Counts]]:
    settings: dict[tuple[float, ...], dict[str, _Counts]] = {}
    for entry in level_tables().tables:
        if entry.parties == parties and (entry.told == "none") == direct:
            setting = entry.rounds, entry.known, entry.receivers, entry.eavesdropped
            settings.setdefault(setting, {})[entry.told] = entry
    return settings


def test_counts_never_rise_with_the_level() -> None:
    for counts in level_tables().tables:
        table = np.array(counts.views_exceeding)
        assert table.shape == (8, 44) and (np.diff(table, axis=1) <= 0).all() and (table <= counts.views).all()


@pytest.mark.parametrize(
    ("parties", "failure", "receivers", "eavesdropped"),
    [(50, 1e-2, 1, 0.0), (200, 1e-2, 1, 0.0), (200, 1e-6, 1, 0.0), (100, 1e-6, 1, 0.2), (100, 1e-6, 2, 0.0)],
)
def test_fresh_views_need_more_as_seldom_as_stated(
    parties: int, failure: float, receivers: int, eavesdropped: float
) -> None:
    """The fraction of parties over exact views is within six standard errors of the stated one, or below it.

    Parties of a view are not independent, so the standard error is that of the mean over views.
    """
    known = round(0.2 * parties)
    honest, factor, views = parties - known, 1.1, 20 if parties == 50 else 6
    design = ProtocolDesign("permutation" if receivers == 1 else "random", 10, receivers, quiet=1)
    seen: dict[str, Any] = {"receivers": receivers, "eavesdropped": eavesdropped}
    needed = needed_level(10, 0.2, factor, parties, failure=failure, confidence=CONFIDENCE, **seen)
    assert needed is not None
    levels = inca.NoiseLevels(independent=math.sqrt(factor / honest), cancelling=math.sqrt(needed.level))
    exceeding = []
    for seed in range(views):
        execution = inca.Execution(design.draw_schedule(parties, 10**7 + seed), design.injection())
        rng = np.random.default_rng(seed)
        heard = inca.Adversary.random(parties, 10, rng, eavesdropped=eavesdropped).eavesdropped
        losses = inca.account(inca.View(execution, inca.Adversary(range(known), heard)), levels, sensitivity=1.0)
        exceeding.append(float((losses.mu > 1.0).mean()))
    assert np.mean(exceeding) <= failure + 6 * max(float(np.std(exceeding)), failure) / math.sqrt(views)


def test_leavers_need_what_their_bounds_say_and_never_more_than_suffices_for_all() -> None:
    injection = inca.incremental_injection(20, quiet=1)
    certainty = {"failure": FAILURE, "confidence": CONFIDENCE}
    always = leavers_level(20, 1.0, 100, injection, **certainty)
    by_known = [leavers_level(20, known, 100, injection, **certainty) for known in (0.1, 0.2, 0.3, 0.5, 0.8)]
    assert by_known == sorted(by_known) and by_known[-1] == always == pytest.approx(7.175)
    assert leavers_level(20, 0.2, 20, injection, **certainty) > leavers_level(20, 0.2, 50, injection, **certainty)
    assert leavers_level(20, 0.2, 9, injection, **certainty) == always
    rare = leavers_level(20, 0.2, 50, injection, failure=1e-9, confidence=CONFIDENCE)
    assert leavers_level(20, 0.2, 50, injection, **certainty) < rare <= always


@pytest.mark.parametrize(
    ("rounds", "leaving"), [(10, 0.1), *(pytest.param(20, leaving, marks=pytest.mark.slow) for leaving in (0.0, 0.25))]
)
def test_what_a_missing_final_message_leaves_is_what_fresh_runs_show(rounds: int, leaving: float) -> None:
    """Sampled on 120 other runs of another size, whose standard error is 4 %; six of them."""
    fresh = sample_residue(ProtocolDesign("permutation", rounds, quiet=1), 40, leaving, runs=120, seed=9)
    assert unfinished_residue(rounds, leaving) == pytest.approx(fresh, rel=0.25)


def test_beyond_what_was_drawn_levels_grow_twice_as_fast_as_counts_show() -> None:
    least = (1.0 - 0.025 ** (1 / 1_000_000)) ** 2  # the smallest product that two times a million views tell
    last, before = (level(14, 0.1, 1.1, failure=failure) for failure in (least, 100 * least))
    exponent = 2.0 * math.log(last / before) / math.log(100.0)
    assert 0.05 < exponent < 1.0
    for times in (10.0, 1000.0):
        assert level(14, 0.1, 1.1, failure=least / times) == pytest.approx(last * times**exponent)


def test_a_fraction_that_rounding_left_above_its_entry_is_that_entry() -> None:
    assert 0.1 + 0.2 > 0.3 and level(20, 0.1 + 0.2, 1.05) == level(20, 0.3, 1.05)
