"""Calling the command line, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import docstring_parser
import pytest

MAIN = [sys.executable, "-m", "inca"]
NOISE = ["--sigma-independent", "2", "--sigma-cancelling", "20"]

Capture = pytest.CaptureFixture[str]

documented = cache(docstring_parser.parse_from_object)
"""What help reads of a class: for that, its file is parsed, which takes longer than all else and need be done once."""


def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line as a program."""
    return subprocess.run([*MAIN, *map(str, words)], capture_output=True, text=True, check=False, timeout=120, **more)


def call(capsys: Capture, *words: object) -> tuple[int, str, str]:
    """Run the command line in this process: the same, but for the start of an interpreter."""
    from inca.cli import main

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(docstring_parser, "parse_from_object", documented)
        patch.setattr("inca.cli.progress.FIRST_LINE_S", 1e9)  # how long it takes here says nothing
        patch.setattr(sys, "argv", ["inca", *map(str, words)])
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def instead(words: Sequence[object], *others: object) -> list[object]:
    """Return the words of a command with others, which stand instead of the same options: these are given once."""
    kept: list[object] = []
    taken = {word for word in others if str(word).startswith("--")}
    keep = True
    for word in words:
        if str(word).startswith("--"):
            keep = word not in taken
        kept += [word] * keep
    return [*kept, *others]


def refused(capsys: Capture, *words: object) -> str:
    """Run what must be refused: status 2, nothing on stdout, and one sentence, which is returned without "inca: "."""
    status, out, err = call(capsys, *words)
    assert (status, out) == (2, ""), err
    assert err.startswith("inca: ") and err.count("\n") == 1 and "Traceback" not in err
    return err.removeprefix("inca: ").rstrip("\n")
