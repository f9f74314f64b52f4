"""Tests in which time passes get more of it if they fail; others, and those at fault, fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest
from helpers.pace import allowance

@pytest.fixture(scope="module")
def session():
    assert allowance() >= 3.0
    return allowance()

@pytest.mark.real_time
def test_that_passes():
    assert allowance() == 1.0

@pytest.mark.real_time
def test_on_a_slow_machine():
    assert allowance() >= 9.0

@pytest.mark.real_time
def test_of_a_shared_session(session):
    assert session == 3.0

@pytest.mark.real_time
def test_at_fault():
    assert allowance() < 0.0

def test_unmarked():
    assert allowance() > 1.0
"""
RUN_AGAIN = ["test_on_a_slow_machine", "test_of_a_shared_session", "test_at_fault"]
FAILED = ["test_at_fault", "test_unmarked"]


def test_only_tests_in_which_time_passes_are_run_again_and_those_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_times.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = real_time\n")
    plugins = ["-p", "helpers.pace", "-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines, told = done.stdout.splitlines(), done.stdout + done.stderr
    # Where CI is set, pytest's summary goes on over several lines: only the tests it names are compared.
    assert [line.rpartition("::")[2] for line in lines if line.startswith("RUN AGAIN")] == RUN_AGAIN, told
    named = [line.partition(" - ")[0].rpartition("::")[2] for line in lines if line.startswith("FAILED")]
    assert named == FAILED, told
    assert lines[-1].startswith("2 failed, 3 passed, 5 rerun in "), told
