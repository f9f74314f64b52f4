"""What is public of sessions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from helpers.dashboard_server import Dashboard, running
from helpers.paths import ROOT
from inca.dashboard.sessions import all_sessions, one_session

SESSIONS = ROOT / "tests" / "fixtures" / "version-0.1" / "session" / "party-001" / "sessions"


def test_sessions_show_what_is_public_and_nothing_else(board: Dashboard) -> None:
    (listed,) = board.ask("sessions")["sessions"]
    assert (listed["party"], listed["round"]) == ("anna", 3)
    one = board.get("/api/session", session=listed["id"])
    assert one.json["result"]["estimate"] == 0.5 and one.json["certificate"] is None
    assert b"0.123456" not in one.body  # the journal


def test_one_folder_of_sessions_is_searched_however_deep(tmp_path: Path) -> None:
    for party in ("anna", "far/away/bert"):
        shutil.copytree(SESSIONS, tmp_path / party / "sessions")
    (flat,) = all_sessions([SESSIONS])
    deep = all_sessions([tmp_path, tmp_path / "anna"])
    assert len(deep) == 2 and {entry["id"] for entry in deep} == {flat["id"]}
    assert one_session([tmp_path], flat["id"])["result"] == one_session([SESSIONS], flat["id"])["result"]


@pytest.mark.parametrize("name", ["St. Anna & Co", "a+b", "c#d", "50%", "e/f?g=h"])
def test_a_session_is_found_whatever_its_party_is_called(tmp_path: Path, name: str) -> None:
    shutil.copytree(SESSIONS, tmp_path / "sessions")
    (place,) = tmp_path.rglob("status.json")
    place.write_text(json.dumps(json.loads(place.read_text()) | {"party": name}))
    with running([tmp_path]) as board:
        (listed,) = board.ask("sessions")["sessions"]
        assert board.ask("session", session=listed["id"])["status"]["party"] == name
