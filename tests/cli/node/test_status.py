from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import Capture, call, refused

FIELDS: dict[str, Any] = {
    "session": "ab" * 32,
    "party": "anna",
    "process": os.getpid(),
    "stage": "rounds",
    "round": 2,
    "rounds": 9,
    "attended": 2,
    "open_offers": 1,
    "connected": 3,
    "ended": False,
    "reason": "",
}


def write(folder: Path, name: str = "one", **changes: Any) -> None:
    (folder / name).mkdir()
    (folder / name / "status.json").write_text(json.dumps(FIELDS | changes))


def test_it_says_how_far_a_session_is(capsys: Capture, tmp_path: Path) -> None:
    write(tmp_path)
    status, out, err = call(capsys, "node", "status", tmp_path)
    assert (status, err) == (0, "")
    assert out == (
        "abababababababab  anna: rounds, running\n"
        "  round 2 of 9, 2 attended, 1 offers open, 3 peers connected\n"
    )  # fmt: skip


def test_what_takes_long_is_told_while_the_party_runs(capsys: Capture, tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "deposits": 3,
        "expected": 12,
        "percent": 33,
        "seconds_left": None,
        "bytes_received": 48e6,
        "bytes_expected": 112e6,
    }
    write(tmp_path, stage="agreeing", **fields)
    _, out, _ = call(capsys, "node", "status", tmp_path)
    assert out.endswith("\n  final messages: 3 of 12, 33 %; 48 of about 112 MB received\n")
    write(tmp_path, "two", stage="agreeing", process=2**30, **fields)
    _, out, _ = call(capsys, "node", "status", tmp_path)
    assert out.count("final messages: ") == 1


def test_relays_are_told_while_the_party_runs(capsys: Capture, tmp_path: Path) -> None:
    relays = {"wss://relay.example.org/inca": "", "wss://second.example.org": "nothing answers there"}
    write(tmp_path, through_relays=2, relays=relays)
    _, out, _ = call(capsys, "node", "status", tmp_path)
    assert out.endswith(
        "1 offers open, 3 peers connected, 2 of them through a relay\n"
        "  registered at wss://relay.example.org/inca\n"
        "  not registered at wss://second.example.org: nothing answers there\n"
    )
    write(tmp_path, "two", process=2**30, through_relays=2, relays=relays)
    assert call(capsys, "node", "status", tmp_path)[1].count("registered at") == 2


def test_all_sessions_of_a_folder_are_shown(capsys: Capture, tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "two", session="cd" * 32, ended=True, stage="over", reason="no majority")
    _, out, _ = call(capsys, "node", "status", tmp_path)
    assert out.splitlines()[2].startswith("cdcdcdcdcdcdcdcd  anna: over") and out.endswith("\n  no majority\n")
    status, out, _ = call(capsys, "node", "status", tmp_path, "--json")
    first, second = json.loads(out)
    assert status == 0 and first["running"] is True and second["reason"] == "no majority"


def test_a_folder_without_sessions_is_refused(capsys: Capture, tmp_path: Path) -> None:
    sentence = refused(capsys, "node", "status", tmp_path)
    assert sentence.startswith("FOLDER must be a --state folder with a session in it, got ")


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"process": "x"}'])
def test_nonsense_is_refused(text: str, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "status.json").write_text(text)
    assert "status.json" in refused(capsys, "node", "status", tmp_path)
