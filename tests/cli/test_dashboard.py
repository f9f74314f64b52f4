from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.command_line import MAIN, Capture, refused, run
from helpers.dashboard_server import Dashboard
from helpers.paths import ROOT

EXECUTION = ROOT / "examples" / "consortium.json"


@pytest.mark.parametrize("times", [1, 2])
def test_it_serves_until_it_is_interrupted(times: int, programs: Path) -> None:
    program = MAIN if times == 1 else [str(programs / "inca")]
    command = [*program, "dashboard", "--no-browser", "--port", "0", str(EXECUTION)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            words = process.stdout.readline()
            port = int(words.split("127.0.0.1:")[1].split("/")[0])
            assert Dashboard(port).ask("files")["files"][0]["name"] == "consortium.json"
            began = time.monotonic()
            for _ in range(times):  # some press Ctrl-C again
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            assert process.wait(timeout=30) == 0
            assert time.monotonic() - began < 20 and process.stderr.read() == ""
        finally:
            process.kill()  # else a failure would wait for it for ever


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.json"], "nothing.json cannot be read: No such file or directory"),
        (["--sessions", "nowhere"], "--sessions must be an existing folder, got 'nowhere'"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid:8765"),
        (["--port", "70000"], "--port must be from 0 to 65535, got 70000"),
    ],
)
def test_bad_input_is_refused(
    words: list[str], sentence: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "dashboard", "--no-browser", *words)


@pytest.mark.slow
def test_a_process_of_its_own_refuses_in_the_same_way(tmp_path: Path) -> None:
    done = run("dashboard", "--no-browser", "nothing.json", cwd=tmp_path)
    assert done.returncode == 2 and "nothing.json cannot be read" in done.stderr and done.stderr.count("\n") == 1


def test_without_its_libraries_it_says_what_to_install() -> None:
    code = (
        "import importlib.util as u, sys; original = u.find_spec; "
        "u.find_spec = lambda name, *more: None if name == 'starlette' else original(name, *more); "
        "sys.argv = ['inca', 'dashboard']; from inca.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "pip install 'inca[dashboard]'" in done.stderr
