"""The command lines shown in the README and the docs print what they show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command_line import call
from helpers.paths import ROOT
from inca.reproduction.reproduce import claim_row, read_reproduction

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


SLOW = "inca attack "  # twenty thousand runs of each kind


def examples() -> list[tuple[str, str, str]]:
    found = []
    for page in PAGES:
        if page.name == "first-ten-minutes.md":  # begins in an empty folder: test_first_ten_minutes.py
            continue
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((page.name, command, output))
    return found


@pytest.mark.parametrize(
    ("page", "command", "output"),
    [pytest.param(*words, marks=[pytest.mark.slow] * words[1].startswith(SLOW)) for words in examples()],
)
def test_shown_output_is_printed(
    page: str,
    command: str,
    output: str,
    programs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command.startswith("inca ") and command != "inca --version" and not set(command) & set("$&|;<>\"'"):
        # Without the start of an interpreter; the others need a shell, or are what is left to a program of its own.
        monkeypatch.chdir(ROOT)
        monkeypatch.setenv("COLUMNS", "100")
        _, out, err = call(capsys, *command.split()[1:])
    else:
        folder = Path(sys.executable).parent if command == "inca --version" else programs
        environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
        done = subprocess.run(
            command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        out, err = done.stdout, done.stderr
    printed = [line.rstrip() for line in out.splitlines()]
    assert printed == [line.rstrip() for line in output.splitlines()], err


def test_the_verdicts_on_the_paper_are_those_of_the_data(programs: Path) -> None:
    """Judged anew by this code from the data in docs/reproduction, which are of the paper's full size."""
    done = subprocess.run(
        [programs / "python", "tools/verdicts.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    documents = sorted((ROOT / "docs" / "reproduction").glob("*/*.json"))
    assert len(documents) == 4
    for path in documents:
        document = json.loads(path.read_text())
        study, findings = read_reproduction(path)
        assert not study.quick and document["parameters"] == json.loads(json.dumps(study.parameters))
        assert document["claims"] == [claim_row(claim) for claim in findings.claims]


def test_there_are_examples_and_links_lead_somewhere() -> None:
    assert examples()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
