"""A dask scheduler and workers as processes of their own, as they would be on several machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from helpers.paths import ROOT

DEADLINE_S = 240.0  # far more than anything takes


class DaskProcesses:
    """One scheduler, and workers that can be killed and started.

    Args:
        folder: For what they write.
        hidden: Modules that the scheduler cannot import.
        settings: Of the environment of all processes.
        protocol: What they speak, tcp or tls.
    """

    def __init__(self, folder: Path, hidden: Sequence[str], settings: dict[str, str], protocol: str) -> None:
        self._folder, self._settings, self._protocol = folder, settings, protocol
        self.processes: list[subprocess.Popen[bytes]] = []
        contact = folder / "scheduler.json"
        place = ["--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._start(hidden, "scheduler", *place, "--scheduler-file", str(contact))
        self.address = str(json.loads(_eventually(contact))["address"])

    def start_worker(self, hidden: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, which cannot import some modules; it may take a while to be there."""
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(self._folder)]
        return self._start(hidden, "worker", self.address, *options, "--host", f"{self._protocol}://127.0.0.1")

    def _start(self, hidden: Sequence[str], *words: str) -> subprocess.Popen[bytes]:
        number = len(self.processes)
        home = self._folder / f"process-{number}"  # read by the processes that it starts, too
        home.mkdir()
        (home / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({list(hidden)}))\n")
        paths = os.pathsep.join([str(home), str(ROOT / "src"), str(ROOT / "tests")])
        command, log = [sys.executable, "-m", "dask", *words], (home / "log.txt").open("wb")
        environment = os.environ | self._settings | {"PYTHONPATH": paths}
        with log:
            process = subprocess.Popen(
                command, start_new_session=True, stdout=log, stderr=log, env=environment, cwd=home
            )
        self.processes.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process and those that it started, with SIGKILL: a worker's guard would start it again."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def dask_processes(
    folder: Path,
    workers: int,
    *,
    hidden: Sequence[str] = (),
    settings: dict[str, str] | None = None,
    protocol: str = "tcp",
) -> Iterator[DaskProcesses]:
    """Start a scheduler and so many workers; all are killed in the end."""
    cluster = DaskProcesses(folder, hidden, settings or {}, protocol)
    try:
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        for process in cluster.processes:
            cluster.kill(process)


def finished_jobs(path: Path) -> int:
    """Return how many jobs a checkpoint holds."""
    return path.read_text().count('"key"') if path.exists() else 0


def wait_for_jobs(path: Path, number: int, process: subprocess.Popen[str] | None = None) -> None:
    """Wait until a checkpoint holds so many jobs, or fail if the process that writes it has ended."""
    deadline = time.monotonic() + DEADLINE_S
    while finished_jobs(path) < number:
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def _eventually(path: Path) -> str:
    deadline = time.monotonic() + DEADLINE_S
    while not (path.exists() and path.read_text().endswith("}")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return path.read_text()
