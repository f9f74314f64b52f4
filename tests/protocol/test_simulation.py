from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import inca
from helpers.plain_runs import plain_run
from helpers.strategies import executions, generator, seeds, settled
from inca._base.validation import party_values
from inca.protocol.simulation import simulated_estimate


@given(executions(), seeds)
def test_given_noise_equals_the_plain_loop(execution: inca.Execution, seed: int) -> None:
    rng = generator(seed)
    values = rng.random(execution.parties)
    noise = inca.Noise(rng.normal(size=execution.parties), 50 * rng.normal(size=(execution.parties, execution.rounds)))
    outcome = inca.simulate(execution, values, noise=noise, record=True)
    expected, beside = plain_run(execution, values, noise)
    assert outcome.history is not None
    assert np.allclose(outcome.history, expected, rtol=1e-12, atol=1e-10)
    assert np.allclose(outcome.messages, expected[-1], rtol=1e-12, atol=1e-10)
    assert np.allclose(list(execution.weight_history()), beside, rtol=0, atol=1e-12)


@given(executions(), seeds, st.sampled_from([1, 2, 3]), st.sampled_from([None, 1, 3]))
def test_drawn_noise_equals_the_plain_loop(
    execution: inca.Execution, seed: int, threads: int, dimensions: int | None
) -> None:
    shape = (execution.parties,) if dimensions is None else (execution.parties, dimensions)
    values = generator(seed).random(shape)
    noise = inca.draw_noise(
        execution, inca.NoiseLevels(independent=2.0, cancelling=30.0), generator(seed), dimensions=dimensions or 1
    )
    outcome = inca.simulate(
        execution,
        values,
        inca.NoiseLevels(independent=2.0, cancelling=30.0),
        generator(seed),
        record=True,
        threads=threads,
    )
    assert outcome.history is not None and outcome.messages.shape == shape
    for e in range(dimensions or 1):
        column = inca.Noise(noise.independent[:, e], noise.cancelling[:, :, e])
        expected, _ = plain_run(execution, values.reshape(execution.parties, -1)[:, e], column)
        history = outcome.history.reshape(execution.rounds + 1, execution.parties, -1)[:, :, e]
        assert np.allclose(history, expected, rtol=1e-12, atol=1e-9)


@given(executions(all_at_end=True), seeds)
def test_noise_cancels_when_everyone_is_there_at_the_end(execution: inca.Execution, seed: int) -> None:
    values = generator(seed).random(execution.parties)
    noise = inca.draw_noise(execution, inca.NoiseLevels(independent=1.0, cancelling=1000.0), generator(seed))
    outcome = inca.simulate(execution, values, inca.NoiseLevels(independent=1.0, cancelling=1000.0), generator(seed))
    expected = execution.total_weights @ (values + noise.independent[:, 0])
    assert outcome.messages.sum() == pytest.approx(expected, abs=1e-9)
    assert outcome.weight == pytest.approx(execution.total_weights.sum(), abs=1e-12)


@given(executions(), seeds)
def test_results_do_not_depend_on_the_number_of_threads(execution: inca.Execution, seed: int) -> None:
    values = generator(seed).random((execution.parties, 2))
    outcomes = [
        inca.simulate(
            execution, values, inca.NoiseLevels(independent=1.0, cancelling=9.0), generator(seed), threads=count
        )
        for count in (1, 2, 5)
    ]
    assert all(np.array_equal(outcomes[0].messages, other.messages) for other in outcomes[1:])


def test_many_blocks_of_noise_and_columns_agree_with_all_terms_in_memory() -> None:
    n, rounds, d = (
        300,
        4,
        1500,
    )  # more entries than a block of noise, more coordinates than a thread mixes at a time
    presence = inca.Presence.markov(n, rounds, 0.3, 0.5, generator(1))
    for there in (presence, None):
        execution = inca.Execution(
            inca.RandomReceivers(n, rounds, 2, seed=3), inca.incremental_injection(rounds), there
        )
        values = generator(2).random((n, d))
        noise = inca.draw_noise(
            execution, inca.NoiseLevels(independent=1.0, cancelling=5.0), generator(4), dimensions=d
        )
        drawn = inca.simulate(execution, values, inca.NoiseLevels(independent=1.0, cancelling=5.0), generator(4))
        held = inca.simulate(execution, values, noise=noise)
        assert np.allclose(drawn.messages, held.messages, rtol=0, atol=1e-10)


