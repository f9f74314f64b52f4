"""Files that are opened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import inca
from helpers.dashboard_server import CONSORTIUM, Dashboard
from helpers.paths import FIXTURES


def test_an_execution_is_opened_and_looked_at(board: Dashboard, tmp_path: Path) -> None:
    opened = board.post("/api/open?name=run.json", CONSORTIUM.read_bytes()).json
    assert opened["kind"] == "execution"
    run = board.ask("run", file=opened["id"])
    assert run["simulation"] is None
    transcript = inca.read_execution(CONSORTIUM)
    colluding = transcript.known_adversary.colluding
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


def test_a_plan_that_is_no_better_than_a_guess_says_so(board: Dashboard) -> None:
    fields = json.loads((FIXTURES / "version-0.1" / "plan.json").read_text())
    for mse, count in ((1e-4, 0), (0.09, 1), (None, 0), ("much", 0)):
        content = json.dumps(fields | {"expected_mse": mse}).encode()
        identity = board.post("/api/open?name=plan.json", content).json["id"]
        remarks = board.ask("file", file=identity)["remarks"]
        assert len(remarks) == count and all("guessing its middle would do as well" in words for words in remarks)


def test_files_at_the_start_are_open(board: Dashboard) -> None:
    assert "consortium.json" in [opened["name"] for opened in board.ask("files")["files"]]
    (opened, *_) = board.ask("files")["files"]
    assert board.ask("file", file=opened["id"])["name"] == opened["name"]


def opened(board: Dashboard, folder: Path, **changes: Any) -> str:
    """Open the example with something changed, and return its id."""
    inca.write_execution(folder / "run.json", replace(inca.read_execution(CONSORTIUM), **changes))
    return str(board.post("/api/open?name=run.json", (folder / "run.json").read_bytes()).json["id"])


def test_losses_of_a_file_need_a_sensitivity_that_is_no_less_than_its_own(board: Dashboard, tmp_path: Path) -> None:
    unit = board.ask("adversary", file=opened(board, tmp_path))
    silent = opened(board, tmp_path, sensitivity=None)
    for verb, more in (("adversary", {}), ("sufficient-noise", {"epsilon": 2})):
        answer = board.get(f"/api/{verb}", file=silent, **more)
        assert answer.status == 400 and "sensitivity must be stated on this page" in answer.json["error"]
    stated = board.ask("adversary", file=silent, sensitivity=100)
    assert stated["mu"] == pytest.approx([100 * mu for mu in unit["mu"]])
    assert stated["epsilon_independent_only"] > unit["epsilon_independent_only"]
    assert board.ask("adversary", file=opened(board, tmp_path, sensitivity=100.0))["mu"] == pytest.approx(stated["mu"])
    answer = board.get("/api/adversary", file=opened(board, tmp_path, sensitivity=100.0), sensitivity=1)
    assert answer.status == 400 and "sensitivity must be at least 100, as the file says" in answer.json["error"]


def test_losses_of_a_file_need_an_adversary(board: Dashboard, tmp_path: Path) -> None:
    agreed = board.ask("adversary", file=opened(board, tmp_path, adversary=None))
    assert len(agreed["colluding"]) == 6  # as many as were agreed
    silent = opened(board, tmp_path, adversary=None, agreed=None)
    answer = board.get("/api/adversary", file=silent)
    assert answer.status == 400 and "the adversary must be chosen on this page" in answer.json["error"]
    assert board.ask("adversary", file=silent, colluding="none")["colluding"] == []
    assert board.ask("run", file=silent)["colluding"] == []  # without any loss


HOSTILE = ["x" * 300 + ".json", "a%00b.json", "%2E%2E/..", "%20", "a%E2%80%AEnosj.json", "a%0Ab.json"]


@pytest.mark.parametrize("name", [*HOSTILE, "%ED%A0%80.json", "q%3F%26.npz"])
def test_whatever_a_file_is_called_it_is_opened_or_refused_in_a_sentence(board: Dashboard, name: str) -> None:
    answer = board.post(f"/api/open?name={name}", CONSORTIUM.read_bytes())
    assert answer.status in (200, 400), answer
    assert (answer.status == 400) == (name.endswith(".npz") or name in HOSTILE)
    assert "error" in answer.json or answer.json["kind"] == "execution"
    if name in HOSTILE:
        assert answer.json["error"].startswith("the name of a file must be")


@pytest.mark.parametrize(
    ("kind", "content"),
    [("result", b'{"format": "inca-result/2"}'), ("certificate", b'{"format": "inca-certificate/1", "parties": 3}')],
)
def test_an_empty_file_is_not_shown_as_a_verdict(board: Dashboard, kind: str, content: bytes) -> None:
    answer = board.post("/api/open?name=empty.json", content)
    assert (
        answer.status == 400 and f"empty.json must have all that a {kind} has, got one without" in answer.json["error"]
    )
