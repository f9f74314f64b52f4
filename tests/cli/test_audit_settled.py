"""`inca audit` and `inca attack` on files of executions in which a cohort settled."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import Capture, call, refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with twelve parties, of whom three leave, and one colludes."""
    presence = inca.Presence.leaving(12, 6, 0.25, np.random.default_rng(4))
    execution = inca.Execution(inca.PermutationReceivers(12, 6, seed=2), inca.incremental_injection(6), presence)
    run = inca.Transcript(
        execution.settled(),
        sigma_independent=1.0,
        sigma_cancelling=6.0,
        sigma_topup=0.5,
        adversary=inca.Adversary([0]),
        sensitivity=1.0,
    )
    inca.write_execution(tmp_path / "run.json", run)
    return tmp_path / "run.json"


def audited(capsys: Capture, path: Path, *words: object) -> dict[str, Any]:
    status, out, _ = call(capsys, "audit", path, "--json", *words)
    assert status == 0
    return dict(json.loads(out))


def test_losses_are_exact_or_a_bound_for_those_who_settled(capsys: Capture, path: Path) -> None:
    exact, bound = audited(capsys, path), audited(capsys, path, "--leavers-collude")
    assert (exact["settlement"], exact["basis"]) == ("settled", "exact")
    assert (bound["settlement"], bound["basis"]) == ("settled", "leavers counted as colluders")
    assert len(exact["honest"]) == 11 and len(bound["honest"]) == 8
    mu = dict(zip(exact["honest"], exact["mu"], strict=True))
    assert all(mu[party] <= most * (1 + 1e-9) for party, most in zip(bound["honest"], bound["mu"], strict=True))
    losses = inca.certify(inca.read_execution(path)).losses
    assert exact["mu"] == pytest.approx(losses.mu.tolist(), rel=1e-9)


def test_what_holds_is_said_of_those_it_is_known_of(capsys: Capture, path: Path) -> None:
    out = call(capsys, "audit", path, "--epsilon", 50, "--details")[1]
    sentence = " ".join(out.split())
    assert "9 of 12 parties settled\n" in out and "  Basis of losses    exact\n" in out and "top-up 0.5" in out
    assert re.search(r" Kept Every honest party loses epsilon \S+ or less, within the required epsilon 50 ", sentence)
    out = call(capsys, "audit", path, "--epsilon", 50, "--leavers-collude", "--details")[1]
    sentence = " ".join(out.split())
    assert "  Basis of losses    leavers counted as colluders\n" in out and "loses epsilon at most" in out
    assert re.search(r" Kept Every honest party that settled loses epsilon at most \S+, within the required", sentence)


def test_where_nobody_settles_losses_are_exact_and_the_report_says_so(capsys: Capture, path: Path) -> None:
    transcript = inca.read_execution(path)
    plain = inca.Execution(transcript.execution.schedule, transcript.execution.injection, transcript.execution.presence)
    inca.write_execution(path, replace(transcript, execution=plain, sigma_topup=0.0))
    report = audited(capsys, path)
    assert (report["settlement"], report["basis"]) == ("none", "exact")


def test_a_bound_without_a_cohort_is_refused(capsys: Capture, tmp_path: Path) -> None:
    execution = inca.Execution(inca.PermutationReceivers(4, 2, seed=1), inca.incremental_injection(2))
    inca.write_execution(tmp_path / "run.json", inca.Transcript(execution, sigma_independent=1.0, sigma_cancelling=2.0))
    sentence = "--leavers-collude must be combined with an execution in which a cohort settles"
    assert refused(capsys, "audit", tmp_path / "run.json", "--leavers-collude") == sentence


def test_an_attack_on_settled_messages_stays_within_the_loss(capsys: Capture, path: Path) -> None:
    status, out, err = call(capsys, "attack", path, "--domain", 0, 1, "--seed", 1, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)
