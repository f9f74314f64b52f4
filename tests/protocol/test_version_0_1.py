"""Executions that version 0.1 wrote are read, written again alike, and give the same losses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import inca
from helpers.paths import FIXTURES
from inca.protocol.execution_files import digest

FOLDER = FIXTURES / "version-0.1"
LOSSES: dict[str, Any] = json.loads((FOLDER / "losses.json").read_text())


@pytest.mark.parametrize("name", ["execution.json", "execution.npz"])
def test_executions_are_read(name: str) -> None:
    transcript = inca.read_execution(FOLDER / name)
    assert f"sha256:{digest(transcript)}" == LOSSES["execution"]
    assert (transcript.execution.parties, transcript.execution.rounds) == (12, 6)
    assert transcript.noise_levels == inca.NoiseLevels(independent=2.0, cancelling=16.0)
    assert transcript.adversary == inca.Adversary(colluding=[1, 4], eavesdropped=[(2, 6)])


def test_an_execution_is_written_as_it_was(tmp_path: Path) -> None:
    for name in ("execution.json", "execution.npz"):
        transcript = inca.read_execution(FOLDER / name)
        inca.write_execution(tmp_path / "again.json", transcript)
        assert (tmp_path / "again.json").read_bytes() == (FOLDER / "execution.json").read_bytes()
        inca.write_execution(tmp_path / "again.npz", transcript)
        assert digest(inca.read_execution(tmp_path / "again.npz")) == digest(transcript)


def test_its_losses_are_the_same() -> None:
    transcript = inca.read_execution(FOLDER / "execution.json")
    document = inca.certify(transcript, sensitivity=2.0, delta=1e-5).document()
    # Numbers that linear algebra yields may differ in their last digits between machines.
    assert document.mu == pytest.approx(LOSSES["mu"], rel=1e-9)
    assert document.epsilon == pytest.approx(LOSSES["epsilon"], rel=1e-9)
    for case, before in ((document.worst, LOSSES["worst"]), (document.full_attendance, LOSSES["full_attendance"])):
        assert case is not None and case.party == before["party"]
        assert (case.mu, case.epsilon) == pytest.approx((before["mu"], before["epsilon"]), rel=1e-9)
