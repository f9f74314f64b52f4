"""Questions about noise, and runs as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import inca
from helpers.dashboard_server import CONSORTIUM, RUN, Dashboard


def test_enough_noise_is_enough(board: Dashboard) -> None:
    asked = RUN | {"sigma_independent": 4.0, "colluding": "1", "delta": 1e-5}
    level = board.ask("sufficient-noise", epsilon=4.0, **asked)["sigma_cancelling"]
    worst = board.ask("adversary", **asked | {"sigma_cancelling": level * (1 + 1e-6)})["worst"]["epsilon"]
    assert worst == pytest.approx(4.0, rel=1e-3) and worst <= 4.0 * (1 + 1e-4)


def test_an_address_can_name_nobody_instead_of_the_adversary_of_a_file(board: Dashboard) -> None:
    opened = board.post("/api/open?name=run.json", CONSORTIUM.read_bytes()).json
    nobody = board.ask("adversary", file=opened["id"], colluding="none")
    assert nobody["colluding"] == [] and len(nobody["honest"]) == inca.read_execution(CONSORTIUM).execution.parties
    assert board.ask("run", file=opened["id"], colluding="none")["colluding"] == []


def test_a_run_can_be_downloaded_and_audited(board: Dashboard, tmp_path: Path) -> None:
    answer = board.get("/api/execution", **RUN, colluding="1")
    (tmp_path / "run.json").write_bytes(answer.body)
    transcript = inca.read_execution(tmp_path / "run.json")
    view = inca.View(transcript.execution, transcript.adversary)
    mu = inca.account(view, transcript.noise_levels, sensitivity=4.0).mu
    np.testing.assert_allclose(board.ask("adversary", **RUN, colluding="1")["mu"], mu, rtol=1e-12)
