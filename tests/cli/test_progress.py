from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import NOISE, Capture
from inca.cli import progress
from inca.cli.progress import LINE_EVERY_S, phase_bar, progress_bar

AT_ONCE = "import inca.cli.progress\ninca.cli.progress.SHOW_AFTER_S = 0.0\ninca.cli.main()\n"
"""A program that shows its progress from the beginning, however fast the machine is."""


def on_a_terminal(*command: str) -> tuple[int, bytes, bytes]:
    """Run a command with a terminal as its stderr; return its status, and what it wrote to stdout and there."""
    main, side = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=side) as process:
        os.close(side)
        seen, limit = b"", time.monotonic() + 100
        while time.monotonic() < limit:
            try:
                part = os.read(main, 65536)
            except OSError:  # the terminal is gone with the process
                break
            seen += part
        out, _ = process.communicate(timeout=100)
    os.close(main)
    return process.returncode, out, seen


def test_it_is_shown_on_a_terminal(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "at_once.py").write_text(AT_ONCE)
    np.save(tmp_path / "v.npy", np.zeros((100, 10)))
    words = ["average", str(tmp_path / "v.npy"), "--domain", "0", "1", *NOISE]
    status, out, seen = on_a_terminal(str(programs / "python"), str(tmp_path / "at_once.py"), *words)
    assert status == 0 and b"  Mean  " in out
    assert b"running: step" in seen and b"of 20" in seen


def test_every_phase_has_a_bar_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "SHOW_AFTER_S", 0.0)
    with phase_bar({"plan": "planning: view", "run": "running: step"}) as show:
        show("plan", 3, 7)
        show("run", 1, 20)
        show("run", 2, 20)
    shown = capsys.readouterr().err
    assert "2 of 20" in shown and "running: step" in shown


def test_short_work_shows_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    with progress_bar("round") as show:
        for done in range(20):
            show(done, 20)
    assert capsys.readouterr().err == ""


def test_short_work_shows_nothing_elsewhere(capsys: Capture) -> None:
    with progress_bar("round") as show:
        show(1, 20)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_until_the_total_is_known_it_is_starting(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Without a call from the work: it may take long to find out how much there is to do."""
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr(progress, "SHOW_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.0)
    shown, limit = "", time.monotonic() + 60
    with progress_bar("round") as show:
        while "starting" not in shown and time.monotonic() < limit:
            time.sleep(0.05)
            shown += capsys.readouterr().err
        assert "starting" in shown
        show(0, 20)
        show(1, 20)
    shown += capsys.readouterr().err
    assert "None" not in shown and (("round 1 of 20" in shown) is terminal or shown == "starting\n")


def test_in_a_log_it_is_a_line_now_and_then(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress_bar("fig9, runs:") as show:
        show(40, 100)  # done in an earlier call
        for done in range(41, 101):
            now[0] += LINE_EVERY_S / 3
            show(done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["fig9, runs: 41 of 100, 9.8 min left", "fig9, runs: 44 of 100, 9.3 min left"]
    assert len(lines) == 20 and lines[-1].startswith("fig9, runs: 98 of 100, 0.3 min left")
