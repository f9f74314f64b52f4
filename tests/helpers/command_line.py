"""Calling the command line, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

NOISE = ["--sigma-independent", "2", "--sigma-cancelling", "20"]


def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from inca.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **more)


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command line in this process: the same, but for the start of an interpreter."""
    from inca.cli import main

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["inca", *map(str, words)])
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err
