"""The files in examples/ are what their scripts write, and as private as they say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import inca
from helpers.paths import ROOT

FOLDER = ROOT / "examples"


def test_the_consortium_keeps_its_promise() -> None:
    certificate = inca.certify(inca.read_execution(FOLDER / "consortium.json"), delta=1e-5)
    assert certificate.worst_epsilon < 1.0


@pytest.mark.slow
def test_the_consortium_is_what_its_script_writes(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "consortium.py", tmp_path)
    subprocess.run([sys.executable, str(tmp_path / "consortium.py")], check=True)
    assert (tmp_path / "consortium.json").read_bytes() == (FOLDER / "consortium.json").read_bytes()
