"""Engines give the same results, finished work is never done again, and nothing half-done is believed."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from inca._base.validation import InputError
from inca.reproduction import engine as module
from inca.reproduction.engine import Engine, Notebook, do, perform, source_digest
from inca.reproduction.figure_reproduction import Job

JOBS = [
    *(
        Job("first_rounds", {"parties": 40, "colluding": 9, "first": f, "runs": 50, "seed": 5})
        for f in range(0, 300, 50)
    ),
    Job(
        "noise_needed",
        {
            "parties": 30,
            "receivers": 1,
            "rounds": 8,
            "colluding": 0.1,
            "dropout": 0.1,
            "own": [0.07, 0.2],
            "first": 0,
            "runs": 3,
            "seed": 5,
        },
    ),
    Job(
        "gopa_needed",
        {
            "parties": 30,
            "exchanges": 8,
            "colluding": 0.1,
            "early": 2,
            "late": 1,
            "own": 0.07,
            "first": 0,
            "runs": 3,
            "seed": 5,
        },
    ),
]


def silent(done: int, total: int) -> None:
    del done, total


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return [json.loads(perform(0, job.run, dict(job.settings), source_digest())[1]) for job in JOBS]


class Counting(Engine):
    """Counts the jobs that were asked for."""

    asked = 0

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        self.asked += len(jobs)
        return super().results(jobs)


@pytest.mark.parametrize(
    ("kind", "workers"), [("serial", None), ("processes", 2), pytest.param("processes", 3, marks=pytest.mark.slow)]
)
def test_neither_engine_nor_workers_change_a_result(
    kind: str, workers: int | None, expected: list[Any], tmp_path: Path
) -> None:
    with Engine(kind, workers) as engine:
        assert do(JOBS, engine, Notebook(tmp_path / "work.jsonl"), silent) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of the cluster's own libraries are not ours to mend
def test_a_real_cluster_gives_the_same(expected: list[Any], tmp_path: Path) -> None:
    from distributed import LocalCluster

    with Engine("dask", workers=2) as engine:  # started by us
        assert do(JOBS, engine, Notebook(tmp_path / "own.jsonl"), silent) == expected
    # Its one worker is a thread that is spoken to over TCP all the same; those above were processes.
    place = {"host": "127.0.0.1", "protocol": "tcp://", "processes": False}
    cluster: Any = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50, **place)
    with cluster, Engine("dask", address=cluster.scheduler_address) as engine:  # somebody else's
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        assert do(JOBS, engine, Notebook(tmp_path / "theirs.jsonl"), silent) == expected


def test_progress_counts_every_job(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with Engine("processes", 2) as engine:
        do(JOBS, engine, Notebook(tmp_path / "work.jsonl"), lambda done, total: told.append((done, total)))
    assert told == [(done, len(JOBS)) for done in range(len(JOBS) + 1)]


@pytest.mark.parametrize("kind", ["serial", "processes"])
def test_interrupted_work_goes_on_where_it_stopped(kind: str, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with Counting(kind, 2) as engine:
        with pytest.raises(KeyboardInterrupt):
            do(JOBS, engine, Notebook(path), stop)
        assert len(path.read_text().splitlines()) == 3
        engine.asked = 0
        assert do(JOBS, engine, Notebook(path), silent) == expected
        assert engine.asked == len(JOBS) - 3
        assert do(JOBS, engine, Notebook(path), silent) == expected  # and a third time there is nothing to do
        assert engine.asked == len(JOBS) - 3


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_cut_short_is_done_again(cut: int, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    with Counting("serial") as engine:
        do(JOBS, engine, Notebook(path), silent)
        path.write_bytes(path.read_bytes()[:-cut])
        lost = len(JOBS) - sum(Notebook(path).find(job)[0] for job in JOBS)
        assert lost >= 1
        engine.asked = 0
        assert do(JOBS, engine, Notebook(path), silent) == expected
        assert engine.asked == lost
        assert all(Notebook(path).find(job)[0] for job in JOBS)


@pytest.mark.parametrize("line", ["", "{", "[1, 2]", "7", '{"key": 1}', '{"result": 3}', "null", '"text"'])
def test_lines_that_say_nothing_are_passed_over(line: str, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    path.write_text(line)
    notebook = Notebook(path)
    notebook.add(JOBS[0], [1])
    assert Notebook(path).find(JOBS[0]) == (True, [1])
    assert Notebook(path).find(JOBS[1]) == (False, None)


def test_results_of_other_code_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "work.jsonl"
    Notebook(path).add(JOBS[0], [1])
    Notebook(path, "seed 1").spend(5.0)
    Notebook(path, "seed 1").spend(2.0)
    Notebook(path, "seed 2").spend(9.0)
    assert Notebook(path).find(JOBS[0])[0] and Notebook(path, "seed 2").find(JOBS[0])[0]
    assert Notebook(path, "seed 1").spent == 7.0
    monkeypatch.setattr(module, "source_digest", lambda: "0" * 64)
    assert not Notebook(path).find(JOBS[0])[0]
    assert Notebook(path, "seed 1").spent == 0.0


def test_a_worker_with_other_code_refuses() -> None:
    with pytest.raises(InputError, match=r"a worker's source code of inca is .* was expected"):
        perform(0, JOBS[0].run, dict(JOBS[0].settings), "0" * 64)


def test_the_digest_follows_the_library_and_not_the_pictures() -> None:
    names = module.counted_sources()
    assert {
        "reproduction/runs.py",
        "reproduction/rounds_to_connect.py",
        "protocol/simulation.py",
        "privacy/calibration.py",
    } <= set(names)
    assert not {name for name in names if name.startswith("cli/") or "figure" in name or "report" in name}


def test_an_error_in_a_worker_reaches_the_caller(tmp_path: Path) -> None:
    bad = Job("first_rounds", {"parties": 1, "colluding": 0, "first": 0, "runs": 1, "seed": 1})
    with Engine("processes", 2) as engine, pytest.raises(InputError, match="parties is 1"):
        do([bad], engine, Notebook(tmp_path / "work.jsonl"), silent)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kind": "spark"}, "engine is 'spark', but one of processes, serial, dask was expected"),
        ({"workers": 0}, "workers is 0"),
        ({"address": "tcp://127.0.0.1:1"}, "address is 'tcp://127.0.0.1:1', but none, or engine dask was expected"),
    ],
)
def test_bad_engines_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Engine(**arguments)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere at all"])
def test_a_cluster_that_does_not_answer_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", "1s")
    with pytest.raises(InputError, match=f"address is '{address}'"), Engine("dask", address=address):
        pass


def test_a_notebook_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Notebook(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        Notebook(tmp_path / "missing" / "work.jsonl").add(JOBS[0], 1)
