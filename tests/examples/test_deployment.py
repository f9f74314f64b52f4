"""The unit for systemd and the container file, as far as files can tell; both were tried for real (the tutorial)."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from inca.cli.app import STATUS_MEANING
from inca.cli.usage import NO_RESULT

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "examples" / "inca-node.service"
CONTAINER = ROOT / "examples" / "Containerfile"


def _service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.read(UNIT)
    return unit["Service"]


def test_the_unit_starts_a_party_again_unless_that_is_of_no_use() -> None:
    service = _service()
    assert service["Restart"] == "on-failure"
    assert {int(status) for status in service["RestartPreventExitStatus"].split()} == {2, NO_RESULT}
    assert {2, NO_RESULT} < set(STATUS_MEANING)
    assert service["KillSignal"] == "SIGINT" and "STOPSIGNAL SIGINT" in CONTAINER.read_text()


def test_no_value_and_no_word_of_an_operator_is_in_a_unit() -> None:
    command = _service()["ExecStart"]
    assert "--first-start" not in command and re.search(r"--value %d/\w+", command)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_every_line_of_the_unit() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert [line for line in said if "is not executable" not in line] == []  # inca is not installed for all here


def test_the_container_is_built_of_files_that_exist() -> None:
    copied = [line.split()[1:-1] for line in CONTAINER.read_text().splitlines() if line.startswith("COPY")]
    assert copied and all((ROOT / name).exists() for names in copied for name in names)
