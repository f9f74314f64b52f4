"""A scheduler and workers as real processes: whatever becomes of them, the numbers are those of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.dask_processes import DaskProcesses, dask_processes, finished_jobs
from helpers.jobs import JOBS, CountingEngine, ending_its_worker, expected_results, silent
from inca.errors import InvalidInput, MissingLibrary, WorkerLost
from inca.jobs import engine as module
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.learn.comparison.trials import untrained_and_unprotected

pytestmark = pytest.mark.filterwarnings("default")  # those of dask's own libraries are not ours to mend

TRAINING = Job(untrained_and_unprotected, {"task": {"parties": 10, "steps": 1}, "first": 0, "seeds": 1})


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[DaskProcesses]:
    with dask_processes(tmp_path, workers=1) as started:
        yield started


def at(done: int, act: Callable[[], object]) -> Callable[[int, int], None]:
    """Return a progress callback that acts when so many jobs are done."""

    def progress(number: int, total: int) -> None:
        if number == done:
            act()

    return progress


def test_a_scheduler_needs_no_inca(tmp_path: Path) -> None:
    with dask_processes(tmp_path, 1, hidden=["inca"]) as processes, Engine("dask", address=processes.address) as engine:
        assert complete_jobs(JOBS[:2], engine, None, silent) == expected_results()[:2]


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_changes_no_result(processes: DaskProcesses, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"

    def replace() -> None:
        processes.kill(processes.processes[1])
        processes.start_worker()

    with CountingEngine("dask", address=processes.address) as engine:
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), at(2, replace)) == expected_results()
        assert finished_jobs(path) == len(JOBS)  # each of them once
        engine.asked = 0
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == 0


@pytest.mark.slow
def test_without_workers_it_waits_and_then_says_so(
    processes: DaskProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "work.jsonl"
    monkeypatch.setattr(module, "WORKER_TIMEOUT_S", 3.0)
    kill = at(2, lambda: processes.kill(processes.processes[1]))
    where = processes.address
    with Engine("dask", address=where) as engine:
        sentence = f"there has been no worker at {where} for 3 s: dask worker {where}; "
        with pytest.raises(WorkerLost, match=sentence + "the same command resumes where it stopped"):
            complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), kill)
        with pytest.raises(WorkerLost, match=sentence + "nothing was kept"):
            complete_jobs(JOBS, engine, None, silent)
    kept = finished_jobs(path)
    assert 2 <= kept < len(JOBS)
    monkeypatch.setattr(module, "WORKER_TIMEOUT_S", 600.0)
    processes.start_worker()
    with CountingEngine("dask", address=where) as engine:
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == len(JOBS) - kept


@pytest.mark.slow
def test_a_scheduler_that_goes_is_said(processes: DaskProcesses, tmp_path: Path) -> None:
    kill = at(2, lambda: processes.kill(processes.scheduler))
    with (
        Engine("dask", address=processes.address) as engine,
        pytest.raises(
            WorkerLost, match=r"the scheduler at tcp://127\.0\.0\.1:\d+ is gone, .*; the same command resumes"
        ),
    ):
        complete_jobs(JOBS, engine, Checkpoint(tmp_path / "work.jsonl", "reproduction"), kill)
    assert 2 <= finished_jobs(tmp_path / "work.jsonl") < len(JOBS)


@pytest.mark.slow
def test_an_interruption_keeps_what_is_done_and_leaves_the_cluster_free(
    processes: DaskProcesses, tmp_path: Path
) -> None:
    path = tmp_path / "work.jsonl"

    def interrupt() -> None:
        raise KeyboardInterrupt

    with CountingEngine("dask", address=processes.address) as engine:
        with pytest.raises(KeyboardInterrupt):
            complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), at(3, interrupt))
        assert finished_jobs(path) == 3
        engine.asked = 0
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == len(JOBS) - 3


@pytest.mark.slow
def test_a_job_that_kills_its_workers_is_given_up(processes: DaskProcesses) -> None:
    sentence = "4 workers died while they did the same job, perhaps for want of memory; nothing was kept"
    with Engine("dask", address=processes.address) as engine, pytest.raises(WorkerLost, match=sentence):
        complete_jobs([Job(ending_its_worker, {})], engine, None, silent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "job", "kind", "sentence"),
    [
        (
            ["inca"],
            JOBS[0],
            InvalidInput,
            "every worker must have inca and its libraries as here, but one says: .*inca",
        ),
        (
            ["sklearn", "sklearn.datasets"],
            TRAINING,
            MissingLibrary,
            r"a worker of the cluster lacks a library: .* needs scikit-learn: pip install 'inca\[learn\]'",
        ),
    ],
)
def test_a_worker_that_lacks_what_a_job_needs_is_told(
    hidden: list[str], job: Job, kind: type[Exception], sentence: str, tmp_path: Path
) -> None:
    with dask_processes(tmp_path, workers=0) as processes:
        processes.start_worker(hidden)
        with Engine("dask", address=processes.address) as engine, pytest.raises(kind, match=sentence):
            complete_jobs([job], engine, None, silent)


def test_another_version_of_dask_is_refused() -> None:
    class Versions:
        def get_versions(self) -> dict[str, Any]:
            return {side: {"packages": {"distributed": side}} for side in ("scheduler", "client")}

    stub: Any = Versions()
    with pytest.raises(InvalidInput, match=r"version of dask must be the same as here \(client\), got scheduler"):
        module._check_version(stub)
