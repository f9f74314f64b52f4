"""What workers do, against plain versions of the same."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from inca import Adversary, Execution, Presence, RandomReceivers, Requirements, View, incremental_injection
from inca.mechanisms.compare import compare
from inca.mechanisms.gopa import random_graph
from inca.mechanisms.pairwise import complete_loss, losses
from inca.privacy.accountant import account
from inca.privacy.theorems.hidden_messages import edge_vectors
from inca.privacy.theorems.preconditions import theorem4
from inca.protocol.noise_levels import NoiseLevels
from inca.reproduction import runs
from inca.reproduction.figure4_data import _complete_level

SEED = 11


def noise(var_independent: float, var_cancelling: float) -> NoiseLevels:
    return NoiseLevels(independent=math.sqrt(var_independent), cancelling=math.sqrt(var_cancelling))


def drawn(number: int, *key: int) -> tuple[int, np.random.Generator]:
    """The seed and generator of one run, as documented."""
    source = np.random.SeedSequence([SEED, *key, number])
    return int(source.generate_state(1, np.uint64)[0] >> np.uint64(1)), np.random.default_rng(source)


def test_streams_differ_between_runs_seeds_and_settings() -> None:
    seen = {
        next(runs._streams(number, 1, seed, what))[0] for seed in range(5) for what in range(4) for number in range(5)
    }
    assert len(seen) == 100
    assert all(0 <= seed < 2**63 for seed in seen)


def test_settings_are_independent() -> None:
    """The noise of a run without dropouts is its error: it must not be the same for other colluders."""
    results = [
        np.array(
            runs.own_errors(asdict(Requirements(30, 1.0, 1e-5, colluding=c, dropout=0.0)), 10, 1.2, 0, 0, 4, SEED)[
                "squares"
            ]
        )
        for c in (0.1, 0.3)
    ]
    assert not np.allclose(results[0] / results[1], results[0][0] / results[1][0])
    names = ("Central DP", "Local DP", "Muffliato, printed", "Muffliato, corrected")
    first = [
        runs.mechanism_errors(name, asdict(Requirements(16, 0.5, 1e-5, colluding=0.0, dropout=0.0)), 0, 1, SEED)[0]
        for name in names
    ]
    assert len(set(first)) == 4


@pytest.mark.parametrize(("colluding", "eavesdropped"), [(0.3, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("receivers", [1, 2, 3])
def test_rounds_met_are_those_of_the_rank(receivers: int, colluding: float, eavesdropped: float) -> None:
    """For each number of rounds, a run of its own and the floating-point rank of all its edge vectors."""
    n, rounds, number = 14, 6, 12
    counts = runs.rounds_met(n, receivers, rounds, colluding, eavesdropped, first=0, runs=number, seed=SEED)
    assert sum(counts) == number
    plain = [0] * (rounds + 2)
    for run in range(number):
        seed, rng = drawn(run, 0, receivers, round(eavesdropped * n))
        adversary = Adversary.random(n, rounds, rng, colluding=colluding, eavesdropped=eavesdropped)
        met = rounds + 1
        for cut in range(rounds, 0, -1):
            kept = Adversary(adversary.colluding, [(t, i) for t, i in adversary.eavesdropped if t < cut])
            execution = Execution(RandomReceivers(n, rounds, receivers, seed=seed), incremental_injection(rounds))
            shorter = Execution(_First(execution.schedule, cut), incremental_injection(cut))
            view = View(shorter, kept)
            matrix = edge_vectors(view).matrix.toarray()
            if np.linalg.matrix_rank(matrix) < view.honest.size - 1:
                break
            met = cut
        plain[met] += 1
    assert counts == plain


class _First(RandomReceivers):
    """The first rounds of a schedule."""

    def __init__(self, whole: Any, rounds: int) -> None:
        self.__dict__.update(whole.__dict__)
        self.rounds = rounds


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_noise_needed_is_just_enough(dropout: float) -> None:
    n, rounds, own = 30, 8, [0.06, 0.3]
    required = {"parties": n, "colluding": 0.1, "dropout": dropout}
    results = np.array(runs.noise_needed(required, 1, rounds, own, first=2, runs=3, seed=SEED))
    assert results.shape == (3, 2, 2)
    assert (results[..., 0] >= results[..., 1] * (1 - 1e-9)).all()  # Theorem 4 never asks for less than the exact loss
    for run in range(3):
        seed, _ = drawn(2 + run, 1, 1, rounds, round(dropout * n))
        rng = np.random.default_rng((seed, 1))
        presence = Presence.leaving(n, rounds, dropout, rng)
        adversary = Adversary.random(n, rounds, rng, colluding=0.1)
        view = View(
            Execution(RandomReceivers(n, rounds, seed=seed), incremental_injection(rounds), presence), adversary
        )
        assert theorem4(view).holds
        for level, exact in zip(own, results[run, :, 1], strict=True):
            worst = account(view, noise(level, exact), sensitivity=1.0).max_mu
            assert worst == pytest.approx(1.0, abs=1e-6)


def test_too_little_independent_noise_is_infinite() -> None:
    required = {"parties": 30, "colluding": 0.1, "dropout": 0.0}
    assert np.isinf(runs.noise_needed(required, 1, 8, [0.01], first=0, runs=2, seed=SEED)).all()


@pytest.mark.parametrize(("early", "late"), [(0, 0), (3, 0), (2, 3)])
def test_gopa_needs_just_enough(early: int, late: int) -> None:
    n, k, own = 30, 8, 0.08
    required = {"parties": n, "colluding": 0.1, "dropout": 0.0}
    results = runs.gopa_needed(required, k, early, late, own, first=0, runs=4, seed=SEED)
    for run, level in enumerate(results):
        _, rng = drawn(run, 3, early, late)
        graph = random_graph(n, k, rng, rows=n)
        honest = np.ones(n, dtype=np.bool_)
        honest[rng.permutation(n)[:3]] = False
        leavers = rng.permutation(n)[: early + late]
        gone, late_ones = (np.isin(np.arange(n), ids) for ids in (leavers[:early], leavers[early:]))
        worst = losses(graph, honest, noise(own, level), early=gone, late=late_ones).max()
        assert worst == pytest.approx(1.0, abs=1e-3)  # levels are interpolated on a grid


def test_late_leavers_lower_what_gopa_needs() -> None:
    required = {"parties": 40, "colluding": 0.1, "dropout": 0.0}
    needs = [max(runs.gopa_needed(required, 8, 0, late, 0.06, first=0, runs=20, seed=SEED)) for late in (0, 6)]
    assert needs[1] < needs[0]


@pytest.mark.parametrize("late", [0, 1, 9, 30])
def test_the_complete_graphs_level_is_just_enough(late: int) -> None:
    own, honest = 1.3 / 140, 180
    level = _complete_level(own, honest, late)
    assert complete_loss(honest, noise(own, level), late=late) == pytest.approx(1.0, abs=1e-9)


def test_errors_are_those_expected() -> None:
    """The mean of 200 squared errors is within 6 standard errors of the exact expectation (probability below 1e-6)."""
    levels = [[0.5, 2.0], [2.0, 0.5]]
    results = np.array(runs.errors(40, 1, 8, 0.2, levels, first=0, runs=200, seed=SEED))
    for place, (own, shared) in enumerate(levels):
        expected = results[:, :3] @ [own**2, shared**2, 1 / 12]
        apart = results[:, 3 + place] - expected
        assert abs(apart.mean()) < 6 * apart.std(ddof=1) / math.sqrt(len(apart))


def test_a_piece_of_runs_is_the_same_wherever_it_is_cut() -> None:
    whole = runs.errors(20, 1, 5, 0.2, [[1.0, 1.0]], first=0, runs=6, seed=SEED)
    parts = [runs.errors(20, 1, 5, 0.2, [[1.0, 1.0]], first=f, runs=2, seed=SEED) for f in (0, 2, 4)]
    assert whole == [row for part in parts for row in part]


def test_own_runs_are_private_and_have_the_theorems_error() -> None:
    """Relative to theory the mean of 800 squared normal errors has standard error sqrt(2/800) = 5 %; six of them."""
    requirements = Requirements(60, 0.5, 1e-5, colluding=0.2, messages=20, dropout=0.0)
    results = runs.own_errors(asdict(requirements), rounds=20, factor=1.1, drawn=3, first=0, runs=800, seed=SEED)
    assert results["epsilon"] == pytest.approx(0.5, abs=1e-6)
    theory = 1.1 * requirements.var_local_dp / (requirements.honest * requirements.parties)
    assert np.mean(results["squares"]) == pytest.approx(theory, rel=0.3)


@pytest.mark.parametrize("name", ["Central DP", "Local DP", "Muffliato, printed", "Muffliato, corrected"])
def test_other_mechanisms_run(name: str) -> None:
    requirements = asdict(Requirements(16, 0.5, 1e-5, colluding=0.0, dropout=0.0))
    squares = runs.mechanism_errors(name, requirements, first=0, runs=5, seed=SEED)
    assert len(set(squares)) == 5
    assert squares[3:] == runs.mechanism_errors(name, requirements, first=3, runs=2, seed=SEED)


def test_a_prediction_that_cannot_be_made_is_none() -> None:
    requirements = Requirements(200, 0.2, 1e-5, colluding=0.1, dropout=0.1, messages=2)
    assert runs.predicted("inca", asdict(requirements), views=10) is None
    central = runs.predicted("Central DP", asdict(requirements), views=10)
    assert central is not None and central["mse"] > requirements.central_mse


@pytest.mark.parametrize("paper", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_predictions_are_those_of_the_comparison(paper: bool) -> None:
    requirements = Requirements(16, 1.0, 1e-5, colluding=0.1, dropout=0.1, messages=8)
    entries = {entry.mechanism: entry for entry in compare(requirements, [0.1], views=2, paper=paper)}
    for name in ("inca", "GOPA, no leaver late", *(["inca, the paper's recipe"] if paper else [])):
        predicted = runs.predicted(name, asdict(requirements), views=2)
        assert predicted is not None and predicted["mse"] == entries[name].mse


SETTLED = asdict(Requirements(40, 1.0, 1e-5, colluding=0.1, dropout=0.1))


@pytest.mark.slow
def test_runs_of_plans_have_the_expected_error() -> None:
    """Errors are nearly normal: the mean of 1,500 squares is within a fifth but for less than 1e-6."""
    predicted = runs.predicted("inca", SETTLED, views=20)
    squares = runs.planned_errors(SETTLED, first=0, runs=1500, seed=SEED)
    assert predicted is not None and np.mean(squares) == pytest.approx(predicted["mse"], rel=0.2)


def test_runs_of_plans_can_be_cut_anywhere() -> None:
    squares = runs.planned_errors(SETTLED, first=0, runs=20, seed=SEED)
    assert squares[3:5] == runs.planned_errors(SETTLED, first=3, runs=2, seed=SEED)
    assert len(set(squares)) == 20
