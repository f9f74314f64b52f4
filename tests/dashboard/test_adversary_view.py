"""The adversary's view, compared with the library."""

from __future__ import annotations

import numpy as np

import inca
from helpers.dashboard_server import RUN, Dashboard, run_execution


def test_losses_are_the_accountants(board: Dashboard) -> None:
    answer = board.ask("adversary", **RUN, colluding="1 4", eavesdropped="2:0", delta=1e-6)
    view = inca.View(run_execution(), inca.Adversary([1, 4], [(2, 0)]))
    losses = inca.account(view, inca.NoiseLevels(independent=2.0, cancelling=12.0), sensitivity=4.0)
    assert answer["honest"] == losses.honest.tolist() and answer["seen"] == view.seen.astype(int).tolist()
    np.testing.assert_allclose(answer["mu"], losses.mu, rtol=1e-12)
    np.testing.assert_allclose(answer["epsilon"], losses.epsilon(1e-6), rtol=1e-12)
    assert answer["worst"]["party"] == losses.worst_party
    errors = np.array(answer["guesses"]["informed"]["standard_errors"])
    np.testing.assert_allclose(errors, 4.0 / losses.mu, rtol=1e-6)
    values = board.ask("run", **RUN)["simulation"]["values"]
    np.testing.assert_allclose(answer["guesses"]["true_values"], np.array(values)[losses.honest], rtol=1e-5)


def test_one_noise_term_is_broken_and_said_to_be(board: Dashboard) -> None:
    many = {
        "parties": 8,
        "rounds": 6,
        "sigma_independent": 1.2,
        "sigma_cancelling": 400,
        "eavesdropped": "0:* 1:* 2:* 3:* 4:*",
    }
    good, broken = (board.ask("adversary", **many, injection=kind) for kind in ("incremental", "single"))
    np.testing.assert_allclose(broken["mu"], 1 / 0.3, rtol=1e-6)  # as if the cancelling noise were not there
    assert max(good["mu"]) < 0.75 / 0.3
