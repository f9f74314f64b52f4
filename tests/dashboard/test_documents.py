"""Files that are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import inca
from helpers.dashboard_server import CONSORTIUM, Dashboard


def test_an_execution_is_opened_and_looked_at(board: Dashboard, tmp_path: Path) -> None:
    opened = board.post("/api/open?name=run.json", CONSORTIUM.read_bytes()).json
    assert opened["kind"] == "execution"
    run = board.ask("run", file=opened["id"])
    assert run["simulation"] is None
    transcript = inca.read_execution(CONSORTIUM)
    colluding = transcript.adversary.colluding
    assert run["parties"] == transcript.execution.parties and tuple(run["colluding"]) == colluding
    view = board.ask("adversary", file=opened["id"])
    assert tuple(view["colluding"]) == colluding
    assert view["guesses"] is None and "only a simulation" in view["why_no_guesses"]
    inca.write_execution(tmp_path / "same.npz", transcript)
    packed = board.post("/api/open?name=same.npz", (tmp_path / "same.npz").read_bytes()).json
    assert board.ask("adversary", file=packed["id"])["mu"] == view["mu"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b""),
        ("x.json", b"[]"),
        ("x.json", b"[" * 100_000),
        ("x.json", b'{"format": "other/1"}'),
        ("x.json", b'{"format": "inca-execution/1", "parties": 3}'),
        ("x.npz", b"PK nonsense"),
        ("../../x.json", b"{}"),
        ("x.json", b"\xff\xfe"),
    ],
)
def test_files_that_are_none_of_ours_are_refused(board: Dashboard, name: str, content: bytes) -> None:
    answer = board.post(f"/api/open?name={name}", content)
    assert answer.status == 400 and answer.json["error"].startswith("x.")
    assert "/tmp" not in answer.json["error"] and "Traceback" not in answer.json["error"]


def test_files_at_the_start_are_open(board: Dashboard) -> None:
    assert "consortium.json" in [opened["name"] for opened in board.ask("files")]
    (opened, *_) = board.ask("files")
    assert board.ask("file", file=opened["id"])["name"] == opened["name"]
