"""Both commands that have engines, on a cluster of real processes: a worker killed in between, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from helpers.command_line import MAIN
from helpers.dask_processes import DEADLINE_S, dask_processes, finished_jobs, wait_for_jobs

REPRODUCE = ["reproduce", "fig3", "--quick", "--json"]
COMPARE = ["learn", "compare", "--parties", "12", "--steps", "2", "--seeds", "22", "--epsilon", "3", "--dropout", "0"]
COMPARE += ["--averager", "central", "--averager", "local", "--json"]
NUMBERS = {"reproduce": Path("fig3-quick/failing.csv"), "learn": Path("scores.json")}


def start(words: list[str], folder: Path, *engine: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a command whose results go to a folder, and return where it keeps its finished jobs."""
    kept = folder / ("fig3-quick/work.jsonl" if words[0] == "reproduce" else "work.jsonl")
    place = ["--out", str(folder)] if words[0] == "reproduce" else ["--checkpoint", str(kept)]
    folder.mkdir(exist_ok=True)
    command = [*MAIN, *words, *place, "--engine", *engine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), kept


def finish(process: subprocess.Popen[str], folder: Path, words: list[str]) -> bytes:
    """Wait for the end of a command and return its numbers."""
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    if words[0] == "learn":
        (folder / NUMBERS["learn"]).write_text(json.dumps(json.loads(out)["scores"]))
    return (folder / NUMBERS[words[0]]).read_bytes()


@pytest.mark.slow
@pytest.mark.real_time  # Ctrl-C must come before the last job is done, which a machine that stalls may miss
@pytest.mark.parametrize("words", [REPRODUCE, COMPARE], ids=["reproduce", "learn compare"])
def test_a_killed_worker_and_an_interruption_change_no_number(words: list[str], tmp_path: Path) -> None:
    serial, kept = start(words, tmp_path / "serial", "serial")
    expected, jobs = finish(serial, tmp_path / "serial", words), finished_jobs(kept)
    with dask_processes(tmp_path, workers=2) as processes:
        process, kept = start(words, tmp_path / "cluster", "dask", "--address", processes.address)
        wait_for_jobs(kept, 1, process)
        processes.kill(processes.processes[1])
        processes.start_worker()
        wait_for_jobs(kept, 3, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130 and "Traceback" not in err
        done = finished_jobs(kept)
        assert 3 <= done < jobs
        again, _ = start(words, tmp_path / "cluster", "dask", "--address", processes.address)
        assert finish(again, tmp_path / "cluster", words) == expected
    assert finished_jobs(kept) == jobs  # none of them was done twice
