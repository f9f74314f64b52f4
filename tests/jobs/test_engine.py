"""Engines give the same results, wherever the work is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.jobs import JOBS, CountingEngine, expected_results, silent
from inca.errors import InvalidInput
from inca.jobs import engine as module
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job, library_versions, perform_job
from inca.reproduction.runs import first_rounds


@pytest.mark.parametrize(
    ("kind", "workers"), [("serial", None), ("processes", 2), pytest.param("processes", 3, marks=pytest.mark.slow)]
)
def test_neither_engine_nor_workers_change_a_result(kind: str, workers: int | None, tmp_path: Path) -> None:
    with Engine(kind, workers) as engine:
        assert (
            complete_jobs(JOBS, engine, Checkpoint(tmp_path / "work.jsonl", "reproduction"), silent)
            == expected_results()
        )


def test_stopping_kills_no_worker(tmp_path: Path) -> None:
    """Killed just when a job ends, joblib's processes take the thread that manages them along."""

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    def workers() -> set[int]:
        children = psutil.Process().children()
        return {child.pid for child in children if "LokyProcess" in " ".join(child.cmdline())}

    with CountingEngine("processes", 2) as engine:
        complete_jobs(JOBS[:2], engine, Checkpoint(tmp_path / "first.jsonl", "reproduction"), silent)
        before = workers()
        assert len(before) == 2
        with pytest.raises(KeyboardInterrupt):
            complete_jobs(JOBS, engine, Checkpoint(tmp_path / "work.jsonl", "reproduction"), stop)
        assert workers() == before
        path = tmp_path / "work.jsonl"
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of the cluster's own libraries are not ours to mend
def test_a_real_cluster_gives_the_same(tmp_path: Path) -> None:
    from distributed import LocalCluster

    with Engine("dask", workers=2) as engine:  # started by us
        assert (
            complete_jobs(JOBS, engine, Checkpoint(tmp_path / "own.jsonl", "reproduction"), silent)
            == expected_results()
        )
    # Its one worker is a thread that is spoken to over TCP all the same; those above were processes.
    place = {"host": "127.0.0.1", "protocol": "tcp://", "processes": False}
    other: Any = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50, **place)
    with other, Engine("dask", address=other.scheduler_address) as engine:  # somebody else's
        assert other.scheduler_address.startswith("tcp://127.0.0.1:")
        assert (
            complete_jobs(JOBS, engine, Checkpoint(tmp_path / "theirs.jsonl", "reproduction"), silent)
            == expected_results()
        )


def test_a_worker_with_other_code_refuses() -> None:
    with pytest.raises(InvalidInput, match=r"a worker's source code of inca must be the same as here \(0{16}\), got '"):
        perform_job(JOBS[0], "0" * 64, library_versions())
    with pytest.raises(InvalidInput, match=r"a worker's libraries must be the same as here \(numpy 1\), got 'numpy "):
        perform_job(JOBS[0], JOBS[0].origin[0], "numpy 1")


def test_an_error_in_a_worker_reaches_the_caller(tmp_path: Path) -> None:
    bad = Job(first_rounds, {"parties": 1, "colluding": 0, "first": 0, "runs": 1, "seed": 1})
    with Engine("processes", 2) as engine, pytest.raises(InvalidInput, match=r"parties must be from 2 to \d+, got 1"):
        complete_jobs([bad], engine, Checkpoint(tmp_path / "work.jsonl", "reproduction"), silent)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kind": "spark"}, "engine must be one of processes, serial, dask, got 'spark'"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"address": "tcp://127.0.0.1:1"}, "address cannot be combined with engine processes, only with dask"),
    ],
)
def test_bad_engines_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Engine(**arguments)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere at all"])
def test_a_cluster_that_does_not_answer_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 1.0)
    with (
        pytest.raises(InvalidInput, match=f"address must be that of a dask scheduler, got '{address}'"),
        Engine("dask", address=address),
    ):
        pass
