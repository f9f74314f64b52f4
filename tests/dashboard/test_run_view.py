"""A run, round by round, compared with the library."""

from __future__ import annotations

import numpy as np
import pytest

import inca
from helpers.dashboard_server import RUN, Dashboard, run_execution


def test_a_run_is_the_librarys(board: Dashboard) -> None:
    answer, execution = board.ask("run", **RUN), run_execution()
    simulation = answer["simulation"]
    assert answer["receivers"] == [execution.sends(t).receivers.tolist() for t in range(1, 7)]
    assert answer["published"] == [0, 1, 2, 3, 4, 6]
    np.testing.assert_allclose(answer["weights"], np.array(list(execution.weight_history())), rtol=1e-5)
    values, messages = np.array(simulation["values"]), np.array(simulation["messages"])
    silent = inca.NoiseLevels(independent=0.0, cancelling=0.0)
    noiseless = inca.simulate(execution, values, silent, np.random.default_rng(0), record=True)
    assert noiseless.history is not None
    np.testing.assert_allclose(simulation["noiseless"], noiseless.history, atol=1e-5)
    last = messages[-1][answer["published"]].sum() / execution.weight
    assert simulation["estimates"][-1] == pytest.approx(last, rel=1e-4)
    assert simulation["true_mean"] == pytest.approx(values.mean(), rel=1e-5)
    levels = inca.NoiseLevels(independent=0.5, cancelling=3.0)
    budget = inca.expected_error(execution, levels, values=values)
    assert simulation["expected_error"]["cancelling"] == pytest.approx(budget.cancelling)


def test_what_comes_of_a_run_is_in_the_domain_and_says_what_it_is_worth(board: Dashboard) -> None:
    noisy = {"parties": 4, "rounds": 5, "sigma_independent": 5, "sigma_cancelling": 50}
    seen = set()
    for seed in range(6):
        simulation = board.ask("run", **noisy, seed=seed)["simulation"]
        estimate, result = simulation["estimates"][-1], simulation["result"]
        assert result["estimate"] == min(max(estimate, 0.0), 1.0) and result["interval"] == [0.0, 1.0]
        assert result["confidence"] == 0.95
        outside = [sentence for sentence in result["remarks"] if "outside [0, 1]" in sentence]
        assert len(outside) == (not 0.0 <= estimate <= 1.0)
        assert result["remarks"][-1].endswith("guessing 0.5, the middle, would do as well.")
        seen.add(len(outside))
    assert 1 in seen
    quiet = board.ask("run", parties=9, rounds=5, sigma_independent=0.05, sigma_cancelling=1)["simulation"]
    assert quiet["result"]["remarks"] == [] and quiet["result"]["estimate"] == quiet["estimates"][-1]


def test_noise_cancels_to_nothing_when_all_are_present(board: Dashboard) -> None:
    simulation = board.ask("run", parties=9, rounds=5, sigma_independent=0, sigma_cancelling=50)["simulation"]
    assert simulation["estimates"][-1] == pytest.approx(simulation["true_mean"], abs=1e-4)
    assert abs(simulation["estimates"][1] - simulation["true_mean"]) > 0.1


def test_who_leaves_changes_nobody_elses_noise(board: Dashboard) -> None:
    """Else a party that is killed in the picture would seem to change the past."""
    before = np.array(board.ask("run", **RUN | {"absent": ""})["simulation"]["messages"])
    after = np.array(board.ask("run", **RUN | {"absent": "5:4-"})["simulation"]["messages"])
    np.testing.assert_array_equal(before[:4], after[:4])
    assert (before[4:] != after[4:]).any()


def test_n_of_two_thousand_opens(board: Dashboard) -> None:
    answer = board.ask("run", parties=2000, rounds=40)
    assert np.array(answer["simulation"]["messages"]).shape == (41, 2000)


def test_everyone_absent_has_no_estimate(board: Dashboard) -> None:
    answer = board.ask("run", parties=3, rounds=4, absent="0:3- 1:2- 2:4-")
    assert answer["simulation"]["estimates"][-1] is None and answer["simulation"]["expected_error"] is None
    assert answer["simulation"]["result"] is None
    assert answer["published"] == []
