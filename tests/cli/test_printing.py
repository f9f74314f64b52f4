"""Results as they are printed, and the files beside them."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import NOISE, Capture, call, refused
from helpers.paths import ROOT
from inca.cli.printing import OutputFiles, print_error
from inca.errors import InvalidInput

EXECUTION = ROOT / "examples" / "consortium.json"
AVERAGE = ["average", ROOT / "examples" / "waiting-times.csv", "--domain", 0, 240, *NOISE]
PLAN = ["plan", "--parties", 10, "--epsilon", 1]
COMPARE = ["compare", "--parties", 10, "--epsilon", 1, "--dropout", 0]

SEEDED: dict[str, list[Any]] = {"average": ["--seed", 1], "audit": []}

WRITTEN: dict[str, tuple[list[Any], str, str]] = {
    "plan": (PLAN, "--out", "  Uninformative  "),
    "average": (AVERAGE, "--transcript", "Private mean"),
    "certificate": (["audit", EXECUTION], "--certificate", "Certificate of privacy"),
    "losses": (["audit", EXECUTION], "--plot", "Certificate of privacy"),
}


@pytest.mark.parametrize("case", [*WRITTEN, "comparison"])
def test_files_are_checked_before_the_work(case: str, capsys: Capture, tmp_path: Path) -> None:
    words, option, _ = WRITTEN.get(case, (COMPARE, "--plot", ""))
    (tmp_path / "folder.svg").mkdir()
    for name, why in (("none/x.svg", "No such file or directory"), ("folder.svg", "Is a directory")):
        path = tmp_path / name
        assert refused(capsys, *words, option, path) == f"{path} cannot be written: {why}"


@pytest.mark.parametrize("case", WRITTEN)
def test_a_result_is_printed_even_if_its_file_cannot_be_written(
    case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, option, shown = WRITTEN[case]

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "x.svg"
    sentence = f"inca: {path} cannot be written: No space left on device\n"
    status, out, err = call(capsys, *words, option, path)
    assert shown in out and "x.svg" not in out and (status, err) == (2, sentence)
    status, out, err = call(capsys, *words, option, path, "--json")
    assert isinstance(json.loads(out), dict) and (status, err) == (2, sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [AVERAGE, ["audit", EXECUTION]], ids=["average", "audit"])
def test_a_terminal_is_never_too_narrow_and_hears_what_is_next(
    words: list[Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, piped, _ = call(capsys, *words, *SEEDED[words[0]])
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    _, shown, _ = call(capsys, *words, *SEEDED[words[0]])
    assert "\nNext: " in shown and "Next: " not in piped
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in shown.splitlines()) <= 80
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown.split("\nNext: ")[0])
    assert plain.split() == piped.split(), "words are the same, and none is broken"


def test_two_results_are_not_written_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(InvalidInput, match=r"^the execution and the certificate must be two files, got .*x.json"):
        OutputFiles(execution=path, certificate=tmp_path / ".." / tmp_path.name / "x.json")


def test_refusals_are_wrapped_on_a_terminal_alone(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_error("inca: rounds must be at least 1, got 0")
    assert capsys.readouterr().err == "inca: rounds must be at least 1, got 0\n"
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    print_error("inca: rounds must be at least 1, got 0")
    assert capsys.readouterr().err == "inca: rounds must be\n    at least 1, got\n    0\n"


def test_verbs_print_for_people_through_one_function() -> None:
    """What goes around it is not wrapped: only JSON and the version do, and sentences on stderr."""
    around = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "src" / "inca" / "cli").rglob("*.py"))
        for line in path.read_text().splitlines()
        if " print(" in line
        and path.name not in ("printing.py", "progress.py", "events.py")
        and "sys.stderr" not in line
    ]
    assert around == []
