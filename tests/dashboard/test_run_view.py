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
    np.testing.assert_allclose(simulation["noiseless"], noiseless.history, rtol=1e-5)
    there = answer["published"]
    before = messages[-1][there].sum() / np.array(answer["weights"])[-1][there].sum()
    assert simulation["estimates"][-1] == pytest.approx(before, rel=1e-4)
    np.testing.assert_allclose(simulation["settled"]["noiseless"], noiseless.messages, rtol=1e-5)
    settled = np.array(simulation["settled"]["messages"])[there].sum() / execution.weight
    assert simulation["result"]["estimate"] == pytest.approx(settled, rel=1e-4)
    assert simulation["true_mean"] == pytest.approx(values.mean(), rel=1e-5)
    levels = inca.NoiseLevels(independent=2.0, cancelling=12.0)
    budget = inca.expected_error(execution, levels, values=values)
    assert simulation["expected_error"]["cancelling"] == pytest.approx(budget.cancelling)


def test_what_comes_of_a_run_is_in_the_domain_and_says_what_it_is_worth(board: Dashboard) -> None:
    noisy = {"parties": 4, "rounds": 5, "sigma_independent": 1200, "sigma_cancelling": 12000}
    seen = set()
    for seed in range(6):
        simulation = board.ask("run", **noisy, seed=seed)["simulation"]
        estimate, result = simulation["estimates"][-1], simulation["result"]
        assert result["estimate"] == min(max(estimate, 0.0), 240.0) and result["interval"] == [0.0, 240.0]
        assert result["confidence"] == 0.95
        outside = [sentence for sentence in result["remarks"] if "outside [0, 240]" in sentence]
        assert len(outside) == (not 0.0 <= estimate <= 240.0)
        assert result["remarks"][-1].endswith("guessing 120, the middle, would do as well.")
        seen.add(len(outside))
    assert 1 in seen
    quiet = board.ask("run", parties=9, rounds=5, sigma_independent=12, sigma_cancelling=240)["simulation"]
    assert quiet["result"]["remarks"] == [] and quiet["result"]["estimate"] == pytest.approx(quiet["estimates"][-1])
    assert quiet["settled"] is None  # nobody has left


def test_who_leaves_leaves_no_noise_behind(board: Dashboard) -> None:
    loud = {"parties": 9, "rounds": 8, "sigma_independent": 0, "sigma_cancelling": 200, "absent": "4:5-"}
    simulation = board.ask("run", **loud)["simulation"]
    stayed = np.delete(simulation["values"], 4).mean()
    assert simulation["result"]["estimate"] == pytest.approx(stayed, abs=15.0)  # a part of what has left is in it
    assert abs(simulation["estimates"][-1] - stayed) > 15.0
    assert simulation["expected_error"]["cancelling"] == pytest.approx(0.0, abs=1e-12)


def test_noise_cancels_to_nothing_when_all_are_present(board: Dashboard) -> None:
    simulation = board.ask("run", parties=9, rounds=5, sigma_independent=0, sigma_cancelling=12000)["simulation"]
    assert simulation["estimates"][-1] == pytest.approx(simulation["true_mean"], abs=0.02)
    assert abs(simulation["estimates"][1] - simulation["true_mean"]) > 24


def test_who_leaves_changes_nobody_elses_noise(board: Dashboard) -> None:
    """Else a party that is killed in the picture would seem to change the past."""
    before = np.array(board.ask("run", **RUN | {"absent": ""})["simulation"]["messages"])
    after = np.array(board.ask("run", **RUN | {"absent": "5:4-"})["simulation"]["messages"])
    np.testing.assert_array_equal(before[:4], after[:4])
    assert (before[4:] != after[4:]).any()


def test_n_of_two_thousand_opens(board: Dashboard) -> None:
    answer = board.ask("run", parties=2000, rounds=10)
    assert np.array(answer["simulation"]["messages"]).shape == (11, 2000)


def test_everyone_absent_has_no_estimate(board: Dashboard) -> None:
    answer = board.ask("run", parties=3, rounds=4, absent="0:3- 1:2- 2:4-")
    assert answer["simulation"]["estimates"][-1] is None and answer["simulation"]["expected_error"] is None
    assert answer["simulation"]["result"] is None
    assert answer["published"] == []
