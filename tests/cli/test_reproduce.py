from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from helpers.command_line import MAIN, Capture, call, refused
from inca.jobs.engine import Engine
from inca.reproduction.reproduce import reproduce


@pytest.mark.slow
def test_it_prints_verdicts_and_where_the_page_is(capsys: Capture, tmp_path: Path) -> None:
    words = ["reproduce", "fig3", "--quick", "--out", tmp_path, "--engine", "serial"]
    status, out, err = call(capsys, *words)
    assert (status, err) == (0, "")
    assert "agrees" in out and "open" in out and "closed form" in out
    page = tmp_path / "fig3-quick" / "fig3.html"
    assert str(page) in out.replace("\n", "") and page.exists()
    status, out, _ = call(capsys, *words, "--json")
    (document,) = json.loads(out)
    assert status == 0 and document["figure"] == "fig3" and document["page"] == str(page)
    assert {claim["verdict"] for claim in document["claims"]} <= {"agrees", "differs", "open"}
    assert all(claim["found"] and claim["source"] for claim in document["claims"])


class Running:
    """A real `inca reproduce fig2 --quick` with two workers, in a session of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fig2-quick"
        command = [*MAIN, "reproduce", "fig2", "--quick"]
        options = ["--workers", "2", "--seed", "2", "--out", str(folder)]
        self.process = subprocess.Popen([*command, *options], start_new_session=True, stderr=subprocess.PIPE, text=True)

    def finished(self) -> int:
        checkpoint = self.folder / "work.jsonl"
        return checkpoint.read_text().count('"key"') if checkpoint.exists() else 0

    def wait_for(self, jobs: int) -> None:
        deadline = time.monotonic() + 240
        while self.finished() < jobs:
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.02)


@pytest.mark.slow
def test_killed_in_mid_work_it_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    """The command and all its workers are killed with SIGKILL."""
    killed = Running(tmp_path / "killed")
    killed.wait_for(jobs=2)
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.communicate()
    assert not (killed.folder / "fig2.html").exists()
    assert 2 <= killed.finished() < 20
    with Engine() as engine:
        for folder in ("killed", "whole"):
            reproduce("fig2", tmp_path / folder, quick=True, seed=2, engine=engine)
    assert killed.finished() <= 20 + 1  # 20 jobs in all, each done once, but for a line that was cut short
    one, other = (tmp_path / folder / "fig2-quick" / "success.csv" for folder in ("killed", "whole"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_work_with_a_sentence(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.wait_for(jobs=2)
    children = psutil.Process(running.process.pid).children()
    [child for child in children if "loky" in " ".join(child.cmdline())][-1].kill()
    _, err = running.process.communicate(timeout=240)
    assert running.process.returncode == 1
    assert err.splitlines()[-1] == "inca: a worker died; the same command resumes where it stopped"
    assert "Traceback" not in err


@pytest.mark.slow
def test_all_reproduces_all(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inca.reproduction import reproduce as module
    from inca.reproduction.figure3 import Figure3

    class Again(Figure3):
        name = "again"

    monkeypatch.setattr(module, "FIGURES", {"fig3": Figure3, "again": Again})
    status, _, _ = call(capsys, "reproduce", "all", "--quick", "--out", tmp_path, "--engine", "serial", "--seed", 3)
    assert status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again-quick", "fig3-quick"]
    again, first = (tmp_path / f"{name}-quick" / "failing.csv" for name in ("again", "fig3"))
    assert again.read_text() == first.read_text()
    other = reproduce("fig3", tmp_path / "other", quick=True, seed=4, engine=Engine("serial"))
    assert (other.folder / "failing.csv").read_text().replace(",4,0.1.0", ",3,0.1.0") != first.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fig5"], "figure must be one of fig1, fig2, fig3, fig4, all, got 'fig5'"),
        (["fig3", "--engine", "spark"], "--engine must be one of processes, serial, dask, got 'spark'"),
        (["fig3", "--workers", 0], "workers must be at least 1, got 0"),
        (["fig3", "--seed", -1], f"seed must be from 0 to {2**63 - 1}, got -1"),
        (["fig3", "--address", "tcp://x:1"], "address cannot be combined with engine processes, only with dask"),
    ],
)
def test_bad_input_is_one_sentence(words: list[object], sentence: str, capsys: Capture, tmp_path: Path) -> None:
    assert refused(capsys, "reproduce", *words, "--out", tmp_path / "new") == sentence
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_is_refused(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = refused(capsys, "reproduce", "fig3", "--quick", "--out", tmp_path / "file")
    assert "cannot be made a folder" in sentence
