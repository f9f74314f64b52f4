"""Finished work is never done again, and nothing half-done is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.jobs import JOBS, CountingEngine, expected_results, silent
from inca.errors import InvalidInput
from inca.jobs import checkpoint as module
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine


@pytest.mark.parametrize("kind", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
def test_progress_counts_every_job(kind: str, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with Engine(kind, 2) as engine:
        checkpoint = Checkpoint(tmp_path / "work.jsonl", "reproduction")
        complete_jobs(JOBS, engine, checkpoint, lambda done, total: steps.append((done, total)))
    assert steps == [(done, len(JOBS)) for done in range(len(JOBS) + 1)]


@pytest.mark.parametrize("kind", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
def test_interrupted_work_goes_on_where_it_stopped(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with CountingEngine(kind, 2) as engine:
        with pytest.raises(KeyboardInterrupt):
            complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), stop)
        assert len(path.read_text().splitlines()) == 3
        engine.asked = 0
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == len(JOBS) - 3
        # and a third time there is nothing to do
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == len(JOBS) - 3


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_cut_short_is_done_again(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    with CountingEngine("serial") as engine:
        complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent)
        path.write_bytes(path.read_bytes()[:-cut])
        lost = len(JOBS) - sum(Checkpoint(path, "reproduction").find(job)[0] for job in JOBS)
        assert lost >= 1
        engine.asked = 0
        assert complete_jobs(JOBS, engine, Checkpoint(path, "reproduction"), silent) == expected_results()
        assert engine.asked == lost
        assert all(Checkpoint(path, "reproduction").find(job)[0] for job in JOBS)


@pytest.mark.parametrize("line", ["", "{", "[1, 2]", "7", '{"key": 1}', '{"result": 3}', "null", '"text"'])
def test_lines_that_say_nothing_are_passed_over(line: str, tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    path.write_text(line)
    Checkpoint(path, "reproduction").add(JOBS[0], [1])
    assert Checkpoint(path, "reproduction").find(JOBS[0]) == (True, [1])
    assert Checkpoint(path, "reproduction").find(JOBS[1]) == (False, None)


def test_results_of_other_code_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "work.jsonl"
    Checkpoint(path, "reproduction").add(JOBS[0], [1])
    Checkpoint(path, "reproduction", "seed 1").spend(5.0)
    Checkpoint(path, "reproduction", "seed 1").spend(2.0)
    Checkpoint(path, "reproduction", "seed 2").spend(9.0)
    assert (
        Checkpoint(path, "reproduction").find(JOBS[0])[0]
        and Checkpoint(path, "reproduction", "seed 2").find(JOBS[0])[0]
    )
    assert Checkpoint(path, "reproduction", "seed 1").spent == 7.0
    monkeypatch.setattr(module, "source_digest", lambda room: "0" * 64)
    assert not Checkpoint(path, "reproduction").find(JOBS[0])[0]
    assert Checkpoint(path, "reproduction", "seed 1").spent == 0.0


def test_a_checkpoint_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read as a list of finished jobs"):
        Checkpoint(tmp_path, "reproduction")
    with pytest.raises(InvalidInput, match="cannot be written"):
        Checkpoint(tmp_path / "missing" / "work.jsonl", "reproduction").add(JOBS[0], 1)
