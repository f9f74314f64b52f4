"""Large runs, and the strongest invariants on many more examples; `make test-all` runs them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import inca
from helpers.plain_runs import plain_run
from helpers.strategies import executions, generator, seeds

pytestmark = pytest.mark.slow


def peak_gib(code: str) -> float:
    """Run code in a process of its own and return its peak memory."""
    code += "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    return float(done.stdout.splitlines()[-1])


def test_ten_million_parties_fit_in_four_gigabytes() -> None:
    code = """
import numpy as np, inca
n, T, rng = 10**7, 20, np.random.default_rng(1)
presence = inca.Presence.leaving(n, T, 0.1, rng)
execution = inca.Execution(inca.RandomReceivers(n, T, seed=1), inca.incremental_injection(T), presence)
levels = inca.NoiseLevels(independent=0.1, cancelling=0.1)
outcome = inca.simulate(execution, np.full(n, 0.5), levels, rng)
assert abs(outcome.estimate - 0.5) < 10 * inca.expected_error(execution, levels).total ** 0.5
"""
    assert peak_gib(code) < 4 * 10**9 / 2**30


def test_memory_of_vectors_does_not_grow_with_rounds() -> None:
    code = """
import numpy as np, inca
execution = inca.Execution(inca.RandomReceivers(100, {rounds}, seed=1), inca.incremental_injection({rounds}))
levels = inca.NoiseLevels(independent=1.0, cancelling=1.0)
inca.simulate(execution, np.zeros((100, 100_000)), levels, np.random.default_rng(1))
"""
    few, many = peak_gib(code.format(rounds=3)), peak_gib(code.format(rounds=30))
    assert many < 1.2 * few


VALUES_GIB = 100 * 200_000 * 8 / 2**30
VECTORS = """
import numpy as np, inca
for d in ({sizes}):
    plan = inca.plan(inca.Requirements(100, 1.0, sensitivity=d**0.5))
    presence = inca.Presence.leaving(100, plan.design.rounds, {leaving}, np.random.default_rng(1))
    execution, values = plan.execution(1, presence), np.full((100, d), 0.5)
    {run}
"""
SIMULATE = "inca.simulate(execution, values, plan.noise_levels_of(execution), inca.SystemNormals()).estimate"
AVERAGE = "inca.average(values, inca.Interval(0, 1), plan, absences={leaving})"


@pytest.mark.parametrize("leaving", [0.0, 0.1])
@pytest.mark.parametrize(("run", "times"), [(SIMULATE, 2.0), (AVERAGE, 1.0)])
def test_vectors_take_little_beside_values_and_messages(run: str, times: float, leaving: float) -> None:
    run = run.format(leaving=leaving)
    small = peak_gib(VECTORS.format(sizes="700,", run=run, leaving=leaving))
    assert peak_gib(VECTORS.format(sizes="700, 200_000", run=run, leaving=leaving)) - small < (times + 0.3) * VALUES_GIB


@pytest.mark.parametrize("kind", ["random", "distinct", "permutation"])
def test_a_million_parties_conserve_mass_and_cancel_noise(kind: str) -> None:
    n, rounds, rng = 10**6, 10, generator(1)
    presence = inca.Presence.markov(n, rounds, 0.1, 0.5, rng)
    last = np.ones(n, dtype=bool)
    everyone_back = inca.Presence.explicit(np.stack([presence.row(t) for t in range(rounds)] + [last]))
    schedule = inca.random_schedule(kind, n, rounds, seed=2)
    execution = inca.Execution(schedule, inca.incremental_injection(rounds, quiet=2), everyone_back)
    values = rng.random(n)
    outcome = inca.simulate(execution, values, inca.NoiseLevels(independent=0.0, cancelling=100.0), rng)
    expected = execution.total_weights @ values
    assert abs(outcome.messages.sum() - expected) <= 1e-12 * np.abs(outcome.messages).sum()
    assert outcome.weights.sum() == pytest.approx(execution.total_weights.sum(), rel=1e-12)


@given(executions(largest=14), seeds)
@settings(max_examples=2000)
def test_drawn_noise_equals_the_plain_loop_on_many_examples(execution: inca.Execution, seed: int) -> None:
    values = generator(seed).random(execution.parties)
    noise = inca.draw_noise(execution, inca.NoiseLevels(independent=2.0, cancelling=30.0), generator(seed))
    outcome = inca.simulate(
        execution, values, inca.NoiseLevels(independent=2.0, cancelling=30.0), generator(seed), record=True
    )
    expected, beside = plain_run(execution, values, noise)
    assert outcome.history is not None
    assert np.allclose(outcome.history, expected, rtol=1e-12, atol=1e-9)
    assert np.allclose(outcome.weights, beside[-1], rtol=0, atol=1e-12)
