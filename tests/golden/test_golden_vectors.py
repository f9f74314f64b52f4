from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import inca
from helpers.paths import ROOT
from inca.protocol.execution_files import read_execution as read

FOLDER = ROOT / "golden"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


@pytest.mark.parametrize("name", NAMES)
def test_simulator_agrees_with_exact_arithmetic(name: str) -> None:
    execution = read(FOLDER / f"{name}.json").execution
    expected = json.loads((FOLDER / f"{name}.expected.json").read_text())
    noise = inca.Noise(np.array(expected["independent_noise"]), np.array(expected["cancelling_noise"]))
    outcome = inca.simulate(execution, expected["values"], noise=noise, record=True)
    assert outcome.history is not None
    assert np.allclose(outcome.history, expected["messages"], rtol=1e-12, atol=1e-12)
    assert np.allclose(list(execution.weight_history()), expected["message_weights"], rtol=0, atol=1e-13)
    assert outcome.weight == pytest.approx(expected["weight"], abs=1e-12)
    if expected["estimate"] is None:
        assert outcome.estimate is None
    else:
        assert outcome.estimate == pytest.approx(expected["estimate"], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_accountant_agrees_with_exact_arithmetic(name: str) -> None:
    transcript = read(FOLDER / f"{name}.json")
    expected = json.loads((FOLDER / f"{name}.expected.json").read_text())
    view = inca.View(transcript.execution, transcript.adversary)
    levels = transcript.sigma_independent, transcript.sigma_cancelling
    assert levels == (2.0, 16.0)
    assert view.honest.tolist() == expected["honest"]
    assert [[t, i] for t, i in np.argwhere(view.seen).tolist() if i in expected["honest"]] == expected["observed"]
    family = transcript.execution.injection.mask_scales is not None
    for method in ("auto", "dense", "state-space") if family else ("auto", "dense"):
        mu = inca.account(view, inca.NoiseLevels(independent=2.0, cancelling=16.0), method=method, sensitivity=1.0).mu
        assert np.allclose(mu**2, expected["mu_squared"], rtol=1e-11, atol=1e-15), method


def test_public_schedules_are_as_published() -> None:
    for golden in json.loads((FOLDER / "schedules.json").read_text()):
        receivers = np.array(golden["receivers"])
        seed = inca.PublicSeed(bytes.fromhex(golden["seed_hex"]))
        rounds, n, k = receivers.shape
        schedule = inca.random_schedule(golden["kind"], n, rounds, k, seed=seed)
        for t in range(1, golden["rounds"] + 1):
            assert schedule.round(t).receivers.tolist() == golden["receivers"][t - 1]


def test_there_are_vectors_for_all_features() -> None:
    assert {
        "everyone",
        "absences",
        "two-receivers",
        "share",
        "early",
        "quiet",
        "weights",
        "lost-message",
        "nobody-left",
        "alone",
    } <= set(NAMES)


def test_the_files_are_what_the_generator_writes(tmp_path: Path, programs: Path) -> None:
    subprocess.run([programs / "python", ROOT / "tools" / "golden_vectors.py", tmp_path], check=True)
    for path in FOLDER.glob("*.json"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
