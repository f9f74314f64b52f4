"""Levels that are looked up: on the safe side of what was drawn, the same at every number of parties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import inca
from inca.planning.designs import ProtocolDesign
from inca.planning.level_tables import _quantile, drawn_rounds, late_residue, leavers_level, level_tables, needed_level
from inca.planning.sampling import sample_late_residue

FAILURE, CONFIDENCE = 1e-6, 0.95


def level(rounds: int, known: float, factor: float, parties: int = 50, **changes: float) -> float:
    certainty = {"failure": FAILURE, "confidence": CONFIDENCE} | changes
    needed = needed_level(rounds, known, factor, parties, **certainty)
    assert needed is not None
    return needed.level


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
    """With 10^7 views and confidence 0.95, nothing is drawn below 3.0e-7."""
    for failure, drawn in ((1e-6, True), (3.1e-7, True), (2.9e-7, False)):
        needed = needed_level(20, 0.3, 1.1, 50, failure=failure, confidence=0.95)
        assert needed is not None and needed.drawn is drawn and needed.views == 10_000_000


def test_the_drawn_level_leaves_so_few_that_more_would_be_likelier_than_not() -> None:
    """Recomputed: were the allowed fraction to need more, so few would do so with probability 0.05 at most."""
    tables = level_tables()
    counts = next(entry for entry in tables.tables if (entry.parties, entry.rounds, entry.known) == (50, 10, 0.2))
    row = counts.views_exceeding[tables.factors.index(1.3)]
    place = round(4 * math.log2(level(10, 0.2, 1.3) / 1.3 / tables.levels_per_factor[0]))
    assert binom.cdf(row[place], counts.views, FAILURE) <= 0.05 < binom.cdf(row[place - 1], counts.views, FAILURE)


def test_the_limit_of_a_quantile_is_too_low_as_seldom_as_it_says() -> None:
    """Needs are exponential; false alarm below 1e-6: six standard errors above 0.1 of 2,000 repetitions."""
    rng, levels = np.random.default_rng(1), np.geomspace(0.5, 50, 400)
    too_low = 0
    for _ in range(2000):
        needs = np.sort(rng.exponential(size=500))
        exceeding = 500 - np.searchsorted(needs, levels, side="right")
        limit = _quantile(levels, exceeding, 500, 0.02, 0.9)
        too_low += limit is not None and math.exp(-limit) > 0.02
    assert too_low <= 200 + 6 * math.sqrt(2000 * 0.1 * 0.9)


def test_in_between_and_at_other_sizes_levels_are_rounded_up() -> None:
    assert level(20, 0.21, 1.05) == level(20, 0.3, 1.05) and level(20, 0.0, 1.05) == level(20, 0.1, 1.05)
    step = 2**0.25
    assert level(20, 0.2, 1.05, 51) == pytest.approx(step * level(20, 0.2, 1.05, 50))
    assert level(20, 0.2, 1.05, 10) == level(20, 0.2, 1.05, 10**9)


@pytest.mark.parametrize(("rounds", "known", "parties"), [(20, 0.51, 50), (19, 0.1, 50), (20, 0.1, 9), (10, 0.5, 50)])
def test_what_nothing_drawn_tells_is_none(rounds: int, known: float, parties: int) -> None:
    assert needed_level(rounds, known, 1.02, parties, failure=FAILURE, confidence=CONFIDENCE) is None


def test_views_of_10_and_20_parties_need_no_more_than_a_step_above_those_of_50() -> None:
    tables = level_tables()
    for counts in tables.tables:
        if counts.parties in (10, 20) and counts.views == 10_000_000:
            for factor, row in zip(tables.factors, counts.views_exceeding, strict=True):
                own = _quantile(factor * np.array(tables.levels_per_factor), np.array(row), counts.views, FAILURE, 0.95)
                entry = counts.rounds, counts.known, factor, counts.parties
                drawn = needed_level(*entry, failure=FAILURE, confidence=0.95)
                assert drawn is None or (own is not None and own <= drawn.level * (1 + 1e-9))


def test_counts_never_rise_with_the_level() -> None:
    for counts in level_tables().tables:
        table = np.array(counts.views_exceeding)
        assert table.shape == (8, 44) and (np.diff(table, axis=1) <= 0).all() and (table <= counts.views).all()


@pytest.mark.parametrize(("parties", "failure"), [(50, 1e-2), (200, 1e-2), (200, 1e-6)])
def test_fresh_views_need_more_as_seldom_as_stated(parties: int, failure: float) -> None:
    """The fraction of parties over exact views is within six standard errors of the stated one, or below it.

    Parties of a view are not independent, so the standard error is that of the mean over views.
    """
    known = round(0.3 * parties)
    honest, factor, views = parties - known, 1.1, 20 if parties == 50 else 6
    design = ProtocolDesign("permutation", 10, quiet=1)
    cancelling = math.sqrt(level(10, 0.3, factor, parties, failure=failure))
    levels = inca.NoiseLevels(independent=math.sqrt(factor / honest), cancelling=cancelling)
    exceeding = []
    for seed in range(views):
        execution = inca.Execution(design.draw_schedule(parties, 10**7 + seed), design.injection())
        losses = inca.account(inca.View(execution, inca.Adversary(range(known))), levels, sensitivity=1.0)
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
def test_what_a_late_leaver_leaves_is_what_fresh_runs_show(rounds: int, leaving: float) -> None:
    """Sampled on 120 other runs of another size, whose standard error is 4 %; six of them."""
    fresh = sample_late_residue(ProtocolDesign("permutation", rounds, quiet=1), 40, leaving, runs=120, seed=9)
    assert late_residue(rounds, leaving) == pytest.approx(fresh, rel=0.25)


def test_beyond_what_was_drawn_levels_grow_twice_as_fast_as_counts_show() -> None:
    least = -math.log(0.05) / 10_000_000  # the smallest probability that ten million views tell anything of
    last, before = (level(10, 0.2, 1.1, failure=failure) for failure in (least, 100 * least))
    tables = level_tables()
    counts = next(entry for entry in tables.tables if (entry.parties, entry.rounds, entry.known) == (50, 10, 0.2))
    nobody = counts.views_exceeding[tables.factors.index(1.1)].index(0)
    assert last == pytest.approx(1.1 * tables.levels_per_factor[nobody])
    exponent = 2.0 * math.log(last / before) / math.log(100.0)
    assert 0.1 < exponent < 1.0
    for times in (10.0, 1000.0):
        assert level(10, 0.2, 1.1, failure=least / times) == pytest.approx(last * times**exponent)


def test_a_fraction_that_rounding_left_above_its_entry_is_that_entry() -> None:
    assert 0.1 + 0.2 > 0.3 and level(20, 0.1 + 0.2, 1.05) == level(20, 0.3, 1.05)
