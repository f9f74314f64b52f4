"""Programs in forks of a loaded interpreter get from their shell, and end, as programs of their own do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENDINGS = {
    "done": ("", 0),
    "a status": ("import sys; sys.exit(3)", 3),
    "a sentence": ("import sys; sys.exit('no')", 1),
    "an error": ("1 / 0", 1),
    "killed": ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
}
TELL = """
import os, sys, threading, time
print(sys.argv[1:], os.getcwd(), os.environ["TOLD"], sys.stdin.read(), os.isatty(1))
print("beside", file=sys.stderr)
threading.Thread(target=lambda: (time.sleep(0.1), print("last"))).start()
"""
WAIT = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(100)
"""


def both(loaded_programs: Path, folder: Path, text: str, *words: str, **more: Any) -> list[tuple[int, str, str]]:
    """Run a program in both ways."""
    (folder / "program.py").write_text(text)
    results = []
    for python in (sys.executable, str(loaded_programs / "python")):
        command = [python, "program.py", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, **more)
        results.append((done.returncode, done.stdout, done.stderr))
    return results


@pytest.mark.parametrize("ending", ENDINGS)
def test_they_end_alike(ending: str, loaded_programs: Path, tmp_path: Path) -> None:
    text, status = ENDINGS[ending]
    own, fork = both(loaded_programs, tmp_path, text)
    assert own[0] == fork[0] == status and own[1] == fork[1] == ""
    assert own[2].splitlines()[-1:] == fork[2].splitlines()[-1:]  # tracebacks differ above the error


def test_they_get_words_folder_environment_and_streams_alike(loaded_programs: Path, tmp_path: Path) -> None:
    own, fork = both(loaded_programs, tmp_path, TELL, "a b", "c", input="typed", env=os.environ | {"TOLD": "yes"})
    assert own == fork == (0, f"['a b', 'c'] {tmp_path} yes typed False\nlast\n", "beside\n")


def test_a_signal_reaches_the_program(loaded_programs: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WAIT)
    command = [str(loaded_programs / "python"), "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60.0) == 7