@given(st.one_of(executions(), settled(all_publish=False)), seeds, st.sampled_from([16, 64]))
def test_blocks_of_coordinates_equal_the_plain_run(execution: inca.Execution, seed: int, entries: int) -> None:
    """Blocks of a few coordinates, with a stream of noise for all of a block or several; whoever runs them."""
    levels = inca.NoiseLevels(independent=2.0, cancelling=30.0, topup=1.0 if execution.cohort is not None else 0.0)
    values = generator(seed).random((execution.parties, 21))
    with patch("inca.protocol.noise.BLOCK_ENTRIES", entries):
        noise = inca.draw_noise(execution, levels, generator(seed), dimensions=21)
        outcomes = [
            inca.simulate(execution, values, levels, generator(seed), record=True, threads=count) for count in (1, 3)
        ]
        from_noise = inca.simulate(execution, values, noise=noise, record=True, threads=2)
        estimate = simulated_estimate(execution, values, levels, generator(seed), threads=2)
    first, history, expected = outcomes[0], outcomes[0].history, from_noise.history
    assert history is not None and expected is not None
    np.testing.assert_allclose(history, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(first.messages, from_noise.messages, rtol=1e-12, atol=1e-9)
    assert all(np.array_equal(first.messages, other.messages) for other in outcomes[1:])
    if execution.weight == 0.0:
        assert estimate is None and first.estimate is None
    else:
        np.testing.assert_allclose(np.asarray(estimate), np.asarray(first.estimate), rtol=1e-12, atol=1e-9)
    if execution.cohort is None:  # which the plain loop does not know
        for e in (0, 8, 20):
            column = inca.Noise(noise.independent[:, e], noise.cancelling[:, :, e])
            np.testing.assert_allclose(history[:, :, e], plain_run(execution, values[:, e], column)[0], atol=1e-9)


def test_values_are_neither_copied_nor_changed(tmp_path: Path) -> None:
    values = generator(1).random((100, 700))
    np.save(tmp_path / "values.npy", values)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    assert np.shares_memory(party_values(mapped, 100), mapped)
    assert np.shares_memory(inca.Interval(0, 1).validate(mapped), mapped)
    execution = inca.Execution(inca.RandomReceivers(100, 3, seed=1), inca.incremental_injection(3))
    levels = inca.NoiseLevels(independent=1.0, cancelling=5.0)
    of_file, of_memory, of_columns = (
        inca.simulate(execution, table, levels, generator(2)).messages
        for table in (mapped, values, np.asfortranarray(values))
    )
    assert np.array_equal(of_file, of_memory) and np.array_equal(of_columns, of_memory)
    assert np.array_equal(mapped, values)


def test_progress_counts_blocks_of_coordinates_and_an_error_in_it_ends_the_run() -> None:
    execution = inca.Execution(inca.RandomReceivers(100, 3, seed=1), inca.incremental_injection(3))
    levels, seen = inca.NoiseLevels(independent=1.0, cancelling=5.0), list[tuple[int, int]]()
    values = np.ones((100, 3200))
    inca.simulate(execution, values, levels, generator(1), progress=lambda *step: seen.append(step))
    assert seen[0] == (0, 10) and seen[-1] == (10, 10) and seen == sorted(set(seen))

    def stop(done: int, total: int) -> None:
        if done > 0:
            raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError, match="enough"):
        inca.simulate(execution, values, levels, generator(1), progress=stop)


