from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.special import chdtri

import inca
from helpers.command_line import Capture, call, refused, run

UNIT = ("--domain", 0, 1)
BARE = ("bare.npz", *UNIT, "--colluding", 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    execution = inca.Execution(inca.RandomReceivers(20, 6, seed=1), inca.incremental_injection(6))
    adversary = inca.Adversary((1, 2), eavesdropped=((0, 5),))
    transcript = inca.Transcript(
        execution, sigma_independent=0.3, sigma_cancelling=4.0, adversary=adversary, sensitivity=1.0
    )
    inca.write_execution(folder / "run.json", transcript)
    inca.write_execution(folder / "bare.npz", inca.Transcript(execution))
    return folder


def test_it_reports_promise_and_attack(runs: Path, capsys: Capture) -> None:
    words = ["attack", runs / "run.json", "--seed", 3, "--domain", 0, 10, "--trials", 2000, "--delta", 0.01]
    status, out, err = call(capsys, *words, "--json")
    report = json.loads(out)
    assert status == 0 and err == ""
    transcript = inca.read_execution(runs / "run.json")
    view = inca.View(transcript.execution, transcript.adversary)
    losses = inca.account(view, inca.NoiseLevels(independent=0.3, cancelling=4.0), sensitivity=10.0)
    assert report["honest"] == view.honest.tolist() and report["party"] == losses.worst_party
    assert report["mu"] == pytest.approx(losses.max_mu) and report["standard_error"] == pytest.approx(10 / losses.mu)
    assert report["epsilon"] == pytest.approx(losses.epsilon(0.01).max())
    assert 0 < report["epsilon_lower"] < report["epsilon"] and report["delta"] == 0.01
    assert report["prior_error"] == pytest.approx(10 / 12**0.5) and report["confidence"] == 1 - 1e-6
    assert report["trials"] == 2000 and report["runs"] == 1000
    # Squared errors of 1000 runs are chi-square; a false alarm of one in a million among 18 parties.
    low, high = (float(chdtri(1000, tail)) for tail in (1 - 1e-6 / 36, 1e-6 / 36))
    for achieved, promised in zip(report["rms_error"], report["standard_error"], strict=True):
        assert low < 1000 * (achieved / promised) ** 2 < high
    assert max(report["uninformed_error"]) < report["prior_error"]
    status, out, _ = call(capsys, *words, "--victim", 9, "--epsilon", 100)
    assert status == 0 and "9   as asked" in out and "\nKept: Every honest party loses epsilon " in out
    report = json.loads(call(capsys, *words, "--epsilon", 100, "--json")[1])
    assert (report["required"], report["kept"]) == (100.0, True) and report["verdict"].startswith("Kept: ")
    status, out, _ = call(capsys, *words, "--epsilon", 0.5)
    assert (
        status == 1 and "\nBroken: An honest party loses epsilon " in out and "the required epsilon 0.5 at delta" in out
    )
    assert "Even an adversary who knows all other values errs by" in out


def test_it_draws_an_adversary_and_takes_levels(runs: Path, capsys: Capture) -> None:
    words = ["attack", runs / "bare.npz", "--colluding", 0.25, "--sigma-independent", 0, "--sigma-cancelling", 3]
    words += ["--trials", 500, "--domain", 0, 1]
    status, out, _ = call(capsys, *words, "--json", "--seed", 1)
    report = json.loads(out)
    assert status == 0 and len(report["honest"]) == 15
    assert report["epsilon"] is None and report["worst"]["mu"] is None and report["standard_error"] == [0.0] * 15
    assert max(report["rms_error"]) < 1e-9 and report["epsilon_lower"] > 2
    assert call(capsys, *words, "--json", "--seed", 1)[1] == out
    assert "recovers that of party" in call(capsys, *words)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.json"], "cannot be read"),
        (["bare.npz"], "the file must say the sensitivity of its values, or --domain must, got neither"),
        (["bare.npz", *UNIT], "the file must say who colludes, or --colluding must"),
        ([*BARE], "bare.npz must say sigma_independent, or --sigma-independent must, got neither"),
        ([*BARE, "--sigma-independent", 1], "bare.npz must say sigma_cancelling, or --sigma-cancelling must"),
        (["run.json", "--domain", 0, 0.5], "--domain must be at least as long as the file's sensitivity (1), got"),
        (["run.json", "--victim", 1], "--victim must be the id of an honest party of 20, got 1"),
        (["run.json", "--victim", 20], "--victim must be the id of an honest party of 20, got 20"),
        (["run.json", "--delta", 2], "--delta must be from 0 to 1, got 2.0"),
        (["run.json", "--epsilon", -1], "--epsilon must be above 0, got -1.0"),
        (["run.json", "--trials", 0], "--trials must be at least 1, got 0"),
        (["run.json", "--seed", -1], "--seed must be at least 0, got -1"),
        (["run.json", "--domain", 1, 0], "high must be above low (1.0), got 0.0"),
        (["run.json", "--sigma-cancelling", "nan"], "sigma_cancelling must be a finite number, at least 0, got nan"),
        (["run.json", "--colluding", 1], "the number of colluding parties must be below 20"),
    ],
)
def test_it_refuses_in_one_sentence(
    words: list[object], sentence: str, runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    assert sentence in refused(capsys, "attack", *words)


@pytest.mark.slow
def test_it_is_a_program(runs: Path) -> None:
    done = run("attack", runs / "run.json", "--trials", 200)
    assert done.returncode == 0 and "inca:" not in done.stderr  # progress may be there on a slow machine
    assert "attack shows" in " ".join(done.stdout.split())