def test_estimate_follows_its_exact_distribution() -> None:
    """Kolmogorov-Smirnov on 200 runs of 20 coordinates against the predicted normal; false alarms: 1e-6."""
    n, rounds, runs, d = 20, 6, 200, 20
    presence = inca.Presence.leaving(n, rounds, 0.3, generator(5))
    execution = inca.Execution(
        inca.RandomReceivers(n, rounds, seed=6), inca.incremental_injection(rounds, quiet=1), presence
    )
    values = generator(7).random(n)
    rng, rows = generator(8), np.tile(values[:, np.newaxis], d)
    estimates = [
        inca.simulate(execution, rows, inca.NoiseLevels(independent=0.7, cancelling=3.0), rng, threads=1).estimate
        for _ in range(runs)
    ]
    bias = inca.expected_error(execution, inca.NoiseLevels(independent=0.0, cancelling=0.0), values=values)
    budget = inca.expected_error(execution, inca.NoiseLevels(independent=0.7, cancelling=3.0), values=values)
    noiseless = inca.simulate(execution, values, inca.NoiseLevels(independent=0.0, cancelling=0.0), rng).estimate
    assert isinstance(noiseless, float)
    assert (noiseless - values.mean()) ** 2 == pytest.approx(bias.total, rel=1e-9)
    standardised = (np.array(estimates).ravel() - noiseless) / np.sqrt(budget.noise)
    assert stats.kstest(standardised, "norm").pvalue > 1e-6


def test_system_randomness_gives_standard_normals() -> None:
    """Kolmogorov-Smirnov on 200,000 draws; false alarms: 1e-9 (not seeded: it is the system's randomness)."""
    drawn = inca.SystemNormals().normals(200_000)
    assert np.isfinite(drawn).all()
    assert stats.kstest(drawn, "norm").pvalue > 1e-9
    execution = inca.Execution(inca.RandomReceivers(50, 5, seed=1), inca.incremental_injection(5))
    outcome = inca.simulate(
        execution, np.full(50, 0.5), inca.NoiseLevels(independent=0.0, cancelling=10.0), inca.SystemNormals()
    )
    assert outcome.estimate == pytest.approx(0.5, abs=1e-9)


def test_everyone_absent_at_the_end_gives_no_estimate() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [0, 0, 0]])
    execution = inca.Execution(inca.RandomReceivers(3, 2, seed=1), inca.incremental_injection(2), presence)
    outcome = inca.simulate(execution, [0.1, 0.2, 0.3], inca.NoiseLevels(independent=1.0, cancelling=1.0), generator(1))
    assert outcome.estimate is None and outcome.weight == 0.0 and outcome.present == 0
    assert inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=1.0)).total == np.inf


def test_progress_counts_every_round() -> None:
    seen: list[tuple[int, int]] = []
    for injection in (inca.incremental_injection(4), inca.early_injection(4)):
        execution = inca.Execution(inca.RandomReceivers(5, 4, seed=1), injection)
        inca.simulate(
            execution,
            np.ones(5),
            inca.NoiseLevels(independent=1.0, cancelling=1.0),
            generator(1),
            progress=lambda done, total: seen.append((done, total)),
        )
    assert seen == [(t, 4) for t in range(5)] * 2


def run_small(**changes: object) -> inca.Outcome:
    execution = inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(3))
    levels = {"independent": 1.0, "cancelling": 1.0}
    levels |= {name: changes.pop(name) for name in tuple(changes) if name in levels}  # type: ignore[misc]
    noise_levels = inca.NoiseLevels(**levels)
    arguments: dict[str, object] = {"values": np.ones(4), "noise_levels": noise_levels, "rng": generator(1)}
    return inca.simulate(execution, **(arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values": [1, 2, np.nan, 3]}, r"values\[2\] must be a finite number, got nan"),
        ({"values": [1, 2, np.inf, 3]}, r"values\[2\] must be a finite number, got inf"),
        ({"values": [1, 2, 3]}, "the number of rows of values must be 4, one per party, got 3"),
        ({"values": []}, "the number of rows of values must be 4, one per party, got 0"),
        ({"values": np.ones((4, 0))}, r"\(4, 0\)"),
        ({"values": np.ones((4, 1, 1))}, "shape of values"),
        (
            {"values": ["a", "b", "c", "d"]},
            r"values must be an array of numbers, \(4,\) or \(4, d\), got a list that is not one",
        ),
        ({"independent": -1}, "sigma_independent must be at least 0, got -1"),
        ({"cancelling": np.inf}, "sigma_cancelling must be a finite number, at least 0, got inf"),
        ({"cancelling": np.nan}, "sigma_cancelling must be a finite number, at least 0, got nan"),
        ({"cancelling": 1e13}, "sigma_cancelling must be at most 1e[+]12 times .*, got '1e[+]13 times'"),
        ({"independent": 0.0, "cancelling": 1e10}, "sigma_cancelling must be at most 1e[+]09 times the largest value"),
        (
            {"noise_levels": None},
            r"noise_levels must be inca\.NoiseLevels\(independent=\.\.\., cancelling=\.\.\.\), got None",
        ),
        ({"noise_levels": (1.0, 1.0)}, r"noise_levels must be inca\.NoiseLevels.*, got \(1\.0, 1\.0\)"),
        ({"rng": 7}, r"rng must be a numpy\.random\.Generator or an inca\.SystemNormals\(\), got 7"),
        ({"rng": None}, r"rng must be a numpy\.random\.Generator or an inca\.SystemNormals\(\), got None"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"noise": inca.Noise(np.ones(4), np.ones((4, 3)))}, "noise cannot be combined with noise_levels or rng"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        run_small(**changes)


def test_noise_of_the_wrong_shape_is_refused() -> None:
    execution = inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(3))
    with pytest.raises(
        inca.InvalidInput, match=r"the shape of noise\.cancelling must be \(4, 3\) or \(4, 3, 1\), got \(4, 2\)"
    ):
        inca.simulate(execution, np.ones(4), noise=inca.Noise(np.ones(4), np.ones((4, 2))))
    with pytest.raises(inca.InvalidInput, match=r"noise\.independent"):
        inca.simulate(execution, np.ones(4), noise=inca.Noise(np.full(4, np.nan), np.ones((4, 3))))


def test_late_shares_are_not_simulated() -> None:
    schedule = inca.ExplicitSchedule([[[-1], [0]], [[1], [0]]])
    execution = inca.Execution(schedule, inca.incremental_injection(2), undelivered=[(1, 0, 1, 2)])
    with pytest.raises(inca.InvalidInput, match=r"undelivered must be back in its own round, .*, got \(1, 0, 1, 2\)"):
        inca.simulate(execution, [1.0, 2.0], inca.NoiseLevels(independent=0.0, cancelling=1.0), generator(1))
    in_time = inca.Execution(schedule, inca.incremental_injection(2), undelivered=[(1, 0, 1, 1)])
    assert inca.simulate(
        in_time, [1.0, 2.0], inca.NoiseLevels(independent=0.0, cancelling=1.0), generator(1)
    ).estimate == pytest.approx(1.5)


def test_noise_and_outcomes_print_as_shapes() -> None:
    """They hold private data, so that a log or a traceback must not show it."""
    execution = inca.Execution(inca.RandomReceivers(4, 3, seed=1), inca.incremental_injection(3))
    noise = inca.draw_noise(execution, inca.NoiseLevels(independent=1.0, cancelling=1.0), generator(1), dimensions=2)
    assert repr(noise) == str(noise) == "Noise(independent of shape (4, 2), cancelling of (4, 3, 2))"
    assert repr(inca.Noise(np.ones(4), np.ones((4, 3)))) == "Noise(independent of shape (4,), cancelling of (4, 3))"
    outcome = inca.simulate(execution, np.full((4, 2), 0.125), noise=noise)
    assert repr(outcome) == "Outcome(Execution(parties=4, rounds=3), messages of shape (4, 2))"
    recorded = inca.simulate(execution, np.full((4, 2), 0.125), noise=noise, record=True)
    assert str(recorded).endswith("messages of shape (4, 2), history of (4, 4, 2))")
